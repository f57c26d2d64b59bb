//! Entries by keys that go stale with them.

use alloc::vec::Vec;

/// Names an entry of a [`Slab`]. The generation tells an entry from a later one in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Where the entry is in its table: a later entry may have the same.
    pub slot: u32,
    generation: u32,
}

impl Key {
    /// Names no entry of any table.
    pub const NONE: Self = Self { slot: u32::MAX, generation: u32::MAX };

    /// The key as a number.
    #[must_use]
    pub const fn to_number(self) -> u64 {
        (self.generation as u64) << 32 | self.slot as u64
    }

    /// The key that [`to_number`](Self::to_number) made this number of.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, reason = "the halves of a number")]
    pub const fn from_number(number: u64) -> Self {
        Self { slot: number as u32, generation: (number >> 32) as u32 }
    }

    /// Slot and generation.
    #[must_use]
    pub const fn to_parts(self) -> [u32; 2] {
        [self.slot, self.generation]
    }

    /// The key of this slot and generation.
    #[must_use]
    pub const fn from_parts(slot: u32, generation: u32) -> Self {
        Self { slot, generation }
    }
}

/// A table whose entries keep their place, and whose free places are used again.
#[derive(Debug)]
pub struct Slab<T> {
    slots: Vec<Slot<T>>,
    /// The slot that was left last: the first of the list of those that are free, or [`END`].
    free: u32,
    len: u32,
}

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    place: Place<T>,
}

#[derive(Debug)]
enum Place<T> {
    Taken(T),
    /// The slot that was left before this one and is still free, or [`END`].
    Free(u32),
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// The end of the list of free slots.
const END: u32 = u32::MAX;

impl<T> Slab<T> {
    /// What the room of one entry takes of the heap, in bytes.
    pub const ENTRY_SIZE: usize = size_of::<Slot<T>>();

    /// A table without entries. It allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { slots: Vec::new(), free: END, len: 0 }
    }

    /// How many entries there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether there are no entries.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Takes in an entry.
    ///
    /// # Panics
    ///
    /// If there are 2^32 - 1 entries.
    // An entry is large: inlined it is written in place, not copied.
    #[inline]
    pub fn insert(&mut self, value: T) -> Key {
        self.len += 1;
        let slot = self.free;
        if let Some(entry) = self.slots.get_mut(slot as usize)
            && let Place::Free(next) = entry.place
        {
            self.free = next;
            entry.place = Place::Taken(value);
            return Key { slot, generation: entry.generation };
        }
        let slot = u32::try_from(self.slots.len()).expect("fewer than 2^32 entries");
        if slot == 0 {
            // Most tables never have two, and entries are large: a vector begins with room for four.
            self.slots.reserve_exact(1);
        }
        self.slots.push(Slot { generation: 0, place: Place::Taken(value) });
        Key { slot, generation: 0 }
    }

    /// The entry with this key.
    #[must_use]
    pub fn get(&self, key: Key) -> Option<&T> {
        let slot = self.slots.get(key.slot as usize)?;
        slot.value().filter(|_| slot.generation == key.generation)
    }

    /// The entry with this key, to change it.
    #[must_use]
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let slot = self.slots.get_mut(key.slot as usize)?;
        match &mut slot.place {
            Place::Taken(value) if slot.generation == key.generation => Some(value),
            _ => None,
        }
    }

    /// Takes out the entry with this key.
    pub fn remove(&mut self, key: Key) -> Option<T> {
        let slot = self.slots.get_mut(key.slot as usize)?;
        if slot.generation != key.generation || matches!(slot.place, Place::Free(_)) {
            return None;
        }
        let place = core::mem::replace(&mut slot.place, Place::Free(self.free));
        slot.generation = slot.generation.wrapping_add(1);
        self.free = key.slot;
        self.len -= 1;
        match place {
            Place::Taken(value) => Some(value),
            Place::Free(_) => None,
        }
    }

    /// Takes all entries out, in the order of their slots.
    pub fn take_all(&mut self) -> Vec<T> {
        let keys: Vec<Key> = self.iter().map(|(key, _)| key).collect();
        keys.into_iter().filter_map(|key| self.remove(key)).collect()
    }

    /// The key of the entry in `slot`, if there is one.
    #[must_use]
    pub fn key_at(&self, slot: u32) -> Option<Key> {
        let entry = self.slots.get(slot as usize)?;
        entry.value()?;
        Some(Key { slot, generation: entry.generation })
    }

    /// The entries in the order of their slots.
    pub fn iter(&self) -> impl Iterator<Item = (Key, &T)> {
        self.slots.iter().zip(0..).filter_map(|(entry, slot)| {
            entry.value().map(|value| (Key { slot, generation: entry.generation }, value))
        })
    }

    /// The key of the first entry at or after `slot` that satisfies `wanted`.
    pub fn find_from(&self, slot: u32, wanted: impl Fn(&T) -> bool) -> Option<Key> {
        self.slots.iter().zip(0..).skip(slot as usize).find_map(|(entry, slot)| {
            entry
                .value()
                .filter(|value| wanted(value))
                .map(|_| Key { slot, generation: entry.generation })
        })
    }
}

impl<T> Slot<T> {
    const fn value(&self) -> Option<&T> {
        match &self.place {
            Place::Taken(value) => Some(value),
            Place::Free(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_a_removed_entry_does_not_reach_its_successor() {
        let mut slab = Slab::new();
        let first = slab.insert('a');
        assert_eq!(slab.remove(first), Some('a'));
        let second = slab.insert('b');
        assert_eq!(second.slot, first.slot);
        assert_eq!(slab.get(first), None);
        assert_eq!(slab.remove(first), None);
        assert_eq!(slab.get(second), Some(&'b'));
        assert_eq!(slab.len(), 1);
    }

    #[test]
    fn free_places_are_used_again_before_there_are_more_the_last_one_first() {
        let mut slab = Slab::new();
        let keys = [slab.insert(0), slab.insert(1), slab.insert(2)];
        for key in [keys[2], keys[0], keys[0], keys[1]] {
            slab.remove(key);
        }
        assert_eq!(slab.len(), 0);
        assert_eq!([3, 4, 5, 6].map(|value| slab.insert(value).slot), [1, 0, 2, 3]);
        assert_eq!(slab.len(), 4);
    }

    #[test]
    fn entries_are_visited_in_the_order_of_their_slots() {
        let mut slab = Slab::new();
        let keys = [slab.insert(0), slab.insert(1), slab.insert(2)];
        slab.remove(keys[1]);
        assert!(slab.iter().map(|(_, value)| *value).eq([0, 2]));
        assert_eq!(slab.find_from(1, |_| true), Some(keys[2]));
        assert_eq!(slab.key_at(1), None);
    }
}

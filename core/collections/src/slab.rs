//! A slab with generational keys.

use alloc::vec::Vec;

/// Identifies an entry of a [`Slab`]. The generation distinguishes an entry from later entries in
/// the same slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Index of the entry in its table. A later entry may reuse it.
    pub slot: u32,
    generation: u32,
}

impl Key {
    /// A key that matches no entry of any table.
    pub const NONE: Self = Self { slot: u32::MAX, generation: u32::MAX };

    /// Converts the key to a number.
    #[must_use]
    pub const fn to_number(self) -> u64 {
        (self.generation as u64) << 32 | self.slot as u64
    }

    /// Restores a key from the result of [`to_number`](Self::to_number).
    #[must_use]
    #[allow(clippy::cast_possible_truncation, reason = "both halves fit into 32 bits")]
    pub const fn from_number(number: u64) -> Self {
        Self { slot: number as u32, generation: (number >> 32) as u32 }
    }

    /// Returns the slot and the generation.
    #[must_use]
    pub const fn to_parts(self) -> [u32; 2] {
        [self.slot, self.generation]
    }

    /// Creates a key from a slot and a generation.
    #[must_use]
    pub const fn from_parts(slot: u32, generation: u32) -> Self {
        Self { slot, generation }
    }
}

/// A table whose entries keep their slots, and whose free slots are reused.
#[derive(Debug)]
pub struct Slab<T> {
    slots: Vec<Slot<T>>,
    /// The most recently freed slot, the head of the free list, or [`END`].
    free: u32,
    len: u32,
}

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    content: Content<T>,
}

#[derive(Debug)]
enum Content<T> {
    Taken(T),
    /// The next free slot in the list, or [`END`].
    Free(u32),
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// End of the free list.
const END: u32 = u32::MAX;

impl<T> Slab<T> {
    /// Heap size of one slot in bytes.
    pub const ENTRY_SIZE: usize = size_of::<Slot<T>>();

    /// Creates an empty table without allocating.
    #[must_use]
    pub const fn new() -> Self {
        Self { slots: Vec::new(), free: END, len: 0 }
    }

    /// Returns the number of entries.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Returns whether the table is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Inserts an entry.
    ///
    /// # Panics
    ///
    /// Panics if there are 2^32 - 1 entries.
    // Entries are large: inlining constructs them in place, without a copy.
    #[inline(always)]
    pub fn insert(&mut self, value: T) -> Key {
        self.len += 1;
        let slot = self.free;
        if let Some(entry) = self.slots.get_mut(slot as usize)
            && let Content::Free(next) = entry.content
        {
            self.free = next;
            // A free slot owns nothing: without a check whether to drop it, the entry is written
            // once.
            core::mem::forget(core::mem::replace(&mut entry.content, Content::Taken(value)));
            return Key { slot, generation: entry.generation };
        }
        let slot = u32::try_from(self.slots.len()).expect("fewer than 2^32 entries");
        if self.slots.len() == self.slots.capacity() {
            // Most tables never hold three entries, and entries are large: a vector would grow to
            // four at least.
            self.slots.reserve_exact(self.slots.len().max(1));
        }
        self.slots.push(Slot { generation: 0, content: Content::Taken(value) });
        Key { slot, generation: 0 }
    }

    /// Returns the entry with this key.
    #[must_use]
    pub fn get(&self, key: Key) -> Option<&T> {
        let slot = self.slots.get(key.slot as usize)?;
        slot.value().filter(|_| slot.generation == key.generation)
    }

    /// Returns a mutable reference to the entry with this key.
    #[must_use]
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let slot = self.slots.get_mut(key.slot as usize)?;
        match &mut slot.content {
            Content::Taken(value) if slot.generation == key.generation => Some(value),
            _ => None,
        }
    }

    /// Removes the entry with this key.
    // Entries are large: inlining avoids a copy.
    #[inline]
    pub fn remove(&mut self, key: Key) -> Option<T> {
        let slot = self.slots.get_mut(key.slot as usize)?;
        if slot.generation != key.generation || matches!(slot.content, Content::Free(_)) {
            return None;
        }
        let content = core::mem::replace(&mut slot.content, Content::Free(self.free));
        slot.generation = slot.generation.wrapping_add(1);
        self.free = key.slot;
        self.len -= 1;
        match content {
            Content::Taken(value) => Some(value),
            Content::Free(_) => None,
        }
    }

    /// Removes and returns all entries, in the order of their slots.
    pub fn take_all(&mut self) -> Vec<T> {
        let keys: Vec<Key> = self.iter().map(|(key, _)| key).collect();
        keys.into_iter().filter_map(|key| self.remove(key)).collect()
    }

    /// Returns the key of the entry in `slot`, if the slot is taken.
    #[must_use]
    pub fn key_at(&self, slot: u32) -> Option<Key> {
        let entry = self.slots.get(slot as usize)?;
        entry.value()?;
        Some(Key { slot, generation: entry.generation })
    }

    /// Iterates over the entries in the order of their slots.
    pub fn iter(&self) -> impl Iterator<Item = (Key, &T)> {
        self.slots.iter().zip(0..).filter_map(|(entry, slot)| {
            entry.value().map(|value| (Key { slot, generation: entry.generation }, value))
        })
    }

    /// Returns the key of the first entry at or after `slot` that satisfies `wanted`.
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
        match &self.content {
            Content::Taken(value) => Some(value),
            Content::Free(_) => None,
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

use alloc::vec::Vec;

use super::memory::{add, vector};

/// Names an entry of a [`Slab`]. The generation tells an entry from a later one in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    pub(crate) slot: u32,
    generation: u32,
}

impl Key {
    /// Names no entry of any table.
    pub(crate) const NONE: Self = Self { slot: u32::MAX, generation: u32::MAX };

    /// Slot and generation.
    #[cfg(feature = "recording")]
    pub(crate) const fn to_parts(self) -> [u32; 2] {
        [self.slot, self.generation]
    }

    #[cfg(feature = "recording")]
    pub(crate) const fn from_parts(slot: u32, generation: u32) -> Self {
        Self { slot, generation }
    }
}

/// A table whose entries keep their place, and whose free places are used again.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    value: Option<T>,
}

impl<T> Slab<T> {
    pub(crate) const fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }

    /// The heap of one with so many entries, in bytes, while it grows.
    pub(crate) const fn memory_max(count: usize) -> usize {
        add(vector::<Slot<T>>(count), vector::<u32>(count))
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    // An entry is large: inlined it is written in place, not copied.
    #[inline]
    pub(crate) fn insert(&mut self, value: T) -> Key {
        if let Some(slot) = self.free.pop() {
            let entry = &mut self.slots[slot as usize];
            entry.value = Some(value);
            return Key { slot, generation: entry.generation };
        }
        let slot = u32::try_from(self.slots.len()).expect("limits keep tables far below 2^32");
        if slot == 0 {
            // Most tables never have two, and entries are large: a vector begins with room for four.
            self.slots.reserve_exact(1);
        }
        self.slots.push(Slot { generation: 0, value: Some(value) });
        Key { slot, generation: 0 }
    }

    pub(crate) fn get(&self, key: Key) -> Option<&T> {
        let slot = self.slots.get(key.slot as usize)?;
        slot.value.as_ref().filter(|_| slot.generation == key.generation)
    }

    pub(crate) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let slot = self.slots.get_mut(key.slot as usize)?;
        slot.value.as_mut().filter(|_| slot.generation == key.generation)
    }

    pub(crate) fn remove(&mut self, key: Key) -> Option<T> {
        let slot = self.slots.get_mut(key.slot as usize)?;
        if slot.generation != key.generation {
            return None;
        }
        let value = slot.value.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(key.slot);
        Some(value)
    }

    /// Takes all entries out, in the order of their slots. For the handlers, so only where they are.
    #[cfg(target_has_atomic = "ptr")]
    pub(crate) fn take_all(&mut self) -> Vec<T> {
        let keys: Vec<Key> = self.iter().map(|(key, _)| key).collect();
        keys.into_iter().filter_map(|key| self.remove(key)).collect()
    }

    /// The key of the entry in `slot`, if there is one.
    pub(crate) fn key_at(&self, slot: u32) -> Option<Key> {
        let entry = self.slots.get(slot as usize)?;
        entry.value.as_ref()?;
        Some(Key { slot, generation: entry.generation })
    }

    /// The entries in the order of their slots.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Key, &T)> {
        self.slots.iter().zip(0..).filter_map(|(entry, slot)| {
            entry.value.as_ref().map(|value| (Key { slot, generation: entry.generation }, value))
        })
    }

    /// The keys of the first entry at or after `slot` that satisfies `wanted`.
    pub(crate) fn find_from(&self, slot: u32, wanted: impl Fn(&T) -> bool) -> Option<Key> {
        self.slots.iter().zip(0..).skip(slot as usize).find_map(|(entry, slot)| {
            entry
                .value
                .as_ref()
                .filter(|value| wanted(value))
                .map(|_| Key { slot, generation: entry.generation })
        })
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
    fn entries_are_visited_in_the_order_of_their_slots() {
        let mut slab = Slab::new();
        let keys = [slab.insert(0), slab.insert(1), slab.insert(2)];
        slab.remove(keys[1]);
        assert!(slab.iter().map(|(_, value)| *value).eq([0, 2]));
        assert_eq!(slab.find_from(1, |_| true), Some(keys[2]));
        assert_eq!(slab.key_at(1), None);
    }
}

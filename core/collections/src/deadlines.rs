//! Deadlines in order, indexed by slot.

use alloc::vec::Vec;

/// The deadlines of a table's entries, earliest first.
///
/// A binary heap that also records the position of each slot, so that a deadline is moved or
/// removed in logarithmic time and leaves no stale entry behind.
#[derive(Debug)]
pub struct Deadlines<T> {
    heap: Vec<(T, u32)>,
    /// Position in `heap` of each slot's deadline, or [`ABSENT`].
    positions: Vec<u32>,
}

const ABSENT: u32 = u32::MAX;

impl<T> Default for Deadlines<T> {
    fn default() -> Self {
        Self { heap: Vec::new(), positions: Vec::new() }
    }
}

impl<T: Copy + Ord> Deadlines<T> {
    /// Returns the earliest deadline and its slot.
    #[must_use]
    pub fn first(&self) -> Option<(T, u32)> {
        self.heap.first().copied()
    }

    /// Returns the number of deadlines.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.heap.len()
    }

    /// Returns whether no deadline is set.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// Returns the deadline of `slot`, if one is set.
    #[must_use]
    pub fn get(&self, slot: u32) -> Option<T> {
        let at = *self.positions.get(slot as usize)?;
        self.heap.get(at as usize).map(|(deadline, _)| *deadline)
    }

    /// Sets or moves the deadline of `slot`.
    ///
    /// The table allocates memory for all slots up to this one.
    ///
    /// # Panics
    ///
    /// Panics if there are 2^32 deadlines.
    pub fn set(&mut self, slot: u32, deadline: T) {
        if self.positions.len() <= slot as usize {
            self.positions.resize(slot as usize + 1, ABSENT);
        }
        let mut at = self.positions[slot as usize] as usize;
        if at == ABSENT as usize {
            at = self.heap.len();
            if at == 0 {
                // Most tables hold one deadline at a time, and a vector would start with room for
                // four.
                self.heap.reserve_exact(1);
            }
            self.heap.push((deadline, slot));
        } else {
            self.heap[at].0 = deadline;
        }
        self.settle(at);
    }

    /// Removes the deadline of `slot`, if one is set.
    pub fn clear(&mut self, slot: u32) {
        let Some(at) = self.positions.get_mut(slot as usize) else { return };
        let at = core::mem::replace(at, ABSENT) as usize;
        if at == ABSENT as usize {
            return;
        }
        self.heap.swap_remove(at);
        if at < self.heap.len() {
            self.settle(at);
        }
    }

    /// Restores the heap order for the entry at `at`.
    fn settle(&mut self, mut at: usize) {
        while at > 0 {
            let parent = (at - 1) / 2;
            if self.heap[parent] <= self.heap[at] {
                break;
            }
            self.swap(parent, at);
            at = parent;
        }
        loop {
            let left = 2 * at + 1;
            if left >= self.heap.len() {
                break;
            }
            let right = left + 1;
            let least = if right < self.heap.len() && self.heap[right] < self.heap[left] {
                right
            } else {
                left
            };
            if self.heap[at] <= self.heap[least] {
                break;
            }
            self.swap(at, least);
            at = least;
        }
        self.note(at);
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        self.note(a);
        self.note(b);
    }

    fn note(&mut self, at: usize) {
        let slot = self.heap[at].1 as usize;
        self.positions[slot] = u32::try_from(at).expect("fewer than 2^32 deadlines");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(deadlines: &mut Deadlines<u64>) -> Vec<u32> {
        let mut slots = Vec::new();
        while let Some((_, slot)) = deadlines.first() {
            slots.push(slot);
            deadlines.clear(slot);
        }
        slots
    }

    #[test]
    fn the_earliest_comes_first_whatever_the_order_of_insertion() {
        let mut deadlines = Deadlines::default();
        for slot in [5_u32, 1, 4, 0, 3, 2] {
            deadlines.set(slot, u64::from(slot));
        }
        assert_eq!(drain(&mut deadlines), [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn a_moved_or_cleared_deadline_leaves_nothing_behind() {
        let mut deadlines = Deadlines::default();
        for slot in 0..6_u32 {
            deadlines.set(slot, u64::from(slot));
        }
        deadlines.set(0, 100);
        deadlines.set(5, 0);
        deadlines.clear(2);
        deadlines.clear(2);
        assert_eq!((deadlines.get(2), deadlines.get(9)), (None, None));
        assert_eq!(deadlines.get(0), Some(100));
        assert_eq!(drain(&mut deadlines), [5, 1, 3, 4, 0]);
    }

    #[test]
    fn it_agrees_with_a_sorted_list_over_many_operations() {
        let mut deadlines = Deadlines::default();
        let mut model = alloc::collections::BTreeMap::new();
        let mut random = seeded_random::Random::new(1);
        for _ in 0..5_000 {
            let slot = random.below(64) as u32;
            if random.once_in(2) {
                let deadline = random.below(1 << 24);
                deadlines.set(slot, deadline);
                model.insert(slot, deadline);
            } else {
                deadlines.clear(slot);
                model.remove(&slot);
            }
            let least = model.iter().map(|(slot, at)| (*at, *slot)).min();
            assert_eq!(deadlines.first(), least);
        }
    }
}

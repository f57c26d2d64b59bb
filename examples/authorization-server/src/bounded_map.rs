use std::collections::VecDeque;

/// A map with a maximum size. Inserting into a full map evicts the oldest entry.
///
/// Lookups are linear, which is fast enough for these sizes.
#[derive(Debug)]
pub(super) struct BoundedMap<T> {
    entries: VecDeque<(String, T)>,
    max: usize,
}

impl<T> BoundedMap<T> {
    /// Creates an empty map for at most `max` entries.
    pub(super) const fn new(max: usize) -> Self {
        Self { entries: VecDeque::new(), max }
    }

    /// Inserts a value under a name that is not in use.
    pub(super) fn insert(&mut self, name: String, value: T) {
        while !self.entries.is_empty() && self.entries.len() >= self.max {
            self.entries.pop_front();
        }
        self.entries.push_back((name, value));
    }

    pub(super) fn get(&self, name: &str) -> Option<&T> {
        self.entries.iter().find(|(it, _)| it == name).map(|(_, value)| value)
    }

    pub(super) fn get_mut(&mut self, name: &str) -> Option<&mut T> {
        self.entries.iter_mut().find(|(it, _)| it == name).map(|(_, value)| value)
    }

    pub(super) fn remove(&mut self, name: &str) -> Option<T> {
        let place = self.entries.iter().position(|(it, _)| it == name)?;
        self.entries.remove(place).map(|(_, value)| value)
    }

    /// Removes the values that are not wanted.
    pub(super) fn retain(&mut self, mut wanted: impl FnMut(&T) -> bool) {
        self.entries.retain(|(_, value)| wanted(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_entry_is_evicted() {
        let mut map = BoundedMap::new(2);
        for (name, value) in [("a", 1), ("b", 2), ("c", 3)] {
            map.insert(name.into(), value);
        }
        assert_eq!(["a", "b", "c"].map(|name| map.get(name)), [None, Some(&2), Some(&3)]);
        assert_eq!(map.remove("b"), Some(2));
        assert_eq!(map.remove("b"), None);
        map.retain(|value| *value != 3);
        assert_eq!(map.get("c"), None);
    }
}

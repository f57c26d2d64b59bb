//! A list in order of insertion that finds its entries by key and goes on after any of them.

use alloc::collections::BTreeMap;
use alloc::string::String;
use core::ops::Bound;

use super::error::CatalogError;
use super::item::Item;
use crate::shared::Shared;

/// Entries by a number that grows with each insertion and is never used again, and the numbers by
/// key: adding, removing, finding and going on are all logarithmic.
///
/// Copies share the entries, so that a server and its connections hold them once.
#[derive(Clone, Debug)]
pub(super) struct List<T> {
    // MCP 2026-07-28 server/tools#capabilities [TOOL-029]: a deterministic order.
    entries: BTreeMap<u64, Shared<T>>,
    numbers: BTreeMap<String, u64>,
    next: u64,
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self { entries: BTreeMap::new(), numbers: BTreeMap::new(), next: 0 }
    }
}

impl<T: Item> List<T> {
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn get(&self, key: &str) -> Option<&T> {
        self.entries.get(self.numbers.get(key)?).map(|item| &**item)
    }

    /// Appends `item`, unless its key is taken.
    pub(super) fn add(&mut self, item: T) -> Result<(), CatalogError> {
        if self.numbers.contains_key(item.key()) {
            return Err(CatalogError::Duplicate { kind: T::KIND, key: item.key().into() });
        }
        self.append(item);
        Ok(())
    }

    /// Puts `item` in the place of the one with its key, which is given back, or at the end.
    pub(super) fn replace(&mut self, item: T) -> Option<T> {
        let known = self.numbers.get(item.key()).and_then(|number| self.entries.get_mut(number));
        match known {
            Some(known) => {
                Some(Shared::unwrap_or_clone(core::mem::replace(known, Shared::new(item))))
            }
            None => {
                self.append(item);
                None
            }
        }
    }

    pub(super) fn remove(&mut self, key: &str) -> Option<T> {
        let number = self.numbers.remove(key)?;
        self.entries.remove(&number).map(Shared::unwrap_or_clone)
    }

    fn append(&mut self, item: T) {
        self.numbers.insert(item.key().into(), self.next);
        self.entries.insert(self.next, Shared::new(item));
        self.next += 1;
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = &T> + Clone {
        self.entries.values().map(|item| &**item)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries.values_mut().map(Shared::make_mut)
    }

    /// The entries behind the one numbered `after`, whether or not that is still there.
    pub(super) fn iter_after(&self, after: Option<u64>) -> impl Iterator<Item = (u64, &T)> {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.entries.range((start, Bound::Unbounded)).map(|(number, item)| (*number, &**item))
    }

    /// Whether an entry was ever numbered `number`, and which one, if it is still there.
    pub(super) fn issued(&self, number: u64) -> Option<Option<&T>> {
        (number < self.next).then(|| self.entries.get(&number).map(|item| &**item))
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::vec::Vec;

    use super::*;
    use crate::protocol::Prompt;

    fn names(list: &List<Prompt>) -> Vec<&str> {
        list.iter().map(|prompt| prompt.name.as_str()).collect()
    }

    #[test]
    fn the_order_is_that_of_insertion() {
        // Rule: [TOOL-029].
        let mut list = List::default();
        for name in ["c", "a", "b"] {
            list.add(Prompt::new(name)).unwrap();
        }
        assert_eq!(names(&list), ["c", "a", "b"]);
        assert!(list.replace(Prompt::new("a").title("A")).is_some());
        assert_eq!(names(&list), ["c", "a", "b"]);
        assert!(list.remove("c").is_some());
        assert!(list.replace(Prompt::new("c")).is_none());
        assert_eq!(names(&list), ["a", "b", "c"]);
        assert_eq!(list.get("a").unwrap().title.as_deref(), Some("A"));
        let taken = list.add(Prompt::new("b"));
        assert!(matches!(taken, Err(CatalogError::Duplicate { key, .. }) if key == "b"));
    }

    #[test]
    fn going_on_after_an_entry_that_is_gone_misses_nothing_and_repeats_nothing() {
        // Rule: [PAGE-007].
        let mut list = List::default();
        for n in 0..6 {
            list.add(Prompt::new(format!("p{n}"))).unwrap();
        }
        list.remove("p2");
        list.remove("p3");
        list.add(Prompt::new("p3")).unwrap();
        let rest: Vec<_> = list.iter_after(Some(2)).map(|(_, p)| p.name.as_str()).collect();
        assert_eq!(rest, ["p4", "p5", "p3"]);
        assert!(matches!(list.issued(2), Some(None)));
        assert!(list.issued(7).is_none());
    }
}

//! Values that another layer attaches to the items of a catalog.

use alloc::vec::Vec;
use core::fmt;

use super::Catalog;
use super::item::ItemId;

/// Maps items of a [`Catalog`] to values of another layer, such as the handler that serves an item.
/// The machines resolve the name in a request to an [`ItemId`], which is the key here, so that
/// names are looked up only in the catalog.
#[derive(Clone)]
pub struct Attachments<T> {
    /// Sorted by id.
    entries: Vec<(ItemId, T)>,
}

impl<T> Default for Attachments<T> {
    fn default() -> Self {
        Self { entries: Vec::new() }
    }
}

impl<T> Attachments<T> {
    /// Attaches `value` to an item and replaces its previous value.
    pub fn insert(&mut self, id: ItemId, value: T) {
        match self.index_of(id) {
            Ok(index) => self.entries[index].1 = value,
            Err(index) => self.entries.insert(index, (id, value)),
        }
    }

    /// Returns the value of an item. Logarithmic in the number of attachments.
    #[must_use]
    pub fn get(&self, id: ItemId) -> Option<&T> {
        self.index_of(id).ok().map(|index| &self.entries[index].1)
    }

    /// Drops the values of items that `catalog` no longer contains.
    pub fn prune(&mut self, catalog: &Catalog) {
        self.entries.retain(|(id, _)| catalog.item(*id).is_some());
    }

    fn index_of(&self, id: ItemId) -> Result<usize, usize> {
        self.entries.binary_search_by_key(&id, |(id, _)| *id)
    }
}

impl<T> fmt::Debug for Attachments<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.entries.iter().map(|(id, _)| id)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Prompt;

    #[test]
    fn attachments_are_removed_with_their_item() {
        let (mut catalog, mut attached) = (Catalog::new(), Attachments::default());
        let names = ["b", "a", "c"];
        let ids = names.map(|name| catalog.add_prompt(Prompt::new(name)).unwrap());
        // The order of insertion does not matter.
        for (id, name) in ids.into_iter().zip(names).rev() {
            attached.insert(id, name);
        }
        catalog.remove_prompt("a");
        attached.prune(&catalog);
        assert_eq!(ids.map(|id| attached.get(id).copied()), [Some("b"), None, Some("c")]);
        // A new item with the name of a removed item has another id.
        let again = catalog.add_prompt(Prompt::new("a")).unwrap();
        assert_eq!((attached.get(again), ids.contains(&again)), (None, false));
        catalog.replace_prompt(Prompt::new("c").title("C")).unwrap();
        attached.prune(&catalog);
        attached.insert(ids[2], "C");
        assert_eq!(attached.get(ids[2]), Some(&"C"));
    }
}

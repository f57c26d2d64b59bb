//! What a layer above keeps with the items of a catalog.

use alloc::vec::Vec;
use core::fmt;

use super::Catalog;
use super::item::ItemId;

/// A value for each item of a [`Catalog`] that a layer above has one for, such as the handler that
/// serves it. The machines resolve the name that a request has to an [`ItemId`]; this takes it from
/// there, so that names are looked up in the catalog only.
#[derive(Clone)]
pub struct Attachments<T> {
    /// In the order of ids.
    entries: Vec<(ItemId, T)>,
}

impl<T> Default for Attachments<T> {
    fn default() -> Self {
        Self { entries: Vec::new() }
    }
}

impl<T> Attachments<T> {
    /// Attaches `value` to an item, in place of what was attached before.
    pub fn insert(&mut self, id: ItemId, value: T) {
        match self.place(id) {
            Ok(place) => self.entries[place].1 = value,
            Err(place) => self.entries.insert(place, (id, value)),
        }
    }

    /// What is attached to an item. Logarithmic in the number of attachments.
    #[must_use]
    pub fn get(&self, id: ItemId) -> Option<&T> {
        self.place(id).ok().map(|place| &self.entries[place].1)
    }

    /// Drops what is attached to items that `catalog` does not have any more.
    pub fn prune(&mut self, catalog: &Catalog) {
        self.entries.retain(|(id, _)| catalog.item(*id).is_some());
    }

    fn place(&self, id: ItemId) -> Result<usize, usize> {
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
        // The order of attaching does not matter.
        for (id, name) in ids.into_iter().zip(names).rev() {
            attached.insert(id, name);
        }
        catalog.remove_prompt("a");
        attached.prune(&catalog);
        assert_eq!(ids.map(|id| attached.get(id).copied()), [Some("b"), None, Some("c")]);
        // One that has the name of another is not that one.
        let again = catalog.add_prompt(Prompt::new("a")).unwrap();
        assert_eq!((attached.get(again), ids.contains(&again)), (None, false));
        catalog.replace_prompt(Prompt::new("c").title("C")).unwrap();
        attached.prune(&catalog);
        attached.insert(ids[2], "C");
        assert_eq!(attached.get(ids[2]), Some(&"C"));
    }
}

//! A list in insertion order that finds entries by key and continues after any of them.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Deref;

use mcp_sansio_collections::Index;
use mcp_sansio_sync::{Arc, Mutex};

use super::audience::Audience;
use super::error::CatalogError;
use super::item::{ItemId, Listed};
use crate::jsonrpc::{AsJson, PREFIX_IS_CACHED, WriteError, WriteJson};
use crate::protocol::SerializeAt;
use crate::{Revision, Revisions};

/// Entries sorted by a number that grows with each insertion and is never reused, with an index by
/// key. Adding, finding and continuing do not slow down in a long list; removing moves one pointer
/// for each later entry.
///
/// Copies share the entries and their texts, so that a server and its connections hold them once.
#[derive(Debug)]
pub(super) struct List<T> {
    // MCP 2026-07-28 server/tools#capabilities [TOOL-029]: a deterministic order.
    entries: Vec<Entry<T>>,
    numbers: Index,
    next: u64,
    /// Set by the first insertion, so that the code is not linked into a program that inserts
    /// nothing.
    write: Option<WriteItem<T>>,
}

impl<T> Clone for List<T> {
    // Not inlined: the code is the same for all kinds, so that a program contains it once.
    #[inline(never)]
    fn clone(&self) -> Self {
        let Self { entries, numbers, next, write } = self;
        Self { entries: entries.clone(), numbers: numbers.clone(), next: *next, write: *write }
    }
}

#[derive(Debug)]
struct Entry<T> {
    number: u64,
    item: Arc<Stored<T>>,
    /// `None` for an item that all callers see.
    audience: Option<Arc<Audience>>,
}

impl<T> Clone for Entry<T> {
    fn clone(&self) -> Self {
        let Self { number, item, audience } = self;
        Self { number: *number, item: Arc::clone(item), audience: audience.clone() }
    }
}

/// An item with its description as it was written for clients. A change of the item must not change
/// the description: replace the item instead.
#[derive(Debug)]
pub(super) struct Stored<T> {
    item: T,
    texts: Texts,
}

impl<T> Stored<T> {
    fn new(item: T) -> Arc<Self> {
        Arc::new(Self { item, texts: Texts::default() })
    }
}

impl<T: Clone> Clone for Stored<T> {
    fn clone(&self) -> Self {
        Self { item: self.item.clone(), texts: Texts::default() }
    }
}

impl<T> Deref for Stored<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.item
    }
}

/// The description of an item, once for each form that it has at the revisions of its clients. A
/// text is kept from the first list on that contains the item, so that the following ones copy it.
/// There is at most one for each revision, however many clients and requests there are; most items
/// have the same form at all of them.
///
/// No caller waits for another: the text is written again while one is looked up elsewhere.
#[derive(Debug, Default)]
struct Texts(Mutex<Vec<(Revisions, Box<str>)>>);

/// Devices do without: their lists are short, and so is their memory.
const TEXTS_ARE_KEPT: bool = PREFIX_IS_CACHED;

impl Texts {
    /// Appends the text for `revision` if it is known and not in use elsewhere.
    fn copy(&self, revision: Revision, out: &mut String) -> bool {
        let copy = |known: &mut Vec<(Revisions, Box<str>)>| {
            let found = known.iter().find(|(revisions, _)| revisions.contains(revision));
            found.map(|(_, text)| out.push_str(text))
        };
        self.0.try_lock(copy).flatten().is_some()
    }

    fn keep(&self, revision: Revision, text: &str) {
        let keep = |known: &mut Vec<(Revisions, Box<str>)>| {
            let revision = Revisions::only(revision);
            if let Some((revisions, _)) = known.iter_mut().find(|(_, known)| **known == *text) {
                *revisions = revisions.union(revision);
            } else {
                known.reserve_exact(1);
                known.push((revision, text.into()));
            }
        };
        self.0.try_lock(keep);
    }
}

/// Writes the description of an entry for clients.
type WriteItem<T> = fn(&T, Revision, &mut String) -> Result<(), WriteError>;

fn write_item<T: Listed>(item: &T, revision: Revision, out: &mut String) -> Result<(), WriteError> {
    AsJson(&item.message().at(revision)).write_json(out)
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self { entries: Vec::new(), numbers: Index::default(), next: 0, write: None }
    }
}

/// A list of any kind, for reading its pages without code for each kind.
pub(super) trait Listing {
    /// Returns the index of the first entry after the number `after`, whether or not the entry with
    /// that number still exists.
    fn index_after(&self, after: Option<u64>) -> usize;

    /// Returns the number of the entry at `index`, if there is one.
    fn number(&self, index: usize) -> Option<u64>;

    /// Returns the key of the entry at `index`, if there is one.
    fn key(&self, index: usize) -> Option<&str>;

    /// Returns whether the entry at `index` is a tool that only runs as a task.
    fn is_always_task(&self, index: usize) -> bool;

    /// Writes the description of the entry at `index` for clients.
    ///
    /// # Errors
    ///
    /// The entry contains something that `revision` cannot express.
    fn write(&self, index: usize, revision: Revision, out: &mut String) -> Result<(), WriteError>;

    /// Returns `Some` if an entry ever had this number, with its key if it still exists.
    fn issued(&self, number: u64) -> Option<Option<&str>>;

    /// Returns the audience of the entry with this number, if it is restricted.
    fn audience(&self, number: u64) -> Option<&Arc<Audience>>;

    /// Restricts the entry with this number. Returns its earlier audience, or `None` if there is no
    /// such entry.
    fn set_audience(
        &mut self,
        number: u64,
        audience: Arc<Audience>,
    ) -> Option<Option<Arc<Audience>>>;

    /// Returns the number of the next entry.
    fn next(&self) -> u64;
}

impl<T: Listed> Listing for List<T> {
    fn index_after(&self, after: Option<u64>) -> usize {
        self.entries.partition_point(|entry| Some(entry.number) <= after)
    }

    fn number(&self, index: usize) -> Option<u64> {
        self.entries.get(index).map(|entry| entry.number)
    }

    fn key(&self, index: usize) -> Option<&str> {
        self.entries.get(index).map(|entry| entry.item.key())
    }

    fn is_always_task(&self, index: usize) -> bool {
        self.entries.get(index).is_some_and(|entry| entry.item.is_always_task())
    }

    fn write(&self, index: usize, revision: Revision, out: &mut String) -> Result<(), WriteError> {
        let (Some(Entry { item, .. }), Some(write)) = (self.entries.get(index), self.write) else {
            return Ok(());
        };
        if TEXTS_ARE_KEPT && item.texts.copy(revision, out) {
            return Ok(());
        }
        let start = out.len();
        write(item, revision, out)?;
        if TEXTS_ARE_KEPT {
            item.texts.keep(revision, out.get(start..).unwrap_or_default());
        }
        Ok(())
    }

    fn issued(&self, number: u64) -> Option<Option<&str>> {
        (number < self.next)
            .then(|| self.index_of(number).map(|index| self.entries[index].item.key()))
    }

    fn audience(&self, number: u64) -> Option<&Arc<Audience>> {
        self.entries[self.index_of(number)?].audience.as_ref()
    }

    fn set_audience(
        &mut self,
        number: u64,
        audience: Arc<Audience>,
    ) -> Option<Option<Arc<Audience>>> {
        let index = self.index_of(number)?;
        Some(self.entries[index].audience.replace(audience))
    }

    fn next(&self) -> u64 {
        self.next
    }
}

impl<T: Listed> List<T> {
    pub(super) const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the index of the entry with this number.
    fn index_of(&self, number: u64) -> Option<usize> {
        self.entries.binary_search_by_key(&number, |entry| entry.number).ok()
    }

    fn is_keyed(&self, key: &str, number: u64) -> bool {
        self.index_of(number).is_some_and(|index| self.entries[index].item.key() == key)
    }

    fn find(&self, key: &str) -> Option<usize> {
        let number = self.numbers.find(key, &|number| self.is_keyed(key, number));
        number.and_then(|number| self.index_of(number))
    }

    pub(super) fn get(&self, key: &str) -> Option<&T> {
        self.find(key).map(|index| &**self.entries[index].item)
    }

    /// Returns the entry with this key, and its id.
    pub(super) fn resolve(&self, key: &str) -> Option<(ItemId, &T)> {
        let Entry { number, item, .. } = &self.entries[self.find(key)?];
        Some((ItemId::new(T::KIND, *number), item))
    }

    /// Returns the entry with this id, if it still exists.
    pub(super) fn by_id(&self, id: ItemId) -> Option<&Arc<Stored<T>>> {
        let index = self.index_of(id.number()).filter(|_| id.kind() == T::KIND);
        index.map(|index| &self.entries[index].item)
    }

    /// Returns the first result of `find`, with the id of its entry.
    pub(super) fn find_map<R>(&self, find: impl Fn(&T) -> Option<R>) -> Option<(ItemId, R)> {
        let found = |entry: &Entry<T>| {
            find(&entry.item).map(|found| (ItemId::new(T::KIND, entry.number), found))
        };
        self.entries.iter().find_map(found)
    }

    /// Appends `item`, unless its key is taken.
    pub(super) fn add(&mut self, item: T) -> Result<ItemId, CatalogError> {
        if self.find(item.key()).is_some() {
            return Err(CatalogError::Duplicate { kind: T::KIND, key: item.key().into() });
        }
        self.append(item);
        Ok(ItemId::new(T::KIND, self.next - 1))
    }

    /// Replaces the entry with the key of `item`, or appends `item`. Returns the old item, and the
    /// audience, which stays.
    pub(super) fn replace(&mut self, item: T) -> (Option<T>, Option<Arc<Audience>>) {
        match self.find(item.key()) {
            Some(index) => {
                let entry = &mut self.entries[index];
                let known = core::mem::replace(&mut entry.item, Stored::new(item));
                (Some(Arc::unwrap_or_clone(known).item), entry.audience.clone())
            }
            None => {
                self.append(item);
                (None, None)
            }
        }
    }

    /// Removes the entry with this key; returns its item and its audience.
    pub(super) fn remove(&mut self, key: &str) -> Option<(T, Option<Arc<Audience>>)> {
        let index = self.find(key)?;
        let Entry { number, item, audience } = self.entries.remove(index);
        self.numbers.remove(key, &|known| known == number);
        Some((Arc::unwrap_or_clone(item).item, audience))
    }

    fn append(&mut self, item: T) {
        self.write = Some(write_item);
        self.numbers.insert(item.key(), self.next);
        self.entries.push(Entry { number: self.next, item: Stored::new(item), audience: None });
        self.next += 1;
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = &T> + Clone {
        self.entries.iter().map(|entry| &**entry.item)
    }

    /// Returns the entries in order, for changes of what clients are not told.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries.iter_mut().map(|entry| &mut Arc::make_mut(&mut entry.item).item)
    }

    /// Returns the entries with their numbers and audiences, and the next number.
    pub(super) fn numbered(&self) -> (impl Iterator<Item = (u64, &T, Option<&Audience>)>, u64) {
        let entries = self.entries.iter();
        let entries = entries.map(|it| (it.number, &**it.item, it.audience.as_deref()));
        (entries, self.next)
    }

    /// Restores a list from its entries. If a number or a key is repeated, the last entry wins.
    pub(super) fn restored(
        entries: impl Iterator<Item = (u64, T, Option<Audience>)>,
        next: u64,
    ) -> Self {
        let mut list = Self { next, write: Some(write_item), ..Self::default() };
        for (number, item, audience) in entries {
            list.remove(item.key());
            list.next = list.next.max(number.saturating_add(1));
            let known =
                list.index_of(number).map(|index| String::from(list.entries[index].item.key()));
            known.and_then(|key| list.remove(&key));
            list.numbers.insert(item.key(), number);
            let index = list.entries.partition_point(|entry| entry.number < number);
            let (item, audience) = (Stored::new(item), audience.map(Arc::new));
            list.entries.insert(index, Entry { number, item, audience });
        }
        list
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::vec::Vec;

    use super::*;
    use crate::protocol::{Icon, Prompt};

    fn written(list: &List<Prompt>, index: usize, revision: Revision) -> String {
        let mut out = String::new();
        list.write(index, revision, &mut out).unwrap();
        out
    }

    fn names(list: &List<Prompt>) -> Vec<&str> {
        list.iter().map(|prompt| prompt.name.as_str()).collect()
    }

    #[test]
    fn entries_are_in_insertion_order() {
        // Rule: [TOOL-029].
        let mut list = List::default();
        for name in ["c", "a", "b"] {
            list.add(Prompt::new(name)).unwrap();
        }
        assert_eq!(names(&list), ["c", "a", "b"]);
        assert!(list.replace(Prompt::new("a").title("A")).0.is_some());
        assert_eq!(names(&list), ["c", "a", "b"]);
        assert!(list.remove("c").is_some());
        assert!(list.replace(Prompt::new("c")).0.is_none());
        assert_eq!(names(&list), ["a", "b", "c"]);
        assert_eq!(list.get("a").unwrap().title.as_deref(), Some("A"));
        let taken = list.add(Prompt::new("b"));
        assert!(matches!(taken, Err(CatalogError::Duplicate { key, .. }) if key == "b"));
    }

    #[test]
    fn paging_after_a_removed_entry_neither_skips_nor_repeats() {
        // Rule: [PAGE-007].
        let mut list = List::default();
        for n in 0..6 {
            list.add(Prompt::new(format!("p{n}"))).unwrap();
        }
        list.remove("p2");
        list.remove("p3");
        assert!(list.get("p3").is_none());
        list.add(Prompt::new("p3")).unwrap();
        let rest: Vec<_> =
            (list.index_after(Some(2))..).map_while(|index| list.key(index)).collect();
        assert_eq!(rest, ["p4", "p5", "p3"]);
        assert!(matches!(list.issued(2), Some(None)));
        assert!(list.issued(7).is_none());
    }

    #[test]
    fn a_description_is_written_once_for_each_form() {
        let rich = Prompt::new("rich").title("R").icons([Icon::new("https://icons.test/r")]);
        let mut list = List::default();
        list.add(Prompt::new("plain")).unwrap();
        list.add(rich.clone()).unwrap();
        let copy = list.clone();
        for _ in 0..2 {
            for revision in Revision::ALL {
                let typed = rich.to_json_at(revision).unwrap();
                assert_eq!(written(&list, 1, revision), typed.as_str(), "{revision}");
                assert_eq!(written(&list, 0, revision), r#"{"name":"plain"}"#, "{revision}");
            }
        }
        let texts = |index: usize| copy.entries[index].item.texts.0.lock(|texts| texts.len());
        // Neither title nor icons, a title, and both. A copy of the list has the same texts.
        assert_eq!((texts(0), texts(1)), (1, 3));
    }

    #[test]
    fn a_replaced_item_is_described_anew() {
        let mut list = List::default();
        list.add(Prompt::new("a")).unwrap();
        let copy = list.clone();
        assert_eq!(written(&list, 0, Revision::LATEST), r#"{"name":"a"}"#);
        list.replace(Prompt::new("a").description("b"));
        let expected = r#"{"name":"a","description":"b"}"#;
        assert_eq!(written(&list, 0, Revision::LATEST), expected);
        assert_eq!(written(&copy, 0, Revision::LATEST), r#"{"name":"a"}"#);
    }
}

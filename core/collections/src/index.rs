//! An index of list entries by key.

use core::hash::BuildHasher;

use super::keyed_hash::KeyedHash;
use hashbrown::HashTable;

/// Maps keys to entry numbers; the keys themselves are stored in the entries only.
///
/// `insert` and `find` use an unkeyed hash: the application chooses those names, so collision
/// attacks are not possible. For names that the peer chooses, the caller passes a keyed hash of its
/// own. The index is not generic over key and value, so that all lists and tables share one copy of
/// the code. Its iteration order is never exposed.
#[derive(Clone, Debug, Default)]
pub struct Index {
    known: HashTable<Known>,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    hash: u64,
    number: u64,
}

impl Index {
    /// Heap size of an entry in bytes, not counting the overhead of the hash table.
    pub const ENTRY_SIZE: usize = size_of::<Known>();

    /// Returns the number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Returns whether the index is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Returns the number of the entry with this key; `is_keyed` checks whether an entry has the
    /// key.
    #[must_use]
    #[inline]
    pub fn find(&self, key: &str, is_keyed: &dyn Fn(u64) -> bool) -> Option<u64> {
        self.find_hashed(hash(key), is_keyed)
    }

    /// Like [`find`](Self::find), for a key that was already hashed.
    #[must_use]
    #[inline]
    pub fn find_hashed(&self, hash: u64, is_keyed: &dyn Fn(u64) -> bool) -> Option<u64> {
        let known = self.known.find(hash, |known| known.hash == hash && is_keyed(known.number));
        known.map(|known| known.number)
    }

    /// Inserts an entry whose key is not yet in the index.
    #[inline]
    pub fn insert(&mut self, key: &str, number: u64) {
        self.insert_hashed(hash(key), number);
    }

    /// Like [`insert`](Self::insert), for a key that was already hashed.
    #[inline]
    pub fn insert_hashed(&mut self, hash: u64, number: u64) {
        self.known.insert_unique(hash, Known { hash, number }, |known| known.hash);
    }

    /// Removes the entry with this key and returns its number.
    #[inline]
    pub fn remove(&mut self, key: &str, is_keyed: &dyn Fn(u64) -> bool) -> Option<u64> {
        self.remove_hashed(hash(key), is_keyed)
    }

    /// Like [`remove`](Self::remove), for a key that was already hashed.
    #[inline]
    pub fn remove_hashed(&mut self, hash: u64, is_keyed: &dyn Fn(u64) -> bool) -> Option<u64> {
        let is_known = |known: &Known| known.hash == hash && is_keyed(known.number);
        self.known.find_entry(hash, is_known).ok().map(|entry| entry.remove().0.number)
    }
}

#[inline]
fn hash(key: &str) -> u64 {
    KeyedHash::default().hash_one(key)
}

//! Numbers of the entries of a list, found by the entries' keys.

use core::hash::BuildHasher;

use super::keyed_hash::KeyedHash;
use hashbrown::HashTable;

/// Numbers by key, where the keys stand in the entries only.
///
/// Names are the application's, so that nobody can aim at collisions; for what the other side names,
/// the caller has hashes of its own. It is no map by type of value and key: one piece of code serves
/// all lists and tables, and nothing goes through it in its order.
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
    /// What an entry takes of the heap, in bytes, beside what the hash table knows of it.
    pub const ENTRY_SIZE: usize = size_of::<Known>();

    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// The number of the entry with this key; `is_keyed` says whether the one with a number is it.
    #[must_use]
    #[inline]
    pub fn find(&self, key: &str, is_keyed: &dyn Fn(u64) -> bool) -> Option<u64> {
        self.find_hashed(hash(key), is_keyed)
    }

    /// The same, of an entry whose key has this hash.
    #[must_use]
    #[inline]
    pub fn find_hashed(&self, hash: u64, is_keyed: &dyn Fn(u64) -> bool) -> Option<u64> {
        let known = self.known.find(hash, |known| known.hash == hash && is_keyed(known.number));
        known.map(|known| known.number)
    }

    /// Takes in an entry whose key no other has.
    #[inline]
    pub fn insert(&mut self, key: &str, number: u64) {
        self.insert_hashed(hash(key), number);
    }

    /// The same, of an entry whose key has this hash.
    #[inline]
    pub fn insert_hashed(&mut self, hash: u64, number: u64) {
        self.known.insert_unique(hash, Known { hash, number }, |known| known.hash);
    }

    /// Forgets the entry with this key, and gives its number.
    #[inline]
    pub fn remove(&mut self, key: &str, is_keyed: &dyn Fn(u64) -> bool) -> Option<u64> {
        self.remove_hashed(hash(key), is_keyed)
    }

    /// The same, of an entry whose key has this hash.
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

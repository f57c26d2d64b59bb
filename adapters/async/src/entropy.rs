use std::hash::{BuildHasher, RandomState};

/// A number that nobody outside can guess: what keys the tables of a connection.
///
/// It comes from where the standard library's hash maps have theirs, the operating system. Not for
/// secrets that leave the process.
#[must_use]
pub fn seed() -> u64 {
    RandomState::new().hash_one(())
}

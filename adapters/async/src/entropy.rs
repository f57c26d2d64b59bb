use std::hash::{BuildHasher, RandomState};

/// Returns an unpredictable number to key the hash tables of a connection.
///
/// It comes from the operating system, by way of the standard library's hash map keys. Do not use
/// it for secrets that leave the process.
#[must_use]
pub fn seed() -> u64 {
    RandomState::new().hash_one(())
}

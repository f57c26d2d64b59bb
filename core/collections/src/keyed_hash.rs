//! Keyed hashing.

use core::hash::{BuildHasher, Hasher};

use foldhash::fast;

/// Builds hashers of `foldhash`, keyed by a seed.
///
/// Text is hashed eight bytes at a time. The loop of `foldhash` for long text is faster, but adds
/// two kilobytes to a device image, and keys are short.
#[derive(Clone, Debug, Default)]
pub struct KeyedHash(fast::FixedState);

impl KeyedHash {
    /// Creates a hasher with a seed; equal seeds give equal hashes.
    #[must_use]
    pub const fn with_seed(seed: u64) -> Self {
        Self(fast::FixedState::with_seed(seed))
    }
}

impl BuildHasher for KeyedHash {
    type Hasher = KeyedHasher;

    #[inline]
    fn build_hasher(&self) -> KeyedHasher {
        KeyedHasher(self.0.build_hasher())
    }
}

/// The hasher of [`KeyedHash`].
#[derive(Clone)]
#[expect(
    missing_debug_implementations,
    reason = "the hasher of `foldhash` does not implement `Debug`"
)]
pub struct KeyedHasher(fast::FoldHasher<'static>);

impl Hasher for KeyedHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks();
        for word in words {
            self.write_u64(u64::from_le_bytes(*word));
        }
        // The last word includes the length, so that a text differs from the same text followed by
        // zeros.
        let last =
            rest.iter().rev().fold(rest.len() as u64, |word, byte| word << 8 | u64::from(*byte));
        self.write_u64(last);
    }

    #[inline]
    fn write_u8(&mut self, number: u8) {
        self.0.write_u8(number);
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        self.0.write_u32(number);
    }

    // Multiplies to 128 bits: a single instruction, or a long sequence that would be repeated in
    // each caller.
    #[cfg_attr(target_pointer_width = "64", inline)]
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    fn write_u64(&mut self, number: u64) {
        self.0.write_u64(number);
    }

    #[inline]
    fn write_usize(&mut self, number: usize) {
        self.0.write_usize(number);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0.finish()
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;
    use alloc::string::String;

    use super::*;

    #[test]
    fn texts_that_differ_have_hashes_that_differ() {
        let of = |text: &str| KeyedHash::with_seed(7).hash_one(text);
        let mut hashes = BTreeSet::new();
        for length in 0..100 {
            for end in ['\0', 'a', 'b'] {
                let mut text = "\0".repeat(length);
                text.push(end);
                assert!(hashes.insert(of(&text)), "{text:?}");
                assert_eq!(of(&text), of(&String::from(&*text)));
            }
        }
    }

    #[test]
    fn the_seed_is_the_key() {
        assert_ne!(KeyedHash::with_seed(1).hash_one("a"), KeyedHash::with_seed(2).hash_one("a"));
    }
}

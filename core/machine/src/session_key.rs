use core::fmt;
use core::hash::BuildHasher;
use core::num::NonZeroU64;

use mcp_sansio_collections::KeyedHash;

/// Identifies a legacy session on its server, without naming it: requests of one session have the
/// same key, and those of different sessions have different ones.
///
/// On HTTP it is derived from the session id, of which it contains too few bits to guess it; all
/// nodes of a cluster derive the same key. On a byte stream it stands for the connection. It is
/// never sent to a peer, and the id cannot be used to send requests, so it may be logged.
// MCP 2025-11-25 security-best-practices#session-hijacking [SESS-012]: the key is no authentication.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionKey(NonZeroU64);

impl SessionKey {
    /// The bits that a key has; the others are free for [`Caller`](crate::Caller).
    pub(crate) const BITS: u32 = 63;

    /// Returns the key with this number, for tests and stores; `None` if no key has it. The keys of
    /// a server come with its requests.
    #[must_use]
    pub const fn from_number(number: u64) -> Option<Self> {
        match NonZeroU64::new(number) {
            Some(number) if number.get() >> Self::BITS == 0 => Some(Self(number)),
            _ => None,
        }
    }

    /// Returns the number of the key.
    #[must_use]
    pub const fn to_number(self) -> u64 {
        self.0.get()
    }

    /// Returns the key with the lower bits of a hash.
    pub(crate) fn from_hash(hash: u64) -> Self {
        let number = NonZeroU64::new(hash & (u64::MAX >> 1));
        Self(number.unwrap_or(NonZeroU64::MIN))
    }

    /// Derives the key of a connection on a byte stream from the hasher of its tables, which has a
    /// random seed.
    pub(crate) fn from_hasher(hasher: &KeyedHash) -> Self {
        Self::from_hash(hasher.hash_one("session")).first()
    }

    /// The bits that count the sessions which replace each other on one connection. The others stay
    /// the same, so that tables find all of them by the first key. They are neither the lowest nor
    /// the highest bits, which hash tables use.
    const GENERATION: u64 = 0xFF << 48;

    /// Returns the key of the session that replaces this one on the same connection.
    #[cfg_attr(not(feature = "server"), expect(dead_code, reason = "only servers have sessions"))]
    pub(crate) fn next(self) -> Self {
        let number = self.0.get();
        let next = number.wrapping_add(1 << 48) & Self::GENERATION;
        Self::from_hash(number & !Self::GENERATION | next)
    }

    /// Returns the key of the session with the same place among those of the connection whose first
    /// session has the key `first`.
    pub(crate) fn with_first(self, first: Self) -> Self {
        let place = self.0.get() & Self::GENERATION;
        Self::from_hash(first.0.get() & !Self::GENERATION | place)
    }

    /// Returns the key of the first session on the same connection.
    pub(crate) fn first(self) -> Self {
        Self::from_hash(self.0.get() & !Self::GENERATION)
    }
}

impl fmt::Display for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionKey({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_not_zero_and_leaves_the_highest_bit() {
        assert_eq!(SessionKey::from_number(0), None);
        assert_eq!(SessionKey::from_number(1 << 63), None);
        let most = SessionKey::from_number(u64::MAX >> 1).unwrap();
        assert_eq!(most.to_number(), u64::MAX >> 1);
        assert_eq!(SessionKey::from_hash(1 << 63).to_number(), 1);
    }
}

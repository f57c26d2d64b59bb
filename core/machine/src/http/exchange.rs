use core::hash::BuildHasher;

use mcp_sansio_collections::{Key, KeyedHash};

use crate::SessionKey;

/// Identifies one HTTP request and its response.
///
/// An id is never reused, so inputs for an exchange that has ended are recognized.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExchangeId(pub(crate) Key);

impl ExchangeId {
    /// Creates an id for an exchange of a layer between a client and the network, from that layer's
    /// own `number`.
    #[must_use]
    pub const fn from_number(number: u64) -> Self {
        Self(Key::from_number(number))
    }

    /// Returns the number of an id from [`from_number`](Self::from_number).
    #[must_use]
    pub const fn to_number(self) -> u64 {
        self.0.to_number()
    }

    /// Returns a small number that no other open exchange of the same machine has, as an index for
    /// tables of the adapter.
    #[must_use]
    pub const fn slot(self) -> usize {
        self.0.slot as usize
    }
}

/// A session id, as sent in `Mcp-Session-Id`: 32 hexadecimal digits.
///
/// The id is enough to act in the session, so it is hidden in debug output.
// MCP 2025-11-25 basic/transports#session-management [SESS-002] [SESS-003]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SessionId([u8; Self::LENGTH]);

impl SessionId {
    /// The length in bytes.
    pub const LENGTH: usize = 32;

    /// Encodes 128 random bits.
    pub(crate) fn new(entropy: [u8; 16]) -> Self {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = [0; Self::LENGTH];
        for (pair, byte) in text.chunks_exact_mut(2).zip(entropy) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 15)];
        }
        Self(text)
    }

    /// Parses an id that a client sent or an event store kept. Returns `None` if it is malformed.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let text: [u8; Self::LENGTH] = text.try_into().ok()?;
        // Without a branch for each byte, because every request has a session id.
        let valid = text.iter().fold(true, |valid, byte| valid & byte.is_ascii_alphanumeric());
        valid.then_some(Self(text))
    }

    /// Returns the key that stands for the session.
    pub(crate) fn key(&self) -> SessionKey {
        // All servers have to agree on the hash, so it has no seed. Clients cannot choose the ids
        // of sessions.
        SessionKey::from_hash(KeyedHash::default().hash_one(self)).first()
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.0).expect("a session id is ASCII")
    }
}

crate::partial_debug! { impl Debug for SessionId(..) }

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn a_key_is_stable_and_does_not_name_the_session() {
        // Rule: [SESS-003].
        let id = SessionId::new([0xA7; 16]);
        let key = id.key();
        assert_eq!(key, SessionId::parse(id.as_str().as_bytes()).unwrap().key());
        assert_ne!(key, SessionId::new([0xA6; 16]).key());
        assert!(!id.as_str().contains(&format!("{key}")));
    }

    #[test]
    fn a_session_id_is_visible_ascii_and_hidden_in_debug_output() {
        // Rule: [SESS-003].
        let id = SessionId::new([0xA5; 16]);
        assert_eq!(id.as_str(), "a5".repeat(16));
        assert!(id.as_str().bytes().all(|byte| (0x21..=0x7E).contains(&byte)));
        assert_eq!(SessionId::parse(id.as_str().as_bytes()), Some(id));
        assert_eq!(SessionId::parse(b"short"), None);
        assert!(!format!("{id:?}").contains("a5"));
    }
}

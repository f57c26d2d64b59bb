use core::fmt;

use mcp_sansio_collections::Key;

/// Names one HTTP request and its response.
///
/// Never used again for another one, so an old id is recognised as such.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExchangeId(pub(crate) Key);

impl ExchangeId {
    /// An id that a layer between a client and the network gives to an exchange of its own: `number`
    /// says which one.
    #[must_use]
    pub const fn from_number(number: u64) -> Self {
        Self(Key::from_number(number))
    }

    /// The number of an id from [`from_number`](Self::from_number).
    #[must_use]
    pub const fn to_number(self) -> u64 {
        self.0.to_number()
    }

    /// A small number that no other open exchange of the same machine has: an index for tables of
    /// the adapter's own.
    #[must_use]
    pub const fn slot(self) -> usize {
        self.0.slot as usize
    }
}

/// The name of a session, as it travels in `Mcp-Session-Id`: 32 hexadecimal digits.
///
/// Whoever knows it can act in the session, so it is left out of debug output.
// MCP 2025-11-25 basic/transports#session-management [SESS-002] [SESS-003]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SessionId([u8; Self::LENGTH]);

impl SessionId {
    /// The length in bytes.
    pub const LENGTH: usize = 32;

    /// Spells 128 bits of entropy.
    pub(crate) fn new(entropy: [u8; 16]) -> Self {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = [0; Self::LENGTH];
        for (pair, byte) in text.chunks_exact_mut(2).zip(entropy) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 15)];
        }
        Self(text)
    }

    /// Reads what a client sent, or what a store of events kept. `None`: it cannot be the name of a
    /// session.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let text: [u8; Self::LENGTH] = text.try_into().ok()?;
        // Without a branch for each byte: every request has one.
        let valid = text.iter().fold(true, |valid, byte| valid & byte.is_ascii_alphanumeric());
        valid.then_some(Self(text))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.0).expect("made of hexadecimal digits")
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionId(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn a_session_id_spells_its_entropy_in_visible_ascii_and_hides_in_debug_output() {
        // Rule: [SESS-003].
        let id = SessionId::new([0xA5; 16]);
        assert_eq!(id.as_str(), "a5".repeat(16));
        assert!(id.as_str().bytes().all(|byte| (0x21..=0x7E).contains(&byte)));
        assert_eq!(SessionId::parse(id.as_str().as_bytes()), Some(id));
        assert_eq!(SessionId::parse(b"short"), None);
        assert!(!format!("{id:?}").contains("a5"));
    }
}

use sha2::{Digest, Sha256};

use crate::http::SessionId;

/// Derives session ids from a secret.
///
/// Each id is a hash of the secret and a counter. Without the secret, an id is indistinguishable
/// from random, and cannot be derived from other ids. The machine thus needs entropy only once and
/// stays deterministic.
// MCP 2025-11-25 basic/transports#session-management [SESS-002],
// MCP 2025-11-25 security-best-practices#session-hijacking [SESS-013]
pub(super) struct SessionIds {
    secret: [u8; 32],
    drawn: u64,
    /// The next id, if it was drawn in a recorded run.
    next: Option<SessionId>,
    last: Option<SessionId>,
}

impl SessionIds {
    pub(super) const fn new(secret: [u8; 32]) -> Self {
        Self { secret, drawn: 0, next: None, last: None }
    }

    /// Sets the next id.
    pub(super) const fn draw_next(&mut self, id: Option<SessionId>) {
        self.next = id;
    }

    /// Returns the id drawn since the last call.
    pub(super) const fn take_drawn(&mut self) -> Option<SessionId> {
        self.last.take()
    }

    pub(super) fn draw(&mut self) -> SessionId {
        let id = self.next.take().unwrap_or_else(|| self.draw_anew());
        self.last = Some(id);
        id
    }

    /// Returns a number for a purpose other than a session id, as unpredictable as one.
    pub(super) fn draw_number(&mut self) -> u64 {
        let hash = Sha256::new()
            .chain_update(self.secret)
            .chain_update(b"number")
            .chain_update(self.drawn.to_le_bytes());
        self.drawn += 1;
        let hash: [u8; 32] = hash.finalize().into();
        hash.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    fn draw_anew(&mut self) -> SessionId {
        let hash = Sha256::new().chain_update(self.secret).chain_update(self.drawn.to_le_bytes());
        self.drawn += 1;
        let hash: [u8; 32] = hash.finalize().into();
        let mut entropy = [0; 16];
        entropy.copy_from_slice(&hash[..16]);
        SessionId::new(entropy)
    }
}

crate::partial_debug! { impl Debug for SessionIds { drawn, .. } }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_differ_from_one_another_and_from_those_of_another_secret() {
        // Rule: [SESS-002] [SESS-013].
        let (mut one, mut other) = (SessionIds::new([1; 32]), SessionIds::new([2; 32]));
        let drawn = [one.draw(), one.draw(), other.draw(), other.draw()];
        for (at, id) in drawn.iter().enumerate() {
            assert!(!drawn[at + 1..].contains(id));
        }
        assert_eq!(SessionIds::new([1; 32]).draw(), drawn[0]);
    }
}

use alloc::string::String;
use core::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac};
use sha2::Sha256;

/// The bytes of a nonce: enough that it cannot be guessed.
const NONCE_LENGTH: usize = 16;

/// The key from which the nonces of a server are derived: no state, so that processes can share them.
pub(super) struct NonceKey {
    mac: Hmac<Sha256>,
    /// In seconds.
    lifetime: u64,
}

impl NonceKey {
    pub(super) fn new(secret: &[u8; 32], lifetime: Duration) -> Self {
        let mut mac = Hmac::new_from_slice(secret).expect("HMAC takes keys of any length");
        // The application may use its secret for other purposes too.
        mac.update(b"mcp-sansio dpop nonce");
        Self { mac, lifetime: lifetime.as_secs().max(1) }
    }

    /// Returns the nonce for the next proof.
    pub(super) fn current(&self, unix_time: u64) -> String {
        self.of_period(unix_time / self.lifetime)
    }

    /// Whether a proof with this nonce is accepted: the current one or the one before.
    pub(super) fn accepts(&self, nonce: &str, unix_time: u64) -> bool {
        let period = unix_time / self.lifetime;
        // A nonce is no secret: every client gets it. So the comparison may depend on it.
        nonce == self.of_period(period)
            || period.checked_sub(1).is_some_and(|last| nonce == self.of_period(last))
    }

    fn of_period(&self, period: u64) -> String {
        let mut mac = self.mac.clone();
        mac.update(&period.to_be_bytes());
        URL_SAFE_NO_PAD.encode(&mac.finalize().into_bytes()[..NONCE_LENGTH])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_is_accepted_for_one_to_two_lifetimes() {
        let key = NonceKey::new(&[7; 32], Duration::from_secs(100));
        let nonce = key.current(1_099);
        assert_eq!(nonce, key.current(1_000));
        for (time, accepted) in [(999, false), (1_000, true), (1_199, true), (1_200, false)] {
            assert_eq!(key.accepts(&nonce, time), accepted, "{time}");
        }
        assert!(!key.accepts("", 1_000));
        assert!(key.accepts(&key.current(0), 0));
        let other = NonceKey::new(&[8; 32], Duration::from_secs(100));
        assert!(!other.accepts(&nonce, 1_000));
    }
}

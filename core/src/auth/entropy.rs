//! Secrets, as many as are needed, from one seed.

use alloc::string::String;
use core::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

/// Keeps what is derived here apart from other uses of SHA-256.
const LABEL: &[u8] = b"mcp-sansio authorization entropy";
/// 128 bits: enough that no two are ever the same.
const JTI_LENGTH: usize = 16;

/// A seed and how often it was used. Whoever knows the seed knows all secrets; whoever knows some
/// of the secrets knows nothing of the others.
pub(super) struct Entropy {
    seed: [u8; 32],
    count: u64,
}

impl Entropy {
    /// The seed must be unpredictable, and another one each time.
    pub(super) const fn new(seed: [u8; 32]) -> Self {
        Self { seed, count: 0 }
    }

    /// 32 bytes that nobody can guess: a PKCE verifier, a `state`.
    pub(super) fn secret(&mut self) -> [u8; 32] {
        self.next(0)
    }

    /// A text that is there once: the id of a token. It is told to others.
    pub(super) fn jti(&mut self) -> String {
        URL_SAFE_NO_PAD.encode(&self.next(1)[..JTI_LENGTH])
    }

    fn next(&mut self, purpose: u8) -> [u8; 32] {
        let digest = Sha256::new()
            .chain_update(LABEL)
            .chain_update(self.seed)
            .chain_update([purpose])
            .chain_update(self.count.to_be_bytes());
        self.count += 1;
        digest.finalize().into()
    }
}

impl fmt::Debug for Entropy {
    /// Leaves everything out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Entropy(..)")
    }
}

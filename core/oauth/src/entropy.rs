//! Secrets derived from one seed.

use alloc::string::String;
use core::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

/// Separates these values from other uses of SHA-256.
const LABEL: &[u8] = b"mcp-sansio authorization entropy";
/// 128 bits: enough to make collisions negligible.
const JTI_LENGTH: usize = 16;

/// A seed with a counter. The seed reveals all secrets; a secret reveals nothing about the others.
pub(super) struct Entropy {
    seed: [u8; 32],
    count: u64,
}

impl Entropy {
    /// Creates a source. The seed must be unpredictable and unique.
    pub(super) const fn new(seed: [u8; 32]) -> Self {
        Self { seed, count: 0 }
    }

    /// Returns 32 unpredictable bytes: for a PKCE verifier or a `state`.
    pub(super) fn secret(&mut self) -> [u8; 32] {
        self.next(0)
    }

    /// Returns a unique text for the id of a token. It is public.
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
    /// Prints nothing of the seed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Entropy(..)")
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;
    use alloc::format;
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn secrets_depend_only_on_the_seed() {
        let secrets = |seed| {
            let mut entropy = Entropy::new([seed; 32]);
            [entropy.secret(), entropy.secret()]
        };
        assert_eq!(secrets(1), secrets(1));
        assert!(secrets(1).iter().all(|it| !secrets(2).contains(it)));
    }

    #[test]
    fn values_do_not_repeat() {
        let mut entropy = Entropy::new([7; 32]);
        let secrets: BTreeSet<_> = (0..500).map(|_| entropy.secret()).collect();
        let ids: BTreeSet<_> = (0..500).map(|_| entropy.jti()).collect();
        assert_eq!((secrets.len(), ids.len()), (500, 500));
    }

    #[test]
    fn public_values_are_not_derived_from_secrets() {
        let (mut one, mut other) = (Entropy::new([7; 32]), Entropy::new([7; 32]));
        let jti = one.jti();
        assert_eq!(jti.len(), 22);
        assert_ne!(URL_SAFE_NO_PAD.decode(&jti).ok(), Some(Vec::from(&other.secret()[..16])));
    }

    #[test]
    fn debug_output_hides_the_seed() {
        assert_eq!(format!("{:?}", Entropy::new([7; 32])), "Entropy(..)");
    }
}

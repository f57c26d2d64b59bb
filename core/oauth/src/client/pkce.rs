//! The two secrets of one authorization: the PKCE verifier and `state`.

use alloc::string::String;
use core::{fmt, hint};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

/// The number of bytes of entropy in each secret.
pub const ENTROPY_LENGTH: usize = 32;

/// The PKCE verifier of one authorization. It proves to the token endpoint that the client that
/// presents the code also requested it.
///
/// Each authorization has its own; it is sent only to the token endpoint.
// MCP 2026-07-28 basic/authorization/security-considerations#authorization-code-protection [AUTHC-011]
pub struct CodeVerifier(String);

impl CodeVerifier {
    /// Creates a verifier of 43 characters. The bytes must be unpredictable and used for nothing
    /// else.
    #[must_use]
    pub fn new(entropy: [u8; ENTROPY_LENGTH]) -> Self {
        Self(URL_SAFE_NO_PAD.encode(entropy))
    }

    /// Returns the value of `code_verifier`, for the token request.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the value of `code_challenge`, for the authorization request. Its method is `S256`.
    // MCP 2026-07-28 basic/authorization/security-considerations#authorization-code-protection [AUTHC-012]
    #[must_use]
    pub fn challenge(&self) -> String {
        URL_SAFE_NO_PAD.encode(Sha256::digest(&self.0))
    }
}

impl fmt::Debug for CodeVerifier {
    /// Omits the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CodeVerifier(..)")
    }
}

/// The `state` of one authorization. It binds the response to the request, so that an attacker
/// cannot make a client complete an authorization that it did not start.
// MCP 2026-07-28 basic/authorization/security-considerations#open-redirection [AUTHC-048]
pub struct State(String);

impl State {
    /// Creates a state of 43 characters. The bytes must be unpredictable and used for nothing else.
    #[must_use]
    pub fn new(entropy: [u8; ENTROPY_LENGTH]) -> Self {
        Self(URL_SAFE_NO_PAD.encode(entropy))
    }

    /// Returns the value of `state`, for the authorization request.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the response has this state, compared in constant time.
    #[must_use]
    pub fn matches(&self, response: &str) -> bool {
        are_same(&self.0, response)
    }
}

/// Whether two secrets are equal, compared in a time that does not depend on the position of a
/// difference.
pub(crate) fn are_same(ours: &str, theirs: &str) -> bool {
    let (ours, theirs) = (ours.as_bytes(), theirs.as_bytes());
    let mut difference = u8::from(ours.len() != theirs.len());
    for (ours, theirs) in ours.iter().zip(theirs) {
        difference = hint::black_box(difference | (ours ^ theirs));
    }
    difference == 0
}

impl fmt::Debug for State {
    /// Omits the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("State(..)")
    }
}

// ------------------------------------------------------------------ secrets derived from one seed

/// Separates these values from other uses of SHA-256.
const LABEL: &[u8] = b"mcp-sansio authorization entropy";
/// 128 bits: enough to make collisions negligible.
const JTI_LENGTH: usize = 16;

/// A seed with a counter. The seed reveals all secrets; a secret reveals nothing about the others.
pub(crate) struct Entropy {
    seed: [u8; 32],
    count: u64,
}

impl Entropy {
    /// Creates a source. The seed must be unpredictable and unique.
    pub(crate) const fn new(seed: [u8; 32]) -> Self {
        Self { seed, count: 0 }
    }

    /// Returns 32 unpredictable bytes: for a PKCE verifier or a `state`.
    pub(crate) fn secret(&mut self) -> [u8; 32] {
        self.next(0)
    }

    /// Returns a unique text for the id of a token. It is public.
    pub(crate) fn jti(&mut self) -> String {
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
    use alloc::format;

    use super::*;

    #[test]
    fn the_example_of_rfc_7636_is_reproduced() {
        // Rule: [AUTHC-011] [AUTHC-012].
        let verifier = CodeVerifier::new([
            116, 24, 223, 180, 151, 153, 224, 37, 79, 250, 96, 125, 216, 173, 187, 186, 22, 212,
            37, 77, 105, 214, 191, 240, 91, 88, 5, 88, 83, 132, 141, 121,
        ]);
        assert_eq!(verifier.as_str(), "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
        assert_eq!(verifier.challenge(), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }

    #[test]
    fn a_state_matches_only_itself() {
        // Rule: [AUTHC-048].
        let state = State::new([0xff; 32]);
        assert_eq!(state.as_str().len(), 43);
        assert!(state.matches(state.as_str()));
        let longer = format!("{}A", state.as_str());
        for other in ["", &state.as_str()[1..], &longer, State::new([0xfe; 32]).as_str()] {
            assert!(!state.matches(other), "{other}");
        }
    }

    #[test]
    fn debug_output_hides_secrets() {
        assert_eq!(format!("{:?}", CodeVerifier::new([0; 32])), "CodeVerifier(..)");
        assert_eq!(format!("{:?}", State::new([0; 32])), "State(..)");
    }
}

#[cfg(test)]
mod entropy_tests {
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

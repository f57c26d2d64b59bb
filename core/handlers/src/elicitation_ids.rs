//! What `notifications/elicitation/complete` refers to.

use alloc::string::String;
use core::fmt;
use core::hash::{Hash, Hasher};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcp_sansio::Revision;
use mcp_sansio::peer::{Request, RequestHandle};
use mcp_sansio::protocol::{ElicitParams, InputRequest, InputRequests};

/// Names elicitations by an address, with a secret.
///
/// A name is a keyed hash of the request, the key of the question and the address: without the
/// secret none can be told from chance, the same question of the same request keeps its name however
/// often a handler asks it, and another one has another name. So the entropy comes in once, and the
/// endpoint stays deterministic.
// MCP 2025-11-25 client/elicitation#url-mode-elicitation-requests [ELIC-014]
#[derive(Clone, Copy)]
pub(super) struct ElicitationIds(u64, u64);

/// Keeps these hashes apart from other uses of a seed.
const LABEL: u64 = u64::from_be_bytes(*b"elicit\0\x01");

impl ElicitationIds {
    pub(super) const fn from_seed(seed: u64) -> Self {
        Self(seed, LABEL)
    }

    /// What is drawn here says nothing of other things that are drawn from the secret.
    #[cfg(feature = "http")]
    pub(super) fn from_secret(secret: &[u8; 32]) -> Self {
        use sha2::{Digest, Sha256};

        let hash = Sha256::new().chain_update(LABEL.to_be_bytes()).chain_update(secret).finalize();
        let half =
            |at: usize| hash[at..at + 8].iter().fold(0, |it, byte| it << 8 | u64::from(*byte));
        Self(half(0), half(8))
    }

    /// Names those of the questions to the client of `request` that need a name and have none.
    // MCP 2026-07-28 client/elicitation#url-mode-elicitation-requests [ELIC-015]: there is no name.
    pub(super) fn name(self, request: &Request<'_>, questions: &mut InputRequests) {
        if request.revision != Revision::V2025_11_25 {
            return;
        }
        for (key, question) in questions.iter_mut() {
            if let InputRequest::Elicit(ElicitParams::Url(params)) = question
                && params.elicitation_id.is_none()
            {
                params.elicitation_id = Some(self.id(request.handle, key, &params.url));
            }
        }
    }

    /// 128 bits.
    fn id(self, request: RequestHandle, key: &str, url: &str) -> String {
        let half = |number: u8| {
            // SipHash-2-4: a pseudorandom function, which the tables' hashers are not.
            #[expect(deprecated, reason = "what the standard library has instead may change")]
            let mut hasher = core::hash::SipHasher::new_with_keys(self.0, self.1);
            (number, request, key, url).hash(&mut hasher);
            hasher.finish().to_be_bytes()
        };
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&half(0));
        bytes[8..].copy_from_slice(&half(1));
        URL_SAFE_NO_PAD.encode(bytes)
    }
}

impl fmt::Debug for ElicitationIds {
    /// Leaves the secret out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ElicitationIds(..)")
    }
}

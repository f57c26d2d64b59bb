//! Elicitation ids, as used in `notifications/elicitation/complete`.

use alloc::string::String;
use core::fmt;
use core::hash::{Hash, Hasher};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcp_sansio::Revision;
use mcp_sansio::peer::{Request, RequestHandle};
use mcp_sansio::protocol::{ElicitParams, InputRequest, InputRequests};

/// Derives the id of a URL elicitation from a secret.
///
/// An id is a keyed hash of the request, the key of the input request and the URL. Without the
/// secret an id is indistinguishable from random bytes. The same input request of the same request
/// keeps its id however often a handler sends it, and any other one gets a different id. So entropy
/// is needed only once, and the endpoint stays deterministic.
// MCP 2025-11-25 client/elicitation#url-mode-elicitation-requests [ELIC-014]
#[derive(Clone, Copy)]
pub(super) struct ElicitationIds(u64, u64);

/// Separates these hashes from other uses of the seed.
const LABEL: u64 = u64::from_be_bytes(*b"elicit\0\x01");

impl ElicitationIds {
    pub(super) const fn from_seed(seed: u64) -> Self {
        Self(seed, LABEL)
    }

    /// Derives the keys in a way that does not reveal other values derived from the secret.
    #[cfg(feature = "http")]
    pub(super) fn from_secret(secret: &[u8; 32]) -> Self {
        use sha2::{Digest, Sha256};

        let hash = Sha256::new().chain_update(LABEL.to_be_bytes()).chain_update(secret).finalize();
        let half =
            |at: usize| hash[at..at + 8].iter().fold(0, |it, byte| it << 8 | u64::from(*byte));
        Self(half(0), half(8))
    }

    /// Sets the ids that the input requests to the client of `request` need and lack.
    // MCP 2026-07-28 client/elicitation#url-mode-elicitation-requests [ELIC-015]: this revision has
    // no ids.
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

    /// Returns an id of 128 bits.
    fn id(self, request: RequestHandle, key: &str, url: &str) -> String {
        let half = |number: u8| {
            // SipHash-2-4 is a pseudorandom function; the hashers of the tables are not.
            #[expect(deprecated, reason = "`DefaultHasher` may change its algorithm")]
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
    /// Omits the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ElicitationIds(..)")
    }
}

use serde::Deserialize;
use serde_json::value::RawValue;

use super::jwt::Jwt;
use super::key::{Jwk, Key};

/// The most keys kept of an issuer. 64: issuers have a handful, and a token without a key id is
/// tried with each.
const KEYS_MAX: usize = 64;

/// The keys of an issuer at one point in time.
#[derive(Debug)]
pub(super) struct KeySet(Vec<Key>);

#[derive(Deserialize)]
struct Document<'a> {
    #[serde(borrow)]
    keys: Vec<&'a RawValue>,
}

impl KeySet {
    /// Parses a JWKS; `None` if it is invalid. Unusable keys are skipped (RFC 7517, section 5).
    pub(super) fn read(document: &[u8]) -> Option<Self> {
        let document: Document<'_> = serde_json::from_slice(document).ok()?;
        let keys = document.keys.into_iter();
        let keys = keys.filter_map(|key| serde_json::from_str::<Jwk>(key.get()).ok());
        Some(Self(keys.filter_map(Key::read).take(KEYS_MAX).collect()))
    }

    /// Returns whether the token may be signed with one of the keys.
    pub(super) fn has_key_for(&self, jwt: &Jwt<'_>) -> bool {
        self.matching(jwt).next().is_some()
    }

    /// Returns whether one of the keys verifies the token.
    pub(super) fn verify(&self, jwt: &Jwt<'_>) -> bool {
        self.matching(jwt)
            .any(|key| key.verify(jwt.algorithm, jwt.input.as_bytes(), &jwt.signature))
    }

    fn matching(&self, jwt: &Jwt<'_>) -> impl Iterator<Item = &Key> {
        self.0.iter().filter(|key| key.matches(jwt.algorithm, jwt.key_id.as_deref()))
    }
}

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::JwtError;
use super::jwt::{Fetch, Jwt, Source};
use crate::Algorithm;

/// A public key of an issuer.
#[derive(Debug)]
pub(super) struct Key {
    id: Option<String>,
    /// The only algorithm that it may be used with, if specified.
    algorithm: Option<String>,
    material: Material,
}

#[derive(Debug)]
enum Material {
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
    Rsa { n: Vec<u8>, e: Vec<u8> },
}

/// The fields of a JWK (RFC 7517) that are used.
#[derive(Deserialize)]
pub(super) struct Jwk {
    kty: String,
    #[serde(rename = "use")]
    usage: Option<String>,
    key_ops: Option<Vec<String>>,
    alg: Option<String>,
    kid: Option<String>,
    crv: Option<String>,
    x: Option<String>,
    y: Option<String>,
    n: Option<String>,
    e: Option<String>,
}

impl Key {
    /// Converts a JWK; `None` if it is not for signatures, or of an unsupported type. A symmetric
    /// key (`oct`) is unsupported.
    pub(super) fn read(jwk: Jwk) -> Option<Self> {
        if jwk.usage.is_some_and(|it| it != "sig") {
            return None;
        }
        if jwk.key_ops.is_some_and(|it| !it.iter().any(|it| it == "verify")) {
            return None;
        }
        let number = |text: Option<String>| URL_SAFE_NO_PAD.decode(text?).ok();
        let point = |x: Option<String>, y: Option<String>, length| {
            let (x, y) = (number(x)?, number(y)?);
            (x.len() == length && y.len() == length).then(|| [&[4], &*x, &*y].concat())
        };
        let material = match (&*jwk.kty, jwk.crv.as_deref()) {
            ("EC", Some("P-256")) => Material::P256(point(jwk.x, jwk.y, 32)?),
            ("EC", Some("P-384")) => Material::P384(point(jwk.x, jwk.y, 48)?),
            ("OKP", Some("Ed25519")) => Material::Ed25519(number(jwk.x)?),
            ("RSA", _) => {
                Material::Rsa { n: positive(number(jwk.n)?), e: positive(number(jwk.e)?) }
            }
            _ => return None,
        };
        Some(Self { id: jwk.kid, algorithm: jwk.alg, material })
    }

    /// Returns whether a token with this algorithm and key id may be signed with this key. An id is a
    /// hint (RFC 7515, section 4.1.4), and not all keys have one.
    ///
    /// The type of the key must match the algorithm, which prevents a public key from being used as
    /// a shared secret (RFC 8725, section 2.1).
    pub(super) fn matches(&self, algorithm: Algorithm, id: Option<&str>) -> bool {
        let kind = matches!(
            (&self.material, algorithm),
            (Material::P256(_), Algorithm::Es256)
                | (Material::P384(_), Algorithm::Es384)
                | (Material::Ed25519(_), Algorithm::EdDsa)
                | (Material::Rsa { .. }, Algorithm::Rs256 | Algorithm::Ps256)
        );
        kind && self.algorithm.as_deref().is_none_or(|it| it == algorithm.as_str())
            && id.is_none_or(|id| self.id.as_deref().is_none_or(|own| own == id))
    }

    /// Verifies a signature. The key must [match](Self::matches) the algorithm.
    pub(super) fn verify(&self, algorithm: Algorithm, input: &[u8], signature: &[u8]) -> bool {
        match &self.material {
            Material::P256(point) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(input, signature)
            }
            Material::P384(point) => {
                UnparsedPublicKey::new(&ECDSA_P384_SHA384_FIXED, point).verify(input, signature)
            }
            Material::Ed25519(point) => {
                UnparsedPublicKey::new(&ED25519, point).verify(input, signature)
            }
            Material::Rsa { n, e } => {
                let padding = match algorithm {
                    Algorithm::Ps256 => &RSA_PSS_2048_8192_SHA256,
                    _ => &RSA_PKCS1_2048_8192_SHA256,
                };
                RsaPublicKeyComponents { n, e }.verify(padding, input, signature)
            }
        }
        .is_ok()
    }
}

/// Removes leading zeros, which some issuers write.
fn positive(mut number: Vec<u8>) -> Vec<u8> {
    let zeros = number.iter().take_while(|it| **it == 0).count();
    number.drain(..zeros);
    number
}

// ------------------------------------------------------------------ key set

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

    /// Returns whether one of the keys has the id that the token names.
    pub(super) fn has_key_named_by(&self, jwt: &Jwt<'_>) -> bool {
        jwt.key_id.is_some() && self.matching(jwt).any(|key| key.id == jwt.key_id)
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

// ------------------------------------------------------------------ key cache

/// How long keys are used before they are fetched again. 15 min: the time until a withdrawn key is
/// rejected.
const FRESH_MAX: Duration = Duration::from_secs(15 * 60);
/// How long keys are used if they cannot be fetched again. 1 h: long enough for an outage of the
/// issuer, but not forever.
const STALE_MAX: Duration = Duration::from_secs(60 * 60);

/// The keys of an issuer, fetched on demand by one request at a time. Tokens cannot cause frequent
/// fetches.
pub(super) struct KeyCache {
    fetch: Arc<Fetch>,
    source: Source,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The keys and when they were fetched, in seconds since 1970.
    keys: Option<(Arc<KeySet>, u64)>,
    /// When the last fetch started, in seconds since 1970.
    attempted: Option<u64>,
    /// The current fetch, shared by its waiters: each of them polls it, and if all of them are
    /// dropped, the next request continues it.
    flight: Option<Flight>,
    /// The error of the last fetch.
    failure: Option<JwtError>,
}

type Flight = Shared<BoxFuture<'static, Result<Arc<KeySet>, JwtError>>>;

impl KeyCache {
    pub(super) fn new(fetch: Fetch, source: Source) -> Self {
        Self { fetch: Arc::new(fetch), source, state: Mutex::default() }
    }

    /// Returns keys that satisfy `suffice`, fetching them if needed, or else the cached keys.
    /// Fetches start at least `interval` apart. If the cached keys suffice, only the request that
    /// starts a fetch waits for it. `now`: seconds since 1970.
    pub(super) async fn get(
        &self,
        now: u64,
        interval: Duration,
        suffice: impl FnOnce(&KeySet) -> bool,
    ) -> Result<Arc<KeySet>, JwtError> {
        let Some((flight, is_awaited)) = self.flight(now, interval, suffice) else {
            return self.stale(now);
        };
        // The others poll it once, so that it continues if the request that waits is dropped:
        // withdrawn keys must not stay.
        let result = match is_awaited {
            true => Some(flight.clone().await),
            false => flight.clone().now_or_never(),
        };
        if let Some(result) = result {
            let mut state = self.state();
            // Only the first waiter stores the result, and only if no other fetch has started
            // since.
            if state.flight.as_ref().is_some_and(|it| it.ptr_eq(&flight)) {
                state.flight = None;
                match result {
                    Ok(keys) => state.keys = Some((keys, now)),
                    Err(failure) => state.failure = Some(failure),
                }
            }
        }
        self.stale(now)
    }

    /// Returns the fetch to poll, and whether to wait for it; `None` if none is possible or needed.
    fn flight(
        &self,
        now: u64,
        interval: Duration,
        suffice: impl FnOnce(&KeySet) -> bool,
    ) -> Option<(Flight, bool)> {
        // Not under the lock, which all checks share: `suffice` may verify a signature for each
        // key.
        let suffices = self.stale(now).is_ok_and(|keys| suffice(&keys));
        let mut state = self.state();
        let fetched = state.keys.as_ref().map(|(_, fetched)| *fetched);
        if suffices && fetched.is_some_and(|it| within(FRESH_MAX, now, it)) {
            return None;
        }
        let recent = state.attempted.is_some_and(|it| within(interval, now, it));
        // A fetch that has not completed in that time is abandoned.
        if !recent {
            let (fetch, source) = (Arc::clone(&self.fetch), self.source.clone());
            let flight = async move { fetch.keys(&source).await.map(Arc::new) };
            state.attempted = Some(now);
            state.flight = Some(flight.boxed().shared());
        }
        Some((state.flight.clone()?, !(suffices && recent)))
    }

    /// Returns the cached keys, unless they are too old even for an outage.
    fn stale(&self, now: u64) -> Result<Arc<KeySet>, JwtError> {
        let state = self.state();
        match &state.keys {
            Some((keys, fetched)) if within(STALE_MAX, now, *fetched) => Ok(Arc::clone(keys)),
            _ => Err(state.failure.clone().unwrap_or_else(|| {
                JwtError::Unavailable("the first fetch is still in progress".to_owned())
            })),
        }
    }

    /// Nothing panics under the lock.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether `then` is less than `time` away from `now`. If the clock jumped by more than
/// that, in either direction, it is not.
const fn within(time: Duration, now: u64, then: u64) -> bool {
    now.abs_diff(then) < time.as_secs()
}

mcp_sansio::partial_debug! { impl Debug for KeyCache { source, .. } }

#[cfg(test)]
mod tests {
    use std::future::ready;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[test]
    fn try_lock_fails_only_while_the_cache_is_busy() {
        let fetch = Fetch::new(|_| ready(Ok::<_, String>(Vec::from(r#"{"keys":[]}"#))));
        let cache = KeyCache::new(fetch, Source::Url("https://a.example/jwks".to_owned()));
        let mut tried = 0;
        for _ in 0..2 {
            let mut keys = pin!(cache.get(5, Duration::from_secs(30), |_| {
                tried += 1;
                assert!(cache.state.try_lock().is_ok(), "the lock is held");
                true
            }));
            let polled = keys.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert!(matches!(polled, Poll::Ready(Ok(_))));
        }
        assert_eq!(tried, 1);
    }
}

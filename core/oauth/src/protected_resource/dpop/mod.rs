//! Tokens that are bound to a key of the client: DPoP (RFC 9449).

#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac};
use mcp_sansio::http::{AuthorizationField, Location, RequestHead};
use mcp_sansio_sync::{Arc, Mutex};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::{InvalidResource, ProtectedResource};
use crate::dpop::{Jwk, ProofKey};

/// The tolerated difference between the time of a proof and that of the server. 60 s: proofs are
/// made for one request, and clocks of clients are less exact than those of servers.
const WINDOW: Duration = Duration::from_secs(60);
/// The longest window that the extension allows, in seconds.
const WINDOW_MAX: u64 = 300;
/// The number of proofs that are remembered. 65,536: about 500 requests per second with the default
/// window, and 8 MiB of memory.
const PROOFS_MAX: usize = 65_536;

/// How a [`ProtectedResource`] verifies the proofs of clients whose tokens are bound to a key (RFC
/// 9449).
///
/// The core checks everything about a proof except its signature: the request and the token that it
/// is for, its time, its nonce, that it was not used before, and that its key is the one that the
/// token is [bound to](super::VerifiedToken::bound_to). The application verifies the signature.
/// `mcp_sansio_auth::dpop_verifier` has such a verifier.
///
/// ```
/// use mcp_sansio_oauth::protected_resource::{DpopVerifier, ProofSignature, ProtectedResource};
///
/// # fn es256(_jwk: &str, _input: &[u8], _signature: &[u8]) -> bool { true }
/// let verifier = DpopVerifier::new(["ES256"], |proof: &ProofSignature<'_>| {
///     proof.algorithm() == "ES256" && es256(proof.jwk(), proof.input(), proof.signature())
/// });
/// let resource = ProtectedResource::new("https://mcp.example.com/mcp", ["https://auth.example.com"])?
///     .dpop(verifier)?;
/// # Ok::<(), mcp_sansio_oauth::protected_resource::InvalidResource>(())
/// ```
pub struct DpopVerifier {
    algorithms: Vec<String>,
    verify: Box<dyn Fn(&ProofSignature<'_>) -> bool + Send + Sync>,
    window: u64,
    required: bool,
    nonces: Option<NonceKey>,
    proofs_max: usize,
    seen: Mutex<SeenProofs>,
}

/// The signature of a proof, for the application to verify.
#[derive(Clone, Copy)]
pub struct ProofSignature<'a> {
    algorithm: &'a str,
    jwk: &'a str,
    input: &'a str,
    signature: &'a [u8],
}

impl<'a> ProofSignature<'a> {
    /// Returns the algorithm: one of those of the [`DpopVerifier`], which fits the type of the key.
    #[must_use]
    pub const fn algorithm(&self) -> &'a str {
        self.algorithm
    }

    /// Returns the public key of the client as a JWK (RFC 7517), in JSON, with the required members
    /// of its type only.
    #[must_use]
    pub const fn jwk(&self) -> &'a str {
        self.jwk
    }

    /// Returns the bytes that are signed.
    #[must_use]
    pub const fn input(&self) -> &'a [u8] {
        self.input.as_bytes()
    }

    /// Returns the signature, raw as in a JSON Web Signature: `r` and `s` concatenated for ECDSA.
    #[must_use]
    pub const fn signature(&self) -> &'a [u8] {
        self.signature
    }
}

mcp_sansio::partial_debug! { impl Debug for ProofSignature<'_> { algorithm, .. } }

impl DpopVerifier {
    /// Creates a verifier for proofs with one of these signature algorithms (RFC 7518), whose
    /// signature `verify` checks. Algorithms with a shared secret are never used.
    ///
    /// `verify` is called after the token was checked, for every request with a proof. It must
    /// return `false` if it does not know the algorithm.
    pub fn new(
        algorithms: impl IntoIterator<Item = impl Into<String>>,
        verify: impl Fn(&ProofSignature<'_>) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self {
            algorithms: algorithms.into_iter().map(Into::into).collect(),
            verify: Box::new(verify),
            window: WINDOW.as_secs(),
            required: false,
            nonces: None,
            proofs_max: PROOFS_MAX,
            seen: Mutex::new(SeenProofs::new()),
        }
    }

    /// Refuses tokens that are not bound to a key. By default, clients may also send tokens as
    /// `Bearer` if they are not bound.
    #[must_use]
    pub const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// Sets the tolerated difference between the time of a proof and that of the server, both ways.
    /// 60 s by default, at least 1 s and at most 5 minutes. Proofs are remembered for up to twice as
    /// long.
    // MCP 2026-07-28 auth:dpop-extension#mcp-server-validation [DPOP-006]
    #[must_use]
    pub const fn window(mut self, window: Duration) -> Self {
        self.window = match window.as_secs() {
            0 => 1,
            seconds if seconds > WINDOW_MAX => WINDOW_MAX,
            seconds => seconds,
        };
        self
    }

    /// Requires proofs with a nonce of this server, so that a client cannot make proofs in advance
    /// for another party. A client without one is refused once and told the nonce, which is valid
    /// for `lifetime` to twice that time; 300 s are usual.
    ///
    /// `secret` is random. Processes that serve the same resource need the same one.
    // RFC 9449, section 9.
    #[must_use]
    pub fn nonces(mut self, secret: &[u8; 32], lifetime: Duration) -> Self {
        self.nonces = Some(NonceKey::new(secret, lifetime));
        self
    }

    /// Sets how many proofs are remembered, to refuse them if they are sent again. 65,536 by
    /// default, with about 128 bytes each; the proofs of one key have a quarter of it. Requests
    /// beyond the limit are told to retry.
    ///
    /// Nodes with a shared store record the proofs there as well. Other processes that serve the
    /// same resource do not share their records: require [nonces](Self::nonces) with a short
    /// lifetime, or a shorter [window](Self::window).
    #[must_use]
    pub const fn proofs_max(mut self, proofs: usize) -> Self {
        self.proofs_max = proofs;
        self
    }

    /// Verifies the signature of a proof, and remembers the proof.
    fn accept(&self, proof: &DpopProof, unix_time: u64) -> Result<UsedProof, Unaccepted> {
        if !proof.is_signed(&*self.verify) {
            return Err(Unaccepted::Signature);
        }
        let id = ProofId::new(proof.thumbprint(), proof.jti());
        let (expiry, limit) = (proof.iat().saturating_add(self.window), self.proofs_max);
        // MCP 2026-07-28 auth:dpop-extension#stateless-operation-and-dpop-proof-replay-protection [DPOP-009]
        // MCP 2026-07-28 auth:dpop-extension#security-considerations [DPOP-011]
        // MCP 2026-07-28 auth:dpop-extension#replay-detection-without-state [DPOP-014]
        // RFC 9449, section 11.1: a proof is valid once within the window.
        let seen = self.seen.lock(|seen| seen.record(id, expiry, unix_time, limit));
        seen.map_err(|refused| match refused {
            Unrecorded::Repeated => Unaccepted::Repeated,
            Unrecorded::Full => Unaccepted::Full,
        })?;
        // It is valid in the second of its expiry.
        Ok(UsedProof { id: id.to_string(), expires_at: expiry.saturating_add(1) })
    }
}

/// A proof that this process has accepted, and that others must not accept again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UsedProof {
    pub(super) id: String,
    pub(super) expires_at: u64,
}

/// Why a proof with correct claims was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unaccepted {
    Signature,
    Repeated,
    /// Too many proofs are remembered.
    Full,
}

impl ProtectedResource {
    /// Accepts tokens that are bound to a key of the client, from clients that prove with each
    /// request that they have the key.
    ///
    /// # Errors
    ///
    /// The caller's error: [`InvalidResource::Algorithm`].
    pub fn dpop(mut self, verifier: DpopVerifier) -> Result<Self, InvalidResource> {
        let named = |name: &String| {
            let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
            !name.is_empty() && name.bytes().all(allowed)
        };
        if verifier.algorithms.is_empty() || !verifier.algorithms.iter().all(named) {
            let names = verifier.algorithms.join(" ");
            return Err(InvalidResource::Algorithm(names));
        }
        self.dpop = Some(Arc::new(verifier));
        Ok(self)
    }

    /// Returns the algorithms of proofs, separated by spaces; `None` if tokens cannot be bound.
    pub(super) fn proof_algorithms(&self) -> Option<String> {
        self.dpop.as_ref().map(|it| it.algorithms.join(" "))
    }

    pub(super) fn proof_algorithm_list(&self) -> &[String] {
        self.dpop.as_ref().map_or(&[], |it| &it.algorithms)
    }

    /// Whether tokens must be bound to a key.
    pub(super) fn requires_proof(&self) -> bool {
        self.dpop.as_ref().is_some_and(|it| it.required)
    }

    /// Checks the claims of a request's proof.
    pub(super) fn extract_proof(
        &self,
        head: &RequestHead<'_>,
        token: &str,
        unix_time: u64,
    ) -> Result<DpopProof, ProofRefusal> {
        let Some(verifier) = &self.dpop else { return Err(ProofRefusal::Invalid("unexpected")) };
        let text = match head.dpop() {
            AuthorizationField::One(text) => text,
            AuthorizationField::None => return Err(ProofRefusal::Invalid("the proof is missing")),
            AuthorizationField::Repeated => {
                return Err(ProofRefusal::Invalid("`DPoP` must not be repeated"));
            }
        };
        let expected = Expected {
            algorithms: &verifier.algorithms,
            method: head.method(),
            location: &self.location,
            path: head.path(),
            token,
            unix_time,
            window: verifier.window,
            nonces: verifier.nonces.as_ref(),
        };
        DpopProof::parse(text, &expected).map_err(|fault| match fault {
            ProofFault::Invalid(what) => ProofRefusal::Invalid(what),
            ProofFault::Nonce => {
                let nonces = verifier.nonces.as_ref();
                ProofRefusal::Nonce(nonces.map(|it| it.current(unix_time)).unwrap_or_default())
            }
        })
    }

    /// Verifies the signature of a proof, and that it was not used before.
    pub(super) fn accept_proof(
        &self,
        proof: &DpopProof,
        now: u64,
    ) -> Result<UsedProof, Unaccepted> {
        self.dpop.as_ref().map_or(Err(Unaccepted::Signature), |it| it.accept(proof, now))
    }
}

/// Why a request is refused because of its proof.
#[derive(Debug)]
pub(super) enum ProofRefusal {
    Invalid(&'static str),
    /// It needs this nonce.
    Nonce(String),
}

mcp_sansio::partial_debug! {
    /// Omits the secret of the nonces.
    impl Debug for DpopVerifier { algorithms, required, .. }
}

// The proofs are made with the client's code.

// ------------------------------------------------------------------ nonce

/// The bytes of a nonce: enough that it cannot be guessed.
const NONCE_LENGTH: usize = 16;

/// The key from which the nonces of a server are derived: no state, so that processes can share
/// them.
struct NonceKey {
    mac: Hmac<Sha256>,
    /// In seconds.
    lifetime: u64,
}

impl NonceKey {
    fn new(secret: &[u8; 32], lifetime: Duration) -> Self {
        let mut mac = Hmac::new_from_slice(secret).expect("HMAC takes keys of any length");
        // The application may use its secret for other purposes too.
        mac.update(b"mcp-sansio dpop nonce");
        Self { mac, lifetime: lifetime.as_secs().max(1) }
    }

    /// Returns the nonce for the next proof.
    fn current(&self, unix_time: u64) -> String {
        self.of_period(unix_time / self.lifetime)
    }

    /// Whether a proof with this nonce is accepted: the current one or the one before.
    fn accepts(&self, nonce: &str, unix_time: u64) -> bool {
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

// ------------------------------------------------------------------ proof

/// The longest accepted proof, in bytes: one with an RSA key of 4,096 bits has less than 3 KiB.
pub const PROOF_LENGTH_MAX: usize = 8 * 1024;

/// A client's proof for one request, whose claims fit the request. Cheap to clone.
///
/// Its signature is verified later, by [`Grant::with_proof`](super::Grant::with_proof).
#[derive(Clone)]
pub struct DpopProof(Arc<Inner>);

struct Inner {
    key: ProofKey,
    thumbprint: String,
    jti: String,
    iat: u64,
    input: String,
    signature: Vec<u8>,
}

/// The request and the token that a proof must match.
struct Expected<'a> {
    algorithms: &'a [String],
    method: &'a str,
    /// The URL of the resource,
    location: &'a Location,
    /// and the path of the request.
    path: &'a str,
    token: &'a str,
    unix_time: u64,
    /// In seconds.
    window: u64,
    nonces: Option<&'a NonceKey>,
}

/// Why a proof is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProofFault {
    Invalid(&'static str),
    /// It has no nonce, or one that is not valid now.
    Nonce,
}

#[derive(Deserialize)]
struct Header<'a> {
    typ: String,
    alg: String,
    #[serde(borrow)]
    jwk: &'a RawValue,
    crit: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Claims {
    jti: String,
    htm: String,
    htu: String,
    iat: f64,
    ath: Option<String>,
    nonce: Option<String>,
}

impl DpopProof {
    /// Parses a proof and checks all of RFC 9449, section 4.3, except the signature and that it was
    /// not used before.
    fn parse(text: &[u8], expected: &Expected<'_>) -> Result<Self, ProofFault> {
        let malformed = ProofFault::Invalid("the proof is malformed");
        let text = core::str::from_utf8(text).map_err(|_| malformed)?;
        if text.len() > PROOF_LENGTH_MAX {
            return Err(malformed);
        }
        let (input, signature) = text.rsplit_once('.').ok_or(malformed)?;
        let (header, claims) = input.split_once('.').ok_or(malformed)?;
        // A further dot is not valid base64.
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| malformed);
        let (header, claims, signature) = (decode(header)?, decode(claims)?, decode(signature)?);
        let header: Header<'_> = object(&header).ok_or(malformed)?;
        let claims: Claims = object(&claims).ok_or(malformed)?;
        let key = header.key(expected.algorithms)?;
        claims.check(expected)?;
        Ok(Self(Arc::new(Inner {
            thumbprint: key.thumbprint(),
            key,
            jti: claims.jti,
            iat: whole(claims.iat),
            input: input.to_string(),
            signature,
        })))
    }

    /// Returns the thumbprint of the client's key (RFC 7638): the `jkt` of a token that is bound to
    /// it.
    #[must_use]
    pub fn thumbprint(&self) -> &str {
        &self.0.thumbprint
    }

    fn jti(&self) -> &str {
        &self.0.jti
    }

    /// Returns when it was made, in seconds since 1970.
    fn iat(&self) -> u64 {
        self.0.iat
    }

    fn is_signed(&self, verify: &dyn Fn(&ProofSignature<'_>) -> bool) -> bool {
        let Inner { key, input, signature, .. } = &*self.0;
        let jwk = key.to_json();
        verify(&ProofSignature { algorithm: key.algorithm(), jwk: &jwk, input, signature })
    }
}

impl ProofKey {
    /// Returns the key as a JWK, with the members that its thumbprint covers.
    pub(super) fn to_json(&self) -> String {
        serde_json::to_string(&self.jwk).expect("strings serialize")
    }
}

impl Header<'_> {
    /// Checks the header, and returns the key.
    fn key(&self, algorithms: &[String]) -> Result<ProofKey, ProofFault> {
        if !self.typ.eq_ignore_ascii_case("dpop+jwt") {
            return Err(ProofFault::Invalid("the proof has another type"));
        }
        // RFC 7515, section 4.1.11: no extensions are supported.
        if self.crit.is_some() {
            return Err(ProofFault::Invalid("the proof has a critical header parameter"));
        }
        // MCP 2026-07-28 auth:dpop-extension#algorithm-security [DPOP-022]: selected by name, so that neither a
        // symmetric algorithm nor `none` is possible.
        if !algorithms.contains(&self.alg) {
            return Err(ProofFault::Invalid("the algorithm of the proof is not supported"));
        }
        let jwk: Option<Jwk> = object(self.jwk.get().as_bytes());
        let key = jwk.and_then(|jwk| ProofKey::from_jwk(&self.alg, jwk).ok());
        key.ok_or(ProofFault::Invalid("the proof has no public key for its algorithm"))
    }
}

impl Claims {
    // MCP 2026-07-28 auth:dpop-extension#mcp-server-validation [DPOP-005]
    fn check(&self, expected: &Expected<'_>) -> Result<(), ProofFault> {
        if self.jti.is_empty() {
            return Err(ProofFault::Invalid("the proof has no id"));
        }
        if self.htm != expected.method {
            return Err(ProofFault::Invalid("the proof is for another method"));
        }
        if !expected.is_url(&self.htu) {
            return Err(ProofFault::Invalid("the proof is for another URL"));
        }
        let digest = URL_SAFE_NO_PAD.encode(Sha256::digest(expected.token));
        if self.ath.as_ref() != Some(&digest) {
            return Err(ProofFault::Invalid("the proof is for another access token"));
        }
        // Before the time: section 8 lets a nonce replace clocks that agree, and a client that
        // learns the nonce makes a new proof.
        if let Some(nonces) = expected.nonces
            && !self.nonce.as_ref().is_some_and(|it| nonces.accepts(it, expected.unix_time))
        {
            return Err(ProofFault::Nonce);
        }
        let time = whole(self.iat);
        if time.abs_diff(expected.unix_time) > expected.window {
            return Err(ProofFault::Invalid("the proof was not made now"));
        }
        Ok(())
    }
}

impl Expected<'_> {
    /// Whether a URL is that of the request, except for its query. Behind a proxy, only the URL of
    /// the resource has the origin that the client knows, and perhaps its path too.
    fn is_url(&self, htu: &str) -> bool {
        let path = |target: &str| target.split('?').next().unwrap_or_default().to_string();
        Location::parse(htu).is_ok_and(|url| {
            let named = path(url.path_and_query());
            url.same_origin(self.location)
                && (named == self.path || named == path(self.location.path_and_query()))
        })
    }
}

/// Reads a JSON object; a duplicate of a known member is refused.
fn object<'a, T: Deserialize<'a>>(text: &'a [u8]) -> Option<T> {
    // Derived deserializers also accept an array for a struct.
    let is_object = text.trim_ascii_start().first() == Some(&b'{');
    is_object.then(|| serde_json::from_slice(text).ok()).flatten()
}

/// Truncates a date to whole seconds.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "dates out of range saturate"
)]
const fn whole(date: f64) -> u64 {
    date as u64
}

impl fmt::Debug for DpopProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DpopProof").field("thumbprint", &self.0.thumbprint).finish_non_exhaustive()
    }
}

// ------------------------------------------------------------------ the proofs that were accepted lately

/// How many expired proofs each new one removes: more than it adds, and few, because a lock is
/// held.
const REMOVALS: usize = 4;

/// The first half of a SHA-256: no second text with the same one can be found.
type Digest16 = [u8; 16];

/// The key and the `jti` of a proof.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ProofId {
    key: Digest16,
    jti: Digest16,
}

impl fmt::Display for ProofId {
    /// Writes 64 hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.key.iter().chain(&self.jti).try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl ProofId {
    fn new(thumbprint: &str, jti: &str) -> Self {
        let half = |text: &str| {
            let digest = Sha256::digest(text);
            core::array::from_fn(|index| digest[index])
        };
        Self { key: half(thumbprint), jti: half(jti) }
    }
}

/// Proofs that must not be used again, until they expire.
struct SeenProofs {
    known: BTreeSet<ProofId>,
    /// In seconds since 1970.
    by_expiry: BTreeSet<(u64, ProofId)>,
    /// The number of proofs of each key.
    counts: BTreeMap<Digest16, usize>,
}

/// Why a proof was not recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unrecorded {
    /// It is recorded already.
    Repeated,
    /// There are too many proofs, altogether or of its key.
    Full,
}

impl SeenProofs {
    const fn new() -> Self {
        Self { known: BTreeSet::new(), by_expiry: BTreeSet::new(), counts: BTreeMap::new() }
    }

    /// Records a proof that is valid until `expiry`. One key gets a quarter of `proofs_max`, so
    /// that one client cannot lock out the others. Performs a bounded amount of work.
    fn record(
        &mut self,
        id: ProofId,
        expiry: u64,
        now: u64,
        proofs_max: usize,
    ) -> Result<(), Unrecorded> {
        self.remove_expired(now);
        if self.known.contains(&id) {
            return Err(Unrecorded::Repeated);
        }
        let of_key = self.counts.get(&id.key).copied().unwrap_or(0);
        if self.known.len() >= proofs_max || of_key >= proofs_max.div_ceil(4) {
            return Err(Unrecorded::Full);
        }
        self.known.insert(id);
        self.by_expiry.insert((expiry, id));
        self.counts.insert(id.key, of_key + 1);
        Ok(())
    }

    fn remove_expired(&mut self, now: u64) {
        for _ in 0..REMOVALS {
            // A proof is valid in the second of its expiry.
            let Some(&(_, id)) = self.by_expiry.first().filter(|(expiry, _)| *expiry < now) else {
                return;
            };
            self.by_expiry.pop_first();
            self.known.remove(&id);
            match self.counts.get_mut(&id.key) {
                Some(count) if *count > 1 => *count -= 1,
                _ => drop(self.counts.remove(&id.key)),
            }
        }
    }
}

#[cfg(test)]
mod nonce_tests {
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

#[cfg(test)]
mod replay_tests {
    use alloc::format;

    use super::*;

    fn record(seen: &mut SeenProofs, key: &str, jti: &str, now: u64) -> Result<(), Unrecorded> {
        seen.record(ProofId::new(key, jti), now + 10, now, 8)
    }

    #[test]
    fn a_proof_is_recorded_once_until_it_expires() {
        let mut seen = SeenProofs::new();
        assert_eq!(record(&mut seen, "k", "a", 0), Ok(()));
        assert_eq!(record(&mut seen, "k", "a", 10), Err(Unrecorded::Repeated));
        assert_eq!(record(&mut seen, "other", "a", 10), Ok(()));
        assert_eq!(record(&mut seen, "k", "b", 10), Ok(()));
        assert_eq!(record(&mut seen, "k", "a", 11), Ok(()));
        assert_eq!((seen.known.len(), seen.by_expiry.len(), seen.counts.len()), (3, 3, 2));
    }

    #[test]
    fn one_key_has_a_quarter_of_the_room() {
        let mut seen = SeenProofs::new();
        for jti in ["a", "b"] {
            assert_eq!(record(&mut seen, "k", jti, 0), Ok(()));
        }
        assert_eq!(record(&mut seen, "k", "c", 0), Err(Unrecorded::Full));
        for number in 0..6 {
            assert_eq!(record(&mut seen, &format!("{number}"), "a", 0), Ok(()), "{number}");
        }
        assert_eq!(record(&mut seen, "last", "a", 0), Err(Unrecorded::Full));
        assert_eq!(record(&mut seen, "k", "a", 0), Err(Unrecorded::Repeated));
        // Each attempt makes room.
        assert_eq!(record(&mut seen, "last", "a", 11), Ok(()));
        assert_eq!(record(&mut seen, "k", "c", 11), Ok(()));
        assert_eq!((seen.known.len(), seen.by_expiry.len(), seen.counts.len()), (2, 2, 2));
    }
}

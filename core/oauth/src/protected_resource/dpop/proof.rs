use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcp_sansio::http::Location;
use mcp_sansio_sync::Arc;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::dpop::{Jwk, ProofKey};

use super::ProofSignature;
use super::nonce::NonceKey;

/// The longest accepted proof, in bytes: one with an RSA key of 4,096 bits has less than 3 KiB.
pub const PROOF_LENGTH_MAX: usize = 8 * 1024;

/// A client's proof for one request, whose claims fit the request. Cheap to clone.
///
/// Its signature is verified later, by [`Grant::with_proof`](super::super::Grant::with_proof).
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
pub(super) struct Expected<'a> {
    pub(super) algorithms: &'a [String],
    pub(super) method: &'a str,
    /// The URL of the resource,
    pub(super) location: &'a Location,
    /// and the path of the request.
    pub(super) path: &'a str,
    pub(super) token: &'a str,
    pub(super) unix_time: u64,
    /// In seconds.
    pub(super) window: u64,
    pub(super) nonces: Option<&'a NonceKey>,
}

/// Why a proof is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProofFault {
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
    pub(super) fn parse(text: &[u8], expected: &Expected<'_>) -> Result<Self, ProofFault> {
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

    /// Returns the thumbprint of the client's key (RFC 7638): the `jkt` of a token that is bound to it.
    #[must_use]
    pub fn thumbprint(&self) -> &str {
        &self.0.thumbprint
    }

    pub(super) fn jti(&self) -> &str {
        &self.0.jti
    }

    /// Returns when it was made, in seconds since 1970.
    pub(super) fn iat(&self) -> u64 {
        self.0.iat
    }

    pub(super) fn is_signed(&self, verify: &dyn Fn(&ProofSignature<'_>) -> bool) -> bool {
        let Inner { key, input, signature, .. } = &*self.0;
        let jwk = key.to_json();
        verify(&ProofSignature { algorithm: key.algorithm(), jwk: &jwk, input, signature })
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
        // Selected by name, so that neither a symmetric algorithm nor `none` is possible.
        if !algorithms.contains(&self.alg) {
            return Err(ProofFault::Invalid("the algorithm of the proof is not supported"));
        }
        let jwk: Option<Jwk> = object(self.jwk.get().as_bytes());
        let key = jwk.and_then(|jwk| ProofKey::from_jwk(&self.alg, jwk).ok());
        key.ok_or(ProofFault::Invalid("the proof has no public key for its algorithm"))
    }
}

impl Claims {
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
        // Before the time: section 8 lets a nonce replace clocks that agree, and a client that learns
        // the nonce makes a new proof.
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
    /// Whether a URL is that of the request, except for its query. Behind a proxy, only the URL of the
    /// resource has the origin that the client knows, and perhaps its path too.
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

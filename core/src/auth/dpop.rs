//! Proofs that a client holds the key its tokens are bound to: DPoP (RFC 9449).

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::challenge::{BearerChallenge, Challenge};
use super::client::DpopKey;
use super::jwt::SigningInput;
use crate::http::{Location, Origin};

/// `error` of whoever wants a proof with a nonce.
pub(super) const USE_DPOP_NONCE: &str = "use_dpop_nonce";
/// The longest nonce that is kept, in bytes.
const NONCE_LENGTH_MAX: usize = 1024;
/// The most origins whose nonce is kept: the MCP server, its authorization server, and room for a
/// change of either.
const NONCES_MAX: usize = 8;
/// The longest key that is read, in bytes: RSA with 16,384 bits has half of it.
const JWK_LENGTH_MAX: usize = 8192;

/// The public half of a key and the algorithm that it signs with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProofKey {
    algorithm: String,
    jwk: PublicJwk,
}

/// What makes up a public key, and nothing else, in the order of its thumbprint (RFC 7638,
/// section 3.3).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
enum PublicJwk {
    Ec { crv: String, kty: &'static str, x: String, y: String },
    Rsa { e: String, kty: &'static str, n: String },
    Okp { crv: String, kty: &'static str, x: String },
}

/// Why a key cannot be used for DPoP. The fault of whoever configured it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidDpopKey {
    /// The key is no JWK (RFC 7517), is longer than 8 KiB, or lacks a member.
    #[error("the DPoP key is no JWK of an elliptic curve or RSA")]
    Malformed,
    /// The key has members of the private half, which must never leave the application, or is a
    /// shared secret.
    #[error("the DPoP key has its private half in it: give the public one only")]
    Private,
    /// The algorithm does not sign with a key of this type, or with none at all.
    #[error("the algorithm is none for the DPoP key")]
    Algorithm,
}

/// A request to prove the key for.
#[derive(Clone, Copy)]
pub(super) struct ProvenRequest<'a> {
    /// The method, in upper case.
    pub(super) method: &'a str,
    /// The whole URL.
    pub(super) url: &'a Location,
    /// The token that the request has in `Authorization`; none at the token endpoint.
    pub(super) access_token: Option<&'a str>,
    /// The last nonce of the server: see [`Nonces::get`].
    pub(super) nonce: Option<&'a str>,
    /// Used for no other proof.
    pub(super) jti: &'a str,
    /// In seconds since 1970.
    pub(super) unix_time: u64,
}

/// The last nonce of each server.
#[derive(Default)]
pub(super) struct Nonces(Vec<(Origin, String)>);

impl ProofKey {
    /// Reads a key.
    ///
    /// # Errors
    ///
    /// The fault of whoever configured it: see [`InvalidDpopKey`].
    pub(super) fn new(key: &DpopKey) -> Result<Self, InvalidDpopKey> {
        if key.jwk.len() > JWK_LENGTH_MAX || !key.jwk.trim_ascii_start().starts_with('{') {
            return Err(InvalidDpopKey::Malformed);
        }
        let jwk: Jwk = serde_json::from_str(&key.jwk).map_err(|_| InvalidDpopKey::Malformed)?;
        // RFC 9449, section 4.2.
        if jwk.is_private() {
            return Err(InvalidDpopKey::Private);
        }
        let jwk = jwk.into_public().ok_or(InvalidDpopKey::Malformed)?;
        if !jwk.signs_with(&key.algorithm) {
            return Err(InvalidDpopKey::Algorithm);
        }
        Ok(Self { algorithm: key.algorithm.clone(), jwk })
    }

    /// The algorithm by its name of RFC 7518.
    pub(super) fn algorithm(&self) -> &str {
        &self.algorithm
    }

    /// What names the key (RFC 7638): the SHA-256 of its members, in base64url.
    pub(super) fn thumbprint(&self) -> String {
        let members = serde_json::to_vec(&self.jwk).expect("structs of texts can be written");
        URL_SAFE_NO_PAD.encode(Sha256::digest(members))
    }

    /// The proof for a request, to be signed (RFC 9449, section 4.2). Each is for one request.
    pub(super) fn proof(&self, request: &ProvenRequest<'_>) -> SigningInput {
        let header = Header { typ: "dpop+jwt", alg: &self.algorithm, jwk: &self.jwk };
        let url = request.url.as_str();
        let claims = Claims {
            jti: request.jti,
            htm: request.method,
            htu: url.split('?').next().unwrap_or(url),
            iat: request.unix_time,
            ath: request.access_token.map(|it| URL_SAFE_NO_PAD.encode(Sha256::digest(it))),
            nonce: request.nonce,
        };
        SigningInput::new(&header, &claims)
    }
}

impl Nonces {
    /// No nonce yet.
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    /// The nonce for a request to this URL.
    pub(super) fn get(&self, url: &Location) -> Option<&str> {
        let mut nonces = self.0.iter();
        nonces.find(|(origin, _)| origin == url.origin()).map(|(_, nonce)| &**nonce)
    }

    /// Takes the `DPoP-Nonce` of a response from this URL. Whether it is another than the last: only
    /// then is there any use in asking again. What cannot be a nonce is passed over.
    pub(super) fn insert(&mut self, url: &Location, nonce: &[u8]) -> bool {
        // RFC 9449, section 8.1: `NQCHAR`.
        let allowed = |byte: &u8| matches!(byte, b'!' | b'#'..=b'[' | b']'..=b'~');
        if nonce.is_empty() || nonce.len() > NONCE_LENGTH_MAX || !nonce.iter().all(allowed) {
            return false;
        }
        let nonce = String::from_utf8_lossy(nonce).to_string();
        if self.get(url) == Some(&*nonce) {
            return false;
        }
        self.0.retain(|(origin, _)| origin != url.origin());
        if self.0.len() == NONCES_MAX {
            self.0.remove(0);
        }
        self.0.push((url.origin().clone(), nonce));
        true
    }
}

/// Whether a 401 asks for a proof with another nonce, rather than for another token (RFC 9449,
/// section 9).
pub(super) fn asks_for_nonce(challenges: &[Challenge]) -> bool {
    let mut tokens = challenges.iter().filter_map(BearerChallenge::of);
    tokens.any(|it| it.error.as_deref() == Some(USE_DPOP_NONCE))
}

impl fmt::Debug for ProvenRequest<'_> {
    /// Leaves the token out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProvenRequest")
            .field("method", &self.method)
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Nonces {
    /// Says for whom there are some.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.iter().map(|(origin, _)| origin)).finish()
    }
}

#[derive(Serialize)]
struct Header<'a> {
    typ: &'static str,
    alg: &'a str,
    jwk: &'a PublicJwk,
}

#[derive(Serialize)]
struct Claims<'a> {
    jti: &'a str,
    htm: &'a str,
    htu: &'a str,
    iat: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    ath: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nonce: Option<&'a str>,
}

/// A key as it was configured.
#[derive(Deserialize)]
struct Jwk {
    kty: String,
    crv: Option<String>,
    x: Option<String>,
    y: Option<String>,
    e: Option<String>,
    n: Option<String>,
    d: Option<IgnoredAny>,
    p: Option<IgnoredAny>,
    q: Option<IgnoredAny>,
    dp: Option<IgnoredAny>,
    dq: Option<IgnoredAny>,
    qi: Option<IgnoredAny>,
    oth: Option<IgnoredAny>,
    k: Option<IgnoredAny>,
}

impl Jwk {
    fn is_private(&self) -> bool {
        let private = [&self.d, &self.p, &self.q, &self.dp, &self.dq, &self.qi, &self.oth, &self.k];
        private.into_iter().any(Option::is_some)
    }

    fn into_public(self) -> Option<PublicJwk> {
        let text = |it: Option<String>| {
            let base64url =
                |byte| matches!(byte, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_');
            it.filter(|it| !it.is_empty() && it.bytes().all(base64url))
        };
        Some(match &*self.kty {
            "EC" => PublicJwk::Ec {
                crv: text(self.crv)?,
                kty: "EC",
                x: text(self.x)?,
                y: text(self.y)?,
            },
            "RSA" => PublicJwk::Rsa { e: text(self.e)?, kty: "RSA", n: text(self.n)? },
            "OKP" => PublicJwk::Okp { crv: text(self.crv)?, kty: "OKP", x: text(self.x)? },
            _ => return None,
        })
    }
}

impl PublicJwk {
    /// Whether a key of this type signs with the algorithm (RFC 7518, RFC 8037, RFC 8812, RFC 9864).
    fn signs_with(&self, algorithm: &str) -> bool {
        match self {
            Self::Ec { crv, .. } => matches!(
                (&**crv, algorithm),
                ("P-256", "ES256")
                    | ("P-384", "ES384")
                    | ("P-521", "ES512")
                    | ("secp256k1", "ES256K")
            ),
            Self::Rsa { .. } => {
                matches!(algorithm, "RS256" | "RS384" | "RS512" | "PS256" | "PS384" | "PS512")
            }
            Self::Okp { crv, .. } => match algorithm {
                "EdDSA" => matches!(&**crv, "Ed25519" | "Ed448"),
                algorithm => matches!(algorithm, "Ed25519" | "Ed448") && algorithm == crv,
            },
        }
    }
}

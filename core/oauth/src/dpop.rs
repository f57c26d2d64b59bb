//! Keys that the tokens of a client are bound to: DPoP (RFC 9449).

use alloc::string::String;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcp_sansio::InvalidValue;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The error code of a server that requires a proof with a nonce.
pub(super) const USE_DPOP_NONCE: &str = "use_dpop_nonce";

/// A public key and its signature algorithm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProofKey {
    algorithm: String,
    /// The members that its thumbprint covers: the key as a JWK.
    pub(crate) jwk: PublicJwk,
}

/// The members of a public key that its thumbprint covers, in their order there (RFC 7638, section
/// 3.3).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(crate) enum PublicJwk {
    Ec { crv: String, kty: &'static str, x: String, y: String },
    Rsa { e: String, kty: &'static str, n: String },
    Okp { crv: String, kty: &'static str, x: String },
}

/// The key is not a JWK (RFC 7517), is longer than 8 KiB, or lacks a member.
pub(crate) const MALFORMED: &str = "the DPoP key is not a JWK of an elliptic curve or RSA key";
/// The key has members of the private half, which must never leave the application, or is a shared
/// secret.
pub(crate) const PRIVATE: &str =
    "the DPoP key contains its private half: pass only the public half";
/// The algorithm does not sign with this type of key, or is not a signature algorithm.
pub(crate) const ALGORITHM: &str = "the algorithm does not match the DPoP key";

impl ProofKey {
    /// Converts a key.
    ///
    /// # Errors
    ///
    /// The key cannot be used for DPoP: a configuration error.
    pub(crate) fn from_jwk(algorithm: &str, jwk: Jwk) -> Result<Self, InvalidValue> {
        // RFC 9449, section 4.2.
        if jwk.is_private() {
            return Err(InvalidValue::new(PRIVATE));
        }
        let jwk = jwk.into_public().ok_or_else(|| InvalidValue::new(MALFORMED))?;
        if !jwk.signs_with(algorithm) {
            return Err(InvalidValue::new(ALGORITHM));
        }
        Ok(Self { algorithm: algorithm.into(), jwk })
    }

    /// Returns the name of the algorithm in RFC 7518.
    pub(crate) fn algorithm(&self) -> &str {
        &self.algorithm
    }

    /// Returns the thumbprint of the key (RFC 7638): the SHA-256 of its members, in base64url.
    pub(crate) fn thumbprint(&self) -> String {
        let members = serde_json::to_vec(&self.jwk).expect("strings serialize");
        URL_SAFE_NO_PAD.encode(Sha256::digest(members))
    }
}

/// A key that is not checked yet.
#[derive(Deserialize)]
pub(crate) struct Jwk {
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
    /// Whether a key of this type signs with the algorithm (RFC 7518, 8037, 8812, 9864).
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

use alloc::string::String;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

#[cfg(feature = "client")]
use crate::client::DpopKey;

/// The longest accepted key, in bytes: an RSA key of 16,384 bits has half of it.
#[cfg(feature = "client")]
const JWK_LENGTH_MAX: usize = 8192;

/// A public key and its signature algorithm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProofKey {
    algorithm: String,
    jwk: PublicJwk,
}

/// The members of a public key that its thumbprint covers, in their order there (RFC 7638, section
/// 3.3).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(super) enum PublicJwk {
    Ec { crv: String, kty: &'static str, x: String, y: String },
    Rsa { e: String, kty: &'static str, n: String },
    Okp { crv: String, kty: &'static str, x: String },
}

/// Why a key cannot be used for DPoP. A configuration error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidDpopKey {
    /// The key is not a JWK (RFC 7517), is longer than 8 KiB, or lacks a member.
    #[error("the DPoP key is not a JWK of an elliptic curve or RSA key")]
    Malformed,
    /// The key has members of the private half, which must never leave the application, or is a
    /// shared secret.
    #[error("the DPoP key contains its private half: pass only the public half")]
    Private,
    /// The algorithm does not sign with this type of key, or is not a signature algorithm.
    #[error("the algorithm does not match the DPoP key")]
    Algorithm,
}

impl ProofKey {
    /// Parses a key of the configuration.
    ///
    /// # Errors
    ///
    /// A configuration error: see [`InvalidDpopKey`].
    #[cfg(feature = "client")]
    pub(crate) fn new(key: &DpopKey) -> Result<Self, InvalidDpopKey> {
        if key.jwk.len() > JWK_LENGTH_MAX || !key.jwk.trim_ascii_start().starts_with('{') {
            return Err(InvalidDpopKey::Malformed);
        }
        let jwk: Jwk = serde_json::from_str(&key.jwk).map_err(|_| InvalidDpopKey::Malformed)?;
        Self::from_jwk(&key.algorithm, jwk)
    }

    /// Converts a key.
    ///
    /// # Errors
    ///
    /// See [`InvalidDpopKey`].
    pub(crate) fn from_jwk(algorithm: &str, jwk: Jwk) -> Result<Self, InvalidDpopKey> {
        // RFC 9449, section 4.2.
        if jwk.is_private() {
            return Err(InvalidDpopKey::Private);
        }
        let jwk = jwk.into_public().ok_or(InvalidDpopKey::Malformed)?;
        if !jwk.signs_with(algorithm) {
            return Err(InvalidDpopKey::Algorithm);
        }
        Ok(Self { algorithm: algorithm.into(), jwk })
    }

    /// Returns the name of the algorithm in RFC 7518.
    pub(crate) fn algorithm(&self) -> &str {
        &self.algorithm
    }

    #[cfg(feature = "client")]
    pub(super) const fn jwk(&self) -> &PublicJwk {
        &self.jwk
    }

    /// Returns the key as a JWK, with the members that its thumbprint covers.
    #[cfg(feature = "server")]
    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string(&self.jwk).expect("strings serialize")
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

// A key is created from the client's options.
#[cfg(all(test, feature = "client"))]
mod tests {
    use alloc::format;

    use super::*;

    const RFC_9449: &str = r#"{"kty":"EC","crv":"P-256",
        "x":"l8tFrhx-34tV3hRICRDY9zCkDlpBhF42UQUfWVAWBFs",
        "y":"9VE4jf_Ok_o64zbTTlcuNJajHmt6v9TDVrU0CdvGRDA"}"#;
    const RFC_7638: &str = concat!(
        r#"{"kty":"RSA","n":"#,
        "\"0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1",
        "L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4",
        "QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbO",
        "pbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csF",
        "Cur-kEgU8awapJzKnqDKgw\"",
        r#","e":"AQAB","alg":"RS256","kid":"2011-04-29"}"#
    );
    const RFC_8037: &str =
        r#"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;

    fn key(algorithm: &str, jwk: &str) -> Result<ProofKey, InvalidDpopKey> {
        ProofKey::new(&DpopKey::new(algorithm, jwk))
    }

    #[test]
    fn thumbprints_match_the_examples() {
        for (algorithm, jwk, thumbprint) in [
            ("ES256", RFC_9449, "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"),
            ("RS256", RFC_7638, "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"),
            ("EdDSA", RFC_8037, "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"),
        ] {
            let key = key(algorithm, jwk).expect(algorithm);
            assert_eq!(key.thumbprint(), thumbprint);
            assert_eq!(key.algorithm(), algorithm);
        }
    }

    #[test]
    fn a_private_key_is_refused() {
        for member in ["d", "p", "q", "dp", "dq", "qi", "oth", "k"] {
            for jwk in [RFC_9449, RFC_7638, RFC_8037] {
                let jwk = jwk.replacen('{', &format!(r#"{{"{member}":"AQ","#), 1);
                assert_eq!(key("ES256", &jwk), Err(InvalidDpopKey::Private), "{member}");
            }
        }
        assert_eq!(key("HS256", r#"{"kty":"oct","k":"AQ"}"#), Err(InvalidDpopKey::Private));
    }

    #[test]
    fn an_algorithm_requires_a_matching_key() {
        for algorithm in ["none", "HS256", "RS256", "ES384", "es256", ""] {
            assert_eq!(key(algorithm, RFC_9449), Err(InvalidDpopKey::Algorithm), "{algorithm}");
        }
        assert!(key("PS512", RFC_7638).is_ok());
        assert!(key("Ed25519", RFC_8037).is_ok());
        assert_eq!(key("Ed448", RFC_8037), Err(InvalidDpopKey::Algorithm));
        let agreement = RFC_8037.replace("Ed25519", "X25519");
        assert_eq!(key("EdDSA", &agreement), Err(InvalidDpopKey::Algorithm));
    }

    #[test]
    fn an_invalid_public_key_is_refused() {
        for jwk in [
            "",
            "null",
            r#"["EC","P-256","AQ","AQ"]"#,
            r#"{"kty":"EC","crv":"P-256","x":"AQ"}"#,
            r#"{"kty":"EC","crv":"P-256","x":"AQ","y":""}"#,
            r#"{"kty":"EC","crv":"P-256","x":"AQ","y":"A="}"#,
            r#"{"kty":"EC","kty":"EC","crv":"P-256","x":"AQ","y":"AQ"}"#,
            r#"{"kty":"XX","crv":"P-256","x":"AQ","y":"AQ"}"#,
            r#"{"crv":"P-256","x":"AQ","y":"AQ"}"#,
        ] {
            assert_eq!(key("ES256", jwk), Err(InvalidDpopKey::Malformed), "{jwk}");
        }
        let long = [RFC_9449, &*" ".repeat(JWK_LENGTH_MAX)].concat();
        assert_eq!(key("ES256", &long), Err(InvalidDpopKey::Malformed));
    }
}

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::Deserialize;

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

    /// Returns whether a token with this algorithm and key id may be signed with this key.
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
            && id.is_none_or(|id| self.id.as_deref() == Some(id))
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

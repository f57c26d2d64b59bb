mod key_file;

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcp_sansio_oauth::client::{ActionFailure, DpopKey};
use ring::pkcs8::Document;
use ring::rand::SystemRandom;
use ring::rsa::PublicKeyComponents;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
    KeyPair as _, RSA_PKCS1_SHA256, RSA_PSS_SHA256, RsaEncoding, RsaKeyPair,
};
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject;
use zeroize::Zeroize;

use crate::Algorithm;

pub use key_file::KeyFileError;

/// A private key with the one algorithm that it is used for.
///
/// ```
/// use mcp_sansio_oauth::client::{ClientOptions, SigningRequest};
/// use mcp_sansio_handlers::Authorization;
/// use mcp_sansio_auth::Signer;
///
/// let signer = Signer::generate_es256()?;
/// let options = ClientOptions::code("http://127.0.0.1:8910/callback")?.dpop(&signer.dpop_key())?;
/// let authorization = Authorization::new(options).on_sign(move |request: SigningRequest| {
///     Ok(signer.sign(&request.algorithm, request.input.as_bytes())?)
/// });
/// # let _ = authorization;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// It is never shown. `ring`, which holds it, does not overwrite it in memory at the end; all that is
/// made here on the way to it is overwritten.
pub struct Signer {
    algorithm: Algorithm,
    key: Key,
    random: SystemRandom,
}

enum Key {
    Ecdsa(EcdsaKeyPair),
    Rsa(RsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

/// A text is not a private key that can be used. The fault of whoever gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// It is no PEM with a private key in it, or the key is malformed, encrypted, or too weak.
    #[error("not a private key in PKCS#8 PEM, or one that must not be used")]
    NotAKey,
    /// It is a private key in an older form.
    #[error("the private key is not in PKCS#8: convert it with `openssl pkcs8 -topk8 -nocrypt`")]
    NotPkcs8,
    /// It is a key for other algorithms.
    #[error("the private key is not one for {0}")]
    OtherAlgorithm(Algorithm),
    /// The system has no random numbers.
    #[error("the system has no random numbers")]
    NoEntropy,
}

/// Something cannot be signed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SignError {
    /// The signature is to have another algorithm than the key is for: the client's options name
    /// another one than the signer has.
    #[error("the key signs with {has}, not with the algorithm asked for")]
    OtherAlgorithm {
        /// What the key is for.
        has: Algorithm,
    },
    /// The system has no random numbers.
    #[error("the system has no random numbers")]
    NoEntropy,
}

impl Signer {
    /// A private key in PKCS#8, as `-----BEGIN PRIVATE KEY-----`. RSA keys have 2048 to 4096 bits.
    ///
    /// # Errors
    ///
    /// See [`KeyError`].
    pub fn from_pkcs8_pem(pem: &[u8], algorithm: Algorithm) -> Result<Self, KeyError> {
        let mut der = PrivateKeyDer::from_pem_slice(pem).map_err(|_| KeyError::NotAKey)?;
        let signer = match &der {
            PrivateKeyDer::Pkcs8(der) => Self::from_pkcs8(der.secret_pkcs8_der(), algorithm),
            _ => Err(KeyError::NotPkcs8),
        };
        der.zeroize();
        signer
    }

    /// A new key for ES256 that is nowhere else: for DPoP where no tokens are kept. Where they are,
    /// it takes [`open_es256`](Self::open_es256): they are of no use without their key.
    ///
    /// # Errors
    ///
    /// [`KeyError::NoEntropy`].
    pub fn generate_es256() -> Result<Self, KeyError> {
        Self::from_pkcs8(generate_es256()?.as_ref(), Algorithm::Es256)
    }

    fn from_pkcs8(der: &[u8], algorithm: Algorithm) -> Result<Self, KeyError> {
        let random = SystemRandom::new();
        match Key::read(der, algorithm, &random) {
            Some(key) => Ok(Self { algorithm, key, random }),
            // RS256 and PS256 read the same keys.
            None if Algorithm::ALL.into_iter().any(|it| Key::read(der, it, &random).is_some()) => {
                Err(KeyError::OtherAlgorithm(algorithm))
            }
            None => Err(KeyError::NotAKey),
        }
    }

    /// The algorithm that the key is used for.
    #[must_use]
    pub const fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Signs. The signature is raw, as a JSON Web Signature has it before base64: `r` and `s` one
    /// after the other for ECDSA.
    ///
    /// # Errors
    ///
    /// See [`SignError`].
    pub fn sign(&self, algorithm: &str, input: &[u8]) -> Result<Vec<u8>, SignError> {
        if algorithm != self.algorithm.as_str() {
            return Err(SignError::OtherAlgorithm { has: self.algorithm });
        }
        match &self.key {
            Key::Ecdsa(key) => {
                let signature = key.sign(&self.random, input);
                Ok(signature.map_err(|_| SignError::NoEntropy)?.as_ref().to_vec())
            }
            Key::Ed25519(key) => Ok(key.sign(input).as_ref().to_vec()),
            Key::Rsa(key) => {
                let padding: &dyn RsaEncoding = match self.algorithm {
                    Algorithm::Ps256 => &RSA_PSS_SHA256,
                    _ => &RSA_PKCS1_SHA256,
                };
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(padding, &self.random, input, &mut signature)
                    .map_err(|_| SignError::NoEntropy)?;
                Ok(signature)
            }
        }
    }

    /// The public half as a JWK (RFC 7517), in JSON, with the members that RFC 7638 makes a
    /// thumbprint of and no others.
    #[must_use]
    pub fn public_jwk(&self) -> String {
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        match &self.key {
            Key::Ecdsa(key) => {
                // 0x04, then the coordinates.
                let point = key.public_key().as_ref();
                let (x, y) = point[1..].split_at((point.len() - 1) / 2);
                let curve = if self.algorithm == Algorithm::Es384 { "P-384" } else { "P-256" };
                let (x, y) = (encode(x), encode(y));
                format!(r#"{{"crv":"{curve}","kty":"EC","x":"{x}","y":"{y}"}}"#)
            }
            Key::Ed25519(key) => {
                let x = encode(key.public_key().as_ref());
                format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}"#)
            }
            Key::Rsa(key) => {
                let public = PublicKeyComponents::<Vec<u8>>::from(key.public());
                let (n, e) = (encode(&public.n), encode(&public.e));
                format!(r#"{{"e":"{e}","kty":"RSA","n":"{n}"}}"#)
            }
        }
    }

    /// The key as the options of a client take it, to bind tokens to.
    #[must_use]
    pub fn dpop_key(&self) -> DpopKey {
        DpopKey { algorithm: self.algorithm.as_str().to_owned(), jwk: self.public_jwk() }
    }
}

impl fmt::Debug for Signer {
    /// Leaves the key out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer").field("algorithm", &self.algorithm).finish_non_exhaustive()
    }
}

impl Key {
    fn read(der: &[u8], algorithm: Algorithm, random: &SystemRandom) -> Option<Self> {
        let ecdsa =
            |parameters| EcdsaKeyPair::from_pkcs8(parameters, der, random).ok().map(Self::Ecdsa);
        match algorithm {
            Algorithm::Es256 => ecdsa(&ECDSA_P256_SHA256_FIXED_SIGNING),
            Algorithm::Es384 => ecdsa(&ECDSA_P384_SHA384_FIXED_SIGNING),
            Algorithm::Rs256 | Algorithm::Ps256 => RsaKeyPair::from_pkcs8(der).ok().map(Self::Rsa),
            // OpenSSL writes such keys without their public half.
            Algorithm::EdDsa => {
                Ed25519KeyPair::from_pkcs8_maybe_unchecked(der).ok().map(Self::Ed25519)
            }
        }
    }
}

fn generate_es256() -> Result<Document, KeyError> {
    EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new())
        .map_err(|_| KeyError::NoEntropy)
}

impl From<SignError> for ActionFailure {
    fn from(failure: SignError) -> Self {
        Self::Failed(failure.to_string())
    }
}

#[cfg(test)]
pub(crate) mod tests;

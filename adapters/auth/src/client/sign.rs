#[cfg(test)]
pub(crate) mod tests;

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
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
use zeroize::{Zeroize, Zeroizing};

use crate::Algorithm;
use crate::client::private_file::{
    Lock, PrivateFileError, ReadError, check_parent, create_parent, read, replace, sibling,
};

/// A private key for one signature algorithm.
///
/// ```
/// use mcp_sansio_oauth::client::{AuthorizationOptions, SigningRequest};
/// use mcp_sansio_handlers::Authorization;
/// use mcp_sansio_auth::Signer;
///
/// let signer = Signer::generate_es256()?;
/// let options = AuthorizationOptions::code("http://127.0.0.1:8910/callback")?.dpop(&signer.dpop_key())?;
/// let authorization = Authorization::new(options).on_sign(move |request: SigningRequest| {
///     Ok(signer.sign(&request.algorithm, request.input.as_bytes())?)
/// });
/// # let _ = authorization;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Its `Debug` output omits the key. `ring`, which holds the key, does not overwrite it in memory
/// when dropped; intermediate copies made here are overwritten.
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

/// A text is not a usable private key: a fault of its author.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// It is not PEM with a private key, or the key is malformed, encrypted, or too weak.
    #[error("not a usable private key in PKCS#8 PEM: it is malformed, encrypted or too weak")]
    NotAKey,
    /// It is a private key in an older format.
    #[error("the private key is not in PKCS#8: convert it with `openssl pkcs8 -topk8 -nocrypt`")]
    NotPkcs8,
    /// It is a key for another algorithm.
    #[error("the private key is not suitable for {0}")]
    OtherAlgorithm(Algorithm),
    /// The requested algorithm is not that of the key: the client's options name another one than
    /// the signer has.
    #[error("the key signs with {0}, not with the requested algorithm")]
    NotRequested(Algorithm),
    /// A text is not the name of an [`Algorithm`].
    #[error("unknown signature algorithm; use ES256, ES384, RS256, PS256 or EdDSA")]
    UnknownAlgorithm,
    /// The system has no entropy.
    #[error("the system has no entropy")]
    NoEntropy,
}

impl Signer {
    /// Reads a private key in PKCS#8, as `-----BEGIN PRIVATE KEY-----`. RSA keys have 2048 to 4096
    /// bits.
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

    /// Generates a key for ES256 that is not stored: for DPoP without stored tokens. Stored tokens
    /// are useless without their key, so use [`open_es256`](Self::open_es256) with those.
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

    /// Returns the algorithm of the key.
    #[must_use]
    pub const fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Signs `input`. The signature is raw, as in a JSON Web Signature before base64: `r` and `s`
    /// concatenated for ECDSA.
    ///
    /// # Errors
    ///
    /// See [`KeyError`].
    pub fn sign(&self, algorithm: &str, input: &[u8]) -> Result<Vec<u8>, KeyError> {
        if algorithm != self.algorithm.as_str() {
            return Err(KeyError::NotRequested(self.algorithm));
        }
        match &self.key {
            Key::Ecdsa(key) => {
                let signature = key.sign(&self.random, input);
                Ok(signature.map_err(|_| KeyError::NoEntropy)?.as_ref().to_vec())
            }
            Key::Ed25519(key) => Ok(key.sign(input).as_ref().to_vec()),
            Key::Rsa(key) => {
                let padding: &dyn RsaEncoding = match self.algorithm {
                    Algorithm::Ps256 => &RSA_PSS_SHA256,
                    _ => &RSA_PKCS1_SHA256,
                };
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(padding, &self.random, input, &mut signature)
                    .map_err(|_| KeyError::NoEntropy)?;
                Ok(signature)
            }
        }
    }

    /// Returns the public key as a JWK (RFC 7517), in JSON, with exactly the members that the
    /// thumbprint of RFC 7638 uses.
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

    /// Returns the key for the options of a client, to bind tokens to.
    #[must_use]
    pub fn dpop_key(&self) -> DpopKey {
        DpopKey::new(self.algorithm.as_str(), self.public_jwk())
    }
}

mcp_sansio::partial_debug! {
    /// Omits the key.
    impl Debug for Signer { algorithm, .. }
}

impl Key {
    fn read(der: &[u8], algorithm: Algorithm, random: &SystemRandom) -> Option<Self> {
        let ecdsa =
            |parameters| EcdsaKeyPair::from_pkcs8(parameters, der, random).ok().map(Self::Ecdsa);
        match algorithm {
            Algorithm::Es256 => ecdsa(&ECDSA_P256_SHA256_FIXED_SIGNING),
            Algorithm::Es384 => ecdsa(&ECDSA_P384_SHA384_FIXED_SIGNING),
            Algorithm::Rs256 | Algorithm::Ps256 => RsaKeyPair::from_pkcs8(der).ok().map(Self::Rsa),
            // OpenSSL writes such keys without the public key.
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

impl From<KeyError> for ActionFailure {
    fn from(failure: KeyError) -> Self {
        Self::Failed(failure.to_string())
    }
}

// ------------------------------------------------------------------ key file

impl Signer {
    /// Reads the key for ES256 in the file at `path`; if the file does not exist, generates a key
    /// and writes it, as PKCS#8 PEM that only the owner can read. Concurrent processes get the same
    /// key.
    ///
    /// # Errors
    ///
    /// See [`PrivateFileError`]. An existing file is never changed.
    pub fn open_es256(path: impl AsRef<Path>) -> Result<Self, PrivateFileError> {
        let path = path.as_ref();
        if let Some(signer) = read_key(path)? {
            return Ok(signer);
        }
        let system = |error| PrivateFileError::system(path, error);
        create_parent(path).map_err(system)?;
        let unread = |why| PrivateFileError::from_read_error(path, why);
        check_parent(path).map_err(unread)?;
        let _lock = Lock::acquire(&sibling(path, ".lock")).map_err(unread)?;
        // Another process may have written it first.
        if let Some(signer) = read_key(path)? {
            return Ok(signer);
        }
        let key = |fault| key_error(path, fault);
        let der = generate_es256().map_err(key)?;
        replace(path, &pem(der.as_ref())).map_err(system)?;
        Self::from_pkcs8(der.as_ref(), Algorithm::Es256).map_err(key)
    }
}

/// Reads the key in a file; `None` if the file does not exist.
fn read_key(path: &Path) -> Result<Option<Signer>, PrivateFileError> {
    match read(path) {
        Ok(None) => Ok(None),
        Ok(Some(pem)) => {
            let pem = Zeroizing::new(pem);
            Signer::from_pkcs8_pem(&pem, Algorithm::Es256)
                .map(Some)
                .map_err(|fault| key_error(path, fault))
        }
        Err(ReadError::TooLong) => Err(key_error(path, KeyError::NotAKey)),
        Err(why) => Err(PrivateFileError::from_read_error(path, why)),
    }
}

fn key_error(path: &Path, fault: KeyError) -> PrivateFileError {
    PrivateFileError::Key { path: path.to_path_buf(), fault }
}

fn pem(der: &[u8]) -> Zeroizing<Vec<u8>> {
    let text = Zeroizing::new(STANDARD.encode(der));
    let mut pem = Zeroizing::new(Vec::with_capacity(2 * text.len() + 64));
    pem.extend_from_slice(b"-----BEGIN PRIVATE KEY-----\n");
    for line in text.as_bytes().chunks(64) {
        pem.extend_from_slice(line);
        pem.push(b'\n');
    }
    pem.extend_from_slice(b"-----END PRIVATE KEY-----\n");
    pem
}

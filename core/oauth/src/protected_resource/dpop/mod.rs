//! Tokens that are bound to a key of the client: DPoP (RFC 9449).

mod nonce;
mod proof;
mod replay;

use alloc::boxed::Box;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use mcp_sansio::http::{AuthorizationField, RequestHead};
use mcp_sansio_sync::Mutex;

use super::{InvalidResource, ProtectedResource};

use nonce::NonceKey;
pub use proof::{DpopProof, PROOF_LENGTH_MAX};
use proof::{Expected, ProofFault};
use replay::{SeenProofs, Unrecorded};

/// The tolerated difference between the time of a proof and that of the server. 60 s: proofs are
/// made for one request, and clocks of clients are less exact than those of servers.
const WINDOW: Duration = Duration::from_secs(60);
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

impl fmt::Debug for ProofSignature<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProofSignature").field("algorithm", &self.algorithm).finish_non_exhaustive()
    }
}

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
    /// 60 s by default, and at least 1 s. Proofs are remembered for up to twice as long.
    #[must_use]
    pub const fn window(mut self, window: Duration) -> Self {
        self.window = if window.as_secs() == 0 { 1 } else { window.as_secs() };
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

    /// Sets how many proofs are remembered, to refuse them if they are sent again. 65,536 by default,
    /// with about 128 bytes each; the proofs of one key have a quarter of it. Requests beyond the
    /// limit are told to retry.
    ///
    /// Nodes with a shared store record the proofs there as well. Other processes that serve the same
    /// resource do not share their records: require [nonces](Self::nonces) with a short lifetime,
    /// or a shorter [window](Self::window).
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
        let id = replay::ProofId::new(proof.thumbprint(), proof.jti());
        let (expiry, limit) = (proof.iat().saturating_add(self.window), self.proofs_max);
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
#[non_exhaustive]
pub struct UsedProof {
    /// Identifies the proof: a hash of its key and its id, as 64 hexadecimal digits.
    pub id: String,
    /// When it could no longer be used again, in seconds since 1970.
    pub expires_at: u64,
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
    /// Accepts tokens that are bound to a key of the client, from clients that prove with each request
    /// that they have the key.
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
        self.dpop = Some(mcp_sansio_sync::Arc::new(verifier));
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

impl fmt::Debug for DpopVerifier {
    /// Omits the secret of the nonces.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DpopVerifier")
            .field("algorithms", &self.algorithms)
            .field("required", &self.required)
            .finish_non_exhaustive()
    }
}

// The proofs are made with the client's code.
#[cfg(all(test, feature = "client"))]
mod tests;

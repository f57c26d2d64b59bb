//! Access tokens that are JSON Web Tokens (RFC 9068).

mod jwt;
mod key;
mod verifier;

use mcp_sansio_oauth::protected_resource::{DpopVerifier, ProofSignature, TokenRefusal};

use crate::Algorithm;

use key::{Jwk, Key};

pub use verifier::JwtVerifier;

// ------------------------------------------------------------------ error

/// Why a token is refused. Meant for a log, as it contains nothing of the token. It is the cause of
/// a [`TokenRefusal`], which clients are not told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JwtError {
    /// It is not a JSON Web Token, is too long, or lacks claims of an access token.
    #[error("the token is malformed: {0}")]
    Malformed(&'static str),
    /// It is unsigned, or its algorithm is not allowed.
    #[error("the token is not signed with an allowed algorithm")]
    Algorithm,
    /// It is another kind of token.
    #[error("the token is not an access token")]
    Type,
    /// Another issuer has issued it.
    #[error("the token was issued by another issuer")]
    Issuer,
    /// It is for another resource.
    #[error("the token is for another audience")]
    Audience,
    /// It has expired.
    #[error("the token has expired")]
    Expired,
    /// It is not valid yet.
    #[error("the token is not valid yet")]
    Early,
    /// It is bound to something other than a key of the client, such as a certificate (RFC 8705).
    #[error("the token is bound to something that cannot be checked")]
    Bound,
    /// The known keys of the issuer do not include its key.
    #[error("the token is signed with an unknown key")]
    Key,
    /// The signature does not match.
    #[error("the signature of the token is invalid")]
    Signature,
    /// The keys of the issuer could not be fetched, for this reason.
    #[error("cannot fetch the keys of the issuer: {0}")]
    Unavailable(String),
}

impl From<JwtError> for TokenRefusal {
    fn from(fault: JwtError) -> Self {
        let refusal = match fault {
            JwtError::Expired => Self::Expired,
            JwtError::Unavailable(_) => Self::Unavailable,
            _ => Self::Invalid,
        };
        refusal.because(fault)
    }
}

// ------------------------------------------------------------------ dpop

/// Creates a verifier for the proofs of clients whose tokens are bound to a key (DPoP, RFC 9449),
/// with all [algorithms](Algorithm).
///
/// ```
/// use mcp_sansio_auth::dpop_verifier;
/// use mcp_sansio_oauth::protected_resource::ProtectedResource;
///
/// let resource = ProtectedResource::new("https://mcp.example.com/mcp", ["https://auth.example.com"])?
///     .dpop(dpop_verifier().required())?;
/// # Ok::<(), mcp_sansio_oauth::protected_resource::InvalidResource>(())
/// ```
#[must_use]
pub fn dpop_verifier() -> DpopVerifier {
    DpopVerifier::new(Algorithm::ALL.map(Algorithm::as_str), is_valid)
}

fn is_valid(proof: &ProofSignature<'_>) -> bool {
    let Ok(algorithm) = proof.algorithm().parse() else { return false };
    let key = serde_json::from_str::<Jwk>(proof.jwk()).ok().and_then(Key::read);
    key.is_some_and(|key| {
        key.matches(algorithm, None) && key.verify(algorithm, proof.input(), proof.signature())
    })
}

#[cfg(test)]
mod tests;

use mcp_sansio_oauth::protected_resource::{DpopVerifier, ProofSignature};

use super::key::{Jwk, Key};
use crate::Algorithm;

/// Creates a verifier for the proofs of clients whose tokens are bound to a key (DPoP, RFC 9449), with
/// all [algorithms](Algorithm).
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

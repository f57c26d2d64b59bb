//! Proofs that a client holds the key its tokens are bound to: DPoP (RFC 9449).

mod key;
#[cfg(feature = "client")]
mod proof;

pub use key::InvalidDpopKey;
#[cfg(feature = "server")]
pub(super) use key::Jwk;
pub(super) use key::ProofKey;
#[cfg(feature = "client")]
use key::PublicJwk;
#[cfg(feature = "client")]
pub(super) use proof::Nonces;
#[cfg(feature = "client")]
pub(super) use proof::{ProvenRequest, asks_for_nonce};

/// The error code of a server that requires a proof with a nonce.
pub(super) const USE_DPOP_NONCE: &str = "use_dpop_nonce";

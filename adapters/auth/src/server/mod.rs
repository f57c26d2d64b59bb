//! Access tokens that are JSON Web Tokens (RFC 9068).

mod claims;
mod document;
mod dpop;
mod error;
mod jwt;
mod key;
mod key_cache;
mod key_set;
mod verifier;

#[cfg(test)]
mod tests;

pub use dpop::dpop_verifier;
pub use error::JwtError;
pub use verifier::JwtVerifier;

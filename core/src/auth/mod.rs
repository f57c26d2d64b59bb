//! What a client needs to authorize itself with OAuth, as pure functions and types.
//!
//! A server that wants a token answers 401 with challenges ([`challenge`]).

pub mod challenge;
pub mod pkce;

pub use challenge::{BearerChallenge, Challenge, ChallengeScheme};
pub use pkce::{CodeVerifier, State};

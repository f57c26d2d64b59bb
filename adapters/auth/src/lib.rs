//! Operating system support for authorization with `mcp-sansio`, for any runtime.
//!
//! A client whose user signs in meets these items, in this order:
//!
//! 1. `open_in_browser`: sends the user to the authorization server.
//! 2. `Loopback` of `mcp-sansio-tokio`, `mcp-sansio-async-std` and `mcp-sansio-std`: receives the
//!    browser that returns the user to the client.
//! 3. `FileStore`: stores the tokens in a file that only its owner can read.
//! 4. `with_system_support`: provides entropy and the time of day to a `Host`. `connect` of the
//!    adapters does this.
//! 5. `Signer`: a private key for client authentication, or for binding
//!    tokens to it (DPoP).
//!
//! A server that checks access tokens has `JwtVerifier` if they are
//! JSON Web Tokens, and `dpop_verifier` for tokens that are bound to a key of the client.
//!
//! The core decides which requests are made, and checks redirects and the use of tokens.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod algorithm;
mod client;
mod server;

pub use algorithm::Algorithm;
pub use client::*;
pub use server::{JwtError, JwtVerifier, dpop_verifier};

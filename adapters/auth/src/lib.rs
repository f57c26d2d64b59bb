//! Operating system support for authorization with `mcp-sansio`, for any runtime.
//!
//! A client whose user signs in meets these items, in this order; the first four need the feature
//! `client`:
//!
//! 1. [`open_in_browser`]: sends the user to the authorization server.
//! 2. [`loopback`]: responses to the browser that returns the user to the client. The sockets are
//!    those of `Loopback` in `mcp-sansio-tokio`, `mcp-sansio-async-std` and `mcp-sansio-std`.
//! 3. [`FileStore`]: stores the tokens in a file that only its owner can read.
//! 4. [`with_system_support`]: provides entropy and the time of day to a `Host`. `connect` of the
//!    adapters does this.
//! 5. `Signer`, with the feature `sign`: a private key for client authentication, or for binding
//!    tokens to it (DPoP).
//!
//! A server that checks access tokens has `JwtVerifier`, with the feature `verify`, if they are
//! JSON Web Tokens, and `dpop_verifier` for tokens that are bound to a key of the client.
//!
//! The core decides which requests are made, and checks redirects and the use of tokens.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

#[cfg(any(feature = "sign", feature = "verify"))]
mod algorithm;
#[cfg(feature = "client")]
mod browser;
#[cfg(feature = "client")]
mod file_store;
#[cfg(feature = "client")]
mod lock;
#[cfg(feature = "client")]
pub mod loopback;
#[cfg(feature = "client")]
mod offload;
#[cfg(feature = "client")]
mod private_file;
#[cfg(feature = "sign")]
mod sign;
#[cfg(feature = "client")]
mod system_support;
#[cfg(feature = "verify")]
mod verify;

#[cfg(any(feature = "sign", feature = "verify"))]
pub use algorithm::{Algorithm, UnknownAlgorithm};
#[cfg(feature = "client")]
pub use browser::{BrowserError, open_in_browser};
#[cfg(feature = "client")]
pub use file_store::{FileStore, FileStoreError};
#[cfg(feature = "client")]
pub use private_file::UntrustedPath;
#[cfg(feature = "sign")]
pub use sign::{KeyError, KeyFileError, SignError, Signer};
#[cfg(feature = "client")]
pub use system_support::with_system_support;
#[cfg(feature = "verify")]
pub use verify::{JwtError, JwtVerifier, dpop_verifier};

//! What authorization with `mcp-sansio` needs of the machine that it runs on, for any runtime.
//!
//! With the feature `client`:
//!
//! * [`FileStore`]: keeps a client's tokens in a file that nobody else reads.
//! * [`loopback`]: what a client says to the browser that brings its user back. The sockets are those
//!   of the `Loopback` in `mcp-sansio-tokio`, `mcp-sansio-async-std` and `mcp-sansio-std`.
//! * [`open_in_browser`]: sends the user to the authorization server.
//! * [`with_system_support`]: gives a client entropy and the time of day.
//!
//! And by features of their own:
//!
//! * `Signer`, with the feature `sign`: a private key that a client authenticates with, or that its
//!   tokens are bound to (DPoP).
//! * `JwtVerifier`, with the feature `verify`: checks access tokens that are JSON Web Tokens, for
//!   servers.
//!
//! Which request is made when, what a redirect must have in it and which token is good for what is
//! decided by the core.

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
pub use verify::{JwtError, JwtVerifier};

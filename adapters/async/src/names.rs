//! Public names common to all runtimes: the adapter for each runtime exports all of them.

#[cfg(feature = "jsonschema")]
pub use crate::SchemaValidator;
#[cfg(feature = "client")]
pub use crate::child::names::*;
pub use crate::clock::unix_time;
#[cfg(feature = "extensions")]
pub use crate::extensions::{skills, task_settings};
#[cfg(feature = "futures")]
pub use crate::futures::MessageStream;
#[cfg(feature = "http-client")]
pub use crate::http_client::names::*;
#[cfg(feature = "http-server")]
pub use crate::http_server::names::*;
#[cfg(feature = "auth")]
pub use crate::loopback::names::*;
pub use crate::{ByteStream, DriveError, Driver, Error, StreamSettings, Timer, seed};
#[cfg(any(feature = "http-client", feature = "http-server"))]
pub use mcp_sansio::http;
pub use mcp_sansio::{
    Backoff, Caller, Credentials, Era, Instant, Principal, Printable, Revision, Revisions, catalog,
    jsonrpc, peer, protocol,
};
#[cfg(all(feature = "auth", feature = "http-server"))]
pub use mcp_sansio_auth::{JwtError, JwtVerifier, dpop_verifier};
#[cfg(feature = "extensions")]
pub use mcp_sansio_extensions::apps;
pub use mcp_sansio_handlers::*;
#[cfg(any(feature = "auth", feature = "http-server"))]
pub use mcp_sansio_oauth as auth;

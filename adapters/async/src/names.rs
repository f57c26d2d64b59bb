//! Public names common to all runtimes: the adapter for each runtime exports all of them at its
//! root, so that a program changes its runtime in one `use`.
//!
//! The root has what programs use. What only rare programs and authors of adapters use is one
//! module below: [`adapter`], [`handlers`] and [`machine`] are the crates `mcp-sansio-async`,
//! `mcp-sansio-handlers` and `mcp-sansio`, and `auth` has all of authorization.

#[cfg(any(feature = "auth", feature = "http-server"))]
pub mod auth {
    //! Authorization: the crates `mcp-sansio-oauth`, and with the feature `auth` `mcp-sansio-auth`.

    #[cfg(feature = "auth")]
    pub use mcp_sansio_auth::*;
    pub use mcp_sansio_oauth::*;
}

#[cfg(feature = "client")]
pub use crate::child::names::*;
pub use crate::clock::unix_time;
pub use crate::error::Error;
#[cfg(feature = "extensions")]
pub use crate::extensions::{skills, task_settings};
pub use crate::futures::message_stream::MessageStream;
#[cfg(feature = "http-client")]
pub use crate::http_client::names::*;
#[cfg(feature = "http-server")]
pub use crate::http_server::names::*;
#[cfg(feature = "auth")]
pub use crate::loopback::names::*;
#[cfg(feature = "jsonschema")]
pub use crate::schema_validator::SchemaValidator;
pub use crate::{self as adapter, panic_guard, seed};
#[cfg(any(feature = "http-client", feature = "http-server"))]
pub use mcp_sansio::http;
pub use mcp_sansio::{
    self as machine, Caller, Capabilities, Capability, ErrorCode, LoggingLevel, Method, Principal,
    Revision, Revisions, Side, jsonrpc, peer, protocol,
};
#[cfg(all(feature = "auth", feature = "http-server"))]
pub use mcp_sansio_auth::JwtVerifier;
#[cfg(feature = "extensions")]
pub use mcp_sansio_extensions::apps;
pub use mcp_sansio_handlers::{
    self as handlers, Call, Connections, Context, Elicit, HandlerError, IntoHandlerError, Local,
    NoArguments, ReadResource, Server, ServerHandle, ServerItem, State, Structured, blocking,
    extension, fallible, handler, middleware,
};

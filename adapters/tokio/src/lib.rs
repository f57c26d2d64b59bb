//! Endpoints of `mcp-sansio` on tokio: over standard streams, sockets, and child processes.
//!
//! * A server on its standard streams: [`serve_stdio`].
//! * A client with a server that it starts: [`spawn`].
//! * A server or a client on a socket: [`drive`] a [`TokioStream`].
//! * A client of a server on HTTP, with the feature `http-client`: `connect`.
//! * The same for a server that wants a token, with the feature `auth`: `Authorization`, and
//!   `Loopback` for the user who signs in; with the feature `sign` `Signer`, for clients that prove who
//!   they are with a private key, or bind tokens to one.
//! * A server on HTTP, with the feature `http-server`: `serve_http` and `HttpService`. It can want
//!   tokens; with the feature `verify` there is `JwtVerifier` to check them.
//! * HTTP exchanges for anything else, with the feature `http-client`: `Connector`.
//!
//! ```no_run
//! use mcp_sansio_tokio::{self as mcp, Call, NoArguments, Server};
//!
//! # async fn run() -> Result<(), mcp::Error> {
//! let server = Server::new("clock", "1.0.0")
//!     .tool("now", "The time", async |_: Call<NoArguments>| "about noon");
//! mcp::serve_stdio(server).await
//! # }
//! ```
//!
//! Any flavour of the runtime will do, with I/O and time enabled. Nothing here knows the protocol.

#![forbid(unsafe_code)]

mod child;
mod clock;
#[cfg(unix)]
mod descriptor;
#[cfg(feature = "http-client")]
mod http_client;
#[cfg(feature = "http-server")]
mod http_service;
#[cfg(feature = "auth")]
mod loopback;
mod runtime;
mod serve;
mod standard_streams;
mod stream;
mod timer;

pub use child::{ChildServer, ChildStream, Connection, TokioProcess, spawn};
pub use clock::now;
#[cfg(feature = "http-client")]
pub use http_client::{
    ConnectError, Connector, ConnectorBuilder, ConnectorError, FetchError, HttpConnection, Proxy,
    ResponseBody, TokioExchange, TokioExchanger, connect, connect_with, drive_http,
};
#[cfg(feature = "http-server")]
pub use http_service::{EventArchive, HttpListener, HttpService, ServedBody, Unread, serve_http};
#[cfg(feature = "auth")]
pub use loopback::Loopback;
#[cfg(any(feature = "auth", feature = "http-server"))]
pub use mcp_sansio::auth;
#[cfg(feature = "auth")]
pub use mcp_sansio::auth::client::{
    ActionFailure, AssertionRequest, AuthorizationRequest, Credential, CredentialKey,
    SigningRequest,
};
#[cfg(feature = "http-server")]
pub use mcp_sansio::auth::{Operation, ProtectedResource, TokenCheck, TokenRefusal, VerifiedToken};
#[cfg(any(feature = "http-client", feature = "http-server"))]
pub use mcp_sansio::http;
#[cfg(feature = "http-server")]
pub use mcp_sansio::http::{AllowedHosts, ServerOptions};
#[cfg(feature = "http-client")]
pub use mcp_sansio::http::{ClientOptions, Location};
pub use mcp_sansio::{Principal, Revision, Revisions, peer, protocol};
pub use mcp_sansio_async::child::{ExitReport, Graces, SpawnError, Stderr};
pub use mcp_sansio_async::clock::unix_time;
pub use mcp_sansio_async::{ByteStream, DriveError, Driver, Error, Settings, Timer, seed};
#[cfg(feature = "http-client")]
pub use mcp_sansio_async::{Exchange, Exchanger, HttpDriver};
#[cfg(any(feature = "sign", feature = "verify"))]
pub use mcp_sansio_auth::{Algorithm, UnknownAlgorithm};
#[cfg(feature = "auth")]
pub use mcp_sansio_auth::{
    BrowserError, FileStore, FileStoreError, Untrusted, equip, loopback::InvalidRedirectAddress,
    open_in_browser,
};
#[cfg(feature = "verify")]
pub use mcp_sansio_auth::{DOCUMENT_LENGTH_MAX, JwtFault, JwtVerifier};
#[cfg(feature = "sign")]
pub use mcp_sansio_auth::{KeyFault, KeyFileError, SignFailure, Signer};
pub use mcp_sansio_handlers as handler;
pub use mcp_sansio_handlers::{
    Answer, Ask, Call, Client, ClientError, CommandError, Elicit, Host, NoArguments, Question,
    Read, Remote, Server, Structured,
};
#[cfg(feature = "auth")]
pub use mcp_sansio_handlers::{Authorization, CredentialStore, MemoryStore};
pub use runtime::TokioRuntime;
#[cfg(feature = "tasks")]
pub use serve::task_settings;
pub use serve::{drive, drive_with, serve, serve_stdio};
pub use standard_streams::StandardStreams;
pub use stream::TokioStream;
pub use timer::TokioTimer;

//! Endpoints of `mcp-sansio` on smol and on async-std, which smol succeeds: over standard streams,
//! sockets, and child processes.
//!
//! * A server on its standard streams: [`serve_stdio`].
//! * A client with a server that it starts: [`spawn`].
//! * A server or a client on a socket: [`drive`] a [`SocketStream`].
//! * A client of a server on HTTP, with the feature `http-client`: `connect`.
//! * The same for a server that wants a token, with the feature `auth`: `Authorization`, and
//!   `Loopback` for the user who signs in; with the feature `sign` `Signer`, for clients that prove who
//!   they are with a private key, or bind tokens to one.
//! * A server on HTTP, with the feature `http-server`: `serve_http` and `HttpService`. It can want
//!   tokens; with the feature `verify` there is `JwtVerifier` to check them.
//! * HTTP exchanges for anything else, with the feature `http-client`: `Connector`.
//!
//! ```no_run
//! use mcp_sansio_async_std::{self as mcp, Call, NoArguments, Server};
//!
//! # async fn run() -> Result<(), mcp::Error> {
//! let server = Server::new("clock", "1.0.0")
//!     .tool("now", "The time", async |_: Call<NoArguments>| "about noon");
//! mcp::serve_stdio(server).await
//! # }
//! ```
//!
//! Both runtimes wait for sockets and alarms with `async-io`, which any executor may poll; where
//! something is spawned, the features `smol` and `async-std` say on whose threads. With both it is
//! the executor of the task that asks, which is smol's outside of the tasks of async-std. Nothing
//! here knows the protocol.

#![forbid(unsafe_code)]

#[cfg(not(any(feature = "smol", feature = "async-std")))]
compile_error!("choose whose executor runs tasks: the feature `smol`, or `async-std`");

mod child;
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
mod socket_stream;
mod standard_streams;
mod timer;

pub use child::{AsyncProcess, ChildInput, ChildServer, ChildStream, Command, Connection, spawn};
#[cfg(feature = "http-client")]
pub use http_client::{
    AsyncExchange, AsyncExchanger, ConnectError, Connector, ConnectorBuilder, ConnectorError,
    FetchError, HttpConnection, ResponseBody, connect, connect_with, drive_http,
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
pub use mcp_sansio_async::clock::{now, unix_time};
pub use mcp_sansio_async::{
    ByteStream, DriveError, Driver, Error, FuturesStream, Settings, Timer, seed,
};
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
pub use runtime::AsyncRuntime;
#[cfg(feature = "tasks")]
pub use serve::task_settings;
pub use serve::{drive, drive_with, serve, serve_stdio};
pub use socket_stream::SocketStream;
pub use standard_streams::StandardStreams;
pub use timer::AsyncTimer;

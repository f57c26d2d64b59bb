//! Endpoints of `mcp-sansio` on smol and on its predecessor async-std: over standard streams,
//! sockets, and child processes.
//!
//! Programs start from a [`Server`] with handlers, or from a [`Host`] that returns a [`Client`],
//! and run it with one of these:
//!
//! * A server on its standard streams: [`serve_stdio`].
//! * A client that starts its server: [`spawn`].
//! * A server or a client on a socket, or any reader and writer: [`serve()`] and [`connect_over`],
//!   or [`drive`] a [`SocketStream`].
//! * The same on a connection that carries messages, such as a WebSocket, [`drive`] a
//!   [`MessageStream`].
//! * A client of several servers: [`Servers`], of [`AnyConnection`] if their transports differ. With
//!   the feature `http-client`, `connect_servers` starts those of an `mcpServers` file.
//! * A client of a server on HTTP, with the feature `http-client`: `connect`.
//! * The same for a server that requires a token, with the feature `auth`: `Authorization`, and
//!   `Loopback` for users who sign in, and `Signer` for clients that authenticate
//!   with a private key, or bind tokens to one.
//! * A server on HTTP, with the feature `http-server`: `serve_http` and `HttpService`. It can
//!   require tokens; with the feature `auth`, `JwtVerifier` checks them.
//! * HTTP exchanges for other purposes, with the feature `http-client`: `Connector`.
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
//! With the feature `macros`, the attributes `tool`, `prompt` and `tools` turn functions into tools
//! and prompts. The crate `mcp-sansio-test` tests servers and clients in one process.
//!
//! Both runtimes use `async-io` for sockets and timers, which works on any executor. Tasks are
//! spawned on the executor selected by the features `smol` and `async-std`. With both, it is the
//! executor of the current task, or smol outside of async-std tasks. Nothing here depends on the
//! protocol.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

#[cfg(not(any(feature = "smol", feature = "async-std")))]
compile_error!("enable the feature `smol` or `async-std` to select the executor of tasks");

#[cfg(feature = "client")]
mod child;
#[cfg(feature = "http-client")]
mod http_client;
#[cfg(feature = "http-server")]
mod http_service;
#[cfg(feature = "async-std")]
mod on_async_std;
#[cfg(feature = "smol")]
mod on_smol;
pub mod runtime;
mod serve;
mod socket_stream;

#[cfg(feature = "client")]
pub use child::{ChildConnection, ChildServer, connect_over, connect_stream, spawn, spawn_with};
#[cfg(all(unix, feature = "http-client"))]
pub use http_client::connect_unix;
#[cfg(feature = "http-client")]
pub use http_client::{ConnectError, Connector, connect, connect_servers};
#[cfg(feature = "http-server")]
pub use http_service::*;
pub use mcp_sansio_async::clock::now;
#[doc(inline)]
pub use mcp_sansio_async::names::*;
#[cfg(feature = "macros")]
pub use mcp_sansio_macros::{
    async_std_prompt as prompt, async_std_tool as tool, async_std_tools as tools,
};
pub use serve::{drive, drive_with, serve, serve_stdio, serve_stream};
pub use socket_stream::SocketStream;

/// The redirect target for a user who signs in with a browser on this computer: a listener on
/// 127.0.0.1 that answers the browser and receives the redirect.
///
/// ```no_run
/// use mcp_sansio_async_std::auth::client::AuthorizationOptions;
/// use mcp_sansio_async_std::{Authorization, Loopback, open_in_browser};
///
/// # async fn run() -> Result<Authorization, Box<dyn std::error::Error>> {
/// let loopback = Loopback::bind(0).await?.application("the tour");
/// let options = AuthorizationOptions::code(loopback.redirect_uri())?;
/// let authorization = Authorization::new(options).on_authorize(move |request| {
///     loopback.authorize(request, |url| {
///         if open_in_browser(url).is_err() {
///             eprintln!("To sign in, open {url}");
///         }
///     })
/// });
/// # Ok(authorization)
/// # }
/// ```
#[cfg(feature = "auth")]
pub type Loopback = mcp_sansio_async::loopback::Loopback<runtime::AsyncRuntime>;

//! MCP with blocking calls: the functions of the other adapters, which wait on the calling thread.
//!
//! What is particular here: there is no executor. Each task has a thread ([`runtime`]), which waits
//! in [`block_on()`] for sockets, pipes and timers of `async-io`. Methods that are `async` in the
//! other adapters are so here, too, except those of `HttpConnection`: wait for them in
//! [`block_on()`]. [`serve_stdio`] keeps the standard output clean. Readers and writers that the
//! system cannot wait for have threads.
//!
//! Programs start from a [`Server`] with handlers, or from a [`Host`] that returns a [`Client`],
//! and run it with one of these:
//!
//! * A server: [`serve_stdio`], [`serve_stream`] for sockets, [`serve()`] for any reader and writer.
//!   They block until the connection ends; handlers run on the calling thread.
//! * A client: [`spawn`] starts a server as a child process and drives the connection on its own
//!   thread; [`Wait`] waits for results on any other thread. [`connect_stream`] connects over a
//!   socket, [`connect_over`] over any reader and writer.
//! * A client of several servers: [`Servers`], of [`AnyConnection`] if their transports differ. With
//!   the feature `http-client`, `connect_servers` starts those of an `mcpServers` file.
//! * A server on HTTP: `serve_http`, with the feature `http-server`.
//! * A client over HTTP: `connect`, with the feature `http-client`.
//! * Users who sign in with a browser, with the feature `auth`: `Loopback`.
//! * The building blocks: [`block_on()`], [`FdStream`], [`ThreadedStream`], [`PipeStream`] and
//!   [`Clock`], for the [`Driver`](mcp_sansio_async::Driver) shared by all adapters.
//!
//! ```no_run
//! use mcp_sansio_handlers::Server;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Server::new("weather", "1.0.0");
//! mcp_sansio_std::serve_stdio(server)?;
//! # Ok(())
//! # }
//! ```
//!
//! With the feature `macros`, the attributes `tool`, `prompt` and `tools` turn functions into tools
//! and prompts. The crate `mcp-sansio-test` tests servers and clients in one process.
//!
//! Nothing here depends on the protocol.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod background_driver;
#[cfg(feature = "client")]
mod child;
#[cfg(unix)]
mod fd_stream;
#[cfg(feature = "http-client")]
mod http_client;
#[cfg(feature = "http-server")]
mod http_server;
mod pipe_stream;
pub mod runtime;
mod serve;
mod threaded_stream;
mod wait;

pub use background_driver::BackgroundDriver;
#[cfg(feature = "client")]
pub use child::{ChildConnection, ChildServer, connect_over, connect_stream, spawn, spawn_with};
#[cfg(unix)]
pub use fd_stream::FdStream;
#[cfg(all(unix, feature = "http-client"))]
pub use http_client::connect_unix;
#[cfg(feature = "http-client")]
pub use http_client::{
    ConnectError, Connector, HttpConnection, connect, connect_servers, connect_with,
};
#[cfg(feature = "http-server")]
pub use http_server::*;
pub use mcp_sansio_async::async_io::AsyncTimer as Clock;
pub use mcp_sansio_async::clock::now;
#[doc(inline)]
pub use mcp_sansio_async::names::*;
#[cfg(feature = "macros")]
pub use mcp_sansio_macros::{std_prompt as prompt, std_tool as tool, std_tools as tools};
pub use pipe_stream::PipeStream;
pub use runtime::{block_on, sleep};
pub use serve::{drive, serve, serve_stdio, serve_stream};
pub use threaded_stream::ThreadedStream;
pub use wait::{CancelHandle, Wait};

/// The redirect target for a user who signs in with a browser on this computer: a listener on
/// 127.0.0.1 that answers the browser and receives the redirect.
///
/// Waiting for the user in a handler would block the connection: use a separate thread there.
///
/// ```no_run
/// use mcp_sansio_std::auth::client::AuthorizationRequest;
/// use mcp_sansio_std::{Loopback, block_on, open_in_browser};
///
/// # fn run(request: AuthorizationRequest) -> Result<(), Box<dyn std::error::Error>> {
/// let loopback = block_on(Loopback::bind(0))?.application("the tour");
/// let redirect_uri = loopback.redirect_uri(); // for the options of the client
/// let redirect = block_on(loopback.authorize(request, |url| {
///     if open_in_browser(url).is_err() {
///         eprintln!("To sign in, open {url}");
///     }
/// }))?;
/// # Ok(())
/// # }
/// ```
#[cfg(feature = "auth")]
pub type Loopback = mcp_sansio_async::loopback::Loopback<runtime::ThreadRuntime>;

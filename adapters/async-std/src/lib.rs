//! Endpoints of `mcp-sansio` on smol and on async-std, which smol succeeds: over standard streams,
//! sockets, and child processes.
//!
//! * A server on its standard streams: [`serve_stdio`].
//! * A client with a server that it starts: [`spawn`].
//! * A server or a client on a socket: [`drive`] a [`SocketStream`].
//! * A client of a server on HTTP, with the feature `http-client`: `connect`.
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
mod clock;
mod connect;
#[cfg(unix)]
mod descriptor;
mod entropy;
mod error;
#[cfg(feature = "http-client")]
mod http_client;
mod serve;
mod socket_stream;
mod standard_streams;
mod task;
mod timer;

pub use child::{ChildInput, ChildServer, ChildStream, ExitReport, Graces, SpawnError, Stderr};
pub use clock::{now, unix_time};
pub use connect::{Connection, spawn};
pub use entropy::seed;
pub use error::Error;
#[cfg(feature = "http-client")]
pub use http_client::{
    AsyncExchange, AsyncExchanger, ConnectError, Connector, ConnectorBuilder, ConnectorError,
    HttpConnection, ResponseBody, connect, connect_with, drive_http,
};
pub use mcp_sansio::handler::{
    Answer, Ask, Call, Client, ClientError, Elicit, Host, NoArguments, Question, Read, Remote,
    Server, Structured,
};
#[cfg(feature = "http-client")]
pub use mcp_sansio::http;
#[cfg(feature = "http-client")]
pub use mcp_sansio::http::{ClientOptions, Location};
pub use mcp_sansio::{Revision, Revisions, handler, peer, protocol};
pub use mcp_sansio_async::{ByteStream, DriveError, Driver, FuturesStream, Settings, Timer};
#[cfg(feature = "http-client")]
pub use mcp_sansio_async::{Exchange, Exchanger, HttpDriver};
pub use serve::{drive, drive_with, serve, serve_stdio};
pub use socket_stream::SocketStream;
pub use standard_streams::StandardStreams;
pub use timer::AsyncTimer;

//! Drives an [`Endpoint`](mcp_sansio::stream::Endpoint) over a byte stream, on any runtime.
//!
//! Programs use an adapter that is based on this crate: `mcp-sansio-tokio`, `mcp-sansio-async-std`
//! or `mcp-sansio-std`. An adapter for another runtime meets these items, in this order:
//!
//! 1. [`ByteStream`] and [`Timer`]: the bytes and the clock of a connection. With the feature
//!    `futures-io`, `FuturesStream` is a stream over its traits. With the feature `messages`,
//!    `MessageStream` is one over a connection that carries messages.
//! 2. [`Driver`]: a future that drives an endpoint over a stream. `HttpDriver` is the same for a
//!    client over HTTP, with the feature `http` and an `Exchanger`.
//! 3. [`Runtime`]: spawns the tasks of the items below. [`CatchPanic`] is for executors that a panic
//!    would end.
//! 4. [`child`]: servers as child processes.
//! 5. `http_server`, with the feature `http-server`: a service for HTTP libraries. With the feature
//!    `http-listener`, also a listener for runtimes that provide their sockets, as a [`Network`].
//! 6. `http_client`, with the feature `http`: connections with any exchanger. With the feature
//!    `http-client`, also a connector based on hyper.
//! 7. `async_io`, with the feature `async-io`: timers, sockets, standard streams and processes for
//!    runtimes that use that crate. They only add an executor.
//! 8. [`names`]: the names that an adapter exports, so that a program changes its runtime in one
//!    `use`.
//!
//! Nothing here blocks or depends on the protocol.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

#[cfg(feature = "client")]
mod any_connection;
#[cfg(feature = "async-io")]
pub mod async_io;
#[cfg(feature = "client")]
pub mod child;
pub mod clock;
#[cfg(unix)]
pub mod descriptor;
mod driver;
mod entropy;
mod error;
#[cfg(feature = "futures-io")]
mod futures_stream;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "http")]
pub mod http_client;
#[cfg(feature = "http-server")]
pub mod http_server;
#[cfg(any(feature = "http-client", feature = "http-listener"))]
mod hyper_socket;
#[cfg(feature = "auth")]
mod loopback;
#[cfg(feature = "messages")]
mod message_stream;
pub mod names;
mod network;
mod panics;
mod runtime;
#[cfg(feature = "jsonschema")]
mod schema_validator;
#[cfg(feature = "skills")]
pub mod skills;
mod stop_handle;
mod stream;
#[cfg(feature = "client")]
mod task;
#[cfg(feature = "tasks")]
mod task_settings;
mod timer;
#[cfg(all(unix, feature = "http-server"))]
mod unix_socket;

#[cfg(feature = "client")]
pub use any_connection::AnyConnection;
pub use driver::{DriveError, Driver};
pub use entropy::seed;
pub use error::Error;
#[cfg(feature = "futures-io")]
pub use futures_stream::FuturesStream;
#[cfg(feature = "http")]
pub use http::{ConnectError, EraCache, Exchange, Exchanger, HttpDriver};
pub use mcp_sansio::stream::StreamSettings;
#[cfg(feature = "messages")]
pub use message_stream::MessageStream;
pub use panics::panic_guard;
pub use runtime::{CatchPanic, Runtime};
#[cfg(feature = "jsonschema")]
pub use schema_validator::SchemaValidator;
pub use stop_handle::StopHandle;
pub use stream::ByteStream;
#[cfg(feature = "tasks")]
pub use task_settings::task_settings;
pub use timer::{Alarm, AlarmTimer, Timer, timeout};

#[cfg(any(feature = "http-client", feature = "http-listener"))]
pub use hyper_socket::{HyperSocket, ReadWrite};
#[cfg(feature = "auth")]
pub use loopback::Loopback;
#[cfg(feature = "http-listener")]
pub use network::HyperNetwork;
pub use network::{ListenerSocket, Network, PeerAddress};
#[cfg(all(unix, feature = "http-server"))]
pub use unix_socket::{UnixSocket, UnixSocketError, UnixSocketFile};

//! Drives an [`Endpoint`](mcp_sansio::stream::Endpoint) over a byte stream, on any runtime.
//!
//! Programs use an adapter that is based on this crate: `mcp-sansio-tokio`, `mcp-sansio-async-std`
//! or `mcp-sansio-std`. An adapter for another runtime meets these items, in this order:
//!
//! 1. [`ByteStream`] and [`Timer`]: the bytes and the clock of a connection. [`futures`] has a
//!    stream over the traits of `futures-io`, and one over a connection that carries messages.
//! 2. [`Driver`]: a future that drives an endpoint over a stream.
//! 3. [`Runtime`]: spawns the tasks of the items below. [`CatchPanic`] is for executors that a panic
//!    would end.
//! 4. `child`, with the feature `client`: servers as child processes.
//! 5. `http_server`, with the feature `http-server`: a service for HTTP libraries, and a listener for
//!    runtimes that provide their sockets, as a `network::Network`.
//! 6. `http_client`, with the feature `http-client`: connections with any exchanger, and a connector
//!    based on hyper.
//! 7. `async_io`, with the feature `async-io`: timers, sockets, standard streams and processes for
//!    runtimes that use that crate. They only add an executor.
//! 8. [`names`]: the names that an adapter exports, so that a program changes its runtime in one
//!    `use`.
//!
//! Nothing here blocks or depends on the protocol.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

#[cfg(feature = "async-io")]
pub mod async_io;
#[cfg(feature = "client")]
pub mod child;
pub mod clock;
#[cfg(unix)]
pub mod descriptor;
mod driver;
mod error;
#[cfg(feature = "extensions")]
mod extensions;
pub mod futures;
#[cfg(feature = "http-client")]
pub mod http_client;
#[cfg(feature = "http-server")]
pub mod http_server;
#[cfg(feature = "auth")]
pub mod loopback;
pub mod names;
#[cfg(any(feature = "http-client", feature = "http-server"))]
pub mod network;
mod runtime;
#[cfg(feature = "jsonschema")]
mod schema_validator;
mod stop_handle;
#[cfg(feature = "client")]
mod task;

pub use clock::seed;
pub use driver::{ByteStream, DriveError, Driver};
pub use mcp_sansio::stream::StreamSettings;
pub use runtime::{Alarm, AlarmTimer, CatchPanic, Runtime, Timer, panic_guard, timeout};
pub use stop_handle::StopHandle;

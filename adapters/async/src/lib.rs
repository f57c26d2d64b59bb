//! Drives an [`Endpoint`](mcp_sansio::stream::Endpoint) over a byte stream, on any runtime.
//!
//! A runtime provides a [`ByteStream`], a [`Timer`] and an executor; the [`Driver`] does the rest.
//! HTTP works the same way:
//!
//! * For a client, with the feature `http`, a runtime provides an `Exchanger` and a timer; the
//!   `HttpDriver` does the rest. `http_client` contains connections with any exchanger and, with
//!   the feature `http-client`, a connector based on hyper.
//! * For a server, with the feature `http-server`, `http_server` contains a service for HTTP
//!   libraries, on any [`Runtime`]; with the feature `http-listener`, also a listener for runtimes
//!   that provide their sockets.
//!
//! Nothing here blocks or depends on the protocol.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

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
#[cfg(feature = "auth")]
mod loopback;
pub mod names;
mod network;
mod panics;
mod runtime;
#[cfg(feature = "jsonschema")]
mod schema_validator;
mod stop_handle;
mod stream;
mod task;
#[cfg(feature = "tasks")]
mod task_settings;
mod timer;

pub use driver::{DriveError, Driver};
pub use entropy::seed;
pub use error::Error;
#[cfg(feature = "futures-io")]
pub use futures_stream::FuturesStream;
#[cfg(feature = "http")]
pub use http::{ConnectError, EraCache, Exchange, Exchanger, HttpDriver};
pub use mcp_sansio::stream::StreamSettings;
pub use panics::panic_guard;
pub use runtime::{CatchPanic, Runtime};
#[cfg(feature = "jsonschema")]
pub use schema_validator::SchemaValidator;
pub use stop_handle::StopHandle;
pub use stream::ByteStream;
#[cfg(feature = "tasks")]
pub use task_settings::task_settings;
pub use timer::{Timer, timeout};

#[cfg(feature = "auth")]
pub use loopback::Loopback;
#[cfg(feature = "http-listener")]
pub use network::HyperNetwork;
pub use network::Network;

//! Drives an [`Endpoint`](mcp_sansio_handlers::Endpoint) over a byte stream, on any runtime.
//!
//! A runtime brings a [`ByteStream`], a [`Timer`] and something that polls futures; the [`Driver`]
//! is the rest. HTTP is the same:
//!
//! * For a client, with the feature `http`, a runtime brings an `Exchanger` and a timer; the
//!   `HttpDriver` is the rest. With the feature `http-client` most of an exchanger by hyper is in
//!   `http_client`.
//! * For a server, with the feature `http-server`, a runtime brings the time and a place for handlers
//!   that go on; `http_server` is the rest but for the listener.
//!
//! Nothing here blocks or reads a clock, and nothing here knows the protocol.

#![forbid(unsafe_code)]

pub mod child;
pub mod clock;
mod driver;
mod entropy;
mod error;
#[cfg(feature = "futures-io")]
mod futures_stream;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "http-client")]
pub mod http_client;
#[cfg(feature = "http-server")]
pub mod http_server;
mod panics;
mod runtime;
mod settings;
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
pub use http::{ConnectError, Eras, Exchange, Exchanger, HttpDriver};
pub use panics::panic_guard;
pub use runtime::{CatchPanic, Runtime};
pub use settings::Settings;
pub use stream::ByteStream;
#[cfg(feature = "tasks")]
pub use task_settings::task_settings;
pub use timer::Timer;

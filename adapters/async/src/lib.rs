//! Drives an [`Endpoint`](mcp_sansio::handler::Endpoint) over a byte stream, on any runtime.
//!
//! A runtime brings a [`ByteStream`], a [`Timer`] and something that polls futures; the [`Driver`]
//! is the rest. With the feature `http` there is the same for the client's side of HTTP: a runtime
//! brings an `Exchanger` and a timer, the `HttpDriver` is the rest. Nothing here spawns, blocks or reads a clock, and nothing here knows the protocol.

#![forbid(unsafe_code)]

mod driver;
#[cfg(feature = "futures-io")]
mod futures_stream;
#[cfg(feature = "http")]
mod http;
mod settings;
mod stream;
mod timer;

pub use driver::{DriveError, Driver};
#[cfg(feature = "futures-io")]
pub use futures_stream::FuturesStream;
#[cfg(feature = "http")]
pub use http::{ConnectError, Eras, Exchange, Exchanger, HttpDriver};
pub use settings::Settings;
pub use stream::ByteStream;
pub use timer::Timer;

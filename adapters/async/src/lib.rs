//! Drives an [`Endpoint`](mcp_sansio::handler::Endpoint) over a byte stream, on any runtime.
//!
//! A runtime brings a [`ByteStream`], a [`Timer`] and something that polls futures; the [`Driver`]
//! is the rest. Nothing here spawns, blocks or reads a clock, and nothing here knows the protocol.

#![forbid(unsafe_code)]

mod driver;
#[cfg(feature = "futures-io")]
mod futures_stream;
mod settings;
mod stream;
mod timer;

pub use driver::{DriveError, Driver};
#[cfg(feature = "futures-io")]
pub use futures_stream::FuturesStream;
pub use settings::Settings;
pub use stream::ByteStream;
pub use timer::Timer;

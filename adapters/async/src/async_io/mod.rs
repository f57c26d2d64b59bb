//! Sockets, timers, standard streams and child processes of `async-io`, which work on any executor.
//!
//! A runtime whose timers are [`AsyncTimer`]s implements [`AsyncIo`]; it is then a
//! `Network` as well, and dials servers over HTTP.

#[cfg(feature = "async-io-http-client")]
pub mod dial;
#[cfg(any(feature = "async-io-http-client", feature = "async-io-http-server"))]
pub mod network;
#[cfg(feature = "async-io-client")]
pub mod process;
mod socket;
mod standard_streams;
mod timer;

pub use socket::{HalfClose, Socket};
pub use standard_streams::StandardStreams;
pub use timer::AsyncTimer;

/// A runtime whose timers, sockets and processes are those of `async-io`. It adds an executor.
pub trait AsyncIo: crate::Runtime<Timer = AsyncTimer> {}

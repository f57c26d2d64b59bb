//! Sockets, timers, standard streams and child processes of `async-io`, which work on any executor.
//!
//! A runtime whose timers are [`AsyncTimer`]s implements [`AsyncIo`]; it is then a
//! [`Network`](crate::Network) as well, and dials servers over HTTP.

#[cfg(feature = "async-io-http-client")]
mod dial;
#[cfg(feature = "async-io-http-server")]
mod listener;
#[cfg(any(feature = "async-io-http-client", feature = "async-io-http-server"))]
mod network;
#[cfg(feature = "async-io-client")]
mod process;
mod socket;
mod standard_streams;
mod timer;

#[cfg(feature = "async-io-http-client")]
pub use dial::{ReadWrite, Stream};
#[cfg(any(feature = "async-io-http-client", feature = "async-io-http-server"))]
pub use network::Listener;
#[cfg(feature = "async-io-client")]
pub use process::{AsyncProcess, ChildInput, Command};
pub use socket::{HalfClose, Socket};
pub use standard_streams::StandardStreams;
pub use timer::AsyncTimer;

/// A runtime whose timers, sockets and processes are those of `async-io`. It adds an executor.
pub trait AsyncIo: crate::Runtime<Timer = AsyncTimer> {}

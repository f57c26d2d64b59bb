//! Endpoints of `mcp-sansio` on tokio: over standard streams, sockets, and child processes.
//!
//! * A server on its standard streams: [`serve_stdio`].
//! * A server or a client on a socket: [`drive`] a [`TokioStream`].
//! * A client with a server that it starts: [`ChildServer::spawn`], then [`drive`] the stream.
//!
//! Any flavour of the runtime will do, with I/O and time enabled. Nothing here knows the protocol.

#![forbid(unsafe_code)]

mod child;
mod clock;
#[cfg(unix)]
mod descriptor;
mod serve;
mod standard_streams;
mod stream;
mod timer;

pub use child::{ChildInput, ChildServer, ChildStream, ExitReport, Graces, SpawnError, Stderr};
pub use clock::now;
pub use mcp_sansio_async::{ByteStream, DriveError, Driver, Settings, Timer};
pub use serve::{drive, drive_with, serve, serve_stdio};
pub use standard_streams::StandardStreams;
pub use stream::TokioStream;
pub use timer::TokioTimer;

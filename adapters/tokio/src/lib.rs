//! Endpoints of `mcp-sansio` on tokio: over standard streams, sockets, and child processes.

#![forbid(unsafe_code)]

mod timer;

pub use mcp_sansio_async::{ByteStream, DriveError, Driver, Settings, Timer};
pub use timer::TokioTimer;

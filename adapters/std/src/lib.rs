//! MCP with blocking calls, on nothing but the standard library and the operating system: no async
//! runtime, and a thread only where there is no other way.
//!
//! * A server: [`serve_stdio`], [`serve_stream`] for sockets, [`serve`] for any reader and writer.
//!   They block until the connection ends; handlers run on the calling thread.
//! * A client: [`spawn`] starts a server as a child, [`Background`] drives the connection on a
//!   thread of its own, and [`Wait`] waits for the results on any other.
//! * The parts, to put together in other ways: [`block_on`], [`FdStream`], [`ThreadedStream`],
//!   [`PipeStream`] and [`Clock`], for the [`Driver`](mcp_sansio_async::Driver) that all adapters
//!   share.
//!
//! ```no_run
//! use mcp_sansio::handler::Server;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Server::new("weather", "1.0.0");
//! mcp_sansio_std::serve_stdio(server.endpoint(mcp_sansio_std::seed())?)?;
//! # Ok(())
//! # }
//! ```
//!
//! Nothing here knows a rule of the protocol beyond the streams and the processes themselves.

#![forbid(unsafe_code)]

mod background;
mod child;
mod clock;
mod conduit;
#[cfg(unix)]
mod descriptor;
mod entropy;
mod executor;
#[cfg(unix)]
mod fd_stream;
mod pipe_stream;
mod serve;
#[cfg(unix)]
mod standard_output;
mod stop;
mod threaded_stream;
mod wait;

pub use background::Background;
pub use child::{
    ChildOptions, ChildServer, ExitReport, Force, SpawnError, Stderr, spawn, spawn_with,
};
pub use clock::{Clock, now};
pub use entropy::seed;
pub use executor::block_on;
#[cfg(unix)]
pub use fd_stream::FdStream;
pub use mcp_sansio_async::{ByteStream, DriveError, Driver, Settings, Timer};
pub use pipe_stream::PipeStream;
pub use serve::{ServeError, drive, serve, serve_stdio, serve_stream};
pub use threaded_stream::ThreadedStream;
pub use wait::Wait;

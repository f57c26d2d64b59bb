//! What the tests of the adapters run in processes of their own.

mod panicking;
mod pinger;
mod runtime;

use mcp_sansio_handlers::Server;

pub use panicking::{panicking_host, panicking_server, survive};
pub use pinger::Pinger;
pub use runtime::Runtime;

/// The line of a ping.
#[must_use]
pub fn ping(id: usize) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n")
}

/// A server that offers nothing: it answers pings.
#[must_use]
pub fn quiet() -> Server {
    Server::new("quiet", "1")
}

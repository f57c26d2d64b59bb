//! Programs and helpers that the adapter tests run in separate processes.

mod fragile;
mod panicking;
mod pinger;
mod runtime;

use mcp_sansio_handlers::Server;

pub use fragile::fragile;
pub use panicking::{panicking_host, panicking_server, survive};
pub use pinger::Pinger;
pub use runtime::{Runtime, block_on_async_std, block_on_smol};

/// Returns a ping request as one line.
#[must_use]
pub fn ping(id: usize) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n")
}

/// Returns a server without capabilities, which only answers pings.
#[must_use]
pub fn quiet() -> Server {
    Server::new("quiet", "1")
}

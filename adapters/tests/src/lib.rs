//! What the tests of the adapters run in processes of their own.

mod pinger;
mod quiet;

pub use pinger::Pinger;
pub use quiet::Quiet;

/// The line of a ping.
#[must_use]
pub fn ping(id: usize) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n")
}

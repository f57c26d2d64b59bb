//! HTTP: request heads, and the machines over exchanges.

mod client;
mod heads;
mod reply;
mod server;

pub use client::http_client;
pub use heads::http_heads;
pub use server::http_server;

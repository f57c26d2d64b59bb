//! Connections over byte streams: any operations, from the peer and from the application.

mod client;
mod pair;
mod server;

pub use client::peer_client;
pub use pair::pair;
pub use server::peer_server;

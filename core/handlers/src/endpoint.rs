//! The sides of connections as an adapter drives them.
//!
//! A program that uses an adapter does not name these types. On a byte stream, and on HTTP for a
//! client, an [`Endpoint`] or an [`HttpEndpoint`] takes input and the time, and returns the output
//! to send and when to call again. An [`HttpServer`] has all clients of a server: its handlers run
//! outside of it, as a [`HandlerCall`] and then a [`PendingHandler`].
#![cfg_attr(
    not(feature = "http"),
    doc = "",
    doc = "[`HttpEndpoint`]: https://docs.rs/mcp-sansio-handlers",
    doc = "[`HttpServer`]: https://docs.rs/mcp-sansio-handlers",
    doc = "[`HandlerCall`]: https://docs.rs/mcp-sansio-handlers",
    doc = "[`PendingHandler`]: https://docs.rs/mcp-sansio-handlers"
)]

pub use mcp_sansio::PanicGuard;
pub use mcp_sansio::stream::Endpoint;

#[cfg(feature = "client")]
pub use super::client::endpoint::ClientEndpoint;
#[cfg(all(feature = "client", feature = "http"))]
pub use super::client::http::{HttpClientEndpoint, HttpEndpoint};
#[cfg(feature = "http")]
pub use super::http_call::{HandlerCall, HandlerOutput, HandlerPoll, PendingHandler};
#[cfg(feature = "http")]
pub use super::http_server::HttpServer;
pub use super::server_endpoint::IntoEndpoint;
pub use super::server_endpoint::ServerEndpoint;

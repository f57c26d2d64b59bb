//! Serves HTTP on any runtime.
//!
//! [`HttpService`] answers requests of the crate [`http`]. A [`Runtime`](crate::Runtime) provides
//! the time and runs pending handlers; an HTTP library provides the requests. [`HttpListener`] uses
//! hyper for that, over the sockets of a [`Network`](crate::network::Network).

mod budget;
mod connection;
mod current_task;
mod exchange;
mod health;
#[cfg_attr(not(feature = "http2"), allow(dead_code, reason = "no connection is one of HTTP/2"))]
mod http2;
#[cfg(feature = "http2")]
mod http2_connection;
mod listener;
mod request;
mod response;
mod runtime;
mod send_body;
mod service;
mod shared_server;
mod shared_store;
mod socket;
mod stall;
mod store_task;
mod timer_task;
#[cfg(unix)]
mod unix_socket;

/// The names that adapters export at their root.
pub(crate) mod names {
    pub use mcp_sansio::http::HttpServerOptions;
    pub use mcp_sansio_handlers::ServerCard;
    pub use mcp_sansio_oauth::protected_resource::{
        ProtectedResource, TokenCheck, TokenRefusal, VerifiedToken,
    };
}

use budget::Budget;
pub use listener::HttpListener;
use send_body::SendBody;
pub use send_body::{ResponseNotRead, ServedBody};
pub use service::HttpService;
pub use shared_store::{ExternalEventStore, SharedStore, StoreOutcome};
use socket::Socket;
use stall::StallGuard;
#[cfg(unix)]
pub use unix_socket::{UnixSocket, UnixSocketError};

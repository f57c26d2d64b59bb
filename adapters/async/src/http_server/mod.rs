//! Serves HTTP on any runtime.
//!
//! [`HttpService`] answers requests of the crate [`http`]. A [`Runtime`](crate::Runtime) provides
//! the time and runs pending handlers; an HTTP library provides the requests. With the feature
//! `http-listener`, [`HttpListener`] uses hyper for that, over the sockets of a `HyperNetwork`;
//! other HTTP servers use [`Acceptor`].

mod acceptor;
mod body;
mod budget;
mod caller;
#[cfg(feature = "http-listener")]
mod connection;
mod connections;
mod exchange;
mod external_event_store;
mod handler_task;
#[cfg(feature = "http-listener")]
mod head_timer;
mod health;
#[cfg(feature = "http-listener")]
mod http2;
#[cfg(feature = "http2-listener")]
mod http2_connection;
#[cfg(feature = "http-listener")]
mod listener;
#[cfg(feature = "http-listener")]
mod preface;
mod request;
mod response;
mod runtime;
#[cfg(feature = "http-listener")]
mod send_body;
#[cfg(feature = "http-listener")]
mod send_monitor;
mod service;
mod shared_server;
mod shared_store;
mod sleep;
#[cfg(feature = "http-listener")]
mod socket;
mod stall;
mod store_task;
mod timer_task;

pub use acceptor::Acceptor;
pub use body::{ResponseNotRead, ServedBody};
pub use budget::{Budget, Charge, ConnectionBudget};
pub use connections::Permit;
pub use external_event_store::ExternalEventStore;
#[cfg(feature = "http-listener")]
pub use http2::{ConnectionAction, Http2Streams, Http2Timeouts};
#[cfg(feature = "http-listener")]
pub use listener::HttpListener;
#[cfg(feature = "http-listener")]
pub use send_body::{Chunk, SendBody};
pub use service::HttpService;
pub use shared_store::{SharedStore, StoreOutcome};
#[cfg(feature = "http-listener")]
pub use socket::Socket;
pub use stall::{LingeringClose, StallGuard};

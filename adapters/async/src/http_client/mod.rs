//! Runtime-independent parts of clients over HTTP: connections, exchanges of an
//! [`HttpDriver`](crate::HttpDriver) with any [`Connect`] implementation, and errors grouped by
//! cause.
//!
//! The feature `http-client` adds a `Connector` based on hyper, with a connection pool and proxies;
//! a runtime implements `Dial`.

#[cfg(feature = "http-client")]
pub mod cause;
#[cfg(feature = "tls")]
mod certificates;
mod connection;
#[cfg(feature = "http-client")]
mod connector;
mod connector_error;
#[cfg(feature = "http-client")]
mod dialer;
mod exchanger;
mod fetch;
#[cfg(feature = "http-client")]
mod hyper_error;
#[cfg(feature = "http-client")]
mod proxy;
#[cfg(feature = "http-client")]
mod response_body;
#[cfg(feature = "http-client")]
mod routes;
#[cfg(feature = "http-client")]
mod tls;

#[cfg(feature = "tls")]
pub use certificates::Certificates;
pub use connection::{HttpConnection, connect, connect_with, drive_http};
#[cfg(feature = "http-client")]
pub use connector::{Connector, ConnectorBuilder};
pub use connector_error::ConnectorError;
#[cfg(feature = "http-client")]
pub use dialer::{Dial, DialAddress, port};
pub use exchanger::{Connect, ConnectorExchange, ConnectorExchanger, LastFailure};
pub use fetch::{FETCH_TIME_MAX, FetchError, fetch};
#[cfg(feature = "http-client")]
pub use proxy::Proxy;
#[cfg(feature = "http-client")]
pub use response_body::ResponseBody;

//! Clients over HTTP on any runtime: connections, an [`HttpDriver`] of exchanges with any
//! [`Exchanger`], and errors grouped by cause.
//!
//! A [`Connector`] is based on hyper, with a connection pool and proxies; a runtime implements
//! [`Dial`]. Another HTTP library implements [`Connect`].

pub mod cause;
mod connection;
mod connector;
mod dialer;
mod error;
mod exchanger;
mod http_driver;
mod proxy;

/// The names that adapters export at their root.
pub(crate) mod names {
    pub use super::{
        ConnectorError, FetchError, HttpConnection, HttpDriver, Proxy, ResponseBody, connect_with,
    };
    pub use mcp_sansio::http::{HttpClientOptions, Location};
}

pub use connection::{HttpConnection, connect, connect_with, drive_http};
pub use connector::{Certificates, Connector, ConnectorBuilder, ResponseBody};
pub use dialer::{Dial, DialAddress, port};
pub use error::{ConnectError, ConnectorError};
pub use exchanger::{
    Connect, ConnectorExchange, ConnectorExchanger, EraCache, FETCH_TIME_MAX, FetchError,
    LastFailure, fetch,
};
pub use http_driver::{Exchange, Exchanger, HttpDriver};
pub use proxy::Proxy;

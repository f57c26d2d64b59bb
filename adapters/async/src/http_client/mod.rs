//! Clients over HTTP on any runtime: connections, an [`HttpDriver`] of exchanges with any
//! [`Exchanger`], and errors grouped by cause.
//!
//! A [`Connector`] is based on hyper, with a connection pool and proxies; a runtime implements
//! [`Dial`]. Another HTTP library implements [`Connect`].

pub mod cause;
mod certificates;
mod connect_error;
mod connection;
mod connector;
mod connector_error;
mod dialer;
mod era_cache;
mod exchange;
mod exchanger;
mod exchanges;
mod fetch;
mod http_driver;
mod hyper_error;
mod proxy;
mod ready_queue;
mod response_body;
mod routes;
mod tls;

/// The names that adapters export at their root.
pub(crate) mod names {
    pub use super::{
        ConnectorError, Exchange, Exchanger, FetchError, HttpConnection, HttpDriver, Proxy,
        ResponseBody, connect_with, drive_http,
    };
    pub use mcp_sansio::http::{HttpClientOptions, InvalidHeader, Location};
}

pub use certificates::Certificates;
pub use connect_error::ConnectError;
pub use connection::{HttpConnection, connect, connect_with, drive_http};
pub use connector::{Connector, ConnectorBuilder};
pub use connector_error::ConnectorError;
pub use dialer::{Dial, DialAddress, port};
pub use era_cache::EraCache;
pub use exchange::{Exchange, Exchanger};
pub use exchanger::{Connect, ConnectorExchange, ConnectorExchanger, LastFailure};
pub use fetch::{FETCH_TIME_MAX, FetchError, fetch};
pub use http_driver::HttpDriver;
pub use proxy::Proxy;
pub use response_body::ResponseBody;

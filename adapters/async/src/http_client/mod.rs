//! Clients over HTTP on any runtime: connections, an [`HttpDriver`] of exchanges with any
//! [`Exchanger`], and errors grouped by cause.
//!
//! A [`Connector`] is based on hyper, with a connection pool and proxies; a runtime implements
//! [`Dial`]. Another HTTP library implements [`Connect`].

mod connection;
mod connector;
mod dialer;
mod error;
mod exchanger;
mod http_driver;
mod proxy;

/// The names that adapters export at their root.
pub(crate) mod names {
    pub use super::connection::{HttpConnection, connect_with};
    pub use super::error::ConnectorError;
    pub use super::proxy::Proxy;
    pub use mcp_sansio::http::HttpClientOptions;
}

pub use connection::{connect, connect_servers, drive_http};
pub use connector::{Connector, ConnectorBuilder, ResponseBody};
pub use dialer::{Dial, DialAddress, port};
pub use error::ConnectError;
pub(crate) use error::ConnectorError;
pub(crate) use exchanger::LastFailure;
pub use exchanger::{
    Connect, ConnectorExchange, ConnectorExchanger, EraCache, FETCH_TIME_MAX, FetchError, fetch,
};
pub use http_driver::{Exchange, Exchanger, HttpDriver};
pub(crate) use proxy::Proxy;

pub mod cause {
    //! Causes of HTTP errors.

    use std::error::Error;
    use std::io;

    /// Returns the first cause of type `T`, including `error` itself.
    pub(super) fn find<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(found) = error.downcast_ref() {
                return Some(found);
            }
            next = error.source();
        }
        None
    }

    /// Returns the message of the innermost cause: the outer ones only name the step that failed.
    pub fn innermost(error: &(dyn Error + 'static)) -> String {
        let mut error = error;
        while let Some(cause) = error.source() {
            error = cause;
        }
        error.to_string()
    }

    /// Returns the operating system's error among the causes, or an equivalent one.
    pub fn system(error: &(dyn Error + 'static)) -> io::Error {
        let cause = find::<io::Error>(error);
        match cause.map(|cause| (cause.raw_os_error(), cause.kind())) {
            Some((Some(code), _)) => io::Error::from_raw_os_error(code),
            Some((None, kind)) => io::Error::new(kind, innermost(error)),
            None => io::Error::other(innermost(error)),
        }
    }
}

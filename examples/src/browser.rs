//! A browser without a user: goes where it is sent.

use bytes::Bytes;
use http::header::LOCATION;
use http::{Request, StatusCode};
use mcp_sansio_tokio::{Connector, ConnectorError};

/// Why something was not found.
#[derive(Debug)]
#[non_exhaustive]
pub enum BrowserError {
    /// The URL is none.
    Url(http::Error),
    /// The network's fault, or the server's.
    Exchange(ConnectorError),
    /// The server answers otherwise.
    Status(StatusCode),
}

/// A browser. It follows no redirect by itself, and stores nothing.
#[derive(Clone, Debug)]
pub struct Browser {
    connector: Connector,
}

impl Browser {
    /// One that makes its exchanges by `connector`.
    #[must_use]
    pub const fn new(connector: Connector) -> Self {
        Self { connector }
    }

    /// Goes to `url`, and tells where it is sent from there: what a user does who signs in where
    /// nobody asks them anything.
    ///
    /// # Errors
    ///
    /// See [`BrowserError`].
    pub async fn visit(&self, url: &str) -> Result<String, BrowserError> {
        let response = self.connector.send(get(url)?).await.map_err(BrowserError::Exchange)?;
        let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        match location {
            Some(location) if response.status().is_redirection() => Ok(location.into()),
            _ => Err(BrowserError::Status(response.status())),
        }
    }
}

fn get(url: &str) -> Result<Request<Bytes>, BrowserError> {
    Request::get(url).body(Bytes::new()).map_err(BrowserError::Url)
}

impl std::fmt::Display for BrowserError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Url(error) => error.fmt(f),
            Self::Exchange(error) => error.fmt(f),
            Self::Status(status) => write!(f, "the server answers with status {status}"),
        }
    }
}

impl std::error::Error for BrowserError {}

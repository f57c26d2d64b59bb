//! A browser without a user, which only follows redirects.

use bytes::Bytes;
use http::header::LOCATION;
use http::{Request, StatusCode};
use mcp_sansio_tokio::{Connector, ConnectorError};

/// Why a page could not be visited.
#[derive(Debug)]
#[non_exhaustive]
pub enum BrowserError {
    /// The URL is invalid.
    Url(http::Error),
    /// The exchange failed.
    Exchange(ConnectorError),
    /// The response is not a redirect.
    Status(StatusCode),
}

/// A browser. It does not follow redirects automatically and stores nothing.
#[derive(Clone, Debug)]
pub struct Browser {
    connector: Connector,
}

impl Browser {
    /// Creates a browser that uses `connector`.
    #[must_use]
    pub const fn new(connector: Connector) -> Self {
        Self { connector }
    }

    /// Visits `url` and returns the location of the redirect. This signs a user in at an
    /// authorization server that does not ask for consent.
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
            Self::Status(status) => write!(f, "the server answered with status {status}"),
        }
    }
}

impl std::error::Error for BrowserError {}

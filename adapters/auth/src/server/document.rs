//! Fetches the documents of an issuer.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;

use mcp_sansio::Revision;
use mcp_sansio::http::{DOCUMENT_LENGTH_MAX, Location, Scheme};
use mcp_sansio_oauth::MetadataUrls;
use serde::Deserialize;

use super::JwtError;
use super::key_set::KeySet;

/// The location of an issuer's keys.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// At this URL.
    Url(String),
    /// At the URL in the metadata of this issuer.
    Issuer(String),
}

type Fetched = Result<Vec<u8>, Box<dyn Error + Send + Sync>>;

/// Fetches documents.
pub(super) struct Fetch(Box<dyn Fn(String) -> Fetching + Send + Sync>);

type Fetching = Pin<Box<dyn Future<Output = Fetched> + Send>>;

/// The metadata fields that are used.
#[derive(Deserialize)]
struct Metadata {
    issuer: String,
    jwks_uri: String,
}

impl Fetch {
    pub(super) fn new<F, R, E>(fetch: F) -> Self
    where
        F: Fn(String) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Vec<u8>, E>> + Send + 'static,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        Self(Box::new(move |url| {
            let fetching = fetch(url);
            Box::pin(async { fetching.await.map_err(Into::into) })
        }))
    }

    /// Fetches the keys of an issuer.
    pub(super) async fn keys(&self, source: &Source) -> Result<KeySet, JwtError> {
        let url = match source {
            Source::Url(url) => url.clone(),
            Source::Issuer(issuer) => self.jwks_uri(issuer).await?,
        };
        if !is_private(&url) {
            return Err(unavailable(
                "the URL of the keys is neither `https` nor on a loopback address",
            ));
        }
        let document = self.document(url).await?;
        KeySet::read(&document).ok_or_else(|| unavailable("the document is not a JWKS"))
    }

    /// Returns the URL of the keys according to the metadata of the issuer.
    async fn jwks_uri(&self, issuer: &str) -> Result<String, JwtError> {
        let urls = MetadataUrls::for_issuer(Revision::LATEST, issuer)
            .map_err(|error| unavailable(&error.to_string()))?;
        let mut failure = unavailable("the issuer has no metadata");
        for url in urls {
            let document = match self.document(url.as_str().to_owned()).await {
                Ok(document) => document,
                Err(error) => {
                    failure = error;
                    continue;
                }
            };
            let metadata: Metadata = serde_json::from_slice(&document)
                .map_err(|_| unavailable("the metadata of the issuer is malformed"))?;
            // MCP 2026-07-28 basic/authorization/authorization-server-discovery#authorization-server-metadata-discovery
            // [AUTHC-025]: the rule for clients protects a server as well.
            if metadata.issuer != issuer {
                return Err(unavailable("the metadata belongs to another issuer"));
            }
            return Ok(metadata.jwks_uri);
        }
        Err(failure)
    }

    async fn document(&self, url: String) -> Result<Vec<u8>, JwtError> {
        let document = (self.0)(url).await.map_err(|error| unavailable(&error.to_string()))?;
        if document.len() > DOCUMENT_LENGTH_MAX {
            return Err(unavailable("a document is longer than 256 KiB"));
        }
        Ok(document)
    }
}

/// Returns whether documents at the URL are protected from replacement in transit.
fn is_private(url: &str) -> bool {
    Location::parse(url).is_ok_and(|url| {
        let origin = url.origin();
        origin.scheme() == Scheme::Https || origin.is_loopback()
    })
}

impl fmt::Debug for Fetch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fetch(..)")
    }
}

fn unavailable(reason: &str) -> JwtError {
    JwtError::Unavailable(reason.to_owned())
}

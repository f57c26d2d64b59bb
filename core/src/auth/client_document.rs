//! What a client says of itself at a URL of its own: Client ID Metadata Documents.

use alloc::string::String;

use super::client::ClientMetadata;
use super::redirect_uri::InvalidRedirectUri;
use crate::http::Location;

/// Why a client is not known by its metadata document. The application's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidClientDocument {
    /// The URL is not `https`.
    #[error("the URL of a client metadata document is `https`")]
    Insecure,
    /// The URL has no path.
    #[error("the URL of a client metadata document has a path")]
    NoPath,
    /// A redirect URI is not usable, or there is none.
    #[error("{0}")]
    RedirectUri(#[from] InvalidRedirectUri),
}

/// Checks that a URL may be the id of a client.
///
/// # Errors
///
/// The application's fault: see [`InvalidClientDocument`].
pub(super) fn check_client_id(url: &Location) -> Result<(), InvalidClientDocument> {
    todo!()
}

/// The document for an application to publish at `url`, as `application/json`. `url` is the id of
/// the client. Authorization servers take these redirect URIs only.
///
/// # Errors
///
/// The application's fault: see [`InvalidClientDocument`].
pub fn client_document(
    url: &Location,
    metadata: &ClientMetadata,
    redirect_uris: &[String],
) -> Result<String, InvalidClientDocument> {
    todo!()
}

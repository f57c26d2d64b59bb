//! What a client says of itself at a URL of its own: Client ID Metadata Documents.

use alloc::string::String;

use super::client::ClientMetadata;
use super::client_authentication::AuthenticationMethod;
use super::redirect_uri::InvalidRedirectUri;
use super::registration::RegistrationRequest;
use super::scopes::Scopes;
use super::token::GrantType;
use crate::http::{Location, Scheme};

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
// MCP 2026-07-28 basic/authorization/client-registration#implementation-requirements [AUTHC-029]
pub(super) fn check_client_id(url: &Location) -> Result<(), InvalidClientDocument> {
    if url.origin().scheme() != Scheme::Https {
        return Err(InvalidClientDocument::Insecure);
    }
    match url.path_and_query() {
        "/" => Err(InvalidClientDocument::NoPath),
        target if target.starts_with("/?") => Err(InvalidClientDocument::NoPath),
        _ => Ok(()),
    }
}

/// The document for an application to publish at `url`, as `application/json`. `url` is the id of
/// a public client. Authorization servers take these redirect URIs only.
///
/// # Errors
///
/// The application's fault: see [`InvalidClientDocument`].
pub fn client_document(
    url: &Location,
    metadata: &ClientMetadata,
    redirect_uris: &[String],
) -> Result<String, InvalidClientDocument> {
    check_client_id(url)?;
    let request = RegistrationRequest {
        metadata,
        grant: GrantType::AuthorizationCode,
        redirect_uris,
        refresh: true,
        method: AuthenticationMethod::None,
        scopes: &Scopes::new(),
    };
    // MCP 2026-07-28 basic/authorization/client-registration#implementation-requirements [AUTHC-029]
    Ok(request.members(Some(url.as_str()))?)
}

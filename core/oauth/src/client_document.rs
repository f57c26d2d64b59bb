//! AuthorizationClient ID Metadata Documents: the metadata of a client, published at a URL of its own.

use alloc::string::String;

use mcp_sansio::http::{Location, Scheme};

use super::client::ClientMetadata;
use super::client_authentication::AuthenticationMethod;
use super::redirect_uri::InvalidRedirectUri;
use super::registration::RegistrationRequest;
use super::scopes::Scopes;
use super::token::GrantType;

/// Why a client cannot be identified by its metadata document. The application's error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidClientDocument {
    /// The URL is not `https`.
    #[error("the URL of a client metadata document must be `https`")]
    Insecure,
    /// The URL has no path.
    #[error("the URL of a client metadata document must have a path")]
    NoPath,
    /// A redirect URI is invalid, or missing.
    #[error("{0}")]
    RedirectUri(#[from] InvalidRedirectUri),
}

/// Checks that a URL may be the id of a client.
///
/// # Errors
///
/// The application's error: see [`InvalidClientDocument`].
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

/// Returns the document for an application to publish at `url`, as `application/json`. `url` is the
/// id of a public client. Authorization servers accept only these redirect URIs.
///
/// # Errors
///
/// The application's error: see [`InvalidClientDocument`].
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::ApplicationType;

    fn document(url: &str, redirect_uris: &[String]) -> Result<String, InvalidClientDocument> {
        let metadata = ClientMetadata {
            client_name: "C".into(),
            client_uri: None,
            application_type: ApplicationType::Native,
        };
        client_document(&Location::parse(url).expect(url), &metadata, redirect_uris)
    }

    #[test]
    fn a_document_has_its_own_url_as_the_id() {
        // Rule: [AUTHC-029].
        let json = document("https://c.example/x.json", &["http://localhost/cb".into()]);
        let expected = concat!(
            r#"{"client_id":"https://c.example/x.json","client_name":"C","#,
            r#""application_type":"native","redirect_uris":["http://localhost/cb"],"#,
            r#""grant_types":["authorization_code","refresh_token"],"#,
            r#""response_types":["code"],"token_endpoint_auth_method":"none"}"#
        );
        assert_eq!(json.as_deref(), Ok(expected));
    }

    #[test]
    fn a_document_url_is_https_and_has_a_path() {
        // Rule: [AUTHC-029].
        for (url, reason) in [
            ("http://localhost/x.json", InvalidClientDocument::Insecure),
            ("https://c.example", InvalidClientDocument::NoPath),
            ("https://c.example/?x", InvalidClientDocument::NoPath),
        ] {
            assert_eq!(document(url, &["http://localhost/cb".into()]), Err(reason), "{url}");
        }
    }

    #[test]
    fn the_redirect_uris_of_a_document_are_checked() {
        // Rule: [AUTHC-047].
        for (redirect_uris, reason) in [
            (&[][..], InvalidRedirectUri::Count),
            (&["http://c.example/cb".into()][..], InvalidRedirectUri::Insecure),
        ] {
            let refused = document("https://c.example/x.json", redirect_uris);
            assert_eq!(refused, Err(InvalidClientDocument::RedirectUri(reason)));
        }
    }
}

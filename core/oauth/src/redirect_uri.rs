//! Validation of redirect URIs.

use mcp_sansio::catalog::{InvalidUri, check_uri};
use mcp_sansio::http::{InvalidUrl, LOCATION_LENGTH_MAX, Location};

use super::client::ApplicationType;
use super::endpoint::is_secure;

/// Why an application must not use a redirect URI. The application's error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidRedirectUri {
    /// It is not a URI, or starts with `http` but is not the URL of a server.
    #[error("the redirect URI is not usable: {0}")]
    Url(InvalidUrl),
    /// It has a fragment.
    #[error("the redirect URI has a fragment")]
    Fragment,
    /// It is `http`, but not on this machine: the code can be read in transit.
    #[error("the redirect URI is neither `https` nor on a loopback address")]
    Insecure,
    /// Its scheme is neither a web scheme nor derived from a domain name of the application, like
    /// `com.example.app` (RFC 8252, section 7.1).
    #[error("the scheme of the redirect URI is not the application's own")]
    Scheme,
    /// It is allowed only for applications on the user's device.
    #[error("the redirect URI of a web application is not `https` on a host of its own")]
    Web,
    /// The grant requires a redirect URI and none is given, or the grant has no redirect.
    #[error("the redirect URIs do not match the grant")]
    Count,
}

/// Checks that an application of this type may use this redirect URI. Linear.
///
/// # Errors
///
/// The application's error: see [`InvalidRedirectUri`].
pub fn check_redirect_uri(uri: &str, of: ApplicationType) -> Result<(), InvalidRedirectUri> {
    if uri.len() > LOCATION_LENGTH_MAX {
        return Err(InvalidRedirectUri::Url(InvalidUrl::TooLong));
    }
    check_uri(uri).map_err(|error| match error {
        InvalidUri::Scheme => InvalidRedirectUri::Url(InvalidUrl::Scheme),
        error => InvalidRedirectUri::Url(InvalidUrl::Syntax(error)),
    })?;
    // RFC 6749, section 3.1.2.
    if uri.contains('#') {
        return Err(InvalidRedirectUri::Fragment);
    }
    let scheme = uri.split(':').next().unwrap_or_default();
    if !["http", "https"].iter().any(|it| it.eq_ignore_ascii_case(scheme)) {
        return match of {
            ApplicationType::Web => Err(InvalidRedirectUri::Web),
            ApplicationType::Native if scheme.contains('.') => Ok(()),
            ApplicationType::Native => Err(InvalidRedirectUri::Scheme),
        };
    }
    let location = Location::parse(uri).map_err(InvalidRedirectUri::Url)?;
    // MCP 2026-07-28 basic/authorization/security-considerations#communication-security [AUTHC-047]
    if !is_secure(&location) {
        return Err(InvalidRedirectUri::Insecure);
    }
    // MCP 2026-07-28 basic/authorization/client-registration#application-type-and-redirect-uri-constraints [AUTHC-033] [AUTHC-034]:
    // OpenID Connect requires web applications to be on public hosts.
    match of {
        ApplicationType::Web if location.origin().is_loopback() => Err(InvalidRedirectUri::Web),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NATIVE: ApplicationType = ApplicationType::Native;
    const WEB: ApplicationType = ApplicationType::Web;

    #[test]
    fn a_redirect_uri_is_https_loopback_or_a_private_scheme() {
        // Rule: [AUTHC-047].
        for uri in [
            "https://c.example/cb?a=b",
            "HTTP://LOCALHOST:3000/cb",
            "http://127.0.0.1/",
            "http://[::1]:1/cb",
            "com.example.app:/cb",
        ] {
            assert_eq!(check_redirect_uri(uri, NATIVE), Ok(()), "{uri}");
        }
        for (uri, reason) in [
            ("http://c.example/cb", InvalidRedirectUri::Insecure),
            ("http://localhost.example/cb", InvalidRedirectUri::Insecure),
            ("http://127.0.0.1@c.example/", InvalidRedirectUri::Url(InvalidUrl::User)),
            ("https://c.example/#", InvalidRedirectUri::Fragment),
            ("com.example.app:/cb#x", InvalidRedirectUri::Fragment),
            ("javascript:alert(1)", InvalidRedirectUri::Scheme),
            ("data:text/html,x", InvalidRedirectUri::Scheme),
            ("file:///cb", InvalidRedirectUri::Scheme),
            ("/cb", InvalidRedirectUri::Url(InvalidUrl::Scheme)),
            ("", InvalidRedirectUri::Url(InvalidUrl::Scheme)),
            ("https:///cb", InvalidRedirectUri::Url(InvalidUrl::Host)),
            (
                "com.example.app:/c b",
                InvalidRedirectUri::Url(InvalidUrl::Syntax(InvalidUri::Character(' '))),
            ),
        ] {
            assert_eq!(check_redirect_uri(uri, NATIVE), Err(reason), "{uri}");
        }
        let long = ["com.example.app:/", &*"x".repeat(LOCATION_LENGTH_MAX)].concat();
        let reason = InvalidRedirectUri::Url(InvalidUrl::TooLong);
        assert_eq!(check_redirect_uri(&long, NATIVE), Err(reason));
    }

    #[test]
    fn an_application_on_the_users_device_is_native() {
        // Rule: [AUTHC-033] [AUTHC-034].
        assert_eq!(check_redirect_uri("https://c.example/cb", WEB), Ok(()));
        for uri in ["http://localhost:3000/cb", "https://127.0.0.1/cb", "com.example.app:/cb"] {
            assert_eq!(check_redirect_uri(uri, WEB), Err(InvalidRedirectUri::Web), "{uri}");
        }
        let http = check_redirect_uri("http://c.example/cb", WEB);
        assert_eq!(http, Err(InvalidRedirectUri::Insecure));
    }
}

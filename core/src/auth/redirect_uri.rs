//! Where a user may come back to.

use super::client::ApplicationType;
use crate::http::InvalidUrl;

/// Why an application must not have a redirect URI. The application's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidRedirectUri {
    /// It is no URI, or none of a server although it starts with `http`.
    #[error("the redirect URI is not usable: {0}")]
    Url(InvalidUrl),
    /// It has a fragment.
    #[error("the redirect URI has a fragment")]
    Fragment,
    /// It is `http`, but not on this machine: the code can be read on the way.
    #[error("the redirect URI is neither `https` nor on a loopback address")]
    Insecure,
    /// Its scheme is neither of the web nor made of a domain name, as one is that is the
    /// application's own: `com.example.app` (RFC 8252, section 7.1).
    #[error("the scheme of the redirect URI is not the application's own")]
    Scheme,
    /// It is for applications on the user's device only.
    #[error("the redirect URI of a web application is not `https` on a host of its own")]
    Web,
    /// There is none, or there is one although no user comes back.
    #[error("the grant and the redirect URIs do not go together")]
    Count,
}

/// Checks that an application of this type may have this redirect URI. Linear.
///
/// # Errors
///
/// The application's fault: see [`InvalidRedirectUri`].
pub fn check_redirect_uri(uri: &str, of: ApplicationType) -> Result<(), InvalidRedirectUri> {
    todo!()
}

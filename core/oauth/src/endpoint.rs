//! URLs that are good enough for authorization.

use mcp_sansio::http::{InvalidUrl, Location, Scheme};

/// Why a URL must not be used for authorization. The fault of whoever wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidEndpoint {
    /// It is no URL of a server.
    #[error("{0}")]
    Url(InvalidUrl),
    /// It has a fragment.
    #[error("the URL has a fragment")]
    Fragment,
    /// It is neither `https` nor on this machine: what is sent there can be read on the way.
    #[error("the URL is neither `https` nor on a loopback address")]
    Insecure,
}

/// Reads a URL that credentials or a user may be sent to. Linear in the length.
pub(super) fn endpoint(url: &str) -> Result<Location, InvalidEndpoint> {
    let location = Location::parse(url).map_err(InvalidEndpoint::Url)?;
    if url.contains('#') {
        return Err(InvalidEndpoint::Fragment);
    }
    // MCP 2026-07-28 basic/authorization/security-considerations#communication-security [AUTHC-067]:
    // endpoints are served over HTTPS. What does not leave this machine cannot be read on the way.
    if is_secure(&location) { Ok(location) } else { Err(InvalidEndpoint::Insecure) }
}

pub(super) fn is_secure(location: &Location) -> bool {
    let origin = location.origin();
    origin.scheme() == Scheme::Https || origin.is_loopback()
}

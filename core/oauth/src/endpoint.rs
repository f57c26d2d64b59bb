//! URLs that are secure enough for authorization.

use mcp_sansio::http::{InvalidUrl, Location, Scheme};

/// Why a URL must not be used for authorization. The error of its author.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidEndpoint {
    /// It is not the URL of a server.
    #[error("{0}")]
    Url(InvalidUrl),
    /// It has a fragment.
    #[error("the URL has a fragment")]
    Fragment,
    /// It is neither `https` nor on this machine: data sent there can be read in transit.
    #[error("the URL is neither `https` nor on a loopback address")]
    Insecure,
}

/// Parses a URL that credentials or a user may be sent to. Linear in the length.
pub(super) fn endpoint(url: &str) -> Result<Location, InvalidEndpoint> {
    let location = Location::parse(url).map_err(InvalidEndpoint::Url)?;
    if url.contains('#') {
        return Err(InvalidEndpoint::Fragment);
    }
    // MCP 2026-07-28 basic/authorization/security-considerations#communication-security
    // [AUTHC-067]: endpoints are served over HTTPS. Traffic within this machine cannot be read in
    // transit.
    if is_secure(&location) { Ok(location) } else { Err(InvalidEndpoint::Insecure) }
}

pub(super) fn is_secure(location: &Location) -> bool {
    let origin = location.origin();
    origin.scheme() == Scheme::Https || origin.is_loopback()
}

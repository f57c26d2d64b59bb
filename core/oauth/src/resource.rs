//! The resource that a token is requested for: the `resource` parameter.

use alloc::string::{String, ToString};
use core::fmt;

use mcp_sansio::http::Location;

use crate::discovery::UrlFault;

/// The canonical URI of an MCP server: the value of `resource` in authorization and token requests.
///
/// It is sent unchanged, percent-encoded for a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceUri(String);

impl ResourceUri {
    /// Returns the URI of a server whose metadata names none: its URL, without the slash of an
    /// empty path.
    // MCP 2026-07-28 basic/authorization/index#canonical-server-uri [AUTHC-041] [AUTHC-042]: a
    // location has no fragment; its scheme and host are in lower case.
    #[must_use]
    pub fn from_server(server: &Location) -> Self {
        match server.path_and_query() {
            "/" => Self(server.origin().to_string()),
            _ => Self(server.as_str().to_string()),
        }
    }

    /// Returns the URI that the metadata of `server` names, byte for byte.
    ///
    /// It is accepted if it has the origin of the server's URL, and its path is equal to or above
    /// that of the URL: metadata at the root may describe a whole host. With a query, it must equal
    /// the URL. A host with a trailing dot is a different one: the metadata must name the later
    /// audience of tokens, and audiences are compared exactly.
    ///
    /// # Errors
    ///
    /// The server's error, or an attack; the metadata must not be used: see [`UrlFault`].
    // MCP 2026-07-28 basic/authorization/authorization-server-discovery#sequence-diagram [AUTHC-020]
    pub fn from_metadata(resource: &str, server: &Location) -> Result<Self, UrlFault> {
        let named = Location::parse(resource).map_err(UrlFault::Url)?;
        // MCP 2026-07-28 basic/authorization/index#canonical-server-uri [AUTHC-041]
        if resource.contains('#') {
            return Err(UrlFault::Fragment);
        }
        if has_final_dot(resource) {
            return Err(UrlFault::FinalDot);
        }
        if !named.same_origin(server) {
            return Err(UrlFault::Origin);
        }
        if is_below(server.path_and_query(), named.path_and_query()) {
            Ok(Self(resource.to_string()))
        } else {
            Err(UrlFault::Path)
        }
    }

    /// Returns the URI as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ResourceUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether two texts name the same resource, such as the URI of a server and an audience of a
/// token: they are equal, or equivalent URLs, for example with a host in capitals. A URL with a dot
/// after its host or with a fragment only equals itself: RFC 3986 does not make it equivalent to
/// the URL without. Linear in both lengths.
// MCP 2026-07-28 basic/authorization/security-considerations#access-token-privilege-restriction [AUTHS-013]
#[must_use]
pub fn is_same_resource(one: &str, other: &str) -> bool {
    let location = |url: &str| match url.contains('#') || has_final_dot(url) {
        true => None,
        false => Location::parse(url).ok(),
    };
    one == other || location(one).is_some_and(|it| Some(it) == location(other))
}

/// Whether the host of a URL ends with a dot. The URL must be valid for a [`Location`]. For DNS and
/// a [`Location`] it is the same host without the dot; as the name of a resource or an audience it
/// is a different one.
fn has_final_dot(url: &str) -> bool {
    let authority = url.split_once("//").map_or("", |(_, rest)| rest);
    let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
    // The colons of an IPv6 address are within brackets, and no dot follows these.
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
    host.ends_with('.')
}

/// Whether a target equals the other one or is, segment by segment, below it.
fn is_below(target: &str, above: &str) -> bool {
    if above.contains('?') {
        return target == above;
    }
    let path = target.split('?').next().unwrap_or_default();
    let rest = path.strip_prefix(above.strip_suffix('/').unwrap_or(above));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use mcp_sansio::http::InvalidUrl;

    use super::*;

    fn location(url: &str) -> Location {
        Location::parse(url).expect(url)
    }

    #[test]
    fn a_server_has_a_canonical_uri() {
        // Rule: [AUTHC-041] [AUTHC-042].
        for (url, resource) in [
            ("https://mcp.example.com/mcp", "https://mcp.example.com/mcp"),
            ("HTTPS://MCP.example.com", "https://mcp.example.com"),
            ("https://mcp.example.com/#a", "https://mcp.example.com"),
            ("https://mcp.example.com:8443/", "https://mcp.example.com:8443"),
            ("https://mcp.example.com/mcp/?a=b", "https://mcp.example.com/mcp/?a=b"),
            ("https://mcp.example.com/?a", "https://mcp.example.com/?a"),
        ] {
            assert_eq!(ResourceUri::from_server(&location(url)).as_str(), resource);
        }
    }

    #[test]
    fn the_resource_of_metadata_is_kept_unchanged() {
        // Rule: [AUTHC-020] [AUTHC-042].
        let server = location("https://example.com/a/mcp?b");
        for resource in [
            "https://example.com",
            "https://example.com/",
            "HTTPS://EXAMPLE.com:443/a",
            "https://example.com/a/",
            "https://example.com/a/mcp",
            "https://example.com/a/mcp/",
            "https://example.com/a/mcp?b",
        ] {
            let uri = ResourceUri::from_metadata(resource, &server);
            assert_eq!(uri.as_ref().map(ResourceUri::as_str), Ok(resource));
        }
    }

    #[test]
    fn only_equivalent_urls_name_the_same_resource() {
        // Rule: [AUTHS-013].
        let uri = "https://example.com/mcp";
        for same in [uri, "HTTPS://Example.COM:443/mcp", "https://example.com/a/../mcp"] {
            assert!(is_same_resource(same, uri) && is_same_resource(uri, same), "{same}");
        }
        for other in [
            "https://example.com./mcp",
            "https://example.com.:443/mcp",
            "https://example.com/mcp#",
            "https://example.com/mcp/",
            "https://example.com/mcp?",
            "example.com/mcp",
            "",
        ] {
            assert!(!is_same_resource(other, uri) && !is_same_resource(uri, other), "{other}");
            assert!(is_same_resource(other, other), "{other}");
        }
        for address in ["https://[::1]/mcp", "https://[::1]:81/mcp", "http://127.0.0.1:81/."] {
            assert!(!has_final_dot(address), "{address}");
        }
    }

    #[test]
    fn a_resource_of_another_server_is_refused() {
        // Rule: [AUTHC-020] [AUTHC-041].
        let server = location("https://example.com/a/mcp");
        for (resource, reason) in [
            ("https://evil.example/a/mcp", UrlFault::Origin),
            ("http://example.com/a/mcp", UrlFault::Origin),
            ("https://example.com:8443/a/mcp", UrlFault::Origin),
            ("https://example.com/a/mc", UrlFault::Path),
            ("https://example.com/a/mcp/b", UrlFault::Path),
            ("https://example.com/b", UrlFault::Path),
            ("https://example.com/A/mcp", UrlFault::Path),
            ("https://example.com/a/mcp?c", UrlFault::Path),
            ("https://example.com/a/mcp#c", UrlFault::Fragment),
            ("https://example.com./a/mcp", UrlFault::FinalDot),
            ("https://example.com.:443/a/mcp", UrlFault::FinalDot),
            ("https://EXAMPLE.com.:/", UrlFault::FinalDot),
            ("https://example.com.", UrlFault::FinalDot),
            ("https://example.com./a/mcp?b#c", UrlFault::Fragment),
            ("example.com/a/mcp", UrlFault::Url(InvalidUrl::Scheme)),
            ("https://a@example.com/a/mcp", UrlFault::Url(InvalidUrl::User)),
        ] {
            assert_eq!(ResourceUri::from_metadata(resource, &server), Err(reason), "{resource}");
        }
    }
}

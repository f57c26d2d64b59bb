//! The URLs of metadata documents, in the order in which to request them.
//!
//! The first URL with metadata counts, even if the metadata must not be used. A URL without it is
//! passed over, whatever its server answers: an error, a page, a redirect to a login, or a JSON
//! object about something else. A client that does not know the revision of a server uses the rules
//! of the latest one, and those of 2025-03-26 if there is no protected resource metadata; it does
//! not if a server failed that may have it.

use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use core::iter::FusedIterator;

use mcp_sansio::Revision;
use mcp_sansio::http::{InvalidUrl, Location, Scheme};

pub(super) const PROTECTED_RESOURCE: &str = "/.well-known/oauth-protected-resource";
const AUTHORIZATION_SERVER: &str = "/.well-known/oauth-authorization-server";
const OPENID: &str = "/.well-known/openid-configuration";

/// The URLs of a metadata document, in the order in which to request them. At most three, without
/// duplicates.
#[derive(Clone, Debug)]
pub struct MetadataUrls(vec::IntoIter<Location>);

impl MetadataUrls {
    /// Returns the URLs of the protected resource metadata of the MCP server at `server`, whose
    /// challenge named `challenged`.
    ///
    /// Skips a malformed URL of the challenge, and one whose response could be forged in transit:
    /// one that is neither `https`, nor on this machine, nor at the origin of the server's own URL,
    /// which the user chose. Returns no URL before 2025-06-18, which has no such metadata.
    #[must_use]
    pub fn for_resource(revision: Revision, server: &Location, challenged: Option<&str>) -> Self {
        let mut urls = Vec::new();
        if revision < Revision::V2025_06_18 {
            return Self(urls.into_iter());
        }
        // MCP 2025-06-18 basic/authorization#authorization-server-location [AUTHC-016]
        // MCP 2026-07-28 basic/authorization/authorization-server-discovery#protected-resource-metadata-discovery-requirements [AUTHC-017]
        let named = challenged.and_then(|reference| named_by_challenge(reference, server));
        urls.extend(named.filter(|url| is_secure(url) || url.same_origin(server)));
        if revision >= Revision::V2025_11_25 {
            // MCP 2026-07-28 basic/authorization/authorization-server-discovery#protected-resource-metadata-discovery-requirements [AUTHC-018]:
            // a query follows the inserted path (RFC 9728, section 3.1).
            let target = server.path_and_query();
            let target = match target.strip_prefix('/') {
                Some(rest) if rest.is_empty() || rest.starts_with('?') => rest,
                _ => target,
            };
            push(&mut urls, server, &[PROTECTED_RESOURCE, target]);
            push(&mut urls, server, &[PROTECTED_RESOURCE]);
        }
        Self(urls.into_iter())
    }

    /// Returns the metadata URLs of an authorization server, by its issuer identifier in the
    /// resource metadata. The document must contain the same text as `issuer`, except for a final
    /// slash.
    ///
    /// # Errors
    ///
    /// The error of the server that named the issuer.
    pub fn for_issuer(revision: Revision, issuer: &str) -> Result<Self, UrlFault> {
        let location = endpoint(issuer)?;
        let path = location.path_and_query();
        if path.contains('?') {
            return Err(UrlFault::Query);
        }
        // The trailing slash is omitted (RFC 8414, section 3.1, and OpenID Connect Discovery 1.0,
        // section 4.1).
        let path = path.strip_suffix('/').unwrap_or(path);
        let mut urls = Vec::new();
        // MCP 2025-06-18 basic/authorization#server-metadata-discovery [AUTHC-021]
        push(&mut urls, &location, &[AUTHORIZATION_SERVER, path]);
        if revision >= Revision::V2025_11_25 {
            // MCP 2026-07-28 basic/authorization/index#overview [AUTHC-022],
            // MCP 2026-07-28 basic/authorization/authorization-server-discovery#authorization-server-metadata-discovery
            // [AUTHC-023] [AUTHC-024]: without a path, inserting and appending are the same.
            push(&mut urls, &location, &[OPENID, path]);
            push(&mut urls, &location, &[path, OPENID]);
        }
        Ok(Self(urls.into_iter()))
    }

    /// Returns the URL of the authorization server metadata of 2025-03-26, which is on the host of
    /// the MCP server. Its issuer is the URL of that server without a path. Without metadata,
    /// its endpoints are those of `AuthorizationServerMetadata::implied_by`.
    // MCP 2025-03-26 basic/authorization#server-metadata-discovery [AUTHC-007]
    #[must_use]
    pub fn for_base(server: &Location) -> Self {
        let mut urls = Vec::new();
        push(&mut urls, server, &[AUTHORIZATION_SERVER]);
        Self(urls.into_iter())
    }
}

impl Iterator for MetadataUrls {
    type Item = Location;

    fn next(&mut self) -> Option<Location> {
        self.0.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for MetadataUrls {}

impl FusedIterator for MetadataUrls {}

/// Returns the URL of metadata that a challenge of `server` names. RFC 9728, section 5.1, has a URL;
/// some servers write a path of theirs.
pub(super) fn named_by_challenge(reference: &str, server: &Location) -> Option<Location> {
    let resolved = || server.resolve(reference).ok().filter(|it| it.same_origin(server));
    Location::parse(reference).ok().or_else(|| resolved().filter(|_| !reference.is_empty()))
}

/// Adds the URL with this path on the host of `base`, unless it is a duplicate or too long.
fn push(urls: &mut Vec<Location>, base: &Location, path: &[&str]) {
    // Concatenated, not resolved as a reference: a path that starts with `//` would name another
    // host.
    if let Ok(url) = Location::parse(&[&base.origin().to_string(), &*path.concat()].concat())
        && !urls.contains(&url)
    {
        urls.push(url);
    }
}

// ------------------------------------------------------------------ URLs that are secure enough for authorization

/// Why a URL must not be used for authorization. The error of its author, unless it is an attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UrlFault {
    /// It is not the URL of a server; a redirect URI is not a URI.
    #[error("{0}")]
    Url(InvalidUrl),
    /// It has a fragment.
    #[error("the URL has a fragment")]
    Fragment,
    /// It is neither `https` nor on this machine: data sent there can be read in transit.
    #[error("the URL is neither `https` nor on a loopback address")]
    Insecure,
    /// It is that of an issuer and has a query (RFC 8414, section 2).
    #[error("the URL has a query")]
    Query,
    /// It is that of a client's metadata document, and has no path.
    #[error("the URL has no path")]
    NoPath,
    /// It is a redirect URI whose scheme is neither a web scheme nor derived from a domain name of
    /// the application, like `com.example.app` (RFC 8252, section 7.1).
    #[error("the scheme is not the application's own")]
    Scheme,
    /// It is a client's metadata document or the redirect URI of a web application, and not `https`
    /// on a host of its own.
    #[error("the URL is not `https` on a host of its own")]
    Web,
    /// The grant requires a redirect URI and none is given, or the grant has no redirect.
    #[error("the redirect URIs do not match the grant")]
    Count,
    /// It is the `resource` of metadata, and its host ends with a dot. A [`Location`] never does, so
    /// no token is requested for that name.
    #[error("the host of `resource` ends with a dot")]
    FinalDot,
    /// It is the `resource` of metadata, and differs from the server in scheme, host or port.
    #[error("`resource` has another origin than the server")]
    Origin,
    /// It is the `resource` of metadata, and has a path or a query that does not contain the URL of
    /// the server.
    #[error("the URL of the server is not below `resource`")]
    Path,
}

/// Parses a URL that credentials or a user may be sent to. Linear in the length.
pub(super) fn endpoint(url: &str) -> Result<Location, UrlFault> {
    let location = Location::parse(url).map_err(UrlFault::Url)?;
    if url.contains('#') {
        return Err(UrlFault::Fragment);
    }
    // MCP 2026-07-28 basic/authorization/security-considerations#communication-security
    // [AUTHC-067]: endpoints are served over HTTPS. Traffic within this machine cannot be read in
    // transit.
    if is_secure(&location) { Ok(location) } else { Err(UrlFault::Insecure) }
}

pub(super) fn is_secure(location: &Location) -> bool {
    let origin = location.origin();
    origin.scheme() == Scheme::Https || origin.is_loopback()
}

#[cfg(test)]
mod tests {
    use mcp_sansio::http::InvalidUrl;

    use alloc::string::String;

    use super::*;

    fn location(url: &str) -> Location {
        Location::parse(url).expect(url)
    }

    fn texts(urls: MetadataUrls) -> Vec<String> {
        urls.map(|url| url.to_string()).collect()
    }

    fn resource(revision: Revision, server: &str, challenged: Option<&str>) -> Vec<String> {
        texts(MetadataUrls::for_resource(revision, &location(server), challenged))
    }

    fn issuer(revision: Revision, issuer: &str) -> Vec<String> {
        texts(MetadataUrls::for_issuer(revision, issuer).expect(issuer))
    }

    #[test]
    fn resource_urls_are_the_challenge_then_the_path_then_the_root() {
        // Rule: [AUTHC-017] [AUTHC-018].
        let server = "https://example.com/public/mcp";
        for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
            let well_known = [
                "https://example.com/.well-known/oauth-protected-resource/public/mcp",
                "https://example.com/.well-known/oauth-protected-resource",
            ];
            assert_eq!(resource(revision, server, None), well_known);
            let urls = resource(revision, server, Some("https://m.example/x"));
            assert_eq!(urls[0], "https://m.example/x");
            assert_eq!(urls[1..], well_known);
            assert_eq!(resource(revision, server, Some(well_known[0])), well_known);
        }
    }

    #[test]
    fn a_resource_without_a_path_has_one_url() {
        // Rule: [AUTHC-018].
        let latest = |server| resource(Revision::LATEST, server, None);
        let root = "https://a.example/.well-known/oauth-protected-resource";
        assert_eq!(latest("https://a.example"), [root]);
        assert_eq!(latest("https://a.example/?b=c"), [[root, "?b=c"].concat().as_str(), root]);
        assert_eq!(latest("https://a.example/b/"), [[root, "/b/"].concat().as_str(), root]);
    }

    #[test]
    fn older_revisions_try_fewer_resource_urls() {
        // Rule: [AUTHC-016].
        let named = Some("https://m.example/x");
        let server = "https://example.com/mcp";
        assert_eq!(resource(Revision::V2025_06_18, server, named), ["https://m.example/x"]);
        for revision in [Revision::V2024_11_05, Revision::V2025_03_26] {
            assert!(resource(revision, server, named).is_empty());
        }
        assert!(resource(Revision::V2025_06_18, server, None).is_empty());
    }

    #[test]
    fn an_insecure_metadata_url_in_a_challenge_is_not_fetched() {
        // Rule: [AUTHC-067].
        let first = |named| resource(Revision::V2025_06_18, "http://a.example/mcp", Some(named));
        for named in ["http://b.example/", "//b.example/x", "file:///x", "https://u@b.example/", ""]
        {
            assert!(first(named).is_empty(), "{named}");
        }
        for (named, url) in [("/x", "http://a.example/x"), ("x?y", "http://a.example/x?y")] {
            assert_eq!(first(named), [url], "{named}");
        }
        for named in ["https://b.example/", "http://[::1]:80/x", "http://a.example/x"] {
            assert_eq!(first(named).len(), 1, "{named}");
        }
    }

    #[test]
    fn an_issuer_with_a_path_has_three_urls() {
        // Rule: [AUTHC-022] [AUTHC-023].
        let urls = [
            "https://auth.example.com/.well-known/oauth-authorization-server/tenant1",
            "https://auth.example.com/.well-known/openid-configuration/tenant1",
            "https://auth.example.com/tenant1/.well-known/openid-configuration",
        ];
        for text in ["https://auth.example.com/tenant1", "https://auth.example.com/tenant1/"] {
            assert_eq!(issuer(Revision::V2025_11_25, text), urls);
            assert_eq!(issuer(Revision::V2026_07_28, text), urls);
            // Rule: [AUTHC-021].
            assert_eq!(issuer(Revision::V2025_06_18, text), urls[..1]);
        }
    }

    #[test]
    fn an_issuer_without_a_path_has_two_urls() {
        // Rule: [AUTHC-022] [AUTHC-024].
        let urls = [
            "https://auth.example.com/.well-known/oauth-authorization-server",
            "https://auth.example.com/.well-known/openid-configuration",
        ];
        assert_eq!(issuer(Revision::LATEST, "https://auth.example.com"), urls);
        assert_eq!(issuer(Revision::LATEST, "https://auth.example.com/"), urls);
    }

    #[test]
    fn no_path_leads_to_another_host() {
        let url = "https://a.example//b.example/c";
        let urls = issuer(Revision::LATEST, url);
        assert_eq!(urls[2], "https://a.example//b.example/c/.well-known/openid-configuration");
        let urls = urls.into_iter().chain(resource(Revision::LATEST, url, None));
        assert!(urls.into_iter().all(|it| location(&it).same_origin(&location(url))));
    }

    #[test]
    fn an_invalid_issuer_is_not_fetched() {
        for (text, reason) in [
            ("https://a.example/?b", UrlFault::Query),
            ("https://a.example/#b", UrlFault::Fragment),
            ("http://a.example", UrlFault::Insecure),
            ("a.example", UrlFault::Url(InvalidUrl::Scheme)),
        ] {
            let urls = MetadataUrls::for_issuer(Revision::LATEST, text);
            assert_eq!(urls.err(), Some(reason), "{text}");
        }
    }

    #[test]
    fn in_2025_03_26_the_server_is_its_own_authorization_server() {
        // Rule: [AUTHC-006] [AUTHC-007].
        let server = location("https://api.example.com/v1/mcp?a");
        let urls = texts(MetadataUrls::for_base(&server));
        assert_eq!(urls, ["https://api.example.com/.well-known/oauth-authorization-server"]);
    }
}

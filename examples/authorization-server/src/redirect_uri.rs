//! Validation of redirect URIs.

use std::ops::Range;

/// The type of a client application (OpenID Connect Dynamic Client Registration, section 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ApplicationType {
    Native,
    Web,
}

impl ApplicationType {
    /// An absent type means web, unless all of the client's redirect URIs lead to its own machine:
    /// OAuth without OpenID Connect does not know the type, and such a client can only be native.
    pub(super) fn parse(name: Option<&str>, redirect_uris: &[String]) -> Option<Self> {
        let local = |uri: &String| uri.starts_with("http:") && Self::Native.may_have(uri);
        match name {
            None if redirect_uris.iter().all(local) => Some(Self::Native),
            None | Some("web") => Some(Self::Web),
            Some("native") => Some(Self::Native),
            Some(_) => None,
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Web => "web",
        }
    }

    /// Whether a client of this type may register `uri`.
    // MCP 2025-03-26 basic/authorization#security-considerations [AUTHS-005]
    pub(super) fn may_have(self, uri: &str) -> bool {
        let Some((scheme, rest)) = uri.split_once(':') else { return false };
        // Rejects fragments and all characters that headers or browsers may interpret differently.
        if !uri.bytes().all(|byte| byte.is_ascii_graphic() && !br#""<>\^`{|}#"#.contains(&byte)) {
            return false;
        }
        let host = host(uri).map(|host| &uri[host]);
        match (self, scheme) {
            (Self::Web, "https") => host.is_some_and(|host| !is_loopback(host)),
            (Self::Web, _) => false,
            (Self::Native, "https") => host.is_some(),
            (Self::Native, "http") => host.is_some_and(is_loopback),
            // The scheme of a native application is a reversed domain name (RFC 8252, section 7.1),
            // which excludes `javascript` and `data`.
            (Self::Native, scheme) => scheme.contains('.') && !rest.is_empty(),
        }
    }
}

/// Whether `asked_for` equals the registered URI. The port of a loopback host may differ, because a
/// native application does not know it in advance (RFC 8252, section 7.3).
// MCP 2026-07-28 basic/authorization/security-considerations#open-redirection [AUTHS-025]: exact
// match.
pub(super) fn matches(registered: &str, asked_for: &str) -> bool {
    registered == asked_for
        || matches!(
            (without_port(registered), without_port(asked_for)),
            (Some(registered), Some(asked_for)) if registered == asked_for
        )
}

/// Splits an `http` URI of a loopback host into the parts before and after the port.
fn without_port(uri: &str) -> Option<(&str, &str)> {
    let host = host(uri).filter(|_| uri.starts_with("http://"))?;
    if !is_loopback(&uri[host.clone()]) {
        return None;
    }
    let (before, rest) = uri.split_at(host.end);
    let behind = match rest.strip_prefix(':') {
        Some(rest) => rest.trim_start_matches(|it: char| it.is_ascii_digit()),
        None => rest,
    };
    Some((before, behind))
}

/// Returns the position of the host in an `http` or `https` URI without user information.
fn host(uri: &str) -> Option<Range<usize>> {
    let (scheme, rest) = uri.split_once("://")?;
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    let length = match authority.find(']') {
        Some(end) if authority.starts_with('[') => end + 1,
        _ => authority.find(':').unwrap_or(authority.len()),
    };
    let port = &authority[length..];
    let no_port =
        port.is_empty() || port.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok());
    let start = scheme.len() + 3;
    (length > 0 && no_port && !authority.contains('@')).then_some(start..start + length)
}

fn is_loopback(host: &str) -> bool {
    matches!(host, "localhost" | "127.0.0.1" | "[::1]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirect_uris_depend_on_the_application_type() {
        // Rule: [AUTHS-005].
        use ApplicationType::{Native, Web};
        for (uri, native, web) in [
            ("http://127.0.0.1:7/callback", true, false),
            ("http://[::1]/callback", true, false),
            ("http://localhost/callback", true, false),
            ("https://app.example/callback?x=1", true, true),
            ("https://localhost/callback", true, false),
            ("com.example.app:/callback", true, false),
            ("http://app.example/callback", false, false),
            ("http://127.0.0.1@evil.example/", false, false),
            ("http://127.0.0.1:7x/", false, false),
            ("http://localhost.evil.example/", false, false),
            ("https://app.example/#x", false, false),
            ("https://app.example/ x", false, false),
            ("https:///x", false, false),
            ("javascript:alert(1)", false, false),
            ("callback", false, false),
        ] {
            assert_eq!([Native, Web].map(|kind| kind.may_have(uri)), [native, web], "{uri}");
        }
    }

    #[test]
    fn a_redirect_uri_must_equal_the_registered_one_except_for_a_loopback_port() {
        // Rule: [AUTHS-025].
        for (registered, asked_for, expected) in [
            ("https://a.example/cb", "https://a.example/cb", true),
            ("https://a.example/cb", "https://a.example/cb/", false),
            ("https://a.example/cb", "https://a.example/cb?x", false),
            ("https://a.example/cb", "https://a.example:443/cb", false),
            ("http://127.0.0.1/cb", "http://127.0.0.1:4711/cb", true),
            ("http://127.0.0.1:1/cb", "http://127.0.0.1:2/cb", true),
            ("http://[::1]:1/cb", "http://[::1]:2/cb", true),
            ("http://127.0.0.1:1/cb", "http://localhost:1/cb", false),
            ("http://127.0.0.1:1/cb", "http://127.0.0.1:1/other", false),
            ("http://127.0.0.1:1/cb", "http://127.0.0.1:1@evil.example/cb", false),
            ("https://localhost:1/cb", "https://localhost:2/cb", false),
        ] {
            assert_eq!(matches(registered, asked_for), expected, "{registered} {asked_for}");
        }
    }
}

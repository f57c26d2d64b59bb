use alloc::string::{String, ToString};
use core::fmt;
use core::str::FromStr;

use super::authority::{Authority, InvalidAuthority, Origin, Scheme};
use crate::catalog::{InvalidUri, check_uri};

/// The maximum length of a server URL, in bytes: slightly more than the 8,000 bytes that HTTP
/// recommends to support (RFC 9110).
pub const LOCATION_LENGTH_MAX: usize = 8192;

/// The URL of a server, as a client uses it: `http` or `https`, with a host, and without a user,
/// password or fragment.
///
/// It is normalized: scheme and host are in lower case, the default port of the scheme is omitted,
/// and the path is at least `/` and contains no `.` or `..` segments. Path and query are otherwise
/// unchanged.
#[derive(Clone, PartialEq, Eq)]
pub struct Location {
    text: String,
    origin: Origin,
    /// The offset of the path in `text`.
    path: usize,
}

/// A text is not a valid server URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidUrl {
    /// It is longer than [`LOCATION_LENGTH_MAX`].
    #[error("the URL is longer than {LOCATION_LENGTH_MAX} bytes")]
    TooLong,
    /// It does not start with `http:` or `https:`.
    #[error("the URL does not start with `http://` or `https://`")]
    Scheme,
    /// It contains a character that must be encoded, or an invalid `%` sequence.
    #[error("the URL is malformed: {0}")]
    Syntax(InvalidUri),
    /// It contains a user. Such URLs end up in logs, and can disguise the host.
    #[error("the URL contains a user or password; send credentials in a header")]
    User,
    /// Its host is missing or malformed. A non-ASCII name must be in its DNS form, `xn--…`.
    #[error("the host of the URL is missing or malformed")]
    Host,
    /// Its port is not a number up to 65,535.
    #[error("the port of the URL is not a number up to 65535")]
    Port,
}

impl Location {
    /// Parses an absolute URL and drops its fragment. Linear in the length.
    ///
    /// # Errors
    ///
    /// See [`InvalidUrl`].
    pub fn parse(url: &str) -> Result<Self, InvalidUrl> {
        if url.len() > LOCATION_LENGTH_MAX {
            return Err(InvalidUrl::TooLong);
        }
        check_uri(url).map_err(|error| match error {
            InvalidUri::Scheme => InvalidUrl::Scheme,
            error => InvalidUrl::Syntax(error),
        })?;
        let (scheme, rest) = without_fragment(url).split_once(':').ok_or(InvalidUrl::Scheme)?;
        let scheme = Scheme::parse(scheme).ok_or(InvalidUrl::Scheme)?;
        let rest = rest.strip_prefix("//").ok_or(InvalidUrl::Host)?;
        let (authority, rest) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err(InvalidUrl::User);
        }
        let authority = Authority::parse(authority).map_err(|error| match error {
            InvalidAuthority::Host => InvalidUrl::Host,
            InvalidAuthority::Port => InvalidUrl::Port,
        })?;
        let origin = Origin::new(scheme, authority);
        let mut text = origin.to_string();
        let start = text.len();
        let (path, query) = rest.split_at(rest.find('?').unwrap_or(rest.len()));
        push_path(&mut text, path);
        text.push_str(query);
        Ok(Self { text, origin, path: start })
    }

    /// Resolves an absolute or relative reference against this URL (RFC 3986, section 5.2). Linear
    /// in both lengths.
    ///
    /// The result may have another origin: see [`Location::same_origin`].
    ///
    /// # Errors
    ///
    /// See [`InvalidUrl`].
    pub fn resolve(&self, reference: &str) -> Result<Self, InvalidUrl> {
        let reference = without_fragment(reference);
        if reference.len() > LOCATION_LENGTH_MAX {
            return Err(InvalidUrl::TooLong);
        }
        let path_end = self.text.find('?').unwrap_or(self.text.len());
        let base = match reference.as_bytes() {
            [] => return Ok(self.clone()),
            [b'/', b'/', ..] => &self.text[..=self.origin.scheme().as_str().len()],
            [b'/', ..] => &self.text[..self.path],
            [b'?', ..] => &self.text[..path_end],
            // The first segment of a relative path cannot contain a colon.
            _ if reference.split(['/', '?']).next().is_some_and(|it| it.contains(':')) => "",
            _ => {
                let folder = self.text[..path_end].rfind('/').map_or(path_end, |slash| slash + 1);
                &self.text[..folder]
            }
        };
        Self::parse(&[base, reference].concat())
    }

    /// Returns the scheme, host and port.
    #[must_use]
    pub const fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Returns whether both URLs have the same scheme, host and port, so that credentials for one
    /// may be sent to the other.
    #[must_use]
    pub fn same_origin(&self, other: &Self) -> bool {
        self.origin == other.origin
    }

    /// Returns the host to connect to; an IPv6 address has no brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        let authority = self.authority();
        match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((address, _)) => address,
            None => authority.split(':').next().unwrap_or(authority),
        }
    }

    /// Returns the port to connect to.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.origin.port()
    }

    /// Returns host and port, in the form of `Host` and `:authority`.
    #[must_use]
    pub fn authority(&self) -> &str {
        &self.text[self.origin.scheme().as_str().len() + "://".len()..self.path]
    }

    /// Returns path and query: the target of a request.
    #[must_use]
    pub fn path_and_query(&self) -> &str {
        &self.text[self.path..]
    }

    /// Returns the complete URL.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl FromStr for Location {
    type Err = InvalidUrl;

    fn from_str(url: &str) -> Result<Self, InvalidUrl> {
        Self::parse(url)
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

fn without_fragment(text: &str) -> &str {
    text.split('#').next().unwrap_or_default()
}

/// Appends a path without its `.` and `..` segments (RFC 3986, section 5.2.4). Every byte is read
/// once when it is appended and at most once more when it is removed.
fn push_path(text: &mut String, path: &str) {
    let start = text.len();
    let mut segments = path.strip_prefix('/').unwrap_or(path).split('/').peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        match segment {
            "." | ".." => {
                if segment == ".." {
                    let parent = text[start..].rfind('/').unwrap_or(0);
                    text.truncate(start + parent);
                }
                if last {
                    text.push('/');
                }
            }
            _ => {
                text.push('/');
                text.push_str(segment);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn location(url: &str) -> Location {
        Location::parse(url).expect(url)
    }

    #[test]
    fn a_url_is_normalized() {
        for (url, form) in [
            ("http://example.com", "http://example.com/"),
            ("HTTPS://EXAMPLE.com:443/Mcp?a=/../b#c", "https://example.com/Mcp?a=/../b"),
            ("http://example.com.:080?x", "http://example.com/?x"),
            ("http://[0:0::1]:8080/./a/../b//c/..", "http://[::1]:8080/b//"),
            ("https://h:80/%7Ea;b=c/..x/.../", "https://h:80/%7Ea;b=c/..x/.../"),
            ("http://h/../../a/.", "http://h/a/"),
        ] {
            assert_eq!(location(url).as_str(), form);
            assert_eq!(location(form), location(url));
        }
    }

    #[test]
    fn the_parts_of_a_url_are_returned() {
        let parts = |url| {
            let it = location(url);
            (String::from(it.host()), it.port(), String::from(it.authority()))
        };
        assert_eq!(parts("https://A.b/x"), ("a.b".into(), 443, "a.b".into()));
        assert_eq!(parts("http://[::1]:81/x"), ("::1".into(), 81, "[::1]:81".into()));
        assert_eq!(parts("http://1.2.3.4:81"), ("1.2.3.4".into(), 81, "1.2.3.4:81".into()));
        assert_eq!(location("http://a/b?c#d").path_and_query(), "/b?c");
        assert_eq!(location("http://a").path_and_query(), "/");
    }

    #[test]
    fn invalid_server_urls_are_rejected_with_a_reason() {
        for (url, reason) in [
            ("", InvalidUrl::Scheme),
            ("example.com/mcp", InvalidUrl::Scheme),
            ("//example.com", InvalidUrl::Scheme),
            ("ftp://example.com", InvalidUrl::Scheme),
            ("file:///etc/passwd", InvalidUrl::Scheme),
            ("http:/a", InvalidUrl::Host),
            ("http:a", InvalidUrl::Host),
            ("http://", InvalidUrl::Host),
            ("http:///a", InvalidUrl::Host),
            ("http://:80", InvalidUrl::Host),
            ("http://127.1", InvalidUrl::Host),
            ("http://[::1", InvalidUrl::Host),
            ("http://a%2eb", InvalidUrl::Host),
            ("http://a:65536", InvalidUrl::Port),
            ("http://user@a", InvalidUrl::User),
            ("http://a:b@c/", InvalidUrl::User),
            ("http://bücher.example", InvalidUrl::Syntax(InvalidUri::Character('ü'))),
            ("http://a\\b", InvalidUrl::Syntax(InvalidUri::Character('\\'))),
            ("http://a/b c", InvalidUrl::Syntax(InvalidUri::Character(' '))),
            ("http://a/\r\n", InvalidUrl::Syntax(InvalidUri::Character('\r'))),
            ("http://a/%", InvalidUrl::Syntax(InvalidUri::Percent)),
        ] {
            assert_eq!(Location::parse(url), Err(reason), "{url:?}");
        }
        let long = ["http://a/", &"x".repeat(LOCATION_LENGTH_MAX)].concat();
        assert_eq!(Location::parse(&long), Err(InvalidUrl::TooLong));
        assert_eq!(location("http://a").resolve(&long[8..]), Err(InvalidUrl::TooLong));
        assert!(Location::parse(&long[..LOCATION_LENGTH_MAX]).is_ok());
    }

    #[test]
    fn references_resolve_as_in_the_examples_of_rfc_3986() {
        let base = location("http://a/b/c/d;p?q");
        for (reference, url) in [
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g/"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"),
            ("#s", "http://a/b/c/d;p?q"),
            ("g#s", "http://a/b/c/g"),
            ("g?y#s", "http://a/b/c/g?y"),
            (";x", "http://a/b/c/;x"),
            ("g;x=1/../y", "http://a/b/c/y"),
            ("", "http://a/b/c/d;p?q"),
            (".", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../..", "http://a/"),
            ("../../../g", "http://a/g"),
            ("/../g", "http://a/g"),
            ("g.", "http://a/b/c/g."),
            ("..g", "http://a/b/c/..g"),
            ("g?y/../x", "http://a/b/c/g?y/../x"),
            ("https://g:8/h", "https://g:8/h"),
            ("./a:b", "http://a/b/c/a:b"),
        ] {
            assert_eq!(
                base.resolve(reference).map(|it| it.text).as_deref(),
                Ok(url),
                "{reference}"
            );
        }
        for (reference, reason) in [
            ("g:h", InvalidUrl::Scheme),
            ("javascript:alert(1)", InvalidUrl::Scheme),
            ("http:g", InvalidUrl::Host),
            ("//", InvalidUrl::Host),
            ("///g", InvalidUrl::Host),
            ("//u@g", InvalidUrl::User),
            ("\\\\g", InvalidUrl::Syntax(InvalidUri::Character('\\'))),
            (" g", InvalidUrl::Syntax(InvalidUri::Character(' '))),
        ] {
            assert_eq!(base.resolve(reference), Err(reason), "{reference}");
        }
        let query = location("http://a/b?c=/d/");
        assert_eq!(query.resolve("e").map(|it| it.text).as_deref(), Ok("http://a/e"));
    }

    #[test]
    fn another_scheme_host_or_port_is_another_origin() {
        let base = location("https://example.com/mcp");
        for same in ["/sse", "https://EXAMPLE.com:443/x", "//example.com./y"] {
            assert!(base.resolve(same).is_ok_and(|it| it.same_origin(&base)), "{same}");
        }
        for other in ["http://example.com/mcp", "https://example.com:444/mcp", "//evil.example/mcp"]
        {
            assert!(base.resolve(other).is_ok_and(|it| !it.same_origin(&base)), "{other}");
        }
    }

    proptest::proptest! {
        #[test]
        fn resolved_references_are_normalized(
            base in "https?://[a-c]{1,3}(:[0-9]{1,4})?(/[.a-c]{0,3}){0,4}(\\?[./a]{0,3})?",
            reference in "\\PC{0,12}|(https?:)?/{0,2}([.a-c:@]{0,3}/){0,5}[?#]?[.a]{0,3}",
        ) {
            let base = Location::parse(&base);
            proptest::prop_assert!(base.is_ok());
            if let Ok(location) = base.and_then(|base| base.resolve(&reference)) {
                proptest::prop_assert!(!location.path_and_query().split('?').next().is_some_and(
                    |path| path.split('/').any(|segment| matches!(segment, "." | ".."))
                ));
                proptest::prop_assert_eq!(Location::parse(location.as_str()), Ok(location));
            }
        }
    }
}

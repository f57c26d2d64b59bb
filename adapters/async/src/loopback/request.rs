//! Responses to the browser that returns the user to a client on the same machine: everything but
//! the socket.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use mcp_sansio::InvalidValue;
use mcp_sansio::http::Location;

/// The longest request, in bytes. 64 KiB: a redirect, and the cookies that other programs on this
/// machine have set.
pub(super) const REQUEST_LENGTH_MAX: usize = 64 * 1024;

/// The most connections that may wait for their request. 16: browsers open some in advance. A
/// further one replaces the oldest.
pub const CONNECTIONS_MAX: usize = 16;

/// Time limit of a connection for its request, and for reading its response. 10 s.
pub(super) const CONNECTION_TIME: Duration = Duration::from_secs(10);

/// Time limit of a user who sees the page. 5 min: time to find a second factor; about the lifetime
/// of sign-in pages.
pub const USER_TIME: Duration = Duration::from_secs(5 * 60);

/// The default path of redirects.
pub(super) const PATH: &str = "/callback";

/// The redirect target of a browser: a socket of this machine, and a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RedirectAddress {
    socket: SocketAddr,
    path: String,
}

const NOT_LOOPBACK: &str = "the socket is not bound to a loopback address";
const INVALID_PATH: &str = "not a valid path of a URL: it must start with `/` and have no query";

/// The outcome of parsing the bytes received so far.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ParsedRequest<'a> {
    /// The request is incomplete.
    Incomplete,
    /// A redirect to this address, with this target. It is not checked against pending
    /// authorizations.
    Redirect(&'a str),
    /// Another request, to be refused.
    Refused(Reply),
}

impl RedirectAddress {
    /// Creates the address of `path` at the socket that listens on `socket`.
    ///
    /// # Errors
    ///
    /// The caller's fault: other machines can reach the socket, or the path does not start with
    /// `/`, has a query, or is not in the form that browsers send.
    // MCP 2026-07-28 basic/authorization/security-considerations#communication-security [AUTHC-047]
    pub(super) fn new(socket: SocketAddr, path: impl Into<String>) -> Result<Self, InvalidValue> {
        let address = Self { socket, path: path.into() };
        if !socket.ip().is_loopback() {
            return Err(InvalidValue::new(NOT_LOOPBACK));
        }
        let formed = Location::parse(&address.redirect_uri())
            .is_ok_and(|it| it.path_and_query() == address.path && !address.path.contains('?'));
        if formed { Ok(address) } else { Err(InvalidValue::new(INVALID_PATH)) }
    }

    /// Returns the address of another path at the same socket.
    ///
    /// # Errors
    ///
    /// The path is invalid: the caller's fault.
    pub(super) fn with_path(&self, path: impl Into<String>) -> Result<Self, InvalidValue> {
        Self::new(self.socket, path)
    }

    /// Returns the error message for a request with another redirect URI, whose redirect would
    /// never arrive at this address.
    #[must_use]
    pub(super) fn mismatch(&self, other: &str) -> String {
        format!(
            "the redirect URI of the request is `{other}`, but this listener has `{}`",
            self.redirect_uri()
        )
    }

    /// Returns the redirect URI, for the options of the client.
    #[must_use]
    pub(super) fn redirect_uri(&self) -> String {
        format!("http://{}{}", self.socket, self.path)
    }

    /// Returns the redirect URI with the name `localhost` in place of the address.
    #[must_use]
    pub(super) fn localhost_redirect_uri(&self) -> String {
        format!("http://localhost:{}{}", self.socket.port(), self.path)
    }

    /// Whether the redirect URI leads to this address.
    pub(super) fn has(&self, redirect_uri: &str) -> bool {
        redirect_uri == self.redirect_uri() || redirect_uri == self.localhost_redirect_uri()
    }

    /// Parses the bytes received so far. Call it again with more bytes until the result is no
    /// longer [`ParsedRequest::Incomplete`]; at most [`REQUEST_LENGTH_MAX`] bytes are needed.
    ///
    /// It only accepts redirects as browsers send them: a `GET` in HTTP/1, without a body.
    #[must_use]
    pub(super) fn read<'a>(&self, request: &'a [u8]) -> ParsedRequest<'a> {
        // A request without a body ends with an empty line.
        if !request.ends_with(b"\r\n\r\n") {
            let full = request.len() >= REQUEST_LENGTH_MAX;
            return if full {
                ParsedRequest::Refused(Reply::TooLong)
            } else {
                ParsedRequest::Incomplete
            };
        }
        self.parse(request).map_or_else(ParsedRequest::Refused, ParsedRequest::Redirect)
    }

    fn parse<'a>(&self, request: &'a [u8]) -> Result<&'a str, Reply> {
        let request = str::from_utf8(request).map_err(|_| Reply::Malformed)?;
        let mut lines = request.split("\r\n");
        let mut words = lines.next().unwrap_or_default().split(' ');
        let (Some(method), Some(target), Some("HTTP/1.1" | "HTTP/1.0"), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(Reply::Malformed);
        };
        // Refuses DNS rebinding: a page of another origin, whose name now resolves to this address.
        // Browsers resolve `localhost` to this machine without asking others.
        let mut hosts = lines
            .take_while(|line| !line.is_empty())
            .filter_map(|line| line.split_once(':'))
            .filter(|(name, _)| name.eq_ignore_ascii_case("host"))
            .map(|(_, value)| value.trim_matches([' ', '\t']));
        match (hosts.next(), hosts.next()) {
            (Some(host), None) if self.is_host(host) => {}
            _ => return Err(Reply::OtherHost),
        }
        if method != "GET" {
            return Err(Reply::OtherMethod);
        }
        if target.split('?').next() != Some(&self.path) {
            return Err(Reply::NotFound);
        }
        Ok(target)
    }

    /// Whether this is the socket as in `Host`, without the default port of HTTP.
    fn is_host(&self, host: &str) -> bool {
        [self.redirect_uri(), self.localhost_redirect_uri()]
            .iter()
            .any(|uri| Location::parse(uri).is_ok_and(|it| it.authority() == host))
    }
}

impl fmt::Debug for ParsedRequest<'_> {
    /// Omits the target, which contains a code.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Incomplete => f.write_str("Incomplete"),
            Self::Redirect(_) => f.write_str("Redirect(..)"),
            Self::Refused(reply) => f.debug_tuple("Refused").field(reply).finish(),
        }
    }
}

// ------------------------------------------------------------------ page

/// A response to the browser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(super) enum Reply {
    /// The user has returned. The application tells whether the user signed in or declined.
    Welcome,
    /// The redirect does not answer a pending request.
    NotAsked,
    /// The path is not that of redirects.
    NotFound,
    /// The request is for another host.
    OtherHost,
    /// The request has another method than `GET`.
    OtherMethod,
    /// The request is not valid HTTP/1.
    Malformed,
    /// The request is longer than [`REQUEST_LENGTH_MAX`].
    TooLong,
}

impl Reply {
    /// Encodes the response, to be written before the connection is closed: a page without scripts,
    /// which is not cached and does not leak its address, since that contains a code. `application`
    /// is the name shown to the user.
    #[must_use]
    pub(super) fn response(self, application: &str) -> Vec<u8> {
        let (status, allow, title, text) = match self {
            Self::Welcome => ("200 OK", "", "Welcome back", "You can close this window and return"),
            Self::NotAsked => (
                "400 Bad Request",
                "",
                "Not waited for",
                "This sign-in is unknown or already complete. Return",
            ),
            Self::NotFound => ("404 Not Found", "", "Not found", "There is nothing here. Return"),
            Self::OtherHost => {
                ("421 Misdirected Request", "", "Not found", "There is nothing here. Return")
            }
            Self::OtherMethod => {
                ("405 Method Not Allowed", "Allow: GET\r\n", "Not allowed", "Return")
            }
            Self::Malformed => ("400 Bad Request", "", "Not understood", "Return"),
            Self::TooLong => ("431 Request Header Fields Too Large", "", "Too long", "Return"),
        };
        let application = escape(application);
        // An (empty) icon keeps the browser from requesting one after the listener has closed.
        let page = format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <title>{title}</title><link rel=\"icon\" href=\"data:,\"></head>\n\
             <body><h1>{title}</h1><p>{text} to {application}.</p></body></html>\n"
        );
        let length = page.len();
        format!(
            "HTTP/1.1 {status}\r\n\
             {allow}\
             Content-Type: text/html; charset=utf-8\r\n\
             Content-Length: {length}\r\n\
             Connection: close\r\n\
             Cache-Control: no-store\r\n\
             Referrer-Policy: no-referrer\r\n\
             Content-Security-Policy: default-src 'none'; img-src data:; frame-ancestors 'none'\r\n\
             X-Content-Type-Options: nosniff\r\n\
             \r\n\
             {page}"
        )
        .into_bytes()
    }
}

/// Escapes text for HTML.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            _ => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address() -> RedirectAddress {
        RedirectAddress::new(([127, 0, 0, 1], 4321).into(), "/callback").unwrap()
    }

    fn read(request: &str) -> ParsedRequest<'_> {
        address().read(request.as_bytes())
    }

    #[test]
    fn a_redirect_address_is_of_this_machine_and_has_a_path() {
        // Rule: [AUTHC-047].
        assert_eq!(address().redirect_uri(), "http://127.0.0.1:4321/callback");
        let six = RedirectAddress::new("[::1]:80".parse().unwrap(), "/").unwrap();
        assert_eq!(six.redirect_uri(), "http://[::1]:80/");
        let target = b"GET /?code=c HTTP/1.1\r\nHost: [::1]\r\n\r\n";
        assert_eq!(six.read(target), ParsedRequest::Redirect("/?code=c"));
        for socket in ["0.0.0.0:1", "192.0.2.1:1"] {
            let address = RedirectAddress::new(socket.parse().unwrap(), "/");
            assert_eq!(address, Err(InvalidValue::new(NOT_LOOPBACK)));
        }
        for path in ["", "callback", "/a?b", "/a#b", "/a b", "/../a", "@a.example/", "/%"] {
            let address = RedirectAddress::new(([127, 0, 0, 1], 1).into(), path);
            assert_eq!(address, Err(InvalidValue::new(INVALID_PATH)), "{path}");
        }
    }

    #[test]
    fn the_redirect_of_a_browser_is_read() {
        let request = "GET /callback?code=c&state=s HTTP/1.1\r\nHost: 127.0.0.1:4321\r\n\
             User-Agent: x\r\nCookie: a=b: c\r\n\r\n";
        for end in 0..request.len() {
            assert_eq!(read(&request[..end]), ParsedRequest::Incomplete, "{end}");
        }
        assert_eq!(read(request), ParsedRequest::Redirect("/callback?code=c&state=s"));
        // The authorization server may know the address by its name.
        let named = request.replace("127.0.0.1", "localhost");
        assert_eq!(read(&named), ParsedRequest::Redirect("/callback?code=c&state=s"));
        let shown = format!("{:?}", ParsedRequest::Redirect("/callback?code=secret"));
        assert_eq!(shown, "Redirect(..)");
    }

    #[test]
    fn a_redirect_uri_has_the_address_or_the_name_of_this_machine() {
        let address = address();
        assert_eq!(address.redirect_uri(), "http://127.0.0.1:4321/callback");
        assert_eq!(address.localhost_redirect_uri(), "http://localhost:4321/callback");
        assert!(address.has(&address.redirect_uri()));
        assert!(address.has(&address.localhost_redirect_uri()));
        for other in ["http://localhost:4322/callback", "http://localhost:4321/other", ""] {
            assert!(!address.has(other), "{other}");
        }
    }

    #[test]
    fn an_invalid_redirect_is_refused() {
        let host = "Host: 127.0.0.1:4321\r\n";
        for (line, fields, reply) in [
            ("GET /favicon.ico HTTP/1.1", host, Reply::NotFound),
            ("GET /callback/ HTTP/1.1", host, Reply::NotFound),
            ("GET /callback2?code=c HTTP/1.1", host, Reply::NotFound),
            ("GET http://127.0.0.1:4321/callback HTTP/1.1", host, Reply::NotFound),
            ("POST /callback?code=c HTTP/1.1", host, Reply::OtherMethod),
            ("HEAD /callback?code=c HTTP/1.1", host, Reply::OtherMethod),
            ("get /callback?code=c HTTP/1.1", host, Reply::OtherMethod),
            ("GET /callback?code=c", host, Reply::Malformed),
            ("GET /callback?code=c HTTP/2", host, Reply::Malformed),
            ("GET /callback?code=c d HTTP/1.1", host, Reply::Malformed),
            ("", host, Reply::Malformed),
            ("GET /callback HTTP/1.1", "", Reply::OtherHost),
            ("GET /callback HTTP/1.1", "Host: 127.0.0.1\r\n", Reply::OtherHost),
            ("GET /callback HTTP/1.1", "Host: evil.example:4321\r\n", Reply::OtherHost),
            ("GET /callback HTTP/1.1", "Host: localhost:80\r\n", Reply::OtherHost),
            ("GET /callback HTTP/1.1", "Host: localhost.evil.example:4321\r\n", Reply::OtherHost),
            (
                "GET /callback HTTP/1.1",
                "Host: 127.0.0.1:4321\r\nhost: 127.0.0.1:4321\r\n",
                Reply::OtherHost,
            ),
            ("GET /callback HTTP/1.1", "\r\nHost: 127.0.0.1:4321\r\n", Reply::OtherHost),
        ] {
            let request = format!("{line}\r\n{fields}\r\n");
            assert_eq!(read(&request), ParsedRequest::Refused(reply), "{request}");
        }
        let binary = b"GET /callback?\xff HTTP/1.1\r\nHost: 127.0.0.1:4321\r\n\r\n";
        assert_eq!(address().read(binary), ParsedRequest::Refused(Reply::Malformed));
    }

    #[test]
    fn a_request_without_an_end_is_refused() {
        let long = "x".repeat(REQUEST_LENGTH_MAX);
        assert_eq!(read(&long[1..]), ParsedRequest::Incomplete);
        assert_eq!(read(&long), ParsedRequest::Refused(Reply::TooLong));
    }
}

#[cfg(test)]
mod page_tests {
    use super::*;

    const ALL: [Reply; 7] = [
        Reply::Welcome,
        Reply::NotAsked,
        Reply::NotFound,
        Reply::OtherHost,
        Reply::OtherMethod,
        Reply::Malformed,
        Reply::TooLong,
    ];

    #[test]
    fn a_response_has_a_length_and_is_not_cacheable() {
        for reply in ALL {
            let response = String::from_utf8(reply.response("the tour")).unwrap();
            let (head, page) = response.split_once("\r\n\r\n").unwrap();
            assert!(head.contains(&format!("\r\nContent-Length: {}\r\n", page.len())), "{head}");
            for field in ["Connection: close", "Cache-Control: no-store", "Referrer-Policy: no-ref"]
            {
                assert!(head.contains(field), "{head}");
            }
            assert!(page.contains("the tour"), "{page}");
        }
    }

    #[test]
    fn the_name_of_the_application_is_text() {
        let response = Reply::Welcome.response("<script>\"&'");
        let response = String::from_utf8(response).unwrap();
        assert!(response.contains("to &lt;script&gt;&quot;&amp;&#39;."), "{response}");
    }
}

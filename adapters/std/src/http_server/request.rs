use std::future::poll_fn;
use std::io;

use http::Version;
use http::request::Builder;
use httparse::{EMPTY_HEADER, Header, Status};

use super::socket::Socket;

/// The most fields of a head. 100: several times the number that clients send, proxies included.
const FIELDS_MAX: usize = 100;

/// The head of a request and its consequences for the connection.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) head: http::Request<()>,
    pub(super) framing: Framing,
    /// Whether the connection may serve another request.
    pub(super) keep_alive: bool,
    /// Whether the client waits for an interim response before it sends the body.
    pub(super) awaits_continue: bool,
    /// Whether the response is sent without its body.
    pub(super) bodiless: bool,
    /// Whether a response may be chunked.
    pub(super) takes_chunks: bool,
}

/// How the end of a body is determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    Length(u64),
    Chunked,
}

/// Why a head is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BadHead {
    /// It is not HTTP/1.1, or is ambiguous.
    Malformed,
    /// It exceeds the limit on bytes or fields.
    TooLarge,
    /// The body has an unsupported transfer coding.
    UnknownCoding,
    /// The version of HTTP is not supported.
    Version,
    /// The client disconnected before its end.
    Gone,
}

/// Reads a head, including the empty line at its end.
pub(super) async fn read_head(socket: &mut Socket) -> Result<Vec<u8>, BadHead> {
    let mut start = 0;
    loop {
        let end = poll_fn(|cx| socket.poll_line(cx, start, usize::MAX)).await?;
        match (start, end - start) {
            // RFC 9112 section 2.2: an empty line before a request is skipped.
            (0, 2) => socket.skip(2),
            (_, 2) => return Ok(socket.take(end)),
            _ => start = end,
        }
    }
}

impl From<io::Error> for BadHead {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::InvalidData => Self::Malformed,
            io::ErrorKind::OutOfMemory => Self::TooLarge,
            _ => Self::Gone,
        }
    }
}

/// Parses a head.
pub(super) fn parse(head: &[u8]) -> Result<Request, BadHead> {
    let mut fields = [EMPTY_HEADER; FIELDS_MAX];
    let mut parsed = httparse::Request::new(&mut fields);
    match parsed.parse(head) {
        Ok(Status::Complete(_)) => {}
        Ok(Status::Partial) => return Err(BadHead::Malformed),
        Err(httparse::Error::TooManyHeaders) => return Err(BadHead::TooLarge),
        Err(httparse::Error::Version) => return Err(BadHead::Version),
        Err(_) => return Err(BadHead::Malformed),
    }
    let (Some(method), Some(target), Some(version)) = (parsed.method, parsed.path, parsed.version)
    else {
        return Err(BadHead::Malformed);
    };
    let fields: &[Header<'_>] = parsed.headers;
    let is_1_1 = version == 1;
    // RFC 9112 section 3.2
    if is_1_1 && named(fields, "host").count() != 1 || named(fields, "host").count() > 1 {
        return Err(BadHead::Malformed);
    }
    Ok(Request {
        head: request_head(method, target, fields, is_1_1).ok_or(BadHead::Malformed)?,
        framing: parse_framing(fields, is_1_1)?,
        keep_alive: is_1_1 && !has_token(fields, "connection", "close"),
        awaits_continue: is_1_1 && has_token(fields, "expect", "100-continue"),
        bodiless: method == "HEAD",
        takes_chunks: is_1_1,
    })
}

fn request_head(
    method: &str,
    target: &str,
    fields: &[Header<'_>],
    is_1_1: bool,
) -> Option<http::Request<()>> {
    let version = if is_1_1 { Version::HTTP_11 } else { Version::HTTP_10 };
    let head = http::Request::builder().method(method).uri(target).version(version);
    let with_field = |head: Builder, field: &Header<'_>| head.header(field.name, field.value);
    fields.iter().fold(head, with_field).body(()).ok()
}

/// Determines the length of the body. Input that a proxy before this server could interpret
/// differently is refused: RFC 9112 section 6.3.
fn parse_framing(fields: &[Header<'_>], is_1_1: bool) -> Result<Framing, BadHead> {
    let mut lengths = named(fields, "content-length");
    let mut codings = named(fields, "transfer-encoding");
    match (codings.next(), lengths.next()) {
        (None, None) => Ok(Framing::Length(0)),
        (None, Some(length)) if lengths.next().is_none() => parse_length(length),
        (Some(coding), None) if is_1_1 && codings.next().is_none() => {
            if coding.trim_ascii().eq_ignore_ascii_case(b"chunked") {
                Ok(Framing::Chunked)
            } else {
                Err(BadHead::UnknownCoding)
            }
        }
        _ => Err(BadHead::Malformed),
    }
}

fn parse_length(value: &[u8]) -> Result<Framing, BadHead> {
    let digits = str::from_utf8(value.trim_ascii()).unwrap_or_default();
    let length = digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok());
    length.flatten().map(Framing::Length).ok_or(BadHead::Malformed)
}

fn named<'f>(fields: &'f [Header<'f>], name: &'f str) -> impl Iterator<Item = &'f [u8]> {
    fields.iter().filter(move |it| it.name.eq_ignore_ascii_case(name)).map(|it| it.value)
}

fn has_token(fields: &[Header<'_>], name: &str, token: &str) -> bool {
    named(fields, name)
        .flat_map(|value| value.split(|byte| *byte == b','))
        .any(|value| value.trim_ascii().eq_ignore_ascii_case(token.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framing(fields: &str) -> Result<Framing, BadHead> {
        let head = format!("POST /mcp HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n");
        parse(head.as_bytes()).map(|request| request.framing)
    }

    #[test]
    fn the_length_of_a_body_is_said_once_and_in_one_way() {
        assert_eq!(framing(""), Ok(Framing::Length(0)));
        assert_eq!(framing("Content-Length: 5\r\n"), Ok(Framing::Length(5)));
        assert_eq!(framing("Transfer-Encoding: Chunked\r\n"), Ok(Framing::Chunked));
        for fields in [
            "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
            "Content-Length: 5\r\nContent-Length: 5\r\n",
            "Content-Length: 5, 5\r\n",
            "Content-Length: +5\r\n",
            "Content-Length: -1\r\n",
            "Content-Length: 0x5\r\n",
            "Content-Length:\r\n",
            "Content-Length: 99999999999999999999\r\n",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            "Content-Length: 5\r\n 6\r\n",
            "Content-Length : 5\r\n",
        ] {
            assert_eq!(framing(fields), Err(BadHead::Malformed), "{fields}");
        }
        for fields in ["Transfer-Encoding: gzip, chunked\r\n", "Transfer-Encoding: xchunked\r\n"] {
            assert_eq!(framing(fields), Err(BadHead::UnknownCoding), "{fields}");
        }
    }

    #[test]
    fn a_request_names_one_host() {
        for head in [
            "GET / HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n",
        ] {
            assert_eq!(parse(head.as_bytes()).err(), Some(BadHead::Malformed), "{head}");
        }
        assert!(parse(b"GET / HTTP/1.0\r\n\r\n").is_ok());
    }

    #[test]
    fn the_connection_header_is_respected() {
        let request = parse(
            b"POST / HTTP/1.1\r\nhost: a\r\nconnection: x, Close\r\nexpect: 100-Continue\r\n\r\n",
        )
        .unwrap();
        assert!(!request.keep_alive && request.awaits_continue && request.takes_chunks);
        let request = parse(b"HEAD / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n").unwrap();
        assert!(!request.keep_alive && request.bodiless && !request.takes_chunks);
    }

    #[test]
    fn other_versions_and_too_many_fields_are_told_apart() {
        assert_eq!(parse(b"GET / HTTP/3.0\r\n\r\n").err(), Some(BadHead::Version));
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(FIELDS_MAX + 1));
        assert_eq!(parse(many.as_bytes()).err(), Some(BadHead::TooLarge));
    }
}

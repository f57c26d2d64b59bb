use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use hyper::rt::{Read, ReadBuf};

/// A version of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    Http1,
    Http2,
}

/// The HTTP/2 connection preface, which no HTTP/1 client sends.
// RFC 9113, section 3.4
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The first bytes of a connection.
#[derive(Debug, Default)]
struct First {
    bytes: [u8; PREFACE.len()],
    length: usize,
}

/// Reads as many bytes as needed to determine the HTTP version. Returns the version and the bytes
/// read.
pub(super) async fn read_version(
    stream: &mut (impl Read + Unpin),
) -> io::Result<(Version, Vec<u8>)> {
    let mut first = First::default();
    let version = poll_fn(|cx| first.poll_version(stream, cx)).await?;
    Ok((version, first.bytes[..first.length].to_vec()))
}

impl First {
    fn poll_version(
        &mut self,
        stream: &mut (impl Read + Unpin),
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<Version>> {
        loop {
            let known = self.length;
            if self.bytes[..known] != PREFACE[..known] {
                return Poll::Ready(Ok(Version::Http1));
            }
            if known == PREFACE.len() {
                return Poll::Ready(Ok(Version::Http2));
            }
            let mut space = ReadBuf::new(&mut self.bytes[known..]);
            ready!(Pin::new(&mut *stream).poll_read(cx, space.unfilled()))?;
            self.length += space.filled().len();
            if self.length == known {
                // End of input, which the HTTP/1 server handles.
                return Poll::Ready(Ok(Version::Http1));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::Waker;

    use hyper::rt::ReadBufCursor;

    use super::*;

    /// Yields one chunk per read, then the end.
    struct Pieces<'a>(&'a [&'a [u8]]);

    /// Chunks, the version that they announce, and the bytes read to determine it.
    type Case<'a> = (&'a [&'a [u8]], Version, &'a [u8]);

    impl Read for Pieces<'_> {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            mut space: ReadBufCursor<'_>,
        ) -> Poll<io::Result<()>> {
            if let Some((piece, rest)) = self.0.split_first() {
                space.put_slice(piece);
                self.0 = rest;
            }
            Poll::Ready(Ok(()))
        }
    }

    #[test]
    fn the_version_is_known_from_the_first_distinguishing_byte() {
        let cases: [Case<'_>; 6] = [
            (&[b"POST /mcp", b" HTTP/1.1"], Version::Http1, b"POST /mcp"),
            (&[b"P", b"RI * HTTP/1.1\r\n"], Version::Http1, b"PRI * HTTP/1.1\r\n"),
            (&[PREFACE, b"more"], Version::Http2, PREFACE),
            (&[&PREFACE[..1], &PREFACE[1..9], &PREFACE[9..]], Version::Http2, PREFACE),
            (&[&PREFACE[..23]], Version::Http1, &PREFACE[..23]),
            (&[], Version::Http1, b""),
        ];
        for (pieces, version, first) in cases {
            let mut stream = Pieces(pieces);
            let read = pin!(read_version(&mut stream));
            let Poll::Ready(read) = read.poll(&mut Context::from_waker(Waker::noop())) else {
                panic!("the read is pending")
            };
            assert_eq!(read.unwrap(), (version, first.to_vec()), "{pieces:?}");
        }
    }
}

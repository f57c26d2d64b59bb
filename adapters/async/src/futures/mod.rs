//! Streams over the traits of `futures`.

pub(crate) mod message_stream;

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_io::{AsyncRead, AsyncWrite};

use crate::ByteStream;

/// A [`ByteStream`] from a reader and a writer of `futures-io`.
#[derive(Debug)]
pub struct FuturesStream<R, W> {
    reader: R,
    writer: W,
}

impl<R, W> FuturesStream<R, W> {
    /// Creates a stream that reads from `reader` and writes to `writer`.
    #[must_use]
    pub const fn new(reader: R, writer: W) -> Self {
        Self { reader, writer }
    }

    /// Returns the reader and the writer.
    #[must_use]
    pub fn into_parts(self) -> (R, W) {
        (self.reader, self.writer)
    }
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> ByteStream for FuturesStream<R, W> {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.reader).poll_read(cx, buffer)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.writer).poll_write(cx, bytes)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.writer).poll_flush(cx)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.writer).poll_close(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    /// Records the calls made to it.
    #[derive(Default)]
    struct Log(String);

    impl AsyncRead for Log {
        fn poll_read(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buffer: &mut [u8],
        ) -> Poll<io::Result<usize>> {
            buffer[..2].copy_from_slice(b"in");
            Poll::Ready(Ok(2))
        }
    }

    impl AsyncWrite for Log {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.0.push_str(str::from_utf8(bytes).unwrap());
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.0.push_str(" flushed");
            Poll::Ready(Ok(()))
        }

        fn poll_close(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.0.push_str(" closed");
            Poll::Ready(Ok(()))
        }
    }

    #[test]
    fn each_call_goes_to_its_side() {
        let cx = &mut Context::from_waker(Waker::noop());
        let mut stream = FuturesStream::new(Log::default(), Log::default());
        let mut buffer = [0; 4];
        assert!(matches!(stream.poll_read(cx, &mut buffer), Poll::Ready(Ok(2))));
        assert!(matches!(stream.poll_write(cx, b"out"), Poll::Ready(Ok(3))));
        assert!(matches!(stream.poll_flush(cx), Poll::Ready(Ok(()))));
        assert!(matches!(stream.poll_close(cx), Poll::Ready(Ok(()))));
        assert_eq!(&buffer, b"in\0\0");
        let (reader, writer) = stream.into_parts();
        assert_eq!((reader.0.as_str(), writer.0.as_str()), ("", "out flushed closed"));
    }
}

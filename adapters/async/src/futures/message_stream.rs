use std::error::Error;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use futures_sink::Sink;

use crate::ByteStream;

/// A [`ByteStream`] over a connection that carries messages, such as a WebSocket or a queue: each
/// message is a frame.
///
/// `reader` is a stream of received messages, and `writer` a sink for the text of messages to send.
/// The reader must limit the length of a message.
///
/// ```
/// use futures_util::{SinkExt, StreamExt, sink, stream};
/// use mcp_sansio_async::names::MessageStream;
///
/// let received = stream::iter([Ok::<_, std::io::Error>(r#"{"jsonrpc":"2.0","method":"x"}"#)]);
/// let sent = sink::drain::<String>().sink_map_err(|never| match never {});
/// let stream = MessageStream::new(received, sent);
/// # fn is_stream(_: impl mcp_sansio_async::ByteStream) {}
/// # is_stream(stream);
/// ```
#[derive(Debug)]
pub struct MessageStream<R, W> {
    reader: R,
    writer: W,
    /// The message that is being read, as a line.
    line: Vec<u8>,
    /// How much of it has been read.
    read: usize,
}

impl<R, W> MessageStream<R, W> {
    /// Creates a stream that reads from `reader` and writes to `writer`.
    #[must_use]
    pub const fn new(reader: R, writer: W) -> Self {
        Self { reader, writer, line: Vec::new(), read: 0 }
    }
}

impl<R, W, M, E> ByteStream for MessageStream<R, W>
where
    R: Stream<Item = Result<M, E>> + Unpin,
    M: AsRef<[u8]>,
    W: Sink<String, Error = E> + Unpin,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        if self.read == self.line.len() {
            let Some(message) = ready!(Pin::new(&mut self.reader).poll_next(cx)) else {
                return Poll::Ready(Ok(0));
            };
            let message = message.map_err(io::Error::other)?;
            // In JSON, a line end is white space between tokens.
            let message = message.as_ref().iter();
            self.line.clear();
            self.line.extend(message.map(|byte| if *byte == b'\n' { b' ' } else { *byte }));
            self.line.push(b'\n');
            self.read = 0;
        }
        let rest = &self.line[self.read..];
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        self.read += length;
        Poll::Ready(Ok(length))
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        // Endpoints lend complete lines.
        let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
            return Poll::Ready(Err(io::ErrorKind::InvalidInput.into()));
        };
        ready!(Pin::new(&mut self.writer).poll_ready(cx)).map_err(io::Error::other)?;
        let text = String::from_utf8_lossy(&bytes[..end]).into_owned();
        Pin::new(&mut self.writer).start_send(text).map_err(io::Error::other)?;
        Poll::Ready(Ok(end + 1))
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.writer).poll_flush(cx).map_err(io::Error::other)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.writer).poll_close(cx).map_err(io::Error::other)
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use futures_util::{SinkExt, sink, stream};

    use super::*;

    /// Reads with a small buffer until the end.
    fn read(messages: &[Result<&'static str, &'static str>]) -> Result<String, String> {
        let cx = &mut Context::from_waker(Waker::noop());
        let writer = sink::drain::<String>().sink_map_err(|never| match never {});
        let mut stream = MessageStream::new(stream::iter(messages.to_vec()), writer);
        let (mut text, mut buffer) = (Vec::new(), [0; 3]);
        loop {
            match stream.poll_read(cx, &mut buffer) {
                Poll::Ready(Ok(0)) => return Ok(String::from_utf8(text).unwrap()),
                Poll::Ready(Ok(length)) => text.extend(&buffer[..length]),
                Poll::Ready(Err(error)) => return Err(error.to_string()),
                Poll::Pending => panic!("it waits"),
            }
        }
    }

    #[test]
    fn each_message_is_a_line() {
        assert_eq!(read(&[Ok("abcd"), Ok("e")]).as_deref(), Ok("abcd\ne\n"));
        assert_eq!(read(&[Ok("{\n\"a\":1\n}\n")]).as_deref(), Ok("{ \"a\":1 } \n"));
        assert_eq!(read(&[Ok("a"), Err("broken")]), Err("broken".into()));
        assert_eq!(read(&[]).as_deref(), Ok(""));
    }

    #[test]
    fn each_line_is_a_message() {
        let cx = &mut Context::from_waker(Waker::noop());
        let reader = stream::empty::<Result<String, io::Error>>();
        let writer = Vec::new().sink_map_err(|never: std::convert::Infallible| match never {});
        let mut stream = MessageStream::new(reader, writer);
        let mut bytes = &b"{\"a\":1}\n[]\n"[..];
        while !bytes.is_empty() {
            let Poll::Ready(Ok(length)) = stream.poll_write(cx, bytes) else { panic!("refused") };
            bytes = &bytes[length..];
        }
        assert_eq!(stream.writer.get_ref(), &["{\"a\":1}", "[]"]);
        assert!(matches!(stream.poll_write(cx, b"part"), Poll::Ready(Err(_))));
        assert!(matches!(stream.poll_flush(cx), Poll::Ready(Ok(()))));
        assert!(matches!(stream.poll_close(cx), Poll::Ready(Ok(()))));
    }
}

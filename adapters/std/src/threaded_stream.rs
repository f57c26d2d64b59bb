use std::fmt;
use std::io::{self, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll};

use blocking::Unblock;
use mcp_sansio_async::ByteStream;
use mcp_sansio_async::futures::FuturesStream;

/// A stream over a blocking reader and a blocking writer, each on a thread of `blocking`.
///
/// Neither delays the other, and each direction queues at most 64 KiB. It can be polled on any
/// executor, since its threads wake the task.
///
/// The threads end their work with their streams: at the end of the input, or when the output is
/// closed. If a `ThreadedStream` is dropped earlier, each thread is free once its pending `read` or
/// `write` returns. The operating system cannot interrupt those calls, so use
#[cfg_attr(unix, doc = "[`FdStream`](crate::FdStream) for pipes and sockets.")]
#[cfg_attr(not(unix), doc = "[`PipeStream`](crate::PipeStream) for sockets.")]
pub struct ThreadedStream(FuturesStream<Unblock<Reader>, Unblock<Writer>>);

type Reader = Caught<Box<dyn Read + Send>>;
type Writer = Caught<Box<dyn Write + Send>>;

/// Queued bytes in each direction. 64 KiB: the capacity of a pipe.
const QUEUED_MAX: usize = 64 * 1024;

impl ThreadedStream {
    /// Creates a stream. Its threads start when it is used.
    ///
    /// `writer` is flushed whenever no more data is queued, and dropped when the stream is closed.
    #[must_use]
    pub fn new(reader: impl Read + Send + 'static, writer: impl Write + Send + 'static) -> Self {
        let reader = Unblock::with_capacity(QUEUED_MAX, Caught(Box::new(reader) as _));
        let writer = Unblock::with_capacity(QUEUED_MAX, Caught(Box::new(writer) as _));
        Self(FuturesStream::new(reader, writer))
    }
}

impl ByteStream for ThreadedStream {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        self.0.poll_read(cx, buffer)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.poll_write(cx, bytes)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_flush(cx)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_close(cx)
    }
}

impl fmt::Debug for ThreadedStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadedStream").finish_non_exhaustive()
    }
}

/// A reader or writer whose panics are errors.
struct Caught<T>(T);

fn caught<T>(call: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    catch_unwind(AssertUnwindSafe(call))
        .unwrap_or_else(|_| Err(io::Error::other("the reader or the writer panicked")))
}

impl<T: Read> Read for Caught<T> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        caught(|| self.0.read(buffer))
    }
}

impl<T: Write> Write for Caught<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        caught(|| self.0.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        caught(|| self.0.flush())
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::io::pipe;

    use super::*;
    use crate::block_on;

    #[test]
    fn bytes_arrive_complete_and_in_order() {
        let (reader, writer) = pipe().unwrap();
        let mut stream = ThreadedStream::new(reader, writer);
        let bytes: Vec<u8> =
            (0..1_000_000u32).map(|index| index as u8 ^ (index >> 8) as u8).collect();
        let mut rest = bytes.as_slice();
        let mut read = Vec::new();
        let mut buffer = [0; 1000];
        block_on(poll_fn(|cx| {
            while !rest.is_empty() {
                match stream.poll_write(cx, rest) {
                    Poll::Ready(count) => rest = &rest[count.unwrap()..],
                    Poll::Pending => break,
                }
            }
            let closed = rest.is_empty() && stream.poll_close(cx).is_ready();
            while let Poll::Ready(length) = stream.poll_read(cx, &mut buffer) {
                match length.unwrap() {
                    0 if closed => return Poll::Ready(()),
                    0 => break,
                    length => read.extend_from_slice(&buffer[..length]),
                }
            }
            Poll::Pending
        }));
        assert!(read == bytes);
    }

    #[test]
    fn flushing_waits_until_the_writer_has_all() {
        let (mut reader, writer) = pipe().unwrap();
        let mut stream = ThreadedStream::new(io::empty(), io::BufWriter::new(writer));
        let count = block_on(poll_fn(|cx| stream.poll_write(cx, b"abc"))).unwrap();
        assert_eq!(count, 3);
        block_on(poll_fn(|cx| stream.poll_flush(cx))).unwrap();
        let mut buffer = [0; 9];
        assert_eq!(reader.read(&mut buffer).unwrap(), 3);
        drop(stream);
        assert_eq!(reader.read(&mut buffer).unwrap(), 0, "the writer is dropped with the stream");
    }

    struct Failing<F>(&'static [u8], F);

    impl<F: Fn() -> io::Error> Read for Failing<F> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            match self.0.read(buffer)? {
                0 => Err((self.1)()),
                length => Ok(length),
            }
        }
    }

    /// Reads until the input fails, and returns what came before and the error.
    fn read_all(stream: &mut ThreadedStream) -> (Vec<u8>, String) {
        let (mut all, mut buffer) = (Vec::new(), [0; 9]);
        loop {
            match block_on(poll_fn(|cx| stream.poll_read(cx, &mut buffer))) {
                Ok(0) => return (all, "the end".to_owned()),
                Ok(length) => all.extend_from_slice(&buffer[..length]),
                Err(error) => return (all, error.to_string()),
            }
        }
    }

    #[test]
    fn errors_come_through_once_the_bytes_before_them_have() {
        let (reader, writer) = pipe().unwrap();
        drop(reader);
        let torn = Failing(b"abc", || io::Error::other("torn"));
        let mut stream = ThreadedStream::new(torn, writer);
        assert_eq!(read_all(&mut stream), (b"abc".to_vec(), "torn".to_owned()));
        // It is only queued.
        assert_eq!(block_on(poll_fn(|cx| stream.poll_write(cx, b"x"))).unwrap(), 1);
        let broken = block_on(poll_fn(|cx| stream.poll_flush(cx)));
        assert_eq!(broken.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn a_panic_of_the_reader_is_an_error() {
        let panicking = Failing(b"abc", || panic!("for the test"));
        let mut stream = ThreadedStream::new(panicking, io::sink());
        let (read, error) = read_all(&mut stream);
        assert_eq!((&read[..], error.as_str()), (&b"abc"[..], "the reader or the writer panicked"));
    }
}

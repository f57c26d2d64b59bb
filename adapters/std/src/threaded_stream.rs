use std::io::{self, Read, Write};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread;

use mcp_sansio_async::ByteStream;

use crate::byte_queue::{ByteQueue, EndOnPanic};

/// A stream over a blocking reader and a blocking writer, with a thread for each.
///
/// Neither delays the other, and each direction queues at most 128 KiB. It can be polled on any
/// executor, since its threads wake the task.
///
/// The threads end with their streams: at the end of the input, or when the output is closed. If a
/// `ThreadedStream` is dropped earlier, each thread ends once its pending `read` or `write`
/// returns. The operating system cannot interrupt those calls, so use [`FdStream`](crate::FdStream)
/// for pipes and sockets.
#[derive(Debug)]
pub struct ThreadedStream {
    input: Arc<ByteQueue>,
    output: Arc<ByteQueue>,
}

/// Bytes per read. 64 KiB: the capacity of a pipe.
const READ_LENGTH: usize = 64 * 1024;

impl ThreadedStream {
    /// Starts the threads.
    ///
    /// `writer` is flushed whenever no more data is queued, and dropped when the stream is closed.
    ///
    /// # Errors
    ///
    /// The system is out of threads.
    pub fn new(
        reader: impl Read + Send + 'static,
        writer: impl Write + Send + 'static,
    ) -> io::Result<Self> {
        let stream = Self { input: Arc::default(), output: Arc::default() };
        let (input, output) = (Arc::clone(&stream.input), Arc::clone(&stream.output));
        // On an error, dropping the stream ends the thread that has started.
        start("mcp-write", Box::new(move || write(&output, writer)))?;
        start("mcp-read", Box::new(move || read(&input, reader)))?;
        Ok(stream)
    }
}

/// Starts a thread. Not generic, so that its code is compiled once.
fn start(name: &str, run: Box<dyn FnOnce() + Send>) -> io::Result<()> {
    thread::Builder::new().name(name.into()).spawn(run).map(drop)
}

/// Moves data from `reader` into the queue, until one of them ends.
fn read(input: &ByteQueue, mut reader: impl Read) {
    let _guard = EndOnPanic(input);
    let mut buffer = vec![0; READ_LENGTH];
    let outcome = loop {
        match reader.read(&mut buffer) {
            Ok(0) => break Ok(()),
            Ok(length) => {
                if !input.push(&buffer[..length]) {
                    break Ok(());
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => break Err(error),
        }
    };
    drop(reader);
    input.end(outcome);
}

/// Moves data from the queue into `writer`, until one of them ends.
fn write(output: &ByteQueue, mut writer: impl Write) {
    let _guard = EndOnPanic(output);
    let mut buffer = Vec::new();
    let outcome = loop {
        buffer.clear();
        if !output.take(&mut buffer) {
            break Ok(());
        }
        let mut written = writer.write_all(&buffer);
        if written.is_ok() && output.is_empty() {
            written = writer.flush();
        }
        if written.is_err() {
            break written;
        }
    };
    // The peer reads the end of its input before this side learns that everything is written.
    drop(writer);
    output.end(outcome);
}

impl ByteStream for ThreadedStream {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        self.input.poll_take(cx, buffer)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.output.poll_push(cx, bytes)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.output.poll_taken(cx)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.output.close();
        self.output.poll_end(cx)
    }
}

impl Drop for ThreadedStream {
    fn drop(&mut self) {
        self.input.abandon();
        self.output.abandon();
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::io::pipe;

    use super::*;
    use crate::block_on;

    fn read_all(stream: &mut ThreadedStream) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        let mut buffer = [0; 1000];
        loop {
            match block_on(poll_fn(|cx| stream.poll_read(cx, &mut buffer))).unwrap()? {
                0 => return Ok(all),
                length => all.extend_from_slice(&buffer[..length]),
            }
        }
    }

    #[test]
    fn bytes_arrive_complete_and_in_order() {
        let (reader, writer) = pipe().unwrap();
        let mut stream = ThreadedStream::new(reader, writer).unwrap();
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
        }))
        .unwrap();
        assert!(read == bytes);
    }

    #[test]
    fn flushing_waits_until_the_writer_has_all() {
        let (mut reader, writer) = pipe().unwrap();
        let mut stream = ThreadedStream::new(io::empty(), io::BufWriter::new(writer)).unwrap();
        let count = block_on(poll_fn(|cx| stream.poll_write(cx, b"abc"))).unwrap().unwrap();
        assert_eq!(count, 3);
        block_on(poll_fn(|cx| stream.poll_flush(cx))).unwrap().unwrap();
        let mut buffer = [0; 9];
        assert_eq!(reader.read(&mut buffer).unwrap(), 3);
        drop(stream);
        assert_eq!(reader.read(&mut buffer).unwrap(), 0, "the writer is dropped with the stream");
    }

    #[test]
    fn errors_come_through_once_the_bytes_before_them_have() {
        struct Failing(&'static [u8]);
        impl Read for Failing {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                match self.0.read(buffer)? {
                    0 => Err(io::Error::other("torn")),
                    length => Ok(length),
                }
            }
        }
        let (reader, writer) = pipe().unwrap();
        drop(reader);
        let mut stream = ThreadedStream::new(Failing(b"abc"), writer).unwrap();
        let mut buffer = [0; 9];
        let read = block_on(poll_fn(|cx| stream.poll_read(cx, &mut buffer))).unwrap();
        assert_eq!(&buffer[..read.unwrap()], b"abc");
        assert_eq!(read_all(&mut stream).unwrap_err().to_string(), "torn");
        let broken = block_on(poll_fn(|cx| {
            let _ = stream.poll_write(cx, b"x");
            stream.poll_flush(cx)
        }));
        assert_eq!(broken.unwrap().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        let broken = block_on(poll_fn(|cx| stream.poll_close(cx))).unwrap();
        assert_eq!(broken.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}

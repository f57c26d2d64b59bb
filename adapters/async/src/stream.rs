use std::io;
use std::task::{Context, Poll};

/// A pair of byte streams, one each way: a pipe pair, a socket, a serial line.
///
/// The two ways are independent: a write that waits does not hold up reading. As everywhere, a
/// method that returns [`Poll::Pending`] has seen to it that the task is woken when another call
/// makes sense; reading and writing remember that separately.
pub trait ByteStream {
    /// Reads some bytes into `buffer`, which is not empty. Zero is the end of the input.
    ///
    /// # Errors
    ///
    /// The input is broken. It is not read from again.
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>>;

    /// Writes the start of `bytes`, which are not empty, and says how many.
    ///
    /// # Errors
    ///
    /// The output is broken. It is not written to again.
    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>>;

    /// Sends on what was written, if the stream holds any of it back.
    ///
    /// # Errors
    ///
    /// The output is broken.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Flushes and closes the write half, so that the other side reads the end of its input. The
    /// read half stays open.
    ///
    /// # Errors
    ///
    /// The output is broken.
    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
}

impl<S: ByteStream + ?Sized> ByteStream for &mut S {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        (**self).poll_read(cx, buffer)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        (**self).poll_write(cx, bytes)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        (**self).poll_flush(cx)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        (**self).poll_close(cx)
    }
}

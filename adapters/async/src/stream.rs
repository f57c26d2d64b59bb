use std::io;
use std::task::{Context, Poll};

/// A pair of byte streams, one each way: a pipe pair, a socket, a serial line.
///
/// The two directions are independent: a pending write does not delay reading. As usual, a method
/// that returns [`Poll::Pending`] has registered the task to be woken when it should be called
/// again; reading and writing register it separately.
pub trait ByteStream {
    /// Reads some bytes into `buffer`, which is not empty. Zero means the end of the input.
    ///
    /// # Errors
    ///
    /// The input is broken. It is not read from again.
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>>;

    /// Writes a prefix of `bytes`, which are not empty, and returns its length.
    ///
    /// # Errors
    ///
    /// The output is broken. It is not written to again.
    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>>;

    /// Flushes buffered output.
    ///
    /// # Errors
    ///
    /// The output is broken.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Flushes and closes the write half, so that the peer reads the end of its input. The read
    /// half stays open.
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

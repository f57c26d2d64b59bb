use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::{fmt, io};

use mcp_sansio::Instant;
use mcp_sansio::stream::{Action, Endpoint, Fault, StreamConnection, StreamSettings};

use crate::clock::unix_time;
use crate::{Timer, panic_guard};

/// Drives one endpoint over one byte stream until the connection is over: a future to spawn, to
/// await, or to poll alongside others.
///
/// It moves the bytes of a [`StreamConnection`], which says when to read, to write and to stop. A
/// panicking handler only fails its request: see [`panic_guard`]. At the end the output is flushed
/// and closed.
///
/// Dropping it drops the connection.
pub struct Driver<E, S, T> {
    connection: StreamConnection<'static, E, DriveError>,
    stream: S,
    timer: T,
    wants_stream: bool,
}

/// Why a connection broke: a fault of the stream or the peer, never of the endpoint.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DriveError {
    /// Reading failed, other than by a disconnect. The endpoint treats the input as ended.
    #[error("reading from the other side failed: {0}")]
    Read(#[source] io::Error),
    /// Writing failed, other than by a disconnect. Unsent output is lost.
    #[error("writing to the other side failed: {0}")]
    Write(#[source] io::Error),
}

// No field is pinned: the future is a state machine with plain fields.
impl<E, S, T> Unpin for Driver<E, S, T> {}

impl<E: Endpoint, S: ByteStream, T: Timer> Driver<E, S, T> {
    /// Creates a driver with the default settings.
    #[must_use]
    pub fn new(endpoint: E, stream: S, timer: T) -> Self {
        Self::with_settings(endpoint, stream, timer, StreamSettings::DEFAULT)
    }

    /// Creates a driver with the given settings.
    #[must_use]
    pub fn with_settings(mut endpoint: E, stream: S, timer: T, settings: StreamSettings) -> Self {
        endpoint.catch_panics(panic_guard());
        endpoint.set_unix_time(Box::new(unix_time));
        let connection = StreamConnection::new(endpoint, settings);
        Self { connection, stream, timer, wants_stream: false }
    }

    /// Lets the endpoint [restart](Endpoint::restart) the connection if the stream ends before the
    /// connection is open. The future then ends early, and [`wants_stream`](Self::wants_stream)
    /// returns true: restart the peer, and create a new driver from the endpoint (see
    /// [`into_parts`](Self::into_parts)) and the new stream. Without this, the end of the stream
    /// ends the connection.
    #[must_use]
    pub fn restarting(mut self) -> Self {
        self.connection = self.connection.restarting();
        self
    }

    /// Returns whether the driver ended because its endpoint needs a new stream.
    #[must_use]
    pub const fn wants_stream(&self) -> bool {
        self.wants_stream
    }

    /// Returns the endpoint.
    #[must_use]
    pub const fn endpoint(&self) -> &E {
        self.connection.endpoint()
    }

    /// Returns the endpoint, for commands. Poll the driver afterwards: a command does not wake it.
    #[must_use]
    pub const fn endpoint_mut(&mut self) -> &mut E {
        self.connection.endpoint_mut()
    }

    /// Returns the endpoint, the stream and the timer. Bytes that were read but not yet passed to
    /// the endpoint are lost.
    #[must_use]
    pub fn into_parts(self) -> (E, S, T) {
        (self.connection.into_endpoint(), self.stream, self.timer)
    }

    /// Reads once. Ready when the read completed or failed.
    fn poll_read(&mut self, cx: &mut Context<'_>, now: Instant) -> Poll<()> {
        let read = ready!(self.stream.poll_read(cx, self.connection.space()));
        if !matches!(&read, Err(error) if error.kind() == io::ErrorKind::Interrupted) {
            let read = read.map_err(|error| fault(error, DriveError::Read));
            self.connection.handle_read(read, now);
        }
        Poll::Ready(())
    }

    /// Writes as much as the stream accepts, and flushes once everything is written.
    fn write(&mut self, cx: &mut Context<'_>, now: Instant) {
        let Self { connection, stream, .. } = self;
        let (mut outcome, mut took) = (Poll::Ready(Ok(())), false);
        connection.transmit(&mut |bytes| {
            let mut written = 0;
            while written < bytes.len() && matches!(outcome, Poll::Ready(Ok(()))) {
                match stream.poll_write(cx, &bytes[written..]) {
                    Poll::Ready(Ok(0)) => {
                        outcome = Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                    }
                    Poll::Ready(Ok(length)) => {
                        took = true;
                        written += length.min(bytes.len() - written);
                    }
                    Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                    Poll::Ready(Err(error)) => outcome = Poll::Ready(Err(error)),
                    Poll::Pending => outcome = Poll::Pending,
                }
            }
            written
        });
        if took {
            connection.handle_written(now);
        }
        if connection.needs_flush() && matches!(outcome, Poll::Ready(Ok(()))) {
            outcome = stream.poll_flush(cx);
            if matches!(outcome, Poll::Ready(Ok(()))) {
                connection.handle_flushed();
            }
        }
        if let Poll::Ready(Err(error)) = outcome {
            connection.handle_write_error(fault(error, DriveError::Write), now);
        }
    }

    /// Waits for the next deadline. Ready when it has passed.
    fn poll_deadline(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self.connection.poll_timeout() {
            Some(deadline) => self.timer.poll_until(cx, deadline),
            None => Poll::Pending,
        }
    }

    /// Closes the output. Ready when that is done, fails, or takes too long.
    fn poll_close(&mut self, cx: &mut Context<'_>, now: Instant) -> Poll<()> {
        match self.stream.poll_close(cx) {
            Poll::Ready(Ok(())) => Poll::Ready(()),
            Poll::Ready(Err(error)) => {
                self.connection.handle_write_error(fault(error, DriveError::Write), now);
                Poll::Ready(())
            }
            Poll::Pending => self.poll_deadline(cx),
        }
    }
}

impl<E: Endpoint, S: ByteStream, T: Timer> Future for Driver<E, S, T> {
    type Output = Result<(), DriveError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let driver = self.get_mut();
        driver.connection.reset_budget();
        loop {
            let now = driver.timer.now();
            match driver.connection.advance(cx, now) {
                Action::Write => driver.write(cx, now),
                Action::Wait => {
                    let has_read =
                        driver.connection.wants_read() && driver.poll_read(cx, now).is_ready();
                    if !has_read {
                        ready!(driver.poll_deadline(cx));
                    }
                }
                Action::Yield => {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Action::Restart => {
                    driver.wants_stream = true;
                    return Poll::Ready(Ok(()));
                }
                Action::Close => {
                    ready!(driver.poll_close(cx, now));
                    return Poll::Ready(driver.connection.finish());
                }
                Action::Done => return Poll::Ready(driver.connection.finish()),
            }
        }
    }
}

fn fault(error: io::Error, broken: fn(io::Error) -> DriveError) -> Fault<DriveError> {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected};
    match error.kind() {
        BrokenPipe | ConnectionAborted | ConnectionReset | NotConnected => Fault::Gone,
        _ => Fault::Broken(broken(error)),
    }
}

mcp_sansio::partial_debug! {
    impl<E: fmt::Debug, S, T> Debug for Driver<E, S, T> { connection, .. }
}

// ------------------------------------------------------------------ stream

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

use alloc::sync::Arc;
use alloc::task::Wake;
use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Context, Waker};

use embedded_io::{Read, ReadReady, Write};
use mcp_sansio::Instant;
use mcp_sansio::stream::{Action, Endpoint, Fault, StreamConnection, StreamSettings};

use crate::DriveError;
use crate::driver::classify;

/// Drives one endpoint over the two halves of a polled stream, in a bare loop.
///
/// It moves the bytes of a [`StreamConnection`], which says when to read, to write and to stop. It
/// reads only when [`ReadReady`] says so, at most once per poll, and so never waits for input.
/// Writing blocks if the writer does: a writer with a buffer that an interrupt drains blocks least.
///
/// To keep the halves, pass references: `&mut uart` implements the traits, too.
pub struct PolledDriver<'b, E, R: Read, W: Write> {
    connection: StreamConnection<'b, E, DriveError<R::Error, W::Error>>,
    reader: R,
    writer: W,
    woken: Arc<Woken>,
    waker: Waker,
}

/// When to poll again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum NextPoll {
    /// Immediately: there is more work.
    Now,
    /// When bytes arrive, when a handler [was woken](PolledDriver::is_woken), or at this time,
    /// whichever comes first. Polling more often is harmless.
    Wait(Option<Instant>),
    /// Never: the connection is over.
    Closed,
}

/// Set when a handler can continue.
#[derive(Debug, Default)]
pub(crate) struct Woken(AtomicBool);

impl Woken {
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Release);
    }

    pub(crate) fn reset(&self) {
        self.0.store(false, Ordering::Release);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.set();
    }
}

impl<'b, E: Endpoint, R: Read + ReadReady, W: Write> PolledDriver<'b, E, R, W> {
    /// Creates a driver with [`StreamSettings::DEVICE`].
    ///
    /// The length of `line` limits the lines that are accepted, line ending included: 2,048 bytes
    /// are enough for calls with short arguments. An empty `line` ends the input at once.
    pub fn new(endpoint: E, reader: R, writer: W, line: &'b mut [u8]) -> Self {
        let woken = Arc::<Woken>::default();
        let waker = Waker::from(Arc::clone(&woken));
        let connection = StreamConnection::lent(endpoint, line, StreamSettings::DEVICE);
        Self { connection, reader, writer, woken, waker }
    }

    /// Replaces the settings.
    #[must_use]
    pub fn settings(mut self, settings: StreamSettings) -> Self {
        self.connection = self.connection.settings(settings);
        self
    }

    /// Returns the endpoint.
    #[must_use]
    pub const fn endpoint(&self) -> &E {
        self.connection.endpoint()
    }

    /// Returns the endpoint, for commands. Poll the driver afterwards.
    #[must_use]
    pub const fn endpoint_mut(&mut self) -> &mut E {
        self.connection.endpoint_mut()
    }

    /// Returns the endpoint and the halves. Bytes that were read but not yet passed to the endpoint
    /// are lost.
    #[must_use]
    pub fn into_parts(self) -> (E, R, W) {
        (self.connection.into_endpoint(), self.reader, self.writer)
    }

    /// Returns whether a handler was woken, or a message was queued from outside of the connection,
    /// since the last poll. Check it with interrupts disabled before sleeping.
    #[must_use]
    pub fn is_woken(&self) -> bool {
        self.woken.is_set()
    }

    /// Does all the work that is possible at `now`.
    ///
    /// # Errors
    ///
    /// The stream broke, which ends the connection: see [`DriveError`]. A disconnect of the peer is
    /// not an error. The error is returned once, after all other work is done; from then on the
    /// result is [`NextPoll::Closed`].
    pub fn poll(&mut self, now: Instant) -> Result<NextPoll, DriveError<R::Error, W::Error>> {
        self.woken.reset();
        self.connection.reset_budget();
        let mut moved = self.read(now);
        loop {
            match self.connection.advance(&mut Context::from_waker(&self.waker), now) {
                Action::Write => moved |= self.write(now),
                Action::Wait => break,
                Action::Yield => return Ok(NextPoll::Now),
                Action::Close | Action::Restart | Action::Done => {
                    return self.connection.finish().map(|()| NextPoll::Closed);
                }
            }
        }
        let deadline = self.connection.poll_timeout();
        let is_due = deadline.is_some_and(|deadline| deadline <= now);
        Ok(if moved || is_due || self.is_woken() {
            NextPoll::Now
        } else {
            NextPoll::Wait(deadline)
        })
    }

    /// Reads available bytes, if the connection wants any. Returns whether there was input, an end
    /// or an error, or whether reading must be tried again.
    fn read(&mut self, now: Instant) -> bool {
        if !self.connection.wants_read() {
            return false;
        }
        let read = match self.reader.read_ready() {
            Ok(false) => return false,
            Ok(true) => self.reader.read(self.connection.space()),
            Err(error) => Err(error),
        };
        if let Some(read) = classify(read, DriveError::Read) {
            self.connection.handle_read(read, now);
        }
        true
    }

    /// Writes all pending output and flushes it. Returns whether there was any, or whether writing
    /// must be tried again.
    fn write(&mut self, now: Instant) -> bool {
        let Self { connection, writer, .. } = self;
        let (mut outcome, mut wrote) = (Some(Ok(())), false);
        connection.transmit(&mut |bytes| {
            let mut written = 0;
            while written < bytes.len() && matches!(outcome, Some(Ok(()))) {
                outcome = match classify(writer.write(&bytes[written..]), DriveError::Write) {
                    Some(Ok(0)) => Some(Err(Fault::Broken(DriveError::WriteZero))),
                    Some(Ok(length)) => {
                        written += length.min(bytes.len() - written);
                        continue;
                    }
                    Some(Err(fault)) => Some(Err(fault)),
                    None => None,
                }
            }
            wrote |= written > 0;
            written
        });
        if wrote {
            connection.handle_written(now);
        }
        if matches!(outcome, Some(Ok(()))) && connection.needs_flush() {
            outcome = classify(writer.flush(), DriveError::Write);
        }
        match outcome {
            Some(Ok(())) => connection.handle_flushed(),
            Some(Err(fault)) => connection.handle_write_error(fault, now),
            None => return true,
        }
        wrote
    }
}

mcp_sansio::partial_debug! {
    impl<E: fmt::Debug, R: Read, W: Write> Debug for PolledDriver<'_, E, R, W> { connection, .. }
}

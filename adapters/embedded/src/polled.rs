use alloc::sync::Arc;
use alloc::task::Wake;
use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Context, Waker};

use embedded_io::{Read, ReadReady, Write};
use mcp_sansio::Instant;
use mcp_sansio::framing::LineDecoder;
use mcp_sansio_handlers::Endpoint;

use crate::course::Course;
use crate::{DriveError, Settings};

/// Drives one endpoint over the two halves of a stream that is polled: for a bare loop.
///
/// * It reads only when [`ReadReady`] says so, and so never waits for input. Writing waits where
///   the writer does: a writer with a buffer that an interrupt empties waits least.
/// * All frames of one read are handed over before anything is written, and what waits then leaves
///   in as few writes as the writer allows. Nothing is read while the endpoint
///   [`is_congested`](Endpoint::is_congested).
/// * A poll does a bounded amount of work, as [`Settings::frames_per_poll_max`] says.
/// * After the end of the input handlers have [`Settings::linger`] to finish their answers.
///
/// The halves come back when they are lent: `&mut uart` is a half, too.
pub struct PolledDriver<'b, E, R: Read, W: Write> {
    course: Course<E, R::Error, W::Error>,
    reader: R,
    writer: W,
    decoder: LineDecoder<'b>,
    woken: Arc<Woken>,
    waker: Waker,
}

/// When to poll again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Next {
    /// At once: there is more to do.
    Now,
    /// When bytes have come, when a handler [was woken](PolledDriver::is_woken), or at this time,
    /// whichever is first. To poll more often is harmless.
    Wait(Option<Instant>),
    /// No more: the connection is over.
    Over,
}

/// Notes that a handler can go on.
#[derive(Debug, Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

impl<'b, E: Endpoint, R: Read + ReadReady, W: Write> PolledDriver<'b, E, R, W> {
    /// A driver with the default settings.
    ///
    /// The length of `line` is the longest line that is taken, line end included: 2,048 bytes are
    /// enough for calls with short arguments. Where it is empty the input ends at once.
    pub fn new(endpoint: E, reader: R, writer: W, line: &'b mut [u8]) -> Self {
        let woken = Arc::<Woken>::default();
        let waker = Waker::from(Arc::clone(&woken));
        let (course, decoder) = (Course::new(endpoint), LineDecoder::lent(line));
        Self { course, reader, writer, decoder, woken, waker }
    }

    /// With settings of the caller's.
    #[must_use]
    pub fn settings(mut self, settings: Settings) -> Self {
        self.course.set_settings(settings);
        self
    }

    /// What is driven.
    #[must_use]
    pub const fn endpoint(&self) -> &E {
        self.course.endpoint()
    }

    /// What is driven, for commands. Poll the driver afterwards.
    #[must_use]
    pub const fn endpoint_mut(&mut self) -> &mut E {
        self.course.endpoint_mut()
    }

    /// The endpoint and the halves. Bytes that were read but not handed over are lost.
    #[must_use]
    pub fn into_parts(self) -> (E, R, W) {
        (self.course.into_endpoint(), self.reader, self.writer)
    }

    /// Whether a handler can go on, or something was sent from outside of the connection, since the
    /// last poll. Ask with interrupts off before going to sleep.
    #[must_use]
    pub fn is_woken(&self) -> bool {
        self.woken.0.load(Ordering::Acquire)
    }

    /// Moves everything that moves at `now`.
    ///
    /// # Errors
    ///
    /// The stream is broken, and so the connection is over: see [`DriveError`]. That the other side
    /// has gone is no error. It is told once, with everything else done; after that it is
    /// [`Next::Over`].
    pub fn poll(&mut self, now: Instant) -> Result<Next, DriveError<R::Error, W::Error>> {
        let mut budget = self.course.budget();
        self.woken.0.store(false, Ordering::Release);
        let mut moved = false;
        if self.course.wants_input() {
            match self.reader.read_ready() {
                Ok(false) => {}
                Ok(true) => {
                    moved = true;
                    let bytes = self.reader.read(self.decoder.space());
                    self.course.take_read(bytes, &mut self.decoder, now);
                }
                Err(error) => {
                    moved = true;
                    self.course.take_read(Err(error), &mut self.decoder, now);
                }
            }
        }
        self.course.take_frames(&mut self.decoder, &mut budget, now);
        self.course.go_on(&mut Context::from_waker(&self.waker), now);
        match self.write(now) {
            // With nothing left to send it may be over.
            Ok(wrote) => moved |= wrote,
            Err(error) => {
                moved = true;
                self.course.break_output(error, now);
            }
        }
        if let Some(outcome) = self.course.end(now) {
            return outcome.map(|()| Next::Over);
        }
        let deadline = self.course.deadline();
        let is_due = deadline.is_some_and(|deadline| deadline <= now);
        Ok(if moved || is_due || self.is_woken() || self.course.has_frames() {
            Next::Now
        } else {
            Next::Wait(deadline)
        })
    }

    /// Writes all that waits, and flushes it; whether there was anything.
    fn write(&mut self, now: Instant) -> Result<bool, DriveError<R::Error, W::Error>> {
        let Self { course, writer, .. } = self;
        let mut outcome = Ok(());
        let mut wrote = false;
        course.transmit(&mut |bytes| {
            let mut written = 0;
            while written < bytes.len() && outcome.is_ok() {
                match writer.write(&bytes[written..]) {
                    Ok(0) => outcome = Err(DriveError::WriteZero),
                    Ok(length) => written += length.min(bytes.len() - written),
                    Err(error) => outcome = Err(DriveError::Write(error)),
                }
            }
            wrote |= written > 0;
            written
        });
        outcome?;
        if wrote {
            course.written(now);
        }
        if course.needs_flush() {
            writer.flush().map_err(DriveError::Write)?;
            course.flushed();
        }
        Ok(wrote)
    }
}

impl<E: fmt::Debug, R: Read, W: Write> fmt::Debug for PolledDriver<'_, E, R, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolledDriver").field("course", &self.course).finish_non_exhaustive()
    }
}

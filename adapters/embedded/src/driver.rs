use core::cell::{Cell, RefCell};
use core::fmt;
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::Poll;

use embedded_io_async::{Error, Read, Write};
use mcp_sansio::framing::LineDecoder;
use mcp_sansio_handlers::Endpoint;

use crate::course::Course;
use crate::{Clock, DriveError, Settings};

/// Drives one endpoint over the two halves of an asynchronous stream: for an executor.
///
/// * All frames of one read are handed over before anything is written, and what waits then leaves
///   in as few writes as the output buffer allows.
/// * Reading goes on while a write waits, and the other way around, so that two sides that write
///   without reading do not block each other; it stops while the endpoint
///   [`is_congested`](Endpoint::is_congested).
/// * A read or a write that has begun is never dropped before the connection is over, so the
///   halves need not be safe to cancel.
/// * A poll does a bounded amount of work, then lets other tasks have their turn.
/// * After the end of the input handlers have [`Settings::linger`] to finish their answers. What
///   waits to be sent then still is, as long as the other side takes some of it every so often.
///
/// The halves come back when they are lent: `&mut uart` is a half, too.
pub struct Driver<'b, E, R: Read, W: Write, C> {
    course: Course<E, R::Error, W::Error>,
    reader: R,
    writer: W,
    clock: C,
    decoder: LineDecoder<'b>,
    output: &'b mut [u8],
}

impl<'b, E: Endpoint, R: Read, W: Write, C: Clock> Driver<'b, E, R, W, C> {
    /// A driver with the default settings.
    ///
    /// The length of `line` is the longest line that is taken, line end included: 2,048 bytes are
    /// enough for calls with short arguments. `output` collects what is written at once: 256 bytes
    /// make few writes. Where `line` is empty the input ends at once, where `output` is nothing is
    /// sent.
    pub fn new(
        endpoint: E,
        reader: R,
        writer: W,
        clock: C,
        line: &'b mut [u8],
        output: &'b mut [u8],
    ) -> Self {
        let (course, decoder) = (Course::new(endpoint), LineDecoder::lent(line));
        Self { course, reader, writer, clock, decoder, output }
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

    /// Drives until the connection is over. To drop the future is to drop the connection.
    ///
    /// # Errors
    ///
    /// The stream is broken: see [`DriveError`]. That the other side has gone is no error.
    pub async fn run(self) -> Result<(), DriveError<R::Error, W::Error>> {
        let Self { course, mut reader, mut writer, clock, mut decoder, output } = self;
        let frames_max = course.budget();
        let course = RefCell::new(course);
        // What is left to do in this poll, and whether anything was done in this round of it. The
        // three parts wait for each other by being polled again in the next round; none ever ends,
        // and no borrow lasts over an `await`.
        let (budget, moved) = (Cell::new(0), Cell::new(false));
        let reading = async {
            loop {
                until(|| {
                    let course = course.borrow();
                    course.wants_input() || budget.get() > 0 && course.has_frames()
                })
                .await;
                let has_frames = course.borrow().has_frames();
                if has_frames {
                    let mut left = budget.get();
                    course.borrow_mut().take_frames(&mut decoder, &mut left, clock.now());
                    budget.set(left);
                } else {
                    let read = reader.read(decoder.space()).await;
                    course.borrow_mut().take_read(read, &mut decoder, clock.now());
                }
                moved.set(true);
                pause().await;
            }
        };
        let writing = async {
            loop {
                let length = course.borrow_mut().fill(output);
                let needs_flush = course.borrow().needs_flush();
                let written = if length > 0 {
                    moved.set(true);
                    let took = || course.borrow_mut().written(clock.now());
                    write(&mut writer, &output[..length], took).await
                } else if needs_flush {
                    writer
                        .flush()
                        .await
                        .map(|()| course.borrow_mut().flushed())
                        .map_err(DriveError::Write)
                } else {
                    pause().await;
                    Ok(())
                };
                if let Err(error) = written {
                    course.borrow_mut().break_output(error, clock.now());
                }
            }
        };
        let waiting = async {
            loop {
                let deadline = course.borrow().deadline();
                let changed = until(|| course.borrow().deadline() != deadline);
                match deadline {
                    Some(deadline) if deadline > clock.now() => {
                        first(clock.wait_until(deadline), changed).await;
                    }
                    Some(_) => {
                        moved.set(true);
                        pause().await;
                    }
                    None => changed.await,
                }
            }
        };
        let mut reading = pin!(reading);
        let mut writing = pin!(writing);
        let mut waiting = pin!(waiting);
        poll_fn(|cx| {
            budget.set(frames_max);
            loop {
                moved.set(false);
                course.borrow_mut().go_on(cx, clock.now());
                let _: Poll<()> = writing.as_mut().poll(cx);
                if let Some(outcome) = course.borrow_mut().end(clock.now()) {
                    return Poll::Ready(outcome);
                }
                let _: Poll<()> = reading.as_mut().poll(cx);
                let _: Poll<()> = waiting.as_mut().poll(cx);
                if !moved.get() {
                    return Poll::Pending;
                }
                // A round costs as well, so that nothing makes this loop an endless one.
                budget.set(budget.get().saturating_sub(1));
                if budget.get() == 0 {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
            }
        })
        .await
    }
}

async fn write<R: Error, W: Write>(
    writer: &mut W,
    mut bytes: &[u8],
    took: impl Fn(),
) -> Result<(), DriveError<R, W::Error>> {
    while !bytes.is_empty() {
        match writer.write(bytes).await.map_err(DriveError::Write)? {
            0 => return Err(DriveError::WriteZero),
            length => bytes = bytes.get(length..).unwrap_or_default(),
        }
        took();
    }
    Ok(())
}

/// Waits until `condition` holds, which is looked at whenever the driver is polled.
async fn until(condition: impl Fn() -> bool) {
    poll_fn(|_| if condition() { Poll::Ready(()) } else { Poll::Pending }).await;
}

/// Lets the other parts have their turn.
async fn pause() {
    let first = Cell::new(true);
    until(|| !first.replace(false)).await;
}

/// Waits for the first of two.
async fn first(one: impl Future<Output = ()>, other: impl Future<Output = ()>) {
    let (mut one, mut other) = (pin!(one), pin!(other));
    poll_fn(|cx| {
        if one.as_mut().poll(cx).is_ready() { Poll::Ready(()) } else { other.as_mut().poll(cx) }
    })
    .await;
}

impl<E: fmt::Debug, R: Read, W: Write, C> fmt::Debug for Driver<'_, E, R, W, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").field("course", &self.course).finish_non_exhaustive()
    }
}

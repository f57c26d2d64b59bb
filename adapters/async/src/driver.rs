use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use mcp_sansio::Instant;
use mcp_sansio::framing::LineDecoder;
use mcp_sansio_handlers::Endpoint;

use crate::{ByteStream, Settings, Timer, panic_guard};

/// Drives one endpoint over one byte stream until the connection is over: a future to spawn, to
/// await, or to poll beside others.
///
/// * All frames of one read are handed over before anything is written, unless
///   [`Settings::frames_before_write`] says otherwise, and all that waits then leaves in as few
///   writes as the stream allows.
/// * Reading goes on while a write waits, and the other way around, so that two sides that write
///   without reading do not block each other; it stops while the endpoint
///   [`is_congested`](Endpoint::is_congested).
/// * A poll does a bounded amount of work, then lets other tasks have their turn.
/// * A handler that panics costs its request and no more: see [`panic_guard`].
/// * After the end of the input handlers have [`Settings::linger`] to finish their answers. What
///   waits to be sent then still is, as long as the other side takes some of it every so often.
///   The output is flushed and closed, and the future ends.
///
/// To drop it is to drop the connection.
pub struct Driver<E, S, T> {
    endpoint: E,
    stream: S,
    timer: T,
    settings: Settings,
    decoder: LineDecoder<'static>,
    phase: Phase,
    input: Input,
    output: Output,
    /// Whether the decoder may hold frames that were not handed over.
    has_backlog: bool,
    /// When patience ends. There is none before the connection is over in some way.
    patience: Option<Instant>,
    /// When the stream last took bytes.
    written_at: Option<Instant>,
    failure: Option<DriveError>,
    /// Whether there can be another stream in the place of this one.
    restarts: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    Closing,
    Over,
    /// The endpoint goes on with another stream.
    WantsStream,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Input {
    Open,
    /// Nothing more can be read; there may be frames left of what was.
    Ended,
    /// The endpoint knows, too.
    Told,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Output {
    Flushed,
    Written,
    Broken,
}

/// What broke a connection. The stream's fault or the other side's, never the endpoint's.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DriveError {
    /// The input failed. To the endpoint it has ended.
    #[error("reading from the other side failed: {0}")]
    Read(#[source] io::Error),
    /// The output failed, and not because the other side has gone. What waited to be sent is lost.
    #[error("writing to the other side failed: {0}")]
    Write(#[source] io::Error),
}

// Nothing in here is pinned: the future is a machine with its parts as plain fields.
impl<E, S, T> Unpin for Driver<E, S, T> {}

impl<E: Endpoint, S: ByteStream, T: Timer> Driver<E, S, T> {
    /// A driver with the default settings.
    #[must_use]
    pub fn new(endpoint: E, stream: S, timer: T) -> Self {
        Self::with_settings(endpoint, stream, timer, Settings::default())
    }

    /// A driver with settings of the caller's.
    #[must_use]
    pub fn with_settings(mut endpoint: E, stream: S, timer: T, settings: Settings) -> Self {
        endpoint.catch_panics(panic_guard());
        Self {
            endpoint,
            stream,
            timer,
            decoder: LineDecoder::growing(settings.frame_length_max.max(1)),
            settings,
            phase: Phase::Running,
            input: Input::Open,
            output: Output::Flushed,
            has_backlog: false,
            patience: None,
            written_at: None,
            failure: None,
            restarts: false,
        }
    }

    /// Lets the endpoint [restart](Endpoint::restart) the connection where the stream ends before it is
    /// open. The future then ends early, and [`wants_stream`](Self::wants_stream): start the other
    /// side anew, and give a new driver the endpoint, from [`into_parts`](Self::into_parts), and the
    /// new stream. Without this, the end of the stream is the end of the connection.
    #[must_use]
    pub const fn restarting(mut self) -> Self {
        self.restarts = true;
        self
    }

    /// Whether the driver has ended because its endpoint goes on with a new stream.
    #[must_use]
    pub fn wants_stream(&self) -> bool {
        self.phase == Phase::WantsStream
    }

    /// What is driven.
    #[must_use]
    pub const fn endpoint(&self) -> &E {
        &self.endpoint
    }

    /// What is driven, for commands. Poll the driver afterwards: it does not wake by itself.
    #[must_use]
    pub const fn endpoint_mut(&mut self) -> &mut E {
        &mut self.endpoint
    }

    /// The endpoint, the stream and the timer. Bytes that were read but not handed over are lost.
    #[must_use]
    pub fn into_parts(self) -> (E, S, T) {
        (self.endpoint, self.stream, self.timer)
    }

    /// Moves everything that moves. Ready when nothing more is to be moved.
    fn poll_running(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut budget = self.settings.frames_per_poll_max.max(1);
        let first_burst = self.settings.frames_before_write.max(1);
        let mut burst = first_burst;
        loop {
            let now = self.timer.now();
            if self.endpoint.poll_timeout().is_some_and(|deadline| deadline <= now) {
                self.endpoint.handle_timeout(now);
            }
            budget -= self.take_frames(burst.min(budget), now);
            if self.phase == Phase::WantsStream {
                return Poll::Ready(());
            }
            if budget == 0 {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            // A round without frames costs as well, so that nothing makes this loop an endless one.
            budget -= 1;
            self.endpoint.poll_handlers(cx, now);
            if self.endpoint.is_closed() {
                self.run_out_of_patience(now);
            }
            // While it waits, all else goes on.
            let _ = self.poll_write(cx, now);
            if self.is_done(now) {
                return Poll::Ready(());
            }
            let congested = self.endpoint.is_congested();
            if self.has_backlog && !congested {
                burst = burst.saturating_mul(2);
                continue;
            }
            if self.input == Input::Open && !congested && self.poll_read(cx, now).is_ready() {
                burst = first_burst;
                continue;
            }
            ready!(self.poll_deadline(cx));
        }
    }

    /// Hands over frames until there are none, the endpoint has enough, or it were `most`. How many.
    fn take_frames(&mut self, most: usize, now: Instant) -> usize {
        self.has_backlog = true;
        let mut taken = 0;
        while taken < most && !self.endpoint.is_congested() {
            let Some(frame) = self.decoder.next_frame() else {
                self.has_backlog = false;
                if self.input == Input::Ended {
                    self.tell_end(now);
                }
                break;
            };
            self.endpoint.handle_frame(frame, now);
            taken += 1;
        }
        taken
    }

    fn tell_end(&mut self, now: Instant) {
        self.input = Input::Told;
        if self.restarts && self.endpoint.restart(now) {
            // What broke the stream ends here, and half a frame with it.
            self.failure = None;
            self.phase = Phase::WantsStream;
            return;
        }
        if let Some(truncated) = self.decoder.handle_eof() {
            self.endpoint.handle_frame(Err(truncated), now);
        }
        self.endpoint.handle_eof(now);
    }

    /// Reads once. Ready when there is news.
    fn poll_read(&mut self, cx: &mut Context<'_>, now: Instant) -> Poll<()> {
        let space = self.decoder.space();
        let length = space.len().min(self.settings.read_length_max.max(1));
        match ready!(self.stream.poll_read(cx, &mut space[..length])) {
            Ok(0) => self.end_input(now),
            Ok(read) => {
                self.decoder.commit(read);
                // A full read is followed by more; an idle connection keeps its memory small, also
                // when it has had a list or two.
                if read == length {
                    self.decoder.reserve((4 * length).min(self.settings.read_length_max));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                self.failure.get_or_insert(DriveError::Read(error));
                self.end_input(now);
            }
        }
        Poll::Ready(())
    }

    fn end_input(&mut self, now: Instant) {
        self.input = Input::Ended;
        self.run_out_of_patience(now);
    }

    fn run_out_of_patience(&mut self, now: Instant) {
        self.patience.get_or_insert(now + self.settings.linger);
    }

    /// Writes all that waits and flushes it. Pending when the stream does not take all of it.
    fn poll_write(&mut self, cx: &mut Context<'_>, now: Instant) -> Poll<()> {
        if self.output == Output::Broken {
            // Nobody reads it; kept, it would congest the endpoint and hold up reading.
            self.endpoint.transmit(&mut |bytes| bytes.len());
            return Poll::Ready(());
        }
        let Self { endpoint, stream, output, written_at, .. } = self;
        let mut outcome = Poll::Ready(Ok(()));
        endpoint.transmit(&mut |bytes| {
            let mut written = 0;
            while written < bytes.len() && matches!(outcome, Poll::Ready(Ok(()))) {
                match stream.poll_write(cx, &bytes[written..]) {
                    Poll::Ready(Ok(0)) => {
                        outcome = Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                    }
                    Poll::Ready(Ok(length)) => {
                        *output = Output::Written;
                        *written_at = Some(now);
                        written += length.min(bytes.len() - written);
                    }
                    Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                    Poll::Ready(Err(error)) => outcome = Poll::Ready(Err(error)),
                    Poll::Pending => outcome = Poll::Pending,
                }
            }
            written
        });
        if self.output == Output::Written && matches!(outcome, Poll::Ready(Ok(()))) {
            outcome = self.stream.poll_flush(cx);
            if matches!(outcome, Poll::Ready(Ok(()))) {
                self.output = Output::Flushed;
            }
        }
        outcome.map(|outcome| {
            if let Err(error) = outcome {
                self.break_output(error, now);
            }
        })
    }

    /// Gives up writing. What the other side has sent before it went away is still taken.
    fn break_output(&mut self, error: io::Error, now: Instant) {
        self.output = Output::Broken;
        self.run_out_of_patience(now);
        if !is_gone(&error) {
            self.failure.get_or_insert(DriveError::Write(error));
        }
    }

    fn is_done(&self, now: Instant) -> bool {
        self.endpoint.is_drained()
            || self.patience.is_some_and(|end| end <= now)
            || self.output == Output::Broken && self.input == Input::Told
    }

    /// Waits for the next deadline. Ready when it has come.
    fn poll_deadline(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let deadlines = [self.endpoint.poll_timeout(), self.patience];
        match deadlines.into_iter().flatten().min() {
            Some(deadline) => self.timer.poll_until(cx, deadline),
            None => Poll::Pending,
        }
    }

    /// Sees to it that everybody who waits for the endpoint learns of the end.
    fn start_closing(&mut self, cx: &mut Context<'_>) {
        let now = self.timer.now();
        if self.input != Input::Told && !self.endpoint.is_closed() {
            self.endpoint.handle_eof(now);
        }
        self.input = Input::Told;
        self.endpoint.poll_handlers(cx, now);
        self.run_out_of_patience(now);
        self.phase = if self.output == Output::Broken { Phase::Over } else { Phase::Closing };
    }

    /// Writes what still waits, then closes the output. Ready when that is done, fails, or makes no
    /// progress for too long.
    fn poll_closing(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let now = self.timer.now();
        let mut outcome = Poll::Pending;
        if self.poll_write(cx, now).is_ready() {
            if self.output == Output::Broken {
                return Poll::Ready(());
            }
            outcome = self.stream.poll_close(cx);
        }
        match outcome {
            Poll::Ready(Ok(())) => Poll::Ready(()),
            Poll::Ready(Err(error)) => {
                self.break_output(error, now);
                Poll::Ready(())
            }
            Poll::Pending => {
                let progress = self.written_at.map(|last| last + self.settings.linger);
                let end = progress.max(self.patience).unwrap_or(now);
                self.timer.poll_until(cx, end)
            }
        }
    }
}

impl<E: Endpoint, S: ByteStream, T: Timer> Future for Driver<E, S, T> {
    type Output = Result<(), DriveError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let driver = self.get_mut();
        if driver.phase == Phase::Running {
            ready!(driver.poll_running(cx));
            if driver.phase == Phase::Running {
                driver.start_closing(cx);
            }
        }
        if driver.phase == Phase::Closing {
            ready!(driver.poll_closing(cx));
            driver.phase = Phase::Over;
        }
        Poll::Ready(driver.failure.take().map_or(Ok(()), Err))
    }
}

/// Whether an error says no more than that the other side has left, as it may at any time.
// MCP 2026-07-28 basic/transports/stdio#shutdown [STDIO-018]: a server may close its output and
// exit.
fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected};
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | NotConnected)
}

impl<E: fmt::Debug, S, T> fmt::Debug for Driver<E, S, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver")
            .field("endpoint", &self.endpoint)
            .field("phase", &self.phase)
            .field("input", &self.input)
            .field("output", &self.output)
            .finish_non_exhaustive()
    }
}

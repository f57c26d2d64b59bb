use core::fmt;
use core::mem;
use core::task::Context;

use crate::Instant;
use crate::framing::LineDecoder;

use super::{Endpoint, StreamSettings};

/// One endpoint on one byte stream, without the I/O: it accepts the bytes that were read, provides
/// the bytes to write, and decides when to read and write.
///
/// * All frames of one read are handled before output is written, unless
///   [`StreamSettings::frames_before_write`] is lower. The queued output is then sent in as few
///   writes as the stream allows.
/// * Reading continues while a write is pending, and vice versa, so that two peers that write
///   without reading do not block each other. Reading pauses while the endpoint
///   [`is_congested`](Endpoint::is_congested).
/// * Each poll does a bounded amount of work: see [`StreamSettings::frames_per_poll_max`].
/// * After the end of the input, handlers have [`StreamSettings::linger`] to complete their
///   responses. Queued output is sent after that as well, as long as the peer keeps reading some of
///   it.
///
/// Frame memory is lent, or grows up to [`StreamSettings::frame_length_max`].
///
/// # Driving it
///
/// In each poll the driver calls [`reset_budget`](Self::reset_budget), then
/// [`advance`](Self::advance) repeatedly, and performs each returned [`Action`]. `X` is the
/// driver's error type for a broken stream; [`finish`](Self::finish) returns the first error.
pub struct StreamConnection<'b, E, X> {
    endpoint: E,
    decoder: LineDecoder<'b>,
    settings: StreamSettings,
    phase: Phase,
    input: Input,
    output: Output,
    /// Whether another stream can replace this one.
    restarts: bool,
    /// Whether the decoder may hold unhandled frames.
    has_backlog: bool,
    /// Whether the driver could write since the last step.
    has_written: bool,
    /// Remaining work of this poll, in frames.
    budget: usize,
    /// Number of frames to handle before the next write.
    burst: usize,
    /// Length of the last buffer returned by [`Self::space`].
    offered: usize,
    /// Number of consecutive failed reads.
    read_errors: u32,
    /// When handlers must end. `None` until the end of the input or the output, or a close.
    linger_until: Option<Instant>,
    /// When the stream last accepted bytes.
    written_at: Option<Instant>,
    failure: Option<X>,
}

/// The next action of the driver. Only [`Wait`](Self::Wait) may block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Action {
    /// Write as much of [`StreamConnection::transmit`] as the stream accepts, flush it, and
    /// advance.
    Write,
    /// Wait for the first of: input, if the connection [wants it](StreamConnection::wants_read);
    /// space for output that did not fit; [`StreamConnection::poll_timeout`]; the waker passed to
    /// [`StreamConnection::advance`]. Then advance.
    Wait,
    /// The budget of this poll is used up and there is more work: let other tasks run, then poll
    /// again.
    Yield,
    /// All output is written and flushed: close the output, if the stream supports it, waiting no
    /// longer than [`StreamConnection::poll_timeout`]. Then [finish](StreamConnection::finish).
    Close,
    /// The endpoint continues on another stream, to a new process of the same server: see
    /// [`StreamConnection::restarting`].
    Restart,
    /// No more bytes are to be transferred: [finish](StreamConnection::finish).
    Done,
}

/// Why a read or a write failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault<X> {
    /// The peer closed the stream, which it may do at any time. Not an error.
    // MCP 2026-07-28 basic/transports/stdio#shutdown [STDIO-018]: a server may close its output and
    // exit.
    Gone,
    /// The stream failed, because of itself or the peer.
    Broken(X),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    Restart,
    /// Queued output is sent, and no other work is done.
    Closing,
    Done,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Input {
    Open,
    /// The input has ended, but unhandled frames may remain.
    Ended,
    /// The endpoint was notified of the end.
    Reported,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Output {
    Flushed,
    /// Output must be written or flushed.
    Waiting,
    Broken,
}

impl<E: Endpoint, X> StreamConnection<'static, E, X> {
    /// Creates a connection whose frame memory grows as needed.
    #[must_use]
    pub fn new(endpoint: E, settings: StreamSettings) -> Self {
        let decoder = LineDecoder::growing(settings.frame_length_max.max(1));
        Self::with_decoder(endpoint, decoder, settings)
    }
}

impl<'b, E: Endpoint, X> StreamConnection<'b, E, X> {
    /// Creates a connection that buffers frames in `line`, whose length is the maximum line length,
    /// including the line end. If it is empty, no input can be read, and an empty read is the end
    /// of the input.
    #[must_use]
    pub const fn lent(endpoint: E, line: &'b mut [u8], settings: StreamSettings) -> Self {
        Self::with_decoder(endpoint, LineDecoder::lent(line), settings)
    }

    const fn with_decoder(endpoint: E, decoder: LineDecoder<'b>, settings: StreamSettings) -> Self {
        Self {
            endpoint,
            decoder,
            settings,
            phase: Phase::Running,
            input: Input::Open,
            output: Output::Flushed,
            restarts: false,
            has_backlog: false,
            has_written: false,
            budget: 0,
            burst: 0,
            offered: 0,
            read_errors: 0,
            linger_until: None,
            written_at: None,
            failure: None,
        }
    }

    /// Lets the endpoint [restart](Endpoint::restart) the connection if the stream ends before the
    /// connection is open. [`Self::advance`] then returns [`Action::Restart`]: restart the server,
    /// and create a new connection from [`Self::into_endpoint`] and the new stream. Otherwise the
    /// connection ends with the stream.
    #[must_use]
    pub const fn restarting(mut self) -> Self {
        self.restarts = true;
        self
    }

    /// Replaces the settings. [`StreamSettings::frame_length_max`] has no effect any more.
    #[must_use]
    pub fn settings(mut self, settings: StreamSettings) -> Self {
        self.settings = settings;
        self
    }

    /// Returns the endpoint.
    #[must_use]
    pub const fn endpoint(&self) -> &E {
        &self.endpoint
    }

    /// Returns the endpoint for commands. Advance the connection afterwards.
    #[must_use]
    pub const fn endpoint_mut(&mut self) -> &mut E {
        &mut self.endpoint
    }

    /// Returns the endpoint. Bytes that were read but not handled are lost.
    #[must_use]
    pub fn into_endpoint(self) -> E {
        self.endpoint
    }

    // ------------------------------------------------------------------ progress

    /// Starts a new poll with the budget of [`StreamSettings::frames_per_poll_max`].
    pub fn reset_budget(&mut self) {
        self.budget = self.settings.frames_per_poll_max.max(1);
        self.reset_burst();
    }

    fn reset_burst(&mut self) {
        self.burst = self.settings.frames_before_write.max(1);
    }

    /// Processes expired deadlines, handles frames, polls handlers, and returns the next action.
    /// The waker in `cx` is woken when a handler can continue.
    pub fn advance(&mut self, cx: &mut Context<'_>, now: Instant) -> Action {
        let has_written = mem::take(&mut self.has_written);
        match self.phase {
            Phase::Running if !has_written => self.step(cx, now),
            Phase::Running if self.is_over(now) => {
                self.start_closing(cx, now);
                self.write()
            }
            Phase::Running if self.has_frames() => {
                self.burst = self.burst.saturating_mul(2);
                self.step(cx, now)
            }
            Phase::Closing if !has_written => self.write(),
            Phase::Closing if self.output == Output::Flushed => Action::Close,
            Phase::Closing if self.output == Output::Broken || self.is_due(now) => Action::Done,
            Phase::Running | Phase::Closing => Action::Wait,
            Phase::Restart => Action::Restart,
            Phase::Done => Action::Done,
        }
    }

    /// Processes all input that is already available.
    fn step(&mut self, cx: &mut Context<'_>, now: Instant) -> Action {
        if self.endpoint.poll_timeout().is_some_and(|deadline| deadline <= now) {
            self.endpoint.handle_timeout(now);
        }
        self.take_frames(now);
        if self.phase == Phase::Restart {
            return Action::Restart;
        }
        // A step without frames also uses the budget, so that the driver's loop always ends.
        let Some(budget) = self.budget.checked_sub(1) else { return Action::Yield };
        self.budget = budget;
        self.endpoint.poll_handlers(cx, now);
        if self.endpoint.is_closed() {
            self.start_linger(now);
        }
        self.write()
    }

    const fn write(&mut self) -> Action {
        self.has_written = true;
        Action::Write
    }

    /// Returns when to call [`advance`](Self::advance) at the latest.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.phase {
            Phase::Running => {
                [self.endpoint.poll_timeout(), self.linger_until].into_iter().flatten().min()
            }
            Phase::Closing => {
                self.written_at.map(|last| last + self.settings.linger).max(self.linger_until)
            }
            Phase::Restart | Phase::Done => None,
        }
    }

    fn is_due(&self, now: Instant) -> bool {
        self.poll_timeout().is_none_or(|deadline| deadline <= now)
    }

    fn start_linger(&mut self, now: Instant) {
        self.linger_until.get_or_insert(now + self.settings.linger);
    }

    /// Returns whether only queued output remains to be sent.
    // MCP 2026-07-28 basic/transports/stdio#shutdown [STDIO-017]: a server exits promptly after its
    // input ends: once all requests are answered, or when the linger time is over.
    fn is_over(&self, now: Instant) -> bool {
        self.endpoint.is_drained()
            || self.linger_until.is_some_and(|end| end <= now)
            || self.output == Output::Broken && self.input == Input::Reported
    }

    /// Reports the end to the endpoint and its handlers.
    fn start_closing(&mut self, cx: &mut Context<'_>, now: Instant) {
        if self.input != Input::Reported && !self.endpoint.is_closed() {
            self.endpoint.handle_eof(now);
        }
        self.input = Input::Reported;
        self.endpoint.poll_handlers(cx, now);
        self.start_linger(now);
        self.phase = Phase::Closing;
    }

    /// Ends the connection. All further actions are [`Action::Done`].
    ///
    /// # Errors
    ///
    /// Returns the first reported [`Fault::Broken`]; later calls return no error.
    pub fn finish(&mut self) -> Result<(), X> {
        self.phase = Phase::Done;
        self.failure.take().map_or(Ok(()), Err)
    }

    // ------------------------------------------------------------------ input

    /// Returns whether input should be read now.
    #[must_use]
    pub fn wants_read(&self) -> bool {
        self.input == Input::Open && !self.has_backlog && !self.endpoint.is_congested()
    }

    /// Returns the buffer to read into. It is not empty if the connection [wants to
    /// read](Self::wants_read), unless the frame memory is empty.
    pub fn space(&mut self) -> &mut [u8] {
        let space = self.decoder.space();
        self.offered = space.len().min(self.settings.read_length_max.max(1));
        &mut space[..self.offered]
    }

    /// Returns the decoder, for a driver whose reads outlive its borrow of the connection: it takes
    /// the decoder out, reads into its [`space`](LineDecoder::space), and puts it back before
    /// [`Self::handle_read`].
    pub const fn decoder_mut(&mut self) -> &mut LineDecoder<'b> {
        &mut self.decoder
    }

    /// Handles the outcome of a read: the number of bytes of [`Self::space`] that were filled. Zero
    /// is the end of the input; so is a broken stream, after [`StreamSettings::read_errors_max`].
    /// Before that, a line during which a read failed becomes invalid. Reads after the end of the
    /// input are ignored.
    pub fn handle_read(&mut self, read: Result<usize, Fault<X>>, now: Instant) {
        if self.input != Input::Open {
            return;
        }
        match read {
            Ok(0) | Err(Fault::Gone) => self.end_input(now),
            Ok(length) => {
                self.read_errors = 0;
                self.decoder.commit(length);
                // After a full read more bytes are expected. An idle connection keeps its memory
                // small, even after it received a few lists.
                if length == self.offered {
                    let wanted = length.saturating_mul(4).min(self.settings.read_length_max);
                    self.decoder.reserve(wanted);
                }
                self.has_backlog = true;
                self.reset_burst();
            }
            Err(Fault::Broken(error)) => {
                self.read_errors = self.read_errors.saturating_add(1);
                if self.read_errors > self.settings.read_errors_max {
                    self.failure.get_or_insert(error);
                    self.end_input(now);
                } else {
                    self.decoder.damage();
                    // The line may be too long with that.
                    self.has_backlog = true;
                }
            }
        }
    }

    fn end_input(&mut self, now: Instant) {
        self.input = Input::Ended;
        self.has_backlog = true;
        self.start_linger(now);
    }

    /// Returns whether there may be frames to handle and the endpoint accepts more.
    fn has_frames(&self) -> bool {
        self.has_backlog && !self.endpoint.is_congested()
    }

    /// Handles frames until all are handled, the endpoint is congested, or a write is due.
    fn take_frames(&mut self, now: Instant) {
        let mut left = self.burst.min(self.budget);
        while left > 0 && self.has_frames() {
            let Some(frame) = self.decoder.next_frame() else {
                self.has_backlog = false;
                if self.input == Input::Ended {
                    self.report_end(now);
                }
                return;
            };
            self.endpoint.handle_frame(frame, now);
            left -= 1;
            self.budget -= 1;
        }
    }

    fn report_end(&mut self, now: Instant) {
        self.input = Input::Reported;
        // A last message without a line end is handled, even if the process is started again.
        let mut rest = self.decoder.handle_eof();
        if let Some(Ok(frame)) = rest {
            self.endpoint.handle_frame(Ok(frame), now);
            rest = None;
        }
        if self.restarts && self.endpoint.restart(now) {
            // The error of the old stream and its incomplete frame do not affect the new one.
            self.failure = None;
            self.phase = Phase::Restart;
            return;
        }
        if let Some(cut) = rest {
            self.endpoint.handle_frame(cut, now);
        }
        self.endpoint.handle_eof(now);
    }

    // ------------------------------------------------------------------ output

    /// Passes the queued output to `write`, which returns the number of bytes it accepted, until it
    /// accepts less than it was given or the queue is empty.
    pub fn transmit(&mut self, write: &mut dyn FnMut(&[u8]) -> usize) {
        if self.output == Output::Broken {
            // Keeping the output would congest the endpoint and stop reading.
            self.endpoint.transmit(&mut |bytes| bytes.len());
            return;
        }
        let output = &mut self.output;
        self.endpoint.transmit(&mut |bytes| {
            if !bytes.is_empty() {
                *output = Output::Waiting;
            }
            write(bytes)
        });
    }

    /// Moves queued output into `buffer`, as much as fits, and returns the number of bytes.
    pub fn fill(&mut self, buffer: &mut [u8]) -> usize {
        let mut filled = 0;
        self.transmit(&mut |bytes| {
            let length = bytes.len().min(buffer.len() - filled);
            buffer[filled..filled + length].copy_from_slice(&bytes[..length]);
            filled += length;
            length
        });
        filled
    }

    /// Returns whether the stream must be flushed once all output is written.
    #[must_use]
    pub fn needs_flush(&self) -> bool {
        self.output == Output::Waiting
    }

    /// Records that the stream accepted some bytes.
    pub const fn handle_written(&mut self, now: Instant) {
        self.written_at = Some(now);
    }

    /// Records that all output was written and flushed.
    pub fn handle_flushed(&mut self) {
        if self.output == Output::Waiting {
            self.output = Output::Flushed;
        }
    }

    /// Stops writing after an error. Input that the peer sent before it closed is still handled.
    pub fn handle_write_error(&mut self, fault: Fault<X>, now: Instant) {
        self.output = Output::Broken;
        self.start_linger(now);
        if let Fault::Broken(error) = fault {
            self.failure.get_or_insert(error);
        }
    }
}

crate::partial_debug! {
    impl<E: fmt::Debug, X> Debug for StreamConnection<'_, E, X> {
        endpoint, phase, input, output, ..
    }
}

use core::fmt;
use core::mem;
use core::task::Context;

use crate::Instant;
use crate::framing::LineDecoder;

use super::{Endpoint, Settings};

/// One endpoint on one byte stream, without the stream: a machine that takes what was read, says
/// what to write, and knows when to do which.
///
/// * All frames of one read are handed over before anything is written, unless
///   [`Settings::frames_before_write`] says otherwise, and all that waits then leaves in as few
///   writes as the stream allows.
/// * Reading goes on while a write waits, and the other way around, so that two sides that write
///   without reading do not block each other. It stops while the endpoint
///   [`is_congested`](Endpoint::is_congested).
/// * One poll does a bounded amount of work: see [`Settings::frames_per_poll_max`].
/// * After the end of the input handlers have [`Settings::linger`] to finish their answers. What
///   waits to be sent then still is, as long as the other side takes some of it every so often.
///
/// The memory for frames is lent, or grows up to [`Settings::frame_length_max`].
///
/// # Driving it
///
/// A poll of the driver calls [`reset_budget`](Self::reset_budget), then
/// [`advance`](Self::advance) again and again, and does what the [`Action`] says. `X` is what the
/// driver knows of a broken stream; [`finish`](Self::finish) returns the first one.
pub struct Connection<'b, E, X> {
    endpoint: E,
    decoder: LineDecoder<'b>,
    settings: Settings,
    phase: Phase,
    input: Input,
    output: Output,
    /// Whether another stream can replace this one.
    restarts: bool,
    /// Whether the decoder may hold frames that were not handed over.
    has_backlog: bool,
    /// Whether the driver has had its chance to write since the last step.
    has_written: bool,
    /// How much this poll may still do.
    budget: usize,
    /// How many frames are handed over before the next write.
    burst: usize,
    /// The length of what [`Self::space`] returned last.
    offered: usize,
    /// How many reads in a row have failed.
    read_errors: u32,
    /// Until when handlers may run. `None` before the connection is over in some way.
    linger_until: Option<Instant>,
    /// When the stream last took bytes.
    written_at: Option<Instant>,
    failure: Option<X>,
}

/// What the driver does next. Only [`Wait`](Self::Wait) may take time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Action {
    /// Write as much of [`Connection::transmit`] as there is room for, flush it, and advance.
    Write,
    /// Wait for the first of: input, if the connection [wants it](Connection::wants_read); room for
    /// output that did not fit; [`Connection::poll_timeout`]; the waker given to
    /// [`Connection::advance`]. Then advance.
    Wait,
    /// The budget of this poll is used up, but there is more to do: let others run, and come back.
    Yield,
    /// Everything is written and flushed: close the output, if the stream has a way to, for no longer
    /// than until [`Connection::poll_timeout`]. Then [finish](Connection::finish).
    Close,
    /// The endpoint goes on with another stream, to a new process of the same server: see
    /// [`Connection::restarting`].
    Restart,
    /// Nothing more is to be moved: [finish](Connection::finish).
    Done,
}

/// Why a read or a write failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault<X> {
    /// The other side has gone, as it may at any time. It is not an error.
    // MCP 2026-07-28 basic/transports/stdio#shutdown [STDIO-018]: a server may close its output and
    // exit.
    Gone,
    /// The stream is broken: its own fault, or the other side's.
    Broken(X),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    Restart,
    /// What waits is sent, and nothing else happens.
    Closing,
    Done,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Input {
    Open,
    /// Nothing more can be read, but frames of what was may remain.
    Ended,
    /// The endpoint knows, too.
    Reported,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Output {
    Flushed,
    /// Something is to be written or flushed.
    Waiting,
    Broken,
}

impl<E: Endpoint, X> Connection<'static, E, X> {
    /// A connection whose memory for frames grows as it is needed.
    #[must_use]
    pub fn new(endpoint: E, settings: Settings) -> Self {
        let decoder = LineDecoder::growing(settings.frame_length_max.max(1));
        Self::with_decoder(endpoint, decoder, settings)
    }
}

impl<'b, E: Endpoint, X> Connection<'b, E, X> {
    /// A connection that frames in `line`, whose length is the longest line that is taken, line end
    /// included. Where it is empty nothing can be read, and a read of nothing is the end of the
    /// input.
    #[must_use]
    pub const fn lent(endpoint: E, line: &'b mut [u8], settings: Settings) -> Self {
        Self::with_decoder(endpoint, LineDecoder::lent(line), settings)
    }

    const fn with_decoder(endpoint: E, decoder: LineDecoder<'b>, settings: Settings) -> Self {
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

    /// Lets the endpoint [restart](Endpoint::restart) the connection where the stream ends before it
    /// is open. [`Self::advance`] then returns [`Action::Restart`]: start the other side anew, and
    /// make a new connection of [`Self::into_endpoint`] and the new stream. Without this, the end of
    /// the stream is the end of the connection.
    #[must_use]
    pub const fn restarting(mut self) -> Self {
        self.restarts = true;
        self
    }

    /// With settings of the caller's. [`Settings::frame_length_max`] counts no more.
    #[must_use]
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// What is driven.
    #[must_use]
    pub const fn endpoint(&self) -> &E {
        &self.endpoint
    }

    /// What is driven, for commands. Advance the connection afterwards.
    #[must_use]
    pub const fn endpoint_mut(&mut self) -> &mut E {
        &mut self.endpoint
    }

    /// What is driven. Bytes that were read but not handed over are lost.
    #[must_use]
    pub fn into_endpoint(self) -> E {
        self.endpoint
    }

    // ------------------------------------------------------------------ progress

    /// Starts a new poll, which may do as much as [`Settings::frames_per_poll_max`] says.
    pub fn reset_budget(&mut self) {
        self.budget = self.settings.frames_per_poll_max.max(1);
        self.reset_burst();
    }

    fn reset_burst(&mut self) {
        self.burst = self.settings.frames_before_write.max(1);
    }

    /// Does what is due at `now`, hands frames over, runs handlers, and says what comes next. The
    /// waker in `cx` is woken when a handler can go on.
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

    /// Takes what waits on this side of the stream.
    fn step(&mut self, cx: &mut Context<'_>, now: Instant) -> Action {
        if self.endpoint.poll_timeout().is_some_and(|deadline| deadline <= now) {
            self.endpoint.handle_timeout(now);
        }
        self.take_frames(now);
        if self.phase == Phase::Restart {
            return Action::Restart;
        }
        // A step without frames costs as well, so that nothing makes the driver's loop an endless one.
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

    /// When to [advance](Self::advance), if nothing else happens before.
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

    /// Whether nothing happens any more, except that what waits is sent.
    // MCP 2026-07-28 basic/transports/stdio#shutdown [STDIO-017]: a server exits promptly when its
    // input ends: as soon as all is answered, and at the latest when the time for that is over.
    fn is_over(&self, now: Instant) -> bool {
        self.endpoint.is_drained()
            || self.linger_until.is_some_and(|end| end <= now)
            || self.output == Output::Broken && self.input == Input::Reported
    }

    /// Sees to it that all who wait for the endpoint learn of the end.
    fn start_closing(&mut self, cx: &mut Context<'_>, now: Instant) {
        if self.input != Input::Reported && !self.endpoint.is_closed() {
            self.endpoint.handle_eof(now);
        }
        self.input = Input::Reported;
        self.endpoint.poll_handlers(cx, now);
        self.start_linger(now);
        self.phase = Phase::Closing;
    }

    /// Ends the connection. Everything after this is [`Action::Done`].
    ///
    /// # Errors
    ///
    /// The first [`Fault::Broken`] that was reported; later calls return none.
    pub fn finish(&mut self) -> Result<(), X> {
        self.phase = Phase::Done;
        self.failure.take().map_or(Ok(()), Err)
    }

    // ------------------------------------------------------------------ input

    /// Whether anything should be read now.
    #[must_use]
    pub fn wants_read(&self) -> bool {
        self.input == Input::Open && !self.has_backlog && !self.endpoint.is_congested()
    }

    /// Where to read to. Not empty where the connection [wants to read](Self::wants_read), unless
    /// the memory for frames is.
    pub fn space(&mut self) -> &mut [u8] {
        let space = self.decoder.space();
        self.offered = space.len().min(self.settings.read_length_max.max(1));
        &mut space[..self.offered]
    }

    /// The decoder, for a driver whose reads outlive its borrow of the connection: it takes the
    /// decoder out, reads to its [`space`](LineDecoder::space), and puts it back before
    /// [`Self::handle_read`].
    pub const fn decoder_mut(&mut self) -> &mut LineDecoder<'b> {
        &mut self.decoder
    }

    /// Takes the outcome of a read: how many bytes of [`Self::space`] are filled. Zero is the end of
    /// the input, and so is a stream that is broken, after [`Settings::read_errors_max`]. After the
    /// end of the input nothing is taken.
    pub fn handle_read(&mut self, read: Result<usize, Fault<X>>, now: Instant) {
        if self.input != Input::Open {
            return;
        }
        match read {
            Ok(0) | Err(Fault::Gone) => self.end_input(now),
            Ok(length) => {
                self.read_errors = 0;
                self.decoder.commit(length);
                // A full read is followed by more; an idle connection keeps its memory small, also
                // after it has had a list or two.
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
                }
            }
        }
    }

    fn end_input(&mut self, now: Instant) {
        self.input = Input::Ended;
        self.has_backlog = true;
        self.start_linger(now);
    }

    /// Whether there may be frames to hand over, and the endpoint takes more.
    fn has_frames(&self) -> bool {
        self.has_backlog && !self.endpoint.is_congested()
    }

    /// Hands frames over until there are none, the endpoint is congested, or a write is due.
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
        if self.restarts && self.endpoint.restart(now) {
            // What broke the stream ends here, and half a frame with it.
            self.failure = None;
            self.phase = Phase::Restart;
            return;
        }
        if let Some(truncated) = self.decoder.handle_eof() {
            self.endpoint.handle_frame(Err(truncated), now);
        }
        self.endpoint.handle_eof(now);
    }

    // ------------------------------------------------------------------ output

    /// Shows what waits to be sent to `write`, which says how much of it was taken; again and again
    /// until that is less than it was shown, or nothing waits.
    pub fn transmit(&mut self, write: &mut dyn FnMut(&[u8]) -> usize) {
        if self.output == Output::Broken {
            // Kept, it would congest the endpoint and hold up reading.
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

    /// Moves what waits to be sent into `buffer`, as much as fits, and returns how much that was.
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

    /// Whether the stream is to be flushed, once it has taken everything.
    #[must_use]
    pub fn needs_flush(&self) -> bool {
        self.output == Output::Waiting
    }

    /// The stream has taken some bytes.
    pub const fn handle_written(&mut self, now: Instant) {
        self.written_at = Some(now);
    }

    /// The stream has taken everything and holds nothing back.
    pub fn handle_flushed(&mut self) {
        if self.output == Output::Waiting {
            self.output = Output::Flushed;
        }
    }

    /// Gives up writing. What the other side had sent before it left is still taken.
    pub fn handle_write_error(&mut self, fault: Fault<X>, now: Instant) {
        self.output = Output::Broken;
        self.start_linger(now);
        if let Fault::Broken(error) = fault {
            self.failure.get_or_insert(error);
        }
    }
}

impl<E: fmt::Debug, X> fmt::Debug for Connection<'_, E, X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("endpoint", &self.endpoint)
            .field("phase", &self.phase)
            .field("input", &self.input)
            .field("output", &self.output)
            .finish_non_exhaustive()
    }
}

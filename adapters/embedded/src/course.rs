use core::task::Context;

use embedded_io::Error;
use mcp_sansio::Instant;
use mcp_sansio::framing::LineDecoder;
use mcp_sansio_handlers::Endpoint;

use crate::error::is_gone;
use crate::{DriveError, Settings};

/// The course of one connection: an endpoint and how far its streams are. Both drivers move bytes;
/// what that means for the connection is decided here.
#[derive(Debug)]
pub(crate) struct Course<E, R: Error, W: Error> {
    endpoint: E,
    settings: Settings,
    phase: Phase,
    input: Input,
    output: Output,
    /// Whether the decoder may hold frames that were not handed over.
    has_backlog: bool,
    read_errors: u32,
    /// When patience ends. There is none before the connection is over in some way.
    patience: Option<Instant>,
    /// When the output last took bytes.
    written_at: Option<Instant>,
    failure: Option<DriveError<R, W>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    /// Nothing goes on but what waits to be sent.
    Closing,
    Over,
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

impl<E: Endpoint, R: Error, W: Error> Course<E, R, W> {
    pub(crate) const fn new(endpoint: E) -> Self {
        Self {
            endpoint,
            settings: Settings::DEFAULT,
            phase: Phase::Running,
            input: Input::Open,
            output: Output::Flushed,
            has_backlog: false,
            read_errors: 0,
            patience: None,
            written_at: None,
            failure: None,
        }
    }

    pub(crate) const fn endpoint(&self) -> &E {
        &self.endpoint
    }

    pub(crate) const fn endpoint_mut(&mut self) -> &mut E {
        &mut self.endpoint
    }

    pub(crate) fn into_endpoint(self) -> E {
        self.endpoint
    }

    pub(crate) fn set_settings(&mut self, settings: Settings) {
        self.settings = settings;
    }

    /// What one poll may do.
    pub(crate) fn budget(&self) -> usize {
        self.settings.frames_per_poll_max.max(1)
    }

    // ------------------------------------------------------------------ the endpoint

    /// Does what is due and lets handlers go on.
    pub(crate) fn go_on(&mut self, cx: &mut Context<'_>, now: Instant) {
        if self.phase != Phase::Running {
            return;
        }
        if self.endpoint.poll_timeout().is_some_and(|deadline| deadline <= now) {
            self.endpoint.handle_timeout(now);
        }
        self.endpoint.poll_handlers(cx, now);
        if self.endpoint.is_closed() {
            self.run_out_of_patience(now);
        }
        if self.endpoint.is_drained()
            || self.is_patience_over(now)
            || self.output == Output::Broken && self.input == Input::Told
        {
            self.start_closing(cx, now);
        }
    }

    /// Sees to it that everybody who waits for the endpoint learns of the end.
    fn start_closing(&mut self, cx: &mut Context<'_>, now: Instant) {
        if self.input != Input::Told && !self.endpoint.is_closed() {
            self.endpoint.handle_eof(now);
        }
        self.input = Input::Told;
        self.endpoint.poll_handlers(cx, now);
        self.run_out_of_patience(now);
        self.phase = Phase::Closing;
    }

    /// When there is something to do, if nothing comes before.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match self.phase {
            Phase::Running => {
                [self.endpoint.poll_timeout(), self.patience].into_iter().flatten().min()
            }
            Phase::Closing => self.last_deadline(),
            Phase::Over => None,
        }
    }

    /// How it ended, once it has and nothing more is to be moved: told once, then it is over.
    /// Everything that waits must have been offered to the output before.
    pub(crate) fn end(&mut self, now: Instant) -> Option<Result<(), DriveError<R, W>>> {
        let over = match self.phase {
            Phase::Running => false,
            Phase::Closing => {
                self.output != Output::Written || self.last_deadline().is_none_or(|end| end <= now)
            }
            Phase::Over => true,
        };
        over.then(|| {
            self.phase = Phase::Over;
            self.failure.take().map_or(Ok(()), Err)
        })
    }

    /// Until when what waits may be sent.
    fn last_deadline(&self) -> Option<Instant> {
        self.written_at.map(|last| last + self.settings.linger).max(self.patience)
    }

    fn is_patience_over(&self, now: Instant) -> bool {
        self.patience.is_some_and(|end| end <= now)
    }

    fn run_out_of_patience(&mut self, now: Instant) {
        self.patience.get_or_insert(now + self.settings.linger);
    }

    // ------------------------------------------------------------------ the input

    /// Whether anything should be read now.
    pub(crate) fn wants_input(&self) -> bool {
        self.input == Input::Open && !self.has_backlog && !self.endpoint.is_congested()
    }

    /// Whether there may be frames to hand over, and the endpoint has not enough.
    pub(crate) fn has_frames(&self) -> bool {
        self.has_backlog && self.phase == Phase::Running && !self.endpoint.is_congested()
    }

    /// Takes what a read came to.
    pub(crate) fn take_read(
        &mut self,
        read: Result<usize, R>,
        decoder: &mut LineDecoder<'_>,
        now: Instant,
    ) {
        match read {
            Ok(0) => self.end_input(now),
            Ok(length) => {
                self.read_errors = 0;
                decoder.commit(length);
                self.has_backlog = true;
            }
            Err(error) => self.read_failed(error, now),
        }
    }

    fn read_failed(&mut self, error: R, now: Instant) {
        self.read_errors = self.read_errors.saturating_add(1);
        if is_gone(&error) {
            self.end_input(now);
        } else if self.read_errors > self.settings.read_errors_max {
            self.failure.get_or_insert(DriveError::Read(error));
            self.end_input(now);
        }
    }

    fn end_input(&mut self, now: Instant) {
        self.input = Input::Ended;
        self.has_backlog = true;
        self.run_out_of_patience(now);
    }

    /// Hands over frames until there are none, the endpoint has enough, or the budget is used up.
    pub(crate) fn take_frames(
        &mut self,
        decoder: &mut LineDecoder<'_>,
        budget: &mut usize,
        now: Instant,
    ) {
        while *budget > 0 && self.has_frames() {
            *budget -= 1;
            match decoder.next_frame() {
                Some(frame) => self.endpoint.handle_frame(frame, now),
                None => {
                    self.has_backlog = false;
                    if self.input == Input::Ended {
                        self.tell_end(decoder, now);
                    }
                }
            }
        }
    }

    fn tell_end(&mut self, decoder: &mut LineDecoder<'_>, now: Instant) {
        self.input = Input::Told;
        if let Some(truncated) = decoder.handle_eof() {
            self.endpoint.handle_frame(Err(truncated), now);
        }
        self.endpoint.handle_eof(now);
    }

    // ------------------------------------------------------------------ the output

    /// Shows what waits to be sent to `write`, which says how much it took.
    pub(crate) fn transmit(&mut self, write: &mut dyn FnMut(&[u8]) -> usize) {
        if self.output == Output::Broken {
            // Nobody reads it; kept, it would congest the endpoint and hold up reading.
            self.endpoint.transmit(&mut |bytes| bytes.len());
            return;
        }
        let output = &mut self.output;
        self.endpoint.transmit(&mut |bytes| {
            if !bytes.is_empty() {
                *output = Output::Written;
            }
            write(bytes)
        });
    }

    /// Moves what waits to be sent into `buffer`, as much as fits, and says how much that was.
    pub(crate) fn fill(&mut self, buffer: &mut [u8]) -> usize {
        let mut filled = 0;
        self.transmit(&mut |bytes| {
            let length = bytes.len().min(buffer.len() - filled);
            buffer[filled..filled + length].copy_from_slice(&bytes[..length]);
            filled += length;
            length
        });
        filled
    }

    /// Whether something was written and not flushed.
    pub(crate) fn needs_flush(&self) -> bool {
        self.output == Output::Written
    }

    pub(crate) const fn written(&mut self, now: Instant) {
        self.written_at = Some(now);
    }

    /// Everything has gone out.
    pub(crate) fn flushed(&mut self) {
        if self.output == Output::Written {
            self.output = Output::Flushed;
        }
    }

    /// Gives up writing. What the other side has sent before it went away is still taken.
    pub(crate) fn break_output(&mut self, error: DriveError<R, W>, now: Instant) {
        self.output = Output::Broken;
        self.run_out_of_patience(now);
        if !matches!(&error, DriveError::Write(error) if is_gone(error)) {
            self.failure.get_or_insert(error);
        }
    }
}

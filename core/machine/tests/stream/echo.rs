//! An endpoint that sends each frame back.

use std::task::Context;

use mcp_sansio::Instant;
use mcp_sansio::framing::FrameError;
use mcp_sansio::stream::Endpoint;

#[derive(Debug, Default)]
pub(crate) struct Echo {
    /// The input: frames, and other events in angle brackets.
    pub(crate) seen: Vec<String>,
    pub(crate) output: String,
    /// Whether responses are held until the test releases them, as with slow handlers.
    pub(crate) holds: bool,
    pub(crate) held: String,
    /// Length of the output from which the endpoint is congested.
    pub(crate) congested_from: Option<usize>,
    pub(crate) deadline: Option<Instant>,
    /// Whether an expired deadline is kept, against the contract.
    pub(crate) is_stuck: bool,
    pub(crate) is_closed: bool,
    /// Whether another stream can replace one that ended.
    pub(crate) restarts: bool,
}

impl Echo {
    pub(crate) fn holding() -> Self {
        Self { holds: true, ..Self::default() }
    }

    pub(crate) fn release(&mut self) {
        self.output.push_str(&std::mem::take(&mut self.held));
    }
}

impl Endpoint for Echo {
    fn handle_frame(&mut self, frame: Result<&[u8], FrameError>, _: Instant) {
        match frame {
            Ok(frame) => {
                let line = str::from_utf8(frame).unwrap();
                let answers = if self.holds { &mut self.held } else { &mut self.output };
                answers.push_str(line);
                answers.push('\n');
                self.seen.push(line.into());
            }
            Err(error) => self.seen.push(format!("<{error}>")),
        }
    }

    fn handle_eof(&mut self, _: Instant) {
        self.seen.push("<eof>".into());
        self.is_closed = true;
    }

    fn restart(&mut self, _: Instant) -> bool {
        self.restarts
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.seen.push(format!("<timeout at {} ms>", now.as_nanos() / 1_000_000));
        if !self.is_stuck {
            self.deadline = None;
        }
    }

    fn poll_handlers(&mut self, _: &mut Context<'_>, _: Instant) {}

    fn transmit(&mut self, write: &mut dyn FnMut(&[u8]) -> usize) {
        if !self.output.is_empty() {
            let written = write(self.output.as_bytes());
            self.output.drain(..written);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.deadline
    }

    fn is_congested(&self) -> bool {
        self.congested_from.is_some_and(|length| self.output.len() >= length)
    }

    fn is_drained(&self) -> bool {
        self.is_closed && self.output.is_empty() && self.held.is_empty()
    }

    fn is_closed(&self) -> bool {
        self.is_closed
    }
}

//! An endpoint that echoes each frame.

use std::task::Context;

use mcp_sansio::Instant;
use mcp_sansio::framing::FrameError;
use mcp_sansio_handlers::endpoint::Endpoint;

#[derive(Debug, Default)]
pub(crate) struct Echo {
    /// The received frames. Other inputs are noted in angle brackets.
    pub(crate) seen: Vec<String>,
    pub(crate) output: Vec<u8>,
    /// Responses of pending handlers, held until the test releases them.
    pub(crate) held: Vec<String>,
    /// Whether responses are held.
    pub(crate) holds: bool,
    /// The endpoint is congested while it holds at least this much output.
    pub(crate) congested_from: Option<usize>,
    pub(crate) deadline: Option<Instant>,
    /// Whether the deadline stays after it has expired, which violates the contract.
    pub(crate) is_stuck: bool,
    pub(crate) is_closed: bool,
}

impl Echo {
    pub(crate) fn release(&mut self) {
        for answer in std::mem::take(&mut self.held) {
            self.say(&answer);
        }
    }

    pub(crate) fn say(&mut self, line: &str) {
        self.output.extend_from_slice(line.as_bytes());
        self.output.push(b'\n');
    }
}

impl Endpoint for Echo {
    fn handle_frame(&mut self, frame: Result<&[u8], FrameError>, _: Instant) {
        match frame {
            Ok(frame) => {
                let line = String::from_utf8(frame.to_vec()).unwrap();
                if self.holds {
                    self.held.push(line.clone())
                } else {
                    self.say(&line)
                }
                self.seen.push(line);
            }
            Err(error) => self.seen.push(format!("<{error}>")),
        }
    }

    fn handle_eof(&mut self, _: Instant) {
        self.seen.push("<eof>".into());
        self.is_closed = true;
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
            let written = write(&self.output);
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

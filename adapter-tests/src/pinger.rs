use std::task::Context;

use mcp_sansio::Instant;
use mcp_sansio::framing::FrameError;
use mcp_sansio_handlers::endpoint::Endpoint;

/// A client that only handles lines: it sends the given output and closes after the expected number
/// of frames.
#[derive(Debug)]
pub struct Pinger {
    output: Vec<u8>,
    sent: usize,
    expected: usize,
    /// The number of frames received.
    pub received: usize,
    /// The number of bytes in those frames.
    pub received_length: usize,
    is_closed: bool,
}

impl Pinger {
    /// Sends `output`, and closes after `expected` frames.
    #[must_use]
    pub const fn new(output: Vec<u8>, expected: usize) -> Self {
        Self { output, sent: 0, expected, received: 0, received_length: 0, is_closed: false }
    }
}

impl Endpoint for Pinger {
    fn handle_frame(&mut self, frame: Result<&[u8], FrameError>, _: Instant) {
        self.received += 1;
        self.received_length += frame.map_or(0, <[u8]>::len);
        self.is_closed |= self.received == self.expected;
    }

    fn handle_eof(&mut self, _: Instant) {
        self.is_closed = true;
    }

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_handlers(&mut self, _: &mut Context<'_>, _: Instant) {}

    fn transmit(&mut self, write: &mut dyn FnMut(&[u8]) -> usize) {
        if self.sent < self.output.len() {
            self.sent += write(&self.output[self.sent..]);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn is_congested(&self) -> bool {
        false
    }

    fn is_drained(&self) -> bool {
        self.is_closed && self.sent == self.output.len()
    }

    fn is_closed(&self) -> bool {
        self.is_closed
    }
}

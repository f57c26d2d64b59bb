use std::task::Context;

use mcp_sansio::Instant;
use mcp_sansio::framing::FrameError;
use mcp_sansio::handler::Endpoint;
use mcp_sansio::peer::{Server, ServerOptions};
use mcp_sansio::protocol::Implementation;

/// A server that offers nothing and whose application has nothing to say: it answers pings.
#[derive(Debug)]
pub struct Quiet {
    server: Server,
    is_closed: bool,
}

impl Default for Quiet {
    fn default() -> Self {
        let options = ServerOptions::new(Implementation::new("quiet", "1"));
        Self { server: Server::new(options, 7), is_closed: false }
    }
}

impl Endpoint for Quiet {
    fn handle_frame(&mut self, frame: Result<&[u8], FrameError>, now: Instant) {
        let outcome = match frame {
            Ok(frame) => self.server.handle_message(frame, now),
            Err(error) => self.server.handle_frame_error(error),
        };
        self.is_closed |= outcome.is_err();
    }

    fn handle_eof(&mut self, _: Instant) {
        self.server.handle_eof();
        self.is_closed = true;
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.server.handle_timeout(now);
    }

    fn poll_handlers(&mut self, _: &mut Context<'_>, _: Instant) {
        while self.server.poll_event().is_some() {}
    }

    fn transmit(&mut self, write: &mut dyn FnMut(&[u8]) -> usize) {
        loop {
            let bytes = self.server.peek_transmit();
            let length = bytes.len();
            if length == 0 {
                return;
            }
            let written = write(bytes);
            self.server.consume_transmit(written);
            if written < length {
                return;
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.server.poll_timeout()
    }

    fn is_congested(&self) -> bool {
        self.server.is_congested()
    }

    fn is_drained(&self) -> bool {
        self.server.is_drained()
    }

    fn is_closed(&self) -> bool {
        self.is_closed
    }
}

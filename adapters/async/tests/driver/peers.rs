//! The driver around the real machine.

use std::task::Context;

use mcp_sansio::Instant;
use mcp_sansio::framing::FrameError;
use mcp_sansio::handler::Endpoint;
use mcp_sansio::peer::{Server, ServerOptions};
use mcp_sansio::protocol::Implementation;

use crate::Bench;
use crate::scripted::{Scripted, Step};

/// A server whose application has nothing to say.
struct Quiet {
    server: Server,
    is_closed: bool,
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

#[test]
fn a_server_answers_what_came_before_the_end_of_input() {
    let server = Server::new(ServerOptions::new(Implementation::new("quiet", "1")), 7);
    let pings: String = (0..5000)
        .map(|id| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n"))
        .collect();
    let stream = Scripted::default().read(&pings).read("{\"jsonrpc\":").step(Step::End);
    let mut bench = Bench::new(Quiet { server, is_closed: false }, stream);
    bench.run(5000).unwrap();
    let written = bench.stream.written();
    assert_eq!(written.matches("\"result\"").count(), 5000, "{written}");
    assert!(written.contains("-32700"), "the line that was cut");
}

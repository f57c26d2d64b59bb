//! The byte-stream binding, with a stream and a clock that the tests control.

mod by_hand;
mod echo;
mod ends;
mod moves;
mod packets;

use std::task::{Context, Waker};

use mcp_sansio::Instant;
use mcp_sansio::stream::{Action, Fault, StreamConnection, StreamSettings};

use echo::Echo;

/// A connection and the peer of its stream.
struct Bench {
    connection: StreamConnection<'static, Echo, &'static str>,
    now: Instant,
    /// How many bytes the stream accepts.
    room: usize,
    /// Bytes that the stream has accepted.
    written: String,
    /// Operations, one letter each: `r`ead, `w`rite, `f`lush.
    trace: String,
}

impl Bench {
    fn new(endpoint: Echo, settings: StreamSettings) -> Self {
        Self {
            connection: StreamConnection::new(endpoint, settings),
            now: Instant::ZERO,
            room: usize::MAX,
            written: String::new(),
            trace: String::new(),
        }
    }

    fn seen(&self) -> Vec<&str> {
        self.connection.endpoint().seen.iter().map(String::as_str).collect()
    }

    /// Reads as much of `bytes` as there is space for. Returns the number of bytes.
    fn read(&mut self, bytes: &str) -> usize {
        assert!(self.connection.wants_read());
        let space = self.connection.space();
        let length = bytes.len().min(space.len());
        space[..length].copy_from_slice(&bytes.as_bytes()[..length]);
        self.connection.handle_read(Ok(length), self.now);
        self.trace.push('r');
        length
    }

    fn end_input(&mut self) {
        self.connection.handle_read(Ok(0), self.now);
    }

    fn fail_write(&mut self, fault: Fault<&'static str>) {
        self.connection.handle_write_error(fault, self.now);
    }

    /// Performs the next action of the connection, writing included.
    fn step(&mut self) -> Action {
        let action = self.connection.advance(&mut Context::from_waker(Waker::noop()), self.now);
        if action == Action::Write {
            self.write();
        }
        action
    }

    /// Polls the connection until it waits.
    fn poll(&mut self) -> Action {
        self.connection.reset_budget();
        loop {
            let action = self.step();
            if action != Action::Write {
                return action;
            }
        }
    }

    fn poll_at(&mut self, millis: u64) -> Action {
        self.now = Instant::from_millis(millis);
        self.poll()
    }

    fn write(&mut self) {
        let Self { connection, room, written, trace, now } = self;
        let (mut took, mut is_full) = (false, false);
        connection.transmit(&mut |bytes| {
            let length = bytes.len().min(*room);
            *room -= length;
            written.push_str(str::from_utf8(&bytes[..length]).unwrap());
            (took, is_full) = (took || length > 0, length < bytes.len());
            length
        });
        if took {
            connection.handle_written(*now);
            trace.push('w');
        }
        if !is_full && connection.needs_flush() {
            connection.handle_flushed();
            trace.push('f');
        }
    }
}

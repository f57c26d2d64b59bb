//! One end of the line: an endpoint of MCP on a link.

use std::convert::Infallible;
use std::task::Context;

use mcp_sansio::Instant;
use mcp_sansio::stream::{Action, Connection, Endpoint, Settings};

use super::link::{Event, Link, SILENCE_MAX};

/// An endpoint on a link, as one machine: bytes of the line and the time go in, packets come out.
#[derive(Debug)]
pub struct Station<E> {
    connection: Connection<'static, E, Infallible>,
    link: Link,
    /// What the link has received and the connection has not read.
    received: Vec<u8>,
}

impl<E: Endpoint> Station<E> {
    /// Puts `endpoint` on a link that begins now.
    #[must_use]
    pub fn new(endpoint: E, now: Instant) -> Self {
        let mut settings = Settings::DEVICE;
        settings.frame_length_max = 1 << 20;
        // The last packets may have to be sent again.
        settings.linger = SILENCE_MAX;
        let connection = Connection::new(endpoint, settings);
        Self { connection, link: Link::new(now), received: Vec::new() }
    }

    /// The link, to look at.
    #[must_use]
    pub const fn link(&self) -> &Link {
        &self.link
    }

    /// Takes what came over the line.
    pub fn handle_bytes(&mut self, bytes: &[u8], now: Instant) {
        self.link.handle_bytes(bytes, now);
    }

    /// Does what is due at `now`. [`Station::turn`] does the rest.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.link.handle_timeout(now);
    }

    /// Moves what can move between the endpoint and its link.
    pub fn turn(&mut self, cx: &mut Context<'_>, now: Instant) {
        loop {
            match self.connection.advance(cx, now) {
                Action::Write => self.write(now),
                Action::Wait if self.connection.wants_read() && self.read(now) => {}
                Action::Wait => return,
                Action::Yield => self.connection.reset_budget(),
                Action::Close | Action::Restart | Action::Done => {
                    let Ok(()) = self.connection.finish();
                    self.link.close();
                    // What still comes is for nobody, but the other side waits until it has arrived.
                    while self.link.poll_event().is_some() {}
                    return;
                }
            }
        }
    }

    /// Gives the link as much as it takes.
    fn write(&mut self, now: Instant) {
        let (mut took, mut is_full) = (false, false);
        self.connection.transmit(&mut |bytes| {
            let length = self.link.write(bytes);
            (took, is_full) = (took || length > 0, length < bytes.len());
            length
        });
        if took {
            self.connection.handle_written(now);
        }
        if !is_full {
            self.connection.handle_flushed();
        }
    }

    /// Reads what the link has received. Whether there was anything.
    fn read(&mut self, now: Instant) -> bool {
        if self.received.is_empty() {
            match self.link.poll_event() {
                Some(Event::Received(bytes)) => self.received = bytes,
                // A dead line is the end of the input, like one that was closed.
                Some(Event::Ended | Event::Lost) => {
                    self.connection.handle_read(Ok(0), now);
                    return true;
                }
                None => return false,
            }
        }
        let space = self.connection.space();
        let length = space.len().min(self.received.len());
        space[..length].copy_from_slice(&self.received[..length]);
        self.received.drain(..length);
        self.connection.handle_read(Ok(length), now);
        true
    }

    /// The next packet for the line.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<&[u8]> {
        self.link.poll_transmit(now)
    }

    /// When there is something to do.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.link.poll_timeout().into_iter().chain(self.connection.poll_timeout()).min()
    }
}

//! One end of the line: an MCP endpoint on a link.

use std::convert::Infallible;
use std::task::Context;

use mcp_sansio::Instant;
use mcp_sansio::stream::{Action, Endpoint, StreamConnection, StreamSettings};

use super::link::{Event, Link, SILENCE_MAX};

/// An endpoint on a link, combined to one state machine. Inputs are bytes of the line and the time;
/// outputs are packets.
#[derive(Debug)]
pub struct Station<E> {
    connection: StreamConnection<'static, E, Infallible>,
    link: Link,
    /// Bytes that the link has received and the connection has not read yet.
    received: Vec<u8>,
}

impl<E: Endpoint> Station<E> {
    /// Creates a station with `endpoint` on a new link.
    #[must_use]
    pub fn new(endpoint: E, now: Instant) -> Self {
        let mut settings = StreamSettings::DEVICE;
        settings.frame_length_max = 1 << 20;
        // Leave time to retransmit the last packets.
        settings.linger = SILENCE_MAX;
        let connection = StreamConnection::new(endpoint, settings);
        Self { connection, link: Link::new(now), received: Vec::new() }
    }

    /// Returns the link for inspection.
    #[must_use]
    pub const fn link(&self) -> &Link {
        &self.link
    }

    /// Processes bytes received from the line.
    pub fn handle_bytes(&mut self, bytes: &[u8], now: Instant) {
        self.link.handle_bytes(bytes, now);
    }

    /// Processes the link's expired deadlines. Call [`Station::turn`] afterwards.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.link.handle_timeout(now);
    }

    /// Moves data between the endpoint and its link.
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
                    // Discard further input, which the peer still needs to have acknowledged.
                    while self.link.poll_event().is_some() {}
                    return;
                }
            }
        }
    }

    /// Writes as much output to the link as it accepts.
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

    /// Reads data that the link has received. Returns whether there was any.
    fn read(&mut self, now: Instant) -> bool {
        if self.received.is_empty() {
            match self.link.poll_event() {
                Some(Event::Received(bytes)) => self.received = bytes,
                // A dead line ends the input like a closed one.
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

    /// Returns the next packet for the line.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<&[u8]> {
        self.link.poll_transmit(now)
    }

    /// Returns the next deadline.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.link.poll_timeout().into_iter().chain(self.connection.poll_timeout()).min()
    }
}

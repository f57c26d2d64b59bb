//! One end of the line: an endpoint of MCP on a link.

use std::task::Context;

use mcp_sansio::Instant;
use mcp_sansio::framing::LineDecoder;
use mcp_sansio_handlers::Endpoint;

use super::link::{Event, Link};

/// An endpoint on a link, as one machine: bytes of the line and the time go in, packets come out.
#[derive(Debug)]
pub struct Station<E> {
    endpoint: E,
    decoder: LineDecoder<'static>,
    link: Link,
}

impl<E: Endpoint> Station<E> {
    /// Puts `endpoint` on a link that begins now.
    #[must_use]
    pub fn new(endpoint: E, now: Instant) -> Self {
        Self { endpoint, decoder: LineDecoder::growing(1 << 20), link: Link::new(now) }
    }

    /// The endpoint, to look at.
    #[must_use]
    pub const fn endpoint(&self) -> &E {
        &self.endpoint
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

    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.link.handle_timeout(now);
        self.endpoint.handle_timeout(now);
    }

    /// Moves what can move between the endpoint and its link.
    pub fn turn(&mut self, cx: &mut Context<'_>, now: Instant) {
        while !self.endpoint.is_congested()
            && let Some(event) = self.link.poll_event()
        {
            match event {
                Event::Received(bytes) => self.receive(&bytes, now),
                Event::Ended | Event::Lost => {
                    if let Some(error) = self.decoder.handle_eof() {
                        self.endpoint.handle_frame(Err(error), now);
                    }
                    self.endpoint.handle_eof(now);
                }
            }
        }
        self.endpoint.poll_handlers(cx, now);
        self.endpoint.transmit(&mut |bytes| self.link.write(bytes));
        if self.endpoint.is_drained() {
            self.link.close();
        }
    }

    fn receive(&mut self, mut bytes: &[u8], now: Instant) {
        while !bytes.is_empty() {
            bytes = &bytes[self.decoder.feed(bytes)..];
            while let Some(frame) = self.decoder.next_frame() {
                self.endpoint.handle_frame(frame, now);
            }
        }
    }

    /// The next packet for the line.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<&[u8]> {
        self.link.poll_transmit(now)
    }

    /// When [`Station::handle_timeout`] has something to do.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.link.poll_timeout().into_iter().chain(self.endpoint.poll_timeout()).min()
    }
}

//! Events that are kept for clients that resume.

use mcp_sansio::peer::RequestHandle;

use super::Load;
use crate::HttpHarness;

const URI: &str = "file:///resource";

/// A session whose client has disconnected, and its kept events.
struct Ring {
    harness: HttpHarness,
    session: String,
    /// The id of the last event received by the client.
    last: String,
    back: bool,
}

pub(super) fn one_more() -> Box<dyn Load> {
    Box::new(Ring::new(1, false))
}

pub(super) fn back() -> Box<dyn Load> {
    Box::new(Ring::new(1, true))
}

impl Ring {
    /// Creates a session whose log is full with `size` events.
    fn new(size: usize, back: bool) -> Self {
        let mut harness = HttpHarness::with_rings(size);
        let session = harness.session();
        harness.subscribe(&session, URI, true);
        let listening = harness.listen(&session, None);
        for _ in 0..2 * size {
            harness.resource_updated(URI);
        }
        harness.disconnect(&listening);
        // A stream opened without an id starts with one.
        let listening = harness.listen(&session, None);
        harness.disconnect(&listening);
        let last = listening.last_id.expect("the stream has an event id");
        Self { harness, session, last, back }
    }
}

impl Load for Ring {
    fn grow(&mut self, size: usize) {
        *self = Self::new(size, self.back);
    }

    fn work(&mut self) {
        self.harness.resource_updated(URI);
        if self.back {
            let listening = self.harness.listen(&self.session, Some(&self.last));
            assert!(listening.length > 100, "the missed events arrive");
            self.harness.disconnect(&listening);
            self.last = listening.last_id.expect("an event has an id");
        }
    }
}

/// Sessions with a request each, whose clients have disconnected.
struct Rings {
    harness: HttpHarness,
    requests: Vec<RequestHandle>,
    step: u32,
    turn: usize,
}

pub(super) fn many() -> Box<dyn Load> {
    let harness = HttpHarness::with_rings(Rings::EVENTS as usize);
    Box::new(Rings { harness, requests: Vec::new(), step: 0, turn: 0 })
}

impl Rings {
    const EVENTS: u32 = 4;

    /// Adds one event to the stream of one request.
    fn more(&mut self, turn: usize) {
        self.step += 1;
        self.harness.progress(self.requests[turn], self.step);
    }
}

impl Load for Rings {
    fn grow(&mut self, size: usize) {
        while self.requests.len() < size {
            let session = self.harness.session();
            self.requests.push(self.harness.abandoned(&session));
            for _ in 0..2 * Self::EVENTS {
                self.more(self.requests.len() - 1);
            }
        }
    }

    fn work(&mut self) {
        self.turn = (self.turn + 7919) % self.requests.len();
        self.more(self.turn);
    }
}

use crate::operation::{Operation, script};
use mcp_sansio::framing::LineDecoder;

use super::client::ClientHarness;
use super::server::ServerHarness;

/// Runs a client and a server over a link that corrupts data: for any input each side keeps the
/// properties of its own target, and if nothing was corrupted, neither side reports a violation by
/// the other.
pub fn pair(bytes: &[u8]) {
    let (settings, operations) = script(bytes);
    let middle = settings.iter().position(|byte| *byte == b' ').unwrap_or(settings.len());
    let (client, server) = settings.split_at(middle);
    let mut pair = Pair {
        client: ClientHarness::new(client),
        server: ServerHarness::new(server.get(1..).unwrap_or_default()),
        to_client: Link::new(),
        to_server: Link::new(),
        spoiled: false,
    };
    operations.for_each(|operation| pair.operate(&operation));
    pair.finish();
}

struct Pair {
    client: ClientHarness,
    server: ServerHarness,
    to_client: Link,
    to_server: Link,
    spoiled: bool,
}

/// One direction.
struct Link {
    /// Bytes in transit.
    carried: Vec<u8>,
    decoder: LineDecoder<'static>,
}

impl Pair {
    /// `C` and `S` select a side, the other verbs apply to the link: `>` and `<` deliver up to the
    /// given number of bytes, all without a number; `m` changes the byte at a position, `d` drops
    /// and `w` duplicates the bytes in transit from there on, `i` inserts text.
    fn operate(&mut self, operation: &Operation<'_>) {
        let side = Operation::parse(operation.text);
        match (operation.verb, side) {
            (b'C', Some(inner)) if !is_of_link(inner.verb) => self.client.operate(&inner),
            (b'S', Some(inner)) if !is_of_link(inner.verb) => self.server.operate(&inner),
            (b't' | b'T', _) => self.pass_time(operation),
            (b'>' | b'<', _) => {
                self.collect();
                self.carry(operation);
            }
            (b'm' | b'd' | b'w' | b'i', _) => {
                self.collect();
                let link = if operation.number.is_multiple_of(2) {
                    &mut self.to_server
                } else {
                    &mut self.to_client
                };
                self.spoiled |= link.spoil(operation);
            }
            _ => {}
        }
        self.collect();
    }

    fn pass_time(&mut self, operation: &Operation<'_>) {
        let due = [self.client.client.poll_timeout(), self.server.server.poll_timeout()];
        let now = match operation.verb {
            b't' => self.client.now + operation.duration(),
            _ => due.into_iter().flatten().min().unwrap_or(self.client.now).max(self.client.now),
        };
        self.client.wake(now);
        self.server.wake(now);
        self.client.look();
        self.server.look();
    }

    /// Collects the output of both sides.
    fn collect(&mut self) {
        self.to_server.carried.extend(self.client.sent());
        self.to_client.carried.extend(self.server.sent());
    }

    fn carry(&mut self, operation: &Operation<'_>) {
        let length = if operation.number == 0 { usize::MAX } else { operation.number };
        if operation.verb == b'>' {
            self.to_server.carry(length, |frame| self.server.take(frame));
        } else {
            self.to_client.carry(length, |frame| self.client.take(frame));
        }
    }

    fn finish(mut self) {
        for _ in 0..4 {
            self.collect();
            self.to_server.carry(usize::MAX, |frame| self.server.take(frame));
            self.to_client.carry(usize::MAX, |frame| self.client.take(frame));
        }
        let transcripts = [self.client.finish(), self.server.finish()];
        if !self.spoiled {
            for transcript in &transcripts {
                assert!(!transcript.contains("Malformed"), "{transcripts:#?}");
            }
        }
    }
}

/// Returns whether an operation would bypass the link.
const fn is_of_link(verb: u8) -> bool {
    matches!(verb, b'{' | b'E' | b't' | b'T')
}

impl Link {
    fn new() -> Self {
        Self { carried: Vec::new(), decoder: LineDecoder::growing(1 << 16) }
    }

    fn carry(
        &mut self,
        length: usize,
        mut receive: impl FnMut(Result<&[u8], mcp_sansio::framing::FrameError>),
    ) {
        let length = length.min(self.carried.len());
        let rest = self.carried.split_off(length);
        let arriving = std::mem::replace(&mut self.carried, rest);
        let mut arriving = arriving.as_slice();
        while !arriving.is_empty() {
            arriving = &arriving[self.decoder.feed(arriving)..];
            while let Some(frame) = self.decoder.next_frame() {
                receive(frame);
            }
        }
    }

    /// Corrupts the bytes in transit. Returns whether anything changed.
    fn spoil(&mut self, operation: &Operation<'_>) -> bool {
        if self.carried.is_empty() {
            return false;
        }
        let at = operation.number / 2 % self.carried.len();
        match operation.verb {
            b'm' => {
                let byte = operation.text.first().copied().unwrap_or(b'\n');
                self.carried[at] = byte;
            }
            b'd' => self.carried.truncate(at),
            b'w' => self.carried.extend_from_within(at..),
            _ => {
                let rest = self.carried.split_off(at);
                self.carried.extend_from_slice(operation.text);
                self.carried.extend(rest);
            }
        }
        true
    }
}

//! The link layer: a stream of bytes over a line that loses, doubles and damages packets.

use std::collections::VecDeque;
use std::time::Duration;

use mcp_sansio::Instant;

use super::packet::{Kind, PAYLOAD_MAX, Packet, PacketReader};

/// Packets that may be under way without an acknowledgement. Far fewer than there are numbers, so
/// that an old packet is never taken for a new one.
const WINDOW: usize = 8;
/// Bytes that may wait to be packed. Beyond that the application has to wait.
const WAITING_MAX: usize = 4096;
/// Packets that may wait for the application. Beyond that the other side has to send again.
const ARRIVED_MAX: usize = 16;
/// How long an acknowledgement may take: twice what a full window takes at 115,200 bits a second.
const RESEND: Duration = Duration::from_millis(200);
/// The longest pause within a packet: twice what a whole one takes.
const GAP: Duration = Duration::from_millis(24);
/// How long a side says nothing at the most.
const KEEP_ALIVE: Duration = Duration::from_millis(500);
/// How long the other side may be silent. Ten packets in a row, one for each `KEEP_ALIVE`, have
/// to be lost before it is taken for dead by mistake.
pub const SILENCE_MAX: Duration = Duration::from_secs(5);

/// One end of a link, as a machine: what came over the line and the time go in; what to send, what
/// arrived and when to come back come out. It does not know what the bytes mean.
///
/// Ask [`Link::poll_transmit`] whenever the line has room, and [`Link::poll_event`] whenever the
/// application has.
#[derive(Debug)]
pub struct Link {
    reader: PacketReader,
    /// When the last bytes came.
    read_at: Instant,
    /// The number of the next packet to take.
    expected: u8,
    arrived: VecDeque<Vec<u8>>,
    incoming: Incoming,
    /// Whether to say what is expected, or that this side is there, if there is nothing else to say.
    owes_packet: bool,
    waiting: VecDeque<u8>,
    outgoing: Outgoing,
    /// What has no acknowledgement, oldest first.
    window: VecDeque<Piece>,
    /// The number of the first packet in the window.
    oldest: u8,
    /// How many packets of the window are under way.
    sent: usize,
    resend_at: Option<Instant>,
    spoke_at: Instant,
    heard_at: Instant,
    is_dead: bool,
    packet: Vec<u8>,
    counts: Counts,
}

/// What a packet is made of.
#[derive(Debug)]
struct Piece {
    kind: Kind,
    payload: Vec<u8>,
    was_sent: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Incoming {
    Open,
    /// It ended, and nobody was told.
    Ended,
    Told,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outgoing {
    Open,
    /// The end waits behind everything else.
    Closing,
    /// The end is in the window.
    Ending,
    /// The other side has everything.
    Over,
}

/// What comes out of a link for the application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The next bytes of the other side: each byte once, in order.
    Received(Vec<u8>),
    /// The other side has nothing more to say.
    Ended,
    /// Nothing was heard for [`SILENCE_MAX`]: the line or the other side is dead.
    Lost,
}

/// What a link has gone through, in packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Sent, again or not.
    pub sent: u64,
    /// Sent again.
    pub resent: u64,
    /// Come undamaged.
    pub received: u64,
    /// Come undamaged and passed over: a second time, or before their turn.
    pub refused: u64,
}

impl Link {
    /// A link to a side that begins at about the same time.
    #[must_use]
    pub fn new(now: Instant) -> Self {
        Self {
            reader: PacketReader::default(),
            read_at: now,
            expected: 0,
            arrived: VecDeque::new(),
            incoming: Incoming::Open,
            owes_packet: false,
            waiting: VecDeque::new(),
            outgoing: Outgoing::Open,
            window: VecDeque::new(),
            oldest: 0,
            sent: 0,
            resend_at: None,
            spoke_at: now,
            heard_at: now,
            is_dead: false,
            packet: Vec::new(),
            counts: Counts::default(),
        }
    }

    /// Takes as much of `bytes` as there is room for, and says how much. Once the link is closed or
    /// dead all of it is taken, and dropped.
    pub fn write(&mut self, bytes: &[u8]) -> usize {
        if self.is_dead || self.outgoing != Outgoing::Open {
            return bytes.len();
        }
        let length = bytes.len().min(WAITING_MAX - self.waiting.len());
        self.waiting.extend(&bytes[..length]);
        length
    }

    /// Ends the stream behind what was written. Extra calls do nothing.
    pub fn close(&mut self) {
        if self.outgoing == Outgoing::Open {
            self.outgoing = Outgoing::Closing;
        }
    }

    /// Takes any bytes that came over the line.
    pub fn handle_bytes(&mut self, bytes: &[u8], now: Instant) {
        if !self.is_dead {
            self.read_at = now;
            self.reader.feed(bytes);
            self.take_packets(now);
        }
    }

    /// Takes the packets that are whole.
    fn take_packets(&mut self, now: Instant) {
        while let Some(packet) = self.reader.next_packet() {
            self.heard_at = now;
            self.counts.received += 1;
            let count = usize::from(packet.acknowledged.wrapping_sub(self.oldest));
            if (1..=self.window.len()).contains(&count) {
                self.window.drain(..count);
                self.oldest = packet.acknowledged;
                self.sent = self.sent.saturating_sub(count);
                self.resend_at = (self.sent > 0).then(|| now + RESEND);
                if self.outgoing == Outgoing::Ending && self.window.is_empty() {
                    self.outgoing = Outgoing::Over;
                }
            }
            if packet.kind == Kind::Acknowledgement {
                continue;
            }
            // Taken or not: the other side learns which one is expected.
            self.owes_packet = true;
            let has_room = self.arrived.len() < ARRIVED_MAX;
            if packet.sequence != self.expected || self.incoming != Incoming::Open || !has_room {
                self.counts.refused += 1;
                continue;
            }
            self.expected = self.expected.wrapping_add(1);
            match packet.kind {
                Kind::End => self.incoming = Incoming::Ended,
                _ => self.arrived.push_back(packet.payload.to_vec()),
            }
        }
    }

    /// Does what is due at `now`. Extra calls do nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        let is_due = |deadline: Option<Instant>| deadline.is_some_and(|deadline| deadline <= now);
        if is_due(self.silence_at()) {
            self.is_dead = true;
            self.waiting.clear();
            self.window.clear();
            if self.incoming == Incoming::Open {
                self.incoming = Incoming::Ended;
            }
            return;
        }
        if is_due(self.gap_at()) {
            // A length that was damaged would have it wait for what never comes.
            while self.reader.is_incomplete() {
                self.reader.give_up();
                self.take_packets(now);
            }
        }
        if is_due(self.resend_at) {
            // All of them: the other side takes none out of turn.
            self.sent = 0;
            self.resend_at = None;
        }
        self.owes_packet |= is_due(self.keep_alive_at());
    }

    /// What came; `None` if that was all for now, or for good.
    pub fn poll_event(&mut self) -> Option<Event> {
        if let Some(bytes) = self.arrived.pop_front() {
            return Some(Event::Received(bytes));
        }
        if self.incoming != Incoming::Ended {
            return None;
        }
        self.incoming = Incoming::Told;
        Some(if self.is_dead { Event::Lost } else { Event::Ended })
    }

    /// The next packet, once the line has room for it.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<&[u8]> {
        self.fill_window();
        let (oldest, acknowledged) = (self.oldest, self.expected);
        let packet = match self.window.get_mut(self.sent) {
            Some(Piece { kind, payload, was_sent }) => {
                let sequence = oldest.wrapping_add(self.sent as u8);
                self.sent += 1;
                self.counts.resent += u64::from(std::mem::replace(was_sent, true));
                self.resend_at.get_or_insert(now + RESEND);
                Packet { kind: *kind, sequence, acknowledged, payload }
            }
            None if self.owes_packet && !self.is_dead => {
                Packet { kind: Kind::Acknowledgement, sequence: 0, acknowledged, payload: &[] }
            }
            None => return None,
        };
        self.packet.clear();
        packet.encode(&mut self.packet);
        self.owes_packet = false;
        self.spoke_at = now;
        self.counts.sent += 1;
        Some(&self.packet)
    }

    /// When [`Link::handle_timeout`] has something to do, if nothing comes before.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let deadlines = [self.gap_at(), self.resend_at, self.keep_alive_at(), self.silence_at()];
        deadlines.into_iter().flatten().min().filter(|_| !self.is_dead)
    }

    /// Whether both sides have said everything, or one is dead. What the other side repeats is
    /// acknowledged even then.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.is_dead || self.incoming != Incoming::Open && self.outgoing == Outgoing::Over
    }

    /// What it has gone through.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// Puts what waits into the window, as far as there is room.
    fn fill_window(&mut self) {
        while self.window.len() < WINDOW && !self.waiting.is_empty() {
            let length = self.waiting.len().min(PAYLOAD_MAX);
            let payload = self.waiting.drain(..length).collect();
            self.window.push_back(Piece { kind: Kind::Data, payload, was_sent: false });
        }
        if self.outgoing == Outgoing::Closing && self.window.len() < WINDOW && !self.is_dead {
            self.outgoing = Outgoing::Ending;
            self.window.push_back(Piece { kind: Kind::End, payload: Vec::new(), was_sent: false });
        }
    }

    fn gap_at(&self) -> Option<Instant> {
        self.reader.is_incomplete().then(|| self.read_at + GAP)
    }

    fn keep_alive_at(&self) -> Option<Instant> {
        (!self.is_over() && !self.owes_packet).then(|| self.spoke_at + KEEP_ALIVE)
    }

    fn silence_at(&self) -> Option<Instant> {
        (!self.is_over()).then(|| self.heard_at + SILENCE_MAX)
    }
}

//! The link layer: a reliable byte stream over a line that loses, duplicates and damages packets.

use std::collections::VecDeque;
use std::time::Duration;

use mcp_sansio::Instant;

use super::packet::{Kind, PAYLOAD_MAX, Packet, PacketReader};

/// The maximum number of unacknowledged packets. Much smaller than the number of sequence numbers,
/// so that an old packet is never mistaken for a new one.
const WINDOW: usize = 8;
/// The maximum number of bytes that wait to be sent. Beyond that, the application has to wait.
const WAITING_MAX: usize = 4096;
/// The maximum number of packets that wait for the application. Beyond that, the peer has to
/// retransmit.
const ARRIVED_MAX: usize = 16;
/// The time before unacknowledged packets are retransmitted: twice the duration of a full window at
/// 115,200 bits per second.
const RESEND: Duration = Duration::from_millis(200);
/// The longest pause within a packet: twice the duration of a whole packet.
const GAP: Duration = Duration::from_millis(24);
/// The longest time without sending a packet.
const KEEP_ALIVE: Duration = Duration::from_millis(500);
/// The time without any packet after which the link is lost. A working link is only given up if ten
/// consecutive packets, one per `KEEP_ALIVE`, are lost.
pub const SILENCE_MAX: Duration = Duration::from_secs(5);

/// One end of a link as a state machine. Inputs are received bytes and the time; outputs are
/// packets to send, received data and the next deadline. The link does not interpret the bytes that
/// it carries.
///
/// Call [`Link::poll_transmit`] whenever the line accepts a packet, and [`Link::poll_event`]
/// whenever the application accepts data.
#[derive(Debug)]
pub struct Link {
    reader: PacketReader,
    /// When bytes were last received.
    read_at: Instant,
    /// The number of the next packet to accept.
    expected: u8,
    arrived: VecDeque<Vec<u8>>,
    incoming: Incoming,
    /// Whether to send an acknowledgement or a keep-alive if there is no data to send.
    packet_pending: bool,
    waiting: VecDeque<u8>,
    outgoing: Outgoing,
    /// Unacknowledged packets, oldest first.
    window: VecDeque<Piece>,
    /// The number of the first packet in the window.
    oldest: u8,
    /// The number of packets in the window that have been sent.
    sent: usize,
    resend_at: Option<Instant>,
    spoke_at: Instant,
    heard_at: Instant,
    is_dead: bool,
    packet: Vec<u8>,
    counts: Counts,
}

/// The contents of a packet.
#[derive(Debug)]
struct Piece {
    kind: Kind,
    payload: Vec<u8>,
    was_sent: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Incoming {
    Open,
    /// The input has ended, but this has not been reported.
    Ended,
    Reported,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outgoing {
    Open,
    /// The end is sent after all pending data.
    Closing,
    /// The end is in the window.
    Ending,
    /// The peer has received everything.
    Over,
}

/// An event for the application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The next bytes of the peer. Each byte is delivered once and in order.
    Received(Vec<u8>),
    /// The peer has closed its stream.
    Ended,
    /// Nothing was received for [`SILENCE_MAX`]: the line or the peer is dead.
    Lost,
}

/// Packet counts of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets sent, including retransmissions.
    pub sent: u64,
    /// Retransmissions.
    pub resent: u64,
    /// Undamaged packets received.
    pub received: u64,
    /// Undamaged packets that were discarded because they were duplicates or out of order, or
    /// because the receive queue was full.
    pub refused: u64,
}

impl Link {
    /// Creates a link to a peer that starts at about the same time.
    #[must_use]
    pub fn new(now: Instant) -> Self {
        Self {
            reader: PacketReader::default(),
            read_at: now,
            expected: 0,
            arrived: VecDeque::new(),
            incoming: Incoming::Open,
            packet_pending: false,
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

    /// Queues as many of `bytes` as there is room for, and returns how many. Once the link is
    /// closed or dead, all bytes are discarded and their number is returned.
    pub fn write(&mut self, bytes: &[u8]) -> usize {
        if self.is_dead || self.outgoing != Outgoing::Open {
            return bytes.len();
        }
        let length = bytes.len().min(WAITING_MAX - self.waiting.len());
        self.waiting.extend(&bytes[..length]);
        length
    }

    /// Ends the stream after all pending data. Further calls have no effect.
    pub fn close(&mut self) {
        if self.outgoing == Outgoing::Open {
            self.outgoing = Outgoing::Closing;
        }
    }

    /// Processes bytes received from the line.
    pub fn handle_bytes(&mut self, bytes: &[u8], now: Instant) {
        if !self.is_dead {
            self.read_at = now;
            self.reader.feed(bytes);
            self.take_packets(now);
        }
    }

    /// Processes all complete packets.
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
            // Acknowledge every packet, even a discarded one, so that the peer learns the expected
            // number.
            self.packet_pending = true;
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

    /// Processes the deadlines that have expired at `now`. Spurious calls have no effect.
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
            // With a damaged length, the reader would wait for bytes that never arrive.
            while self.reader.is_incomplete() {
                self.reader.give_up();
                self.take_packets(now);
            }
        }
        if is_due(self.resend_at) {
            // Retransmit the whole window, because the peer accepts packets only in order.
            self.sent = 0;
            self.resend_at = None;
        }
        self.packet_pending |= is_due(self.keep_alive_at());
    }

    /// Returns the next event, or `None` if no event has happened yet or the link has ended.
    pub fn poll_event(&mut self) -> Option<Event> {
        if let Some(bytes) = self.arrived.pop_front() {
            return Some(Event::Received(bytes));
        }
        if self.incoming != Incoming::Ended {
            return None;
        }
        self.incoming = Incoming::Reported;
        Some(if self.is_dead { Event::Lost } else { Event::Ended })
    }

    /// Returns the next packet. Call it when the line accepts a packet.
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
            None if self.packet_pending && !self.is_dead => {
                Packet { kind: Kind::Acknowledgement, sequence: 0, acknowledged, payload: &[] }
            }
            None => return None,
        };
        self.packet.clear();
        packet.encode(&mut self.packet);
        self.packet_pending = false;
        self.spoke_at = now;
        self.counts.sent += 1;
        Some(&self.packet)
    }

    /// Returns the time at which to call [`Link::handle_timeout`] if nothing is received before.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let deadlines = [self.gap_at(), self.resend_at, self.keep_alive_at(), self.silence_at()];
        deadlines.into_iter().flatten().min().filter(|_| !self.is_dead)
    }

    /// Whether both sides have closed, or the link is dead. Retransmissions of the peer are
    /// acknowledged even then.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.is_dead || self.incoming != Incoming::Open && self.outgoing == Outgoing::Over
    }

    /// Returns the counts of the packets so far.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// Moves pending data into the window as far as there is room.
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
        (!self.is_over() && !self.packet_pending).then(|| self.spoke_at + KEEP_ALIVE)
    }

    fn silence_at(&self) -> Option<Instant> {
        (!self.is_over()).then(|| self.heard_at + SILENCE_MAX)
    }
}

//! A simulated serial line: one direction, slow, with configurable noise.

use std::collections::VecDeque;
use std::time::Duration;

use mcp_sansio::Instant;

/// The time of a byte with start bit and stop bit at 115,200 bits per second.
const BYTE_TIME: Duration = Duration::from_nanos(86_806);

/// How often packets are disturbed, per thousand packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Noise {
    /// The packet is lost.
    pub lost: u64,
    /// The packet arrives twice.
    pub doubled: u64,
    /// Bits are flipped, bytes are lost, or extra bytes are inserted.
    pub damaged: u64,
}

/// Counts of disturbed packets on a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineCounts {
    /// Lost packets.
    pub lost: u64,
    /// Packets that arrived twice.
    pub doubled: u64,
    /// Packets that arrived damaged.
    pub damaged: u64,
}

/// One direction of a line.
#[derive(Debug)]
pub struct Line {
    noise: Noise,
    random: Random,
    /// The packets in transit and their arrival times.
    in_transit: VecDeque<(Instant, Vec<u8>)>,
    free_at: Instant,
    is_cut: bool,
    counts: LineCounts,
}

impl Line {
    /// Creates a line. The same packets at the same times always meet the same noise, which is
    /// derived from `seed`.
    #[must_use]
    pub const fn new(noise: Noise, seed: u64) -> Self {
        Self {
            noise,
            random: Random(seed),
            in_transit: VecDeque::new(),
            free_at: Instant::ZERO,
            is_cut: false,
            counts: LineCounts { lost: 0, doubled: 0, damaged: 0 },
        }
    }

    /// Cuts the line. Nothing arrives from now on.
    pub fn cut(&mut self) {
        self.is_cut = true;
        self.in_transit.clear();
    }

    /// Returns the time at which the current packet is sent and the line accepts the next one.
    #[must_use]
    pub const fn free_at(&self) -> Instant {
        self.free_at
    }

    /// Sends a packet.
    pub fn send(&mut self, packet: &[u8], now: Instant) {
        let is_lost = self.is_cut || self.happens(self.noise.lost);
        let copies = 1 + u32::from(self.happens(self.noise.doubled));
        for _ in 0..copies {
            let start = self.free_at.max(now);
            self.free_at = start + BYTE_TIME * packet.len() as u32;
            if !is_lost {
                let mut bytes = packet.to_vec();
                if self.happens(self.noise.damaged) {
                    self.damage(&mut bytes);
                }
                // The receiver sees the bytes in two pieces, split anywhere.
                let seen = self.random.below(bytes.len() as u64 + 1) as usize;
                let tail = bytes.split_off(seen);
                self.in_transit.push_back((start + BYTE_TIME * bytes.len() as u32, bytes));
                self.in_transit.push_back((self.free_at, tail));
            }
        }
        self.counts.lost += u64::from(is_lost);
        self.counts.doubled += u64::from(copies > 1 && !is_lost);
    }

    /// Returns the next piece that has arrived by `now`.
    pub fn receive(&mut self, now: Instant) -> Option<Vec<u8>> {
        self.arrives_at().filter(|at| *at <= now)?;
        self.in_transit.pop_front().map(|(_, bytes)| bytes)
    }

    /// Returns the time at which the next bytes arrive.
    #[must_use]
    pub fn arrives_at(&self) -> Option<Instant> {
        self.in_transit.front().map(|(at, _)| *at)
    }

    /// Returns the counts of the disturbed packets so far.
    #[must_use]
    pub const fn counts(&self) -> LineCounts {
        self.counts
    }

    fn happens(&mut self, per_thousand: u64) -> bool {
        self.random.below(1000) < per_thousand
    }

    fn damage(&mut self, bytes: &mut Vec<u8>) {
        self.counts.damaged += 1;
        let place = self.random.below(bytes.len() as u64) as usize;
        match self.random.below(4) {
            0 => bytes[place] ^= 1 << self.random.below(8),
            1 => bytes.truncate(place),
            2 => {
                bytes.remove(place);
            }
            _ => {
                // Insert markers, which look like the start of a packet.
                let noise = [0x7e, 0x01, 0xff].repeat(1 + self.random.below(20) as usize);
                bytes.splice(place..place, noise);
            }
        }
    }
}

/// A small pseudorandom number generator: SplitMix64.
#[derive(Debug)]
struct Random(u64);

impl Random {
    /// Returns a number below `sides`, which must not be 0.
    const fn below(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }
}

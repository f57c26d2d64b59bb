//! A serial line that is simulated: one direction, slow, and as noisy as asked for.

use std::collections::VecDeque;
use std::time::Duration;

use mcp_sansio::Instant;

/// A byte with its start and stop bit, at 115,200 bits a second.
const BYTE_TIME: Duration = Duration::from_nanos(86_806);

/// How often something happens to a packet, in packets of a thousand.
#[derive(Clone, Copy, Debug, Default)]
pub struct Noise {
    /// It is lost.
    pub lost: u64,
    /// It comes twice.
    pub doubled: u64,
    /// Bits are flipped, bytes lost, or bytes come that nobody sent.
    pub damaged: u64,
}

/// What became of the packets of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineCounts {
    /// Packets that never came.
    pub lost: u64,
    /// Packets that came twice.
    pub doubled: u64,
    /// Packets that came, but not as they were sent.
    pub damaged: u64,
}

/// One direction of a line.
#[derive(Debug)]
pub struct Line {
    noise: Noise,
    random: Random,
    /// What is under way, and when it arrives.
    under_way: VecDeque<(Instant, Vec<u8>)>,
    free_at: Instant,
    is_cut: bool,
    counts: LineCounts,
}

impl Line {
    /// A line on which the same packets at the same times always meet the same noise: that of
    /// `seed`.
    #[must_use]
    pub const fn new(noise: Noise, seed: u64) -> Self {
        Self {
            noise,
            random: Random(seed),
            under_way: VecDeque::new(),
            free_at: Instant::ZERO,
            is_cut: false,
            counts: LineCounts { lost: 0, doubled: 0, damaged: 0 },
        }
    }

    /// Cuts it: nothing arrives any more.
    pub fn cut(&mut self) {
        self.is_cut = true;
        self.under_way.clear();
    }

    /// When it has sent what it has, and takes the next packet.
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
                // A reader sees it in pieces, wherever it happens to look.
                let seen = self.random.below(bytes.len() as u64 + 1) as usize;
                let tail = bytes.split_off(seen);
                self.under_way.push_back((start + BYTE_TIME * bytes.len() as u32, bytes));
                self.under_way.push_back((self.free_at, tail));
            }
        }
        self.counts.lost += u64::from(is_lost);
        self.counts.doubled += u64::from(copies > 1 && !is_lost);
    }

    /// What has arrived at `now`, piece by piece.
    pub fn receive(&mut self, now: Instant) -> Option<Vec<u8>> {
        self.arrives_at().filter(|at| *at <= now)?;
        self.under_way.pop_front().map(|(_, bytes)| bytes)
    }

    /// When the next bytes arrive.
    #[must_use]
    pub fn arrives_at(&self) -> Option<Instant> {
        self.under_way.front().map(|(at, _)| *at)
    }

    /// What became of the packets so far.
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
                // Markers among it, which look like the start of a packet.
                let noise = [0x7e, 0x01, 0xff].repeat(1 + self.random.below(20) as usize);
                bytes.splice(place..place, noise);
            }
        }
    }
}

/// A small generator of numbers that look random: SplitMix64.
#[derive(Debug)]
struct Random(u64);

impl Random {
    /// A number below `sides`, which is not 0.
    const fn below(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }
}

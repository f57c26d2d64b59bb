use std::collections::VecDeque;

use mcp_sansio::Instant;

use crate::coverage::Happening;
use crate::scene::Scene;

/// One direction of a byte stream: ordered, with a capacity, a latency and an end.
#[derive(Debug)]
pub(crate) struct Pipe {
    chunks: VecDeque<(Instant, Vec<u8>)>,
    /// Bytes in transit.
    bytes: usize,
    capacity: usize,
    /// No bytes are accepted before this time.
    pub(crate) writable_at: Instant,
    /// No bytes are delivered before this time.
    pub(crate) readable_at: Instant,
    last: Instant,
    end: End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Open,
    /// The writer has closed it; the reader has not read the end yet.
    Coming(Instant),
    Seen,
}

impl Pipe {
    pub(crate) const fn new(capacity: usize) -> Self {
        Self {
            chunks: VecDeque::new(),
            bytes: 0,
            capacity,
            writable_at: Instant::ZERO,
            readable_at: Instant::ZERO,
            last: Instant::ZERO,
            end: End::Open,
        }
    }

    /// Returns how many bytes it accepts now.
    pub(crate) fn room(&self) -> usize {
        if self.end == End::Open { self.capacity.saturating_sub(self.bytes) } else { usize::MAX }
    }

    /// Accepts bytes. After the end they are dropped.
    pub(crate) fn write(&mut self, bytes: &[u8], scene: &mut Scene) {
        if self.end != End::Open || bytes.is_empty() {
            return;
        }
        let due = (scene.now + scene.latency()).max(self.last);
        self.last = due;
        self.bytes += bytes.len();
        scene.tally.bytes += bytes.len() as u64;
        self.chunks.push_back((due, bytes.to_vec()));
    }

    /// Returns when the reader can read bytes or the end.
    pub(crate) fn due(&self) -> Option<Instant> {
        let due = match (self.chunks.front(), self.end) {
            (Some((due, _)), _) => *due,
            (None, End::Coming(due)) => due,
            (None, _) => return None,
        };
        Some(due.max(self.readable_at))
    }

    /// Reads the next piece, split anywhere. `None` is the end.
    pub(crate) fn read(&mut self, scene: &mut Scene) -> Option<Vec<u8>> {
        let Some((due, mut chunk)) = self.chunks.pop_front() else {
            assert!(matches!(self.end, End::Coming(_)), "there is something to read");
            self.end = End::Seen;
            return None;
        };
        if chunk.len() > 1 && scene.strikes(3) {
            scene.count(Happening::Split);
            let rest = chunk.split_off(1 + scene.random.index(chunk.len() - 1));
            self.chunks.push_front((due, rest));
        }
        self.bytes -= chunk.len();
        Some(chunk)
    }

    /// Closes it after the bytes in transit.
    pub(crate) fn close(&mut self, now: Instant) {
        if self.end == End::Open {
            self.end = End::Coming(self.last.max(now));
        }
    }

    /// Cuts it and drops some of the bytes in transit. Returns whether that was in the middle of a
    /// frame.
    pub(crate) fn cut(&mut self, scene: &mut Scene) -> bool {
        let kept = scene.random.index(self.chunks.len() + 1);
        self.chunks.truncate(kept);
        if let Some((_, last)) = self.chunks.back_mut()
            && scene.random.once_in(2)
        {
            last.truncate(scene.random.index(last.len() + 1));
        }
        self.chunks.retain(|(_, chunk)| !chunk.is_empty());
        self.bytes = self.chunks.iter().map(|(_, chunk)| chunk.len()).sum();
        self.close(scene.now);
        self.chunks.back().is_some_and(|(_, last)| last.last() != Some(&b'\n'))
    }

    pub(crate) fn is_open(&self) -> bool {
        self.end == End::Open
    }

    /// Returns whether there is nothing in transit, not even the end.
    pub(crate) fn is_idle(&self) -> bool {
        self.chunks.is_empty() && !matches!(self.end, End::Coming(_))
    }
}

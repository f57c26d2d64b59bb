use std::collections::BTreeMap;

use mcp_sansio::Instant;
use mcp_sansio::http::{EventPosition, NotStored, ReadId, StoreAction, StoredEvent};

use crate::coverage::Happening;
use crate::scene::Scene;

/// An external event store that is slow, fails, and loses events.
#[derive(Debug, Default)]
pub(crate) struct EventStore {
    /// Streams by session and number.
    streams: BTreeMap<(String, u32), StoredStream>,
    reads: Vec<PendingRead>,
}

#[derive(Debug, Default)]
struct StoredStream {
    events: BTreeMap<u64, Vec<u8>>,
    /// A lower bound of the next sequence number.
    next: u64,
}

#[derive(Debug)]
struct PendingRead {
    due: Instant,
    read: ReadId,
    from: EventPosition,
    events_max: usize,
    bytes_max: usize,
    /// Whether the server that requested the read has been restarted.
    stale: bool,
}

/// The outcome of a read.
pub(crate) type Completion = (ReadId, Result<Vec<StoredEvent>, NotStored>);

impl EventStore {
    pub(crate) fn take(&mut self, action: StoreAction, scene: &mut Scene) {
        match action {
            StoreAction::Append { event: StoredEvent { position, message, .. } } => {
                let key = (position.session.as_str().to_owned(), position.stream);
                let kept = self.streams.entry(key).or_default();
                assert!(position.sequence >= kept.next, "each event is stored once, and in order");
                kept.next = position.sequence + 1;
                if scene.strikes(200) {
                    scene.count(Happening::StoreHole);
                    return;
                }
                kept.events.insert(position.sequence, message);
            }
            StoreAction::Read { read, from, events_max, bytes_max } => {
                scene.count(Happening::StoreRead);
                let late = if scene.strikes(8) { scene.stall() } else { scene.latency() };
                let due = scene.now + late;
                let read = PendingRead { due, read, from, events_max, bytes_max, stale: false };
                self.reads.push(read);
            }
            StoreAction::Forget { session, stream, .. } => {
                let of = |(name, number): &(String, u32)| {
                    name == session.as_str() && stream.is_none_or(|stream| stream == *number)
                };
                self.streams.retain(|key, _| !of(key));
            }
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn due(&self) -> Option<Instant> {
        self.reads.iter().map(|read| read.due).min()
    }

    /// Completes a read that is due.
    pub(crate) fn complete(&mut self, scene: &mut Scene) -> Option<Completion> {
        let at = self.reads.iter().position(|read| read.due <= scene.now)?;
        let PendingRead { read, from, events_max, bytes_max, stale, .. } =
            self.reads.swap_remove(at);
        if stale {
            scene.count(Happening::StoreLate);
        }
        if scene.strikes(12) {
            scene.count(Happening::StoreFailed);
            return Some((read, Err(NotStored)));
        }
        let found = self.find(&from, events_max, bytes_max);
        if scene.strikes(12) {
            // Complete it a second time, after the server has stopped waiting for it.
            let due = scene.now + scene.latency();
            self.reads.push(PendingRead { due, read, from, events_max, bytes_max, stale: true });
        }
        Some((read, Ok(found)))
    }

    fn find(&self, from: &EventPosition, events_max: usize, bytes_max: usize) -> Vec<StoredEvent> {
        let key = (from.session.as_str().to_owned(), from.stream);
        let Some(kept) = self.streams.get(&key) else { return Vec::new() };
        let mut bytes = 0;
        let found = kept.events.range(from.sequence..).take(events_max);
        found
            .take_while(|(sequence, message)| {
                bytes += message.len();
                **sequence == from.sequence || bytes <= bytes_max
            })
            .map(|(sequence, message)| {
                let place = EventPosition { sequence: *sequence, ..from.clone() };
                StoredEvent::new(place, message.clone())
            })
            .collect()
    }

    /// Records that the server has been restarted, and clears the store unless it is kept.
    pub(crate) fn outlive(&mut self, kept: bool) {
        self.reads.iter_mut().for_each(|read| read.stale = true);
        if !kept {
            self.streams.clear();
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.reads.is_empty()
    }
}

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::hash::BuildHasher;

use mcp_sansio_collections::KeyedHash;
use mcp_sansio_collections::{Index, Key, Slab};

use crate::catalog::DescribedTool;
use crate::jsonrpc::RequestId;
use crate::protocol::{Capabilities, LoggingLevel, Method, SubscriptionFilter};
use crate::{Instant, Revision};

use super::outbox::Channel;
use super::queue::Tag;

/// The pending requests of the peer.
#[derive(Debug)]
pub(super) struct Requests {
    entries: Slab<InFlight>,
    ids: Index,
    hasher: KeyedHash,
    listening: Listening,
}

/// Resources used by all open listen streams together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Listening {
    pub(super) streams: usize,
    pub(super) resources: usize,
    pub(super) tasks: usize,
}

impl Listening {
    /// Counts the resources of one listen stream.
    pub(super) fn from_filter(filter: &SubscriptionFilter) -> Self {
        let count = |names: &Option<Vec<String>>| names.as_ref().map_or(0, Vec::len);
        let (resources, tasks) = (count(&filter.resource_subscriptions), count(&filter.task_ids));
        Self { streams: 1, resources, tasks }
    }
}

/// A pending request of the peer.
#[derive(Debug)]
pub(super) struct InFlight {
    pub(super) id: RequestId,
    /// `None` for a method that the protocol does not define.
    pub(super) method: Option<Method>,
    pub(super) revision: Revision,
    pub(super) capabilities: Capabilities,
    // MCP 2026-07-28 basic/patterns/progress#implementation-notes [PROG-007]
    pub(super) progress: Option<ProgressLimiter>,
    /// Minimum level of log messages that the request asks for.
    // MCP 2026-07-28 server/utilities/logging#per-request-log-level [LOG-007]
    pub(super) log_level: Option<LoggingLevel>,
    pub(super) reply: ReplyTo,
    pub(super) owner: RequestOwner,
    pub(super) rounds: u32,
    /// The called tool, if its results have a schema.
    pub(super) tool: Option<DescribedTool>,
    /// Whether only some callers can see the item of the request.
    pub(super) restricted: bool,
}

/// Where to send the response to a request.
// MCP 2026-07-28 basic/index#statelessness [LIFE-010]: unrelated requests share a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReplyTo {
    /// The channel that received the request.
    pub(super) channel: Channel,
    /// The batch that collects the response.
    pub(super) batch: Option<Key>,
}

impl ReplyTo {
    /// Replies on the channel of a request that is not part of a batch.
    pub(super) const fn on(channel: Channel) -> Self {
        Self { channel, batch: None }
    }
}

/// The component that processes a request.
#[derive(Debug)]
pub(super) enum RequestOwner {
    /// The application.
    Application,
    /// The machine, which requests input from the host for the application.
    Input { round: Key },
    /// No component: the request is an open listen stream.
    Listening(Box<SubscriptionFilter>),
}

/// The progress token of a request, with a filter for its reports.
#[derive(Clone, Debug)]
pub struct ProgressLimiter {
    /// The token that identifies the notifications.
    pub token: RequestId,
    /// The last reported progress; negative infinity before the first report.
    last: f64,
    window: Instant,
    sent: u32,
}

impl ProgressLimiter {
    /// Creates a limiter for a request with this progress token.
    #[must_use]
    pub const fn new(token: RequestId) -> Self {
        Self { token, last: f64::NEG_INFINITY, window: Instant::ZERO, sent: 0 }
    }

    /// Returns whether `progress` may be sent now, with at most `per_second` notifications per
    /// second. If so, it counts as sent.
    // MCP 2025-11-25 basic/utilities/progress#progress-flow [PROG-003] [PROG-008]: strictly
    // increasing, and rate limited.
    pub fn admit(&mut self, progress: f64, per_second: u32, now: Instant) -> bool {
        if !progress.is_finite() || progress <= self.last {
            return false;
        }
        if now.saturating_since(self.window).as_secs() >= 1 {
            self.window = now;
            self.sent = 0;
        }
        if self.sent >= per_second {
            return false;
        }
        self.sent += 1;
        self.last = progress;
        true
    }
}

impl Requests {
    /// Returns the keyed hasher of this connection.
    pub(super) fn hasher(&self) -> KeyedHash {
        self.hasher.clone()
    }

    /// Returns the keyed hasher of this connection, for a tag.
    pub(super) const fn hasher_ref(&self) -> &KeyedHash {
        &self.hasher
    }

    /// Returns the hash of a tag.
    pub(super) fn hash(&self, tag: Tag) -> u64 {
        self.hasher.hash_one(tag)
    }

    /// Returns the tag of messages that are sent for a request with this id.
    pub(super) fn tag(&self, id: &RequestId) -> Tag {
        Tag::from_id(id, &self.hasher)
    }

    pub(super) fn new(seed: u64) -> Self {
        Self {
            entries: Slab::new(),
            ids: Index::default(),
            hasher: KeyedHash::with_seed(seed),
            listening: Listening::default(),
        }
    }

    /// Returns the resources used by all open listen streams together.
    pub(super) const fn listening(&self) -> Listening {
        self.listening
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn contains(&self, id: &RequestId) -> bool {
        self.by_id(id).is_some()
    }

    pub(super) fn by_id(&self, id: &RequestId) -> Option<Key> {
        let hash = self.hasher.hash_one(id);
        let has_id = |key| self.entries.get(Key::from_number(key)).is_some_and(|it| it.id == *id);
        self.ids.find_hashed(hash, &has_id).map(Key::from_number)
    }

    pub(super) fn insert(&mut self, request: InFlight) -> Key {
        let hash = self.hasher.hash_one(&request.id);
        if let RequestOwner::Listening(filter) = &request.owner {
            let more = Listening::from_filter(filter);
            self.listening.streams += more.streams;
            self.listening.resources += more.resources;
            self.listening.tasks += more.tasks;
        }
        let key = self.entries.insert(request);
        self.ids.insert_hashed(hash, key.to_number());
        key
    }

    pub(super) fn get(&self, key: Key) -> Option<&InFlight> {
        self.entries.get(key)
    }

    pub(super) fn get_mut(&mut self, key: Key) -> Option<&mut InFlight> {
        self.entries.get_mut(key)
    }

    pub(super) fn remove(&mut self, key: Key) -> Option<InFlight> {
        let request = self.entries.remove(key)?;
        let hash = self.hasher.hash_one(&request.id);
        self.ids.remove_hashed(hash, &|known| known == key.to_number());
        if let RequestOwner::Listening(filter) = &request.owner {
            let less = Listening::from_filter(filter);
            self.listening.streams -= less.streams;
            self.listening.resources -= less.resources;
            self.listening.tasks -= less.tasks;
        }
        Some(request)
    }

    /// Drops all requests without a response.
    pub(super) fn clear(&mut self) {
        let mut slot = 0;
        while let Some(key) = self.entries.find_from(slot, |_| true) {
            slot = key.slot + 1;
            self.remove(key);
        }
    }

    /// Returns the first request at or after `slot` that `wanted` accepts.
    pub(super) fn find_from(&self, slot: u32, wanted: impl Fn(&InFlight) -> bool) -> Option<Key> {
        self.entries.find_from(slot, wanted)
    }

    /// Checks that the index and the counters belong to the requests of the table.
    pub(super) fn assert_consistent(&self) {
        assert_eq!(self.ids.len(), self.entries.len(), "ids of requests that are gone");
        let mut listening = Listening::default();
        for (key, entry) in self.entries.iter() {
            assert_eq!(self.by_id(&entry.id), Some(key), "a request that is not found by its id");
            if let RequestOwner::Listening(filter) = &entry.owner {
                let more = Listening::from_filter(filter);
                listening.streams += more.streams;
                listening.resources += more.resources;
                listening.tasks += more.tasks;
            }
        }
        assert_eq!(self.listening, listening, "resources of listen streams that are gone");
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Key, &InFlight)> {
        self.entries.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns `wanted` ids whose hashes under `seed` end in the same bits.
    fn colliding(seed: u64, bits: u32, wanted: usize) -> Vec<RequestId> {
        let hasher = KeyedHash::with_seed(seed);
        let ends_alike = |id: &RequestId| hasher.hash_one(id).trailing_zeros() >= bits;
        (0..).map(RequestId::Number).filter(ends_alike).take(wanted).collect()
    }

    /// Returns the largest number of these ids in one bucket of a table with `places` buckets.
    fn crowd(ids: &[RequestId], seed: u64, places: u64) -> usize {
        let hasher = KeyedHash::with_seed(seed);
        let mut counts = alloc::collections::BTreeMap::new();
        for id in ids {
            *counts.entry(hasher.hash_one(id) % places).or_insert(0_usize) += 1;
        }
        counts.into_values().max().unwrap_or(0)
    }

    #[test]
    fn ids_that_collide_for_one_seed_are_spread_by_another() {
        let (known, unknown) = (7, 0x5_eed0_f57e_e100);
        let ids = colliding(known, 8, 128);
        assert_eq!(crowd(&ids, known, 256), ids.len());
        assert!(crowd(&ids, unknown, 256) <= 8, "{}", crowd(&ids, unknown, 256));
    }

    #[test]
    fn colliding_ids_are_distinguished() {
        let mut requests = Requests::new(7);
        let ids = colliding(7, 8, 128);
        let keys: Vec<Key> = ids.iter().map(|id| requests.insert(listening(id.clone()))).collect();
        for (id, key) in ids.iter().zip(&keys) {
            assert_eq!(requests.by_id(id), Some(*key));
        }
        for (id, key) in ids.iter().zip(&keys) {
            assert!(requests.remove(*key).is_some_and(|request| request.id == *id));
            assert!(!requests.contains(id));
        }
        assert_eq!((requests.len(), requests.listening().streams), (0, 0));
    }

    fn listening(id: RequestId) -> InFlight {
        InFlight {
            id,
            method: None,
            revision: Revision::LATEST,
            capabilities: Capabilities::NONE,
            progress: None,
            log_level: None,
            reply: ReplyTo::on(Channel::UNSOLICITED),
            owner: RequestOwner::Listening(Box::default()),
            rounds: 0,
            tool: None,
            restricted: false,
        }
    }

    #[test]
    fn progress_that_does_not_increase_is_not_sent() {
        // Rule: [PROG-003].
        let mut progress = ProgressLimiter::new(RequestId::Number(1));
        let now = Instant::ZERO;
        assert!(progress.admit(-1.0, 10, now));
        assert!(!progress.admit(-1.0, 10, now));
        assert!(!progress.admit(f64::NAN, 10, now));
        assert!(progress.admit(0.5, 10, now));
    }

    #[test]
    fn progress_beyond_the_rate_is_dropped_until_the_next_second() {
        // Rule: [PROG-008].
        let mut progress = ProgressLimiter::new(RequestId::Number(1));
        assert!(progress.admit(1.0, 2, Instant::ZERO));
        assert!(progress.admit(2.0, 2, Instant::ZERO));
        assert!(!progress.admit(3.0, 2, Instant::from_millis(999)));
        assert!(progress.admit(4.0, 2, Instant::from_millis(1000)));
    }
}

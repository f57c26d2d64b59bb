use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::jsonrpc::RequestId;
use crate::protocol::{Capabilities, LoggingLevel, Method, SubscriptionFilter};
use crate::{Instant, Revision};

use super::outbox::Channel;
use super::slab::{Key, Slab};

/// The requests of the other side that are not answered yet.
#[derive(Debug)]
pub(super) struct Requests {
    entries: Slab<InFlight>,
    ids: HashMap<RequestId, Key, FixedState>,
}

/// One of them.
#[derive(Debug)]
pub(super) struct InFlight {
    pub(super) id: RequestId,
    /// `None` for a method outside the table.
    pub(super) method: Option<Method>,
    pub(super) revision: Revision,
    pub(super) capabilities: Capabilities,
    pub(super) progress: Option<ProgressOut>,
    /// The least level of log messages that the request asks for.
    // MCP 2026-07-28 server/utilities/logging#per-request-log-level [LOG-007]
    pub(super) log_level: Option<LoggingLevel>,
    pub(super) reply: ReplyTo,
    pub(super) work: Work,
    pub(super) rounds: u32,
}

/// Where the answer to a request goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReplyTo {
    /// The way on which the request came.
    pub(super) channel: Channel,
    /// The batch that collects the answer.
    pub(super) batch: Option<Key>,
}

impl ReplyTo {
    /// Onto the way of a request that is not part of a batch.
    pub(super) const fn on(channel: Channel) -> Self {
        Self { channel, batch: None }
    }
}

/// Who works on a request.
#[derive(Debug)]
pub(super) enum Work {
    /// The application.
    Application,
    /// The machine: it asks the host on the application's behalf.
    Input { round: Key },
    /// Nobody: the request is an open listen stream.
    Listening(SubscriptionFilter),
}

/// The progress that a request asked for.
#[derive(Debug)]
pub(super) struct ProgressOut {
    pub(super) token: RequestId,
    last: Option<f64>,
    window: Instant,
    sent: u32,
}

impl ProgressOut {
    pub(super) const fn new(token: RequestId) -> Self {
        Self { token, last: None, window: Instant::ZERO, sent: 0 }
    }

    /// Whether `progress` may be sent now; if so it counts as sent.
    // MCP 2025-11-25 basic/utilities/progress#progress-flow [PROG-003] [PROG-008]: strictly
    // increasing, and rate limited.
    pub(super) fn admit(&mut self, progress: f64, per_second: u32, now: Instant) -> bool {
        if !progress.is_finite() || self.last.is_some_and(|last| progress <= last) {
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
        self.last = Some(progress);
        true
    }
}

impl Requests {
    pub(super) fn new(seed: u64) -> Self {
        Self { entries: Slab::new(), ids: HashMap::with_hasher(FixedState::with_seed(seed)) }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn contains(&self, id: &RequestId) -> bool {
        self.ids.contains_key(id)
    }

    pub(super) fn by_id(&self, id: &RequestId) -> Option<Key> {
        self.ids.get(id).copied()
    }

    pub(super) fn insert(&mut self, request: InFlight) -> Key {
        let id = request.id.clone();
        let key = self.entries.insert(request);
        self.ids.insert(id, key);
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
        self.ids.remove(&request.id);
        Some(request)
    }

    /// Forgets all requests: they get no answer.
    pub(super) fn clear(&mut self) {
        while let Some(key) = self.entries.find_from(0, |_| true) {
            self.remove(key);
        }
    }

    /// The first request at or after `slot` that `wanted` accepts.
    pub(super) fn find_from(&self, slot: u32, wanted: impl Fn(&InFlight) -> bool) -> Option<Key> {
        self.entries.find_from(slot, wanted)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Key, &InFlight)> {
        self.entries.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_that_does_not_increase_is_not_sent() {
        // Rule: [PROG-003].
        let mut progress = ProgressOut::new(RequestId::Number(1));
        let now = Instant::ZERO;
        assert!(progress.admit(-1.0, 10, now));
        assert!(!progress.admit(-1.0, 10, now));
        assert!(!progress.admit(f64::NAN, 10, now));
        assert!(progress.admit(0.5, 10, now));
    }

    #[test]
    fn progress_beyond_the_rate_is_dropped_until_the_next_second() {
        // Rule: [PROG-008].
        let mut progress = ProgressOut::new(RequestId::Number(1));
        assert!(progress.admit(1.0, 2, Instant::ZERO));
        assert!(progress.admit(2.0, 2, Instant::ZERO));
        assert!(!progress.admit(3.0, 2, Instant::from_millis(999)));
        assert!(progress.admit(4.0, 2, Instant::from_millis(1000)));
    }
}

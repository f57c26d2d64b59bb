//! The owners of tasks, and the limits of each.

use alloc::collections::BTreeMap;
use core::ops::Bound;

use mcp_sansio::peer::Request;
use mcp_sansio::{Era, Instant, Principal, SessionKey};
use mcp_sansio_collections::Key;

/// The owner of a task.
// MCP 2025-11-25 basic/utilities/tasks#task-isolation-and-access-control [TASK-021]: the principal,
// if known; otherwise the session, whose id only its client knows.
// MCP 2026-07-28 ext-tasks:tasks#security-considerations [TASK-041]
// MCP 2025-11-25 ext-tasks:SEP-2663#backward-compatibility [TASK-044]: tasks of one kind do not
// exist for requests about the other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Requestor {
    legacy: bool,
    pub(super) principal: Option<Principal>,
    session: Option<SessionKey>,
}

impl Requestor {
    /// Returns the sender of a request.
    pub(super) fn from_request(request: &Request<'_>) -> Self {
        let principal = request.caller.principal();
        let legacy = request.revision.era() == Era::Legacy;
        let session = request.caller.session().filter(|_| legacy && principal.is_none());
        Self { legacy, principal: principal.cloned(), session }
    }

    /// Whether the principal or the session is known.
    const fn is_known(&self) -> bool {
        self.principal.is_some() || self.session.is_some()
    }
}

/// All owners of tasks.
#[derive(Debug, Default)]
pub(super) struct Requestors {
    known: BTreeMap<Requestor, Account>,
    /// The highest number of a task of any owner that is forgotten. Numbers of an owner rise, so that
    /// a cursor from before its last task was removed does not skip later tasks. A new owner learns this
    /// number from its cursors, and nothing else of others.
    forgotten: u64,
    /// The rate of requests from clients without tasks.
    others: RateLimit,
}

/// The tasks of one owner.
#[derive(Debug, Default)]
struct Account {
    /// In order of creation.
    tasks: BTreeMap<u64, Key>,
    last: u64,
    rate: RateLimit,
}

impl Requestors {
    /// Whether a requestor can have another task, where `most` is the limit.
    pub(super) fn has_capacity(&self, requestor: &Requestor, most: usize) -> bool {
        let count = self.known.get(requestor).map_or(0, |account| account.tasks.len());
        !requestor.is_known() || count < most
    }

    /// Adds a task and returns its number.
    pub(super) fn add(&mut self, requestor: Requestor, key: Key) -> u64 {
        let first = || Account { last: self.forgotten, ..Account::default() };
        let account = self.known.entry(requestor).or_insert_with(first);
        account.last += 1;
        account.tasks.insert(account.last, key);
        account.last
    }

    pub(super) fn remove(&mut self, requestor: &Requestor, number: u64) {
        let Some(account) = self.known.get_mut(requestor) else { return };
        account.tasks.remove(&number);
        if account.tasks.is_empty() {
            self.forgotten = self.forgotten.max(account.last);
            self.known.remove(requestor);
        }
    }

    /// Returns the tasks after a number, in order.
    pub(super) fn after(
        &self,
        requestor: &Requestor,
        number: u64,
    ) -> impl Iterator<Item = (u64, Key)> {
        let tasks = self.known.get(requestor).map(|account| &account.tasks);
        let after = (Bound::Excluded(number), Bound::Unbounded);
        tasks.into_iter().flat_map(move |tasks| tasks.range(after)).map(|(at, key)| (*at, *key))
    }

    /// Returns the highest number of a task so far.
    pub(super) fn last(&self, requestor: &Requestor) -> u64 {
        self.known.get(requestor).map_or(0, |account| account.last)
    }

    /// Returns the number of tasks of all owners.
    pub(super) fn task_count(&self) -> usize {
        self.known.values().map(|account| account.tasks.len()).sum()
    }

    /// Whether another request about tasks may be answered, where each task allows `per_task`
    /// requests per second.
    // MCP 2025-11-25 basic/utilities/tasks#task-isolation-and-access-control [TASK-023]
    pub(super) fn admit(&mut self, requestor: &Requestor, per_task: usize, now: Instant) -> bool {
        match self.known.get_mut(requestor) {
            Some(account) => account.rate.admit(account.tasks.len().saturating_mul(per_task), now),
            None => self.others.admit(0, now),
        }
    }
}

/// The requests of the last second about tasks of other nodes, by their senders.
#[derive(Debug, Default)]
pub(super) struct Visitors {
    since: Instant,
    counts: BTreeMap<Requestor, usize>,
}

/// The most senders that are counted in a second. Each of their requests takes an exchange as well.
const VISITORS_MAX: usize = 16_384;

impl Visitors {
    /// Counts a request, and returns whether `allowed` and the allowance of every client suffice.
    // MCP 2025-11-25 basic/utilities/tasks#task-isolation-and-access-control [TASK-023]
    pub(super) fn admit(&mut self, requestor: &Requestor, allowed: usize, now: Instant) -> bool {
        if now.saturating_since(self.since).as_secs() >= 1 {
            *self = Self { since: now, counts: BTreeMap::new() };
        }
        if self.counts.len() >= VISITORS_MAX && !self.counts.contains_key(requestor) {
            return false;
        }
        let count = self.counts.entry(requestor.clone()).or_default();
        *count = count.saturating_add(1);
        *count <= allowed.saturating_add(REQUESTS_PER_SECOND)
    }
}

// ------------------------------------------------------------------ rates of requests

/// The most requests about tasks per second from a client without tasks, and the allowance of every
/// client in addition to the polls of its tasks: enough to list and to cancel many tasks at once.
pub(super) const REQUESTS_PER_SECOND: usize = 64;

/// Counts the requests of the last second.
#[derive(Debug, Default)]
pub(super) struct RateLimit {
    since: Instant,
    count: usize,
}

impl RateLimit {
    /// Counts a request, and returns whether `allowed` and the allowance of every client suffice.
    pub(super) fn admit(&mut self, allowed: usize, now: Instant) -> bool {
        if now.saturating_since(self.since).as_secs() >= 1 {
            *self = Self { since: now, count: 0 };
        }
        self.count = self.count.saturating_add(1);
        self.count <= allowed.saturating_add(REQUESTS_PER_SECOND)
    }
}

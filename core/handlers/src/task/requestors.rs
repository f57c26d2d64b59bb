//! Whose tasks there are, and what each may cost.

use alloc::collections::BTreeMap;
use core::ops::Bound;

use mcp_sansio::peer::{ConnectionHandle, Request};
use mcp_sansio::{Era, Instant, Principal};
use mcp_sansio_collections::Key;

/// Whose a task is.
// MCP 2025-11-25 basic/utilities/tasks#task-isolation-and-access-control [TASK-021]: the principal,
// where there is one; else the session, whose name its client alone knows.
// MCP 2026-07-28 ext-tasks:tasks#security-considerations [TASK-041]
// MCP 2025-11-25 ext-tasks:SEP-2663#backward-compatibility [TASK-044]: tasks of one kind do not exist
// for requests about the other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Requestor {
    legacy: bool,
    pub(super) principal: Option<Principal>,
    session: Option<ConnectionHandle>,
}

impl Requestor {
    /// Whoever sent a request.
    pub(super) fn from_request(request: &Request<'_>, principal: Option<&Principal>) -> Self {
        let legacy = request.revision.era() == Era::Legacy;
        let session = (legacy && principal.is_none()).then_some(request.handle.connection());
        Self { legacy, principal: principal.cloned(), session }
    }

    /// Whether it is somebody, not anybody.
    const fn is_known(&self) -> bool {
        self.principal.is_some() || self.session.is_some()
    }
}

/// All who have tasks.
#[derive(Debug, Default)]
pub(super) struct Requestors {
    known: BTreeMap<Requestor, Account>,
    /// What those ask who have none.
    others: RateLimit,
}

/// The tasks of one of them.
#[derive(Debug, Default)]
struct Account {
    /// In the order in which they were made.
    tasks: BTreeMap<u64, Key>,
    last: u64,
    rate: RateLimit,
}

/// How many requests came within a second.
#[derive(Debug, Default)]
struct RateLimit {
    since: Instant,
    count: usize,
}

/// Requests about tasks within a second, of those that have none, and beside those that the tasks
/// call for: enough to list and to cancel many at once.
const REQUESTS_PER_SECOND: usize = 64;

impl Requestors {
    /// Whether somebody can have one more task, of at most `most`.
    pub(super) fn has_capacity(&self, requestor: &Requestor, most: usize) -> bool {
        let count = self.known.get(requestor).map_or(0, |account| account.tasks.len());
        !requestor.is_known() || count < most
    }

    /// Adds a task; the how many-eth it is.
    pub(super) fn add(&mut self, requestor: Requestor, key: Key) -> u64 {
        let account = self.known.entry(requestor).or_default();
        account.last += 1;
        account.tasks.insert(account.last, key);
        account.last
    }

    pub(super) fn remove(&mut self, requestor: &Requestor, number: u64) {
        let Some(account) = self.known.get_mut(requestor) else { return };
        account.tasks.remove(&number);
        if account.tasks.is_empty() {
            self.known.remove(requestor);
        }
    }

    /// The tasks after the one with a number, in order.
    pub(super) fn after(
        &self,
        requestor: &Requestor,
        number: u64,
    ) -> impl Iterator<Item = (u64, Key)> {
        let tasks = self.known.get(requestor).map(|account| &account.tasks);
        let after = (Bound::Excluded(number), Bound::Unbounded);
        tasks.into_iter().flat_map(move |tasks| tasks.range(after)).map(|(at, key)| (*at, *key))
    }

    /// The highest number that a task was given.
    pub(super) fn last(&self, requestor: &Requestor) -> u64 {
        self.known.get(requestor).map_or(0, |account| account.last)
    }

    /// Whether one more request about tasks is to be answered, where each task may be asked for
    /// `per_task` times a second.
    // MCP 2025-11-25 basic/utilities/tasks#task-isolation-and-access-control [TASK-023]
    pub(super) fn admit(&mut self, requestor: &Requestor, per_task: usize, now: Instant) -> bool {
        let (rate, tasks) = match self.known.get_mut(requestor) {
            Some(account) => (&mut account.rate, account.tasks.len()),
            None => (&mut self.others, 0),
        };
        if now.saturating_since(rate.since).as_secs() >= 1 {
            *rate = RateLimit { since: now, count: 0 };
        }
        rate.count = rate.count.saturating_add(1);
        rate.count <= tasks.saturating_mul(per_task).saturating_add(REQUESTS_PER_SECOND)
    }
}

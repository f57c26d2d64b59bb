//! The request ids of a side, and how a response to each of them is handled.

use std::collections::BTreeMap;

/// How long a late response is expected, in seconds.
const EXPECTED: u64 = 60;

/// The requests of one side, each with its purpose and its deadline.
#[derive(Debug)]
pub(crate) struct Ids<P> {
    drawn: i64,
    open: BTreeMap<i64, (P, u64)>,
    /// Cancelled requests, with the time until which a response is expected.
    late: BTreeMap<i64, u64>,
}

pub(crate) enum Answered<P> {
    Open(P),
    Late,
    Unknown,
}

impl<P> Ids<P> {
    pub(crate) fn new() -> Self {
        Self { drawn: 0, open: BTreeMap::new(), late: BTreeMap::new() }
    }

    /// Returns a new id, which was never used before.
    // [RPC-004] [RPC-005] [TIME-001].
    pub(crate) fn draw(&mut self, purpose: P, deadline: u64) -> i64 {
        self.drawn += 1;
        self.open.insert(self.drawn, (purpose, deadline));
        self.drawn
    }

    /// Returns the last id.
    pub(crate) fn newest(&self) -> i64 {
        self.drawn
    }

    /// Handles a response: each id accepts one.
    // [RPC-006] [CANC-005] [CANC-006].
    pub(crate) fn answered(&mut self, id: i64, now: u64) -> Answered<P> {
        match (self.open.remove(&id), self.late.remove(&id)) {
            (Some((purpose, _)), _) => Answered::Open(purpose),
            (None, Some(until)) if until > now => Answered::Late,
            (None, _) => Answered::Unknown,
        }
    }

    /// Cancels a pending request, whose response may still be received.
    pub(crate) fn give_up(&mut self, id: i64, now: u64) -> Option<P> {
        let (purpose, _) = self.open.remove(&id)?;
        self.late.insert(id, now + EXPECTED);
        Some(purpose)
    }

    /// Returns the pending request with the lowest id whose deadline has expired.
    pub(crate) fn expired(&self, now: u64) -> Option<i64> {
        self.open.iter().find(|(_, (_, deadline))| *deadline <= now).map(|(id, _)| *id)
    }

    /// Returns the pending requests for which `wanted` holds.
    pub(crate) fn find(&self, wanted: impl Fn(&P) -> bool) -> Vec<i64> {
        self.open.iter().filter(|(_, (purpose, _))| wanted(purpose)).map(|(id, _)| *id).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.open.clear();
    }
}

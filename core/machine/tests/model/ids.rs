//! The ids that a side draws for its requests, and what an answer to each of them means.

use std::collections::BTreeMap;

/// How long a late answer is expected, in seconds.
const EXPECTED: u64 = 60;

/// The requests of one side, each with what it is for and its deadline.
#[derive(Debug)]
pub(crate) struct Ids<P> {
    drawn: i64,
    open: BTreeMap<i64, (P, u64)>,
    /// Given up, until when an answer may still come.
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

    /// A fresh id, never used before.
    // [RPC-004] [RPC-005] [TIME-001].
    pub(crate) fn draw(&mut self, purpose: P, deadline: u64) -> i64 {
        self.drawn += 1;
        self.open.insert(self.drawn, (purpose, deadline));
        self.drawn
    }

    /// The id that was drawn last.
    pub(crate) fn newest(&self) -> i64 {
        self.drawn
    }

    /// An answer comes: each id takes one.
    // [RPC-006] [CANC-005] [CANC-006].
    pub(crate) fn answered(&mut self, id: i64, now: u64) -> Answered<P> {
        match (self.open.remove(&id), self.late.remove(&id)) {
            (Some((purpose, _)), _) => Answered::Open(purpose),
            (None, Some(until)) if until > now => Answered::Late,
            (None, _) => Answered::Unknown,
        }
    }

    /// A request is given up, if it is open: its answer may come late.
    pub(crate) fn give_up(&mut self, id: i64, now: u64) -> Option<P> {
        let (purpose, _) = self.open.remove(&id)?;
        self.late.insert(id, now + EXPECTED);
        Some(purpose)
    }

    /// The open request of the lowest id whose deadline has come.
    pub(crate) fn expired(&self, now: u64) -> Option<i64> {
        self.open.iter().find(|(_, (_, deadline))| *deadline <= now).map(|(id, _)| *id)
    }

    /// The open requests for which `wanted` holds.
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

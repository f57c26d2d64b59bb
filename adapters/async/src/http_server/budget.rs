use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A limit on the bytes that connections hold: heads of pending requests, and responses that
/// clients have not read. Clones share it.
#[derive(Clone, Debug)]
pub struct Budget(Arc<Counter>);

#[derive(Debug)]
struct Counter {
    used: AtomicUsize,
    max: usize,
    /// The budget shared by all connections, if this is the budget of one.
    parent: Option<Budget>,
}

/// Bytes that are charged until this is dropped.
#[derive(Debug)]
pub(super) struct Charge {
    budget: Budget,
    bytes: usize,
}

impl Budget {
    /// Creates a budget that is exhausted once more than `max` bytes are held. The last charge may
    /// exceed it, so that a response of any length can be sent: the effective limit is `max` plus
    /// the longest response.
    #[must_use]
    pub fn new(max: usize) -> Self {
        Self(Arc::new(Counter { used: AtomicUsize::new(0), max, parent: None }))
    }

    /// Returns a part of this budget for one connection. Bytes charged to the part are charged to
    /// both.
    #[must_use]
    pub fn part(&self, max: usize) -> Self {
        let parent = Some(self.clone());
        Self(Arc::new(Counter { used: AtomicUsize::new(0), max, parent }))
    }

    /// Charges `bytes`; `None` if the budget is exhausted.
    pub(super) fn charge(&self, bytes: usize) -> Option<Charge> {
        let charge = self.charge_always(bytes);
        let is_within = |budget: &Self| {
            let used = budget.0.used.load(Ordering::Relaxed);
            used.saturating_sub(bytes) <= budget.0.max
        };
        (is_within(self) && self.0.parent.as_ref().is_none_or(is_within)).then_some(charge)
    }

    /// Charges `bytes`, even if the budget is exhausted.
    pub(super) fn charge_always(&self, bytes: usize) -> Charge {
        self.add(bytes);
        Charge { budget: self.clone(), bytes }
    }

    fn add(&self, bytes: usize) {
        self.0.used.fetch_add(bytes, Ordering::Relaxed);
        if let Some(parent) = &self.0.parent {
            parent.add(bytes);
        }
    }

    fn subtract(&self, bytes: usize) {
        self.0.used.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(parent) = &self.0.parent {
            parent.subtract(bytes);
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget.subtract(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_refuses_charges_above_its_maximum() {
        let budget = Budget::new(10);
        let first = budget.charge(8).unwrap();
        let second = budget.charge(100).unwrap();
        assert!(budget.charge(1).is_none());
        drop(second);
        assert!(budget.charge(1).is_some());
        drop(first);
        assert_eq!(budget.0.used.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn connections_have_shares_of_one_common_budget() {
        let whole = Budget::new(25);
        let (one, other) = (whole.part(10), whole.part(10));
        let held = one.charge(11).unwrap();
        assert!(one.charge(1).is_none());
        let more = [other.charge(10).unwrap(), other.charge(10).unwrap()];
        assert!(whole.part(10).charge(1).is_none());
        drop(held);
        assert!(one.charge(1).is_some());
        drop(more);
        assert_eq!(whole.0.used.load(Ordering::Relaxed), 0);
    }
}

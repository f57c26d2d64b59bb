//! The actions that wait for the store: a queue for each caller, and turns between them.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;

use super::ServerLimits;
use super::store::StoreAction;

/// The sender of an action, for its share of the queue. Actions of one session have one account, so
/// they stay in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Account {
    /// The server itself.
    Node,
    /// All callers of whom neither a principal nor an address is known.
    Unknown,
    /// A caller, by a hash of its principal or address.
    Caller(u64),
}

/// Actions in the order in which the store gets them: accounts are served round-robin, so a caller
/// with many actions does not delay those of the others.
#[derive(Debug)]
pub(super) struct StoreQueue {
    /// The extension of the lease, which comes first and needs no room.
    // In a box, like the end of the node: a server without other nodes has neither.
    heartbeat: Option<Box<StoreAction>>,
    accounts: BTreeMap<Account, Queue>,
    /// The accounts with actions, in the order of their turns.
    turns: VecDeque<Account>,
    /// The end of the node, after everything else.
    leave: Option<Box<StoreAction>>,
    /// The sums over all accounts.
    held: Held,
    /// The limits of all accounts, and of one caller.
    total_max: Held,
    caller_max: Held,
    /// The memory of the last queue that became empty.
    spare: VecDeque<StoreAction>,
}

#[derive(Debug, Default)]
struct Queue {
    actions: VecDeque<StoreAction>,
    bytes: usize,
}

/// Actions and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Held {
    actions: usize,
    bytes: usize,
}

impl Held {
    /// Returns whether another action with these bytes fits.
    const fn fits(self, bytes: usize, most: Self) -> bool {
        self.actions < most.actions && bytes <= most.bytes.saturating_sub(self.bytes)
    }

    /// Returns what callers may use: the rest is for what keeps the node alive.
    const fn without_reserve(self) -> Self {
        Self {
            actions: self.actions - self.actions / RESERVE,
            bytes: self.bytes - self.bytes / RESERVE,
        }
    }
}

/// The part of the queue that callers cannot use, and of the exchanges that requests cannot use: one
/// in eight.
pub(super) const RESERVE: usize = 8;
/// The number of actions for which the memory of an empty queue is kept.
const SPARE: usize = 16;

impl StoreQueue {
    pub(super) fn new(limits: &ServerLimits) -> Self {
        Self {
            heartbeat: None,
            accounts: BTreeMap::new(),
            turns: VecDeque::new(),
            leave: None,
            held: Held::default(),
            total_max: Held { actions: limits.store_actions_max, bytes: limits.store_bytes_max },
            caller_max: Held {
                actions: limits.store_actions_per_caller_max,
                bytes: limits.store_bytes_per_caller_max,
            },
            spare: VecDeque::new(),
        }
    }

    /// Returns whether an account has room for an action with these bytes.
    pub(super) fn has_room(&self, account: Account, bytes: usize) -> bool {
        if account == Account::Node {
            return self.held.fits(bytes, self.total_max);
        }
        let of_account = self.accounts.get(&account);
        let own = of_account.map(|it| Held { actions: it.actions.len(), bytes: it.bytes });
        own.unwrap_or_default().fits(bytes, self.caller_max)
            && self.held.fits(bytes, self.total_max.without_reserve())
    }

    /// Adds an action if its account has room for it. Removals have as much room again, which
    /// clients cannot fill with messages.
    pub(super) fn push(&mut self, account: Account, action: StoreAction) -> bool {
        match &action {
            StoreAction::Heartbeat { .. } => self.heartbeat = Some(Box::new(action)),
            StoreAction::Leave { .. } => self.leave = Some(Box::new(action)),
            StoreAction::Forget { .. } | StoreAction::RemoveSession { .. } => {
                let own = self.accounts.get(&account).map_or(0, |it| it.actions.len());
                if account != Account::Node && own >= self.caller_max.actions.saturating_mul(2)
                    || self.held.actions >= self.total_max.actions.saturating_mul(2)
                {
                    return false;
                }
                self.append(account, action);
            }
            _ if !self.has_room(account, length_of(&action)) => return false,
            _ => self.append(account, action),
        }
        true
    }

    fn append(&mut self, account: Account, action: StoreAction) {
        let bytes = length_of(&action);
        let spare = &mut self.spare;
        let queue = self
            .accounts
            .entry(account)
            .or_insert_with(|| Queue { actions: core::mem::take(spare), bytes: 0 });
        if queue.actions.is_empty() {
            self.turns.push_back(account);
        }
        queue.actions.push_back(action);
        queue.bytes += bytes;
        self.held = Held { actions: self.held.actions + 1, bytes: self.held.bytes + bytes };
    }

    pub(super) fn pop(&mut self) -> Option<StoreAction> {
        if let Some(heartbeat) = self.heartbeat.take() {
            return Some(*heartbeat);
        }
        let Some(account) = self.turns.pop_front() else { return self.leave.take().map(|it| *it) };
        let queue = self.accounts.get_mut(&account)?;
        let action = queue.actions.pop_front()?;
        let bytes = length_of(&action);
        queue.bytes -= bytes;
        self.held = Held { actions: self.held.actions - 1, bytes: self.held.bytes - bytes };
        if !queue.actions.is_empty() {
            self.turns.push_back(account);
        } else if let Some(Queue { actions, .. }) = self.accounts.remove(&account)
            && actions.capacity() <= SPARE
        {
            self.spare = actions;
        }
        // An idle server releases the memory of its peak.
        if self.turns.is_empty() && self.turns.capacity() > SPARE {
            self.turns = VecDeque::new();
        }
        Some(action)
    }

    /// Checks that the counters match the queues.
    pub(super) fn assert_consistent(&self) {
        let queues = || self.accounts.values();
        let actions: usize = queues().map(|queue| queue.actions.len()).sum();
        let bytes: usize = queues().flat_map(|queue| &queue.actions).map(length_of).sum();
        assert_eq!(self.held, Held { actions, bytes }, "the size of the queue");
        assert!(queues().all(|queue| !queue.actions.is_empty()), "an account without actions");
        assert_eq!(self.turns.len(), self.accounts.len(), "an entry for each account");
        let most = self.total_max.actions.saturating_mul(2);
        assert!(actions <= most, "the bound on actions");
    }

    pub(super) fn is_empty(&self) -> bool {
        self.held.actions == 0 && self.heartbeat.is_none() && self.leave.is_none()
    }
}

/// Returns the bytes of an action that count against the limits: its texts whose length others
/// choose.
pub(super) fn length_of(action: &StoreAction) -> usize {
    match action {
        StoreAction::Append { event } => event.message.len(),
        StoreAction::PutTask { key, record, .. } => {
            key.task.len() + record.task.len() + record.details.len()
        }
        StoreAction::RecordProof { proof, .. } => proof.len(),
        StoreAction::ReadTask { key, .. } => key.task.len(),
        StoreAction::ListTasks { cursor, .. } => cursor.as_ref().map_or(0, String::len),
        StoreAction::Send { message, .. } => message.len(),
        StoreAction::PutSession { fields, .. } => {
            fields.iter().map(|(name, value)| name.len() + value.len()).sum()
        }
        StoreAction::SetFields { fields, .. } => {
            let length = |(name, value): &(String, Option<String>)| {
                name.len() + value.as_ref().map_or(0, String::len)
            };
            fields.iter().map(length).sum()
        }
        _ => 0,
    }
}

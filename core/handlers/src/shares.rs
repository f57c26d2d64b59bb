//! The shares of handlers and the application in the command queue of a connection.

use core::hash::BuildHasher;

use mcp_sansio::peer::{Limits, RequestHandle};
use mcp_sansio_collections::KeyedHash;
use mcp_sansio_collections::{Index, Key, Slab};

/// The sender of a command: the handler of a request, or the application (`None`).
pub(super) type Sender = Option<RequestHandle>;

/// A command whose cost is counted against its sender's share.
pub(super) trait Metered {
    /// Returns the cost of the command. Must return the same value each time.
    fn cost(&self) -> Cost;

    /// Whether `next`, which directly follows this command, repeats it.
    fn is_duplicate_of(&self, next: &Self) -> bool {
        let _ = next;
        false
    }
}

/// The cost of a queued command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cost {
    /// A report and its size in bytes: dropped if the share is used up.
    Report(Sender, usize),
    /// A command and its size in bytes: refused if the share is used up.
    Command(Sender, usize),
    /// A command that is queued at most once per kind, and so takes no room.
    Coalesced(Sender, Coalesced),
    /// A command that is bounded elsewhere.
    Free,
}

/// A kind of command that is queued at most once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coalesced {
    Close = 1,
    ReleaseConnection = 2,
    RunAsTask = 4,
}

/// The limits of a command queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct MailboxLimits {
    reports: Usage,
    commands: Usage,
}

/// A number of commands and their total size in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Usage {
    count: usize,
    bytes: usize,
}

/// The queued commands of one sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Share {
    reports: Usage,
    commands: Usage,
    /// Bit set of the [`Coalesced`] commands in the queue.
    once: u8,
}

/// The queued commands by sender.
///
/// A single sender may use all of [`MailboxLimits`]. All senders together use less than twice that:
/// a sender may queue a command as long as its share is at most the room that is then left for the
/// others. So each of `n` busy senders gets `2 / (n + 1)` of the limit, and the same amount stays
/// free for the next sender.
#[derive(Debug)]
pub(super) struct Shares {
    limits: MailboxLimits,
    total: Share,
    senders: Senders,
}

/// The senders with queued commands.
// Not a map keyed by sender: this reuses the code of the existing tables. The application has a
// separate field, as it is the only sender of a client.
#[derive(Debug, Default)]
struct Senders {
    application: Share,
    handlers: Slab<(RequestHandle, Share)>,
    places: Index,
}

impl Senders {
    fn place(&self, handler: &RequestHandle) -> Option<Key> {
        let is_it = |number| {
            let entry = self.handlers.get(Key::from_number(number));
            entry.is_some_and(|(known, _)| known == handler)
        };
        self.places.find_hashed(hash(handler), &is_it).map(Key::from_number)
    }

    fn get(&self, sender: &Sender) -> Share {
        let Some(handler) = sender else { return self.application };
        let entry = self.place(handler).and_then(|place| self.handlers.get(place));
        entry.map_or_else(Share::default, |(_, share)| *share)
    }

    /// Sets the share of a sender.
    fn set(&mut self, sender: &Sender, share: Share) {
        let Some(handler) = sender else {
            self.application = share;
            return;
        };
        match self.place(handler) {
            Some(place) if share == Share::default() => {
                self.handlers.remove(place);
                self.places.remove_hashed(hash(handler), &|number| number == place.to_number());
            }
            Some(place) => {
                if let Some(entry) = self.handlers.get_mut(place) {
                    entry.1 = share;
                }
            }
            None if share == Share::default() => {}
            None => {
                let place = self.handlers.insert((*handler, share));
                self.places.insert_hashed(hash(handler), place.to_number());
            }
        }
    }
}

fn hash(handler: &RequestHandle) -> u64 {
    KeyedHash::default().hash_one(handler)
}

impl MailboxLimits {
    #[cfg(any(feature = "auth", all(test, feature = "_shuttle")))]
    pub(super) const NONE: Self = {
        let none = Usage { count: 0, bytes: 0 };
        Self { reports: none, commands: none }
    };

    /// Returns the limits for one connection.
    pub(super) const fn new(limits: &Limits) -> Self {
        let bytes = limits.mailbox_bytes_max;
        Self {
            reports: Usage { count: limits.reports_max, bytes },
            commands: Usage { count: limits.commands_max, bytes },
        }
    }

    /// Returns the limits for many clients: one more report for each client.
    pub(super) const fn shared_by(mut self, clients: usize) -> Self {
        self.reports.count = self.reports.count.saturating_add(clients);
        self.commands.count = self.commands.count.saturating_add(clients);
        self
    }
}

impl Usage {
    const fn plus(self, bytes: usize) -> Self {
        Self { count: self.count + 1, bytes: self.bytes.saturating_add(bytes) }
    }

    const fn minus(self, bytes: usize) -> Self {
        Self { count: self.count - 1, bytes: self.bytes.saturating_sub(bytes) }
    }

    /// Whether a sender may have this usage when all senders have `total`.
    const fn is_within(self, limits: Self, total: Self) -> bool {
        self.count.saturating_add(total.count) <= limits.count.saturating_mul(2)
            && self.bytes.saturating_add(total.bytes) <= limits.bytes.saturating_mul(2)
    }
}

impl Shares {
    pub(super) fn new(limits: MailboxLimits) -> Self {
        let none = Usage { count: 0, bytes: 0 };
        let total = Share { reports: none, commands: none, once: 0 };
        Self { limits, total, senders: Senders::default() }
    }

    /// Whether no equal coalesced command is queued.
    pub(super) fn is_new(&self, cost: &Cost) -> bool {
        let Cost::Coalesced(sender, once) = cost else { return true };
        self.senders.get(sender).once & *once as u8 == 0
    }

    /// Charges the cost to its sender; returns whether the share allows it.
    pub(super) fn take(&mut self, cost: &Cost) -> bool {
        let (limits, total) = (&self.limits, &mut self.total);
        let (sender, bytes) = match cost {
            Cost::Report(sender, bytes) | Cost::Command(sender, bytes) => (sender, *bytes),
            Cost::Coalesced(sender, _) => (sender, 0),
            Cost::Free => return true,
        };
        let known = self.senders.get(sender);
        let mut share = known;
        match cost {
            Cost::Report(..) => {
                let all = total.reports.plus(bytes);
                share.reports = known.reports.plus(bytes);
                if !share.reports.is_within(limits.reports, all) {
                    return false;
                }
                total.reports = all;
            }
            Cost::Command(..) => {
                let all = total.commands.plus(bytes);
                share.commands = known.commands.plus(bytes);
                if !share.commands.is_within(limits.commands, all) {
                    return false;
                }
                total.commands = all;
            }
            Cost::Coalesced(_, once) => share.once |= *once as u8,
            Cost::Free => {}
        }
        self.senders.set(sender, share);
        true
    }

    /// Returns the cost of a removed command to its sender's share.
    pub(super) fn release(&mut self, cost: &Cost) {
        let (Cost::Report(sender, _) | Cost::Command(sender, _) | Cost::Coalesced(sender, _)) =
            cost
        else {
            return;
        };
        let mut share = self.senders.get(sender);
        match cost {
            Cost::Report(_, bytes) => {
                share.reports = share.reports.minus(*bytes);
                self.total.reports = self.total.reports.minus(*bytes);
            }
            Cost::Command(_, bytes) => {
                share.commands = share.commands.minus(*bytes);
                self.total.commands = self.total.commands.minus(*bytes);
            }
            Cost::Coalesced(_, once) => share.once &= !(*once as u8),
            Cost::Free => {}
        }
        self.senders.set(sender, share);
    }

    /// Resets the shares after the queue was emptied.
    pub(super) fn clear(&mut self) {
        *self = Self::new(self.limits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::received_requests::received_requests;

    const PARTIES: usize = 4;

    fn senders() -> [Sender; PARTIES] {
        let requests = received_requests(PARTIES as u32);
        core::array::from_fn(|number| Some(requests[number].handle))
    }

    fn shares() -> Shares {
        let mut limits = Limits::DEFAULT;
        (limits.reports_max, limits.mailbox_bytes_max) = (100, 1000);
        Shares::new(MailboxLimits::new(&limits))
    }

    #[test]
    fn a_single_sender_may_use_the_full_limit() {
        let [sender, ..] = senders();
        let mut shares = shares();
        let taken = (0..1000).filter(|_| shares.take(&Cost::Report(sender, 1))).count();
        assert_eq!(taken, 100);
        let mut shares = self::shares();
        let taken = (0..1000).filter(|_| shares.take(&Cost::Report(sender, 100))).count();
        assert_eq!(taken, 10);
        assert!(!shares.take(&Cost::Report(sender, usize::MAX)));
    }

    #[test]
    fn busy_senders_share_the_capacity_and_leave_some_for_the_next() {
        let (mut shares, senders) = (shares(), senders());
        let mut taken = [0; PARTIES];
        for number in (0..PARTIES).cycle().take(4000) {
            taken[number] += usize::from(shares.take(&Cost::Report(senders[number], 1)));
        }
        // Each gets 2 / (n + 1) of the limit.
        assert_eq!(taken, [40; 4]);
        let next = (0..1000).filter(|_| shares.take(&Cost::Report(None, 1))).count();
        assert_eq!(next, 20);
    }

    #[test]
    fn removed_commands_free_capacity_for_all_senders() {
        let mut shares = shares();
        let [first, second, ..] = senders();
        let charges = [
            Cost::Report(first, 7),
            Cost::Command(first, 9),
            Cost::Coalesced(second, Coalesced::RunAsTask),
            Cost::Free,
        ];
        for cost in &charges {
            assert!(shares.is_new(cost) && shares.take(cost));
        }
        assert!(!shares.is_new(&charges[2]));
        assert!(shares.is_new(&Cost::Coalesced(second, Coalesced::ReleaseConnection)));
        charges.iter().for_each(|cost| shares.release(cost));
        assert!(shares.is_new(&charges[2]));
        assert_eq!(shares.total, Share::default());
        assert_eq!(shares.senders.handlers.len(), 0);
    }
}

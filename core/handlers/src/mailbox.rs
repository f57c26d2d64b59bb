//! The queue of commands and wake-ups from handlers and the application to the driver of a
//! connection.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use core::fmt;
use core::hash::BuildHasher;
use core::task::Waker;
use core::time::Duration;

use mcp_sansio::LoggingLevel;
use mcp_sansio::jsonrpc::Json;
use mcp_sansio::peer::{Limits, RequestHandle};
use mcp_sansio_collections::{Index, Key, KeyedHash, Slab};
use mcp_sansio_sync::Mutex;
use mcp_sansio_sync::atomic::{AtomicBool, Ordering};

use super::server_item::Edit;

/// Commands and wake-ups for the driver, from any thread: commands in order, and the slots of ready
/// handlers.
///
/// Each lock is held for a push or a pop, and never while foreign code runs. [`wake`](Self::wake)
/// does not block on a lock, so an interrupt handler may wake a handler while the driver holds one.
#[derive(Debug)]
pub(super) struct Mailbox<C> {
    commands: Mutex<Commands<C>>,
    ready: Mutex<VecDeque<u32>>,
    /// A handler became ready while `ready` was locked; the flag of its waker tells which.
    missed: AtomicBool,
    driver: Mutex<Option<Waker>>,
}

#[derive(Debug)]
struct Commands<C> {
    queue: VecDeque<C>,
    open: bool,
    shares: Shares,
}

/// Why a command was not accepted.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SendFailure<C> {
    /// The mailbox is closed.
    Closed(C),
    /// The sender's share of the queue is full.
    Full(C),
}

impl<C: Metered> Mailbox<C> {
    /// Creates an empty mailbox with these limits.
    pub(super) fn new(limits: MailboxLimits) -> Self {
        let shares = Shares::new(limits);
        let commands = Commands { queue: VecDeque::new(), open: true, shares };
        Self {
            commands: Mutex::new(commands),
            ready: Mutex::new(VecDeque::new()),
            missed: AtomicBool::new(false),
            driver: Mutex::new(None),
        }
    }

    /// Queues a command and wakes the driver. Returns the command if it is not accepted.
    ///
    /// A command that equals the last one, or that coalesces with a queued one, is merged into it.
    pub(super) fn send(&self, command: C) -> Result<(), SendFailure<C>> {
        let cost = command.cost();
        // A command that is not queued is returned, so that it is dropped outside of the lock.
        let sent = self.commands.lock(|commands| {
            if !commands.open {
                return Err(SendFailure::Closed(command));
            }
            if commands.queue.back().is_some_and(|last| last.is_duplicate_of(&command))
                || !commands.shares.is_new(&cost)
            {
                return Ok(Some(command));
            }
            if !commands.shares.take(&cost) {
                return Err(SendFailure::Full(command));
            }
            commands.queue.push_back(command);
            Ok(None)
        });
        let merged = sent?;
        drop(merged);
        self.wake_driver();
        Ok(())
    }

    /// Returns whether the mailbox accepts commands.
    pub(super) fn is_open(&self) -> bool {
        self.commands.lock(|commands| commands.open)
    }

    /// Returns the number of queued commands.
    pub(super) fn len(&self) -> usize {
        self.commands.lock(|commands| commands.queue.len())
    }

    pub(super) fn take_command(&self) -> Option<C> {
        self.commands.lock(|commands| {
            let command = commands.queue.pop_front()?;
            commands.shares.release(&command.cost());
            Some(command)
        })
    }

    /// Closes the mailbox: it accepts no commands and wakes no driver from now on. Returns the
    /// queued commands.
    pub(super) fn close(&self) -> VecDeque<C> {
        let left = self.commands.lock(|commands| {
            commands.open = false;
            commands.shares.clear();
            core::mem::take(&mut commands.queue)
        });
        // A waker keeps its task alive, and possibly the connection with it.
        let driver = self.driver.lock(Option::take);
        drop(driver);
        left
    }
}

impl<C> Mailbox<C> {
    /// Marks the handler in `place` as ready, and wakes the driver.
    pub(super) fn wake(&self, place: u32) {
        if self.ready.try_lock(|ready| ready.push_back(place)).is_none() {
            // A swap, not a store: it synchronizes this thread with the driver's check.
            self.missed.swap(true, Ordering::AcqRel);
        }
        self.wake_driver();
    }

    /// Returns the number of ready handlers in the queue.
    pub(super) fn ready(&self) -> usize {
        self.ready.lock(|ready| ready.len())
    }

    pub(super) fn take_ready(&self) -> Option<u32> {
        self.ready.lock(VecDeque::pop_front)
    }

    /// Whether handlers became ready without being queued.
    pub(super) fn take_missed(&self) -> bool {
        self.missed.swap(false, Ordering::AcqRel)
    }

    /// Queues a ready handler that was missed.
    pub(super) fn requeue(&self, place: u32) {
        self.ready.lock(|ready| ready.push_back(place));
    }

    /// Registers the driver's waker. Wakes it at once if anything is queued.
    pub(super) fn register(&self, driver: &Waker) {
        let is_known = |known: &Waker| known.will_wake(driver);
        // Takes one lock in the usual case that the driver has not changed.
        if !self.driver.lock(|known| known.as_ref().is_some_and(is_known)) {
            // Wakers are cloned and dropped outside of the lock, because they run foreign code.
            let driver = driver.clone();
            let old = self.driver.lock(|known| known.replace(driver));
            drop(old);
        }
        // Checked after the registration: a later sender finds the waker, an earlier one is seen
        // here.
        let missed = self.missed.fetch_or(false, Ordering::AcqRel);
        let waiting = || self.commands.lock(|commands| !commands.queue.is_empty());
        if missed || waiting() || self.ready() > 0 {
            self.wake_driver();
        }
    }

    /// Wakes the driver: something changed that it does not find in the queues.
    pub(super) fn wake_driver(&self) {
        // If the lock is taken, its holder is the driver, which checks afterwards, or another
        // sender, which wakes the driver.
        let driver = self.driver.try_lock(Option::take).flatten();
        // Outside of the lock: a waker may run any code.
        if let Some(driver) = driver {
            driver.wake();
        }
    }
}

// ------------------------------------------------------------------ shares of senders

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
    #[cfg(any(all(feature = "client", feature = "http"), all(test, shuttle)))]
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

// ------------------------------------------------------------------ commands of a server

/// A command to the connection from a handler or a [`ServerHandle`](super::ServerHandle).
pub(super) enum Command {
    Progress {
        request: RequestHandle,
        progress: f64,
        total: Option<f64>,
        message: Option<String>,
    },
    Log {
        request: Option<RequestHandle>,
        level: LoggingLevel,
        logger: Option<String>,
        data: Json,
    },
    /// A notification of an extension.
    Notify {
        request: RequestHandle,
        method: &'static str,
        params: Json,
    },
    ResourceUpdated {
        from: Sender,
        uri: String,
    },
    EditCatalog {
        from: Sender,
        edit: Box<Edit>,
    },
    /// Makes the next edit for all connections.
    TakeEdit(Box<Edit>),
    ReleaseConnection {
        request: RequestHandle,
        retry: Duration,
    },
    RunAsTask(RequestHandle),
    Close,
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Progress { .. } => "Progress",
            Self::Log { .. } => "Log",
            Self::Notify { .. } => "Notify",
            Self::ResourceUpdated { .. } => "ResourceUpdated",
            Self::EditCatalog { .. } => "EditCatalog",
            Self::TakeEdit(_) => "TakeEdit",
            Self::ReleaseConnection { .. } => "ReleaseConnection",
            Self::RunAsTask(_) => "RunAsTask",
            Self::Close => "Close",
        })
    }
}

impl Metered for Command {
    fn cost(&self) -> Cost {
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let bytes = size_of::<Self>()
            + match self {
                Self::Progress { message, .. } => length(message),
                Self::Log { logger, data, .. } => length(logger) + data.as_str().len(),
                Self::Notify { params, .. } => params.as_str().len(),
                Self::ResourceUpdated { uri, .. } => uri.len(),
                // Data that the closure holds by reference is not counted.
                Self::EditCatalog { edit, .. } => size_of_val(&**edit),
                Self::TakeEdit(_)
                | Self::ReleaseConnection { .. }
                | Self::RunAsTask(_)
                | Self::Close => 0,
            };
        match self {
            Self::Progress { request, .. } => Cost::Report(Some(*request), bytes),
            Self::Log { request, .. } => Cost::Report(*request, bytes),
            Self::Notify { request, .. } => Cost::Report(Some(*request), bytes),
            Self::ResourceUpdated { from, .. } | Self::EditCatalog { from, .. } => {
                Cost::Command(*from, bytes)
            }
            Self::TakeEdit(_) => Cost::Free,
            Self::ReleaseConnection { request, .. } => {
                Cost::Coalesced(Some(*request), Coalesced::ReleaseConnection)
            }
            Self::RunAsTask(request) => Cost::Coalesced(Some(*request), Coalesced::RunAsTask),
            Self::Close => Cost::Coalesced(None, Coalesced::Close),
        }
    }

    fn is_duplicate_of(&self, next: &Self) -> bool {
        match (self, next) {
            (Self::ResourceUpdated { uri, .. }, Self::ResourceUpdated { uri: next, .. }) => {
                uri == next
            }
            _ => false,
        }
    }
}

// ------------------------------------------------------------------ errors

/// Why a command to a connection was not accepted. The command has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The command queue of the driver is full: see
    /// [`Limits::commands_max`](mcp_sansio::peer::Limits::commands_max). Retry later.
    #[error("too many commands wait for the driver of the connection")]
    Full,
    /// The connection is closed.
    #[error("the connection is over")]
    Closed,
}

impl<C> From<SendFailure<C>> for SendError {
    fn from(refused: SendFailure<C>) -> Self {
        match refused {
            SendFailure::Closed(_) => Self::Closed,
            SendFailure::Full(_) => Self::Full,
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::sync::Arc;
    use alloc::task::Wake;
    use core::sync::atomic::AtomicUsize;

    use mcp_sansio::peer::Limits;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Even numbers are reports, odd ones commands.
    impl Metered for u32 {
        fn cost(&self) -> Cost {
            if self.is_multiple_of(2) { Cost::Report(None, 1) } else { Cost::Command(None, 1) }
        }
    }

    fn mailbox(reports: usize, commands: usize) -> Mailbox<u32> {
        let mut limits = Limits::DEFAULT;
        (limits.reports_max, limits.commands_max) = (reports, commands);
        Mailbox::new(MailboxLimits::new(&limits))
    }

    #[test]
    fn a_closed_mailbox_returns_commands_and_releases_the_driver() {
        let (mailbox, count) = (mailbox(8, 8), Arc::new(Count::default()));
        mailbox.register(&Waker::from(Arc::clone(&count)));
        assert_eq!(mailbox.send(1), Ok(()));
        mailbox.register(&Waker::from(Arc::clone(&count)));
        assert_eq!(mailbox.close(), [1]);
        assert_eq!(mailbox.send(2), Err(SendFailure::Closed(2)));
        assert_eq!(Arc::strong_count(&count), 1);
    }

    #[test]
    fn reports_and_commands_have_a_bound_each_and_keep_their_order() {
        let mailbox = mailbox(2, 1);
        let sent = [2, 4, 6, 1, 3].map(|command| mailbox.send(command));
        let full = |command| Err(SendFailure::Full(command));
        assert_eq!(sent, [Ok(()), Ok(()), full(6), Ok(()), full(3)]);
        assert_eq!(mailbox.take_command(), Some(2));
        assert_eq!(mailbox.send(8), Ok(()));
        assert_eq!(mailbox.close(), [4, 1, 8]);
    }

    #[test]
    fn a_registering_driver_is_woken_for_existing_work() {
        let (mailbox, count) = (mailbox(8, 8), Arc::new(Count::default()));
        let waker = Waker::from(Arc::clone(&count));
        mailbox.register(&waker);
        assert_eq!(count.0.load(Ordering::Relaxed), 0);
        mailbox.send(1).unwrap();
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        mailbox.register(&waker);
        assert_eq!(count.0.load(Ordering::Relaxed), 2);
        assert_eq!(mailbox.take_command(), Some(1));
        mailbox.wake(3);
        mailbox.register(&waker);
        assert_eq!(count.0.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn a_wake_during_a_lock_does_not_block_and_is_not_lost() {
        let (mailbox, count) = (mailbox(8, 8), Arc::new(Count::default()));
        // As an interrupt does while the driver holds both locks.
        mailbox.ready.lock(|_| mailbox.driver.lock(|_| mailbox.wake(3)));
        mailbox.register(&Waker::from(Arc::clone(&count)));
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        assert!(mailbox.take_missed());
        assert!(!mailbox.take_missed());
    }
}

#[cfg(test)]
mod shares_tests {
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

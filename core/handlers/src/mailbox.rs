//! The queue of commands and wake-ups from handlers and the application to the driver of a
//! connection.

use alloc::collections::VecDeque;
use core::task::Waker;

use mcp_sansio_sync::Mutex;
use mcp_sansio_sync::atomic::{AtomicBool, Ordering};

use super::shares::{MailboxLimits, Metered, Shares};

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

#[cfg(test)]
mod tests {
    use alloc::sync::Arc;
    use alloc::task::Wake;
    use core::sync::atomic::AtomicUsize;

    use mcp_sansio::peer::Limits;

    use super::super::shares::Cost;
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

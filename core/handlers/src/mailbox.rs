//! What handlers and the application leave for the driver of a connection.

use alloc::collections::VecDeque;
use core::task::Waker;

use mcp_sansio_sync::Mutex;
use mcp_sansio_sync::atomic::{AtomicBool, Ordering};

use super::shares::{MailboxLimits, Metered, Shares};

/// What handlers and the application leave for the driver, from any thread: commands in order, and
/// which handlers can go on.
///
/// Each lock is held for a push or a pop, never while code of others runs. [`wake`](Self::wake)
/// waits for no lock, so that an interrupt may wake a handler while the driver holds one.
#[derive(Debug)]
pub(super) struct Mailbox<C> {
    commands: Mutex<Commands<C>>,
    ready: Mutex<VecDeque<u32>>,
    /// A handler became ready while `ready` was locked: its own mark says which.
    missed: AtomicBool,
    driver: Mutex<Option<Waker>>,
}

#[derive(Debug)]
struct Commands<C> {
    queue: VecDeque<C>,
    open: bool,
    shares: Shares,
}

/// Why a command was not taken.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SendFailure<C> {
    /// Nobody takes commands any more.
    Closed(C),
    /// Who leaves it has left as much as it may.
    Full(C),
}

impl<C: Metered> Mailbox<C> {
    /// An empty one with room for so much.
    pub(super) fn new(limits: MailboxLimits) -> Self {
        let shares = Shares::new(limits);
        Self {
            commands: Mutex::new(Commands { queue: VecDeque::new(), open: true, shares }),
            ready: Mutex::new(VecDeque::new()),
            missed: AtomicBool::new(false),
            driver: Mutex::new(None),
        }
    }

    /// Leaves a command and wakes the driver. Gives it back where it is not taken.
    ///
    /// One that says the same as the last one, or as another of which one is enough, is taken as
    /// part of that.
    pub(super) fn send(&self, command: C) -> Result<(), SendFailure<C>> {
        let cost = command.cost();
        // What is not queued is given back, so that it is dropped outside the lock.
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

    /// How many commands wait.
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

    /// Nobody takes commands any more, nor is woken. What is there is given back.
    pub(super) fn close(&self) -> VecDeque<C> {
        let left = self.commands.lock(|commands| {
            commands.open = false;
            commands.shares.clear();
            core::mem::take(&mut commands.queue)
        });
        // A waker keeps its task, and with it perhaps the connection.
        let driver = self.driver.lock(Option::take);
        drop(driver);
        left
    }
}

impl<C> Mailbox<C> {
    /// Tells that the handler in `place` can go on, and wakes the driver.
    pub(super) fn wake(&self, place: u32) {
        if self.ready.try_lock(|ready| ready.push_back(place)).is_none() {
            // An exchange, not a store: it orders this thread with a driver that looks.
            self.missed.swap(true, Ordering::AcqRel);
        }
        self.wake_driver();
    }

    /// How many handlers can go on.
    pub(super) fn ready(&self) -> usize {
        self.ready.lock(|ready| ready.len())
    }

    pub(super) fn take_ready(&self) -> Option<u32> {
        self.ready.lock(VecDeque::pop_front)
    }

    /// Whether there are handlers that can go on but are not in the queue.
    pub(super) fn take_missed(&self) -> bool {
        self.missed.swap(false, Ordering::AcqRel)
    }

    /// Puts a handler that was missed into the queue.
    pub(super) fn requeue(&self, place: u32) {
        self.ready.lock(|ready| ready.push_back(place));
    }

    /// Says whom to wake when something is left. Wakes them at once if something is there.
    pub(super) fn register(&self, driver: &Waker) {
        let is_known = |known: &Waker| known.will_wake(driver);
        // One lock where the driver is the one before, which it mostly is.
        if !self.driver.lock(|known| known.as_ref().is_some_and(is_known)) {
            // Wakers are cloned and dropped outside the lock: they are code of others.
            let driver = driver.clone();
            let old = self.driver.lock(|known| known.replace(driver));
            drop(old);
        }
        // Only now: whoever leaves something from here on finds the waker, or was seen here.
        let missed = self.missed.fetch_or(false, Ordering::AcqRel);
        let waiting = || self.commands.lock(|commands| !commands.queue.is_empty());
        if missed || waiting() || self.ready() > 0 {
            self.wake_driver();
        }
    }

    fn wake_driver(&self) {
        // Where the lock is taken, it is by the driver, who looks afterwards, or by another waker,
        // who wakes the driver.
        let driver = self.driver.try_lock(Option::take).flatten();
        // Outside the lock: a waker may do anything.
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
    fn a_closed_mailbox_gives_commands_back_and_lets_the_driver_go() {
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
    fn a_wake_during_a_lock_waits_for_nothing_and_is_not_lost() {
        let (mailbox, count) = (mailbox(8, 8), Arc::new(Count::default()));
        // As an interrupt has it that comes while the driver holds both.
        mailbox.ready.lock(|_| mailbox.driver.lock(|_| mailbox.wake(3)));
        mailbox.register(&Waker::from(Arc::clone(&count)));
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        assert!(mailbox.take_missed());
        assert!(!mailbox.take_missed());
    }
}

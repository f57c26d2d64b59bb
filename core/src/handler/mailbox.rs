use alloc::collections::VecDeque;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::Waker;

use spin::Mutex;

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
    /// From how many on reports are dropped.
    reports_max: usize,
}

impl<C> Mailbox<C> {
    /// An empty one that takes no report while `reports_max` commands wait.
    pub(super) const fn new(reports_max: usize) -> Self {
        Self {
            commands: Mutex::new(Commands { queue: VecDeque::new(), open: true, reports_max }),
            ready: Mutex::new(VecDeque::new()),
            missed: AtomicBool::new(false),
            driver: Mutex::new(None),
        }
    }

    /// Leaves a command and wakes the driver. Gives it back when nobody will take it.
    pub(super) fn send(&self, command: C) -> Result<(), C> {
        self.send_unless(command, |_| false)
    }

    /// The same of one that says what can be left out where the driver is far behind: gives it back
    /// then.
    pub(super) fn report(&self, report: C) -> Result<(), C> {
        self.send_unless(report, |commands| commands.queue.len() >= commands.reports_max)
    }

    /// The same of one that need not be said twice: gives it back where the driver is far behind
    /// and finds `same` among what waits for it.
    pub(super) fn remind(&self, reminder: C, same: impl Fn(&C) -> bool) -> Result<(), C> {
        self.send_unless(reminder, |commands| {
            commands.queue.len() >= commands.reports_max && commands.queue.iter().any(same)
        })
    }

    fn send_unless(
        &self,
        command: C,
        needless: impl FnOnce(&Commands<C>) -> bool,
    ) -> Result<(), C> {
        {
            let mut commands = self.commands.lock();
            if !commands.open || needless(&commands) {
                return Err(command);
            }
            commands.queue.push_back(command);
        }
        self.wake_driver();
        Ok(())
    }

    /// How many commands wait.
    pub(super) fn commands(&self) -> usize {
        self.commands.lock().queue.len()
    }

    pub(super) fn take_command(&self) -> Option<C> {
        self.commands.lock().queue.pop_front()
    }

    /// Tells that the handler in `place` can go on, and wakes the driver.
    pub(super) fn wake(&self, place: u32) {
        match self.ready.try_lock() {
            Some(mut ready) => ready.push_back(place),
            // An exchange, not a store: it orders this thread with a driver that looks.
            None => {
                self.missed.swap(true, Ordering::AcqRel);
            }
        }
        self.wake_driver();
    }

    /// How many handlers can go on.
    pub(super) fn ready(&self) -> usize {
        self.ready.lock().len()
    }

    pub(super) fn take_ready(&self) -> Option<u32> {
        self.ready.lock().pop_front()
    }

    /// Whether there are handlers that can go on but are not in the queue.
    pub(super) fn take_missed(&self) -> bool {
        self.missed.swap(false, Ordering::AcqRel)
    }

    /// Puts a handler that was missed into the queue.
    pub(super) fn requeue(&self, place: u32) {
        self.ready.lock().push_back(place);
    }

    /// Says whom to wake when something is left. Wakes them at once if something is there.
    pub(super) fn register(&self, driver: &Waker) {
        let known = self.driver.lock().take();
        let waker = known.filter(|known| known.will_wake(driver));
        let waker = waker.unwrap_or_else(|| driver.clone());
        *self.driver.lock() = Some(waker);
        // Only now: whoever leaves something from here on finds the waker, or was seen here.
        let missed = self.missed.fetch_or(false, Ordering::AcqRel);
        if missed || self.commands() > 0 || self.ready() > 0 {
            self.wake_driver();
        }
    }

    /// Nobody takes commands any more, nor is woken. What is there is given back.
    pub(super) fn close(&self) -> VecDeque<C> {
        let left = {
            let mut commands = self.commands.lock();
            commands.open = false;
            core::mem::take(&mut commands.queue)
        };
        // A waker keeps its task, and with it perhaps the connection.
        let driver = self.driver.lock().take();
        drop(driver);
        left
    }

    fn wake_driver(&self) {
        // Where the lock is taken, it is by the driver, who looks afterwards, or by another waker,
        // who wakes the driver.
        let driver = self.driver.try_lock().and_then(|mut driver| driver.take());
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

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_closed_mailbox_gives_commands_back_and_lets_the_driver_go() {
        let (mailbox, count) = (Mailbox::new(8), Arc::new(Count::default()));
        mailbox.register(&Waker::from(Arc::clone(&count)));
        assert_eq!(mailbox.send(1), Ok(()));
        mailbox.register(&Waker::from(Arc::clone(&count)));
        assert_eq!(mailbox.close(), [1]);
        assert_eq!(mailbox.send(2), Err(2));
        assert_eq!(Arc::strong_count(&count), 1);
    }

    #[test]
    fn reports_are_dropped_while_the_driver_is_far_behind_and_commands_are_not() {
        let mailbox = Mailbox::new(2);
        assert_eq!(
            [mailbox.report(1), mailbox.report(2), mailbox.report(3)],
            [Ok(()), Ok(()), Err(3)]
        );
        assert_eq!(mailbox.send(4), Ok(()));
        assert_eq!(mailbox.remind(5, |other| *other == 4), Err(5));
        assert_eq!(mailbox.remind(6, |other| *other == 6), Ok(()));
        assert_eq!(mailbox.close(), [1, 2, 4, 6]);
    }

    #[test]
    fn a_driver_that_registers_is_woken_for_what_is_there_already() {
        let (mailbox, count) = (Mailbox::new(8), Arc::new(Count::default()));
        let waker = Waker::from(Arc::clone(&count));
        mailbox.register(&waker);
        assert_eq!(count.0.load(Ordering::Relaxed), 0);
        mailbox.send(()).unwrap();
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        mailbox.register(&waker);
        assert_eq!(count.0.load(Ordering::Relaxed), 2);
        assert_eq!(mailbox.take_command(), Some(()));
        mailbox.wake(3);
        mailbox.register(&waker);
        assert_eq!(count.0.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn a_wake_during_a_lock_waits_for_nothing_and_is_not_lost() {
        let (mailbox, count) = (Mailbox::<()>::new(8), Arc::new(Count::default()));
        let locks = (mailbox.ready.lock(), mailbox.driver.lock());
        mailbox.wake(3);
        drop(locks);
        mailbox.register(&Waker::from(Arc::clone(&count)));
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        assert!(mailbox.take_missed());
        assert!(!mailbox.take_missed());
    }
}

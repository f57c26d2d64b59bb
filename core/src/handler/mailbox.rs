use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::task::Waker;

use spin::Mutex;

/// What handlers and the application leave for the driver, from any thread: commands in order, and
/// which handlers can go on. The lock is held for a push or a pop, never while anything runs.
#[derive(Debug)]
pub(super) struct Mailbox<C> {
    inner: Mutex<Inner<C>>,
}

#[derive(Debug)]
struct Inner<C> {
    commands: VecDeque<C>,
    ready: Vec<u32>,
    driver: Option<Waker>,
    open: bool,
}

impl<C> Mailbox<C> {
    pub(super) const fn new() -> Self {
        Self {
            inner: Mutex::new(Inner {
                commands: VecDeque::new(),
                ready: Vec::new(),
                driver: None,
                open: true,
            }),
        }
    }

    /// Leaves a command and wakes the driver. Gives it back when nobody will take it.
    pub(super) fn send(&self, command: C) -> Result<(), C> {
        let driver = {
            let mut inner = self.inner.lock();
            if !inner.open {
                return Err(command);
            }
            inner.commands.push_back(command);
            inner.driver.take()
        };
        // Outside the lock: a waker may do anything.
        if let Some(driver) = driver {
            driver.wake();
        }
        Ok(())
    }

    /// Marks a handler that can go on and wakes the driver.
    pub(super) fn wake(&self, slot: u32) {
        let driver = {
            let mut inner = self.inner.lock();
            if inner.ready.contains(&slot) {
                return;
            }
            inner.ready.push(slot);
            inner.driver.take()
        };
        if let Some(driver) = driver {
            driver.wake();
        }
    }

    pub(super) fn take_command(&self) -> Option<C> {
        self.inner.lock().commands.pop_front()
    }

    pub(super) fn take_ready(&self) -> Option<u32> {
        self.inner.lock().ready.pop()
    }

    /// Whom to wake when something is left. Says whether something is there already.
    pub(super) fn register(&self, driver: &Waker) -> bool {
        let mut inner = self.inner.lock();
        if !inner.commands.is_empty() || !inner.ready.is_empty() {
            return true;
        }
        match &mut inner.driver {
            Some(known) if known.will_wake(driver) => {}
            slot => *slot = Some(driver.clone()),
        }
        false
    }

    /// Whether handlers can go on and no command waits.
    pub(super) fn has_only_ready(&self) -> bool {
        self.inner.lock().commands.is_empty()
    }

    /// Nobody takes commands any more. What is there is given back.
    pub(super) fn close(&self) -> VecDeque<C> {
        let mut inner = self.inner.lock();
        inner.open = false;
        core::mem::take(&mut inner.commands)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_mailbox_gives_commands_back() {
        let mailbox = Mailbox::new();
        assert_eq!(mailbox.send(1), Ok(()));
        assert!(mailbox.register(Waker::noop()));
        assert_eq!(mailbox.close(), [1]);
        assert_eq!(mailbox.send(2), Err(2));
    }

    #[test]
    fn a_handler_is_ready_once_however_often_it_is_woken() {
        let mailbox = Mailbox::<()>::new();
        mailbox.wake(3);
        mailbox.wake(3);
        assert_eq!(mailbox.take_ready(), Some(3));
        assert_eq!(mailbox.take_ready(), None);
        assert!(!mailbox.register(Waker::noop()));
    }
}

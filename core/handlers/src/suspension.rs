//! Connections that outlive the process of their server.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::mem;

use mcp_sansio::Instant;
use mcp_sansio::peer::ClientMachine;
use mcp_sansio_sync::atomic::Ordering;

use super::client::{ClientError, Command};
use super::client_endpoint::ClientEndpoint;
use super::threading::Threading;

/// The commands of the application while a connection waits for a new process of its server.
#[derive(Debug)]
pub(super) struct Suspension {
    pub(super) is_on: bool,
    waiting: Vec<Command>,
    waiting_max: usize,
}

impl Suspension {
    /// Keeps a command that needs an open connection; returns any other one.
    pub(super) fn keep(&mut self, command: Command) -> Option<Command> {
        match &command {
            Command::Call { pending, .. } | Command::Subscribe { pending, .. }
                if self.waiting.len() >= self.waiting_max =>
            {
                pending.end(Err(ClientError::TooManyCommands));
                None
            }
            Command::Call { .. } | Command::Subscribe { .. } => {
                self.waiting.push(command);
                None
            }
            // Roots and a level are those of the application, and may be set again: the last counts.
            Command::Notify { .. } | Command::SetLogLevel(_)
                if self.waiting.len() < self.waiting_max =>
            {
                self.waiting.push(command);
                None
            }
            _ => Some(command),
        }
    }

    /// Ends the suspension; returns the waiting commands.
    pub(super) fn end(&mut self) -> Vec<Command> {
        self.is_on = false;
        mem::take(&mut self.waiting)
    }
}

impl<K: Threading> ClientEndpoint<K> {
    /// Lets the connection outlive the process of its server: when the stream of an open connection
    /// ends, [`Endpoint::restart`](mcp_sansio::stream::Endpoint::restart) returns `true`. Start a new
    /// process and call [`resume`](Self::resume), or give up with
    /// [`handle_eof`](mcp_sansio::stream::Endpoint::handle_eof). Meanwhile keep calling
    /// [`poll_handlers`](mcp_sansio::stream::Endpoint::poll_handlers), so that the application can
    /// close the connection.
    ///
    /// Calls in flight end with [`Failure::ConnectionLost`](mcp_sansio::peer::Failure), and
    /// subscriptions stay open. Later calls wait until the connection is open again, and their
    /// timeouts begin then.
    #[must_use]
    pub fn respawning(mut self) -> Self {
        let waiting_max = self.commands_max;
        self.suspension =
            Some(Box::new(Suspension { is_on: false, waiting: Vec::new(), waiting_max }));
        self
    }

    /// Opens the connection on the stream of a new process: see [`respawning`](Self::respawning). Has
    /// no effect on a connection that does not wait for one.
    pub fn resume(&mut self, now: Instant) {
        self.machine.resume(now);
        self.dispatch_queued(now);
    }

    pub(super) fn suspend(&mut self, now: Instant) -> bool {
        if self.suspension.is_none() || !self.machine.suspend() {
            return false;
        }
        if let Some(suspension) = &mut self.suspension {
            suspension.is_on = true;
            self.shared.is_suspended.store(true, Ordering::Relaxed);
        }
        self.dispatch_queued(now);
        true
    }
}

impl<K: Threading, M: ClientMachine> ClientEndpoint<K, M> {
    /// Ends the suspension, if there is one; returns the waiting commands.
    pub(super) fn end_suspension(&mut self) -> Vec<Command> {
        let Some(suspension) = &mut self.suspension else { return Vec::new() };
        self.shared.is_suspended.store(false, Ordering::Relaxed);
        suspension.end()
    }

    pub(super) fn take_commands(&mut self, now: Instant) {
        // Takes only the commands queued at the start: a caller that keeps sending must not block
        // the driver.
        for _ in 0..self.shared.mailbox.len() {
            let Some(command) = self.shared.mailbox.take_command() else { return };
            match &mut self.suspension {
                Some(suspension) if suspension.is_on => {
                    if let Some(command) = suspension.keep(command) {
                        self.execute(command, now);
                    }
                }
                _ => self.execute(command, now),
            }
        }
    }
}

//! Tapes for the machines of servers and hosts.

use alloc::sync::Arc;
use core::fmt;
use core::sync::atomic::{AtomicUsize, Ordering};

use mcp_sansio::recording::Tape;

use super::host::Host;
use super::server::Server;
use super::threading::Threading;

/// Gives each machine that begins its tape.
#[derive(Clone)]
pub(super) struct Recorder {
    open: Arc<dyn Fn(usize) -> Option<Tape> + Send + Sync>,
    begun: Arc<AtomicUsize>,
}

impl Recorder {
    fn new(open: impl Fn(usize) -> Option<Tape> + Send + Sync + 'static) -> Self {
        Self { open: Arc::new(open), begun: Arc::default() }
    }

    pub(super) fn next(&self) -> Option<Tape> {
        (self.open)(self.begun.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("begun", &self.begun).finish_non_exhaustive()
    }
}

impl<K: Threading> Server<K> {
    /// Records what the server does, under whichever adapter: `open` gives each machine that
    /// begins its tape, by its number, counted from 1; or none, and it is not recorded.
    ///
    /// On a byte stream each connection has a machine, on HTTP all clients together have one. See
    /// [`recording`](mcp_sansio::recording) for what becomes of a recording, and what is in it.
    #[must_use]
    pub fn record(mut self, open: impl Fn(usize) -> Option<Tape> + Send + Sync + 'static) -> Self {
        self.recorder = Some(Recorder::new(open));
        self
    }
}

impl<K: Threading> Host<K> {
    /// Records what clients do, under whichever adapter: `open` gives each connection that begins
    /// its tape, by its number, counted from 1; or none, and it is not recorded.
    ///
    /// See [`recording`](mcp_sansio::recording) for what becomes of a recording, and what is in it. How
    /// the client got a token is not in it.
    #[must_use]
    pub fn record(mut self, open: impl Fn(usize) -> Option<Tape> + Send + Sync + 'static) -> Self {
        self.recorder = Some(Recorder::new(open));
        self
    }
}

//! Recording of machines.

use alloc::sync::Arc;
use core::fmt;
use core::sync::atomic::{AtomicUsize, Ordering};

use mcp_sansio::Tape;

use super::server::Server;
use super::threading::Threading;

/// Opens a tape for each new machine.
#[derive(Clone)]
pub(super) struct Recorder(Arc<Tapes<dyn Fn(usize) -> Option<Tape> + Send + Sync>>);

struct Tapes<F: ?Sized> {
    opened: AtomicUsize,
    open: F,
}

impl Recorder {
    pub(super) fn new(open: impl Fn(usize) -> Option<Tape> + Send + Sync + 'static) -> Self {
        Self(Arc::new(Tapes { opened: AtomicUsize::new(0), open }))
    }

    pub(super) fn next(&self) -> Option<Tape> {
        if !Tape::IS_POSSIBLE {
            return None;
        }
        (self.0.open)(self.0.opened.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("opened", &self.0.opened).finish_non_exhaustive()
    }
}

impl<K: Threading> Server<K> {
    /// Records the server under any adapter. `open` returns the tape of each new machine, given its
    /// number, counted from 1; a machine without a tape is not recorded.
    ///
    /// On a byte stream each connection has a machine; on HTTP all clients share one. The module
    /// `recording` of `mcp-sansio`, with the feature of that name, creates tapes and replays
    /// recordings.
    #[must_use]
    pub fn record(mut self, open: impl Fn(usize) -> Option<Tape> + Send + Sync + 'static) -> Self {
        self.recorder = Some(Recorder::new(open));
        self
    }
}

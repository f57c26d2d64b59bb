//! The open connections by handle.

use alloc::vec::Vec;

use mcp_sansio::Instant;

use crate::connection::Connection;

/// The maximum number of connections. Each has bounded memory, so the total is bounded, too.
const COUNT_MAX: usize = 64;

pub(crate) struct Connections {
    /// By handle. Few enough to search a list, which takes less of the module than a tree.
    open: Vec<(u32, Connection)>,
    /// The last handle. Handles are not reused, so that a stale handle never refers to another
    /// connection.
    last: u32,
}

impl Connections {
    pub(crate) const fn new() -> Self {
        Self { open: Vec::new(), last: 0 }
    }

    /// Opens a connection and returns its handle. Returns `None` if too many are open.
    pub(crate) fn connect(&mut self, seed: u64, now: Instant) -> Option<u32> {
        if self.open.len() >= COUNT_MAX {
            return None;
        }
        let handle = self.last.checked_add(1)?;
        let connection = Connection::new(seed, now)?;
        self.last = handle;
        self.open.push((handle, connection));
        Some(handle)
    }

    pub(crate) fn get(&mut self, handle: u32) -> Option<&mut Connection> {
        let index = self.index(handle)?;
        Some(&mut self.open[index].1)
    }

    /// Drops a connection. Returns whether it was open.
    pub(crate) fn close(&mut self, handle: u32) -> bool {
        self.index(handle).map(|index| self.open.remove(index)).is_some()
    }

    fn index(&self, handle: u32) -> Option<usize> {
        self.open.binary_search_by_key(&handle, |(handle, _)| *handle).ok()
    }
}

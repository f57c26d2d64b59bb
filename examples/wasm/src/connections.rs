//! The connections of the module, by their handles.

use alloc::collections::BTreeMap;

use mcp_sansio::Instant;

use crate::connection::Connection;

/// The most at once: what each can hold is bounded, and so is all of it.
const COUNT_MAX: usize = 64;

pub(crate) struct Connections {
    open: BTreeMap<u32, Connection>,
    /// The last handle. None is given twice, so that an old one never means another connection.
    last: u32,
}

impl Connections {
    pub(crate) const fn new() -> Self {
        Self { open: BTreeMap::new(), last: 0 }
    }

    /// The handle of a new connection. `None` where there are too many.
    pub(crate) fn connect(&mut self, seed: u64, now: Instant) -> Option<u32> {
        if self.open.len() >= COUNT_MAX {
            return None;
        }
        let handle = self.last.checked_add(1)?;
        let connection = Connection::new(seed, now)?;
        self.last = handle;
        self.open.insert(handle, connection);
        Some(handle)
    }

    pub(crate) fn get(&mut self, handle: u32) -> Option<&mut Connection> {
        self.open.get_mut(&handle)
    }

    /// Drops a connection; whether there was one.
    pub(crate) fn close(&mut self, handle: u32) -> bool {
        self.open.remove(&handle).is_some()
    }
}

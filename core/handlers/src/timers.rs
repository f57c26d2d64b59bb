//! Sleeping callers of a connection.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use mcp_sansio::Instant;
use mcp_sansio::jsonrpc::RawJson;

use super::client::ClientError;
use super::pending::Pending;

/// All sleeping callers. Bounded only by the application.
#[derive(Debug, Default)]
pub(super) struct Timers(Vec<(Instant, Arc<Pending>)>);

impl Timers {
    pub(super) fn add(&mut self, pending: Arc<Pending>, pause: Duration, now: Instant) {
        self.0.push((now + pause, pending));
    }

    /// Returns when the next caller wakes.
    pub(super) fn next(&self) -> Option<Instant> {
        self.0.iter().map(|(at, _)| *at).min()
    }

    pub(super) fn wake(&mut self, now: Instant) {
        self.0.retain(|(at, pending)| {
            if *at <= now {
                pending.end(Ok(RawJson::EMPTY_OBJECT));
            }
            *at > now
        });
    }

    pub(super) fn forget(&mut self, pending: &Arc<Pending>) {
        self.0.retain(|(_, other)| !Arc::ptr_eq(other, pending));
    }

    /// Ends all sleeps when the connection closes.
    pub(super) fn end(&mut self, error: impl Fn() -> ClientError) {
        for (_, pending) in self.0.drain(..) {
            pending.end(Err(error()));
        }
    }
}

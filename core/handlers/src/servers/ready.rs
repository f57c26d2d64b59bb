use alloc::vec::Vec;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

use mcp_sansio_collections::Key;

use super::{ServerState, Servers, Table};

/// Resolves when no server is being connected.
struct Ready<'s, C> {
    servers: &'s Servers<C>,
    waiting: Option<Key>,
}

impl<C> Servers<C> {
    /// Waits until each server is connected, or its current attempt has failed. The merged lists
    /// contain the items of connected servers only: a program that has just started waits before it
    /// requests them.
    ///
    /// The futures of [`connect`](Self::connect) must run meanwhile. It does not wait for later
    /// attempts.
    pub fn ready(&self) -> impl Future<Output = ()> {
        Ready { servers: self, waiting: None }
    }

    /// Wakes the tasks that wait, if no server is being connected.
    pub(super) fn wake_ready(&self) {
        let wakers: Vec<Waker> = self
            .table
            .lock(|table| if table.is_ready() { table.waiting.take_all() } else { Vec::new() });
        for waker in wakers {
            waker.wake();
        }
    }
}

impl<C> Table<C> {
    fn is_ready(&self) -> bool {
        self.servers.values().all(|server| !matches!(server.state, ServerState::Connecting))
    }
}

impl<C> Future for Ready<'_, C> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // Wakers are cloned and dropped outside of the lock, because they run foreign code.
        let mut waker = Some(cx.waker().clone());
        let waiting = self.waiting.take();
        let (key, old) = self.servers.table.lock(|table| {
            let old = waiting.and_then(|key| table.waiting.remove(key));
            let key = match table.is_ready() {
                true => None,
                false => waker.take().map(|waker| table.waiting.insert(waker)),
            };
            (key, old)
        });
        drop((waker, old));
        self.waiting = key;
        if key.is_some() { Poll::Pending } else { Poll::Ready(()) }
    }
}

impl<C> Drop for Ready<'_, C> {
    fn drop(&mut self) {
        if let Some(key) = self.waiting {
            drop(self.servers.table.lock(|table| table.waiting.remove(key)));
        }
    }
}

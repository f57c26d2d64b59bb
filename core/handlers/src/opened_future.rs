//! The futures of the opening and the end of a connection.

use alloc::sync::Arc;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use mcp_sansio::peer::CloseReason;

use super::client::{ConnectionState, Session};
use super::opening::{Opening, WaiterKey};

/// Resolves when a connection is open or closed.
#[derive(Debug)]
#[must_use = "await it"]
pub struct OpenedFuture<'c> {
    opening: &'c Opening,
    waiting: Option<WaiterKey>,
}

impl<'c> OpenedFuture<'c> {
    pub(super) const fn new(opening: &'c Opening) -> Self {
        Self { opening, waiting: None }
    }
}

impl Future for OpenedFuture<'_> {
    type Output = Result<Arc<Session>, CloseReason>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let opening = self.opening;
        opening.poll(&mut self.waiting, cx)
    }
}

impl Drop for OpenedFuture<'_> {
    fn drop(&mut self) {
        if let Some(waiting) = self.waiting {
            self.opening.forget(waiting);
        }
    }
}

/// Resolves when a connection is closed.
#[derive(Debug)]
#[must_use = "await it"]
pub struct ClosedFuture {
    shared: Arc<ConnectionState>,
    waiting: Option<WaiterKey>,
}

impl ClosedFuture {
    pub(super) fn new(shared: &Arc<ConnectionState>) -> Self {
        Self { shared: Arc::clone(shared), waiting: None }
    }
}

impl Future for ClosedFuture {
    type Output = CloseReason;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<CloseReason> {
        let Self { shared, waiting } = self.get_mut();
        shared.opening.poll_closed(waiting, cx)
    }
}

impl Drop for ClosedFuture {
    fn drop(&mut self) {
        if let Some(waiting) = self.waiting {
            self.shared.opening.forget(waiting);
        }
    }
}

use std::fmt;
use std::sync::Arc;

use super::supervisor::ServerStream;
use super::{ChildStream, Process};

/// The direction of bytes between a client and the server that it started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TransferDirection {
    /// Read from the server.
    Received,
    /// Written to the server.
    Sent,
}

type Observe = dyn Fn(TransferDirection, &[u8]) + Send + Sync;

/// The function that sees the bytes of a connection, if any.
#[derive(Clone, Default)]
pub(super) struct ByteObserver(Option<Arc<Observe>>);

impl ByteObserver {
    pub(super) const NONE: Self = Self(None);

    pub(super) fn new(observe: impl Fn(TransferDirection, &[u8]) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(observe)))
    }

    /// Returns the stream of a server whose bytes this observer sees.
    pub(super) fn watch<P: Process>(&self, stream: ChildStream<P::Stream>) -> ServerStream<P> {
        ServerStream::Open { stream, observer: self.clone() }
    }

    pub(super) fn show(&self, direction: TransferDirection, bytes: &[u8]) {
        if let Some(observe) = &self.0 {
            observe(direction, bytes);
        }
    }
}

impl fmt::Debug for ByteObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByteObserver").field("is_set", &self.0.is_some()).finish()
    }
}

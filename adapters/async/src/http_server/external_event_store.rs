use std::future::{Future, pending};

use mcp_sansio::Principal;
use mcp_sansio::http::{EventPosition, NotStored, SessionId, StoreAction, StoredEvent};

use super::{SharedStore, StoreOutcome};

/// A store for the events of HTTP clients that resume their streams, for more events than fit in
/// memory: Redis, a database, a disk. See `docs/guide/deployment.md` for its requirements.
///
/// Each operation is awaited before the next one starts, so a read sees earlier appends. An event
/// is identified by session, stream and principal. To share sessions between nodes as well,
/// implement [`SharedStore`].
pub trait ExternalEventStore: Send + Sync + 'static {
    /// Stores an event. If it cannot be stored, it is lost, and a client that asks for it is told
    /// so.
    fn append(&self, event: StoredEvent) -> impl Future<Output = ()> + Send;

    /// Returns the events of one stream starting at `from`, in order: at most `events_max`, and at
    /// most `bytes_max` bytes of messages after the first.
    ///
    /// # Errors
    ///
    /// The store does not have the events, or cannot be reached. The client is told that they are
    /// gone.
    fn read(
        &self,
        from: EventPosition,
        events_max: usize,
        bytes_max: usize,
    ) -> impl Future<Output = Result<Vec<StoredEvent>, NotStored>> + Send;

    /// Drops the events of a stream, or of the whole session if `stream` is `None`.
    fn forget(
        &self,
        session: SessionId,
        stream: Option<u32>,
        principal: Option<Principal>,
    ) -> impl Future<Output = ()> + Send;
}

/// An event store as a store of a single node.
pub(super) struct OnlyEvents<S>(pub(super) S);

impl<S: ExternalEventStore> SharedStore for OnlyEvents<S> {
    const PENDING_MAX: usize = 1;

    async fn execute(&self, action: StoreAction) -> StoreOutcome {
        match action {
            StoreAction::Append { event } => self.0.append(event).await,
            StoreAction::Forget { session, stream, principal } => {
                self.0.forget(session, stream, principal).await;
            }
            StoreAction::Read { from, events_max, bytes_max, .. } => {
                return StoreOutcome::Events(self.0.read(from, events_max, bytes_max).await);
            }
            // A machine with such a store emits no others.
            _ => {}
        }
        StoreOutcome::Taken
    }

    async fn receive(&self) -> Vec<u8> {
        pending().await
    }
}

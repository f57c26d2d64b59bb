use std::future::{Future, pending};

use mcp_sansio::Principal;
use mcp_sansio::http::{
    EventPosition, NotStored, SessionId, StoreAction, StoreError, StoreReply, StoredEvent,
};

/// A store through which several nodes share their sessions and streams: see
/// [`HttpService::with_shared_store`](super::HttpService::with_shared_store). `mcp-sansio-redis` is
/// one on Redis.
///
/// A store keeps the promises of each [`StoreAction`]. It contains no rule of the protocol.
pub trait SharedStore: Send + Sync + 'static {
    /// Executes an action.
    ///
    /// Many futures are pending at the same time. They are first polled in the order of their
    /// actions, and the actions of one session must take effect in that order, as they do if each
    /// future sends its action at the first poll on one connection. So must the messages to one
    /// node.
    ///
    /// A future must end, also if the store does not answer: the number of pending ones is
    /// [limited](Self::PENDING_MAX). A dropped future means that the server is gone.
    fn execute(&self, action: StoreAction) -> impl Future<Output = StoreOutcome> + Send;

    /// Returns the next message from another node, sent to the node that the last
    /// [`Heartbeat`](StoreAction::Heartbeat) named or to all, in the order of the sender. Waits
    /// until there is one, and continues after failures.
    fn receive(&self) -> impl Future<Output = Vec<u8>> + Send;

    /// Actions executed at the same time. 1,024: enough to fill a connection of 100,000 actions a
    /// second at 10 ms. Further actions wait in the machine, within
    /// [`ServerLimits::store_actions_max`](mcp_sansio::http::ServerLimits).
    const PENDING_MAX: usize = 1024;
}

/// The result of a [`StoreAction`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreOutcome {
    /// An action without a result was executed.
    Taken,
    /// The store cannot be reached, is out of memory or does not answer. The action may or may not
    /// have been executed.
    Failed,
    /// The check of an [`Append`](StoreAction::Append) has failed: the stream has this event or a
    /// later one, or has ended. Not for other failures.
    Refused,
    /// The result of a [`Read`](StoreAction::Read).
    Events(Result<Vec<StoredEvent>, NotStored>),
    /// The result of an action that has an [`ActionId`](mcp_sansio::http::ActionId).
    Reply(Result<StoreReply, StoreError>),
}

// ------------------------------------------------------------------ external event store

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

use std::future::Future;

use mcp_sansio::http::{NotStored, StoreAction, StoreError, StoreReply, StoredEvent};

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
    /// future sends its action at the first poll on one connection. So must the messages to one node.
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

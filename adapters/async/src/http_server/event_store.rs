use std::future::{Future, poll_fn};
use std::sync::Weak;
use std::task::Poll;

use mcp_sansio::Principal;
use mcp_sansio::http::{EventPosition, NotStored, SessionId, StoreAction, StoredEvent};

use super::shared_server::SharedServer;

/// A store for the events of HTTP clients that resume their streams, for more events than fit in
/// memory: Redis, a database, a disk. See `docs/guide/http.md` for its requirements.
///
/// Each operation is awaited before the next one starts, so a read sees earlier appends. An event
/// is identified by session, stream and principal.
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

/// Executes store actions until the server is dropped.
pub(super) async fn run(shared: Weak<SharedServer>, store: impl ExternalEventStore) {
    loop {
        let action = poll_fn(|cx| {
            let Some(shared) = shared.upgrade() else { return Poll::Ready(None) };
            let mut state = shared.lock();
            match state.server.poll_store() {
                Some(action) => Poll::Ready(Some(action)),
                None => {
                    state.store_waker = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        });
        match action.await {
            None => return,
            Some(StoreAction::Append { event }) => store.append(event).await,
            Some(StoreAction::Forget { session, stream, principal }) => {
                store.forget(session, stream, principal).await;
            }
            Some(StoreAction::Read { read, from, events_max, bytes_max }) => {
                let events = store.read(from, events_max, bytes_max).await;
                let Some(shared) = shared.upgrade() else { return };
                shared.change(|state| state.server.handle_stored(read, events, shared.now()));
            }
            // Unknown actions are skipped.
            Some(_) => {}
        }
    }
}

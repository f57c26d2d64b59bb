use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use futures_util::stream::{FuturesUnordered, Stream as _};
use mcp_sansio::http::{ActionId, EventPosition, ReadId, StoreAction, StoreError};

use super::shared_server::{ServerState, SharedServer};
use super::{SharedStore, StoreOutcome};

/// Actions and outcomes handled under one lock. 64: others wait for the lock.
const BATCH: usize = 64;

/// Bytes of actions that are executed at the same time, not counting the last. 8 MiB: two messages
/// of the maximum length, so that a store soon gets to a heartbeat behind them.
const PENDING_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Executes store actions, and forwards messages of other nodes, until the server is dropped.
pub(super) async fn run(shared: Weak<SharedServer>, store: impl SharedStore) {
    let mut receive = pin!(receive(&shared, &store));
    let mut execute = pin!(execute(&shared, &store));
    poll_fn(|cx| {
        // Ends only if the server is gone, of which the other one is notified.
        let _ended = receive.as_mut().poll(cx);
        execute.as_mut().poll(cx)
    })
    .await;
}

async fn receive(shared: &Weak<SharedServer>, store: &impl SharedStore) {
    loop {
        let message = store.receive().await;
        let Some(shared) = shared.upgrade() else { return };
        shared.change(|state| state.server.handle_node_message(&message, shared.now()));
    }
}

/// The receiver of an action's result.
enum Origin {
    Append(EventPosition),
    Read(ReadId),
    Action(ActionId),
    Nothing,
}

impl Origin {
    fn of(action: &StoreAction) -> Self {
        match action {
            StoreAction::Append { event } => Self::Append(event.position.clone()),
            StoreAction::Read { read, .. } => Self::Read(*read),
            StoreAction::Heartbeat { action, .. }
            | StoreAction::Depose { action, .. }
            | StoreAction::PutSession { action, .. }
            | StoreAction::OpenSession { action, .. }
            | StoreAction::ReadSession { action, .. }
            | StoreAction::SetFields { action, .. }
            | StoreAction::RemoveSession { action, .. }
            | StoreAction::RecordProof { action, .. }
            | StoreAction::PutTask { action, .. }
            | StoreAction::ReadTask { action, .. }
            | StoreAction::ListTasks { action, .. }
            | StoreAction::Send { action: Some(action), .. } => Self::Action(*action),
            _ => Self::Nothing,
        }
    }

    /// Passes the outcome to the machine. An outcome of the wrong kind is a failure of the store.
    fn complete(self, outcome: StoreOutcome, shared: &SharedServer, state: &mut ServerState) {
        let (server, now) = (&mut state.server, shared.now());
        match (self, outcome) {
            (Self::Append(position), StoreOutcome::Refused) => {
                server.handle_append_refused(&position, now);
            }
            (Self::Append(position), _) => server.handle_appended(&position),
            (Self::Read(read), StoreOutcome::Events(events)) => {
                server.handle_stored(read, events, now);
            }
            (Self::Read(read), _) => server.fail_read(read, now),
            (Self::Action(action), StoreOutcome::Reply(reply)) => {
                server.handle_store(action, reply, now);
            }
            (Self::Action(action), _) => {
                server.handle_store(action, Err(StoreError::Unavailable), now);
            }
            (Self::Nothing, _) => {}
        }
    }
}

async fn execute<S: SharedStore>(shared: &Weak<SharedServer>, store: &S) {
    let start = |action: StoreAction| async move {
        let (origin, bytes) = (Origin::of(&action), action.byte_length());
        (origin, bytes, store.execute(action).await)
    };
    let mut pending = FuturesUnordered::new();
    let mut pending_bytes = 0;
    poll_fn(|cx| {
        loop {
            let completed: Vec<(Origin, usize, StoreOutcome)> =
                take_completed(Pin::new(&mut pending), cx);
            let Some(shared) = shared.upgrade() else { return Poll::Ready(()) };
            let is_done = completed.is_empty();
            if !is_done {
                shared.change(|state| {
                    for (origin, bytes, outcome) in completed {
                        pending_bytes -= bytes;
                        origin.complete(outcome, &shared, state);
                    }
                });
            }
            let room = S::PENDING_MAX.saturating_sub(pending.len());
            let actions = take_actions(&shared, (room, &mut pending_bytes), pending.is_empty(), cx);
            if is_done && actions.is_empty() {
                return Poll::Pending;
            }
            // Polled in this order: a new future is put at the end of those to poll.
            pending.extend(actions.into_iter().map(start));
        }
    })
    .await;
}

/// Returns outcomes, and polls the pending futures that were woken.
fn take_completed<F: Future>(
    mut pending: Pin<&mut FuturesUnordered<F>>,
    cx: &mut Context<'_>,
) -> Vec<F::Output> {
    let mut completed = Vec::new();
    while completed.len() < BATCH
        && let Poll::Ready(Some(outcome)) = pending.as_mut().poll_next(cx)
    {
        completed.push(outcome);
    }
    completed
}

/// Takes actions of the machine, and adds their bytes to those of the pending ones. If it has no
/// more, the task is woken when there are.
fn take_actions(
    shared: &Arc<SharedServer>,
    (room, pending_bytes): (usize, &mut usize),
    is_idle: bool,
    cx: &Context<'_>,
) -> Vec<StoreAction> {
    let mut actions = Vec::new();
    let drained = {
        let mut state = shared.lock();
        while actions.len() < room.min(BATCH) && *pending_bytes < PENDING_BYTES_MAX {
            let Some(action) = state.server.poll_store() else {
                state.store_waker = Some(cx.waker().clone());
                break;
            };
            *pending_bytes += action.byte_length();
            actions.push(action);
        }
        if is_idle && actions.is_empty() { state.set_store_idle() } else { Vec::new() }
    };
    drained.into_iter().for_each(std::task::Waker::wake);
    actions
}

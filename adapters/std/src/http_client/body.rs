use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use http::Response;
use http::response::Parts;
use http_body::{Body, Frame};
use mcp_sansio_async::http_client::ConnectorError;

use super::agent_pool::Agent;

/// Chunks of a body that may be queued. 4, of 16 KiB each: enough that neither thread waits for the
/// other at every chunk.
const PIECES_MAX: usize = 4;

/// The body of a response, read by a thread.
///
/// Dropping it shuts down the socket, which ends the thread that waits for it. A thread that is
/// still connecting ends once that completes, within the connection timeout.
pub struct ThreadedBody {
    events: Receiver<BodyEvent>,
    shared: Arc<Mutex<Shared>>,
}

/// An event of an exchange.
pub(super) enum BodyEvent {
    Head(Box<Parts>),
    Piece(Bytes),
    End,
    Failed(ConnectorError),
}

/// State shared by the thread of an exchange and its driver.
#[derive(Default)]
struct Shared {
    waker: Option<Waker>,
    /// The agent in use, to be shut down with the exchange.
    agent: Option<Agent>,
    abandoned: bool,
}

/// The thread's end of an exchange.
pub(super) struct ResponseSender {
    // Fields are dropped in order: the receiver is woken after the sender is dropped, even if the
    // thread panicked.
    events: SyncSender<BodyEvent>,
    shared: WakeOnDrop,
}

struct WakeOnDrop(Arc<Mutex<Shared>>);

/// Creates both ends of an exchange.
pub(super) fn channel() -> (ResponseSender, ThreadedBody) {
    let (sender, events) = sync_channel(PIECES_MAX);
    let shared = Arc::<Mutex<Shared>>::default();
    let sender = ResponseSender { events: sender, shared: WakeOnDrop(Arc::clone(&shared)) };
    (sender, ThreadedBody { events, shared })
}

// A panic elsewhere leaves no inconsistent state.
fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ResponseSender {
    /// Registers the agent in use. Returns `false` if the exchange was dropped.
    pub(super) fn begin(&self, agent: &Agent) -> bool {
        let mut shared = lock(&self.shared.0);
        shared.agent = Some(agent.clone());
        !shared.abandoned
    }

    /// Unregisters the agent, so that it can serve another exchange. Returns `false` if it was shut
    /// down.
    pub(super) fn end(&self) -> bool {
        lock(&self.shared.0).agent.take().is_some()
    }

    /// Sends an event, after waiting for space in the queue. Returns `false` if the exchange was
    /// dropped.
    pub(super) fn push(&self, event: BodyEvent) -> bool {
        let is_taken = self.events.send(event).is_ok();
        self.shared.wake();
        is_taken
    }
}

impl WakeOnDrop {
    fn wake(&self) {
        let waker = lock(&self.0).waker.take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Drop for WakeOnDrop {
    fn drop(&mut self) {
        self.wake();
    }
}

impl ThreadedBody {
    /// Waits for the head of the response.
    pub(super) async fn response(mut self) -> Result<Response<Self>, ConnectorError> {
        match poll_fn(|cx| self.poll(cx)).await {
            BodyEvent::Head(head) => Ok(Response::from_parts(*head, self)),
            BodyEvent::Failed(error) => Err(error),
            BodyEvent::Piece(_) | BodyEvent::End => {
                unreachable!("a head comes before anything else")
            }
        }
    }

    fn poll(&mut self, cx: &Context<'_>) -> Poll<BodyEvent> {
        // Locked during the check, so that a later event finds the waker.
        let mut shared = lock(&self.shared);
        match self.events.try_recv() {
            Ok(event) => Poll::Ready(event),
            Err(TryRecvError::Empty) => {
                shared.waker = Some(cx.waker().clone());
                Poll::Pending
            }
            Err(TryRecvError::Disconnected) => {
                let reason = "an internal error".to_owned();
                Poll::Ready(BodyEvent::Failed(ConnectorError::Lost { reason, sent: true }))
            }
        }
    }
}

impl Body for ThreadedBody {
    type Data = Bytes;
    type Error = ConnectorError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ConnectorError>>> {
        Poll::Ready(match ready!(self.poll(cx)) {
            BodyEvent::Piece(piece) => Some(Ok(Frame::data(piece))),
            BodyEvent::Failed(error) => Some(Err(error)),
            BodyEvent::End | BodyEvent::Head(_) => None,
        })
    }
}

impl Drop for ThreadedBody {
    fn drop(&mut self) {
        let mut shared = lock(&self.shared);
        shared.abandoned = true;
        let (agent, waker) = (shared.agent.take(), shared.waker.take());
        drop(shared);
        if let Some(agent) = agent {
            agent.agent.shutdown();
        }
        drop(waker);
    }
}

impl fmt::Debug for ThreadedBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadedBody").finish_non_exhaustive()
    }
}

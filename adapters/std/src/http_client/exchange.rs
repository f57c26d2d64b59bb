use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use http::response::Parts;
use mcp_sansio::http::{ExchangeFailure, IncomingResponse, Status};
use mcp_sansio_async::Exchange;

use super::agents::Agent;
use super::connector_error::ConnectorError;
use super::exchanger::Trouble;

/// Pieces of a body that wait to be taken. 4, of 16 KiB each: enough that neither side waits for
/// every piece of the other's.
const PIECES_MAX: usize = 4;

/// An exchange of a [`ThreadedExchanger`](crate::ThreadedExchanger).
///
/// Dropped, it shuts down the socket, so that the thread that waits at it ends. One that is still
/// making a connection ends when that has come to something, within the connector's time for it.
pub struct ThreadedExchange {
    handover: Arc<Handover>,
    trouble: Trouble,
    head: Option<Box<Parts>>,
    piece: Vec<u8>,
}

/// What comes of an exchange.
pub(super) enum News {
    Head(Box<Parts>),
    Piece(Vec<u8>),
    End,
    Failed(ConnectorError),
}

/// What the thread of an exchange and the thread that drives it share.
#[derive(Default)]
pub(super) struct Handover {
    state: Mutex<State>,
    /// There is room again, or nobody listens any more.
    room: Condvar,
}

#[derive(Default)]
struct State {
    news: VecDeque<News>,
    waker: Option<Waker>,
    /// What is at work, to be shut down with the exchange.
    agent: Option<Agent>,
    abandoned: bool,
}

impl Handover {
    // A panic elsewhere leaves nothing half done in here.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says what is at work from here on. `false`: nobody wants to know any more.
    pub(super) fn begin(&self, agent: &Agent) -> bool {
        let mut state = self.lock();
        state.agent = Some(agent.clone());
        !state.abandoned
    }

    /// It is at work no longer, and can serve another exchange. `false`: it was shut down.
    pub(super) fn end(&self) -> bool {
        self.lock().agent.take().is_some()
    }

    /// Hands something over, and waits for room before that. `false`: nobody takes it any more.
    pub(super) fn push(&self, news: News) -> bool {
        let mut state = self.lock();
        while state.news.len() >= PIECES_MAX && !state.abandoned {
            state = self.room.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.abandoned {
            return false;
        }
        state.news.push_back(news);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        true
    }

    fn poll(&self, cx: &Context<'_>) -> Poll<News> {
        let mut state = self.lock();
        match state.news.pop_front() {
            Some(news) => {
                self.room.notify_one();
                Poll::Ready(news)
            }
            None => {
                state.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    fn abandon(&self) {
        let mut state = self.lock();
        state.abandoned = true;
        let agent = state.agent.take();
        let news = std::mem::take(&mut state.news);
        let waker = state.waker.take();
        drop(state);
        self.room.notify_one();
        if let Some(agent) = agent {
            agent.agent.shutdown();
        }
        drop((news, waker));
    }
}

impl ThreadedExchange {
    pub(super) const fn new(handover: Arc<Handover>, trouble: Trouble) -> Self {
        Self { handover, trouble, head: None, piece: Vec::new() }
    }
}

impl Drop for ThreadedExchange {
    fn drop(&mut self) {
        self.handover.abandon();
    }
}

impl Exchange for ThreadedExchange {
    fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<IncomingResponse<'_>, ExchangeFailure>> {
        if self.head.is_none() {
            match std::task::ready!(self.handover.poll(cx)) {
                News::Head(head) => self.head = Some(head),
                News::Failed(error) => return Poll::Ready(Err(self.trouble.note(error))),
                // A head comes before anything else.
                News::Piece(_) | News::End => return Poll::Ready(Err(ExchangeFailure::Broken)),
            }
        }
        match &self.head {
            Some(head) => Poll::Ready(Ok(to_head(head))),
            None => Poll::Pending,
        }
    }

    fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<&[u8]>, ExchangeFailure>> {
        match std::task::ready!(self.handover.poll(cx)) {
            News::Piece(piece) => {
                self.piece = piece;
                Poll::Ready(Ok(Some(&self.piece)))
            }
            News::Failed(error) => Poll::Ready(Err(self.trouble.note(error))),
            News::End | News::Head(_) => Poll::Ready(Ok(None)),
        }
    }
}

fn to_head(parts: &Parts) -> IncomingResponse<'_> {
    let mut head = IncomingResponse::new(Status(parts.status.as_u16()));
    for (name, value) in &parts.headers {
        head.field(name.as_str(), value.as_bytes());
    }
    head
}

impl fmt::Debug for ThreadedExchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the head: it may name the session.
        f.debug_struct("ThreadedExchange")
            .field("has_head", &self.head.is_some())
            .finish_non_exhaustive()
    }
}

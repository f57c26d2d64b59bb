//! Scripted exchanges, a manual clock and a counting waker.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use mcp_sansio::Instant;
use mcp_sansio::http::{ExchangeFailure, IncomingResponse, OutgoingRequest};
use mcp_sansio::peer::Status;
use mcp_sansio_async::Timer;
use mcp_sansio_async::http_client::{Exchange, Exchanger};

/// One step of a response body.
#[derive(Clone, Debug)]
pub(crate) enum Piece {
    Bytes(String),
    End,
    Failure(ExchangeFailure),
    /// The same bytes on every poll.
    Endless(&'static str),
}

/// One exchange as seen by the test.
#[derive(Debug, Default)]
pub(crate) struct Script {
    pub(crate) method: &'static str,
    pub(crate) body: String,
    pub(crate) head: Option<Result<(u16, &'static str), ExchangeFailure>>,
    pub(crate) pieces: VecDeque<Piece>,
    /// The number of pieces read so far.
    pub(crate) taken: usize,
    pub(crate) is_dropped: bool,
    waker: Option<Waker>,
}

impl Script {
    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// All exchanges, in the order in which they were started.
#[derive(Clone, Debug, Default)]
pub(crate) struct Network(Rc<RefCell<Vec<Rc<RefCell<Script>>>>>);

impl Network {
    pub(crate) fn count(&self) -> usize {
        self.0.borrow().len()
    }

    pub(crate) fn exchange(&self, number: usize) -> Rc<RefCell<Script>> {
        Rc::clone(&self.0.borrow()[number])
    }

    /// Returns the most recent exchange that carries this method.
    pub(crate) fn find(&self, rpc_method: &str) -> Option<Rc<RefCell<Script>>> {
        let text = format!("\"method\":\"{rpc_method}\"");
        let found = |script: &&Rc<RefCell<Script>>| script.borrow().body.contains(&text);
        self.0.borrow().iter().rev().find(found).cloned()
    }
}

/// Delivers the head of a response.
pub(crate) fn head(script: &Rc<RefCell<Script>>, status: u16, content_type: &'static str) {
    let mut script = script.borrow_mut();
    script.head = Some(Ok((status, content_type)));
    script.wake();
}

/// Fails the exchange before its head arrives.
pub(crate) fn fail(script: &Rc<RefCell<Script>>, failure: ExchangeFailure) {
    let mut script = script.borrow_mut();
    script.head = Some(Err(failure));
    script.wake();
}

/// Delivers a piece of a response body.
pub(crate) fn piece(script: &Rc<RefCell<Script>>, piece: Piece) {
    let mut script = script.borrow_mut();
    script.pieces.push_back(piece);
    script.wake();
}

/// Delivers a complete JSON response to the request of this script.
pub(crate) fn answer(script: &Rc<RefCell<Script>>, result: &str) {
    let id = id(script);
    head(script, 200, "application/json");
    piece(script, Piece::Bytes(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)));
    piece(script, Piece::End);
}

/// Returns the id of the request.
pub(crate) fn id(script: &Rc<RefCell<Script>>) -> String {
    let script = script.borrow();
    let (_, rest) = script.body.split_once("\"id\":").unwrap();
    rest.chars().take_while(char::is_ascii_digit).collect()
}

impl Exchanger for Network {
    type Exchange = Scripted;

    fn send(&mut self, request: &OutgoingRequest) -> Scripted {
        let body = String::from_utf8(request.body.to_vec()).unwrap();
        let script = Script { method: request.method, body, ..Script::default() };
        let script = Rc::new(RefCell::new(script));
        self.0.borrow_mut().push(Rc::clone(&script));
        Scripted { script, shown: String::new() }
    }
}

#[derive(Debug)]
pub(crate) struct Scripted {
    script: Rc<RefCell<Script>>,
    shown: String,
}

impl Exchange for Scripted {
    fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<IncomingResponse<'_>, ExchangeFailure>> {
        let mut script = self.script.borrow_mut();
        match script.head {
            None => {
                script.waker = Some(cx.waker().clone());
                Poll::Pending
            }
            Some(Err(failure)) => Poll::Ready(Err(failure)),
            Some(Ok((status, content_type))) => {
                let mut head = IncomingResponse::new(Status(status));
                head.field("Content-Type", content_type.as_bytes());
                Poll::Ready(Ok(head))
            }
        }
    }

    fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<&[u8]>, ExchangeFailure>> {
        let mut script = self.script.borrow_mut();
        let Some(next) = script.pieces.pop_front() else {
            script.waker = Some(cx.waker().clone());
            return Poll::Pending;
        };
        script.taken += 1;
        self.shown = match next {
            Piece::Bytes(bytes) => bytes,
            Piece::Endless(text) => {
                script.pieces.push_front(Piece::Endless(text));
                text.to_owned()
            }
            Piece::End => return Poll::Ready(Ok(None)),
            Piece::Failure(failure) => return Poll::Ready(Err(failure)),
        };
        Poll::Ready(Ok(Some(self.shown.as_bytes())))
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.script.borrow_mut().is_dropped = true;
    }
}

/// A clock set by the test.
#[derive(Clone, Debug, Default)]
pub(crate) struct ManualClock(pub(crate) Rc<Cell<u64>>);

impl Timer for ManualClock {
    fn now(&self) -> Instant {
        Instant::from_millis(self.0.get())
    }

    fn poll_until(&mut self, _: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        if deadline <= self.now() { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// Counts how often the task was woken.
#[derive(Debug, Default)]
pub(crate) struct WakeCounter(AtomicUsize);

impl WakeCounter {
    /// Returns the number of wakes since the last call.
    pub(crate) fn take(&self) -> usize {
        self.0.swap(0, Ordering::SeqCst)
    }
}

impl Wake for WakeCounter {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

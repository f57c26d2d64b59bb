use std::io::IoSlice;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use http::Response;
use http_body::{Body, Frame, SizeHint};
use mcp_sansio::Instant;
use mcp_sansio::http::{Exhausted, ServerTransmit};

use super::budget::{CallerName, Charge, ConnectionBudget, refusal};
use super::exchange::ServerExchange;
use super::http2::StreamPermit;
use super::runtime::AnyRuntime;
use super::stall::PROGRESS_BYTES;
use crate::StopHandle;

/// Bytes of a response that the HTTP library is given at once.
const CHUNK_BYTES: usize = 64 * 1024;
/// An HTTP/2 response up to this length ends with its only chunk, which saves a frame. The stream
/// of a longer one can be reset until its last chunk has been sent.
const SHORT_BYTES: usize = 16 * 1024;

/// A response body whose bytes are charged to a [`ConnectionBudget`] until the client has read
/// them.
#[derive(Debug)]
pub(super) struct SendBody {
    inner: ServedBody,
    /// The rest of the current frame from the inner body.
    rest: Bytes,
    /// The current or future charge for `rest`.
    charge: Option<Charge>,
    /// `None` for HTTP/1, where a connection stalls as a whole.
    sending: Option<Arc<SendMonitor>>,
    /// Whether the body ends with the last chunk returned.
    is_short: bool,
}

/// Bytes of a response. Dropping it marks them as sent.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    bytes: Bytes,
    sending: Option<Arc<SendMonitor>>,
    _charge: Option<Charge>,
}

impl SendBody {
    /// Returns the response for HTTP/1, or a refusal if it is long and a budget is exhausted: see
    /// [`ConnectionBudget::charge_response`].
    #[must_use]
    pub(super) fn http1(
        response: Response<ServedBody>,
        budget: &ConnectionBudget,
    ) -> Response<Self> {
        let (response, charge) = budget.charge_response(response);
        response.map(|inner| Self::new(inner, charge))
    }

    /// Returns the response for HTTP/2, or a refusal if a budget is exhausted.
    pub(super) fn http2(
        response: Response<ServedBody>,
        budget: &ConnectionBudget,
        sending: impl FnOnce() -> Arc<SendMonitor>,
    ) -> Response<Self> {
        if response.body().is_end_stream() {
            return response.map(|inner| Self::new(inner, None));
        }
        let length = response.body().size_hint().exact().unwrap_or_default();
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        match budget.charge(length, response.body().caller()) {
            Ok(charge) => {
                let is_short = (1..=SHORT_BYTES).contains(&length);
                Self::monitored(response, Some(charge), is_short, sending())
            }
            Err(exhausted) => Self::monitored(refusal(exhausted), None, true, sending()),
        }
    }

    /// Returns a refusal for HTTP/2.
    pub(super) fn refusal(exhausted: Exhausted, sending: Arc<SendMonitor>) -> Response<Self> {
        Self::monitored(refusal(exhausted), None, true, sending)
    }

    /// Returns a refusal for HTTP/2 without a body, which takes no memory if it is not read.
    pub(super) fn bare_refusal(exhausted: Exhausted) -> Response<Self> {
        refusal(exhausted).map(|_| Self::new(ServedBody::default(), None))
    }

    fn monitored(
        response: Response<ServedBody>,
        charge: Option<Charge>,
        is_short: bool,
        sending: Arc<SendMonitor>,
    ) -> Response<Self> {
        response.map(|inner| {
            let mut body = Self::new(inner, charge);
            (body.sending, body.is_short) = (Some(sending), is_short);
            body
        })
    }

    const fn new(inner: ServedBody, charge: Option<Charge>) -> Self {
        let rest = Bytes::new();
        Self { inner, rest, charge, sending: None, is_short: false }
    }

    /// Returns the rest of the frame, or its first part.
    fn split(&mut self) -> Chunk {
        let Some(sending) = &self.sending else {
            let bytes = std::mem::take(&mut self.rest);
            return Chunk { bytes, sending: None, _charge: self.charge.take() };
        };
        let bytes = self.rest.split_to(self.rest.len().min(CHUNK_BYTES));
        sending.begin();
        // The chunks share one allocation, which is freed with the last of them.
        let charge = if self.rest.is_empty() { self.charge.take() } else { None };
        Chunk { bytes, sending: Some(Arc::clone(sending)), _charge: charge }
    }
}

impl Body for SendBody {
    type Data = Chunk;
    type Error = ResponseNotRead;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Chunk>, ResponseNotRead>>> {
        // The end waits as well: until then the stream can be reset.
        if self.sending.as_ref().is_some_and(|sending| sending.is_busy(cx)) {
            return Poll::Pending;
        }
        while self.rest.is_empty() {
            let frame = match ready!(Pin::new(&mut self.inner).poll_frame(cx)) {
                None => return Poll::Ready(None),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                Some(Ok(frame)) => frame,
            };
            let Ok(data) = frame.into_data() else { continue };
            if self.charge.is_none() {
                let caller = self.inner.caller();
                let charge = self.sending.as_ref().map(|it| it.charge(data.len(), caller));
                self.charge = charge;
            }
            self.rest = data;
        }
        Poll::Ready(Some(Ok(Frame::data(self.split()))))
    }

    fn is_end_stream(&self) -> bool {
        let is_end = self.rest.is_empty() && self.inner.is_end_stream();
        is_end && (self.is_short || self.sending.is_none())
    }

    fn size_hint(&self) -> SizeHint {
        match self.inner.size_hint().exact() {
            Some(length) => SizeHint::with_exact(length + self.rest.len() as u64),
            None => SizeHint::default(),
        }
    }
}

impl Drop for SendBody {
    fn drop(&mut self) {
        if let Some(sending) = &self.sending {
            sending.end();
        }
    }
}

impl Buf for Chunk {
    fn remaining(&self) -> usize {
        self.bytes.len()
    }

    fn chunk(&self) -> &[u8] {
        &self.bytes
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        self.bytes.chunks_vectored(slices)
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
        if let Some(sending) = &self.sending
            && !self.bytes.is_empty()
        {
            sending.advance(count);
        }
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        if let Some(sending) = &self.sending {
            sending.finish();
        }
    }
}

// ------------------------------------------------------------------ send monitor

/// Tracks how much of its response the client of an HTTP/2 stream has read.
///
/// The HTTP library holds one chunk at a time, and drops it once it is completely written. While
/// the client's window is closed, hyper does not poll the body, so the time is tracked outside of
/// it.
#[derive(Debug)]
pub(super) struct SendMonitor {
    /// Ends the task of the stream, which resets it.
    task: Option<StopHandle>,
    runtime: Arc<dyn AnyRuntime>,
    budget: ConnectionBudget,
    /// Charge for the stream, in addition to its response.
    _stream: StreamPermit,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Start of the period in which the client has read too little of the current chunk.
    since: Option<Instant>,
    /// Bytes read since then.
    taken: usize,
    /// Whether the task can no longer reset the stream, because it has ended or was told to.
    is_over: bool,
    /// The task, while it waits for the chunk to be written.
    waker: Option<Waker>,
}

/// The state of a stream at a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// The client has read everything available.
    Taken,
    /// The client has until then.
    Until(Instant),
    /// The client has read too little for too long, and its stream can no longer be reset.
    Stuck,
}

impl SendMonitor {
    pub(super) fn new(
        task: Option<StopHandle>,
        runtime: Arc<dyn AnyRuntime>,
        budget: ConnectionBudget,
        stream: StreamPermit,
    ) -> Self {
        Self { task, runtime, budget, _stream: stream, state: Mutex::default() }
    }

    /// Charges a part of a response whose length is unknown. Its stream has its own limits, and can
    /// no longer be refused.
    pub(super) fn charge(&self, bytes: usize, caller: Option<&CallerName>) -> Charge {
        self.budget.charge_always(bytes, caller)
    }

    /// Starts a chunk that the library has taken.
    pub(super) fn begin(&self) {
        let now = self.runtime.now();
        let mut state = self.lock();
        state.since = Some(now);
        state.taken = 0;
    }

    /// Returns whether the library holds a chunk. If so, the task of `cx` is woken when the chunk
    /// is dropped.
    pub(super) fn is_busy(&self, cx: &Context<'_>) -> bool {
        let mut state = self.lock();
        if state.since.is_none() {
            return false;
        }
        if !state.waker.as_ref().is_some_and(|known| known.will_wake(cx.waker())) {
            state.waker = Some(cx.waker().clone());
        }
        true
    }

    /// Records that the client has read a part of the chunk.
    pub(super) fn advance(&self, bytes: usize) {
        let mut state = self.lock();
        state.taken += bytes;
        if state.taken >= PROGRESS_BYTES {
            state.taken = 0;
            state.since = Some(self.runtime.now());
        }
    }

    /// Records that the library has dropped the chunk.
    pub(super) fn finish(&self) {
        let waker = {
            let mut state = self.lock();
            state.since = None;
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Records that the task of the stream has ended.
    pub(super) fn end(&self) {
        self.lock().is_over = true;
    }

    /// Resets the stream if the client has read too little for `stall_timeout`.
    pub(super) fn check(&self, now: Instant, stall_timeout: Duration) -> Progress {
        let mut state = self.lock();
        let Some(since) = state.since else { return Progress::Taken };
        let deadline = since + stall_timeout;
        if deadline > now {
            return Progress::Until(deadline);
        }
        match &self.task {
            Some(task) if !state.is_over => {
                state.is_over = true;
                // The library drops the chunk when it sends the reset.
                state.since = Some(now);
                drop(state);
                task.stop();
                Progress::Until(now + stall_timeout)
            }
            _ => Progress::Stuck,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// ------------------------------------------------------------------ body

/// The body of a response: JSON, or an event stream.
///
/// Dropping a stream before its end tells the server that the client has disconnected.
#[derive(Debug, Default)]
pub struct ServedBody {
    content: Content,
    /// The caller that it counts against, if it is not the peer of the connection.
    caller: Option<CallerName>,
}

#[derive(Debug, Default)]
enum Content {
    #[default]
    Empty,
    Whole(Bytes),
    Stream(ServerExchange),
}

/// The client did not read its response in time, so its connection is aborted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the client does not read its response fast enough")]
pub struct ResponseNotRead;

impl ServedBody {
    pub(super) fn whole(body: Vec<u8>) -> Self {
        if body.is_empty() { Self::default() } else { Content::Whole(body.into()).into() }
    }

    pub(super) fn stream(exchange: ServerExchange) -> Self {
        Content::Stream(exchange).into()
    }

    /// Counts it against a caller other than the peer of the connection.
    pub(super) fn set_caller(&mut self, caller: Option<CallerName>) {
        self.caller = caller;
    }

    /// Returns the caller that it counts against, if it is not the peer of the connection.
    pub(super) const fn caller(&self) -> Option<&CallerName> {
        self.caller.as_ref()
    }
}

impl From<Content> for ServedBody {
    fn from(content: Content) -> Self {
        Self { content, caller: None }
    }
}

impl Body for ServedBody {
    type Data = Bytes;
    type Error = ResponseNotRead;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ResponseNotRead>>> {
        let content = &mut self.content;
        let frame = match content {
            Content::Empty => None,
            Content::Whole(bytes) => Some(Ok(Frame::data(std::mem::take(bytes)))),
            Content::Stream(exchange) => {
                let next = exchange.poll(cx, |transmit| match transmit {
                    ServerTransmit::Chunk(bytes) => {
                        Some(Ok(Frame::data(Bytes::copy_from_slice(bytes))))
                    }
                    ServerTransmit::Abort => Some(Err(ResponseNotRead)),
                    _ => None,
                });
                let frame = std::task::ready!(next);
                if matches!(frame, Some(Ok(_))) {
                    return Poll::Ready(frame);
                }
                frame
            }
        };
        *content = Content::Empty;
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.content, Content::Empty)
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Empty => SizeHint::with_exact(0),
            Content::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Content::Stream(_) => SizeHint::default(),
        }
    }
}

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Poll, ready};
use std::time::Duration;

use http_body::Body;
use mcp_sansio::Instant;
use mcp_sansio::http::Exhausted;

use super::budget::{Charge, ConnectionBudget};
use super::runtime::AnyRuntime;
use super::send_body::{Progress, SendMonitor};
use super::{HttpService, SendBody};
use crate::{Runtime, StopHandle};

/// Bytes charged for a stream in addition to the fields of its request: the library's stream state,
/// a task, and the exchange state.
const STREAM_BYTES: usize = 4 * 1024;
/// Bytes charged for a field in addition to its name and value: an entry in a map that is twice as
/// large as its content.
const FIELD_BYTES: usize = 256;

/// The streams of one HTTP/2 connection: resets streams whose clients do not read their responses,
/// and tracks whether the connection is idle. Clones share the streams.
///
/// A listener has its HTTP library [run](Self::run) the streams, answers requests with
/// [`serve`](Self::serve), and performs the actions that [`check`](Self::check) returns.
#[derive(Clone, Debug)]
pub(super) struct Http2Streams(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    runtime: Arc<dyn AnyRuntime>,
    timeouts: Http2Timeouts,
    budget: ConnectionBudget,
    /// Refusals that the client has not read, in addition to the budget.
    refusals: Arc<()>,
    state: Mutex<State>,
}

/// A permit that a stream holds until its response is read.
#[derive(Debug)]
pub(super) enum StreamPermit {
    /// Its part of the budget.
    Charged(#[expect(dead_code, reason = "held until it is dropped")] Charge),
    /// A place among the unread refusals.
    Refused(#[expect(dead_code, reason = "held until it is dropped")] Arc<()>),
}

/// Unread refusals with a body, for each connection. 16: a client that reads its responses never
/// reaches it. A refusal without a body takes no memory.
const REFUSALS_MAX: usize = 16;

/// Timeouts of an HTTP/2 connection. [`DEFAULT`](Self::DEFAULT) has values for the open Internet.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub(super) struct Http2Timeouts {
    /// For the first request, from when the connection is known to be HTTP/2. 30 s by default.
    pub head: Duration,
    /// For the client to read a response, or 16 KiB of it. 30 s by default.
    pub stall: Duration,
    /// For the next request, while the connection is idle. 5 minutes by default.
    pub idle: Duration,
}

impl Http2Timeouts {
    /// The default values.
    pub(super) const DEFAULT: Self = Self {
        head: Duration::from_secs(30),
        stall: Duration::from_secs(30),
        idle: Duration::from_secs(5 * 60),
    };
}

impl Default for Http2Timeouts {
    fn default() -> Self {
        Self::DEFAULT
    }
}

#[derive(Debug)]
struct State {
    phase: Phase,
    /// Streams that are running.
    running: usize,
    /// The start of the current idle period.
    idle_since: Instant,
    /// Responses in progress, and some that have ended.
    sending: Vec<Weak<SendMonitor>>,
    /// Length of `sending` at which ended responses are removed.
    prune_at: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No stream has been opened yet.
    New,
    Open,
    /// The client was told to open no more streams.
    Closing,
}

/// The action that a connection must take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionAction {
    /// Do nothing before then.
    WaitUntil(Instant),
    /// Shut down gracefully, since the connection has been idle for too long. Then check again.
    Shutdown,
    /// End the connection.
    Close,
}

impl Http2Streams {
    /// Creates the streams of a new connection, whose responses are charged to `budget`, its
    /// [part](super::Budget::connection) of the listener's budget.
    pub(super) fn new(
        timeouts: Http2Timeouts,
        budget: ConnectionBudget,
        runtime: impl Runtime,
    ) -> Self {
        let state = State {
            phase: Phase::New,
            running: 0,
            idle_since: Runtime::now(&runtime),
            sending: Vec::new(),
            prune_at: 16,
        };
        let (runtime, state) = (Arc::new(runtime), Mutex::new(state));
        let refusals = Arc::new(());
        Self(Arc::new(Inner { runtime, timeouts, budget, refusals, state }))
    }

    /// Runs the task of a stream to its end. If its client does not read the response, the task
    /// is dropped early, which resets the stream.
    pub(super) fn run<F: Future>(&self, stream: F) -> impl Future<Output = ()> + use<F> {
        let running = RunningStream::new(&self.0);
        let run = StopHandle::default().run(stream);
        async move {
            let _running = running;
            run.await;
        }
    }

    /// Serves one request in the task of its stream. It is answered with 429 if the connection or
    /// its client holds too many bytes, and with 503 if all connections together do.
    pub(super) fn serve<R: Runtime, B: Body>(
        &self,
        service: &HttpService<R>,
        request: http::Request<B>,
    ) -> impl Future<Output = http::Response<SendBody>> + use<R, B> {
        let fields = request.headers().iter();
        let fields = fields.map(|(name, value)| name.as_str().len() + value.len() + FIELD_BYTES);
        let target = request.uri().path().len() + request.uri().query().map_or(0, str::len);
        let charge = self.0.budget.charge(STREAM_BYTES + target + fields.sum::<usize>(), None);
        let mut served = charge.map(|charge| Some((charge, Box::pin(service.serve(request)))));
        let inner = Arc::clone(&self.0);
        std::future::poll_fn(move |cx| {
            let pending = match &mut served {
                Ok(pending) => pending,
                Err(exhausted) => return Poll::Ready(inner.refuse(*exhausted)),
            };
            let serving = &mut pending.as_mut().expect("it is not polled after its end").1;
            let response = ready!(serving.as_mut().poll(cx));
            let (stream, _) = pending.take().expect("it was just polled");
            let sending = || inner.monitor_response(StreamPermit::Charged(stream));
            Poll::Ready(SendBody::http2(response, &inner.budget, sending))
        })
    }

    /// Resets streams whose clients have read too little in time. Returns the action for the
    /// connection, and when to check again.
    pub(super) fn check(&self) -> ConnectionAction {
        let Inner { runtime, timeouts, state, .. } = &*self.0;
        let now = runtime.now();
        let sending = {
            let mut state = lock(state);
            state.prune();
            state.sending.clone()
        };
        // A response that begins from here on cannot be late before then.
        let mut next = now + timeouts.stall.min(timeouts.idle).max(Duration::from_millis(1));
        let mut is_taken = true;
        for sending in sending.iter().filter_map(Weak::upgrade) {
            match sending.check(now, timeouts.stall) {
                Progress::Taken => {}
                Progress::Stuck => return ConnectionAction::Close,
                Progress::Until(deadline) => {
                    is_taken = false;
                    next = next.min(deadline);
                }
            }
        }
        let mut state = lock(state);
        if state.running > 0 {
            return ConnectionAction::WaitUntil(next);
        }
        if !is_taken {
            state.idle_since = now;
            return ConnectionAction::WaitUntil(next);
        }
        let time = match state.phase {
            Phase::New => timeouts.head,
            Phase::Open => timeouts.idle,
            Phase::Closing => timeouts.stall,
        };
        let deadline = state.idle_since + time;
        if deadline > now {
            return ConnectionAction::WaitUntil(next.min(deadline));
        }
        if state.phase != Phase::Open {
            return ConnectionAction::Close;
        }
        state.phase = Phase::Closing;
        state.idle_since = now;
        ConnectionAction::Shutdown
    }
}

impl Inner {
    fn refuse(&self, exhausted: Exhausted) -> http::Response<SendBody> {
        let permit = Arc::clone(&self.refusals);
        if Arc::strong_count(&permit) > REFUSALS_MAX + 1 {
            return SendBody::bare_refusal(exhausted);
        }
        SendBody::refusal(exhausted, self.monitor_response(StreamPermit::Refused(permit)))
    }

    fn monitor_response(&self, stream: StreamPermit) -> Arc<SendMonitor> {
        let sending = SendMonitor::new(
            StopHandle::current(),
            Arc::clone(&self.runtime),
            self.budget.clone(),
            stream,
        );
        let sending = Arc::new(sending);
        let mut state = lock(&self.state);
        if state.sending.len() >= state.prune_at {
            state.prune();
        }
        state.sending.push(Arc::downgrade(&sending));
        sending
    }
}

impl State {
    /// Removes responses that have ended.
    fn prune(&mut self) {
        self.sending.retain(|sending| sending.strong_count() > 0);
        self.prune_at = (self.sending.len() * 2).max(16);
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A stream that is running.
struct RunningStream(Arc<Inner>);

impl RunningStream {
    fn new(inner: &Arc<Inner>) -> Self {
        let mut state = lock(&inner.state);
        state.running += 1;
        if state.phase == Phase::New {
            state.phase = Phase::Open;
        }
        drop(state);
        Self(Arc::clone(inner))
    }
}

impl Drop for RunningStream {
    fn drop(&mut self) {
        let now = self.0.runtime.now();
        let mut state = lock(&self.0.state);
        state.running -= 1;
        state.idle_since = now;
    }
}

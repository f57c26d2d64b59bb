use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Poll, ready};
use std::time::Duration;

use http_body::Body;
use mcp_sansio::Instant;

use super::budget::{Budget, Charge};
use super::runtime::AnyRuntime;
use super::send_monitor::{Progress, SendMonitor};
use super::{HttpService, SendBody};
use crate::Runtime;
use crate::StopHandle;

/// What a stream counts for beside the fields of its request, in bytes: the library's state of it, a
/// task, and the state of the exchange.
const STREAM_BYTES: usize = 4 * 1024;
/// What a field counts for beside its name and value, in bytes: a place in a map, twice as large as
/// what it holds.
const FIELD_BYTES: usize = 256;

/// The streams of one HTTP/2 connection: resets those whose clients do not take their responses, and
/// tells when the connection is idle. Clones are the same.
///
/// A listener has its HTTP library [run](Self::run) the streams, answers requests with
/// [`serve`](Self::serve), and does what [`check`](Self::check) says.
#[derive(Clone, Debug)]
pub struct Http2Streams(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    runtime: Arc<dyn AnyRuntime>,
    timeouts: Http2Timeouts,
    budget: Budget,
    state: Mutex<State>,
}

/// How long an HTTP/2 connection waits for its client.
#[derive(Clone, Copy, Debug)]
pub struct Http2Timeouts {
    /// For the first request, from when the connection is known to be HTTP/2.
    pub head: Duration,
    /// For a response to be taken, or 16 KiB of it.
    pub stall: Duration,
    /// For the next request, while there is none.
    pub idle: Duration,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    /// Streams that are running.
    running: usize,
    /// Since when none is.
    idle_since: Instant,
    /// Responses under way, and some that no longer are.
    sending: Vec<Weak<SendMonitor>>,
    /// How many of these make it worthwhile to look for those that no longer are.
    prune_at: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// There was no stream yet.
    New,
    Open,
    /// The client was told to open no more streams.
    Closing,
}

/// What a connection is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionAction {
    /// Nothing before then.
    WaitUntil(Instant),
    /// To shut down gracefully: its client has had nothing to ask for long. Then to check again.
    Shutdown,
    /// To end.
    Close,
}

impl Http2Streams {
    /// Those of a new connection, whose responses count against `budget`, its
    /// [part](Budget::part) of that of its listener.
    pub fn new(timeouts: Http2Timeouts, budget: Budget, runtime: impl Runtime) -> Self {
        let state = State {
            phase: Phase::New,
            running: 0,
            idle_since: Runtime::now(&runtime),
            sending: Vec::new(),
            prune_at: 16,
        };
        let (runtime, state) = (Arc::new(runtime), Mutex::new(state));
        Self(Arc::new(Inner { runtime, timeouts, budget, state }))
    }

    /// Runs the task of a stream until it is done. It is dropped before where its client does not
    /// take the response, which resets the stream.
    pub fn run<F: Future>(&self, stream: F) -> impl Future<Output = ()> + use<F> {
        let running = RunningStream::new(&self.0);
        let run = StopHandle::default().run(stream);
        async move {
            let _running = running;
            run.await;
        }
    }

    /// Serves one request in the task of its stream. It is answered 503 where the connection, or all
    /// of them together, hold too much.
    pub fn serve<R: Runtime, B: Body>(
        &self,
        service: &HttpService<R>,
        request: http::Request<B>,
    ) -> impl Future<Output = http::Response<SendBody>> + use<R, B> {
        let fields = request.headers().iter();
        let fields = fields.map(|(name, value)| name.as_str().len() + value.len() + FIELD_BYTES);
        let target = request.uri().path().len() + request.uri().query().map_or(0, str::len);
        let charge = self.0.budget.charge(STREAM_BYTES + target + fields.sum::<usize>());
        let mut served = charge.map(|charge| (charge, Box::pin(service.serve(request))));
        let inner = Arc::clone(&self.0);
        std::future::poll_fn(move |cx| {
            let Some((_, serving)) = &mut served else {
                return Poll::Ready(SendBody::refusal());
            };
            let response = ready!(serving.as_mut().poll(cx));
            let (stream, _) = served.take().expect("it was there");
            let sending = || inner.monitor_response(stream);
            Poll::Ready(SendBody::http2(response, &inner.budget, sending))
        })
    }

    /// Resets streams whose clients have taken too little for too long, and says what the connection
    /// is to do, and when to ask again.
    pub fn check(&self) -> ConnectionAction {
        let Inner { runtime, timeouts, state, .. } = &*self.0;
        let now = runtime.now();
        let sending = {
            let mut state = lock(state);
            state.prune();
            state.sending.clone()
        };
        // What begins from here on is not late before.
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
    fn monitor_response(&self, stream: Charge) -> Arc<SendMonitor> {
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
    /// Forgets responses that are no longer under way.
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

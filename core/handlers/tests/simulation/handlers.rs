//! Servers and clients written as handlers, over byte streams with the same faults as for bare
//! machines.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use mcp_sansio::framing::FrameError;
use mcp_sansio::peer::Failure;
use mcp_sansio::protocol::{CallToolResult, ElicitParams, ElicitResult, SubscriptionFilter};
use mcp_sansio::{Instant, LoggingLevel, Revision, Revisions};
use mcp_sansio_handlers::endpoint::{ClientEndpoint, Endpoint, ServerEndpoint};
use mcp_sansio_handlers::{
    Call, CallFuture, Client, ClientError, Elicit, HandlerError, Host, HostRequest, Local, Server,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::coverage::Happening;
use crate::messages::{self, Answer};
use crate::played::Played;
use crate::scene::Scene;
use crate::side::Side;
use crate::streams::Maker;

/// Arguments of the only tool.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
struct Job {
    n: u64,
}

/// Schema of the elicited input.
#[derive(Debug, Deserialize, JsonSchema)]
struct Confirmation {
    #[allow(dead_code, reason = "the answer is never read")]
    sure: bool,
}

/// The next action of a handler, chosen by the schedule.
#[derive(Clone, Copy, Debug)]
enum Step {
    Report,
    Log,
    Answer,
    Fail,
    Ask,
}

/// The running handlers.
#[derive(Debug, Default)]
struct RunningHandlers {
    runs: u64,
    active: BTreeMap<u64, Run>,
}

#[derive(Debug, Default)]
struct Run {
    steps: VecDeque<Step>,
    waker: Option<Waker>,
}

/// Registration of a running handler, removed when the handler finishes or is dropped.
struct RunGuard {
    handlers: Rc<RefCell<RunningHandlers>>,
    run: u64,
}

impl RunGuard {
    fn new(handlers: Rc<RefCell<RunningHandlers>>) -> Self {
        let mut open = handlers.borrow_mut();
        open.runs += 1;
        let run = open.runs;
        open.active.insert(run, Run::default());
        drop(open);
        Self { handlers, run }
    }

    async fn next_step(&self) -> Step {
        poll_fn(|cx| {
            let mut handlers = self.handlers.borrow_mut();
            let state = handlers
                .active
                .get_mut(&self.run)
                .expect("a run is registered until its guard is dropped");
            match state.steps.pop_front() {
                Some(order) => Poll::Ready(order),
                None => {
                    state.waker = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }
}

impl Drop for RunGuard {
    fn drop(&mut self) {
        self.handlers.borrow_mut().active.remove(&self.run);
    }
}

async fn work(
    handlers: Rc<RefCell<RunningHandlers>>,
    call: Call<Job>,
) -> Result<String, HandlerError> {
    let guard = RunGuard::new(handlers);
    let (n, run) = (call.arguments.n, guard.run);
    let (mut progress, mut logs) = (0, 0);
    loop {
        match guard.next_step().await {
            Step::Report => {
                progress += 1;
                call.progress(messages::progress_at(run, progress), None, "on its way");
            }
            Step::Log => {
                logs += 1;
                call.log(LoggingLevel::Emergency, &logs);
            }
            Step::Ask if call.input::<Confirmation>("sure")?.is_none() => {
                return call
                    .require_input("sure", Elicit::form::<Confirmation>("Confirmation?"))
                    .into_result();
            }
            Step::Answer | Step::Ask => {
                return Ok(format!(
                    r#"{{"n":{n},"run":{run},"progress":{progress},"logs":{logs}}}"#
                ));
            }
            Step::Fail => return Err(HandlerError::failed("not today")),
        }
    }
}

/// Counts wake-ups.
#[derive(Default)]
struct CountingWaker(AtomicUsize);

impl Wake for CountingWaker {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A server of handlers.
struct HandlerServer {
    endpoint: ServerEndpoint<Local>,
    handlers: Rc<RefCell<RunningHandlers>>,
    wakeups: Arc<CountingWaker>,
    _played: Played,
}

impl HandlerServer {
    fn go_on(&mut self, scene: &Scene) {
        let waker = Waker::from(Arc::clone(&self.wakeups));
        loop {
            let before = self.wakeups.0.load(Ordering::Relaxed);
            self.endpoint.poll_handlers(&mut Context::from_waker(&waker), scene.now);
            if self.wakeups.0.load(Ordering::Relaxed) == before {
                return;
            }
        }
    }
}

impl Side for HandlerServer {
    fn take(&mut self, frame: Result<&[u8], FrameError>, scene: &mut Scene) {
        self.endpoint.handle_frame(frame, scene.now);
        self.go_on(scene);
    }

    fn end(&mut self, scene: &mut Scene) {
        self.endpoint.handle_eof(scene.now);
        self.go_on(scene);
        assert!(self.endpoint.is_closed());
    }

    fn wake(&mut self, scene: &mut Scene) {
        self.endpoint.handle_timeout(scene.now);
        self.go_on(scene);
    }

    fn act(&mut self, scene: &mut Scene) {
        let mut handlers = self.handlers.borrow_mut();
        let runs: Vec<u64> = handlers.active.keys().copied().collect();
        if let Some(run) = scene.random.pick(&runs) {
            let order = match scene.random.below(if scene.calm { 3 } else { 12 }) {
                0 | 1 => Step::Answer,
                2 => Step::Fail,
                3 => Step::Ask,
                4..=7 => Step::Report,
                _ => Step::Log,
            };
            scene.note(format_args!("run {run} is to {order:?}"));
            let state = handlers.active.get_mut(run).expect("it is there");
            state.steps.push_back(order);
            if let Some(waker) = state.waker.take() {
                waker.wake();
            }
        }
        drop(handlers);
        self.go_on(scene);
    }

    fn transmit(&mut self, write: &mut dyn FnMut(&[u8]) -> usize) {
        self.endpoint.transmit(write);
    }

    fn deadline(&self) -> Option<Instant> {
        self.endpoint.poll_timeout()
    }

    fn assert_consistent(&self) {
        self.endpoint.assert_consistent();
    }

    fn is_congested(&self) -> bool {
        self.endpoint.is_congested()
    }

    fn is_closed(&self) -> bool {
        self.endpoint.is_closed()
    }

    fn is_drained(&self) -> bool {
        self.endpoint.is_drained()
    }

    fn pending(&self) -> usize {
        self.handlers.borrow().active.len()
    }

    fn leave(&mut self, scene: &mut Scene) {
        self.endpoint.handle().close();
        self.go_on(scene);
    }
}

/// A pending call.
struct Awaited {
    n: u64,
    future: Pin<Box<CallFuture<CallToolResult>>>,
    /// Progress that was received, if it was requested.
    progress: Option<Arc<Mutex<Vec<f64>>>>,
}

/// A client of handlers and futures.
struct HandlerClient {
    name: String,
    endpoint: ClientEndpoint<Local>,
    client: Client,
    calls: Vec<Awaited>,
    wakeups: Arc<CountingWaker>,
    _played: Played,
}

impl HandlerClient {
    fn go_on(&mut self, scene: &mut Scene) {
        let waker = Waker::from(Arc::clone(&self.wakeups));
        loop {
            let before = self.wakeups.0.load(Ordering::Relaxed);
            let mut cx = Context::from_waker(&waker);
            self.endpoint.poll_handlers(&mut cx, scene.now);
            let mut at = 0;
            while let Some(call) = self.calls.get_mut(at) {
                match call.future.as_mut().poll(&mut cx) {
                    Poll::Pending => at += 1,
                    Poll::Ready(outcome) => {
                        let call = self.calls.swap_remove(at);
                        ended(&self.name, &call, outcome, scene);
                    }
                }
            }
            if self.wakeups.0.load(Ordering::Relaxed) == before {
                return;
            }
        }
    }
}

fn ended(
    name: &str,
    call: &Awaited,
    outcome: Result<CallToolResult, ClientError>,
    scene: &mut Scene,
) {
    let n = call.n;
    match outcome {
        Ok(result) => {
            scene.note(format_args!("{name} received the response to number {n}"));
            scene.count(Happening::Succeeded);
            let text = result.content.iter().find_map(|block| block.as_text());
            let Some(answer) = text.and_then(|text| serde_json::from_str::<Answer>(text).ok())
            else {
                return assert_eq!(result.is_error, Some(true), "{result:?}");
            };
            assert_eq!(answer.n, n, "{name} received the response to another call");
            if let Some(progress) = &call.progress {
                let heard = progress.lock().expect("nobody panicked");
                let of_run = heard.iter().map(|at| messages::run_and_step(*at));
                let steps: Vec<u64> =
                    of_run.filter(|(run, _)| *run == answer.run).map(|(_, step)| step).collect();
                assert!(steps.iter().copied().eq(1..=answer.progress), "{steps:?}: {answer:?}");
            }
        }
        Err(error) => {
            scene.note(format_args!("{name}: number {n} failed: {error}"));
            match error {
                ClientError::Failed(Failure::Refused(_)) => scene.count(Happening::Refused),
                ClientError::TimedOut { .. } => {
                    scene.count(Happening::TimedOut);
                }
                ClientError::Failed(Failure::ConnectionLost)
                | ClientError::Closed(_)
                | ClientError::TaskLost(_) => {
                    scene.count(Happening::ConnectionLost);
                }
                ClientError::NotSent(_)
                | ClientError::Failed(
                    Failure::InputRefused { .. } | Failure::TooManyRounds { .. },
                ) => {}
                other => panic!("{name}: {other}"),
            }
        }
    }
}

impl Side for HandlerClient {
    fn take(&mut self, frame: Result<&[u8], FrameError>, scene: &mut Scene) {
        self.endpoint.handle_frame(frame, scene.now);
        self.go_on(scene);
    }

    fn end(&mut self, scene: &mut Scene) {
        self.endpoint.handle_eof(scene.now);
        self.go_on(scene);
        assert!(self.calls.is_empty(), "calls are pending after the end");
    }

    fn wake(&mut self, scene: &mut Scene) {
        self.endpoint.handle_timeout(scene.now);
        self.go_on(scene);
    }

    fn act(&mut self, scene: &mut Scene) {
        match scene.random.below(12) {
            _ if scene.calm => {}
            0..=5 => {
                let n = scene.serial();
                let mut call = self.client.call_tool("work", &Job { n });
                if scene.random.once_in(3) {
                    call = call.timeout(Duration::from_millis(100 + scene.random.below(20_000)));
                }
                let progress = scene.random.once_in(2).then(Arc::default);
                if let Some(heard) = &progress {
                    let heard: Arc<Mutex<Vec<f64>>> = Arc::clone(heard);
                    call = call.on_progress(move |progress| {
                        let mut heard = heard.lock().expect("nobody panicked");
                        let grows = heard.last().is_none_or(|last| progress.progress > *last);
                        assert!(grows, "progress does not increase");
                        heard.push(progress.progress);
                    });
                }
                scene.count(Happening::Called);
                let future = Box::pin(call.into_future());
                self.calls.push(Awaited { n, future, progress });
            }
            6 | 7 if !self.calls.is_empty() => {
                scene.count(Happening::Cancelled);
                let at = scene.random.index(self.calls.len());
                drop(self.calls.swap_remove(at));
            }
            8 => {
                // Dropped at once: the subscription ends before its request is sent, or on the
                // server.
                let filter = SubscriptionFilter::new().tools_list_changed(true);
                drop(self.client.subscribe(filter));
            }
            9 if scene.random.once_in(12) => {
                scene.count(Happening::Closed);
                self.client.close();
            }
            _ => {}
        }
        self.go_on(scene);
    }

    fn transmit(&mut self, write: &mut dyn FnMut(&[u8]) -> usize) {
        self.endpoint.transmit(write);
    }

    fn deadline(&self) -> Option<Instant> {
        self.endpoint.poll_timeout()
    }

    fn assert_consistent(&self) {
        self.endpoint.assert_consistent();
    }

    fn is_congested(&self) -> bool {
        self.endpoint.is_congested()
    }

    fn is_closed(&self) -> bool {
        self.endpoint.is_closed()
    }

    fn is_drained(&self) -> bool {
        self.endpoint.is_drained()
    }

    fn pending(&self) -> usize {
        self.calls.len()
    }

    fn leave(&mut self, scene: &mut Scene) {
        self.client.close();
        self.go_on(scene);
    }
}

/// Creates handlers over byte streams.
#[derive(Debug)]
pub(crate) struct Handlers;

impl Maker for Handlers {
    fn client(&mut self, name: String, scene: &mut Scene) -> Box<dyn Side> {
        let declines = scene.random.once_in(2);
        let revision = scene.random.one_of(Revision::ALL);
        let revisions =
            if scene.random.once_in(4) { Revisions::ALL } else { Revisions::only(revision) };
        let keep_alive = scene.random.once_in(3).then_some(Duration::from_secs(7));
        let host = Host::local("guest", "1")
            .on_elicit(move |_: HostRequest<ElicitParams>| {
                if declines {
                    return ElicitResult::decline();
                }
                ElicitResult::accept([("sure".to_owned(), true.into())].into_iter().collect())
            })
            .revisions(revisions)
            .timeouts(messages::timeouts(keep_alive));
        let (tape, played) = Played::begin();
        let tape = Mutex::new(tape);
        let host = host.record(move |_| tape.lock().unwrap().take());
        let (client, endpoint) = host.connect(scene.random.below(u64::MAX), scene.now);
        Box::new(HandlerClient {
            name,
            endpoint,
            client,
            calls: Vec::new(),
            wakeups: Arc::default(),
            _played: played,
        })
    }

    fn server(&mut self, _name: String, scene: &mut Scene) -> Box<dyn Side> {
        let handlers = Rc::new(RefCell::new(RunningHandlers::default()));
        let server = Server::local("desk", "1").logging().tool("work", "Work", {
            let handlers = Rc::clone(&handlers);
            move |call: Call<Job>| work(Rc::clone(&handlers), call)
        });
        let (tape, played) = Played::begin();
        let tape = Mutex::new(tape);
        let server = server.record(move |_| tape.lock().unwrap().take());
        let endpoint = server.endpoint(scene.random.below(u64::MAX)).expect("one tool");
        Box::new(HandlerServer { endpoint, handlers, wakeups: Arc::default(), _played: played })
    }

    fn line_length_max(&self) -> usize {
        1 << 20
    }
}

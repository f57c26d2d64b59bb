//! The HTTP server on a runtime that the tests advance step by step.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame};
use mcp_sansio::Instant;
use mcp_sansio::http::{HttpServerOptions, ServerTimeouts};
use mcp_sansio_async::http_server::HttpService;
use mcp_sansio_async::{Runtime, Timer};
use mcp_sansio_handlers::{Call, NoArguments, Server};

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A runtime whose clock only advances, and whose tasks are only polled, when a test says so.
#[derive(Clone, Default)]
struct ManualRuntime {
    now: Arc<Mutex<Instant>>,
    tasks: Arc<Mutex<Vec<Task>>>,
}

impl ManualRuntime {
    fn advance(&self, time: Duration) {
        let mut now = self.now.lock().unwrap();
        *now = *now + time;
    }

    /// Polls each task once and removes the finished ones.
    fn run_tasks(&self) {
        let mut tasks = std::mem::take(&mut *self.tasks.lock().unwrap());
        tasks.retain_mut(|task| poll(task).is_pending());
        self.tasks.lock().unwrap().append(&mut tasks);
    }

    fn tasks(&self) -> usize {
        self.tasks.lock().unwrap().len()
    }
}

impl fmt::Debug for ManualRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManualRuntime").finish_non_exhaustive()
    }
}

impl Timer for ManualRuntime {
    fn now(&self) -> Instant {
        *self.now.lock().unwrap()
    }

    fn poll_until(&mut self, _: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        if Timer::now(self) >= deadline { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Runtime for ManualRuntime {
    type Timer = Self;

    const HANDLERS_MAX: usize = 1;

    fn current() -> Self {
        Self::default()
    }

    fn timer(&self) -> Self {
        self.clone()
    }

    fn spawn<F: Future<Output = ()> + Send + 'static>(&self, task: F) {
        self.tasks.lock().unwrap().push(Box::pin(task));
    }
}

/// A runtime that drops its tasks.
#[derive(Clone, Debug)]
struct OutOfThreads;

impl Runtime for OutOfThreads {
    type Timer = ManualRuntime;

    fn current() -> Self {
        Self
    }

    fn timer(&self) -> ManualRuntime {
        ManualRuntime::default()
    }

    fn spawn<F: Future<Output = ()> + Send + 'static>(&self, _: F) {}
}

fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// A body that never arrives.
struct Silence;

impl Body for Silence {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Poll::Pending
    }
}

fn call<B>(tool: &str, body: B) -> http::Request<B> {
    http::Request::post("/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", tool)
        .body(body)
        .unwrap()
}

fn message(tool: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","_meta":{{
        "io.modelcontextprotocol/protocolVersion":"2026-07-28",
        "io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
    )
}

/// Returns a server with a tool that waits until the test signals it.
fn service(
    runtime: &ManualRuntime,
    options: HttpServerOptions,
) -> (HttpService<ManualRuntime>, Arc<AtomicBool>) {
    let goes_on = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&goes_on);
    let server = Server::new("held", "1").tool("wait", "Waits", move |_: Call<NoArguments>| {
        let told = Arc::clone(&told);
        async move {
            poll_fn(|_| match told.load(Ordering::Relaxed) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            })
            .await;
            "waited"
        }
    });
    let service = HttpService::with_runtime(&server, options, [0; 32], 7, runtime.clone()).unwrap();
    (service, goes_on)
}

#[test]
fn a_body_that_never_arrives_times_out() {
    let runtime = ManualRuntime::default();
    let mut timeouts = ServerTimeouts::default();
    timeouts.body = Duration::from_secs(7);
    let (service, _) = service(&runtime, HttpServerOptions::new().timeouts(timeouts));
    let mut served = pin!(service.serve(call("wait", Silence)));
    assert!(poll(&mut served).is_pending());
    runtime.advance(Duration::from_millis(6_999));
    assert!(poll(&mut served).is_pending());
    runtime.advance(Duration::from_millis(1));
    let Poll::Ready(response) = poll(&mut served) else { panic!("the request is still pending") };
    assert_eq!(response.status(), 408);
}

#[test]
fn a_pending_handler_runs_as_a_task_until_it_finishes_or_its_client_disconnects() {
    let runtime = ManualRuntime::default();
    let (service, goes_on) = service(&runtime, HttpServerOptions::new());
    runtime.run_tasks();
    // The timer task.
    assert_eq!(runtime.tasks(), 1);
    let mut gone = Box::pin(service.serve(call("wait", message("wait"))));
    assert!(poll(&mut gone).is_pending());
    assert_eq!(runtime.tasks(), 2);
    drop(gone);
    runtime.run_tasks();
    assert_eq!(runtime.tasks(), 1);
    let mut served = pin!(service.serve(call("wait", message("wait"))));
    assert!(poll(&mut served).is_pending());
    runtime.run_tasks();
    assert_eq!(runtime.tasks(), 2);
    goes_on.store(true, Ordering::Relaxed);
    runtime.run_tasks();
    assert_eq!(runtime.tasks(), 1);
    let Poll::Ready(response) = poll(&mut served) else { panic!("the request is still pending") };
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "application/json");
}

#[test]
fn a_server_has_no_more_handlers_than_its_runtime_can_run() {
    let runtime = ManualRuntime::default();
    let (service, _) = service(&runtime, HttpServerOptions::new());
    let mut first = pin!(service.serve(call("wait", message("wait"))));
    assert!(poll(&mut first).is_pending());
    let mut second = pin!(service.serve(call("wait", message("wait"))));
    let Poll::Ready(response) = poll(&mut second) else { panic!("the request is still pending") };
    assert_eq!(response.status(), 503);
}

#[test]
fn a_service_whose_timer_task_cannot_start_is_not_created() {
    let server = Server::new("s", "1");
    let refused = HttpService::<OutOfThreads>::new(&server, HttpServerOptions::new()).unwrap_err();
    assert!(refused.to_string().contains("out of threads"), "{refused}");
}

#[test]
fn dropping_the_service_ends_all_tasks() {
    let runtime = ManualRuntime::default();
    let (service, _) = service(&runtime, HttpServerOptions::new());
    runtime.run_tasks();
    assert_eq!(runtime.tasks(), 1);
    let mut closed = Box::pin(service.close());
    assert!(poll(&mut closed).is_ready());
    drop(closed);
    drop(service);
    runtime.run_tasks();
    assert_eq!(runtime.tasks(), 0);
}

//! Deadlines and tasks of a service, on a paused clock.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Waker};
use std::time::Duration;

use http_body::Body;
use mcp_sansio::http::HttpServerOptions;
use mcp_sansio_async::{Runtime, http_server};
use mcp_sansio_tokio::runtime::{TokioRuntime, TokioTimer};
use mcp_sansio_tokio::{Call, HttpService, NoArguments, Server};
use tokio::runtime::Handle;
use tokio::time::Instant as Moment;

/// Counts the polls of the first task spawned, which is the timer task.
#[derive(Clone, Debug)]
struct Counting {
    runtime: TokioRuntime,
    spawned: Arc<AtomicUsize>,
    polls: Arc<AtomicUsize>,
}

impl Runtime for Counting {
    type Timer = TokioTimer;

    fn current() -> Self {
        let runtime = TokioRuntime::current();
        Self { runtime, spawned: Arc::default(), polls: Arc::default() }
    }

    fn timer(&self) -> TokioTimer {
        self.runtime.timer()
    }

    fn spawn<F: Future<Output = ()> + Send + 'static>(&self, task: F) {
        if self.spawned.fetch_add(1, Ordering::Relaxed) > 0 {
            return self.runtime.spawn(task);
        }
        let (polls, mut task) = (Arc::clone(&self.polls), Box::pin(task));
        self.runtime.spawn(poll_fn(move |cx| {
            polls.fetch_add(1, Ordering::Relaxed);
            task.as_mut().poll(cx)
        }));
    }
}

fn server() -> Server {
    Server::new("clocked", "1").tool("plain", "Answers", |_: Call<NoArguments>| "plain").tool(
        "wait",
        "Waits",
        async |_: Call<NoArguments>| {
            std::future::pending::<()>().await;
            "never"
        },
    )
}

/// Returns a service, and a counter of its timer task's polls.
fn counted() -> (http_server::HttpService<Counting>, Arc<AtomicUsize>) {
    let runtime = Counting::current();
    let polls = Arc::clone(&runtime.polls);
    let options = HttpServerOptions::new();
    let server = server();
    let service = http_server::HttpService::with_runtime(&server, options, [0; 32], 7, runtime);
    (service.unwrap(), polls)
}

fn call(tool: &str) -> http::Request<String> {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","_meta":{{
        "io.modelcontextprotocol/protocolVersion":"2026-07-28",
        "io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
    );
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

#[tokio::test(start_paused = true)]
async fn only_an_earlier_deadline_wakes_the_timer_task() {
    let (service, polls) = counted();
    tokio::task::yield_now().await;
    let start = Moment::now();
    let response = service.serve(call("wait")).await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let opened = start.elapsed();
    assert!(opened.as_secs() == 5 && opened.subsec_millis() <= 1, "{opened:?}");
    let mut body = pin!(response.into_body());
    for count in 1..=240 {
        poll_fn(|cx| body.as_mut().poll_frame(cx)).await.unwrap().unwrap();
        assert_eq!(start.elapsed().as_secs(), 5 + count * 15);
    }
    let polls = polls.load(Ordering::Relaxed);
    // The first poll, the call, the opening of the stream, and each deadline.
    assert!(polls <= 3 + 1 + 240, "{polls}");
}

#[tokio::test(start_paused = true)]
async fn a_synchronous_call_is_answered_inline_without_wakeups() {
    let (service, polls) = counted();
    tokio::task::yield_now().await;
    let (before, tasks) = (polls.load(Ordering::Relaxed), alive());
    for _ in 0..100 {
        let served = pin!(service.serve(call("plain")));
        let polled = served.poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_ready());
        assert_eq!(alive(), tasks);
        tokio::task::yield_now().await;
    }
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(polls.load(Ordering::Relaxed), before);
}

fn alive() -> usize {
    Handle::current().metrics().num_alive_tasks()
}

#[tokio::test(start_paused = true)]
async fn the_timer_task_and_handlers_end_with_the_last_clone() {
    let service = HttpService::new(&server(), HttpServerOptions::new()).unwrap();
    let clone = service.clone();
    let mut served = Box::pin(service.serve(call("wait")));
    let polled = Pin::new(&mut served).poll(&mut Context::from_waker(Waker::noop()));
    assert!(polled.is_pending());
    assert_eq!(alive(), 2);
    drop(served);
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(alive(), 1);
    drop(service);
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(alive(), 1);
    drop(clone);
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(alive(), 0);
}

#[test]
fn a_body_may_be_dropped_where_there_is_no_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_time().start_paused(true).build().unwrap();
    let response = runtime.block_on(async { counted().0.serve(call("wait")).await });
    drop(response);
    assert_eq!(
        runtime.block_on(async {
            tokio::task::yield_now().await;
            alive()
        }),
        0
    );
}

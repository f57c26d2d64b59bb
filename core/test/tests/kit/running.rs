//! How handlers run: blocking ones, and those that panic.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};

use mcp_sansio::peer::Event;
use mcp_sansio::{ErrorCode, PanicGuard};
use mcp_sansio_handlers::{Call, Client, ClientError, Host, NoArguments, Server, blocking};
use mcp_sansio_test::{Pair, Transport, connect, connect_http};

use crate::text;

fn host() -> Host {
    Host::new("test", "1.0.0")
}

/// Counts the runs of a blocking tool, and those whose request was cancelled before.
#[derive(Clone, Default)]
struct Runs(Arc<[AtomicUsize; 2]>);

impl Runs {
    fn counts(&self) -> [usize; 2] {
        [0, 1].map(|it| self.0[it].load(Ordering::SeqCst))
    }

    fn server(&self) -> Server {
        let runs = self.clone();
        crate::server().tool(
            "slow",
            "Blocks",
            blocking(move |call: Call<NoArguments>| {
                runs.0[usize::from(call.is_cancelled())].fetch_add(1, Ordering::SeqCst);
                call.progress(1.0, None, "half");
                "done"
            }),
        )
    }
}

fn other_requests_come_first<T: Transport>((client, mut pair): (Client, Pair<T>), runs: &Runs) {
    let mut slow = pin!(client.call_tool("slow", &NoArguments {}).into_future());
    assert!(slow.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert_eq!(text(&pair.run(client.call_tool("now", &NoArguments {})).unwrap()), "noon");
    assert_eq!(runs.counts(), [0, 0], "{}", pair.transcript);
    assert_eq!(text(&pair.run(slow).unwrap()), "done");
    assert_eq!(runs.counts(), [1, 0], "{}", pair.transcript);
}

#[test]
fn a_blocking_handler_runs_when_other_requests_are_answered() {
    let runs = Runs::default();
    other_requests_come_first(connect(&runs.server(), &host()), &runs);
    let runs = Runs::default();
    other_requests_come_first(connect_http(&runs.server(), &host(), None), &runs);
}

#[test]
fn a_blocking_handler_sees_that_its_request_was_cancelled_before_it_ran() {
    let runs = Runs::default();
    let (client, mut pair) = connect(&runs.server(), &host());
    let mut slow = Box::pin(client.call_tool("slow", &NoArguments {}).into_future());
    assert!(slow.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert!(pair.step());
    assert_eq!(runs.counts(), [0, 0], "{}", pair.transcript);
    drop(slow);
    pair.run_until_idle();
    assert_eq!(runs.counts(), [0, 1], "{}", pair.transcript);
}

#[test]
fn a_spawner_of_the_application_is_used_instead() {
    let runs = Runs::default();
    let server = runs.server().spawner(|job| job());
    let (client, mut pair) = connect(&server, &host());
    let mut slow = pin!(client.call_tool("slow", &NoArguments {}).into_future());
    assert!(slow.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert!(pair.step());
    assert_eq!(runs.counts(), [1, 0]);
}

fn fragile() -> Server {
    crate::server()
        .tool("at-once", "", |_: Call<NoArguments>| -> &str { panic!("for the test") })
        .tool("polled", "", async |_: Call<NoArguments>| -> &str { panic!("for the test") })
        .tool("blocking", "", blocking(|_: Call<NoArguments>| -> &str { panic!("for the test") }))
}

fn guard() -> PanicGuard {
    PanicGuard::new(|function| catch_unwind(AssertUnwindSafe(function)))
}

fn panics_are_contained<T: Transport>(open: impl FnOnce(&Server) -> (Client, Pair<T>)) {
    let reports = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&reports);
    let (client, mut pair) = open(&fragile().observe(move |event| {
        if let Event::HandlerPanicked(panicked) = event {
            seen.lock().unwrap().push(panicked.to_string());
        }
    }));
    pair.catch_panics(guard());
    for tool in ["at-once", "polled", "blocking"] {
        let error: ClientError = pair.run(client.call_tool(tool, &NoArguments {})).unwrap_err();
        let refusal = error.as_refusal().expect(tool);
        assert_eq!(refusal.code, ErrorCode::INTERNAL_ERROR, "{tool}");
        assert_eq!(refusal.message, format!("the handler of tool `{tool}` panicked"));
        let report = format!("the handler of tool `{tool}` panicked: for the test");
        assert_eq!(std::mem::take(&mut *reports.lock().unwrap()), [report]);
        assert_eq!(text(&pair.run(client.call_tool("now", &NoArguments {})).unwrap()), "noon");
    }
}

#[test]
fn a_caught_panic_is_an_internal_error_and_the_connection_stays_open() {
    panics_are_contained(|server| connect(server, &host()));
    panics_are_contained(|server| connect_http(server, &host(), None));
}

#[test]
fn a_restarted_server_catches_panics_and_queues_blocking_handlers() {
    let (client, mut pair) = connect_http(&fragile(), &host(), None);
    pair.catch_panics(guard());
    let now = pair.now();
    let restarted = fragile().http(mcp_sansio::http::HttpServerOptions::new(), [1; 32], 1).unwrap();
    pair.transport.restart(restarted, now);
    for tool in ["at-once", "blocking"] {
        let error = pair.run(client.call_tool(tool, &NoArguments {})).unwrap_err();
        assert_eq!(error.as_refusal().unwrap().code, ErrorCode::INTERNAL_ERROR);
    }
}

#[test]
#[should_panic(expected = "for the test")]
fn a_panic_of_a_blocking_handler_fails_a_test_that_does_not_catch_it() {
    let (client, mut pair) = connect(&fragile(), &host());
    let _ = pair.run(client.call_tool("blocking", &NoArguments {}));
}

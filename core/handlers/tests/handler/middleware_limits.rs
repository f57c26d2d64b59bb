//! Limits of time and rate around handlers, and the log around them.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use mcp_sansio::peer::Timeouts;
use mcp_sansio::{ErrorCode, Instant, Revision, Revisions};
use mcp_sansio_handlers::middleware::{
    AccessLog, AccessOutcome, MiddlewareResult, Next, RateLimit, ServerRequest, when,
};
use mcp_sansio_handlers::{
    Call, Client, ClientError, HandlerError, Host, Local, NoArguments, Server, blocking,
};
use mcp_sansio_test::{Identity, Pair, Transport};

use crate::task_client::{Gate, TaskClient, settings};
use crate::{connect, text};

const SECOND: Duration = Duration::from_secs(1);

/// Counts the values that are not dropped.
#[derive(Clone, Default)]
struct Alive(Arc<()>);

impl Alive {
    fn count(&self) -> usize {
        Arc::strong_count(&self.0) - 1
    }
}

/// A server with a handler that waits for the gate, and the number of those that wait.
fn waiting(gate: &Gate) -> (Server, Alive) {
    let (gate, alive) = (gate.clone(), Alive::default());
    let running = alive.clone();
    let server = Server::new("s", "1").tool("wait", "", move |_: Call<NoArguments>| {
        let (gate, one) = (gate.clone(), Arc::clone(&running.0));
        async move {
            gate.passed().await;
            drop(one);
            "done"
        }
    });
    (server, alive)
}

fn call<T: Transport>(
    client: &Client,
    pair: &mut Pair<T>,
) -> Result<mcp_sansio::protocol::CallToolResult, ClientError> {
    pair.run(client.call_tool("wait", &NoArguments {}))
}

// ---------------------------------------------------------------------- time

/// Ends requests after a time, as middleware of an application can.
fn timeout(
    after: Duration,
) -> impl Fn(ServerRequest, Next) -> Pin<Box<dyn Future<Output = MiddlewareResult> + Send>> + Clone
{
    move |request, next| {
        Box::pin(async move {
            let (mut sleep, mut run) = (request.sleep(after), pin!(next.run(request)));
            poll_fn(|cx| match run.as_mut().poll(cx) {
                Poll::Ready(result) => Poll::Ready(result),
                Poll::Pending => Pin::new(&mut sleep).poll(cx).map(|()| {
                    let why = format!("the request took longer than {after:?}");
                    Err(HandlerError::failed(why))
                }),
            })
            .await
        })
    }
}

#[test]
fn a_handler_that_takes_too_long_is_dropped_and_answered() {
    // Rule: [TOOL-008].
    for revision in Revision::ALL {
        let (server, alive) = waiting(&Gate::default());
        let before = alive.count();
        let (client, mut pair) = connect(&server.middleware(timeout(5 * SECOND)), revision);
        let call = pair.start(client.call_tool("wait", &NoArguments {}));
        assert_eq!(alive.count(), before + 1);
        pair.advance(Duration::from_millis(4999));
        assert_eq!(alive.count(), before + 1);
        let result = pair.run(call).unwrap();
        assert_eq!(pair.clock().elapsed(), 5 * SECOND);
        assert_eq!((result.is_error, alive.count()), (Some(true), before));
        assert_eq!(text(&result), "the request took longer than 5s");
    }
}

#[cfg(feature = "http")]
#[test]
fn a_timeout_works_the_same_on_http() {
    for revision in [Revision::V2025_06_18, Revision::LATEST] {
        let (server, alive) = waiting(&Gate::default());
        let before = alive.count();
        let server = server.middleware(timeout(5 * SECOND));
        let host = Host::new("h", "1").revisions(Revisions::only(revision));
        let (client, mut pair) = mcp_sansio_test::connect_http(&server, &host, None);
        let result = call(&client, &mut pair).unwrap();
        assert_eq!(pair.clock().elapsed(), 5 * SECOND);
        assert_eq!((result.is_error, alive.count()), (Some(true), before));
    }
}

#[test]
fn a_handler_that_is_quick_enough_is_not_affected_and_leaves_no_timer() {
    use mcp_sansio_handlers::endpoint::Endpoint;

    let gate = Gate::default();
    let server = waiting(&gate).0.middleware(timeout(5 * SECOND));
    let (client, mut pair) = connect(&server, Revision::LATEST);
    let call = pair.start(client.call_tool("wait", &NoArguments {}));
    gate.open();
    assert_eq!(text(&pair.run(call).unwrap()), "done");
    assert_eq!(pair.clock().elapsed(), Duration::ZERO);
    assert_eq!(pair.transport.server.as_ref().unwrap().poll_timeout(), None);
}

#[test]
fn a_timeout_tells_a_blocking_handler_that_it_is_cancelled() {
    // Rule: [CANC-017].
    let (jobs, cancelled) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(None)));
    let (queue, seen) = (Arc::clone(&jobs), Arc::clone(&cancelled));
    let server = Server::new("s", "1")
        .spawner(move |job| queue.lock().unwrap().push(job))
        .middleware(timeout(SECOND))
        .tool(
            "wait",
            "",
            blocking(move |call: Call<NoArguments>| {
                *seen.lock().unwrap() = Some(call.is_cancelled());
            }),
        );
    let (client, mut pair) = connect(&server, Revision::LATEST);
    assert_eq!(call(&client, &mut pair).unwrap().is_error, Some(true));
    let job = jobs.lock().unwrap().pop().unwrap();
    job();
    assert_eq!(*cancelled.lock().unwrap(), Some(true));
}

#[test]
fn local_servers_have_the_same_limits() {
    let limit = RateLimit::new(1, 5 * SECOND).wait_max(5 * SECOND);
    let server = Server::local("s", "1")
        .middleware(when(|_: &ServerRequest| true, limit))
        .middleware(when(|_: &ServerRequest| false, RateLimit::new(1, 100 * SECOND)))
        .middleware(async |request: ServerRequest, next: Next<Local>| next.run(request).await)
        .tool("wait", "", async |_: Call<NoArguments>| "done");
    let (client, mut pair) = connect(&server, Revision::LATEST);
    for _ in 0..3 {
        assert_eq!(text(&call(&client, &mut pair).unwrap()), "done");
    }
    assert_eq!(pair.clock().elapsed(), 10 * SECOND);
}

#[test]
fn a_condition_selects_requests() {
    let slow = |request: &ServerRequest| request.target().as_deref() == Some("slow");
    let server = Server::new("s", "1")
        .middleware(when(slow, timeout(SECOND)))
        .tool("slow", "", async |_: Call<NoArguments>| std::future::pending::<()>().await)
        .tool("wait", "", async |_: Call<NoArguments>| std::future::pending::<()>().await);
    let (client, mut pair) = connect(&server, Revision::LATEST);
    assert!(pair.run(client.call_tool("slow", &NoArguments {})).is_ok());
    // Only the client's own timeout ends this one.
    call(&client, &mut pair).unwrap_err();
    assert_eq!(pair.clock().elapsed(), 61 * SECOND);
}

#[test]
fn a_timeout_ends_a_task() {
    // Rule: [TASK-037].
    let (gate, alive) = (Gate::default(), Alive::default());
    let running = alive.clone();
    let server = Server::new("s", "1").tasks(settings()).middleware(timeout(5 * SECOND)).tool(
        "slow",
        "",
        move |call: Call<NoArguments>| {
            let (gate, one) = (gate.clone(), Arc::clone(&running.0));
            async move {
                call.run_as_task();
                gate.passed().await;
                drop(one);
            }
        },
    );
    let before = alive.count();
    let mut client = TaskClient::new(&server);
    let task = client.task("slow");
    client.pass(4 * SECOND);
    assert_eq!((client.status(&task), alive.count()), ("working".into(), before + 1));
    client.pass(SECOND);
    assert_eq!((client.status(&task), alive.count()), ("completed".into(), before));
    assert_eq!(client.get(&task)["result"]["isError"], true);
}

// ---------------------------------------------------------------------- rate

#[test]
fn requests_beyond_the_rate_are_refused_until_a_token_is_added() {
    let gate = Gate::default();
    gate.open();
    let server = waiting(&gate).0.middleware(RateLimit::new(2, 10 * SECOND));
    for revision in Revision::ALL {
        let (client, mut pair) = connect(&server, revision);
        for _ in 0..2 {
            call(&client, &mut pair).unwrap();
        }
        let error = call(&client, &mut pair).unwrap_err();
        let error = error.as_refusal().unwrap();
        assert_eq!(error.code, ErrorCode::INVALID_REQUEST);
        assert_eq!(error.data.as_ref().unwrap().as_str(), r#"{"retryAfterMs":5000}"#);
        pair.advance(Duration::from_millis(4999));
        call(&client, &mut pair).unwrap_err();
        pair.advance(Duration::from_millis(1));
        call(&client, &mut pair).unwrap();
        call(&client, &mut pair).unwrap_err();
        // A full bucket does not overflow.
        pair.advance(100 * SECOND);
        call(&client, &mut pair).unwrap();
        call(&client, &mut pair).unwrap();
        call(&client, &mut pair).unwrap_err();
    }
}

#[test]
fn a_burst_can_be_smaller_than_the_rate() {
    let gate = Gate::default();
    gate.open();
    let server = waiting(&gate).0.middleware(RateLimit::new(10, 10 * SECOND).burst(1));
    let (client, mut pair) = connect(&server, Revision::LATEST);
    call(&client, &mut pair).unwrap();
    call(&client, &mut pair).unwrap_err();
    pair.advance(SECOND);
    call(&client, &mut pair).unwrap();
}

#[test]
fn requests_wait_for_their_token_if_they_are_told_to() {
    let gate = Gate::default();
    gate.open();
    let server = waiting(&gate).0.middleware(RateLimit::new(1, SECOND).wait_max(2 * SECOND));
    let (client, mut pair) = connect(&server, Revision::LATEST);
    call(&client, &mut pair).unwrap();
    let second = pair.start(client.call_tool("wait", &NoArguments {}));
    let third = pair.start(client.call_tool("wait", &NoArguments {}));
    call(&client, &mut pair).unwrap_err();
    // One that is cancelled returns its token.
    drop(second);
    pair.run_until_idle();
    let fourth = pair.start(client.call_tool("wait", &NoArguments {}));
    pair.run(third).unwrap();
    pair.run(fourth).unwrap();
    assert_eq!(pair.clock().elapsed(), 2 * SECOND);
}

/// A host whose calls end before a bucket is full again, so that they are not sent again.
fn impatient() -> Host {
    let mut timeouts = Timeouts::default();
    timeouts.call = SECOND;
    Host::new("h", "1").timeouts(timeouts)
}

#[cfg(feature = "http")]
#[test]
fn each_principal_has_its_own_bucket_on_all_endpoints() {
    let gate = Gate::default();
    gate.open();
    let server = waiting(&gate).0.middleware(RateLimit::new(1, 10 * SECOND));
    let open =
        |name: &str| mcp_sansio_test::connect_http(&server, &impatient(), Identity::new(name));
    let (ann, mut ann_pair) = open("ann");
    call(&ann, &mut ann_pair).unwrap();
    call(&ann, &mut ann_pair).unwrap_err();
    assert_eq!(ann_pair.transcript.count("< 429"), 1);
    let (bob, mut bob_pair) = open("bob");
    call(&bob, &mut bob_pair).unwrap();
    let (again, mut again_pair) = open("ann");
    call(&again, &mut again_pair).unwrap_err();
}

#[cfg(feature = "http")]
#[test]
fn the_number_of_buckets_is_bounded() {
    let gate = Gate::default();
    gate.open();
    let server = waiting(&gate).0.middleware(RateLimit::new(1, 10 * SECOND).callers_max(2));
    let mut callers: Vec<_> = ["ann", "bob", "eve"]
        .map(|name| mcp_sansio_test::connect_http(&server, &impatient(), Identity::new(name)))
        .into();
    for (client, pair) in &mut callers {
        call(client, pair).unwrap();
    }
    // Eve's bucket has replaced Ann's, which was used longest ago.
    let outcomes: Vec<bool> =
        callers.iter_mut().rev().map(|(client, pair)| call(client, pair).is_ok()).collect();
    assert_eq!(outcomes, [false, false, true]);
}

// ---------------------------------------------------------------------- log

type Lines = Arc<Mutex<Vec<String>>>;

fn logged(lines: &Lines) -> AccessLog {
    let lines = Arc::clone(lines);
    AccessLog::new(move |record| lines.lock().unwrap().push(record.to_string()))
}

#[test]
fn each_request_is_logged_in_a_line_without_its_contents() {
    let lines = Lines::default();
    let gate = Gate::default();
    let server = waiting(&gate)
        .0
        .middleware(logged(&lines))
        .middleware(timeout(3 * SECOND))
        .tool("greet", "", |call: Call<crate::Place>| call.arguments.location.clone())
        .prompt("ask", "", async |_: Call<NoArguments>| {
            Err::<String, _>(HandlerError::failed("secret"))
        });
    let (client, mut pair) = connect(&server, Revision::LATEST);
    pair.advance(SECOND);
    let place = crate::Place { location: "secret".into() };
    pair.run(client.call_tool("greet", &place)).unwrap();
    call(&client, &mut pair).unwrap();
    pair.run(client.get_prompt("ask", [])).unwrap_err();
    let cancelled = pair.start(client.call_tool("wait", &NoArguments {}));
    pair.advance(2 * SECOND);
    drop(cancelled);
    pair.run_until_idle();
    let expected = [
        r#"1.000 tools/call "greet" - ok 0ms"#,
        r#"1.000 tools/call "wait" - tool-error 3000ms"#,
        r#"4.000 prompts/get "ask" - error:-32603 0ms"#,
        r#"4.000 tools/call "wait" - cancelled 2000ms"#,
    ];
    assert_eq!(*lines.lock().unwrap(), expected);
}

#[cfg(feature = "http")]
#[test]
fn the_log_on_http_has_the_principal_and_the_time_at_which_the_handler_ended() {
    let (lines, gate) = (Lines::default(), Gate::default());
    let server = waiting(&gate).0.middleware(logged(&lines));
    let identity = Identity::new("ann\nforged");
    let (client, mut pair) = mcp_sansio_test::connect_http(&server, &Host::new("h", "1"), identity);
    let call = pair.start(client.call_tool("wait", &NoArguments {}));
    pair.advance(7 * SECOND);
    gate.open();
    pair.run(call).unwrap();
    assert_eq!(*lines.lock().unwrap(), [r#"0.000 tools/call "wait" "ann\nforged" ok 7000ms"#]);
}

#[test]
fn a_log_around_a_limit_sees_its_refusals() {
    let (outcomes, gate) = (Arc::new(Mutex::new(Vec::new())), Gate::default());
    gate.open();
    let seen = Arc::clone(&outcomes);
    let server = waiting(&gate)
        .0
        .middleware(AccessLog::new(move |record| {
            assert!(record.id.is_some() && record.started == Instant::ZERO);
            seen.lock().unwrap().push(record.outcome);
        }))
        .middleware(RateLimit::new(1, SECOND));
    let (client, mut pair) = connect(&server, Revision::LATEST);
    call(&client, &mut pair).unwrap();
    call(&client, &mut pair).unwrap_err();
    let refused = AccessOutcome::Error(ErrorCode::INVALID_REQUEST);
    assert_eq!(*outcomes.lock().unwrap(), [AccessOutcome::Ok, refused]);
}

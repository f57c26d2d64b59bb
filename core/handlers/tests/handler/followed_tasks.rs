//! Calls that become tasks of the extension, followed to their end behind the same call.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::{CloseReason, Failure};
use mcp_sansio::protocol::{ElicitParams, ElicitResult};
use mcp_sansio::{ErrorCode, Revision};
use mcp_sansio_handlers::middleware::ResponseAction;
use mcp_sansio_handlers::{
    Call, Client, ClientError, HandlerError, Host, HostRequest, NoArguments, Server,
};
use mcp_sansio_test::{Pair, Script, Stream, StreamPair};

use crate::message_middleware::Around;
use crate::task_client::{Gate, settings};
use crate::{connect_host, tasks_input, text};

fn server(gate: &Gate) -> Server {
    let [slow, failing] = [(); 2].map(|()| gate.clone());
    Server::new("s", "1")
        .tasks(settings())
        .tool("slow", "", move |call: Call<NoArguments>| {
            let gate = slow.clone();
            async move {
                call.run_as_task();
                gate.passed().await;
                "done"
            }
        })
        .tool("failing", "", move |call: Call<NoArguments>| {
            let gate = failing.clone();
            async move {
                call.run_as_task();
                gate.passed().await;
                Err::<(), _>(HandlerError::invalid_params("no such place"))
            }
        })
        .tool("quick", "", |_: Call<NoArguments>| "at once")
}

fn link(server: &Server, host: Host) -> (Client, StreamPair) {
    connect_host(server, host.follow_tasks(), Revision::LATEST)
}

fn host() -> Host {
    Host::new("h", "1")
}

/// Returns how many requests of `method` the client has sent.
fn sent(pair: &StreamPair, method: &str) -> usize {
    let name = format!(r#""method":"{method}""#);
    let lines = pair.transcript.lines().iter();
    lines.filter(|line| line.starts_with('>') && line.contains(&name)).count()
}

#[test]
fn a_call_that_becomes_a_task_ends_with_the_result_of_the_task() {
    // Rule: [TASK-024] [TASK-043].
    let gate = Gate::default();
    let (client, mut pair) = link(&server(&gate), host());
    let mut call = pin!(client.call_tool("slow", &NoArguments {}).into_future());
    assert!(pair.poll(call.as_mut()).is_none());
    // It polls at the interval that the server gave: a second.
    assert_eq!(sent(&pair, "tasks/get"), 0);
    for second in 1..=3 {
        pair.advance(Duration::from_millis(999));
        assert!(pair.poll(call.as_mut()).is_none());
        assert_eq!(sent(&pair, "tasks/get"), second - 1);
        pair.advance(Duration::from_millis(1));
        assert!(pair.poll(call.as_mut()).is_none());
        assert_eq!(sent(&pair, "tasks/get"), second);
    }
    gate.open();
    pair.run_until_idle();
    pair.advance(Duration::from_secs(1));
    let result = pair.poll(call.as_mut()).expect("it has ended").unwrap();
    assert_eq!(text(&result), "done");
    assert_eq!(sent(&pair, "tasks/cancel"), 0);
}

#[test]
fn a_host_that_does_not_follow_tasks_gets_none() {
    let gate = Gate::default();
    gate.open();
    let (client, mut pair) = connect_host(&server(&gate), host(), Revision::LATEST);
    let result = pair.run(client.call_tool("slow", &NoArguments {})).unwrap();
    assert_eq!(text(&result), "done");
    assert!(!pair.transcript.lines().iter().any(|it| it.starts_with('>') && it.contains("tasks")));
    let (client, mut pair) = link(&server(&gate), host());
    let result = pair.run(client.call_tool("quick", &NoArguments {})).unwrap();
    assert_eq!(text(&result), "at once");
}

#[test]
fn the_error_of_a_task_is_that_of_its_call() {
    let gate = Gate::default();
    let (client, mut pair) = link(&server(&gate), host());
    let mut call = pin!(client.call_tool("failing", &NoArguments {}).into_future());
    assert!(pair.poll(call.as_mut()).is_none());
    gate.open();
    pair.run_until_idle();
    pair.advance(Duration::from_secs(1));
    let error = pair.poll(call.as_mut()).expect("it has ended").unwrap_err();
    let refusal = error.as_refusal().unwrap();
    assert_eq!((refusal.code, &*refusal.message), (ErrorCode::INVALID_PARAMS, "no such place"));
}

/// The answer of a server that cannot tell the state of a task for the moment.
fn expect_refused_poll(script: Script) -> Script {
    script.expect(r#"{"method":"tasks/get"}"#).reply_error(-32603, "the store is not available")
}

const DISCOVERED: &str = r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}},"ttlMs":0,"cacheScope":"private"}"#;

const CREATED: &str = r#"{"resultType":"task","taskId":"t","status":"working","createdAt":"2026-07-28T00:00:00Z","lastUpdatedAt":"2026-07-28T00:00:00Z","ttlMs":60000,"pollIntervalMs":1000}"#;

#[test]
fn a_status_request_that_fails_for_the_moment_is_repeated() {
    let ended = CREATED
        .replace("task\",\"taskId", "complete\",\"taskId")
        .replace("working", "completed")
        .replace('}', r#","result":{"resultType":"complete","content":[]}}"#);
    for failures in [3, 11] {
        let script = Script::new().expect(r#"{"method":"server/discover"}"#).reply(DISCOVERED);
        let script = script.expect(r#"{"method":"tools/call"}"#).reply(CREATED);
        let script = (0..failures).fold(script, |script, _| expect_refused_poll(script));
        let script = match failures {
            3 => script.expect(r#"{"method":"tasks/get"}"#).reply(&ended),
            _ => script.expect(r#"{"method":"tasks/cancel"}"#),
        };
        let (client, endpoint) = host().follow_tasks().connect(7, mcp_sansio::Instant::ZERO);
        let mut pair = Pair::new(Stream::new(script, endpoint));
        pair.run(client.opened()).unwrap();
        let mut call = pin!(client.call_tool("slow", &NoArguments {}).into_future());
        assert!(pair.poll(call.as_mut()).is_none());
        let mut result = None;
        for _ in 0..13 {
            pair.advance(Duration::from_secs(1));
            result = result.or_else(|| pair.poll(call.as_mut()));
        }
        let result = result.expect("it has ended");
        assert_eq!(result.is_ok(), failures == 3, "{result:?}");
    }
}

#[test]
fn dropping_a_call_cancels_its_task() {
    // Rule: [TASK-034].
    let (client, mut pair) = link(&server(&Gate::default()), host());
    {
        let mut call = pin!(client.call_tool("slow", &NoArguments {}).into_future());
        assert!(pair.poll(call.as_mut()).is_none());
    }
    pair.run_until_idle();
    assert_eq!(sent(&pair, "tasks/cancel"), 1);
    assert_eq!(sent(&pair, "notifications/cancelled"), 0);
    let cancel = r#""method":"tasks/cancel""#;
    let line = pair.transcript.lines().iter().find(|line| line.contains(cancel)).unwrap();
    assert!(line.contains(r#""taskId":""#), "{line}");
}

#[test]
fn a_dropped_call_cancels_its_task_though_the_command_queue_is_full() {
    // Rule: [TASK-034].
    let mut limits = mcp_sansio::peer::Limits::DEFAULT;
    limits.commands_max = 2;
    let (client, mut pair) = link(&server(&Gate::default()), host().limits(limits));
    let call = pair.start(client.call_tool("slow", &NoArguments {}));
    while client.set_log_level(mcp_sansio::LoggingLevel::Info).is_ok() {}
    drop(call);
    pair.run_until_idle();
    assert_eq!(sent(&pair, "tasks/cancel"), 1);
}

#[test]
fn the_input_requests_of_a_task_reach_the_host_once() {
    // Rule: [TASK-032].
    let gate = Gate::default();
    gate.open();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let host = host().on_elicit(async move |_: HostRequest<ElicitParams>| {
        count.fetch_add(1, Ordering::SeqCst);
        ElicitResult::accept([("sure".to_owned(), true.into())].into_iter().collect())
    });
    let (client, mut pair) = link(&tasks_input::server(&gate), host);
    let mut call = pin!(client.call_tool("both", &NoArguments {}).into_future());
    for _ in 0..4 {
        if let Some(result) = pair.poll(call.as_mut()) {
            assert_eq!(text(&result.unwrap()), "true true");
            assert_eq!(asked.load(Ordering::SeqCst), 2);
            assert_eq!(sent(&pair, "tasks/update"), 1);
            return;
        }
        pair.advance(Duration::from_secs(1));
    }
    panic!("it has not ended: {}", pair.transcript);
}

#[test]
fn a_host_that_refuses_input_ends_the_call_and_cancels_the_task() {
    let gate = Gate::default();
    gate.open();
    let host = host().on_elicit(|_: HostRequest<ElicitParams>| {
        Err::<ElicitResult, _>(HandlerError::failed("nobody is here"))
    });
    let (client, mut pair) = link(&tasks_input::server(&gate), host);
    let mut call = pin!(client.call_tool("forever", &NoArguments {}).into_future());
    assert!(pair.poll(call.as_mut()).is_none());
    pair.advance(Duration::from_secs(1));
    let error = pair.poll(call.as_mut()).expect("it has ended").unwrap_err();
    let ClientError::Failed(Failure::InputRefused { key, error }) = error else {
        panic!("{error}")
    };
    assert_eq!((key.as_str(), &*error.message), ("sure", "nobody is here"));
    pair.run_until_idle();
    assert_eq!(sent(&pair, "tasks/cancel"), 1);
}

#[test]
fn a_followed_call_ends_with_its_connection() {
    let gate = Gate::default();
    gate.open();
    let host = host().on_elicit(async |_: HostRequest<ElicitParams>| {
        std::future::pending::<ElicitResult>().await
    });
    let (client, mut pair) = link(&tasks_input::server(&gate), host);
    let mut call = pin!(client.call_tool("forever", &NoArguments {}).into_future());
    assert!(pair.poll(call.as_mut()).is_none());
    pair.advance(Duration::from_secs(1));
    assert!(pair.poll(call.as_mut()).is_none());
    client.close();
    let error = pair.poll(call.as_mut()).expect("it has ended").unwrap_err();
    let ClientError::TaskLost(cause) = &error else { panic!("{error}") };
    assert!(matches!(**cause, ClientError::Closed(CloseReason::Local)), "{cause}");
    assert_eq!(error.executed(), None);
}

#[test]
fn a_task_that_is_gone_ends_the_call_with_the_error_of_the_server() {
    let (client, mut pair) = link(&server(&Gate::default()), host());
    let mut call = pin!(client.call_tool("slow", &NoArguments {}).into_future());
    assert!(pair.poll(call.as_mut()).is_none());
    // Longer than the lifetime of a minute.
    pair.advance(Duration::from_secs(90));
    let error = pair.poll(call.as_mut()).expect("it has ended").unwrap_err();
    assert_eq!(error.as_refusal().map(|it| it.code), Some(ErrorCode::INVALID_PARAMS), "{error}");
    // The server refused the request about the task, not the call.
    assert_eq!(error.executed(), None, "{error}");
}

#[test]
fn a_status_request_without_an_answer_does_not_end_the_task() {
    // Rule: [TASK-043].
    let task = |rest: &str| {
        format!(
            r#"{{"taskId":"t1","createdAt":"2026-07-28T00:00:00Z","lastUpdatedAt":"2026-07-28T00:00:00Z","ttlMs":3600000,"pollIntervalMs":1000,{rest}}}"#
        )
    };
    let done = task(
        r#""resultType":"complete","status":"completed","result":{"content":[{"type":"text","text":"42"}]}"#,
    );
    let script = Script::new()
        .expect(r#"{"method":"server/discover"}"#)
        .reply(r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}},"ttlMs":0,"cacheScope":"private"}"#)
        .expect(r#"{"method":"tools/call"}"#)
        .reply(&task(r#""resultType":"task","status":"working""#))
        .expect(r#"{"method":"tasks/get"}"#)
        .expect(r#"{"method":"notifications/cancelled"}"#)
        .expect(r#"{"method":"tasks/get"}"#)
        .reply(&done);
    let host = host().revisions(mcp_sansio::Revisions::only(Revision::LATEST)).follow_tasks();
    let (client, endpoint) = host.connect(42, mcp_sansio::Instant::ZERO);
    let mut pair = Pair::new(Stream::new(script, endpoint));
    pair.run(client.opened()).unwrap();
    let result = pair.run(client.call_tool("t", &NoArguments {})).unwrap();
    assert_eq!(text(&result), "42");
}

#[test]
fn a_task_that_cannot_be_read_is_lost_and_cancelled() {
    let unreadable = Around {
        response: Some(|_, result| {
            let changed = result.to_string().replace(r#""status":"working""#, r#""status":5"#);
            ResponseAction::Replace(RawJson::parse(&changed).unwrap().into())
        }),
        ..Around::default()
    };
    let gate = Gate::default();
    let (client, mut pair) = link(&server(&gate), host().message_middleware(unreadable));
    let error = pair.run(client.call_tool("slow", &NoArguments {})).unwrap_err();
    assert!(matches!(error, ClientError::TaskLost(_)), "{error:?}");
    assert!(error.to_string().contains("status"), "{error}");
    pair.run_until_idle();
    assert_eq!(sent(&pair, "tasks/cancel"), 1);
}

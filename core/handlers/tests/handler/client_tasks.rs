//! Tasks at 2025-11-25, on the client side.

use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_sansio::Revision;
use mcp_sansio::protocol::{
    ElicitParams, ElicitResult, ElicitSchema, TaskStatus, TaskSupport, Tool, ToolExecution,
};
use mcp_sansio_handlers::endpoint::Endpoint;
use mcp_sansio_handlers::{Call, Client, Elicit, Host, HostRequest, NoArguments, Server};
use serde_json::{Value, json};

use crate::legacy_tasks::{server, server_with};
use crate::task_client::{Gate, settings};
use crate::{connect, connect_host, text};

type Link = mcp_sansio_test::StreamPair;

fn link() -> (Gate, Client, Link) {
    let gate = Gate::default();
    let (client, pair) = connect(&server(&gate), Revision::V2025_11_25);
    (gate, client, pair)
}

fn tool(client: &Client, pair: &mut Link, name: &str) -> Tool {
    let tools = pair.run(client.all_tools()).unwrap();
    tools.into_iter().find(|tool| tool.name == name).unwrap()
}

/// Returns how many requests of `method` the client has sent.
fn asked(pair: &Link, method: &str) -> usize {
    let name = format!(r#""method":"{method}""#);
    pair.transcript
        .lines()
        .iter()
        .filter(|line| line.starts_with('>') && line.contains(&name))
        .count()
}

/// Advances the clock of both sides.
fn pass(pair: &mut Link, millis: u64) {
    pair.advance(Duration::from_millis(millis));
}

#[test]
fn a_tool_runs_as_a_task_and_its_result_is_fetched_when_ready() {
    // Rule: [TASK-001] [TASK-012] [TASK-013].
    let (gate, client, mut pair) = link();
    let slow = tool(&client, &mut pair, "slow");
    let call = client.call_tool_as_task(&slow, &json!({})).ttl(Duration::from_secs(30));
    let task = pair.run(call).unwrap();
    let created = &task.created().unwrap().task;
    assert_eq!((created.ttl_ms, created.poll_interval_ms), (Some(30_000), Some(1000)));
    assert_eq!(task.name(), created.task_id);
    let mut result = pin!(task.result());
    assert!(pair.poll(result.as_mut()).is_none());
    // It polls at the interval that the server gave.
    for second in 1..=5 {
        pass(&mut pair, 999);
        assert!(pair.poll(result.as_mut()).is_none());
        assert_eq!(asked(&pair, "tasks/get"), second - 1);
        pass(&mut pair, 1);
        assert!(pair.poll(result.as_mut()).is_none());
        assert_eq!(asked(&pair, "tasks/get"), second);
    }
    gate.open();
    assert_eq!(asked(&pair, "tasks/result"), 0);
    pass(&mut pair, 1000);
    let result = pair.poll(result.as_mut()).unwrap().unwrap();
    assert_eq!(text(&result), "slow true");
    assert_eq!(result.meta.unwrap().related_task().unwrap().task_id, task.name());
    assert_eq!((asked(&pair, "tasks/get"), asked(&pair, "tasks/result")), (6, 1));
    // Another connection of the same client can use the task by its name.
    let again = client.task(task.name());
    assert_eq!(text(&pair.run(again.result()).unwrap()), "slow true");
    assert_eq!(pair.transport.client.as_ref().unwrap().poll_timeout(), None);
}

#[test]
fn task_status_notifications_are_not_relied_upon() {
    // Rule: [TASK-016].
    let (gate, client, mut pair) = link();
    let slow = tool(&client, &mut pair, "slow");
    let task = pair.run(client.call_tool_as_task(&slow, &json!({}))).unwrap();
    let mut result = pin!(task.result());
    assert!(pair.poll(result.as_mut()).is_none());
    for status in ["completed", "failed", "cancelled"] {
        let params = json!({ "taskId": task.name(), "status": status, "ttl": null,
            "createdAt": "2026-07-28T00:00:00Z", "lastUpdatedAt": "2026-07-28T00:00:00Z" });
        let message =
            json!({ "jsonrpc": "2.0", "method": "notifications/tasks/status", "params": params });
        let now = pair.now();
        let frame = message.to_string();
        pair.transport.client.as_mut().unwrap().handle_frame(Ok(frame.as_bytes()), now);
        assert!(pair.poll(result.as_mut()).is_none(), "{status}");
        assert_eq!((asked(&pair, "tasks/get"), asked(&pair, "tasks/result")), (0, 0), "{status}");
    }
    // The client polls for the status, so no notification is needed.
    gate.open();
    pass(&mut pair, 1000);
    assert_eq!(text(&pair.poll(result.as_mut()).unwrap().unwrap()), "slow true");
    assert_eq!(pair.transcript.count("notifications/tasks/status"), 0);
}

#[test]
fn tools_without_task_support_are_called_normally() {
    // Rule: [TASK-002] [TASK-003] [TASK-004].
    let (_, client, mut pair) = link();
    let lines = pair.transcript.lines().len();
    for execution in [None, Some(ToolExecution::new().task_support(TaskSupport::Forbidden))] {
        let mut plain = Tool::new("plain", mcp_sansio::jsonrpc::RawJson::EMPTY_OBJECT);
        plain.execution = execution;
        assert!(pair.run(client.call_tool_as_task(&plain, &json!({}))).is_err());
    }
    assert_eq!(pair.transcript.lines().len(), lines);
    // A server without the tasks capability, whatever its tools declare.
    let without = Server::new("s", "1")
        .tool("quick", "", |_: Call<NoArguments>| "quick")
        .task_support("quick", TaskSupport::Optional);
    for revision in [Revision::V2025_06_18, Revision::V2025_11_25, Revision::V2026_07_28] {
        let (client, mut pair) = connect(&without, revision);
        let mut quick = tool(&client, &mut pair, "quick");
        quick.execution = Some(ToolExecution::new().task_support(TaskSupport::Optional));
        let lines = pair.transcript.lines().len();
        let error = pair.run(client.call_tool_as_task(&quick, &json!({}))).unwrap_err();
        assert!(error.to_string().contains("tasks.requests.tools.call"), "{error}");
        assert!(pair.run(client.list_tasks(None)).is_err());
        assert_eq!(pair.transcript.lines().len(), lines, "{revision}");
    }
}

#[test]
fn an_input_request_of_a_task_reaches_the_host_while_the_result_is_awaited() {
    // Rule: [TASK-012] [TASK-015].
    let server = Server::new("s", "1")
        .tasks(settings())
        .tool("ask", "", |call: Call<NoArguments>| match call.input::<Value>("name")? {
            None => call
                .require_input("name", Elicit::form_with("Who?", ElicitSchema::new()))
                .into_result(),
            Some(answer) => Ok(format!("{}", answer.accepted())),
        })
        .task_support("ask", TaskSupport::Required);
    let related = Arc::new(Mutex::new(None));
    let seen = Arc::clone(&related);
    let host = Host::new("h", "1").on_elicit(move |question: HostRequest<ElicitParams>| {
        let ElicitParams::Form(form) = question.params else { panic!("a form") };
        *seen.lock().unwrap() = form.meta.and_then(|meta| meta.related_task());
        ElicitResult::decline()
    });
    let (client, mut pair) = connect_host(&server, host, Revision::V2025_11_25);
    let ask = tool(&client, &mut pair, "ask");
    let task = pair.run(client.call_tool_as_task(&ask, &json!({}))).unwrap();
    let mut result = pin!(task.result());
    assert!(pair.poll(result.as_mut()).is_none());
    pass(&mut pair, 1000);
    assert_eq!(text(&pair.poll(result.as_mut()).unwrap().unwrap()), "false");
    assert_eq!(related.lock().unwrap().take().unwrap().task_id, task.name());
    // When the task needed input, the client requested the result and stopped polling.
    assert_eq!((asked(&pair, "tasks/get"), asked(&pair, "tasks/result")), (1, 1));
}

#[test]
fn progress_is_shown_while_a_task_handle_exists() {
    // Rule: [PROG-010].
    let (gate, client, mut pair) = link();
    let talkative = tool(&client, &mut pair, "talkative");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let call = |seen: &Arc<Mutex<Vec<f64>>>| {
        let seen = Arc::clone(seen);
        client
            .call_tool_as_task(&talkative, &json!({}))
            .on_progress(move |progress| seen.lock().unwrap().push(progress.progress))
    };
    let task = pair.run(call(&seen)).unwrap();
    pair.run_until_idle();
    assert_eq!(*seen.lock().unwrap(), [1.0]);
    let unwatched = Arc::new(Mutex::new(Vec::new()));
    drop(pair.run(call(&unwatched)).unwrap());
    pair.run_until_idle();
    assert_eq!(Arc::strong_count(&unwatched), 1);
    gate.open();
    pair.run_until_idle();
    assert_eq!(*seen.lock().unwrap(), [1.0, 2.0]);
    assert!(unwatched.lock().unwrap().len() < 2);
    assert_eq!(text(&pair.run(client.task(task.name()).result()).unwrap()), "said");
    drop(task);
    pair.run_until_idle();
    assert_eq!(Arc::strong_count(&seen), 1);
    // A progress token that was released does not affect a later call.
    assert_eq!(text(&pair.run(client.call_tool("plain", &json!({}))).unwrap()), "plain");
}

#[test]
fn a_task_is_cancelled_by_name_even_if_its_caller_left_before_it_was_created() {
    // Rule: [CANC-009] [TASK-018].
    let (gate, client, mut pair) = link();
    let slow = tool(&client, &mut pair, "slow");
    let held = gate.holders();
    let mut left = Box::pin(client.call_tool_as_task(&slow, &json!({})).into_future());
    let waker = std::task::Waker::noop();
    assert!(left.as_mut().poll(&mut std::task::Context::from_waker(waker)).is_pending());
    // The call has been sent.
    let now = pair.now();
    let endpoint = pair.transport.client.as_mut().unwrap();
    endpoint.poll_handlers(&mut std::task::Context::from_waker(waker), now);
    drop(left);
    pair.run_until_idle();
    assert_eq!(asked(&pair, "tools/call"), 1);
    assert_eq!((asked(&pair, "notifications/cancelled"), asked(&pair, "tasks/cancel")), (0, 1));
    assert_eq!(gate.holders(), held);
    // A call that was dropped before it was sent is never sent.
    drop(client.call_tool_as_task(&slow, &json!({})).into_future());
    pair.run_until_idle();
    assert_eq!(asked(&pair, "tools/call"), 1);
    let task = pair.run(client.call_tool_as_task(&slow, &json!({}))).unwrap();
    let cancelled = pair.run(task.cancel()).unwrap().task.unwrap();
    assert_eq!(cancelled.status, TaskStatus::Cancelled);
    let refused = pair.run(task.cancel()).unwrap_err();
    assert_eq!(refused.as_refusal().unwrap().code.0, -32602);
    let known = client.task(task.name());
    assert_eq!(pair.run(known.result()).unwrap_err().as_refusal().unwrap().code.0, -32603);
    assert_eq!(asked(&pair, "notifications/cancelled"), 0);
}

#[test]
fn a_call_that_times_out_is_not_cancelled_if_it_was_to_be_a_task() {
    // Rule: [CANC-009].
    let (_, client, mut pair) = link();
    let slow = tool(&client, &mut pair, "slow");
    let server = pair.transport.server.take();
    let call = client.call_tool_as_task(&slow, &json!({})).timeout(Duration::from_secs(5));
    let mut call = pin!(call.into_future());
    assert!(pair.poll(call.as_mut()).is_none());
    pair.advance(Duration::from_secs(5));
    assert!(pair.poll(call.as_mut()).unwrap().is_err());
    assert_eq!(asked(&pair, "tools/call"), 1);
    assert_eq!(asked(&pair, "notifications/cancelled"), 0);
    drop(server);
}

#[test]
fn all_tasks_are_listed_page_by_page() {
    // Rule: [TASK-017].
    let (_, client, mut pair) = link();
    let quick = tool(&client, &mut pair, "quick");
    for _ in 0..120 {
        pair.run(client.call_tool_as_task(&quick, &json!({}))).unwrap();
    }
    let tasks = pair.run(client.all_tasks()).unwrap();
    assert_eq!(tasks.len(), 120);
    assert!(tasks.iter().all(|task| task.status == TaskStatus::Completed));
    assert_eq!(asked(&pair, "tasks/list"), 2);
}

#[test]
fn a_failed_task_ends_with_the_result_or_error_of_its_call() {
    // Rule: [TASK-013] [TASK-020].
    let (gate, client, mut pair) = link();
    gate.open();
    for (name, code) in [("failing", None), ("broken", Some(-32050))] {
        let tool = tool(&client, &mut pair, name);
        let task = pair.run(client.call_tool_as_task(&tool, &json!({}))).unwrap();
        let mut result = pin!(task.result());
        assert!(pair.poll(result.as_mut()).is_none());
        pass(&mut pair, 1000);
        match pair.poll(result.as_mut()).unwrap() {
            Ok(result) => {
                assert_eq!((result.is_error, code), (Some(true), None));
                assert_eq!(text(&result), "the machine is on fire");
            }
            Err(error) => assert_eq!(error.as_refusal().map(|error| error.code.0), code),
        }
    }
}

#[test]
fn a_sleeping_poll_is_woken_when_the_connection_ends() {
    let (_, client, mut pair) = link();
    let slow = tool(&client, &mut pair, "slow");
    let task = pair.run(client.call_tool_as_task(&slow, &json!({}))).unwrap();
    let mut result = pin!(task.result());
    assert!(pair.poll(result.as_mut()).is_none());
    client.close();
    assert!(pair.poll(result.as_mut()).unwrap().is_err());
    // A dropped caller leaves no timer behind.
    let (_, client, mut pair) = link();
    let slow = tool(&client, &mut pair, "slow");
    let task = pair.run(client.call_tool_as_task(&slow, &json!({}))).unwrap();
    {
        let mut result = pin!(task.result());
        assert!(pair.poll(result.as_mut()).is_none());
        assert!(pair.transport.client.as_ref().unwrap().poll_timeout().is_some());
    }
    pair.run_until_idle();
    assert_eq!(pair.transport.client.as_ref().unwrap().poll_timeout(), None);
}

#[test]
fn a_poll_interval_of_zero_is_raised_to_a_minimum() {
    // Rule: [TASK-012].
    let gate = Gate::default();
    let server = server_with(&gate, settings().poll_interval(Duration::ZERO));
    let (client, mut pair) = connect(&server, Revision::V2025_11_25);
    let slow = tool(&client, &mut pair, "slow");
    let task = pair.run(client.call_tool_as_task(&slow, &json!({}))).unwrap();
    let mut result = pin!(task.result());
    assert!(pair.poll(result.as_mut()).is_none());
    pass(&mut pair, 49);
    assert!(pair.poll(result.as_mut()).is_none());
    assert_eq!(asked(&pair, "tasks/get"), 0);
    pass(&mut pair, 1);
    assert!(pair.poll(result.as_mut()).is_none());
    assert_eq!(asked(&pair, "tasks/get"), 1);
}

#[test]
fn a_task_yields_its_result_however_long_the_server_keeps_it() {
    // Rule: [TASK-013].
    for ttl in ["null", "0", "1", "9007199254740991"] {
        let task = format!(
            r#""taskId":"t1","status":"completed","createdAt":"2025-11-25T10:30:00Z","lastUpdatedAt":"2025-11-25T10:30:00Z","ttl":{ttl}"#
        );
        let script = mcp_sansio_test::Script::new()
            .expect(r#"{"method":"initialize"}"#)
            .reply(r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":{"requests":{"tools":{"call":{}}},"cancel":{}}},"serverInfo":{"name":"s","version":"1"}}"#)
            .expect(r#"{"method":"notifications/initialized"}"#)
            .expect(r#"{"method":"tools/call"}"#)
            .reply(&format!(r#"{{"task":{{{task}}}}}"#))
            .expect(r#"{"method":"tasks/get"}"#)
            .reply(&format!("{{{task}}}"))
            .expect(r#"{"method":"tasks/result"}"#)
            .wait(Duration::from_millis(500))
            .reply(r#"{"content":[{"type":"text","text":"42"}]}"#);
        let host =
            Host::new("h", "1").revisions(mcp_sansio::Revisions::only(Revision::V2025_11_25));
        let (client, endpoint) = host.connect(42, mcp_sansio::Instant::ZERO);
        let mut pair = mcp_sansio_test::Pair::new(mcp_sansio_test::Stream::new(script, endpoint));
        pair.run(client.opened()).unwrap();
        let mut tool: Tool =
            serde_json::from_value(json!({ "name": "t", "inputSchema": { "type": "object" } }))
                .unwrap();
        let mut execution = ToolExecution::default();
        execution.task_support = Some(TaskSupport::Optional);
        tool.execution = Some(execution);
        let task = pair.run(client.call_tool_as_task(&tool, &json!({}))).unwrap();
        assert_eq!(text(&pair.run(task.result()).unwrap()), "42", "{ttl}");
    }
}

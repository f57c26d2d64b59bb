//! Tasks of 2025-11-25.

use std::time::Duration;

use mcp_sansio::jsonrpc::ErrorObject;
use mcp_sansio::protocol::{CallToolResult, TaskSupport};
use mcp_sansio::{ErrorCode, LoggingLevel, Revision};
use mcp_sansio_handlers::{Call, HandlerError, NoArguments, Server, TaskSettings};
use serde_json::{Value, json};

use crate::legacy_task_client::{LegacyTaskClient, RELATED};
use crate::task_client::{Gate, TaskClient, settings};

/// A server whose tools wait until the gate opens.
pub(crate) fn server(gate: &Gate) -> Server {
    server_with(gate, settings())
}

pub(crate) fn server_with(gate: &Gate, settings: TaskSettings) -> Server {
    let [slow, failing, broken, required, talkative] = [(); 5].map(|()| gate.clone());
    Server::new("s", "1")
        .logging()
        .tasks(settings)
        .tool("plain", "", |call: Call<NoArguments>| {
            assert!(!call.accepts_task());
            call.run_as_task();
            "plain"
        })
        .tool("quick", "", |_: Call<NoArguments>| "quick")
        .tool("slow", "", move |call: Call<NoArguments>| {
            let gate = slow.clone();
            async move {
                call.run_as_task();
                gate.passed().await;
                format!("slow {}", call.accepts_task())
            }
        })
        .tool("failing", "", move |_: Call<NoArguments>| {
            let gate = failing.clone();
            async move {
                gate.passed().await;
                CallToolResult::error("the machine is on fire")
            }
        })
        .tool("broken", "", move |_: Call<NoArguments>| {
            let gate = broken.clone();
            async move {
                gate.passed().await;
                Err::<(), _>(HandlerError::Protocol(ErrorObject::new(
                    ErrorCode(-32050),
                    "no machine",
                )))
            }
        })
        .tool("required", "", move |call: Call<NoArguments>| {
            let gate = required.clone();
            async move {
                call.require_task()?;
                gate.passed().await;
                Ok("required")
            }
        })
        .tool("talkative", "", move |call: Call<NoArguments>| {
            let gate = talkative.clone();
            async move {
                call.progress(1.0, Some(2.0), "halfway there");
                gate.passed().await;
                call.progress(2.0, Some(2.0), "there");
                call.log(LoggingLevel::Error, "there");
                call.progress(2.0, Some(2.0), "again");
                "said"
            }
        })
        .task_support("quick", TaskSupport::Optional)
        .task_support("slow", TaskSupport::Optional)
        .task_support("failing", TaskSupport::Optional)
        .task_support("broken", TaskSupport::Optional)
        .task_support("required", TaskSupport::Required)
        .task_support("talkative", TaskSupport::Optional)
}

fn client() -> (Gate, LegacyTaskClient) {
    let gate = Gate::default();
    let client = LegacyTaskClient::new(&server(&gate));
    (gate, client)
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}"))
}

#[test]
fn a_server_declares_which_requests_and_tools_can_be_tasks() {
    // Rule: [TASK-004] [TASK-005] [CAP-016].
    let (_, mut client) = client();
    let tasks = json!({ "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } });
    assert_eq!(client.declared["tasks"], tasks);
    assert!(client.declared.get("extensions").is_none());
    let tools = client.result("tools/list", json!({}))["tools"].clone();
    let support = |name: &str| {
        let tool = tools.as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap();
        tool["execution"]["taskSupport"].clone()
    };
    assert_eq!(support("slow"), "optional");
    assert_eq!(support("required"), "required");
    assert_eq!(support("plain"), Value::Null);
    let without = Server::new("s", "1").tool("quick", "", |_: Call<NoArguments>| "quick");
    let mut without = LegacyTaskClient::new(&without.task_support("quick", TaskSupport::Required));
    assert!(without.declared.get("tasks").is_none());
    for method in ["tasks/get", "tasks/result", "tasks/list", "tasks/cancel"] {
        assert_eq!(without.error(method, json!({ "taskId": "1" })), -32601, "{method}");
    }
    // A server without tasks ignores the member `task`.
    let params = json!({ "name": "quick", "task": {} });
    assert_eq!(text(&without.result("tools/call", params)), "quick");
    let unknown = Server::new("s", "1").task_support("nothing", TaskSupport::Optional);
    assert!(unknown.endpoint(7).is_err());
}

#[test]
fn the_tasks_of_one_revision_do_not_exist_at_another() {
    // Rule: [TASK-040] [TASK-044].
    let (_, mut client) = client();
    let task = client.task("slow");
    assert_eq!(client.error("tasks/update", json!({ "taskId": task })), -32601);
    let mut modern = TaskClient::new(&server(&Gate::default()));
    let ignored = json!({ "name": "quick", "task": {} });
    assert_eq!(modern.result("tools/call", ignored)["resultType"], "complete");
    for method in ["tasks/result", "tasks/list"] {
        assert_eq!(modern.error(method, json!({ "taskId": "1" })), -32601, "{method}");
    }
    for revision in [Revision::V2024_11_05, Revision::V2025_03_26, Revision::V2025_06_18] {
        let (client, mut pair) = crate::connect(&server(&Gate::default()), revision);
        let result = pair.run(client.call_tool("quick", &json!({}))).unwrap();
        assert_eq!(crate::text(&result), "quick");
        assert!(
            !pair.transcript.lines().iter().any(|line| line.contains("tasks")),
            "{}",
            pair.transcript
        );
    }
}

#[test]
fn a_task_is_there_at_once_and_its_result_when_it_is_done() {
    // Rule: [TASK-001] [TASK-008] [TASK-009] [TASK-010] [TASK-013] [TASK-014].
    let (gate, mut client) = client();
    client.pass(Duration::from_millis(1500));
    let created = client.result("tools/call", json!({ "name": "slow", "task": {} }));
    let task = json!({
        "taskId": "00000000000000000000000000000001",
        "status": "working",
        "createdAt": "2026-07-28T00:00:01.500Z",
        "lastUpdatedAt": "2026-07-28T00:00:01.500Z",
        "ttl": 60_000,
        "pollInterval": 1000,
    });
    assert_eq!(created, json!({ "task": task }));
    let name = task["taskId"].as_str().unwrap();
    assert_eq!(client.get(name), task);
    client.pass(Duration::from_secs(2));
    let first = client.send("tasks/result", json!({ "taskId": name }));
    let second = client.send("tasks/result", json!({ "taskId": name }));
    assert_eq!((client.answer(first), client.answer(second)), (None, None));
    gate.open();
    client.pump();
    let expected = json!({
        "content": [{ "type": "text", "text": "slow true" }],
        "_meta": { RELATED: { "taskId": name } },
    });
    for waited in [first, second] {
        assert_eq!(client.answer(waited).unwrap()["result"], expected);
    }
    let done = client.get(name);
    assert_eq!(done["status"], "completed");
    assert_eq!(done["createdAt"], "2026-07-28T00:00:01.500Z");
    assert_eq!(done["lastUpdatedAt"], "2026-07-28T00:00:03.500Z");
    assert!(done.get("result").is_none());
    // The result can be requested again.
    assert_eq!(client.result("tasks/result", json!({ "taskId": name })), expected);
    let second = client.task("slow");
    assert_ne!(second, name);
}

#[test]
fn a_handler_that_finishes_at_once_still_becomes_a_task() {
    // Rule: [TASK-045].
    let (_, mut client) = client();
    let task = client.task("quick");
    assert_eq!(client.status(&task), "completed");
    let result = client.result("tasks/result", json!({ "taskId": task }));
    assert_eq!(text(&result), "quick");
    assert_eq!(text(&client.result("tools/call", json!({ "name": "quick" }))), "quick");
}

#[test]
fn task_support_of_a_tool_is_enforced() {
    // Rule: [TASK-004] [TASK-005].
    let (_, mut client) = client();
    assert_eq!(client.error("tools/call", json!({ "name": "plain", "task": {} })), -32601);
    assert_eq!(client.error("tools/call", json!({ "name": "required" })), -32601);
    assert_eq!(text(&client.result("tools/call", json!({ "name": "plain" }))), "plain");
    for task in [json!(5), json!([5]), json!({ "ttl": "long" }), json!({ "ttl": -1 })] {
        let params = json!({ "name": "slow", "task": task });
        assert_eq!(client.error("tools/call", params), -32602, "{task}");
    }
    let tasks = client.result("tasks/list", json!({}));
    assert_eq!(tasks, json!({ "tasks": [] }));
}

#[test]
fn a_failure_fails_the_task_and_keeps_its_result() {
    // Rule: [TASK-013] [TASK-020].
    let (gate, mut client) = client();
    let (failing, broken) = (client.task("failing"), client.task("broken"));
    let invalid =
        client.result("tools/call", json!({ "name": "slow", "arguments": {}, "task": {} }));
    assert_eq!(invalid["task"]["status"], "working");
    gate.open();
    client.pump();
    let status = client.get(&failing);
    assert_eq!(status["status"], "failed");
    assert_eq!(status["statusMessage"], "the machine is on fire");
    let result = client.result("tasks/result", json!({ "taskId": failing }));
    assert_eq!(result["isError"], true);
    assert_eq!(text(&result), "the machine is on fire");
    let status = client.get(&broken);
    assert_eq!(status["status"], "failed");
    assert_eq!(status["statusMessage"], "no machine");
    let response = client.response("tasks/result", json!({ "taskId": broken }));
    assert_eq!(response["error"], json!({ "code": -32050, "message": "no machine" }));
}

#[test]
fn a_task_is_cancelled_by_its_id_and_not_by_its_request() {
    // Rule: [CANC-009] [TASK-009] [TASK-018].
    let (gate, mut client) = client();
    let held = gate.holders();
    let call = client.send("tools/call", json!({ "name": "slow", "task": {} }));
    let created = client.answer(call).unwrap();
    let task = created["result"]["task"]["taskId"].as_str().unwrap();
    client.tell("notifications/cancelled", json!({ "requestId": call }));
    assert_eq!(client.status(task), "working");
    assert_eq!(gate.holders(), held + 1);
    let waiting = client.send("tasks/result", json!({ "taskId": task }));
    let cancelled = client.result("tasks/cancel", json!({ "taskId": task }));
    assert_eq!((&cancelled["taskId"], &cancelled["status"]), (&json!(task), &json!("cancelled")));
    assert_eq!(gate.holders(), held);
    assert_eq!(client.answer(waiting).unwrap()["error"]["code"], -32603);
    gate.open();
    assert_eq!(client.status(task), "cancelled");
    assert_eq!(client.error("tasks/cancel", json!({ "taskId": task })), -32602);
    let done = client.task("quick");
    assert_eq!(client.error("tasks/cancel", json!({ "taskId": done })), -32602);
    assert_eq!(client.status(&done), "completed");
}

#[test]
fn cancelling_a_result_request_does_not_cancel_the_task() {
    // Rule: [TASK-013].
    let (gate, mut client) = client();
    let task = client.task("slow");
    let given_up = client.send("tasks/result", json!({ "taskId": task }));
    let waiting = client.send("tasks/result", json!({ "taskId": task }));
    client.tell("notifications/cancelled", json!({ "requestId": given_up }));
    gate.open();
    client.pump();
    assert_eq!(client.answer(given_up), None);
    assert_eq!(text(&client.answer(waiting).unwrap()["result"]), "slow true");
}

#[test]
fn progress_is_sent_with_its_token_until_the_task_ends() {
    // Rule: [PROG-010].
    let (gate, mut client) = client();
    let params = json!({ "name": "talkative", "task": {}, "_meta": { "progressToken": "p" } });
    let created = client.result("tools/call", params);
    let task = created["task"]["taskId"].as_str().unwrap().to_owned();
    assert_eq!(client.get(&task)["statusMessage"], "halfway there");
    gate.open();
    client.pump();
    let related = json!({ RELATED: { "taskId": task } });
    let expected = [(1, "halfway there"), (2, "there")].map(|(progress, message)| {
        json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": {
            "progressToken": "p", "progress": progress, "total": 2, "message": message,
            "_meta": related } })
    });
    assert_eq!(client.unasked, expected);
    assert_eq!(client.status(&task), "completed");
    // A client that did not ask for progress does not receive any.
    client.unasked.clear();
    client.task("talkative");
    client.pump();
    assert!(client.unasked.is_empty(), "{:?}", client.unasked);
}

#[test]
fn metadata_does_not_say_which_task_is_meant() {
    // Rule: [TASK-014].
    let (_, mut client) = client();
    let (done, slow) = (client.task("quick"), client.task("slow"));
    let meta = json!({ RELATED: { "taskId": slow } });
    let params = json!({ "taskId": done, "_meta": meta });
    assert_eq!(client.result("tasks/get", params.clone())["taskId"], *done);
    let result = client.result("tasks/result", params.clone());
    assert_eq!(result["_meta"][RELATED]["taskId"], *done);
    assert_eq!(client.error("tasks/cancel", params), -32602);
    assert_eq!(client.status(&slow), "working");
}

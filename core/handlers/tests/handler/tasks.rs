use std::time::Duration;

use mcp_sansio::Revision;
use mcp_sansio::jsonrpc::{ErrorCode, ErrorObject};
use mcp_sansio::protocol::{CallToolResult, LoggingLevel};
use mcp_sansio_handlers::{Call, Error, NoArguments, Server, blocking};
use serde_json::{Value, json};

use crate::task_client::{Gate, TaskClient, settings};
use crate::{connect, text};

/// A server whose tools wait at a gate.
fn server(gate: &Gate) -> Server {
    let [slow, failing, broken, required, late, talkative] = [(); 6].map(|()| gate.clone());
    Server::new("s", "1")
        .logging()
        .tasks(settings())
        .tool("plain", "", |_: Call<NoArguments>| "plain")
        .tool("quick", "", |call: Call<NoArguments>| {
            call.run_as_task();
            "quick"
        })
        .tool("slow", "", move |call: Call<NoArguments>| {
            let gate = slow.clone();
            async move {
                call.run_as_task();
                gate.passed().await;
                "slow"
            }
        })
        .tool("failing", "", move |call: Call<NoArguments>| {
            let gate = failing.clone();
            async move {
                call.run_as_task();
                gate.passed().await;
                CallToolResult::error("the machine is on fire")
            }
        })
        .tool("broken", "", move |call: Call<NoArguments>| {
            let gate = broken.clone();
            async move {
                call.run_as_task();
                gate.passed().await;
                Err::<(), _>(Error::Protocol(ErrorObject::internal("no machine")))
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
        .tool("late", "", move |call: Call<NoArguments>| {
            let gate = late.clone();
            async move {
                gate.passed().await;
                call.run_as_task();
                std::future::pending::<()>().await;
            }
        })
        .tool("talkative", "", move |call: Call<NoArguments>| {
            let gate = talkative.clone();
            async move {
                call.run_as_task();
                call.progress(1.0, Some(2.0), "halfway there");
                gate.passed().await;
                call.progress(2.0, Some(2.0), "there");
                call.log(LoggingLevel::Error, "there");
                std::future::pending::<()>().await;
            }
        })
}

fn desk() -> (Gate, TaskClient) {
    let gate = Gate::default();
    let desk = TaskClient::new(&server(&gate));
    (gate, desk)
}

#[test]
fn a_server_with_tasks_says_so_and_one_without_has_none() {
    // Rule: [TASK-024] [TASK-040].
    let (_, mut desk) = desk();
    let capabilities = desk.result("server/discover", json!({}))["capabilities"].clone();
    assert_eq!(capabilities["extensions"], json!({ "io.modelcontextprotocol/tasks": {} }));
    assert!(capabilities.get("tasks").is_none());
    let without = Server::new("s", "1").tool("quick", "", |call: Call<NoArguments>| {
        assert!(!call.accepts_task());
        call.run_as_task();
        "quick"
    });
    let mut desk = TaskClient::new(&without);
    assert_eq!(desk.call("quick")["resultType"], "complete");
    assert_eq!(desk.error("tasks/get", json!({ "taskId": "1" })), -32601);
}

#[test]
fn a_task_is_there_at_once_and_shows_its_result_when_it_is_done() {
    // Rule: [TASK-009] [TASK-010] [TASK-026] [TASK-029] [TASK-030].
    let (gate, mut desk) = desk();
    desk.pass(Duration::from_millis(1500));
    let mut created = desk.call("slow");
    created.as_object_mut().unwrap().remove("_meta");
    assert_eq!(
        created,
        json!({
            "resultType": "task",
            "taskId": "00000000000000000000000000000001",
            "status": "working",
            "createdAt": "2026-07-28T00:00:01.500Z",
            "lastUpdatedAt": "2026-07-28T00:00:01.500Z",
            "ttlMs": 60_000,
            "pollIntervalMs": 1000,
        })
    );
    let task = created["taskId"].as_str().unwrap();
    assert_eq!(desk.status(task), "working");
    desk.pass(Duration::from_secs(2));
    gate.open();
    let done = desk.get(task);
    assert_eq!(done["resultType"], "complete");
    assert_eq!(done["status"], "completed");
    assert_eq!(done["createdAt"], "2026-07-28T00:00:01.500Z");
    assert_eq!(done["lastUpdatedAt"], "2026-07-28T00:00:03.500Z");
    assert_eq!(done["result"]["content"][0]["text"], "slow");
    // Again and again.
    assert_eq!(desk.get(task)["result"], done["result"]);
}

#[test]
fn a_handler_that_is_done_at_once_answers_its_call() {
    // Rule: [TASK-026].
    let (gate, mut desk) = desk();
    for tool in ["plain", "quick"] {
        let result = desk.call(tool);
        assert_eq!(result["resultType"], "complete");
        assert_eq!(result["content"][0]["text"], tool);
    }
    gate.open();
    assert_eq!(desk.call("slow")["content"][0]["text"], "slow");
}

#[test]
fn a_handler_may_become_a_task_late() {
    let (gate, mut desk) = desk();
    let call = desk.send("tools/call", json!({ "name": "late" }));
    assert_eq!(desk.answer(call), None);
    gate.open();
    desk.pump();
    assert_eq!(desk.answer(call).unwrap()["result"]["resultType"], "task");
}

#[test]
fn a_blocking_handler_becomes_a_task_from_its_own_thread() {
    let (sender, receiver) = std::sync::mpsc::channel::<()>();
    let receiver = std::sync::Arc::new(std::sync::Mutex::new(receiver));
    let (said, says) = std::sync::mpsc::channel::<()>();
    let server =
        Server::new("s", "1").tasks(settings()).spawner(|job| drop(std::thread::spawn(job))).tool(
            "block",
            "",
            blocking(move |call: Call<NoArguments>| {
                call.run_as_task();
                said.send(()).unwrap();
                receiver.lock().unwrap().recv().unwrap();
                "blocked"
            }),
        );
    let mut desk = TaskClient::new(&server);
    let call = desk.send("tools/call", json!({ "name": "block" }));
    says.recv().unwrap();
    desk.pump();
    let task = desk.answer(call).unwrap()["result"]["taskId"].as_str().unwrap().to_owned();
    assert_eq!(desk.status(&task), "working");
    sender.send(()).unwrap();
    while desk.status(&task) == "working" {
        std::thread::yield_now();
    }
    assert_eq!(desk.get(&task)["result"]["content"][0]["text"], "blocked");
}

#[test]
fn a_failure_of_the_tool_completes_and_an_error_of_the_protocol_fails() {
    // Rule: [TASK-037].
    let (gate, mut desk) = desk();
    let (failing, broken) = (desk.task("failing"), desk.task("broken"));
    gate.open();
    let failing = desk.get(&failing);
    assert_eq!(failing["status"], "completed");
    assert_eq!(failing["result"]["isError"], true);
    let broken = desk.get(&broken);
    assert_eq!(broken["status"], "failed");
    assert_eq!(broken["error"], json!({ "code": -32603, "message": "no machine" }));
    assert_eq!(broken["statusMessage"], "no machine");
    assert!(broken.get("result").is_none());
}

#[test]
fn a_client_that_did_not_declare_the_extension_never_sees_a_task() {
    // Rule: [TASK-025] [TASK-028] [TASK-036].
    let (gate, mut desk) = desk();
    desk.capabilities = json!({});
    let call = desk.send("tools/call", json!({ "name": "slow", "arguments": {} }));
    assert_eq!(desk.answer(call), None);
    gate.open();
    desk.pump();
    let result = desk.answer(call).unwrap()["result"].clone();
    assert_eq!(result["resultType"], "complete");
    assert_eq!(result["content"][0]["text"], "slow");

    let needed = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    for (method, params) in [
        ("tools/call", json!({ "name": "required", "arguments": {} })),
        ("tasks/get", json!({ "taskId": "1" })),
        ("tasks/update", json!({ "taskId": "1", "inputResponses": {} })),
        ("tasks/cancel", json!({ "taskId": "1" })),
        ("subscriptions/listen", json!({ "notifications": { "taskIds": ["1"] } })),
    ] {
        let error = desk.response(method, params)["error"].clone();
        assert_eq!(error["code"], ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY.0, "{method}");
        assert_eq!(error["data"]["requiredCapabilities"], needed, "{method}");
    }
}

#[test]
fn a_declaration_holds_for_its_request_alone() {
    // Rule: [TASK-024] [TASK-025].
    let (_, mut desk) = desk();
    desk.task("slow");
    let declared = std::mem::replace(&mut desk.capabilities, json!({}));
    let call = desk.send("tools/call", json!({ "name": "slow" }));
    assert_eq!(desk.answer(call), None);
    desk.capabilities = declared;
    desk.task("required");
}

#[test]
fn a_cancelled_task_stays_cancelled_and_its_handler_is_dropped() {
    // Rule: [TASK-009] [TASK-033] [TASK-034].
    let (gate, mut desk) = desk();
    let before = gate.holders();
    let task = desk.task("slow");
    assert!(gate.holders() > before);
    desk.cancel(&task);
    assert_eq!(gate.holders(), before);
    assert_eq!(desk.status(&task), "cancelled");
    gate.open();
    desk.pump();
    assert_eq!(desk.status(&task), "cancelled");
    desk.cancel(&task);
    desk.update(&task, json!({}));
}

#[test]
fn cancelling_what_is_done_is_acknowledged_and_changes_nothing() {
    // Rule: [TASK-033] [TASK-034].
    let (gate, mut desk) = desk();
    let task = desk.task("slow");
    gate.open();
    desk.pump();
    let done = desk.get(&task);
    desk.cancel(&task);
    desk.update(&task, json!({ "any": { "action": "accept" } }));
    assert_eq!(desk.get(&task), done);
}

#[test]
fn a_notification_of_cancellation_is_not_for_tasks() {
    // Rule: [TASK-034].
    let (gate, mut desk) = desk();
    let call = desk.send("tools/call", json!({ "name": "slow" }));
    let task = desk.answer(call).unwrap()["result"]["taskId"].as_str().unwrap().to_owned();
    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
                            "params": { "requestId": call } });
    let now = desk.now;
    mcp_sansio_handlers::Endpoint::handle_frame(
        &mut desk.endpoint,
        Ok(cancelled.to_string().as_bytes()),
        now,
    );
    desk.pump();
    assert_eq!(desk.status(&task), "working");
    gate.open();
    assert_eq!(desk.status(&task), "completed");
}

#[test]
fn a_result_that_is_not_a_task_is_an_error() {
    // Rule: [TASK-035] [TASK-040].
    let (_, mut desk) = desk();
    let nobody = json!({ "taskId": "nobody", "inputResponses": {} });
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        assert_eq!(desk.error(method, nobody.clone()), -32602, "{method}");
        assert_eq!(desk.error(method, json!({ "inputResponses": {} })), -32602, "{method}");
        assert_eq!(desk.error(method, json!({ "taskId": 7, "inputResponses": {} })), -32602);
    }
    let task = desk.task("slow");
    for responses in [json!(7), json!({ "a": 7 }), Value::Null] {
        let params = json!({ "taskId": task, "inputResponses": responses });
        assert_eq!(desk.error("tasks/update", params), -32602);
    }
    assert_eq!(desk.error("tasks/update", json!({ "taskId": task })), -32602);
    for method in ["tasks/list", "tasks/result"] {
        assert_eq!(desk.error(method, json!({ "taskId": task })), -32601, "{method}");
    }
    assert_eq!(desk.status(&task), "working");
}

#[test]
fn a_client_request_for_a_task_is_ignored() {
    // Rule: [TASK-040].
    let (_, mut desk) = desk();
    let params = json!({ "name": "plain", "arguments": {}, "task": { "ttl": 60_000 } });
    assert_eq!(desk.result("tools/call", params)["resultType"], "complete");
}

#[test]
fn progress_of_a_task_is_what_its_status_says() {
    // Rule: [TASK-038].
    let (gate, mut desk) = desk();
    let task = desk.task("talkative");
    assert_eq!(desk.get(&task)["statusMessage"], "halfway there");
    desk.pass(Duration::from_secs(1));
    gate.open();
    desk.pump();
    let there = desk.get(&task);
    assert_eq!(there["statusMessage"], "there");
    assert_eq!(there["lastUpdatedAt"], "2026-07-28T00:00:01.000Z");
    assert!(desk.notifications.is_empty(), "{:?}", desk.notifications);
}

#[test]
fn task_notifications_match_tasks_get() {
    // Rule: [TASK-038].
    let (gate, mut desk) = desk();
    let (task, other) = (desk.task("slow"), desk.task("failing"));
    let filter = json!({ "notifications": { "taskIds": [task] } });
    let listening = desk.send("subscriptions/listen", filter.clone());
    let acknowledged = desk.notifications.remove(0);
    assert_eq!(acknowledged["params"]["notifications"], filter["notifications"]);
    gate.open();
    desk.pump();
    let told: Vec<Value> = std::mem::take(&mut desk.notifications);
    let [told] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!(told["method"], "notifications/tasks");
    let mut params = told["params"].clone();
    let meta = params.as_object_mut().unwrap().remove("_meta").unwrap();
    assert_eq!(meta["io.modelcontextprotocol/subscriptionId"], listening);
    let mut got = desk.get(&task);
    for key in ["_meta", "resultType"] {
        got.as_object_mut().unwrap().remove(key);
    }
    assert_eq!(params, got);
    assert_eq!(desk.status(&other), "completed");
}

#[test]
fn other_revisions_have_no_such_tasks() {
    // Rule: [TASK-044].
    for revision in Revision::ALL.into_iter().filter(|revision| *revision != Revision::V2026_07_28)
    {
        let gate = Gate::default();
        gate.open();
        let (client, mut pair) = connect(&server(&gate), revision);
        let result = pair.run(client.call_tool("slow", &NoArguments {})).unwrap();
        assert_eq!(text(&result), "slow");
        let refused = pair.run(client.call_tool("required", &NoArguments {})).unwrap_err();
        let code = refused.as_refusal().unwrap().code;
        assert_eq!(code, ErrorCode::INTERNAL_ERROR, "{revision}");
        let said = pair.wire.iter().find(|line| line.contains("serverInfo")).unwrap();
        assert!(!said.contains("extensions"), "{said}");
    }
}

#[test]
fn a_handler_that_stays_on_its_thread_runs_as_a_task_too() {
    let gate = Gate::default();
    let held = std::rc::Rc::new(gate.clone());
    let server = Server::local("s", "1").tasks(settings()).tool(
        "slow",
        "",
        async move |call: Call<NoArguments>| {
            call.run_as_task();
            held.passed().await;
            "local"
        },
    );
    let mut desk = TaskClient::new(&server);
    let task = desk.task("slow");
    // The place of its request is free for others.
    let other = desk.task("slow");
    gate.open();
    for task in [task, other] {
        assert_eq!(desk.get(&task)["result"]["content"][0]["text"], "local");
    }
}

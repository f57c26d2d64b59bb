use std::time::Duration;

use mcp_sansio::jsonrpc::ErrorObject;
use mcp_sansio::protocol::CallToolResult;
use mcp_sansio::{ErrorCode, LoggingLevel, Revision};
use mcp_sansio_handlers::{Call, HandlerError, NoArguments, Server, blocking};
use serde_json::{Value, json};

use crate::task_client::{Gate, TaskClient, settings};
use crate::{connect, text};

/// A server whose tools wait until the gate opens.
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
                Err::<(), _>(HandlerError::Protocol(ErrorObject::internal("no machine")))
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

fn client() -> (Gate, TaskClient) {
    let gate = Gate::default();
    let client = TaskClient::new(&server(&gate));
    (gate, client)
}

#[test]
fn a_server_with_tasks_declares_the_extension_and_one_without_does_not() {
    // Rule: [TASK-024] [TASK-040].
    let (_, mut client) = client();
    let capabilities = client.result("server/discover", json!({}))["capabilities"].clone();
    assert_eq!(capabilities["extensions"], json!({ "io.modelcontextprotocol/tasks": {} }));
    assert!(capabilities.get("tasks").is_none());
    let without = Server::new("s", "1").tool("quick", "", |call: Call<NoArguments>| {
        assert!(!call.accepts_task());
        call.run_as_task();
        "quick"
    });
    let mut client = TaskClient::new(&without);
    assert_eq!(client.call("quick")["resultType"], "complete");
    assert_eq!(client.error("tasks/get", json!({ "taskId": "1" })), -32601);
}

#[test]
fn a_task_is_created_at_once_and_shows_its_result_when_it_is_done() {
    // Rule: [TASK-009] [TASK-010] [TASK-026] [TASK-029] [TASK-030].
    let (gate, mut client) = client();
    client.pass(Duration::from_millis(1500));
    let mut created = client.call("slow");
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
    assert_eq!(client.status(task), "working");
    client.pass(Duration::from_secs(2));
    gate.open();
    let done = client.get(task);
    assert_eq!(done["resultType"], "complete");
    assert_eq!(done["status"], "completed");
    assert_eq!(done["createdAt"], "2026-07-28T00:00:01.500Z");
    assert_eq!(done["lastUpdatedAt"], "2026-07-28T00:00:03.500Z");
    assert_eq!(done["result"]["content"][0]["text"], "slow");
    // The result can be read again.
    assert_eq!(client.get(task)["result"], done["result"]);
}

#[test]
fn a_handler_that_finishes_at_once_answers_its_call() {
    // Rule: [TASK-026].
    let (gate, mut client) = client();
    for tool in ["plain", "quick"] {
        let result = client.call(tool);
        assert_eq!(result["resultType"], "complete");
        assert_eq!(result["content"][0]["text"], tool);
    }
    gate.open();
    assert_eq!(client.call("slow")["content"][0]["text"], "slow");
}

#[test]
fn a_handler_may_become_a_task_after_waiting() {
    let (gate, mut client) = client();
    let call = client.send("tools/call", json!({ "name": "late" }));
    assert_eq!(client.answer(call), None);
    gate.open();
    client.pump();
    assert_eq!(client.answer(call).unwrap()["result"]["resultType"], "task");
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
    let mut client = TaskClient::new(&server);
    let call = client.send("tools/call", json!({ "name": "block" }));
    says.recv().unwrap();
    client.pump();
    let task = client.answer(call).unwrap()["result"]["taskId"].as_str().unwrap().to_owned();
    assert_eq!(client.status(&task), "working");
    sender.send(()).unwrap();
    while client.status(&task) == "working" {
        std::thread::yield_now();
    }
    assert_eq!(client.get(&task)["result"]["content"][0]["text"], "blocked");
}

#[test]
fn a_tool_error_completes_the_task_and_a_protocol_error_fails_it() {
    // Rule: [TASK-037].
    let (gate, mut client) = client();
    let (failing, broken) = (client.task("failing"), client.task("broken"));
    gate.open();
    let failing = client.get(&failing);
    assert_eq!(failing["status"], "completed");
    assert_eq!(failing["result"]["isError"], true);
    let broken = client.get(&broken);
    assert_eq!(broken["status"], "failed");
    assert_eq!(broken["error"], json!({ "code": -32603, "message": "no machine" }));
    assert_eq!(broken["statusMessage"], "no machine");
    assert!(broken.get("result").is_none());
}

#[test]
fn a_client_that_did_not_declare_the_extension_never_sees_a_task() {
    // Rule: [TASK-025] [TASK-028] [TASK-036].
    let (gate, mut client) = client();
    client.capabilities = json!({});
    let call = client.send("tools/call", json!({ "name": "slow", "arguments": {} }));
    assert_eq!(client.answer(call), None);
    gate.open();
    client.pump();
    let result = client.answer(call).unwrap()["result"].clone();
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
        let error = client.response(method, params)["error"].clone();
        assert_eq!(error["code"], ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY.0, "{method}");
        assert_eq!(error["data"]["requiredCapabilities"], needed, "{method}");
    }
}

#[test]
fn a_declaration_is_valid_for_its_request_only() {
    // Rule: [TASK-024] [TASK-025].
    let (_, mut client) = client();
    client.task("slow");
    let declared = std::mem::replace(&mut client.capabilities, json!({}));
    let call = client.send("tools/call", json!({ "name": "slow" }));
    assert_eq!(client.answer(call), None);
    client.capabilities = declared;
    client.task("required");
}

#[test]
fn a_cancelled_task_stays_cancelled_and_its_handler_is_dropped() {
    // Rule: [TASK-009] [TASK-033] [TASK-034].
    let (gate, mut client) = client();
    let before = gate.holders();
    let task = client.task("slow");
    assert!(gate.holders() > before);
    client.cancel(&task);
    assert_eq!(gate.holders(), before);
    assert_eq!(client.status(&task), "cancelled");
    gate.open();
    client.pump();
    assert_eq!(client.status(&task), "cancelled");
    client.cancel(&task);
    client.update(&task, json!({}));
}

#[test]
fn cancelling_a_finished_task_is_acknowledged_without_effect() {
    // Rule: [TASK-033] [TASK-034].
    let (gate, mut client) = client();
    let task = client.task("slow");
    gate.open();
    client.pump();
    let done = client.get(&task);
    client.cancel(&task);
    client.update(&task, json!({ "any": { "action": "accept" } }));
    assert_eq!(client.get(&task), done);
}

#[test]
fn a_cancellation_notification_does_not_affect_tasks() {
    // Rule: [TASK-034].
    let (gate, mut client) = client();
    let call = client.send("tools/call", json!({ "name": "slow" }));
    let task = client.answer(call).unwrap()["result"]["taskId"].as_str().unwrap().to_owned();
    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
                            "params": { "requestId": call } });
    let now = client.now;
    mcp_sansio_handlers::endpoint::Endpoint::handle_frame(
        &mut client.endpoint,
        Ok(cancelled.to_string().as_bytes()),
        now,
    );
    client.pump();
    assert_eq!(client.status(&task), "working");
    gate.open();
    assert_eq!(client.status(&task), "completed");
}

#[test]
fn an_unknown_task_is_an_error() {
    // Rule: [TASK-035] [TASK-040].
    let (_, mut client) = client();
    let nobody = json!({ "taskId": "nobody", "inputResponses": {} });
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        assert_eq!(client.error(method, nobody.clone()), -32602, "{method}");
        assert_eq!(client.error(method, json!({ "inputResponses": {} })), -32602, "{method}");
        assert_eq!(client.error(method, json!({ "taskId": 7, "inputResponses": {} })), -32602);
    }
    let task = client.task("slow");
    for responses in [json!(7), json!({ "a": 7 }), Value::Null] {
        let params = json!({ "taskId": task, "inputResponses": responses });
        assert_eq!(client.error("tasks/update", params), -32602);
    }
    assert_eq!(client.error("tasks/update", json!({ "taskId": task })), -32602);
    for method in ["tasks/list", "tasks/result"] {
        assert_eq!(client.error(method, json!({ "taskId": task })), -32601, "{method}");
    }
    assert_eq!(client.status(&task), "working");
}

#[test]
fn a_member_task_in_a_call_is_ignored() {
    // Rule: [TASK-040].
    let (_, mut client) = client();
    let params = json!({ "name": "plain", "arguments": {}, "task": { "ttl": 60_000 } });
    assert_eq!(client.result("tools/call", params)["resultType"], "complete");
}

#[test]
fn the_status_message_of_a_task_shows_its_progress() {
    // Rule: [TASK-038].
    let (gate, mut client) = client();
    let task = client.task("talkative");
    assert_eq!(client.get(&task)["statusMessage"], "halfway there");
    client.pass(Duration::from_secs(1));
    gate.open();
    client.pump();
    let there = client.get(&task);
    assert_eq!(there["statusMessage"], "there");
    assert_eq!(there["lastUpdatedAt"], "2026-07-28T00:00:01.000Z");
    assert!(client.notifications.is_empty(), "{:?}", client.notifications);
}

#[test]
fn task_notifications_match_tasks_get() {
    // Rule: [TASK-038].
    let (gate, mut client) = client();
    let (task, other) = (client.task("slow"), client.task("failing"));
    let filter = json!({ "notifications": { "taskIds": [task] } });
    let listening = client.send("subscriptions/listen", filter.clone());
    let acknowledged = client.notifications.remove(0);
    assert_eq!(acknowledged["params"]["notifications"], filter["notifications"]);
    gate.open();
    client.pump();
    let told: Vec<Value> = std::mem::take(&mut client.notifications);
    let [told] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!(told["method"], "notifications/tasks");
    let mut params = told["params"].clone();
    let meta = params.as_object_mut().unwrap().remove("_meta").unwrap();
    assert_eq!(meta["io.modelcontextprotocol/subscriptionId"], listening);
    let mut got = client.get(&task);
    for key in ["_meta", "resultType"] {
        got.as_object_mut().unwrap().remove(key);
    }
    assert_eq!(params, got);
    assert_eq!(client.status(&other), "completed");
}

#[test]
fn other_revisions_do_not_support_these_tasks() {
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
        let said = pair.transcript.lines().iter().find(|line| line.contains("serverInfo")).unwrap();
        assert!(!said.contains("extensions"), "{said}");
    }
}

#[test]
fn a_local_handler_can_run_as_a_task() {
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
    let mut client = TaskClient::new(&server);
    let task = client.task("slow");
    // The slot of its request is free for other requests.
    let other = client.task("slow");
    gate.open();
    for task in [task, other] {
        assert_eq!(client.get(&task)["result"]["content"][0]["text"], "local");
    }
}

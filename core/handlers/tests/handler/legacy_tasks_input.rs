//! Input requests of tasks of 2025-11-25.

use std::time::Duration;

use mcp_sansio::peer::Limits;
use mcp_sansio::protocol::{ElicitSchema, ListRootsParams, TaskSupport};
use mcp_sansio_handlers::{Call, Elicit, HandlerError, NoArguments, Server};
use serde_json::{Value, json};

use crate::legacy_task_client::{LegacyTaskClient, RELATED, everything};
use crate::task_client::{Gate, settings};

fn server(gate: &Gate) -> Server {
    let gate = gate.clone();
    let name = || Elicit::form_with("Who?", ElicitSchema::new());
    Server::new("s", "1")
        .tasks(settings())
        .tool("ask", "", move |call: Call<NoArguments>| {
            let gate = gate.clone();
            async move {
                match call.input::<Value>("name")? {
                    None => call.require_input("name", name()).state("kept").into_result(),
                    Some(answer) => {
                        gate.passed().await;
                        Ok(format!("{} {:?}", answer.accepted(), call.state()))
                    }
                }
            }
        })
        .tool("both", "", move |call: Call<NoArguments>| {
            if call.inputs().is_empty() {
                return call
                    .require_input("name", name())
                    .and("roots", ListRootsParams::new())
                    .into_result();
            }
            let refused = call.inputs().refusal("name").is_some();
            let roots = call.inputs().response("roots").map(|roots| roots.as_str().to_owned());
            Ok::<_, HandlerError>(format!("{refused} {roots:?}"))
        })
        .tool("forever", "", move |call: Call<NoArguments>| {
            call.require_input("name", name()).into_result::<String>()
        })
        .task_support("ask", TaskSupport::Optional)
        .task_support("both", TaskSupport::Optional)
        .task_support("forever", TaskSupport::Optional)
}

fn client() -> (Gate, LegacyTaskClient) {
    let gate = Gate::default();
    let client = LegacyTaskClient::new(&server(&gate));
    (gate, client)
}

/// Returns the requests that were received since the last call.
fn questions(client: &mut LegacyTaskClient) -> Vec<Value> {
    let all = std::mem::take(&mut client.unasked);
    all.into_iter().filter(|message| message.get("id").is_some()).collect()
}

fn yes() -> Value {
    json!({ "action": "accept", "content": {} })
}

fn text(response: &Value) -> &str {
    response["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{response}"))
}

#[test]
fn a_task_sends_input_requests_to_the_client_that_awaits_its_result() {
    // Rule: [TASK-009] [TASK-013] [TASK-015] [TASK-048] [META-015].
    let (gate, mut client) = client();
    let task = client.task("ask");
    assert_eq!(client.status(&task), "input_required");
    assert!(questions(&mut client).is_empty());
    let waiting = client.send("tasks/result", json!({ "taskId": task }));
    let asked = questions(&mut client);
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0]["method"], "elicitation/create");
    assert_eq!(asked[0]["params"]["message"], "Who?");
    assert_eq!(asked[0]["params"]["_meta"], json!({ RELATED: { "taskId": task } }));
    // A second waiting request does not repeat the input request.
    let other = client.send("tasks/result", json!({ "taskId": task }));
    assert!(questions(&mut client).is_empty());
    client.reply(&asked[0], yes());
    assert_eq!(client.status(&task), "working");
    assert_eq!(client.answer(waiting), None);
    gate.open();
    client.pump();
    for waiting in [waiting, other] {
        assert_eq!(text(&client.answer(waiting).unwrap()), r#"true Some("kept")"#);
    }
    assert_eq!(client.status(&task), "completed");
}

#[test]
fn a_waiting_request_is_asked_as_soon_as_input_is_required() {
    // Rule: [TASK-015].
    let (_, mut client) = client();
    let task = client.task("forever");
    let waiting = client.send("tasks/result", json!({ "taskId": task }));
    let mut rounds = 0;
    while let Some(question) = questions(&mut client).pop() {
        rounds += 1;
        client.reply(&question, yes());
    }
    // Until the limit of rounds is reached.
    assert_eq!(rounds, Limits::default().rounds_max);
    let response = client.answer(waiting).unwrap();
    assert_eq!(response["error"]["code"], -32603, "{response}");
    assert_eq!(client.status(&task), "failed");
}

#[test]
fn every_input_request_names_its_task_and_declining_is_an_answer() {
    // Rule: [TASK-015] [TASK-048].
    let (_, mut client) = client();
    let task = client.task("both");
    let waiting = client.send("tasks/result", json!({ "taskId": task }));
    let asked = questions(&mut client);
    assert_eq!(asked.len(), 2);
    for question in &asked {
        assert_eq!(question["params"]["_meta"][RELATED]["taskId"], *task, "{question}");
        if question["method"] == "roots/list" {
            client.reply(question, json!({ "roots": [] }));
            assert_eq!(client.status(&task), "input_required");
        }
    }
    let elicit = asked.iter().find(|question| question["method"] == "elicitation/create").unwrap();
    let error = json!({ "code": -32603, "message": "no user" });
    client.deliver(&json!({ "jsonrpc": "2.0", "id": elicit["id"], "error": error }));
    assert_eq!(text(&client.answer(waiting).unwrap()), r#"true Some("{\"roots\":[]}")"#);
}

#[test]
fn a_cancelled_result_request_passes_input_requests_to_the_next() {
    // Rule: [TASK-013] [TASK-015].
    let (gate, mut client) = client();
    gate.open();
    let task = client.task("ask");
    let first = client.send("tasks/result", json!({ "taskId": task }));
    let asked = questions(&mut client);
    client.tell("notifications/cancelled", json!({ "requestId": first }));
    let withdrawn = client.unasked.pop().unwrap();
    assert_eq!(withdrawn["method"], "notifications/cancelled");
    assert_eq!(withdrawn["params"]["requestId"], asked[0]["id"]);
    assert_eq!(client.status(&task), "input_required");
    // The answer to the withdrawn request is ignored.
    client.reply(&asked[0], yes());
    assert_eq!(client.status(&task), "input_required");
    let second = client.send("tasks/result", json!({ "taskId": task }));
    let asked = questions(&mut client);
    client.reply(&asked[0], yes());
    assert_eq!(text(&client.answer(second).unwrap()), r#"true Some("kept")"#);
    assert_eq!(client.answer(first), None);
}

#[test]
fn ending_a_task_withdraws_its_input_requests_and_answers_waiting_requests() {
    // Rule: [CANC-009] [TASK-018].
    let (_, mut client) = client();
    for expires in [false, true] {
        let task = client.task("ask");
        let waiting = client.send("tasks/result", json!({ "taskId": task }));
        let asked = questions(&mut client);
        let code = if expires {
            client.pass(Duration::from_secs(60));
            -32602
        } else {
            let cancelled = client.result("tasks/cancel", json!({ "taskId": task }));
            assert_eq!(cancelled["status"], "cancelled");
            -32603
        };
        let withdrawn = client.unasked.pop().unwrap();
        assert_eq!(withdrawn["method"], "notifications/cancelled");
        assert_eq!(withdrawn["params"]["requestId"], asked[0]["id"]);
        assert_eq!(client.answer(waiting).unwrap()["error"]["code"], code);
        client.reply(&asked[0], yes());
        assert!(client.unasked.is_empty());
    }
}

#[test]
fn an_unsupported_input_request_is_a_tool_error() {
    // Rule: [TASK-020] [ELIC-001].
    let mut capabilities = everything();
    capabilities.as_object_mut().unwrap().remove("elicitation");
    let mut client = LegacyTaskClient::with(&server(&Gate::default()), capabilities);
    let task = client.task("ask");
    assert_eq!(client.status(&task), "failed");
    let result = client.result("tasks/result", json!({ "taskId": task }));
    assert_eq!(result["isError"], true);
    assert!(result["content"][0]["text"].as_str().unwrap().contains("elicitation"), "{result}");
}

#[test]
fn end_of_input_ends_every_pending_call() {
    let (_, mut client) = client();
    let task = client.task("ask");
    let waiting = client.send("tasks/result", json!({ "taskId": task }));
    mcp_sansio_handlers::endpoint::Endpoint::handle_eof(&mut client.endpoint, client.now);
    client.pump();
    assert_eq!(client.answer(waiting).unwrap()["error"]["code"], -32603);
    assert!(mcp_sansio_handlers::endpoint::Endpoint::is_drained(&client.endpoint));
}

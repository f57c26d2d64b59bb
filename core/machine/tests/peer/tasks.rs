//! Tasks of 2025-11-25 at the level of the machines.

use std::time::Duration;

use mcp_sansio::gate::GateError;
use mcp_sansio::jsonrpc::{ErrorObject, RawJson};
use mcp_sansio::peer::{
    CallOptions, ClientMachine, ClientOptions, CommandError, Event, ServerMachine, ServerOptions,
};
use mcp_sansio::protocol::{
    CapabilitySettings, ClientCapabilities, ElicitFormParams, ElicitParams, ElicitSchema,
    InputRequest, InputRequiredResult, ServerCapabilities, TaskMethods, TaskRequests,
    TasksCapability, ToolsCapability,
};
use mcp_sansio::{Method, Revision};
use serde_json::json;

use crate::fixtures::*;
use crate::pair::Pair;
use crate::played::Client;
use crate::played::Server;
use crate::wire::Wire;

const NOVEMBER: Revision = Revision::V2025_11_25;

/// Returns options of a server that runs tools as tasks.
pub(crate) fn with_tasks() -> ServerOptions {
    let tools = TaskMethods::new().call(CapabilitySettings::new());
    let requests = TaskRequests::new().tools(tools);
    let tasks =
        TasksCapability::new().list(CapabilitySettings::new()).cancel(CapabilitySettings::new());
    let capabilities =
        ServerCapabilities::new().tools(ToolsCapability::new()).tasks(tasks.requests(requests));
    bare_server().capabilities(capabilities)
}

fn link() -> Pair {
    Pair::open_at(NOVEMBER, host(), with_tasks())
}

fn as_task() -> CallOptions<'static> {
    CallOptions::default().task(Some(Duration::from_secs(60)))
}

/// Returns a server in a session at 2025-11-25, and a request of its client, with id 2.
fn asked(method: &str, params: &str) -> (Wire<Server>, mcp_sansio::peer::Request<'static>) {
    let capabilities = r#"{"elicitation":{},"roots":{}}"#;
    let mut wire = server_at(NOVEMBER, capabilities, with_tasks());
    wire.send(&request("2", method, params));
    let Event::Request(request) = wire.event() else { panic!("a request") };
    (wire, request)
}

const CREATED: &str = r#"{"task":{"taskId":"t","status":"working","createdAt":"2025-11-25T10:30:00Z","lastUpdatedAt":"2025-11-25T10:30:00Z","ttl":60000}}"#;

/// Returns the input requests of a task named `t`.
fn questions() -> InputRequiredResult {
    let form = ElicitFormParams::new("Who?", ElicitSchema::new());
    let mut required = InputRequiredResult::new();
    let requests = [(String::from("who"), InputRequest::from(ElicitParams::Form(form)))];
    required.input_requests = Some(requests.into_iter().collect());
    required
}

#[test]
fn task_augmentation_is_sent_only_to_peers_that_support_it() {
    // Rule: [TASK-001] [TASK-002] [TASK-003].
    let mut pair = link();
    let (client, now) = (&mut pair.client, pair.now);
    let elsewhere = client.call(Method::ToolsList, &raw("{}"), &as_task(), now);
    assert!(matches!(elsewhere, Err(CommandError::OutOfPlace(Method::ToolsList))));
    client.call(Method::ToolsCall, &echo(), &as_task(), now).unwrap();
    let line = client.poll_transmit().unwrap();
    let sent: serde_json::Value = serde_json::from_slice(line).unwrap();
    let params =
        json!({ "task": { "ttl": 60_000 }, "name": "echo", "arguments": { "text": "hi" } });
    assert_eq!(sent["params"], params);
    let options = CallOptions::default().task(None).progress();
    client.call(Method::ToolsCall, &echo(), &options, now).unwrap();
    let sent: serde_json::Value = serde_json::from_slice(client.poll_transmit().unwrap()).unwrap();
    assert_eq!(sent["params"]["task"], json!({}));
    assert_eq!(sent["params"]["_meta"]["progressToken"], sent["id"]);
    client.call_other("x/y", &raw("{}"), &as_task(), now).unwrap();
    let sent: serde_json::Value = serde_json::from_slice(client.poll_transmit().unwrap()).unwrap();
    assert_eq!(sent["params"], json!({}));
    for revision in Revision::ALL {
        let mut pair = Pair::open_at(revision, host(), full_server());
        let refused = pair.client.call(Method::ToolsCall, &echo(), &as_task(), pair.now);
        let Err(CommandError::Forbidden(GateError::NotDeclared { .. })) = refused else {
            panic!("{revision}: {refused:?}")
        };
        assert_eq!(pair.client.poll_transmit(), None);
    }
}

#[test]
fn a_server_requests_a_task_only_from_a_client_that_supports_it() {
    // Rule: [TASK-001] [TASK-002].
    let form = raw(r#"{"message":"Who?","requestedSchema":{"type":"object","properties":{}}}"#);
    let mut pair = link();
    let refused = pair.server.call(Method::ElicitationCreate, &form, &as_task(), pair.now);
    assert!(matches!(refused, Err(CommandError::Forbidden(GateError::NotDeclared { .. }))));
    assert_eq!(pair.server.poll_transmit(), None);
    let elicitation = TaskMethods::new().create(CapabilitySettings::new());
    let requests = TaskRequests::new().elicitation(elicitation);
    let tasks = TasksCapability::new().requests(requests);
    let capabilities = ClientCapabilities::new()
        .elicitation(mcp_sansio::protocol::ElicitationCapability::new())
        .sampling(mcp_sansio::protocol::SamplingCapability::new())
        .tasks(tasks);
    let options: ClientOptions = plain_client().capabilities(capabilities);
    let mut pair = Pair::open_at(NOVEMBER, options, with_tasks());
    let refused = pair.server.call(Method::SamplingCreateMessage, &raw("{}"), &as_task(), pair.now);
    assert!(matches!(refused, Err(CommandError::Forbidden(GateError::NotDeclared { .. }))));
    pair.server.call(Method::ElicitationCreate, &form, &as_task(), pair.now).unwrap();
    let sent: serde_json::Value =
        serde_json::from_slice(pair.server.poll_transmit().unwrap()).unwrap();
    assert_eq!(sent["params"]["task"], json!({ "ttl": 60_000 }));
}

#[test]
fn a_client_without_tasks_ignores_a_request_for_one() {
    // Rule: [TASK-006].
    let mut wire = client_at(NOVEMBER, host());
    let form =
        r#"{"message":"Who?","requestedSchema":{"type":"object","properties":{}},"task":{}}"#;
    wire.send(&request("7", "elicitation/create", form));
    let Event::InputRequested(input) = wire.event() else { panic!("a question") };
    let declined = raw(r#"{"action":"decline"}"#);
    wire.machine.answer_input_with(input.handle, &declined, wire.now).unwrap();
    wire.expect(&result("7", r#"{"action":"decline"}"#));
    wire.send(&request("8", "tasks/get", r#"{"taskId":"t"}"#));
    assert!(wire.told().starts_with("violation"));
    assert_eq!(wire.message()["error"]["code"], -32601);
}

/// Returns a client whose call, with id 2, was answered with a task.
fn answered() -> (Wire<Client>, mcp_sansio::peer::CallHandle) {
    let mut wire = client_with(r#"{"tools":{},"tasks":{"requests":{"tools":{"call":{}}}}}"#);
    let options = as_task().progress();
    let call = wire.machine.call(Method::ToolsCall, &echo(), &options, wire.now).unwrap();
    wire.line();
    wire.send(&result("2", CREATED));
    assert!(wire.told().starts_with("ended with"));
    (wire, call)
}

fn client_with(offers: &str) -> Wire<Client> {
    let mut wire = crate::wire::client(host().revisions(mcp_sansio::Revisions::only(NOVEMBER)));
    wire.line();
    let opened = format!(
        r#"{{"protocolVersion":"{NOVEMBER}","capabilities":{offers},"serverInfo":{{"name":"s","version":"1"}}}}"#
    );
    wire.send(&result("1", &opened));
    wire.told();
    wire.line();
    wire
}

#[test]
fn a_task_that_a_call_does_not_request_ends_the_call_with_an_error() {
    // Rule: [TASK-001].
    let mut wire = client_with(OFFERS);
    let options = CallOptions::default();
    for (id, answer, expected) in [
        ("2", CREATED, "failed: the answer is not valid: a task, which the call does not request"),
        ("3", r#"{"task":null}"#, r#"ended with {"task":null}"#),
        ("4", r#"{"task":{},"content":[]}"#, r#"ended with {"task":{},"content":[]}"#),
    ] {
        wire.machine.call(Method::ToolsCall, &echo(), &options, wire.now).unwrap();
        wire.line();
        wire.send(&result(id, answer));
        assert_eq!(wire.told(), expected);
        wire.expect_silence();
        assert_eq!(wire.machine.poll_timeout(), None);
    }
}

#[test]
fn task_progress_continues_until_the_task_ends() {
    // Rule: [PROG-010].
    let (mut wire, call) = answered();
    let progress = |count: u32| {
        notification(
            "notifications/progress",
            &format!(r#"{{"progressToken":2,"progress":{count}}}"#),
        )
    };
    wire.send(&progress(1));
    let Event::Progress(told) = wire.event() else { panic!("progress") };
    assert_eq!((told.call, told.progress), (call, 1.0));
    // There is no deadline, and a second response is a violation.
    assert_eq!(wire.machine.poll_timeout(), None);
    wire.send(&result("2", "{}"));
    assert!(wire.told().starts_with("violation"));
    wire.send(&progress(2));
    assert!(matches!(wire.event(), Event::Progress(_)));
    wire.machine.cancel(call, "", wire.now);
    wire.expect_silence();
    wire.send(&progress(3));
    wire.expect_silence();
    // The end of the connection does not end the call again.
    let (mut wire, _) = answered();
    wire.end();
    assert!(matches!(wire.event(), Event::Closed(_)));
}

#[test]
fn a_task_augmented_call_is_dropped_without_a_cancellation() {
    // Rule: [CANC-009].
    let mut wire = client_with(r#"{"tools":{},"tasks":{"requests":{"tools":{"call":{}}}}}"#);
    let call = wire.machine.call(Method::ToolsCall, &echo(), &as_task(), wire.now).unwrap();
    wire.line();
    wire.machine.cancel(call, "why not", wire.now);
    assert!(wire.told().starts_with("failed"));
    wire.expect_silence();
    // Its response is still expected.
    wire.send(&result("2", CREATED));
    wire.expect_silence();
    wire.machine.call(Method::ToolsCall, &echo(), &as_task(), wire.now).unwrap();
    wire.line();
    wire.advance_to_deadline();
    assert!(wire.told().starts_with("failed"));
    wire.expect_silence();
}

#[test]
fn a_request_for_a_result_can_request_input_and_keeps_waiting() {
    // Rule: [TASK-015].
    let (mut wire, request) = asked("tasks/result", r#"{"taskId":"t"}"#);
    let handle = request.handle;
    wire.machine.require_input(&request, &questions(), wire.now).unwrap();
    let question = wire.message();
    assert_eq!(question["method"], "elicitation/create");
    wire.send(&result(&question["id"].to_string(), r#"{"action":"decline"}"#));
    let Event::Request(again) = wire.event() else { panic!("the repeated request") };
    assert_eq!(again.handle, handle);
    assert!(again.inputs.response("who").is_some());
    wire.machine.respond_with(handle, &raw("{}"), wire.now).unwrap();
    wire.expect(&result("2", "{}"));
    let (mut wire, request) = asked("tasks/get", r#"{"taskId":"t"}"#);
    assert!(wire.machine.require_input(&request, &questions(), wire.now).is_err());
    assert_eq!(wire.message()["error"]["code"], -32603);
}

#[test]
fn a_request_is_answerable_after_its_input_requests_are_withdrawn() {
    let (mut wire, request) = asked("tasks/result", r#"{"taskId":"t"}"#);
    let handle = request.handle;
    // No input request is pending yet.
    wire.machine.withdraw_input(handle, wire.now);
    wire.machine.require_input(&request, &questions(), wire.now).unwrap();
    let question = wire.message();
    assert!(wire.machine.reject(handle, ErrorObject::internal("early"), wire.now).is_err());
    wire.machine.withdraw_input(handle, wire.now);
    let withdrawn = wire.message();
    assert_eq!(withdrawn["method"], "notifications/cancelled");
    assert_eq!(withdrawn["params"]["requestId"], question["id"]);
    wire.send(&result(&question["id"].to_string(), r#"{"action":"decline"}"#));
    wire.expect_silence();
    wire.machine.reject(handle, ErrorObject::invalid_params("over"), wire.now).unwrap();
    assert_eq!(wire.message()["error"]["code"], -32602);
    // Withdrawing again has no effect.
    wire.machine.withdraw_input(handle, wire.now);
    wire.expect_silence();
}

#[test]
fn progress_of_a_task_is_sent_only_in_sessions_with_tasks() {
    // Rule: [PROG-010].
    let params = r#"{"name":"echo","task":{},"_meta":{"progressToken":"p"}}"#;
    let (mut wire, request) = asked("tools/call", params);
    wire.machine.respond_with(request.handle, &raw(CREATED), wire.now).unwrap();
    wire.line();
    let progress = raw(r#"{"progressToken":"p","progress":1}"#);
    wire.machine.task_progress(request.handle, &progress, wire.now).unwrap();
    let sent = wire.message();
    assert_eq!(sent["method"], "notifications/progress");
    assert_eq!(sent["params"], json!({ "progressToken": "p", "progress": 1 }));
    assert!(wire.machine.task_progress(request.handle, &RawJson::NULL, wire.now).is_err());
    wire.expect_silence();
    let mut wire = server_at(Revision::V2025_06_18, "{}", with_tasks());
    wire.machine.task_progress(request.handle, &progress, wire.now).unwrap();
    wire.expect_silence();
}

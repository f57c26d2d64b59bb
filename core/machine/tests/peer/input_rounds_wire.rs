//! Input rounds of a call against a scripted modern server.

use mcp_sansio::jsonrpc::WriteError;
use mcp_sansio::peer::{CallOptions, ClientMachine, CommandError, Event};
use mcp_sansio::{LoggingLevel, Method, Revision};
use serde_json::json;

use crate::fixtures::*;
use crate::played::Client;
use crate::wire::Wire;

fn called(options: &CallOptions<'_>) -> Wire<Client> {
    let mut wire = client_at(Revision::V2026_07_28, host());
    wire.machine.call(Method::ToolsCall, &echo(), options, wire.now).unwrap();
    wire.line();
    wire
}

const ASKS: &str = r#"{"resultType":"input_required","inputRequests":{"r":{"method":"roots/list"}},"requestState":"\u0041b"}"#;

#[test]
fn a_retry_repeats_everything_under_a_new_id() {
    // Rule: [MRTR-012] [MRTR-014] [META-008] [PROG-002] [LOG-008].
    let meta = raw(r#"{"a/b":1}"#);
    let options = CallOptions::default().progress().log_level(LoggingLevel::Debug).meta(meta);
    let mut wire = called(&options);
    wire.send(&result("2", ASKS));
    let Event::InputRequested(input) = wire.event() else { panic!("an input") };
    wire.expect_silence();
    wire.machine.answer_input_with(input.handle, &raw(r#"{"roots":[]}"#), wire.now).unwrap();
    let line = wire.line();
    assert!(line.contains(r#""requestState":"\u0041b""#), "byte for byte: {line}");
    let retry: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(retry["id"], 3);
    assert_eq!(retry["params"]["name"], "echo");
    assert_eq!(retry["params"]["inputResponses"], json!({ "r": { "roots": [] } }));
    let meta = &retry["params"]["_meta"];
    assert_eq!(meta["a/b"], 1);
    assert_eq!(meta["progressToken"], 3);
    assert_eq!(meta["io.modelcontextprotocol/logLevel"], "debug");
    assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    // The first id has been used.
    wire.send(&result("2", "{}"));
    assert!(wire.told().starts_with("violation"));
    wire.send(&result("3", "{}"));
    assert_eq!(wire.told(), "ended with {}");
}

#[test]
fn null_is_the_absence_of_input_requests_or_of_a_state() {
    let asks = ASKS.replace(r#""\u0041b""#, "null");
    let mut wire = called(&CallOptions::default());
    wire.send(&result("2", &asks));
    let Event::InputRequested(input) = wire.event() else { panic!("an input") };
    // An answer that is no object is refused, and another one may follow.
    for answer in ["7", "null", "[]"] {
        let refused = wire.machine.answer_input_with(input.handle, &raw(answer), wire.now);
        let refused = refused.unwrap_err();
        assert!(matches!(refused, CommandError::NotWritable(WriteError::NotAnObject)), "{refused}");
    }
    wire.machine.answer_input_with(input.handle, &raw(r#"{"roots":[]}"#), wire.now).unwrap();
    assert!(wire.message()["params"].get("requestState").is_none());

    let mut wire = called(&CallOptions::default());
    let asks = r#"{"resultType":"input_required","inputRequests":null,"requestState":"s"}"#;
    wire.send(&result("2", asks));
    assert_eq!(wire.message()["params"]["requestState"], "s");
}

#[test]
fn an_undeclared_or_malformed_input_request_ends_the_call() {
    // Rule: [MRTR-003] [MRTR-004] [MRTR-005] [RPC-021].
    let asked = [
        r#"{"resultType":"input_required"}"#,
        r#"{"resultType":"input_required","inputRequests":null,"requestState":null}"#,
        r#"{"resultType":"input_required","inputRequests":7}"#,
        r#"{"resultType":"input_required","inputRequests":[{"method":"roots/list"}]}"#,
        r#"{"resultType":"input_required","requestState":7}"#,
        r#"{"resultType":"input_required","inputRequests":{"a":{"method":"tools/list"}}}"#,
        r#"{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"},"b":{}}}"#,
        r#"{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"mode":"url"}}}}"#,
        r#"{"resultType":"input_required","inputRequests":{"a":7}}"#,
        // Repeated members could be read in two ways.
        r#"{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"},"\u0061":{"method":"roots/list"}}}"#,
        r#"{"resultType":"input_required","inputRequests":{"r":{"method":"roots/list"}},"inputRequests":{"r":{"method":"roots/list"}}}"#,
        r#"{"resultType":"input_required","requestState":"a","request\u0053tate":"b"}"#,
        r#"{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list","method":"roots/list"}}}"#,
        r#"{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list","params":{},"params":{}}}}"#,
        r#"{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"mode":"form","mode":"form"}}}}"#,
        r#"{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"message":"a","messag\u0065":"b"}}}}"#,
    ];
    for asked in asked {
        let mut wire = called(&CallOptions::default());
        wire.send(&result("2", asked));
        assert!(wire.told().starts_with("failed: the answer is not valid"), "{asked}");
        wire.expect_silence();
    }
}

#[test]
fn a_client_without_capabilities_rejects_input_requests() {
    // Rule: [MRTR-005].
    let mut wire = client_at(Revision::V2026_07_28, plain_client());
    let options = CallOptions::default();
    wire.machine.call(Method::ToolsCall, &echo(), &options, wire.now).unwrap();
    wire.line();
    wire.send(&result("2", ASKS));
    assert!(wire.told().starts_with("failed: the answer is not valid"));
    wire.expect_silence();
}

#[test]
fn rounds_of_concurrent_calls_are_independent() {
    // Rule: [MRTR-015].
    let mut wire = called(&CallOptions::default());
    wire.machine.call(Method::ToolsCall, &echo(), &CallOptions::default(), wire.now).unwrap();
    wire.line();
    wire.send(&result("2", ASKS));
    wire.send(&result("3", &ASKS.replace("\\u0041b", "other")));
    let Event::InputRequested(first) = wire.event() else { panic!("an input") };
    let Event::InputRequested(second) = wire.event() else { panic!("an input") };
    wire.machine.answer_input_with(second.handle, &raw(r#"{"roots":[]}"#), wire.now).unwrap();
    assert_eq!(wire.message()["params"]["requestState"], "other");
    let call = first.call.unwrap();
    wire.machine.cancel(call, "", wire.now);
    wire.expect_nothing();
    assert!(wire.told().starts_with("cancelled input"));
    assert_eq!(wire.told(), "failed: cancelled");
    wire.send(&result("4", "{}"));
    assert_eq!(wire.told(), "ended with {}");
}

#[test]
fn malformed_answers_are_refused_by_the_server() {
    // Rule: [MRTR-016].
    let mut wire = crate::wire::server(full_server());
    for members in [r#""inputResponses":7"#, r#""inputResponses":{"a":1}"#, r#""requestState":7"#] {
        wire.send(&modern("1", "tools/call", &format!(r#""name":"t",{members}"#)));
        wire.expect_error("1", -32602);
        assert!(wire.told().starts_with("violation"));
    }
    // As PHP writes an empty object.
    wire.send(&modern("1", "tools/call", r#""name":"t","inputResponses":[]"#));
    let Event::Request(request) = wire.event() else { panic!("a request") };
    assert!(request.inputs.response("sure").is_none());
    // Unknown entries are accepted.
    wire.send(&modern("2", "tools/call", r#""name":"t","inputResponses":{"odd":{}}"#));
    let Event::Request(request) = wire.event() else { panic!("a request") };
    assert!(request.inputs.response("sure").is_none());
    assert!(request.inputs.response("odd").is_some());
}

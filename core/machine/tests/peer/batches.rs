//! Batches, which exist only at 2025-03-26.

use mcp_sansio::peer::{CallOptions, ClientMachine, Event, Policy, Reaction, ServerMachine};
use mcp_sansio::protocol::{InputRequiredResult, ListRootsParams, Map};
use mcp_sansio::{Method, Revision};
use serde_json::json;

use crate::fixtures::*;
use crate::wire::{Wire, server};

const BATCHES: Revision = Revision::V2025_03_26;

fn open(options: mcp_sansio::peer::ServerOptions) -> Wire<crate::played::Server> {
    server_at(BATCHES, r#"{"roots":{}}"#, options)
}

fn batch(messages: &[String]) -> String {
    format!("[{}]", messages.join(","))
}

fn one_root_list() -> InputRequiredResult {
    InputRequiredResult::new().input_requests(Map::default().with("r", ListRootsParams::new()))
}

#[test]
fn the_responses_of_a_batch_are_sent_together_when_it_is_complete() {
    // Rule: [BATCH-001] [BATCH-003].
    let mut wire = open(full_server());
    wire.send(&batch(&[
        request("2", "ping", "{}"),
        request("3", "tools/call", r#"{"name":"t"}"#),
        notification("notifications/cancelled", r#"{"requestId":99}"#),
        request("4", "prompts/get", r#"{"name":"p"}"#),
        request("5", "unheard/of", "{}"),
    ]));
    wire.expect_nothing();
    let Event::Request(first) = wire.event() else { panic!("a request") };
    let Event::Request(second) = wire.event() else { panic!("a request") };
    wire.machine.respond_with(second.handle, &raw(r#"{"messages":[]}"#), wire.now).unwrap();
    wire.expect_nothing();
    wire.machine.respond_with(first.handle, &raw(r#"{"content":[]}"#), wire.now).unwrap();
    let answers = wire.message();
    let ids: Vec<_> = answers.as_array().unwrap().iter().map(|a| a["id"].clone()).collect();
    assert_eq!(ids, [json!(2), json!(5), json!(4), json!(3)]);
    assert_eq!(answers[1]["error"]["code"], -32601);
    wire.expect_silence();
}

#[test]
fn elements_that_are_not_messages_get_an_error_each() {
    // Rule: [BATCH-003] [RPC-009] [RPC-017].
    let mut wire = open(full_server());
    wire.send(r#"[1,{"jsonrpc":"2.0","id":7,"method":5},{"jsonrpc":"2.0","method":"notifications/x","params":[1]}]"#);
    let answers = wire.message();
    let told: Vec<_> = answers
        .as_array()
        .unwrap()
        .iter()
        .map(|answer| (answer.get("id").cloned(), answer["error"]["code"].clone()))
        .collect();
    let expected = [(Some(json!(null)), json!(-32600)), (Some(json!(7)), json!(-32600))];
    assert_eq!(told, expected);
    for _ in 0..3 {
        assert!(wire.told().starts_with("violation: malformed"));
    }
    wire.expect_silence();
}

#[test]
fn an_empty_batch_is_one_error() {
    // Rule: [BATCH-003].
    let mut wire = open(full_server());
    wire.send("[]");
    wire.expect_error("null", -32600);
    assert!(wire.told().starts_with("violation"));
    wire.expect_silence();
}

#[test]
fn a_batch_of_notifications_has_no_answer() {
    // Rule: [BATCH-003] [RPC-013].
    let mut wire = open(full_server());
    let stray = notification("notifications/cancelled", r#"{"requestId":9}"#);
    wire.send(&batch(&[stray.clone(), stray]));
    wire.expect_silence();
}

#[test]
fn a_batch_rejects_initialize() {
    // Rule: [BATCH-004].
    let mut wire = server(full_server());
    wire.send(&batch(&[initialize("2025-03-26", "{}")]));
    assert_eq!(wire.message()[0]["error"]["code"], -32600);
    assert!(wire.told().contains("cannot be part of a batch"));
    assert!(wire.machine.session().is_none());
}

#[test]
fn a_batch_rejects_modern_requests() {
    // Rule: [BATCH-010].
    let mut wire = open(full_server());
    let listen = modern("3", "subscriptions/listen", r#""notifications":{}"#);
    wire.send(&batch(&[request("2", "ping", "{}"), listen]));
    let answers = wire.message();
    assert_eq!(answers[0]["result"], json!({}));
    assert_eq!(answers[1]["error"]["code"], -32600);
}

#[test]
fn a_batch_with_answers_and_requests_serves_both() {
    // Rule: [BATCH-001].
    let mut wire = open(full_server());
    let options = CallOptions::default();
    wire.machine.call(Method::RootsList, &raw("{}"), &options, wire.now).unwrap();
    wire.line();
    wire.send(&batch(&[request("2", "ping", "{}"), result("1", r#"{"roots":[]}"#)]));
    assert_eq!(wire.told(), r#"ended with {"roots":[]}"#);
    wire.expect(r#"[{"jsonrpc":"2.0","id":2,"result":{}}]"#);
}

#[test]
fn a_cancelled_request_leaves_its_batch() {
    // Rule: [CANC-003] [BATCH-003].
    let mut wire = open(full_server());
    let call = |id| request(id, "tools/call", r#"{"name":"t"}"#);
    wire.send(&batch(&[call("2"), call("3")]));
    let Event::Request(first) = wire.event() else { panic!("a request") };
    wire.event();
    wire.machine.respond_with(first.handle, &raw("{}"), wire.now).unwrap();
    wire.send(&notification("notifications/cancelled", r#"{"requestId":3}"#));
    assert_eq!(wire.message().as_array().unwrap().len(), 1);

    // The answer that was withdrawn is forgotten with the batch.
    assert!(matches!(wire.event(), Event::Cancelled(_)));
    wire.send(&batch(&[call("4"), call("5")]));
    let Event::Request(first) = wire.event() else { panic!("a request") };
    wire.event();
    wire.machine.respond_with(first.handle, &raw("{}"), wire.now).unwrap();
    for id in [4, 5] {
        let params = format!(r#"{{"requestId":{id}}}"#);
        wire.send(&notification("notifications/cancelled", &params));
    }
    wire.expect_nothing();
}

#[test]
fn a_round_of_input_inside_a_batch_holds_its_answer() {
    // Rule: [BATCH-003].
    let mut wire = open(full_server());
    wire.send(&batch(&[request("2", "tools/call", r#"{"name":"t"}"#)]));
    let Event::Request(request) = wire.event() else { panic!("a request") };
    let handle = request.handle;
    wire.machine.require_input(&request, &one_root_list(), wire.now).unwrap();
    assert_eq!(wire.message()["method"], "roots/list");
    wire.send(&result("1", r#"{"roots":[]}"#));
    assert!(wire.told().starts_with("request tools/call"));
    wire.machine.respond_with(handle, &raw("{}"), wire.now).unwrap();
    assert_eq!(wire.message()[0]["id"], 2);
}

#[test]
fn batches_are_refused_at_the_other_revisions() {
    // Rule: [BATCH-010] [STDIO-010].
    for revision in LEGACY.into_iter().filter(|revision| *revision != BATCHES) {
        let mut wire = server_at(revision, "{}", full_server());
        wire.send(&batch(&[request("2", "ping", "{}")]));
        let id = if revision < Revision::V2025_11_25 { "null" } else { "none" };
        wire.expect_error(id, -32600);
        assert!(wire.told().starts_with("violation"));
    }
    let mut wire = server(full_server().revisions(mcp_sansio::Revisions::MODERN));
    wire.send(&batch(&[modern("1", "tools/list", "")]));
    wire.expect_error("none", -32600);
}

#[test]
fn an_answer_in_a_batch_that_the_revision_does_not_have_ends_the_input_request() {
    // Rule: [BATCH-010].
    for answer in [r#","result":{"roots":[]}"#, r#","result":5"#, ""] {
        let mut wire = server_at(Revision::V2025_11_25, r#"{"roots":{}}"#, full_server());
        wire.send(&request("2", "tools/call", r#"{"name":"t"}"#));
        let Event::Request(request) = wire.event() else { panic!("a request") };
        wire.machine.require_input(&request, &one_root_list(), wire.now).unwrap();
        assert_eq!(wire.message()["method"], "roots/list");
        wire.send(&batch(&[format!(r#"{{"jsonrpc":"2.0","id":1{answer}}}"#)]));
        wire.expect_error("none", -32600);
        assert_eq!(wire.told(), "violation: malformed message: batches are not accepted");
        // The handler runs again, and sees that the request was refused.
        assert!(wire.told().starts_with("request tools/call"));
    }
}

#[test]
fn a_client_accepts_batches_at_the_revision_that_has_them() {
    // Rule: [BATCH-001] [BATCH-009].
    let mut wire = client_at(BATCHES, host());
    let options = CallOptions::default();
    wire.machine.call(Method::ToolsCall, &echo(), &options, wire.now).unwrap();
    wire.line();
    let log = notification("notifications/message", r#"{"level":"info","data":1}"#);
    wire.send(&batch(&[log, request("9", "roots/list", "{}"), result("2", "{}")]));
    assert!(wire.told().starts_with("notification notifications/message"));
    assert!(wire.told().starts_with("input roots/list"));
    assert!(wire.told().starts_with("ended"));
    for revision in Revision::ALL.into_iter().filter(|revision| *revision != BATCHES) {
        let mut wire = client_at(revision, host());
        wire.send(&batch(&[result("9", "{}")]));
        assert_eq!(wire.told(), "violation: malformed message: batches are not accepted");
        wire.expect_silence();
    }
}

#[test]
fn a_response_before_the_end_of_input_in_a_batch_is_not_lost() {
    let mut policy = Policy::default();
    policy.malformed = Reaction::Close;
    let mut wire = client_at(BATCHES, plain_client().policy(policy.clone()));
    let options = CallOptions::default();
    wire.machine.call(Method::ToolsCall, &echo(), &options, wire.now).unwrap();
    wire.machine.call(Method::ToolsCall, &echo(), &options, wire.now).unwrap();
    wire.line();
    wire.line();
    assert!(wire.try_send(&batch(&[result("2", "{}"), "5".into()])).is_err());
    assert_eq!(wire.told(), "ended with {}");
    assert_eq!(wire.told(), "failed: the connection ended before the answer");
    assert!(wire.told().starts_with("closed"));
    wire.expect_silence();

    let mut wire = open(full_server().policy(policy));
    assert!(wire.try_send(&batch(&[request("2", "ping", "{}"), "5".into()])).is_err());
    let answers = wire.message();
    assert_eq!((&answers[0]["id"], &answers[1]["error"]["code"]), (&json!(2), &json!(-32600)));
}

#[test]
fn a_batch_over_the_limit_is_refused_whole() {
    let mut limits = mcp_sansio::peer::Limits::DEFAULT;
    limits.batch_length_max = 2;
    let mut wire = open(full_server().limits(limits));
    let pings: Vec<_> = (2..5).map(|id| request(&id.to_string(), "ping", "{}")).collect();
    wire.send(&batch(&pings));
    wire.expect_error("null", -32600);
    assert!(wire.told().contains("more than 2 messages"));
    wire.expect_silence();
}

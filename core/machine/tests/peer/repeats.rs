//! Messages that repeat a member, to machines without handlers.

use mcp_sansio::Revision;
use mcp_sansio::peer::{Policy, Reaction};

use crate::fixtures::*;
use crate::played::Server;
use crate::wire::{Wire, server};

/// Expects an error with the name of the member, and a violation.
#[track_caller]
fn expect_refusal(wire: &mut Wire<Server>, id: &str, member: &str) {
    let said = wire.expect_error(id, -32602);
    assert_eq!(said["error"]["message"], format!("`{member}` is repeated"));
    let told = wire.told();
    assert!(told.starts_with("violation") && told.contains(member), "{told}");
    wire.expect_silence();
}

#[test]
fn a_request_that_repeats_a_member_is_never_delivered() {
    for (method, params, member) in [
        ("tools/call", r#"{"name":"a","name":"b"}"#, "name"),
        ("resources/read", r#"{"uri":"a:1","ur\u0069":"a:1"}"#, "uri"),
        ("tools/call", r#"{"name":"a","arguments":{},"arguments":null}"#, "arguments"),
        (
            "completion/complete",
            r#"{"ref":{"type":"ref/prompt","name":"a","name":"b"}}"#,
            "ref.name",
        ),
        (
            "completion/complete",
            r#"{"argument":{"name":"a","value":1,"value":2}}"#,
            "argument.value",
        ),
        (
            "completion/complete",
            r#"{"context":{"arguments":{},"arguments":{}}}"#,
            "context.arguments",
        ),
        ("initialize", r#"{"capabilities":{"roots":{},"roots":{}}}"#, "capabilities.roots"),
        ("initialize", r#"{"clientInfo":{"name":"a","name":"b"}}"#, "clientInfo.name"),
    ] {
        for revision in Revision::ALL {
            let mut wire = server(full_server());
            if revision != Revision::V2026_07_28 {
                wire = server_at(revision, "{}", full_server());
            }
            wire.send(&request("7", method, params));
            expect_refusal(&mut wire, "7", member);
        }
    }
}

#[test]
fn a_repeat_after_cached_metadata_is_found() {
    let mut wire = server(full_server());
    for id in ["1", "2"] {
        wire.send(&modern(id, "ping/unheard", ""));
        wire.expect_error(id, -32601);
    }
    for key in ["protocolVersion", "clientCapabilities"] {
        let key = format!("io.modelcontextprotocol/{key}");
        wire.send(&modern_with(
            "3",
            "tools/call",
            r#""name":"a""#,
            "{}",
            &format!(r#""{key}":{{}}"#),
        ));
        expect_refusal(&mut wire, "3", &key);
    }
    let meta = r#""progressToken":1,"progressToken":1"#;
    wire.send(&modern_with("4", "tools/call", r#""name":"a""#, "{}", meta));
    expect_refusal(&mut wire, "4", "progressToken");
    wire.send(&modern("5", "tools/call", r#""name":"a","_meta":{}"#));
    expect_refusal(&mut wire, "5", "_meta");
    for (capabilities, part) in [
        (r#"{"roots":{},"roots":{}}"#, "clientCapabilities"),
        (r#"{"elicitation":{"form":{},"form":{}}}"#, "clientCapabilities"),
        (r#"{"experimental":{},"experimental":{}}"#, "clientCapabilities"),
    ] {
        wire.send(&modern_with("6", "tools/call", r#""name":"a""#, capabilities, ""));
        let said = wire.expect_error("6", -32602);
        assert!(said["error"]["message"].as_str().unwrap().contains(part), "{said}");
        assert!(wire.told().starts_with("violation"));
        wire.expect_silence();
    }
}

#[test]
fn a_ping_is_answered_unless_it_repeats_a_member() {
    // Rule: [PING-001].
    for params in
        [r#"{"_meta":{},"_meta":{}}"#, r#"{"_meta":{"progressToken":1,"progressToken":1}}"#]
    {
        let mut wire = server(full_server());
        wire.send(&request("7", "ping", params));
        wire.expect_error("7", -32602);
        assert!(wire.told().starts_with("violation"), "{params}");
    }
    for params in ["{}", r#"{"_meta":7}"#, r#"{"_meta":{"progressToken":{}}}"#, r#"{"x":1,"x":1}"#]
    {
        let mut wire = server(full_server());
        wire.send(&request("7", "ping", params));
        assert!(wire.message()["result"].is_object(), "{params}");
        wire.expect_silence();
    }
}

#[test]
fn the_policy_decides_whether_a_repeat_closes_the_connection() {
    let mut policy = Policy::default();
    policy.malformed = Reaction::Close;
    policy.deliver_unknown_methods = true;
    for line in [
        request("7", "tools/call", r#"{"name":"a","name":"b"}"#),
        notification("notifications/cancelled", r#"{"requestId":1,"requestId":2}"#),
        notification("notifications/unheard", r#"{"_meta":{},"_meta":{}}"#),
        notification("notifications/progress", r#"{"progressToken":1,"progress":1,"progress":2}"#),
    ] {
        let options = full_server().policy(policy.clone());
        let mut wire = server_at(Revision::V2025_11_25, "{}", options);
        assert!(wire.try_send(&line).is_err(), "{line}");
    }
}

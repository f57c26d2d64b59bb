//! A server with clients that break rules: it responds if possible, and continues.

use mcp_sansio::Instant;
use mcp_sansio::Revision;
use mcp_sansio::framing::FrameError;
use mcp_sansio::peer::{Event, Limits, ServerMachine};
use mcp_sansio::protocol::{
    CreateMessageParams, InputRequest, InputRequiredResult, ListRootsParams, Map, SamplingMessage,
};

use crate::fixtures::*;
use crate::wire::{Wire, server};

fn is_alive(wire: &mut Wire<crate::played::Server>) {
    wire.expect_silence();
    wire.send(&modern("77", "tools/call", r#""name":"t""#));
    let Event::Request(request) = wire.event() else { panic!("a request") };
    wire.machine.respond_with(request.handle, &raw("{}"), wire.now).unwrap();
    assert_eq!(wire.message()["id"], 77);
    wire.expect_silence();
}

fn asking(request: InputRequest) -> InputRequiredResult {
    InputRequiredResult::new().input_requests(Map::from_iter([("it", request)]))
}

#[test]
fn a_wrong_first_message_is_answered_and_tolerated() {
    // Rule: [LIFE-001] [RPC-016] [RPC-018] [META-009] [RPC-013].
    let requests = [
        (request("1", "tools/list", "{}"), -32602),
        (request("1", "unheard/of", "{}"), -32601),
        (request("1", "resources/subscribe", r#"{"uri":"a:1"}"#), -32602),
        (request("1", "roots/list", "{}"), -32601),
    ];
    for (line, code) in requests {
        let mut wire = server(full_server());
        wire.send(&line);
        wire.expect_error("1", code);
        assert!(wire.told().starts_with("violation"), "{line}");
        is_alive(&mut wire);
    }
    for line in [INITIALIZED, &notification("notifications/progress", "{}")] {
        let mut wire = server(full_server());
        wire.send(line);
        assert!(wire.told().starts_with("violation"), "{line}");
        is_alive(&mut wire);
    }
    let mut wire = server(full_server());
    wire.send(&result("1", "{}"));
    assert!(wire.told().starts_with("violation"));
    is_alive(&mut wire);
}

#[test]
fn an_empty_array_is_read_as_an_empty_object() {
    // Rule: [RPC-011]. Languages with one type for lists and maps write an empty map so.
    for revision in LEGACY {
        let mut wire = server(full_server());
        wire.send(&initialize(
            revision.as_str(),
            r#"{"roots":[],"sampling":true,"elicitation":false}"#,
        ));
        wire.line();
        wire.send(&notification("notifications/initialized", "[]"));
        assert!(wire.told().starts_with("opened"));
        wire.send(&request("2", "ping", "[]"));
        wire.expect(r#"{"jsonrpc":"2.0","id":2,"result":{}}"#);
        wire.send(&request("3", "tools/call", r#"{"name":"t","arguments":[],"_meta":[]}"#));
        let Event::Request(call) = wire.event() else { panic!("a request") };
        let sampling = CreateMessageParams::new([SamplingMessage::user("?")], 1);
        for request in [ListRootsParams::new().into(), sampling.into()] {
            wire.machine.require_input(&call, &asking(request), wire.now).unwrap();
            let asked = wire.message();
            wire.send(&result(&asked["id"].to_string(), "[]"));
            let Event::Request(_) = wire.event() else { panic!("the request again") };
        }
        wire.machine.respond_with(call.handle, &raw("{}"), wire.now).unwrap();
        assert_eq!(wire.message()["id"], 3);
        is_alive(&mut wire);
    }
}

#[test]
fn a_response_without_an_outcome_ends_its_request() {
    // Rule: [RPC-007].
    let mut wire = server_at(Revision::V2025_11_25, r#"{"roots":{}}"#, full_server());
    wire.send(&request("1", "tools/call", r#"{"name":"t"}"#));
    let Event::Request(call) = wire.event() else { panic!("a request") };
    let required = asking(ListRootsParams::new().into());
    wire.machine.require_input(&call, &required, wire.now).unwrap();
    let asked = wire.message()["id"].to_string();
    wire.send(&format!(r#"{{"jsonrpc":"2.0","id":{asked}}}"#));
    assert!(wire.told().starts_with("violation: malformed message: neither"));
    let Event::Request(again) = wire.event() else { panic!("the request again") };
    assert!(again.inputs.refusal("it").is_some());
    wire.machine.respond_with(call.handle, &raw("{}"), wire.now).unwrap();
    assert_eq!(wire.message()["id"], 1);
    // No request of this side has the id.
    wire.send(r#"{"jsonrpc":"2.0","id":99}"#);
    wire.expect_error("99", -32600);
}

#[test]
fn a_cancellation_may_name_a_number_as_a_string() {
    // Rule: [CANC-004].
    for (id, named) in [("7", "\"7\""), ("7", "7.0")] {
        let mut wire = server_at(Revision::V2025_11_25, "{}", full_server());
        wire.send(&request(id, "tools/call", r#"{"name":"t"}"#));
        assert!(wire.told().starts_with("request"));
        wire.send(&notification("notifications/cancelled", &format!(r#"{{"requestId":{named}}}"#)));
        assert!(matches!(wire.event(), Event::Cancelled(_)), "{id} {named}");
        wire.expect_silence();
    }
    // The exact one comes first.
    let mut wire = server_at(Revision::V2025_11_25, "{}", full_server());
    for id in ["7", "\"7\""] {
        wire.send(&request(id, "tools/call", r#"{"name":"t"}"#));
        assert!(wire.told().starts_with("request"));
    }
    wire.send(&notification("notifications/cancelled", r#"{"requestId":"7"}"#));
    assert!(matches!(wire.event(), Event::Cancelled(_)));
    wire.send(&request("7", "tools/call", r#"{"name":"t"}"#));
    wire.expect_error("7", -32600);
}

#[test]
fn invalid_messages_are_answered_with_the_right_code() {
    // Rule: [RPC-002] [RPC-003] [RPC-007] [RPC-009] [RPC-011] [RPC-017].
    let cases: [(&str, Option<(&str, i64)>); 12] = [
        ("{", Some(("none", -32700))),
        ("\u{1}", Some(("none", -32700))),
        ("5", Some(("none", -32600))),
        ("{}", Some(("none", -32600))),
        (r#"{"id":3,"method":"ping"}"#, Some(("3", -32600))),
        (r#"{"jsonrpc":"1.0","id":3,"method":"ping"}"#, Some(("3", -32600))),
        (r#"{"jsonrpc":"2.0","id":3,"method":7}"#, Some(("3", -32600))),
        (r#"{"jsonrpc":"2.0","id":3,"method":"ping","params":[1]}"#, Some(("3", -32600))),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, Some(("none", -32600))),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, Some(("none", -32600))),
        (r#"{"jsonrpc":"2.0","id":3,"result":{},"error":{}}"#, None),
        (r#"{"jsonrpc":"2.0","method":"notifications/x","params":1}"#, None),
    ];
    for (line, answer) in cases {
        let mut wire = server(full_server());
        wire.send(line);
        if let Some((id, code)) = answer {
            wire.expect_error(id, code);
        }
        assert!(wire.told().starts_with("violation: malformed message"), "{line}");
        is_alive(&mut wire);
    }
}

#[test]
fn the_id_of_an_error_without_an_id_depends_on_the_revision() {
    // Rule: [RPC-009].
    for revision in LEGACY {
        let mut wire = server_at(revision, "{}", full_server());
        wire.send("{");
        let id = if revision < Revision::V2025_11_25 { "null" } else { "none" };
        wire.expect_error(id, -32700);
    }
}

#[test]
fn malformed_frames_are_reported_and_tolerated() {
    // Rule: [RPC-017].
    let mut wire = server(full_server());
    wire.send_error(FrameError::TooLong { limit: 9 });
    wire.expect_error("none", -32700);
    assert_eq!(wire.told(), "violation: a frame of more than 9 bytes was skipped");
    wire.send_error(FrameError::Truncated { length: 4 });
    wire.expect_error("none", -32700);
    assert_eq!(wire.told(), "violation: the input ended 4 bytes into a frame");
    is_alive(&mut wire);
}

#[test]
fn nesting_over_the_limit_is_refused() {
    let mut wire = server(full_server());
    wire.send(&format!("{}{}", "[".repeat(200), "]".repeat(200)));
    wire.expect_error("none", -32700);
    assert!(wire.told().contains("nested deeper"));
    is_alive(&mut wire);
}

#[test]
fn requests_over_the_limit_are_refused_and_all_are_answered() {
    let mut limits = Limits::DEFAULT;
    limits.requests_in_flight_max = 2;
    let mut wire = server(full_server().limits(limits));
    for id in ["1", "2", "3"] {
        wire.send(&modern(id, "tools/call", r#""name":"t""#));
    }
    wire.expect_error("3", -32603);
    for _ in 0..2 {
        let Event::Request(request) = wire.event() else { panic!("a request") };
        wire.machine.respond_with(request.handle, &raw("{}"), wire.now).unwrap();
    }
    assert_eq!(wire.told(), "violation: more requests in flight than this side accepts");
    wire.line();
    wire.line();
    is_alive(&mut wire);
}

#[test]
fn a_flood_congests_the_server_without_loss() {
    let mut limits = Limits::DEFAULT;
    limits.transmit_bytes_max = 100;
    let mut server = mcp_sansio::peer::Server::new(bare_server().limits(limits), 0);
    let mut pings = 0;
    while !server.is_congested() {
        let line = request(&pings.to_string(), "ping", "{}");
        assert!(server.handle_message(line.as_bytes(), Instant::ZERO).unwrap().is_none());
        pings += 1;
    }
    let sent = server.poll_transmit().unwrap();
    assert_eq!(sent.split(|byte| *byte == b'\n').count(), pings + 1);
    assert!(!server.is_congested());
}

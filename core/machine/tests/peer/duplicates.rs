//! Ids that are in use, and responses without a request.

use mcp_sansio::peer::{CallOptions, ClientMachine, Event, Policy, Reaction, ServerMachine};
use mcp_sansio::{Method, Revision};

use crate::fixtures::*;
use crate::wire::server;

#[test]
fn a_request_with_an_id_in_use_is_refused_and_the_first_one_continues() {
    // Rule: [RPC-004] [RPC-005].
    for id in ["5", r#""5""#] {
        let mut wire = server(full_server());
        wire.send(&modern(id, "tools/call", r#""name":"first""#));
        let Event::Request(first) = wire.event() else { panic!("a request") };
        for again in [modern(id, "tools/call", r#""name":"second""#), request(id, "ping", "{}")] {
            wire.send(&again);
            wire.expect_error(id, -32600);
            assert!(wire.told().starts_with("violation: request id"));
        }
        wire.machine.respond_with(first.handle, &raw("{}"), wire.now).unwrap();
        assert!(wire.message().get("result").is_some());
        // After the response the id may be reused.
        wire.send(&modern(id, "tools/call", r#""name":"third""#));
        assert!(wire.told().starts_with("request tools/call"));
    }
}

#[test]
fn ids_of_different_types_are_different() {
    // Rule: [RPC-006].
    let mut wire = server(full_server());
    for id in ["5", r#""5""#] {
        wire.send(&modern(id, "tools/call", r#""name":"t""#));
    }
    for id in ["5", r#""5""#] {
        let Event::Request(request) = wire.event() else { panic!("a request") };
        wire.machine.respond_with(request.handle, &raw("{}"), wire.now).unwrap();
        assert_eq!(wire.message()["id"].to_string(), id);
    }
}

#[test]
fn a_duplicate_of_a_server_is_refused_by_the_client() {
    // Rule: [RPC-004].
    for revision in LEGACY {
        let mut wire = client_at(revision, host());
        wire.send(&request("1", "roots/list", "{}"));
        assert!(wire.told().starts_with("input roots/list"));
        wire.send(&request("1", "roots/list", "{}"));
        wire.expect_error("1", -32600);
        assert!(wire.told().starts_with("violation"));
    }
}

#[test]
fn an_unknown_response_is_reported_and_tolerated() {
    // Rule: [RPC-006] [RPC-009] [PING-001].
    for revision in Revision::ALL {
        let mut wire = client_at(revision, plain_client());
        let options = CallOptions::default();
        wire.machine.call(Method::ToolsCall, &echo(), &options, wire.now).unwrap();
        wire.line();
        for line in [&result("9", "{}"), &result(r#""9""#, "{}"), &error("7", -1, "")] {
            wire.send(line);
            assert!(wire.told().starts_with("violation: a response to a request"), "{line}");
            wire.expect_silence();
        }
        wire.send(&result("2", "{}"));
        assert!(wire.told().starts_with("ended"));
        wire.send(&result("2", "{}"));
        assert!(wire.told().starts_with("violation"));
    }
}

#[test]
fn the_policy_can_close_the_connection_on_either() {
    let mut policy = Policy::default();
    policy.unknown_response = Reaction::Close;
    policy.duplicate_id = Reaction::Close;
    let mut wire = client_at(Revision::V2025_11_25, plain_client().policy(policy.clone()));
    let options = CallOptions::default();
    wire.machine.call(Method::ToolsCall, &echo(), &options, wire.now).unwrap();
    wire.line();
    assert!(wire.try_send(&result("9", "{}")).is_err());
    assert_eq!(wire.told(), "failed: the connection ended before the answer");
    assert!(wire.told().starts_with("closed: closed because of a violation"));
    wire.expect_silence();

    let mut wire = server(full_server().policy(policy));
    wire.send(&modern("1", "tools/call", r#""name":"t""#));
    wire.told();
    assert!(wire.try_send(&modern("1", "tools/call", r#""name":"t""#)).is_err());
    wire.expect_error("1", -32600);
    assert!(wire.told().starts_with("closed"));
}

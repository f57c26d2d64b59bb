//! How a connection opens at each revision, as transcripts, and which messages are allowed before.

use mcp_sansio::peer::{
    CallOptions, ClientMachine, CommandError, Event, Failure, Policy, ServerMachine, Subject,
};
use mcp_sansio::{Instant, Method, Revision, Revisions};

use crate::fixtures::*;
use crate::pair::Pair;
use crate::wire::{client, server};

fn opening(revisions: Revisions) -> String {
    let server = full_server().instructions("Be kind.");
    let mut pair = Pair::new(host().revisions(revisions), server);
    pair.drive();
    let session = pair.client.session().unwrap();
    assert_eq!(session.instructions(), Some("Be kind."));
    assert_eq!(session.server_info().unwrap().as_str(), r#"{"name":"s","version":"1"}"#);
    pair.take_transcript()
}

#[test]
fn a_handshake_opens_the_oldest_session() {
    // Rule: [LIFE-001] [LIFE-002] [VER-003] [CAP-007] [CAP-009] [CAP-018].
    insta::assert_snapshot!(opening(Revisions::only(Revision::V2024_11_05)));
}

#[test]
fn a_handshake_opens_the_newest_session() {
    // Rule: [LIFE-001] [LIFE-002] [LIFE-003] [VER-002] [CAP-011] [RPC-033].
    insta::assert_snapshot!(opening(Revisions::only(Revision::V2025_11_25)));
}

#[test]
fn a_discovery_opens_a_modern_connection() {
    // Rule: [DISC-001] [DISC-002] [VER-020] [META-011] [CAP-008] [RPC-032].
    insta::assert_snapshot!(opening(Revisions::ALL));
}

#[test]
fn a_call_before_the_connection_is_open_fails() {
    // Rule: [LIFE-004].
    let mut wire = client(plain_client());
    wire.line();
    let options = CallOptions::default();
    let called = wire.machine.call(Method::Ping, &raw("{}"), &options, wire.now);
    assert!(matches!(called, Err(CommandError::NotOpen)));
    assert!(matches!(
        wire.machine.notify(Method::RootsListChanged, &raw("{}"), Instant::ZERO),
        Err(CommandError::NotOpen)
    ));
    wire.expect_silence();
}

#[test]
fn a_ping_is_answered_before_the_session_is_open() {
    // Rule: [PING-001].
    for revision in LEGACY {
        let mut wire = client(plain_client().revisions(Revisions::only(revision)));
        wire.line();
        wire.send(&request(r#""p""#, "ping", "{}"));
        wire.expect(r#"{"jsonrpc":"2.0","id":"p","result":{}}"#);
    }
    let mut wire = server(bare_server());
    wire.send(&request("7", "ping", "{}"));
    wire.expect(r#"{"jsonrpc":"2.0","id":7,"result":{}}"#);
    wire.send(&initialize("2025-11-25", "{}"));
    wire.line();
    wire.send(&request("8", "ping", "{}"));
    wire.expect(r#"{"jsonrpc":"2.0","id":8,"result":{}}"#);
    wire.expect_silence();
}

#[test]
fn a_server_sends_only_pings_before_initialized() {
    // Rule: [LIFE-005].
    for revision in LEGACY {
        let mut wire = server(bare_server());
        wire.send(&initialize(revision.as_str(), r#"{"roots":{}}"#));
        wire.line();
        let options = CallOptions::default();
        let called = wire.machine.call(Method::RootsList, &raw("{}"), &options, wire.now);
        assert!(matches!(called, Err(CommandError::NotOpen)));
        wire.machine.call(Method::Ping, &raw("{}"), &options, wire.now).unwrap();
        wire.expect(r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{}}"#);
        wire.send(INITIALIZED);
        assert_eq!(wire.told(), format!("opened at {revision}"));
        wire.machine.call(Method::RootsList, &raw("{}"), &options, wire.now).unwrap();
        assert_eq!(wire.message()["method"], "roots/list");
    }
}

#[test]
fn a_second_initialize_opens_the_session_anew() {
    // Rule: [VER-007] [LIFE-001].
    let mut wire = server_at(Revision::V2025_11_25, r#"{"roots":{}}"#, full_server());
    wire.send(&request("2", "resources/subscribe", r#"{"uri":"a:1"}"#));
    wire.line();
    wire.send(&request("3", "tools/call", r#"{"name":"t"}"#));
    let Event::Request(running) = wire.event() else { panic!("a request") };
    let old = running.caller.session();
    let options = CallOptions::default();
    let asked = wire.machine.call(Method::RootsList, &raw("{}"), &options, wire.now).unwrap();
    wire.line();

    // Another client behind the same proxy counts its ids from one as well.
    let again = initialize("2025-06-18", "{}").replace(r#""id":1"#, r#""id":3"#);
    wire.send(&again);
    let answer = wire.message();
    assert_eq!(answer["id"], 3);
    assert_eq!(answer["result"]["protocolVersion"], "2025-06-18");
    let Event::Ended(ended) = wire.event() else { panic!("the call to the old client") };
    assert_eq!((ended.call, ended.outcome.err()), (asked, Some(Failure::ConnectionLost)));
    let Event::Cancelled(cancelled) = wire.event() else { panic!("the request of the old client") };
    assert_eq!(cancelled.subject, Subject::Request(running.handle));
    assert!(wire.machine.respond_with(running.handle, &raw("{}"), Instant::ZERO).is_err());
    wire.machine.resource_updated("a:1", Instant::ZERO);
    wire.expect_silence();

    wire.send(INITIALIZED);
    assert_eq!(wire.told(), "opened at 2025-06-18");
    wire.machine.resource_updated("a:1", Instant::ZERO);
    wire.send(&request("4", "tools/call", r#"{"name":"t"}"#));
    let Event::Request(new) = wire.event() else { panic!("a request") };
    assert_ne!(new.caller.session(), old);
    assert_eq!(new.capabilities, mcp_sansio::Capabilities::NONE);
    wire.expect_silence();
}

#[test]
fn a_second_initialize_that_is_not_valid_leaves_the_session_open() {
    // Rule: [LIFE-001].
    let mut wire = server_at(Revision::V2025_11_25, "{}", bare_server());
    wire.send(&request("2", "initialize", "{}"));
    wire.expect_error("2", -32602);
    assert!(wire.told().starts_with("violation"));
    assert_eq!(wire.machine.session().unwrap().revision(), Revision::V2025_11_25);
    wire.expect_silence();
}

#[test]
fn a_second_initialize_does_not_affect_modern_requests() {
    // Rule: [LIFE-010] [VER-016].
    let mut wire = server_at(Revision::V2025_11_25, "{}", full_server());
    wire.send(&modern("7", "tools/call", r#""name":"t""#));
    let Event::Request(running) = wire.event() else { panic!("a request") };
    wire.send(&initialize("2025-11-25", "{}").replace(r#""id":1"#, r#""id":2"#));
    assert_eq!(wire.message()["id"], 2);
    wire.machine.respond_with(running.handle, &raw(r#"{"content":[]}"#), Instant::ZERO).unwrap();
    assert_eq!(wire.message()["id"], 7);
}

#[test]
fn a_second_initialized_is_not_a_violation() {
    // Rule: [LIFE-003].
    for revision in LEGACY {
        let mut wire = server_at(revision, "{}", bare_server());
        wire.send(INITIALIZED);
        wire.expect_silence();
        assert!(wire.machine.session().is_some());
    }
    let mut wire = server(bare_server());
    wire.send(INITIALIZED);
    assert_eq!(wire.told(), "violation: `notifications/initialized` without `initialize`");
}

#[test]
fn a_malformed_initialize_can_be_repeated() {
    // Rule: [LIFE-001] [RPC-016].
    let mut wire = server(bare_server());
    wire.send(&request("1", "initialize", "{}"));
    wire.expect_error("1", -32602);
    assert!(wire.told().starts_with("violation: `initialize`"));
    wire.send(&initialize("2025-11-25", "{}"));
    assert_eq!(wire.message()["result"]["protocolVersion"], "2025-11-25");
}

/// Returns an `initialize` request with `value` in place of the member at `path`, or without the
/// member.
fn sparse(path: &str, value: Option<&str>) -> String {
    let mut message: serde_json::Value =
        serde_json::from_str(&initialize("2025-06-18", r#"{"roots":{}}"#)).unwrap();
    let (parent, name) = path.rsplit_once('/').unwrap();
    let parent = message.pointer_mut(&format!("/params{parent}")).unwrap();
    let members = parent.as_object_mut().unwrap();
    match value {
        Some(value) => {
            members.insert(name.to_owned(), serde_json::from_str(value).unwrap());
        }
        None => {
            members.remove(name).unwrap();
        }
    }
    message.to_string()
}

/// The members that every legacy revision requires.
const REQUIRED: [&str; 5] =
    ["/protocolVersion", "/capabilities", "/clientInfo", "/clientInfo/name", "/clientInfo/version"];

#[test]
fn an_initialize_without_a_required_member_is_refused_by_name() {
    // Rule: [LIFE-001].
    for path in REQUIRED {
        let name = path[1..].replace('/', ".");
        let mut wire = server(bare_server());
        wire.send(&sparse(path, None));
        let answer = wire.message();
        assert_eq!(answer["error"]["code"], -32602, "{path}");
        assert_eq!(answer["error"]["message"], format!("`{name}` is missing"));
        let told = format!("violation: `initialize`: `{name}` is missing");
        assert_eq!(wire.told(), told);
        assert!(wire.machine.session().is_none());
    }
}

#[test]
fn initialize_with_a_wrong_type_is_always_rejected() {
    // Rule: [LIFE-001].
    for accepts in [false, true] {
        for path in REQUIRED {
            let name = path[1..].replace('/', ".");
            for value in ["1", "[1]", r#""text""#, "{}"] {
                let is_object = ["capabilities", "clientInfo"].contains(&name.as_str());
                if value == if is_object { "{}" } else { r#""text""# } {
                    continue;
                }
                let mut policy = Policy::default();
                policy.accept_incomplete_initialize = accepts;
                let mut wire = server(bare_server().policy(policy));
                wire.send(&sparse(path, Some(value)));
                let answer = wire.message();
                assert_eq!(answer["error"]["code"], -32602, "{path}: {value}");
                let said = answer["error"]["message"].as_str().unwrap();
                assert!(said.starts_with(&format!("`{name}` is not a")), "{said}");
                assert!(wire.told().starts_with("violation: `initialize`"));
                assert!(wire.machine.session().is_none());
            }
        }
    }
}

#[test]
fn a_server_can_accept_an_initialize_with_missing_members() {
    // Rule: [LIFE-001] [VER-004] [VER-005].
    let mut policy = Policy::default();
    policy.accept_incomplete_initialize = true;
    for path in REQUIRED {
        let mut wire = server(bare_server().policy(policy.clone()));
        wire.send(&sparse(path, None));
        let expected = if path == "/protocolVersion" { "2025-11-25" } else { "2025-06-18" };
        assert_eq!(wire.message()["result"]["protocolVersion"], expected, "{path}");
        assert!(wire.machine.session().is_some());
    }
}

#[test]
fn the_client_receives_the_server_info() {
    // Rule: [LIFE-019].
    let mut wire = client_at(Revision::V2025_11_25, plain_client());
    let session = wire.machine.session().unwrap();
    assert_eq!(session.server_capabilities_json().as_str(), OFFERS);
    assert_eq!(session.instructions(), None);
    assert_eq!(wire.now, Instant::ZERO);
    wire.expect_silence();
}

#[test]
fn an_anonymous_pair_sends_its_info_only_in_the_handshake() {
    // Rule: [META-010] [META-011].
    let mut pair = Pair::new(plain_client().anonymous(), bare_server().anonymous());
    pair.drive();
    assert_eq!(pair.client.session().unwrap().server_info(), None);
    let transcript = pair.take_transcript();
    assert!(!transcript.contains("clientInfo") && !transcript.contains("serverInfo"));
    let legacy = plain_client().anonymous().revisions(Revisions::LEGACY);
    let mut pair = Pair::new(legacy, bare_server().anonymous());
    pair.drive();
    let transcript = pair.take_transcript();
    assert!(transcript.contains("clientInfo") && transcript.contains("serverInfo"));
}

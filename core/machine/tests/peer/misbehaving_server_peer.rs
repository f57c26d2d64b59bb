//! A client with servers that break rules: it reports violations, continues, and responds only
//! where a client may.

use mcp_sansio::framing::FrameError;
use mcp_sansio::peer::{CallOptions, ClientMachine, Event, Policy, Reaction};
use mcp_sansio::{Method, Revision, Revisions};

use crate::fixtures::*;
use crate::played::Client;
use crate::wire::{Wire, client};

fn called(revision: Revision) -> Wire<Client> {
    let mut wire = client_at(revision, host());
    let options = CallOptions::default();
    wire.machine.call(Method::ToolsCall, &echo(), &options, wire.now).unwrap();
    wire.line();
    wire
}

fn is_alive(mut wire: Wire<Client>) {
    wire.expect_silence();
    wire.send(&result("2", "{}"));
    assert_eq!(wire.told(), "ended with {}");
    wire.expect_silence();
}

#[test]
fn a_request_of_a_modern_server_is_reported_and_never_answered() {
    // Rule: [RPC-030] [RPC-031] [LIFE-017] [STDIO-011].
    for method in ["ping", "roots/list", "sampling/createMessage", "unheard/of"] {
        let mut wire = called(Revision::V2026_07_28);
        wire.send(&request("9", method, "{}"));
        assert_eq!(wire.told(), "violation: a request from a modern server");
        is_alive(wire);
    }
}

#[test]
fn a_malformed_response_ends_its_call() {
    // Rule: [RPC-007] [RPC-010].
    for revision in Revision::ALL {
        for (response, why) in [
            (r#""result":[1]"#, "`result` is not an object"),
            (r#""result":null"#, "`result` is not an object"),
            (r#""result":{},"error":{"code":1,"message":"m"}"#, "both `result` and `error`"),
            (r#""method":"tools/call","result":{}"#, "both `method` and an outcome"),
            (
                r#""error":{"code":1,"message":null}"#,
                "`error` has no integer `code` with a string `message`",
            ),
            (r#""result":{"a":NaN}"#, "not JSON"),
            (r#""result":{"a":"#, "not JSON"),
            (r#""result":{},"#, "not JSON"),
            (r#""x":1"#, "neither `method` nor `result` nor `error`"),
        ] {
            let mut wire = called(revision);
            wire.send(&format!(r#"{{"jsonrpc":"2.0","id":2,{response}}}"#));
            assert!(wire.told().starts_with("violation: malformed"), "{response}");
            assert_eq!(wire.told(), format!("failed: the answer is not valid: {why}"));
            wire.expect_silence();
            assert_eq!(wire.machine.poll_timeout(), None);
        }
    }
}

#[test]
fn a_response_is_matched_by_the_value_of_its_id() {
    // Rule: [RPC-006].
    for revision in Revision::ALL {
        // Some servers return each id as a string.
        for id in ["2.0", "2e0", "20e-1", "\"2\""] {
            let mut wire = called(revision);
            wire.send(&result(id, "{}"));
            assert_eq!(wire.told(), "ended with {}", "{id}");
        }
        for members in [r#""error":null,"result":{}"#, r#""method":null,"result":{}"#] {
            let mut wire = called(revision);
            wire.send(&format!(r#"{{"jsonrpc":"2.0","id":2,{members}}}"#));
            assert_eq!(wire.told(), "ended with {}", "{members}");
        }
        for id in ["\"02\"", "\"+2\"", "\" 2\"", "\"2.0\"", "\"two\"", "\"\""] {
            let mut wire = called(revision);
            wire.send(&result(id, "{}"));
            assert_eq!(wire.told(), "violation: a response to a request that is not in flight");
            is_alive(wire);
        }
        // The id may follow what cannot be read.
        let mut wire = called(revision);
        wire.send(r#"{"result":{"content":[Infinity]},"jsonrpc":"2.0","id":2}"#);
        assert!(wire.told().starts_with("violation: malformed"));
        assert_eq!(wire.told(), "failed: the answer is not valid: not JSON");
    }
}

#[test]
fn a_response_in_a_batch_that_the_revision_does_not_have_ends_its_call() {
    // Rule: [BATCH-010].
    for revision in Revision::ALL {
        if revision == Revision::V2025_03_26 {
            continue;
        }
        let mut wire = called(revision);
        wire.send(&format!("[{},{}]", notification("x/y", "{}"), result("2", "{}")));
        assert!(wire.told().starts_with("violation: malformed message: batches"));
        assert_eq!(wire.told(), "failed: the answer is not valid: batches are not accepted");
        assert_eq!(wire.machine.poll_timeout(), None);
        let mut wire = called(revision);
        wire.send(&format!("[{}]", notification("x/y", "{}")));
        assert!(wire.told().starts_with("violation: malformed message: batches"));
        is_alive(wire);
        for (answer, why) in [
            (r#""result":5"#, "`result` is not an object"),
            (r#""method":"m","result":{}"#, "both `method` and an outcome"),
        ] {
            let mut wire = called(revision);
            wire.send(&format!(r#"[{{"jsonrpc":"2.0","id":2,{answer}}}]"#));
            assert!(wire.told().starts_with("violation: malformed message: batches"));
            assert_eq!(wire.told(), format!("failed: the answer is not valid: {why}"));
            assert_eq!(wire.take_all().0, [""; 0], "no request is answered");
        }
    }
}

#[test]
fn a_request_in_a_batch_that_the_revision_does_not_have_is_refused() {
    // Rule: [BATCH-010] [STDIO-011].
    for revision in Revision::ALL {
        if revision == Revision::V2025_03_26 {
            continue;
        }
        let mut wire = called(revision);
        wire.send(&format!("[{}]", request("9", "ping", "{}")));
        if revision < Revision::V2026_07_28 {
            wire.expect_error("9", -32600);
        }
        assert_eq!(wire.told(), "violation: malformed message: batches are not accepted");
        is_alive(wire);
    }
}

#[test]
fn the_words_of_an_error_without_an_id_are_reported() {
    // Rule: [RPC-006].
    for id in ["\"id\":null,", ""] {
        let mut wire = called(Revision::V2025_11_25);
        let error = r#""error":{"code":-32700,"message":"no\u001b[2J licence"}"#;
        wire.send(&format!(r#"{{"jsonrpc":"2.0",{id}{error}}}"#));
        assert_eq!(
            wire.told(),
            "violation: an error that names no request: no\\u001b[2J licence (-32700)"
        );
        is_alive(wire);
    }
}

#[test]
fn half_of_a_surrogate_pair_is_read_as_the_replacement_character() {
    // RFC 8259, section 8.2: the grammar has them, and what a receiver does is open.
    for (text, read) in [
        (r"cut \ud83d", "cut \u{fffd}"),
        (r"\ude00\ud83d\ude00\uD83D", "\u{fffd}\u{1f600}\u{fffd}"),
        (r"\\ud83d \ud83d\n", "\\ud83d \u{fffd}\n"),
        (r"\ud83d\ud83d\ude00", "\u{fffd}\u{1f600}"),
    ] {
        for revision in Revision::ALL {
            let mut wire = called(revision);
            wire.send(&result("2", &format!(r#"{{"text":"{text}"}}"#)));
            let Event::Ended(ended) = wire.event() else { panic!("the call has not ended") };
            let result = ended.outcome.expect("a result");
            assert_eq!(result.get("text").unwrap().to_text().as_deref(), Some(read));
            wire.expect_silence();
        }
    }
}

#[test]
fn a_malformed_request_of_a_legacy_server_is_answered_under_its_id() {
    // Rule: [RPC-017].
    for revision in LEGACY {
        for (message, code) in [
            (r#"{"jsonrpc":"2.0","id":9,"method":"ping","params":[1]}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":9,"method":7}"#, -32600),
            (r#"{"id":9,"method":"ping"}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":9,"method":"ping","method":"ping"}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":9,"method":"ping","params":{"a":NaN}}"#, -32700),
        ] {
            let mut wire = called(revision);
            wire.send(message);
            wire.expect_error("9", code);
            assert!(wire.told().starts_with("violation: malformed"), "{message}");
            is_alive(wire);
        }
        let mut wire = called(revision);
        wire.send(r#"{"jsonrpc":"2.0","id":9,"method":"ping","params":null}"#);
        wire.expect(r#"{"jsonrpc":"2.0","id":9,"result":{}}"#);
        is_alive(wire);
    }
    let mut wire = called(Revision::V2026_07_28);
    wire.send(r#"{"jsonrpc":"2.0","id":9,"method":"ping","params":[1]}"#);
    assert!(wire.told().starts_with("violation: malformed"));
    is_alive(wire);
}

#[test]
fn noise_is_reported_and_not_answered() {
    // Rule: [RPC-001] [RPC-017].
    for revision in Revision::ALL {
        for noise in [
            "Listening on port 80",
            "{}",
            r#"{"jsonrpc":"2.0","id":1}"#,
            "null",
            "\"x\"",
            r#"{"jsonrpc":"2.0","id":7,"result":[1]}"#,
        ] {
            let mut wire = called(revision);
            wire.send(noise);
            let told = wire.told();
            assert!(told.starts_with("violation: malformed"), "{noise}");
            let quoted = told.ends_with(&format!(", in the line `{noise}`"));
            assert_eq!(quoted, !noise.starts_with('{'), "{told}");
            is_alive(wire);
        }
        let mut wire = called(revision);
        wire.send_error(FrameError::TooLong { limit: 7 });
        assert!(wire.told().starts_with("violation"));
        wire.send_error(FrameError::Truncated { length: 7 });
        assert!(wire.told().starts_with("violation"));
        is_alive(wire);
    }
}

#[test]
fn noise_before_the_response_does_not_prevent_the_opening() {
    // Rule: [LIFE-003].
    let mut wire = client(plain_client().revisions(Revisions::LEGACY));
    wire.line();
    wire.send("npm WARN deprecated");
    assert!(wire.told().starts_with("violation"));
    wire.send(&notification("notifications/message", r#"{"level":"info","data":1}"#));
    wire.expect_silence();
    wire.send(&notification("notifications/tools/list_changed", "{}"));
    assert!(wire.told().starts_with("violation"));
    wire.send(&request("1", "roots/list", "{}"));
    wire.expect_error("1", -32600);
    assert!(wire.told().starts_with("violation"));
    wire.send(&result("1", r#"{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}"#));
    wire.expect(INITIALIZED);
    assert_eq!(wire.told(), "opened at 2025-06-18");
}

#[test]
fn input_requests_over_the_limit_are_rejected() {
    let mut limits = mcp_sansio::peer::Limits::DEFAULT;
    limits.requests_in_flight_max = 1;
    let mut wire = client_at(Revision::V2025_11_25, host().limits(limits));
    wire.send(&request("1", "roots/list", "{}"));
    wire.send(&request("2", "roots/list", "{}"));
    wire.expect_error("2", -32603);
    assert!(wire.told().starts_with("input"));
    assert!(wire.told().starts_with("violation"));
}

#[test]
fn the_policy_can_close_the_connection_instead() {
    type Break = (fn(&mut Policy), String);
    let breaks: [Break; 3] = [
        (|policy| policy.malformed = Reaction::Close, "noise".into()),
        (|policy| policy.forbidden = Reaction::Close, request("9", "tools/list", "{}")),
        (|policy| policy.unknown_response = Reaction::Close, result("9", "{}")),
    ];
    for (change, line) in breaks {
        let mut policy = Policy::default();
        change(&mut policy);
        let mut wire = client_at(Revision::V2025_11_25, host().policy(policy));
        assert!(wire.try_send(&line).is_err());
        assert!(wire.told().starts_with("closed: closed because of a violation"), "{line}");
        assert!(wire.try_send(&line).is_err());
        wire.expect_no_event();
    }
}

#[test]
fn error_codes_of_a_client_are_mapped_to_those_of_the_revision() {
    // Rule: [RPC-025] [RPC-026] [SAMP-012].
    use mcp_sansio::ErrorCode;
    use mcp_sansio::jsonrpc::ErrorObject;
    let mut wire = client_at(Revision::V2025_11_25, host());
    for (given, sent) in [(-32022, -32603), (-1, -1), (-32602, -32602)] {
        wire.send(&request("1", "roots/list", "{}"));
        let Event::InputRequested(input) = wire.event() else { panic!("an input") };
        let error = ErrorObject::new(ErrorCode(given), "no");
        wire.machine.refuse_input(input.handle, error, wire.now).unwrap();
        wire.expect_error("1", sent);
    }
}

//! How a client detects the era of a server.

use std::time::Duration;

use mcp_sansio::peer::{ClientMachine, CloseReason, Event, OpeningFailure};
use mcp_sansio::protocol::SubscriptionFilter;
use mcp_sansio::{Era, Revisions};

use crate::fixtures::*;
use crate::played::Client;
use crate::wire::{Wire, client};

const SESSION: &str =
    r#"{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}"#;

fn discovered(versions: &str) -> String {
    format!(
        r#"{{"resultType":"complete","supportedVersions":{versions},"capabilities":{{}},"ttlMs":0,"cacheScope":"private"}}"#
    )
}

fn expect_initialize(wire: &mut Wire<Client>, id: i64, revision: &str) {
    let message = wire.message();
    assert_eq!(message["method"], "initialize");
    assert_eq!(message["id"], id, "a fresh id");
    assert_eq!(message["params"]["protocolVersion"], revision);
    assert!(message["params"].get("_meta").is_none(), "no modern metadata: {message}");
}

fn failure(wire: &mut Wire<Client>) -> OpeningFailure {
    match wire.event() {
        Event::Closed(CloseReason::OpeningFailed(failure)) => failure,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_probe_is_sent_first_and_names_the_modern_revision() {
    // Rule: [VER-019] [VER-024] [VER-011].
    for revisions in [Revisions::ALL, Revisions::MODERN] {
        let mut wire = client(plain_client().revisions(revisions));
        let message = wire.message();
        assert_eq!(message["method"], "server/discover");
        let meta = &message["params"]["_meta"];
        assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
        wire.expect_silence();
    }
}

#[test]
fn an_error_that_is_not_modern_indicates_a_legacy_server() {
    // Rule: [VER-022] [VER-023] [RPC-023].
    for code in [-32601, -32602, -32600, -32603, -32000, -32001, -32003, -32004, -32700, -1, 7] {
        let mut wire = client(plain_client());
        wire.line();
        wire.send(&error("1", code, ""));
        expect_initialize(&mut wire, 2, "2025-11-25");
        wire.send(&result("2", SESSION));
        wire.expect(INITIALIZED);
        assert_eq!(wire.told(), "opened at 2025-11-25", "{code}");
        assert_eq!(wire.machine.era(), Some(Era::Legacy));
    }
}

#[test]
fn a_timeout_indicates_a_legacy_server_and_the_late_response_is_absorbed() {
    // Rule: [VER-022] [CANC-002] [CANC-005].
    let mut wire = client(plain_client());
    wire.line();
    wire.advance(Duration::from_millis(1999));
    wire.expect_silence();
    wire.advance(Duration::from_millis(1));
    expect_initialize(&mut wire, 2, "2025-11-25");
    wire.expect_nothing();
    wire.send(&error("1", -32601, ""));
    wire.expect_silence();
    wire.send(&result("2", SESSION));
    wire.expect(INITIALIZED);
    assert_eq!(wire.told(), "opened at 2025-11-25");
}

#[test]
fn an_unsupported_version_error_indicates_a_modern_server() {
    // Rule: [VER-013] [VER-021].
    let refused = |supported: &str| {
        let mut wire = client(plain_client());
        wire.line();
        let data = format!(r#","data":{{"supported":{supported},"requested":"2026-07-28"}}"#);
        wire.send(&error("1", -32022, &data));
        wire
    };
    let mut nothing = refused(r#"["2099-01-01"]"#);
    assert!(matches!(failure(&mut nothing), OpeningFailure::NoCommonRevision(_)));
    nothing.expect_nothing();
    // The only common one is a legacy revision, so the client uses the handshake.
    let mut legacy = refused(r#"["2099-01-01","2025-06-18","2024-11-05"]"#);
    expect_initialize(&mut legacy, 2, "2025-06-18");
    // A server that refuses a revision it lists is not probed again.
    let mut same = refused(r#"["2026-07-28"]"#);
    assert!(matches!(failure(&mut same), OpeningFailure::Refused(_)));
    same.expect_nothing();
    let mut nonsense = refused("7");
    assert!(matches!(failure(&mut nonsense), OpeningFailure::NoCommonRevision(_)));
}

#[test]
fn other_modern_errors_do_not_lead_to_the_handshake() {
    // Rule: [VER-021].
    for code in [-32020, -32021] {
        let mut wire = client(plain_client());
        wire.line();
        wire.send(&error("1", code, ""));
        assert!(matches!(failure(&mut wire), OpeningFailure::Refused(_)), "{code}");
        wire.expect_nothing();
    }
}

#[test]
fn a_modern_server_that_lists_both_eras_is_opened_at_the_modern_one() {
    // Rule: [VER-020] [DISC-003] [DISC-004].
    let mut wire = client(plain_client());
    wire.line();
    wire.send(&result("1", &discovered(r#"["2025-11-25","2026-07-28","2099-01-01"]"#)));
    assert_eq!(wire.told(), "opened at 2026-07-28");
    wire.expect_silence();
    let mut wire = client(plain_client());
    wire.line();
    wire.send(&result("1", &discovered(r#"["2025-03-26","2024-11-05"]"#)));
    expect_initialize(&mut wire, 2, "2025-03-26");
}

#[test]
fn an_invalid_discover_result_indicates_a_legacy_server() {
    // Rule: [VER-022].
    for odd in ["{}", r#"{"supportedVersions":"2026-07-28"}"#] {
        let mut wire = client(plain_client());
        wire.line();
        wire.send(&result("1", odd));
        expect_initialize(&mut wire, 2, "2025-11-25");
    }
}

#[test]
fn a_modern_only_client_reports_that_the_server_is_legacy() {
    // Rule: [VER-029].
    let mut wire = client(plain_client().revisions(Revisions::MODERN));
    wire.line();
    wire.send(&error("1", -32601, ""));
    assert_eq!(failure(&mut wire), OpeningFailure::LegacyServer);
    assert!(OpeningFailure::LegacyServer.to_string().contains("initialize"));
    let mut silent = client(plain_client().revisions(Revisions::MODERN));
    silent.line();
    silent.advance(Duration::from_secs(60));
    assert_eq!(failure(&mut silent), OpeningFailure::TimedOut);
}

#[test]
fn an_error_without_an_id_answers_the_opening_while_nothing_else_was_sent() {
    // Rule: [RPC-006] [VER-022].
    let unaddressed = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"m"}}"#;
    let mut wire = client(plain_client());
    wire.line();
    wire.send(unaddressed);
    expect_initialize(&mut wire, 2, "2025-11-25");
    wire.send(unaddressed);
    let OpeningFailure::Refused(error) = failure(&mut wire) else { panic!("another failure") };
    assert_eq!(error.message, "m");

    // A late error about the probe does not end the handshake.
    let mut wire = client(plain_client());
    wire.line();
    wire.advance(Duration::from_secs(10));
    expect_initialize(&mut wire, 2, "2025-11-25");
    wire.send(unaddressed);
    assert_eq!(wire.told(), "violation: an error that names no request: m (-32601)");
    wire.send(&result("2", SESSION));
    wire.expect(INITIALIZED);
    assert_eq!(wire.told(), "opened at 2025-11-25");
}

#[test]
fn a_capability_of_the_wrong_type_is_named() {
    // Rule: [CAP-017].
    for (capabilities, why) in [
        (r#"{"tools":[1]}"#, "the capability `tools` must be an object"),
        (
            r#"{"tools":{"listChanged":"yes"}}"#,
            "the capability `listChanged` must be true or false",
        ),
        ("7", "the capability `capabilities` must be an object"),
    ] {
        let mut wire = client(plain_client().revisions(Revisions::LEGACY));
        wire.line();
        wire.send(&result(
            "1",
            &format!(r#"{{"protocolVersion":"2025-11-25","capabilities":{capabilities}}}"#),
        ));
        let told = failure(&mut wire).to_string();
        assert!(told.ends_with(why), "{told}");
    }
}

#[test]
fn a_known_legacy_server_is_not_probed() {
    // Rule: [VER-018].
    let mut wire = client(plain_client().known_era(Era::Legacy));
    expect_initialize(&mut wire, 1, "2025-11-25");
    wire.send(&result("1", SESSION));
    wire.expect(INITIALIZED);
    assert_eq!(wire.told(), "opened at 2025-11-25");
}

#[test]
fn a_known_legacy_server_that_refuses_the_handshake_is_probed() {
    // Rule: [VER-018].
    let mut wire = client(plain_client().known_era(Era::Legacy));
    wire.line();
    wire.send(&error("1", -32601, r#","data":{"supported":["2026-07-28"]}"#));
    assert_eq!(wire.message()["method"], "server/discover");
    wire.send(&result("2", &discovered(r#"["2026-07-28"]"#)));
    assert_eq!(wire.told(), "opened at 2026-07-28");
    assert_eq!(wire.machine.era(), Some(Era::Modern));
}

#[test]
fn a_slow_modern_server_is_detected_after_a_wrong_guess() {
    // Rule: [VER-018] [VER-022].
    let mut wire = client(plain_client());
    wire.line();
    wire.advance(Duration::from_secs(5));
    expect_initialize(&mut wire, 2, "2025-11-25");
    wire.send(&result("1", &discovered(r#"["2026-07-28"]"#)));
    wire.send(&error("2", -32601, ""));
    assert_eq!(wire.message()["method"], "server/discover");
    wire.send(&result("3", &discovered(r#"["2026-07-28"]"#)));
    assert_eq!(wire.told(), "opened at 2026-07-28");
}

#[test]
fn an_initialize_refused_with_a_list_is_repeated_once() {
    // Rule: [VER-009].
    let supported = |list: &str| format!(r#","data":{{"supported":{list},"requested":"x"}}"#);
    let mut wire = client(plain_client().revisions(Revisions::LEGACY));
    wire.line();
    wire.send(&error("1", -32602, &supported(r#"["2024-11-05","2025-03-26"]"#)));
    expect_initialize(&mut wire, 2, "2025-03-26");
    wire.send(&error("2", -32602, &supported(r#"["2024-11-05"]"#)));
    assert!(matches!(failure(&mut wire), OpeningFailure::Refused(_)));
    let mut nothing = client(plain_client().revisions(Revisions::LEGACY));
    nothing.line();
    nothing.send(&error("1", -32602, &supported(r#"["2099-01-01"]"#)));
    assert!(matches!(failure(&mut nothing), OpeningFailure::NoCommonRevision(_)));
}

#[test]
fn an_initialize_that_times_out_is_never_cancelled() {
    // Rule: [CANC-002] [LIFE-008].
    let mut wire = client(plain_client().revisions(Revisions::LEGACY));
    wire.line();
    wire.advance_to_deadline();
    assert_eq!(failure(&mut wire), OpeningFailure::TimedOut);
    wire.expect_silence();
}

#[test]
fn the_handshake_error_is_reported_if_neither_era_works() {
    // Rule: [VER-018] [LIFE-008].
    let mut wire = client(plain_client().known_era(Era::Legacy));
    wire.line();
    wire.send(&error("1", -32603, ""));
    assert_eq!(wire.message()["method"], "server/discover");
    wire.send(&error("2", -32601, ""));
    let OpeningFailure::Refused(refused) = failure(&mut wire) else { panic!("refused") };
    assert_eq!(refused.code.0, -32603);
    wire.expect_nothing();
}

#[test]
fn a_client_without_a_revision_does_not_open() {
    let mut wire = client(plain_client().revisions(Revisions::NONE));
    assert!(matches!(failure(&mut wire), OpeningFailure::NoCommonRevision(_)));
    wire.expect_silence();
    assert_eq!(wire.machine.poll_timeout(), None);
}

fn restart(wire: &mut Wire<Client>) -> bool {
    let now = wire.now;
    wire.machine.restart(now)
}

#[test]
fn a_server_that_exits_on_the_probe_is_opened_without_one() {
    // Rule: [VER-022] [VER-023].
    // Before or after it has read the probe, with or without a response to it.
    for (answer, partly) in [(None, true), (None, false), (Some(-32601), false)] {
        let mut wire = client(plain_client());
        if partly {
            let length = wire.machine.peek_transmit().len();
            wire.machine.consume_transmit(length / 2);
        } else {
            assert_eq!(wire.message()["method"], "server/discover");
        }
        if let Some(code) = answer {
            wire.send(&error("1", code, ""));
            expect_initialize(&mut wire, 2, "2025-11-25");
        }
        assert!(restart(&mut wire));
        let id = if answer.is_some() { 3 } else { 2 };
        expect_initialize(&mut wire, id, "2025-11-25");
        wire.expect_silence();
        wire.send(&result(&id.to_string(), SESSION));
        wire.expect(INITIALIZED);
        assert_eq!(wire.told(), "opened at 2025-11-25");
        assert_eq!(wire.machine.era(), Some(Era::Legacy));
        // After opening, it is an ordinary end of input.
        assert!(!restart(&mut wire));
    }
}

#[test]
fn a_server_is_restarted_once() {
    let mut wire = client(plain_client());
    wire.line();
    assert!(restart(&mut wire));
    wire.line();
    assert!(!restart(&mut wire));
    wire.machine.handle_eof();
    assert!(matches!(wire.event(), Event::Closed(CloseReason::EndOfInput)));
}

#[test]
fn a_restarted_server_that_refuses_the_handshake_is_probed_again() {
    // Rule: [VER-018]. The legacy era was a guess.
    let mut wire = client(plain_client());
    wire.line();
    assert!(restart(&mut wire));
    expect_initialize(&mut wire, 2, "2025-11-25");
    wire.send(&error("2", -32601, ""));
    assert_eq!(wire.message()["method"], "server/discover");
    assert!(!restart(&mut wire), "there is nothing else to try");
    wire.send(&result("3", &discovered(r#"["2026-07-28"]"#)));
    assert_eq!(wire.told(), "opened at 2026-07-28");
}

#[test]
fn a_server_that_cannot_be_legacy_is_not_restarted() {
    for options in [
        plain_client().revisions(Revisions::MODERN),
        plain_client().revisions(Revisions::LEGACY),
        plain_client().known_era(Era::Legacy),
    ] {
        let mut wire = client(options);
        wire.line();
        assert!(!restart(&mut wire));
        wire.expect_silence();
    }
}

#[test]
fn a_subscription_whose_next_process_exits_on_the_probe_ends_with_the_era() {
    // Rule: [VER-022].
    let mut wire = client(plain_client());
    wire.line();
    wire.send(&result("1", &discovered(r#"["2026-07-28"]"#)));
    assert_eq!(wire.told(), "opened at 2026-07-28");
    let filter = SubscriptionFilter::new().tools_list_changed(true);
    wire.machine.subscribe(&filter, wire.now).unwrap();
    assert_eq!(wire.message()["method"], "subscriptions/listen");
    assert!(wire.machine.suspend());
    wire.machine.resume(wire.now);
    assert_eq!(wire.message()["method"], "server/discover");
    assert!(restart(&mut wire));
    expect_initialize(&mut wire, 4, "2025-11-25");
    wire.send(&result("4", SESSION));
    wire.expect(INITIALIZED);
    assert_eq!(wire.told(), "opened at 2025-11-25");
    assert_eq!(wire.told(), "failed: the connection ended before the answer");
}

#[test]
fn a_wrong_guess_of_the_era_does_not_narrow_the_revisions_of_the_next_process() {
    // Rule: [VER-018].
    let mut wire = client(plain_client().known_era(Era::Legacy));
    wire.line();
    wire.send(&error("1", -32601, ""));
    assert_eq!(wire.message()["method"], "server/discover");
    wire.send(&result("2", &discovered(r#"["2026-07-28"]"#)));
    assert_eq!(wire.told(), "opened at 2026-07-28");
    // The next process is an older version of the server.
    assert!(wire.machine.suspend());
    wire.machine.resume(wire.now);
    assert_eq!(wire.message()["method"], "server/discover");
    wire.send(&error("3", -32601, ""));
    expect_initialize(&mut wire, 4, "2025-11-25");
    wire.send(&result("4", SESSION));
    wire.expect(INITIALIZED);
    assert_eq!(wire.told(), "opened at 2025-11-25");
}

#[test]
fn an_answer_to_the_probe_without_a_list_of_revisions_is_named_if_there_is_no_other_era() {
    // Rule: [DISC-003].
    for versions in [r#""2026-07-28""#, "7", "null"] {
        let mut wire = client(plain_client().revisions(Revisions::MODERN));
        wire.line();
        wire.send(&result("1", &discovered(versions)));
        let told = failure(&mut wire).to_string();
        assert!(told.ends_with("`supportedVersions` is not a list of strings"), "{told}");
    }
}

#[test]
fn a_capability_of_a_client_of_the_wrong_type_is_named() {
    // Rule: [CAP-017].
    let extensions = r#"{"extensions":["com.example/a"]}"#;
    let mut wire = crate::wire::server(full_server());
    wire.send(&modern_with("1", "tools/list", "", extensions, ""));
    let message = wire.message();
    assert_eq!(message["error"]["code"], -32602);
    let text = message["error"]["message"].as_str().unwrap();
    assert!(text.contains("clientCapabilities`"), "{text}");
    assert!(text.ends_with("the capability `extensions` must be an object"), "{text}");
    let initialize = |capabilities: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"2025-06-18","capabilities":{capabilities},"clientInfo":{{"name":"c","version":"1"}}}}}}"#
        )
    };
    let mut wire = crate::wire::server(full_server());
    wire.send(&initialize(r#"{"roots":7}"#));
    let message = wire.message();
    let text = message["error"]["message"].as_str().unwrap();
    assert!(text.ends_with("the capability `roots` must be an object"), "{text}");
    // Rule: [CAP-018]: a revision ignores the members that it does not define.
    let mut wire = crate::wire::server(full_server());
    wire.send(&initialize(r#"{"extensions":["com.example/a"],"tasks":7}"#));
    assert_eq!(wire.message()["result"]["protocolVersion"], "2025-06-18");
}

use std::time::Duration;

use mcp_sansio::http::ExchangeFailure;
use mcp_sansio::{Era, Revision, Revisions};

use crate::net::{
    DISCOVERED, EVENTS, JSON, Net, OK, bare_error, error, event, http_options, initialized,
    peer_options, result,
};

#[test]
fn a_modern_server_is_detected_by_a_modern_request() {
    // Rule: [VER-011] [VER-025] [HCLI-002] [HCLI-004] [HDR-003] [HDR-005].
    let mut net = Net::plain();
    assert_eq!(net.sent(), "#1 POST server/discover\n");
    insta::assert_snapshot!(net.full(1), @r#"
    POST https://example.com/mcp
    accept: application/json, text/event-stream
    accept-encoding: identity
    content-type: application/json
    mcp-protocol-version: 2026-07-28
    mcp-method: server/discover
    user-agent: demo/1.0 mcp-sansio/VERSION
    {"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"demo","version":"1.0"},"io.modelcontextprotocol/clientCapabilities":{}}}}
    "#);
    net.json(1, &result(1, DISCOVERED));
    assert_eq!(net.told(), "opened at 2026-07-28\n");
    assert_eq!(net.client.era(), Some(Era::Modern));
    net.expect_silence();
}

#[test]
fn the_response_to_the_probe_can_be_a_stream() {
    // Rule: [HCLI-003].
    let mut net = Net::plain();
    net.sent();
    net.answer_head(1, 200, EVENTS);
    net.body(1, ": hello\n\n");
    net.body(1, &event(&result(1, DISCOVERED)));
    net.end(1);
    assert_eq!(net.told(), "opened at 2026-07-28\n");
    net.expect_silence();
}

#[test]
fn modern_errors_keep_the_client_modern() {
    // Rule: [VER-013] [VER-026].
    let mut net = Net::plain();
    net.sent();
    let listed = r#","data":{"supported":["2026-07-28"],"requested":"2026-07-28"}"#;
    net.answer(1, 400, JSON, &error("1", -32022, listed));
    // The server refused a revision it lists: the client retries once.
    assert_eq!(net.sent(), "#2 POST server/discover\n");
    net.answer(2, 400, JSON, &error("2", -32022, listed));
    assert!(net.told().starts_with("closed: could not open the connection: the server refused"));

    for code in [-32020, -32021] {
        for id in ["1", "null"] {
            let mut net = Net::plain();
            net.sent();
            net.answer(1, 400, JSON, &error(id, code, ""));
            assert!(net.told().contains("closed: could not open"), "{code}");
            net.expect_silence();
        }
    }
    // The only common revision is a legacy one.
    let mut net = Net::plain();
    net.sent();
    let listed = r#","data":{"supported":["2099-01-01","2025-06-18"]}"#;
    net.answer(1, 400, JSON, &error("1", -32022, listed));
    assert_eq!(net.sent(), "#2 POST initialize\n");
}

#[test]
fn a_modern_server_without_discover_is_opened_at_the_latest_modern_revision() {
    // Rule: [VER-014] [VER-018] [VER-028].
    let missing = |id: &str| error(id, -32601, "");
    // It refuses the handshake too, in one of the ways of a modern server.
    for (status, refusal) in
        [(404, missing("2")), (400, error("null", -32020, "")), (405, "".into())]
    {
        let mut net = Net::plain();
        net.sent();
        net.answer(1, 404, JSON, &missing("1"));
        assert_eq!(net.sent(), "#2 POST initialize\n");
        net.answer(2, status, JSON, &refusal);
        if status == 405 {
            assert_eq!(net.sent(), "#3 GET\n");
            net.answer(3, 405, &[], "");
        }
        assert!(net.sent().ends_with(" POST server/discover\n"), "{status}");
        let again = net.last();
        net.answer(again, 404, JSON, &missing("3"));
        assert_eq!(net.told(), "opened at 2026-07-28\n", "{status}");
        assert_eq!(net.client.era(), Some(Era::Modern));
        net.call_echo();
        assert!(net.sent().ends_with(" POST tools/call\n"), "{status}");
        net.json(net.last(), &result(net.id_of(net.last()), OK));
        assert_eq!(net.told(), format!("call 1: {OK}\n"));
    }
    // A client without the handshake has no other choice.
    let mut net = Net::new(peer_options().revisions(Revisions::MODERN), http_options());
    net.sent();
    net.answer(1, 404, JSON, &missing("1"));
    assert_eq!(net.told(), "opened at 2026-07-28\n");
}

#[test]
fn a_server_that_refuses_only_the_probe_is_opened_with_the_handshake() {
    // Rule: [VER-018] [VER-025].
    type Script = fn(&mut Net);
    let scripts: [Script; 10] = [
        |net| net.answer(1, 404, JSON, &error("1", -32601, "")),
        |net| net.answer(1, 500, JSON, &error("1", -32601, "")),
        |net| net.answer(1, 500, JSON, &error("1", -32603, "")),
        |net| net.answer(1, 500, &[], "Missing handler"),
        |net| net.answer(1, 501, &[], ""),
        |net| net.answer(1, 401, &[("www-authenticate", "Bearer")], ""),
        |net| net.answer(1, 403, JSON, &error("1", -32001, "")),
        |net| net.answer(1, 200, EVENTS, ": nothing\n\n"),
        |net| {
            net.answer_head(1, 200, EVENTS);
            net.broken(1);
        },
        |net| net.broken(1),
    ];
    for (script, at) in scripts.into_iter().zip(0..) {
        let mut net = Net::plain();
        net.sent();
        script(&mut net);
        assert_eq!(net.sent(), "#2 POST initialize\n", "script {at}");
        net.initialize(2, 2, Revision::V2025_11_25, Some("s1"));
        assert_eq!(net.told(), "opened at 2025-11-25\n", "script {at}");
        assert_eq!(net.client.era(), Some(Era::Legacy));
    }
}

#[test]
fn a_modern_server_that_fails_once_is_probed_again() {
    // Rule: [VER-018].
    let mut net = Net::plain();
    net.sent();
    net.answer(1, 500, &[], "out of memory");
    assert_eq!(net.sent(), "#2 POST initialize\n");
    net.answer(2, 400, JSON, &error("2", -32022, r#","data":{"supported":["2026-07-28"]}"#));
    assert_eq!(net.sent(), "#3 POST server/discover\n");
    net.json(3, &result(3, DISCOVERED));
    assert_eq!(net.told(), "opened at 2026-07-28\n");
}

#[test]
fn the_opening_waits_as_long_as_the_server_asks_for() {
    for status in [429, 503] {
        let mut net = Net::plain();
        assert_eq!(net.sent(), "#1 POST server/discover\n");
        net.answer(1, status, &[("retry-after", "1")], "starting");
        net.expect_silence();
        let (waited, sent) = net.wait_for_request();
        assert!(waited >= Duration::from_secs(1) && waited < Duration::from_secs(3), "{waited:?}");
        assert_eq!(sent, "#2 POST server/discover\n");
        net.answer(2, 400, &[], "");
        assert_eq!(net.sent(), "#3 POST initialize\n");
        net.answer(3, status, &[("retry-after", "1")], "starting");
        assert_eq!(net.wait_for_request().1, "#4 POST initialize\n");
        net.initialize(4, 2, Revision::V2025_11_25, None);
        assert_eq!(net.told(), "opened at 2025-11-25\n");
    }
    // Not longer than the opening may take.
    let mut net = Net::plain();
    net.sent();
    net.answer(1, 503, &[("retry-after", "61")], "");
    assert!(net.told().contains("refused with HTTP status 503"));
}

#[test]
fn any_other_response_indicates_a_legacy_server() {
    // Rule: [VER-025] [VER-027].
    type Script = fn(&mut Net);
    let scripts: [Script; 11] = [
        |net| net.answer(1, 400, &[], ""),
        |net| net.answer(1, 400, &[("content-type", "text/plain")], "Bad Request"),
        |net| net.answer(1, 400, JSON, &bare_error(-32000)),
        |net| net.answer(1, 404, &[], ""),
        |net| net.answer(1, 404, JSON, &error("1", -32001, "")),
        |net| net.answer(1, 405, &[("allow", "GET")], ""),
        |net| net.answer(1, 422, JSON, "{}"),
        |net| net.json(1, &error("1", -32601, "")),
        |net| net.json(1, "<html>"),
        |net| net.answer(1, 202, &[], ""),
        |net| net.answer(1, 200, &[("content-type", "text/html")], "hello"),
    ];
    for (script, at) in scripts.into_iter().zip(0..) {
        let mut net = Net::plain();
        net.sent();
        script(&mut net);
        assert!(net.sent().contains("#2 POST initialize\n"), "script {at}");
        assert_eq!(net.field(2, "mcp-protocol-version"), None);
        assert_eq!(net.field(2, "mcp-method"), None);
        net.initialize(2, 2, Revision::V2025_11_25, Some("s1"));
        assert_eq!(net.told(), "opened at 2025-11-25\n", "script {at}");
        assert_eq!(net.client.era(), Some(Era::Legacy));
    }
}

#[test]
fn failures_unrelated_to_the_era_are_reported_unchanged() {
    // Rule: [VER-025].
    for (status, fields, expected) in [
        (
            401,
            &[("www-authenticate", "Bearer x=y")][..],
            "requires authorization, with HTTP status 401: Bearer x=y; sign in, or check the token",
        ),
        (403, &[], "denies access, with HTTP status 403; ask its operator"),
        (500, &[], "refused with HTTP status 500"),
        (503, &[], "refused with HTTP status 503"),
        (429, &[], "refused with HTTP status 429"),
    ] {
        let mut net = Net::plain();
        net.sent();
        net.answer(1, status, fields, "");
        if matches!(status, 401 | 403 | 500) {
            assert_eq!(net.sent(), "#2 POST initialize\n");
            net.answer(2, status, fields, "");
        }
        let told = net.told();
        assert!(told.starts_with("closed: could not open") && told.contains(expected), "{told}");
        let sent = net.sent();
        assert!(sent.lines().all(|line| line.ends_with("abort")), "{sent}");
        assert!(net.client.is_drained());
    }
    // A client without the handshake reports the first one.
    for (status, expected) in [(401, "requires authorization"), (500, "HTTP status 500")] {
        let mut net = Net::new(peer_options().revisions(Revisions::MODERN), http_options());
        net.sent();
        net.answer(1, status, &[], "");
        assert!(net.told().contains(expected), "{status}");
    }
    for (failure, expected) in [
        (ExchangeFailure::NotSent, "could not be reached"),
        (ExchangeFailure::Broken, "broke before the answer"),
    ] {
        let mut net = Net::plain();
        net.sent();
        net.failed(1, failure);
        if failure == ExchangeFailure::Broken {
            assert_eq!(net.sent(), "#2 POST initialize\n");
            net.failed(2, failure);
        }
        assert!(net.told().contains(expected));
        net.expect_silence();
    }
}

#[test]
fn a_timeout_does_not_indicate_an_era() {
    // Rule: [VER-025].
    let mut net = Net::plain();
    net.sent();
    net.advance(Duration::from_secs(59));
    net.expect_silence();
    net.advance(Duration::from_secs(1));
    assert!(net.told().contains("did not answer the opening request in time"));
    assert_eq!(net.sent(), "#1 abort\n");
    assert!(net.client.is_drained());
}

#[test]
fn a_modern_client_reports_that_the_server_is_legacy() {
    // Rule: [VER-029].
    let modern = peer_options().revisions(Revisions::MODERN);
    let mut net = Net::new(modern, http_options());
    net.sent();
    net.answer(1, 400, &[], "");
    assert!(net.told().contains("needs the `initialize` handshake"));
}

#[test]
fn a_known_era_is_not_probed() {
    // Rule: [VER-018].
    let mut net = Net::new(peer_options().known_era(Era::Legacy), http_options());
    assert_eq!(net.sent(), "#1 POST initialize\n");
    // The server has been upgraded.
    let listed = r#","data":{"supported":["2026-07-28"]}"#;
    net.answer(1, 400, JSON, &error("1", -32022, listed));
    assert_eq!(net.sent(), "#2 POST server/discover\n");
    net.json(2, &result(2, DISCOVERED));
    assert_eq!(net.told(), "opened at 2026-07-28\n");
}

#[test]
fn a_known_era_that_fails_is_probed() {
    // Rule: [VER-018] [LSSE-010].
    let mut net = Net::new(peer_options().known_era(Era::Legacy), http_options());
    net.sent();
    net.answer(1, 404, &[], "");
    assert_eq!(net.sent(), "#2 GET\n");
    net.answer(2, 405, &[], "");
    assert_eq!(net.sent(), "#2 abort\n#3 POST server/discover\n");
}

#[test]
fn a_handshake_refused_with_versions_is_repeated_with_one_of_them() {
    // Rule: [VER-009].
    let legacy = peer_options().revisions(Revisions::LEGACY);
    let mut net = Net::new(legacy, http_options());
    net.sent();
    let listed = r#","data":{"supported":["2025-03-26"],"requested":"2025-11-25"}"#;
    net.answer(1, 400, JSON, &error("1", -32602, listed));
    assert_eq!(net.sent(), "#2 POST initialize\n");
    net.initialize(2, 2, Revision::V2025_03_26, None);
    assert_eq!(net.told(), "opened at 2025-03-26\n");
    assert_eq!(net.sent(), "#3 POST notifications/initialized\n");
}

#[test]
fn the_response_to_the_handshake_can_follow_a_ping_on_its_stream() {
    // Rule: [HCLI-015] [PING-001].
    let legacy = peer_options().revisions(Revisions::LEGACY);
    let mut net = Net::new(legacy, http_options());
    net.sent();
    net.answer_head(1, 200, &[("content-type", "text/event-stream"), ("MCP-SESSION-ID", "s1")]);
    net.body(1, &event(r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#));
    assert_eq!(net.sent(), "#2 POST result {} session=s1\n");
    net.body(1, &event(&result(1, &initialized(Revision::V2025_06_18))));
    assert_eq!(net.told(), "opened at 2025-06-18\n");
    let expected = "#3 POST notifications/initialized version=2025-06-18 session=s1\n";
    assert_eq!(net.sent(), expected);
}

#[test]
fn calls_wait_until_the_server_has_accepted_the_initialized_notification() {
    // Rule: [LIFE-003] [HDR-001] [HDR-002] [SESS-004] [HCLI-007] [HCLI-008].
    for revision in [Revision::V2025_03_26, Revision::V2025_06_18, Revision::V2025_11_25] {
        let mut net = Net::new(peer_options().revisions(Revisions::only(revision)), http_options());
        net.sent();
        net.initialize(1, 1, revision, Some("s1"));
        net.call_echo();
        assert!(net.sent().starts_with("#2 POST notifications/initialized"));
        net.advance(Duration::from_secs(1));
        net.expect_opened_only();
        net.answer(2, 202, &[], "");
        assert!(net.sent().starts_with("#3 GET"));
        assert_eq!(net.field(3, "accept").as_deref(), Some("text/event-stream"));
        net.answer_head(3, 200, EVENTS);
        assert!(net.sent().starts_with("#4 POST tools/call"));
        let version = (revision >= Revision::V2025_06_18).then(|| revision.to_string());
        for exchange in [2, 3, 4] {
            assert_eq!(net.field(exchange, "mcp-protocol-version"), version);
            assert_eq!(net.field(exchange, "mcp-session-id").as_deref(), Some("s1"));
            assert_eq!(net.field(exchange, "mcp-method"), None);
        }
    }
}

impl Net {
    fn expect_opened_only(&mut self) {
        assert!(self.told().starts_with("opened"));
        self.expect_silence();
    }
}

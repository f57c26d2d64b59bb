use mcp_sansio::http::{ClientLimits, ExchangeFailure};
use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::ClientMachine;
use mcp_sansio::{Method, Revision};

use crate::net::{
    EVENTS, JSON, Net, RESUMING, bare_error, client_limits, event, http_options, peer_options,
    result,
};

const LATEST: Revision = Revision::V2025_11_25;

fn limits(requests_max: usize, control_max: usize) -> ClientLimits {
    let mut limits = client_limits();
    (limits.requests_max, limits.control_exchanges_max) = (requests_max, control_max);
    limits
}

#[test]
fn each_message_is_a_separate_post() {
    // Rule: [HCLI-001] [HCLI-002] [HCLI-004] [HCLI-005] [HDR-001].
    let mut net = Net::legacy(LATEST);
    for _ in 0..3 {
        net.call(Method::ToolsList, "{}");
    }
    let line = |n| format!("#{n} POST tools/list version=2025-11-25 session=s1\n");
    assert_eq!(net.sent(), [line(4), line(5), line(6)].concat());
    insta::assert_snapshot!(net.full(5), @r#"
    POST https://example.com/mcp
    accept: application/json, text/event-stream
    accept-encoding: identity
    content-type: application/json
    mcp-protocol-version: 2025-11-25
    mcp-session-id: s1
    user-agent: demo/1.0 mcp-sansio/VERSION
    {"jsonrpc":"2.0","id":3,"method":"tools/list","params":{}}
    "#);
    net.json(6, &result(4, "{}"));
    net.json(4, &result(2, "{}"));
    assert_eq!(net.told(), "call 3: {}\ncall 1: {}\n");
}

#[test]
fn no_batches_are_sent_at_the_revision_that_has_them() {
    // Rule: [BATCH-005].
    let mut net = Net::legacy(Revision::V2025_03_26);
    net.call_echo();
    net.call_echo();
    net.cancel(1);
    net.body(3, &event(r#"{"jsonrpc":"2.0","id":"c","method":"ping"}"#));
    net.told();
    let sent = net.sent();
    assert_eq!(sent.lines().count(), 4, "{sent}");
    for n in 4..=7 {
        let body = net.request(n).body.to_vec();
        assert_eq!(body.first(), Some(&b'{'), "{n} of {sent}");
    }
}

#[test]
fn calls_over_the_limit_are_queued() {
    let http = http_options().limits(limits(2, 8));
    let mut net = Net::modern_with(peer_options(), http);
    for _ in 0..4 {
        net.call_echo();
    }
    assert_eq!(net.sent(), "#2 POST tools/call\n#3 POST tools/call\n");
    net.json(3, &result(3, "{}"));
    assert_eq!(net.sent(), "#4 POST tools/call\n");
    // A queued call is cancelled without a message.
    net.cancel(4);
    net.json(2, &result(2, "{}"));
    assert_eq!(net.sent(), "");
    net.failed(4, ExchangeFailure::Broken);
    net.call_echo();
    assert_eq!(net.sent(), "#5 POST tools/call\n");
}

#[test]
fn responses_and_cancellations_do_not_wait_for_calls() {
    // Rule: [HCLI-015].
    let capabilities = crate::net::with_roots();
    let http = http_options().limits(limits(1, 1));
    let mut net = Net::legacy_with(LATEST, peer_options().capabilities(capabilities), http);
    net.call_echo();
    net.call_echo();
    assert_eq!(net.sent(), "#4 POST tools/call version=2025-11-25 session=s1\n");
    net.answer_head(4, 200, EVENTS);
    net.body(4, &event(r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#));
    net.body(4, &event(r#"{"jsonrpc":"2.0","id":"b","method":"roots/list"}"#));
    net.body(3, &event(r#"{"jsonrpc":"2.0","id":"c","method":"ping"}"#));
    let input = net.told();
    assert_eq!(input, "asked: roots/list {}\n");
    let roots = RawJson::parse(r#"{"roots":[]}"#).unwrap();
    net.client.answer_input_with(net.inputs[0].handle, &roots, net.now).unwrap();
    assert_eq!(net.sent(), "#5 POST result {} version=2025-11-25 session=s1\n");
    net.answer(5, 202, &[], "");
    assert_eq!(net.sent(), "#6 POST result {} version=2025-11-25 session=s1\n");
    net.answer(6, 202, &[], "");
    assert_eq!(net.sent(), "#7 POST result {\"roots\":[]} version=2025-11-25 session=s1\n");
    net.answer(7, 202, &[], "");
    net.cancel(1);
    let sent = net.sent();
    assert_eq!(sent, "#8 POST notifications/cancelled version=2025-11-25 session=s1\n");
}

#[test]
fn a_legacy_call_is_cancelled_by_a_notification_and_its_exchange_stays_open() {
    // Rule: [CANC-001] [SSE-011].
    for revision in RESUMING {
        let mut net = Net::legacy(revision);
        net.call_echo();
        net.sent();
        net.answer_head(4, 200, EVENTS);
        net.cancel(1);
        let sent = net.sent();
        assert!(sent.starts_with("#5 POST notifications/cancelled"), "{sent}");
        assert!(net.full(5).contains(r#""requestId":2,"reason":"enough""#));
        // A late response is absorbed, and the end of the stream affects no call.
        net.body(4, &event(&result(2, "{}")));
        net.end(4);
        assert_eq!(net.told(), "call 1 failed: Cancelled\n");
        net.answer(5, 202, &[], "");
        net.expect_silence();
        // A call that was not sent needs no cancellation.
        let mut net =
            Net::legacy_with(revision, peer_options(), http_options().limits(limits(1, 8)));
        net.call_echo();
        net.call_echo();
        net.sent();
        net.cancel(2);
        assert_eq!(net.sent(), "");
    }
}

#[test]
fn an_exchange_is_aborted_if_it_continues_after_its_response() {
    // Rule: [SSE-004].
    let mut net = Net::legacy(LATEST);
    net.call_echo();
    net.sent();
    net.answer_head(4, 200, EVENTS);
    net.body(4, &event(&result(2, "{}")));
    assert_eq!(net.told(), "call 1: {}\n");
    net.advance(core::time::Duration::from_millis(1999));
    net.expect_silence();
    net.advance(core::time::Duration::from_millis(1));
    assert_eq!(net.sent(), "#4 abort\n");
}

#[test]
fn a_rejected_notification_is_only_reported() {
    // Rule: [HCLI-005].
    let capabilities = crate::net::with_roots();
    for status in [400, 405, 500] {
        let peer = peer_options().capabilities(capabilities.clone());
        let mut net = Net::legacy_with(LATEST, peer, http_options());
        let method = Method::RootsListChanged;
        net.client.notify(method, &RawJson::EMPTY_OBJECT, net.now).unwrap();
        let sent = net.sent();
        assert!(sent.starts_with("#4 POST notifications/roots/list_changed"), "{sent}");
        net.answer(4, status, JSON, &bare_error(-32600));
        let told = net.told();
        assert!(
            told.starts_with(
                "delivery failed: `notifications/roots/list_changed` could not be delivered"
            ),
            "{told}"
        );
        net.call_echo();
        assert!(net.sent().starts_with("#5 POST tools/call"));
    }
    // The notification that opens the session is reported as well.
    let only = mcp_sansio::Revisions::only(LATEST);
    let mut net = Net::new(peer_options().revisions(only), http_options());
    net.sent();
    net.initialize(1, 1, LATEST, None);
    net.sent();
    net.answer(2, 400, &[], "");
    assert!(
        net.told().contains("delivery failed: `notifications/initialized` could not be delivered")
    );
    assert_eq!(net.sent(), "#3 GET version=2025-11-25\n");
}

#[test]
fn a_batch_of_responses_ends_its_calls() {
    // Rule: [BATCH-001] [HCLI-003].
    let mut net = Net::legacy(Revision::V2025_03_26);
    net.call_echo();
    net.sent();
    net.json(4, &format!("[{}]", result(2, "{}")));
    assert_eq!(net.told(), "call 1: {}\n");
    net.call_echo();
    net.sent();
    net.answer_head(5, 200, EVENTS);
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    net.body(5, &event(&format!("[{ping},{}]", result(3, "{}"))));
    assert_eq!(net.told(), "call 2: {}\n");
    assert_eq!(net.sent(), "#6 POST result {} session=s1\n");
}

#[test]
fn the_number_of_control_exchanges_can_be_unlimited() {
    let http = http_options().limits(limits(1, usize::MAX));
    let mut net = Net::legacy_with(LATEST, peer_options(), http);
    net.call_echo();
    net.sent();
    net.json(4, &result(2, "{}"));
    assert_eq!(net.told(), "call 1: {}\n");
}

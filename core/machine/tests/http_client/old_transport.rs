use mcp_sansio::peer::ClientMachine;
use std::time::Duration;

use mcp_sansio::http::ExchangeFailure;
use mcp_sansio::{Revision, Revisions};

use crate::net::{
    EVENTS, JSON, Net, bare_error, error, event, http_options, initialized, notification,
    peer_options, result,
};

fn legacy() -> Net {
    let mut net = Net::new(peer_options().revisions(Revisions::LEGACY), http_options());
    assert_eq!(net.sent(), "#1 POST initialize\n");
    net
}

/// Returns a client whose handshake was refused and which requests the HTTP+SSE stream on exchange
/// 2.
fn seeking() -> Net {
    let mut net = legacy();
    net.answer(1, 405, &[], "");
    assert_eq!(net.sent(), "#2 GET\n");
    assert_eq!(net.field(2, "accept").as_deref(), Some("text/event-stream"));
    net
}

#[test]
fn a_refused_handshake_leads_to_http_sse() {
    // Rule: [LSSE-003] [LSSE-004] [LSSE-007] [LSSE-008] [LSSE-009] [LSSE-010].
    for status in [400, 404, 405, 406, 422] {
        let mut net = legacy();
        net.answer(1, status, JSON, &bare_error(-32000));
        assert_eq!(net.sent(), "#2 GET\n", "{status}");
        net.answer_head(2, 200, EVENTS);
        net.body(2, "event: endpoint\ndata: /messages?session=7\n\n");
        let to = "https://example.com/messages?session=7";
        assert_eq!(net.sent(), format!("#3 POST to {to} initialize\n"));
        net.answer(3, 202, &[], "Accepted");
        let answer = result(1, &initialized(Revision::V2024_11_05));
        net.body(2, &format!("event: message\ndata: {answer}\n\n"));
        assert_eq!(net.told(), "opened at 2024-11-05\n");
        assert_eq!(net.sent(), format!("#4 POST to {to} notifications/initialized\n"));
        net.answer(4, 202, &[], "");
        net.call_echo();
        assert_eq!(net.sent(), format!("#5 POST to {to} tools/call\n"));
        // The stream may be faster than the response.
        net.body(2, &event(&result(2, "{}")));
        assert_eq!(net.told(), "call 1: {}\n");
        net.answer(5, 200, JSON, "{}");
        net.body(2, &event(r#"{"jsonrpc":"2.0","id":5,"method":"ping"}"#));
        assert_eq!(net.sent(), format!("#6 POST to {to} result {{}}\n"));
        net.client.close(net.now);
        let sent = net.sent();
        assert!(!sent.contains("DELETE") && sent.contains("#2 abort"), "{sent}");
        assert!(net.client.is_drained());
    }
}

#[test]
fn a_stream_that_has_ended_is_not_aborted() {
    let mut ended = seeking();
    ended.answer_head(2, 200, EVENTS);
    ended.end(2);
    let mut failed = seeking();
    failed.failed(2, ExchangeFailure::Broken);
    for mut net in [ended, failed] {
        assert!(!net.sent().contains("abort"));
        net.client.close(net.now);
        assert!(!net.sent().contains("abort"));
        assert!(net.client.is_drained());
    }
}

#[test]
fn a_modern_error_does_not_lead_to_http_sse() {
    // Rule: [LSSE-009] [VER-017].
    for (status, body) in [
        (400, error("1", -32022, "")),
        (400, error("null", -32020, "")),
        (404, error("1", -32601, "")),
        (400, error("1", -32602, r#","data":{"supported":["2026-07-28"]}"#)),
    ] {
        let mut net = legacy();
        net.answer(1, status, JSON, &body);
        assert!(net.told().starts_with("closed: could not open the connection"), "{body}");
        net.expect_silence();
    }
}

#[test]
fn unrelated_failures_do_not_select_the_old_transport() {
    for status in [401, 403, 408, 429, 500, 503] {
        let mut net = legacy();
        net.answer(1, status, &[], "");
        assert!(net.told().starts_with("closed: could not open the connection"), "{status}");
        assert!(!net.sent().contains("GET"));
    }
    let mut net = legacy();
    net.failed(1, ExchangeFailure::NotSent);
    assert!(net.told().contains("could not be reached"));
    let http = http_options().old_transport(false);
    let mut net = Net::new(peer_options().revisions(Revisions::LEGACY), http);
    net.sent();
    net.answer(1, 405, &[], "");
    assert!(net.told().contains("HTTP status 405"));
    net.expect_silence();
}

#[test]
fn the_first_failure_is_reported_if_neither_transport_works() {
    // Rule: [LSSE-010].
    type Script = fn(&mut Net);
    let scripts: [Script; 4] = [
        |net| net.answer(2, 405, &[], ""),
        |net| net.answer(2, 200, JSON, "{}"),
        |net| net.failed(2, ExchangeFailure::Broken),
        |net| {
            net.answer_head(2, 200, EVENTS);
            net.end(2);
        },
    ];
    for (script, at) in scripts.into_iter().zip(0..) {
        let mut net = seeking();
        script(&mut net);
        let told = net.told();
        assert!(told.contains("HTTP status 405") && told.starts_with("closed"), "{at}: {told}");
        let sent = net.sent();
        assert!(matches!(&*sent, "" | "#2 abort\n"), "{at}: {sent}");
        assert!(net.client.is_drained());
    }
}

#[test]
fn an_endpoint_that_is_no_url_is_reported_with_its_text() {
    // Rule: [LSSE-003].
    for (endpoint, fault) in [
        ("http://[", "http://[: the host of the URL is missing or malformed"),
        ("/a b", "/a b: the URL is malformed"),
        ("ftp://example.com/", "does not start with `http://`"),
    ] {
        let mut net = seeking();
        net.answer_head(2, 200, EVENTS);
        net.body(2, &format!("event: endpoint\ndata: {endpoint}\n\n"));
        let told = net.told();
        assert!(told.contains("the event `endpoint` has no valid URL: "), "{told}");
        assert!(told.contains(fault), "{told}");
        assert_eq!(net.sent(), "#2 abort\n");
    }
}

#[test]
fn the_endpoint_may_follow_other_events_and_have_white_space_around_it() {
    // Rule: [LSSE-002] [LSSE-003].
    for endpoint in ["/m", " /m \t", "/m\ndata: ", "\t/m"] {
        let mut net = seeking();
        net.answer_head(2, 200, EVENTS);
        net.body(2, "event: open\ndata: x\n\nevent: ping\ndata: {}\n\n: comment\n\n");
        net.body(2, &event(&notification("info")));
        // It is not a response to the handshake, which was not sent.
        net.body(2, &event(&result(1, &initialized(Revision::V2024_11_05))));
        net.body(2, &event("{}"));
        net.body(2, &event(r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#));
        assert_eq!(net.sent(), "");
        net.body(2, &format!("event: endpoint\ndata: {endpoint}\n\n"));
        let to = "https://example.com/m";
        let expected = format!("#3 POST to {to} result {{}}\n#4 POST to {to} initialize\n");
        assert_eq!(net.sent(), expected, "{endpoint:?}");
        net.answer(4, 202, &[], "");
        net.body(2, &event(&result(1, &initialized(Revision::V2024_11_05))));
        assert!(net.told().ends_with("opened at 2024-11-05\n"));
    }
    // The answer of an early request is not posted elsewhere.
    let mut net = seeking();
    net.answer_head(2, 200, EVENTS);
    net.body(2, &event(r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#));
    net.end(2);
    assert!(net.told().contains("HTTP status 405"));
    net.expect_silence();
}

#[test]
fn an_opening_request_that_is_answered_with_the_old_stream_leads_to_it() {
    // Rule: [VER-018] [LSSE-010].
    let endpoint = "event: endpoint\ndata: /m\n\n";
    let mut net = Net::plain();
    assert_eq!(net.sent(), "#1 POST server/discover\n");
    net.answer_head(1, 200, EVENTS);
    net.body(1, endpoint);
    assert_eq!(net.sent(), "#1 abort\n#2 POST initialize\n");
    net.answer_head(2, 200, EVENTS);
    net.body(2, endpoint);
    assert_eq!(net.sent(), "#2 abort\n#3 GET\n");
    net.answer_head(3, 200, EVENTS);
    net.body(3, endpoint);
    assert_eq!(net.sent(), "#4 POST to https://example.com/m initialize\n");
    // A server without such a stream, and a client that does not use it.
    let http = http_options().old_transport(false);
    let unwilling = Net::new(peer_options().revisions(Revisions::LEGACY), http);
    for mut net in [legacy(), unwilling] {
        net.sent();
        net.answer_head(1, 200, EVENTS);
        net.body(1, endpoint);
        if net.sent().contains("#2 GET") {
            net.answer(2, 405, &[], "");
        }
        let told = net.told();
        assert!(told.contains("its stream is one of the transport HTTP+SSE"), "{told}");
    }
}

/// Returns a client with an open connection on the old transport, whose call is posted on exchange
/// 5.
fn calling() -> Net {
    let mut net = seeking();
    net.answer_head(2, 200, EVENTS);
    net.body(2, "event: endpoint\ndata: /m\n\n");
    net.sent();
    net.answer(3, 202, &[], "");
    net.body(2, &event(&result(1, &initialized(Revision::V2024_11_05))));
    net.sent();
    net.answer(4, 202, &[], "");
    net.call_echo();
    assert_eq!(net.sent(), "#5 POST to https://example.com/m tools/call\n");
    net.told();
    net
}

#[test]
fn the_answer_is_taken_from_the_response_of_the_post_too() {
    // Rule: [LSSE-004].
    let answer = result(2, "{}");
    for (fields, body) in [(JSON, answer.clone()), (EVENTS, event(&answer))] {
        let mut net = calling();
        net.answer(5, 200, fields, &body);
        assert_eq!(net.told(), "call 1: {}\n");
        net.body(2, &event(&answer));
        assert!(net.told().starts_with("violation: "));
    }
    // Anything else is not the answer.
    for (fields, body) in [
        (JSON, "{}"),
        (JSON, "\"Accepted\""),
        (JSON, "Accepted"),
        (JSON, r#"{"jsonrpc":"2.0","id":9,"result":{}}"#),
        (EVENTS, ""),
        (EVENTS, ": nothing\n\n"),
    ] {
        let mut net = calling();
        net.answer(5, 200, fields, body);
        assert_eq!(net.told(), "", "{body}");
        net.body(2, &event(&answer));
        assert_eq!(net.told(), "call 1: {}\n", "{body}");
    }
}

#[test]
fn a_post_that_breaks_does_not_end_its_call() {
    // Rule: [LSSE-004].
    for fields in [None, Some(&[][..]), Some(JSON), Some(EVENTS)] {
        let mut net = calling();
        if let Some(fields) = fields {
            net.answer_head(5, 200, fields);
        }
        net.broken(5);
        assert_eq!(net.told(), "");
        net.body(2, &event(&result(2, "{}")));
        assert_eq!(net.told(), "call 1: {}\n");
    }
    // It was not sent.
    let mut net = calling();
    net.failed(5, ExchangeFailure::NotSent);
    let (_, sent) = net.wait_for_request();
    assert_eq!(sent, "#6 POST to https://example.com/m tools/call\n");
}

#[test]
fn an_endpoint_of_another_origin_is_refused() {
    // Rule: [LSSE-003].
    for endpoint in [
        "https://evil.example/messages",
        "http://evil.example/messages",
        "//evil.example/x",
        "https://example.com:8443/messages",
    ] {
        let mut net = seeking();
        net.answer_head(2, 200, EVENTS);
        net.body(2, &format!("event: endpoint\ndata: {endpoint}\n\n"));
        let told = net.told();
        assert!(told.contains("redirects to") && told.contains("not followed"), "{told}");
        assert_eq!(net.sent(), "#2 abort\n");
    }
    let mut net = seeking();
    net.answer_head(2, 200, EVENTS);
    net.body(2, "event: endpoint\ndata: https://EXAMPLE.com:443/m?a=b\n\n");
    assert_eq!(net.sent(), "#3 POST to https://example.com/m?a=b initialize\n");
}

#[test]
fn an_endpoint_as_the_server_sees_itself_behind_a_proxy_is_one_of_the_proxy() {
    // Rule: [LSSE-003].
    for endpoint in [
        "http://example.com/m?a=b",
        "http://example.com:8080/m?a=b",
        "http://127.0.0.1:8000/m?a=b",
        "http://0.0.0.0:3001/m?a=b",
        "http://[::1]:3001/m?a=b",
        "http://localhost:3001/m?a=b",
    ] {
        let mut net = seeking();
        net.answer_head(2, 200, EVENTS);
        net.body(2, &format!("event: endpoint\ndata: {endpoint}\n\n"));
        assert_eq!(net.sent(), "#3 POST to https://example.com/m?a=b initialize\n", "{endpoint}");
    }
}

#[test]
fn the_connection_ends_with_its_stream() {
    for (end, expected) in
        [(true, "the other side closed the connection"), (false, "the exchange broke")]
    {
        let mut net = seeking();
        net.answer_head(2, 200, EVENTS);
        net.body(2, "event: endpoint\ndata: /m\n\n");
        net.sent();
        net.body(2, &event(&result(1, &initialized(Revision::V2024_11_05))));
        net.sent();
        net.answer(4, 202, &[], "");
        net.call_echo();
        net.sent();
        net.told();
        net.body(2, "id: 1\ndata:\n\n");
        if end {
            net.end(2)
        } else {
            net.broken(2)
        }
        let told = net.told();
        assert!(told.starts_with("call 1 failed: ConnectionLost\nclosed: "), "{told}");
        assert!(told.contains(expected), "{told}");
        net.sent();
        net.advance(Duration::from_secs(60));
        net.expect_silence();
    }
}

#[test]
fn a_refused_message_ends_its_call() {
    let mut net = seeking();
    net.answer_head(2, 200, EVENTS);
    net.body(2, "event: endpoint\ndata: /m\n\n");
    net.sent();
    net.body(2, &event(&result(1, &initialized(Revision::V2024_11_05))));
    net.sent();
    net.answer(4, 202, &[], "");
    net.call_echo();
    net.sent();
    net.told();
    net.answer(5, 500, &[], "");
    assert_eq!(net.told(), "call 1 failed: status 500\n");
}

#[test]
fn an_http_sse_server_that_does_not_answer_times_out() {
    let mut net = seeking();
    net.answer_head(2, 200, EVENTS);
    net.advance(Duration::from_secs(60));
    assert!(net.told().contains("in time"));
    assert_eq!(net.sent(), "#2 abort\n");
}

#[test]
fn a_relative_endpoint_belongs_to_the_url_that_sent_it() {
    let mut net = seeking();
    net.answer(2, 307, &[("location", "/v2/sse")], "");
    assert_eq!(net.sent(), "#3 GET to https://example.com/v2/sse\n");
    net.answer_head(3, 200, EVENTS);
    net.body(3, "event: endpoint\ndata: messages?s=1\n\n");
    assert_eq!(net.sent(), "#4 POST to https://example.com/v2/messages?s=1 initialize\n");
}

#[test]
fn an_endpoint_that_does_not_exist_is_named_with_the_probable_cause() {
    // Rule: [LSSE-003].
    for status in [404, 405] {
        let mut net = seeking();
        net.answer_head(2, 200, EVENTS);
        net.body(2, "event: endpoint\ndata: /messages?session=7\n\n");
        net.sent();
        net.answer(3, status, &[], "no such page");
        let told = net.told();
        for part in [
            &*format!("HTTP status {status}"),
            "no such page",
            "https://example.com/messages, the URL in the event `endpoint` of https://example.com/mcp",
            "a proxy",
        ] {
            assert!(told.contains(part), "{told}");
        }
        assert!(!told.contains("session=7"), "{told}");
    }
}

use std::time::Duration;

use mcp_sansio::Revision;
use mcp_sansio::http::ClientLimits;

use crate::net::{
    EVENTS, JSON, Net, OK, client_limits, error, event, event_with_id, http_options, peer_options,
    result,
};

const LATEST: Revision = Revision::V2025_11_25;

fn small() -> ClientLimits {
    let mut limits = client_limits();
    (limits.body_bytes_max, limits.event_bytes_max, limits.error_bytes_max) = (200, 200, 200);
    limits
}

fn calling_with(limits: ClientLimits, legacy: bool) -> (Net, usize) {
    let http = http_options().limits(limits);
    let mut net = if legacy {
        let mut net = Net::legacy_with(LATEST, peer_options(), http);
        net.body(3, ":\n");
        net
    } else {
        // The response to the probe is longer than some of the limits.
        let revisions = mcp_sansio::Revisions::MODERN;
        let mut net = Net::new(peer_options().revisions(revisions), http);
        net.sent();
        net.json(
            1,
            &result(1, r#"{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}"#),
        );
        assert_eq!(net.told(), "opened at 2026-07-28\n");
        net
    };
    net.call_echo();
    net.sent();
    let n = net.last();
    (net, n)
}

#[test]
fn bodies_and_events_over_the_limits_are_aborted() {
    let long = format!(r#"{{"x":"{}"}}"#, "y".repeat(300));
    let (mut net, n) = calling_with(small(), false);
    net.answer_head(n, 200, JSON);
    for piece in result(2, &long).as_bytes().chunks(50) {
        net.body(n, std::str::from_utf8(piece).unwrap());
    }
    assert_eq!(net.told(), "call 1 failed: TooLong { limit: 200 }\n");
    assert_eq!(net.sent(), format!("#{n} abort\n"));
    let (mut net, n) = calling_with(small(), false);
    net.answer_head(n, 200, EVENTS);
    net.body(n, &event(&result(2, &long)));
    let told = net.told();
    assert!(told.ends_with("call 1 failed: TooLong { limit: 200 }\n"), "{told}");
    assert_eq!(net.sent(), format!("#{n} abort\n"));
    // The body of a refusal is ignored.
    let (mut net, n) = calling_with(small(), false);
    net.answer(n, 400, JSON, &error("2", -32602, &format!(r#","data":{long}"#)));
    assert_eq!(net.told(), "call 1 failed: status 400\n");
    // On the standalone stream the event is dropped and reported.
    let mut limits = client_limits();
    limits.event_bytes_max = 200;
    let (mut net, _) = calling_with(limits, true);
    net.body(3, &event(&long));
    assert!(net.told().starts_with("violation: a frame of more than 200 bytes"));
    net.body(3, &event(&crate::net::notification("info")));
    assert!(net.told().starts_with("notifications/message"));
}

#[test]
fn a_text_in_place_of_an_answer_is_shown_with_its_type() {
    let html = &[("content-type", "text/html; charset=utf-8")][..];
    for legacy in [false, true] {
        let (mut net, n) = calling_with(client_limits(), legacy);
        net.answer(n, 200, html, "Your workspace is\n suspended");
        let expected = "the server's response is not valid: the content type \
             `text/html; charset=utf-8` is neither JSON nor an event stream: Your workspace is \
             suspended";
        assert_eq!(net.failure(), expected);
        let (mut net, n) = calling_with(client_limits(), legacy);
        net.answer(n, 200, &[], "upstream request timeout");
        assert!(net.failure().ends_with("a response to the request: upstream request timeout"));
        // A text that does not end is not waited for.
        for ends in [false, true] {
            let (mut net, n) = calling_with(client_limits(), legacy);
            net.answer_head(n, 200, html);
            net.body(n, "wait ");
            if ends {
                net.body(n, &"x".repeat(100_000));
            } else {
                net.advance(Duration::from_secs(2));
            }
            assert!(net.failure().contains("neither JSON nor an event stream: wait"));
        }
    }
}

#[test]
fn a_body_without_a_content_type_is_read_as_json() {
    // RFC 9110, section 8.3: the recipient may examine the data.
    for legacy in [false, true] {
        for (status, body) in [(200, result(2, OK)), (200, error("2", -7, ""))] {
            let (mut net, n) = calling_with(client_limits(), legacy);
            net.answer(n, status, &[], &body);
            let told = net.told();
            assert!(told.contains("refused, -7") || told.contains(OK), "{told}");
        }
        let (mut net, n) = calling_with(client_limits(), legacy);
        net.answer(n, 200, &[], &event(&result(2, OK)));
        assert!(net.failure().contains("the body is an event stream"));
    }
}

#[test]
fn an_event_of_another_type_counts_if_it_is_the_answer() {
    // Rule: [SSE-012].
    for legacy in [false, true] {
        for body in [error("2", -7, ""), error("null", -7, ""), result(2, OK)] {
            let (mut net, n) = calling_with(client_limits(), legacy);
            net.answer_head(n, 200, EVENTS);
            net.body(n, &format!("event: error\ndata: {}\n\n", error("3", -8, "")));
            assert_eq!(net.told(), "");
            net.body(n, &format!("event: error\ndata: {body}\n\n"));
            let told = net.told();
            assert!(told.starts_with("call 1"), "{told}");
            assert!(told.contains("refused, -7") || told.contains(OK), "{told}");
        }
    }
}

#[test]
fn a_stream_without_an_answer_says_what_it_had() {
    let answer = result(2, OK);
    for (body, expected) in [
        ("event: error\ndata: upstream timed out\n\n", "the type `error`: upstream timed out"),
        (&answer, "its content is JSON, not events"),
        (&format!("\n{answer}\n"), "its content is JSON, not events"),
        (&format!("data: {answer}\n"), "its last event is incomplete"),
        (&format!("data: {answer}"), "its last event is incomplete"),
        (": comment\n\n", "the stream ended before the answer and cannot be resumed"),
        ("event: ping\ndata: {}\n\n", "the stream ended before the answer and cannot be resumed"),
    ] {
        for legacy in [false, true] {
            let (mut net, n) = calling_with(client_limits(), legacy);
            net.answer(n, 200, EVENTS, body);
            let failure = net.failure();
            assert!(failure.ends_with(expected), "{body}: {failure}");
        }
    }
    let (mut net, n) = calling_with(client_limits(), true);
    net.answer(n, 200, JSON, &event(&answer));
    let failure = net.failure();
    assert!(failure.contains("an event stream, and its content type is JSON"), "{failure}");
    assert!(failure.contains("data: "), "{failure}");
}

#[test]
fn an_invalid_response_ends_the_call() {
    for (status, fields, body, expected) in [
        (202, &[][..], "", "InvalidResponse(\"a request was accepted"),
        (204, &[], "", "InvalidResponse(\"a request was accepted"),
        (200, &[], "{}", "InvalidResponse(\"the body does not contain a response"),
        (200, &[("content-type", "text/html")], "<p>", "InvalidResponse(\"the content type"),
        (200, JSON, "", "InvalidResponse(\"the body does not contain a response"),
        (200, JSON, "{}", "InvalidResponse(\"the body does not contain a response"),
        (200, JSON, "[]", "InvalidResponse(\"the body does not contain a response"),
        (200, JSON, "\u{0}", "InvalidResponse(\"the body does not contain a response"),
        (200, JSON, &result(77, "{}"), "InvalidResponse(\"the body does not contain a response"),
        (
            200,
            JSON,
            &crate::net::notification("info"),
            "InvalidResponse(\"the body does not contain a response",
        ),
        (200, JSON, r#"{"jsonrpc":"2.0","id":2,"result":3}"#, "InvalidAnswer"),
        (200, JSON, r#"{"jsonrpc":"2.0","id":2,"result":{"a":NaN}}"#, "InvalidAnswer(\"not JSON"),
        (200, JSON, r#"{"result":{"a":NaN},"id":2.0}"#, "InvalidAnswer(\"not JSON"),
        (200, JSON, &error("null", -7, ""), "refused, -7"),
        (
            200,
            &[("content-type", "application/json"), ("content-encoding", "GZIP")],
            "",
            "InvalidResponse(\"its content encoding is `gzip`",
        ),
        (
            200,
            &[("content-type", "text/event-stream"), ("content-encoding", "br")],
            "",
            "InvalidResponse(\"its content encoding is `br`",
        ),
    ] {
        for legacy in [false, true] {
            let (mut net, n) = calling_with(client_limits(), legacy);
            net.answer(n, status, fields, body);
            let told = net.told();
            assert_eq!(told.matches("call 1").count(), 1, "{status} {body}: {told}");
            assert!(
                told.contains(&format!("call 1 failed: {expected}")),
                "{status} {body}: {told}"
            );
            net.call_echo();
            assert!(net.sent().contains("POST tools/call"));
        }
    }
}

#[test]
fn an_unreadable_response_or_an_error_without_id_on_its_stream_ends_the_call() {
    for legacy in [false, true] {
        for (data, expected) in [
            (error("null", -7, ""), "call 1 failed: refused, -7"),
            (error("null", -7, "").replace(r#""id":null,"#, ""), "call 1 failed: refused, -7"),
            (result(2, r#"{"a":NaN}"#), "InvalidAnswer(\"not JSON\")"),
            (result(2, "[1]"), "InvalidAnswer(\"`result` is not an object\")"),
        ] {
            let (mut net, n) = calling_with(client_limits(), legacy);
            net.answer_head(n, 200, EVENTS);
            net.body(n, &event(&data));
            let told = net.told();
            assert_eq!(told.matches("call 1").count(), 1, "{data}: {told}");
            assert!(told.contains(expected), "{data}: {told}");
        }
    }
}

#[test]
fn the_reason_in_the_body_of_a_refusal_is_part_of_the_failure() {
    let gzip = String::from_utf8_lossy(&[0x1f, 0x8b]).into_owned();
    for legacy in [false, true] {
        for (status, body, reason) in [
            (
                400,
                "{\"error\":\n \"no \u{1b}[31mtenant\"}",
                ": {\"error\": \"no \\u{1b}[31mtenant\"}",
            ),
            (503, "<h1>down</h1>", ": <h1>down</h1>"),
            (403, "blocked by rule 7", ": blocked by rule 7"),
            (401, "", ""),
            (500, "", ""),
        ] {
            let (mut net, n) = calling_with(client_limits(), legacy);
            net.answer(n, status, &[], body);
            let failure = net.failure();
            let hint = match status {
                401 => "; sign in, or check the token",
                403 => "; ask its operator for the permission or the scope",
                _ => "",
            };
            let end = format!("HTTP status {status}{reason}{hint}");
            assert!(failure.ends_with(&end), "{failure}");
        }
        let (mut net, n) = calling_with(client_limits(), legacy);
        net.answer(n, 400, &[], &gzip);
        assert!(net.failure().contains("HTTP status 400"));
        // The start of a body that exceeds the limit is enough.
        let mut limits = client_limits();
        limits.error_bytes_max = 8;
        let (mut net, n) = calling_with(limits, legacy);
        net.answer(n, 400, &[], "no such tenant");
        assert!(net.failure().ends_with(": no such"));
    }
}

#[test]
fn invalid_data_on_a_stream_is_reported_and_tolerated() {
    for legacy in [false, true] {
        let (mut net, n) = calling_with(client_limits(), legacy);
        net.answer_head(n, 200, EVENTS);
        for data in ["nonsense", "{", "[]", "[1]", "7", "{\"jsonrpc\":\"2.0\"}"] {
            net.body(n, &event(data));
            assert!(net.told().starts_with("violation: "), "{data}");
        }
        net.body(n, &event(&result(77, "{}")));
        assert!(net.told().starts_with("violation: "));
        net.body(n, "event: other\ndata: x\n\n");
        net.body(n, &event(&result(2, OK)));
        assert_eq!(net.told(), format!("call 1: {OK}\n"));
        net.body(n, &event(&result(2, OK)));
        assert!(net.told().starts_with("violation: "));
    }
}

#[test]
fn redirects_to_the_same_origin_are_followed_up_to_a_limit() {
    for status in [307, 308] {
        let (mut net, n) = calling_with(client_limits(), true);
        net.answer(n, status, &[("Location", "/other?x")], "moved");
        let sent = net.sent();
        let to = "to https://example.com/other?x tools/call version=2025-11-25 session=s1";
        assert_eq!(sent, format!("#{} POST {to}\n", n + 1));
        assert_eq!(net.request(n).body, net.request(n + 1).body);
        for hop in n + 1..n + 5 {
            net.answer(hop, status, &[("location", "https://EXAMPLE.com/mcp")], "");
            assert!(net.sent().starts_with(&format!("#{} POST", hop + 1)));
        }
        net.answer(n + 5, status, &[("location", "/again")], "");
        let told = net.told();
        assert!(told.starts_with("call 1 failed: Redirected { target: \"/again\","), "{told}");
        assert!(told.contains("too many redirects"), "{told}");
        net.expect_silence();
    }
}

#[test]
fn other_redirects_are_refused_by_name() {
    for (status, location, reason) in [
        (307, "https://evil.example/mcp", "the target has another origin"),
        (308, "http://example.com/mcp", "the target has another origin"),
        (301, "/other", "the status may change the method"),
        (302, "/other", "the status may change the method"),
        (303, "/other", "the status may change the method"),
        (300, "", "the status may change the method"),
        (307, "http://[", "the target is not a valid URL"),
    ] {
        let (mut net, n) = calling_with(client_limits(), false);
        net.answer(n, status, &[("location", location)], "");
        let expected =
            format!("the server redirects to `{location}`, which is not followed: {reason}");
        assert_eq!(net.failure(), expected);
        net.expect_silence();
    }
    let (mut net, n) = calling_with(client_limits(), false);
    net.answer(n, 307, &[], "");
    assert!(net.failure().ends_with("the response names no target"));
    // Also while opening.
    let mut net = Net::plain();
    net.sent();
    net.answer(1, 302, &[("location", "https://login.example/")], "");
    assert!(net.told().contains("redirects to `https://login.example/`"));
}

#[test]
fn a_get_stays_a_get_when_it_is_redirected() {
    for status in [301, 302, 303, 307, 308] {
        let mut net = Net::legacy(LATEST);
        net.broken(3);
        assert!(net.wait_for_request().1.starts_with("#4 GET"));
        net.answer(4, status, &[("location", "/events")], "moved");
        let expected = "#5 GET to https://example.com/events version=2025-11-25 session=s1\n";
        assert_eq!(net.sent(), expected);
        net.answer_head(5, 200, EVENTS);
        net.body(5, &event(&crate::net::notification("info")));
        assert!(net.told().starts_with("notifications/message"));
    }
}

#[test]
fn events_of_unknown_exchanges_are_ignored() {
    let (mut net, n) = calling_with(client_limits(), true);
    net.body(n, "before the head");
    net.answer(n, 200, JSON, &result(2, OK));
    net.told();
    net.answer(n, 404, &[], "");
    net.body(n, "x");
    net.end(n);
    net.broken(n);
    net.expect_silence();
    // A second head, and a provisional one.
    net.call_echo();
    net.sent();
    net.answer_head(n + 1, 103, &[]);
    net.answer_head(n + 1, 200, EVENTS);
    net.answer_head(n + 1, 404, &[]);
    net.body(n + 1, &event(&result(3, OK)));
    assert_eq!(net.told(), format!("call 2: {OK}\n"));
    // An end without a head.
    net.call_echo();
    net.sent();
    net.end(n + 2);
    assert_eq!(net.told(), "call 3 failed: Broken\n");
}

#[test]
fn a_flood_of_pings_is_answered_within_the_limits() {
    let mut net = Net::legacy(LATEST);
    for id in 0..1000 {
        net.body(3, &event(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#)));
    }
    assert_eq!(net.sent().lines().count(), 8);
    let mut answered = 8;
    for exchange in 4.. {
        net.answer(exchange, 202, &[], "");
        let more = net.sent().lines().count();
        answered += more;
        if more == 0 {
            break;
        }
    }
    assert_eq!(answered, 1000);
}

#[test]
fn a_response_on_the_stream_of_another_call_is_accepted_in_a_legacy_session() {
    let mut net = Net::legacy(LATEST);
    net.call_echo();
    net.call_echo();
    net.sent();
    net.answer_head(4, 200, EVENTS);
    net.answer_head(5, 200, EVENTS);
    net.body(4, &event(&result(3, OK)));
    assert_eq!(net.told(), format!("call 2: {OK}\n"));
    net.end(5);
    net.body(4, &event(&result(2, OK)));
    assert_eq!(net.told(), format!("call 1: {OK}\n"));
    net.end(4);
    net.expect_silence();
}

#[test]
fn an_endless_id_or_type_neither_fills_memory_nor_costs_the_answer() {
    for field in ["id", "event"] {
        let (mut net, n) = calling_with(client_limits(), true);
        net.answer_head(n, 200, EVENTS);
        net.body(n, &format!("{field}: {}\ndata: \n\n", "i".repeat(5000)));
        net.body(n, &event_with_id(&"i".repeat(5000), &result(2, OK)));
        assert_eq!(net.told(), format!("call 1: {OK}\n"));
    }
    // A stream cannot be resumed after such an id.
    let (mut net, n) = calling_with(client_limits(), true);
    net.answer_head(n, 200, EVENTS);
    net.body(n, &event_with_id("1", ""));
    net.body(n, &event_with_id(&"i".repeat(5000), ""));
    net.end(n);
    assert_eq!(net.told(), "call 1 failed: StreamEnded\n");
}

#[test]
fn a_refusal_whose_body_does_not_end_is_reported_soon() {
    for legacy in [false, true] {
        let (mut net, n) = calling_with(client_limits(), legacy);
        net.answer_head(n, 500, &[]);
        net.body(n, "oops!");
        net.expect_silence();
        net.advance(Duration::from_secs(2));
        assert_eq!(net.failure(), "the server refused with HTTP status 500: oops!");
        assert_eq!(net.sent(), format!("#{n} abort\n"));
    }
}

use std::time::Duration;

use mcp_sansio::Backoff;
use mcp_sansio::http::ExchangeFailure;
use mcp_sansio::peer::CallOptions;
use mcp_sansio::{Method, Revision, Revisions};

use crate::net::{
    EVENTS, Net, OK, RESUMING, event, event_with_id, http_options, notification, peer_options,
    result,
};

const LATEST: Revision = Revision::V2025_11_25;

fn calling(revision: Revision) -> Net {
    let mut net = Net::legacy(revision);
    net.call_echo();
    net.sent();
    net.answer_head(4, 200, EVENTS);
    net
}

#[test]
fn a_broken_stream_is_resumed_after_its_last_event() {
    // Rule: [RESUME-004] [RESUME-005] [HCLI-008] [SSE-005] [SSE-010] [SSE-011].
    for revision in RESUMING {
        let mut net = calling(revision);
        net.body(4, &event_with_id("e0", ""));
        net.body(4, &event_with_id("e1", &notification("info")));
        net.broken(4);
        assert!(net.told().starts_with("notifications/message"));
        let (waited, sent) = net.wait_for_request();
        assert!(waited >= Duration::from_millis(500) && waited <= Duration::from_secs(1));
        let version = net.field(4, "mcp-protocol-version");
        let version = version.map_or(String::new(), |version| format!(" version={version}"));
        assert_eq!(sent, format!("#5 GET{version} session=s1 after=e1\n"));
        assert_eq!(net.field(5, "accept").as_deref(), Some("text/event-stream"));
        net.answer_head(5, 200, EVENTS);
        net.body(5, &event_with_id("e2", &result(2, OK)));
        net.end(5);
        assert_eq!(net.told(), format!("call 1: {OK}\n"));
        net.expect_silence();
    }
}

#[test]
fn an_event_id_is_sent_back_unchanged_or_not_at_all() {
    // Rule: [RESUME-004]: in UTF-8, as the standard of server-sent events requires.
    for id in ["é2", "\u{5DA}2", "a b", "\u{3000}"] {
        let mut net = calling(LATEST);
        net.body(4, &event_with_id(id, ""));
        net.broken(4);
        net.wait_for_request();
        assert_eq!(net.field(5, "last-event-id").as_deref(), Some(id));
    }
    for id in ["a\tb", "a\u{7F}", "\u{1}"] {
        let mut net = calling(LATEST);
        net.body(4, &event_with_id(id, ""));
        net.broken(4);
        assert!(net.told().starts_with("call 1 failed"), "{id:?}");
    }
}

#[test]
fn the_server_sets_the_retry_delay() {
    // Rule: [SSE-006] [SSE-007] [SSE-008] [SSE-009].
    let mut net = calling(LATEST);
    net.body(4, "retry: 3000\nid: a\ndata:\n\n");
    for exchange in 5..=20 {
        // Polling continues as long as the call, for more attempts than the limit of failed ones.
        net.end(exchange - 1);
        let (waited, sent) = net.wait_for_request();
        assert_eq!(sent, format!("#{exchange} GET version=2025-11-25 session=s1 after=a\n"));
        let (least, most) = (Duration::from_secs(3), Duration::from_millis(3500));
        assert!(waited >= least && waited <= most, "{waited:?}");
        net.answer_head(exchange, 200, EVENTS);
    }
    net.body(20, &event(&result(2, OK)));
    assert_eq!(net.told(), format!("call 1: {OK}\n"));
}

#[test]
fn a_stream_without_ids_is_lost_when_it_breaks() {
    // Rule: [RESUME-001] [RESUME-004].
    for revision in RESUMING {
        for (end, expected) in [(true, "StreamEnded"), (false, "Broken")] {
            let mut net = calling(revision);
            net.body(4, &event(&notification("info")));
            net.told();
            if end {
                net.end(4)
            } else {
                net.broken(4)
            }
            assert_eq!(net.told(), format!("call 1 failed: {expected}\n"));
            net.advance(Duration::from_secs(1));
            net.expect_silence();
        }
    }
}

#[test]
fn an_event_id_that_is_not_a_valid_header_value_cannot_resume() {
    for id in ["a\u{1}", " a", ""] {
        let mut net = calling(LATEST);
        net.body(4, &format!("id: {id}\ndata:\n\n"));
        net.broken(4);
        assert_eq!(net.told(), "call 1 failed: Broken\n", "{id:?}");
    }
}

#[test]
fn the_oldest_revision_cannot_resume() {
    // Rule: [RESUME-001].
    let mut net = Net::legacy(Revision::V2024_11_05);
    net.call_echo();
    net.sent();
    net.answer_head(3, 200, EVENTS);
    net.body(3, &event_with_id("a", ""));
    net.broken(3);
    assert_eq!(net.told(), "call 1 failed: Broken\n");
}

#[test]
fn a_replayed_event_that_was_received_before_is_dropped() {
    // Rule: [RESUME-006].
    let mut net = calling(LATEST);
    net.body(4, &event_with_id("e1", &notification("info")));
    net.broken(4);
    net.told();
    net.wait_for_request();
    net.answer_head(5, 200, EVENTS);
    net.body(5, &event_with_id("e1", &notification("info")));
    net.body(5, &event(&notification("debug")));
    net.body(5, &event_with_id("e2", &result(2, OK)));
    let told = net.told();
    assert!(told.starts_with("notifications/message {\"level\":\"debug\""), "{told}");
    assert!(told.ends_with(&format!("call 1: {OK}\n")));
}

#[test]
fn a_refused_resumption_ends_the_call() {
    for status in [400, 405, 410, 422] {
        let mut net = calling(LATEST);
        net.body(4, &event_with_id("e1", ""));
        net.broken(4);
        net.wait_for_request();
        net.answer(5, status, &[], "");
        assert_eq!(net.told(), format!("call 1 failed: NotResumed {{ status: {status} }}\n"));
        net.advance(Duration::from_secs(1));
        net.expect_silence();
    }
    let mut net = calling(LATEST);
    net.body(4, &event_with_id("e1", ""));
    net.broken(4);
    net.wait_for_request();
    net.answer(5, 401, &[], "");
    assert!(net.told().starts_with("call 1 failed: Unauthorized"));
    // The session, in which the call ran, is gone.
    // Rule: [SESS-009].
    let mut net = calling(LATEST);
    net.body(4, &event_with_id("e1", ""));
    net.broken(4);
    net.wait_for_request();
    net.answer(5, 404, &[], "");
    assert_eq!(net.told(), "call 1 failed: SessionLost\n");
    assert_eq!(net.sent(), "#3 abort\n#6 POST initialize\n");
    // A response that is not a stream cannot resume.
    let mut net = calling(LATEST);
    net.body(4, &event_with_id("e1", ""));
    net.broken(4);
    net.wait_for_request();
    net.json(5, "{}");
    assert_eq!(net.told(), "call 1 failed: NotResumed { status: 200 }\n");
}

#[test]
fn attempts_are_spread_over_time_and_bounded() {
    let waits = || {
        let mut net = calling(LATEST);
        // The call outlasts the attempts.
        let progress = CallOptions::default().timeout(Duration::from_secs(1000));
        net.call_with(Method::ToolsCall, r#"{"name":"echo"}"#, &progress);
        net.sent();
        net.answer_head(5, 200, EVENTS);
        net.body(5, &event_with_id("e1", ""));
        net.body(4, &event(&result(2, OK)));
        net.end(4);
        net.told();
        net.broken(5);
        let mut waits = Vec::new();
        for exchange in 6..14 {
            waits.push(net.wait_for_request().0);
            match exchange % 3 {
                0 => net.failed(exchange, ExchangeFailure::NotSent),
                1 => net.answer(exchange, 503, &[], ""),
                _ => {
                    net.answer_head(exchange, 200, EVENTS);
                    net.broken(exchange);
                }
            }
        }
        assert_eq!(net.told(), "call 2 failed: StreamLost { attempts: 8 }\n");
        net.advance(Duration::from_secs(3600));
        net.expect_silence();
        waits
    };
    let (first, second) = (waits(), waits());
    assert_eq!(first, second);
    for (wait, interval) in first.into_iter().zip([1, 2, 4, 8, 16, 30, 30, 30]) {
        let interval = Duration::from_secs(interval);
        assert!(wait >= interval / 2 && wait <= interval, "{wait:?} of {interval:?}");
    }
}

#[test]
fn the_number_of_attempts_is_limited() {
    let mut backoff = Backoff::default();
    (backoff.initial, backoff.attempts_max) = (Duration::from_millis(10), 3);
    let mut net = Net::legacy_with(LATEST, peer_options(), http_options().backoff(backoff));
    net.call_echo();
    net.sent();
    net.answer_head(4, 200, EVENTS);
    net.body(4, &event_with_id("e1", ""));
    net.broken(4);
    for exchange in 5..8 {
        let (waited, _) = net.wait_for_request();
        assert!(waited >= Duration::from_millis(50), "{waited:?}");
        net.broken(exchange);
    }
    assert_eq!(net.told(), "call 1 failed: StreamLost { attempts: 3 }\n");
    // A response of the server resets the count.
    net.call_echo();
    net.sent();
    net.answer_head(8, 200, EVENTS);
    net.body(8, &event_with_id("f1", ""));
    for exchange in 8..20 {
        net.broken(exchange);
        net.wait_for_request();
        net.answer_head(exchange + 1, 200, EVENTS);
        net.body(exchange + 1, &event_with_id(&format!("f{exchange}"), ""));
    }
    assert_eq!(net.told(), "");
}

#[test]
fn retry_after_is_respected() {
    let mut net = calling(LATEST);
    net.body(4, &event_with_id("e1", ""));
    net.broken(4);
    net.wait_for_request();
    net.answer(5, 503, &[("Retry-After", "5")], "");
    assert!(net.wait_for_request().0 >= Duration::from_secs(5));
}

#[test]
fn a_call_that_waits_to_be_resumed_can_be_cancelled_and_can_time_out() {
    let mut net = calling(LATEST);
    net.body(4, &event_with_id("e1", ""));
    net.broken(4);
    net.cancel(1);
    assert!(net.sent().starts_with("#5 POST notifications/cancelled"));
    net.advance(Duration::from_secs(10));
    assert_eq!(net.sent(), "");
    let mut net = calling(LATEST);
    net.body(4, "retry: 100000\nid: a\ndata:\n\n");
    net.end(4);
    net.advance(Duration::from_secs(60));
    assert_eq!(net.told(), "call 1 failed: TimedOut { hard: false }\n");
    assert!(net.sent().starts_with("#5 POST notifications/cancelled"));
    net.advance(Duration::from_secs(200));
    let sent = net.sent();
    assert!(!sent.contains("GET"), "{sent}");
}

#[test]
fn the_stream_of_the_handshake_can_be_resumed() {
    // Rule: [RESUME-005] [SESS-004].
    let mut net = Net::new(peer_options().revisions(Revisions::only(LATEST)), http_options());
    net.sent();
    net.answer_head(1, 200, &[EVENTS[0], ("mcp-session-id", "s1")]);
    net.body(1, &event_with_id("e1", ""));
    net.end(1);
    assert_eq!(net.wait_for_request().1, "#2 GET session=s1 after=e1\n");
    net.answer_head(2, 200, EVENTS);
    net.body(2, &event_with_id("e2", &result(1, &crate::net::initialized(LATEST))));
    assert_eq!(net.told(), "opened at 2025-11-25\n");
}

#[test]
fn an_id_that_names_no_position_neither_resumes_a_stream_nor_drops_a_message() {
    // Rule: [RESUME-002] [RESUME-004]: the id of the session on every event.
    let mut net = calling(LATEST);
    net.body(4, &event_with_id("s1", &notification("info")));
    net.broken(4);
    assert!(net.told().ends_with("call 1 failed: Broken\n"));
    // Any other text on every event.
    let mut net = calling(LATEST);
    for level in ["info", "debug"] {
        net.body(4, &event_with_id("x", &notification(level)));
    }
    net.broken(4);
    assert!(net.told().ends_with("call 1 failed: Broken\n"));
    for id in ["s1", "x"] {
        let mut net = Net::legacy(LATEST);
        let get = |n: usize| format!("#{n} GET version=2025-11-25 session=s1\n");
        net.body(3, &event_with_id(id, &notification("info")));
        net.body(3, &event_with_id(id, &notification("debug")));
        assert_eq!(net.told().lines().count(), 2);
        for n in 4..8 {
            net.broken(n - 1);
            assert_eq!(net.wait_for_request().1, get(n));
            net.answer_head(n, 200, EVENTS);
            net.body(n, &event_with_id(id, &notification("debug")));
            assert_eq!(net.told().lines().count(), 1, "{id}");
        }
    }
}

#[test]
fn an_event_that_only_has_the_id_of_the_last_one_is_delivered() {
    // Rule: [RESUME-002].
    let mut net = Net::legacy(LATEST);
    net.body(3, &event_with_id("x", &notification("info")));
    net.broken(3);
    assert!(net.wait_for_request().1.ends_with(" after=x\n"));
    net.answer_head(4, 200, EVENTS);
    net.body(4, &event_with_id("x", &notification("debug")));
    assert_eq!(net.told().lines().count(), 2);
    // It names no position.
    net.broken(4);
    assert!(net.wait_for_request().1.ends_with(" session=s1\n"));
}

#[test]
fn events_without_an_own_id_leave_the_position_as_it_is() {
    // Rule: [RESUME-004] [RESUME-006].
    let mut net = calling(LATEST);
    net.body(4, &event_with_id("e1", &notification("info")));
    net.body(4, &event(&notification("debug")));
    // A sign of life.
    net.body(4, &event_with_id("e1", ""));
    net.broken(4);
    assert_eq!(net.told().lines().count(), 2);
    assert!(net.wait_for_request().1.ends_with(" after=e1\n"));
    net.answer_head(5, 200, EVENTS);
    net.body(5, &event_with_id("e1", &notification("info")));
    net.body(5, &event_with_id("e2", &result(2, OK)));
    assert_eq!(net.told(), format!("call 1: {OK}\n"));
}

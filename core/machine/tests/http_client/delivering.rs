//! Responses and notifications that the server postpones, refuses, or does not answer.

use std::time::Duration;

use mcp_sansio::http::{ExchangeFailure, HttpClientOptions};
use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::{ClientMachine, Limits};
use mcp_sansio::{Method, Revision};

use crate::net::{EVENTS, Net, client_limits, event, http_options, peer_options, with_roots};

const LATEST: Revision = Revision::V2025_11_25;
const SECOND: Duration = Duration::from_secs(1);

/// Returns options with this many exchanges for responses and notifications.
fn exchanges(control_max: usize) -> HttpClientOptions {
    let mut limits = client_limits();
    limits.control_exchanges_max = control_max;
    http_options().limits(limits)
}

/// Returns a legacy client with roots, whose next exchange is number 4.
fn legacy(control_max: usize) -> Net {
    Net::legacy_with(LATEST, peer_options().capabilities(with_roots()), exchanges(control_max))
}

/// Delivers a `ping` of the server on the listening stream, exchange `n`.
fn ping(net: &mut Net, n: usize, id: &str) {
    net.body(n, &event(&format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":"ping"}}"#)));
}

fn change_roots(net: &mut Net) {
    net.client.notify(Method::RootsListChanged, &RawJson::EMPTY_OBJECT, net.now).unwrap();
}

/// Lets exchange `n` end without its message being handled.
fn postpone(net: &mut Net, n: usize, how: usize) {
    match how {
        0 => net.failed(n, ExchangeFailure::NotSent),
        1 => net.answer(n, 503, &[("retry-after", "1")], "busy"),
        _ => net.answer(n, 429, &[("retry-after", "1")], ""),
    }
}

/// Returns what is sent as a message of a session, without the number.
fn sent(net: &mut Net) -> String {
    net.sent().replace(" version=2025-11-25 session=s1", "")
}

/// Queues a message of each kind that is not a call.
const SENDERS: [fn(&mut Net); 3] = [
    |net| ping(net, 3, "a"),
    change_roots,
    |net| {
        net.call_echo();
        net.sent();
        net.answer_head(4, 200, EVENTS);
        net.cancel(1);
        net.end(4);
        assert_eq!(net.told(), "call 1 failed: Cancelled\n");
    },
];

#[test]
fn a_message_that_was_not_handled_is_sent_again() {
    // Rule: [HCLI-015].
    for send in SENDERS {
        for how in 0..3 {
            let mut net = legacy(8);
            send(&mut net);
            net.sent();
            let first = net.last();
            let body = net.full(first);
            for _ in 0..3 {
                let n = net.last();
                postpone(&mut net, n, how);
                net.expect_silence();
                let (waited, _) = net.wait_for_request();
                assert_eq!(net.full(net.last()), body, "the same message");
                assert!(waited >= Duration::from_millis(500) && waited <= Duration::from_secs(4));
            }
            assert_eq!(net.last(), first + 3);
            net.answer(first + 3, 202, &[], "");
            net.advance(100 * SECOND);
            assert_eq!(net.told(), "");
            assert!(!net.sent().contains("POST"));
        }
    }
}

#[test]
fn a_message_that_is_never_handled_is_reported() {
    for (send, what) in SENDERS.into_iter().zip([
        "`response`",
        "`notifications/roots/list_changed`",
        "`notifications/cancelled`",
    ]) {
        for (how, reason) in [
            "the server could not be reached",
            "the server refused with HTTP status 503: busy",
            "the server refused with HTTP status 429",
        ]
        .into_iter()
        .enumerate()
        {
            let mut net = legacy(8);
            send(&mut net);
            net.sent();
            for _ in 0..3 {
                let n = net.last();
                postpone(&mut net, n, how);
                net.wait_for_request();
            }
            let n = net.last();
            postpone(&mut net, n, how);
            assert_eq!(
                net.told(),
                format!("delivery failed: {what} could not be delivered: {reason}\n")
            );
            net.advance(100 * SECOND);
            assert_eq!(net.told(), "");
            assert!(!net.sent().contains("POST"));
        }
        // Nor is a message sent again that may have been handled, or after a long time.
        for (status, fields) in [
            (503, &[][..]),
            (500, &[("retry-after", "1")][..]),
            (400, &[("retry-after", "1")][..]),
            (503, &[("retry-after", "61")][..]),
        ] {
            let mut net = legacy(8);
            send(&mut net);
            net.sent();
            net.answer(net.last(), status, fields, "");
            let told = net.told();
            assert!(told.starts_with(&format!("delivery failed: {what}")), "{told}");
            net.advance(100 * SECOND);
            assert!(!net.sent().contains("POST"));
        }
    }
}

#[test]
fn a_response_that_is_sent_again_is_the_first() {
    let mut net = legacy(1);
    ping(&mut net, 3, "a");
    assert_eq!(sent(&mut net), "#4 POST result {}\n");
    postpone(&mut net, 4, 1);
    // The server does not want more messages now.
    change_roots(&mut net);
    net.expect_silence();
    assert!(net.wait_for_request().1.starts_with("#5 POST result {}"));
    net.answer(5, 202, &[], "");
    assert_eq!(sent(&mut net), "#6 POST notifications/roots/list_changed\n");
    // A notification is not sent before a response that waits.
    postpone(&mut net, 6, 1);
    ping(&mut net, 3, "b");
    net.expect_silence();
    assert!(net.wait_for_request().1.starts_with("#7 POST result {}"));
    net.answer(7, 202, &[], "");
    assert_eq!(sent(&mut net), "#8 POST notifications/roots/list_changed\n");
}

#[test]
fn a_call_does_not_wait_for_a_message_that_is_sent_again() {
    let mut limits = client_limits();
    limits.requests_max = 1;
    let mut net = Net::legacy_with(LATEST, peer_options(), http_options().limits(limits));
    ping(&mut net, 3, "a");
    net.sent();
    postpone(&mut net, 4, 1);
    net.call_echo();
    assert_eq!(sent(&mut net), "#5 POST tools/call\n");
}

#[test]
fn the_notification_that_opens_the_session_is_sent_again() {
    // Rule: [LIFE-003].
    let only = mcp_sansio::Revisions::only(LATEST);
    let mut net = Net::new(peer_options().revisions(only), http_options());
    net.sent();
    net.initialize(1, 1, LATEST, Some("s1"));
    net.sent();
    net.call_echo();
    postpone(&mut net, 2, 1);
    assert_eq!(net.told(), "opened at 2025-11-25\n");
    let (_, sent) = net.wait_for_request();
    assert_eq!(sent, "#3 POST notifications/initialized version=2025-11-25 session=s1\n");
    net.answer(3, 202, &[], "");
    assert_eq!(net.sent(), "#4 GET version=2025-11-25 session=s1\n");
}

#[test]
fn a_response_is_not_sent_in_another_session() {
    // Rule: [SESS-009].
    let renew = |net: &mut Net, n: usize| {
        net.answer(n, 404, &[], "");
        assert!(net.sent().ends_with("POST initialize\n"));
        let handshake = net.last();
        let id = net.id_of(handshake);
        net.initialize(handshake, id, LATEST, Some("s2"));
        assert_eq!(net.told(), "opened at 2025-11-25\n");
        net.sent();
        net.answer(handshake + 1, 202, &[], "");
        net.sent();
        net.answer_head(handshake + 2, 200, EVENTS);
        assert!(net.sent().contains(" POST tools/call"));
    };
    // One waits to be sent again when the session is lost.
    let mut net = legacy(8);
    ping(&mut net, 3, "a");
    net.call_echo();
    net.sent();
    postpone(&mut net, 4, 1);
    renew(&mut net, 5);
    net.advance(10 * SECOND);
    net.expect_silence();
    // One is refused after the session is lost.
    let mut net = legacy(8);
    ping(&mut net, 3, "a");
    net.call_echo();
    net.sent();
    renew(&mut net, 5);
    postpone(&mut net, 4, 1);
    assert!(net.told().starts_with("delivery failed: `response`"));
    net.advance(10 * SECOND);
    net.expect_silence();
}

#[test]
fn a_message_without_an_answer_is_given_up_in_the_time_of_a_call() {
    let mut net = legacy(1);
    ping(&mut net, 3, "a");
    ping(&mut net, 3, "b");
    assert_eq!(sent(&mut net), "#4 POST result {}\n");
    net.advance(Duration::from_millis(59_999));
    net.expect_silence();
    net.advance(Duration::from_millis(1));
    assert_eq!(sent(&mut net), "#4 abort\n#5 POST result {}\n");
    let broken = "the exchange broke before the answer";
    let failed = format!("delivery failed: `response` could not be delivered: {broken}\n");
    assert_eq!(net.told(), failed);
    // The rest of an accepted response has less time.
    net.answer_head(5, 202, &[]);
    net.advance(2 * SECOND);
    assert_eq!(net.sent(), "#5 abort\n");
    // So does the body of a refusal.
    change_roots(&mut net);
    net.sent();
    net.answer_head(6, 400, &[("content-length", "50")]);
    net.body(6, "no");
    net.advance(Duration::from_millis(1_999));
    net.expect_silence();
    net.advance(Duration::from_millis(1));
    assert_eq!(net.sent(), "#6 abort\n");
    assert!(net.told().ends_with("the server refused with HTTP status 400: no\n"));
    assert_eq!(net.client.poll_timeout(), None);
}

#[test]
fn a_message_that_waits_for_the_user_is_not_given_up() {
    let mut net = legacy(1);
    ping(&mut net, 3, "a");
    net.sent();
    net.client.pause(net.exchange(4), net.now);
    assert_eq!(net.client.poll_timeout(), None);
    net.advance(3600 * SECOND);
    net.expect_silence();
    net.client.resume(net.exchange(4), net.now);
    net.advance(Duration::from_millis(59_999));
    net.expect_silence();
    net.advance(Duration::from_millis(1));
    assert_eq!(net.sent(), "#4 abort\n");
    assert!(net.told().starts_with("delivery failed: `response`"));
}

#[test]
fn refusals_make_room_for_other_messages_while_their_bodies_are_not_read() {
    let mut limits = Limits::default();
    limits.transmit_bytes_max = 200;
    let peer = peer_options().capabilities(with_roots()).limits(limits);
    let mut net = Net::legacy_with(LATEST, peer, exchanges(2));
    for id in 0..20 {
        ping(&mut net, 3, &id.to_string());
    }
    assert!(net.client.is_congested());
    assert_eq!(sent(&mut net), "#4 POST result {}\n#5 POST result {}\n");
    let mut n = 4;
    while net.client.is_congested() {
        net.answer_head(n, 400, &[]);
        assert!(sent(&mut net).ends_with(&format!("#{} POST result {{}}\n", n + 2)));
        n += 1;
    }
    assert!(net.told().lines().all(|line| line.ends_with("HTTP status 400")));
}

//! Requests that are paused by a layer of the client, for example for a sign-in.

use std::time::Duration;

use mcp_sansio::peer::{CallOptions, ClientMachine, Timeouts, TransportFailure};
use mcp_sansio::protocol::SubscriptionFilter;
use mcp_sansio::{Method, Revision};

use crate::net::{DISCOVERED, EVENTS, Net, OK, client_limits, http_options, peer_options, result};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

impl Net {
    fn pause(&mut self, n: usize) {
        self.client.pause(self.exchange(n), self.now);
    }

    fn resume(&mut self, n: usize) {
        self.client.resume(self.exchange(n), self.now);
    }

    fn refuse(&mut self, n: usize) {
        let reason = "the user declined".to_owned();
        let failure = TransportFailure::AuthorizationFailed { reason };
        self.client.refuse(self.exchange(n), failure, self.now);
    }
}

const REFUSED: &str = "AuthorizationFailed { reason: \"the user declined\" }";

#[test]
fn a_paused_call_resumes_with_its_remaining_time() {
    for twice in [false, true] {
        let mut net = Net::modern();
        net.call_echo();
        net.sent();
        net.advance(20 * SECOND);
        net.pause(2);
        net.advance(HOUR);
        if twice {
            net.pause(2);
        }
        assert_eq!(net.client.poll_timeout(), None);
        net.expect_silence();
        net.resume(2);
        net.advance(39 * SECOND);
        if twice {
            net.resume(2);
        }
        net.expect_silence();
        net.advance(SECOND);
        assert_eq!(net.told(), "call 1 failed: TimedOut { hard: false }\n");
        assert_eq!(net.sent(), "#2 abort\n");
    }
}

#[test]
fn the_hard_deadline_is_paused() {
    let mut net = Net::modern();
    let options = CallOptions::default().timeout(50 * SECOND).timeout_hard(60 * SECOND).progress();
    net.call_with(Method::ToolsCall, r#"{"name":"slow"}"#, &options);
    net.sent();
    net.advance(20 * SECOND);
    net.pause(2);
    net.advance(HOUR);
    net.resume(2);
    net.answer_head(2, 200, EVENTS);
    net.advance(29 * SECOND);
    let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":1}}"#;
    net.body(2, &crate::net::event(progress));
    assert_eq!(net.told(), "progress of call 1: 1\n");
    net.advance(10 * SECOND);
    net.expect_silence();
    net.advance(SECOND);
    assert_eq!(net.told(), "call 1 failed: TimedOut { hard: true }\n");
}

#[test]
fn the_opening_can_be_paused_in_both_eras() {
    let mut net = Net::plain();
    assert_eq!(net.sent(), "#1 POST server/discover\n");
    net.pause(1);
    net.advance(HOUR);
    net.expect_silence();
    net.resume(1);
    net.json(1, &result(1, DISCOVERED));
    assert_eq!(net.told(), "opened at 2026-07-28\n");

    let revision = Revision::V2025_11_25;
    let peer = peer_options().revisions(mcp_sansio::Revisions::only(revision));
    let mut net = Net::new(peer, http_options());
    assert_eq!(net.sent(), "#1 POST initialize\n");
    net.pause(1);
    net.advance(HOUR);
    net.expect_silence();
    net.resume(1);
    net.advance(60 * SECOND);
    assert!(net.told().starts_with("closed: "), "the server has its full time");
}

#[test]
fn a_response_resumes_its_request() {
    let mut net = Net::modern();
    net.call_echo();
    net.sent();
    net.pause(2);
    net.advance(HOUR);
    net.answer_head(2, 200, EVENTS);
    net.advance(60 * SECOND);
    assert_eq!(net.told(), "call 1 failed: TimedOut { hard: false }\n");
}

#[test]
fn requests_behind_a_paused_one_are_paused() {
    let mut limits = client_limits();
    limits.requests_max = 1;
    let mut net = Net::modern_with(peer_options(), http_options().limits(limits));
    for _ in 0..2 {
        net.call_echo();
    }
    assert_eq!(net.sent(), "#2 POST tools/call\n");
    net.pause(2);
    // A call that is made during the pause.
    net.call_echo();
    net.advance(HOUR);
    net.expect_silence();
    net.resume(2);
    net.json(2, &result(2, OK));
    assert_eq!(net.told(), format!("call 1: {OK}\n"));
    assert_eq!(net.sent(), "#3 POST tools/call\n");
    net.advance(60 * SECOND);
    let told = net.told();
    assert!(told.contains("call 2 failed: TimedOut") && told.contains("call 3 failed"), "{told}");
}

#[test]
fn calls_waiting_for_a_new_session_are_paused_with_its_handshake() {
    let mut net = Net::legacy(Revision::V2025_11_25);
    net.call_echo();
    net.sent();
    net.answer(4, 404, &[], "");
    let sent = net.sent();
    assert!(sent.contains("#5 POST initialize\n"), "{sent}");
    net.pause(5);
    net.call_echo();
    net.advance(HOUR);
    net.expect_silence();
    net.resume(5);
    net.advance(59 * SECOND);
    assert_eq!(net.told(), "");
}

#[test]
fn a_call_of_a_lost_session_is_paused_with_the_next_handshake() {
    let mut net = Net::legacy(Revision::V2025_11_25);
    for _ in 0..2 {
        net.call_echo();
    }
    net.sent();
    net.answer(4, 404, &[], "");
    let sent = net.sent();
    assert!(sent.contains("#6 POST initialize\n"), "{sent}");
    net.pause(6);
    // The handshake waits for the user.
    net.answer(5, 404, &[], "");
    net.advance(HOUR);
    net.expect_silence();
    net.resume(6);
    net.advance(59 * SECOND);
    assert_eq!(net.told(), "");
}

#[test]
fn a_paused_call_can_be_cancelled() {
    // Rule: [CANC-017].
    let mut net = Net::modern();
    net.call_echo();
    net.sent();
    net.pause(2);
    net.cancel(1);
    assert_eq!(net.sent(), "#2 abort\n");
    assert_eq!(net.told(), "call 1 failed: Cancelled\n");
    net.resume(2);
    net.refuse(2);
    net.expect_silence();
    // A later call has its full time.
    net.call_echo();
    assert_eq!(net.sent(), "#3 POST tools/call\n");
    net.advance(60 * SECOND);
    assert_eq!(net.told(), "call 2 failed: TimedOut { hard: false }\n");
}

#[test]
fn a_call_that_was_never_delivered_is_cancelled_silently() {
    let mut net = Net::legacy(Revision::V2025_11_25);
    net.call_echo();
    net.sent();
    net.pause(4);
    net.cancel(1);
    assert_eq!(net.sent(), "#4 abort\n");
    assert_eq!(net.told(), "call 1 failed: Cancelled\n");
}

#[test]
fn a_rejected_exchange_ends_with_its_reason() {
    let mut net = Net::modern();
    net.call_echo();
    net.sent();
    net.pause(2);
    net.refuse(2);
    assert_eq!(net.told(), format!("call 1 failed: {REFUSED}\n"));
    net.refuse(2);
    net.pause(2);
    net.resume(2);
    net.json(2, &result(2, OK));
    net.expect_silence();
    assert_eq!(net.client.poll_timeout(), None);
    // Without a pause before it as well.
    net.call_echo();
    net.sent();
    net.refuse(3);
    assert_eq!(net.told(), format!("call 2 failed: {REFUSED}\n"));
}

#[test]
fn a_refused_opening_closes_the_connection() {
    let mut net = Net::plain();
    net.sent();
    net.pause(1);
    net.refuse(1);
    let told = net.told();
    assert!(told.contains("the authorization failed: the user declined"), "{told}");
    assert!(net.client.is_drained());
}

#[test]
fn a_refused_standalone_stream_is_reported_and_calls_continue() {
    let revision = Revision::V2025_11_25;
    let mut net =
        Net::new(peer_options().revisions(mcp_sansio::Revisions::only(revision)), http_options());
    net.sent();
    net.initialize(1, 1, revision, Some("s1"));
    net.sent();
    net.answer(2, 202, &[], "");
    net.sent();
    net.told();
    net.call_echo();
    net.pause(3);
    net.refuse(3);
    assert!(net.told().contains("the authorization failed: the user declined"));
    let sent = net.sent();
    assert!(sent.starts_with("#4 POST tools/call"), "{sent}");
}

#[test]
fn a_refused_subscription_ends() {
    let mut net = Net::modern();
    let filter = SubscriptionFilter::default().tools_list_changed(true);
    let handle = net.client.subscribe(&filter, net.now).unwrap();
    net.adopt(handle);
    net.sent();
    net.pause(2);
    net.advance(HOUR);
    net.refuse(2);
    assert_eq!(net.told(), format!("call 1 failed: {REFUSED}\n"));
    net.advance(HOUR);
    net.expect_silence();
}

#[test]
fn paused_or_rejected_pings_do_not_end_the_connection() {
    // Rule: [PING-003].
    let mut timeouts = Timeouts::default();
    timeouts.keep_alive = Some(30 * SECOND);
    let peer = peer_options().timeouts(timeouts);
    let mut net = Net::legacy_with(Revision::V2025_11_25, peer, http_options());
    for number in 4..10 {
        net.advance(30 * SECOND);
        let sent = net.sent();
        assert!(sent.starts_with(&format!("#{number} POST ping")), "{sent}");
        net.pause(number);
        net.advance(HOUR);
        net.expect_silence();
        net.refuse(number);
    }
    assert!(!net.client.is_closed());
    net.expect_silence();
}

#[test]
fn pings_that_the_server_refuses_are_not_repeated_at_once() {
    // Rule: [PING-003] [PING-004].
    let mut timeouts = Timeouts::default();
    timeouts.keep_alive = Some(30 * SECOND);
    let (pause, failures) = (timeouts.keep_alive_answer, timeouts.keep_alive_failures_max);
    let peer = peer_options().timeouts(timeouts);
    let mut net = Net::legacy_with(Revision::V2025_11_25, peer, http_options());
    net.advance(30 * SECOND);
    let last = 3 + usize::try_from(failures).unwrap();
    for number in 4..=last {
        let sent = net.sent();
        assert!(sent.starts_with(&format!("#{number} POST ping")), "{sent}");
        net.answer(number, 503, &[], "");
        assert_eq!(net.client.is_closed(), number == last);
        if number < last {
            net.advance(pause - SECOND);
            assert_eq!(net.sent(), "", "{number}");
            net.advance(SECOND);
        }
    }
}

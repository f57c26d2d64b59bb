//! Keep-alive pings of a legacy session.

use std::time::Duration;

use mcp_sansio::peer::{CallOptions, ClientMachine, Timeouts};
use mcp_sansio::{Method, Revision};

use crate::fixtures::*;
use crate::machine::Machine;
use crate::wire::Wire;

const MINUTE: Duration = Duration::from_secs(60);
const ANSWER: Duration = Duration::from_secs(10);

fn wanted() -> Timeouts {
    timeouts(|timeouts| timeouts.keep_alive = Some(MINUTE))
}

fn ping(wire: &mut Wire<impl Machine>) -> String {
    let message = wire.message();
    assert_eq!(message["method"], "ping");
    message["id"].to_string()
}

#[test]
fn pings_are_sent_at_the_interval_while_they_are_answered() {
    // Rule: [PING-002] [PING-003].
    for revision in LEGACY {
        let mut wire = client_at(revision, plain_client().timeouts(wanted()));
        for _ in 0..3 {
            wire.advance(MINUTE - Duration::from_millis(1));
            wire.expect_silence();
            wire.advance(Duration::from_millis(1));
            let id = ping(&mut wire);
            wire.send(&result(&id, "{}"));
            wire.expect_silence();
        }
    }
}

#[test]
fn unanswered_pings_end_the_connection() {
    // Rule: [PING-002] [PING-004] [CANC-005].
    let mut wire = client_at(Revision::V2025_11_25, plain_client().timeouts(wanted()));
    let options = CallOptions::default().timeout(Duration::MAX).timeout_hard(Duration::MAX);
    wire.machine.call(Method::ToolsCall, &echo(), &options, wire.now).unwrap();
    wire.line();
    wire.advance(MINUTE);
    let first = ping(&mut wire);
    wire.advance(ANSWER);
    let second = ping(&mut wire);
    // A late response is absorbed, and a timely one resets the count of failures.
    wire.send(&result(&first, "{}"));
    wire.send(&result(&second, "{}"));
    wire.expect_silence();
    wire.advance(MINUTE);
    for _ in 0..2 {
        ping(&mut wire);
        wire.advance(ANSWER);
    }
    ping(&mut wire);
    wire.expect_silence();
    wire.advance(ANSWER);
    wire.expect_nothing();
    assert_eq!(wire.told(), "failed: the connection ended before the answer");
    assert_eq!(wire.told(), "closed: the other side does not answer pings");
    assert_eq!(wire.machine.poll_timeout(), None);
}

#[test]
fn a_server_pings_its_legacy_client_once_it_is_initialized() {
    // Rule: [PING-003] [LIFE-005].
    let mut wire = server_at(Revision::V2025_06_18, "{}", full_server().timeouts(wanted()));
    wire.advance(MINUTE);
    let id = ping(&mut wire);
    wire.send(&error(&id, -32601, ""));
    wire.expect_silence();
    wire.advance(MINUTE);
    for _ in 0..3 {
        ping(&mut wire);
        wire.advance(ANSWER);
    }
    assert_eq!(wire.told(), "closed: the other side does not answer pings");
    wire.expect_silence();
}

#[test]
fn pings_are_sent_only_in_legacy_sessions_and_if_configured() {
    // Rule: [PING-005] [RPC-030].
    let wire = client_at(Revision::V2026_07_28, plain_client().timeouts(wanted()));
    assert_eq!(wire.machine.poll_timeout(), None);
    let wire = client_at(Revision::V2025_11_25, plain_client());
    assert_eq!(wire.machine.poll_timeout(), None);
}

#[test]
fn a_zero_timeout_does_not_make_the_driver_spin() {
    // Rule: [PING-003]: the harness checks after each wake that the next deadline is later.
    let mut limits = mcp_sansio::peer::Limits::DEFAULT;
    limits.calls_in_flight_max = 1;
    let eager = timeouts(|timeouts| timeouts.keep_alive = Some(Duration::ZERO));
    let options = plain_client().timeouts(eager).limits(limits);
    let mut wire = client_at(Revision::V2025_11_25, options);
    let endless = CallOptions::default().timeout(Duration::MAX).timeout_hard(Duration::MAX);
    wire.machine.call(Method::ToolsCall, &echo(), &endless, wire.now).unwrap();
    wire.line();
    wire.advance(MINUTE);
    wire.expect_silence();
    wire.send(&result("2", "{}"));
    wire.told();
    wire.advance_to_deadline();
    let id = ping(&mut wire);
    wire.send(&result(&id, "{}"));
    assert!(wire.machine.poll_timeout().unwrap() > wire.now);
}

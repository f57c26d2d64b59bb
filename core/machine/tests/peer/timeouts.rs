//! The two deadlines of a call.

use std::time::Duration;

use mcp_sansio::peer::{CallOptions, ClientMachine, Event, Failure, ServerMachine};
use mcp_sansio::{Method, Revision};

use crate::fixtures::*;

const SECOND: Duration = Duration::from_secs(1);

fn progress(token: i64, value: f64) -> String {
    notification(
        "notifications/progress",
        &format!(r#"{{"progressToken":{token},"progress":{value}}}"#),
    )
}

#[test]
fn a_call_that_times_out_is_cancelled_and_ends_once() {
    // Rule: [TIME-001] [TIME-002] [TIME-003] [CANC-001] [CANC-014].
    for revision in Revision::ALL {
        let mut wire = client_at(revision, plain_client());
        let options = CallOptions::default();
        wire.machine.call(Method::ToolsCall, &echo(), &options, wire.now).unwrap();
        wire.line();
        wire.advance(Duration::from_millis(59_999));
        wire.expect_silence();
        wire.advance(Duration::from_millis(1));
        wire.expect(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,"reason":"timed out"}}"#);
        let Event::Ended(ended) = wire.event() else { panic!("an end") };
        assert_eq!(ended.outcome.unwrap_err(), Failure::TimedOut { hard: false });
        // Rule: [CANC-005]: the late response is absorbed.
        wire.send(&result("2", "{}"));
        wire.expect_silence();
        // A second response, or one that is very late, is a violation.
        wire.send(&result("2", "{}"));
        assert!(wire.told().starts_with("violation: a response to a request"));
        assert_eq!(wire.machine.poll_timeout(), None);
    }
}

#[test]
fn progress_extends_the_first_deadline_but_not_the_hard_one() {
    // Rule: [TIME-004] [TIME-005] [TIME-006].
    for revision in Revision::ALL {
        let mut wire = client_at(revision, plain_client());
        let options =
            CallOptions::default().timeout(SECOND).timeout_hard(5 * SECOND / 2).progress();
        wire.machine.call(Method::ToolsCall, &echo(), &options, wire.now).unwrap();
        assert_eq!(wire.message()["params"]["_meta"]["progressToken"], 2);
        for step in 1..=2 {
            wire.advance(SECOND - Duration::from_millis(1));
            wire.send(&progress(2, f64::from(step)));
            assert!(wire.told().starts_with("progress"));
        }
        wire.advance_to_deadline();
        assert_eq!(wire.now.as_nanos(), 2_500_000_000);
        assert_eq!(wire.message()["method"], "notifications/cancelled");
        let Event::Ended(ended) = wire.event() else { panic!("an end") };
        assert_eq!(ended.outcome.unwrap_err(), Failure::TimedOut { hard: true });
    }
}

#[test]
fn progress_keeps_the_deadline_if_the_caller_requests_it() {
    // Rule: [TIME-005].
    let mut wire = client_at(Revision::V2025_11_25, plain_client());
    let mut options = CallOptions::default().timeout(SECOND).progress();
    options.progress_keeps_deadline = true;
    wire.machine.call(Method::ToolsCall, &echo(), &options, wire.now).unwrap();
    wire.line();
    wire.advance(SECOND / 2);
    wire.send(&progress(2, 1.0));
    wire.told();
    wire.advance(SECOND / 2);
    assert!(wire.told().starts_with("failed: no answer and no progress in time"));
}

#[test]
fn an_endless_timeout_sets_no_deadline() {
    let mut wire = client_at(Revision::V2025_11_25, plain_client());
    let options = CallOptions::default().timeout(Duration::MAX).timeout_hard(Duration::MAX);
    wire.machine.call(Method::ToolsCall, &echo(), &options, wire.now).unwrap();
    assert_eq!(wire.machine.poll_timeout(), None);
}

#[test]
fn a_zero_timeout_expires_at_the_next_wake() {
    let mut wire = client_at(Revision::V2025_11_25, plain_client());
    let options = CallOptions::default().timeout(Duration::ZERO);
    wire.machine.call(Method::ToolsCall, &echo(), &options, wire.now).unwrap();
    assert_eq!(wire.message()["method"], "tools/call");
    wire.advance(Duration::ZERO);
    assert_eq!(wire.message()["method"], "notifications/cancelled");
    assert!(wire.told().starts_with("failed: no answer and no progress in time"));
}

#[test]
fn calls_that_expire_together_end_in_a_fixed_order() {
    let run = || {
        let mut wire = client_at(Revision::V2025_11_25, plain_client());
        for seconds in [3_u32, 1, 2, 1] {
            let options = CallOptions::default().timeout(seconds * SECOND);
            wire.machine.call(Method::ToolsCall, &echo(), &options, wire.now).unwrap();
            wire.line();
        }
        wire.advance(3 * SECOND);
        let ids: Vec<_> =
            (0..4).map(|_| wire.message()["params"]["requestId"].as_i64().unwrap()).collect();
        ids
    };
    assert_eq!(run(), [3, 5, 4, 2]);
    assert_eq!(run(), run());
}

#[test]
fn a_call_of_a_server_times_out() {
    // Rule: [TIME-001] [TIME-002].
    for revision in LEGACY {
        let mut wire = server_at(revision, r#"{"roots":{}}"#, full_server());
        let options = CallOptions::default().timeout(SECOND);
        wire.machine.call(Method::RootsList, &raw("{}"), &options, wire.now).unwrap();
        wire.line();
        wire.advance(SECOND);
        assert_eq!(wire.message()["method"], "notifications/cancelled");
        assert!(wire.told().starts_with("failed: no answer and no progress in time"));
        wire.send(&result("1", r#"{"roots":[]}"#));
        wire.expect_silence();
    }
}

#[test]
fn the_number_of_remembered_cancelled_calls_is_bounded() {
    // Rule: [CANC-005].
    let mut limits = mcp_sansio::peer::Limits::DEFAULT;
    limits.tombstones_max = 2;
    let mut wire = client_at(Revision::V2025_11_25, plain_client().limits(limits));
    for _ in 0..3 {
        let options = CallOptions::default();
        let call = wire.machine.call(Method::ToolsCall, &echo(), &options, wire.now).unwrap();
        // A call that has not been sent would be withdrawn, so that no response could arrive.
        wire.line();
        wire.machine.cancel(call, "", wire.now);
        wire.told();
    }
    wire.send(&result("4", "{}"));
    wire.send(&result("3", "{}"));
    wire.expect_no_event();
    wire.send(&result("2", "{}"));
    assert!(wire.told().starts_with("violation"));
}

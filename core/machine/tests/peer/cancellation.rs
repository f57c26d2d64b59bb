//! Cancellation by either side.

use mcp_sansio::peer::{
    CallOptions, ClientMachine, CommandError, Event, Failure, ServerMachine, Subject,
};
use mcp_sansio::{Method, Revision};

use crate::fixtures::*;
use crate::pair::Pair;

#[test]
fn a_cancelled_call_ends_at_once_and_its_request_needs_no_response() {
    // Rule: [CANC-003] [CANC-008] [CANC-013] [CANC-014] [CANC-016] [CANC-017].
    for revision in Revision::ALL {
        let mut pair = Pair::open_at(revision, plain_client(), full_server());
        let options = CallOptions::default().progress();
        let call = pair.client.call(Method::ToolsCall, &echo(), &options, pair.now).unwrap();
        pair.drive();
        let request = pair.request();
        pair.client.cancel(call, "changed my mind", pair.now);
        pair.drive();
        let ended = pair.ended();
        assert_eq!((ended.call, ended.outcome.unwrap_err()), (call, Failure::Cancelled));
        let Some(Event::Cancelled(cancelled)) = pair.server_events.pop_front() else {
            panic!("told of the cancellation")
        };
        assert_eq!(cancelled.subject, Subject::Request(request.handle));
        assert_eq!(cancelled.reason.as_deref(), Some("changed my mind"));
        pair.take_transcript();
        pair.server.progress(request.handle, 1.0, None, None, pair.now);
        let answered = pair.server.respond_with(request.handle, &raw("{}"), pair.now);
        assert!(matches!(answered, Err(CommandError::NotDue)));
        pair.drive();
        assert_eq!(pair.take_transcript(), "", "nothing else is sent");
    }
}

#[test]
fn a_response_that_crosses_the_cancellation_is_absorbed() {
    // Rule: [CANC-005] [CANC-006] [CANC-007].
    for revision in Revision::ALL {
        let mut pair = Pair::open_at(revision, plain_client(), full_server());
        let options = CallOptions::default();
        let call = pair.client.call(Method::ToolsCall, &echo(), &options, pair.now).unwrap();
        pair.drive();
        let request = pair.request();
        pair.server.respond_with(request.handle, &raw("{}"), pair.now).unwrap();
        pair.client.cancel(call, "", pair.now);
        pair.drive();
        assert_eq!(pair.ended().outcome.unwrap_err(), Failure::Cancelled);
        assert!(pair.client_events.is_empty() && pair.server_events.is_empty());
    }
}

#[test]
fn a_cancellation_is_sent_after_its_request() {
    // Rule: [CANC-001] [CANC-010].
    for revision in Revision::ALL {
        let mut wire = client_at(revision, plain_client());
        let options = CallOptions::default();
        let call = wire.machine.call(Method::ToolsCall, &echo(), &options, wire.now).unwrap();
        assert_eq!(wire.message()["method"], "tools/call");
        wire.machine.cancel(call, "", wire.now);
        wire.expect(
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#,
        );
    }
}

#[test]
fn a_cancellation_is_sent_before_queued_requests() {
    // Rule: [CANC-013].
    let mut wire = client_at(Revision::V2025_11_25, plain_client());
    let options = CallOptions::default();
    let call = wire.machine.call(Method::ToolsCall, &echo(), &options, wire.now).unwrap();
    wire.line();
    wire.machine.call(Method::ToolsCall, &echo(), &options, wire.now).unwrap();
    wire.machine.cancel(call, "", wire.now);
    assert_eq!(wire.message()["method"], "notifications/cancelled");
    assert_eq!(wire.message()["id"], 3);
}

#[test]
fn equal_ids_of_the_two_directions_are_not_confused() {
    // Rule: [CANC-001] [CANC-018] [RPC-004].
    for revision in LEGACY {
        // The server sends a request with id 2 while call 2 of the client is pending.
        let mut wire = client_at(revision, host());
        let options = CallOptions::default();
        wire.machine.call(Method::ToolsCall, &echo(), &options, wire.now).unwrap();
        wire.line();
        wire.send(&request("2", "roots/list", "{}"));
        let Event::InputRequested(input) = wire.event() else { panic!("an input") };
        wire.send(&notification("notifications/cancelled", r#"{"requestId":2,"reason":"r"}"#));
        let Event::Cancelled(cancelled) = wire.event() else { panic!("a cancellation") };
        assert_eq!(cancelled.subject, Subject::Input(input.handle));
        let late = wire.machine.answer_input_with(input.handle, &raw("{}"), wire.now);
        assert!(matches!(late, Err(CommandError::NotDue)));
        wire.expect_nothing();
        // The client's call is unaffected.
        wire.send(&result("2", "{}"));
        assert_eq!(wire.told(), "ended with {}");

        let mut wire = server_at(revision, r#"{"roots":{}}"#, full_server());
        wire.machine.call(Method::RootsList, &raw("{}"), &options, wire.now).unwrap();
        wire.line();
        wire.send(&request("1", "tools/call", r#"{"name":"t"}"#));
        let Event::Request(request) = wire.event() else { panic!("a request") };
        wire.send(&notification("notifications/cancelled", r#"{"requestId":1}"#));
        let Event::Cancelled(cancelled) = wire.event() else { panic!("a cancellation") };
        assert_eq!(cancelled.subject, Subject::Request(request.handle));
        wire.send(&result("1", r#"{"roots":[]}"#));
        assert_eq!(wire.told(), r#"ended with {"roots":[]}"#);
    }
}

#[test]
fn unknown_and_malformed_cancellations_are_ignored() {
    // Rule: [CANC-004] [CANC-006] [CANC-007] [RPC-013].
    let params = [
        "{}",
        r#"{"requestId":9}"#,
        r#"{"requestId":null}"#,
        r#"{"requestId":[1]}"#,
        r#"{"requestId":"1"}"#,
        r#"{"requestId":1.5}"#,
    ];
    for revision in Revision::ALL {
        let mut client = client_at(revision, host());
        let options = CallOptions::default();
        client.machine.call(Method::ToolsCall, &echo(), &options, client.now).unwrap();
        client.line();
        let mut server = crate::wire::server(full_server());
        for params in params.iter().copied().chain([r#"{"requestId":2}"#]) {
            client.send(&notification("notifications/cancelled", params));
            client.expect_silence();
            server.send(&notification("notifications/cancelled", params));
            server.expect_silence();
        }
    }
}

#[test]
fn initialize_cannot_be_cancelled_by_either_side() {
    // Rule: [CANC-002].
    let mut wire = crate::wire::server(bare_server());
    wire.send(&initialize("2025-11-25", "{}"));
    wire.send(&notification("notifications/cancelled", r#"{"requestId":1}"#));
    assert!(wire.message().get("result").is_some());
    wire.send(INITIALIZED);
    assert_eq!(wire.told(), "opened at 2025-11-25");
}

#[test]
fn a_server_cancels_its_own_call() {
    // Rule: [CANC-001].
    for revision in LEGACY {
        let mut pair = Pair::open_at(revision, host(), full_server());
        let options = CallOptions::default();
        let call = pair.server.call(Method::RootsList, &raw("{}"), &options, pair.now).unwrap();
        pair.drive();
        let input = pair.input();
        pair.server.cancel(call, "", pair.now);
        pair.drive();
        assert!(matches!(
            pair.client_events.pop_front(),
            Some(Event::Cancelled(c)) if c.subject == Subject::Input(input.handle)
        ));
        assert!(matches!(
            pair.server_events.pop_front(),
            Some(Event::Ended(ended)) if ended.outcome == Err(Failure::Cancelled)
        ));
    }
}

#[test]
fn a_modern_server_cannot_end_a_call_with_a_cancellation() {
    // Rule: [CANC-020].
    let mut wire = client_at(Revision::V2026_07_28, host());
    let options = CallOptions::default();
    wire.machine.call(Method::ToolsCall, &echo(), &options, wire.now).unwrap();
    wire.line();
    wire.send(&notification("notifications/cancelled", r#"{"requestId":2}"#));
    wire.expect_silence();
    wire.send(&result("2", "{}"));
    assert_eq!(wire.told(), "ended with {}");
}

//! The end of a connection: every call ends exactly once, and the last event has the reason.

use mcp_sansio::catalog::Changes;
use mcp_sansio::framing::FrameError;
use mcp_sansio::jsonrpc::ErrorObject;
use mcp_sansio::peer::{
    CallOptions, ClientMachine, CloseReason, CommandError, Event, Failure, Policy, Reaction,
    ServerMachine,
};
use mcp_sansio::protocol::SubscriptionFilter;
use mcp_sansio::{LoggingLevel, Method, Revision};

use crate::fixtures::*;
use crate::wire::server;

#[test]
fn every_call_ends_once_when_the_connection_does() {
    for revision in Revision::ALL {
        for local in [false, true] {
            let mut wire = client_at(revision, host());
            let options = CallOptions::default();
            let first = wire.machine.call(Method::ToolsCall, &echo(), &options, wire.now).unwrap();
            let second =
                wire.machine.call(Method::ToolsList, &raw("{}"), &options, wire.now).unwrap();
            let third = wire.machine.subscribe(&SubscriptionFilter::new(), wire.now).unwrap();
            wire.machine.set_log_level(LoggingLevel::Debug, wire.now).unwrap();
            if local {
                wire.machine.close(wire.now)
            } else {
                wire.end()
            }
            let mut ended = Vec::new();
            let reason = loop {
                match wire.event() {
                    Event::Ended(end) => {
                        assert_eq!(end.outcome, Err(Failure::ConnectionLost));
                        ended.push(end.call);
                    }
                    Event::Subscribed(_) => {}
                    Event::Closed(reason) => break reason,
                    other => panic!("{other:?}"),
                }
            };
            ended.sort();
            let mut calls = [first, second, third];
            calls.sort();
            assert_eq!(ended, calls);
            assert_eq!(reason, if local { CloseReason::Local } else { CloseReason::EndOfInput });
            wire.expect_no_event();
            assert_eq!(wire.machine.poll_timeout(), None);
            assert!(wire.machine.is_drained());
            // The state is permanent, and every caller gets it.
            wire.machine.close(wire.now);
            wire.end();
            let called = wire.machine.call(Method::ToolsCall, &echo(), &options, wire.now);
            assert!(matches!(called, Err(CommandError::Closed(_))));
            assert!(wire.machine.subscribe(&SubscriptionFilter::new(), wire.now).is_err());
            assert!(wire.machine.set_log_level(LoggingLevel::Debug, wire.now).is_err());
            assert!(wire.machine.notify(Method::RootsListChanged, &raw("{}"), wire.now).is_err());
            assert!(wire.try_send(&result("2", "{}")).is_err());
            assert!(wire.machine.handle_frame_error(FrameError::TooLong { limit: 1 }).is_err());
            wire.machine.cancel(first, "", wire.now);
            wire.expect_no_event();
        }
    }
}

#[test]
fn requests_may_be_answered_after_the_end_of_input() {
    // Rule: [STDIO-017].
    for modern_era in [false, true] {
        let mut wire = if modern_era {
            server(full_server())
        } else {
            server_at(Revision::V2025_11_25, "{}", full_server())
        };
        let call = |id| {
            if modern_era {
                modern(id, "tools/call", r#""name":"t""#)
            } else {
                request(id, "tools/call", r#"{"name":"t"}"#)
            }
        };
        wire.send(&call("2"));
        let Event::Request(waiting) = wire.event() else { panic!("a request") };
        wire.end();
        assert_eq!(wire.told(), "closed: the other side closed the connection");
        assert!(!wire.machine.is_drained());
        wire.machine.respond_with(waiting.handle, &raw("{}"), wire.now).unwrap();
        assert_eq!(wire.message()["id"], 2);
        assert!(wire.machine.is_drained());
        assert!(wire.try_send(&call("3")).is_err());
        wire.expect_silence();
    }
}

#[test]
fn a_closed_server_sends_no_responses() {
    for revision in [Revision::V2025_03_26, Revision::V2025_11_25] {
        let mut wire = server_at(revision, "{}", full_server());
        let call = request("2", "tools/call", r#"{"name":"t","_meta":{"progressToken":1}}"#);
        wire.send(&if revision == Revision::V2025_03_26 { format!("[{call}]") } else { call });
        let Event::Request(request) = wire.event() else { panic!("a request") };
        wire.machine.close(wire.now);
        assert_eq!(wire.told(), "closed: closed by this side");
        wire.machine.progress(request.handle, 1.0, None, None, wire.now);
        wire.machine.log(None, LoggingLevel::Emergency, None, &1, wire.now).unwrap();
        wire.machine.resource_updated("a:1", wire.now);
        let answered = wire.machine.respond_with(request.handle, &raw("{}"), wire.now);
        assert!(matches!(answered, Err(CommandError::NotDue)));
        let answered = wire.machine.reject(request.handle, ErrorObject::internal("no"), wire.now);
        assert!(matches!(answered, Err(CommandError::NotDue)));
        wire.expect_silence();
        assert!(wire.machine.is_drained());
    }
}

#[test]
fn a_closed_client_does_not_answer_input_requests() {
    for revision in LEGACY {
        let mut wire = client_at(revision, host());
        wire.send(&request("1", "roots/list", "{}"));
        let Event::InputRequested(input) = wire.event() else { panic!("an input") };
        wire.machine.close(wire.now);
        assert!(wire.told().starts_with("closed"));
        let answered = wire.machine.answer_input_with(input.handle, &raw("{}"), wire.now);
        assert!(matches!(answered, Err(CommandError::NotDue)));
        let refused =
            wire.machine.refuse_input(input.handle, ErrorObject::internal("no"), wire.now);
        assert!(matches!(refused, Err(CommandError::NotDue)));
        wire.expect_silence();
    }
}

#[test]
fn a_client_can_be_closed_while_it_opens() {
    let mut wire = crate::wire::client(plain_client());
    wire.line();
    wire.machine.close(wire.now);
    assert_eq!(wire.told(), "closed: closed by this side");
    wire.expect_silence();
    assert_eq!(wire.machine.poll_timeout(), None);
}

#[test]
fn a_close_by_policy_ends_streams_and_input_rounds() {
    // Rule: [SUBS-008].
    let mut policy = Policy::default();
    policy.malformed = Reaction::Close;
    let mut wire = server(full_server().policy(policy));
    wire.send(&modern("1", "subscriptions/listen", r#""notifications":{}"#));
    wire.line();
    assert!(wire.try_send("{").is_err());
    wire.expect_error("none", -32700);
    assert_eq!(wire.message()["method"], "notifications/cancelled");
    assert_eq!(wire.message()["id"], 1);
    assert!(wire.told().starts_with("closed"));
    wire.expect_silence();
    assert!(wire.machine.is_drained());
}

#[test]
fn notifications_of_a_request_are_sent_after_the_end_of_input() {
    // Rule: [STDIO-017] [LOG-002].
    for revision in LEGACY {
        let mut wire = server_at(revision, "{}", full_server());
        wire.send(&request("2", "tools/call", r#"{"name":"t","_meta":{"progressToken":7}}"#));
        let Event::Request(asked) = wire.event() else { panic!("no request") };
        let handle = asked.handle;
        wire.end();
        wire.told();
        wire.machine.progress(handle, 1.0, None, None, wire.now);
        wire.machine.log(Some(handle), LoggingLevel::Error, None, &1, wire.now).unwrap();
        // These belong to no request.
        wire.machine.log(None, LoggingLevel::Error, None, &2, wire.now).unwrap();
        wire.machine.announce(Changes::new().tools(true), wire.now);
        wire.machine.respond_with(handle, &raw("{}"), wire.now).unwrap();
        assert_eq!(wire.message()["method"], "notifications/progress", "{revision}");
        assert_eq!(wire.message()["params"]["data"], 1, "{revision}");
        assert_eq!(wire.message()["id"], 2, "{revision}");
        wire.expect_silence();
    }
}

//! Cancellation by clients: by a notification in a session, by disconnecting without one.

use std::time::Duration;

use mcp_sansio::Revision;
use mcp_sansio::peer::{CommandError, ServerMachine};

use crate::answers::ask_for_roots;
use crate::fixtures::*;
use crate::reply::State;

#[test]
fn a_notification_cancels_in_a_session() {
    // Rule: [CANC-001] [CANC-003] [CANC-011] [HSRV-008].
    let mut server = server();
    for revision in RESUMING {
        let session = server.open(revision, "{}");
        let (waiting, streaming) =
            (server.post(&session, &call(1)), server.post(&session, &call(2)));
        let (first, second) = (server.asked(), server.asked());
        server.progress(second.handle, 1.0);
        for id in [1, 2] {
            let reply = server.post(&session, &cancel(id));
            assert_eq!(server.reply(reply).transcript(), "202\n");
        }
        assert_eq!([server.cancelled(), server.cancelled()], [first.handle, second.handle]);
        // A request is answered as JSON or as a stream. Without a response it is an empty stream,
        // which cannot be resumed.
        assert_eq!(server.reply(waiting).transcript(), "200 text/event-stream\nend");
        assert_eq!(server.reply(streaming).state, State::Complete);
        assert_eq!(server.reply(streaming).messages().len(), 1);
        for request in [first, second] {
            server.progress(request.handle, 2.0);
            let late = server.server.respond_with(request.handle, &raw("{}"), server.now);
            assert!(matches!(late, Err(CommandError::NotDue)));
        }
        server.pump();
        assert_eq!(
            server.reply(streaming).messages().len(),
            1,
            "no message after the cancellation"
        );
    }
}

#[test]
fn unread_messages_of_a_cancelled_request_are_withdrawn() {
    // Rule: [CANC-003] [CANC-011].
    for revision in RESUMING {
        // A reader that has read nothing, one that has read the first progress, and one that has
        // disconnected.
        for (taken, leaves) in [(0, false), (1, false), (1, true)] {
            let mut server = server();
            let session = server.open(revision, "{}");
            let reply = server.post_unread(&session, &call(1));
            let asked = server.asked();
            if taken > 0 {
                server.progress(asked.handle, 1.0);
                server.read(reply, 2);
            }
            for report in 2..9 {
                server.progress(asked.handle, f64::from(report));
            }
            if leaves {
                server.disconnect(reply);
            }
            let cancelled = server.post(&session, &cancel(1));
            assert_eq!(server.reply(cancelled).status(), 202);
            assert_eq!(server.cancelled(), asked.handle);
            if leaves {
                let last = server.reply(reply).last_id().unwrap();
                let back = server.resume(&session, &last);
                assert_eq!(server.reply(back).transcript(), "200 text/event-stream\nend");
            } else {
                server.read(reply, usize::MAX);
                assert_eq!(server.reply(reply).state, State::Complete);
            }
            assert_eq!(server.reply(reply).messages().len(), taken, "{revision}, {leaves}");
        }
    }
}

#[test]
fn an_input_request_that_was_never_sent_is_not_cancelled() {
    // Rule: [CANC-001].
    for revision in RESUMING {
        for taken in [false, true] {
            let mut server = server();
            let session = server.open(revision, r#"{"roots":{}}"#);
            let reply = server.post_unread(&session, &call(1));
            let asked = server.asked();
            server.server.require_input(&asked, &ask_for_roots(), server.now).unwrap();
            if taken {
                server.read(reply, usize::MAX);
            }
            server.post(&session, &cancel(1));
            server.read(reply, usize::MAX);
            let said = server.reply(reply).messages();
            let methods: Vec<_> = said.iter().map(|it| it["method"].as_str().unwrap()).collect();
            let expected: &[_] =
                if taken { &["roots/list", "notifications/cancelled"] } else { &[] };
            assert_eq!(methods, expected, "{revision}");
        }
    }
}

#[test]
fn an_unread_response_on_a_stream_is_withdrawn() {
    // Rule: [CANC-003] [CANC-011].
    for revision in RESUMING {
        for leaves in [false, true] {
            let mut server = server();
            let session = server.open(revision, "{}");
            let replies = [1, 2].map(|id| server.post_unread(&session, &call(id)));
            for reply in replies {
                let asked = server.asked();
                server.progress(asked.handle, 1.0);
                server.read(reply, 2);
                server.progress(asked.handle, 2.0);
                server.answer_to(asked.handle);
                if leaves {
                    server.disconnect(reply);
                }
            }
            server.post(&session, &cancel(1));
            server.expect_no_event();
            for (reply, rest) in replies.into_iter().zip([0, 2]) {
                if leaves {
                    let back = server.resume(&session, &server.reply(reply).last_id().unwrap());
                    assert_eq!(server.reply(back).messages().len(), rest, "{revision}");
                    assert_eq!(server.reply(back).state, State::Complete);
                } else {
                    server.read(reply, usize::MAX);
                    assert_eq!(server.reply(reply).messages().len(), 1 + rest, "{revision}");
                    assert_eq!(server.reply(reply).state, State::Complete);
                }
            }
        }
    }
}

#[test]
fn unknown_cancellations_are_ignored() {
    // Rule: [CANC-004] [CANC-006] [CANC-007].
    let mut server = server();
    let session = server.open(Revision::V2025_11_25, "{}");
    let other = server.open(Revision::V2025_11_25, "{}");
    server.post(&session, &call(1));
    server.answer();
    let foreign = server.post(&other, &call(2));
    let asked = server.asked();
    for body in [cancel(1), cancel(2), cancel(3), notification("notifications/cancelled", "{}")] {
        let reply = server.post(&session, &body);
        assert_eq!(server.reply(reply).status(), 202, "{body}");
    }
    server.expect_no_event();
    server.answer_to(asked.handle);
    assert_eq!(server.reply(foreign).status(), 200);
}

#[test]
fn a_modern_client_cancels_by_disconnecting() {
    // Rule: [CANC-015] [CANC-016] [CANC-017].
    let mut server = server();
    let waiting = server.modern(&modern_call(1));
    let streaming = server.modern(&modern_call(2));
    let (first, second) = (server.asked(), server.asked());
    server.progress(second.handle, 1.0);
    server.disconnect(waiting);
    server.disconnect(streaming);
    assert_eq!([server.cancelled(), server.cancelled()], [first.handle, second.handle]);
    for request in [first, second] {
        server.progress(request.handle, 2.0);
        let late = server.server.respond_with(request.handle, &raw("{}"), server.now);
        assert!(matches!(late, Err(CommandError::NotDue)));
        let late = server.server.require_input(&request, &ask_for_roots(), server.now);
        assert!(matches!(late, Err(CommandError::NotDue)));
    }
    server.expect_empty();
}

#[test]
fn a_notification_without_a_session_cancels_nothing() {
    // Rule: [CANC-015].
    let mut server = server();
    let reply = server.modern(&modern_call(1));
    let asked = server.asked();
    let fields = join(&POST, &[("MCP-Protocol-Version", "2026-07-28")]);
    let accepted = server.request("POST", "/mcp", &fields, &cancel(1));
    assert_eq!(server.reply(accepted).status(), 202);
    server.expect_no_event();
    server.answer_to(asked.handle);
    assert_eq!(server.reply(reply).status(), 200);
}

#[test]
fn a_disconnect_of_a_legacy_client_cancels_nothing() {
    // Rule: [CANC-012] [SSE-011].
    let mut server = server();
    for revision in RESUMING {
        let session = server.open(revision, "{}");
        let reply = server.post(&session, &call(1));
        let asked = server.asked();
        server.disconnect(reply);
        server.expect_no_event();
        server.advance(Duration::from_secs(7200));
        server.answer_to(asked.handle);
        server.delete(&session);
    }
    server.expect_empty();
}

#[test]
fn a_response_that_is_being_sent_is_not_cancelled_by_a_disconnect() {
    // Rule: [CANC-006].
    let mut server = server();
    let body = modern_call(1);
    let whole = server.request_unread("POST", "/mcp", &header_of(&body).fields(), &body);
    let streaming = server.request_unread("POST", "/mcp", &header_of(&body).fields(), &body);
    let (first, second) = (server.asked(), server.asked());
    server.answer_to(first.handle);
    server.progress(second.handle, 1.0);
    server.answer_to(second.handle);
    server.disconnect(whole);
    server.disconnect(streaming);
    server.expect_no_event();
    server.expect_empty();
}

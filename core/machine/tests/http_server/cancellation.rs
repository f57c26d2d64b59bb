//! How clients give requests up: by a message in a session, by leaving without one.

use std::time::Duration;

use mcp_sansio::Revision;
use mcp_sansio::peer::CommandError;

use crate::answers::ask_for_roots;
use crate::reply::State;
use crate::words::*;

#[test]
fn a_notification_cancels_in_a_session() {
    // Rule: [CANC-001] [CANC-003] [CANC-011] [HSRV-008].
    let mut site = site();
    for revision in RESUMING {
        let session = site.open(revision, "{}");
        let (waiting, streaming) = (site.post(&session, &call(1)), site.post(&session, &call(2)));
        let (first, second) = (site.asked(), site.asked());
        site.progress(second.handle, 1.0);
        for id in [1, 2] {
            let reply = site.post(&session, &cancel(id));
            assert_eq!(site.reply(reply).transcript(), "202\n");
        }
        assert_eq!([site.cancelled(), site.cancelled()], [first.handle, second.handle]);
        // A request is answered as JSON or as a stream; one without an answer is a stream of
        // nothing, and nobody can come back for it.
        assert_eq!(site.reply(waiting).transcript(), "200 text/event-stream\nend");
        assert_eq!(site.reply(streaming).state, State::Complete);
        assert_eq!(site.reply(streaming).messages().len(), 1);
        for request in [first, second] {
            site.progress(request.handle, 2.0);
            let late = site.server.respond_with(request.handle, &raw("{}"), site.now);
            assert!(matches!(late, Err(CommandError::NotDue)));
        }
        site.pump();
        assert_eq!(site.reply(streaming).messages().len(), 1, "no message after it");
    }
}

#[test]
fn what_a_reader_has_not_taken_of_a_cancelled_request_is_withdrawn() {
    // Rule: [CANC-003] [CANC-011].
    for revision in RESUMING {
        // A reader that has taken nothing, one that has taken the first report, and one that left.
        for (taken, leaves) in [(0, false), (1, false), (1, true)] {
            let mut site = site();
            let session = site.open(revision, "{}");
            let reply = site.post_unread(&session, &call(1));
            let asked = site.asked();
            if taken > 0 {
                site.progress(asked.handle, 1.0);
                site.read(reply, 2);
            }
            for report in 2..9 {
                site.progress(asked.handle, f64::from(report));
            }
            if leaves {
                site.disconnect(reply);
            }
            let cancelled = site.post(&session, &cancel(1));
            assert_eq!(site.reply(cancelled).status(), 202);
            assert_eq!(site.cancelled(), asked.handle);
            if leaves {
                let last = site.reply(reply).last_id().unwrap();
                let back = site.resume(&session, &last);
                assert_eq!(site.reply(back).transcript(), "200 text/event-stream\nend");
            } else {
                site.read(reply, usize::MAX);
                assert_eq!(site.reply(reply).state, State::Complete);
            }
            assert_eq!(site.reply(reply).messages().len(), taken, "{revision}, {leaves}");
        }
    }
}

#[test]
fn a_question_that_the_client_was_never_asked_is_not_cancelled_either() {
    // Rule: [CANC-001].
    for revision in RESUMING {
        for taken in [false, true] {
            let mut site = site();
            let session = site.open(revision, r#"{"roots":{}}"#);
            let reply = site.post_unread(&session, &call(1));
            let asked = site.asked();
            site.server.require_input(asked, &ask_for_roots(), site.now).unwrap();
            if taken {
                site.read(reply, usize::MAX);
            }
            site.post(&session, &cancel(1));
            site.read(reply, usize::MAX);
            let said = site.reply(reply).messages();
            let methods: Vec<_> = said.iter().map(|it| it["method"].as_str().unwrap()).collect();
            let expected: &[_] =
                if taken { &["roots/list", "notifications/cancelled"] } else { &[] };
            assert_eq!(methods, expected, "{revision}");
        }
    }
}

#[test]
fn an_answer_that_waits_on_a_stream_is_withdrawn() {
    // Rule: [CANC-003] [CANC-011].
    for revision in RESUMING {
        for leaves in [false, true] {
            let mut site = site();
            let session = site.open(revision, "{}");
            let replies = [1, 2].map(|id| site.post_unread(&session, &call(id)));
            for reply in replies {
                let asked = site.asked();
                site.progress(asked.handle, 1.0);
                site.read(reply, 2);
                site.progress(asked.handle, 2.0);
                site.answer_to(asked.handle);
                if leaves {
                    site.disconnect(reply);
                }
            }
            site.post(&session, &cancel(1));
            site.expect_no_event();
            for (reply, rest) in replies.into_iter().zip([0, 2]) {
                if leaves {
                    let back = site.resume(&session, &site.reply(reply).last_id().unwrap());
                    assert_eq!(site.reply(back).messages().len(), rest, "{revision}");
                    assert_eq!(site.reply(back).state, State::Complete);
                } else {
                    site.read(reply, usize::MAX);
                    assert_eq!(site.reply(reply).messages().len(), 1 + rest, "{revision}");
                    assert_eq!(site.reply(reply).state, State::Complete);
                }
            }
        }
    }
}

#[test]
fn cancellations_of_nothing_are_ignored() {
    // Rule: [CANC-004] [CANC-006] [CANC-007].
    let mut site = site();
    let session = site.open(Revision::V2025_11_25, "{}");
    let other = site.open(Revision::V2025_11_25, "{}");
    site.post(&session, &call(1));
    site.answer();
    let foreign = site.post(&other, &call(2));
    let asked = site.asked();
    for body in [cancel(1), cancel(2), cancel(3), notification("notifications/cancelled", "{}")] {
        let reply = site.post(&session, &body);
        assert_eq!(site.reply(reply).status(), 202, "{body}");
    }
    site.expect_no_event();
    site.answer_to(asked.handle);
    assert_eq!(site.reply(foreign).status(), 200);
}

#[test]
fn a_modern_client_cancels_by_leaving() {
    // Rule: [CANC-015] [CANC-016] [CANC-017].
    let mut site = site();
    let waiting = site.modern(&modern_call(1));
    let streaming = site.modern(&modern_call(2));
    let (first, second) = (site.asked(), site.asked());
    site.progress(second.handle, 1.0);
    site.disconnect(waiting);
    site.disconnect(streaming);
    assert_eq!([site.cancelled(), site.cancelled()], [first.handle, second.handle]);
    for request in [first, second] {
        site.progress(request.handle, 2.0);
        let late = site.server.respond_with(request.handle, &raw("{}"), site.now);
        assert!(matches!(late, Err(CommandError::NotDue)));
        let late = site.server.require_input(request, &ask_for_roots(), site.now);
        assert!(matches!(late, Err(CommandError::NotDue)));
    }
    site.expect_empty();
}

#[test]
fn a_notification_cancels_nothing_without_a_session() {
    // Rule: [CANC-015].
    let mut site = site();
    let reply = site.modern(&modern_call(1));
    let asked = site.asked();
    let fields = join(&POST, &[("MCP-Protocol-Version", "2026-07-28")]);
    let accepted = site.request("POST", "/mcp", &fields, &cancel(1));
    assert_eq!(site.reply(accepted).status(), 202);
    site.expect_no_event();
    site.answer_to(asked.handle);
    assert_eq!(site.reply(reply).status(), 200);
}

#[test]
fn a_legacy_client_that_leaves_cancels_nothing() {
    // Rule: [CANC-012] [SSE-011].
    let mut site = site();
    for revision in RESUMING {
        let session = site.open(revision, "{}");
        let reply = site.post(&session, &call(1));
        let asked = site.asked();
        site.disconnect(reply);
        site.expect_no_event();
        site.advance(Duration::from_secs(7200));
        site.answer_to(asked.handle);
        site.delete(&session);
    }
    site.expect_empty();
}

#[test]
fn an_answer_that_is_on_its_way_is_not_cancelled_by_leaving() {
    // Rule: [CANC-006].
    let mut site = site();
    let body = modern_call(1);
    let whole = site.request_unread("POST", "/mcp", &header_of(&body).fields(), &body);
    let streaming = site.request_unread("POST", "/mcp", &header_of(&body).fields(), &body);
    let (first, second) = (site.asked(), site.asked());
    site.answer_to(first.handle);
    site.progress(second.handle, 1.0);
    site.answer_to(second.handle);
    site.disconnect(whole);
    site.disconnect(streaming);
    site.expect_no_event();
    site.expect_empty();
}

//! Legacy sessions: how they are opened, found and ended.

use mcp_sansio::peer::ServerMachine;
use std::collections::BTreeSet;
use std::time::Duration;

use mcp_sansio::{Principal, Revision};

use crate::fixtures::*;

const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn the_session_id_is_sent_in_the_response_to_initialize_only() {
    // Rule: [SESS-001] [SESS-002] [SESS-003].
    let mut server = server();
    let mut ids = BTreeSet::new();
    for revision in [Revision::V2024_11_05].into_iter().chain(RESUMING) {
        for _ in 0..100 {
            let session = server.open(revision, "{}");
            assert_eq!(session.id.len(), 32);
            assert!(session.id.bytes().all(|byte| (0x21..=0x7E).contains(&byte)));
            assert!(ids.insert(session.id), "a session id is used twice");
        }
        let session = server.open(revision, "{}");
        let reply = server.post(&session, &call(1));
        server.answer();
        assert_eq!(server.reply(reply).field("mcp-session-id"), None);
    }
    // Their prefixes differ, so one cannot be guessed from another.
    let heads: BTreeSet<&str> = ids.iter().map(|id| &id[..8]).collect();
    assert_eq!(heads.len(), ids.len());
}

#[test]
fn a_long_id_is_answered_and_one_over_the_limit_is_refused_with_an_error_that_has_the_id() {
    // Rule: [RPC-006] [RPC-009].
    let mut server = server();
    let session = server.open(Revision::V2025_11_25, "{}");
    for (length, refused) in [(65, false), (1024, false), (1025, true), (9000, true)] {
        let id = format!("\"{}\"", "i".repeat(length));
        let own = |body: String| body.replace("\"id\":1", &format!("\"id\":{id}"));
        for ticket in [server.post(&session, &own(call(1))), server.modern(&own(modern_call(1)))] {
            if refused {
                assert_eq!(server.reply(ticket).status(), 400);
                assert_eq!(server.reply(ticket).error(), (-32600, id.clone()));
                server.event();
            } else {
                server.answer();
                assert_eq!(server.reply(ticket).json()["id"].to_string(), id);
            }
        }
    }
}

#[test]
fn a_second_initialized_is_accepted() {
    // Rule: [LIFE-003] [HSRV-008].
    for revision in [Revision::V2025_03_26, Revision::V2025_06_18, Revision::V2025_11_25] {
        let mut server = server();
        let session = server.open(revision, "{}");
        let again = server.post(&session, INITIALIZED);
        assert_eq!(server.reply(again).status(), 202, "{revision}");
        server.expect_no_event();
    }
}

#[test]
fn a_failed_initialize_leaves_no_session() {
    let mut server = server();
    let body = request(1, "initialize", r#"{"protocolVersion":5}"#);
    let reply = server.request("POST", "/mcp", &POST, &body);
    assert_eq!(server.reply(reply).error(), (-32602, "1".into()));
    assert_eq!(server.reply(reply).field("mcp-session-id"), None);
    server.expect_empty();
}

#[test]
fn requests_of_an_unknown_session_are_not_found() {
    // Rule: [SESS-008] [SESS-012].
    let mut server = server();
    let session = server.open(Revision::V2025_11_25, "{}");
    let ended = server.delete(&session);
    assert_eq!(server.reply(ended).status(), 204);
    let never = words_session("0123456789abcdef0123456789abcdef");
    for session in [&session, &never, &words_session("x"), &words_session("")] {
        let requested = server.post(session, &call(1));
        assert_eq!(server.reply(requested).error(), (-32600, "1".into()));
        for reply in [
            requested,
            server.post(session, INITIALIZED),
            server.get(session),
            server.resume(session, "0-0"),
            server.delete(session),
        ] {
            assert_eq!(server.reply(reply).status(), 404, "{session:?}");
        }
    }
    server.expect_no_event();
    // `initialize` opens a session under a new id, whatever the old one was.
    for session in [&session, &never, &words_session("x"), &words_session("")] {
        let again = server.post(session, &initialize(Revision::V2025_11_25, "{}"));
        let reply = server.reply(again);
        assert_eq!(reply.status(), 200, "{session:?}");
        let opened = reply.field("mcp-session-id").expect("a session");
        assert_ne!(opened, session.id);
        let opened = words_session(opened);
        server.delete(&opened);
    }
    server.expect_empty();
}

fn words_session(id: &str) -> Session {
    Session { id: id.into(), revision: Revision::V2025_11_25 }
}

#[test]
fn an_initialize_that_names_a_session_opens_another_and_ends_that_one() {
    // Rule: [SESS-007] [SESS-009].
    let mut server = server();
    let first = server.open(Revision::V2025_11_25, "{}");
    let running = server.post(&first, &call(1));
    let asked = server.asked();
    let reply = server.post(&first, &initialize(Revision::V2025_11_25, "{}"));
    assert_eq!(server.reply(reply).status(), 200);
    let second = server.reply(reply).field("mcp-session-id").unwrap().to_owned();
    assert_ne!(second, first.id);
    assert_eq!(server.reply(running).status(), 404);
    assert_eq!(server.cancelled(), asked.handle);
    let reply = server.post(&first, &call(2));
    assert_eq!(server.reply(reply).status(), 404);
    let reply = server.post(&words_session(&second), INITIALIZED);
    assert_eq!(server.reply(reply).status(), 202);

    // One that has ended, or never existed, is not needed either.
    for stale in [&first, &words_session("0123456789abcdef0123456789abcdef"), &words_session("x")] {
        let reply = server.post(stale, &initialize(Revision::V2025_11_25, "{}"));
        assert_eq!(server.reply(reply).status(), 200);
    }
    // An invalid one ends nothing.
    let body = request(1, "initialize", r#"{"protocolVersion":5}"#);
    let reply = server.post(&words_session(&second), &body);
    assert_eq!(server.reply(reply).error(), (-32602, "1".into()));
    let reply = server.post(&words_session(&second), INITIALIZED);
    assert_eq!(server.reply(reply).status(), 202);
}

#[test]
fn deleting_a_session_cancels_its_requests_and_ends_its_streams() {
    // Rule: [SESS-010] [SESS-007] [SSE-003].
    let mut server = server();
    let session = server.open(Revision::V2025_11_25, "{}");
    let other = server.open(Revision::V2025_11_25, "{}");
    let stream = server.get(&session);
    let waiting = server.post(&session, &call(1));
    let streaming = server.post(&session, &call(2));
    let foreign = server.post(&other, &call(1));
    let (first, second, third) = (server.asked(), server.asked(), server.asked());
    server.progress(second.handle, 1.0);
    let deleted = server.delete(&session);
    assert_eq!(server.reply(deleted).transcript(), "204\n");
    let given_up = [server.cancelled(), server.cancelled()];
    assert_eq!(given_up, [first.handle, second.handle]);
    server.expect_no_event();
    assert_eq!(server.reply(waiting).status(), 404, "the response had not been sent");
    assert!(server.reply(stream).is_over() && server.reply(streaming).is_over());
    for handle in given_up {
        server
            .server
            .respond_with(handle, &raw("{}"), server.now)
            .expect_err("the request is not pending");
    }
    server.answer_to(third.handle);
    assert_eq!(server.reply(foreign).status(), 200, "the other session remains open");
    assert_eq!(server.server.session_count(), 1);
    assert_eq!(server.server.exchange_count(), 0);
}

#[test]
fn a_session_belongs_to_its_principal() {
    // Rule: [SESS-014] [SESS-012].
    let mut server = server();
    let (ann, bob) = (Some(Principal::new("ann")), Some(Principal::new("bob")));
    server.principal = ann.clone();
    let session = server.open(Revision::V2025_11_25, "{}");
    let stream = server.get(&session);
    let reply = server.post(&session, &call(1));
    let asked = server.asked();
    assert_eq!(asked.caller.principal(), ann.as_ref());
    server.progress(asked.handle, 1.0);
    let last = server.reply(reply).last_id().unwrap();
    for thief in [bob, None] {
        server.principal = thief;
        for reply in [
            server.post(&session, &call(2)),
            server.post(&session, &cancel(1)),
            server.get(&session),
            server.resume(&session, &last),
            server.delete(&session),
        ] {
            assert_eq!(server.reply(reply).status(), 404);
        }
    }
    assert!(!server.reply(stream).is_over() && !server.reply(reply).is_over());
    server.expect_no_event();
    server.principal = ann;
    server.answer_to(asked.handle);
    assert_eq!(server.reply(reply).messages().last().unwrap()["id"], 1);
}

#[test]
fn the_number_of_sessions_is_bounded() {
    let mut server = server_with(limits(|limits| limits.sessions_max = 2));
    let first = server.open(Revision::V2025_11_25, "{}");
    server.open(Revision::V2025_11_25, "{}");
    let reply = server.request("POST", "/mcp", &POST, &initialize(Revision::V2025_11_25, "{}"));
    assert_eq!(server.reply(reply).status(), 503);
    assert_eq!(server.reply(reply).field("retry-after"), Some("10"));
    assert_eq!(server.reply(reply).error(), (-32603, "0".into()));
    let reply = server.modern(&modern(1, "server/discover", ""));
    assert_eq!(server.reply(reply).status(), 200, "modern clients need no session");
    server.delete(&first);
    server.open(Revision::V2025_11_25, "{}");
}

#[test]
fn an_idle_session_expires() {
    // Rule: [SESS-007] [SESS-008].
    let mut server = server();
    let session = server.open(Revision::V2025_11_25, "{}");
    server.advance(29 * MINUTE);
    let reply = server.post(&session, &request(1, "ping", "{}"));
    assert_eq!(server.reply(reply).status(), 200);
    server.advance(30 * MINUTE - Duration::from_millis(1));
    assert_eq!(server.server.session_count(), 1);
    server.advance(Duration::from_millis(1));
    assert_eq!(server.server.session_count(), 0);
    let reply = server.post(&session, &call(1));
    assert_eq!(server.reply(reply).status(), 404);
    server.expect_empty();
}

#[test]
fn an_unconfirmed_session_expires_sooner() {
    let mut server = server();
    let session = server.open_unconfirmed(Revision::V2025_03_26, "{}");
    let confirmed = server.open_unconfirmed(Revision::V2025_03_26, "{}");
    // The confirmation may be part of a batch.
    server.post(&confirmed, &format!("[{INITIALIZED}]"));
    server.advance(MINUTE);
    assert_eq!(server.server.session_count(), 1);
    let gone = server.post(&session, INITIALIZED);
    assert_eq!(server.reply(gone).status(), 404);
}

#[test]
fn a_session_with_an_open_stream_or_a_pending_request_does_not_expire() {
    let mut server = server();
    let session = server.open(Revision::V2025_11_25, "{}");
    let stream = server.get(&session);
    server.advance(90 * MINUTE);
    server.disconnect(stream);
    server.advance(29 * MINUTE);
    assert_eq!(server.server.session_count(), 1, "the time starts when the stream ends");
    let reply = server.post(&session, &call(1));
    server.advance(60 * MINUTE);
    server.disconnect(reply);
    server.advance(60 * MINUTE);
    assert_eq!(server.server.session_count(), 1, "the request is pending");
    server.answer();
    server.advance(29 * MINUTE);
    assert_eq!(server.server.session_count(), 1, "the time starts when the request ends");
    server.advance(MINUTE);
    server.expect_empty();
}

//! Legacy sessions: how they begin, are found, and end.

use std::collections::BTreeSet;
use std::time::Duration;

use mcp_sansio::Revision;
use mcp_sansio::http::Principal;

use crate::words::*;

const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn a_session_is_named_on_the_answer_that_opens_it_and_on_no_other() {
    // Rule: [SESS-001] [SESS-002] [SESS-003].
    let mut site = site();
    let mut ids = BTreeSet::new();
    for revision in [Revision::V2024_11_05].into_iter().chain(RESUMING) {
        for _ in 0..100 {
            let session = site.open(revision, "{}");
            assert_eq!(session.id.len(), 32);
            assert!(session.id.bytes().all(|byte| (0x21..=0x7E).contains(&byte)));
            assert!(ids.insert(session.id), "an id is used again");
        }
        let session = site.open(revision, "{}");
        let reply = site.post(&session, &call(1));
        site.answer();
        assert_eq!(site.reply(reply).field("mcp-session-id"), None);
    }
    // No two of them share a beginning that would let one be guessed from another.
    let heads: BTreeSet<&str> = ids.iter().map(|id| &id[..8]).collect();
    assert_eq!(heads.len(), ids.len());
}

#[test]
fn a_long_id_is_answered_and_one_beyond_the_limit_is_refused_under_itself() {
    // Rule: [RPC-006] [RPC-009].
    let mut site = site();
    let session = site.open(Revision::V2025_11_25, "{}");
    for (length, refused) in [(65, false), (1024, false), (1025, true), (9000, true)] {
        let id = format!("\"{}\"", "i".repeat(length));
        let own = |body: String| body.replace("\"id\":1", &format!("\"id\":{id}"));
        for ticket in [site.post(&session, &own(call(1))), site.modern(&own(modern_call(1)))] {
            if refused {
                assert_eq!(site.reply(ticket).status(), 400);
                assert_eq!(site.reply(ticket).error(), (-32600, id.clone()));
                site.event();
            } else {
                site.answer();
                assert_eq!(site.reply(ticket).json()["id"].to_string(), id);
            }
        }
    }
}

#[test]
fn a_second_initialized_is_accepted() {
    // Rule: [LIFE-003] [HSRV-008].
    for revision in [Revision::V2025_03_26, Revision::V2025_06_18, Revision::V2025_11_25] {
        let mut site = site();
        let session = site.open(revision, "{}");
        let again = site.post(&session, INITIALIZED);
        assert_eq!(site.reply(again).status(), 202, "{revision}");
        site.expect_no_event();
    }
}

#[test]
fn an_opening_that_fails_leaves_nothing_behind() {
    let mut site = site();
    let body = request(1, "initialize", r#"{"protocolVersion":5}"#);
    let reply = site.request("POST", "/mcp", &POST, &body);
    assert_eq!(site.reply(reply).error(), (-32602, "1".into()));
    assert_eq!(site.reply(reply).field("mcp-session-id"), None);
    site.expect_empty();
}

#[test]
fn requests_of_a_session_that_is_not_there_are_not_found() {
    // Rule: [SESS-008] [SESS-012].
    let mut site = site();
    let session = site.open(Revision::V2025_11_25, "{}");
    let ended = site.delete(&session);
    assert_eq!(site.reply(ended).status(), 204);
    let never = words_session("0123456789abcdef0123456789abcdef");
    for session in [&session, &never, &words_session("x"), &words_session("")] {
        let requested = site.post(session, &call(1));
        assert_eq!(site.reply(requested).error(), (-32600, "1".into()));
        let again = initialize(Revision::V2025_11_25, "{}");
        for reply in [
            requested,
            site.post(session, INITIALIZED),
            site.post(session, &again),
            site.get(session),
            site.resume(session, "0-0"),
            site.delete(session),
        ] {
            assert_eq!(site.reply(reply).status(), 404, "{session:?}");
        }
    }
    site.expect_no_event();
    site.expect_empty();
}

fn words_session(id: &str) -> Session {
    Session { id: id.into(), revision: Revision::V2025_11_25 }
}

#[test]
fn a_session_is_initialized_once() {
    let mut site = site();
    let session = site.open(Revision::V2025_11_25, "{}");
    let reply = site.post(&session, &initialize(Revision::V2025_11_25, "{}"));
    assert_eq!(site.reply(reply).status(), 400);
    assert_eq!(site.reply(reply).error(), (-32600, "0".into()));
    // Said again it changes nothing.
    let reply = site.post(&session, INITIALIZED);
    assert_eq!(site.reply(reply).status(), 202);
}

#[test]
fn deleting_a_session_cancels_its_requests_and_ends_its_streams() {
    // Rule: [SESS-010] [SESS-007] [SSE-003].
    let mut site = site();
    let session = site.open(Revision::V2025_11_25, "{}");
    let other = site.open(Revision::V2025_11_25, "{}");
    let stream = site.get(&session);
    let waiting = site.post(&session, &call(1));
    let streaming = site.post(&session, &call(2));
    let foreign = site.post(&other, &call(1));
    let (first, second, third) = (site.asked(), site.asked(), site.asked());
    site.progress(second.handle, 1.0);
    let deleted = site.delete(&session);
    assert_eq!(site.reply(deleted).transcript(), "204\n");
    let given_up = [site.cancelled(), site.cancelled()];
    assert_eq!(given_up, [first.handle, second.handle]);
    site.expect_no_event();
    assert_eq!(site.reply(waiting).status(), 404, "nothing of it had left");
    assert!(site.reply(stream).is_over() && site.reply(streaming).is_over());
    for handle in given_up {
        site.server.respond_with(handle, &raw("{}"), site.now).expect_err("no answer is due");
    }
    site.answer_to(third.handle);
    assert_eq!(site.reply(foreign).status(), 200, "the other one goes on");
    assert_eq!(site.server.session_count(), 1);
    assert_eq!(site.server.exchange_count(), 0);
}

#[test]
fn a_session_is_its_principals_alone() {
    // Rule: [SESS-014] [SESS-012].
    let mut site = site();
    let (ann, bob) = (Some(Principal::new("ann")), Some(Principal::new("bob")));
    site.principal = ann.clone();
    let session = site.open(Revision::V2025_11_25, "{}");
    let stream = site.get(&session);
    let reply = site.post(&session, &call(1));
    let asked = site.asked();
    assert_eq!(site.server.principal(asked.handle), ann.as_ref());
    site.progress(asked.handle, 1.0);
    let last = site.reply(reply).last_id().unwrap();
    for thief in [bob, None] {
        site.principal = thief;
        for reply in [
            site.post(&session, &call(2)),
            site.post(&session, &cancel(1)),
            site.get(&session),
            site.resume(&session, &last),
            site.delete(&session),
        ] {
            assert_eq!(site.reply(reply).status(), 404);
        }
    }
    assert!(!site.reply(stream).is_over() && !site.reply(reply).is_over());
    site.expect_no_event();
    site.principal = ann;
    site.answer_to(asked.handle);
    assert_eq!(site.reply(reply).messages().last().unwrap()["id"], 1);
}

#[test]
fn there_are_no_more_sessions_than_the_limit() {
    let mut site = site_with(limits(|limits| limits.sessions_max = 2));
    let first = site.open(Revision::V2025_11_25, "{}");
    site.open(Revision::V2025_11_25, "{}");
    let reply = site.request("POST", "/mcp", &POST, &initialize(Revision::V2025_11_25, "{}"));
    assert_eq!(site.reply(reply).status(), 503);
    assert_eq!(site.reply(reply).field("retry-after"), Some("10"));
    assert_eq!(site.reply(reply).error(), (-32600, "0".into()));
    let reply = site.modern(&modern(1, "server/discover", ""));
    assert_eq!(site.reply(reply).status(), 200, "modern clients need none");
    site.delete(&first);
    site.open(Revision::V2025_11_25, "{}");
}

#[test]
fn a_session_that_is_not_used_expires() {
    // Rule: [SESS-007] [SESS-008].
    let mut site = site();
    let session = site.open(Revision::V2025_11_25, "{}");
    site.advance(29 * MINUTE);
    let reply = site.post(&session, &request(1, "ping", "{}"));
    assert_eq!(site.reply(reply).status(), 200);
    site.advance(30 * MINUTE - Duration::from_millis(1));
    assert_eq!(site.server.session_count(), 1);
    site.advance(Duration::from_millis(1));
    assert_eq!(site.server.session_count(), 0);
    let reply = site.post(&session, &call(1));
    assert_eq!(site.reply(reply).status(), 404);
    site.expect_empty();
}

#[test]
fn a_session_that_is_not_confirmed_expires_soon() {
    let mut site = site();
    let session = site.open_unconfirmed(Revision::V2025_03_26, "{}");
    let confirmed = site.open_unconfirmed(Revision::V2025_03_26, "{}");
    // The confirmation may come in a batch.
    site.post(&confirmed, &format!("[{INITIALIZED}]"));
    site.advance(MINUTE);
    assert_eq!(site.server.session_count(), 1);
    let gone = site.post(&session, INITIALIZED);
    assert_eq!(site.reply(gone).status(), 404);
}

#[test]
fn a_session_does_not_expire_while_a_stream_is_open_or_work_is_under_way() {
    let mut site = site();
    let session = site.open(Revision::V2025_11_25, "{}");
    let stream = site.get(&session);
    site.advance(90 * MINUTE);
    site.disconnect(stream);
    site.advance(29 * MINUTE);
    assert_eq!(site.server.session_count(), 1, "the clock starts when the stream ends");
    let reply = site.post(&session, &call(1));
    site.advance(60 * MINUTE);
    site.disconnect(reply);
    site.advance(60 * MINUTE);
    assert_eq!(site.server.session_count(), 1, "the request is still under way");
    site.answer();
    site.advance(29 * MINUTE);
    assert_eq!(site.server.session_count(), 1, "the clock starts when the work ends");
    site.advance(MINUTE);
    site.expect_empty();
}

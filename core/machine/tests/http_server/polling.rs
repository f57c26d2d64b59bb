//! Connections that the server closes, and clients that poll.

use std::time::Duration;

use mcp_sansio::Revision;

use crate::reply::State;
use crate::words::*;

const RETRY: Duration = Duration::from_millis(1500);

#[test]
fn a_connection_is_released_and_the_client_comes_back() {
    // Rule: [SSE-005] [SSE-006] [SSE-007].
    let mut site = site();
    let session = site.open(Revision::V2025_11_25, "{}");
    let reply = site.post(&session, &call(1));
    let asked = site.asked();
    site.server.release_connection(asked.handle, RETRY);
    site.pump();
    assert_eq!(site.reply(reply).transcript(), "200 text/event-stream\nid=2-0 \nretry=1500 \nend");
    site.progress(asked.handle, 1.0);
    let back = site.resume(&session, "2-0");
    assert_eq!(site.reply(back).messages().len(), 1);
    // Once more, in the middle.
    site.server.release_connection(asked.handle, RETRY);
    site.server.release_connection(asked.handle, RETRY);
    site.pump();
    assert_eq!(site.reply(back).state, State::Complete);
    let retries = site.reply(back).events().iter().filter(|it| it.retry.is_some()).count();
    assert_eq!(retries, 2, "the one that was missed, and one more");
    site.answer_to(asked.handle);
    let last = site.reply(back).last_id().unwrap();
    let end = site.resume(&session, &last);
    assert_eq!(site.reply(end).messages()[0]["id"], 1);
    assert_eq!(site.reply(end).state, State::Complete);
    site.server.release_connection(asked.handle, RETRY);
    site.pump();
}

#[test]
fn no_other_revision_is_polled() {
    // Rule: [SSE-002] [SSE-006].
    let mut site = site_with(timeouts(|timeouts| timeouts.poll_after = Some(RETRY)));
    for revision in [Revision::V2024_11_05, Revision::V2025_03_26, Revision::V2025_06_18] {
        let session = site.open(revision, "{}");
        let (stream, reply) = (site.get(&session), site.post(&session, &call(1)));
        let asked = site.asked();
        site.progress(asked.handle, 1.0);
        site.server.release_connection(asked.handle, RETRY);
        site.advance(Duration::from_secs(60));
        for ticket in [stream, reply] {
            assert_eq!(site.reply(ticket).state, State::UnderWay, "{revision}");
            assert!(site.reply(ticket).events().iter().all(|event| event.retry.is_none()));
        }
        site.answer_to(asked.handle);
    }
    let modern = site.modern(&modern_call(1));
    let asked = site.asked();
    site.progress(asked.handle, 1.0);
    site.server.release_connection(asked.handle, RETRY);
    site.advance(Duration::from_secs(60));
    assert_eq!(site.reply(modern).state, State::UnderWay);
}

#[test]
fn connections_do_not_last_longer_than_the_server_wants() {
    // Rule: [SSE-006] [SSE-007] [HSRV-014].
    let mut site = site_with(timeouts(|timeouts| {
        timeouts.poll_after = Some(Duration::from_secs(20));
        timeouts.retry = Duration::from_millis(250);
    }));
    let session = site.open(Revision::V2025_11_25, "{}");
    let (stream, reply) = (site.get(&session), site.post(&session, &call(1)));
    let asked = site.asked();
    site.progress(asked.handle, 1.0);
    site.advance(Duration::from_secs(19));
    assert!(!site.reply(stream).is_over() && !site.reply(reply).is_over());
    site.advance(Duration::from_secs(1));
    for ticket in [stream, reply] {
        let reply = site.reply(ticket);
        assert_eq!(reply.state, State::Complete);
        assert_eq!(reply.events().last().unwrap().retry.as_deref(), Some("250"));
        assert!(reply.last_id().is_some());
    }
    let last = site.reply(reply).last_id().unwrap();
    let back = site.resume(&session, &last);
    site.answer_to(asked.handle);
    assert_eq!(site.reply(back).messages()[0]["id"], 1);
    let news = site.resume(&session, "0-0");
    site.tools_changed();
    assert_eq!(site.reply(news).messages().len(), 1);
}

#[test]
fn a_connection_that_never_opened_is_closed_as_soon_as_it_has() {
    let mut site = site();
    let session = site.open(Revision::V2025_11_25, "{}");
    let reply = site.post_unread(&session, &call(1));
    let asked = site.asked();
    site.server.release_connection(asked.handle, RETRY);
    site.server.release_connection(asked.handle, RETRY);
    site.answer_to(asked.handle);
    site.read(reply, usize::MAX);
    // What came before the connection could close is not held back.
    assert_eq!(site.reply(reply).messages()[0]["id"], 1);
    assert_eq!(site.reply(reply).state, State::Complete);
}

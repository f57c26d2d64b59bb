//! Connections that the server closes, and clients that poll.

use std::time::Duration;

use mcp_sansio::Revision;

use crate::fixtures::*;
use crate::reply::State;

const RETRY: Duration = Duration::from_millis(1500);

#[test]
fn a_connection_is_released_and_the_client_reconnects() {
    // Rule: [SSE-005] [SSE-006] [SSE-007].
    let mut server = server();
    let session = server.open(Revision::V2025_11_25, "{}");
    let reply = server.post(&session, &call(1));
    let asked = server.asked();
    server.server.release_connection(asked.handle, RETRY);
    server.pump();
    assert_eq!(
        server.reply(reply).transcript(),
        "200 text/event-stream\nid=2-0 \nretry=1500 \nend"
    );
    server.progress(asked.handle, 1.0);
    let back = server.resume(&session, "2-0");
    assert_eq!(server.reply(back).messages().len(), 1);
    // Released again, while the stream is open.
    server.server.release_connection(asked.handle, RETRY);
    server.server.release_connection(asked.handle, RETRY);
    server.pump();
    assert_eq!(server.reply(back).state, State::Complete);
    let retries = server.reply(back).events().iter().filter(|it| it.retry.is_some()).count();
    assert_eq!(retries, 2, "the missed one and one more");
    server.answer_to(asked.handle);
    let last = server.reply(back).last_id().unwrap();
    let end = server.resume(&session, &last);
    assert_eq!(server.reply(end).messages()[0]["id"], 1);
    assert_eq!(server.reply(end).state, State::Complete);
    server.server.release_connection(asked.handle, RETRY);
    server.pump();
}

#[test]
fn other_revisions_are_not_polled() {
    // Rule: [SSE-002] [SSE-006].
    let mut server = server_with(timeouts(|timeouts| timeouts.poll_after = Some(RETRY)));
    for revision in [Revision::V2024_11_05, Revision::V2025_03_26, Revision::V2025_06_18] {
        let session = server.open(revision, "{}");
        let (stream, reply) = (server.get(&session), server.post(&session, &call(1)));
        let asked = server.asked();
        server.progress(asked.handle, 1.0);
        server.server.release_connection(asked.handle, RETRY);
        server.advance(Duration::from_secs(60));
        for ticket in [stream, reply] {
            assert_eq!(server.reply(ticket).state, State::UnderWay, "{revision}");
            assert!(server.reply(ticket).events().iter().all(|event| event.retry.is_none()));
        }
        server.answer_to(asked.handle);
    }
    let modern = server.modern(&modern_call(1));
    let asked = server.asked();
    server.progress(asked.handle, 1.0);
    server.server.release_connection(asked.handle, RETRY);
    server.advance(Duration::from_secs(60));
    assert_eq!(server.reply(modern).state, State::UnderWay);
}

#[test]
fn connections_are_closed_after_the_configured_time() {
    // Rule: [SSE-006] [SSE-007] [HSRV-014].
    let mut server = server_with(timeouts(|timeouts| {
        timeouts.poll_after = Some(Duration::from_secs(20));
        timeouts.retry = Duration::from_millis(250);
    }));
    let session = server.open(Revision::V2025_11_25, "{}");
    let (stream, reply) = (server.get(&session), server.post(&session, &call(1)));
    let asked = server.asked();
    server.progress(asked.handle, 1.0);
    server.advance(Duration::from_secs(19));
    assert!(!server.reply(stream).is_over() && !server.reply(reply).is_over());
    server.advance(Duration::from_secs(1));
    for ticket in [stream, reply] {
        let reply = server.reply(ticket);
        assert_eq!(reply.state, State::Complete);
        assert_eq!(reply.events().last().unwrap().retry.as_deref(), Some("250"));
        assert!(reply.last_id().is_some());
    }
    let last = server.reply(reply).last_id().unwrap();
    let back = server.resume(&session, &last);
    server.answer_to(asked.handle);
    assert_eq!(server.reply(back).messages()[0]["id"], 1);
    let news = server.resume(&session, "0-0");
    server.tools_changed();
    assert_eq!(server.reply(news).messages().len(), 1);
}

#[test]
fn a_released_connection_is_closed_once_it_has_opened() {
    let mut server = server();
    let session = server.open(Revision::V2025_11_25, "{}");
    let reply = server.post_unread(&session, &call(1));
    let asked = server.asked();
    server.server.release_connection(asked.handle, RETRY);
    server.server.release_connection(asked.handle, RETRY);
    server.answer_to(asked.handle);
    server.read(reply, usize::MAX);
    // Messages that are sent before the connection is closed are not delayed.
    assert_eq!(server.reply(reply).messages()[0]["id"], 1);
    assert_eq!(server.reply(reply).state, State::Complete);
}

//! Output that depends on time only.

use std::time::Duration;

use mcp_sansio::Revision;

use crate::fixtures::*;
use crate::reply::State;

const SECOND: Duration = Duration::from_secs(1);

fn comments(server: &crate::test_server::TestServer, ticket: usize) -> usize {
    server.reply(ticket).events().iter().filter(|event| event.comment).count()
}

#[test]
fn an_idle_stream_gets_keep_alive_comments() {
    // Rule: [SSE-014].
    let mut server = server();
    let session = server.open(Revision::V2025_11_25, "{}");
    let stream = server.get(&session);
    for _ in 0..10 {
        server.advance(14 * SECOND);
        server.tools_changed();
    }
    assert_eq!(comments(&server, stream), 0);
    server.advance(14 * SECOND);
    assert_eq!(comments(&server, stream), 0);
    server.advance(SECOND);
    assert_eq!(comments(&server, stream), 1);
    server.advance(45 * SECOND);
    assert_eq!(comments(&server, stream), 4);
}

#[test]
fn a_slow_request_gets_comments_until_it_is_answered() {
    let mut server = server();
    let replies = [
        {
            let session = server.open(Revision::V2025_03_26, "{}");
            server.post(&session, &call(1))
        },
        server.modern(&modern_call(1)),
    ];
    server.advance(65 * SECOND);
    for reply in replies {
        assert_eq!(comments(&server, reply), 4);
        server.answer();
        assert_eq!(server.reply(reply).state, State::Complete);
    }
    server.advance(60 * SECOND);
    assert!(replies.iter().all(|reply| comments(&server, *reply) == 4));
}

#[test]
fn idle_machines_produce_no_output() {
    let mut server = server_with(timeouts(|timeouts| {
        timeouts.open_stream = None;
        timeouts.keep_alive = None;
    }));
    let reply = server.modern(&modern_call(1));
    assert_eq!(server.server.poll_timeout(), None);
    server.advance(100_000 * SECOND);
    assert_eq!(server.reply(reply).status, None);
}

#[test]
fn an_unpolled_stream_costs_no_more_than_any_stream() {
    let mut server = server();
    let session = server.open(Revision::V2025_11_25, "{}");
    let stuck = server.post_unread(&session, &call(1));
    let asked = server.asked();
    server.advance(3600 * SECOND);
    let other = server.post(&session, &call(2));
    server.answer();
    assert_eq!(server.reply(other).status(), 200, "other requests are not delayed");
    server.answer_to(asked.handle);
    server.read(stuck, usize::MAX);
    assert_eq!(server.reply(stuck).messages()[0]["id"], 1);
}

#[test]
fn zero_intervals_do_not_loop() {
    let mut server = server_with(timeouts(|timeouts| {
        timeouts.open_stream = Some(Duration::ZERO);
        timeouts.keep_alive = Some(Duration::ZERO);
        timeouts.poll_after = Some(Duration::ZERO);
        timeouts.session_idle = Duration::ZERO;
        timeouts.session_unconfirmed = Duration::ZERO;
        timeouts.replay = Duration::ZERO;
    }));
    let session = server.open(Revision::V2025_11_25, "{}");
    server.get(&session);
    server.post(&session, &call(1));
    let modern = server.modern(&modern_call(1));
    server.advance(Duration::from_millis(20));
    assert!(comments(&server, modern) <= 21);
    server.answer();
    server.answer();
    server.advance(Duration::from_millis(20));
    server.expect_empty();
}

#[test]
fn a_stream_that_ended_unread_is_not_closed_again_and_again() {
    let mut server = server_with(timeouts(|timeouts| {
        timeouts.poll_after = Some(12 * SECOND);
        timeouts.keep_alive = None;
    }));
    let session = server.open(Revision::V2025_11_25, "{}");
    let stuck = server.post_unread(&session, &call(1));
    // The head is read, and nothing after it.
    server.advance(5 * SECOND);
    server.read(stuck, 1);
    server.answer();
    let mut wake_ups = 0;
    let end = server.now + 60 * SECOND;
    while let Some(due) = server.server.poll_timeout().filter(|due| *due <= end) {
        server.server.handle_timeout(due);
        wake_ups += 1;
        assert!(wake_ups <= 2, "another one at {due:?}");
    }
    assert_eq!(wake_ups, 1);
    server.read(stuck, usize::MAX);
    assert_eq!(server.reply(stuck).messages()[0]["id"], 1);
}

#[test]
fn spurious_wake_ups_do_nothing() {
    let mut server = server();
    let session = server.open(Revision::V2025_11_25, "{}");
    let (stream, reply) = (server.get(&session), server.post(&session, &call(1)));
    let before = (server.reply(stream).transcript(), server.server.poll_timeout());
    for _ in 0..3 {
        server.server.handle_timeout(server.now);
        server.pump();
    }
    assert_eq!((server.reply(stream).transcript(), server.server.poll_timeout()), before);
    assert_eq!(server.reply(reply).status, None);
}

//! What happens when nothing else does.

use std::time::Duration;

use mcp_sansio::Revision;

use crate::reply::State;
use crate::words::*;

const SECOND: Duration = Duration::from_secs(1);

fn comments(site: &crate::site::Site, ticket: usize) -> usize {
    site.reply(ticket).events().iter().filter(|event| event.comment).count()
}

#[test]
fn a_stream_shows_life_after_silence_and_not_otherwise() {
    // Rule: [SSE-014].
    let mut site = site();
    let session = site.open(Revision::V2025_11_25, "{}");
    let stream = site.get(&session);
    for _ in 0..10 {
        site.advance(14 * SECOND);
        site.tools_changed();
    }
    assert_eq!(comments(&site, stream), 0);
    site.advance(14 * SECOND);
    assert_eq!(comments(&site, stream), 0);
    site.advance(SECOND);
    assert_eq!(comments(&site, stream), 1);
    site.advance(45 * SECOND);
    assert_eq!(comments(&site, stream), 4);
}

#[test]
fn a_request_that_takes_long_gets_comments_until_it_is_answered() {
    let mut site = site();
    let replies = [
        {
            let session = site.open(Revision::V2025_03_26, "{}");
            site.post(&session, &call(1))
        },
        site.modern(&modern_call(1)),
    ];
    site.advance(65 * SECOND);
    for reply in replies {
        assert_eq!(comments(&site, reply), 4);
        site.answer();
        assert_eq!(site.reply(reply).state, State::Complete);
    }
    site.advance(60 * SECOND);
    assert!(replies.iter().all(|reply| comments(&site, *reply) == 4));
}

#[test]
fn nothing_happens_by_itself_where_nothing_is_wanted() {
    let mut site = site_with(timeouts(|timeouts| {
        timeouts.open_stream = None;
        timeouts.keep_alive = None;
    }));
    let reply = site.modern(&modern_call(1));
    assert_eq!(site.server.poll_timeout(), None);
    site.advance(100_000 * SECOND);
    assert_eq!(site.reply(reply).status, None);
}

#[test]
fn a_stream_that_nobody_polls_costs_no_more_than_a_stream() {
    let mut site = site();
    let session = site.open(Revision::V2025_11_25, "{}");
    let stuck = site.post_unread(&session, &call(1));
    let asked = site.asked();
    site.advance(3600 * SECOND);
    let other = site.post(&session, &call(2));
    site.answer();
    assert_eq!(site.reply(other).status(), 200, "it holds up no other");
    site.answer_to(asked.handle);
    site.read(stuck, usize::MAX);
    assert_eq!(site.reply(stuck).messages()[0]["id"], 1);
}

#[test]
fn pauses_of_nothing_make_no_loop() {
    let mut site = site_with(timeouts(|timeouts| {
        timeouts.open_stream = Some(Duration::ZERO);
        timeouts.keep_alive = Some(Duration::ZERO);
        timeouts.poll_after = Some(Duration::ZERO);
        timeouts.session_idle = Duration::ZERO;
        timeouts.session_unconfirmed = Duration::ZERO;
        timeouts.replay = Duration::ZERO;
    }));
    let session = site.open(Revision::V2025_11_25, "{}");
    site.get(&session);
    site.post(&session, &call(1));
    let modern = site.modern(&modern_call(1));
    site.advance(Duration::from_millis(20));
    assert!(comments(&site, modern) <= 21);
    site.answer();
    site.answer();
    site.advance(Duration::from_millis(20));
    site.expect_empty();
}

#[test]
fn spurious_wake_ups_do_nothing() {
    let mut site = site();
    let session = site.open(Revision::V2025_11_25, "{}");
    let (stream, reply) = (site.get(&session), site.post(&session, &call(1)));
    let before = (site.reply(stream).transcript(), site.server.poll_timeout());
    for _ in 0..3 {
        site.server.handle_timeout(site.now);
        site.pump();
    }
    assert_eq!((site.reply(stream).transcript(), site.server.poll_timeout()), before);
    assert_eq!(site.reply(reply).status, None);
}

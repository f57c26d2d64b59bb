//! Clients that go away, at every point of a response; and handles that mean nothing any more.

use mcp_sansio::Revision;
use mcp_sansio::peer::CommandError;

use crate::reply::State;
use crate::site::Site;
use crate::words::*;

/// Takes an exchange to a point of its life; whether it is under way there.
fn walk(site: &mut Site, ticket: usize, handle: mcp_sansio::peer::RequestHandle, point: u32) {
    match point {
        // Waiting.
        0 => {}
        // Whole, and not taken.
        1 => site.answer_to(handle),
        // Opening.
        2 => site.progress(handle, 1.0),
        // Streaming: the head has left.
        3 => {
            site.progress(handle, 1.0);
            site.read(ticket, 1);
        }
        // Streaming, all taken.
        4 => {
            site.progress(handle, 1.0);
            site.read(ticket, 9);
        }
        // Done, and in part taken.
        5 => {
            site.progress(handle, 1.0);
            site.read(ticket, 1);
            site.answer_to(handle);
        }
        // All taken but the end.
        _ => {
            site.progress(handle, 1.0);
            site.answer_to(handle);
            site.read(ticket, 2);
        }
    }
}

#[test]
fn a_client_may_go_at_any_point() {
    // Rule: [SSE-011] [CANC-012] [CANC-015].
    for revision in [Revision::V2024_11_05, Revision::V2025_03_26, Revision::V2025_11_25] {
        for point in 0..7 {
            let mut site = site();
            let session = site.open(revision, "{}");
            let ticket = site.post_unread(&session, &call(1));
            let handle = site.asked().handle;
            walk(&mut site, ticket, handle, point);
            site.disconnect(ticket);
            site.disconnect(ticket);
            site.expect_no_event();
            assert_eq!(site.server.exchange_count(), 0);
            // The request goes on, unless it is answered already.
            let due = matches!(point, 0 | 2 | 3 | 4);
            assert_eq!(site.server.respond_with(handle, &raw("{}"), site.now).is_ok(), due);
            site.pump();
            site.delete(&session);
            site.expect_empty();
        }
    }
    for point in 0..7 {
        let mut site = site();
        let body = modern_call(1);
        let ticket = site.request_unread("POST", "/mcp", &header_of(&body).fields(), &body);
        let handle = site.asked().handle;
        walk(&mut site, ticket, handle, point);
        site.disconnect(ticket);
        if matches!(point, 0 | 2 | 3 | 4) {
            assert_eq!(site.cancelled(), handle, "at point {point}");
        }
        site.expect_no_event();
        site.expect_empty();
    }
}

#[test]
fn the_client_of_a_refusal_may_go_as_well() {
    let mut site = site();
    let ticket = site.request_unread("POST", "/mcp", &POST, "{");
    site.disconnect(ticket);
    site.events.clear();
    site.expect_empty();
}

#[test]
fn a_handle_serves_once_and_in_its_own_place() {
    let mut site = site();
    let session = site.open(Revision::V2025_11_25, "{}");
    site.post(&session, &call(1));
    let legacy = site.asked().handle;
    site.answer_to(legacy);
    site.modern(&modern_call(1));
    let modern = site.asked().handle;
    site.answer_to(modern);
    // Other requests stand where these stood.
    let replies = [site.post(&session, &call(2)), site.modern(&modern_call(2))];
    let next = [site.asked().handle, site.asked().handle];
    for stale in [legacy, modern] {
        let late = site.server.respond_with(stale, &raw("{}"), site.now);
        assert!(matches!(late, Err(CommandError::NotDue)));
        site.progress(stale, 5.0);
        assert_eq!(site.server.principal(stale), None);
    }
    // A handle of another server's is none here.
    let mut elsewhere = crate::words::site();
    elsewhere.modern(&modern_call(1));
    elsewhere.modern(&modern_call(2));
    elsewhere.modern(&modern_call(3));
    elsewhere.events.drain(..2).for_each(drop);
    let foreign = elsewhere.asked().handle;
    let late = site.server.respond_with(foreign, &raw("{}"), site.now);
    assert!(matches!(late, Err(CommandError::NotDue)));
    next.into_iter().for_each(|handle| site.answer_to(handle));
    assert!(replies.into_iter().all(|reply| site.reply(reply).state == State::Complete));
}

#[test]
fn a_reader_that_takes_nothing_holds_up_nobody() {
    let mut site = site();
    let session = site.open(Revision::V2025_11_25, "{}");
    let stuck = site.post_unread(&session, &call(1));
    let fine = site.post(&session, &call(2));
    let modern = site.modern(&modern_call(3));
    let handles = [site.asked().handle, site.asked().handle, site.asked().handle];
    for round in 0..100 {
        for handle in handles {
            site.progress(handle, f64::from(round));
        }
    }
    for handle in handles {
        site.answer_to(handle);
    }
    for reply in [fine, modern] {
        assert_eq!(site.reply(reply).messages().len(), 101);
        assert_eq!(site.reply(reply).state, State::Complete);
    }
    assert_eq!(site.reply(stuck).status, None);
    site.read(stuck, usize::MAX);
    assert_eq!(site.reply(stuck).messages().len(), 101);
}

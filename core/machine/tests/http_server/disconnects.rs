//! Clients that disconnect at every point of a response, and stale handles.

use mcp_sansio::Revision;
use mcp_sansio::peer::{CommandError, ServerMachine};

use crate::fixtures::*;
use crate::reply::State;
use crate::test_server::TestServer;

/// Moves an exchange to a point of its life.
fn walk(
    server: &mut TestServer,
    ticket: usize,
    handle: mcp_sansio::peer::RequestHandle,
    point: u32,
) {
    match point {
        // Waiting.
        0 => {}
        // Complete and unread.
        1 => server.answer_to(handle),
        // Opening.
        2 => server.progress(handle, 1.0),
        // Streaming, after the head.
        3 => {
            server.progress(handle, 1.0);
            server.read(ticket, 1);
        }
        // Streaming, with everything read.
        4 => {
            server.progress(handle, 1.0);
            server.read(ticket, 9);
        }
        // Complete and partly read.
        5 => {
            server.progress(handle, 1.0);
            server.read(ticket, 1);
            server.answer_to(handle);
        }
        // Everything read except the end.
        _ => {
            server.progress(handle, 1.0);
            server.answer_to(handle);
            server.read(ticket, 2);
        }
    }
}

#[test]
fn a_client_can_disconnect_at_any_point() {
    // Rule: [SSE-011] [CANC-012] [CANC-015].
    for revision in [Revision::V2024_11_05, Revision::V2025_03_26, Revision::V2025_11_25] {
        for point in 0..7 {
            let mut server = server();
            let session = server.open(revision, "{}");
            let ticket = server.post_unread(&session, &call(1));
            let handle = server.asked().handle;
            walk(&mut server, ticket, handle, point);
            server.disconnect(ticket);
            server.disconnect(ticket);
            server.expect_no_event();
            assert_eq!(server.server.exchange_count(), 0);
            // The request continues, unless it has been answered.
            let due = matches!(point, 0 | 2 | 3 | 4);
            assert_eq!(server.server.respond_with(handle, &raw("{}"), server.now).is_ok(), due);
            server.pump();
            server.delete(&session);
            server.expect_empty();
        }
    }
    for point in 0..7 {
        let mut server = server();
        let body = modern_call(1);
        let ticket = server.request_unread("POST", "/mcp", &header_of(&body).fields(), &body);
        let handle = server.asked().handle;
        walk(&mut server, ticket, handle, point);
        server.disconnect(ticket);
        if matches!(point, 0 | 2 | 3 | 4) {
            assert_eq!(server.cancelled(), handle, "at point {point}");
        }
        server.expect_no_event();
        server.expect_empty();
    }
}

#[test]
fn the_client_of_a_refusal_can_disconnect() {
    let mut server = server();
    let ticket = server.request_unread("POST", "/mcp", &POST, "{");
    server.disconnect(ticket);
    server.events.clear();
    server.expect_empty();
}

#[test]
fn a_handle_is_valid_once_and_on_its_own_server() {
    let mut server = server();
    let session = server.open(Revision::V2025_11_25, "{}");
    server.post(&session, &call(1));
    let legacy = server.asked().handle;
    server.answer_to(legacy);
    server.modern(&modern_call(1));
    let modern = server.asked().handle;
    server.answer_to(modern);
    // Other requests use the slots of the first ones.
    let replies = [server.post(&session, &call(2)), server.modern(&modern_call(2))];
    let next = [server.asked().handle, server.asked().handle];
    for stale in [legacy, modern] {
        let late = server.server.respond_with(stale, &raw("{}"), server.now);
        assert!(matches!(late, Err(CommandError::NotDue)));
        server.progress(stale, 5.0);
    }
    // A handle of another server is not valid here.
    let mut elsewhere = crate::fixtures::server();
    elsewhere.modern(&modern_call(1));
    elsewhere.modern(&modern_call(2));
    elsewhere.modern(&modern_call(3));
    elsewhere.events.drain(..2).for_each(drop);
    let foreign = elsewhere.asked().handle;
    let late = server.server.respond_with(foreign, &raw("{}"), server.now);
    assert!(matches!(late, Err(CommandError::NotDue)));
    next.into_iter().for_each(|handle| server.answer_to(handle));
    assert!(replies.into_iter().all(|reply| server.reply(reply).state == State::Complete));
}

#[test]
fn a_stalled_reader_does_not_block_others() {
    let mut server = server();
    let session = server.open(Revision::V2025_11_25, "{}");
    let stuck = server.post_unread(&session, &call(1));
    let fine = server.post(&session, &call(2));
    let modern = server.modern(&modern_call(3));
    let handles = [server.asked().handle, server.asked().handle, server.asked().handle];
    for round in 0..100 {
        for handle in handles {
            server.progress(handle, f64::from(round));
        }
    }
    for handle in handles {
        server.answer_to(handle);
    }
    for reply in [fine, modern] {
        assert_eq!(server.reply(reply).messages().len(), 101);
        assert_eq!(server.reply(reply).state, State::Complete);
    }
    assert_eq!(server.reply(stuck).status, None);
    server.read(stuck, usize::MAX);
    assert_eq!(server.reply(stuck).messages().len(), 101);
}

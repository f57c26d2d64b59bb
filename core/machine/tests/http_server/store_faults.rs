//! An event store that fails, is late, or is overloaded.

use std::time::Duration;

use mcp_sansio::http::{
    EventPosition, NotStored, ServerLimits, ServerTimeouts, SessionId, StoredEvent,
};
use mcp_sansio::{Principal, Revision};

use crate::fixtures::*;
use crate::reply::State;
use crate::resumption::heard;
use crate::test_store::*;

#[test]
fn store_failures_and_gaps_are_reported_as_loss() {
    // Rule: [RESUME-006].
    type Spoil = fn(Vec<StoredEvent>) -> Result<Vec<StoredEvent>, NotStored>;
    let spoils: [Spoil; 5] = [
        |_| Err(NotStored),
        |_| Ok(Vec::new()),
        |mut found| {
            found.remove(0);
            Ok(found)
        },
        |mut found| {
            found.swap(0, 1);
            Ok(found)
        },
        |mut found| {
            found[1] = found[0].clone();
            Ok(found)
        },
    ];
    for spoil in spoils {
        let (mut server, mut store) = (stored_server(), TestStore::default());
        let (session, handle, back) = behind(&mut server, &mut store);
        let (read, from) = store.read(&mut server);
        let found = store.find(&from, 2, usize::MAX);
        complete(&mut server, read, spoil(found));
        assert_eq!(server.reply(back).status(), 410);
        // The call continues, and the store is read again.
        server.answer_to(handle);
        let again = server.resume(&session, "2-0");
        store.serve(&mut server);
        assert_eq!(heard(&server, again).len(), 7);
    }
}

#[test]
fn a_late_gap_ends_the_stream_and_is_reported_on_reconnection() {
    let (mut server, mut store) = (stored_server(), TestStore::default());
    let (session, handle, back) = behind(&mut server, &mut store);
    let stream = store.events.values_mut().next().unwrap();
    assert!(stream.remove(&4).is_some());
    server.answer_to(handle);
    store.serve(&mut server);
    assert_eq!(heard(&server, back), ["2", "3"]);
    assert_eq!(server.reply(back).state, State::Complete);
    let again = server.resume(&session, &server.reply(back).last_id().unwrap());
    store.serve(&mut server);
    assert_eq!(server.reply(again).status(), 410);
}

#[test]
fn events_of_another_stream_are_never_sent() {
    // Rule: [RESUME-007] [SESS-014].
    let spoils: [fn(&mut EventPosition, SessionId); 4] = [
        |position, other| position.session = other,
        |position, _| position.stream += 1,
        |position, _| position.principal = None,
        |position, _| position.principal = Some(Principal::new("mallory")),
    ];
    for (at, spoil) in spoils.into_iter().enumerate() {
        for event in 0..2 {
            let (mut server, mut store) = (stored_server(), TestStore::default());
            server.principal = Some(Principal::new("alice"));
            let other = server.open(Revision::V2025_11_25, "{}");
            let other = SessionId::parse(other.id.as_bytes()).unwrap();
            let (_, _, back) = behind(&mut server, &mut store);
            let (read, from) = store.read(&mut server);
            assert_eq!(from.principal, server.principal);
            let mut found = store.find(&from, 2, usize::MAX);
            spoil(&mut found[event].position, other);
            complete(&mut server, read, Ok(found));
            assert_eq!(server.reply(back).status(), 410, "{at}");
        }
    }
}

#[test]
fn another_caller_cannot_read_a_stream() {
    // Rule: [SESS-014] [RESUME-007].
    let (mut server, mut store) = (stored_server(), TestStore::default());
    server.principal = Some(Principal::new("alice"));
    let other = server.open(Revision::V2025_11_25, "{}");
    let (session, ..) = behind(&mut server, &mut store);
    let (read, _) = store.read(&mut server);
    let stolen = server.resume(&other, "2-0");
    assert_eq!(server.reply(stolen).status(), 400);
    server.principal = Some(Principal::new("mallory"));
    let stolen = server.resume(&session, "2-0");
    assert_eq!(server.reply(stolen).status(), 404);
    assert_eq!(server.server.poll_store(), None);
    let _ = read;
}

#[test]
fn an_unexpected_elicitation_completion_is_ignored() {
    let (mut server, mut store) = (stored_server(), TestStore::default());
    let (session, handle, back) = behind(&mut server, &mut store);
    let (read, from) = store.read(&mut server);
    let found = store.find(&from, 2, usize::MAX);
    // The client disconnects and resumes, which starts another read.
    server.disconnect(back);
    complete(&mut server, read, Ok(found.clone()));
    let again = server.resume(&session, "2-0");
    complete(&mut server, read, Ok(found.clone()));
    complete(&mut server, read, Err(NotStored));
    assert_eq!(server.reply(again).status, None);
    let (next, from) = store.read(&mut server);
    assert_ne!(next, read);
    let first = store.find(&from, 2, usize::MAX);
    complete(&mut server, next, Ok(first.clone()));
    complete(&mut server, next, Ok(first));
    store.serve(&mut server);
    server.answer_to(handle);
    assert_eq!(heard(&server, again).len(), 7);
    server.delete(&session);
    complete(&mut server, next, Ok(found));
    store.serve(&mut server);
    server.expect_empty();
}

#[test]
fn a_read_times_out() {
    let (mut server, mut store) = (stored_server(), TestStore::default());
    let (_, _, back) = behind(&mut server, &mut store);
    server.advance(Duration::from_millis(9_999));
    assert_eq!(server.reply(back).status, None);
    server.advance(Duration::from_millis(1));
    assert_eq!(server.reply(back).status(), 410);
    assert_eq!(server.server.poll_store(), None);

    // A response that has begun is ended.
    let mut timeouts = ServerTimeouts::default();
    timeouts.store_read = Duration::from_secs(40);
    let options = options(|_| ()).timeouts(timeouts);
    let (mut server, mut store) = (server_with(options), TestStore::default());
    let (_, _, back) = behind(&mut server, &mut store);
    let (read, from) = store.read(&mut server);
    let found = store.find(&from, 2, usize::MAX);
    complete(&mut server, read, Ok(found));
    server.advance(Duration::from_secs(39));
    let comments = server.reply(back).events().iter().filter(|event| event.comment).count();
    assert_eq!(comments, 2, "comments keep the stream alive");
    server.advance(Duration::from_secs(1));
    assert_eq!(server.reply(back).state, State::Complete);
    assert_eq!(heard(&server, back), ["2", "3"]);
}

#[test]
fn store_actions_are_bounded_and_loss_is_reported() {
    // One caller gets all but one.
    let change = |limits: &mut ServerLimits| limits.store_actions_max = 5;
    let (mut server, mut store) = (server_with(options(change)), TestStore::default());
    let session = server.open(Revision::V2025_11_25, "{}");
    let (reply, handle) = call_with(&mut server, &session, 1, 6);
    assert_eq!(server.server.dropped_store_actions(), 3, "an id and three messages fit");
    server.disconnect(reply);
    // No loss has been reported yet: the client may retry.
    let busy = server.resume(&session, "2-0");
    assert_eq!(server.reply(busy).status(), 503);
    store.serve(&mut server);
    let gap = server.resume(&session, "2-3");
    store.serve(&mut server);
    assert_eq!(server.reply(gap).status(), 410);
    let recent = server.resume(&session, "2-5");
    assert_eq!(heard(&server, recent), ["6"]);
    server.answer_to(handle);

    // Without a driver that polls, the pending deletions are bounded as well.
    for id in 2..40 {
        let session = server.open(Revision::V2025_11_25, "{}");
        let (_, handle) = call_with(&mut server, &session, id, 2);
        server.answer_to(handle);
        server.delete(&session);
    }
    let mut count = 0;
    while server.server.poll_store().is_some() {
        count += 1;
    }
    assert!(count <= 8, "{count}");
}

#[test]
fn the_bytes_of_pending_store_actions_are_bounded() {
    let change = |limits: &mut ServerLimits| limits.store_bytes_max = 200;
    let (mut server, mut store) = (server_with(options(change)), TestStore::default());
    let session = server.open(Revision::V2025_11_25, "{}");
    let (reply, _) = call_with(&mut server, &session, 1, 6);
    store.take_actions(&mut server);
    let bytes: usize = store.events.values().flatten().map(|(_, message)| message.len()).sum();
    assert!(bytes > 0 && bytes <= 200, "{bytes}");
    let gap = server.resume(&session, &id_at(&server, reply, 0));
    store.serve(&mut server);
    assert_ne!(server.reply(gap).messages().len(), 6);
    assert!(server.reply(gap).is_over(), "it ends at the gap");
}

#[test]
fn readers_of_stored_events_are_bounded() {
    let change = |limits: &mut ServerLimits| limits.store_replays_max = 1;
    let (mut server, mut store) = (server_with(options(change)), TestStore::default());
    let (session, ..) = behind(&mut server, &mut store);
    let (reply, _) = call_with(&mut server, &session, 2, 4);
    let last = id_at(&server, reply, 0);
    let second = server.resume(&session, &last);
    assert_eq!(server.reply(second).status(), 503);
    assert_eq!(server.reply(reply).state, State::UnderWay, "other readers are not affected");
    store.serve(&mut server);
    let second = server.resume(&session, &last);
    store.serve(&mut server);
    assert_eq!(heard(&server, second).len(), 4);
}

#[test]
fn a_page_is_bounded_even_if_the_store_returns_more() {
    let change = |limits: &mut ServerLimits| limits.store_page_bytes_max = 1;
    let (mut server, mut store) = (server_with(options(change)), TestStore::default());
    let (_, handle, back) = behind(&mut server, &mut store);
    let (read, from) = store.read(&mut server);
    let all = store.find(&from, usize::MAX, usize::MAX);
    assert_eq!(all.len(), 5);
    complete(&mut server, read, Ok(all));
    assert_eq!(heard(&server, back), ["2"]);
    store.serve(&mut server);
    server.answer_to(handle);
    assert_eq!(heard(&server, back).len(), 6);
}

#[test]
fn debug_output_has_neither_principals_nor_messages() {
    let (mut server, mut store) = (stored_server(), TestStore::default());
    server.principal = Some(Principal::new("alice"));
    let (session, ..) = behind(&mut server, &mut store);
    let (read, from) = store.read(&mut server);
    let found = store.find(&from, 2, usize::MAX);
    let text = format!("{read:?} {from:?} {found:?}");
    for secret in ["alice", "progress", &*session.id] {
        assert!(!text.contains(secret), "{text}");
    }
}

#[test]
fn a_reader_on_a_released_connection_times_out() {
    let mut timeouts = ServerTimeouts::default();
    timeouts.store_read = Duration::from_secs(40);
    let mut server =
        server_with(options(|limits| limits.store_page_events_max = 1).timeouts(timeouts));
    let mut store = TestStore::default();
    let (_, handle, back) = behind(&mut server, &mut store);
    for page in 0..2 {
        let (read, from) = store.read(&mut server);
        let found = store.find(&from, 1, usize::MAX);
        complete(&mut server, read, Ok(found));
        if page == 0 {
            server.server.release_connection(handle, Duration::from_secs(1));
            server.pump();
        }
    }
    // The third page is missing.
    server.advance(Duration::from_secs(39));
    assert_eq!(server.reply(back).state, State::UnderWay);
    server.advance(Duration::from_secs(1));
    assert_eq!(server.reply(back).state, State::Complete);
    assert_eq!(heard(&server, back), ["2", "3"]);
}

#[test]
fn a_reader_without_an_event_id_is_notified_of_a_loss_once() {
    // Rule: [HSRV-016].
    let (mut server, mut store) = (stored_server(), TestStore::default());
    let session = server.open(Revision::V2025_11_25, "{}");
    for _ in 0..4 {
        server.tools_changed();
    }
    let lost = server.get(&session);
    let (read, _) = store.read(&mut server);
    complete(&mut server, read, Err(NotStored));
    assert_eq!(server.reply(lost).status(), 410);
    let rest = server.get(&session);
    store.take_actions(&mut server);
    assert!(store.reads.is_empty());
    assert_eq!(server.reply(rest).messages().len(), 1);
}

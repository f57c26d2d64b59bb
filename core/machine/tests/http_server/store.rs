//! An external event store, for clients that reconnect late.

use std::collections::BTreeMap;
use std::time::Duration;

use mcp_sansio::http::{ResponseMode, ServerLimits, SessionId};
use mcp_sansio::{Principal, Revision};
use serde_json::Value;

use crate::cuts::cut_step;
use crate::fixtures::*;
use crate::reply::{Reply, State};
use crate::resumption::heard;
use crate::test_store::*;

/// Returns the messages that a client has after `length` bytes.
fn messages_at(reply: &Reply, length: usize) -> Vec<Value> {
    let part = Reply {
        status: reply.status,
        fields: reply.fields.clone(),
        body: reply.body[..length].to_vec(),
        ..Reply::default()
    };
    part.messages()
}

#[test]
fn no_actions_are_produced_without_a_store() {
    let mut server = server_with(limits(|limits| limits.replay_events_max = 1));
    let session = server.open(Revision::V2025_11_25, "{}");
    let (reply, _) = call_with(&mut server, &session, 1, 3);
    let back = server.resume(&session, &id_at(&server, reply, 0));
    assert_eq!(server.reply(back).status(), 410);
    assert_eq!(server.server.poll_store(), None);
}

#[test]
fn an_interrupted_stream_loses_and_repeats_nothing() {
    // Rule: [RESUME-006] [RESUME-007].
    for revision in RESUMING {
        let mut server = server_with(options(|_| ()).answers(ResponseMode::Stream));
        let mut store = TestStore::default();
        let session = server.open(revision, "{}");
        let (reply, handle) = call_with(&mut server, &session, 1, 5);
        server.answer_to(handle);
        let (expected, length) = (server.reply(reply).messages(), server.reply(reply).body.len());
        assert_eq!(expected.len(), 6);
        for cut in (0..=length).step_by(cut_step()) {
            for late in [false, true] {
                let (reply, handle) = call_with(&mut server, &session, 1, 3);
                if late {
                    server.disconnect(reply);
                }
                server.progress(handle, 4.0);
                server.progress(handle, 5.0);
                server.answer_to(handle);
                store.serve(&mut server);
                let seen = cut.min(server.reply(reply).body.len());
                let mut messages = messages_at(server.reply(reply), seen);
                let Some(last) = server.reply(reply).last_id_at(seen) else { continue };
                let back = server.resume(&session, &last);
                store.serve(&mut server);
                assert_eq!(server.reply(back).status(), 200, "{revision} at {cut}");
                assert_eq!(server.reply(back).state, State::Complete);
                messages.extend(server.reply(back).messages());
                assert_eq!(messages, expected, "{revision} at {cut}, late: {late}");
            }
        }
        assert!(store.asked > 0);
        server.delete(&session);
        store.serve(&mut server);
        assert!(store.events.is_empty(), "everything is forgotten");
        server.expect_empty();
    }
}

#[test]
fn replays_that_are_cut_can_be_resumed() {
    // Rule: [RESUME-006]: the next replay continues after the part that was received.
    for revision in RESUMING {
        for step in (120..400).step_by(cut_step()) {
            let (mut server, mut store) = (stored_server(), TestStore::default());
            let session = server.open(revision, "{}");
            let (mut ticket, handle) = call_with(&mut server, &session, 1, 5);
            let (mut messages, mut last) = (Vec::new(), None);
            for round in 0..50 {
                match round {
                    2 => server.progress(handle, 6.0),
                    4 => server.answer_to(handle),
                    _ => {}
                }
                store.serve(&mut server);
                let reply = server.reply(ticket);
                let seen = step.min(reply.body.len());
                messages.extend(messages_at(reply, seen));
                last = reply.last_id_at(seen).or(last);
                if messages.iter().any(|it| it.get("id").is_some()) {
                    break;
                }
                if !server.reply(ticket).is_over() {
                    server.disconnect(ticket);
                }
                ticket = server.resume(&session, last.as_ref().expect("an id"));
                store.serve(&mut server);
                assert_eq!(server.reply(ticket).status(), 200);
            }
            let progress: Vec<_> =
                messages.iter().filter_map(|it| it["params"]["progress"].as_f64()).collect();
            assert_eq!(progress, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "{revision} in {step}");
            assert_eq!(messages.len(), 7);
        }
    }
}

#[test]
fn recent_events_are_replayed_without_a_read() {
    let (mut server, mut store) = (stored_server(), TestStore::default());
    let session = server.open(Revision::V2025_11_25, "{}");
    let (reply, handle) = call_with(&mut server, &session, 1, 3);
    server.disconnect(reply);
    let back = server.resume(&session, &id_at(&server, reply, 2));
    assert_eq!(heard(&server, back), ["3"]);
    server.answer_to(handle);
    store.serve(&mut server);
    assert_eq!((store.asked, heard(&server, back).len()), (0, 2));
    assert_eq!(store.events.values().map(BTreeMap::len).collect::<Vec<_>>(), [1 + 3 + 1]);
}

#[test]
fn events_during_a_read_follow_the_events_it_returns() {
    // Rule: [RESUME-006] [HSRV-017].
    let (mut server, mut store) = (stored_server(), TestStore::default());
    let (_, handle, back) = behind(&mut server, &mut store);
    server.progress(handle, 7.0);
    store.take_actions(&mut server);
    server.progress(handle, 8.0);
    assert_eq!(server.reply(back).status, None);
    // Page by page, with new events in between.
    let (read, from, events_max, bytes_max) = store.reads.remove(0);
    let found = store.find(&from, events_max, bytes_max);
    complete(&mut server, read, Ok(found));
    assert_eq!(heard(&server, back), ["2", "3"]);
    server.answer_to(handle);
    assert_eq!(heard(&server, back), ["2", "3"]);
    store.serve(&mut server);
    assert_eq!(heard(&server, back), ["2", "3", "4", "5", "6", "7", "8", "answer 1"]);
    assert_eq!(server.reply(back).state, State::Complete);
}

#[test]
fn the_next_page_is_read_when_the_last_is_taken() {
    let (mut server, mut store) = (stored_server(), TestStore::default());
    let session = server.open(Revision::V2025_11_25, "{}");
    let (reply, _) = call_with(&mut server, &session, 1, 6);
    server.disconnect(reply);
    let last = id_at(&server, reply, 0);
    let fields = session.fields();
    let own = [HOST, ("Accept", "text/event-stream"), ("Last-Event-ID", &*last)];
    let back = server.request_unread("GET", "/mcp", &join(&own, &fields), "");
    store.serve(&mut server);
    store.serve(&mut server);
    assert_eq!(store.asked, 1, "a client that reads nothing causes one read");
    server.read(back, usize::MAX);
    store.serve(&mut server);
    assert_eq!(heard(&server, back).len(), 6);
}

#[test]
fn a_read_for_a_disconnected_client_is_not_made() {
    let (mut server, mut store) = (stored_server(), TestStore::default());
    let (session, _, back) = behind(&mut server, &mut store);
    server.disconnect(back);
    assert_eq!(server.server.poll_store(), None);
    // A read is not made either if another reader took over the stream.
    let first = server.resume(&session, "2-0");
    let second = server.resume(&session, "2-1");
    assert_eq!(server.reply(first).transcript(), "200 text/event-stream\nend");
    let (_, from) = store.read(&mut server);
    assert_eq!((from.stream, from.sequence), (2, 2));
    server.disconnect(second);
    assert_eq!(server.server.exchange_count(), 0);
}

#[test]
fn several_clients_can_read_at_once() {
    let (mut server, mut store) = (stored_server(), TestStore::default());
    let session = server.open(Revision::V2025_11_25, "{}");
    let mut calls = Vec::new();
    for id in 1..6 {
        let (reply, handle) = call_with(&mut server, &session, id, 4);
        server.disconnect(reply);
        let back = server.resume(&session, &id_at(&server, reply, 0));
        calls.push((id, handle, back));
    }
    store.take_actions(&mut server);
    assert_eq!(store.reads.len(), 5);
    store.reads.reverse();
    store.serve(&mut server);
    for (id, handle, back) in calls {
        server.answer_to(handle);
        let answer = format!("answer {id}");
        assert_eq!(heard(&server, back), ["1", "2", "3", "4", &*answer]);
    }
}

#[test]
fn abandoned_calls_are_forgotten() {
    let (mut server, mut store) = (stored_server(), TestStore::default());
    server.principal = Some(Principal::new("alice"));
    let session = server.open(Revision::V2025_11_25, "{}");
    let (reply, handle) = call_with(&mut server, &session, 1, 3);
    server.answer_to(handle);
    store.take_actions(&mut server);
    assert_eq!(store.events.len(), 1);
    // A finished stream, after its time has expired.
    server.advance(Duration::from_secs(301));
    store.take_actions(&mut server);
    assert!(store.events.is_empty());
    let id = SessionId::parse(session.id.as_bytes()).unwrap();
    assert_eq!(store.forgotten, [(id, Some(2), server.principal.clone())]);
    let gone = server.resume(&session, &id_at(&server, reply, 0));
    assert_eq!(server.reply(gone).status(), 410);
    assert_eq!(server.server.poll_store(), None, "no read is needed");
    // The session, after it has expired.
    server.advance(Duration::from_secs(3600));
    store.take_actions(&mut server);
    assert_eq!(store.forgotten[1..], [(id, None, server.principal.clone())]);
    // A stream without messages has no stored events.
    let silent = server.open(Revision::V2025_11_25, "{}");
    server.delete(&silent);
    assert_eq!(server.server.poll_store(), None);
}

#[test]
fn a_session_that_ends_during_a_read_ends_the_response() {
    // Rule: [SESS-007] [SESS-008].
    let (mut server, mut store) = (stored_server(), TestStore::default());
    let (session, _, back) = behind(&mut server, &mut store);
    let (read, from) = store.read(&mut server);
    let found = store.find(&from, 2, usize::MAX);
    server.delete(&session);
    assert_eq!(server.reply(back).status(), 404);
    complete(&mut server, read, Ok(found));
    store.serve(&mut server);
    assert!(store.events.is_empty());
}

#[test]
fn a_connection_that_is_released_during_a_replay_ends_after_the_replay() {
    // Rule: [SSE-006] [RESUME-006].
    for released_before in [true, false] {
        let (mut server, mut store) = (stored_server(), TestStore::default());
        let (session, handle, back) = behind(&mut server, &mut store);
        if !released_before {
            let (read, from) = store.read(&mut server);
            let found = store.find(&from, 2, usize::MAX);
            complete(&mut server, read, Ok(found));
        }
        server.server.release_connection(handle, Duration::from_secs(3));
        server.pump();
        store.serve(&mut server);
        assert_eq!(server.reply(back).state, State::Complete);
        assert_eq!(heard(&server, back), ["2", "3", "4", "5", "6"]);
        server.answer_to(handle);
        let again = server.resume(&session, &server.reply(back).last_id().unwrap());
        store.serve(&mut server);
        assert_eq!(heard(&server, again), ["answer 1"]);
    }
}

#[test]
fn undelivered_notifications_come_from_the_store_without_an_event_id() {
    // Rule: [HSRV-016] [HSRV-017].
    for revision in RESUMING {
        let (mut server, mut store) = (stored_server(), TestStore::default());
        let session = server.open(revision, "{}");
        let body = request(9, "resources/subscribe", r#"{"uri":"a:1"}"#);
        server.post(&session, &body);
        for _ in 0..5 {
            server.resource_updated("a:1");
        }
        store.serve(&mut server);
        let stream = server.get(&session);
        server.resource_updated("a:1");
        store.serve(&mut server);
        assert_eq!(server.reply(stream).messages().len(), 6, "{revision}");
        server.disconnect(stream);
        let next = server.get(&session);
        store.serve(&mut server);
        assert_eq!(server.reply(next).messages().len(), 0, "each once");
    }
}

#[test]
fn revisions_without_resumption_store_nothing() {
    // Rule: [RESUME-008].
    let mut server = stored_server();
    let session = server.open(Revision::V2024_11_05, "{}");
    let (_, handle) = call_with(&mut server, &session, 1, 3);
    server.answer_to(handle);
    server.modern(&modern_call(2));
    let asked = server.asked();
    server.progress(asked.handle, 1.0);
    server.answer_to(asked.handle);
    server.delete(&session);
    assert_eq!(server.server.poll_store(), None);
}

#[test]
fn another_reader_continues_a_partial_replay() {
    // Rule: [HSRV-017] [RESUME-006].
    for taken_over in [true, false] {
        let (mut server, mut store) = (stored_server(), TestStore::default());
        let session = server.open(Revision::V2025_11_25, "{}");
        let body = request(9, "resources/subscribe", r#"{"uri":"a:1"}"#);
        server.post(&session, &body);
        for _ in 0..6 {
            server.resource_updated("a:1");
        }
        let first = server.get(&session);
        let (read, from) = store.read(&mut server);
        let found = store.find(&from, 2, usize::MAX);
        complete(&mut server, read, Ok(found));
        assert_eq!(server.reply(first).messages().len(), 1, "the other event has only an id");
        // The next reader sends no event id, so it gets the events that were not sent.
        if !taken_over {
            server.disconnect(first);
        }
        let second = server.get(&session);
        assert!(server.reply(first).is_over());
        store.serve(&mut server);
        assert_eq!(server.reply(second).messages().len(), 5);
        server.resource_updated("a:1");
        assert_eq!(server.reply(second).messages().len(), 6);
    }
}

#[test]
fn a_reader_that_waits_too_long_for_the_store_is_disconnected() {
    let change = |limits: &mut ServerLimits| limits.unread_bytes_max = 300;
    let (mut server, mut store) = (server_with(options(change)), TestStore::default());
    let (session, handle, back) = behind(&mut server, &mut store);
    for progress in 7..13 {
        server.progress(handle, f64::from(progress));
    }
    assert_eq!(server.reply(back).state, State::Aborted);
    store.serve(&mut server);
    server.answer_to(handle);
    let again = server.resume(&session, "2-1");
    store.serve(&mut server);
    assert_eq!(heard(&server, again).len(), 12, "nothing is lost");
}

//! Limits of the state that clients can make a server keep. Every limit can be reached.

use mcp_sansio::peer::ServerMachine;
use std::time::Duration;

use mcp_sansio::{LoggingLevel, Revision};

use crate::answers::ask_for_roots;
use crate::fixtures::*;
use crate::reply::State;
use crate::test_server::TestServer;

fn log(server: &mut TestServer, text: &str) {
    server.server.log(None, LoggingLevel::Error, None, text, server.now).unwrap();
    server.pump();
}

fn data(messages: &[serde_json::Value]) -> Vec<String> {
    messages.iter().map(|it| it["params"]["data"].as_str().unwrap()[..2].to_owned()).collect()
}

/// Makes a call with one message on its stream, whose client then disconnects. Returns the event
/// id.
fn left_behind(server: &mut TestServer, session: &Session, id: u32) -> String {
    let reply = server.post(session, &call(id));
    let asked = server.asked();
    server.progress(asked.handle, 1.0);
    server.disconnect(reply);
    server.answer_to(asked.handle);
    server.reply(reply).last_id().unwrap()
}

#[test]
fn the_number_of_unread_events_is_bounded() {
    let mut server = server_with(limits(|limits| limits.replay_events_max = 3));
    let session = server.open(Revision::V2025_06_18, "{}");
    for text in ["m0", "m1", "m2", "m3", "m4"] {
        log(&mut server, text);
    }
    let stream = server.get(&session);
    assert_eq!(data(&server.reply(stream).messages()), ["m2", "m3", "m4"]);
    let gap = server.resume(&session, "0-0");
    assert_eq!(server.reply(gap).status(), 410, "the loss is reported");
    let edge = server.resume(&session, "0-2");
    assert_eq!(data(&server.reply(edge).messages()), ["m2", "m3", "m4"]);
}

#[test]
fn the_bytes_of_unread_events_are_bounded_except_for_the_last_event() {
    let mut server = server_with(limits(|limits| limits.replay_bytes_max = 400));
    let session = server.open(Revision::V2025_06_18, "{}");
    for text in ["m0", "m1", "m2", "m3", "m4"] {
        log(&mut server, text);
    }
    assert!(server.server.retained().0 <= 400);
    let stream = server.get(&session);
    assert_eq!(data(&server.reply(stream).messages()), ["m2", "m3", "m4"]);
    server.disconnect(stream);
    log(&mut server, &"m5".repeat(1000));
    let stream = server.get(&session);
    assert_eq!(data(&server.reply(stream).messages()), ["m5"]);
}

#[test]
fn replayed_events_have_the_same_limits() {
    let mut server = server_with(limits(|limits| limits.replay_events_max = 2));
    let session = server.open(Revision::V2025_06_18, "{}");
    let stream = server.get(&session);
    for text in ["m0", "m1", "m2", "m3"] {
        log(&mut server, text);
    }
    assert_eq!(server.reply(stream).messages().len(), 4);
    for (last, status) in [("0-1", 410), ("0-2", 200), ("0-3", 200), ("0-4", 200)] {
        let back = server.resume(&session, last);
        assert_eq!(server.reply(back).status(), status, "{last}");
    }
    // Revisions without resumption keep nothing.
    let oldest = server_with(limits(|_| ())).open(Revision::V2024_11_05, "{}");
    assert_eq!(oldest.revision, Revision::V2024_11_05);
}

#[test]
fn streams_that_cannot_be_resumed_keep_nothing() {
    let mut server = server();
    let old = server.open(Revision::V2024_11_05, "{}");
    server.get(&old);
    let modern = server.modern(&modern_call(1));
    let asked = server.asked();
    for round in 0..1000 {
        log(&mut server, "m");
        server.progress(asked.handle, f64::from(round));
    }
    assert_eq!(server.reply(modern).messages().len(), 1000);
    assert_eq!(server.server.retained(), (0, 0));
}

#[test]
fn the_number_of_finished_streams_of_a_session_is_bounded() {
    let mut server = server_with(limits(|limits| limits.finished_streams_max = 2));
    let one = server.open(Revision::V2025_11_25, "{}");
    let other = server.open(Revision::V2025_11_25, "{}");
    let kept = left_behind(&mut server, &other, 1);
    let ids: Vec<_> = (1..=4).map(|id| left_behind(&mut server, &one, id)).collect();
    assert_eq!(server.server.retained().1, 3);
    for (id, status) in ids.iter().zip([410, 410, 200, 200]) {
        let back = server.resume(&one, id);
        assert_eq!(server.reply(back).status(), status, "{id}");
    }
    let back = server.resume(&other, &kept);
    assert_eq!(server.reply(back).messages().len(), 1, "each session has its own");
    server.delete(&one);
    server.delete(&other);
    server.expect_empty();
}

#[test]
fn abandoned_streams_are_evicted_down_to_the_limit() {
    let mut server = server();
    let session = server.open(Revision::V2025_11_25, "{}");
    for id in 0..1000 {
        left_behind(&mut server, &session, id);
    }
    assert_eq!(server.server.retained().1, 64);
    server.advance(Duration::from_secs(300));
    assert_eq!(server.server.retained(), (0, 0));
}

#[test]
fn the_bytes_of_all_streams_are_bounded() {
    let mut server = server_with(limits(|limits| limits.replay_bytes_total_max = 2000));
    let one = server.open(Revision::V2025_11_25, "{}");
    let other = server.open(Revision::V2025_11_25, "{}");
    let old = left_behind(&mut server, &one, 1);
    let mut newest = String::new();
    for id in 1..30 {
        newest = left_behind(&mut server, &other, id);
        assert!(server.server.retained().0 <= 2000, "{:?}", server.server.retained());
    }
    let gone = server.resume(&one, &old);
    assert_eq!(server.reply(gone).status(), 410, "the oldest is removed first, in any session");
    let back = server.resume(&other, &newest);
    assert_eq!(server.reply(back).messages().len(), 1);
    // Unfinished streams are limited as well.
    for _ in 0..100 {
        log(&mut server, "a message to every session, which is not read");
        assert!(server.server.retained().0 <= 2000, "{:?}", server.server.retained());
    }
    for session in [&one, &other] {
        let news = server.get(session);
        assert!(!server.reply(news).messages().is_empty(), "the last event is kept");
    }
}

#[test]
fn a_finished_stream_is_evicted_after_its_reader() {
    let mut server = server_with(limits(|limits| limits.replay_bytes_total_max = 2000));
    let session = server.open(Revision::V2025_11_25, "{}");
    let last = left_behind(&mut server, &session, 1);
    let fields = session.fields();
    let own = [HOST, ("Accept", "text/event-stream"), ("Last-Event-ID", last.as_str())];
    let slow = server.request_unread("GET", "/mcp", &join(&own, &fields), "");
    for id in 2..30 {
        left_behind(&mut server, &session, id);
    }
    server.read(slow, usize::MAX);
    assert_eq!(server.reply(slow).messages()[0]["id"], 1);
    server.advance(Duration::from_secs(300));
    assert_eq!(server.server.retained(), (0, 0), "and is not kept forever");
}

#[test]
fn a_slow_reader_is_disconnected_and_can_resume() {
    let mut server = server_with(limits(|limits| limits.unread_bytes_max = 1000));
    let session = server.open(Revision::V2025_11_25, "{}");
    let slow = server.post_unread(&session, &call(1));
    let asked = server.asked();
    server.progress(asked.handle, 0.0);
    server.read(slow, 3);
    let last = server.reply(slow).last_id().unwrap();
    for progress in 1..20 {
        server.progress(asked.handle, f64::from(progress));
    }
    server.expect_no_event();
    server.read(slow, usize::MAX);
    assert_eq!(server.reply(slow).state, State::Aborted);
    server.answer_to(asked.handle);
    let back = server.resume(&session, &last);
    assert_eq!(server.reply(back).messages().len(), 20, "nothing is lost");
}

#[test]
fn a_slow_modern_reader_is_disconnected_and_its_request_cancelled() {
    // Rule: [CANC-016] [CANC-017].
    let mut server = server_with(limits(|limits| limits.unread_bytes_max = 1000));
    let body = modern_call(1);
    let slow = server.request_unread("POST", "/mcp", &header_of(&body).fields(), &body);
    let asked = server.asked();
    for progress in 1..20 {
        server.progress(asked.handle, f64::from(progress));
    }
    assert_eq!(server.cancelled(), asked.handle);
    server.read(slow, usize::MAX);
    assert_eq!(server.reply(slow).state, State::Aborted);
    server.expect_empty();
}

#[test]
fn one_long_message_does_not_abort_readers() {
    let mut server = server_with(limits(|limits| limits.unread_bytes_max = 1000));
    let session = server.open(Revision::V2025_11_25, "{}");
    let reply = server.post(&session, &call(1));
    let asked = server.asked();
    server.progress(asked.handle, 1.0);
    let text = "x".repeat(100_000);
    server.answer_with(asked.handle, &format!(r#"{{"content":[],"x":"{text}"}}"#));
    assert_eq!(server.reply(reply).state, State::Complete);
    assert_eq!(server.reply(reply).messages()[1]["result"]["x"].as_str().unwrap().len(), 100_000);
}

#[test]
fn the_number_of_exchanges_is_bounded() {
    let mut server = server_with(limits(|limits| limits.exchanges_max = 3));
    let session = server.open(Revision::V2025_11_25, "{}");
    let stream = server.get(&session);
    let replies = [server.post(&session, &call(1)), server.modern(&modern_call(1))];
    let refused =
        [server.post(&session, &call(2)), server.modern(&modern_call(2)), server.get(&session)];
    for reply in refused {
        assert_eq!(server.reply(reply).status(), 503);
        assert_eq!(server.reply(reply).field("retry-after"), Some("10"));
    }
    server.answer();
    server.answer();
    assert!(replies.iter().all(|reply| server.reply(*reply).status() == 200));
    server.disconnect(stream);
    let reply = server.post(&session, &call(2));
    server.answer();
    assert_eq!(server.reply(reply).status(), 200);
}

#[test]
fn messages_that_end_pending_exchanges_are_handled_when_there_is_no_room_for_requests() {
    let mut server = server_with(limits(|limits| limits.exchanges_max = 8));
    let session = server.open(Revision::V2025_11_25, r#"{"roots":{}}"#);
    let calls: Vec<_> = (1..=7).map(|id| server.post(&session, &call(id))).collect();
    let asked = server.asked();
    server.server.require_input(&asked, &ask_for_roots(), server.now).unwrap();
    server.pump();
    let refused = [server.post(&session, &call(8)), server.get(&session)];
    for reply in refused {
        assert_eq!(server.reply(reply).status(), 503);
        assert_eq!(server.reply(reply).field("retry-after"), Some("10"));
    }
    let question = server.reply(calls[0]).messages()[0]["id"].clone();
    let answer = format!(r#"{{"jsonrpc":"2.0","id":{question},"result":{{"roots":[]}}}}"#);
    for accepted in [cancel(7), answer] {
        let reply = server.post(&session, &accepted);
        assert_eq!(server.reply(reply).status(), 202);
    }
    let ended = server.delete(&session);
    assert_eq!(server.reply(ended).status(), 204);
}

#[test]
fn requests_of_one_session_are_bounded() {
    let mut limits = mcp_sansio::peer::Limits::default();
    limits.requests_in_flight_max = 2;
    let mut server =
        TestServer::new(full_server().limits(limits), mcp_sansio::http::HttpServerOptions::new());
    let session = server.open(Revision::V2025_11_25, "{}");
    server.post(&session, &call(1));
    server.post(&session, &call(2));
    let (one, _) = (server.asked(), server.asked());
    let refused = server.post(&session, &call(3));
    assert_eq!(server.reply(refused).error(), (-32603, "3".into()));
    server.event();
    server.answer_to(one.handle);
    server.post(&session, &call(3));
    server.asked();
}

//! What clients can make the server hold is bounded, and each bound can be hit.

use std::time::Duration;

use mcp_sansio::Revision;
use mcp_sansio::protocol::LoggingLevel;

use crate::reply::State;
use crate::site::Site;
use crate::words::*;

fn log(site: &mut Site, text: &str) {
    site.server.log(None, LoggingLevel::Error, None, text, site.now).unwrap();
    site.pump();
}

fn data(messages: &[serde_json::Value]) -> Vec<String> {
    messages.iter().map(|it| it["params"]["data"].as_str().unwrap()[..2].to_owned()).collect()
}

/// A call with one message on its stream, whose client then leaves.
fn left_behind(site: &mut Site, session: &Session, id: u32) -> String {
    let reply = site.post(session, &call(id));
    let asked = site.asked();
    site.progress(asked.handle, 1.0);
    site.disconnect(reply);
    site.answer_to(asked.handle);
    site.reply(reply).last_id().unwrap()
}

#[test]
fn events_that_nobody_reads_are_kept_up_to_a_number() {
    let mut site = site_with(limits(|limits| limits.replay_events_max = 3));
    let session = site.open(Revision::V2025_06_18, "{}");
    for text in ["m0", "m1", "m2", "m3", "m4"] {
        log(&mut site, text);
    }
    let stream = site.get(&session);
    assert_eq!(data(&site.reply(stream).messages()), ["m2", "m3", "m4"]);
    let gap = site.resume(&session, "0-0");
    assert_eq!(site.reply(gap).status(), 410, "the loss is told");
    let edge = site.resume(&session, "0-2");
    assert_eq!(data(&site.reply(edge).messages()), ["m2", "m3", "m4"]);
}

#[test]
fn events_that_nobody_reads_are_kept_up_to_a_length_and_the_last_whatever_its_own() {
    let mut site = site_with(limits(|limits| limits.replay_bytes_max = 400));
    let session = site.open(Revision::V2025_06_18, "{}");
    for text in ["m0", "m1", "m2", "m3", "m4"] {
        log(&mut site, text);
    }
    assert!(site.server.retained().0 <= 400);
    let stream = site.get(&session);
    assert_eq!(data(&site.reply(stream).messages()), ["m2", "m3", "m4"]);
    site.disconnect(stream);
    log(&mut site, &"m5".repeat(1000));
    let stream = site.get(&session);
    assert_eq!(data(&site.reply(stream).messages()), ["m5"]);
}

#[test]
fn what_was_read_is_kept_up_to_the_same_bounds() {
    let mut site = site_with(limits(|limits| limits.replay_events_max = 2));
    let session = site.open(Revision::V2025_06_18, "{}");
    let stream = site.get(&session);
    for text in ["m0", "m1", "m2", "m3"] {
        log(&mut site, text);
    }
    assert_eq!(site.reply(stream).messages().len(), 4);
    for (last, status) in [("0-1", 410), ("0-2", 200), ("0-3", 200), ("0-4", 200)] {
        let back = site.resume(&session, last);
        assert_eq!(site.reply(back).status(), status, "{last}");
    }
    // Where there is no coming back nothing is kept.
    let oldest = site_with(limits(|_| ())).open(Revision::V2024_11_05, "{}");
    assert_eq!(oldest.revision, Revision::V2024_11_05);
}

#[test]
fn nothing_is_kept_where_nobody_can_come_back() {
    let mut site = site();
    let old = site.open(Revision::V2024_11_05, "{}");
    site.get(&old);
    let modern = site.modern(&modern_call(1));
    let asked = site.asked();
    for round in 0..1000 {
        log(&mut site, "m");
        site.progress(asked.handle, f64::from(round));
    }
    assert_eq!(site.reply(modern).messages().len(), 1000);
    assert_eq!(site.server.retained(), (0, 0));
}

#[test]
fn finished_streams_of_a_session_are_kept_up_to_a_number() {
    let mut site = site_with(limits(|limits| limits.finished_streams_max = 2));
    let one = site.open(Revision::V2025_11_25, "{}");
    let other = site.open(Revision::V2025_11_25, "{}");
    let kept = left_behind(&mut site, &other, 1);
    let ids: Vec<_> = (1..=4).map(|id| left_behind(&mut site, &one, id)).collect();
    assert_eq!(site.server.retained().1, 3);
    for (id, status) in ids.iter().zip([410, 410, 200, 200]) {
        let back = site.resume(&one, id);
        assert_eq!(site.reply(back).status(), status, "{id}");
    }
    let back = site.resume(&other, &kept);
    assert_eq!(site.reply(back).messages().len(), 1, "each session has its own");
    site.delete(&one);
    site.delete(&other);
    site.expect_empty();
}

#[test]
fn a_thousand_streams_that_nobody_comes_back_for_leave_a_few() {
    let mut site = site();
    let session = site.open(Revision::V2025_11_25, "{}");
    for id in 0..1000 {
        left_behind(&mut site, &session, id);
    }
    assert_eq!(site.server.retained().1, 64);
    site.advance(Duration::from_secs(300));
    assert_eq!(site.server.retained(), (0, 0));
}

#[test]
fn all_streams_together_are_kept_up_to_a_length() {
    let mut site = site_with(limits(|limits| limits.replay_bytes_total_max = 2000));
    let one = site.open(Revision::V2025_11_25, "{}");
    let other = site.open(Revision::V2025_11_25, "{}");
    let old = left_behind(&mut site, &one, 1);
    let mut newest = String::new();
    for id in 1..30 {
        newest = left_behind(&mut site, &other, id);
        assert!(site.server.retained().0 <= 2000, "{:?}", site.server.retained());
    }
    let gone = site.resume(&one, &old);
    assert_eq!(site.reply(gone).status(), 410, "the oldest goes first, whosever it is");
    let back = site.resume(&other, &newest);
    assert_eq!(site.reply(back).messages().len(), 1);
    // Streams that are not finished are held to it as well.
    for _ in 0..100 {
        log(&mut site, "something that every session is told, and nobody reads");
        assert!(site.server.retained().0 <= 2000, "{:?}", site.server.retained());
    }
    for session in [&one, &other] {
        let news = site.get(session);
        assert!(!site.reply(news).messages().is_empty(), "the last one stays");
    }
}

#[test]
fn a_finished_stream_that_is_being_read_when_room_runs_out_goes_after_its_reader() {
    let mut site = site_with(limits(|limits| limits.replay_bytes_total_max = 2000));
    let session = site.open(Revision::V2025_11_25, "{}");
    let last = left_behind(&mut site, &session, 1);
    let fields = session.fields();
    let own = [HOST, ("Accept", "text/event-stream"), ("Last-Event-ID", last.as_str())];
    let slow = site.request_unread("GET", "/mcp", &join(&own, &fields), "");
    for id in 2..30 {
        left_behind(&mut site, &session, id);
    }
    site.read(slow, usize::MAX);
    assert_eq!(site.reply(slow).messages()[0]["id"], 1);
    site.advance(Duration::from_secs(300));
    assert_eq!(site.server.retained(), (0, 0), "and is not kept for ever");
}

#[test]
fn a_reader_too_far_behind_is_cut_off_and_may_come_back() {
    let mut site = site_with(limits(|limits| limits.unread_bytes_max = 1000));
    let session = site.open(Revision::V2025_11_25, "{}");
    let slow = site.post_unread(&session, &call(1));
    let asked = site.asked();
    site.progress(asked.handle, 0.0);
    site.read(slow, 3);
    let last = site.reply(slow).last_id().unwrap();
    for progress in 1..20 {
        site.progress(asked.handle, f64::from(progress));
    }
    site.expect_no_event();
    site.read(slow, usize::MAX);
    assert_eq!(site.reply(slow).state, State::Aborted);
    site.answer_to(asked.handle);
    let back = site.resume(&session, &last);
    assert_eq!(site.reply(back).messages().len(), 20, "nothing is lost");
}

#[test]
fn a_modern_reader_too_far_behind_is_cut_off_for_good() {
    // Rule: [CANC-016] [CANC-017].
    let mut site = site_with(limits(|limits| limits.unread_bytes_max = 1000));
    let body = modern_call(1);
    let slow = site.request_unread("POST", "/mcp", &header_of(&body).fields(), &body);
    let asked = site.asked();
    for progress in 1..20 {
        site.progress(asked.handle, f64::from(progress));
    }
    assert_eq!(site.cancelled(), asked.handle);
    site.read(slow, usize::MAX);
    assert_eq!(site.reply(slow).state, State::Aborted);
    site.expect_empty();
}

#[test]
fn one_long_message_cuts_nobody_off() {
    let mut site = site_with(limits(|limits| limits.unread_bytes_max = 1000));
    let session = site.open(Revision::V2025_11_25, "{}");
    let reply = site.post(&session, &call(1));
    let asked = site.asked();
    site.progress(asked.handle, 1.0);
    let text = "x".repeat(100_000);
    site.answer_with(asked.handle, &format!(r#"{{"content":[],"x":"{text}"}}"#));
    assert_eq!(site.reply(reply).state, State::Complete);
    assert_eq!(site.reply(reply).messages()[1]["result"]["x"].as_str().unwrap().len(), 100_000);
}

#[test]
fn there_are_no_more_exchanges_than_the_limit() {
    let mut site = site_with(limits(|limits| limits.exchanges_max = 3));
    let session = site.open(Revision::V2025_11_25, "{}");
    let stream = site.get(&session);
    let replies = [site.post(&session, &call(1)), site.modern(&modern_call(1))];
    let refused = [site.post(&session, &call(2)), site.modern(&modern_call(2)), site.get(&session)];
    for reply in refused {
        assert_eq!(site.reply(reply).status(), 503);
        assert_eq!(site.reply(reply).field("retry-after"), Some("10"));
    }
    site.answer();
    site.answer();
    assert!(replies.iter().all(|reply| site.reply(*reply).status() == 200));
    site.disconnect(stream);
    let reply = site.post(&session, &call(2));
    site.answer();
    assert_eq!(site.reply(reply).status(), 200);
}

#[test]
fn requests_of_one_session_are_bounded() {
    let mut limits = mcp_sansio::peer::Limits::default();
    limits.requests_in_flight_max = 2;
    let mut site = Site::new(full_server().limits(limits), mcp_sansio::http::ServerOptions::new());
    let session = site.open(Revision::V2025_11_25, "{}");
    site.post(&session, &call(1));
    site.post(&session, &call(2));
    let (one, _) = (site.asked(), site.asked());
    let refused = site.post(&session, &call(3));
    assert_eq!(site.reply(refused).error(), (-32603, "3".into()));
    site.event();
    site.answer_to(one.handle);
    site.post(&session, &call(3));
    site.asked();
}

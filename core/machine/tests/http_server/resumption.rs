//! Clients that resume streams after a disconnect.

use std::time::Duration;

use mcp_sansio::Revision;

use crate::fixtures::*;
use crate::reply::State;
use crate::test_server::{TestServer, Ticket};

/// Returns the progress values and the ids of responses in a reply.
pub(crate) fn heard(server: &TestServer, ticket: Ticket) -> Vec<String> {
    let messages = server.reply(ticket).messages();
    let say = |message: &serde_json::Value| match message.get("id") {
        Some(id) => format!("answer {id}"),
        None => message["params"]["progress"].to_string(),
    };
    messages.iter().map(say).collect()
}

#[test]
fn an_undelivered_response_is_replayed() {
    // Rule: [RESUME-006] [SSE-011].
    for revision in RESUMING {
        let mut server = server();
        let session = server.open(revision, "{}");
        let reply = server.post(&session, &call(1));
        let asked = server.asked();
        server.progress(asked.handle, 1.0);
        server.disconnect(reply);
        server.progress(asked.handle, 2.0);
        server.answer_to(asked.handle);
        let last = server.reply(reply).last_id().unwrap();
        let back = server.resume(&session, &last);
        assert_eq!(server.reply(back).status(), 200);
        assert_eq!(heard(&server, back), ["2", "answer 1"], "{revision}");
        assert_eq!(server.reply(back).state, State::Complete);
        // Resuming again works, as the replay may have been lost as well.
        let again = server.resume(&session, &last);
        assert_eq!(heard(&server, again), ["2", "answer 1"]);
        let end = server.reply(again).last_id().unwrap();
        let nothing = server.resume(&session, &end);
        assert_eq!(server.reply(nothing).transcript(), "200 text/event-stream\nend");
    }
}

#[test]
fn an_empty_event_id_opens_the_stream_like_none() {
    // Rule: [HSRV-013].
    for revision in RESUMING {
        let mut server = server();
        let session = server.open(revision, "{}");
        let opened = server.resume(&session, "");
        assert_eq!(server.reply(opened).status(), 200, "{revision}");
        assert_eq!(server.reply(opened).state, State::UnderWay);
    }
}

#[test]
fn a_call_with_hundreds_of_progress_events_is_resumed_completely() {
    // Rule: [RESUME-001] [RESUME-006].
    const REPORTS: u32 = 300;
    for revision in RESUMING {
        let mut server = server();
        let session = server.open(revision, "{}");
        let reply = server.post(&session, &call(1));
        let asked = server.asked();
        for report in 1..=5 {
            server.progress(asked.handle, f64::from(report));
        }
        server.disconnect(reply);
        for report in 6..=REPORTS {
            server.progress(asked.handle, f64::from(report));
        }
        server.answer_to(asked.handle);
        let back = server.resume(&session, &server.reply(reply).last_id().unwrap());
        assert_eq!(server.reply(back).status(), 200, "{revision}");
        let mut expected: Vec<_> = (6..=REPORTS).map(|report| report.to_string()).collect();
        expected.push("answer 1".into());
        assert_eq!(heard(&server, back), expected, "{revision}");
        assert_eq!(server.reply(back).state, State::Complete);
    }
}

#[test]
fn a_resumed_stream_continues() {
    // Rule: [RESUME-006].
    for revision in RESUMING {
        let mut server = server();
        let session = server.open(revision, "{}");
        let reply = server.post(&session, &call(1));
        let asked = server.asked();
        server.progress(asked.handle, 1.0);
        server.disconnect(reply);
        let back = server.resume(&session, &server.reply(reply).last_id().unwrap());
        assert_eq!(server.reply(back).transcript(), "200 text/event-stream\n...");
        server.progress(asked.handle, 2.0);
        server.answer_to(asked.handle);
        assert_eq!(heard(&server, back), ["2", "answer 1"]);
    }
}

#[test]
fn replay_never_crosses_streams() {
    // Rule: [RESUME-007] [RESUME-002] [HSRV-016] [HSRV-017].
    for revision in RESUMING {
        let mut server = server();
        let session = server.open(revision, "{}");
        let stream = server.get(&session);
        let replies = [server.post(&session, &call(1)), server.post(&session, &call(2))];
        let asked = [server.asked().handle, server.asked().handle];
        server.tools_changed();
        for handle in asked {
            server.progress(handle, 1.0);
        }
        let tickets = [stream, replies[0], replies[1]];
        let ids: Vec<_> =
            tickets.iter().map(|ticket| server.reply(*ticket).last_id().unwrap()).collect();
        tickets.iter().for_each(|ticket| server.disconnect(*ticket));
        server.tools_changed();
        for handle in asked {
            server.progress(handle, 2.0);
            server.answer_to(handle);
        }
        let [news, first, second] = [0, 1, 2].map(|at| server.resume(&session, &ids[at]));
        assert_eq!(heard(&server, news), ["null"]);
        assert_eq!(heard(&server, first), ["2", "answer 1"]);
        assert_eq!(heard(&server, second), ["2", "answer 2"]);
        let mut ids: Vec<_> = [news, first, second]
            .into_iter()
            .chain(tickets)
            .flat_map(|ticket| server.reply(ticket).events())
            .filter_map(|event| event.id)
            .collect();
        let count = ids.len();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), count, "event ids are unique in a session");
    }
}

#[test]
fn unknown_event_ids_are_classified() {
    let mut server = server_with(limits(|limits| {
        limits.replay_events_max = 2;
        limits.finished_streams_max = 1;
    }));
    let session = server.open(Revision::V2025_11_25, "{}");
    let plain = server.post(&session, &call(1));
    server.answer();
    assert!(!server.reply(plain).is_stream());
    let stream = server.post(&session, &call(2));
    let asked = server.asked();
    for progress in 1..6 {
        server.progress(asked.handle, f64::from(progress));
    }
    let open = server.get(&session);
    // Rule: [RESUME-002]: an id must be one of this session, in its canonical form.
    for (last, status) in [
        ("x", 400),
        ("3", 400),
        ("3-01", 400),
        ("3-1 ", 200),
        ("-1-1", 400),
        ("99-0", 400),
        ("3-6", 400),
        ("0-1", 400),
        ("2-0", 410),
        ("3-2", 410),
        ("3-3", 200),
        ("4294967296-0", 400),
    ] {
        let wrong = if status == 200 { "3-5" } else { last };
        let reply = server.resume(&session, wrong);
        assert_eq!(server.reply(reply).status(), status, "{last}");
    }
    let _ = (stream, open);
    server.answer_to(asked.handle);
    // The limit of finished streams: the oldest is removed.
    let next = server.post(&session, &call(3));
    let asked = server.asked();
    server.progress(asked.handle, 1.0);
    server.answer_to(asked.handle);
    let gone = server.resume(&session, "3-5");
    assert_eq!(server.reply(gone).status(), 410);
    let kept = server.resume(&session, &server.reply(next).last_id().unwrap());
    assert_eq!(server.reply(kept).status(), 200);
}

#[test]
fn an_id_that_was_not_sent_yet_is_refused() {
    let mut server = server();
    let session = server.open(Revision::V2025_11_25, "{}");
    let stream = server.get(&session);
    server.disconnect(stream);
    server.tools_changed();
    let ahead = server.resume(&session, "0-1");
    assert_eq!(server.reply(ahead).status(), 400);
    let right = server.resume(&session, "0-0");
    assert_eq!(server.reply(right).messages().len(), 1);
    server.disconnect(right);
    let now = server.resume(&session, "0-1");
    assert_eq!(server.reply(now).status(), 200);
}

#[test]
fn a_stream_belongs_to_its_session() {
    // Rule: [RESUME-007] [SESS-014].
    let mut server = server();
    let one = server.open(Revision::V2025_11_25, "{}");
    let other = server.open(Revision::V2025_11_25, "{}");
    let reply = server.post(&one, &call(1));
    let asked = server.asked();
    server.progress(asked.handle, 1.0);
    let last = server.reply(reply).last_id().unwrap();
    let stolen = server.resume(&other, &last);
    assert_eq!(server.reply(stolen).status(), 400);
    assert_eq!(server.reply(reply).state, State::UnderWay);
}

#[test]
fn a_second_reader_takes_over_a_stream() {
    // Rule: [HSRV-017].
    for revision in RESUMING {
        let mut server = server();
        let session = server.open(revision, "{}");
        let reply = server.post(&session, &call(1));
        let asked = server.asked();
        server.progress(asked.handle, 1.0);
        let back = server.resume(&session, &server.reply(reply).last_id().unwrap());
        assert_eq!(server.reply(reply).state, State::Complete);
        server.answer_to(asked.handle);
        assert_eq!(heard(&server, reply), ["1"]);
        assert_eq!(heard(&server, back), ["answer 1"]);
        // The first reader disconnects without an effect.
        server.disconnect(reply);
        assert_eq!(server.server.exchange_count(), 0);
    }
}

#[test]
fn a_finished_stream_is_kept_for_a_while() {
    let mut server = server();
    let session = server.open(Revision::V2025_11_25, "{}");
    let reply = server.post(&session, &call(1));
    let asked = server.asked();
    server.progress(asked.handle, 1.0);
    server.disconnect(reply);
    server.answer_to(asked.handle);
    let last = server.reply(reply).last_id().unwrap();
    server.advance(Duration::from_secs(299));
    let back = server.resume(&session, &last);
    assert_eq!(heard(&server, back), ["answer 1"]);
    server.advance(Duration::from_secs(299));
    let back = server.resume(&session, &last);
    assert_eq!(heard(&server, back), ["answer 1"], "reading extends its life");
    server.advance(Duration::from_secs(300));
    let back = server.resume(&session, &last);
    assert_eq!(server.reply(back).status(), 410);
    assert_eq!(server.server.retained(), (0, 0));
}

#[test]
fn json_responses_are_not_retained() {
    let mut server = server();
    let session = server.open(Revision::V2025_11_25, "{}");
    for id in 1..100 {
        let reply = server.post(&session, &call(id));
        let asked = server.asked();
        if id % 2 == 0 {
            server.disconnect(reply);
        }
        server.answer_to(asked.handle);
    }
    assert_eq!(server.server.retained(), (0, 0));
}

#[test]
fn the_oldest_revision_has_no_event_ids() {
    let mut server = server();
    let session = server.open(Revision::V2024_11_05, "{}");
    let reply = server.post(&session, &call(1));
    let asked = server.asked();
    server.progress(asked.handle, 1.0);
    assert_eq!(server.reply(reply).last_id(), None);
    server.disconnect(reply);
    server.answer_to(asked.handle);
    assert_eq!(server.server.retained(), (0, 0));
    for last in ["0-0", "2-0"] {
        let back = server.resume(&session, last);
        assert_ne!(server.reply(back).status(), 200);
    }
}

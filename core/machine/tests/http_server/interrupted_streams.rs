//! Streams that are cut, and clients that reconnect each time.

use mcp_sansio::Revision;
use mcp_sansio::http::{HttpServerOptions, ResponseMode};
use mcp_sansio::peer::ServerMachine;
use serde_json::Value;

use crate::cuts::cut_step;
use crate::fixtures::*;
use crate::reply::Reply;
use crate::test_server::TestServer;

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

/// Sends two messages on the stream of a call, without a response.
fn converse(
    server: &mut TestServer,
    session: &Session,
    id: u32,
) -> (usize, mcp_sansio::peer::RequestHandle) {
    let reply = server.post(session, &call(id));
    let asked = server.asked();
    server.progress(asked.handle, 1.0);
    server.progress(asked.handle, 2.0);
    (reply, asked.handle)
}

/// Returns all messages of a call.
fn whole(server: &mut TestServer, session: &Session) -> Vec<Value> {
    let (reply, handle) = converse(server, session, 1);
    server.progress(handle, 3.0);
    server.answer_to(handle);
    let messages = server.reply(reply).messages();
    assert_eq!(messages.len(), 4);
    messages
}

#[test]
fn a_post_stream_loses_and_repeats_nothing_when_interrupted() {
    // Rule: [RESUME-006] [RESUME-007] [SSE-001].
    for revision in RESUMING {
        let mut server =
            TestServer::new(full_server(), HttpServerOptions::new().answers(ResponseMode::Stream));
        let session = server.open(revision, "{}");
        let expected = whole(&mut server, &session);
        let length = {
            let (reply, handle) = converse(&mut server, &session, 1);
            server.answer_to(handle);
            server.reply(reply).body.len()
        };
        for cut in (0..=length).step_by(cut_step()) {
            // The client received `cut` bytes before the connection was lost, and the rest after
            // it.
            for late in [false, true] {
                let (reply, handle) = converse(&mut server, &session, 1);
                if late {
                    server.disconnect(reply);
                }
                server.progress(handle, 3.0);
                server.answer_to(handle);
                if !late {
                    // Complete for the server, but the connection of the client broke.
                    assert!(server.reply(reply).is_over());
                }
                let seen = cut.min(server.reply(reply).body.len());
                let mut messages = messages_at(server.reply(reply), seen);
                let Some(last) = server.reply(reply).last_id_at(seen) else { continue };
                let back = server.resume(&session, &last);
                assert_eq!(server.reply(back).status(), 200, "{revision} at {cut}");
                messages.extend(server.reply(back).messages());
                assert_eq!(messages, expected, "{revision} at {cut}, late: {late}");
            }
        }
        server.delete(&session);
        server.expect_empty();
    }
}

#[test]
fn the_listening_stream_loses_and_repeats_nothing_when_interrupted() {
    // Rule: [RESUME-006] [RESUME-007] [HSRV-017].
    for revision in RESUMING {
        let mut server = server();
        let session = server.open(revision, "{}");
        for uri in ["a:1", "a:2", "a:3", "a:4"] {
            let body = request(9, "resources/subscribe", &format!(r#"{{"uri":"{uri}"}}"#));
            server.post(&session, &body);
        }
        let uris = |messages: &[Value]| -> Vec<String> {
            messages.iter().map(|it| it["params"]["uri"].to_string()).collect()
        };
        let mut last: Option<String> = None;
        let mut cut = 0;
        loop {
            let stream = match &last {
                Some(last) => server.resume(&session, last),
                None => server.get(&session),
            };
            server.resource_updated("a:1");
            server.resource_updated("a:2");
            let seen = cut.min(server.reply(stream).body.len());
            let at_end = seen == server.reply(stream).body.len() && cut > seen;
            server.disconnect(stream);
            server.resource_updated("a:3");
            let mut messages = messages_at(server.reply(stream), seen);
            if let Some(id) = server.reply(stream).last_id_at(seen) {
                last = Some(id);
            }
            // Without an event id the client cannot resume, and has to open a new stream.
            let Some(id) = &last else {
                cut += cut_step();
                continue;
            };
            let back = server.resume(&session, id);
            server.resource_updated("a:4");
            messages.extend(server.reply(back).messages());
            let expected = ["\"a:1\"", "\"a:2\"", "\"a:3\"", "\"a:4\""];
            let all = uris(&messages);
            assert!(all.ends_with(&expected.map(String::from)), "{revision} at {cut}: {all:?}");
            // Messages that were left when the client had no event id yet.
            let before = &all[..all.len() - expected.len()];
            assert!(before.iter().all(|uri| uri == "\"a:3\""), "{revision} at {cut}: {all:?}");
            last = server.reply(back).last_id();
            server.disconnect(back);
            if at_end {
                break;
            }
            cut += cut_step();
        }
    }
}

#[test]
fn a_stream_survives_any_number_of_cuts() {
    // Rule: [RESUME-006].
    for revision in RESUMING {
        for step in 1..40 {
            let mut server = server();
            let session = server.open(revision, "{}");
            let (mut ticket, handle) = converse(&mut server, &session, 1);
            let mut messages = Vec::new();
            let mut last = None;
            for round in 0..200 {
                if round == 5 {
                    server.progress(handle, 3.0);
                }
                if round == 10 {
                    server.answer_to(handle);
                }
                let reply = server.reply(ticket);
                let seen = (step * 7).min(reply.body.len());
                messages.extend(messages_at(reply, seen));
                last = reply.last_id_at(seen).or(last);
                if messages.iter().any(|it| it.get("id").is_some()) {
                    break;
                }
                if !server.reply(ticket).is_over() {
                    server.disconnect(ticket);
                }
                let Some(last) = &last else { break };
                ticket = server.resume(&session, last);
                assert_eq!(server.reply(ticket).status(), 200);
            }
            if last.is_some() && step * 7 > 140 {
                assert_eq!(messages.len(), 4, "{revision} in steps of {}", step * 7);
            }
            let progress: Vec<_> =
                messages.iter().filter_map(|it| it["params"]["progress"].as_f64()).collect();
            let expected: Vec<f64> = (1..=progress.len()).map(|n| n as f64).collect();
            assert_eq!(progress, expected);
        }
    }
}

#[test]
fn an_event_longer_than_a_chunk_is_replayed_whole() {
    let mut server = server();
    let session = server.open(Revision::V2025_11_25, "{}");
    let fields = session.fields();
    let fields = join(&[HOST, ("Accept", "text/event-stream")], &fields);
    let long = "x".repeat(200_000);
    let level = mcp_sansio::LoggingLevel::Error;
    server.server.log(None, level, None, &long, server.now).unwrap();
    server.pump();
    let unread = server.request_unread("GET", "/mcp", &fields, "");
    // The head and one chunk, which ends inside the event.
    server.read(unread, 2);
    server.disconnect(unread);
    let next = server.get(&session);
    assert_eq!(server.reply(next).messages()[0]["params"]["data"].as_str().unwrap().len(), 200_000);
    // An event that was sent whole is kept for a client that did not receive it, whatever its
    // length.
    server.server.log(None, level, None, &"y".repeat(400_000), server.now).unwrap();
    server.pump();
    let id = server.reply(next).events().iter().rev().nth(1).unwrap().id.clone().unwrap();
    server.tools_changed();
    server.disconnect(next);
    let back = server.resume(&session, &id);
    assert_eq!(server.reply(back).status(), 410, "but not after two more events");
}

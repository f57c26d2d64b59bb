//! The form of a response, and the stream that it is sent on.

use mcp_sansio::peer::ServerMachine;
use std::time::Duration;

use mcp_sansio::http::{HttpServerOptions, ResponseMode};
use mcp_sansio::protocol::{InputRequest, InputRequiredResult, ListRootsParams, Map};
use mcp_sansio::{LoggingLevel, Revision, Revisions};

use crate::fixtures::*;
use crate::reply::State;

const ROOTS: &str = r#"{"roots":{}}"#;

pub(crate) fn ask_for_roots() -> InputRequiredResult {
    let mut questions = Map::<InputRequest>::default();
    questions.insert("where", InputRequest::from(ListRootsParams::new()));
    InputRequiredResult::new().input_requests(questions)
}

#[test]
fn a_response_without_other_messages_is_json() {
    // Rule: [HSRV-012].
    let mut server = server();
    for revision in RESUMING {
        let session = server.open(revision, "{}");
        let reply = server.post(&session, &call(1));
        assert_eq!(server.reply(reply).transcript(), "waiting\n");
        server.answer();
        assert_eq!(
            server.reply(reply).transcript(),
            "200 application/json\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[]}}"
        );
    }
    let reply = server.modern(&modern_call(1));
    server.answer();
    assert_eq!(server.reply(reply).json()["result"]["resultType"], "complete");
}

#[test]
fn messages_before_the_response_turn_it_into_a_stream() {
    // Rule: [HSRV-012] [HSRV-018] [SSE-001] [SSE-004] [SSE-005] [RESUME-003].
    let mut server = server();
    let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}"#;
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#;
    for revision in RESUMING {
        let session = server.open(revision, "{}");
        let reply = server.post(&session, &call(1));
        let asked = server.asked();
        server.progress(asked.handle, 1.0);
        server.answer_to(asked.handle);
        let expected = if revision == Revision::V2025_11_25 {
            format!("200 text/event-stream\nid=2-0 \nid=2-1 {progress}\nid=2-2 {answer}\nend")
        } else {
            // An event with only an id: these clients do not support events with empty data.
            format!("200 text/event-stream\nid=2-0 alone\nid=2-1 {progress}\nid=2-2 {answer}\nend")
        };
        assert_eq!(server.reply(reply).transcript(), expected);
    }
}

#[test]
fn a_client_that_accepts_one_form_of_responses_gets_that_form() {
    // Rule: [HSRV-012].
    let json = [HOST, JSON, ("Accept", "application/json")];
    let events = [HOST, JSON, ("Accept", "text/event-stream")];
    let version = ("MCP-Protocol-Version", "2026-07-28");
    let modern = [version, ("Mcp-Method", "tools/call"), ("Mcp-Name", "t")];
    for (fields, media) in [(json, "application/json"), (events, "text/event-stream")] {
        let mut server = server();
        let open =
            server.request("POST", "/mcp", &fields, &initialize(Revision::V2025_06_18, "{}"));
        assert_eq!(server.reply(open).field("content-type"), Some(media));
        let id = server.reply(open).field("mcp-session-id").expect("a session").to_owned();
        let session = join(&fields, &[("Mcp-Session-Id", &id)]);
        let replies = [
            server.request("POST", "/mcp", &session, &call(1)),
            server.request("POST", "/mcp", &join(&fields, &modern), &modern_call(1)),
        ];
        // A client that does not read event streams waits for a slow response.
        server.advance(Duration::from_secs(60));
        for _ in replies {
            server.answer();
        }
        for reply in replies {
            assert_eq!(server.reply(reply).field("content-type"), Some(media));
            let transcript = server.reply(reply).transcript();
            assert!(transcript.contains(r#""id":1,"result":{"#), "{transcript}");
        }
    }
}

#[test]
fn a_modern_stream_has_no_ids_and_must_not_be_buffered() {
    // Rule: [HSRV-019] [HSRV-027] [HSRV-028] [SSE-015] [RESUME-008].
    let mut server = server();
    let reply = server.modern(&modern_call(1));
    let asked = server.asked();
    server.progress(asked.handle, 1.0);
    let transcript = server.reply(reply).transcript();
    assert!(transcript.ends_with("\"progress\":1}}\n..."), "{transcript}");
    server.answer_to(asked.handle);
    let reply = server.reply(reply);
    assert_eq!(reply.field("x-accel-buffering"), Some("no"));
    assert_eq!(reply.field("cache-control"), Some("no-cache, no-transform"));
    assert_eq!(reply.state, State::Complete);
    assert!(reply.events().iter().all(|event| event.id.is_none() && event.retry.is_none()));
    assert_eq!(reply.messages().len(), 2);
    assert_eq!(reply.messages()[1]["id"], 1);
    server.expect_empty();
}

#[test]
fn messages_of_a_request_are_sent_on_its_stream_only() {
    // Rule: [HSRV-016] [HSRV-017] [HSRV-018] [HSRV-019].
    let mut server = server();
    let session = server.open(Revision::V2025_06_18, "{}");
    let other = server.open(Revision::V2025_06_18, "{}");
    let stream = server.get(&session);
    let replies = [
        server.post(&session, &call(1)),
        server.post(&session, &call(2)),
        server.post(&other, &call(1)),
        server.modern(&modern_call(1)),
    ];
    let asked: Vec<_> = replies.iter().map(|_| server.asked().handle).collect();
    for round in 0..3 {
        for (index, handle) in asked.iter().enumerate() {
            server.progress(*handle, f64::from(round));
            let now = server.now;
            server.server.log(Some(*handle), LoggingLevel::Error, None, &index, now).unwrap();
            server.pump();
        }
    }
    asked.iter().rev().for_each(|handle| server.answer_to(*handle));
    for (index, reply) in replies.into_iter().enumerate() {
        let messages = server.reply(reply).messages();
        let logged = |message: &&serde_json::Value| message["method"] == "notifications/message";
        let logs: Vec<_> = messages.iter().filter(logged).collect();
        // A modern request gets the log messages that it requests, and this one requests none.
        assert_eq!(logs.len(), if index == 3 { 0 } else { 3 });
        assert!(logs.iter().all(|message| message["params"]["data"] == index));
        assert_eq!(messages.len(), logs.len() + 4);
        assert_eq!(messages.last().unwrap()["id"], if index == 1 { 2 } else { 1 });
    }
    assert_eq!(server.reply(stream).messages(), [] as [serde_json::Value; 0]);
}

#[test]
fn input_requests_are_sent_on_the_stream_of_their_request() {
    // Rule: [HSRV-008] [HSRV-018].
    let mut server = server();
    for revision in RESUMING {
        let session = server.open(revision, ROOTS);
        let stream = server.get(&session);
        let reply = server.post(&session, &call(1));
        let asked = server.asked();
        let first = asked.handle;
        server.server.require_input(&asked, &ask_for_roots(), server.now).unwrap();
        server.pump();
        let question = server.reply(reply).messages()[0].clone();
        assert_eq!(question["method"], "roots/list", "{revision}");
        let answer =
            format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"roots":[]}}}}"#, question["id"]);
        let accepted = server.post(&session, &answer);
        assert_eq!(server.reply(accepted).transcript(), "202\n");
        let again = server.asked();
        assert_eq!(again.handle, first);
        assert_eq!(again.inputs.response("where").unwrap().as_str(), r#"{"roots":[]}"#);
        server.answer_to(again.handle);
        assert_eq!(server.reply(reply).messages()[1]["id"], 1);
        assert_eq!(server.reply(reply).state, State::Complete);
        assert_eq!(server.reply(stream).messages().len(), 0);
    }
}

#[test]
fn a_modern_client_gets_input_requests_in_the_result_only() {
    // Rule: [HSRV-020].
    let mut server = server();
    let body = modern_with(1, "tools/call", r#""name":"t""#, "2026-07-28", ROOTS);
    let reply = server.modern(&body);
    let asked = server.asked();
    server.server.require_input(&asked, &ask_for_roots(), server.now).unwrap();
    server.pump();
    let result = &server.reply(reply).json()["result"];
    assert_eq!(result["resultType"], "input_required");
    assert_eq!(result["inputRequests"]["where"]["method"], "roots/list");
    server.expect_empty();
}

#[test]
fn a_slow_response_opens_as_a_stream() {
    let mut server = server();
    let session = server.open(Revision::V2025_11_25, "{}");
    let legacy = server.post(&session, &call(1));
    let modern = server.modern(&modern_call(1));
    server.advance(Duration::from_millis(4999));
    assert_eq!(server.reply(legacy).status, None);
    server.advance(Duration::from_millis(1));
    assert_eq!(server.reply(legacy).transcript(), "200 text/event-stream\nid=2-0 \n...");
    assert_eq!(server.reply(modern).transcript(), "200 text/event-stream\n...");
    server.answer();
    server.answer();
    assert_eq!(server.reply(legacy).messages()[0]["id"], 1);
    assert_eq!(server.reply(modern).messages()[0]["id"], 1);
}

#[test]
fn every_response_is_a_stream_if_the_server_is_configured_so() {
    let mut server = server_with(HttpServerOptions::new().answers(ResponseMode::Stream));
    let opened = server.request("POST", "/mcp", &POST, &initialize(Revision::V2025_11_25, "{}"));
    assert!(server.reply(opened).is_stream());
    assert_eq!(server.reply(opened).field("mcp-session-id").map(str::len), Some(32));
    for revision in RESUMING {
        let session = server.open(revision, "{}");
        let reply = server.post(&session, &call(1));
        let primed = if revision == Revision::V2025_11_25 { "id=2-0 \n" } else { "id=2-0 alone\n" };
        let expected = format!("200 text/event-stream\n{primed}...");
        assert_eq!(server.reply(reply).transcript(), expected);
        server.answer();
        assert_eq!(server.reply(reply).messages()[0]["id"], 1);
        let refused = server.post(&session, r#"{"jsonrpc":"2.0","id":5,"method":5}"#);
        assert_eq!(server.reply(refused).status(), 400, "refusals of the form remain HTTP errors");
        server.events.clear();
    }
}

#[test]
fn responses_of_the_machine_are_json() {
    let mut server = server_of(Revisions::ALL);
    let session = server.open(Revision::V2025_11_25, "{}");
    for (method, params) in [("ping", "{}"), ("logging/setLevel", r#"{"level":"error"}"#)] {
        let reply = server.post(&session, &request(1, method, params));
        assert_eq!(server.reply(reply).json()["result"].to_string(), "{}");
    }
    server.expect_no_event();
}

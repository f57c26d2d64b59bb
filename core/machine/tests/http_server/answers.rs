//! In which form an answer comes, and on which stream.

use std::time::Duration;

use mcp_sansio::http::ServerOptions;
use mcp_sansio::http::server::ResponseMode;
use mcp_sansio::protocol::{InputRequest, InputRequiredResult, ListRootsParams, LoggingLevel, Map};
use mcp_sansio::{Revision, Revisions};

use crate::reply::State;
use crate::words::*;

const ROOTS: &str = r#"{"roots":{}}"#;

pub(crate) fn ask_for_roots() -> InputRequiredResult {
    let mut questions = Map::<InputRequest>::default();
    questions.insert("where", InputRequest::from(ListRootsParams::new()));
    InputRequiredResult::new().input_requests(questions)
}

#[test]
fn an_answer_that_comes_alone_is_json() {
    // Rule: [HSRV-012].
    let mut site = site();
    for revision in RESUMING {
        let session = site.open(revision, "{}");
        let reply = site.post(&session, &call(1));
        assert_eq!(site.reply(reply).transcript(), "waiting\n");
        site.answer();
        assert_eq!(
            site.reply(reply).transcript(),
            "200 application/json\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[]}}"
        );
    }
    let reply = site.modern(&modern_call(1));
    site.answer();
    assert_eq!(site.reply(reply).json()["result"]["resultType"], "complete");
}

#[test]
fn what_precedes_an_answer_makes_it_a_stream_that_ends_with_it() {
    // Rule: [HSRV-012] [HSRV-018] [SSE-001] [SSE-004] [SSE-005] [RESUME-003].
    let mut site = site();
    let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1.0}}"#;
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#;
    for revision in RESUMING {
        let session = site.open(revision, "{}");
        let reply = site.post(&session, &call(1));
        let asked = site.asked();
        site.progress(asked.handle, 1.0);
        site.answer_to(asked.handle);
        let expected = if revision == Revision::V2025_11_25 {
            format!("200 text/event-stream\nid=2-0 \nid=2-1 {progress}\nid=2-2 {answer}\nend")
        } else {
            // The id alone: these clients know nothing of events without data.
            format!("200 text/event-stream\nid=2-0 alone\nid=2-1 {progress}\nid=2-2 {answer}\nend")
        };
        assert_eq!(site.reply(reply).transcript(), expected);
    }
}

#[test]
fn a_modern_stream_has_no_ids_and_is_not_to_be_buffered() {
    // Rule: [HSRV-019] [HSRV-027] [HSRV-028] [SSE-015] [RESUME-008].
    let mut site = site();
    let reply = site.modern(&modern_call(1));
    let asked = site.asked();
    site.progress(asked.handle, 1.0);
    let transcript = site.reply(reply).transcript();
    assert!(transcript.ends_with("\"progress\":1.0}}\n..."), "{transcript}");
    site.answer_to(asked.handle);
    let reply = site.reply(reply);
    assert_eq!(reply.field("x-accel-buffering"), Some("no"));
    assert_eq!(reply.field("cache-control"), Some("no-cache, no-transform"));
    assert_eq!(reply.state, State::Complete);
    assert!(reply.events().iter().all(|event| event.id.is_none() && event.retry.is_none()));
    assert_eq!(reply.messages().len(), 2);
    assert_eq!(reply.messages()[1]["id"], 1);
    site.expect_empty();
}

#[test]
fn messages_of_a_request_travel_on_its_stream_and_on_no_other() {
    // Rule: [HSRV-016] [HSRV-017] [HSRV-018] [HSRV-019].
    let mut site = site();
    let session = site.open(Revision::V2025_06_18, "{}");
    let other = site.open(Revision::V2025_06_18, "{}");
    let stream = site.get(&session);
    let replies = [
        site.post(&session, &call(1)),
        site.post(&session, &call(2)),
        site.post(&other, &call(1)),
        site.modern(&modern_call(1)),
    ];
    let asked: Vec<_> = replies.iter().map(|_| site.asked().handle).collect();
    for round in 0..3 {
        for (index, handle) in asked.iter().enumerate() {
            site.progress(*handle, f64::from(round));
            let now = site.now;
            site.server.log(Some(*handle), LoggingLevel::Error, None, &index, now).unwrap();
            site.pump();
        }
    }
    asked.iter().rev().for_each(|handle| site.answer_to(*handle));
    for (index, reply) in replies.into_iter().enumerate() {
        let messages = site.reply(reply).messages();
        let logged = |message: &&serde_json::Value| message["method"] == "notifications/message";
        let logs: Vec<_> = messages.iter().filter(logged).collect();
        // A modern request gets the log messages that it asks for, and this one asks for none.
        assert_eq!(logs.len(), if index == 3 { 0 } else { 3 });
        assert!(logs.iter().all(|message| message["params"]["data"] == index));
        assert_eq!(messages.len(), logs.len() + 4);
        assert_eq!(messages.last().unwrap()["id"], if index == 1 { 2 } else { 1 });
    }
    assert_eq!(site.reply(stream).messages(), [] as [serde_json::Value; 0]);
}

#[test]
fn questions_go_on_the_stream_of_their_request_and_answers_come_in_another_post() {
    // Rule: [HSRV-008] [HSRV-018].
    let mut site = site();
    for revision in RESUMING {
        let session = site.open(revision, ROOTS);
        let stream = site.get(&session);
        let reply = site.post(&session, &call(1));
        let asked = site.asked();
        let first = asked.handle;
        site.server.require_input(asked, &ask_for_roots(), site.now).unwrap();
        site.pump();
        let question = site.reply(reply).messages()[0].clone();
        assert_eq!(question["method"], "roots/list", "{revision}");
        let answer =
            format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"roots":[]}}}}"#, question["id"]);
        let accepted = site.post(&session, &answer);
        assert_eq!(site.reply(accepted).transcript(), "202\n");
        let again = site.asked();
        assert_eq!(again.handle, first);
        assert_eq!(again.inputs.response("where").unwrap().as_str(), r#"{"roots":[]}"#);
        site.answer_to(again.handle);
        assert_eq!(site.reply(reply).messages()[1]["id"], 1);
        assert_eq!(site.reply(reply).state, State::Complete);
        assert_eq!(site.reply(stream).messages().len(), 0);
    }
}

#[test]
fn a_modern_client_is_asked_in_the_answer_and_never_by_a_request() {
    // Rule: [HSRV-020].
    let mut site = site();
    let body = modern_with(1, "tools/call", r#""name":"t""#, "2026-07-28", ROOTS);
    let reply = site.modern(&body);
    let asked = site.asked();
    site.server.require_input(asked, &ask_for_roots(), site.now).unwrap();
    site.pump();
    let result = &site.reply(reply).json()["result"];
    assert_eq!(result["resultType"], "input_required");
    assert_eq!(result["inputRequests"]["where"]["method"], "roots/list");
    site.expect_empty();
}

#[test]
fn a_response_opens_as_a_stream_when_the_answer_takes_long() {
    let mut site = site();
    let session = site.open(Revision::V2025_11_25, "{}");
    let legacy = site.post(&session, &call(1));
    let modern = site.modern(&modern_call(1));
    site.advance(Duration::from_millis(4999));
    assert_eq!(site.reply(legacy).status, None);
    site.advance(Duration::from_millis(1));
    assert_eq!(site.reply(legacy).transcript(), "200 text/event-stream\nid=2-0 \n...");
    assert_eq!(site.reply(modern).transcript(), "200 text/event-stream\n...");
    site.answer();
    site.answer();
    assert_eq!(site.reply(legacy).messages()[0]["id"], 1);
    assert_eq!(site.reply(modern).messages()[0]["id"], 1);
}

#[test]
fn answers_come_as_streams_at_once_where_the_server_says_so() {
    let mut site = site_with(ServerOptions::new().answers(ResponseMode::Stream));
    let opened = site.request("POST", "/mcp", &POST, &initialize(Revision::V2025_11_25, "{}"));
    assert!(site.reply(opened).is_stream());
    assert_eq!(site.reply(opened).field("mcp-session-id").map(str::len), Some(32));
    for revision in RESUMING {
        let session = site.open(revision, "{}");
        let reply = site.post(&session, &call(1));
        let primed = if revision == Revision::V2025_11_25 { "id=2-0 \n" } else { "id=2-0 alone\n" };
        let expected = format!("200 text/event-stream\n{primed}...");
        assert_eq!(site.reply(reply).transcript(), expected);
        site.answer();
        assert_eq!(site.reply(reply).messages()[0]["id"], 1);
        let refused = site.post(&session, r#"{"jsonrpc":"2.0","id":5,"method":5}"#);
        assert_eq!(site.reply(refused).status(), 400, "errors of the form stay errors of HTTP");
        site.events.clear();
    }
}

#[test]
fn the_machine_answers_by_itself_as_json() {
    let mut site = site_of(Revisions::ALL);
    let session = site.open(Revision::V2025_11_25, "{}");
    for (method, params) in [("ping", "{}"), ("logging/setLevel", r#"{"level":"error"}"#)] {
        let reply = site.post(&session, &request(1, method, params));
        assert_eq!(site.reply(reply).json()["result"].to_string(), "{}");
    }
    site.expect_no_event();
}

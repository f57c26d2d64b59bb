use mcp_sansio::Recorded;
use mcp_sansio::jsonrpc::{RawJson, WriteError, WriteJson};
use mcp_sansio::peer::{Body, ClientCommand, Server, ServerCommand, ServerOptions};
use mcp_sansio::protocol::{CallToolResult, Implementation, Verbatim};
use mcp_sansio::{Instant, Revision};
use serde::{Deserialize, Serialize};

use crate::played::Played;

/// Reads a command, and checks that it is written as it was.
fn check<'a, C: Serialize + Deserialize<'a>>(text: &'a str) {
    let command: C = serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(serde_json::to_string(&command).unwrap(), text);
}

#[test]
fn every_command_is_restored_from_its_text() {
    for text in [
        r#"{"call":{"method":"tools/call","params":{ "name":"a"},"options":{}}}"#,
        r#"{"call":{"method":{"other":"tools/call"},"params":{},"options":{"progress":true}}}"#,
        r#"{"call":{"method":"ping","options":{"timeout":{"secs":1,"nanos":2},"task":{"ttl":null}}}}"#,
        r#"{"cancel":{"call":[1,2],"reason":"\"why\""}}"#,
        r#"{"notify":{"method":"notifications/roots/list_changed","params":{}}}"#,
        r#"{"notify_other":{"method":"x/y","params":{}}}"#,
        r#"{"subscribe":{"toolsListChanged":true}}"#,
        r#"{"set_log_level":"error"}"#,
        r#"{"answer_input":{"input":{"request":[3,4]},"result":{}}}"#,
        r#"{"refuse_input":{"input":{"round":{"call":[1,2],"round":3,"index":4}},"error":{"code":-1,"message":"no"}}}"#,
        r#"{"respond":{"request":[1,2],"result":{}}}"#,
        r#"{"reject":{"request":[1,2],"error":{"code":-1,"message":"no"}}}"#,
        r#""close""#,
    ] {
        check::<ClientCommand<'_>>(text);
    }
    for text in [
        r#"{"call":{"method":"ping","params":{},"options":{}}}"#,
        r#"{"cancel":{"call":[1,2],"reason":""}}"#,
        r#"{"notify":{"method":"notifications/tasks/status","params":{}}}"#,
        r#"{"notify_other":{"request":[1,2,3,4],"method":"x/y","params":{}}}"#,
        r#"{"respond":{"request":[1,2,3,4],"result":{"a":1.50}}}"#,
        r#"{"reject":{"request":[1,2],"error":{"code":-1,"message":"no"}}}"#,
        r#"{"require_input":{"request":{"handle":[1,2],"method":"tools/call"},"required":{"resultType":"input_required","requestState":"s"}}}"#,
        r#"{"withdraw_input":[1,2]}"#,
        r#"{"progress":{"request":[1,2],"progress":"0.1","total":"0.30000000000000004","message":"m"}}"#,
        r#"{"progress":{"request":[1,2],"progress":"NaN"}}"#,
        r#"{"task_progress":{"request":[1,2],"params":{}}}"#,
        r#"{"log":{"request":[1,2],"level":"debug","logger":"l","data":null}}"#,
        r#"{"log":{"level":"debug"}}"#,
        r#"{"resource_updated":{"uri":"a:1"}}"#,
        r#"{"announce":{"tools":true,"prompts":false,"resources":false}}"#,
        r#""close""#,
    ] {
        check::<ServerCommand<'_>>(text);
    }
}

#[test]
fn a_value_becomes_the_text_of_a_revision() {
    let result = CallToolResult::text("hi");
    let value = Body::Value(&result);
    for revision in [Revision::V2024_11_05, Revision::LATEST] {
        let Body::Json(json) = value.clone().to_text(revision) else { panic!("a value") };
        let mut expected = String::new();
        value_text(&value, revision, &mut expected).unwrap();
        assert_eq!(json.as_str(), expected);
    }
    let unwritable = |_: &mut String| Err(WriteError::NotAnObject);
    let unwritable = Verbatim(&unwritable as &dyn WriteJson);
    let body = Body::Value(&unwritable).to_text(Revision::LATEST);
    assert!(matches!(body, Body::Value(_)), "{body:?}");
    let text = Body::from(RawJson::EMPTY_OBJECT).to_text(Revision::LATEST);
    assert!(matches!(text, Body::Json(json) if json == RawJson::EMPTY_OBJECT));
}

fn value_text(body: &Body<'_>, revision: Revision, out: &mut String) -> Result<(), WriteError> {
    use mcp_sansio::protocol::WriteJsonAt as _;
    body.write_json_at(revision, out)
}

#[test]
fn bytes_that_were_read_but_not_removed_are_replayed() {
    let (tape, played) = Played::new();
    let options = ServerOptions::new(Implementation::new("s", "1"));
    let mut server = Recorded::<Server>::new(options, 0, tape);
    let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    server.handle_message(ping, Instant::from_millis(1)).unwrap();
    let length = server.peek_transmit().len();
    server.handle_message(ping, Instant::from_millis(2)).unwrap();
    assert!(server.peek_transmit().len() >= length);
    server.consume_transmit(length);
    let recording = String::from_utf8(played.bytes()).unwrap();
    assert_eq!(recording.matches(r#""peek""#).count(), 1, "{recording}");
}

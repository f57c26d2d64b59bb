//! Validation of the arguments and results of tools by a server without handlers.

use mcp_sansio::catalog::{Catalog, CompiledSchema, Target, Validator};
use mcp_sansio::jsonrpc::{Json, RawJson};
use mcp_sansio::peer::{CommandError, Event, Server, ServerMachine, ServerOptions};
use mcp_sansio::protocol::{CallToolResult, Implementation, TaskSupport, Tool, ToolExecution};
use mcp_sansio::{Instant, PanicGuard, Revision};
use serde_json::{Value, json};

use crate::fixtures::{INITIALIZED, full_server, initialize, modern, request};

/// Requires an object with a member `n`, and panics at one with a member `panic`.
#[derive(Clone, Debug)]
struct WantsN;

impl Validator for WantsN {
    fn compile(&self, _: &Json) -> Result<Box<dyn CompiledSchema>, String> {
        Ok(Box::new(Self))
    }
    fn clone_boxed(&self) -> Box<dyn Validator> {
        Box::new(Self)
    }
}

impl CompiledSchema for WantsN {
    fn validate(&self, value: &RawJson<'_>) -> Result<(), String> {
        assert!(value.get("panic").is_none(), "on demand");
        value.get("n").map(|_| ()).ok_or_else(|| "`n` is missing".into())
    }
    fn clone_boxed(&self) -> Box<dyn CompiledSchema> {
        Box::new(Self)
    }
}

fn options(output: bool) -> ServerOptions {
    let schema = Json::from(RawJson::parse(r#"{"type":"object"}"#).unwrap());
    let mut tool = Tool::new("t", schema.clone());
    if output {
        tool = tool.output_schema(schema);
    }
    let mut catalog = Catalog::new();
    catalog.validator(WantsN).unwrap();
    catalog.add_tool(tool).unwrap();
    full_server().catalog(catalog)
}

/// Returns options of a server whose only tool can run as a task.
fn with_tasks() -> ServerOptions {
    let schema = Json::from(RawJson::parse(r#"{"type":"object"}"#).unwrap());
    let mut tool = Tool::new("t", schema);
    tool.execution = Some(ToolExecution::new().task_support(TaskSupport::Optional));
    let mut catalog = Catalog::new();
    catalog.validator(WantsN).unwrap();
    catalog.add_tool(tool).unwrap();
    super::tasks::with_tasks().catalog(catalog)
}

/// Returns a server in a session of `revision`, or, at the modern revision, before the first
/// request.
fn opened(options: ServerOptions, revision: Revision) -> Server {
    let mut server = Server::new(options, 7);
    if revision != Revision::V2026_07_28 {
        for line in [&*initialize(revision.as_str(), "{}"), INITIALIZED] {
            server.handle_message(line.as_bytes(), Instant::ZERO).unwrap();
        }
        drop(said(&mut server));
    }
    server
}

fn call(revision: Revision, arguments: &str) -> String {
    if revision == Revision::V2026_07_28 {
        modern("1", "tools/call", &format!(r#""name":"t","arguments":{arguments}"#))
    } else {
        request("1", "tools/call", &format!(r#"{{"name":"t","arguments":{arguments}}}"#))
    }
}

fn said(server: &mut Server) -> Vec<Value> {
    let mut text = Vec::new();
    while let Some(bytes) = server.poll_transmit() {
        text.extend_from_slice(bytes);
    }
    let text = String::from_utf8(text).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn arguments_are_validated_before_the_application_receives_the_call() {
    // Rule: [TOOL-009] [TOOL-010].
    for revision in Revision::ALL {
        let mut server = opened(options(false), revision);
        let line = call(revision, r#"{"m":1}"#);
        let event = server.handle_message(line.as_bytes(), Instant::ZERO).unwrap();
        assert!(event.is_none(), "{revision}: {event:?}");
        let answer = said(&mut server).pop().unwrap();
        let text = "The arguments do not match the schema of the tool t: `n` is missing";
        if revision < Revision::V2025_11_25 {
            assert_eq!(answer["error"]["code"], -32602, "{revision}");
            assert_eq!(answer["error"]["message"], text);
        } else {
            assert_eq!(answer["result"]["isError"], true, "{revision}");
            assert_eq!(answer["result"]["content"], json!([{ "type": "text", "text": text }]));
        }
        let line = call(revision, r#"{"n":1}"#);
        let event = server.handle_message(line.as_bytes(), Instant::ZERO).unwrap();
        let Some(Event::Request(request)) = event else { panic!("{revision}: {event:?}") };
        assert!(matches!(request.target, Target::Tool(_)));
    }
}

#[test]
fn a_call_without_a_task_is_validated_although_its_tool_supports_tasks() {
    // Rule: [TOOL-010] [TASK-006].
    let revision = Revision::V2025_11_25;
    for (task, is_checked) in [("null", true), ("{}", false)] {
        let mut server = opened(with_tasks(), revision);
        let params = format!(r#"{{"name":"t","arguments":{{"m":1}},"task":{task}}}"#);
        let line = request("1", "tools/call", &params);
        let event = server.handle_message(line.as_bytes(), Instant::ZERO).unwrap();
        assert_eq!(event.is_none(), is_checked, "{task}: {event:?}");
        drop(event);
        assert_eq!(said(&mut server).iter().any(|it| it["result"]["isError"] == true), is_checked);
    }
}

#[test]
fn an_invalid_structured_result_is_not_sent() {
    // Rule: [TOOL-019].
    let json = |text: &str| Json::from(RawJson::parse(text).unwrap());
    let structured = |text: &str| CallToolResult::text(text).structured_content(json(text));
    for revision in Revision::ALL {
        let described = revision >= Revision::V2025_06_18;
        for (result, fits) in [
            (structured(r#"{"n":1}"#), true),
            (CallToolResult::error("it failed"), true),
            (structured(r#"{"m":1}"#), !described),
            (CallToolResult::text("words"), !described),
        ] {
            let mut server = opened(options(true), revision);
            let line = call(revision, r#"{"n":1}"#);
            let event = server.handle_message(line.as_bytes(), Instant::ZERO).unwrap();
            let Some(Event::Request(request)) = event else { panic!("{revision}: {event:?}") };
            let handle = request.handle;
            // The schema at the time of the call is used, not the one at the time of the response.
            server.edit_catalog(|catalog| drop(catalog.remove_tool("t")));
            let answered = server.respond(handle, &result, Instant::ZERO);
            let answer = said(&mut server).into_iter().find(|it| it["id"] == 1).unwrap();
            if fits {
                answered.unwrap();
                assert!(answer["result"].is_object(), "{revision}: {answer}");
            } else {
                let error = answered.unwrap_err();
                assert!(matches!(error, CommandError::InvalidOutput(_)), "{error}");
                assert_eq!(answer["error"]["code"], -32603, "{revision}: {answer}");
                assert_eq!(answer["error"]["message"], error.to_string());
            }
            assert!(matches!(
                server.respond(handle, &result, Instant::ZERO),
                Err(CommandError::NotDue)
            ));
        }
    }
}

#[test]
fn a_panic_of_a_validator_is_contained() {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    let mut server = opened(options(true), Revision::LATEST);
    server.catch_panics(PanicGuard::new(|function| catch_unwind(AssertUnwindSafe(function))));
    let bad = r#"{"panic":true}"#;
    let line = call(Revision::LATEST, bad);
    assert!(server.handle_message(line.as_bytes(), Instant::ZERO).unwrap().is_none());
    assert_eq!(said(&mut server)[0]["error"]["code"], -32603);
    let line = call(Revision::LATEST, r#"{"n":1}"#);
    let event = server.handle_message(line.as_bytes(), Instant::ZERO).unwrap();
    let Some(Event::Request(request)) = event else { panic!("{event:?}") };
    let result =
        CallToolResult::text(bad).structured_content(Json::from(RawJson::parse(bad).unwrap()));
    server.respond(request.handle, &result, Instant::ZERO).unwrap_err();
    assert_eq!(said(&mut server)[0]["error"]["code"], -32603);
}

#[test]
fn without_a_validator_only_the_presence_of_a_structured_result_is_checked() {
    let schema = Json::from(RawJson::parse(r#"{"type":"object"}"#).unwrap());
    let mut catalog = Catalog::new();
    catalog.add_tool(Tool::new("t", schema.clone()).output_schema(schema)).unwrap();
    let options = ServerOptions::new(Implementation::new("s", "1")).catalog(catalog);
    let mut server = opened(options, Revision::LATEST);
    for (result, fits) in [
        (CallToolResult::structured(&json!({ "m": 1 })).unwrap(), true),
        (CallToolResult::text("words"), false),
    ] {
        let line = call(Revision::LATEST, r#"{"m":1}"#);
        let event = server.handle_message(line.as_bytes(), Instant::ZERO).unwrap();
        let Some(Event::Request(request)) = event else { panic!("{event:?}") };
        assert_eq!(server.respond(request.handle, &result, Instant::ZERO).is_ok(), fits);
    }
}

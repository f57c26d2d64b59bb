//! The MCP server of the module. It does not depend on WebAssembly.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use core::time::Duration;

use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::Limits;
use mcp_sansio::protocol::{
    ElicitSchema, Prompt, PromptArgument, Resource, StringSchema, TextResourceContents, Tool,
};
use mcp_sansio_handlers::{Call, Elicit, HandlerError, NoArguments, ReadResource, Server};
use serde::Deserialize;
use spin::Mutex;

use crate::clock::Clock;

/// The resource that can change.
const NOTE: &str = "note://latest";

/// The maximum length of a note, in bytes.
const NOTE_LENGTH_MAX: usize = 4096;

#[derive(Deserialize)]
struct Text {
    text: String,
}

#[derive(Deserialize)]
struct Steps {
    steps: u16,
}

#[derive(Deserialize)]
struct Name {
    name: String,
}

/// Returns the server of one connection, which uses `clock`. Each server has its own note.
pub(crate) fn server(clock: &Clock) -> Server {
    let server = Server::new("wasm", env!("CARGO_PKG_VERSION"))
        .instructions("A server inside this program.")
        .limits(limits())
        .subscriptions();
    let note = Arc::new(Mutex::new(String::from("The note is empty.")));
    let server = questions(tools(server, clock));
    notes(server, &note).prompt_with(
        Prompt::new("introduce")
            .description("Asks for an introduction")
            .arguments([PromptArgument::new("name").description("Of whom").required(true)]),
        |call: Call<Name>| format!("Introduce {} to the others.", call.arguments.name),
    )
}

/// Limits for a host with other work. A pending call of a legacy client keeps its whole line, so 64
/// calls need up to 16 MiB.
fn limits() -> Limits {
    let mut limits = Limits::DEFAULT;
    limits.requests_in_flight_max = 64;
    limits.transmit_bytes_max = 1 << 20;
    limits
}

fn tools(server: Server, clock: &Clock) -> Server {
    let clock = clock.clone();
    server
        .tool_with(
            Tool::new("echo", schema(TEXT)).description("Returns the text"),
            |call: Call<Text>| call.arguments.text.clone(),
        )
        .tool_with(
            Tool::new("countdown", schema(STEPS)).description("Counts, twenty steps a second"),
            move |call: Call<Steps>| {
                let clock = clock.clone();
                async move { countdown(&call, &clock).await }
            },
        )
}

const TEXT: &str =
    r#"{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}"#;

const STEPS: &str = r#"{"type":"object","properties":{"steps":{"type":"integer","minimum":1,"maximum":1000}},"required":["steps"]}"#;

async fn countdown(call: &Call<Steps>, clock: &Clock) -> Result<String, HandlerError> {
    let steps = call.arguments.steps;
    if !(1..=1000).contains(&steps) {
        return Err(HandlerError::failed("`steps` must be from 1 to 1000"));
    }
    for step in 1..=steps {
        call.progress(step.into(), Some(steps.into()), &format!("{} to go", steps - step));
        clock.sleep(Duration::from_millis(50)).await;
    }
    Ok(format!("Counted {steps} steps."))
}

fn questions(server: Server) -> Server {
    let tool = Tool::new("ask_name", schema(r#"{"type":"object"}"#));
    server.tool_with(
        tool.description("Asks the user for a name"),
        |call: Call<NoArguments>| -> Result<String, HandlerError> {
            let Some(answer) = call.input::<Name>("name")? else {
                let form = ElicitSchema::new().field("name", StringSchema::new());
                return call
                    .require_input("name", Elicit::form_with("What is your name?", form))
                    .into_result();
            };
            Ok(match answer.content {
                Some(Name { name }) => format!("Hello, {name}."),
                None => "Hello, stranger.".into(),
            })
        },
    )
}

fn notes(server: Server, note: &Arc<Mutex<String>>) -> Server {
    let (written, read) = (Arc::clone(note), Arc::clone(note));
    server
        .tool_with(
            Tool::new("write_note", schema(TEXT)).description("Replaces the note"),
            move |call: Call<Text>| {
                let text = &call.arguments.text;
                if text.len() > NOTE_LENGTH_MAX {
                    return Err(HandlerError::failed("the note is too long"));
                }
                written.lock().clone_from(text);
                call.resource_updated(NOTE)?;
                Ok("Noted.")
            },
        )
        .resource(
            Resource::new(NOTE, "note").description("The latest note"),
            move |_: Call<ReadResource>| TextResourceContents::new(NOTE, read.lock().clone()),
        )
}

/// Parses the schema of a tool's arguments.
fn schema(text: &'static str) -> RawJson<'static> {
    RawJson::parse(text).expect("the schemas of this file are JSON")
}

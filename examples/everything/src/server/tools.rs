//! Tools that need no input from the user or the model.

use std::time::Duration;

use mcp_sansio::LoggingLevel;
use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::protocol::{
    AudioContent, CallToolResult, ContentBlock, EmbeddedResource, ImageContent, ResourceContents,
    TextResourceContents, Tool,
};
use mcp_sansio_handlers::{Call, HandlerError, NoArguments, Server, ServerItem};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{media, resources};
use crate::runtime::Runtime;

/// The pause between the steps of a slow tool, long enough to be observed.
const PAUSE: Duration = Duration::from_millis(20);

/// The pause between log messages, as the conformance suite expects.
const LOG_PAUSE: Duration = Duration::from_millis(50);

/// The delay before a client reconnects after its connection was released.
const RETRY: Duration = Duration::from_millis(200);

#[derive(Debug, Deserialize, JsonSchema)]
struct Echo {
    /// The text to echo
    text: String,
}

#[derive(Debug, Deserialize)]
struct Header {
    value: String,
}

pub(super) fn offer(server: Server, runtime: Runtime) -> Server {
    server
        // The first tool in the list must succeed without arguments.
        .add_item(
            ServerItem::tool(
                "test_simple_text",
                "Returns a text",
                |_: Call<NoArguments>| "This is a simple text response for testing.",
            )
            .read_only(),
        )
        .add_item(
            ServerItem::tool("echo", "Sends the text back", |call: Call<Echo>| call.arguments.text)
                .read_only(),
        )
        .add_item(
            ServerItem::tool("test_image_content", "Returns an image", |_: Call<NoArguments>| {
                ContentBlock::from(image())
            })
            .read_only(),
        )
        .add_item(
            ServerItem::tool("test_audio_content", "Returns a sound", |_: Call<NoArguments>| {
                ContentBlock::from(AudioContent::new(media::WAV, media::WAV_TYPE))
            })
            .read_only(),
        )
        .add_item(
            ServerItem::tool(
                "test_embedded_resource",
                "Returns a resource",
                |_: Call<NoArguments>| {
                    embedded("test://embedded-resource", "This is an embedded resource content.")
                },
            )
            .read_only(),
        )
        .add_item(
            ServerItem::tool(
                "test_multiple_content_types",
                "Returns a text, an image and a resource",
                |_: Call<NoArguments>| {
                    vec![
                        ContentBlock::text("Multiple content types test:"),
                        image().into(),
                        embedded("test://mixed-content-resource", "a resource among others"),
                    ]
                },
            )
            .read_only(),
        )
        .add_item(
            ServerItem::tool("test_error_handling", "Fails, always", |_: Call<NoArguments>| {
                CallToolResult::error("This tool intentionally returns an error for testing")
            })
            .read_only(),
        )
        .add_item(
            ServerItem::tool(
                "test_tool_with_progress",
                "Reports progress three times",
                move |call: Call<NoArguments>| async move {
                    for percent in [0.0, 50.0, 100.0] {
                        call.progress(percent, Some(100.0), &format!("{percent} of 100 done"));
                        runtime.sleep(PAUSE).await;
                    }
                    "All three steps are done."
                },
            )
            .read_only(),
        )
        .add_item(
            ServerItem::tool(
                "test_tool_with_logging",
                "Sends three log messages",
                move |call: Call<NoArguments>| async move {
                    for (index, message) in [
                        "Tool execution started",
                        "Tool processing data",
                        "Tool execution completed",
                    ]
                    .into_iter()
                    .enumerate()
                    {
                        if index > 0 {
                            runtime.sleep(LOG_PAUSE).await;
                        }
                        call.log(LoggingLevel::Info, message);
                    }
                    "Three messages were logged."
                },
            )
            .read_only(),
        )
        .add_item(
            ServerItem::tool(
                "test_logging_tool",
                "Sends a log message to clients that requested logging",
                |call: Call<NoArguments>| {
                    call.log((LoggingLevel::Info, "test_logging_tool"), "called");
                    "Logged."
                },
            )
            .read_only(),
        )
        .add_item(
            ServerItem::tool(
                "test_reconnection",
                "Takes its time",
                move |call: Call<NoArguments>| async move {
                    // Over HTTP, the client reconnects for the result.
                    call.release_connection(RETRY);
                    runtime.sleep(LOG_PAUSE).await;
                    "The result was worth the wait."
                },
            )
            .read_only(),
        )
        .tool(
            "test_trigger_tool_change",
            "Changes the list of tools by changing this description",
            trigger_tool_change,
        )
        .tool(
            "test_trigger_prompt_change",
            "Changes the list of prompts by changing a description",
            trigger_prompt_change,
        )
        .tool(
            super::WRITES,
            "Reports an update of test://watched-resource",
            |call: Call<NoArguments>| {
                call.resource_updated(resources::WATCHED)?;
                Ok::<_, HandlerError>("Touched.")
            },
        )
        .add_item(
            ServerItem::new(
                Tool::new("test_custom_header", literal(CUSTOM_HEADER))
                    .description("Takes a value that HTTP clients also send in a header"),
                |call: Call<Header>| call.arguments.value,
            )
            .read_only(),
        )
        .add_item(
            ServerItem::new(
                Tool::new("json_schema_2020_12_tool", literal(JSON_SCHEMA_2020_12))
                    .description("Takes arguments whose schema uses much of JSON Schema 2020-12"),
                |_: Call<serde_json::Value>| "The schema was accepted.",
            )
            .read_only(),
        )
}

fn image() -> ImageContent {
    ImageContent::new(media::PNG, media::PNG_TYPE)
}

/// Returns a text resource as a content block.
pub(super) fn embedded(uri: &str, text: &str) -> ContentBlock {
    let contents = TextResourceContents::new(uri, text).mime_type("text/plain");
    EmbeddedResource::new(ResourceContents::Text(contents)).into()
}

fn trigger_tool_change(call: Call<NoArguments>) -> Result<&'static str, HandlerError> {
    call.edit_catalog(|catalog| {
        if let Some(tool) = catalog.tool("test_trigger_tool_change") {
            let mut tool = tool.clone();
            tool.description = Some(toggled(tool.description));
            // The tool was valid before, and only its description changes.
            let _updated = catalog.update_tool(tool);
        }
    })?;
    Ok("The list of tools has changed.")
}

fn trigger_prompt_change(call: Call<NoArguments>) -> Result<&'static str, HandlerError> {
    call.edit_catalog(|catalog| {
        if let Some(prompt) = catalog.prompt("test_simple_prompt") {
            let mut prompt = prompt.clone();
            prompt.description = Some(toggled(prompt.description));
            // As in `trigger_tool_change`.
            let _updated = catalog.update_prompt(prompt);
        }
    })?;
    Ok("The list of prompts has changed.")
}

/// Adds or removes a mark at the end of the description.
fn toggled(description: Option<String>) -> String {
    const MARK: &str = " (changed)";
    let text = description.unwrap_or_default();
    match text.strip_suffix(MARK) {
        Some(plain) => plain.into(),
        None => text + MARK,
    }
}

fn literal(text: &'static str) -> RawJson<'static> {
    RawJson::parse(text).expect("a literal of this file")
}

const CUSTOM_HEADER: &str = r#"{
    "type": "object",
    "properties": { "value": { "type": "string", "x-mcp-header": "Value" } },
    "required": ["value"]
}"#;

/// Listed exactly as written here, including white space.
const JSON_SCHEMA_2020_12: &str = r##"{
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": { "street": { "type": "string" }, "city": { "type": "string" } }
        }
    },
    "properties": {
        "name": { "type": "string" },
        "address": { "$ref": "#/$defs/address" },
        "contactMethod": { "type": "string", "enum": ["phone", "email"] },
        "phone": { "type": "string" },
        "email": { "type": "string" }
    },
    "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
    "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
    "then": { "required": ["phone"] },
    "else": { "required": ["email"] },
    "additionalProperties": false
}"##;

//! `check`: lists everything, tries one item of each kind, and prints a summary.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mcp_sansio::Capability;
use mcp_sansio::protocol::{ResourceContents, Tool};
use mcp_sansio_cli::canned::{self, Seen};
use mcp_sansio_handlers::{Client, ClientError, Session};
use serde::Serialize;
use serde_json::{Value, json};

use crate::commands::{capabilities, none_if_unknown, output_of, server_info};
use crate::failure::Failure;
use crate::terminal::show;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary {
    client: String,
    ok: bool,
    errors: Vec<String>,
    protocol_version: String,
    server_info: Value,
    capabilities: Vec<String>,
    tools: Vec<String>,
    calls: Vec<Value>,
    resources: Vec<String>,
    resource_templates: Vec<String>,
    read: Option<String>,
    prompts: Vec<String>,
    prompt_messages: Option<usize>,
    seen: Value,
}

/// The maximum length of a text in the summary, in characters.
const TEXT_LENGTH_MAX: usize = 200;

/// Lists everything and tries one item of each kind; with `read_only`, only a tool that is
/// annotated as read-only.
pub(crate) async fn check(
    client: &Client,
    session: &Session,
    seen: &Seen,
    read_only: bool,
) -> Result<(), Failure> {
    let mut summary = Summary {
        client: format!("{} {}", crate::NAME, env!("CARGO_PKG_VERSION")),
        ok: false,
        errors: Vec::new(),
        protocol_version: session.revision.as_str().into(),
        server_info: server_info(session),
        capabilities: capabilities(session),
        tools: Vec::new(),
        calls: Vec::new(),
        resources: Vec::new(),
        resource_templates: Vec::new(),
        read: None,
        prompts: Vec::new(),
        prompt_messages: None,
        seen: Value::Null,
    };
    let progress = Arc::new(AtomicUsize::new(0));
    let declares = |capability| session.capabilities.contains(capability);
    if declares(Capability::Tools) {
        try_tools(client, &mut summary, &progress, read_only).await?;
    }
    if declares(Capability::Resources) {
        try_resources(client, &mut summary).await?;
    }
    if declares(Capability::Prompts) {
        try_prompts(client, &mut summary).await?;
    }
    let count = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
    summary.seen = json!({
        "progress": count(&progress), "elicitation": count(&seen.elicitation),
        "sampling": count(&seen.sampling), "roots": count(&seen.roots),
        "logging": count(&seen.logging),
    });
    summary.ok = summary.errors.is_empty();
    show(&serde_json::to_string_pretty(&summary)?);
    if summary.ok { Ok(()) } else { Err(Failure::Other(summary.errors.join("; "))) }
}

/// Returns the result of a step, or notes its failure in the summary. Only a lost connection ends
/// the check.
fn step<T>(
    summary: &mut Summary,
    what: &str,
    result: Result<T, ClientError>,
) -> Result<Option<T>, Failure> {
    match result.map_err(Failure::from) {
        Ok(value) => Ok(Some(value)),
        Err(failure @ (Failure::Other(_) | Failure::Transport(_))) => {
            summary.errors.push(format!("{what}: {failure}"));
            Ok(None)
        }
        Err(failure) => Err(failure),
    }
}

async fn try_tools(
    client: &Client,
    summary: &mut Summary,
    progress: &Arc<AtomicUsize>,
    read_only: bool,
) -> Result<(), Failure> {
    let listed = client.all_tools().await;
    let Some(mut tools) = step(summary, "tools/list", listed)? else { return Ok(()) };
    summary.tools = tools.iter().map(|tool| tool.name.clone()).collect();
    if read_only {
        tools.retain(|tool| {
            tool.annotations.as_ref().is_some_and(|hints| hints.read_only_hint == Some(true))
        });
    }
    let Some((tool, arguments)) = choose(&tools) else { return Ok(()) };
    let counter = Arc::clone(progress);
    let called = client
        .call_tool(&tool.name, &arguments)
        .on_progress(move |_| {
            counter.fetch_add(1, Ordering::Relaxed);
        })
        .await;
    if let Some(result) = step(summary, &format!("tools/call {}", tool.name), called)? {
        let text = output_of(&result, " ");
        summary.calls.push(json!({
            "tool": tool.name,
            "isError": result.is_error == Some(true),
            "progress": progress.load(Ordering::Relaxed),
            "text": shortened(&text),
        }));
    }
    Ok(())
}

/// Chooses a tool that is safe to call, and its arguments: `echo`, otherwise a tool without
/// required arguments, otherwise the first.
fn choose(tools: &[Tool]) -> Option<(&Tool, Value)> {
    let schema = |tool: &Tool| tool.input_schema.decode::<Value>().unwrap_or_default();
    let asks_nothing = |tool: &&Tool| schema(tool)["required"].as_array().is_none_or(Vec::is_empty);
    let echo = tools.iter().find(|tool| tool.name == "echo");
    let tool = echo.or_else(|| tools.iter().find(asks_nothing)).or_else(|| tools.first())?;
    let schema = schema(tool);
    let mut arguments = canned::arguments(&schema);
    if tool.name == "echo" && schema["properties"]["text"].is_object() {
        arguments["text"] = json!("hello");
    }
    Some((tool, arguments))
}

async fn try_resources(client: &Client, summary: &mut Summary) -> Result<(), Failure> {
    let listed = client.all_resources().await;
    let resources = step(summary, "resources/list", listed)?.unwrap_or_default();
    summary.resources = resources.iter().map(|resource| resource.uri.clone()).collect();
    let listed = none_if_unknown(client.all_resource_templates().await);
    let templates = step(summary, "resources/templates/list", listed)?.unwrap_or_default();
    summary.resource_templates =
        templates.into_iter().map(|template| template.uri_template).collect();
    let Some(first) = resources.first() else { return Ok(()) };
    let read = client.read_resource(&first.uri).await;
    if let Some(result) = step(summary, &format!("resources/read {}", first.uri), read)? {
        summary.read = result.contents.first().map(|contents| match contents {
            ResourceContents::Text(contents) => shortened(&contents.text),
            _ => "<blob>".into(),
        });
    }
    Ok(())
}

async fn try_prompts(client: &Client, summary: &mut Summary) -> Result<(), Failure> {
    let listed = client.all_prompts().await;
    let prompts = step(summary, "prompts/list", listed)?.unwrap_or_default();
    summary.prompts = prompts.iter().map(|prompt| prompt.name.clone()).collect();
    let Some(first) = prompts.first() else { return Ok(()) };
    let arguments = first.arguments.iter().flatten();
    let required = arguments.filter(|argument| argument.required == Some(true));
    let given = required.map(|argument| (argument.name.clone(), "hello".into()));
    let got = client.get_prompt(&first.name, given.collect::<Vec<_>>()).await;
    if let Some(result) = step(summary, &format!("prompts/get {}", first.name), got)? {
        summary.prompt_messages = Some(result.messages.len());
    }
    Ok(())
}

fn shortened(text: &str) -> String {
    text.chars().take(TEXT_LENGTH_MAX).collect()
}

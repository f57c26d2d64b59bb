//! The subcommands.

use std::sync::atomic::Ordering;

use mcp_sansio::jsonrpc::{Json, RawJson};
use mcp_sansio::peer::{Failure as CallFailure, Progress};
use mcp_sansio::protocol::{
    CallToolResult, CompleteParams, CompletionArgument, ContentBlock, ResourceContents,
    SerializeAt, SubscriptionFilter,
};
use mcp_sansio::{Capability, ErrorCode, LoggingLevel, Method, Revision};
use mcp_sansio_cli::canned::Seen;
use mcp_sansio_handlers::{Client, ClientError, Session};
use serde_json::{Value, json};

use crate::NAME;
use crate::failure::Failure;
use crate::options::{Command, Options};
use crate::terminal::{draw_progress, say, say_progress, show, show_field, show_table};
use crate::{check, skills};

/// Returns no items if the server does not know the method of a list.
///
/// `resources/templates/list` has no capability of its own: servers that declare `resources` and
/// have no templates often do not implement it.
pub(crate) fn none_if_unknown<T>(
    listed: Result<Vec<T>, ClientError>,
) -> Result<Vec<T>, ClientError> {
    match listed {
        Err(ClientError::Failed(CallFailure::Refused(error)))
            if error.code == ErrorCode::METHOD_NOT_FOUND =>
        {
            Ok(Vec::new())
        }
        listed => listed,
    }
}

pub(crate) async fn run(options: &Options, client: &Client, seen: &Seen) -> Result<(), Failure> {
    let session = client.opened().await?;
    let outcome = execute(options, client, &session, seen).await;
    outcome.map_err(|failure| failure.with_advice(session.revision))
}

async fn execute(
    options: &Options,
    client: &Client,
    session: &Session,
    seen: &Seen,
) -> Result<(), Failure> {
    let has_lines = options.wire || options.trace;
    let output = Output { json: options.json, has_lines, revision: session.revision };
    match &options.command {
        // Read without a connection.
        Command::Card => {}
        Command::Info => info(&output, session),
        Command::Tools => {
            let tools = client.all_tools().await?;
            output.list(&tools, |tool| (&tool.name, tool.description.as_deref()))?;
        }
        Command::Call { name, arguments } => {
            call(&output, client, session, name, arguments).await?
        }
        Command::Resources => {
            let resources = client.all_resources().await?;
            output.list(&resources, |resource| (&resource.uri, Some(&resource.name)))?;
            let templates = none_if_unknown(client.all_resource_templates().await)?;
            output.list(&templates, |template| (&template.uri_template, Some(&template.name)))?;
        }
        Command::Read { uri } if options.json => {
            show_call(client, Method::ResourcesRead, &json!({ "uri": uri })).await?;
        }
        Command::Read { uri } => {
            let result = client.read_resource(uri).await?;
            let text = |contents: &ResourceContents| match contents {
                ResourceContents::Text(contents) => contents.text.clone(),
                ResourceContents::Blob(contents) => contents.blob.clone(),
                other => unknown(other),
            };
            show(&result.contents.iter().map(text).collect::<Vec<_>>().join("\n"));
        }
        Command::Prompts => {
            let prompts = client.all_prompts().await?;
            output.list(&prompts, |prompt| (&prompt.name, prompt.description.as_deref()))?;
        }
        Command::Get { name, arguments } if options.json => {
            let arguments: serde_json::Map<_, _> =
                arguments.iter().map(|(name, text)| (name.clone(), json!(text))).collect();
            let params = json!({ "name": name, "arguments": arguments });
            show_call(client, Method::PromptsGet, &params).await?;
        }
        Command::Get { name, arguments } => {
            let result = client.get_prompt(name, arguments.iter().cloned()).await?;
            let line = |message: &mcp_sansio::protocol::PromptMessage| {
                format!("{}: {}", message.role, text_of(&message.content))
            };
            show(&result.messages.iter().map(line).collect::<Vec<_>>().join("\n"));
        }
        Command::Complete { reference, argument, value } => {
            let argument = CompletionArgument::new(argument.as_str(), value.as_str());
            let params = CompleteParams::new(reference.clone(), argument);
            if options.json {
                let params = params.to_json_at(session.revision)?;
                let result = client.call(Method::CompletionComplete, params.as_raw()).await?;
                show_json(&result);
            } else {
                show(&client.complete(&params).await?.completion.values.join("\n"));
            }
        }
        Command::Skills { uri: None } => {
            skills::list(client, &options.server_label(), options.json).await?;
        }
        Command::Skills { uri: Some(uri) } => {
            skills::show_one(client, &options.server_label(), uri, options.json).await?;
        }
        Command::Listen { uris } => listen(client, session, uris, seen).await?,
        Command::Check { read_only } => {
            return check::check(client, session, seen, *read_only).await;
        }
    }
    Ok(())
}

/// The output format of results.
struct Output {
    json: bool,
    /// Whether lines of `--wire` or `--trace` come in between.
    has_lines: bool,
    revision: Revision,
}

/// Prints JSON as the server wrote it, in one line.
fn show_json(result: &Json) {
    show(&result.as_str().replace(['\n', '\r'], ""));
}

/// Sends a call and prints its result as JSON.
async fn show_call(client: &Client, method: Method, params: &Value) -> Result<(), Failure> {
    let params = params.to_string();
    show_json(&client.call(method, RawJson::parse(&params)?).await?);
    Ok(())
}

impl Output {
    /// Prints the name and the description of each item.
    fn list<T: SerializeAt>(
        &self,
        items: &[T],
        row: impl Fn(&T) -> (&str, Option<&str>),
    ) -> Result<(), Failure> {
        if self.json {
            // The newest revision has every member that an item may have, but for the tasks of this one.
            let revision = match self.revision {
                Revision::V2025_11_25 => self.revision,
                _ => Revision::LATEST,
            };
            return items.iter().try_for_each(|item| {
                show(item.to_json_at(revision)?.as_str());
                Ok(())
            });
        }
        show_table(&items.iter().map(row).collect::<Vec<_>>());
        Ok(())
    }
}

/// Describes a content block as text.
pub(crate) fn text_of(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(content) => content.text.clone(),
        ContentBlock::Image(content) => format!("[picture, {}]", content.mime_type),
        ContentBlock::Audio(content) => format!("[sound, {}]", content.mime_type),
        ContentBlock::ResourceLink(link) => format!("[link to {}]", link.uri),
        ContentBlock::Resource(content) => match &content.resource {
            ResourceContents::Text(contents) => contents.text.clone(),
            ResourceContents::Blob(contents) => format!("[contents of {}]", contents.uri),
            other => unknown(other),
        },
        other => unknown(other),
    }
}

/// Describes content of an unknown kind.
fn unknown(content: &impl SerializeAt) -> String {
    content
        .to_json_at(Revision::LATEST)
        .map_or_else(|error| error.to_string(), |it| it.as_str().into())
}

/// Describes the output of a tool as text: its content, or its structured content as JSON where the
/// content shows nothing.
pub(crate) fn output_of(result: &CallToolResult, separator: &str) -> String {
    let text = result.content.iter().map(text_of).collect::<Vec<_>>().join(separator);
    match &result.structured_content {
        Some(structured) if text.is_empty() => structured.as_str().into(),
        _ => text,
    }
}

/// Returns the server's description of itself, or `{}` if it sent none.
pub(crate) fn server_info(session: &Session) -> Value {
    let info = session.server_info.as_ref().and_then(|info| info.decode().ok());
    info.unwrap_or_else(|| json!({}))
}

/// Returns the names of the declared capabilities.
pub(crate) fn capabilities(session: &Session) -> Vec<String> {
    let declared = session.capabilities_json.decode::<serde_json::Map<String, Value>>();
    declared
        .map(|declared| declared.into_iter().map(|(name, _)| name).collect())
        .unwrap_or_default()
}

fn info(output: &Output, session: &Session) {
    let info = server_info(session);
    if output.json {
        let capabilities = session.capabilities_json.decode::<Value>().unwrap_or_default();
        let all = json!({
            "protocolVersion": session.revision.as_str(),
            "serverInfo": info,
            "capabilities": capabilities,
            "instructions": session.instructions,
        });
        return show(&all.to_string());
    }
    let word = |name: &str| info[name].as_str().unwrap_or("unknown");
    show_field("server", &format!("{} {}", word("name"), word("version")));
    show_field("revision", &session.revision.to_string());
    show_field("capabilities", &capabilities(session).join(", "));
    if let Some(instructions) = &session.instructions {
        show_field("instructions", instructions);
    }
}

async fn call(
    output: &Output,
    client: &Client,
    session: &Session,
    name: &str,
    arguments: &RawJson<'_>,
) -> Result<(), Failure> {
    if session.capabilities.contains(Capability::Logging) {
        // If the connection is lost, the call reports the reason.
        let _asked = client.set_log_level(LoggingLevel::Info);
    }
    // Lines that are not printed here would begin in the bar.
    let report = if output.has_lines { say_progress } else { draw_progress };
    let report = move |progress: &Progress<'_>| {
        let message = progress.message.as_deref().unwrap_or_default();
        report(progress.progress, progress.total, message);
    };
    let result: CallToolResult = if output.json {
        let params = format!(r#"{{"name":{},"arguments":{arguments}}}"#, json!(name));
        let call = client.call(Method::ToolsCall, RawJson::parse(&params)?);
        let result = call.on_progress(report).await?;
        show_json(&result);
        result.as_raw().decode_lossy()?.0
    } else {
        client.call_tool(name, arguments).on_progress(report).await?
    };
    let text = output_of(&result, "\n");
    if result.is_error == Some(true) {
        let reason = if text.is_empty() { "the result does not say why" } else { &text };
        return Err(Failure::Other(format!("the tool failed: {reason}")));
    }
    if result.content.is_empty() && result.structured_content.is_none() {
        say(&format!("{NAME}: note: the result has neither content nor structured content"));
    }
    if !output.json {
        show(&text);
    }
    Ok(())
}

async fn listen(
    client: &Client,
    session: &Session,
    uris: &[String],
    seen: &Seen,
) -> Result<(), Failure> {
    let mut filter = SubscriptionFilter::new();
    let offers = |capability| session.capabilities.contains(capability);
    if offers(Capability::ToolsListChanged) {
        filter = filter.tools_list_changed(true);
    }
    if offers(Capability::PromptsListChanged) {
        filter = filter.prompts_list_changed(true);
    }
    if offers(Capability::ResourcesListChanged) {
        filter = filter.resources_list_changed(true);
    }
    if !uris.is_empty() {
        filter = filter.resource_subscriptions(uris);
    }
    if uris.is_empty() && filter == SubscriptionFilter::new() {
        say(&format!(
            "{NAME}: note: the server says that none of its lists change; name resources"
        ));
    }
    let mut subscription = client.subscribe(filter);
    let honoured = subscription.honoured().await.map_err(without_stream)?;
    let subscribed = honoured.resource_subscriptions.as_deref().unwrap_or_default();
    let refused: Vec<_> = uris.iter().filter(|uri| !subscribed.contains(uri)).collect();
    let listens = uris.is_empty() || refused.len() < uris.len();
    if listens {
        seen.listening.store(true, Ordering::Relaxed);
        say(&format!("listening: {}", honoured.to_json_at(session.revision)?.as_str()));
    }
    for uri in refused {
        say(&format!("{NAME}: note: not subscribed: {uri}"));
    }
    if !listens {
        return Err(Failure::Other("the server accepted none of the subscriptions".into()));
    }
    while let Some(notification) = subscription.next().await.map_err(without_stream)? {
        show(&format!("{} {}", notification.method, notification.params));
    }
    Ok(())
}

/// Says what the failure of a subscription's stream means.
fn without_stream(error: ClientError) -> Failure {
    match error {
        ClientError::Failed(CallFailure::Transport(failure)) => {
            Failure::Other(format!("no more notifications: {failure}"))
        }
        error => error.into(),
    }
}

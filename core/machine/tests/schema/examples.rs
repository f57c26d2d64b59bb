//! Round trip of messages at the newest revision that were written by hand.

use std::collections::{BTreeMap, BTreeSet};

use mcp_sansio::Revision;
use mcp_sansio::protocol::*;
use serde::Deserialize;
use serde_json::{Value, json};

use super::definitions::ELSEWHERE;
use super::spec::Schema;

/// A definition of the schema and a value of it per line.
const EXAMPLES: &str = include_str!("examples.txt");

/// The outcome of an example.
enum Outcome {
    /// It was read and written.
    Written(Value),
    /// This layer has no type for it: it is an error without data, or a message that the machines
    /// read and write as text.
    NoPayload,
}

/// Reads a value as a `T` and writes it.
fn rewrite<'a, T: SerializeAt + Deserialize<'a>>(
    text: &'a str,
) -> Result<Value, serde_json::Error> {
    serde_json::to_value(serde_json::from_str::<T>(text)?.at(Revision::V2026_07_28))
}

/// Reads and writes one member of an envelope, which this layer does not handle.
fn rewrite_member(
    envelope: &Value,
    pointer: &str,
    rewrite: fn(&str) -> Result<Value, serde_json::Error>,
) -> Result<Value, serde_json::Error> {
    let mut envelope = envelope.clone();
    let member = envelope.pointer_mut(pointer).unwrap();
    *member = rewrite(&member.to_string())?;
    Ok(envelope)
}

fn outcome(kind: &str, text: &str) -> Result<Outcome, serde_json::Error> {
    let value: Value = serde_json::from_str(text)?;
    let params = |rewrite| rewrite_member(&value, "/params", rewrite);
    let result = |rewrite| rewrite_member(&value, "/result", rewrite);
    let data = |rewrite| rewrite_member(&value, "/error/data", rewrite);
    let written = match kind {
        "Annotations" => rewrite::<Annotations>(text)?,
        "AudioContent" | "EmbeddedResource" | "ImageContent" | "ResourceLink" | "TextContent" => {
            rewrite::<ContentBlock>(text)?
        }
        "ToolResultContent" | "ToolUseContent" => rewrite::<SamplingContent>(text)?,
        "BlobResourceContents" | "TextResourceContents" => rewrite::<ResourceContents>(text)?,
        "BooleanSchema"
        | "LegacyTitledEnumSchema"
        | "NumberSchema"
        | "StringSchema"
        | "TitledMultiSelectEnumSchema"
        | "TitledSingleSelectEnumSchema"
        | "UntitledMultiSelectEnumSchema"
        | "UntitledSingleSelectEnumSchema" => rewrite::<PrimitiveSchema>(text)?,
        "CallToolRequest" => params(|text| rewrite::<CallToolParams<'_>>(text))?,
        "CallToolRequestParams" => rewrite::<CallToolParams<'_>>(text)?,
        "CallToolResult" => rewrite::<CallToolResult>(text)?,
        "CallToolResultResponse" => result(|text| rewrite::<CallToolResult>(text))?,
        "ClientCapabilities" => rewrite::<ClientCapabilities>(text)?,
        "CompleteRequest" => params(|text| rewrite::<CompleteParams>(text))?,
        "CompleteRequestParams" => rewrite::<CompleteParams>(text)?,
        "CompleteResult" => rewrite::<CompleteResult>(text)?,
        "CompleteResultResponse" => result(|text| rewrite::<CompleteResult>(text))?,
        "CreateMessageRequest" | "ElicitRequest" | "ListRootsRequest" => {
            rewrite::<InputRequest>(text)?
        }
        "CreateMessageRequestParams" => rewrite::<CreateMessageParams>(text)?,
        "CreateMessageResult" | "ElicitResult" | "ListRootsResult" => {
            rewrite::<InputResponse>(text)?
        }
        "DiscoverRequest" => params(|text| rewrite::<ListParams>(text))?,
        "DiscoverResult" => rewrite::<DiscoverResult>(text)?,
        "DiscoverResultResponse" => result(|text| rewrite::<DiscoverResult>(text))?,
        "EmptyResult" | "Result" => rewrite::<EmptyResult>(text)?,
        "ElicitRequestFormParams" | "ElicitRequestURLParams" => rewrite::<ElicitParams>(text)?,
        "GetPromptRequest" => params(|text| rewrite::<GetPromptParams<'_>>(text))?,
        "GetPromptRequestParams" => rewrite::<GetPromptParams<'_>>(text)?,
        "GetPromptResult" => rewrite::<GetPromptResult>(text)?,
        "GetPromptResultResponse" => result(|text| rewrite::<GetPromptResult>(text))?,
        "Icon" => rewrite::<Icon>(text)?,
        "Implementation" => rewrite::<Implementation>(text)?,
        "InputRequests" => rewrite::<InputRequests>(text)?,
        "InputRequiredResult" => rewrite::<InputRequiredResult>(text)?,
        "InputResponses" => rewrite::<InputResponses>(text)?,
        "ListPromptsRequest"
        | "ListResourceTemplatesRequest"
        | "ListResourcesRequest"
        | "ListToolsRequest" => params(|text| rewrite::<ListParams>(text))?,
        "PaginatedRequestParams" => rewrite::<ListParams>(text)?,
        "ListPromptsResult" => rewrite::<ListPromptsResult>(text)?,
        "ListPromptsResultResponse" => result(|text| rewrite::<ListPromptsResult>(text))?,
        "ListResourceTemplatesResult" => rewrite::<ListResourceTemplatesResult>(text)?,
        "ListResourceTemplatesResultResponse" => {
            result(|text| rewrite::<ListResourceTemplatesResult>(text))?
        }
        "ListResourcesResult" => rewrite::<ListResourcesResult>(text)?,
        "ListResourcesResultResponse" => result(|text| rewrite::<ListResourcesResult>(text))?,
        "ListToolsResult" => rewrite::<ListToolsResult>(text)?,
        "ListToolsResultResponse" => result(|text| rewrite::<ListToolsResult>(text))?,
        "LoggingMessageNotification" => params(|text| rewrite::<LoggingMessageParams>(text))?,
        "LoggingMessageNotificationParams" => rewrite::<LoggingMessageParams>(text)?,
        "MissingRequiredClientCapabilityError" => {
            data(|text| rewrite::<MissingRequiredClientCapabilityData>(text))?
        }
        "ModelHint" => rewrite::<ModelHint>(text)?,
        "ModelPreferences" => rewrite::<ModelPreferences>(text)?,
        "ProgressNotification" => params(|text| rewrite::<ProgressParams>(text))?,
        "ProgressNotificationParams" => rewrite::<ProgressParams>(text)?,
        "Prompt" => rewrite::<Prompt>(text)?,
        "PromptArgument" => rewrite::<PromptArgument>(text)?,
        "PromptMessage" => rewrite::<PromptMessage>(text)?,
        "PromptReference" | "ResourceTemplateReference" => rewrite::<CompletionReference>(text)?,
        "PromptListChangedNotification"
        | "ResourceListChangedNotification"
        | "ToolListChangedNotification" => params(|text| rewrite::<ListParams>(text))?,
        "ReadResourceRequest" => params(|text| rewrite::<ReadResourceParams<'_>>(text))?,
        "ReadResourceRequestParams" => rewrite::<ReadResourceParams<'_>>(text)?,
        "ReadResourceResult" => rewrite::<ReadResourceResult>(text)?,
        "ReadResourceResultResponse" => result(|text| rewrite::<ReadResourceResult>(text))?,
        "Resource" => rewrite::<Resource>(text)?,
        "ResourceTemplate" => rewrite::<ResourceTemplate>(text)?,
        "ResourceUpdatedNotification" => params(|text| rewrite::<ResourceUpdatedParams>(text))?,
        "ResourceUpdatedNotificationParams" => rewrite::<ResourceUpdatedParams>(text)?,
        "Root" => rewrite::<Root>(text)?,
        "SamplingMessage" => rewrite::<SamplingMessage>(text)?,
        "ServerCapabilities" => rewrite::<ServerCapabilities>(text)?,
        "SubscriptionFilter" => rewrite::<SubscriptionFilter>(text)?,
        "SubscriptionsAcknowledgedNotificationParams" | "SubscriptionsListenRequestParams" => {
            rewrite_member(&value, "/notifications", |text| rewrite::<SubscriptionFilter>(text))?
        }
        "SubscriptionsAcknowledgedNotification" | "SubscriptionsListenRequest" => {
            let pointer = "/params/notifications";
            rewrite_member(&value, pointer, |text| rewrite::<SubscriptionFilter>(text))?
        }
        "SubscriptionsListenResult" => rewrite::<EmptyResult>(text)?,
        "SubscriptionsListenResultResponse" => result(|text| rewrite::<EmptyResult>(text))?,
        "Tool" => rewrite::<Tool>(text)?,
        "ToolAnnotations" => rewrite::<ToolAnnotations>(text)?,
        "ToolChoice" => rewrite::<ToolChoice>(text)?,
        "UnsupportedProtocolVersionError" => {
            data(|text| rewrite::<UnsupportedProtocolVersionData>(text))?
        }
        "CancelledNotification"
        | "CancelledNotificationParams"
        | "HeaderMismatchError"
        | "InternalError"
        | "InvalidParamsError"
        | "InvalidRequestError"
        | "MethodNotFoundError"
        | "ParseError" => return Ok(Outcome::NoPayload),
        other => panic!("no type for {other}"),
    };
    Ok(Outcome::Written(written))
}

/// Returns the expected output: the example, with the changes that a rule requires.
fn expected(kind: &str, mut example: Value) -> Value {
    if kind == "InputRequiredResult"
        && let Some(form) = example.pointer_mut("/inputRequests/sure/params")
    {
        // MCP 2026-07-28 client/elicitation#elicitation-requests [ELIC-004]: without a mode it is a
        // form, and the mode is written.
        form["mode"] = json!("form");
    }
    example
}

fn examples() -> impl Iterator<Item = (&'static str, &'static str)> {
    EXAMPLES.lines().map(|line| line.split_once(' ').unwrap())
}

#[test]
fn every_example_is_valid_and_is_read_and_written_unchanged() {
    // Rule: [TOOL-022] [META-001] [META-014] [ELIC-004] [CAP-017] [SAMP-021].
    let schema = Schema::load("2026-07-28");
    let mut faults = Vec::new();
    for (kind, text) in examples() {
        let example: Value = serde_json::from_str(text).unwrap();
        let invalid = schema.faults(&example, &json!({ "$ref": format!("#/$defs/{kind}") }));
        faults.extend(invalid.into_iter().map(|fault| format!("{kind}: {fault}\n    {text}")));
        match outcome(kind, text) {
            Ok(Outcome::NoPayload) => {}
            Ok(Outcome::Written(value)) => {
                let expected = expected(kind, example);
                if value != expected {
                    faults.push(format!("{kind}:\n    {expected}\n    {value}"));
                }
            }
            Err(error) => faults.push(format!("{kind}: {error}\n    {text}")),
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn every_member_of_every_definition_is_in_an_example() {
    let schema = Schema::load("2026-07-28");
    let mut shown = BTreeMap::<&str, BTreeSet<String>>::new();
    for (kind, text) in examples() {
        let example: Value = serde_json::from_str(text).unwrap();
        let members = example.as_object().unwrap().keys().cloned();
        shown.entry(kind).or_default().extend(members);
    }
    let mut missing = Vec::new();
    for name in schema.names() {
        let definition = schema.resolve(schema.definition(name).unwrap());
        let is_object = definition.get("properties").is_some();
        match shown.get(name) {
            Some(shown) => {
                let (members, _) = schema.members(definition, None);
                let unseen = members.iter().filter(|(key, _)| !shown.contains(*key));
                missing.extend(unseen.map(|(key, _)| format!("{name}/{key}")));
            }
            None if is_object && !ELSEWHERE.contains(&name) => missing.push(name.into()),
            None => {}
        }
    }
    assert!(missing.is_empty(), "{missing:?}");
}

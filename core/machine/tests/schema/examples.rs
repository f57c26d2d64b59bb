//! Round trip of the official examples at the newest revision.

use std::fs;

use mcp_sansio::Revision;
use mcp_sansio::protocol::*;
use serde::Deserialize;
use serde_json::{Value, json};

use super::spec::object;

/// The number of examples.
const COUNT: usize = 129;

/// The outcome of an example.
enum Outcome {
    /// It was read and written.
    Written(Value),
    /// This layer has no type for it: it is an error without data.
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
        "AudioContent" | "EmbeddedResource" | "ImageContent" | "ResourceLink" | "TextContent" => {
            rewrite::<ContentBlock>(text)?
        }
        "ToolResultContent" | "ToolUseContent" => rewrite::<SamplingContent>(text)?,
        "BlobResourceContents" | "TextResourceContents" => rewrite::<ResourceContents>(text)?,
        "BooleanSchema"
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
        "CancelledNotification" => params(|text| rewrite::<CancelledParams>(text))?,
        "CancelledNotificationParams" => rewrite::<CancelledParams>(text)?,
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
        "DiscoverRequest" => params(|text| rewrite::<EmptyParams>(text))?,
        "DiscoverResult" => rewrite::<DiscoverResult>(text)?,
        "DiscoverResultResponse" => result(|text| rewrite::<DiscoverResult>(text))?,
        "ElicitRequestFormParams" | "ElicitRequestURLParams" => rewrite::<ElicitParams>(text)?,
        "GetPromptRequest" => params(|text| rewrite::<GetPromptParams<'_>>(text))?,
        "GetPromptRequestParams" => rewrite::<GetPromptParams<'_>>(text)?,
        "GetPromptResult" => rewrite::<GetPromptResult>(text)?,
        "GetPromptResultResponse" => result(|text| rewrite::<GetPromptResult>(text))?,
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
        "ModelPreferences" => rewrite::<ModelPreferences>(text)?,
        "ProgressNotification" => params(|text| rewrite::<ProgressParams>(text))?,
        "ProgressNotificationParams" => rewrite::<ProgressParams>(text)?,
        "PromptListChangedNotification"
        | "ResourceListChangedNotification"
        | "ToolListChangedNotification" => params(|text| rewrite::<EmptyParams>(text))?,
        "ReadResourceRequest" => params(|text| rewrite::<ReadResourceParams<'_>>(text))?,
        "ReadResourceResult" => rewrite::<ReadResourceResult>(text)?,
        "ReadResourceResultResponse" => result(|text| rewrite::<ReadResourceResult>(text))?,
        "Resource" => rewrite::<Resource>(text)?,
        "ResourceUpdatedNotification" => params(|text| rewrite::<ResourceUpdatedParams>(text))?,
        "ResourceUpdatedNotificationParams" => rewrite::<ResourceUpdatedParams>(text)?,
        "Root" => rewrite::<Root>(text)?,
        "SamplingMessage" => rewrite::<SamplingMessage>(text)?,
        "ServerCapabilities" => rewrite::<ServerCapabilities>(text)?,
        "SubscriptionsAcknowledgedNotification" => {
            params(|text| rewrite::<SubscriptionAcknowledgedParams>(text))?
        }
        "SubscriptionsListenRequest" => params(|text| rewrite::<ListenParams>(text))?,
        "SubscriptionsListenResult" => rewrite::<ListenResult>(text)?,
        "SubscriptionsListenResultResponse" => result(|text| rewrite::<ListenResult>(text))?,
        "Tool" => rewrite::<Tool>(text)?,
        "UnsupportedProtocolVersionError" => {
            data(|text| rewrite::<UnsupportedProtocolVersionData>(text))?
        }
        "HeaderMismatchError"
        | "InternalError"
        | "InvalidParamsError"
        | "MethodNotFoundError"
        | "ParseError" => return Ok(Outcome::NoPayload),
        other => panic!("no type for {other}"),
    };
    Ok(Outcome::Written(written))
}

/// Returns the expected output: the example, with the changes that the schema or a rule requires.
fn expected(kind: &str, name: &str, mut example: Value) -> Value {
    match (kind, name) {
        // The example lacks members that its definition requires.
        ("ReadResourceResultResponse", "read-resource-result-response.json") => {
            example["result"]["ttlMs"] = json!(0);
            example["result"]["cacheScope"] = json!("private");
        }
        // MCP 2026-07-28 client/elicitation#elicitation-requests [ELIC-004]: without a mode it is a
        // form, and the mode is written.
        (
            "InputRequiredResult",
            "input-required-result-with-elicitation-and-sampling-and-request-state.json",
        ) => {
            example["inputRequests"]["github_login"]["params"]["mode"] = json!("form");
        }
        // The example has an id, which its definition does not.
        ("ListRootsRequest", "list-roots-request.json") => {
            object(&mut example).remove("id");
        }
        _ => {}
    }
    example
}

#[test]
fn every_official_example_is_read_and_written_unchanged() {
    // Rule: [TOOL-022] [META-001] [META-014] [ELIC-004] [CAP-017] [SAMP-021].
    let Some(folder) = reference_data::specification() else { return };
    let mut faults = Vec::new();
    let (mut written, mut without_payload) = (0, 0);
    for kind in fs::read_dir(folder.join("2026-07-28/examples")).unwrap() {
        let kind = kind.unwrap();
        let kind_name = kind.file_name().into_string().unwrap();
        for file in fs::read_dir(kind.path()).unwrap() {
            let file = file.unwrap();
            let name = file.file_name().into_string().unwrap();
            let text = fs::read_to_string(file.path()).unwrap();
            match outcome(&kind_name, &text) {
                Ok(Outcome::NoPayload) => without_payload += 1,
                Ok(Outcome::Written(value)) => {
                    written += 1;
                    let example = serde_json::from_str(&text).unwrap();
                    let expected = expected(&kind_name, &name, example);
                    if value != expected {
                        faults.push(format!("{kind_name}/{name}:\n    {expected}\n    {value}"));
                    }
                }
                Err(error) => faults.push(format!("{kind_name}/{name}: {error}")),
            }
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
    assert_eq!((written + without_payload, without_payload), (COUNT, 8));
}

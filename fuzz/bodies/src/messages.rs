//! Typed messages: reads, writes, and reads them again.

use std::fmt::Debug;
use std::string::ToString;

use serde_json::Value;

use mcp_sansio::jsonrpc::{Json, RawJson};
use mcp_sansio::protocol::*;
use mcp_sansio::{Capabilities, LoggingLevel, Revision};

use super::spellings::{Spellings, WholeNumbers};
use super::values::{Reading, same_as_serde_json};

/// Reads a JSON text as every type of the protocol, and writes the values at every revision.
///
/// `serde_json` reads the same values from the usual spelling of the text, or also refuses them. Written values can be read back, and
/// are then written identically. At the latest revision each written member has its original value,
/// or is one that is always written. Declared capabilities never grow by writing and reading.
pub fn messages(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(json) = RawJson::parse(text) else { return };
    // Numbers out of range are JSON, but not representable in a tree.
    let Ok(tree) = json.decode::<Value>() else { return };
    // Some fractions change when they are written and read again, as parsing is not exact to the
    // last bit.
    if serde_json::from_str(&tree.to_string()).ok().as_ref() != Some(&tree) {
        return;
    }
    let spellings = Spellings::new(text, WholeNumbers::Some);
    let text = Text { spellings, json: &json, tree: &tree };
    identity(&text);
    contents(&text);
    offers(&text);
    requests(&text);
    results(&text);
    questions(&text);
    tasks(&text);
    words(&text);
    declarations(&text);
}

struct Text<'a> {
    spellings: Spellings,
    json: &'a RawJson<'a>,
    tree: &'a Value,
}

/// Checks each of the named types.
macro_rules! judge {
    ($text:ident: $($ty:ty),+ $(,)?) => { $(
        same_as_serde_json::<$ty>($text.json, &$text.spellings, Reading::Buffered);
        if let Ok(value) = $text.json.decode::<$ty>() {
            for revision in Revision::ALL {
                // Some revisions cannot express some values.
                let Ok(written) = value.to_json_at(revision) else { continue };
                match written.decode::<$ty>() {
                    Ok(again) => compare(stringify!($ty), revision, $text.tree, &written, &again),
                    Err(error) => panic!("{} {revision}: {error}: {written:?}", stringify!($ty)),
                }
            }
        }
    )+ };
}

fn identity(text: &Text<'_>) {
    judge!(text: Implementation, Icon, ClientCapabilities, ServerCapabilities, InitializeParams,
        InitializeResult, DiscoverResult, EmptyResult, Meta, ListParams,
        UnsupportedProtocolVersionData, MissingRequiredClientCapabilityData, ResourceNotFoundData,
        UrlElicitationRequiredData);
}

fn contents(text: &Text<'_>) {
    judge!(text: Annotations, TextContent, ImageContent, AudioContent,
        EmbeddedResource, ContentBlock, TextResourceContents, BlobResourceContents,
        ResourceContents, ToolUseContent, ToolResultContent, SamplingContent, SamplingMessage,
        PromptMessage, Root);
}

fn offers(text: &Text<'_>) {
    judge!(text: Tool, ToolAnnotations, ToolExecution, Resource, ResourceTemplate, Prompt,
        PromptArgument, PromptReference, ResourceTemplateReference, CompletionReference,
        CompletionArgument, CompletionContext);
}

fn requests(text: &Text<'_>) {
    judge!(text: CallToolParams<'_>, ReadResourceParams<'_>, GetPromptParams<'_>,
        ResourceUpdatedParams, CompleteParams, LoggingMessageParams, ProgressParams,
        CreateMessageParams, ListRootsParams, ElicitParams, ElicitFormParams, ElicitUrlParams,
        ElicitationCompleteParams, SubscriptionFilter, TaskIdParams, UpdateTaskParams,
        ModelPreferences, ModelHint, ToolChoice);
}

fn results(text: &Text<'_>) {
    judge!(text: CallToolResult, ListToolsResult, ListResourcesResult,
        ListResourceTemplatesResult, ReadResourceResult, ListPromptsResult, GetPromptResult,
        CompleteResult, Completion, CreateMessageResult, ListRootsResult, ElicitResult,
        ListTasksResult, InputRequiredResult, InputResponse);
}

fn questions(text: &Text<'_>) {
    judge!(text: ElicitSchema, PrimitiveSchema, StringSchema, NumberSchema, BooleanSchema,
        SingleSelectSchema, MultiSelectSchema, ElicitValue, InputRequest);
}

fn tasks(text: &Text<'_>) {
    judge!(text: Task, TaskMetadata, RelatedTask, CreateTaskResult, GetTaskResult,
        TaskStatusParams, CancelTaskResult);
}

fn words(text: &Text<'_>) {
    judge!(text: Role, IconTheme, CacheScope, ElicitAction, StringFormat, NumberKind, LoggingLevel,
        ProgressToken, ToolChoiceMode, IncludeContext, StopReason, TaskStatus, TaskSupport,
        Priority, Ttl);
}

/// Declared capabilities never grow by reading and writing. They may shrink: members that only the
/// other side can declare are not part of the type.
fn declarations(text: &Text<'_>) {
    for revision in Revision::ALL {
        if let Ok(declared) = text.json.decode::<ClientCapabilities>() {
            let written = declared.to_json_at(revision).expect("writing capabilities succeeds");
            let [came, again] = [text.json.as_str(), written.as_str()]
                .map(|text| Capabilities::from_client_json(text, revision));
            assert!(grants_no_more(came, again), "{written:?} at {revision}");
        }
        if let Ok(declared) = text.json.decode::<ServerCapabilities>() {
            let written = declared.to_json_at(revision).expect("writing capabilities succeeds");
            let [came, again] = [text.json.as_str(), written.as_str()]
                .map(|text| Capabilities::from_server_json(text, revision));
            assert!(grants_no_more(came, again), "{written:?} at {revision}");
        }
    }
}

/// The types accept some arrays as objects, which the capability sets refuse.
fn grants_no_more<E: Debug>(came: Result<Capabilities, E>, again: Result<Capabilities, E>) -> bool {
    let again = again.expect("written capabilities are valid");
    came.is_err() || came.is_ok_and(|came| again.iter().all(|it| came.contains(it)))
}

fn compare<T: SerializeAt + Debug>(
    name: &str,
    revision: Revision,
    came: &Value,
    written: &Json,
    again: &T,
) {
    let rewritten = match again.to_json_at(revision) {
        Ok(rewritten) => rewritten,
        Err(error) => panic!("{name} {revision}: not written again: {error}: {written:?}"),
    };
    let tree: Value = written.decode().expect("written values are JSON");
    let next: Value = rewritten.decode().expect("written values are JSON");
    assert_eq!(tree, next, "{name} {revision} is written differently the second time");
    // These are clamped when they are read.
    let bounded = matches!(name, "Priority" | "Ttl");
    if revision == Revision::LATEST && !bounded {
        // The task was received as a nested object, and is written among the other members.
        let nested = came.get("task").filter(|_| name == "CreateTaskResult");
        let mut flat = nested.unwrap_or(came).clone();
        if let (Value::Object(flat), Some(meta)) = (&mut flat, came.get("_meta")) {
            flat.insert("_meta".into(), meta.clone());
        }
        assert!(is_kept(&flat, &tree), "{name} {revision}: {tree} of {came}");
    }
}

/// Members with special treatment: the tag of the type, which is normalized, and times, which are
/// read leniently or under another name.
const OWN: [&str; 7] = ["type", "mode", "method", "resultType", "ttl", "ttlMs", "pollIntervalMs"];

/// Returns whether each written member has its original value.
fn is_kept(came: &Value, written: &Value) -> bool {
    match (came, written) {
        (Value::Object(came), Value::Object(written)) => written.iter().all(|(name, value)| {
            let same = || match came.get(name) {
                None | Some(Value::Null) => is_default(name, value),
                Some(came) => {
                    is_kept(came, value) || name.ends_with("riority") && is_bounded(came, value)
                }
            };
            OWN.contains(&&**name) || same()
        }),
        (Value::Array(came), Value::Array(written)) => {
            came.len() == written.len() && came.iter().zip(written).all(|(a, b)| is_kept(a, b))
        }
        // Some types accept an array of their members in order.
        (Value::Array(_), Value::Object(_)) => true,
        (Value::Number(came), Value::Number(written)) => came.as_f64() == written.as_f64(),
        (came, written) => came == written,
    }
}

/// Returns whether a weight is written as the nearest valid one.
fn is_bounded(came: &Value, written: &Value) -> bool {
    came.as_f64().map(|came| came.clamp(0.0, 1.0)) == written.as_f64()
}

/// Returns whether a member may be written that was absent.
fn is_default(name: &str, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => name == "cacheScope" || name == "requested" && value == "",
    }
}

//! Sampling: a server requests messages from the client's model.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde::ser::{Error as _, Serializer};

use super::Revision;
use super::annotations::{Priority, Role};
use super::content::{AudioContent, ContentBlock, ImageContent, TextContent};
use super::message::{message, tagged, word};
use super::meta::Meta;
use super::task::TaskMetadata;
use super::tool::{Tool, structured_content_is_expressible};
use super::wire::{NotExpressible, OneOrMany, SerializeAt};
use crate::InvalidValue;
use crate::jsonrpc::Json;

message! {
    /// The parameters of `sampling/createMessage`.
    ///
    /// Deprecated by the specification in 2026-07-28, and removed in 2027-07-28 at the earliest:
    /// call the API of a model.
    // MCP 2026-07-28 schema.json#CreateMessageRequest [SAMP-002]
    pub struct CreateMessageParams {
        required {
            /// The conversation so far.
            messages: Vec<SamplingMessage> = "messages" in ALL;
            /// The maximum number of tokens to generate.
            max_tokens: i64 = "maxTokens" in ALL;
        }
        defaulted {}
        optional {
            /// The preferred model.
            model_preferences: ModelPreferences = "modelPreferences" in ALL;
            /// The system prompt.
            system_prompt: String = "systemPrompt" in ALL;
            /// The context that the client adds; any value except none requires `sampling.context`.
            include_context: IncludeContext = "includeContext" in ALL;
            /// The sampling temperature.
            temperature: f64 = "temperature" in ALL;
            /// Texts that end the message.
            stop_sequences: Vec<String> = "stopSequences" in ALL;
            /// Settings of the model's provider: an object.
            metadata: Json = "metadata" in ALL;
            /// The tools that the model may use; since 2025-11-25, requires `sampling.tools`.
            tools: Vec<Tool> = "tools" in SINCE_2025_11_25;
            /// Whether the model must use a tool; since 2025-11-25, requires `sampling.tools`.
            tool_choice: ToolChoice = "toolChoice" in SINCE_2025_11_25;
            /// Metadata; until 2025-11-25.
            meta: Meta = "_meta" in LEGACY;
        }
        last {
            /// Requests a task; 2025-11-25 only.
            task: TaskMetadata = "task" in ONLY_2025_11_25;
        }
    }
}

message! {
    /// A message of a conversation with a model.
    // MCP 2025-11-25 schema.json#SamplingMessage [SAMP-005]
    pub struct SamplingMessage {
        required {
            /// The author of the message.
            role: Role = "role" in ALL;
            /// The content: several blocks only since 2025-11-25.
            content: OneOrMany<SamplingContent> = "content" in ALL;
        }
        defaulted {}
        optional {
            /// Metadata; since 2025-11-25.
            meta: Meta = "_meta" in SINCE_2025_11_25;
        }
    }
}

impl SamplingMessage {
    /// Creates a message of the user.
    #[must_use]
    pub fn user(content: impl Into<OneOrMany<SamplingContent>>) -> Self {
        Self::new(Role::User, content)
    }

    /// Creates a message of the model.
    #[must_use]
    pub fn assistant(content: impl Into<OneOrMany<SamplingContent>>) -> Self {
        Self::new(Role::Assistant, content)
    }

    /// Returns the text of the first text block.
    #[must_use]
    pub fn first_text(&self) -> Option<&str> {
        first_text(&self.content)
    }
}

fn first_text(content: &OneOrMany<SamplingContent>) -> Option<&str> {
    content.as_slice().iter().find_map(SamplingContent::as_text)
}

tagged! {
    /// A block of content in a conversation with a model.
    ///
    /// A block that a revision does not support is refused, because another kind of content would
    /// change the conversation.
    pub enum SamplingContent by "type" {
        /// A text.
        Text(TextContent) = Some("text"),
        /// An image.
        Image(ImageContent) = Some("image"),
        /// Audio; since 2025-03-26.
        Audio(AudioContent) = Some("audio"),
        /// The model calls a tool; since 2025-11-25.
        ToolUse(ToolUseContent) = Some("tool_use"),
        /// The result of a tool call; since 2025-11-25.
        ToolResult(ToolResultContent) = Some("tool_result"),
    }
}

impl SamplingContent {
    /// Creates a block of text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent::new(text))
    }

    /// Returns the text of a text block.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(content) => Some(&content.text),
            _ => None,
        }
    }
}

impl From<&str> for SamplingContent {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<&str> for OneOrMany<SamplingContent> {
    fn from(text: &str) -> Self {
        Self::One(text.into())
    }
}

impl From<SamplingContent> for OneOrMany<SamplingContent> {
    fn from(content: SamplingContent) -> Self {
        Self::One(content)
    }
}

impl SerializeAt for SamplingContent {
    fn serialize_at<S: Serializer>(
        &self,
        revision: Revision,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let since = |first, what| {
            if revision < first {
                Err(S::Error::custom(NotExpressible::new(what, revision)))
            } else {
                Ok(())
            }
        };
        match self {
            Self::Text(content) => content.serialize_at(revision, serializer),
            Self::Image(content) => content.serialize_at(revision, serializer),
            Self::Audio(content) => {
                // MCP 2024-11-05 schema.json#SamplingMessage [SAMP-004]: no audio yet.
                since(Revision::V2025_03_26, "audio for a model")?;
                content.serialize_at(revision, serializer)
            }
            Self::ToolUse(content) => {
                since(Revision::V2025_11_25, "a tool use of a model")?;
                content.serialize_at(revision, serializer)
            }
            Self::ToolResult(content) => {
                since(Revision::V2025_11_25, "a tool result for a model")?;
                content.serialize_at(revision, serializer)
            }
            Self::Unknown(json) => json.serialize_at(revision, serializer),
        }
    }
}

message! {
    /// A tool call of the model; since 2025-11-25.
    // MCP 2025-11-25 schema.json#ToolUseContent [SAMP-021]: metadata is kept.
    pub struct ToolUseContent {
        tag "type" = "tool_use" in ALL;
        required {
            /// The id that the result refers to.
            id: String = "id" in ALL;
            /// The tool.
            name: String = "name" in ALL;
            /// Its arguments: an object.
            input: Json = "input" in ALL;
        }
        defaulted {}
        optional {
            /// Metadata.
            meta: Meta = "_meta" in ALL;
        }
    }
}

message! {
    /// The result of a tool call for the model; since 2025-11-25.
    pub struct ToolResultContent {
        tag "type" = "tool_result" in ALL;
        required {
            /// The id of the tool call.
            tool_use_id: String = "toolUseId" in ALL;
            /// The content of the result.
            #[serde(default, deserialize_with = "crate::jsonrpc::list")]
            content: Vec<ContentBlock> = "content" in ALL;
        }
        defaulted {}
        optional {
            /// The structured content. Before 2026-07-28 it is omitted unless it is an object.
            #[serde(deserialize_with = "super::wire::present")]
            structured_content: Json = "structuredContent" in ALL,
                when structured_content_is_expressible;
            /// Whether the call failed; absent means false.
            is_error: bool = "isError" in ALL;
            /// Metadata.
            meta: Meta = "_meta" in ALL;
        }
    }
}

message! {
    /// Whether the model must use a tool; since 2025-11-25.
    #[derive(Default)]
    pub struct ToolChoice {
        required {}
        defaulted {}
        optional {
            /// Absent means [`ToolChoiceMode::Auto`].
            mode: ToolChoiceMode = "mode" in ALL;
        }
    }
}

word! {
    /// Whether the model must use a tool.
    // MCP 2025-11-25 client/sampling#tool-choice-modes [SAMP-010]
    pub enum ToolChoiceMode {
        /// The model decides.
        Auto = "auto",
        /// At least one tool.
        Required = "required",
        /// No tool.
        None = "none",
    }
}

word! {
    /// The context that the client adds to the prompt.
    pub enum IncludeContext {
        /// None.
        None = "none",
        /// The context of the requesting server.
        ThisServer = "thisServer",
        /// The context of all servers.
        AllServers = "allServers",
    }
}

message! {
    /// The preferred model: hints, with weights from 0 to 1.
    #[derive(Default)]
    pub struct ModelPreferences {
        required {}
        defaulted {}
        optional {
            /// Names to look for, best first.
            // MCP 2026-07-28 schema.json#ModelPreferences [SAMP-015]
            hints: Vec<ModelHint> = "hints" in ALL;
            /// The importance of low cost.
            cost_priority: Priority = "costPriority" in ALL;
            /// The importance of low latency.
            speed_priority: Priority = "speedPriority" in ALL;
            /// The importance of capability.
            intelligence_priority: Priority = "intelligencePriority" in ALL;
        }
    }
}

message! {
    /// A hint for a model.
    #[derive(Default)]
    pub struct ModelHint {
        required {}
        defaulted {}
        optional {
            /// A part of the model's name.
            name: String = "name" in ALL;
        }
    }
}

message! {
    /// The result of `sampling/createMessage`.
    // MCP 2026-07-28 schema.json#CreateMessageResult [SAMP-003]
    pub struct CreateMessageResult {
        required {
            /// The author of the message.
            role: Role = "role" in ALL;
            /// The content: several blocks only since 2025-11-25.
            content: OneOrMany<SamplingContent> = "content" in ALL;
            /// The model that generated the message.
            model: String = "model" in ALL;
        }
        defaulted {}
        optional {
            /// The reason why the model stopped.
            stop_reason: StopReason = "stopReason" in ALL;
            /// Metadata.
            meta: Meta = "_meta" in ALL;
        }
    }
}

impl CreateMessageResult {
    /// Returns the text of the first text block.
    #[must_use]
    pub fn first_text(&self) -> Option<&str> {
        first_text(&self.content)
    }
}

word! {
    /// The reason why a model stopped. Reasons specific to a provider are `Unknown`.
    pub enum StopReason {
        /// The message is complete.
        EndTurn = "endTurn",
        /// A stop sequence was generated.
        StopSequence = "stopSequence",
        /// The maximum number of tokens was reached.
        MaxTokens = "maxTokens",
        /// The model calls a tool; since 2025-11-25.
        ToolUse = "toolUse",
    }
}

impl CreateMessageParams {
    /// Checks that the next message contains the results of all tool calls, and that a message with
    /// results contains nothing else. The handler layer checks this on both sides.
    ///
    /// # Errors
    ///
    /// Returns the first mismatch, which is the fault of the requesting server. A client responds
    /// with `-32602`.
    // MCP 2025-11-25 client/sampling#message-content-constraints [SAMP-008] [SAMP-009] [SAMP-011]
    pub fn check_tool_results(&self) -> Result<(), InvalidValue> {
        let mut owed: Vec<&str> = Vec::new();
        for (place, message) in self.messages.iter().enumerate() {
            let content = message.content.as_slice();
            let results = content.iter().filter_map(answered);
            let count = results.clone().count();
            if count > 0 && count < content.len() {
                return Err(InvalidValue::new(format!(
                    "message {place} mixes tool results with other content"
                )));
            }
            pay(&mut owed, results)?;
            if message.role == Role::Assistant {
                owed.extend(calls(message));
            }
        }
        pay(&mut owed, core::iter::empty())
    }
}

/// Returns the id of the tool call that a block answers.
fn answered(content: &SamplingContent) -> Option<&str> {
    match content {
        SamplingContent::ToolResult(result) => Some(result.tool_use_id.as_str()),
        _ => None,
    }
}

fn calls(message: &SamplingMessage) -> impl Iterator<Item = &str> {
    message.content.as_slice().iter().filter_map(|content| match content {
        SamplingContent::ToolUse(call) => Some(call.id.as_str()),
        _ => None,
    })
}

/// Checks that `results` contains all pending calls, and clears them.
fn pay<'a>(
    owed: &mut Vec<&'a str>,
    results: impl Iterator<Item = &'a str>,
) -> Result<(), InvalidValue> {
    if owed.is_empty() {
        return Ok(());
    }
    // Sorted for binary search, because the peer chooses their number.
    let mut results: Vec<&str> = results.collect();
    results.sort_unstable();
    let missing = owed.drain(..).find(|id| results.binary_search(id).is_err());
    let error = |id| format!("the tool use `{id}` has no result in the next message");
    missing.map_or(Ok(()), |id| Err(InvalidValue::new(error(id))))
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec;

    use super::*;

    #[test]
    fn content_of_a_later_revision_is_refused() {
        // Rule: [SAMP-004] [SAMP-005].
        let input = Json::from_serialize(&true).unwrap();
        let message =
            SamplingMessage::assistant(SamplingContent::from(ToolUseContent::new("1", "t", input)));
        let error = message.to_json_at(Revision::V2025_06_18).unwrap_err().to_string();
        assert_eq!(
            error,
            "a tool use of a model cannot be expressed in protocol revision 2025-06-18"
        );
        assert!(message.to_json_at(Revision::V2025_11_25).is_ok());
        let audio = SamplingContent::from(AudioContent::new("AA==", "audio/wav"));
        assert!(audio.to_json_at(Revision::V2024_11_05).is_err());
        assert!(audio.to_json_at(Revision::V2025_03_26).is_ok());
    }

    #[test]
    fn a_bare_block_and_an_array_round_trip() {
        // Rule: [SAMP-005].
        for text in [
            r#"{"role":"user","content":{"type":"text","text":"a"}}"#,
            r#"{"role":"user","content":[{"type":"text","text":"a"}]}"#,
        ] {
            let message: SamplingMessage = serde_json::from_str(text).unwrap();
            assert_eq!(message.content.as_slice(), [SamplingContent::text("a")]);
            assert_eq!(message.to_json_at(Revision::LATEST).unwrap().as_str(), text);
        }
    }

    #[test]
    fn the_first_text_of_a_message_may_follow_other_content() {
        let image = SamplingContent::from(ImageContent::new("AA==", "image/png"));
        assert_eq!(SamplingMessage::user(image.clone()).first_text(), None);
        let content = alloc::vec![image, SamplingContent::text("a"), SamplingContent::text("b")];
        let result = CreateMessageResult::new(Role::Assistant, content, "m");
        assert_eq!(result.first_text(), Some("a"));
        assert_eq!(SamplingMessage::assistant(result.content).first_text(), Some("a"));
    }

    #[test]
    fn a_sampling_request_has_messages_and_a_limit() {
        // Rule: [SAMP-002].
        let full = r#"{"messages":[{"role":"user","content":{"type":"text","text":"a"}}],"maxTokens":7,"modelPreferences":{"costPriority":0.5},"systemPrompt":"s","includeContext":"allServers","temperature":0.25,"stopSequences":["x","y"],"metadata":{"k":1}}"#;
        let params: CreateMessageParams = serde_json::from_str(full).unwrap();
        assert_eq!((params.messages.len(), params.max_tokens), (1, 7));
        assert_eq!(params.include_context, Some(IncludeContext::AllServers));
        assert_eq!(params.stop_sequences.as_deref().unwrap_or_default(), ["x", "y"]);
        for revision in Revision::ALL {
            assert_eq!(params.to_json_at(revision).unwrap().as_str(), full, "{revision}");
        }
        let bare = r#"{"messages":[],"maxTokens":7}"#;
        let params: CreateMessageParams = serde_json::from_str(bare).unwrap();
        assert_eq!(params, CreateMessageParams::new([], 7));
        assert_eq!(params.to_json_at(Revision::LATEST).unwrap().as_str(), bare);
        for lacking in [r#"{"messages":[]}"#, r#"{"maxTokens":7}"#] {
            assert!(serde_json::from_str::<CreateMessageParams>(lacking).is_err(), "{lacking}");
        }
        for (context, word) in [
            (IncludeContext::None, "none"),
            (IncludeContext::ThisServer, "thisServer"),
            (IncludeContext::AllServers, "allServers"),
        ] {
            assert_eq!((context.as_str(), IncludeContext::from(word)), (word, context.clone()));
        }
    }

    #[test]
    fn a_model_may_must_or_must_not_use_a_tool() {
        // Rule: [SAMP-010].
        for (mode, word) in [
            (ToolChoiceMode::Auto, "auto"),
            (ToolChoiceMode::Required, "required"),
            (ToolChoiceMode::None, "none"),
        ] {
            let text = alloc::format!(
                r#"{{"messages":[],"maxTokens":7,"toolChoice":{{"mode":"{word}"}}}}"#
            );
            let params = CreateMessageParams::new([], 7).tool_choice(ToolChoice::new().mode(mode));
            assert_eq!(serde_json::from_str::<CreateMessageParams>(&text).unwrap(), params);
            for revision in Revision::ALL {
                let written = params.to_json_at(revision).unwrap();
                let known = revision >= Revision::V2025_11_25;
                let expected = if known { &text } else { r#"{"messages":[],"maxTokens":7}"# };
                assert_eq!(written.as_str(), expected, "{revision}");
            }
        }
        // Without a mode, the model decides.
        let absent: ToolChoice = serde_json::from_str("{}").unwrap();
        assert_eq!(absent, ToolChoice::new());
        assert_eq!(absent.to_json_at(Revision::LATEST).unwrap().as_str(), "{}");
    }

    #[test]
    fn hints_keep_their_order() {
        // Rule: [SAMP-015].
        let text = r#"{"hints":[{"name":"b"},{"name":"a"},{}]}"#;
        let preferences: ModelPreferences = serde_json::from_str(text).unwrap();
        assert_eq!(preferences.to_json_at(Revision::LATEST).unwrap().as_str(), text);
    }

    #[test]
    fn a_providers_own_stop_reason_survives() {
        // Rule: [SAMP-003].
        let reason: StopReason = serde_json::from_str("\"guardrail\"").unwrap();
        assert_eq!(reason.as_str(), "guardrail");
    }

    fn call(id: &str) -> SamplingContent {
        let input = Json::from_serialize(&serde_json::json!({})).unwrap();
        ToolUseContent::new(id, "weather", input).into()
    }

    fn result(id: &str) -> SamplingContent {
        ToolResultContent::new(id, []).into()
    }

    fn check(messages: Vec<SamplingMessage>) -> Result<(), InvalidValue> {
        CreateMessageParams::new(messages, 10).check_tool_results()
    }

    fn missing(id: &str) -> Result<(), InvalidValue> {
        Err(InvalidValue::new(format!("the tool use `{id}` has no result in the next message")))
    }

    #[test]
    fn each_tool_use_is_answered_by_the_next_message() {
        // Rule: [SAMP-009] [SAMP-011].
        let asked = || SamplingMessage::assistant(vec![call("1"), call("2")]);
        let both = || SamplingMessage::user(vec![result("2"), result("1")]);
        let text = || SamplingMessage::user("well?");
        assert_eq!(check(vec![text(), asked(), both(), text()]), Ok(()));
        assert_eq!(check(vec![asked(), SamplingMessage::user(result("1"))]), missing("2"));
        assert_eq!(check(vec![asked(), text(), both()]), missing("1"));
        assert_eq!(check(vec![asked()]), missing("1"));
    }

    #[test]
    fn results_are_not_mixed_with_other_content() {
        // Rule: [SAMP-008] [SAMP-011].
        let mixed = vec![result("1"), SamplingContent::text("and?")];
        let messages = vec![SamplingMessage::assistant(call("1")), SamplingMessage::user(mixed)];
        assert_eq!(
            check(messages),
            Err(InvalidValue::new("message 1 mixes tool results with other content"))
        );
    }
}

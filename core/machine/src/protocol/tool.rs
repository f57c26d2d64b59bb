//! Tools: functions that a server executes on request.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::Revision;
use super::cache::{CacheScope, Ttl, cacheable};
use super::content::ContentBlock;
use super::implementation::Icon;
use super::message::{message, word};
use super::meta::Meta;
use super::wire::{SerializeAt, ToolOutput, is_object, is_object_schema, rev};
use crate::InvalidValue;
use crate::jsonrpc::{Json, JsonError, RawJson};

/// The maximum length of a tool name that [`check_tool_name`] accepts, in characters.
pub const TOOL_NAME_LENGTH_MAX: usize = 128;

message! {
    /// A tool that a server provides.
    ///
    /// ```
    /// use mcp_sansio::jsonrpc::RawJson;
    /// use mcp_sansio::protocol::Tool;
    ///
    /// let schema = RawJson::parse(r#"{"type":"object","properties":{"city":{"type":"string"}}}"#)?;
    /// let tool = Tool::new("forecast", schema).title("Forecast").description("Weather at a place");
    /// assert_eq!(tool.name, "forecast");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    // MCP 2026-07-28 schema.json#Tool [TOOL-001]
    pub struct Tool {
        required {
            /// The name for calling it; see [`check_tool_name`].
            name: String = "name" in ALL;
            /// The JSON Schema of its arguments: an object whose root `type` is `object`. All other
            /// keywords are kept.
            // MCP 2026-07-28 schema.json#Tool [TOOL-022]
            input_schema: Json = "inputSchema" in ALL;
        }
        defaulted {}
        optional {
            /// The display name; since 2025-06-18.
            #[serde(deserialize_with = "crate::jsonrpc::hint")]
            title: String = "title" in SINCE_2025_06_18;
            /// A description for the model.
            description: String = "description" in ALL;
            /// The JSON Schema of its structured results; since 2025-06-18. Before 2026-07-28 it is
            /// omitted unless its root `type` is `object`.
            output_schema: Json = "outputSchema" in SINCE_2025_06_18,
                when output_schema_is_expressible;
            /// Hints on its behavior; since 2025-03-26.
            // MCP 2025-03-26 schema.json#ToolAnnotations [TOOL-002]
            #[serde(deserialize_with = "crate::jsonrpc::hint")]
            annotations: ToolAnnotations = "annotations" in SINCE_2025_03_26;
            /// Task support; 2025-11-25 only.
            // MCP 2026-07-28 schema.json#Tool [TOOL-026]: not part of a tool.
            execution: ToolExecution = "execution" in ONLY_2025_11_25;
            /// Icons; since 2025-11-25.
            #[serde(deserialize_with = "crate::jsonrpc::list_of_hints")]
            icons: Vec<Icon> = "icons" in SINCE_2025_11_25;
            /// Metadata; since 2025-06-18.
            meta: Meta = "_meta" in SINCE_2025_06_18;
        }
    }
}

impl Tool {
    /// Returns the name to display: the title, else the title of the annotations, else the name.
    // MCP 2025-11-25 schema.json#BaseMetadata [META-016]
    #[must_use]
    pub fn display_name(&self) -> &str {
        let annotated = || self.annotations.as_ref().and_then(|hints| hints.title.as_ref());
        self.title.as_ref().or_else(annotated).unwrap_or(&self.name)
    }
}

// MCP 2025-11-25 server/tools#output-schema [TOOL-016]: the root type is `object`.
// MCP 2026-07-28 server/tools#output-schema [TOOL-017]: any schema.
fn output_schema_is_expressible(schema: &Json, revision: Revision) -> bool {
    if revision < Revision::V2026_07_28 { is_object_schema(schema) } else { is_object(schema) }
}

message! {
    /// Hints on the behavior of a tool; since 2025-03-26. Do not trust those of an unknown server.
    #[derive(Default)]
    pub struct ToolAnnotations {
        required {}
        defaulted {}
        optional {
            /// The display name.
            #[serde(deserialize_with = "crate::jsonrpc::hint")]
            title: String = "title" in ALL;
            /// It modifies nothing; the default is false.
            #[serde(deserialize_with = "crate::jsonrpc::hint")]
            read_only_hint: bool = "readOnlyHint" in ALL;
            /// It may destroy data; the default is true.
            #[serde(deserialize_with = "crate::jsonrpc::hint")]
            destructive_hint: bool = "destructiveHint" in ALL;
            /// Repeated calls have no additional effect; the default is false.
            #[serde(deserialize_with = "crate::jsonrpc::hint")]
            idempotent_hint: bool = "idempotentHint" in ALL;
            /// It interacts with external systems; the default is true.
            #[serde(deserialize_with = "crate::jsonrpc::hint")]
            open_world_hint: bool = "openWorldHint" in ALL;
        }
    }
}

message! {
    /// Task support of a tool; 2025-11-25 only.
    #[derive(Default)]
    pub struct ToolExecution {
        required {}
        defaulted {}
        optional {
            /// Whether it runs as a task; absent means forbidden.
            // MCP 2025-11-25 server/tools#tool [TOOL-025]
            task_support: TaskSupport = "taskSupport" in ALL;
        }
    }
}

word! {
    /// Whether a tool runs as a task.
    pub enum TaskSupport {
        /// Never.
        Forbidden = "forbidden",
        /// On request.
        Optional = "optional",
        /// Always.
        Required = "required",
    }
}

message! {
    /// The parameters of `tools/call`. Reading them borrows from the frame.
    // MCP 2026-07-28 server/tools#calling-tools [TOOL-004]
    pub struct CallToolParams<'a> {
        required {
            /// The tool.
            #[serde(borrow)]
            name: Cow<'a, str> = "name" in ALL;
        }
        defaulted {}
        optional {
            /// Its arguments: an object.
            #[serde(borrow)]
            arguments: RawJson<'a> = "arguments" in ALL;
            /// Requests a task; 2025-11-25 only.
            task: super::task::TaskMetadata = "task" in ONLY_2025_11_25;
            /// Responses to the server's input requests; since 2026-07-28. Decodes to
            /// [`InputResponses`](super::InputResponses).
            #[serde(borrow)]
            input_responses: RawJson<'a> = "inputResponses" in MODERN;
            /// The state that was sent with those requests; since 2026-07-28.
            #[serde(borrow, deserialize_with = "super::wire::optional_text")]
            request_state: Cow<'a, str> = "requestState" in MODERN;
            /// Metadata. Decodes to [`Meta`].
            #[serde(borrow)]
            meta: RawJson<'a> = "_meta" in ALL;
        }
    }
}

impl CallToolParams<'_> {
    /// Converts into parameters that own their data.
    #[must_use]
    pub fn into_owned(self) -> CallToolParams<'static> {
        CallToolParams {
            name: Cow::Owned(self.name.into_owned()),
            arguments: self.arguments.map(RawJson::into_owned),
            task: self.task,
            input_responses: self.input_responses.map(RawJson::into_owned),
            request_state: self.request_state.map(|state| Cow::Owned(state.into_owned())),
            meta: self.meta.map(RawJson::into_owned),
        }
    }
}

message! {
    /// The result of `tools/call`.
    ///
    /// ```
    /// use mcp_sansio::protocol::CallToolResult;
    ///
    /// let result = CallToolResult::text("21 °C");
    /// assert_eq!(result.first_text(), Some("21 °C"));
    /// // The model sees why the call failed, and may call again.
    /// assert_eq!(CallToolResult::error("no such city").is_error, Some(true));
    /// ```
    // MCP 2026-07-28 server/tools#calling-tools [TOOL-004]
    #[derive(Default)]
    pub struct CallToolResult {
        tag "resultType" = "complete" in MODERN;
        required {
            /// The content for the model.
            #[serde(default, deserialize_with = "crate::jsonrpc::list")]
            content: Vec<ContentBlock> = "content" in ALL;
        }
        defaulted {}
        optional {
            /// The structured content; since 2025-06-18. Before 2026-07-28 it is omitted unless it
            /// is an object.
            #[serde(deserialize_with = "super::wire::present")]
            structured_content: Json = "structuredContent" in SINCE_2025_06_18,
                when structured_content_is_expressible;
            /// Whether the call failed in a way that the model can correct; absent means false.
            is_error: bool = "isError" in ALL;
            /// Metadata.
            meta: Meta = "_meta" in ALL;
        }
        wire {
            fn tool_output(&self) -> ToolOutput<'_> {
                match &self.structured_content {
                    // Its structured content describes the error.
                    _ if self.is_error == Some(true) => ToolOutput::Failed,
                    Some(structured) => ToolOutput::Structured(structured),
                    None => ToolOutput::Unstructured,
                }
            }
        }
    }
}

impl CallToolResult {
    /// Creates a result with one text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::new([ContentBlock::text(text)])
    }

    /// Creates an error result that is shown to the model.
    // MCP 2026-07-28 schema.json#CallToolResult [TOOL-008]
    #[must_use]
    pub fn error(text: impl Into<String>) -> Self {
        Self::text(text).is_error(true)
    }

    /// Returns the text of the first text block.
    #[must_use]
    pub fn first_text(&self) -> Option<&str> {
        self.content.iter().find_map(ContentBlock::as_text)
    }

    /// Creates a result with structured content, and with the same content as text for older
    /// readers.
    ///
    /// # Errors
    ///
    /// The value cannot be represented as JSON.
    // MCP 2026-07-28 server/tools#structured-content [TOOL-018]: also as a text block.
    pub fn structured<T: Serialize + ?Sized>(value: &T) -> Result<Self, JsonError> {
        let json = Json::from_serialize(value)?;
        Ok(Self::text(json.as_str()).structured_content(json))
    }
}

/// The result of [`CallToolResult::text`], without allocating a list.
#[derive(Clone, Copy, Debug)]
pub struct TextResult<'a>(pub &'a str);

impl SerializeAt for TextResult<'_> {
    fn serialize_at<S: Serializer>(
        &self,
        revision: Revision,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        struct Block<'a>(&'a str);

        impl Serialize for Block<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(None)?;
                map.serialize_entry("type", "text")?;
                map.serialize_entry("text", self.0)?;
                map.end()
            }
        }

        let mut map = serializer.serialize_map(None)?;
        if rev::MODERN.contains(revision) {
            map.serialize_entry("resultType", "complete")?;
        }
        map.serialize_entry("content", &[Block(self.0)])?;
        map.end()
    }
}

impl From<String> for CallToolResult {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<&str> for CallToolResult {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<Vec<ContentBlock>> for CallToolResult {
    fn from(content: Vec<ContentBlock>) -> Self {
        Self::new(content)
    }
}

/// Also used for tool results in sampling, which follow the same rule.
// MCP 2025-11-25 server/tools#structured-content [TOOL-016]: a JSON object.
// MCP 2026-07-28 server/tools#structured-content [TOOL-017]: any JSON value.
pub(crate) fn structured_content_is_expressible(content: &Json, revision: Revision) -> bool {
    revision >= Revision::V2026_07_28 || is_object(content)
}

message! {
    /// The result of `tools/list`.
    // MCP 2026-07-28 server/tools#listing-tools [TOOL-003]
    pub struct ListToolsResult {
        tag "resultType" = "complete" in MODERN;
        required {
            /// This page of the tools.
            #[serde(deserialize_with = "crate::jsonrpc::list")]
            tools: Vec<Tool> = "tools" in ALL;
        }
        defaulted {
            /// How long the result stays fresh, in milliseconds; since 2026-07-28.
            ttl_ms: Ttl = "ttlMs" in MODERN;
            /// Whether it may be shared between users; since 2026-07-28.
            cache_scope: CacheScope = "cacheScope" in MODERN;
        }
        optional {
            /// The cursor of the next page; `None` on the last page.
            next_cursor: String = "nextCursor" in ALL;
            /// Metadata.
            meta: Meta = "_meta" in ALL;
        }
    }
}

cacheable!(ListToolsResult);

/// Checks the name of a tool that a server defines. Names from peers are not checked.
///
/// # Errors
///
/// Clients may refuse tools of this name.
// MCP 2026-07-28 server/tools#tool-names [TOOL-023]
pub fn check_tool_name(name: &str) -> Result<(), InvalidValue> {
    let foreign = |c: &char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '-' | '.');
    if let Some(c) = name.chars().find(foreign) {
        Err(InvalidValue::at(
            c,
            "not allowed in a tool name: use only A-Z, a-z, 0-9, underscore, hyphen and dot",
        ))
    } else if (1..=TOOL_NAME_LENGTH_MAX).contains(&name.len()) {
        Ok(())
    } else {
        Err(InvalidValue::new("a tool name must have 1 to 128 characters"))
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;
    use crate::protocol::{ImageContent, SerializeAt};

    fn json(text: &str) -> Json {
        RawJson::parse(text).unwrap().into()
    }

    #[test]
    fn tool_names_are_short_and_plain() {
        // Rule: [TOOL-023].
        for name in ["a", "get_weather", "DATA-export.v2", &"x".repeat(128)] {
            assert_eq!(check_tool_name(name), Ok(()), "{name}");
        }
        let reason = |name: &str| check_tool_name(name).unwrap_err().to_string();
        for name in ["", &"x".repeat(129)] {
            assert_eq!(reason(name), "a tool name must have 1 to 128 characters");
        }
        assert!(reason("a b").starts_with("` `: not allowed in a tool name"));
        assert!(reason("é").starts_with("`é`: not allowed in a tool name"));
    }

    #[test]
    fn structured_content_must_be_an_object_before_2026_07_28() {
        // Rule: [TOOL-016] [TOOL-017].
        let list = CallToolResult::structured(&[1, 2]).unwrap();
        let text = |revision| String::from(list.to_json_at(revision).unwrap().as_str());
        let bare = r#"{"content":[{"type":"text","text":"[1,2]"}]}"#;
        assert_eq!(text(Revision::V2025_11_25), bare);
        assert_eq!(text(Revision::V2025_06_18), bare);
        assert!(text(Revision::V2026_07_28).contains(r#""structuredContent":[1,2]"#));
        let object = CallToolResult::new([]).structured_content(json(r#"{"a":1}"#));
        assert_eq!(
            object.to_json_at(Revision::V2025_06_18).unwrap().as_str(),
            r#"{"content":[],"structuredContent":{"a":1}}"#
        );
    }

    #[test]
    fn structured_content_is_also_text_and_errors_are_marked() {
        // Rule: [TOOL-008] [TOOL-018].
        let data = CallToolResult::structured(&[7]).unwrap();
        assert_eq!(data.content, [ContentBlock::text("[7]")]);
        assert_eq!(data.is_error, None);
        let failure = CallToolResult::error("no such city");
        assert_eq!(failure.is_error, Some(true));
        assert_eq!(failure.content[0].as_text(), Some("no such city"));
    }

    #[test]
    fn the_first_text_of_a_result_may_follow_other_content() {
        let image = ContentBlock::from(ImageContent::new("AA==", "image/png"));
        let mut result = CallToolResult::new([image]);
        assert_eq!(result.first_text(), None);
        result.content.extend(["a", "b"].map(ContentBlock::from));
        assert_eq!(result.first_text(), Some("a"));
    }

    #[test]
    fn null_as_structured_content_is_not_the_same_as_none() {
        // Rule: [TOOL-017].
        let read = |text| serde_json::from_str::<CallToolResult>(text).unwrap();
        let null = read(r#"{"content":[],"structuredContent":null}"#);
        assert_eq!(null.structured_content, Some(json("null")));
        assert!(null.to_json_at(Revision::LATEST).unwrap().as_str().contains("null"));
        assert_eq!(read(r#"{"content":[]}"#).structured_content, None);
    }

    #[test]
    fn a_non_object_output_schema_is_omitted_at_older_revisions() {
        // Rule: [TOOL-016].
        let tool =
            Tool::new("t", json(r#"{"type":"object"}"#)).output_schema(json(r#"{"type":"array"}"#));
        for (revision, present) in [
            (Revision::V2025_06_18, false),
            (Revision::V2025_11_25, false),
            (Revision::V2026_07_28, true),
        ] {
            let text = tool.to_json_at(revision).unwrap();
            assert_eq!(text.as_str().contains("outputSchema"), present, "{revision}");
        }
    }

    #[test]
    fn tool_annotations_are_written_since_2025_03_26_without_defaults() {
        // Rule: [TOOL-002].
        let hints = ToolAnnotations::new()
            .title("T")
            .read_only_hint(true)
            .destructive_hint(false)
            .idempotent_hint(true)
            .open_world_hint(false);
        let tool = Tool::new("t", json(r#"{"type":"object"}"#)).annotations(hints);
        let with = r#"{"name":"t","inputSchema":{"type":"object"},"annotations":{"title":"T","readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}}"#;
        let without = r#"{"name":"t","inputSchema":{"type":"object"}}"#;
        for revision in Revision::ALL {
            let expected = if revision < Revision::V2025_03_26 { without } else { with };
            assert_eq!(tool.to_json_at(revision).unwrap().as_str(), expected, "{revision}");
        }
        assert_eq!(serde_json::from_str::<Tool>(with).unwrap(), tool);
        // Defaults are applied by the reader and not written.
        let bare: Tool =
            serde_json::from_str(r#"{"name":"t","inputSchema":{},"annotations":{}}"#).unwrap();
        assert_eq!(bare.annotations, Some(ToolAnnotations::new()));
        assert_eq!(bare.annotations.unwrap().to_json_at(Revision::LATEST).unwrap().as_str(), "{}");
    }

    #[test]
    fn execution_exists_in_one_revision() {
        // Rule: [TOOL-025] [TOOL-026].
        let tool = Tool::new("t", json(r#"{"type":"object"}"#))
            .execution(ToolExecution::new().task_support(TaskSupport::Optional));
        for revision in Revision::ALL {
            let text = tool.to_json_at(revision).unwrap();
            let expected = revision == Revision::V2025_11_25;
            assert_eq!(text.as_str().contains("execution"), expected, "{revision}");
        }
    }

    #[test]
    fn unknown_keywords_of_a_schema_survive() {
        // Rule: [TOOL-022].
        let text = r#"{"name":"t","inputSchema":{"type":"object","x-mine":[1, 2],"oneOf":[]}}"#;
        let tool: Tool = serde_json::from_str(text).unwrap();
        assert_eq!(tool.to_json_at(Revision::LATEST).unwrap().as_str(), text);
    }

    #[test]
    fn the_display_name_prefers_title_then_annotation_then_name() {
        // Rule: [META-016].
        let tool = Tool::new("n", json("{}"));
        assert_eq!(tool.display_name(), "n");
        let tool = tool.annotations(ToolAnnotations::new().title("a"));
        assert_eq!(tool.display_name(), "a");
        assert_eq!(tool.title("t").display_name(), "t");
    }

    #[test]
    fn null_for_an_optional_field_is_the_same_as_absent() {
        let params: CallToolParams<'_> =
            serde_json::from_str(r#"{"name":"a","arguments":null,"task":null,"novel":1}"#).unwrap();
        assert_eq!(params, CallToolParams::new("a"));
        let result: CallToolResult = serde_json::from_str(r#"{"content":null}"#).unwrap();
        assert_eq!(result, CallToolResult::new([]));
    }

    #[test]
    fn parameters_outlive_their_frame_when_owned() {
        // Rule: [TOOL-004].
        let frame = String::from(r#"{"name":"a","arguments":{"x":[1, 2]},"_meta":{}}"#);
        let params: CallToolParams<'_> = serde_json::from_str(&frame).unwrap();
        assert!(matches!(params.name, Cow::Borrowed("a")));
        let owned = params.into_owned();
        drop(frame);
        assert_eq!(owned.arguments.unwrap().as_str(), r#"{"x":[1, 2]}"#);
        assert_eq!(owned.meta.unwrap(), RawJson::EMPTY_OBJECT);
    }

    #[test]
    fn a_text_result_is_written_like_the_full_result() {
        for revision in Revision::ALL {
            let result = CallToolResult::text("a\n\"b\"").to_json_at(revision).unwrap();
            assert_eq!(TextResult("a\n\"b\"").to_json_at(revision).unwrap(), result);
        }
    }
}

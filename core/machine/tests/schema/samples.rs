//! Values with every member of their types.

use mcp_sansio::jsonrpc::{Json, RawJson};
use mcp_sansio::protocol::*;

pub(crate) fn json(text: &str) -> Json {
    RawJson::parse(text).unwrap().into()
}

pub(crate) fn raw(text: &'static str) -> RawJson<'static> {
    RawJson::parse(text).unwrap()
}

pub(crate) fn meta() -> Meta {
    let mut meta = Meta::new();
    meta.set("com.example/key", &[1]).unwrap();
    meta
}

pub(crate) fn settings() -> CapabilitySettings {
    CapabilitySettings::new().with("x", json("{}"))
}

pub(crate) fn annotations() -> Annotations {
    Annotations::new()
        .audience([Role::User, Role::Assistant])
        .priority(0.5)
        .last_modified("2025-01-12T15:00:58Z")
}

pub(crate) fn icons() -> [Icon; 1] {
    [Icon::new("https://example.com/i.png")
        .mime_type("image/png")
        .sizes(["48x48".into()])
        .theme(IconTheme::Dark)]
}

pub(crate) fn implementation() -> Implementation {
    Implementation::new("name", "1.0")
        .title("Name")
        .description("text")
        .icons(icons())
        .website_url("https://example.com/")
}

pub(crate) fn schema() -> Json {
    json(r#"{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}"#)
}

pub(crate) fn tool() -> Tool {
    Tool::new("tool", schema())
        .title("Tool")
        .description("text")
        .output_schema(schema())
        .annotations(
            ToolAnnotations::new()
                .title("t")
                .read_only_hint(true)
                .destructive_hint(false)
                .idempotent_hint(true)
                .open_world_hint(false),
        )
        .execution(ToolExecution::new().task_support(TaskSupport::Optional))
        .icons(icons())
        .meta(meta())
}

pub(crate) fn text() -> TextContent {
    TextContent::new("text").annotations(annotations()).meta(meta())
}

pub(crate) fn image() -> ImageContent {
    ImageContent::new("AAAA", "image/png").annotations(annotations()).meta(meta())
}

pub(crate) fn audio() -> AudioContent {
    AudioContent::new("AAAA", "audio/wav").annotations(annotations()).meta(meta())
}

pub(crate) fn text_contents() -> TextResourceContents {
    TextResourceContents::new("file:///a", "text").mime_type("text/plain").meta(meta())
}

pub(crate) fn blob_contents() -> BlobResourceContents {
    BlobResourceContents::new("file:///a", "AAAA").mime_type("image/png").meta(meta())
}

pub(crate) fn embedded() -> EmbeddedResource {
    EmbeddedResource::new(text_contents()).annotations(annotations()).meta(meta())
}

pub(crate) fn blocks() -> Vec<ContentBlock> {
    vec![
        text().into(),
        image().into(),
        audio().into(),
        resource().into(),
        embedded().into(),
        EmbeddedResource::new(blob_contents()).into(),
    ]
}

pub(crate) fn resource() -> Resource {
    Resource::new("file:///a", "a")
        .title("A")
        .description("text")
        .mime_type("text/plain")
        .size(7)
        .icons(icons())
        .annotations(annotations())
        .meta(meta())
}

pub(crate) fn template() -> ResourceTemplate {
    ResourceTemplate::new("file:///{a}", "a")
        .title("A")
        .description("text")
        .mime_type("text/plain")
        .icons(icons())
        .annotations(annotations())
        .meta(meta())
}

pub(crate) fn prompt() -> Prompt {
    Prompt::new("p").title("P").description("text").icons(icons()).meta(meta()).arguments([
        PromptArgument::new("a").title("A").description("text").required(true),
        PromptArgument::new("b"),
    ])
}

pub(crate) fn root() -> Root {
    Root::new("file:///a").name("a").meta(meta())
}

pub(crate) fn cache() -> CacheHints {
    CacheHints::public(core::time::Duration::from_secs(60))
}

pub(crate) fn client_capabilities() -> ClientCapabilities {
    ClientCapabilities::new()
        .experimental(settings())
        .extensions(CapabilitySettings::new().with(TASKS_EXTENSION, json("{}")))
        .roots(RootsCapability::new().list_changed(true))
        .sampling(SamplingCapability::new().context(settings()).tools(settings()))
        .elicitation(ElicitationCapability::new().form(settings()).url(settings()))
        .tasks(
            TasksCapability::new().list(settings()).cancel(settings()).requests(
                TaskRequests::new()
                    .sampling(TaskMethods::new().create_message(settings()))
                    .elicitation(TaskMethods::new().create(settings())),
            ),
        )
}

pub(crate) fn server_capabilities() -> ServerCapabilities {
    ServerCapabilities::new()
        .experimental(settings())
        .extensions(CapabilitySettings::new().with(TASKS_EXTENSION, json("{}")))
        .logging(settings())
        .completions(settings())
        .prompts(PromptsCapability::new().list_changed(true))
        .resources(ResourcesCapability::new().list_changed(true).subscribe(false))
        .tools(ToolsCapability::new().list_changed(true))
        .tasks(
            TasksCapability::new()
                .list(settings())
                .cancel(settings())
                .requests(TaskRequests::new().tools(TaskMethods::new().call(settings()))),
        )
}

pub(crate) fn task() -> Task {
    Task::new("t", "2026-01-01T00:00:00Z")
        .status_message("text")
        .last_updated_at("2026-01-01T00:01:00Z")
        .ttl_ms(1000)
        .poll_interval_ms(100)
}

pub(crate) fn model_preferences() -> ModelPreferences {
    ModelPreferences::new()
        .hints([ModelHint::new().name("m"), ModelHint::new()])
        .cost_priority(0.0)
        .speed_priority(0.5)
        .intelligence_priority(1.0)
}

pub(crate) fn tool_use() -> ToolUseContent {
    ToolUseContent::new("1", "tool", json("{}")).meta(meta())
}

pub(crate) fn tool_result() -> ToolResultContent {
    ToolResultContent::new("1", blocks())
        .structured_content(json(r#"{"a":1}"#))
        .is_error(false)
        .meta(meta())
}

pub(crate) fn create_message() -> CreateMessageParams {
    CreateMessageParams::new(
        [
            SamplingMessage::user("text").meta(meta()),
            SamplingMessage::assistant(SamplingContent::from(image())),
        ],
        100,
    )
    .model_preferences(model_preferences())
    .system_prompt("text")
    .include_context(IncludeContext::ThisServer)
    .temperature(0.7)
    .stop_sequences(["stop".into()])
    .metadata(json(r#"{"a":1}"#))
    .tools([tool()])
    .tool_choice(ToolChoice::new().mode(ToolChoiceMode::Required))
    .task(TaskMetadata::new().ttl(1000))
    .meta(meta())
}

/// Sampling parameters for the revisions with several content blocks in a message.
pub(crate) fn create_message_with_tools() -> CreateMessageParams {
    CreateMessageParams::new(
        [
            SamplingMessage::assistant(vec![tool_use().into(), audio().into()]),
            SamplingMessage::user(vec![SamplingContent::from(tool_result())]),
        ],
        100,
    )
}

pub(crate) fn string_schema() -> StringSchema {
    StringSchema::new()
        .title("T")
        .description("text")
        .min_length(1)
        .max_length(9)
        .format(StringFormat::DateTime)
        .default("d")
}

pub(crate) fn number_schema() -> NumberSchema {
    NumberSchema::number().title("T").description("text").minimum(1.0).maximum(9.0).default(4.0)
}

pub(crate) fn boolean_schema() -> BooleanSchema {
    BooleanSchema::new().title("T").description("text").default(true)
}

pub(crate) fn options() -> Vec<EnumOption> {
    vec![EnumOption::new("r", "Red"), EnumOption::new("g", "Green")]
}

pub(crate) fn single(choices: impl Into<Choices>) -> SingleSelectSchema {
    SingleSelectSchema::new(choices).title("T").description("text").default("r")
}

pub(crate) fn legacy_titled() -> Choices {
    Choices::LegacyTitled { values: vec!["r".into()], names: vec!["Red".into()] }
}

pub(crate) fn multi(choices: impl Into<Choices>) -> MultiSelectSchema {
    MultiSelectSchema::new(choices)
        .title("T")
        .description("text")
        .min_items(1)
        .max_items(2)
        .default(["r".into()])
}

/// A form with the fields that every revision with forms supports.
pub(crate) fn form() -> ElicitFormParams {
    let schema = ElicitSchema::new()
        .field("text", string_schema())
        .field("number", number_schema())
        .optional_field("integer", NumberSchema::integer())
        .optional_field("boolean", boolean_schema())
        .optional_field("untitled", single(["r", "g"]))
        .optional_field("titled", single(options()))
        .optional_field("legacy", single(legacy_titled()))
        .dialect("https://json-schema.org/draft/2020-12/schema");
    ElicitFormParams::new("text", schema).task(TaskMetadata::new().ttl(1)).meta(meta())
}

pub(crate) fn form_with_several() -> ElicitFormParams {
    let schema = ElicitSchema::new()
        .field("untitled", multi(["r", "g"]))
        .field("titled", multi(options()))
        .field("legacy", multi(legacy_titled()));
    ElicitFormParams::new("text", schema)
}

pub(crate) fn url() -> ElicitUrlParams {
    ElicitUrlParams::new("text", "https://example.com/")
        .elicitation_id("e")
        .task(TaskMetadata::new())
        .meta(meta())
}

pub(crate) fn filter() -> SubscriptionFilter {
    SubscriptionFilter::new()
        .tools_list_changed(true)
        .prompts_list_changed(true)
        .resources_list_changed(false)
        .resource_subscriptions(["file:///a".into()])
}

pub(crate) fn input_requests() -> InputRequests {
    InputRequests::new()
        .with("model", create_message())
        .with("tools", create_message_with_tools())
        .with("roots", ListRootsParams::new().meta(meta()))
        .with("form", ElicitParams::from(form()))
        .with("url", ElicitParams::from(url()))
}

pub(crate) fn input_responses() -> InputResponses {
    InputResponses::new()
        .with("model", created_message())
        .with("roots", ListRootsResult::new([root()]))
        .with("form", elicited())
}

pub(crate) const INPUT_RESPONSES: &str = r#"{"form":{"action":"accept","content":{"a":"b"}}}"#;

pub(crate) fn created_message() -> CreateMessageResult {
    CreateMessageResult::new(Role::Assistant, "text", "m")
        .stop_reason(StopReason::EndTurn)
        .meta(meta())
}

pub(crate) fn elicited() -> ElicitResult {
    let content = Map::new().with("a", "b").with("c", 7).with("d", true);
    ElicitResult::accept(content).meta(meta())
}

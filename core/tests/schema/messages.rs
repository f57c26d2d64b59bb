//! A full and a minimal value of every type, judged at every revision that has it.

use mcp_sansio::jsonrpc::{Json, RawJson};
use mcp_sansio::protocol::*;

use super::report::Report;
use super::spec;

const ALL: Revisions = Revisions::ALL;
const LEGACY: Revisions = Revisions::LEGACY;
const SINCE_MARCH: Revisions = Revisions::since(Revision::V2025_03_26);
const SINCE_JUNE: Revisions = Revisions::since(Revision::V2025_06_18);
const SINCE_NOVEMBER: Revisions = Revisions::since(Revision::V2025_11_25);
const NOVEMBER: Revisions = Revisions::only(Revision::V2025_11_25);
const JULY: Revisions = Revisions::MODERN;

/// Definitions that no payload has: envelopes, unions, base types, and words that are checked
/// wherever they stand.
const ELSEWHERE: &[&str] = &[
    "Annotated",
    "BaseMetadata",
    "CacheableResult",
    "CallToolResultResponse",
    "ClientNotification",
    "ClientRequest",
    "ClientResult",
    "CompleteResultResponse",
    "Cursor",
    "DiscoverResultResponse",
    "Error",
    "GetPromptResultResponse",
    "HeaderMismatchError",
    "Icons",
    "InputResponseRequestParams",
    "InternalError",
    "InvalidParamsError",
    "InvalidRequestError",
    "JSONArray",
    "JSONObject",
    "JSONRPCBatchRequest",
    "JSONRPCBatchResponse",
    "JSONRPCError",
    "JSONRPCErrorResponse",
    "JSONRPCMessage",
    "JSONRPCNotification",
    "JSONRPCRequest",
    "JSONRPCResponse",
    "JSONRPCResultResponse",
    "JSONValue",
    "ListPromptsResultResponse",
    "ListResourceTemplatesResultResponse",
    "ListResourcesResultResponse",
    "ListToolsResultResponse",
    "MethodNotFoundError",
    "Notification",
    "NotificationMetaObject",
    "NotificationParams",
    "PaginatedRequest",
    "PaginatedRequestParams",
    "PaginatedResult",
    "ParseError",
    "ReadResourceResultResponse",
    "Request",
    "RequestId",
    "RequestMetaObject",
    "RequestParams",
    "ResourceContents",
    "ResourceRequestParams",
    "ResultMetaObject",
    "ResultType",
    "ServerNotification",
    "ServerRequest",
    "ServerResult",
    "SubscriptionsListenResultMetaObject",
    "SubscriptionsListenResultResponse",
    "TaskAugmentedRequestParams",
    // The answer of the request that the task stands for: any result.
    "GetTaskPayloadResult",
    // Judged as the `params` of the message that they belong to.
    "CallToolRequestParams",
    "CancelledNotificationParams",
    "CompleteRequestParams",
    "CreateMessageRequestParams",
    "ElicitRequestParams",
    "GetPromptRequestParams",
    "InitializeRequestParams",
    "LoggingMessageNotificationParams",
    "ProgressNotificationParams",
    "ReadResourceRequestParams",
    "SetLevelRequestParams",
    "SubscribeRequestParams",
    "SubscriptionsAcknowledgedNotificationParams",
    "SubscriptionsListenRequestParams",
    "TaskStatusNotificationParams",
    "UnsubscribeRequestParams",
    "ResourceUpdatedNotificationParams",
];

fn json(text: &str) -> Json {
    RawJson::parse(text).unwrap().into()
}

fn raw(text: &'static str) -> RawJson<'static> {
    RawJson::parse(text).unwrap()
}

fn meta() -> Meta {
    let mut meta = Meta::new();
    meta.set("com.example/key", &[1]).unwrap();
    meta
}

fn settings() -> Settings {
    Settings::new().with("x", json("{}"))
}

fn annotations() -> Annotations {
    Annotations::new()
        .audience([Role::User, Role::Assistant])
        .priority(0.5)
        .last_modified("2025-01-12T15:00:58Z")
}

fn icons() -> [Icon; 1] {
    [Icon::new("https://example.com/i.png")
        .mime_type("image/png")
        .sizes(["48x48".into()])
        .theme(IconTheme::Dark)]
}

fn implementation() -> Implementation {
    Implementation::new("name", "1.0")
        .title("Name")
        .description("text")
        .icons(icons())
        .website_url("https://example.com/")
}

fn schema() -> Json {
    json(r#"{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}"#)
}

fn tool() -> Tool {
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

fn text() -> TextContent {
    TextContent::new("text").annotations(annotations()).meta(meta())
}

fn image() -> ImageContent {
    ImageContent::new("AAAA", "image/png").annotations(annotations()).meta(meta())
}

fn audio() -> AudioContent {
    AudioContent::new("AAAA", "audio/wav").annotations(annotations()).meta(meta())
}

fn link() -> ResourceLink {
    ResourceLink::new("file:///a", "a")
        .title("A")
        .description("text")
        .mime_type("text/plain")
        .size(7)
        .icons(icons())
        .annotations(annotations())
        .meta(meta())
}

fn text_contents() -> TextResourceContents {
    TextResourceContents::new("file:///a", "text").mime_type("text/plain").meta(meta())
}

fn blob_contents() -> BlobResourceContents {
    BlobResourceContents::new("file:///a", "AAAA").mime_type("image/png").meta(meta())
}

fn embedded() -> EmbeddedResource {
    EmbeddedResource::new(text_contents()).annotations(annotations()).meta(meta())
}

fn blocks() -> Vec<ContentBlock> {
    vec![
        text().into(),
        image().into(),
        audio().into(),
        link().into(),
        embedded().into(),
        EmbeddedResource::new(blob_contents()).into(),
    ]
}

fn resource() -> Resource {
    Resource::new("file:///a", "a")
        .title("A")
        .description("text")
        .mime_type("text/plain")
        .size(7)
        .icons(icons())
        .annotations(annotations())
        .meta(meta())
}

fn template() -> ResourceTemplate {
    ResourceTemplate::new("file:///{a}", "a")
        .title("A")
        .description("text")
        .mime_type("text/plain")
        .icons(icons())
        .annotations(annotations())
        .meta(meta())
}

fn prompt() -> Prompt {
    Prompt::new("p").title("P").description("text").icons(icons()).meta(meta()).arguments([
        PromptArgument::new("a").title("A").description("text").required(true),
        PromptArgument::new("b"),
    ])
}

fn root() -> Root {
    Root::new("file:///a").name("a").meta(meta())
}

fn cache() -> CacheHints {
    CacheHints::public(core::time::Duration::from_secs(60))
}

fn client_capabilities() -> ClientCapabilities {
    ClientCapabilities::new()
        .experimental(settings())
        .extensions(Settings::new().with(TASKS_EXTENSION, json("{}")))
        .roots(RootsCapability::new().list_changed(true))
        .sampling(SamplingCapability::new().context(settings()).tools(settings()))
        .elicitation(ElicitationCapability::new().form(settings()).url(settings()))
        .tasks(
            ClientTasksCapability::new().list(settings()).cancel(settings()).requests(
                ClientTaskRequests::new()
                    .sampling(SamplingTaskRequests::new().create_message(settings()))
                    .elicitation(ElicitationTaskRequests::new().create(settings())),
            ),
        )
}

fn server_capabilities() -> ServerCapabilities {
    ServerCapabilities::new()
        .experimental(settings())
        .extensions(Settings::new().with(TASKS_EXTENSION, json("{}")))
        .logging(settings())
        .completions(settings())
        .prompts(PromptsCapability::new().list_changed(true))
        .resources(ResourcesCapability::new().list_changed(true).subscribe(false))
        .tools(ToolsCapability::new().list_changed(true))
        .tasks(
            ServerTasksCapability::new().list(settings()).cancel(settings()).requests(
                ServerTaskRequests::new().tools(ToolTaskRequests::new().call(settings())),
            ),
        )
}

fn task() -> Task {
    Task::new("t", "2026-01-01T00:00:00Z")
        .status_message("text")
        .last_updated_at("2026-01-01T00:01:00Z")
        .ttl_ms(1000)
        .poll_interval_ms(100)
}

fn model_preferences() -> ModelPreferences {
    ModelPreferences::new()
        .hints([ModelHint::new().name("m"), ModelHint::new()])
        .cost_priority(0.0)
        .speed_priority(0.5)
        .intelligence_priority(1.0)
}

fn tool_use() -> ToolUseContent {
    ToolUseContent::new("1", "tool", json("{}")).meta(meta())
}

fn tool_result() -> ToolResultContent {
    ToolResultContent::new("1", blocks())
        .structured_content(json(r#"{"a":1}"#))
        .is_error(false)
        .meta(meta())
}

fn create_message() -> CreateMessageParams {
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

/// What only revisions with several blocks in one message can say.
fn create_message_with_tools() -> CreateMessageParams {
    CreateMessageParams::new(
        [
            SamplingMessage::assistant(vec![tool_use().into(), audio().into()]),
            SamplingMessage::user(vec![SamplingContent::from(tool_result())]),
        ],
        100,
    )
}

fn string_schema() -> StringSchema {
    StringSchema::new()
        .title("T")
        .description("text")
        .min_length(1)
        .max_length(9)
        .format(StringFormat::DateTime)
        .default("d")
}

fn number_schema() -> NumberSchema {
    NumberSchema::number().title("T").description("text").minimum(1.0).maximum(9.0).default(4.0)
}

fn boolean_schema() -> BooleanSchema {
    BooleanSchema::new().title("T").description("text").default(true)
}

fn options() -> Vec<EnumOption> {
    vec![EnumOption::new("r", "Red"), EnumOption::new("g", "Green")]
}

fn single(choices: impl Into<Choices>) -> SingleSelectSchema {
    SingleSelectSchema::new(choices).title("T").description("text").default("r")
}

fn legacy_titled() -> Choices {
    Choices::LegacyTitled { values: vec!["r".into()], names: vec!["Red".into()] }
}

fn multi(choices: impl Into<Choices>) -> MultiSelectSchema {
    MultiSelectSchema::new(choices)
        .title("T")
        .description("text")
        .min_items(1)
        .max_items(2)
        .default(["r".into()])
}

/// A form of what every revision with forms can say.
fn form() -> ElicitFormParams {
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

fn form_with_several() -> ElicitFormParams {
    let schema = ElicitSchema::new()
        .field("untitled", multi(["r", "g"]))
        .field("titled", multi(options()))
        .field("legacy", multi(legacy_titled()));
    ElicitFormParams::new("text", schema)
}

fn url() -> ElicitUrlParams {
    ElicitUrlParams::new("text", "https://example.com/")
        .elicitation_id("e")
        .task(TaskMetadata::new())
        .meta(meta())
}

fn filter() -> SubscriptionFilter {
    SubscriptionFilter::new()
        .tools_list_changed(true)
        .prompts_list_changed(true)
        .resources_list_changed(false)
        .resource_subscriptions(["file:///a".into()])
}

fn input_requests() -> InputRequests {
    InputRequests::new()
        .with("model", create_message())
        .with("tools", create_message_with_tools())
        .with("roots", ListRootsParams::new().meta(meta()))
        .with("form", ElicitParams::from(form()))
        .with("url", ElicitParams::from(url()))
}

fn input_responses() -> InputResponses {
    InputResponses::new()
        .with("model", created_message())
        .with("roots", ListRootsResult::new([root()]))
        .with("form", elicited())
}

const INPUT_RESPONSES: &str = r#"{"form":{"action":"accept","content":{"a":"b"}}}"#;

fn created_message() -> CreateMessageResult {
    CreateMessageResult::new(Role::Assistant, "text", "m")
        .stop_reason(StopReason::EndTurn)
        .meta(meta())
}

fn elicited() -> ElicitResult {
    let content = Map::new().with("a", "b").with("c", 7).with("d", true);
    ElicitResult::accept(content).meta(meta())
}

#[test]
fn every_message_is_valid_and_exact_at_every_revision_that_has_it() {
    // Rule: [TOOL-001] [TOOL-002] [TOOL-003] [TOOL-004] [TOOL-014] [TOOL-016] [TOOL-026].
    // Rule: [RSRC-001] [RSRC-002] [RSRC-003] [RSRC-020] [PRMT-001] [PRMT-002] [PRMT-003].
    // Rule: [COMP-001] [COMP-002] [LOG-002] [LOG-003] [ROOT-001] [SAMP-002] [SAMP-003] [SAMP-004].
    // Rule: [SAMP-005] [SAMP-010] [ELIC-003] [ELIC-008] [ELIC-009] [ELIC-014] [ELIC-015].
    // Rule: [CACHE-001] [CACHE-002] [LIFE-001] [LIFE-002] [DISC-002] [SUBS-001] [MRTR-004].
    // Rule: [TASK-001] [TASK-010] [TASK-016] [TASK-017] [TASK-030] [META-014] [CAP-007] [CAP-008].
    let Some(folder) = spec::folder() else { return };
    let mut report = Report::new(&folder);
    implementation_and_capabilities(&mut report);
    content(&mut report);
    tools(&mut report);
    resources(&mut report);
    prompts_and_completion(&mut report);
    utilities(&mut report);
    sampling_and_roots(&mut report);
    elicitation(&mut report);
    input_and_subscriptions(&mut report);
    tasks(&mut report);
    errors(&mut report);
    report.finish(ELSEWHERE);
}

fn implementation_and_capabilities(report: &mut Report) {
    let bare = Implementation::new("name", "1.0");
    report.data("Implementation", ALL, &[implementation(), bare.clone()]);
    report.data("Icon", SINCE_NOVEMBER, &[icons()[0].clone(), Icon::new("data:,")]);
    let capabilities = [client_capabilities(), ClientCapabilities::new()];
    report.data("ClientCapabilities", ALL, &capabilities);
    report.data("ServerCapabilities", ALL, &[server_capabilities(), ServerCapabilities::new()]);
    report.params(
        "InitializeRequest",
        "initialize",
        LEGACY,
        &[
            InitializeParams::new("2025-11-25", client_capabilities(), implementation())
                .meta(meta()),
            InitializeParams::new("1999-01-01", ClientCapabilities::new(), bare.clone()),
        ],
    );
    report.data(
        "InitializeResult",
        LEGACY,
        &[
            InitializeResult::new("2025-11-25", server_capabilities(), implementation())
                .instructions("text")
                .meta(meta()),
            InitializeResult::new("2024-11-05", ServerCapabilities::new(), bare),
        ],
    );
    let params = [EmptyParams::new().meta(meta()), EmptyParams::new()];
    report.params("InitializedNotification", "notifications/initialized", LEGACY, &params);
    report.params("PingRequest", "ping", LEGACY, &params);
    report.params("DiscoverRequest", "server/discover", JULY, &params);
    let versions = ["2026-07-28".into()];
    report.data(
        "DiscoverResult",
        JULY,
        &[
            DiscoverResult::new(versions, server_capabilities())
                .instructions("text")
                .cached(cache())
                .meta(meta()),
            DiscoverResult::new([], ServerCapabilities::new()),
        ],
    );
    report.data("EmptyResult", ALL, &[EmptyResult::new().meta(meta()), EmptyResult::new()]);
    report.data("Result", ALL, &[EmptyResult::new().meta(meta()), EmptyResult::new()]);
    report.data("MetaObject", JULY, &[meta(), Meta::new()]);
}

fn content(report: &mut Report) {
    report.data("Annotations", SINCE_MARCH, &[annotations(), Annotations::new()]);
    report.data("Role", ALL, &[Role::User, Role::Assistant]);
    report.data("TextContent", ALL, &[text(), TextContent::new("")]);
    report.data("ImageContent", ALL, &[image(), ImageContent::new("", "image/png")]);
    report.data("AudioContent", SINCE_MARCH, &[audio(), AudioContent::new("", "audio/wav")]);
    report.data("ResourceLink", SINCE_JUNE, &[link(), ResourceLink::new("a:b", "a")]);
    report.data(
        "EmbeddedResource",
        ALL,
        &[embedded(), EmbeddedResource::new(BlobResourceContents::new("a:b", ""))],
    );
    report.data("ContentBlock", SINCE_JUNE, &blocks());
    report.data(
        "TextResourceContents",
        ALL,
        &[text_contents(), TextResourceContents::new("a:", "")],
    );
    report.data(
        "BlobResourceContents",
        ALL,
        &[blob_contents(), BlobResourceContents::new("a:", "")],
    );
}

fn tools(report: &mut Report) {
    report.data("Tool", ALL, &[tool(), Tool::new("t", json(r#"{"type":"object"}"#))]);
    report.data(
        "ToolAnnotations",
        SINCE_MARCH,
        &[tool().annotations.unwrap(), ToolAnnotations::new()],
    );
    report.data("ToolExecution", NOVEMBER, &[tool().execution.unwrap(), ToolExecution::new()]);
    report.params(
        "ListToolsRequest",
        "tools/list",
        ALL,
        &[ListParams::new().cursor("c").meta(meta()), ListParams::new()],
    );
    report.data(
        "ListToolsResult",
        ALL,
        &[
            ListToolsResult::new([tool()]).next_cursor("c").cached(cache()).meta(meta()),
            ListToolsResult::new([]),
        ],
    );
    report.borrowed_params(
        "CallToolRequest",
        "tools/call",
        ALL,
        &[
            CallToolParams::new("t")
                .arguments(raw(r#"{"a":1}"#))
                .task(TaskMetadata::new().ttl(1))
                .input_responses(raw(INPUT_RESPONSES))
                .request_state("s")
                .meta(raw(r#"{"progressToken":1}"#)),
            CallToolParams::new("t"),
        ],
    );
    report.data(
        "CallToolResult",
        ALL,
        &[
            CallToolResult::new(blocks())
                .structured_content(json(r#"{"a":1}"#))
                .is_error(false)
                .meta(meta()),
            CallToolResult::new([]).structured_content(json("[null]")),
            CallToolResult::error("text"),
            CallToolResult::new([]),
        ],
    );
    let params = [EmptyParams::new().meta(meta()), EmptyParams::new()];
    report.params("ToolListChangedNotification", "notifications/tools/list_changed", ALL, &params);
}

fn resources(report: &mut Report) {
    report.data("Resource", ALL, &[resource(), Resource::new("a:b", "a")]);
    report.data("ResourceTemplate", ALL, &[template(), ResourceTemplate::new("a:{b}", "a")]);
    let pages = [ListParams::new().cursor("c").meta(meta()), ListParams::new()];
    report.params("ListResourcesRequest", "resources/list", ALL, &pages);
    report.params("ListResourceTemplatesRequest", "resources/templates/list", ALL, &pages);
    report.data(
        "ListResourcesResult",
        ALL,
        &[
            ListResourcesResult::new([resource()]).next_cursor("c").cached(cache()).meta(meta()),
            ListResourcesResult::new([]),
        ],
    );
    report.data(
        "ListResourceTemplatesResult",
        ALL,
        &[
            ListResourceTemplatesResult::new([template()])
                .next_cursor("c")
                .cached(cache())
                .meta(meta()),
            ListResourceTemplatesResult::new([]),
        ],
    );
    report.borrowed_params(
        "ReadResourceRequest",
        "resources/read",
        ALL,
        &[
            ReadResourceParams::new("file:///a")
                .input_responses(raw(INPUT_RESPONSES))
                .request_state("s")
                .meta(raw(r#"{"progressToken":"a"}"#)),
            ReadResourceParams::new("file:///a"),
        ],
    );
    report.data(
        "ReadResourceResult",
        ALL,
        &[
            ReadResourceResult::new([text_contents().into(), blob_contents().into()])
                .cached(cache())
                .meta(meta()),
            ReadResourceResult::new([]),
        ],
    );
    let uri = [SubscribeParams::new("file:///a").meta(meta()), SubscribeParams::new("a:")];
    report.params("SubscribeRequest", "resources/subscribe", LEGACY, &uri);
    report.params("UnsubscribeRequest", "resources/unsubscribe", LEGACY, &uri);
    report.params(
        "ResourceUpdatedNotification",
        "notifications/resources/updated",
        ALL,
        &[ResourceUpdatedParams::new("file:///a").meta(meta()), ResourceUpdatedParams::new("a:")],
    );
    report.params(
        "ResourceListChangedNotification",
        "notifications/resources/list_changed",
        ALL,
        &[EmptyParams::new().meta(meta()), EmptyParams::new()],
    );
}

fn prompts_and_completion(report: &mut Report) {
    report.data("Prompt", ALL, &[prompt(), Prompt::new("p")]);
    let arguments = prompt().arguments.unwrap();
    report.data("PromptArgument", ALL, &arguments);
    let messages: Vec<PromptMessage> = blocks().into_iter().map(PromptMessage::user).collect();
    report.data("PromptMessage", ALL, &messages);
    report.params(
        "ListPromptsRequest",
        "prompts/list",
        ALL,
        &[ListParams::new().cursor("c").meta(meta()), ListParams::new()],
    );
    report.data(
        "ListPromptsResult",
        ALL,
        &[
            ListPromptsResult::new([prompt()]).next_cursor("c").cached(cache()).meta(meta()),
            ListPromptsResult::new([]),
        ],
    );
    report.borrowed_params(
        "GetPromptRequest",
        "prompts/get",
        ALL,
        &[
            GetPromptParams::new("p")
                .arguments(raw(r#"{"a":"b"}"#))
                .input_responses(raw(INPUT_RESPONSES))
                .request_state("s")
                .meta(raw("{}")),
            GetPromptParams::new("p"),
        ],
    );
    report.data(
        "GetPromptResult",
        ALL,
        &[
            GetPromptResult::new(messages).description("text").meta(meta()),
            GetPromptResult::new([PromptMessage::assistant("text")]),
        ],
    );
    report.params(
        "PromptListChangedNotification",
        "notifications/prompts/list_changed",
        ALL,
        &[EmptyParams::new().meta(meta()), EmptyParams::new()],
    );
    let reference = PromptReference::new("p").title("P");
    let template = ResourceTemplateReference::new("file:///{a}");
    report.data("PromptReference", ALL, &[reference.clone(), PromptReference::new("p")]);
    let (until_march, since_june) =
        (Revisions::range(Revision::V2024_11_05, Revision::V2025_03_26), SINCE_JUNE);
    report.data("ResourceReference", until_march, std::slice::from_ref(&template));
    report.data("ResourceTemplateReference", since_june, std::slice::from_ref(&template));
    let argument = CompletionArgument::new("a", "b");
    report.params(
        "CompleteRequest",
        "completion/complete",
        ALL,
        &[
            CompleteParams::new(reference, argument.clone())
                .context(CompletionContext::new().arguments(Map::new().with("c", "d")))
                .meta(meta()),
            CompleteParams::new(template, argument).context(CompletionContext::new()),
        ],
    );
    let many: Vec<String> = (0..150).map(|number| number.to_string()).collect();
    report.data(
        "CompleteResult",
        ALL,
        &[
            CompleteResult::new(Completion::new(many).total(150)).meta(meta()),
            CompleteResult::new(Completion::new([]).has_more(false)),
        ],
    );
}

fn utilities(report: &mut Report) {
    report.data("LoggingLevel", ALL, &LoggingLevel::ALL);
    report.params(
        "LoggingMessageNotification",
        "notifications/message",
        ALL,
        &[
            LoggingMessageParams::new(LoggingLevel::Error, json("[1]")).logger("l").meta(meta()),
            LoggingMessageParams::new(LoggingLevel::Debug, json("null")),
        ],
    );
    report.params(
        "SetLevelRequest",
        "logging/setLevel",
        LEGACY,
        &[SetLevelParams::new(LoggingLevel::Info).meta(meta())],
    );
    report.data("ProgressToken", ALL, &[ProgressToken::from(1), ProgressToken::from("t")]);
    report.params(
        "ProgressNotification",
        "notifications/progress",
        ALL,
        &[
            ProgressParams::new("t", 0.5).total(2.0).message("text").meta(meta()),
            ProgressParams::new(1, 50),
        ],
    );
    report.params(
        "CancelledNotification",
        "notifications/cancelled",
        ALL,
        &[
            CancelledParams::request(1.into()).reason("text").meta(meta()),
            CancelledParams::request("a".try_into().unwrap()),
        ],
    );
    report.params(
        "RootsListChangedNotification",
        "notifications/roots/list_changed",
        LEGACY,
        &[EmptyParams::new().meta(meta()), EmptyParams::new()],
    );
}

fn sampling_and_roots(report: &mut Report) {
    report.data("Root", ALL, &[root(), Root::new("file:///")]);
    report.params(
        "ListRootsRequest",
        "roots/list",
        ALL,
        &[ListRootsParams::new().meta(meta()), ListRootsParams::new()],
    );
    report.data(
        "ListRootsResult",
        ALL,
        &[ListRootsResult::new([root()]).meta(meta()), ListRootsResult::new([])],
    );
    report.data("ModelPreferences", ALL, &[model_preferences(), ModelPreferences::new()]);
    report.data("ModelHint", ALL, &[ModelHint::new().name("m"), ModelHint::new()]);
    report.data(
        "SamplingMessage",
        ALL,
        &[
            SamplingMessage::user("text").meta(meta()),
            SamplingMessage::assistant(SamplingContent::from(image())),
        ],
    );
    report.params(
        "CreateMessageRequest",
        "sampling/createMessage",
        ALL,
        &[create_message(), CreateMessageParams::new([], 1)],
    );
    report.data("CreateMessageResult", ALL, &[created_message()]);
    with_tools(report);
}

/// What sampling can say since 2025-11-25 only.
fn with_tools(report: &mut Report) {
    let input = [tool_use(), ToolUseContent::new("1", "t", json("{}"))];
    report.data("ToolUseContent", SINCE_NOVEMBER, &input);
    report.data(
        "ToolResultContent",
        SINCE_NOVEMBER,
        &[
            tool_result(),
            ToolResultContent::new("1", []),
            ToolResultContent::new("1", []).structured_content(json("7")),
        ],
    );
    let modes = [ToolChoiceMode::Auto, ToolChoiceMode::Required, ToolChoiceMode::None];
    let choices = modes.map(|mode| ToolChoice::new().mode(mode));
    report.data("ToolChoice", SINCE_NOVEMBER, &choices);
    report.data(
        "SamplingMessageContentBlock",
        SINCE_NOVEMBER,
        &[
            text().into(),
            image().into(),
            audio().into(),
            tool_use().into(),
            SamplingContent::from(tool_result()),
        ],
    );
    for message in create_message_with_tools().messages {
        report.since("SamplingMessage", None, SINCE_NOVEMBER, &message);
    }
    report.since(
        "CreateMessageRequest",
        Some("sampling/createMessage"),
        SINCE_NOVEMBER,
        &create_message_with_tools(),
    );
    let several = CreateMessageResult::new(
        Role::Assistant,
        vec![tool_use().into(), SamplingContent::text("text")],
        "m",
    );
    report.since("CreateMessageResult", None, SINCE_NOVEMBER, &several);
    let sound = SamplingMessage::user(SamplingContent::from(audio()));
    report.since("SamplingMessage", None, SINCE_MARCH, &sound);
}

fn elicitation(report: &mut Report) {
    let method = "elicitation/create";
    let bare = ElicitFormParams::new("text", ElicitSchema::new());
    report.params(
        "ElicitRequest",
        method,
        SINCE_JUNE,
        &[ElicitParams::from(form()), bare.clone().into()],
    );
    let address = ElicitParams::from(url());
    report.since("ElicitRequest", Some(method), SINCE_NOVEMBER, &address);
    let several = ElicitParams::from(form_with_several());
    report.since("ElicitRequest", Some(method), SINCE_NOVEMBER, &several);
    report.data("ElicitRequestFormParams", SINCE_NOVEMBER, &[form(), form_with_several(), bare]);
    report.data("ElicitRequestURLParams", SINCE_NOVEMBER, &[url()]);
    report.data(
        "ElicitResult",
        SINCE_JUNE,
        &[elicited(), ElicitResult::decline(), ElicitResult::cancel(), ElicitResult::accept_url()],
    );
    let choices = ElicitValue::Choices(vec!["r".into()]);
    let chosen = ElicitResult::accept(Map::new().with("c", choices));
    report.since("ElicitResult", None, SINCE_NOVEMBER, &chosen);
    report.params(
        "ElicitationCompleteNotification",
        "notifications/elicitation/complete",
        NOVEMBER,
        &[ElicitationCompleteParams::new("e").meta(meta())],
    );
    report.data("StringSchema", SINCE_JUNE, &[string_schema(), StringSchema::new()]);
    report.data("NumberSchema", SINCE_JUNE, &[number_schema(), NumberSchema::integer()]);
    report.data("BooleanSchema", SINCE_JUNE, &[boolean_schema(), BooleanSchema::new()]);
    let singles = [single(["r", "g"]), single(options()), single(legacy_titled())];
    report.data("EnumSchema", SINCE_JUNE, &singles);
    report.since("EnumSchema", None, SINCE_NOVEMBER, &multi(["r", "g"]));
    report.data("SingleSelectEnumSchema", SINCE_NOVEMBER, &singles[..2]);
    report.data("UntitledSingleSelectEnumSchema", SINCE_NOVEMBER, &singles[..1]);
    report.data("TitledSingleSelectEnumSchema", SINCE_NOVEMBER, &singles[1..2]);
    report.data("LegacyTitledEnumSchema", SINCE_NOVEMBER, &singles[2..]);
    let multis = [multi(["r", "g"]), multi(options())];
    report.data("MultiSelectEnumSchema", SINCE_NOVEMBER, &multis);
    report.data("UntitledMultiSelectEnumSchema", SINCE_NOVEMBER, &multis[..1]);
    report.data("TitledMultiSelectEnumSchema", SINCE_NOVEMBER, &multis[1..]);
    let fields: [PrimitiveSchema; 5] = [
        string_schema().into(),
        number_schema().into(),
        boolean_schema().into(),
        single(options()).into(),
        single(legacy_titled()).into(),
    ];
    report.data("PrimitiveSchemaDefinition", SINCE_JUNE, &fields);
    let several = PrimitiveSchema::from(multi(options()));
    report.since("PrimitiveSchemaDefinition", None, SINCE_NOVEMBER, &several);
}

fn input_and_subscriptions(report: &mut Report) {
    report.data("InputRequests", JULY, &[input_requests(), InputRequests::new()]);
    let requests: Vec<InputRequest> =
        input_requests().into_iter().map(|(_, request)| request).collect();
    report.data("InputRequest", JULY, &requests);
    report.data("InputResponses", JULY, &[input_responses(), InputResponses::new()]);
    let responses: Vec<InputResponse> =
        input_responses().into_iter().map(|(_, response)| response).collect();
    report.data("InputResponse", JULY, &responses);
    report.data(
        "InputRequiredResult",
        JULY,
        &[
            InputRequiredResult::new()
                .input_requests(input_requests())
                .request_state("s")
                .meta(meta()),
            InputRequiredResult::new().request_state(""),
        ],
    );
    report.data("SubscriptionFilter", JULY, &[filter(), SubscriptionFilter::new()]);
    report.params(
        "SubscriptionsListenRequest",
        "subscriptions/listen",
        JULY,
        &[ListenParams::new(filter()).meta(meta()), ListenParams::new(SubscriptionFilter::new())],
    );
    report.params(
        "SubscriptionsAcknowledgedNotification",
        "notifications/subscriptions/acknowledged",
        JULY,
        &[SubscriptionAcknowledgedParams::new(filter()).meta(meta())],
    );
    report.data(
        "SubscriptionsListenResult",
        JULY,
        &[
            ListenResult::for_subscription(&1.into()),
            ListenResult::for_subscription(&"a".try_into().unwrap()),
        ],
    );
}

fn tasks(report: &mut Report) {
    let words = ["working", "input_required", "completed", "failed", "cancelled"];
    report.data("TaskStatus", NOVEMBER, &words.map(TaskStatus::from));
    report.data("TaskMetadata", NOVEMBER, &[TaskMetadata::new().ttl(1), TaskMetadata::new()]);
    report.data("RelatedTaskMetadata", NOVEMBER, &[RelatedTask::new("t")]);
    let bare = Task::new("t", "2026-01-01T00:00:00Z");
    report.data("Task", NOVEMBER, &[task(), bare.clone()]);
    let created = [
        CreateTaskResult { task: task(), meta: Some(meta()) },
        CreateTaskResult { task: bare.clone(), meta: None },
    ];
    report.data("CreateTaskResult", NOVEMBER, &created);
    let got = |detailed: DetailedTask| GetTaskResult { detailed, meta: Some(meta()) };
    let cancelled = [CancelTaskResult { task: Some(task()), meta: Some(meta()) }];
    let id = [TaskIdParams::new("t").meta(meta())];
    report.data("GetTaskResult", NOVEMBER, &[got(task().into()), DetailedTask::from(bare).into()]);
    report.data("CancelTaskResult", NOVEMBER, &cancelled);
    report.data(
        "ListTasksResult",
        NOVEMBER,
        &[ListTasksResult::new([task()]).next_cursor("c").meta(meta()), ListTasksResult::new([])],
    );
    report.params("GetTaskRequest", "tasks/get", NOVEMBER, &id);
    report.params("GetTaskPayloadRequest", "tasks/result", NOVEMBER, &id);
    report.params("CancelTaskRequest", "tasks/cancel", NOVEMBER, &id);
    let pages = [ListParams::new().cursor("c").meta(meta()), ListParams::new()];
    report.params("ListTasksRequest", "tasks/list", NOVEMBER, &pages);
    let status = [TaskStatusParams { detailed: task().into(), meta: Some(meta()) }];
    report.params("TaskStatusNotification", "notifications/tasks/status", NOVEMBER, &status);

    let details = [
        DetailedTask::from(task()),
        task().status(TaskStatus::Cancelled).into(),
        DetailedTask::input_required(task(), input_requests()),
        DetailedTask::completed(task(), json(r#"{"content":[]}"#)),
        DetailedTask::failed(task(), json(r#"{"code":-32603,"message":"m"}"#)),
    ];
    let results: Vec<GetTaskResult> = details.iter().cloned().map(got).collect();
    let statuses: Vec<TaskStatusParams> = details
        .into_iter()
        .map(|detailed| TaskStatusParams { detailed, meta: Some(meta()) })
        .collect();
    report.extension("CreateTaskResult", None, &created);
    report.extension("GetTaskResult", None, &results);
    report.extension(
        "CancelTaskResult",
        None,
        &[CancelTaskResult { task: Some(task()), meta: Some(meta()) }, CancelTaskResult::default()],
    );
    report.extension("UpdateTaskResult", None, &[EmptyResult::new().meta(meta())]);
    report.extension("GetTaskRequest", Some("tasks/get"), &id);
    report.extension("CancelTaskRequest", Some("tasks/cancel"), &id);
    let update = [UpdateTaskParams::new("t", input_responses()).meta(meta())];
    report.extension("UpdateTaskRequest", Some("tasks/update"), &update);
    report.extension("TaskStatusNotification", Some("notifications/tasks"), &statuses);
    let watched = [SubscriptionFilter::new().task_ids(["t".into()])];
    report.extension("TaskSubscriptionNotifications", None, &watched);
    report.extension("TaskSubscriptionAcknowledgedNotifications", None, &watched);
}

fn errors(report: &mut Report) {
    let versions = ["2026-07-28".into()];
    report.error_data(
        "UnsupportedProtocolVersionError",
        -32022,
        JULY,
        &[UnsupportedProtocolVersionData::new(versions, "1999-01-01")],
    );
    report.error_data(
        "MissingRequiredClientCapabilityError",
        -32021,
        JULY,
        &[MissingRequiredClientCapabilityData::new(client_capabilities())],
    );
    report.error_data(
        "URLElicitationRequiredError",
        -32042,
        NOVEMBER,
        &[UrlElicitationRequiredData::new([url()])],
    );
}

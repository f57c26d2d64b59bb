//! A full and a minimal value of every type, checked at every revision that has it.

use mcp_sansio::protocol::*;
use mcp_sansio::{LoggingLevel, Revision, Revisions};

use super::definitions::*;
use super::inputs::*;
use super::machines;
use super::report::Report;
use super::samples::*;

const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

#[test]
fn every_message_is_valid_and_exact_at_every_revision_that_has_it() {
    let mut report = Report::new();
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
    written_by_machines(&mut report);
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
    let params = [ListParams::new().meta(meta()), ListParams::new()];
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
    let links = [resource(), Resource::new("a:b", "a")].map(ContentBlock::from);
    report.data("ResourceLink", SINCE_JUNE, &links);
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
    let params = [ListParams::new().meta(meta()), ListParams::new()];
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
    let uri =
        [ResourceUpdatedParams::new("file:///a").meta(meta()), ResourceUpdatedParams::new("a:")];
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
        &[ListParams::new().meta(meta()), ListParams::new()],
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
        &[ListParams::new().meta(meta()), ListParams::new()],
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
        "RootsListChangedNotification",
        "notifications/roots/list_changed",
        LEGACY,
        &[ListParams::new().meta(meta()), ListParams::new()],
    );
}

fn tasks(report: &mut Report) {
    let words = ["working", "input_required", "completed", "failed", "cancelled"];
    report.data("TaskStatus", NOVEMBER, &words.map(TaskStatus::from));
    report.data("TaskMetadata", NOVEMBER, &[TaskMetadata::new().ttl(1), TaskMetadata::new()]);
    report.data("RelatedTaskMetadata", NOVEMBER, &[RelatedTask::new("t")]);
    let bare = Task::new("t", "2026-01-01T00:00:00Z");
    report.data("Task", NOVEMBER, &[task(), bare.clone()]);
    let created = [CreateTaskResult::new(task()).meta(meta()), CreateTaskResult::new(bare.clone())];
    report.data("CreateTaskResult", NOVEMBER, &created);
    let got = |detailed: DetailedTask| GetTaskResult::from(detailed).meta(meta());
    let cancelled = [CancelTaskResult::new().task(task()).meta(meta())];
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
    let status = [TaskStatusParams::from(DetailedTask::from(task())).meta(meta())];
    report.params("TaskStatusNotification", "notifications/tasks/status", NOVEMBER, &status);

    let details = [
        DetailedTask::from(task()),
        task().status(TaskStatus::Cancelled).into(),
        DetailedTask::input_required(task(), input_requests()),
        DetailedTask::completed(task(), json(r#"{"content":[]}"#)),
        DetailedTask::failed(task(), json(r#"{"code":-32603,"message":"m"}"#)),
    ];
    let results: Vec<GetTaskResult> = details.iter().cloned().map(got).collect();
    let statuses: Vec<TaskStatusParams> =
        details.into_iter().map(|detailed| TaskStatusParams::from(detailed).meta(meta())).collect();
    report.extension("CreateTaskResult", None, &created);
    report.extension("GetTaskResult", None, &results);
    report.extension(
        "CancelTaskResult",
        None,
        &[CancelTaskResult::new().task(task()).meta(meta()), CancelTaskResult::default()],
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

/// Checks the messages that machines write as text: some of them have no type.
fn written_by_machines(report: &mut Report) {
    let exchanged = machines::exchanged_at_each_revision();
    for (definition, method, revisions) in [
        ("InitializedNotification", "notifications/initialized", LEGACY),
        ("PingRequest", "ping", LEGACY),
        ("DiscoverRequest", "server/discover", JULY),
        ("SetLevelRequest", "logging/setLevel", LEGACY),
        ("SubscribeRequest", "resources/subscribe", LEGACY),
        ("UnsubscribeRequest", "resources/unsubscribe", LEGACY),
        ("CancelledNotification", "notifications/cancelled", ALL),
        ("ToolListChangedNotification", "notifications/tools/list_changed", ALL),
        ("PromptListChangedNotification", "notifications/prompts/list_changed", ALL),
        ("ResourceListChangedNotification", "notifications/resources/list_changed", ALL),
        ("ResourceUpdatedNotification", "notifications/resources/updated", ALL),
        ("SubscriptionsListenRequest", "subscriptions/listen", JULY),
        ("SubscriptionsAcknowledgedNotification", ACKNOWLEDGED, JULY),
    ] {
        report.written(definition, revisions, |revision| {
            let messages = exchanged[&revision].iter();
            messages.filter(|message| message["method"] == method).cloned().collect()
        });
    }
    report.written("SubscriptionsListenResult", JULY, |revision| {
        machines::results(&exchanged[&revision], "subscriptions/listen")
    });
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

use mcp_sansio::catalog::CatalogError;
use mcp_sansio::jsonrpc::{Json, RawJson};
use mcp_sansio::protocol::{PromptArgument, PromptMessage, TaskSupport, ToolExecution};
use mcp_sansio::{Method, Revision};
use mcp_sansio_handlers::{
    Call, HandlerError, NoArguments, Server, ServerItem, Structured, blocking,
};

use crate::connect;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Query {
    /// Words to find
    words: String,
}

#[derive(serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
struct Rows {
    region: String,
    #[serde(default)]
    limit: u32,
    /// More than a header can have
    columns: Vec<String>,
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Found {
    /// The number of notes
    count: u32,
}

fn find(call: &Call<Query>) -> Structured<Found> {
    Structured(Found { count: u32::from(!call.arguments.words.is_empty()) })
}

#[test]
fn a_tool_is_described_without_writing_its_definition() {
    // Rule: [TOOL-002].
    let item = ServerItem::tool("search", "Searches", async |call: Call<Query>| {
        call.arguments.words.clone()
    });
    let item = item.title("Search").read_only().destructive(false).idempotent().open_world(false);
    let execution = ToolExecution::new().task_support(TaskSupport::Optional);
    let server = Server::new("s", "1").add_item(item.define(|tool| tool.execution(execution)));
    let (client, mut pair) = connect(&server, Revision::V2025_11_25);
    let tools = pair.run(client.all_tools()).unwrap();
    let hints = tools[0].annotations.as_ref().unwrap();
    assert_eq!(tools[0].title.as_deref(), Some("Search"));
    assert_eq!(tools[0].description.as_deref(), Some("Searches"));
    let all = (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint);
    assert_eq!(all, (Some(true), Some(false), Some(true)));
    assert_eq!(hints.open_world_hint, Some(false));
    assert!(tools[0].input_schema.as_str().contains("Words to find"));
    assert_eq!(tools[0].output_schema, None);
}

#[test]
fn the_output_schema_of_a_tool_is_that_of_its_structured_result() {
    // Rule: [TOOL-017].
    let fallible = async |call: Call<Query>| -> Result<_, HandlerError> { Ok(find(&call)) };
    let server = Server::new("s", "1")
        .structured_tool("plain", "", |call: Call<Query>| find(&call))
        .structured_tool("fallible", "", fallible)
        .structured_tool("blocking", "", blocking(|call: Call<Query>| find(&call)));
    for revision in Revision::ALL {
        let (client, mut pair) = connect(&server, revision);
        for tool in pair.run(client.all_tools()).unwrap() {
            if revision >= Revision::V2025_06_18 {
                let schema: serde_json::Value = tool.output_schema.unwrap().decode().unwrap();
                assert_eq!(schema["required"], serde_json::json!(["count"]));
                let description = &schema["properties"]["count"]["description"];
                assert_eq!(description, "The number of notes");
            }
            let words = serde_json::json!({ "words": "a" });
            let result = pair.run(client.call_tool(&tool.name, &words)).unwrap();
            assert_eq!(result.content[0].as_text(), Some(r#"{"count":1}"#));
        }
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Review {
    /// Programming language
    language: String,
    style: Option<String>,
}

fn review(call: Call<Review>) -> PromptMessage {
    let Review { language, style } = call.arguments;
    PromptMessage::user(format!("{} {language}", style.unwrap_or_default()))
}

#[test]
fn the_arguments_of_a_prompt_are_the_fields_of_a_type() {
    // Rule: [PRMT-001] [PRMT-006].
    let server = Server::new("s", "1").prompt("review", "Asks for a review", review).prompt(
        "bare",
        "",
        |_: Call<NoArguments>| String::new(),
    );
    let (client, mut pair) = connect(&server, Revision::LATEST);
    let prompts = pair.run(client.all_prompts()).unwrap();
    let language = PromptArgument::new("language").description("Programming language");
    let expected = [language.required(true), PromptArgument::new("style")];
    assert_eq!(prompts[0].arguments.as_deref(), Some(&expected[..]));
    assert_eq!(prompts[0].description.as_deref(), Some("Asks for a review"));
    assert_eq!(prompts[1].arguments, None);
    let error = pair.run(client.get_prompt("review", [])).unwrap_err();
    assert_eq!(error.as_refusal().unwrap().code.0, -32602);
}

#[test]
fn items_are_added_at_runtime_like_at_registration() {
    let server = Server::new("s", "1").prompt("first", "", review).tool(
        "first",
        "",
        |_: Call<NoArguments>| "",
    );
    let (client, mut pair) = connect(&server, Revision::LATEST);
    let remote = pair.transport.server.as_ref().unwrap().handle();
    remote
        .edit_catalog(|catalog| {
            catalog.add_item(ServerItem::prompt("review", "", review).title("Review")).unwrap();
            let tool = ServerItem::structured_tool("find", "", |call: Call<Query>| find(&call));
            catalog.add_item(tool.read_only()).unwrap();
            let again = ServerItem::tool("find", "", |_: Call<NoArguments>| "");
            let refused = catalog.add_item(again).unwrap_err();
            assert!(matches!(refused, CatalogError::Duplicate { .. }), "{refused}");
        })
        .unwrap();
    pair.run_until_idle();
    let result = pair.run(client.call_tool("find", &serde_json::json!({ "words": "" }))).unwrap();
    assert_eq!(result.structured_content.unwrap().as_str(), r#"{"count":0}"#);
    let _prompt = pair.run(client.get_prompt("review", [("language".into(), "C".into())])).unwrap();
}

#[test]
fn a_handler_for_a_method_of_the_protocol_is_an_error_at_registration() {
    let echo = |call: Call<Json>| call.arguments.clone();
    for method in [Method::ToolsList, Method::CompletionComplete, Method::Ping] {
        let server = Server::new("s", "1").request(method.as_str(), echo);
        let error = server.endpoint(1).unwrap_err();
        assert_eq!(error, CatalogError::ProtocolMethod { method });
        assert!(error.to_string().contains(method.as_str()), "{error}");
    }
    let server = Server::new("s", "1").request("vendor/echo", echo);
    let (client, mut pair) = connect(&server, Revision::LATEST);
    let result = pair.run(client.call_other("vendor/echo", RawJson::EMPTY_OBJECT)).unwrap();
    assert!(result.as_str().starts_with('{'));
}

fn rows() -> ServerItem<mcp_sansio::protocol::Tool> {
    ServerItem::tool("rows", "", |call: Call<Rows>| call.arguments.region)
}

#[test]
fn an_argument_is_mirrored_in_a_header() {
    // Rule: [HDR-009].
    let item = rows().header_param("region", "Region").header_param("limit", "Limit");
    let server = Server::new("s", "1").add_item(item);
    let (client, mut pair) = connect(&server, Revision::LATEST);
    let tools = pair.run(client.all_tools()).unwrap();
    let schema: serde_json::Value = tools[0].input_schema.decode().unwrap();
    assert_eq!(schema["properties"]["region"]["x-mcp-header"], "Region");
    assert_eq!(schema["properties"]["region"]["type"], "string");
    assert_eq!(schema["properties"]["limit"]["x-mcp-header"], "Limit");
    assert_eq!(schema["properties"]["columns"].get("x-mcp-header"), None);
    assert_eq!(schema["required"], serde_json::json!(["region", "columns"]));
}

#[test]
fn an_argument_that_does_not_exist_cannot_be_mirrored() {
    let server = Server::new("s", "1").add_item(rows().header_param("regoin", "Region"));
    let error = server.endpoint(1).unwrap_err();
    assert_eq!(error.to_string(), r#"the tool "rows" has no argument "regoin""#);
}

#[cfg(feature = "http")]
#[test]
fn an_argument_that_no_header_can_have_is_an_error_on_http() {
    // Rule: [HDR-011] [HDR-012] [HDR-013].
    use mcp_sansio::http::HttpServerOptions;

    let http = |item| {
        let server = Server::new("s", "1").add_item(item);
        server.http(HttpServerOptions::new(), [0; 32], 1).map(drop)
    };
    http(rows().header_param("region", "Region")).unwrap();
    for item in [
        rows().header_param("columns", "Columns"),
        rows().header_param("region", "two words"),
        rows().header_param("region", "Same").header_param("limit", "Same"),
    ] {
        let error = http(item).unwrap_err();
        assert!(error.to_string().contains("x-mcp-header"), "{error}");
    }
}

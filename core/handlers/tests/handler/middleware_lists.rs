//! Lists that pass the middleware.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_sansio::catalog::Audience;
use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::protocol::{
    CacheHints, Prompt, Resource, ResourceTemplate, TextResourceContents, Tool,
};
use mcp_sansio::{ErrorCode, Method, Principal, Revision, Revisions};
use mcp_sansio_handlers::handler::ResultBody;
use mcp_sansio_handlers::middleware::{AccessLog, MiddlewareResult, Next, ServerRequest};
use mcp_sansio_handlers::{
    Call, Client, HandlerError, Host, NoArguments, ReadResource, Server, ServerItem,
};
use mcp_sansio_test::{Identity, Pair, Transport};
use serde_json::{Value, json};

use crate::LEGACY_AND_MODERN;

fn tool(name: &str) -> Tool {
    Tool::new(name, RawJson::parse(r#"{"type":"object"}"#).unwrap())
}

fn server() -> Server {
    let read = |_: Call<ReadResource>| TextResourceContents::new("note:a", "text");
    let fill = |_: Call<NoArguments>| "text".to_owned();
    let for_ann = Audience::new().principal(Principal::new("ann"));
    let secret = ServerItem::new(tool("secret"), |_: Call<NoArguments>| "");
    Server::new("s", "1")
        .cache(CacheHints::public(Duration::from_secs(60)))
        .catalog(|catalog| _ = catalog.page_size(NonZeroUsize::new(2)))
        .tool_with(tool("one"), |_: Call<NoArguments>| "1")
        .add_item(secret.audience(for_ann))
        .tool_with(tool("two"), |_: Call<NoArguments>| "2")
        .tool_with(tool("three"), |_: Call<NoArguments>| "3")
        .add_item(ServerItem::new(Resource::new("note:a", "a"), read))
        .add_item(ServerItem::new(ResourceTemplate::new("file:{name}", "f"), read))
        .add_item(ServerItem::new(Prompt::new("fill"), fill))
}

/// Returns all lists page by page, as the client gets them.
fn lists<T: Transport>(client: &Client, pair: &mut Pair<T>) -> Vec<String> {
    let before = pair.transcript.to_string().len();
    pair.run(client.all_tools()).unwrap();
    pair.run(client.all_prompts()).unwrap();
    pair.run(client.all_resources()).unwrap();
    pair.run(client.all_resource_templates()).unwrap();
    pair.transcript.to_string()[before..].lines().map(str::to_owned).collect()
}

/// Connects over both bindings, over HTTP as ann and as bob, and returns what `act` does.
fn over_all<R>(
    server: &Server,
    revision: Revision,
    act: impl Fn(&Client, &mut dyn FnMut() -> String) -> R,
) -> Vec<R> {
    let host = Host::new("h", "1").revisions(Revisions::only(revision));
    let mut results = Vec::new();
    let (client, mut pair) = mcp_sansio_test::connect(server, &host);
    results.push(act(&client, &mut || lists(&client, &mut pair).join("\n")));
    for who in ["ann", "bob"] {
        let (client, mut pair) =
            mcp_sansio_test::connect_http(server, &host, Some(Identity::new(who)));
        results.push(act(&client, &mut || lists(&client, &mut pair).join("\n")));
    }
    results
}

#[test]
fn a_list_behind_middleware_is_the_one_that_the_machine_answers() {
    for revision in LEGACY_AND_MODERN {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&seen);
        let around = async move |request: ServerRequest, next: Next| -> MiddlewareResult {
            assert!(request.is_list() && request.is_read_only() && request.item().is_none());
            sink.lock().unwrap().push(request.method().as_str().to_owned());
            next.run(request).await
        };
        let plain = over_all(&server(), revision, |_, lists| lists());
        let passed = server().middleware(around.clone()).lists_through_middleware();
        assert_eq!(over_all(&passed, revision, |_, lists| lists()), plain, "{revision}");
        let methods = seen.lock().unwrap().clone();
        // Three tools on two pages, four for ann; each other list is one page.
        let tools = methods.iter().filter(|it| *it == "tools/list").count();
        assert_eq!((tools, methods.len()), (6, 6 + 9), "{methods:?}");
        assert!(plain[1].contains(r#""secret""#) && !plain[2].contains(r#""secret""#));

        // They do not pass it unless that was asked for.
        seen.lock().unwrap().clear();
        over_all(&server().middleware(around), revision, |_, lists| lists());
        assert!(seen.lock().unwrap().is_empty());
    }
}

#[test]
fn middleware_changes_a_list_and_answers_in_its_place() {
    // Rule: [EXT-030].
    let around = async |mut request: ServerRequest, next: Next| -> MiddlewareResult {
        match request.method() {
            it if *it == Method::PromptsList => Err(HandlerError::invalid_params("not now")),
            it if *it == Method::ToolsList => {
                // The second page, whatever the client asks for.
                let revision = request.revision();
                let first = next.run(request.clone()).await?.to_json(revision)?;
                let cursor = first.decode::<Value>()?["nextCursor"].clone();
                let params =
                    json!({ "cursor": cursor, "_meta": request.meta().decode::<Value>()? });
                request.set_params(RawJson::from_serialize(&params)?)?;
                let second = next.run(request).await?;
                let mut result: Value = second.to_json(revision)?.decode()?;
                result["tools"]
                    .as_array_mut()
                    .unwrap()
                    .push(first.decode::<Value>()?["tools"][0].clone());
                let body = ResultBody::Other(mcp_sansio::jsonrpc::Json::from_serialize(&result)?);
                Ok(body.insert_meta("com.example/by", "middleware", revision)?)
            }
            _ => next.run(request).await,
        }
    };
    let server = server().middleware(around).lists_through_middleware();
    for revision in LEGACY_AND_MODERN {
        let host = Host::new("h", "1").revisions(Revisions::only(revision));
        let check = |tools: mcp_sansio::protocol::ListToolsResult| {
            let names: Vec<_> = tools.tools.iter().map(|it| it.name.clone()).collect();
            assert_eq!(names, ["three", "one"], "{revision}");
            assert!(tools.meta.unwrap().get("com.example/by").is_some());
        };
        let (client, mut pair) = mcp_sansio_test::connect(&server, &host);
        check(pair.run(client.list_tools(None)).unwrap());
        let refused = pair.run(client.list_prompts(None)).unwrap_err();
        assert_eq!(refused.as_refusal().unwrap().message, "not now");
        let (client, mut pair) = mcp_sansio_test::connect_http(&server, &host, None);
        check(pair.run(client.list_tools(None)).unwrap());
        let refused = pair.run(client.list_prompts(None)).unwrap_err();
        assert_eq!(refused.as_refusal().unwrap().message, "not now");
    }
}

#[test]
fn an_invalid_cursor_is_an_error_and_an_edit_is_seen_at_once() {
    // Rule: [PAGE-007].
    let (log, lines) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(Vec::new())));
    let (sink, written) = (Arc::clone(&log), Arc::clone(&lines));
    let server = server()
        .middleware(AccessLog::new(move |record| {
            sink.lock().unwrap().push(format!("{} {}", record.method, record.outcome));
            written.lock().unwrap().push(record.target.is_none());
        }))
        .tool("add", "", |call: Call<NoArguments>| {
            call.edit_catalog(|catalog| {
                catalog
                    .add_prompt(Prompt::new("new"), |_: Call<NoArguments>| String::new())
                    .unwrap();
            })
            .unwrap();
            ""
        })
        .lists_through_middleware();
    for revision in LEGACY_AND_MODERN {
        let host = Host::new("h", "1").revisions(Revisions::only(revision));
        let (client, mut pair) = mcp_sansio_test::connect(&server, &host);
        let refused = pair.run(client.list_tools(Some("nonsense"))).unwrap_err();
        assert_eq!(refused.as_refusal().unwrap().code, ErrorCode::INVALID_PARAMS);
        assert_eq!(pair.run(client.all_prompts()).unwrap().len(), 1);
        pair.run(client.call_tool("add", &NoArguments {})).unwrap();
        assert_eq!(pair.run(client.all_prompts()).unwrap().len(), 2);
        let expected = ["tools/list error:-32602", "prompts/list ok", "tools/call ok"];
        assert_eq!(log.lock().unwrap()[..3], expected);
        log.lock().unwrap().clear();
    }
    assert_eq!(*lines.lock().unwrap(), [true, true, false, true].repeat(LEGACY_AND_MODERN.len()));
}

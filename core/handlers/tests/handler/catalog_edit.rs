//! Editing the catalog of a server while clients are connected.

use mcp_sansio::catalog::CatalogError;
use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::protocol::{
    ElicitParams, ElicitResult, Prompt, PromptMessage, PromptsCapability, Resource,
    ResourceContents, ResourceTemplate, ResourcesCapability, SubscriptionFilter,
    TextResourceContents, Tool, ToolsCapability,
};
use mcp_sansio::{Era, ErrorCode, Method, Revision};
use mcp_sansio_handlers::{Call, Elicit, Host, HostRequest, NoArguments, ReadResource, Server};

use crate::{connect, connect_host, text};

fn tool(name: &str) -> Tool {
    Tool::new(name, RawJson::parse(r#"{"type":"object"}"#).unwrap())
}

/// A server with an empty catalog that declares tools, prompts and resources.
fn empty() -> Server {
    Server::new("s", "1").subscriptions().capabilities(|declared| {
        declared.tools = Some(ToolsCapability::new());
        declared.prompts = Some(PromptsCapability::new());
        declared.resources = Some(ResourcesCapability::new());
    })
}

fn contents(call: &Call<ReadResource>) -> ResourceContents {
    TextResourceContents::new(&*call.arguments.uri, "A").into()
}

#[test]
fn an_item_is_added_and_removed_together_with_its_handler() {
    // Rule: [TOOL-005] [TOOL-006] [TOOL-007].
    for revision in Revision::ALL {
        let (client, mut pair) = connect(&empty(), revision);
        let mut subscription =
            client.subscribe(SubscriptionFilter::default().tools_list_changed(true));
        pair.run(subscription.honoured()).unwrap();
        let remote = pair.transport.server.as_ref().unwrap().handle();
        let (sent, edited) = std::sync::mpsc::channel();
        remote
            .edit_catalog(move |catalog| {
                catalog.add_tool(tool("now"), |_: Call<NoArguments>| "at once").unwrap();
                let later = async |_: Call<NoArguments>| "later";
                catalog.add_tool(tool("later"), later).unwrap();
                catalog
                    .add_prompt(Prompt::new("p"), |_: Call<NoArguments>| PromptMessage::user("P"))
                    .unwrap();
                catalog
                    .add_resource(Resource::new("mem://a", "a"), |it: Call<ReadResource>| {
                        contents(&it)
                    })
                    .unwrap();
                catalog
                    .add_resource_template(
                        ResourceTemplate::new("of://{name}", "t"),
                        |it: Call<ReadResource>| contents(&it),
                    )
                    .unwrap();
                let again = catalog.add_tool(tool("now"), |_: Call<NoArguments>| "another");
                sent.send(again).unwrap();
            })
            .unwrap();
        let update = pair.run(subscription.next()).unwrap().unwrap();
        assert_eq!(update.method, Method::ToolsListChanged, "{revision}");
        assert!(matches!(edited.recv().unwrap(), Err(CatalogError::Duplicate { .. })));
        for (name, answer) in [("now", "at once"), ("later", "later")] {
            let result = pair.run(client.call_tool(name, &NoArguments {})).unwrap();
            assert_eq!(text(&result), answer, "{revision}");
        }
        pair.run(client.get_prompt("p", [])).unwrap();
        for uri in ["mem://a", "of://b"] {
            pair.run(client.read_resource(uri)).unwrap();
        }

        remote
            .edit_catalog(|catalog| {
                assert!(catalog.remove_tool("now").is_some());
                assert!(catalog.remove_prompt("p").is_some());
                assert!(catalog.remove_resource("mem://a").is_some());
                assert!(catalog.remove_resource_template("of://{name}").is_some());
                catalog.update_tool(tool("later").title("Later")).unwrap();
                let unknown = catalog.update_tool(tool("now")).unwrap_err();
                assert_eq!(unknown.to_string(), "there is no tool \"now\"");
            })
            .unwrap();
        let update = pair.run(subscription.next()).unwrap().unwrap();
        assert_eq!(update.method, Method::ToolsListChanged, "{revision}");
        let code = |error: mcp_sansio_handlers::ClientError| error.as_refusal().unwrap().code;
        let gone = pair.run(client.call_tool("now", &NoArguments {})).unwrap_err();
        assert_eq!(code(gone), ErrorCode::INVALID_PARAMS);
        let gone = pair.run(client.get_prompt("p", [])).unwrap_err();
        assert_eq!(code(gone), ErrorCode::INVALID_PARAMS);
        for uri in ["mem://a", "of://b"] {
            let gone = pair.run(client.read_resource(uri)).unwrap_err();
            let expected = match revision.era() {
                Era::Legacy => ErrorCode::RESOURCE_NOT_FOUND,
                _ => ErrorCode::INVALID_PARAMS,
            };
            assert_eq!(code(gone), expected);
        }
        let result = pair.run(client.call_tool("later", &NoArguments {})).unwrap();
        assert_eq!(text(&result), "later");
    }
}

#[test]
fn catalog_edits_are_local_to_a_connection() {
    let server = Server::new("s", "1").tool("a", "", |_: Call<NoArguments>| "a");
    let (client, mut pair) = connect(&server, Revision::LATEST);
    let remote = pair.transport.server.as_ref().unwrap().handle();
    remote
        .edit_catalog(|catalog| {
            catalog.remove_tool("a");
            catalog.add_tool(tool("b"), |_: Call<NoArguments>| "b").unwrap();
        })
        .unwrap();
    pair.run_until_idle();
    assert_eq!(text(&pair.run(client.call_tool("b", &NoArguments {})).unwrap()), "b");
    let (client, mut pair) = connect(&server, Revision::LATEST);
    assert_eq!(text(&pair.run(client.call_tool("a", &NoArguments {})).unwrap()), "a");
    assert!(pair.run(client.call_tool("b", &NoArguments {})).is_err());
}

#[test]
fn local_and_thread_safe_handlers_can_be_combined() {
    let local = std::rc::Rc::new("local");
    let server = Server::local("s", "1").tool("a", "", move |_: Call<NoArguments>| *local);
    let (client, mut pair) = connect(&server, Revision::LATEST);
    let remote = pair.transport.server.as_ref().unwrap().handle();
    remote
        .edit_catalog(|catalog| {
            catalog.add_tool(tool("b"), |_: Call<NoArguments>| "b").unwrap();
            catalog.add_tool(tool("c"), async |_: Call<NoArguments>| "c").unwrap();
        })
        .unwrap();
    pair.run_until_idle();
    for (name, answer) in [("a", "local"), ("b", "b"), ("c", "c")] {
        let result = pair.run(client.call_tool(name, &NoArguments {})).unwrap();
        assert_eq!(text(&result), answer);
    }
}

#[test]
fn a_running_call_keeps_the_tool_it_was_dispatched_to() {
    let server = Server::new("s", "1").tool("a", "", async |call: Call<NoArguments>| {
        call.edit_catalog(|catalog| {
            catalog.remove_tool("a").unwrap();
            catalog.add_tool(tool("a"), |_: Call<NoArguments>| "second").unwrap();
        })
        .unwrap();
        let mut waited = false;
        std::future::poll_fn(|cx| {
            cx.waker().wake_by_ref();
            let now = std::mem::replace(&mut waited, true);
            if now { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        })
        .await;
        "first"
    });
    for revision in Revision::ALL {
        let (client, mut pair) = connect(&server, revision);
        for answer in ["first", "second"] {
            let result = pair.run(client.call_tool("a", &NoArguments {})).unwrap();
            assert_eq!(text(&result), answer, "{revision}");
        }
    }
}

#[test]
fn a_call_whose_tool_is_removed_before_its_input_arrives_ends_with_an_error() {
    // The new tool has the name of the old one, but never sees answers meant for the old one.
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Sure {
        #[serde(rename = "sure")]
        _sure: bool,
    }
    let server = Server::new("s", "1").tool("book", "", |call: Call<NoArguments>| {
        call.edit_catalog(|catalog| {
            catalog.remove_tool("book").unwrap();
            catalog.add_tool(tool("book"), |_: Call<NoArguments>| "second").unwrap();
        })
        .unwrap();
        call.require_input("sure", Elicit::form::<Sure>("Sure?")).into_result::<&str>()
    });
    let host = || {
        Host::new("h", "1").on_elicit(|_: HostRequest<ElicitParams>| {
            ElicitResult::accept([("sure".to_owned(), true.into())].into_iter().collect())
        })
    };
    let (client, mut pair) = connect_host(&server, host(), Revision::V2025_11_25);
    let gone = pair.run(client.call_tool("book", &NoArguments {})).unwrap_err();
    let refusal = gone.as_refusal().unwrap();
    assert_eq!(refusal.code, ErrorCode::INVALID_PARAMS);
    assert_eq!(refusal.message, "this tool is not offered any more");
    // A modern client sends a new request, which is dispatched to the current tool.
    let (client, mut pair) = connect_host(&server, host(), Revision::LATEST);
    let result = pair.run(client.call_tool("book", &NoArguments {})).unwrap();
    assert_eq!(text(&result), "second");
}

#[cfg(feature = "http")]
#[test]
fn on_http_all_clients_see_an_edit() {
    use mcp_sansio::Revisions;
    use mcp_sansio_test::connect_http;

    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let server = empty();
        let host = Host::new("h", "1").revisions(Revisions::only(revision));
        let (client, mut pair) = connect_http(&server, &host, None);
        let mut subscription =
            client.subscribe(SubscriptionFilter::default().tools_list_changed(true));
        pair.run(subscription.honoured()).unwrap();
        let remote = pair.transport.server.handle();
        remote
            .edit_catalog(|catalog| {
                catalog.add_tool(tool("late"), async |_: Call<NoArguments>| "late").unwrap();
            })
            .unwrap();
        let update = pair.run(subscription.next()).unwrap().unwrap();
        assert_eq!(update.method, Method::ToolsListChanged, "{revision}");
        let result = pair.run(client.call_tool("late", &NoArguments {})).unwrap();
        assert_eq!(text(&result), "late");
        remote.edit_catalog(|catalog| drop(catalog.remove_tool("late"))).unwrap();
        let update = pair.run(subscription.next()).unwrap().unwrap();
        assert_eq!(update.method, Method::ToolsListChanged, "{revision}");
        let gone = pair.run(client.call_tool("late", &NoArguments {})).unwrap_err();
        assert_eq!(gone.as_refusal().unwrap().code, ErrorCode::INVALID_PARAMS);
    }
}

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use mcp_sansio::Revision;
use mcp_sansio::catalog::CatalogError;
use mcp_sansio::jsonrpc::{Json, RawJson};
use mcp_sansio::protocol::{
    CompleteParams, CompletionArgument, CompletionReference, PromptReference, Resource,
    TextResourceContents, Tool,
};
use mcp_sansio_handlers::{
    Call, HandlerError, NoArguments, ReadResource, Server, ServerItem, State, Structured, blocking,
};

use crate::{Place, connect, text};

/// Counts the calls.
#[derive(Debug, Default)]
struct Counter(AtomicU32);

impl Counter {
    fn next(&self) -> String {
        (self.0.fetch_add(1, Ordering::Relaxed) + 1).to_string()
    }
}

struct Unit(&'static str);

trait Store: Send + Sync {
    fn load(&self, key: &str) -> String;
}

impl Store for Unit {
    fn load(&self, key: &str) -> String {
        format!("{key} {}", self.0)
    }
}

async fn count(_: Call<NoArguments>, counter: State<Counter>) -> Result<String, HandlerError> {
    Ok(counter.next())
}

fn empty_tool(name: &str) -> Tool {
    Tool::new(name, RawJson::parse(r#"{"type":"object"}"#).unwrap())
}

#[test]
fn every_kind_of_handler_takes_the_state_of_the_server() {
    let server = Server::new("s", "1")
        .state(Counter::default())
        .state(Unit("°C"))
        .tool("named", "", count)
        .tool("plain", "", |_: Call<NoArguments>, counter: State<Counter>| counter.next())
        .tool("async", "", async |_: Call<Place>, State(counter): State<Counter>| counter.next())
        .tool("two", "", async |_: Call<NoArguments>, it: State<Counter>, unit: State<Unit>| {
            Ok(format!("{} {}", it.next(), unit.0.0))
        })
        .tool("blocking", "", blocking(|_: Call<NoArguments>, it: State<Counter>| it.next()))
        .structured_tool("structured", "", |_: Call<NoArguments>, it: State<Counter>| {
            Structured(it.next())
        })
        .tool_with(
            empty_tool("with"),
            blocking(|_: Call<NoArguments>, it: State<Counter>| it.next()),
        )
        .prompt("prompt", "", |_: Call<NoArguments>, it: State<Counter>| it.next())
        .resource(Resource::new("a:b", "b"), |_: Call<ReadResource>, it: State<Counter>| {
            TextResourceContents::new("a:b", it.next())
        })
        .completion(|_: Call<CompleteParams>, it: State<Counter>| vec![it.next()])
        .request("vendor/count", |_: Call<Json>, it: State<Counter>| {
            Json::from_serialize(&serde_json::json!({ "count": it.next() })).unwrap()
        });
    let (client, mut pair) = connect(&server, Revision::LATEST);
    let place = serde_json::json!({ "location": "Oslo" });
    let tools = ["named", "plain", "async", "two", "blocking", "structured", "with"];
    for (index, name) in tools.into_iter().enumerate() {
        let result = pair.run(client.call_tool(name, &place)).unwrap();
        assert!(text(&result).contains(&(index + 1).to_string()), "{name}: {result:?}");
    }
    let prompt = pair.run(client.get_prompt("prompt", [])).unwrap();
    assert_eq!(prompt.messages[0].content.as_text(), Some("8"));
    let resource = pair.run(client.read_resource("a:b")).unwrap();
    assert!(format!("{:?}", resource.contents).contains("\"9\""), "{resource:?}");
    let reference = CompletionReference::Prompt(PromptReference::new("prompt"));
    let params = CompleteParams::new(reference, CompletionArgument::new("any", ""));
    assert_eq!(pair.run(client.complete(&params)).unwrap().completion.values, ["10"]);
    let other = pair.run(client.call_other("vendor/count", RawJson::EMPTY_OBJECT)).unwrap();
    assert!(other.as_str().contains(r#""count":"11""#), "{other:?}");
}

#[test]
fn connections_share_the_state() {
    let counter = Arc::new(Counter::default());
    let server = Server::new("s", "1").shared_state(Arc::clone(&counter)).tool("count", "", count);
    for expected in ["1", "2"] {
        let (client, mut pair) = connect(&server, Revision::LATEST);
        let result = pair.run(client.call_tool("count", &NoArguments {})).unwrap();
        assert_eq!(text(&result), expected);
    }
    assert_eq!(counter.0.load(Ordering::Relaxed), 2);
}

#[test]
fn a_state_may_be_a_trait_object() {
    let store: Arc<dyn Store> = Arc::new(Unit("loaded"));
    let load = |call: Call<Place>, store: State<dyn Store>| store.load(&call.arguments.location);
    let server = Server::new("s", "1").shared_state(store).tool("load", "", load);
    let (client, mut pair) = connect(&server, Revision::LATEST);
    let place = serde_json::json!({ "location": "Oslo" });
    assert_eq!(text(&pair.run(client.call_tool("load", &place)).unwrap()), "Oslo loaded");
}

#[test]
fn the_last_state_of_a_type_counts() {
    let show = |_: Call<NoArguments>, unit: State<Unit>| unit.0.0;
    let server = Server::new("s", "1").state(Unit("real")).tool("show", "", show);
    let replaced = server.clone().state(Unit("fake"));
    for (server, expected) in [(server, "real"), (replaced, "fake")] {
        let (client, mut pair) = connect(&server, Revision::LATEST);
        let result = pair.run(client.call_tool("show", &NoArguments {})).unwrap();
        assert_eq!(text(&result), expected);
    }
}

#[test]
fn a_missing_state_is_an_error_of_the_server_that_names_the_type() {
    let unmet = [
        Server::new("s", "1").tool("count", "", count),
        Server::new("s", "1").state(Unit("")).tool("count", "", count),
        Server::new("s", "1").tool(
            "b",
            "",
            blocking(|_: Call<NoArguments>, it: State<Counter>| it.next()),
        ),
        Server::new("s", "1")
            .completion(|_: Call<CompleteParams>, it: State<Counter>| vec![it.next()]),
        Server::new("s", "1")
            .request("vendor/count", |call: Call<Json>, _: State<Counter>| call.arguments.clone()),
        Server::new("s", "1").catalog(|catalog| {
            catalog.add_tool(empty_tool("count"), count).unwrap();
        }),
    ];
    for server in unmet {
        let error = server.endpoint(1).unwrap_err();
        assert!(matches!(error, CatalogError::MissingState { .. }), "{error}");
        let message = error.to_string();
        assert!(message.contains("state::Counter"), "{message}");
        assert!(message.contains("Server::state"), "{message}");
        // The order of registration does not matter.
        let _endpoint = server.state(Counter::default()).endpoint(1).unwrap();
    }
}

#[cfg(feature = "http")]
#[test]
fn a_missing_state_is_an_error_on_http() {
    use mcp_sansio::http::HttpServerOptions;

    let server = Server::new("s", "1").tool("count", "", count);
    let refused = server.http(HttpServerOptions::new(), [0; 32], 1).unwrap_err();
    assert!(refused.to_string().contains("state::Counter"), "{refused}");
    let server = server.state(Counter::default());
    assert!(server.http(HttpServerOptions::new(), [0; 32], 1).is_ok());
}

#[test]
fn an_item_that_is_added_at_runtime_takes_the_state_of_the_server() {
    let first = |_: Call<NoArguments>| "";
    let server = Server::new("s", "1").state(Counter::default()).tool("first", "", first);
    let (client, mut pair) = connect(&server, Revision::LATEST);
    let remote = pair.transport.server.as_ref().unwrap().handle();
    let edit = remote.edit_catalog(|catalog| {
        catalog.add_item(ServerItem::tool("count", "", count)).unwrap();
        let show = |_: Call<NoArguments>, unit: State<Unit>| unit.0.0;
        let refused = catalog.add_item(ServerItem::tool("show", "", show)).unwrap_err();
        assert!(matches!(refused, CatalogError::MissingState { .. }), "{refused}");
        assert!(catalog.tool("show").is_none());
    });
    edit.unwrap();
    pair.run_until_idle();
    let result = pair.run(client.call_tool("count", &NoArguments {})).unwrap();
    assert_eq!(text(&result), "1");
}

#[test]
fn a_local_server_has_states_of_one_thread() {
    let server = Server::local("s", "1")
        .state(Cell::new(1))
        .tool("double", "", |_: Call<NoArguments>, cell: State<Cell<i32>>| {
            cell.set(cell.get() * 2);
            cell.get().to_string()
        })
        .tool("async", "", async |_: Call<NoArguments>, cell: State<Cell<i32>>| {
            Ok(cell.get().to_string())
        });
    let _missing = server.clone().tool("count", "", count).endpoint(1).unwrap_err();
    let (client, mut pair) = connect(&server.state(Counter::default()), Revision::LATEST);
    let result = pair.run(client.call_tool("double", &NoArguments {})).unwrap();
    assert_eq!(text(&result), "2");
    let result = pair.run(client.call_tool("async", &NoArguments {})).unwrap();
    assert_eq!(text(&result), "2");
    // A thread-safe handler finds the state of a local server.
    let remote = pair.transport.server.as_ref().unwrap().handle();
    let edit = remote.edit_catalog(|catalog| {
        catalog.add_item(ServerItem::tool("count", "", count)).unwrap();
    });
    edit.unwrap();
    pair.run_until_idle();
    let result = pair.run(client.call_tool("count", &NoArguments {})).unwrap();
    assert_eq!(text(&result), "1");
}

//! Commands that reach all connections of a server.

use mcp_sansio::catalog::CatalogError;
use mcp_sansio::peer::Limits;
use mcp_sansio::protocol::{
    CompleteParams, CompletionArgument, CompletionReference, Prompt, PromptArgument, PromptMessage,
    PromptReference, Resource, ResourceContents, SubscriptionFilter, TextResourceContents,
};
use mcp_sansio::{Capability, LoggingLevel, Method, Revision};
use mcp_sansio_handlers::endpoint::Endpoint;
use mcp_sansio_handlers::{
    Call, CatalogEdit, Client, Connections, HandlerError, Host, NoArguments, ReadResource,
    SendError, Server, ServerItem, State,
};

use crate::{connect, text};

fn add(catalog: &mut CatalogEdit<'_>, name: &str) {
    let added = catalog.add_item(ServerItem::tool(name, "", |_: Call<NoArguments>| "called"));
    added.expect("no other tool has this name");
}

fn linked(connections: &Connections) -> Server {
    let own = connections.clone();
    Server::new("s", "1")
        .tool("first", "", |_: Call<NoArguments>| "first")
        .tool("add", "", move |_: Call<NoArguments>| {
            own.edit_catalog(|catalog| add(catalog, "from_a_handler"))
                .map(|()| "added")
                .unwrap_or("full")
        })
        .subscriptions()
        .connections(connections)
}

#[test]
fn an_edit_reaches_all_connections_and_later_ones() {
    // Rule: [TOOL-005].
    let connections = Connections::new();
    let server = linked(&connections);
    let mut open = Revision::ALL.map(|revision| {
        let (client, mut pair) = connect(&server, revision);
        let mut subscription =
            client.subscribe(SubscriptionFilter::default().tools_list_changed(true));
        pair.run(subscription.honoured()).unwrap();
        (client, pair, subscription)
    });
    connections.edit_catalog(|catalog| add(catalog, "second")).unwrap();
    connections.edit_catalog(|catalog| add(catalog, "third")).unwrap();
    for (client, pair, subscription) in &mut open {
        let update = pair.run(subscription.next()).unwrap().unwrap();
        assert_eq!(update.method, Method::ToolsListChanged);
        for name in ["second", "third"] {
            let result = pair.run(client.call_tool(name, &NoArguments {})).unwrap();
            assert_eq!(text(&result), "called");
        }
    }
    let (client, mut pair) = connect(&server, Revision::LATEST);
    let result = pair.run(client.call_tool("third", &NoArguments {})).unwrap();
    assert_eq!(text(&result), "called");
}

#[test]
fn what_is_registered_after_the_connections_is_not_lost() {
    use mcp_sansio_handlers::middleware::{MiddlewareResult, Next, ServerRequest};
    async fn refuse(_: ServerRequest, _: Next) -> MiddlewareResult {
        Err(HandlerError::failed("refused"))
    }
    for edits_before in [false, true] {
        let connections = Connections::new();
        let server = linked(&connections);
        if edits_before {
            connections.edit_catalog(|catalog| add(catalog, "early")).unwrap();
        }
        let server = server.middleware(refuse).instructions("Later.");
        for edits in ["second", "third"] {
            let (client, mut pair) = connect(&server, Revision::LATEST);
            let result = pair.run(client.call_tool("first", &NoArguments {})).unwrap();
            assert_eq!(text(&result), "refused", "{edits_before} {edits}");
            assert_eq!(client.session().unwrap().instructions.as_deref(), Some("Later."));
            let found = pair.run(client.call_tool("early", &NoArguments {})).is_ok();
            assert_eq!(found, edits_before);
            connections.edit_catalog(move |catalog| add(catalog, edits)).unwrap();
            pair.run_until_idle();
            let result = pair.run(client.call_tool(edits, &NoArguments {})).unwrap();
            assert_eq!(text(&result), "refused");
        }
        let (client, mut pair) = connect(&server, Revision::LATEST);
        assert!(pair.run(client.call_tool("third", &NoArguments {})).is_ok());
    }
    let connections = Connections::new();
    let server = linked(&connections).tool("late", "", |_: Call<NoArguments>| "late");
    let (client, mut pair) = connect(&server, Revision::LATEST);
    connections.edit_catalog(|catalog| add(catalog, "second")).unwrap();
    for name in ["late", "second"] {
        assert!(pair.run(client.call_tool(name, &NoArguments {})).is_ok(), "{name}");
        let (client, mut pair) = connect(&server, Revision::LATEST);
        assert!(pair.run(client.call_tool(name, &NoArguments {})).is_ok(), "{name}");
    }
}

#[cfg(feature = "http")]
#[test]
fn a_server_that_is_protected_after_its_connections_requires_tokens() {
    use mcp_sansio::http::HttpServerOptions;
    use mcp_sansio_oauth::protected_resource::{
        ProtectedResource, TokenCheck, TokenRefusal, VerifiedToken,
    };
    for edits_before in [false, true] {
        let connections = Connections::new();
        let server = linked(&connections);
        if edits_before {
            connections.edit_catalog(|catalog| add(catalog, "early")).unwrap();
        }
        let resource = ProtectedResource::without_issuer("https://a.example/mcp").unwrap();
        let refuse = async |_: TokenCheck| Err::<VerifiedToken, _>(TokenRefusal::Unavailable);
        let server = server.protect(resource, refuse);
        let http = server.http(HttpServerOptions::new(), [0; 32], 7).unwrap();
        assert!(http.resource().is_some(), "{edits_before}");
    }
}

#[test]
fn a_handler_edits_all_connections() {
    let connections = Connections::new();
    let server = linked(&connections);
    let [(client, mut pair), (other, mut others)] =
        [(); 2].map(|()| connect(&server, Revision::LATEST));
    let result = pair.run(client.call_tool("add", &NoArguments {})).unwrap();
    assert_eq!(text(&result), "added");
    others.run_until_idle();
    let result = others.run(other.call_tool("from_a_handler", &NoArguments {})).unwrap();
    assert_eq!(text(&result), "called");
}

#[cfg(feature = "http")]
#[test]
fn an_edit_reaches_byte_streams_and_http_alike() {
    let connections = Connections::new();
    let server = linked(&connections);
    let host = Host::new("h", "1");
    let (client, mut pair) = mcp_sansio_test::connect_http(&server, &host, None);
    let (other, mut others) = connect(&server, Revision::LATEST);
    pair.run(client.call_tool("first", &NoArguments {})).unwrap();
    connections.edit_catalog(|catalog| add(catalog, "second")).unwrap();
    assert_eq!(connections.handles().len(), 2);
    pair.run_until_idle();
    others.run_until_idle();
    let call = |client: &Client| client.call_tool("second", &NoArguments {});
    assert_eq!(text(&pair.run(call(&client)).unwrap()), "called");
    assert_eq!(text(&others.run(call(&other)).unwrap()), "called");
}

#[test]
fn notifications_and_the_end_reach_all_connections() {
    // Rule: [RSRC-020].
    let connections = Connections::new();
    let server = Server::new("s", "1")
        .subscriptions()
        .logging()
        .resource(Resource::new("mem://a", "a"), |call: Call<ReadResource>| {
            ResourceContents::from(TextResourceContents::new(&*call.arguments.uri, "A"))
        })
        .connections(&connections);
    let mut open = [(); 2].map(|()| {
        let (client, mut pair) = connect(&server, Revision::LATEST);
        let filter = SubscriptionFilter::default().resource_subscriptions(vec!["mem://a".into()]);
        let mut subscription = client.subscribe(filter);
        pair.run(subscription.honoured()).unwrap();
        (client, pair, subscription)
    });
    connections.resource_updated("mem://a").unwrap();
    connections.handles().iter().for_each(|client| client.log(LoggingLevel::Error, "text"));
    for (_, pair, subscription) in &mut open {
        let update = pair.run(subscription.next()).unwrap().unwrap();
        assert_eq!(update.method, Method::ResourcesUpdated);
    }
    connections.close();
    for (client, pair, _) in &mut open {
        pair.run_until_idle();
        assert!(pair.run(client.read_resource("mem://a")).is_err());
    }
    assert_eq!(connections.handles().len(), 2);
    drop(open);
    assert!(connections.handles().is_empty());
}

#[test]
fn edits_are_bounded_and_none_is_lost() {
    let connections = Connections::new();
    let mut limits = Limits::DEFAULT;
    limits.commands_max = 4;
    let server = linked(&connections).limits(limits).connections(&connections);
    let (client, mut pair) = connect(&server, Revision::LATEST);
    let stalled = server.endpoint(0).unwrap();
    for number in 0..4 {
        connections.edit_catalog(move |catalog| add(catalog, &format!("t{number}"))).unwrap();
        pair.run_until_idle();
    }
    let one_more = || connections.edit_catalog(|catalog| add(catalog, "t4"));
    assert_eq!(one_more(), Err(SendError::Full));
    // A closed connection has nothing to edit.
    drop(stalled);
    one_more().unwrap();
    pair.run_until_idle();
    for number in 0..5 {
        pair.run(client.call_tool(&format!("t{number}"), &NoArguments {})).unwrap();
    }
}

#[test]
fn an_edit_that_panics_changes_nothing() {
    let connections = Connections::new();
    let server = linked(&connections);
    let (client, mut pair) = connect(&server, Revision::LATEST);
    let panicking = || {
        connections.edit_catalog(|catalog| {
            add(catalog, "second");
            panic!("a mistake");
        })
    };
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(panicking)).is_err());
    pair.run(client.call_tool("first", &NoArguments {})).unwrap();
    assert!(pair.run(client.call_tool("second", &NoArguments {})).is_err());
    assert!(server.endpoint(0).unwrap().machine().catalog().tool("second").is_none());
}

#[test]
fn edits_from_many_threads_reach_each_connection_once() {
    let connections = Connections::new();
    let server = linked(&connections);
    let mut endpoint = server.endpoint(0).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let connections = &connections;
            scope.spawn(move || {
                for number in 0..20 {
                    let name = format!("{thread}-{number}");
                    connections.edit_catalog(move |catalog| add(catalog, &name)).unwrap();
                }
            });
        }
    });
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    endpoint.poll_handlers(&mut context, mcp_sansio::Instant::ZERO);
    for catalog in [endpoint.machine().catalog(), server.endpoint(1).unwrap().machine().catalog()] {
        assert_eq!(catalog.tools().count(), 82);
    }
}

#[test]
fn later_connections_complete_the_arguments_of_an_added_prompt() {
    // Rule: [CAP-005].
    let connections = Connections::new();
    let server = linked(&connections);
    let (early, _pair) = connect(&server, Revision::LATEST);
    let edit = |catalog: &mut CatalogEdit<'_>| {
        let mut prompt = Prompt::new("review");
        prompt.arguments = Some(vec![PromptArgument::new("language")]);
        let item = ServerItem::new(prompt, |_: Call<NoArguments>| PromptMessage::user("Review"));
        catalog.add_item(item.complete("language", |_: Call<CompleteParams>| vec!["Rust".into()]))
    };
    connections.edit_catalog(edit).unwrap().unwrap();
    // The capability is declared when a connection opens.
    assert!(!early.session().unwrap().capabilities.contains(Capability::Completions));
    let (client, mut pair) = connect(&server, Revision::LATEST);
    let reference = CompletionReference::Prompt(PromptReference::new("review"));
    let params = CompleteParams::new(reference, CompletionArgument::new("language", "R"));
    let completed = pair.run(client.complete(&params)).unwrap();
    assert_eq!(completed.completion.values, ["Rust"]);
}

#[test]
fn connections_without_a_server_refuse_edits() {
    let connections = Connections::new();
    let edit = || connections.edit_catalog(|_| ());
    assert_eq!(edit(), Err(SendError::Closed));
    let server = linked(&connections);
    assert_eq!(edit(), Ok(()));
    // As `serve_stdio(server)` does: the connection is all that is left.
    let endpoint = server.endpoint(0).unwrap();
    drop(server);
    assert_eq!(edit(), Ok(()));
    drop(endpoint);
    assert_eq!(edit(), Err(SendError::Closed));
}

#[test]
fn an_item_whose_state_is_missing_is_added_to_no_connection() {
    struct Greeting(&'static str);

    let connections = Connections::new();
    let edit = || {
        connections.edit_catalog(|catalog| {
            let greet = |_: Call<NoArguments>, greeting: State<Greeting>| greeting.0.0;
            catalog.add_item(ServerItem::tool("greet", "", greet)).map(drop)
        })
    };
    let server = linked(&connections);
    assert!(matches!(edit().unwrap(), Err(CatalogError::MissingState { .. })));
    server.endpoint(0).unwrap();

    let server = Server::new("s", "1").state(Greeting("hello")).connections(&connections);
    edit().unwrap().unwrap();
    let (client, mut pair) = connect(&server, Revision::LATEST);
    let result = pair.run(client.call_tool("greet", &NoArguments {})).unwrap();
    assert_eq!(text(&result), "hello");
}

#[test]
fn an_edit_that_edits_or_opens_a_connection_ends() {
    let connections = Connections::new();
    let server = linked(&connections);
    let own = connections.clone();
    let first = connections.edit_catalog(move |catalog| {
        // Refused once this edit may not be overtaken any more.
        let _inner = own.edit_catalog(|_| ());
        add(catalog, "a");
    });
    assert_eq!(first, Ok(()));
    let opened = server.clone();
    let second = connections.edit_catalog(move |catalog| {
        drop(opened.endpoint(1));
        add(catalog, "b");
    });
    assert_eq!(second, Ok(()));
    let endpoint = server.endpoint(2).unwrap();
    for name in ["a", "b"] {
        assert!(endpoint.machine().catalog().tool(name).is_some(), "{name}");
    }
    // Other edits are possible again.
    connections.edit_catalog(|catalog| add(catalog, "c")).unwrap();
}

#[test]
fn connections_belong_to_the_last_server_that_has_them() {
    let connections = Connections::new();
    let first = linked(&connections);
    let open = first.endpoint(1).unwrap();
    let second = linked(&connections);
    connections.edit_catalog(|catalog| add(catalog, "a")).unwrap();
    let later = first.endpoint(2).unwrap();
    connections.edit_catalog(|catalog| add(catalog, "b")).unwrap();
    assert!(later.machine().catalog().tool("a").is_none());
    drop((open, later));
    assert_eq!(connections.handles().len(), 0);
    let endpoint = second.endpoint(3).unwrap();
    assert!(endpoint.machine().catalog().tool("b").is_some());
    assert_eq!(connections.handles().len(), 1);
}

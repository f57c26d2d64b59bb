//! Header fields of subscriptions, and of calls that become tasks.

use std::sync::{Arc, Mutex};

use mcp_sansio::http::{HttpClientOptions, HttpServerOptions, Location};
use mcp_sansio::peer::CommandError;
use mcp_sansio::peer::{HeaderFields, InvalidHeader};
use mcp_sansio::protocol::{Resource, SubscriptionFilter, TaskSupport, TextResourceContents};
use mcp_sansio::{Instant, Revision, Revisions};
use mcp_sansio_handlers::{
    Call, Client, ClientError, Host, NoArguments, ReadResource, Server, ThreadSafe,
};
use mcp_sansio_test::{Http, Pair, URL};

use crate::task_client::{Gate, settings};
use crate::{connect_host, text};

/// The methods of the requests that were sent, each with the tenant in its header.
type Sent = Arc<Mutex<Vec<String>>>;

fn server(gate: &Gate) -> Server {
    let gate = gate.clone();
    Server::new("s", "1")
        .subscriptions()
        .tasks(settings())
        .tool("long", "", move |call: Call<NoArguments>| {
            let gate = gate.clone();
            async move {
                call.run_as_task();
                gate.passed().await;
                "done"
            }
        })
        .task_support("long", TaskSupport::Optional)
        .resource(Resource::new("mem://a", "a"), |_: Call<ReadResource>| {
            TextResourceContents::new("mem://a", "content")
        })
}

fn connect(gate: &Gate, host: &Host, revision: Revision) -> (Client, Pair<Http<ThreadSafe>>, Sent) {
    let host = host.clone().revisions(Revisions::only(revision));
    let options = HttpClientOptions::new(Location::parse(URL).unwrap());
    let (client, endpoint) = host.connect_http(options, 7, Instant::ZERO);
    let http = server(gate).http(HttpServerOptions::new(), [7; 32], 7).unwrap();
    let sent = Sent::default();
    let log = Arc::clone(&sent);
    let mut pair = Pair::new(Http::new(http, endpoint).intercept(move |request| {
        let body = serde_json::from_slice::<serde_json::Value>(&request.body).unwrap_or_default();
        if let Some(method) = body["method"].as_str() {
            let tenant = request.fields().find(|(name, _)| *name == "x-tenant");
            let tenant = tenant.map(|(_, value)| value).unwrap_or("-");
            log.lock().unwrap().push(format!("{method} {tenant}"));
        }
        None
    }));
    pair.run(client.opened()).unwrap();
    pair.run_until_idle();
    sent.lock().unwrap().clear();
    (client, pair, sent)
}

fn north() -> HeaderFields {
    HeaderFields::new().field("X-Tenant", "north").unwrap()
}

#[test]
fn the_requests_that_open_a_subscription_have_its_header_fields() {
    for (revision, method) in [
        (Revision::V2025_06_18, "resources/subscribe"),
        (Revision::V2025_11_25, "resources/subscribe"),
        (Revision::V2026_07_28, "subscriptions/listen"),
    ] {
        let host = Host::new("h", "1");
        let (client, mut pair, sent) = connect(&Gate::default(), &host, revision);
        let filter = SubscriptionFilter::new().resource_subscriptions(["mem://a".to_owned()]);
        let mut with = client.subscribe_with_headers(filter.clone(), north());
        assert!(pair.run(with.honoured()).unwrap().resource_subscriptions.is_some());
        let mut without = client.subscribe(filter.clone());
        pair.run(without.honoured()).unwrap();
        let expected = [format!("{method} north"), format!("{method} -")];
        assert_eq!(*sent.lock().unwrap(), expected, "{revision}");
        // A byte stream has no fields, and the server might serve another tenant.
        let (client, mut pair) = connect_host(&server(&Gate::default()), host, revision);
        let refused = pair.run(client.subscribe_with_headers(filter, north()).honoured());
        let Err(ClientError::NotSent(error)) = refused else { panic!("{refused:?}") };
        assert!(matches!(*error, CommandError::NoHeaderFields), "{error}");
    }
}

#[test]
fn the_requests_about_a_task_have_the_header_fields_of_its_call() {
    let gate = Gate::default();
    gate.open();
    let (client, mut pair, sent) = connect(&gate, &Host::new("h", "1"), Revision::V2025_11_25);
    let tools = pair.run(client.all_tools()).unwrap();
    sent.lock().unwrap().clear();
    let call = client.call_tool_as_task(&tools[0], &NoArguments {}).header("X-Tenant", "north");
    let task = pair.run(call).unwrap();
    assert_eq!(text(&pair.run(task.result()).unwrap()), "done");
    pair.run(task.cancel()).unwrap_err();
    let found = client.task(task.name()).header("X-Tenant", "south");
    pair.run(found.status()).unwrap();
    let sent = sent.lock().unwrap().clone();
    let (last, before) = sent.split_last().unwrap();
    assert_eq!(last, "tasks/get south");
    assert!(before.iter().all(|line| line.ends_with(" north")), "{sent:?}");
    for method in ["tools/call", "tasks/get", "tasks/result", "tasks/cancel"] {
        assert!(before.contains(&format!("{method} north")), "{sent:?}");
    }
    let refused = pair.run(client.task("t").header("Mcp-Method", "x").status());
    assert!(matches!(refused, Err(ClientError::InvalidHeader(InvalidHeader::Reserved(_)))));
}

#[test]
fn the_requests_about_a_followed_task_have_the_header_fields_of_its_call() {
    let host = Host::new("h", "1").follow_tasks();
    let gate = Gate::default();
    let (client, mut pair, sent) = connect(&gate, &host, Revision::V2026_07_28);
    let call = || client.call_tool("long", &NoArguments {}).header("X-Tenant", "north");
    // Dropping a call cancels its task.
    let mut dropped = pair.start(call());
    assert!(pair.poll(dropped.as_mut()).is_none());
    drop(dropped);
    pair.run_until_idle();
    let mut kept = pair.start(call());
    assert!(pair.poll(kept.as_mut()).is_none());
    gate.open();
    assert_eq!(text(&pair.run(kept).unwrap()), "done");
    let sent = sent.lock().unwrap().clone();
    for method in ["tools/call", "tasks/get", "tasks/cancel"] {
        assert!(sent.contains(&format!("{method} north")), "{sent:?}");
    }
    assert!(sent.iter().all(|line| line.ends_with(" north")), "{sent:?}");
}

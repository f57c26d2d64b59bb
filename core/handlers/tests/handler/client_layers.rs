//! The middleware of this crate around the calls of a client.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_sansio::Revision;
use mcp_sansio::protocol::{
    ElicitParams, ElicitResult, Resource, SubscriptionFilter, TextResourceContents,
};
use mcp_sansio_handlers::middleware::{AccessLog, LimitError, ResultCache, Timeout};
use mcp_sansio_handlers::{
    Call, Client, ClientError, Elicit, HandlerError, Host, HostRequest, NoArguments, ReadResource,
    Server, ServerHandle,
};
use mcp_sansio_test::{Pair, StreamPair};

use crate::{Place, connect_host, text};

const TTL: Duration = Duration::from_secs(10);

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Confirmation {
    #[allow(dead_code, reason = "only its presence is checked")]
    sure: bool,
}

/// A server whose tool and resources answer with the number of their run.
fn counting() -> Server {
    let runs = Arc::new(AtomicUsize::new(0));
    let next = move || format!("run {}", runs.fetch_add(1, Ordering::SeqCst) + 1);
    let [find, write, read, fail] = [next.clone(), next.clone(), next.clone(), next];
    let content = move |call: Call<ReadResource>| {
        TextResourceContents::new(call.arguments.uri.clone(), read())
    };
    Server::new("s", "1")
        .subscriptions()
        .tool("find", "", move |_: Call<Place>| find())
        .tool("write", "", move |_: Call<Place>| write())
        .tool("fail", "", move |_: Call<Place>| Err::<String, _>(HandlerError::failed(fail())))
        .resource(Resource::new("mem://a", "a"), content.clone())
        .resource(Resource::new("mem://b", "b"), content)
}

fn call(client: &Client, pair: &mut StreamPair, tool: &str, place: &str) -> String {
    let result = pair.run(client.call_tool(tool, &Place { location: place.into() })).unwrap();
    text(&result).to_owned()
}

fn read(client: &Client, pair: &mut StreamPair, uri: &str) -> String {
    let result = pair.run(client.read_resource(uri)).unwrap();
    format!("{:?}", result.contents[0])
}

fn handle(pair: &StreamPair) -> ServerHandle {
    pair.transport.server.as_ref().unwrap().handle()
}

#[test]
fn a_cache_answers_equal_calls_that_read_until_they_expire() {
    for revision in Revision::ALL {
        let host = Host::new("h", "1").call_middleware(ResultCache::new(TTL).tools(["find"]));
        let (client, mut pair) = connect_host(&counting(), host.clone(), revision);
        let [first, other] = ["Oslo", "Rome"].map(|place| call(&client, &mut pair, "find", place));
        assert_eq!((&*first, &*other), ("run 1", "run 2"), "{revision}");
        assert_eq!(call(&client, &mut pair, "find", "Oslo"), "run 1");
        // A tool that may change something, a failure, other metadata, and a reload.
        assert_eq!(call(&client, &mut pair, "write", "Oslo"), "run 3");
        assert_eq!(call(&client, &mut pair, "write", "Oslo"), "run 4");
        assert_eq!(call(&client, &mut pair, "fail", "Oslo"), "run 5");
        assert_eq!(call(&client, &mut pair, "fail", "Oslo"), "run 6");
        let meta = mcp_sansio::jsonrpc::RawJson::parse(r#"{"a/b":1}"#).unwrap();
        let oslo = Place { location: "Oslo".into() };
        let result = pair.run(client.call_tool("find", &oslo).meta(meta)).unwrap();
        assert_eq!(text(&result), "run 7");
        let result = pair.run(client.call_tool("find", &oslo).reload()).unwrap();
        assert_eq!(text(&result), "run 8");
        assert_eq!(call(&client, &mut pair, "find", "Oslo"), "run 8");
        pair.advance(TTL);
        assert_eq!(call(&client, &mut pair, "find", "Oslo"), "run 9");
        // Another connection may be one to another server.
        let (client, mut pair) = connect_host(&counting(), host, revision);
        assert_eq!(call(&client, &mut pair, "find", "Oslo"), "run 1");
    }
}

#[test]
fn a_notification_of_a_change_drops_cached_results_of_calls() {
    // Rule: [CACHE-009].
    for revision in Revision::ALL {
        let host = Host::new("h", "1").call_middleware(ResultCache::new(TTL));
        let (client, mut pair) = connect_host(&counting(), host, revision);
        let [a, b] = ["mem://a", "mem://b"].map(|uri| read(&client, &mut pair, uri));
        assert_eq!(pair.run(client.list_tools(None)).unwrap().tools.len(), 3);
        let filter = SubscriptionFilter::new()
            .tools_list_changed(true)
            .resource_subscriptions(["mem://a".to_owned()]);
        let mut subscription = client.subscribe(filter);
        pair.run(subscription.honoured()).unwrap();
        handle(&pair).resource_updated("mem://a").unwrap();
        pair.run(subscription.next()).unwrap();
        assert_eq!(read(&client, &mut pair, "mem://b"), b, "{revision}");
        assert_ne!(read(&client, &mut pair, "mem://a"), a, "{revision}");
        handle(&pair).edit_catalog(|catalog| drop(catalog.remove_tool("write"))).unwrap();
        pair.run(subscription.next()).unwrap();
        assert_eq!(pair.run(client.list_tools(None)).unwrap().tools.len(), 2, "{revision}");
    }
}

#[test]
fn a_result_that_took_input_is_not_cached_around_calls() {
    // Rule: [CACHE-004].
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let server = Server::new("s", "1").tool("find", "", move |call: Call<NoArguments>| {
        if call.input::<Confirmation>("sure")?.is_none() {
            return call.require_input("sure", Elicit::form::<Confirmation>("?")).into_result();
        }
        Ok(format!("run {}", counted.fetch_add(1, Ordering::SeqCst)))
    });
    let host = Host::new("h", "1")
        .on_elicit(|_: HostRequest<ElicitParams>| {
            ElicitResult::accept([("sure".to_owned(), true.into())].into_iter().collect())
        })
        .call_middleware(ResultCache::new(TTL).tools(["find"]));
    let (client, mut pair) = connect_host(&server, host, Revision::V2026_07_28);
    for _ in 0..2 {
        pair.run(client.call_tool("find", &NoArguments {})).unwrap();
    }
    assert_eq!(runs.load(Ordering::SeqCst), 2);
}

#[test]
fn a_timeout_ends_a_call_at_the_client_and_at_the_server() {
    for revision in Revision::ALL {
        let server = Server::new("s", "1")
            .tool("slow", "", async |_: Call<NoArguments>| core::future::pending::<String>().await)
            .tool("quick", "", |_: Call<NoArguments>| "done");
        let cancelled = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&cancelled);
        let server = server.observe(move |event| {
            if matches!(event, mcp_sansio::peer::Event::Cancelled(_)) {
                counted.fetch_add(1, Ordering::SeqCst);
            }
        });
        let host = Host::new("h", "1").call_middleware(Timeout::new(TTL));
        let (client, mut pair) = connect_host(&server, host, revision);
        let quick = pair.run(client.call_tool("quick", &NoArguments {})).unwrap();
        assert_eq!(text(&quick), "done");
        let started = pair.now();
        let slow = pair.run(client.call_tool("slow", &NoArguments {}));
        let Err(ClientError::Limited(LimitError::TimedOut(after))) = slow else {
            panic!("{slow:?}")
        };
        assert_eq!((after, pair.now().saturating_since(started)), (TTL, TTL), "{revision}");
        pair.run_until_idle();
        assert_eq!(cancelled.load(Ordering::SeqCst), 1, "{revision}");
    }
}

#[test]
fn an_access_log_reports_calls_with_their_outcomes() {
    let records = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&records);
    let log = AccessLog::new(move |record| {
        let record = record.to_string();
        // Without the time.
        let (_, record) = record.split_once(' ').unwrap();
        log.lock().unwrap().push(record.to_owned());
    });
    let host = Host::new("h", "1").call_middleware(log).call_middleware(Timeout::new(TTL));
    let server = counting()
        .tool("slow", "", async |_: Call<NoArguments>| core::future::pending::<String>().await);
    let (client, mut pair): (_, Pair<_>) = connect_host(&server, host, Revision::LATEST);
    call(&client, &mut pair, "find", "Oslo");
    call(&client, &mut pair, "fail", "Oslo");
    read(&client, &mut pair, "mem://a");
    pair.run(client.call_tool("none", &NoArguments {})).unwrap_err();
    pair.run(client.call_tool("slow", &NoArguments {})).unwrap_err();
    let slow = pair.start(client.call_tool("slow", &NoArguments {}));
    pair.advance(Duration::from_millis(35));
    pair.run_until_idle();
    drop(slow);
    let expected = [
        r#"tools/call "find" - ok 0ms"#,
        r#"tools/call "fail" - tool-error 0ms"#,
        r#"resources/read "mem://a" - ok 0ms"#,
        r#"tools/call "none" - error:-32602 0ms"#,
        r#"tools/call "slow" - failed 10000ms"#,
        r#"tools/call "slow" - cancelled 35ms"#,
    ];
    assert_eq!(*records.lock().unwrap(), expected);
}

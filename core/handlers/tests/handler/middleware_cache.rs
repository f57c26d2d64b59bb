//! Results that are kept for equal requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcp_sansio::Revision;
use mcp_sansio::protocol::{
    CompleteParams, CompletionArgument, Method, PromptReference, Resource, SubscriptionFilter,
    TextResourceContents,
};
use mcp_sansio_handlers::middleware::{ResultCache, ServerRequest, when};
use mcp_sansio_handlers::{
    Call, Client, HandlerError, NoArguments, ReadResource, Server, ServerItem, Structured,
};
use mcp_sansio_test::{Pair, Transport};
use serde_json::json;

use crate::{Place, connect, text};

const TTL: Duration = Duration::from_secs(10);

/// Counts how often handlers run.
#[derive(Clone, Default)]
struct Runs(Arc<AtomicUsize>);

impl Runs {
    fn next(&self) -> usize {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }

    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// A server whose handlers answer with the number of their run.
fn server(runs: &Runs) -> Server {
    let [a, b, c, d, e, f] = [(); 6].map(|()| runs.clone());
    let find = move |call: Call<Place>| format!("{} {}", call.arguments.location, a.next());
    let fail = move |_: Call<NoArguments>| match b.next() {
        1 => Err(HandlerError::failed("busy")),
        run => Ok(format!("run {run}")),
    };
    let typed = move |_: Call<NoArguments>| Structured(json!({ "run": c.next() }));
    Server::new("s", "1")
        .add_item(ServerItem::tool("find", "", find).read_only())
        .add_item(ServerItem::tool("fail", "", fail).read_only())
        .add_item(ServerItem::tool("typed", "", typed).read_only())
        .tool("write", "", move |_: Call<NoArguments>| format!("run {}", d.next()))
        .resource(Resource::new("mem://a", "a"), move |call: Call<ReadResource>| {
            let text = format!("run {}", e.next());
            TextResourceContents::new(call.arguments.uri.clone(), text)
        })
        .completion(move |_: Call<CompleteParams>| vec![format!("run {}", f.next())])
}

fn find<T: Transport>(client: &Client, pair: &mut Pair<T>, place: &str) -> String {
    let place = Place { location: place.into() };
    text(&pair.run(client.call_tool("find", &place)).unwrap()).to_owned()
}

#[test]
fn an_equal_request_is_answered_without_the_handler_until_the_result_expires() {
    for revision in Revision::ALL {
        let server = server(&Runs::default()).middleware(ResultCache::new(TTL));
        let (client, mut pair) = connect(&server, revision);
        assert_eq!(find(&client, &mut pair, "Oslo"), "Oslo 1");
        assert_eq!(find(&client, &mut pair, "Oslo"), "Oslo 1");
        assert_eq!(find(&client, &mut pair, "Rome"), "Rome 2");
        pair.advance(TTL - Duration::from_millis(1));
        assert_eq!(find(&client, &mut pair, "Oslo"), "Oslo 1");
        pair.advance(Duration::from_millis(1));
        assert_eq!(find(&client, &mut pair, "Oslo"), "Oslo 3");
        assert_eq!(find(&client, &mut pair, "Oslo"), "Oslo 3");
    }
}

#[test]
fn resources_prompts_and_completions_are_kept_as_they_were_sent() {
    for revision in [Revision::V2025_03_26, Revision::LATEST] {
        let (runs, prompts) = (Runs::default(), Runs::default());
        let number = prompts.clone();
        let server = server(&runs)
            .prompt("ask", "", move |_: Call<NoArguments>| format!("run {}", number.next()))
            .middleware(ResultCache::new(TTL));
        let (client, mut pair) = connect(&server, revision);
        let argument = CompletionArgument::new("city", "Os");
        let params = CompleteParams::new(PromptReference::new("ask"), argument);
        let mut all = || {
            pair.transcript.clear();
            let read = pair.run(client.read_resource("mem://a")).unwrap();
            let prompt = pair.run(client.get_prompt("ask", [])).unwrap();
            let completion = pair.run(client.complete(&params)).unwrap();
            (read, prompt, completion)
        };
        let first = all();
        assert_eq!(first, all());
        assert_eq!((runs.count(), prompts.count()), (2, 1), "{revision}");
    }
}

#[test]
fn calls_that_may_change_something_are_not_kept() {
    let server = server(&Runs::default()).middleware(ResultCache::new(TTL));
    let (client, mut pair) = connect(&server, Revision::LATEST);
    for run in ["run 1", "run 2"] {
        let result = pair.run(client.call_tool("write", &NoArguments {})).unwrap();
        assert_eq!(text(&result), run);
    }
}

#[test]
fn failures_are_not_kept() {
    let server = server(&Runs::default()).middleware(ResultCache::new(TTL));
    let (client, mut pair) = connect(&server, Revision::LATEST);
    let results = [(); 3].map(|()| {
        let result = pair.run(client.call_tool("fail", &NoArguments {})).unwrap();
        text(&result).to_owned()
    });
    assert_eq!(results, ["busy", "run 2", "run 2"]);
}

#[test]
fn structured_results_keep_their_structure() {
    let server = server(&Runs::default()).middleware(ResultCache::new(TTL));
    let (client, mut pair) = connect(&server, Revision::LATEST);
    let results = [(); 2].map(|()| pair.run(client.call_tool("typed", &NoArguments {})).unwrap());
    assert_eq!(results[0], results[1]);
    assert_eq!(results[0].structured_content.as_ref().unwrap().as_str(), r#"{"run":1}"#);
}

#[test]
fn connections_of_streams_do_not_share_results() {
    let server = server(&Runs::default()).middleware(ResultCache::new(TTL));
    for expected in ["Oslo 1", "Oslo 2"] {
        let (client, mut pair) = connect(&server, Revision::LATEST);
        assert_eq!(find(&client, &mut pair, "Oslo"), expected);
    }
}

#[test]
fn the_kept_results_are_bounded_and_the_oldest_are_dropped() {
    let server = server(&Runs::default()).middleware(ResultCache::new(TTL).bytes_max(2000));
    let (client, mut pair) = connect(&server, Revision::LATEST);
    for (place, expected) in [("A", "A 1"), ("B", "B 2"), ("C", "C 3"), ("D", "D 4")] {
        assert_eq!(find(&client, &mut pair, place), expected);
    }
    for (number, place) in (5..).zip(["E", "F", "G", "H", "I", "J", "K"]) {
        assert_eq!(find(&client, &mut pair, place), format!("{place} {number}"));
    }
    assert_eq!(find(&client, &mut pair, "K"), "K 11");
    assert_eq!(find(&client, &mut pair, "A"), "A 12");
    // A large one is not kept, and displaces nothing.
    let long = "x".repeat(600);
    assert_eq!(find(&client, &mut pair, &long), format!("{long} 13"));
    assert_eq!(find(&client, &mut pair, &long), format!("{long} 14"));
    assert_eq!(find(&client, &mut pair, "A"), "A 12");
}

#[test]
fn a_cleared_cache_keeps_no_earlier_result() {
    let cache = ResultCache::new(TTL);
    let server = server(&Runs::default()).middleware(cache.clone());
    let (client, mut pair) = connect(&server, Revision::LATEST);
    assert_eq!(find(&client, &mut pair, "Oslo"), "Oslo 1");
    cache.clear();
    assert_eq!(find(&client, &mut pair, "Oslo"), "Oslo 2");
}

#[cfg(feature = "http")]
mod on_http {
    use mcp_sansio::Caller;
    use mcp_sansio::Instant;
    use mcp_sansio::http::{HttpClientOptions, HttpServerOptions, Location};
    use mcp_sansio_handlers::Host;
    use mcp_sansio_test::{Http, Identity, URL};

    use super::*;

    /// Asks one HTTP server as several callers, one after another.
    fn ask_as(cache: ResultCache, callers: &[Option<Identity>]) -> Vec<String> {
        let server = server(&Runs::default()).middleware(cache);
        let mut http = Some(server.http(HttpServerOptions::new(), [7; 32], 7).unwrap());
        let mut answers = Vec::new();
        for caller in callers {
            let options = HttpClientOptions::new(Location::parse(URL).unwrap());
            let host = Host::new("h", "1");
            let (client, endpoint) = host.connect_http(options, 7, Instant::ZERO);
            let transport = Http::new(http.take().unwrap(), endpoint).identity(caller.clone());
            let mut pair = Pair::new(transport);
            pair.run(client.opened()).unwrap();
            answers.push(find(&client, &mut pair, "Oslo"));
            http = Some(pair.transport.server);
        }
        answers
    }

    fn callers() -> [Option<Identity>; 5] {
        let ann = || Identity::new("ann");
        [Some(ann()), Some(Identity::new("bob")), Some(ann()), Some(ann().scopes(["read"])), None]
    }

    #[test]
    fn callers_do_not_share_results_and_scopes_count() {
        let answers = ask_as(ResultCache::new(TTL), &callers());
        assert_eq!(answers, ["Oslo 1", "Oslo 2", "Oslo 1", "Oslo 3", "Oslo 4"]);
        assert!(Caller::ANONYMOUS.principal().is_none());
    }

    #[test]
    fn results_for_everyone_are_shared() {
        let answers = ask_as(ResultCache::new(TTL).for_everyone(), &callers());
        assert_eq!(answers, ["Oslo 1"; 5]);
    }
}

#[test]
fn a_notification_that_a_resource_changed_drops_its_results_before_it_is_sent() {
    for revision in Revision::ALL {
        let runs = Runs::default();
        let other = runs.clone();
        let cache = ResultCache::new(TTL);
        let only_reads = |request: &ServerRequest| *request.method() == Method::ResourcesRead;
        let server = server(&runs)
            .subscriptions()
            .resource(Resource::new("mem://b", "b"), move |call: Call<ReadResource>| {
                let text = format!("run {}", other.next());
                TextResourceContents::new(call.arguments.uri.clone(), text)
            })
            // The condition does not hide the cache from the notification.
            .middleware(when(only_reads, cache));
        let (client, mut pair) = connect(&server, revision);
        let read = |pair: &mut Pair<_>, uri: &str| {
            pair.run(client.read_resource(uri)).unwrap();
            runs.count()
        };
        assert_eq!((read(&mut pair, "mem://a"), read(&mut pair, "mem://b")), (1, 2));
        let filter = SubscriptionFilter::new().resource_subscriptions(["mem://a".to_owned()]);
        let mut subscription = client.subscribe(filter);
        pair.run(subscription.honoured()).unwrap();
        let handle = pair.transport.server.as_ref().unwrap().handle();
        handle.resource_updated("mem://a").unwrap();
        pair.run(subscription.next()).unwrap();
        assert_eq!((read(&mut pair, "mem://b"), read(&mut pair, "mem://a")), (2, 3), "{revision}");
        assert_eq!(read(&mut pair, "mem://a"), 3);
    }
}

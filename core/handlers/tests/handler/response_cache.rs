//! Clients whose host caches results, with servers over both bindings.

use std::num::NonZeroUsize;
use std::time::Duration;

use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::CacheOptions;
use mcp_sansio::protocol::{
    CacheHints, ReadResourceResult, Resource, SubscriptionFilter, TextResourceContents,
};
use mcp_sansio::{Era, Method, Revision, Revisions};
use mcp_sansio_handlers::{Call, Client, Host, InputRequired, NoArguments, ReadResource, Server};
use mcp_sansio_test::{Pair, Transport};

const MINUTE: Duration = Duration::from_secs(60);

fn contents(uri: &str) -> ReadResourceResult {
    ReadResourceResult::new([TextResourceContents::new(uri, "A").into()])
        .cached(CacheHints::private(MINUTE))
}

/// A server with three tools on a page each, and three resources.
fn server() -> Server {
    let name = |_: Call<NoArguments>| "";
    Server::new("s", "1")
        .subscriptions()
        .cache(CacheHints::public(MINUTE))
        .tool("a", "", name)
        .tool("b", "", name)
        .tool("vanish", "", |call: Call<NoArguments>| {
            call.edit_catalog(|catalog| drop(catalog.remove_tool("a"))).unwrap();
        })
        .resource(Resource::new("mem://a", "a"), |call: Call<ReadResource>| {
            contents(&call.arguments.uri)
        })
        .resource(Resource::new("mem://asks", "asks"), |call: Call<ReadResource>| {
            match call.state() {
                None => InputRequired::default().state("again").into_result(),
                Some(_) => Ok(contents(&call.arguments.uri)),
            }
        })
        .tool("touch", "", |call: Call<NoArguments>| call.resource_updated("mem://a").unwrap())
        .catalog(|catalog| {
            catalog.page_size(NonZeroUsize::new(1));
        })
}

fn host() -> Host {
    Host::new("host", "1").cache(CacheOptions::DEFAULT)
}

/// Runs a test over a byte stream and over HTTP, at one revision.
macro_rules! over_both {
    ($host:expr, $revision:expr, |$client:ident, $pair:ident| $test:block) => {{
        let host = $host.revisions(Revisions::only($revision));
        {
            let (client, mut pair) = mcp_sansio_test::connect(&server(), &host);
            let ($client, $pair) = (&client, &mut pair);
            $test
        }
        #[cfg(feature = "http")]
        {
            let (client, mut pair) = mcp_sansio_test::connect_http(&server(), &host, None);
            let ($client, $pair) = (&client, &mut pair);
            $test
        }
    }};
}

/// Returns how many requests of a method the server received.
fn requests<T: Transport>(pair: &Pair<T>, method: Method) -> usize {
    let name = format!(r#""method":"{}""#, method.as_str());
    let lines = pair.transcript.lines().iter();
    lines.filter(|line| line.starts_with('>') && line.contains(&name)).count()
}

#[test]
fn a_fresh_result_is_returned_without_a_request() {
    // Rule: [CACHE-003] [CACHE-006].
    over_both!(host(), Revision::LATEST, |client, pair| {
        let tools = pair.run(client.list_tools(None)).unwrap();
        let read = pair.run(client.read_resource("mem://a")).unwrap();
        pair.advance(MINUTE - Duration::from_millis(1));
        assert_eq!(pair.run(client.list_tools(None)).unwrap(), tools);
        assert_eq!(pair.run(client.read_resource("mem://a")).unwrap(), read);
        assert_eq!(requests(pair, Method::ToolsList), 1);
        assert_eq!(requests(pair, Method::ResourcesRead), 1);
        // Other parameters, and another method with the same.
        pair.run(client.list_tools(tools.next_cursor.as_deref())).unwrap();
        pair.run(client.list_resources(None)).unwrap();
        assert_eq!(requests(pair, Method::ToolsList), 2);
        assert_eq!(requests(pair, Method::ResourcesList), 1);
        pair.advance(Duration::from_millis(1));
        pair.run(client.list_tools(None)).unwrap();
        pair.run(client.read_resource("mem://a")).unwrap();
        assert_eq!(requests(pair, Method::ToolsList), 3);
        assert_eq!(requests(pair, Method::ResourcesRead), 2);
    });
}

#[test]
fn nothing_is_fetched_when_a_result_becomes_stale() {
    // Rule: [CACHE-007].
    over_both!(host(), Revision::LATEST, |client, pair| {
        pair.run(client.list_tools(None)).unwrap();
        pair.advance(10 * MINUTE);
        assert_eq!(requests(pair, Method::ToolsList), 1, "{}", pair.transcript);
    });
}

#[test]
fn nothing_is_cached_unless_the_host_asks() {
    over_both!(Host::new("host", "1"), Revision::LATEST, |client, pair| {
        for _ in 0..2 {
            pair.run(client.list_tools(None)).unwrap();
        }
        assert_eq!(requests(pair, Method::ToolsList), 2);
    });
}

#[test]
fn a_call_can_reload_and_metadata_bypasses_the_cache() {
    // Rule: [CACHE-008].
    over_both!(host(), Revision::LATEST, |client, pair| {
        pair.run(client.list_tools(None)).unwrap();
        pair.advance(MINUTE / 2);
        pair.run(client.list_tools(None).reload()).unwrap();
        let meta = RawJson::trusted(r#"{"com.example/tenant":"b"}"#);
        pair.run(client.list_tools(None).meta(meta)).unwrap();
        assert_eq!(requests(pair, Method::ToolsList), 3);
        pair.advance(MINUTE / 2);
        pair.run(client.list_tools(None)).unwrap();
        assert_eq!(requests(pair, Method::ToolsList), 3, "the reloaded result is fresh");
    });
}

#[test]
fn a_notification_makes_a_result_stale() {
    // Rule: [CACHE-009].
    over_both!(host(), Revision::LATEST, |client, pair| {
        let filter = SubscriptionFilter::default()
            .tools_list_changed(true)
            .resource_subscriptions(["mem://a".to_owned()]);
        let mut subscription = client.subscribe(filter);
        pair.run(subscription.honoured()).unwrap();
        assert_eq!(pair.run(client.all_tools()).unwrap().len(), 4);
        pair.run(client.read_resource("mem://a")).unwrap();
        pair.run(client.call_tool("touch", &NoArguments {})).unwrap();
        pair.run(client.call_tool("vanish", &NoArguments {})).unwrap();
        for _ in 0..2 {
            pair.run(subscription.next()).unwrap().unwrap();
        }
        assert_eq!(pair.run(client.all_tools()).unwrap().len(), 3);
        pair.run(client.read_resource("mem://a")).unwrap();
        assert_eq!(requests(pair, Method::ResourcesRead), 2);
    });
}

#[test]
fn a_result_after_another_round_is_not_cached() {
    // Rule: [CACHE-004].
    over_both!(host(), Revision::LATEST, |client, pair| {
        for reads in [2, 4] {
            pair.run(client.read_resource("mem://asks")).unwrap();
            assert_eq!(requests(pair, Method::ResourcesRead), reads, "{}", pair.transcript);
        }
    });
}

#[test]
fn a_whole_list_is_cached_whole_or_read_from_its_start() {
    // Rule: [CACHE-010].
    over_both!(host(), Revision::LATEST, |client, pair| {
        let second = pair.run(client.list_tools(None)).unwrap().next_cursor.unwrap();
        pair.advance(MINUTE / 2);
        let third = pair.run(client.list_tools(Some(&second))).unwrap().next_cursor.unwrap();
        let fourth = pair.run(client.list_tools(Some(&third))).unwrap().next_cursor.unwrap();
        pair.run(client.list_tools(Some(&fourth))).unwrap();
        assert_eq!(requests(pair, Method::ToolsList), 4);
        assert_eq!(pair.run(client.all_tools()).unwrap().len(), 4);
        assert_eq!(requests(pair, Method::ToolsList), 4);
        // The first page is stale: the others are fresh, but not of the same list.
        pair.advance(MINUTE / 2);
        assert_eq!(pair.run(client.all_tools()).unwrap().len(), 4);
        assert_eq!(requests(pair, Method::ToolsList), 8);
        // Only the last page is stale.
        pair.advance(MINUTE / 2);
        pair.run(client.list_tools(None).reload()).unwrap();
        pair.run(client.list_tools(Some(&second)).reload()).unwrap();
        pair.run(client.list_tools(Some(&third)).reload()).unwrap();
        pair.advance(MINUTE / 2);
        pair.run(client.list_tools(Some(&second))).unwrap();
        assert_eq!(requests(pair, Method::ToolsList), 11);
        assert_eq!(pair.run(client.all_tools()).unwrap().len(), 4);
        assert_eq!(requests(pair, Method::ToolsList), 15);
    });
}

#[test]
fn results_of_legacy_servers_are_cached_only_with_a_default_ttl() {
    for revision in Revision::ALL.into_iter().filter(|it| it.era() == Era::Legacy) {
        for (ttl, requested) in [(Duration::ZERO, 2), (MINUTE, 1)] {
            let host = Host::new("host", "1").cache(CacheOptions::DEFAULT.default_ttl(ttl));
            let host = host.revisions(Revisions::only(revision));
            let (client, mut pair) = mcp_sansio_test::connect(&server(), &host);
            for _ in 0..2 {
                pair.run(client.list_tools(None)).unwrap();
            }
            assert_eq!(requests(&pair, Method::ToolsList), requested, "{revision}");
            pair.advance(MINUTE);
            pair.run(client.list_tools(None)).unwrap();
            assert_eq!(requests(&pair, Method::ToolsList), requested + 1, "{revision}");
        }
    }
}

#[test]
fn cached_results_end_with_their_connection() {
    over_both!(host(), Revision::LATEST, |client, pair| {
        pair.run(client.list_tools(None)).unwrap();
        client.close();
        pair.run(client.list_tools(None)).unwrap_err();
    });
}

#[cfg(feature = "http")]
#[test]
fn another_token_does_not_find_the_results_of_the_previous_one() {
    // Rule: [CACHE-005].
    use crate::guarded::{Guarded, at_once, host};

    let options = CacheOptions::DEFAULT.default_ttl(MINUTE);
    let (client, mut net) = Guarded::new(&host(at_once()).cache(options));
    net.run(client.opened()).unwrap();
    net.log.clear();
    let list = |client: &Client| client.call(Method::ToolsList, RawJson::EMPTY_OBJECT);
    for _ in 0..2 {
        net.run(list(&client)).unwrap();
        assert_eq!(net.count("tools/list"), 1, "{:#?}", net.log);
    }
    client.forget_authorization().unwrap();
    net.run(list(&client)).unwrap();
    assert_eq!(net.count("tools/list 401"), 1, "{:#?}", net.log);
    // The token changed while the request was in flight, so only the next result is cached.
    for _ in 0..3 {
        net.run(list(&client)).unwrap();
    }
    assert_eq!(net.count("tools/list 200"), 3, "{:#?}", net.log);
}

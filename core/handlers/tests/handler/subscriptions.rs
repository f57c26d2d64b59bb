use mcp_sansio::protocol::{Resource, ResourceContents, SubscriptionFilter, TextResourceContents};
use mcp_sansio::{Era, Method, Revision};
use mcp_sansio_handlers::{Call, NoArguments, ReadResource, Server};

use crate::connect;

fn server() -> Server {
    Server::new("s", "1")
        .subscriptions()
        .resource(Resource::new("mem://a", "a"), |call: Call<ReadResource>| {
            ResourceContents::from(TextResourceContents::new(&*call.arguments.uri, "A"))
        })
        .tool("touch", "", |call: Call<NoArguments>| call.resource_updated("mem://a").unwrap())
        .tool("vanish", "", async |call: Call<NoArguments>| {
            call.edit_catalog(|catalog| drop(catalog.remove_tool("vanish"))).unwrap();
        })
}

fn filter() -> SubscriptionFilter {
    SubscriptionFilter::default()
        .tools_list_changed(true)
        .resource_subscriptions(["mem://a".to_owned()])
}

#[test]
fn a_subscription_reports_the_honoured_filter_and_receives_updates() {
    // Rule: [SUBS-005] [RSRC-005] [TOOL-005] [TOOL-006].
    for revision in Revision::ALL {
        let (client, mut pair) = connect(&server(), revision);
        let mut subscription = client.subscribe(filter());
        let honoured = pair.run(subscription.honoured()).unwrap();
        assert_eq!(honoured, filter(), "{revision}");
        pair.run(client.call_tool("touch", &NoArguments {})).unwrap();
        let update = pair.run(subscription.next()).unwrap().unwrap();
        assert_eq!(update.method, Method::ResourcesUpdated);
        pair.run(client.call_tool("vanish", &NoArguments {})).unwrap();
        let update = pair.run(subscription.next()).unwrap().unwrap();
        assert_eq!(update.method, Method::ToolsListChanged);
        assert_eq!(pair.run(client.all_tools()).unwrap().len(), 1);

        let remote = pair.transport.server.as_ref().unwrap().handle();
        remote.resource_updated("mem://a").unwrap();
        let update = pair.run(subscription.next()).unwrap().unwrap();
        assert_eq!(update.method, Method::ResourcesUpdated);
        remote.edit_catalog(|catalog| drop(catalog.remove_tool("touch"))).unwrap();
        let update = pair.run(subscription.next()).unwrap().unwrap();
        assert_eq!(update.method, Method::ToolsListChanged);
    }
}

#[test]
fn dropping_a_subscription_ends_it() {
    // Rule: [SUBS-008].
    for revision in Revision::ALL {
        let (client, mut pair) = connect(&server(), revision);
        let mut subscription = client.subscribe(filter());
        pair.run(subscription.honoured()).unwrap();
        drop(subscription);
        pair.run_until_idle();
        let end = match revision.era() {
            Era::Legacy => "resources/unsubscribe",
            _ => "notifications/cancelled",
        };
        assert_eq!(pair.transcript.count(end), 1, "{}", pair.transcript);
        pair.run(client.call_tool("touch", &NoArguments {})).unwrap();
        assert_eq!(pair.transcript.count("notifications/resources/updated"), 0);
    }
}

#[test]
fn a_subscription_ends_with_its_server() {
    let (client, mut pair) = connect(&server(), Revision::LATEST);
    let mut subscription = client.subscribe(filter());
    pair.run(subscription.honoured()).unwrap();
    pair.transport.server.as_ref().unwrap().handle().close();
    assert!(pair.run(subscription.next()).unwrap().is_none());
    assert!(pair.run(subscription.next()).unwrap().is_none());
    assert_eq!(pair.run(subscription.honoured()).unwrap(), filter());
    // One that never began does not wait either, however often it is asked.
    let mut late = client.subscribe(filter());
    for _ in 0..2 {
        pair.run(late.honoured()).unwrap_err();
    }
}

#[test]
fn a_slow_reader_only_loses_the_oldest_notifications() {
    let (client, mut pair) = connect(&server(), Revision::LATEST);
    let mut subscription = client.subscribe(filter());
    pair.run(subscription.honoured()).unwrap();
    let remote = pair.transport.server.as_ref().unwrap().handle();
    for _ in 0..3000 {
        remote.resource_updated("mem://a").unwrap();
        pair.run_until_idle();
    }
    remote.edit_catalog(|catalog| drop(catalog.remove_tool("touch"))).unwrap();
    pair.run_until_idle();
    let mut read = 0;
    loop {
        let update = pair.run(subscription.next()).unwrap().unwrap();
        read += 1;
        if update.method == Method::ToolsListChanged {
            break;
        }
    }
    assert!((100..3000).contains(&read), "{read}");
}

#[test]
fn several_subscribers_to_the_same_change_all_hear_of_it() {
    // Rule: [RSRC-005] [TOOL-005].
    for revision in Revision::ALL {
        let (client, mut pair) = connect(&server(), revision);
        let mut subscriptions = [client.subscribe(filter()), client.subscribe(filter())];
        for subscription in &mut subscriptions {
            pair.run(subscription.honoured()).unwrap();
        }
        pair.run(client.call_tool("touch", &NoArguments {})).unwrap();
        let remote = pair.transport.server.as_ref().unwrap().handle();
        remote.edit_catalog(|catalog| drop(catalog.remove_tool("touch"))).unwrap();
        for subscription in &mut subscriptions {
            for expected in [Method::ResourcesUpdated, Method::ToolsListChanged] {
                let update = pair.run(subscription.next()).unwrap().unwrap();
                assert_eq!(update.method, expected, "{revision}");
            }
        }
    }
}

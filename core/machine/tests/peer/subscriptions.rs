//! Subscriptions, which are the same for applications in both eras.

use mcp_sansio::Revision;
use mcp_sansio::catalog::Changes;
use mcp_sansio::peer::{
    CallHandle, ClientMachine, Event, Failure, ServerMachine, Subscribed, TransportFailure,
};
use mcp_sansio::protocol::SubscriptionFilter;
use seeded_random::{Random, scaled};
use serde_json::json;

use crate::fixtures::*;
use crate::pair::Pair;
use crate::wire::server;

fn everything() -> SubscriptionFilter {
    SubscriptionFilter::new()
        .tools_list_changed(true)
        .prompts_list_changed(true)
        .resources_list_changed(true)
        .resource_subscriptions(["a:1".into(), "a:2".into()])
}

fn subscribe(pair: &mut Pair, filter: &SubscriptionFilter) -> Subscribed {
    let subscription = pair.client.subscribe(filter, pair.now).unwrap();
    pair.drive();
    let Some(Event::Subscribed(subscribed)) = pair.client_events.pop_front() else {
        panic!("not subscribed:\n{}", pair.take_transcript())
    };
    assert_eq!(subscribed.subscription, subscription);
    subscribed
}

fn all_changes() -> Changes {
    Changes::new().tools(true).prompts(true).resources(true)
}

fn notifications(pair: &mut Pair) -> Vec<(String, Vec<CallHandle>)> {
    pair.drive();
    pair.client_events
        .drain(..)
        .map(|event| match event {
            Event::Notification(told) => (told.method.as_str().into(), told.subscriptions.to_vec()),
            other => panic!("{other:?}"),
        })
        .collect()
}

#[test]
fn a_subscription_receives_changes_in_both_eras() {
    // Rule: [SUBS-001] [SUBS-003] [META-012] [TOOL-005] [PRMT-010] [RSRC-006].
    for revision in Revision::ALL {
        let mut pair = Pair::open_at(revision, plain_client(), full_server());
        let subscribed = subscribe(&mut pair, &everything());
        assert_eq!(subscribed.honoured, everything());
        pair.server.announce(all_changes(), pair.now);
        pair.server.resource_updated("a:2", pair.now);
        pair.server.resource_updated("a:3", pair.now);
        let expected = [
            "notifications/tools/list_changed",
            "notifications/prompts/list_changed",
            "notifications/resources/list_changed",
            "notifications/resources/updated",
        ]
        .map(|method| (method.to_owned(), vec![subscribed.subscription]));
        assert_eq!(notifications(&mut pair), expected);
        pair.client.cancel(subscribed.subscription, "", pair.now);
        pair.drive();
        assert_eq!(pair.ended().outcome, Err(Failure::Cancelled));
        pair.server.resource_updated("a:2", pair.now);
        pair.drive();
        assert!(pair.client_events.is_empty(), "{revision}");
        assert!(pair.server_events.is_empty(), "{revision}");
        assert_eq!(pair.next_deadline(), None);
    }
}

#[test]
fn the_messages_of_a_subscription() {
    // Rule: [SUBS-003] [SUBS-006] [SUBS-010] [RSRC-004].
    let mut transcript = String::new();
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let mut pair = Pair::open_at(revision, plain_client(), full_server());
        let subscribed = subscribe(&mut pair, &everything());
        pair.server.announce(all_changes(), pair.now);
        pair.server.resource_updated("a:2", pair.now);
        pair.drive();
        pair.client.cancel(subscribed.subscription, "", pair.now);
        pair.drive();
        transcript.push_str(&format!("{revision}\n{}", pair.take_transcript()));
    }
    insta::assert_snapshot!(transcript);
}

#[test]
fn unsupported_subscriptions_are_not_honoured() {
    // Rule: [SUBS-004] [SUBS-005] [CAP-018].
    for revision in Revision::ALL {
        let mut pair = Pair::open_at(revision, plain_client(), bare_server());
        let subscribed = subscribe(&mut pair, &everything());
        assert_eq!(subscribed.honoured, SubscriptionFilter::default());
        pair.server.announce(all_changes(), pair.now);
        pair.server.resource_updated("a:1", pair.now);
        assert_eq!(notifications(&mut pair), []);
    }
}

#[test]
fn changes_outside_the_filter_are_not_sent_to_a_modern_client() {
    // Rule: [SUBS-002] [RSRC-008] [PRMT-011].
    let mut pair = Pair::open_at(Revision::V2026_07_28, plain_client(), full_server());
    pair.server.announce(all_changes(), pair.now);
    assert_eq!(notifications(&mut pair), [], "no stream is open");
    let filter = SubscriptionFilter::new().prompts_list_changed(true);
    subscribe(&mut pair, &filter);
    pair.server.announce(all_changes(), pair.now);
    pair.server.resource_updated("a:1", pair.now);
    let told = notifications(&mut pair);
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].0, "notifications/prompts/list_changed");
}

#[test]
fn an_initialized_legacy_client_gets_unsolicited_notifications() {
    // Rule: [TOOL-005] [LIFE-005].
    for revision in LEGACY {
        let mut wire = server(full_server());
        wire.send(&initialize(revision.as_str(), "{}"));
        wire.line();
        wire.machine.announce(all_changes(), wire.now);
        wire.expect_silence();
        wire.send(INITIALIZED);
        wire.told();
        wire.machine.announce(Changes::new().tools(true), wire.now);
        assert_eq!(wire.message()["method"], "notifications/tools/list_changed");
        wire.expect_silence();
    }
}

#[test]
fn several_subscriptions_are_distinguished() {
    // Rule: [SUBS-006] [SUBS-007] [STDIO-013] [LIFE-013].
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let mut pair = Pair::open_at(revision, plain_client(), full_server());
        let uri = |uri: &str| SubscriptionFilter::new().resource_subscriptions([uri.into()]);
        let first = subscribe(&mut pair, &uri("a:1")).subscription;
        let second = subscribe(&mut pair, &uri("a:2")).subscription;
        pair.server.resource_updated("a:2", pair.now);
        pair.server.resource_updated("a:1", pair.now);
        let told: Vec<_> = notifications(&mut pair).into_iter().map(|told| told.1).collect();
        assert_eq!(told, [[second], [first]]);
        // A resource that another subscription still needs remains subscribed.
        let third = subscribe(&mut pair, &uri("a:1")).subscription;
        pair.client.cancel(first, "", pair.now);
        pair.drive();
        pair.client_events.clear();
        pair.server.resource_updated("a:1", pair.now);
        let told: Vec<_> = notifications(&mut pair).into_iter().map(|told| told.1).collect();
        assert_eq!(told, [[third]], "{revision}");
    }
}

const URIS: [&str; 3] = ["a:1", "a:2", "a:3"];

fn random_filter(random: &mut Random) -> SubscriptionFilter {
    let mut flag = || random.once_in(2).then_some(true);
    let mut filter = SubscriptionFilter::new();
    filter.tools_list_changed = flag();
    filter.prompts_list_changed = flag();
    filter.resources_list_changed = flag();
    let uris: Vec<String> =
        URIS.iter().filter(|_| flag().is_some()).map(|uri| (*uri).into()).collect();
    if uris.is_empty() { filter } else { filter.resource_subscriptions(uris) }
}

#[test]
fn overlapping_subscriptions_each_receive_each_change_that_they_include() {
    // Rule: [SUBS-002] [SUBS-007] [TOOL-005] [RSRC-005].
    for revision in Revision::ALL {
        for seed in 0..u64::from(scaled(8)) {
            let mut random = Random::new(seed);
            let mut pair = Pair::open_at(revision, plain_client(), full_server());
            let mut open: Vec<Subscribed> = Vec::new();
            for _ in 0..25 {
                if random.once_in(3) && !open.is_empty() {
                    let ended = open.remove(random.index(open.len()));
                    pair.client.cancel(ended.subscription, "", pair.now);
                    pair.drive();
                    pair.client_events.clear();
                } else if open.len() < 5 {
                    let filter = random_filter(&mut random);
                    let subscribed = subscribe(&mut pair, &filter);
                    assert_eq!(subscribed.honoured, filter, "{revision}");
                    open.push(subscribed);
                }
                let expected = |includes: &dyn Fn(&SubscriptionFilter) -> bool| {
                    let open = open.iter().filter(|it| includes(&it.honoured));
                    open.map(|it| it.subscription).collect::<Vec<_>>()
                };
                let told = |pair: &mut Pair| {
                    let told = notifications(pair);
                    let mut handles: Vec<_> = told.into_iter().flat_map(|told| told.1).collect();
                    handles.sort();
                    handles
                };
                let check = |pair: &mut Pair, mut expected: Vec<CallHandle>| {
                    expected.sort();
                    assert_eq!(told(pair), expected, "seed {seed} at {revision}");
                };
                pair.server.announce(Changes::new().tools(true), pair.now);
                check(&mut pair, expected(&|filter| filter.tools_list_changed == Some(true)));
                pair.server.announce(Changes::new().prompts(true), pair.now);
                check(&mut pair, expected(&|filter| filter.prompts_list_changed == Some(true)));
                pair.server.announce(Changes::new().resources(true), pair.now);
                check(&mut pair, expected(&|filter| filter.resources_list_changed == Some(true)));
                for uri in URIS {
                    pair.server.resource_updated(uri, pair.now);
                    let includes = |filter: &SubscriptionFilter| {
                        let uris = filter.resource_subscriptions.as_deref().unwrap_or_default();
                        uris.iter().any(|wanted| wanted == uri)
                    };
                    check(&mut pair, expected(&includes));
                }
            }
        }
    }
}

#[test]
fn a_refused_resource_does_not_keep_another_subscription_of_it() {
    // Rule: [RSRC-004].
    let mut wire = client_at(Revision::V2025_11_25, plain_client());
    let filter = SubscriptionFilter::new().resource_subscriptions(["a:1".into()]);
    let honoured = wire.machine.subscribe(&filter, wire.now).unwrap();
    let asked = wire.message();
    wire.send(&result(&asked["id"].to_string(), "{}"));
    assert!(wire.told().starts_with("subscribed"));
    wire.machine.subscribe(&filter, wire.now).unwrap();
    let asked = wire.message();
    wire.send(&error(&asked["id"].to_string(), -32603, ""));
    assert!(wire.told().starts_with("subscribed"));
    wire.send(&notification("notifications/resources/updated", r#"{"uri":"a:1"}"#));
    let Event::Notification(told) = wire.event() else { panic!("a notification") };
    assert_eq!(&*told.subscriptions, [honoured]);
    wire.machine.cancel(honoured, "", wire.now);
    assert_eq!(wire.message()["method"], "resources/unsubscribe");
}

#[test]
fn the_error_for_a_refused_resource_is_reported_and_any_result_is_a_success() {
    // Rule: [RSRC-004].
    let filter = SubscriptionFilter::new().resource_subscriptions([
        "a:1".into(),
        "a:2".into(),
        "a:3".into(),
    ]);
    let mut wire = client_at(Revision::V2025_11_25, plain_client());
    let (first, second) = ("a:1".to_owned(), "a:2".to_owned());
    wire.machine.subscribe(&filter, wire.now).unwrap();
    let ids: Vec<_> = (0..3).map(|_| wire.message()["id"].to_string()).collect();
    wire.send(&result(&ids[0], "[]"));
    wire.send(&result(&ids[1], "null"));
    assert!(wire.told().starts_with("violation"));
    wire.send(&error(&ids[2], -32002, r#","data":"gone""#));
    let Event::Subscribed(subscribed) = wire.event() else { panic!("not subscribed") };
    assert_eq!(subscribed.honoured.resource_subscriptions, Some(vec![first, second]));
    let refusal = subscribed.refusal.expect("an error of the server");
    assert_eq!(refusal.to_string(), "no (-32002)");

    // Of a long message only the start is kept.
    wire.machine.subscribe(&filter, wire.now).unwrap();
    let long = "no ".repeat(10_000);
    for _ in 0..3 {
        let id = wire.message()["id"].to_string();
        wire.send(&error(&id, -32002, "").replace("no", &long));
    }
    let Event::Subscribed(subscribed) = wire.event() else { panic!("not subscribed") };
    let refusal = subscribed.refusal.expect("an error of the server");
    assert!(refusal.message.len() <= TransportFailure::EXCERPT_MAX);
}

#[test]
fn a_closed_server_ends_its_streams() {
    // Rule: [SUBS-008] [CANC-019] [SUBS-006].
    let mut wire = server(full_server());
    wire.send(&modern(
        r#""l""#,
        "subscriptions/listen",
        r#""notifications":{"toolsListChanged":true}"#,
    ));
    wire.expect(r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"l"},"notifications":{"toolsListChanged":true}}}"#);
    wire.machine.close(wire.now);
    let cancelled = wire.message();
    assert_eq!(cancelled["params"]["requestId"], "l");
    let ended = wire.message();
    assert_eq!(ended["id"], "l");
    assert_eq!(ended["result"]["resultType"], "complete");
    assert_eq!(ended["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "l");
    assert!(wire.told().starts_with("closed"));
    wire.expect_silence();
    assert!(wire.machine.is_drained());
}

#[test]
fn a_client_accepts_either_end_of_a_stream_in_any_order() {
    // Rule: [SUBS-008] [SUBS-009] [SUBS-011].
    let cancelled = notification("notifications/cancelled", r#"{"requestId":2}"#);
    let meta = r#"{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":2}}"#;
    let ended = result("2", meta);
    let orders: [&[&String]; 4] =
        [&[&cancelled], &[&ended], &[&cancelled, &ended], &[&ended, &cancelled]];
    for order in orders {
        let mut wire = client_at(Revision::V2026_07_28, plain_client());
        wire.machine.subscribe(&everything(), wire.now).unwrap();
        wire.line();
        for line in order {
            wire.send(line);
        }
        assert!(wire.told().starts_with("ended with"));
        wire.expect_silence();
    }
}

#[test]
fn a_listen_request_without_a_filter_is_malformed() {
    // Rule: [SUBS-001] [RPC-016].
    let mut wire = server(full_server());
    for members in ["", r#""notifications":7"#, r#""notifications":{"toolsListChanged":7}"#] {
        wire.send(&modern("1", "subscriptions/listen", members));
        wire.expect_error("1", -32602);
        assert!(wire.told().starts_with("violation"));
    }
}

#[test]
fn a_listen_stream_honours_the_valid_uris_once_each() {
    // Rule: [RSRC-014].
    let mut wire = server(full_server());
    let filter = json!({ "resourceSubscriptions": ["not a uri", "a:1", "", "a:2", "a:1"] });
    wire.send(&modern("1", "subscriptions/listen", &format!(r#""notifications":{filter}"#)));
    let acknowledged = wire.message();
    let honoured = &acknowledged["params"]["notifications"]["resourceSubscriptions"];
    assert_eq!(*honoured, json!(["a:1", "a:2"]), "{acknowledged}");
}

#[test]
fn the_number_of_subscriptions_is_bounded() {
    let mut limits = mcp_sansio::peer::Limits::DEFAULT;
    limits.listen_streams_max = 1;
    limits.subscribed_resources_max = 2;
    limits.uri_length_max = 4;
    let listen = |id: &str, uris: serde_json::Value| {
        let filter = json!({ "resourceSubscriptions": uris });
        modern(id, "subscriptions/listen", &format!(r#""notifications":{filter}"#))
    };
    let mut wire = server(full_server().limits(limits.clone()));
    wire.send(&listen("1", json!(["a:", "b:", "c:"])));
    wire.expect_error("1", -32603);
    wire.send(&listen("1", json!(["ab:de"])));
    wire.expect_error("1", -32603);
    wire.send(&listen("1", json!(["ab:d"])));
    wire.line();
    wire.send(&listen("2", json!([])));
    wire.expect_error("2", -32603);

    let mut wire = server_at(Revision::V2025_11_25, "{}", full_server().limits(limits));
    let subscribe =
        |id: &str, uri| request(id, "resources/subscribe", &json!({ "uri": uri }).to_string());
    for (id, uri) in [("2", "a"), ("3", "b"), ("4", "a")] {
        wire.send(&subscribe(id, uri));
        wire.expect(&result(id, "{}"));
    }
    wire.send(&subscribe("5", "c"));
    wire.expect_error("5", -32603);
    wire.send(&subscribe("6", "abcde"));
    wire.expect_error("6", -32602);
    wire.send(&request("7", "resources/subscribe", "{}"));
    wire.expect_error("7", -32602);
}

#[test]
fn a_legacy_server_can_refuse_one_resource_of_a_subscription() {
    // Rule: [RSRC-004] [SUBS-005].
    let mut wire = client_at(Revision::V2025_11_25, plain_client());
    wire.machine.subscribe(&everything(), wire.now).unwrap();
    assert_eq!(wire.message()["params"]["uri"], "a:1");
    assert_eq!(wire.message()["params"]["uri"], "a:2");
    wire.send(&error("4", -32002, ""));
    wire.expect_no_event();
    wire.advance_to_deadline();
    assert_eq!(wire.message()["method"], "notifications/cancelled");
    let Event::Subscribed(subscribed) = wire.event() else { panic!("subscribed") };
    assert_eq!(subscribed.honoured.resource_subscriptions, None);
    assert_eq!(subscribed.honoured.tools_list_changed, Some(true));
}

#[test]
fn a_subscription_that_times_out_is_also_ended_on_the_server() {
    // Rule: [RSRC-004] [TIME-002].
    let mut wire = client_at(Revision::V2025_11_25, plain_client());
    let filter = SubscriptionFilter::new().resource_subscriptions(["a:1".into()]);
    let subscription = wire.machine.subscribe(&filter, wire.now).unwrap();
    assert_eq!(wire.message()["method"], "resources/subscribe");
    wire.advance_to_deadline();
    assert_eq!(wire.message()["method"], "notifications/cancelled");
    assert!(wire.told().starts_with("subscribed"));
    // The server may have accepted it before it received the cancellation.
    wire.machine.cancel(subscription, "", wire.now);
    let ended = wire.message();
    assert_eq!(ended["method"], "resources/unsubscribe");
    assert_eq!(ended["params"]["uri"], "a:1");
    assert_eq!(wire.told(), "failed: cancelled");
}

#[test]
fn an_invalid_filter_is_refused_with_the_name_of_its_member() {
    for (filter, why) in [
        ("7", "`notifications` must be a subscription filter, an object"),
        (r#"{"toolsListChanged":7}"#, "toolsListChanged"),
        (r#"{"promptsListChanged":{}}"#, "promptsListChanged"),
        (r#"{"resourceSubscriptions":"a:b"}"#, "resourceSubscriptions"),
        (r#"{"taskIds":["a",7]}"#, "taskIds/1"),
        (r#"{"taskIds":[],"taskIds":[]}"#, "taskIds"),
    ] {
        let mut wire = server(full_server());
        let members = format!(r#""notifications":{filter}"#);
        wire.send(&modern("1", "subscriptions/listen", &members));
        let refusal: serde_json::Value = serde_json::from_str(&wire.line()).unwrap();
        assert_eq!(refusal["error"]["code"], -32602);
        let message = refusal["error"]["message"].as_str().unwrap();
        assert!(message.contains(why), "{filter}: {message}");
    }
}

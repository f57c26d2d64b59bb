//! Connections that outlive the process of their server.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_sansio::peer::{CloseReason, Failure, Limits};
use mcp_sansio::protocol::{
    ElicitParams, Resource, ResourceContents, SubscriptionFilter, TextResourceContents,
};
use mcp_sansio::{Instant, LoggingLevel, Method, Revision, Revisions};
use mcp_sansio_handlers::endpoint::Endpoint as _;
use mcp_sansio_handlers::{
    Call, Client, ClientError, Elicit, Host, HostRequest, NoArguments, ReadResource, Server,
    ServerState, Servers, ServersError,
};
use mcp_sansio_test::{Pair, Stream, StreamPair};

use crate::task_client::Gate;
use crate::text;

fn server() -> Server {
    Server::new("s", "1")
        .subscriptions()
        .logging()
        .resource(Resource::new("mem://a", "a"), |call: Call<ReadResource>| {
            ResourceContents::from(TextResourceContents::new(&*call.arguments.uri, "A"))
        })
        .tool("touch", "", |call: Call<NoArguments>| call.resource_updated("mem://a").unwrap())
        .tool("hang", "", async |_: Call<NoArguments>| {
            std::future::pending::<()>().await;
            "never"
        })
        .tool("ping", "", |_: Call<NoArguments>| "pong")
}

fn host(revision: Revision) -> Host {
    Host::new("h", "1").revisions(Revisions::only(revision))
}

fn filter() -> SubscriptionFilter {
    SubscriptionFilter::default().resource_subscriptions(["mem://a".to_owned()])
}

fn connect(host: &Host) -> (Client, StreamPair) {
    let (client, endpoint) = host.connect(7, Instant::ZERO);
    let endpoint = endpoint.respawning();
    let mut pair = Pair::new(Stream::new(server().endpoint(7).unwrap(), endpoint));
    pair.run(client.opened()).unwrap();
    (client, pair)
}

/// Ends the process of the server.
fn crash(pair: &mut StreamPair) {
    pair.transport.server = None;
    let now = pair.now();
    assert!(pair.transport.client.as_mut().unwrap().restart(now));
}

/// Starts another process of the server.
fn respawn(pair: &mut StreamPair) {
    pair.transport.server = Some(server().endpoint(8).unwrap());
    let now = pair.now();
    pair.transport.client.as_mut().unwrap().resume(now);
}

fn ping(client: &Client) -> mcp_sansio_handlers::ClientCall<mcp_sansio::protocol::CallToolResult> {
    client.call_tool("ping", &NoArguments {})
}

#[test]
fn calls_in_flight_are_lost_later_ones_wait_and_subscriptions_continue() {
    // Rule: [STDIO-019] [STDIO-020].
    for revision in Revision::ALL {
        let (client, mut pair) = connect(&host(revision));
        let mut subscription = client.subscribe(filter());
        pair.run(subscription.honoured()).unwrap();
        // Twice, because the second process is no different from the first.
        for _ in 0..2 {
            let hanging = pair.start(client.call_tool("hang", &NoArguments {}));
            crash(&mut pair);
            let lost = pair.run(hanging);
            let is_lost = matches!(lost, Err(ClientError::Failed(Failure::ConnectionLost)));
            assert!(is_lost, "{revision}: {lost:?}");
            let waiting = pair.start(ping(&client));
            pair.transcript.clear();
            respawn(&mut pair);
            assert_eq!(text(&pair.run(waiting).unwrap()), "pong", "{revision}");
            pair.run(client.call_tool("touch", &NoArguments {})).unwrap();
            let update = pair.run(subscription.next()).unwrap().unwrap();
            assert_eq!(update.method, Method::ResourcesUpdated, "{revision}");
            let subscribed = if revision.era() == mcp_sansio::Era::Modern {
                "subscriptions/listen"
            } else {
                "resources/subscribe"
            };
            assert_eq!(pair.transcript.count(subscribed), 1, "{}", pair.transcript);
        }
        assert_eq!(client.session().unwrap().revision, revision);
        drop(subscription);
        pair.run_until_idle();
    }
}

#[test]
fn a_subscription_that_was_pending_is_acknowledged_by_the_new_process() {
    // Rule: [STDIO-020].
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let (client, mut pair) = connect(&host(revision));
        let server = pair.transport.server.take();
        let mut subscription = client.subscribe(filter());
        pair.run_until_idle();
        pair.transport.server = server;
        crash(&mut pair);
        respawn(&mut pair);
        assert_eq!(pair.run(subscription.honoured()).unwrap(), filter(), "{revision}");
    }
}

#[test]
fn the_log_level_is_restored() {
    // Rule: [STDIO-019].
    let (client, mut pair) = connect(&host(Revision::V2025_11_25));
    client.set_log_level(LoggingLevel::Error).unwrap();
    pair.run_until_idle();
    crash(&mut pair);
    pair.transcript.clear();
    respawn(&mut pair);
    pair.run(client.opened()).unwrap();
    pair.run(ping(&client)).unwrap();
    assert_eq!(pair.transcript.count("logging/setLevel"), 1, "{}", pair.transcript);
}

#[test]
fn a_process_that_ends_while_the_connection_is_opened_again_can_be_replaced() {
    // Rule: [STDIO-019].
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let (client, mut pair) = connect(&host(revision));
        crash(&mut pair);
        // The second process ends before it answers.
        let now = pair.now();
        pair.transport.client.as_mut().unwrap().resume(now);
        let waiting = pair.start(ping(&client));
        crash(&mut pair);
        respawn(&mut pair);
        assert_eq!(text(&pair.run(waiting).unwrap()), "pong", "{revision}");
    }
}

#[test]
fn the_connection_closes_if_the_adapter_gives_up() {
    // Rule: [STDIO-019].
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let (client, mut pair) = connect(&host(revision));
        let mut subscription = client.subscribe(filter());
        pair.run(subscription.honoured()).unwrap();
        crash(&mut pair);
        let waiting = pair.start(ping(&client));
        let now = pair.now();
        pair.transport.client.as_mut().unwrap().handle_eof(now);
        let closed = pair.run(waiting);
        assert!(matches!(closed, Err(ClientError::Closed(CloseReason::EndOfInput))), "{closed:?}");
        let ended = pair.run(subscription.next());
        let is_lost = matches!(ended, Err(ClientError::Failed(Failure::ConnectionLost)));
        assert!(is_lost, "{ended:?}");
        assert_eq!(client.close_reason(), Some(CloseReason::EndOfInput));
        assert!(!pair.transport.client.as_mut().unwrap().restart(now));
    }
}

#[test]
fn the_application_can_close_a_connection_that_waits_for_a_process() {
    let (client, mut pair) = connect(&host(Revision::V2026_07_28));
    crash(&mut pair);
    let waiting = pair.start(ping(&client));
    client.close();
    let closed = pair.run(waiting);
    assert!(matches!(closed, Err(ClientError::Closed(CloseReason::Local))), "{closed:?}");
    assert!(pair.transport.client.as_ref().unwrap().is_drained());
}

#[test]
fn calls_that_wait_for_a_process_are_bounded_and_their_timeouts_begin_later() {
    let mut limits = Limits::default();
    limits.commands_max = 2;
    let (client, mut pair) = connect(&host(Revision::V2026_07_28).limits(limits));
    crash(&mut pair);
    let second = Duration::from_secs(1);
    let calls = [0, 1].map(|_| {
        let call = pair.start(ping(&client).timeout(second));
        pair.run_until_idle();
        call
    });
    let third = pair.run(ping(&client));
    assert!(matches!(third, Err(ClientError::TooManyCommands)), "{third:?}");
    pair.advance(10 * second);
    respawn(&mut pair);
    for call in calls {
        assert_eq!(text(&pair.run(call).unwrap()), "pong");
    }
}

#[test]
fn a_question_of_the_ended_process_is_withdrawn() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Confirmation {
        #[allow(dead_code, reason = "only its schema is used")]
        sure: bool,
    }
    for revision in crate::ASKING {
        let (gate, dropped) = (Gate::default(), Arc::new(Mutex::new(())));
        let held = Arc::clone(&dropped);
        let host = host(revision).on_elicit(async move |_: HostRequest<ElicitParams>| {
            let _held = Arc::clone(&held);
            gate.passed().await;
            Ok(mcp_sansio::protocol::ElicitResult::decline())
        });
        let (client, mut pair) = connect(&host);
        let asking = Server::new("s", "1").tool("ask", "", async |call: Call<NoArguments>| {
            match call.input::<Confirmation>("sure")? {
                None => call.require_input("sure", Elicit::form::<Confirmation>("?")).into_result(),
                Some(_) => Ok("answered"),
            }
        });
        crash(&mut pair);
        pair.transport.server = Some(asking.endpoint(9).unwrap());
        let now = pair.now();
        pair.transport.client.as_mut().unwrap().resume(now);
        let before = Arc::strong_count(&dropped);
        let call = pair.start(client.call_tool("ask", &NoArguments {}));
        pair.run_until_idle();
        assert!(Arc::strong_count(&dropped) > before, "{revision}: {}", pair.transcript);
        crash(&mut pair);
        let lost = pair.run(call);
        assert!(matches!(lost, Err(ClientError::Failed(Failure::ConnectionLost))), "{lost:?}");
        assert_eq!(Arc::strong_count(&dropped), before, "{revision}: the handler is dropped");
        respawn(&mut pair);
        assert_eq!(text(&pair.run(ping(&client)).unwrap()), "pong");
    }
}

#[test]
fn without_the_option_the_end_of_the_stream_ends_the_connection() {
    let (client, mut pair) = mcp_sansio_test::connect(&server(), &host(Revision::V2026_07_28));
    let now = pair.now();
    let endpoint = pair.transport.client.as_mut().unwrap();
    assert!(!endpoint.restart(now));
    endpoint.resume(now);
    endpoint.handle_eof(now);
    pair.run_until_idle();
    assert_eq!(client.close_reason(), Some(CloseReason::EndOfInput));
}

#[test]
fn a_server_of_several_that_is_started_again_keeps_its_place_and_holds_up_no_list() {
    // Rule: [STDIO-019].
    let (client, mut pair) = connect(&host(Revision::V2026_07_28));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let servers = Servers::<Client>::new()
        .seed(1)
        .observe(move |_, state| log.lock().unwrap().push(state.to_string()));
    let mut connections = vec![client.clone()];
    let open = async || connections.pop().ok_or("opened twice");
    let kept = servers.connect("s", open, async |_| std::future::pending().await).unwrap();
    let mut kept = std::pin::pin!(kept);
    assert!(pair.poll(kept.as_mut()).is_none());
    let state = || servers.states().remove(0).1;
    assert!(matches!(state(), ServerState::Connected));
    assert_eq!(pair.run(servers.all_tools()).items.len(), 3);
    for _ in 0..2 {
        crash(&mut pair);
        assert!(client.is_suspended());
        assert!(matches!(state(), ServerState::Restarting), "{}", state());
        assert!(pair.poll(kept.as_mut()).is_none());
        let list = pair.run(servers.all_tools());
        let [ServersError::NotConnected { error: None, .. }] = list.errors.as_slice() else {
            panic!("{:?}", list.errors)
        };
        let waiting = pair.start(servers.call_tool("s_ping", &NoArguments {}).unwrap());
        respawn(&mut pair);
        assert_eq!(text(&pair.run(waiting).unwrap()), "pong");
        assert!(matches!(state(), ServerState::Connected));
        assert_eq!(pair.run(servers.all_tools()).items.len(), 3);
        assert!(pair.poll(kept.as_mut()).is_none());
    }
    let expected = ["connected", "restarting", "connected", "restarting", "connected"];
    assert_eq!(*seen.lock().unwrap(), expected);
    // The policy gives up.
    crash(&mut pair);
    let now = pair.now();
    pair.transport.client.as_mut().unwrap().handle_eof(now);
    assert!(pair.poll(kept.as_mut()).is_none());
    assert!(matches!(state(), ServerState::Waiting { .. }), "{}", state());
}

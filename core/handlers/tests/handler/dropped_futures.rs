//! Futures of a client that are dropped in each of their states: no table keeps an entry of them,
//! and nothing that they started still runs.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use mcp_sansio::Revision;
use mcp_sansio::peer::Limits;
use mcp_sansio::protocol::{
    ElicitParams, ElicitResult, Resource, ResourceContents, SubscriptionFilter, TaskSupport,
    TextResourceContents, Tool,
};
use mcp_sansio_handlers::middleware::{Calls, ClientRequest, MiddlewareResult, Next};
use mcp_sansio_handlers::{
    Call, Client, Elicit, Host, HostRequest, NoArguments, ReadResource, Server,
};
use mcp_sansio_test::{Pair, Transport};

use crate::connect_host;
use crate::task_client::settings;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Sure {
    /// Whether to continue.
    #[allow(dead_code, reason = "the form is never answered")]
    sure: bool,
}

/// A value with a counted reference in each handler and each progress callback that still exists.
type Token = Arc<()>;

/// The most calls that a client may have in flight: a call that stays would soon prevent others.
const CALLS_MAX: usize = 4;

/// How often a future is dropped on the same connection.
const DROPS: usize = 3;

fn server(token: &Token) -> Server {
    let [slow, task, quick] = [(); 3].map(|()| Arc::clone(token));
    let resource = |call: Call<ReadResource>| {
        ResourceContents::from(TextResourceContents::new(&*call.arguments.uri, "A"))
    };
    Server::new("s", "1")
        .tasks(settings())
        .subscriptions()
        .resource(Resource::new("mem://a", "a"), resource)
        .tool("slow", "", move |call: Call<NoArguments>| {
            let running = Arc::clone(&slow);
            async move {
                call.progress(1.0, None, "begun");
                std::future::pending::<()>().await;
                drop(running);
            }
        })
        .tool("asks", "", |call: Call<NoArguments>| {
            call.require_input("sure", Elicit::form::<Sure>("Sure?")).into_result::<()>()
        })
        .tool("task", "", move |call: Call<NoArguments>| {
            let running = Arc::clone(&task);
            async move {
                call.run_as_task();
                call.progress(1.0, None, "begun");
                std::future::pending::<()>().await;
                drop(running);
            }
        })
        .task_support("task", TaskSupport::Optional)
        .tool("quick", "", move |_: Call<NoArguments>| {
            let running = Arc::clone(&quick);
            async move {
                drop(running);
                "done"
            }
        })
        .task_support("quick", TaskSupport::Optional)
}

/// A host whose handler of forms never answers.
fn host(token: &Token, layered: bool) -> Host {
    let mut limits = Limits::DEFAULT;
    limits.calls_in_flight_max = CALLS_MAX;
    let token = Arc::clone(token);
    let host = Host::new("h", "1").limits(limits).on_elicit(move |_: HostRequest<ElicitParams>| {
        let running = Arc::clone(&token);
        async move {
            std::future::pending::<()>().await;
            drop(running);
            ElicitResult::cancel()
        }
    });
    if layered { host.call_middleware(dawdle) } else { host }
}

/// Middleware that holds each result for a while.
async fn dawdle(request: ClientRequest, next: Next<Calls>) -> MiddlewareResult<Calls> {
    let result = next.run(request.clone()).await;
    request.sleep(Duration::from_millis(10)).await;
    result
}

type Dropped = Pin<Box<dyn Future<Output = ()>>>;

/// Starts a future on a connection. `tools` are those of the server.
type Start = fn(&Client, &[Tool], &Token) -> Dropped;

fn tool<'a>(tools: &'a [Tool], name: &str) -> &'a Tool {
    tools.iter().find(|tool| tool.name == name).unwrap()
}

fn call(client: &Client, name: &str, token: &Token) -> Dropped {
    let token = Arc::clone(token);
    let call = client.call_tool(name, &NoArguments {}).on_progress(move |_| drop(token.clone()));
    let future = call.into_future();
    Box::pin(async move { drop(future.await) })
}

fn task(client: &Client, tool: &Tool, token: Option<&Token>) -> Dropped {
    let mut call = client.call_tool_as_task(tool, &NoArguments {});
    if let Some(token) = token.cloned() {
        call = call.on_progress(move |_| drop(token.clone()));
    }
    let future = call.into_future();
    // A task whose handle is dropped keeps running, so this one is cancelled.
    Box::pin(async move {
        if let Ok(task) = future.await {
            drop(task.cancel().await);
        }
    })
}

fn subscription(client: &Client) -> Dropped {
    let filter = SubscriptionFilter::new()
        .tools_list_changed(true)
        .resource_subscriptions(["mem://a".to_owned()]);
    let mut subscription = client.subscribe(filter);
    Box::pin(async move {
        drop(subscription.honoured().await);
        drop(subscription.next().await);
    })
}

const STARTS: [(&str, Start); 9] = [
    ("a call", |client, _, token| call(client, "slow", token)),
    ("a call that ends", |client, _, token| call(client, "quick", token)),
    ("a call that asks", |client, _, token| call(client, "asks", token)),
    ("a call that may be followed", |client, _, token| call(client, "task", token)),
    ("a list", |client, _, _| {
        let client = client.clone();
        Box::pin(async move { drop(client.all_tools().await) })
    }),
    ("a subscription", |client, _, _| subscription(client)),
    ("a task", |client, tools, _| task(client, tool(tools, "task"), None)),
    ("a task with progress", |client, tools, token| task(client, tool(tools, "task"), Some(token))),
    ("a task that ends", |client, tools, token| task(client, tool(tools, "quick"), Some(token))),
];

/// Runs both sides once, and moves the clock if nothing else happens.
fn step(pair: &mut Pair<impl Transport>) {
    if !pair.step() {
        pair.advance(Duration::from_millis(500));
    }
}

/// Drops a future after it was polled before each of the first `polled` steps and not before the
/// `unpolled` steps after those. Returns whether it was ready.
fn drop_after(
    pair: &mut Pair<impl Transport>,
    mut future: Dropped,
    polled: usize,
    unpolled: usize,
) -> bool {
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..polled {
        if future.as_mut().poll(&mut cx).is_ready() {
            return true;
        }
        step(pair);
    }
    (0..unpolled).for_each(|_| step(pair));
    false
}

/// Drops futures of one kind several times in one of their states, and checks for leaks. Returns
/// whether they were ready.
fn check<T: Transport>(
    (name, start): (&str, Start),
    link: impl Fn(&Server, &Token) -> (Client, Pair<T>),
    (polled, unpolled): (usize, usize),
) -> bool {
    let [handlers, asked, callbacks] = [(); 3].map(|()| Token::default());
    let (server, mut ready) = (server(&handlers), false);
    let (client, mut pair) = link(&server, &asked);
    let tools = pair.run(client.all_tools()).unwrap();
    let tokens = [&handlers, &asked, &callbacks];
    let before = tokens.map(Arc::strong_count);
    for drops in 1..=DROPS {
        let future = start(&client, &tools, &callbacks);
        ready = drop_after(&mut pair, future, polled, unpolled);
        pair.advance(Duration::from_secs(3));
        let state = format!("{name}, {drops} times after {polled} polls and {unpolled} steps");
        assert_eq!(
            tokens.map(Arc::strong_count),
            before,
            "handlers of the server and of the host, and callbacks of {state}:\n{}",
            pair.transcript
        );
        let listed = pair.run(client.all_tools());
        assert!(listed.is_ok(), "{state}: {listed:?}\n{}", pair.transcript);
    }
    ready
}

fn check_all_states<T: Transport>(
    revision: Revision,
    link: impl Fn(&Server, &Token) -> (Client, Pair<T>) + Copy,
) {
    for start in STARTS {
        if start.0.starts_with("a task") && revision != Revision::V2025_11_25 {
            continue;
        }
        for unpolled in [0, 1, 3] {
            (0..10).any(|polled| check(start, link, (polled, unpolled)));
        }
    }
}

/// Checks all states over a byte stream.
fn check_streams(revision: Revision, layered: bool, follows: bool) {
    check_all_states(revision, |server, asked| {
        let host = host(asked, layered);
        connect_host(server, if follows { host.follow_tasks() } else { host }, revision)
    });
}

#[test]
fn a_dropped_future_leaves_nothing_behind() {
    for revision in [Revision::V2025_11_25, Revision::LATEST] {
        check_streams(revision, false, false);
    }
}

#[test]
fn a_dropped_future_inside_of_middleware_leaves_nothing_behind() {
    for revision in [Revision::V2025_11_25, Revision::LATEST] {
        check_streams(revision, true, false);
    }
}

#[test]
fn a_dropped_call_that_is_followed_leaves_nothing_behind() {
    // Rule: [TASK-034].
    for layered in [false, true] {
        check_streams(Revision::LATEST, layered, true);
    }
}

#[cfg(feature = "http")]
mod over_http {
    use mcp_sansio::Revisions;

    use super::*;

    fn check_exchanges(revision: Revision, layered: bool, follows: bool) {
        check_all_states(revision, |server, asked| {
            let host = host(asked, layered).revisions(Revisions::only(revision));
            let host = if follows { host.follow_tasks() } else { host };
            mcp_sansio_test::connect_http(server, &host, None)
        });
    }

    #[test]
    fn a_future_that_is_dropped_over_http_leaves_nothing_behind() {
        for revision in [Revision::V2025_11_25, Revision::LATEST] {
            check_exchanges(revision, false, false);
        }
    }

    #[test]
    fn a_future_that_is_dropped_over_http_inside_of_middleware_leaves_nothing_behind() {
        for revision in [Revision::V2025_11_25, Revision::LATEST] {
            check_exchanges(revision, true, false);
        }
    }

    #[test]
    fn a_call_that_is_followed_and_dropped_over_http_leaves_nothing_behind() {
        // Rule: [TASK-034].
        for layered in [false, true] {
            check_exchanges(Revision::LATEST, layered, true);
        }
    }
}

mod contexts {
    use mcp_sansio::peer::{CallContext, Observation, Operation, OperationEnd, OperationObserver};
    use mcp_sansio_test::{Script, Stream};

    use super::*;

    #[derive(Debug)]
    struct Watches(Token);

    #[derive(Debug)]
    struct Seen;

    impl Observation for Seen {
        fn end(&self, _: &OperationEnd<'_>) {}
    }

    impl OperationObserver for Watches {
        fn begin(&self, _: &Operation<'_>) -> Option<Arc<dyn Observation>> {
            Some(Arc::new(Seen))
        }

        fn call_context(&self) -> Option<CallContext> {
            Some(CallContext::new(self.0.clone()))
        }
    }

    #[test]
    fn the_context_of_a_call_lives_no_longer_than_the_call() {
        let results = [
            (Revision::V2025_11_25, r#"{"content":[]}"#),
            (Revision::V2025_11_25, r#"{"content":[],"resultType":"input_required"}"#),
            (Revision::LATEST, r#"{"resultType":"input_required"}"#),
        ];
        for (revision, result) in results {
            let mut script = Script::server(revision);
            for _ in 0..20 {
                script = script.expect(r#"{"method":"tools/call"}"#).reply(result);
            }
            let contexts = Token::default();
            let host = Host::new("h", "1")
                .revisions(mcp_sansio::Revisions::only(revision))
                .observe_operations(Watches(Arc::clone(&contexts)));
            let (client, endpoint) = host.connect(42, mcp_sansio::Instant::ZERO);
            let mut pair = Pair::new(Stream::new(script, endpoint));
            pair.run(client.opened()).unwrap();
            for _ in 0..20 {
                drop(pair.run(client.call_tool("t", &NoArguments {})));
            }
            // One is here, one in the observer, and one in a call that is kept for reuse.
            assert!(Arc::strong_count(&contexts) <= 3, "{result}");
        }
    }
}

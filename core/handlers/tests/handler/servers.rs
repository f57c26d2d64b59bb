//! Several servers as one, with connections that end and are opened again.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::{Future, pending, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use mcp_sansio::protocol::{PromptMessage, Resource, SubscriptionFilter, TextResourceContents};
use mcp_sansio::{Backoff, Method};
use mcp_sansio_handlers::{
    Call, Client, ClientError, Host, NoArguments, ReadResource, Server, ServerConnection,
    ServerState, Servers, ServersConfig, ServersError,
};
use mcp_sansio_test::StreamPair;

use crate::guarded::CountingWaker;
use crate::text;

type Task = Pin<Box<dyn Future<Output = ()>>>;

/// Servers that can be started and stopped, the tasks that keep them connected, and their clock.
#[derive(Clone, Default)]
struct World {
    now: Rc<Cell<Duration>>,
    /// The connection of each server that runs.
    pairs: Rc<RefCell<BTreeMap<&'static str, StreamPair>>>,
    /// The servers that cannot be started.
    broken: Rc<RefCell<Vec<&'static str>>>,
    /// When a connection was opened or could not be, by server.
    attempts: Rc<RefCell<Vec<(&'static str, Duration)>>>,
    tasks: Rc<RefCell<BTreeMap<&'static str, Task>>>,
}

fn server(name: &'static str) -> Server {
    Server::new(name, "1")
        .tool("name", "", move |_: Call<NoArguments>| name)
        .prompt("hello", "", move |_: Call<NoArguments>| PromptMessage::user(name))
        .subscriptions()
        .resource(Resource::new("mem://a", "a"), move |call: Call<ReadResource>| {
            TextResourceContents::new(&*call.arguments.uri, name)
        })
}

impl World {
    /// Adds a server, and connects it.
    fn add(&self, servers: &Servers, name: &'static str) -> Result<(), ServersError> {
        let (world, clock) = (self.clone(), self.now.clone());
        let connect = async move || {
            world.attempts.borrow_mut().push((name, world.now.get()));
            if world.broken.borrow().contains(&name) {
                return Err("it does not start");
            }
            let (client, pair) = mcp_sansio_test::connect(&server(name), &Host::new("h", "1"));
            world.pairs.borrow_mut().insert(name, pair);
            Ok(client)
        };
        let sleep = async move |delay| {
            let until = clock.get() + delay;
            poll_fn(|_| if clock.get() < until { Poll::Pending } else { Poll::Ready(()) }).await;
        };
        let task = servers.connect(name, connect, sleep)?;
        self.tasks.borrow_mut().insert(name, Box::pin(task));
        self.settle();
        Ok(())
    }

    /// Runs everything until there is no more progress.
    fn settle(&self) {
        for _ in 0..20 {
            let mut cx = Context::from_waker(Waker::noop());
            let mut tasks = core::mem::take(&mut *self.tasks.borrow_mut());
            tasks.retain(|_, task| task.as_mut().poll(&mut cx).is_pending());
            self.tasks.borrow_mut().extend(tasks);
            self.pairs.borrow_mut().values_mut().for_each(StreamPair::run_until_idle);
        }
    }

    fn run<F: IntoFuture>(&self, future: F) -> F::Output {
        let mut future = Box::pin(future.into_future());
        for _ in 0..20 {
            let polled = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            if let Poll::Ready(output) = polled {
                return output;
            }
            self.pairs.borrow_mut().values_mut().for_each(StreamPair::run_until_idle);
        }
        panic!("the future is never ready");
    }

    /// Stops a server.
    fn kill(&self, name: &str) {
        self.pairs.borrow_mut().get_mut(name).unwrap().cut();
        self.settle();
    }

    fn advance(&self, time: Duration) {
        for _ in 0..time.as_millis() / 100 {
            self.now.set(self.now.get() + Duration::from_millis(100));
            self.settle();
        }
    }

    /// Returns the times between the attempts to connect a server.
    fn delays(&self, name: &str) -> Vec<Duration> {
        let attempts = self.attempts.borrow();
        let times: Vec<_> = attempts.iter().filter(|it| it.0 == name).map(|it| it.1).collect();
        times.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }

    fn tools(&self, servers: &Servers) -> Vec<String> {
        self.run(servers.all_tools()).items.into_iter().map(|tool| tool.item.name).collect()
    }
}

const SECOND: Duration = Duration::from_secs(1);

fn three() -> (World, Servers) {
    let (world, servers) = (World::default(), Servers::new().seed(7));
    for name in ["a", "b", "c"] {
        world.add(&servers, name).unwrap();
    }
    (world, servers)
}

fn error_of(state: &ServerState) -> Option<String> {
    match state {
        ServerState::Waiting { error, .. } | ServerState::Ended { error } => {
            Some(error.to_string())
        }
        _ => None,
    }
}

#[test]
fn an_error_that_main_returns_reads_as_its_message() {
    let servers: Servers = Servers::new().seed(7);
    let error = servers.resolve("a_b").unwrap_err();
    assert_eq!(format!("{error:?}"), error.to_string());
    assert_eq!(error.to_string(), r#"no server offers "a_b""#);
}

#[test]
fn items_have_the_name_of_their_server_and_calls_go_to_it() {
    // Rule: [TOOL-024].
    let (world, servers) = three();
    assert_eq!(world.tools(&servers), ["a_name", "b_name", "c_name"]);
    let prompts = world.run(servers.all_prompts());
    assert_eq!(prompts.items[1].item.name, "b_hello");
    assert_eq!(&*prompts.items[1].server, "b");
    for (tool, name) in [("a_name", "a"), ("c_name", "c")] {
        let result = world.run(servers.call_tool(tool, &NoArguments {}).unwrap()).unwrap();
        assert_eq!(text(&result), name);
    }
    let prompt = world.run(servers.get_prompt("b_hello", []).unwrap()).unwrap();
    assert_eq!(prompt.messages[0].content.as_text(), Some("b"));
    // URIs are unchanged: the application names the server.
    let resources = world.run(servers.all_resources());
    assert_eq!((&*resources.items[2].item.name, &*resources.items[2].item.uri), ("c_a", "mem://a"));
    let client = servers.client(&resources.items[2].server).unwrap();
    assert_eq!(world.run(client.read_resource("mem://a")).unwrap().contents.len(), 1);
    // No server has templates, which is no error.
    let templates = world.run(servers.all_resource_templates());
    assert!(templates.items.is_empty() && templates.errors.is_empty(), "{templates:?}");
}

#[test]
fn the_lists_are_complete_once_all_servers_are_ready() {
    let (opened, servers) = (Rc::new(Cell::new(false)), Servers::new().seed(7));
    let open = Rc::clone(&opened);
    let (client, _pair) = mcp_sansio_test::connect(&server("a"), &Host::new("h", "1"));
    let connect = async move || {
        poll_fn(|_| if open.get() { Poll::Ready(()) } else { Poll::Pending }).await;
        Ok::<_, String>(client.clone())
    };
    let mut task = Box::pin(servers.connect("a", connect, async |_| pending().await).unwrap());
    let failing = async || Err::<Client, _>("it does not start");
    let mut other = Box::pin(servers.connect("b", failing, async |_| pending().await).unwrap());

    let (woken, mut ready) =
        (Arc::new(CountingWaker::default()), Box::pin(servers.ready(pending::<()>())));
    let waker = Waker::from(Arc::clone(&woken));
    let mut cx = Context::from_waker(&waker);
    let mut dropped = Box::pin(servers.ready(pending::<()>()));
    assert!(dropped.as_mut().poll(&mut cx).is_pending());
    drop(dropped);
    assert!(ready.as_mut().poll(&mut cx).is_pending());
    let error = servers.call_tool("a_name", &NoArguments {}).err().unwrap();
    assert_eq!(error.to_string(), "the server \"a\" is not connected yet");
    // The attempt for one server has failed, the other still connects.
    assert!(other.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert!(ready.as_mut().poll(&mut cx).is_pending());
    assert_eq!(woken.0.load(Ordering::Relaxed), 0);
    opened.set(true);
    assert!(task.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert_eq!(woken.0.load(Ordering::Relaxed), 1);
    assert!(ready.as_mut().poll(&mut cx).is_ready());
    // A server that is removed is not waited for.
    let never = async || pending::<Result<Client, String>>().await;
    let third = servers.connect("c", never, async |_| pending().await).unwrap();
    let mut ready = Box::pin(servers.ready(pending::<()>()));
    assert!(ready.as_mut().poll(&mut cx).is_pending());
    drop(third);
    assert_eq!(woken.0.load(Ordering::Relaxed), 2);
    assert!(ready.as_mut().poll(&mut cx).is_ready());
}

#[test]
fn an_unknown_name_is_refused_before_anything_is_sent() {
    let (_, servers) = three();
    for name in ["", "name", "d_name", "a", "aname", "_name"] {
        let error = servers.call_tool(name, &NoArguments {}).unwrap_err();
        assert!(matches!(&error, ServersError::UnknownName { name: it } if it == name), "{error}");
    }
    assert!(matches!(servers.client("a_"), Err(ServersError::UnknownName { .. })));
}

#[test]
fn names_that_could_collide_are_refused() {
    let world = World::default();
    let servers = Servers::new().seed(7);
    world.add(&servers, "db").unwrap();
    let error = world.add(&servers, "db").unwrap_err();
    assert!(matches!(&error, ServersError::NameInUse { name } if name == "db"), "{error}");
    // `db_main` with `read` and `db` with `main_read` would both be `db_main_read`.
    let error = world.add(&servers, "db_main").unwrap_err();
    assert!(
        matches!(&error, ServersError::AmbiguousName { other, .. } if other == "db"),
        "{error}"
    );
    let error = world.add(&servers, "").map(drop);
    assert!(error.is_ok(), "`_` begins no other name");
    world.add(&servers, "dbs").unwrap();
    assert_eq!(world.tools(&servers), ["_name", "db_name", "dbs_name"]);
    // The other way round, and with a separator that avoids it.
    let servers = Servers::new().seed(7);
    world.add(&servers, "db_main").unwrap();
    assert!(matches!(world.add(&servers, "db"), Err(ServersError::AmbiguousName { .. })));
    let servers = Servers::new().seed(7).separator(".");
    world.add(&servers, "db").unwrap();
    world.add(&servers, "db_main").unwrap();
    assert_eq!(world.tools(&servers), ["db.name", "db_main.name"]);
}

#[test]
fn a_server_with_an_ambiguous_name_ends_with_the_remedy_and_affects_no_other() {
    let (world, reported) = (World::default(), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&reported);
    let servers = Servers::new().seed(7).observe(move |name, state| {
        if let ("db", ServerState::Ended { .. }) = (name, state) {
            counted.fetch_add(1, Ordering::Relaxed);
        }
    });
    world.add(&servers, "db_main").unwrap();
    world.add(&servers, "db").unwrap_err();
    assert_eq!(reported.load(Ordering::Relaxed), 1);
    world.add(&servers, "db_test").unwrap();
    assert_eq!(world.tools(&servers), ["db_main_name", "db_test_name"]);
    let [error] = &*world.run(servers.all_tools()).errors else { panic!("not one error") };
    let expected = r#"the server "db" is not connected: a tool of "db" could have the same name as a tool of "db_main"; rename one of the servers, or set another `Servers::separator`"#;
    assert_eq!(error.to_string(), expected);
    let result = world.run(servers.call_tool("db_main_name", &NoArguments {}).unwrap()).unwrap();
    assert_eq!(text(&result), "db_main");
    // It can be added once there is no such name.
    for name in ["db_main", "db_test"] {
        assert!(servers.remove(name).is_some());
    }
    world.add(&servers, "db").unwrap();
    assert_eq!(world.tools(&servers), ["db_name"]);
}

#[test]
fn a_failed_call_names_the_server_and_the_tool_as_the_host_called_them() {
    let (world, servers) = three();
    let error = world.run(servers.call_tool("b_nothing", &NoArguments {}).unwrap()).unwrap_err();
    assert_eq!(
        error.to_string(),
        r#""b_nothing" of the server "b": unknown tool: nothing (-32602)"#
    );
    assert_eq!(error.as_refusal().unwrap().message, "unknown tool: nothing");
    assert_eq!((error.executed(), error.retry_after()), (Some(false), None));
    let own = world.run(servers.client("b").unwrap().call_tool("nothing", &NoArguments {}));
    assert_eq!(own.unwrap_err().to_string(), "unknown tool: nothing (-32602)");
    let error = world.run(servers.get_prompt("c_nothing", []).unwrap()).unwrap_err();
    assert!(error.to_string().starts_with(r#""c_nothing" of the server "c": "#), "{error}");
    // A call after it, which may use the same allocation, is named by its own name or not at all.
    let result = world.run(servers.client("b").unwrap().call_tool("nothing", &NoArguments {}));
    assert!(matches!(result, Err(ClientError::Failed(_))), "{result:?}");
}

#[test]
fn one_connection_is_read_removed_and_opened_again_by_its_name() {
    let (world, servers) = three();
    let is_open = servers.with_connection("b", |client| client.session().is_some());
    assert!(matches!(is_open, Ok(true)), "{is_open:?}");
    let removed = servers.remove("b").unwrap();
    assert!(servers.remove("b").is_none());
    assert!(matches!(
        servers.with_connection("b", |_| ()),
        Err(ServersError::UnknownName { name }) if name == "b"
    ));
    assert_eq!(world.tools(&servers), ["a_name", "c_name"]);
    removed.close();
    world.settle();
    assert!(!world.tasks.borrow().contains_key("b"), "its future has ended");
    world.add(&servers, "b").unwrap();
    assert_eq!(world.tools(&servers), ["a_name", "b_name", "c_name"]);
}

#[test]
fn removing_a_server_drops_its_attempt_to_connect_and_ends_its_future() {
    for is_closed in [false, true] {
        let (servers, attempt) = (Servers::<Client>::new().seed(7), Arc::new(()));
        let process = Arc::clone(&attempt);
        let connect = async move || {
            let _process = Arc::clone(&process);
            pending::<Result<Client, String>>().await
        };
        let mut task = Box::pin(servers.connect("a", connect, async |_| ()).unwrap());
        let woken = Arc::new(CountingWaker::default());
        let waker = Waker::from(Arc::clone(&woken));
        assert!(task.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        assert_eq!(Arc::strong_count(&attempt), 3);
        if is_closed {
            assert!(servers.close().is_empty());
        } else {
            assert!(servers.remove("a").is_none());
        }
        assert_eq!(woken.0.load(Ordering::Relaxed), 1);
        assert!(task.as_mut().poll(&mut Context::from_waker(&waker)).is_ready());
        assert_eq!(Arc::strong_count(&attempt), 1);
    }
}

#[test]
fn the_task_of_a_server_that_has_ended_is_not_kept() {
    let mut once = Backoff::DEFAULT;
    once.attempts_max = 0;
    let servers = Servers::<Client>::new().seed(7).backoff(once);
    let fails = Cell::new(false);
    let connect = async || {
        poll_fn(|_| if fails.get() { Poll::Ready(()) } else { Poll::Pending }).await;
        Err::<Client, _>("it does not start")
    };
    let mut task = Box::pin(servers.connect("a", connect, async |_| pending().await).unwrap());
    let woken = Arc::new(CountingWaker::default());
    let waker = Waker::from(Arc::clone(&woken));
    assert!(task.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    fails.set(true);
    assert!(task.as_mut().poll(&mut Context::from_waker(&waker)).is_ready());
    drop(waker);
    assert!(matches!(&*servers.states(), [(_, ServerState::Ended { .. })]));
    assert_eq!(Arc::strong_count(&woken), 1);
}

#[test]
fn a_server_that_ends_is_missing_until_it_is_started_again() {
    // Rule: [STDIO-019].
    let (world, servers) = three();
    world.kill("b");
    let tools = world.run(servers.all_tools());
    let names: Vec<_> = tools.items.iter().map(|tool| &*tool.item.name).collect();
    assert_eq!(names, ["a_name", "c_name"]);
    let [ServersError::NotConnected { server, error: Some(error), .. }] = &*tools.errors else {
        panic!("{:?}", tools.errors)
    };
    assert_eq!((&**server, &*error.to_string()), ("b", "the other side closed the connection"));
    let error = servers.call_tool("b_name", &NoArguments {}).unwrap_err();
    let expected = r#"the server "b" is not connected: the other side closed the connection"#;
    assert_eq!(error.to_string(), expected);
    let result = world.run(servers.call_tool("a_name", &NoArguments {}).unwrap()).unwrap();
    assert_eq!(text(&result), "a");
    world.advance(SECOND);
    assert_eq!(world.tools(&servers), ["a_name", "b_name", "c_name"]);
    let result = world.run(servers.call_tool("b_name", &NoArguments {}).unwrap()).unwrap();
    assert_eq!(text(&result), "b");
}

#[test]
fn a_list_that_cannot_be_read_is_reported() {
    let (world, servers) = three();
    // The task of the server has not noticed yet.
    world.pairs.borrow_mut().get_mut("a").unwrap().cut();
    let tools = world.run(servers.all_tools());
    assert_eq!(tools.items.len(), 2);
    let [ServersError::List { server, error }] = &*tools.errors else {
        panic!("{:?}", tools.errors)
    };
    assert!(server == "a" && matches!(**error, ClientError::Closed(_)), "{error}");
}

#[test]
fn a_server_that_cannot_be_started_is_given_up_after_some_attempts() {
    let mut backoff = Backoff::DEFAULT;
    backoff.attempts_max = 3;
    let (world, servers) = (World::default(), Servers::new().seed(7).backoff(backoff));
    world.broken.borrow_mut().push("a");
    world.add(&servers, "a").unwrap();
    world.add(&servers, "b").unwrap();
    assert!(matches!(&servers.states()[0].1, ServerState::Waiting { .. }));
    world.advance(10 * SECOND);
    let delays = world.delays("a");
    assert_eq!(delays.len(), 3);
    for (delay, interval) in delays.into_iter().zip([1, 2, 4]) {
        let interval = interval * SECOND;
        // The clock of this test moves in steps.
        assert!(delay >= interval / 2 && delay <= interval + SECOND / 10, "{delay:?}");
    }
    let states = servers.states();
    assert!(matches!(&states[0].1, ServerState::Ended { .. }));
    assert_eq!(error_of(&states[0].1).unwrap(), "it does not start");
    assert_eq!(world.tools(&servers), ["b_name"]);
    // The application may add it again.
    world.broken.borrow_mut().clear();
    world.add(&servers, "a").unwrap();
    assert_eq!(world.tools(&servers), ["a_name", "b_name"]);
}

#[test]
fn an_attempt_counts_until_its_connection_has_lasted() {
    let mut backoff = Backoff::DEFAULT;
    (backoff.ceiling, backoff.attempts_max) = (5 * SECOND, 2);
    let (world, servers) = (World::default(), Servers::new().seed(7).backoff(backoff));
    world.add(&servers, "a").unwrap();
    for _ in 0..5 {
        world.kill("a");
        world.advance(SECOND);
        assert!(matches!(servers.states()[0].1, ServerState::Connected));
        world.advance(5 * SECOND);
    }
    for _ in 0..2 {
        world.kill("a");
        world.advance(3 * SECOND);
        assert!(matches!(servers.states()[0].1, ServerState::Connected));
    }
    world.kill("a");
    assert!(matches!(servers.states()[0].1, ServerState::Ended { .. }));
}

#[test]
fn ready_waits_no_longer_than_its_limit_and_names_the_servers_that_are_not_connected() {
    let (world, servers) = (World::default(), Servers::new().seed(7));
    world.broken.borrow_mut().push("b");
    for name in ["a", "b"] {
        world.add(&servers, name).unwrap();
    }
    let silent = async || pending::<Result<Client, String>>().await;
    let mut silent = Box::pin(servers.connect("c", silent, async |_| pending().await).unwrap());
    assert!(silent.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    let is_late = Rc::new(Cell::new(false));
    let late = Rc::clone(&is_late);
    let limit = poll_fn(move |_| if late.get() { Poll::Ready(()) } else { Poll::Pending });
    let mut ready = Box::pin(servers.ready(limit));
    assert!(ready.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    is_late.set(true);
    let errors = world.run(ready).into_iter().map(|error| error.to_string());
    let expected = [
        "the server \"b\" is not connected: it does not start",
        "the server \"c\" is not connected yet",
    ];
    assert_eq!(errors.collect::<Vec<_>>(), expected);
    assert_eq!(world.tools(&servers), ["a_name"]);
}

#[test]
fn a_silent_server_is_waited_for_no_longer_than_the_limit_and_its_error_describes_it() {
    let world = World::default();
    let servers = Servers::new().seed(7).startup_limit(3 * SECOND);
    world.add(&servers, "a").unwrap();
    let (clock, attempts) = (world.now.clone(), Rc::new(Cell::new(0)));
    let counted = Rc::clone(&attempts);
    let silent = async move || {
        counted.set(counted.get() + 1);
        pending::<Result<Client, String>>().await
    };
    let sleep = async move |delay| {
        let until = clock.get() + delay;
        poll_fn(|_| if clock.get() < until { Poll::Pending } else { Poll::Ready(()) }).await;
    };
    let task = servers.connect("b", silent, sleep).unwrap();
    world.tasks.borrow_mut().insert("b", Box::pin(task));
    servers.describe("b", || "`b-server`: out of coffee".into());
    servers.describe("nobody", || unreachable!());
    world.settle();
    // Nothing but the limit ends the wait.
    let mut ready = Box::pin(servers.ready(pending::<()>()));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(ready.as_mut().poll(&mut cx).is_pending());
    let early = servers.client("b").unwrap_err();
    assert_eq!(
        early.to_string(),
        "the server \"b\" is not connected yet: `b-server`: out of coffee"
    );
    assert_eq!(early.server(), Some("b"));
    world.advance(2 * SECOND);
    assert!(ready.as_mut().poll(&mut cx).is_pending());
    world.advance(SECOND);
    let Poll::Ready(errors) = ready.as_mut().poll(&mut cx) else { panic!("it still waits") };
    let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
    let expected = "the server \"b\" is not connected: it was not open within 3s: `b-server`: out \
                    of coffee";
    assert_eq!(errors, [expected]);
    assert_eq!(world.tools(&servers), ["a_name"]);
    // It is tried again.
    assert_eq!(attempts.get(), 1);
    world.advance(3 * SECOND);
    assert_eq!(attempts.get(), 2);
}

#[test]
fn errors_name_the_server_they_are_about() {
    let (world, servers) = three();
    assert_eq!(world.add(&servers, "a").unwrap_err().server(), Some("a"));
    assert_eq!(world.add(&servers, "a_b").unwrap_err().server(), Some("a_b"));
    assert_eq!(servers.resolve("d_name").unwrap_err().server(), None);
    world.kill("b");
    assert_eq!(servers.resolve("b_name").unwrap_err().server(), Some("b"));
}

/// A connection for which [`Forever`] is permanent.
struct Picky(Client);

impl ServerConnection for Picky {
    fn client(&self) -> &Client {
        &self.0
    }

    fn is_permanent(error: &(dyn std::error::Error + 'static)) -> bool {
        error.is::<Forever>()
    }
}

#[derive(Debug, thiserror::Error)]
#[error("there is no such program")]
struct Forever;

#[derive(Debug, thiserror::Error)]
#[error("the connection failed")]
struct Outer(#[source] Forever);

#[test]
fn a_server_is_given_up_at_once_after_a_permanent_error() {
    let servers = Servers::<Picky>::new().seed(7);
    let attempts = Cell::new(0);
    let failing = async || {
        attempts.set(attempts.get() + 1);
        Err(Outer(Forever))
    };
    let mut task = Box::pin(servers.connect("a", failing, async |_| ()).unwrap());
    let polled = task.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(polled.is_ready() && attempts.get() == 1, "{}", attempts.get());
    assert_eq!(error_of(&servers.states()[0].1).unwrap(), "the connection failed");
    // Whatever the connection, a malformed entry of a configuration stays malformed.
    let malformed = async || {
        let config = ServersConfig::parse(r#"{"mcpServers":{"b":{}}}"#, |_| None).unwrap();
        Err::<Client, _>(config.servers["b"].clone().unwrap_err())
    };
    let servers = Servers::<Client>::new().seed(7);
    let mut task = Box::pin(servers.connect("b", malformed, async |_| ()).unwrap());
    assert!(task.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
    assert!(matches!(&servers.states()[0].1, ServerState::Ended { .. }));
}

#[test]
fn a_connection_that_the_application_closes_is_not_opened_again() {
    let (world, servers) = three();
    servers.client("a").unwrap().close();
    world.settle();
    world.advance(10 * SECOND);
    assert!(matches!(servers.states()[0].1, ServerState::Ended { .. }));
    assert_eq!(world.attempts.borrow().len(), 3);
}

#[test]
fn a_server_is_removed_with_its_future() {
    let (world, servers) = three();
    let client = servers.client("b").unwrap();
    drop(world.tasks.borrow_mut().remove("b"));
    assert_eq!(world.tools(&servers), ["a_name", "c_name"]);
    assert!(matches!(servers.client("b"), Err(ServersError::UnknownName { .. })));
    assert!(client.close_reason().is_none(), "this handle keeps it open");
    drop(client);
    world.settle();
    world.add(&servers, "b").unwrap();
    assert_eq!(world.tools(&servers).len(), 3);
}

#[test]
fn closing_returns_the_connections_and_ends_the_futures() {
    let (world, servers) = three();
    world.kill("b");
    let connections = servers.close();
    let names: Vec<_> = connections.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["a", "c"]);
    assert!(world.tools(&servers).is_empty());
    // The same names may be used again at once; the old futures do not touch the new servers.
    let old = core::mem::take(&mut *world.tasks.borrow_mut());
    world.add(&servers, "a").unwrap();
    world.tasks.borrow_mut().insert(
        "old",
        Box::pin(async move {
            for (_, task) in old {
                task.await
            }
        }),
    );
    connections.into_iter().for_each(|(_, client)| client.close());
    world.settle();
    world.advance(10 * SECOND);
    assert_eq!(world.tasks.borrow().keys().collect::<Vec<_>>(), [&"a"]);
    assert_eq!(world.tools(&servers), ["a_name"]);
}

#[test]
fn an_observer_sees_each_state() {
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let servers: Servers = Servers::new().seed(7).observe(move |name, state| {
        let kind = match state {
            ServerState::Connecting => "connecting",
            ServerState::Connected => "connected",
            ServerState::Waiting { .. } => "waiting",
            _ => "ended",
        };
        log.lock().unwrap().push(format!("{name} {kind}: {state}"));
    });
    let world = World::default();
    world.add(&servers, "a").unwrap();
    world.kill("a");
    world.advance(SECOND);
    servers.client("a").unwrap().close();
    world.settle();
    let mut seen = seen.lock().unwrap();
    let waiting = "a waiting: the other side closed the connection; next attempt in ";
    let delay = seen[1].strip_prefix(waiting).and_then(|it| it.strip_suffix("ms"));
    assert!(delay.is_some(), "{seen:?}");
    seen.remove(1);
    let expected = [
        "a connected: connected",
        "a connecting: connecting",
        "a connected: connected",
        "a ended: closed by this side",
    ];
    assert_eq!(*seen, expected);
}

/// The future of a server may be a task of a runtime with several threads.
#[test]
fn the_future_of_a_server_can_be_sent_to_another_thread() {
    fn assert_send(_: impl Future + Send + 'static) {}
    let servers = Servers::<Client>::new().seed(7);
    let host = Host::new("h", "1");
    let connect = async move || {
        let (client, _) = mcp_sansio_test::connect(&server("a"), &host);
        Ok::<_, ClientError>(client)
    };
    assert_send(servers.connect("a", connect, async |_| ()).unwrap());
}

#[test]
fn a_subscription_ends_with_its_connection_and_can_be_made_again_on_the_next() {
    let (world, servers) = (World::default(), Servers::new().seed(7));
    world.add(&servers, "a").unwrap();
    let filter = || SubscriptionFilter::default().resource_subscriptions(["mem://a".into()]);
    let mut lost = servers.client("a").unwrap().subscribe(filter());
    world.run(lost.honoured()).unwrap();
    let mut pending = Box::pin(lost.next());
    let poll = |next: Pin<&mut _>| Future::poll(next, &mut Context::from_waker(Waker::noop()));
    assert!(poll(pending.as_mut()).is_pending());
    world.kill("a");
    let Poll::Ready(ended) = poll(pending.as_mut()) else { panic!("it waits for ever") };
    assert!(!matches!(ended, Ok(Some(_))), "{ended:?}");
    drop(pending);
    world.advance(2 * SECOND);
    assert!(!matches!(world.run(lost.next()), Ok(Some(_))), "nor does it continue");
    let mut again = servers.client("a").unwrap().subscribe(filter());
    world.run(again.honoured()).unwrap();
    let remote = world.pairs.borrow()["a"].transport.server.as_ref().unwrap().handle();
    remote.resource_updated("mem://a").unwrap();
    let update = world.run(again.next()).unwrap().unwrap();
    assert_eq!(update.method, Method::ResourcesUpdated);
}

//! A server on HTTP as several shards, each driven by the test.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use mcp_sansio::http::{EventStore, ExchangeId, HttpServerOptions, RequestHead, ServerTransmit};
use mcp_sansio::jsonrpc::{Json, RawJson};
use mcp_sansio::protocol::{LoggingLevel, Resource, Tool};
use mcp_sansio::{Caller, Instant, Principal};
use mcp_sansio_handlers::endpoint::{HttpServer, HttpServerError, PendingHandler};
use mcp_sansio_handlers::middleware::RateLimit;
use mcp_sansio_handlers::{
    Call, Connections, Elicit, NoArguments, ReadResource, SendError, Server, ServerItem,
};
use serde_json::{Value, json};

use crate::task_client::{Gate, request, settings};
use crate::tasks_http::run;

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// A shard, its exchanges and its driver.
pub(crate) struct Shard {
    pub(crate) server: HttpServer,
    woken: Arc<Woken>,
    running: Vec<PendingHandler>,
    /// The text that was sent for each exchange.
    sent: BTreeMap<ExchangeId, String>,
}

/// A server as several shards, which a test drives one by one.
pub(crate) struct Sharded {
    pub(crate) shards: Vec<Shard>,
    pub(crate) now: Instant,
    last: u64,
}

/// An exchange of a shard.
pub(crate) type Sent = (usize, ExchangeId);

const LISTEN: &str = "subscriptions/listen";

fn options(shards: usize) -> HttpServerOptions {
    let options = HttpServerOptions::new().legacy_sse("/sse", "/messages");
    options.shards(NonZeroUsize::new(shards).unwrap())
}

impl Sharded {
    pub(crate) fn new(server: &Server, shards: usize) -> Self {
        let servers = server.http_shards(options(shards), [7; 32], 7).unwrap();
        assert_eq!(servers.len(), shards);
        let shard = |server| {
            let (woken, running) = (Arc::new(Woken::default()), Vec::new());
            Shard { server, woken, running, sent: BTreeMap::new() }
        };
        let mut sharded =
            Self { shards: servers.into_iter().map(shard).collect(), now: Instant::ZERO, last: 0 };
        for index in 0..shards {
            sharded.drive(index);
        }
        sharded
    }

    /// Drives a shard as its timer task does.
    pub(crate) fn drive(&mut self, index: usize) {
        let Shard { server, woken, running, sent } = &mut self.shards[index];
        woken.0.store(false, Ordering::SeqCst);
        let waker = Waker::from(Arc::clone(woken));
        server.poll_handlers(&mut Context::from_waker(&waker), self.now);
        server.handle_timeout(self.now);
        while let Some(work) = server.poll_call() {
            run(server, running, work, self.now);
        }
        while let Some(exchange) = server.poll_ready() {
            let text = sent.entry(exchange).or_default();
            while let Some(transmit) = server.poll_transmit(exchange, self.now) {
                match transmit {
                    ServerTransmit::Respond(response) => {
                        for (name, value) in response.head.fields() {
                            if name == "mcp-session-id" {
                                *text += &format!("session {value}\n");
                            }
                        }
                        *text += &String::from_utf8(response.body).unwrap();
                        *text += &format!("\nstatus {}\n", response.head.status.0);
                    }
                    ServerTransmit::Chunk(bytes) => *text += std::str::from_utf8(bytes).unwrap(),
                    ServerTransmit::Finish | ServerTransmit::Abort => *text += "end\n",
                    ServerTransmit::Open(_) => {}
                }
            }
        }
    }

    /// Drives the shards that were woken, until none is.
    pub(crate) fn settle(&mut self) {
        while let Some(index) =
            self.shards.iter().position(|shard| shard.woken.0.load(Ordering::SeqCst))
        {
            self.drive(index);
        }
    }

    /// Posts a message to a shard, which alone is driven for it.
    fn send(
        &mut self,
        index: usize,
        fields: &[(&str, &str)],
        body: &str,
        principal: Option<&str>,
    ) -> Sent {
        self.request(index, "POST", fields, body, principal)
    }

    /// Sends a request to a shard, which alone is driven for it.
    pub(crate) fn request(
        &mut self,
        index: usize,
        method: &str,
        fields: &[(&str, &str)],
        body: &str,
        principal: Option<&str>,
    ) -> Sent {
        self.request_at(index, (method, "/mcp"), fields, body, principal)
    }

    /// Sends a request to a path of a shard, which alone is driven for it.
    pub(crate) fn request_at(
        &mut self,
        index: usize,
        (method, path): (&str, &str),
        fields: &[(&str, &str)],
        body: &str,
        principal: Option<&str>,
    ) -> Sent {
        let mut head = RequestHead::new(method, path);
        let all = [
            ("host", "localhost"),
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ];
        for (name, value) in all.iter().chain(fields) {
            head.field(name, value.as_bytes());
        }
        let caller = Caller::from(principal.map(Principal::new));
        let Shard { server, running, .. } = &mut self.shards[index];
        server.admit(&head).unwrap();
        let (exchange, work) = server.handle_request(&head, body.as_bytes(), &caller, self.now);
        if let Some(work) = work {
            run(server, running, work, self.now);
        }
        self.drive(index);
        self.shards[index].server.assert_consistent();
        (index, exchange)
    }

    /// Sends a modern request.
    pub(crate) fn modern_of(
        &mut self,
        index: usize,
        method: &str,
        params: Value,
        principal: Option<&str>,
    ) -> Sent {
        self.last += 1;
        let name = ["name", "uri", "taskId"].iter().find_map(|key| params[key].as_str());
        let name = name.map(str::to_owned);
        let extensions = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
        let body = request(self.last, method, params, &extensions);
        let version = ("mcp-protocol-version", "2026-07-28");
        let mut fields = vec![version, ("mcp-method", method)];
        fields.extend(name.as_deref().map(|name| ("mcp-name", name)));
        self.send(index, &fields, &body, principal)
    }

    fn modern(&mut self, index: usize, method: &str, params: Value) -> Sent {
        self.modern_of(index, method, params, None)
    }

    fn call(&mut self, index: usize, tool: &str) -> Value {
        let sent = self.modern(index, "tools/call", json!({ "name": tool, "arguments": {} }));
        self.messages(sent).remove(0)
    }

    fn tools(&mut self, index: usize) -> Vec<String> {
        let sent = self.modern(index, "tools/list", json!({}));
        let listed = self.messages(sent).remove(0);
        let tools = listed["result"]["tools"].as_array().unwrap();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Returns the messages that an exchange has sent.
    pub(crate) fn messages(&self, (index, exchange): Sent) -> Vec<Value> {
        let text = self.shards[index].sent.get(&exchange).map(String::as_str).unwrap_or_default();
        let lines = text.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
        lines.filter_map(|line| serde_json::from_str(line).ok()).filter(Value::is_object).collect()
    }

    /// Returns the endpoint that a stream of HTTP+SSE has named.
    pub(crate) fn endpoint(&self, (index, exchange): Sent) -> String {
        let text = &self.shards[index].sent[&exchange];
        text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap().to_owned()
    }

    /// Returns the id of the session that an exchange has opened.
    pub(crate) fn session(&self, (index, exchange): Sent) -> String {
        let text = &self.shards[index].sent[&exchange];
        text.lines().find_map(|line| line.strip_prefix("session ")).unwrap().to_owned()
    }

    /// Returns the methods of the notifications that an exchange has sent.
    pub(crate) fn told(&self, sent: Sent) -> Vec<String> {
        let messages = self.messages(sent);
        messages.iter().filter_map(|it| it["method"].as_str().map(str::to_owned)).collect()
    }
}

fn tool(name: &str) -> Tool {
    Tool::new(name, RawJson::parse(r#"{"type":"object"}"#).unwrap())
}

/// A server whose tools change it.
fn changing() -> Server {
    Server::new("s", "1")
        .subscriptions()
        .logging()
        .resource(Resource::new("a://b", "b"), |_: Call<ReadResource>| {
            mcp_sansio::protocol::TextResourceContents::new("a://b", "")
        })
        .tool("add", "", |call: Call<NoArguments>| {
            call.edit_catalog(|catalog| {
                catalog.add_tool(tool("added"), |_: Call<NoArguments>| "added").unwrap();
            })?;
            Ok("")
        })
        .tool("remove", "", |call: Call<NoArguments>| {
            call.edit_catalog(|catalog| drop(catalog.remove_tool("added")))?;
            Ok("")
        })
        .tool("touch", "", |call: Call<NoArguments>| {
            call.resource_updated("a://b")?;
            Ok("")
        })
}

fn listen(sharded: &mut Sharded, index: usize) -> Sent {
    let wanted = json!({ "toolsListChanged": true, "resourceSubscriptions": ["a://b"] });
    sharded.modern(index, LISTEN, json!({ "notifications": wanted }))
}

#[test]
fn an_edit_in_one_shard_reaches_the_next_request_of_each_and_all_streams() {
    let mut sharded = Sharded::new(&changing(), 3);
    let streams = [0, 1, 2].map(|index| listen(&mut sharded, index));
    let before = streams.map(|stream| sharded.told(stream));
    for shard in [1, 2, 0] {
        // The other shards are not driven in between: they see the edit in the request itself.
        assert!(sharded.call(shard, "add")["result"].is_object());
        for index in 0..3 {
            assert!(sharded.tools(index).contains(&"added".to_owned()), "in shard {index}");
            let called = sharded.call(index, "added");
            assert_eq!(called["result"]["content"][0]["text"], "added");
        }
        assert!(sharded.call((shard + 1) % 3, "remove")["result"].is_object());
        for index in 0..3 {
            assert!(!sharded.tools(index).contains(&"added".to_owned()), "in shard {index}");
            assert_eq!(sharded.call(index, "added")["error"]["code"], -32602);
        }
    }
    sharded.settle();
    for (stream, before) in streams.iter().zip(before) {
        let told = sharded.told(*stream);
        let changes = &told[before.len()..];
        assert_eq!(changes.len(), 6, "{told:?}");
        assert!(changes.iter().all(|told| told == "notifications/tools/list_changed"));
    }
}

#[test]
fn an_edit_wakes_the_other_shards() {
    let mut sharded = Sharded::new(&changing(), 2);
    let streams = [0, 1].map(|index| listen(&mut sharded, index));
    sharded.settle();
    let before = streams.map(|stream| sharded.told(stream).len());
    sharded.call(0, "add");
    // Without another request to the second shard.
    sharded.settle();
    assert_eq!(streams.map(|it| sharded.told(it).len()), before.map(|before| before + 1));
}

#[test]
fn an_update_of_a_resource_reaches_the_subscribers_in_all_shards() {
    let mut sharded = Sharded::new(&changing(), 3);
    let streams = [0, 1, 2].map(|index| listen(&mut sharded, index));
    let updates = |sharded: &Sharded| {
        streams.map(|stream| {
            let told = sharded.told(stream);
            told.iter().filter(|it| *it == "notifications/resources/updated").count()
        })
    };
    sharded.call(1, "touch");
    sharded.settle();
    assert_eq!(updates(&sharded), [1; 3]);
    // A handle to any shard reaches all.
    for (index, expected) in [2, 3, 4].into_iter().enumerate() {
        sharded.shards[index].server.handle().resource_updated("a://b").unwrap();
        sharded.settle();
        assert_eq!(updates(&sharded), [expected; 3]);
    }
}

#[test]
fn a_full_queue_of_one_shard_refuses_a_command_to_all() {
    let mut limits = mcp_sansio::peer::Limits::DEFAULT;
    limits.commands_max = 2;
    let mut sharded = Sharded::new(&changing().limits(limits), 2);
    let handle = sharded.shards[0].server.handle();
    let capacity = (0..).find(|at| handle.resource_updated(format!("a://{at}")).is_err()).unwrap();
    assert_eq!(handle.resource_updated("a://b"), Err(SendError::Full));
    // Only one of both queues is emptied.
    sharded.drive(0);
    assert_eq!(handle.resource_updated("a://b"), Err(SendError::Full));
    sharded.drive(1);
    for at in 0..capacity {
        handle.resource_updated(format!("b://{at}")).unwrap();
    }
}

#[test]
fn connections_and_handles_see_one_server() {
    let connections = Connections::new();
    let server = changing().connections(&connections);
    let mut sharded = Sharded::new(&server, 2);
    assert_eq!(connections.handles().len(), 1);
    connections
        .edit_catalog(|catalog| {
            catalog.add_item(ServerItem::new(tool("late"), |_: Call<NoArguments>| "late")).unwrap();
        })
        .unwrap();
    sharded.settle();
    for index in 0..2 {
        assert_eq!(sharded.call(index, "late")["result"]["content"][0]["text"], "late");
    }
    // A server that is created now begins with it.
    let mut second = Sharded::new(&server, 2);
    assert!(second.tools(1).contains(&"late".to_owned()));
    // Edits of both kinds follow one another.
    let handle = sharded.shards[1].server.handle();
    handle.edit_catalog(|catalog| drop(catalog.remove_tool("late"))).unwrap();
    sharded.settle();
    for index in 0..2 {
        assert!(!sharded.tools(index).contains(&"late".to_owned()));
    }
    handle.log(LoggingLevel::Error, None, Json::from_serialize(&1).unwrap());
    handle.close();
    sharded.settle();
    for shard in &sharded.shards {
        assert!(shard.server.machine().is_closing());
    }
}

#[test]
fn a_task_is_found_where_the_requests_of_its_owner_go() {
    // Rule: [TASK-030] [TASK-041].
    let gate = Gate::default();
    let server = Server::new("s", "1").tasks(settings().tasks_max(3)).tool("slow", "", {
        let gate = gate.clone();
        move |call: Call<NoArguments>| {
            let gate = gate.clone();
            async move {
                call.run_as_task();
                gate.passed().await;
                "slow"
            }
        }
    });
    let mut sharded = Sharded::new(&server, 4);
    let shards = sharded.shards[0].server.machine().shards().unwrap().clone();
    let place = |method: &str, principal: Option<&str>| {
        let mut head = RequestHead::new("POST", "/mcp");
        head.field("mcp-protocol-version", b"2026-07-28");
        head.field("mcp-method", method.as_bytes());
        shards.place(&head, &Caller::from(principal.map(Principal::new))).unwrap()
    };
    let mut ids = Vec::new();
    let users = [None, Some("ann"), Some("bob")];
    for user in users {
        let call = json!({ "name": "slow", "arguments": {} });
        let sent = sharded.modern_of(place("tools/call", user), "tools/call", call, user);
        let created = sharded.messages(sent).remove(0);
        assert_eq!(created["result"]["resultType"], "task", "{created}");
        ids.push(created["result"]["taskId"].as_str().unwrap().to_owned());
    }
    for (user, id) in users.into_iter().zip(&ids) {
        let about = json!({ "taskId": id });
        let sent = sharded.modern_of(place("tasks/get", user), "tasks/get", about, user);
        assert_eq!(sharded.messages(sent)[0]["result"]["status"], "working", "{user:?}");
    }
    // All shards have three tasks together, so the call waits in any of them.
    for index in 0..4 {
        let waits = sharded.modern(index, "tools/call", json!({ "name": "slow", "arguments": {} }));
        assert!(sharded.messages(waits).is_empty());
    }
    // When the tasks expire, there is room for three others.
    sharded.now = sharded.now + Duration::from_secs(60);
    (0..4).for_each(|index| sharded.drive(index));
    for expected in [true, true, true, false] {
        let sent = sharded.modern(3, "tools/call", json!({ "name": "slow", "arguments": {} }));
        assert_eq!(!sharded.messages(sent).is_empty(), expected);
    }
}

#[test]
fn the_rate_of_callers_without_a_principal_is_that_of_one_server() {
    let limit = RateLimit::new(3, Duration::from_secs(60));
    let server = Server::new("s", "1").middleware(limit).tool("t", "", |_: Call<NoArguments>| "t");
    let mut sharded = Sharded::new(&server, 3);
    let results = [0, 1, 2, 0, 1, 2].map(|index| sharded.call(index, "t")["result"].is_object());
    assert_eq!(results, [true, true, true, false, false, false]);
}

#[test]
fn elicitations_of_different_shards_have_different_ids() {
    // Rule: [ELIC-014].
    let server = Server::new("s", "1").tool("ask", "", async |call: Call<NoArguments>| match call
        .input::<Value>(
        "visit",
    )? {
        None => {
            let page = Elicit::url("Visit", "https://example.com/");
            call.require_input("visit", page).into_result()
        }
        Some(_) => Ok(String::new()),
    });
    let mut sharded = Sharded::new(&server, 2);
    let ids = [0, 1].map(|index| {
        let body = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{"url":{}}},"clientInfo":{"name":"c","version":"1"}}}"#;
        let sent = sharded.send(index, &[], body, None);
        let session = sharded.session(sent);
        let fields = [("mcp-session-id", &*session), ("mcp-protocol-version", "2025-11-25")];
        let body = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        sharded.send(index, &fields, body, None);
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask","arguments":{}}}"#;
        let sent = sharded.send(index, &fields, body, None);
        let asked = sharded.messages(sent);
        let asked = asked.iter().find(|it| it["method"] == "elicitation/create");
        asked.unwrap()["params"]["elicitationId"].as_str().unwrap().to_owned()
    });
    assert_ne!(ids[0], ids[1]);
}

#[test]
fn shards_have_no_event_store() {
    let options = options(2).event_store(EventStore::External);
    let refused = Server::new("s", "1").http_shards(options, [7; 32], 7);
    assert!(matches!(refused, Err(HttpServerError::Shards(_))));
    let single = options_with_store();
    assert_eq!(Server::new("s", "1").http_shards(single, [7; 32], 7).unwrap().len(), 1);
}

fn options_with_store() -> HttpServerOptions {
    options(1).event_store(EventStore::External)
}

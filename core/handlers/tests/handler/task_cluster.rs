//! Nodes that share their tasks through a store, driven by the test.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use mcp_sansio::http::{
    ExchangeId, HttpServerOptions, RequestHead, ServerTransmit, SharedOptions, StoreAction,
};
use mcp_sansio::protocol::{ElicitSchema, TaskSupport};
use mcp_sansio::{Instant, Principal};
use mcp_sansio_handlers::endpoint::{HttpServer, PendingHandler};
use mcp_sansio_handlers::{Call, Elicit, NoArguments, Server};
use serde_json::{Value, json};

use crate::cluster_store::{Completion, Store};
use crate::legacy_task_client::initialize;
use crate::task_client::{Gate, everything, request, settings};
use crate::tasks_http::run;

/// A server whose tasks wait for the gate or for input.
pub(crate) fn server(gate: &Gate) -> Server {
    let gate = gate.clone();
    Server::new("s", "1")
        .tasks(settings())
        .tool("slow", "", move |call: Call<NoArguments>| {
            let gate = gate.clone();
            async move {
                call.run_as_task();
                gate.passed().await;
                "slow"
            }
        })
        .tool("ask", "", async |call: Call<NoArguments>| {
            call.run_as_task();
            match call.input::<Value>("name")? {
                None => call
                    .require_input("name", Elicit::form_with("Who?", ElicitSchema::new()))
                    .state("kept")
                    .into_result(),
                Some(answer) => Ok(format!("{:?} {}", call.state(), answer.accepted())),
            }
        })
        .tool("ask_twice", "", async |call: Call<NoArguments>| {
            call.run_as_task();
            let round = match (call.input::<Value>("name")?, call.state()) {
                (None, _) => "first",
                (Some(_), Some("first")) => "second",
                (Some(_), _) => return Ok("done"),
            };
            call.require_input("name", Elicit::form_with("Who?", ElicitSchema::new()))
                .state(round)
                .into_result()
        })
        .task_support("slow", TaskSupport::Optional)
        .task_support("ask", TaskSupport::Required)
        .task_support("ask_twice", TaskSupport::Required)
}

#[derive(Default)]
struct Node {
    server: Option<HttpServer>,
    running: Vec<PendingHandler>,
    /// It does nothing.
    paused: bool,
    /// It does not reach the store.
    cut: bool,
    messages: Vec<Vec<u8>>,
}

pub(crate) struct TaskCluster {
    nodes: Vec<Node>,
    pub(crate) store: Store,
    pub(crate) now: Instant,
    last: u64,
    /// The actions of nodes that wait, if the store is slow.
    held: Option<Vec<(usize, StoreAction)>>,
    loses_messages: bool,
}

/// A client, which sends each request to the node that the test chooses.
#[derive(Clone, Default)]
pub(crate) struct ClusterClient {
    /// Of 2025-11-25, if there is one.
    session: Option<String>,
    principal: Option<Principal>,
    /// Those of each request of 2026-07-28.
    pub(crate) capabilities: Value,
}

/// A response in progress.
#[derive(Clone, Copy)]
pub(crate) struct Exchange(usize, ExchangeId);

impl ClusterClient {
    pub(crate) fn modern(principal: Option<&str>) -> Self {
        let principal = principal.map(Principal::new);
        Self { session: None, principal, capabilities: everything() }
    }
}

impl TaskCluster {
    pub(crate) fn new(server: &Server) -> Self {
        Self::with(server, &SharedOptions::new())
    }

    pub(crate) fn with(server: &Server, options: &SharedOptions) -> Self {
        Self::of([server, server], options)
    }

    /// Starts nodes that run these servers.
    pub(crate) fn of(servers: [&Server; 2], options: &SharedOptions) -> Self {
        let node = |(at, server): (u8, &Server)| {
            let options = HttpServerOptions::new().shared(options.clone());
            let server = server.http(options, [at; 32], 7).unwrap();
            Node { server: Some(server), ..Node::default() }
        };
        let nodes = (0..).zip(servers).map(node).collect();
        let now = Instant::from_millis(1000);
        let mut cluster = Self {
            nodes,
            store: Store::default(),
            now,
            last: 0,
            held: None,
            loses_messages: false,
        };
        cluster.pass(Duration::ZERO);
        cluster
    }

    /// Runs a function with the server of a node.
    pub(crate) fn with_server<T>(
        &mut self,
        at: usize,
        run: impl FnOnce(&mut HttpServer, Instant) -> T,
    ) -> T {
        let result = run(self.nodes[at].server.as_mut().expect("the node runs"), self.now);
        self.settle();
        result
    }

    /// Ends the process of a node.
    pub(crate) fn kill(&mut self, at: usize) {
        self.nodes[at] = Node::default();
    }

    /// Stops a node as a whole, or lets it continue.
    pub(crate) fn pause(&mut self, at: usize, paused: bool) {
        self.nodes[at].paused = paused;
        self.settle();
    }

    /// Disconnects a node from the store, or connects it again.
    pub(crate) fn cut(&mut self, at: usize, cut: bool) {
        self.nodes[at].cut = cut;
    }

    /// Loses messages between nodes, or no longer.
    pub(crate) fn lose_messages(&mut self, loses: bool) {
        self.loses_messages = loses;
    }

    /// Removes a node from the store, as if it had been paused.
    pub(crate) fn fail_lease(&mut self, at: usize) {
        let server = self.nodes[at].server.as_ref().expect("the node runs");
        let node = server.machine().node_id().expect("a shared store");
        self.store.execute(StoreAction::Leave { node }, self.now);
    }

    /// Lets all actions wait from now on.
    pub(crate) fn hold(&mut self) {
        self.held = Some(Vec::new());
    }

    /// Executes the actions that have waited.
    pub(crate) fn release(&mut self) {
        let held = self.take_held();
        self.execute_all(held);
    }

    /// Takes the actions that have waited, and lets later ones overtake them.
    pub(crate) fn take_held(&mut self) -> Vec<(usize, StoreAction)> {
        self.held.take().unwrap_or_default()
    }

    pub(crate) fn execute_all(&mut self, actions: Vec<(usize, StoreAction)>) {
        for (at, action) in actions {
            self.execute(at, action);
        }
        self.settle();
    }

    /// Returns the number of running handlers of a node.
    pub(crate) fn running(&self, at: usize) -> usize {
        self.nodes[at].running.len()
    }

    /// Advances the clock.
    pub(crate) fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            let deadlines = self.nodes.iter().filter(|node| !node.paused);
            let next = deadlines.filter_map(|node| node.server.as_ref()?.poll_timeout()).min();
            self.now = next.map_or(end, |next| next.max(self.now).min(end));
            for node in self.nodes.iter_mut().filter(|node| !node.paused) {
                if let Some(server) = &mut node.server {
                    server.handle_timeout(self.now);
                }
            }
            self.settle();
            if self.now == end {
                return;
            }
        }
    }

    /// Runs handlers, actions and messages until nothing moves.
    pub(crate) fn settle(&mut self) {
        let mut moves = true;
        while moves {
            moves = false;
            for at in 0..self.nodes.len() {
                moves |= self.settle_node(at);
            }
        }
    }

    fn settle_node(&mut self, at: usize) -> bool {
        let now = self.now;
        let Node { server: Some(server), running, paused: false, messages, .. } =
            &mut self.nodes[at]
        else {
            return false;
        };
        let mut moved = !messages.is_empty();
        for message in messages.drain(..) {
            server.handle_node_message(&message, now);
        }
        let mut cx = Context::from_waker(Waker::noop());
        server.poll_handlers(&mut cx, now);
        while let Some(work) = server.poll_call() {
            run(server, running, work, now);
            moved = true;
        }
        for mut handler in core::mem::take(running) {
            match Pin::new(&mut handler).poll(&mut cx) {
                Poll::Ready(Some(finished)) => {
                    server.finish(finished, now);
                    moved = true;
                }
                Poll::Ready(None) => {}
                Poll::Pending => running.push(handler),
            }
        }
        let mut actions = Vec::new();
        while let Some(action) = server.poll_store() {
            actions.push(action);
        }
        while server.poll_ready().is_some() {}
        for action in actions {
            moved = true;
            match &mut self.held {
                Some(held) => held.push((at, action)),
                None => self.execute(at, action),
            }
        }
        moved
    }

    fn execute(&mut self, at: usize, action: StoreAction) {
        let now = self.now;
        let completion = if self.nodes[at].cut {
            Store::failure(&action)
        } else {
            let effects = self.store.execute(action, now);
            if let Some(message) = effects.message.filter(|_| !self.loses_messages) {
                for node in &mut self.nodes {
                    let id = node.server.as_ref().and_then(|server| server.machine().node_id());
                    if id.is_some_and(|id| message.is_for(id)) {
                        node.messages.push(message.text.clone());
                    }
                }
            }
            effects.completion
        };
        let Some(server) = &mut self.nodes[at].server else { return };
        match completion {
            Some(Completion::Action(action, result)) => server.handle_store(action, result, now),
            Some(Completion::Events(read, events)) => server.handle_stored(read, events, now),
            Some(Completion::ReadFailed(read)) => server.fail_read(read, now),
            Some(Completion::Refused(place)) => server.handle_append_refused(&place, now),
            Some(Completion::Appended(place)) => server.handle_appended(&place),
            None => {}
        }
    }

    /// Opens a session of 2025-11-25.
    pub(crate) fn enter(&mut self, at: usize, principal: Option<&str>) -> ClusterClient {
        let mut client = ClusterClient::modern(principal);
        let opened = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize",
            "params": initialize(&crate::legacy_task_client::everything()) });
        let opened = self.post(at, &client, None, &opened.to_string());
        client.session = self.read(opened).session;
        assert!(client.session.is_some());
        let confirmed = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        self.post(at, &client, None, &confirmed.to_string());
        client
    }

    /// Ends the session of a client.
    pub(crate) fn leave(&mut self, at: usize, client: &ClusterClient) {
        let mut head = RequestHead::new("DELETE", "/mcp");
        head.field("host", b"localhost");
        let session = client.session.as_deref().expect("a session");
        head.field("mcp-session-id", session.as_bytes());
        let caller = client.principal.clone().into();
        let server = self.nodes[at].server.as_mut().expect("the node runs");
        server.handle_request(&head, b"", &caller, self.now);
        self.settle();
    }

    /// Sends a request to a node.
    pub(crate) fn send(
        &mut self,
        at: usize,
        client: &ClusterClient,
        method: &str,
        mut params: Value,
    ) -> Exchange {
        self.last += 1;
        let body = if client.session.is_some() {
            if method == "tools/call" {
                params["task"] = json!({});
            }
            json!({ "jsonrpc": "2.0", "id": self.last, "method": method, "params": params })
                .to_string()
        } else {
            request(self.last, method, params, &client.capabilities)
        };
        self.post(at, client, Some(method), &body)
    }

    /// Sends the answer to a request of the server.
    pub(crate) fn answer(&mut self, at: usize, client: &ClusterClient, id: &Value, result: &Value) {
        let body = json!({ "jsonrpc": "2.0", "id": id, "result": result });
        let exchange = self.post(at, client, None, &body.to_string());
        assert_eq!(self.read(exchange).status, 202);
    }

    fn post(
        &mut self,
        at: usize,
        client: &ClusterClient,
        method: Option<&str>,
        body: &str,
    ) -> Exchange {
        let mut head = RequestHead::new("POST", "/mcp");
        head.field("host", b"localhost");
        head.field("content-type", b"application/json");
        head.field("accept", b"application/json, text/event-stream");
        let is_modern = method.is_some_and(|_| client.session.is_none());
        if let Some(session) = &client.session {
            head.field("mcp-session-id", session.as_bytes());
            head.field("mcp-protocol-version", b"2025-11-25");
        } else if is_modern && let Some(method) = method {
            head.field("mcp-protocol-version", b"2026-07-28");
            head.field("mcp-method", method.as_bytes());
        }
        let body: Value = serde_json::from_str(body).unwrap();
        let name = body["params"]["name"].as_str();
        if is_modern && let Some(name) = name {
            head.field("mcp-name", name.as_bytes());
        }
        let now = self.now;
        let node = &mut self.nodes[at];
        let server = node.server.as_mut().expect("the node runs");
        let caller = client.principal.clone().into();
        let body = body.to_string();
        let (exchange, work) = server.handle_request(&head, body.as_bytes(), &caller, now);
        if let Some(work) = work {
            run(server, &mut node.running, work, now);
        }
        self.settle();
        Exchange(at, exchange)
    }

    /// The client leaves.
    pub(crate) fn disconnect(&mut self, exchange: Exchange) {
        let Exchange(at, exchange) = exchange;
        let now = self.now;
        self.nodes[at].server.as_mut().unwrap().handle_disconnect(exchange, now);
        self.settle();
    }

    /// Returns the response to an exchange since the last call.
    pub(crate) fn read(&mut self, exchange: Exchange) -> Response {
        let Exchange(at, exchange) = exchange;
        let (mut response, mut text) = (Response::default(), String::new());
        let server = self.nodes[at].server.as_mut().expect("the node runs");
        while let Some(transmit) = server.poll_transmit(exchange, self.now) {
            match transmit {
                ServerTransmit::Respond(whole) => {
                    response.status = whole.head.status.0;
                    let session = whole.head.fields().find(|(name, _)| *name == "mcp-session-id");
                    response.session = session.map(|(_, id)| String::from(id));
                    text = String::from_utf8(whole.body).unwrap();
                }
                ServerTransmit::Open(head) => response.status = head.status.0,
                ServerTransmit::Chunk(bytes) => text += std::str::from_utf8(bytes).unwrap(),
                _ => break,
            }
        }
        let lines = text.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
        response.messages = lines.filter_map(|line| serde_json::from_str(line).ok()).collect();
        response
    }

    /// Sends a request to a node, and returns its response.
    pub(crate) fn ask(
        &mut self,
        at: usize,
        client: &ClusterClient,
        method: &str,
        params: Value,
    ) -> Value {
        let exchange = self.send(at, client, method, params);
        self.read(exchange).only()
    }

    /// Sends a request about a task.
    pub(crate) fn about(
        &mut self,
        at: usize,
        client: &ClusterClient,
        method: &str,
        task: &str,
    ) -> Value {
        self.ask(at, client, method, json!({ "taskId": task }))
    }

    /// Calls a tool on a node, and returns the id of its task.
    pub(crate) fn task(&mut self, at: usize, client: &ClusterClient, tool: &str) -> String {
        let called = self.ask(at, client, "tools/call", json!({ "name": tool, "arguments": {} }));
        let result = &called["result"];
        let id =
            if client.session.is_some() { &result["task"]["taskId"] } else { &result["taskId"] };
        id.as_str().unwrap_or_else(|| panic!("{called}")).to_owned()
    }

    /// Returns the status of a task as a node sees it.
    pub(crate) fn status(&mut self, at: usize, client: &ClusterClient, task: &str) -> String {
        let got = self.about(at, client, "tasks/get", task);
        got["result"]["status"].as_str().unwrap_or_else(|| panic!("{got}")).to_owned()
    }
}

/// A part of a response.
#[derive(Debug, Default)]
pub(crate) struct Response {
    pub(crate) status: u16,
    session: Option<String>,
    pub(crate) messages: Vec<Value>,
}

impl Response {
    /// Returns its only message.
    pub(crate) fn only(self) -> Value {
        assert_eq!(self.messages.len(), 1, "{self:?}");
        self.messages.into_iter().next().unwrap()
    }
}

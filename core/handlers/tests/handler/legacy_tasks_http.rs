//! Tasks of 2025-11-25 on HTTP. They outlive their exchange and, with a principal, their session.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use mcp_sansio::http::{
    ExchangeId, HttpServerOptions, RequestHead, ResponseHead, ResponseMode, ServerTransmit,
};
use mcp_sansio::protocol::{ElicitSchema, TaskSupport};
use mcp_sansio::{Instant, Principal};
use mcp_sansio_handlers::endpoint::{HttpServer, PendingHandler};
use mcp_sansio_handlers::{Call, Elicit, NoArguments, Server};
use serde_json::{Value, json};

use crate::legacy_task_client::{RELATED, check_response, everything, initialize};
use crate::task_client::{Gate, settings};
use crate::tasks_http::run;

fn server(gate: &Gate) -> Server {
    let gates = [gate.clone(), gate.clone()];
    let [slow, talkative] = gates;
    Server::new("s", "1")
        .tasks(settings())
        .tool("slow", "", move |call: Call<NoArguments>| {
            let gate = slow.clone();
            async move {
                gate.passed().await;
                format!("slow {}", call.principal().is_some())
            }
        })
        .tool("talkative", "", move |call: Call<NoArguments>| {
            let gate = talkative.clone();
            async move {
                call.progress(1.0, None, "begun");
                gate.passed().await;
                call.progress(2.0, None, "done");
                "said"
            }
        })
        .tool("ask", "", async |call: Call<NoArguments>| match call.input::<Value>("name")? {
            None => call
                .require_input("name", Elicit::form_with("Who?", ElicitSchema::new()))
                .into_result(),
            Some(answer) => Ok(format!("{}", answer.accepted())),
        })
        .task_support("slow", TaskSupport::Optional)
        .task_support("talkative", TaskSupport::Optional)
        .task_support("ask", TaskSupport::Required)
}

/// A server driven by the test, without a network.
struct LegacyServer {
    server: HttpServer,
    now: Instant,
    running: Vec<PendingHandler>,
    last: u64,
}

/// A session: its id, and its principal.
#[derive(Clone)]
struct LegacyClient(String, Option<Principal>);

impl LegacyServer {
    fn new(gate: &Gate, options: HttpServerOptions) -> Self {
        let server = server(gate).http(options, [7; 32], 7).unwrap();
        Self { server, now: Instant::ZERO, running: Vec::new(), last: 0 }
    }

    fn enter(&mut self, principal: Option<Principal>) -> LegacyClient {
        let mut client = LegacyClient(String::new(), principal);
        let message = self.request("initialize", initialize(&everything()));
        let exchange = self.post(&client, &message);
        let (_, session, _) = self.read(exchange);
        client.0 = session.unwrap();
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let exchange = self.post(&client, &initialized);
        assert!(self.read(exchange).2.is_empty());
        client
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        json!({ "jsonrpc": "2.0", "id": self.last, "method": method, "params": params })
    }

    fn post(&mut self, client: &LegacyClient, message: &Value) -> ExchangeId {
        let mut head = RequestHead::new("POST", "/mcp");
        head.field("host", b"localhost");
        head.field("content-type", b"application/json");
        head.field("accept", b"application/json, text/event-stream");
        if !client.0.is_empty() {
            head.field("mcp-session-id", client.0.as_bytes());
            head.field("mcp-protocol-version", b"2025-11-25");
        }
        self.take(&head, message.to_string().as_bytes(), client)
    }

    /// Opens the standalone stream.
    fn listen(&mut self, client: &LegacyClient) -> ExchangeId {
        let mut head = RequestHead::new("GET", "/mcp");
        head.field("host", b"localhost");
        head.field("accept", b"text/event-stream");
        head.field("mcp-session-id", client.0.as_bytes());
        self.take(&head, b"", client)
    }

    fn leave(&mut self, client: &LegacyClient) {
        let mut head = RequestHead::new("DELETE", "/mcp");
        head.field("host", b"localhost");
        head.field("mcp-session-id", client.0.as_bytes());
        self.take(&head, b"", client);
    }

    fn take(&mut self, head: &RequestHead<'_>, body: &[u8], client: &LegacyClient) -> ExchangeId {
        let now = self.now;
        let (exchange, work) =
            self.server.handle_request(head, body, &client.1.clone().into(), now);
        if let Some(work) = work {
            run(&mut self.server, &mut self.running, work, now);
        }
        self.pump();
        exchange
    }

    /// Runs handlers until all of them wait.
    fn pump(&mut self) {
        let mut cx = Context::from_waker(Waker::noop());
        for _ in 0..5 {
            self.server.poll_handlers(&mut cx, self.now);
            while let Some(work) = self.server.poll_call() {
                run(&mut self.server, &mut self.running, work, self.now);
            }
            let mut going = Vec::new();
            for mut running in self.running.drain(..) {
                match Pin::new(&mut running).poll(&mut cx) {
                    Poll::Ready(Some(finished)) => self.server.finish(finished, self.now),
                    Poll::Ready(None) => {}
                    Poll::Pending => going.push(running),
                }
            }
            self.running = going;
        }
    }

    /// Returns the output of an exchange so far: whether it is an event stream, the session id, and
    /// the messages.
    fn read(&mut self, exchange: ExchangeId) -> (bool, Option<String>, Vec<Value>) {
        let (mut events, mut session, mut text) = (false, None, String::new());
        while let Some(transmit) = self.server.poll_transmit(exchange, self.now) {
            match transmit {
                ServerTransmit::Respond(response) => {
                    session = session_in(&response.head);
                    text = String::from_utf8(response.body).unwrap();
                }
                ServerTransmit::Open(_) => events = true,
                ServerTransmit::Chunk(bytes) => text += std::str::from_utf8(bytes).unwrap(),
                _ => break,
            }
        }
        let lines = text.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
        (events, session, lines.filter_map(|line| serde_json::from_str(line).ok()).collect())
    }

    /// Returns the response to a request, which must be the only message.
    fn response(&mut self, client: &LegacyClient, method: &str, params: Value) -> Value {
        let message = self.request(method, params);
        let exchange = self.post(client, &message);
        let (_, _, mut messages) = self.read(exchange);
        assert_eq!(messages.len(), 1, "{messages:?}");
        check_response(method, &messages[0]);
        messages.remove(0)
    }

    fn task(&mut self, client: &LegacyClient, tool: &str) -> String {
        let created = self.response(client, "tools/call", json!({ "name": tool, "task": {} }));
        created["result"]["task"]["taskId"].as_str().unwrap_or_else(|| panic!("{created}")).into()
    }

    fn about(&mut self, client: &LegacyClient, method: &str, task: &str) -> Value {
        self.response(client, method, json!({ "taskId": task }))
    }

    /// Requests the result of a task.
    fn wait(&mut self, client: &LegacyClient, task: &str) -> ExchangeId {
        let message = self.request("tasks/result", json!({ "taskId": task }));
        self.post(client, &message)
    }
}

fn fixture() -> (Gate, LegacyServer) {
    let gate = Gate::default();
    let fixture = LegacyServer::new(&gate, HttpServerOptions::new());
    (gate, fixture)
}

/// Returns the session id that a response opens.
fn session_in(head: &ResponseHead) -> Option<String> {
    let field = head.fields().find(|(name, _)| name.eq_ignore_ascii_case("mcp-session-id"));
    field.map(|(_, value)| value.into_owned())
}

fn text(response: &Value) -> &str {
    response["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{response}"))
}

#[test]
fn a_task_outlives_the_exchange_that_asked_for_it() {
    // Rule: [TASK-013] [TASK-014] [TASK-045].
    let (gate, mut fixture) = fixture();
    let client = fixture.enter(None);
    let task = fixture.task(&client, "slow");
    assert_eq!(fixture.server.machine().exchange_count(), 0);
    assert_eq!(fixture.about(&client, "tasks/get", &task)["result"]["status"], "working");
    let waiting = fixture.wait(&client, &task);
    assert!(fixture.read(waiting).2.is_empty());
    // A client may disconnect while it waits, and request the result again.
    fixture.server.handle_disconnect(waiting, fixture.now);
    let waiting = fixture.wait(&client, &task);
    gate.open();
    fixture.pump();
    let (_, _, messages) = fixture.read(waiting);
    assert_eq!(text(&messages[0]), "slow false");
    assert_eq!(messages[0]["result"]["_meta"][RELATED]["taskId"], *task);
    assert_eq!(text(&fixture.about(&client, "tasks/result", &task)), "slow false");
}

#[test]
fn input_requests_of_a_task_use_the_stream_of_the_waiting_request() {
    // Rule: [TASK-015] [TASK-048].
    let (_, mut fixture) = fixture();
    let client = fixture.enter(None);
    let task = fixture.task(&client, "ask");
    assert_eq!(fixture.about(&client, "tasks/get", &task)["result"]["status"], "input_required");
    let waiting = fixture.wait(&client, &task);
    let (events, _, messages) = fixture.read(waiting);
    assert!(events);
    assert_eq!(messages[0]["method"], "elicitation/create");
    assert_eq!(messages[0]["params"]["_meta"][RELATED]["taskId"], *task);
    let id = &messages[0]["id"];
    let answer = json!({ "jsonrpc": "2.0", "id": id, "result": { "action": "accept" } });
    fixture.now = fixture.now + Duration::from_secs(3);
    fixture.post(&client, &answer);
    let (_, _, messages) = fixture.read(waiting);
    assert_eq!(text(&messages[0]), "true");
    let done = fixture.about(&client, "tasks/get", &task);
    assert_eq!(done["result"]["lastUpdatedAt"], "2026-07-28T00:00:03.000Z");
}

#[test]
fn input_is_requested_again_on_the_next_stream() {
    // Rule: [TASK-015].
    let (_, mut fixture) = fixture();
    let client = fixture.enter(None);
    let task = fixture.task(&client, "ask");
    let first = fixture.wait(&client, &task);
    let question = fixture.read(first).2.remove(0);
    fixture.server.handle_disconnect(first, fixture.now);
    let second = fixture.wait(&client, &task);
    let again = fixture.read(second).2.remove(0);
    assert_eq!(again["method"], "elicitation/create");
    assert_ne!(again["id"], question["id"]);
    // The first request is no longer valid.
    for (id, status) in [(&question["id"], "input_required"), (&again["id"], "completed")] {
        let answer = json!({ "jsonrpc": "2.0", "id": id, "result": { "action": "accept" } });
        fixture.post(&client, &answer);
        assert_eq!(fixture.about(&client, "tasks/get", &task)["result"]["status"], status);
    }
    assert_eq!(text(&fixture.read(second).2[0]), "true");
}

#[test]
fn progress_uses_the_stream_of_the_waiting_request_or_the_standalone_stream() {
    // Rule: [PROG-010].
    let (gate, mut fixture) = fixture();
    let client = fixture.enter(None);
    let unasked = fixture.listen(&client);
    assert!(fixture.read(unasked).2.is_empty());
    let params = json!({ "name": "talkative", "task": {}, "_meta": { "progressToken": 7 } });
    let created = fixture.response(&client, "tools/call", params);
    let task = created["result"]["task"]["taskId"].as_str().unwrap().to_owned();
    let (_, _, told) = fixture.read(unasked);
    assert_eq!(told[0]["method"], "notifications/progress");
    let meta = json!({ RELATED: { "taskId": task } });
    let expected = |progress: u32, message: &str| json!({ "progressToken": 7, "progress": progress, "message": message, "_meta": meta });
    assert_eq!(told[0]["params"], expected(1, "begun"));
    let waiting = fixture.wait(&client, &task);
    gate.open();
    fixture.pump();
    let (events, _, messages) = fixture.read(waiting);
    assert!(events);
    assert_eq!(messages[0]["params"], expected(2, "done"));
    assert_eq!(text(&messages[1]), "said");
    assert!(fixture.read(unasked).2.is_empty());
}

#[test]
fn the_tasks_of_one_principal_or_session_do_not_exist_for_another() {
    // Rule: [TASK-019] [TASK-021].
    let (gate, mut fixture) = fixture();
    let (owner, other) = (Principal::new("owner"), Principal::new("other"));
    let one = fixture.enter(Some(owner.clone()));
    let again = fixture.enter(Some(owner));
    let other = fixture.enter(Some(other));
    let (nobody, anybody) = (fixture.enter(None), fixture.enter(None));
    let task = fixture.task(&one, "slow");
    let unknown = fixture.task(&nobody, "slow");
    for (client, task) in [
        (&other, &task),
        (&nobody, &task),
        (&one, &unknown),
        (&other, &unknown),
        // Without a principal, sessions are told apart.
        (&anybody, &unknown),
    ] {
        for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
            let none = fixture.about(client, method, "none")["error"].clone();
            assert_eq!(none["code"], -32602);
            assert_eq!(fixture.about(client, method, task)["error"], none, "{method}");
        }
        let listed = fixture.response(client, "tasks/list", json!({}))["result"]["tasks"].clone();
        assert!(!listed.to_string().contains(&**task), "{listed}");
    }
    // A principal can use its tasks in all of its sessions, even after the first one has ended.
    let listed = fixture.response(&again, "tasks/list", json!({}));
    assert_eq!(listed["result"]["tasks"][0]["taskId"], *task);
    fixture.leave(&one);
    gate.open();
    fixture.pump();
    assert_eq!(text(&fixture.about(&again, "tasks/result", &task)), "slow true");
}

#[test]
fn a_cancelled_or_expired_task_drops_its_handler_and_answers_waiting_requests() {
    // Rule: [CANC-009] [TASK-018] [TASK-023].
    let (gate, mut fixture) = fixture();
    let client = fixture.enter(None);
    let (first, second) = (fixture.task(&client, "slow"), fixture.task(&client, "ask"));
    let third = fixture.task(&client, "slow");
    let waiting = [&first, &second, &third].map(|task| fixture.wait(&client, task));
    let question = fixture.read(waiting[1]).2.remove(0);
    assert_eq!(fixture.running.len(), 2);
    let cancelled = fixture.about(&client, "tasks/cancel", &first);
    assert_eq!(cancelled["result"]["status"], "cancelled");
    fixture.pump();
    assert_eq!(fixture.running.len(), 1);
    assert_eq!(fixture.read(waiting[0]).2[0]["error"]["code"], -32603);
    fixture.now = fixture.now + Duration::from_secs(60);
    fixture.server.handle_timeout(fixture.now);
    fixture.pump();
    assert_eq!(fixture.running.len(), 0);
    assert_eq!(gate.holders(), 3);
    let withdrawn = fixture.read(waiting[1]).2;
    assert_eq!(withdrawn[0]["method"], "notifications/cancelled");
    assert_eq!(withdrawn[0]["params"]["requestId"], question["id"]);
    assert_eq!(withdrawn[1]["error"]["code"], -32602);
    assert_eq!(fixture.read(waiting[2]).2[0]["error"]["code"], -32602);
}

#[test]
fn a_poll_is_answered_without_a_stream() {
    // Rule: [TASK-022].
    let gate = Gate::default();
    let mut fixture =
        LegacyServer::new(&gate, HttpServerOptions::new().answers(ResponseMode::Stream));
    let mut client = LegacyClient(String::new(), None);
    let opening = fixture.request("initialize", initialize(&everything()));
    let opening = fixture.post(&client, &opening);
    while let Some(transmit) = fixture.server.poll_transmit(opening, fixture.now) {
        if let ServerTransmit::Open(head) = transmit {
            client.0 = session_in(&head).unwrap();
        }
    }
    let message = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    fixture.post(&client, &message);
    let message = fixture.request("tools/call", json!({ "name": "slow", "task": {} }));
    let exchange = fixture.post(&client, &message);
    let (events, _, messages) = fixture.read(exchange);
    assert!(events);
    let created = messages.iter().find(|message| message.get("result").is_some()).unwrap();
    let task = created["result"]["task"]["taskId"].as_str().unwrap();
    let message = fixture.request("tasks/get", json!({ "taskId": task }));
    let exchange = fixture.post(&client, &message);
    let (events, _, messages) = fixture.read(exchange);
    assert!(!events);
    assert_eq!(messages[0]["result"]["status"], "working");
}

//! Tasks of a server on HTTP, shared by all its clients.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use mcp_sansio::http::{HttpServerOptions, RequestHead, ServerTransmit};
use mcp_sansio::protocol::ElicitSchema;
use mcp_sansio::{Instant, Principal};
use mcp_sansio_handlers::endpoint::{HandlerCall, HandlerPoll, HttpServer, PendingHandler};
use mcp_sansio_handlers::{Call, Elicit, NoArguments, Server};
use serde_json::{Value, json};

use crate::task_client::{
    Gate, assert_empty, check_notification, check_response, everything, request, settings,
};

fn server(gate: &Gate) -> Server {
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
        .tool("quick", "", |call: Call<NoArguments>| {
            call.run_as_task();
            "quick"
        })
        .tool("ask", "", async |call: Call<NoArguments>| {
            call.run_as_task();
            match call.input::<Value>("name")? {
                None => {
                    let who = Elicit::form_with("Who?", ElicitSchema::new());
                    call.require_input("name", who).state("kept").into_result()
                }
                Some(_) => Ok(format!("{:?} {:?}", call.state(), call.principal().is_some())),
            }
        })
}

/// A server driven by the test, without a network.
pub(crate) struct TaskServer {
    server: HttpServer,
    now: Instant,
    running: Vec<PendingHandler>,
    last: u64,
}

/// A response: its status and its messages.
pub(crate) struct Response(pub(crate) u16, pub(crate) Vec<Value>);

impl TaskServer {
    fn new(gate: &Gate) -> Self {
        Self::from_server(&server(gate))
    }

    pub(crate) fn from_server(server: &Server) -> Self {
        Self::with_secret(server, [7; 32])
    }

    pub(crate) fn with_secret(server: &Server, secret: [u8; 32]) -> Self {
        let server = server.http(HttpServerOptions::new(), secret, 7).unwrap();
        Self { server, now: Instant::ZERO, running: Vec::new(), last: 0 }
    }

    /// Advances the clock.
    pub(crate) fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
        self.server.handle_timeout(self.now);
    }

    fn exchange(
        &mut self,
        method: &str,
        params: Value,
        name: Option<&str>,
        principal: Option<&Principal>,
    ) -> mcp_sansio::http::ExchangeId {
        self.last += 1;
        let body = request(self.last, method, params, &everything());
        let mut head = RequestHead::new("POST", "/mcp");
        head.field("host", b"localhost");
        head.field("content-type", b"application/json");
        head.field("accept", b"application/json, text/event-stream");
        head.field("mcp-protocol-version", b"2026-07-28");
        head.field("mcp-method", method.as_bytes());
        if let Some(name) = name {
            head.field("mcp-name", name.as_bytes());
        }
        let now = self.now;
        let caller = principal.cloned().into();
        let (exchange, work) = self.server.handle_request(&head, body.as_bytes(), &caller, now);
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

    /// Reads the response of an exchange as far as it was sent.
    fn read(&mut self, exchange: mcp_sansio::http::ExchangeId, method: &str) -> Response {
        let (mut status, mut text) = (0, String::new());
        while let Some(transmit) = self.server.poll_transmit(exchange, self.now) {
            match transmit {
                ServerTransmit::Respond(response) => {
                    status = response.head.status.0;
                    text = String::from_utf8(response.body).unwrap();
                }
                ServerTransmit::Open(head) => status = head.status.0,
                ServerTransmit::Chunk(bytes) => text += std::str::from_utf8(bytes).unwrap(),
                _ => break,
            }
        }
        let lines = text.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
        let messages: Vec<Value> =
            lines.filter_map(|line| serde_json::from_str(line).ok()).collect();
        for message in &messages {
            if message.get("id").is_some() {
                check_response(method, message);
            } else {
                check_notification(message);
            }
        }
        Response(status, messages)
    }

    pub(crate) fn response(
        &mut self,
        method: &str,
        params: Value,
        name: Option<&str>,
        principal: Option<&Principal>,
    ) -> Response {
        let exchange = self.exchange(method, params, name, principal);
        self.read(exchange, method)
    }

    fn call(&mut self, tool: &str, principal: Option<&Principal>) -> Value {
        let params = json!({ "name": tool, "arguments": {} });
        let Response(status, messages) = self.response("tools/call", params, Some(tool), principal);
        assert_eq!(status, 200, "{messages:?}");
        messages[0]["result"].clone()
    }

    fn task(&mut self, tool: &str, principal: Option<&Principal>) -> String {
        let created = self.call(tool, principal);
        assert_eq!(created["resultType"], "task", "{created}");
        created["taskId"].as_str().unwrap().to_owned()
    }

    fn about(&mut self, method: &str, task: &str, principal: Option<&Principal>) -> Value {
        let params =
            json!({ "taskId": task, "inputResponses": { "name": { "action": "accept" } } });
        self.response(method, params, Some(task), principal).1.remove(0)
    }

    fn status(&mut self, task: &str) -> String {
        let got = self.about("tasks/get", task, None);
        got["result"]["status"].as_str().unwrap_or_else(|| panic!("{got}")).to_owned()
    }
}

pub(crate) fn run(
    server: &mut HttpServer,
    all: &mut Vec<PendingHandler>,
    work: HandlerCall<'_>,
    now: Instant,
) {
    match work.run() {
        HandlerPoll::Ready(finished) => server.finish(finished, now),
        HandlerPoll::Pending(mut running) => {
            match Pin::new(&mut running).poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Some(finished)) => server.finish(finished, now),
                Poll::Ready(None) => {}
                Poll::Pending => {
                    // Commands of the handler may be polled before the handler is tracked.
                    server.poll_handlers(&mut Context::from_waker(Waker::noop()), now);
                    server.track(&running);
                    all.push(running);
                }
            }
        }
    }
}

#[test]
fn a_task_outlives_the_exchange_that_created_it() {
    // Rule: [TASK-029] [TASK-030].
    let gate = Gate::default();
    let mut fixture = TaskServer::new(&gate);
    let task = fixture.task("slow", None);
    assert_eq!(fixture.server.machine().exchange_count(), 0);
    assert_eq!(fixture.status(&task), "working");
    gate.open();
    fixture.pump();
    let done = fixture.about("tasks/get", &task, None);
    assert_eq!(done["result"]["result"]["content"][0]["text"], "slow");
    assert_eq!(fixture.call("quick", None)["content"][0]["text"], "quick");
}

#[test]
fn a_task_requests_input_and_continues_with_the_answers() {
    // Rule: [TASK-030] [TASK-032] [TASK-033].
    let mut fixture = TaskServer::new(&Gate::default());
    let owner = Principal::new("owner");
    let task = fixture.task("ask", Some(&owner));
    let waiting = fixture.about("tasks/get", &task, Some(&owner));
    assert!(waiting["result"]["inputRequests"]["name"].is_object(), "{waiting}");
    assert_empty(&fixture.about("tasks/update", &task, Some(&owner))["result"]);
    let done = fixture.about("tasks/get", &task, Some(&owner));
    assert_eq!(done["result"]["result"]["content"][0]["text"], r#"Some("kept") true"#);
}

#[test]
fn a_task_that_is_cancelled_or_expires_drops_its_handler() {
    // Rule: [TASK-034].
    let gate = Gate::default();
    let mut fixture = TaskServer::new(&gate);
    let task = fixture.task("slow", None);
    let other = fixture.task("slow", None);
    assert_eq!(fixture.running.len(), 2);
    assert_empty(&fixture.about("tasks/cancel", &task, None)["result"]);
    fixture.pump();
    assert_eq!(fixture.running.len(), 1);
    assert_eq!(fixture.status(&task), "cancelled");
    assert_eq!(fixture.server.poll_timeout(), Some(Instant::from_millis(60_000)));
    fixture.now = fixture.now + Duration::from_secs(60);
    fixture.server.handle_timeout(fixture.now);
    fixture.pump();
    assert_eq!(fixture.running.len(), 0);
    assert_eq!(fixture.about("tasks/get", &other, None)["error"]["code"], -32602);
    assert_eq!(fixture.server.poll_timeout(), None);
}

#[test]
fn the_tasks_of_one_principal_do_not_exist_for_another() {
    // Rule: [TASK-035] [TASK-041].
    let gate = Gate::default();
    let mut fixture = TaskServer::new(&gate);
    let (owner, other) = (Principal::new("owner"), Principal::new("other"));
    let task = fixture.task("slow", Some(&owner));
    let listen = |fixture: &mut TaskServer, principal| {
        let filter = json!({ "notifications": { "taskIds": [task] } });
        let exchange = fixture.exchange("subscriptions/listen", filter, None, principal);
        assert_eq!(fixture.read(exchange, "").1.len(), 1);
        exchange
    };
    let (owners, others) = (listen(&mut fixture, Some(&owner)), listen(&mut fixture, Some(&other)));
    for principal in [Some(&other), None] {
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            let unknown = fixture.about(method, "nobody", principal)["error"].clone();
            assert_eq!(unknown["code"], -32602);
            assert_eq!(fixture.about(method, &task, principal)["error"], unknown);
        }
    }
    gate.open();
    fixture.pump();
    let told = fixture.read(owners, "").1;
    assert_eq!(told[0]["params"]["status"], "completed", "{told:?}");
    assert!(fixture.read(others, "").1.is_empty());
    let done = fixture.about("tasks/get", &task, Some(&owner));
    assert_eq!(done["result"]["status"], "completed");
}

#[test]
fn the_header_names_the_task() {
    // Rule: [TASK-039].
    let mut fixture = TaskServer::new(&Gate::default());
    let task = fixture.task("slow", None);
    let about = || json!({ "taskId": task, "inputResponses": {} });
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let Response(status, messages) = fixture.response(method, about(), Some("another"), None);
        assert_eq!(status, 400, "{method}");
        assert_eq!(messages[0]["error"]["code"], -32020, "{method}");
        assert_eq!(fixture.response(method, about(), None, None).0, 200, "{method}");
    }
}

#[test]
fn a_client_that_disconnects_before_the_task_exists_cancels_its_call() {
    let gate = Gate::default();
    let mut fixture = TaskServer::new(&gate);
    let mut head = RequestHead::new("POST", "/mcp");
    head.field("host", b"localhost");
    head.field("content-type", b"application/json");
    head.field("accept", b"application/json, text/event-stream");
    head.field("mcp-protocol-version", b"2026-07-28");
    head.field("mcp-method", b"tools/call");
    head.field("mcp-name", b"slow");
    let body = request(1, "tools/call", json!({ "name": "slow" }), &everything());
    let (exchange, work) = fixture.server.handle_request(
        &head,
        body.as_bytes(),
        &mcp_sansio::Caller::ANONYMOUS,
        Instant::ZERO,
    );
    let HandlerPoll::Pending(mut running) = work.unwrap().run() else { panic!("it waits") };
    let mut cx = Context::from_waker(Waker::noop());
    assert!(Pin::new(&mut running).poll(&mut cx).is_pending());
    fixture.server.handle_disconnect(exchange, Instant::ZERO);
    fixture.server.track(&running);
    assert!(matches!(Pin::new(&mut running).poll(&mut cx), Poll::Ready(None)));
    fixture.pump();
    assert_eq!(fixture.server.poll_timeout(), None);
}

//! Tasks of a server on HTTP, which all its clients share.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use mcp_sansio::http::server::Transmit;
use mcp_sansio::http::{RequestHead, ServerOptions};
use mcp_sansio::protocol::ElicitSchema;
use mcp_sansio::{Instant, Principal};
use mcp_sansio_handlers::{
    Call, Elicit, HandlerCall, HandlerPoll, HttpServer, NoArguments, PendingHandler, Server,
};
use serde_json::{Value, json};

use crate::task_client::{Gate, Judge, assert_empty, everything, request, settings};

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

/// A site without a network, driven by hand.
pub(crate) struct TaskServer {
    server: HttpServer,
    now: Instant,
    running: Vec<PendingHandler>,
    judge: Judge,
    last: u64,
}

/// A response: its status, and the messages in it.
pub(crate) struct Response(pub(crate) u16, pub(crate) Vec<Value>);

impl TaskServer {
    fn new(gate: &Gate) -> Self {
        Self::from_server(&server(gate))
    }

    pub(crate) fn from_server(server: &Server) -> Self {
        Self::with_secret(server, [7; 32])
    }

    pub(crate) fn with_secret(server: &Server, secret: [u8; 32]) -> Self {
        let server = server.http(ServerOptions::new(), secret, 7).unwrap();
        let judge = Judge::default();
        Self { server, now: Instant::ZERO, running: Vec::new(), judge, last: 0 }
    }

    /// Lets time pass.
    #[cfg(feature = "seal")]
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
        let (exchange, work) = self.server.handle_request(&head, body.as_bytes(), principal, now);
        if let Some(work) = work {
            run(&mut self.server, &mut self.running, work, now);
        }
        self.pump();
        exchange
    }

    /// Lets handlers go on until none can.
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

    /// What has come of an exchange so far.
    fn read(&mut self, exchange: mcp_sansio::http::ExchangeId, method: &str) -> Response {
        let (mut status, mut text) = (0, String::new());
        while let Some(transmit) = self.server.poll_transmit(exchange, self.now) {
            match transmit {
                Transmit::Respond(response) => {
                    status = response.head.status.0;
                    text = String::from_utf8(response.body).unwrap();
                }
                Transmit::Open(head) => status = head.status.0,
                Transmit::Chunk(bytes) => text += std::str::from_utf8(bytes).unwrap(),
                _ => break,
            }
        }
        let lines = text.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
        let messages: Vec<Value> =
            lines.filter_map(|line| serde_json::from_str(line).ok()).collect();
        for message in &messages {
            if message.get("id").is_some() {
                self.judge.response(method, message);
            } else {
                self.judge.notification(message);
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
                    // What the handler wants may be known before the handler is.
                    server.poll_handlers(&mut Context::from_waker(Waker::noop()), now);
                    server.track(&running);
                    all.push(running);
                }
            }
        }
    }
}

#[test]
fn a_task_outlives_the_exchange_that_made_it() {
    // Rule: [TASK-029] [TASK-030].
    let gate = Gate::default();
    let mut site = TaskServer::new(&gate);
    let task = site.task("slow", None);
    assert_eq!(site.server.machine().exchange_count(), 0);
    assert_eq!(site.status(&task), "working");
    gate.open();
    site.pump();
    let done = site.about("tasks/get", &task, None);
    assert_eq!(done["result"]["result"]["content"][0]["text"], "slow");
    assert_eq!(site.call("quick", None)["content"][0]["text"], "quick");
}

#[test]
fn a_task_asks_and_goes_on_with_the_answers() {
    // Rule: [TASK-030] [TASK-032] [TASK-033].
    let mut site = TaskServer::new(&Gate::default());
    let owner = Principal::new("owner");
    let task = site.task("ask", Some(&owner));
    let waiting = site.about("tasks/get", &task, Some(&owner));
    assert!(waiting["result"]["inputRequests"]["name"].is_object(), "{waiting}");
    assert_empty(&site.about("tasks/update", &task, Some(&owner))["result"]);
    let done = site.about("tasks/get", &task, Some(&owner));
    assert_eq!(done["result"]["result"]["content"][0]["text"], r#"Some("kept") true"#);
}

#[test]
fn a_task_that_is_cancelled_or_expires_drops_its_handler() {
    // Rule: [TASK-034].
    let gate = Gate::default();
    let mut site = TaskServer::new(&gate);
    let task = site.task("slow", None);
    let other = site.task("slow", None);
    assert_eq!(site.running.len(), 2);
    assert_empty(&site.about("tasks/cancel", &task, None)["result"]);
    site.pump();
    assert_eq!(site.running.len(), 1);
    assert_eq!(site.status(&task), "cancelled");
    assert_eq!(site.server.poll_timeout(), Some(Instant::from_millis(60_000)));
    site.now = site.now + Duration::from_secs(60);
    site.server.handle_timeout(site.now);
    site.pump();
    assert_eq!(site.running.len(), 0);
    assert_eq!(site.about("tasks/get", &other, None)["error"]["code"], -32602);
    assert_eq!(site.server.poll_timeout(), None);
}

#[test]
fn the_tasks_of_one_do_not_exist_for_another() {
    // Rule: [TASK-035] [TASK-041].
    let gate = Gate::default();
    let mut site = TaskServer::new(&gate);
    let (owner, other) = (Principal::new("owner"), Principal::new("other"));
    let task = site.task("slow", Some(&owner));
    let listen = |site: &mut TaskServer, principal| {
        let filter = json!({ "notifications": { "taskIds": [task] } });
        let exchange = site.exchange("subscriptions/listen", filter, None, principal);
        assert_eq!(site.read(exchange, "").1.len(), 1);
        exchange
    };
    let (owners, others) = (listen(&mut site, Some(&owner)), listen(&mut site, Some(&other)));
    for principal in [Some(&other), None] {
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            let unknown = site.about(method, "nobody", principal)["error"].clone();
            assert_eq!(unknown["code"], -32602);
            assert_eq!(site.about(method, &task, principal)["error"], unknown);
        }
    }
    gate.open();
    site.pump();
    let told = site.read(owners, "").1;
    assert_eq!(told[0]["params"]["status"], "completed", "{told:?}");
    assert!(site.read(others, "").1.is_empty());
    let done = site.about("tasks/get", &task, Some(&owner));
    assert_eq!(done["result"]["status"], "completed");
}

#[test]
fn the_header_names_the_task() {
    // Rule: [TASK-039].
    let mut site = TaskServer::new(&Gate::default());
    let task = site.task("slow", None);
    let about = || json!({ "taskId": task, "inputResponses": {} });
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let Response(status, messages) = site.response(method, about(), Some("another"), None);
        assert_eq!(status, 400, "{method}");
        assert_eq!(messages[0]["error"]["code"], -32020, "{method}");
        assert_eq!(site.response(method, about(), None, None).0, 200, "{method}");
    }
}

#[test]
fn a_client_that_leaves_before_there_is_a_task_gives_up_its_call() {
    let gate = Gate::default();
    let mut site = TaskServer::new(&gate);
    let mut head = RequestHead::new("POST", "/mcp");
    head.field("host", b"localhost");
    head.field("content-type", b"application/json");
    head.field("accept", b"application/json, text/event-stream");
    head.field("mcp-protocol-version", b"2026-07-28");
    head.field("mcp-method", b"tools/call");
    head.field("mcp-name", b"slow");
    let body = request(1, "tools/call", json!({ "name": "slow" }), &everything());
    let (exchange, work) = site.server.handle_request(&head, body.as_bytes(), None, Instant::ZERO);
    let HandlerPoll::Pending(mut running) = work.unwrap().run() else { panic!("it waits") };
    let mut cx = Context::from_waker(Waker::noop());
    assert!(Pin::new(&mut running).poll(&mut cx).is_pending());
    site.server.handle_disconnect(exchange, Instant::ZERO);
    site.server.track(&running);
    assert!(matches!(Pin::new(&mut running).poll(&mut cx), Poll::Ready(None)));
    site.pump();
    assert_eq!(site.server.poll_timeout(), None);
}

//! A server on HTTP that a test drives step by step, with its exchanges.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Waker};

use mcp_sansio::http::{ExchangeId, HttpServerOptions, RequestHead, ServerTransmit};
use mcp_sansio::{Caller, Instant, Principal};
use mcp_sansio_handlers::Server;
use mcp_sansio_handlers::endpoint::{HttpServer, PendingHandler};
use serde_json::{Value, json};

use crate::guarded::CountingWaker;
use crate::task_client::request;
use crate::tasks_http::run;

/// A server, its exchanges and its driver.
pub(crate) struct Driven {
    pub(crate) server: HttpServer,
    pub(crate) now: Instant,
    woken: Arc<CountingWaker>,
    running: Vec<PendingHandler>,
    /// The text that was sent for each exchange.
    sent: BTreeMap<ExchangeId, String>,
    last: u64,
}

impl Driven {
    pub(crate) fn new(server: &Server) -> Self {
        let options = HttpServerOptions::new().legacy_sse("/sse", "/messages");
        let mut driven = Self {
            server: server.http(options, [7; 32], 7).unwrap(),
            now: Instant::ZERO,
            woken: Arc::default(),
            running: Vec::new(),
            sent: BTreeMap::new(),
            last: 0,
        };
        driven.drive();
        driven
    }

    /// Drives the server as its timer task does.
    pub(crate) fn drive(&mut self) {
        let Self { server, woken, running, sent, .. } = self;
        woken.0.store(0, Ordering::SeqCst);
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

    /// Drives the server if it was woken.
    pub(crate) fn settle(&mut self) {
        while self.woken.0.load(Ordering::SeqCst) > 0 {
            self.drive();
        }
    }

    /// Sends a request to the endpoint.
    pub(crate) fn request(
        &mut self,
        method: &str,
        fields: &[(&str, &str)],
        body: &str,
        principal: Option<&str>,
    ) -> ExchangeId {
        self.request_at((method, "/mcp"), fields, body, principal)
    }

    /// Sends a request to a path.
    pub(crate) fn request_at(
        &mut self,
        (method, path): (&str, &str),
        fields: &[(&str, &str)],
        body: &str,
        principal: Option<&str>,
    ) -> ExchangeId {
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
        let Self { server, running, .. } = self;
        server.admit(&head).unwrap();
        let (exchange, work) = server.handle_request(&head, body.as_bytes(), &caller, self.now);
        if let Some(work) = work {
            run(server, running, work, self.now);
        }
        self.drive();
        self.server.assert_consistent();
        exchange
    }

    /// Sends a modern request.
    pub(crate) fn modern_of(
        &mut self,
        method: &str,
        params: Value,
        principal: Option<&str>,
    ) -> ExchangeId {
        self.last += 1;
        let name = ["name", "uri", "taskId"].iter().find_map(|key| params[key].as_str());
        let name = name.map(str::to_owned);
        let extensions = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
        let body = request(self.last, method, params, &extensions);
        let version = ("mcp-protocol-version", "2026-07-28");
        let mut fields = vec![version, ("mcp-method", method)];
        fields.extend(name.as_deref().map(|name| ("mcp-name", name)));
        self.request("POST", &fields, &body, principal)
    }

    /// Returns the messages that an exchange has sent.
    pub(crate) fn messages(&self, exchange: ExchangeId) -> Vec<Value> {
        let text = self.sent.get(&exchange).map(String::as_str).unwrap_or_default();
        let lines = text.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
        lines.filter_map(|line| serde_json::from_str(line).ok()).filter(Value::is_object).collect()
    }

    /// Returns the endpoint that a stream of HTTP+SSE has named.
    pub(crate) fn endpoint(&self, exchange: ExchangeId) -> String {
        let text = &self.sent[&exchange];
        text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap().to_owned()
    }

    /// Returns the id of the session that an exchange has opened.
    pub(crate) fn session(&self, exchange: ExchangeId) -> String {
        let text = &self.sent[&exchange];
        text.lines().find_map(|line| line.strip_prefix("session ")).unwrap().to_owned()
    }

    /// Returns the methods of the notifications that an exchange has sent.
    pub(crate) fn told(&self, sent: ExchangeId) -> Vec<String> {
        let messages = self.messages(sent);
        messages.iter().filter_map(|it| it["method"].as_str().map(str::to_owned)).collect()
    }
}

//! The handlers of one caller are limited to its share.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use mcp_sansio::http::{
    ExchangeId, HttpServerOptions, RequestHead, Response, ServerLimits, ServerTransmit,
};
use mcp_sansio::{Instant, Principal};
use mcp_sansio_handlers::endpoint::{HandlerPoll, HttpServer, PendingHandler};
use mcp_sansio_handlers::{Call, NoArguments, Server};
use serde_json::{Value, json};

use crate::task_client::{Gate, everything, request};

struct SharedServer {
    server: HttpServer,
    running: Vec<PendingHandler>,
}

impl SharedServer {
    /// Creates a server with a limit of two handlers for each caller.
    fn new(gate: &Gate) -> Self {
        let gate = gate.clone();
        let server = Server::new("s", "1")
            .tool("slow", "", move |_: Call<NoArguments>| {
                let gate = gate.clone();
                async move {
                    gate.passed().await;
                    "done"
                }
            })
            .tool("quick", "", |_: Call<NoArguments>| "done");
        let mut limits = ServerLimits::DEFAULT;
        limits.handlers_per_caller_max = 2;
        let server = server.http(HttpServerOptions::new().limits(limits), [7; 32], 7).unwrap();
        Self { server, running: Vec::new() }
    }

    fn call(&mut self, who: Option<&str>, id: u64, tool: &str) -> ExchangeId {
        let call = json!({ "name": tool, "arguments": {} });
        let body = request(id, "tools/call", call, &everything());
        let mut head = RequestHead::new("POST", "/mcp");
        head.field("host", b"localhost");
        head.field("content-type", b"application/json");
        head.field("mcp-protocol-version", b"2026-07-28");
        head.field("mcp-method", b"tools/call");
        head.field("mcp-name", tool.as_bytes());
        let principal = who.map(Principal::new);
        let (exchange, work) =
            self.server.handle_request(&head, body.as_bytes(), &principal.into(), Instant::ZERO);
        match work.map(mcp_sansio_handlers::endpoint::HandlerCall::run) {
            Some(HandlerPoll::Ready(finished)) => self.server.finish(finished, Instant::ZERO),
            Some(HandlerPoll::Pending(running)) => {
                self.server.track(&running);
                self.running.push(running);
            }
            None => {}
        }
        exchange
    }

    /// Runs handlers until all of them wait.
    fn pump(&mut self) {
        let mut cx = Context::from_waker(Waker::noop());
        for mut running in std::mem::take(&mut self.running) {
            match Pin::new(&mut running).poll(&mut cx) {
                Poll::Ready(Some(finished)) => self.server.finish(finished, Instant::ZERO),
                Poll::Ready(None) => {}
                Poll::Pending => self.running.push(running),
            }
        }
    }

    fn response(&mut self, exchange: ExchangeId) -> Option<Response> {
        match self.server.poll_transmit(exchange, Instant::ZERO) {
            Some(ServerTransmit::Respond(response)) => Some(response),
            None => None,
            other => panic!("{other:?} instead of a response"),
        }
    }

    #[track_caller]
    fn expect_too_many(&mut self, exchange: ExchangeId, id: u64) {
        let response = self.response(exchange).expect("a refusal");
        assert_eq!(response.head.status.0, 429);
        assert!(response.head.fields().any(|(name, value)| name == "retry-after" && value == "10"));
        let body: Value = serde_json::from_slice(&response.body).unwrap();
        assert_eq!((&body["id"], &body["error"]["code"]), (&json!(id), &json!(-32600)));
    }
}

#[test]
fn handlers_of_one_caller_are_bounded_until_they_end() {
    let gate = Gate::default();
    let mut fixture = SharedServer::new(&gate);
    let slow = [1, 2].map(|id| fixture.call(Some("greedy"), id, "slow"));
    fixture.pump();
    for (id, tool) in [(3, "slow"), (4, "quick")] {
        let refused = fixture.call(Some("greedy"), id, tool);
        fixture.expect_too_many(refused, id);
    }
    // Other principals have their own share, and requests without a principal are not limited.
    for who in [Some("modest"), None, None, None] {
        let exchange = fixture.call(who, 5, "slow");
        assert!(fixture.response(exchange).is_none());
    }
    // A disconnected client frees the slot of its handler.
    fixture.server.handle_disconnect(slow[0], Instant::ZERO);
    while fixture.server.poll_call().is_some() {}
    let third = fixture.call(Some("greedy"), 6, "slow");
    let refused = fixture.call(Some("greedy"), 7, "slow");
    fixture.expect_too_many(refused, 7);
    gate.open();
    fixture.pump();
    for exchange in [slow[1], third] {
        assert_eq!(fixture.response(exchange).expect("an answer").head.status.0, 200);
    }
    let again = fixture.call(Some("greedy"), 8, "quick");
    assert_eq!(fixture.response(again).expect("an answer").head.status.0, 200);
}

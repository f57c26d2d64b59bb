//! One server over both bindings: handlers are called, finished and cancelled in the same way, and
//! their commands have the same effect.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use mcp_sansio::http::{ExchangeId, HttpServerOptions, RequestHead, ServerTransmit};
use mcp_sansio::{Instant, LoggingLevel};
use mcp_sansio_handlers::endpoint::{
    Endpoint, HandlerCall, HandlerPoll, HttpServer, PendingHandler, ServerEndpoint,
};
use mcp_sansio_handlers::{Call, HandlerError, NoArguments, Server, ServerHandle};
use serde_json::{Value, json};

use crate::panics::guard;
use crate::task_client::{Gate, settings};

/// How a client reaches the server.
trait Binding {
    fn request(&mut self, id: u64, method: &str, subject: &str, message: &str);

    /// Cancels a request as this binding requires.
    fn cancel(&mut self, id: u64);

    /// Returns the messages that the server has sent for a request since the last call.
    fn heard(&mut self, id: u64) -> Vec<Value>;

    fn handle(&self) -> ServerHandle;

    fn is_drained(&self) -> bool;
}

struct Stream(ServerEndpoint);

impl Binding for Stream {
    fn request(&mut self, _: u64, _: &str, _: &str, message: &str) {
        self.0.handle_frame(Ok(message.as_bytes()), Instant::ZERO);
    }

    fn cancel(&mut self, id: u64) {
        let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
                                "params": { "requestId": id } });
        self.0.handle_frame(Ok(cancelled.to_string().as_bytes()), Instant::ZERO);
    }

    fn heard(&mut self, _: u64) -> Vec<Value> {
        let mut said = Vec::new();
        for _ in 0..3 {
            self.0.poll_handlers(&mut Context::from_waker(Waker::noop()), Instant::ZERO);
            self.0.transmit(&mut |bytes| {
                said.extend_from_slice(bytes);
                bytes.len()
            });
        }
        messages(&said)
    }

    fn handle(&self) -> ServerHandle {
        self.0.handle()
    }

    fn is_drained(&self) -> bool {
        self.0.is_drained()
    }
}

struct Http {
    server: HttpServer,
    running: Vec<PendingHandler>,
    exchanges: BTreeMap<u64, ExchangeId>,
}

impl Http {
    fn run(&mut self, work: HandlerCall<'_>) {
        match work.run() {
            HandlerPoll::Ready(finished) => self.server.finish(finished, Instant::ZERO),
            HandlerPoll::Pending(running) => {
                self.server.track(&running);
                self.running.push(running);
            }
        }
    }
}

impl Binding for Http {
    fn request(&mut self, id: u64, method: &str, subject: &str, message: &str) {
        let mut head = RequestHead::new("POST", "/mcp");
        head.field("host", b"localhost");
        head.field("content-type", b"application/json");
        head.field("accept", b"application/json, text/event-stream");
        head.field("mcp-protocol-version", b"2026-07-28");
        head.field("mcp-method", method.as_bytes());
        head.field("mcp-name", subject.as_bytes());
        let (exchange, work) = self.server.handle_request(
            &head,
            message.as_bytes(),
            &mcp_sansio::Caller::ANONYMOUS,
            Instant::ZERO,
        );
        self.exchanges.insert(id, exchange);
        if let Some(work) = work {
            self.run(work);
        }
    }

    fn cancel(&mut self, id: u64) {
        self.server.handle_disconnect(self.exchanges[&id], Instant::ZERO);
    }

    fn heard(&mut self, id: u64) -> Vec<Value> {
        let mut cx = Context::from_waker(Waker::noop());
        for _ in 0..3 {
            self.server.poll_handlers(&mut cx, Instant::ZERO);
            while let Some(work) = self.server.poll_call() {
                self.run(work);
            }
            let server = &mut self.server;
            self.running.retain_mut(|running| match Pin::new(running).poll(&mut cx) {
                Poll::Ready(Some(finished)) => {
                    server.finish(finished, Instant::ZERO);
                    false
                }
                Poll::Ready(None) => false,
                Poll::Pending => true,
            });
        }
        let mut said = Vec::new();
        while let Some(transmit) = self.server.poll_transmit(self.exchanges[&id], Instant::ZERO) {
            match transmit {
                ServerTransmit::Respond(response) => said = response.body,
                ServerTransmit::Chunk(bytes) => said.extend_from_slice(bytes),
                ServerTransmit::Open(_) => {}
                _ => break,
            }
        }
        messages(&said)
    }

    fn handle(&self) -> ServerHandle {
        self.server.handle()
    }

    fn is_drained(&self) -> bool {
        self.server.is_drained()
    }
}

/// Returns the messages in lines, in a body or in an event stream.
fn messages(said: &[u8]) -> Vec<Value> {
    let said = std::str::from_utf8(said).unwrap();
    let lines = said.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
    lines.filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn server(gate: &Gate) -> Server {
    let gates = [gate.clone(), gate.clone()];
    let [wait, task] = gates;
    Server::new("s", "1")
        .logging()
        .tasks(settings())
        .tool("report", "", async |call: Call<NoArguments>| {
            call.progress(1.0, None, "begun");
            call.log(LoggingLevel::Info, "as well");
            call.progress(2.0, None, "ended");
            "reported"
        })
        .tool("fail", "", async |_: Call<NoArguments>| {
            Err::<String, _>(HandlerError::failed("no luck"))
        })
        .tool("panic", "", async |_: Call<NoArguments>| -> &str { panic!("for the test") })
        .tool("remove", "", |call: Call<NoArguments>| {
            call.edit_catalog(|catalog| _ = catalog.remove_tool("fail")).unwrap();
            "removed"
        })
        .tool("wait", "", move |_: Call<NoArguments>| {
            let gate = wait.clone();
            async move {
                gate.passed().await;
                "waited"
            }
        })
        .tool("task", "", move |call: Call<NoArguments>| {
            let gate = task.clone();
            async move {
                call.run_as_task();
                gate.passed().await;
                "worked"
            }
        })
}

fn ask(line: &mut dyn Binding, id: u64, method: &str, subject: &str, mut params: Value) {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "c", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities":
            { "extensions": { "io.modelcontextprotocol/tasks": {} } },
        "io.modelcontextprotocol/logLevel": "info",
        "progressToken": id,
    });
    let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    line.request(id, method, subject, &message.to_string());
}

fn call(line: &mut dyn Binding, id: u64, tool: &str) {
    ask(line, id, "tools/call", tool, json!({ "name": tool, "arguments": {} }));
}

/// Runs a scenario over both bindings. Returns the messages, which must be equal.
fn on_both(scenario: impl Fn(&mut dyn Binding, &Gate) -> Vec<Value>) -> Vec<Value> {
    let gate = Gate::default();
    let mut stream = Stream(server(&gate).endpoint(7).unwrap());
    stream.0.catch_panics(guard());
    let heard = scenario(&mut stream, &gate);
    let gate = Gate::default();
    let mut http = server(&gate).http(HttpServerOptions::new(), [7; 32], 7).unwrap();
    http.catch_panics(guard());
    let mut http = Http { server: http, running: Vec::new(), exchanges: BTreeMap::new() };
    assert_eq!(scenario(&mut http, &gate), heard);
    heard
}

/// Summarizes messages: the method, the text of a result, or the code of an error.
fn outline(messages: &[Value]) -> Vec<String> {
    let outline = |message: &Value| {
        let text = ["/method", "/result/content/0/text", "/result/resultType", "/result/status"];
        let text = text.iter().find_map(|at| message.pointer(at)?.as_str());
        text.map_or_else(|| message["error"]["code"].to_string(), str::to_owned)
    };
    messages.iter().map(outline).collect()
}

#[test]
fn messages_of_a_handler_precede_its_result() {
    let heard = on_both(|line, _| {
        call(line, 1, "report");
        line.heard(1)
    });
    let progress = "notifications/progress";
    assert_eq!(outline(&heard), [progress, "notifications/message", progress, "reported"]);
}

#[test]
fn results_and_errors_of_handlers_are_answered() {
    let heard = on_both(|line, gate| {
        call(line, 1, "fail");
        let mut heard = line.heard(1);
        call(line, 2, "wait");
        assert_eq!(line.heard(2), [Value::Null; 0]);
        gate.open();
        heard.append(&mut line.heard(2));
        call(line, 3, "panic");
        heard.append(&mut line.heard(3));
        heard
    });
    assert_eq!(outline(&heard), ["no luck", "waited", "-32603"]);
}

#[test]
fn a_remote_closes_the_server() {
    let heard = on_both(|line, gate| {
        call(line, 1, "wait");
        assert_eq!(line.heard(1), [Value::Null; 0]);
        let remote = line.handle();
        gate.open();
        let heard = line.heard(1);
        assert!(!line.is_drained());
        remote.close();
        assert_eq!(line.heard(1), [Value::Null; 0]);
        assert!(line.is_drained());
        heard
    });
    assert_eq!(outline(&heard), ["waited"]);
}

#[test]
fn an_edit_of_the_catalog_holds_for_the_next_request() {
    let heard = on_both(|line, _| {
        call(line, 1, "remove");
        let mut heard = line.heard(1);
        call(line, 2, "fail");
        heard.append(&mut line.heard(2));
        heard
    });
    assert_eq!(outline(&heard), ["removed", "-32602"]);
}

#[test]
fn the_handler_of_a_cancelled_request_is_dropped_and_answers_nothing() {
    let heard = on_both(|line, gate| {
        let held = gate.holders();
        call(line, 1, "wait");
        assert_eq!(line.heard(1), [Value::Null; 0]);
        assert_eq!(gate.holders(), held + 1);
        line.cancel(1);
        let heard = line.heard(1);
        assert_eq!(gate.holders(), held);
        gate.open();
        call(line, 2, "wait");
        [heard, line.heard(2)].concat()
    });
    assert_eq!(outline(&heard), ["waited"]);
}

#[test]
fn a_handler_that_becomes_a_task_continues_after_its_response() {
    let heard = on_both(|line, gate| {
        call(line, 1, "task");
        let mut heard = line.heard(1);
        let task = json!({ "taskId": heard[0]["result"]["taskId"] });
        let name = heard[0]["result"]["taskId"].as_str().unwrap().to_owned();
        // Its slot is free for the next call.
        call(line, 2, "report");
        heard.append(&mut line.heard(2));
        gate.open();
        heard.append(&mut line.heard(2));
        ask(line, 3, "tasks/get", &name, task);
        heard.append(&mut line.heard(3));
        heard
    });
    let (progress, log) = ("notifications/progress", "notifications/message");
    assert_eq!(outline(&heard), ["task", progress, log, progress, "reported", "complete"]);
    assert_eq!(heard[5]["result"]["status"], "completed");
    assert_eq!(heard[5]["result"]["result"]["content"][0]["text"], "worked");
}

#[test]
fn the_handler_of_a_cancelled_task_is_dropped() {
    let heard = on_both(|line, gate| {
        let held = gate.holders();
        call(line, 1, "task");
        let heard = line.heard(1);
        assert_eq!(gate.holders(), held + 1);
        let name = heard[0]["result"]["taskId"].as_str().unwrap().to_owned();
        ask(line, 2, "tasks/cancel", &name, json!({ "taskId": name }));
        let answered = line.heard(2);
        assert_eq!(gate.holders(), held);
        [heard, answered].concat()
    });
    assert_eq!(outline(&heard), ["task", "complete"]);
}

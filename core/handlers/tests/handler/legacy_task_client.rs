//! A client of tasks of 2025-11-25 that writes its messages as JSON and validates responses and
//! notifications against the schema of that revision.

use std::collections::BTreeMap;
use std::task::{Context, Waker};
use std::time::Duration;

use mcp_sansio::Instant;
use mcp_sansio_handlers::endpoint::{Endpoint, ServerEndpoint};
use mcp_sansio_handlers::handler::Threading;
use mcp_sansio_handlers::{Server, ThreadSafe};
use serde_json::{Value, json};

use crate::validators;

/// The metadata key with the task that a message belongs to.
pub(crate) const RELATED: &str = "io.modelcontextprotocol/related-task";

/// Returns the capabilities of a client that supports every input request.
pub(crate) fn everything() -> Value {
    json!({ "elicitation": { "form": {} }, "sampling": {}, "roots": {} })
}

/// A client over a byte stream.
pub(crate) struct LegacyTaskClient<K: Threading = ThreadSafe> {
    pub(crate) endpoint: ServerEndpoint<K>,
    pub(crate) now: Instant,
    /// Messages that are not responses: notifications, and requests of the server.
    pub(crate) unasked: Vec<Value>,
    pub(crate) declared: Value,
    answers: BTreeMap<u64, Value>,
    asked: BTreeMap<u64, String>,
    last: u64,
}

impl<K: Threading> LegacyTaskClient<K> {
    pub(crate) fn new(server: &Server<K>) -> Self {
        Self::with(server, everything())
    }

    /// Connects a client with these capabilities.
    pub(crate) fn with(server: &Server<K>, capabilities: Value) -> Self {
        let mut client = Self {
            endpoint: server.endpoint(7).unwrap(),
            now: Instant::ZERO,
            unasked: Vec::new(),
            declared: Value::Null,
            answers: BTreeMap::new(),
            asked: BTreeMap::new(),
            last: 0,
        };
        let opened = client.result("initialize", initialize(&capabilities));
        client.declared = opened["capabilities"].clone();
        client.tell("notifications/initialized", json!({}));
        client
    }

    pub(crate) fn send(&mut self, method: &str, params: Value) -> u64 {
        self.pump();
        self.last += 1;
        self.asked.insert(self.last, method.to_owned());
        let id = self.last;
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.deliver(&message);
        id
    }

    pub(crate) fn tell(&mut self, method: &str, params: Value) {
        let message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        self.deliver(&message);
    }

    /// Answers a request of the server.
    pub(crate) fn reply(&mut self, question: &Value, result: Value) {
        let id = &question["id"];
        let message = json!({ "jsonrpc": "2.0", "id": id, "result": result });
        self.deliver(&message);
    }

    pub(crate) fn deliver(&mut self, message: &Value) {
        self.endpoint.handle_frame(Ok(message.to_string().as_bytes()), self.now);
        self.pump();
    }

    pub(crate) fn answer(&mut self, id: u64) -> Option<Value> {
        self.answers.remove(&id)
    }

    pub(crate) fn response(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.answer(id).unwrap_or_else(|| panic!("no answer to {method}"))
    }

    /// Sends a request and returns its result. Panics on an error.
    pub(crate) fn result(&mut self, method: &str, params: Value) -> Value {
        let response = self.response(method, params);
        assert!(response["result"].is_object(), "{response}");
        response["result"].clone()
    }

    /// Sends a request and returns the code of its error.
    pub(crate) fn error(&mut self, method: &str, params: Value) -> i64 {
        let response = self.response(method, params);
        response["error"]["code"].as_i64().unwrap_or_else(|| panic!("{response}"))
    }

    /// Calls a tool as a task and returns the id of the task.
    pub(crate) fn task(&mut self, tool: &str) -> String {
        let created = self.result("tools/call", json!({ "name": tool, "task": {} }));
        created["task"]["taskId"].as_str().unwrap_or_else(|| panic!("{created}")).to_owned()
    }

    pub(crate) fn get(&mut self, task: &str) -> Value {
        self.result("tasks/get", json!({ "taskId": task }))
    }

    pub(crate) fn status(&mut self, task: &str) -> String {
        self.get(task)["status"].as_str().unwrap().to_owned()
    }

    /// Advances the clock.
    pub(crate) fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
        self.endpoint.handle_timeout(self.now);
        self.pump();
    }

    /// Runs handlers until all of them wait, and reads the output.
    pub(crate) fn pump(&mut self) {
        let mut bytes = Vec::new();
        for _ in 0..20 {
            self.endpoint.poll_handlers(&mut Context::from_waker(Waker::noop()), self.now);
            self.endpoint.transmit(&mut |waiting| {
                bytes.extend_from_slice(waiting);
                waiting.len()
            });
        }
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let message: Value = serde_json::from_slice(line).unwrap();
            match message["id"].as_u64() {
                Some(id) if message.get("method").is_none() => {
                    let method = self.asked.get(&id).map_or("", String::as_str);
                    check_response(method, &message);
                    let twice = self.answers.insert(id, message);
                    assert!(twice.is_none(), "answered twice: {twice:?}");
                }
                _ => self.unasked.push(message),
            }
        }
    }
}

/// Returns the parameters of `initialize`.
pub(crate) fn initialize(capabilities: &Value) -> Value {
    json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities,
            "clientInfo": { "name": "visitor", "version": "1" } })
}

/// Validates a response against the schema of the revision.
pub(crate) fn check_response(method: &str, response: &Value) {
    let result = &response["result"];
    if !result.is_object() {
        return;
    }
    // [TASK-010].
    match method {
        "tools/call" if result.get("task").is_some() => check("CreateTaskResult", result),
        "tools/call" => check("CallToolResult", result),
        "tools/list" => check("ListToolsResult", result),
        "tasks/get" => check("GetTaskResult", result),
        "tasks/list" => check("ListTasksResult", result),
        "tasks/cancel" => check("CancelTaskResult", result),
        "tasks/result" => check("CallToolResult", result),
        _ => {}
    }
    // [TASK-014].
    let related = result["_meta"].get(RELATED).is_some();
    assert_eq!(related, method == "tasks/result", "{method}: {response}");
}

fn check(definition: &str, value: &Value) {
    validators::assert_valid("2025-11-25", definition, value);
}

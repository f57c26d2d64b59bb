//! A client of tasks that writes its messages as JSON and validates responses and notifications
//! against the schema of the extension.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use mcp_sansio::Instant;
use mcp_sansio_handlers::endpoint::{Endpoint, ServerEndpoint};
use mcp_sansio_handlers::handler::Threading;
use mcp_sansio_handlers::{Server, TaskSettings, ThreadSafe};
use serde_json::{Value, json};

use crate::validators;

/// 2026-07-28T00:00:00Z.
pub(crate) const EPOCH: Duration = Duration::from_secs(1_785_196_800);

/// Returns settings with which the ids of tasks are 1, 2, 3.
pub(crate) fn settings() -> TaskSettings {
    let drawn = AtomicU64::new(0);
    let entropy = move || u128::from(drawn.fetch_add(1, Ordering::SeqCst) + 1).to_be_bytes();
    TaskSettings::new(entropy, EPOCH).ttl(Duration::from_secs(60))
}

/// Returns the capabilities of a client that supports everything.
pub(crate) fn everything() -> Value {
    json!({ "elicitation": { "form": {} }, "sampling": {}, "roots": {},
            "extensions": { "io.modelcontextprotocol/tasks": {} } })
}

/// Returns the JSON of a request.
pub(crate) fn request(id: u64, method: &str, mut params: Value, capabilities: &Value) -> String {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "desk", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    });
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

/// A client over a byte stream.
pub(crate) struct TaskClient<K: Threading = ThreadSafe> {
    pub(crate) endpoint: ServerEndpoint<K>,
    pub(crate) now: Instant,
    pub(crate) capabilities: Value,
    /// Messages that are not responses.
    pub(crate) notifications: Vec<Value>,
    answers: BTreeMap<u64, Value>,
    asked: BTreeMap<u64, String>,
    last: u64,
}

impl<K: Threading> TaskClient<K> {
    pub(crate) fn new(server: &Server<K>) -> Self {
        Self {
            endpoint: server.endpoint(7).unwrap(),
            now: Instant::ZERO,
            capabilities: everything(),
            notifications: Vec::new(),
            answers: BTreeMap::new(),
            asked: BTreeMap::new(),
            last: 0,
        }
    }

    /// Sends a request and returns its id.
    pub(crate) fn send(&mut self, method: &str, params: Value) -> u64 {
        // Runs every handler that is ready before the request is delivered.
        self.pump();
        self.last += 1;
        let text = request(self.last, method, params, &self.capabilities);
        self.asked.insert(self.last, method.to_owned());
        self.endpoint.handle_frame(Ok(text.as_bytes()), self.now);
        self.pump();
        self.last
    }

    /// Sends a request and returns its whole response, which must be available.
    pub(crate) fn response(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.answer(id).unwrap_or_else(|| panic!("no answer to {method}"))
    }

    pub(crate) fn answer(&mut self, id: u64) -> Option<Value> {
        self.answers.remove(&id)
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

    pub(crate) fn call(&mut self, tool: &str) -> Value {
        self.result("tools/call", json!({ "name": tool, "arguments": {} }))
    }

    /// Calls a tool as a task and returns the id of the task.
    pub(crate) fn task(&mut self, tool: &str) -> String {
        let created = self.call(tool);
        assert_eq!(created["resultType"], "task", "{created}");
        created["taskId"].as_str().unwrap().to_owned()
    }

    pub(crate) fn get(&mut self, task: &str) -> Value {
        self.result("tasks/get", json!({ "taskId": task }))
    }

    pub(crate) fn status(&mut self, task: &str) -> String {
        self.get(task)["status"].as_str().unwrap().to_owned()
    }

    /// Sends the answers to input requests of a task.
    pub(crate) fn update(&mut self, task: &str, responses: Value) {
        let params = json!({ "taskId": task, "inputResponses": responses });
        assert_empty(&self.result("tasks/update", params));
    }

    pub(crate) fn cancel(&mut self, task: &str) {
        assert_empty(&self.result("tasks/cancel", json!({ "taskId": task })));
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
                Some(id) => {
                    let method = self.asked.get(&id).map_or("", String::as_str);
                    check_response(method, &message);
                    let twice = self.answers.insert(id, message);
                    assert!(twice.is_none(), "answered twice: {twice:?}");
                }
                None => {
                    check_notification(&message);
                    self.notifications.push(message);
                }
            }
        }
    }
}

/// Asserts that a result is a mere acknowledgement.
// [TASK-033].
pub(crate) fn assert_empty(result: &Value) {
    let others: Vec<_> = result.as_object().unwrap().keys().filter(|key| *key != "_meta").collect();
    assert_eq!(others, ["resultType"], "{result}");
    assert_eq!(result["resultType"], "complete");
}

/// Validates a response against the schema of the extension.
pub(crate) fn check_response(method: &str, response: &Value) {
    let result = &response["result"];
    // [TASK-026] [TASK-030] [TASK-033].
    match method {
        "tools/call" if result["resultType"] == "task" => check("CreateTaskResult", result),
        "tasks/get" if result.is_object() => check("GetTaskResult", result),
        "tasks/update" if result.is_object() => check("UpdateTaskResult", result),
        "tasks/cancel" if result.is_object() => check("CancelTaskResult", result),
        _ => {}
    }
    if method != "tools/call" && result.is_object() {
        assert_ne!(result["resultType"], "task", "{method}");
    }
}

/// Validates a notification against the schema of the extension.
pub(crate) fn check_notification(message: &Value) {
    match message["method"].as_str() {
        // [TASK-038].
        Some("notifications/tasks") => check("TaskStatusNotification", message),
        Some("notifications/progress" | "notifications/message") => {
            panic!("this notification belongs to a task: {message}")
        }
        _ => {}
    }
}

fn check(definition: &str, value: &Value) {
    validators::assert_valid("ext-tasks", definition, value);
}

/// Blocks handlers until the test opens it.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<Mutex<(bool, Vec<Waker>)>>);

impl Gate {
    pub(crate) fn open(&self) {
        let wakers = {
            let mut inner = self.0.lock().unwrap();
            inner.0 = true;
            std::mem::take(&mut inner.1)
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    pub(crate) async fn passed(&self) {
        std::future::poll_fn(|cx| {
            let mut inner = self.0.lock().unwrap();
            if inner.0 {
                return Poll::Ready(());
            }
            inner.1.push(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Returns how many clones exist: held by the test, the server and running handlers.
    pub(crate) fn holders(&self) -> usize {
        Arc::strong_count(&self.0)
    }
}

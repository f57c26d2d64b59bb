//! A server machine, driven by operations.

use std::time::Duration;

use mcp_sansio::Instant;
use mcp_sansio::catalog::Changes;
use mcp_sansio::jsonrpc::ErrorObject;
use mcp_sansio::peer::{
    CallHandle, CloseReason, Event, Failure, Request, RequestHandle, Server, ServerCommand,
    Subject as Gone,
};
use mcp_sansio::protocol::InputRequiredResult;
use serde_json::{Value, json};

use crate::capabilities;
use crate::commands::{self, OBJECT, method, nth, options};
use crate::outcome::Outcome;
use crate::question::{KEYS, input_required, spell_inputs};
use crate::transcript::Subject;
use crate::wire::spell_lines;

use super::operation::Operation;

pub(super) struct Machine {
    server: Server,
    now: Instant,
    /// Requests by number, in their latest form.
    requests: Vec<Request<'static>>,
    calls: Vec<CallHandle>,
    /// The id of the server's newest request.
    newest: i64,
    steps: u32,
}

impl Machine {
    pub(super) fn new(server: Server) -> Self {
        Self {
            server,
            now: Instant::ZERO,
            requests: Vec::new(),
            calls: Vec::new(),
            newest: 0,
            steps: 0,
        }
    }

    fn take(&mut self, text: &str, out: &mut Outcome) {
        match self.server.handle_message(text.as_bytes(), self.now) {
            Ok(event) => {
                let event = event.map(Event::into_owned);
                event.into_iter().for_each(|event| self.note(event, out));
            }
            Err(_) => out.refuse("closed"),
        }
    }

    fn note(&mut self, event: Event<'static>, out: &mut Outcome) {
        let line = match event {
            Event::Opened(opened) => format!("opened at {}", opened.revision),
            Event::Request(request) => {
                let answers: Vec<_> = KEYS
                    .iter()
                    .filter_map(|key| {
                        let answered = request.inputs.response(key).map(|_| "ok");
                        let refused = request.inputs.refusal(key).map(|_| "refused");
                        Some((*key, answered.or(refused)?))
                    })
                    .collect();
                let inputs = spell_inputs(&answers, request.inputs.state().is_some());
                let method = request.method.as_str().to_owned();
                let number = self.number_of(request.handle).unwrap_or(self.requests.len());
                if number == self.requests.len() {
                    self.requests.push(request);
                } else {
                    self.requests[number] = request;
                }
                format!("request {number} {method}{inputs}")
            }
            Event::Notification(it) => format!("notification {}", it.method),
            Event::Ended(ended) => {
                let call = self.calls.iter().position(|call| *call == ended.call);
                let how = match ended.outcome {
                    Ok(_) => "ok",
                    Err(Failure::Refused(_)) => "refused",
                    Err(Failure::TimedOut { .. }) => "timed out",
                    Err(Failure::Cancelled) => "cancelled",
                    Err(Failure::ConnectionLost) => "lost",
                    Err(_) => "another way",
                };
                format!("ended {}: {how}", call.expect("a call that was made"))
            }
            Event::Cancelled(cancelled) => match cancelled.subject {
                Gone::Request(handle) => {
                    format!("cancelled request {}", self.number_of(handle).expect("a request"))
                }
                other => panic!("{other:?} is cancelled"),
            },
            Event::Violation(_) => "violation".into(),
            Event::Closed(CloseReason::Local) => "closed: local".into(),
            Event::Closed(CloseReason::EndOfInput) => "closed: end of input".into(),
            Event::Closed(CloseReason::Violation(_)) => "closed: violation".into(),
            other => format!("{other:?}"),
        };
        out.tell(line);
    }

    fn number_of(&self, handle: RequestHandle) -> Option<usize> {
        self.requests.iter().position(|request| request.handle == handle)
    }

    fn drain(&mut self, out: &mut Outcome) {
        while let Some(event) = self.server.poll_event() {
            self.note(event, out);
        }
        while let Some(bytes) = self.server.poll_transmit() {
            out.sent.extend(spell_lines(bytes));
        }
        for line in &out.sent {
            let id = line.split(' ').nth(1).and_then(|id| id.parse::<i64>().ok());
            if let Some(id) =
                id.filter(|_| !line.starts_with("result") && !line.starts_with("error"))
            {
                self.newest = self.newest.max(id);
            }
        }
        self.server.assert_consistent();
        let deadline = self.server.poll_timeout();
        assert!(deadline.is_none_or(|it| it > self.now), "the driver would spin");
        out.waits = deadline.is_some();
    }
}

impl Subject<Operation> for Machine {
    fn apply(&mut self, operation: &Operation) -> Outcome {
        let mut out = Outcome::default();
        let o = &mut out;
        self.steps += 1;
        if let Some(message) = message(operation, self.newest) {
            self.take(&message, o);
        }
        match operation {
            Operation::Wait(seconds) => {
                self.now = self.now + Duration::from_secs(*seconds);
                self.server.handle_timeout(self.now);
            }
            Operation::EndOfInput => self.server.handle_eof(),
            _ => {}
        }
        let mut required = InputRequiredResult::new();
        let Self { server, now, requests, calls, steps, .. } = self;
        if let Some(command) = resolve(operation, requests, calls, *steps, &mut required) {
            commands::note(server.apply(command, *now), calls, o);
        }
        self.drain(&mut out);
        out
    }
}

/// Returns the command of an operation, if it belongs to the application and its number refers to
/// something.
fn resolve<'a>(
    operation: &Operation,
    requests: &'a [Request<'static>],
    calls: &[CallHandle],
    steps: u32,
    required: &'a mut InputRequiredResult,
) -> Option<ServerCommand<'a>> {
    let request = |number| nth(requests, number).map(|request| request.handle);
    Some(match operation {
        Operation::Respond(it) => ServerCommand::Respond { request: request(*it)?, result: OBJECT },
        Operation::Reject(it) => {
            ServerCommand::Reject { request: request(*it)?, error: ErrorObject::internal("no") }
        }
        Operation::Ask { request, questions, state } => {
            *required = input_required(questions, *state);
            let request = nth(requests, *request)?.into();
            ServerCommand::RequireInput { request, required: (&*required).into() }
        }
        Operation::Progress(it) => {
            let (request, progress) = (request(*it)?, f64::from(steps));
            ServerCommand::Progress { request, progress, total: None, message: None }
        }
        Operation::Call(name) => {
            ServerCommand::Call { method: method(name), params: OBJECT, options: options() }
        }
        Operation::Tell(name) => ServerCommand::Notify { method: method(name), params: OBJECT },
        Operation::GiveUp(it) => {
            ServerCommand::Cancel { call: *nth(calls, *it)?, reason: "".into() }
        }
        Operation::Announce => ServerCommand::Announce(Changes::new().tools(true)),
        Operation::Close => ServerCommand::Close,
        _ => return None,
    })
}

/// Returns the message that the client sends.
fn message(operation: &Operation, newest: i64) -> Option<String> {
    let id = |id: &str| serde_json::from_str::<Value>(id).expect("an id");
    let message = match operation {
        Operation::Initialize { id: number, version, client } => {
            let mut params = json!({
                "capabilities": capabilities::to_json(client),
                "clientInfo": { "name": "c", "version": "1" },
            });
            if let Some(version) = version {
                params["protocolVersion"] = json!(version);
            }
            json!({ "id": id(number), "method": "initialize", "params": params })
        }
        Operation::Initialized => json!({ "method": "notifications/initialized" }),
        Operation::Request { id: number, method, modern, again } => {
            // Valid for every method: each uses the members that it knows.
            let mut params = json!({
                "name": "t",
                "uri": "a:b",
                "level": "info",
                "notifications": { "toolsListChanged": true },
                "_meta": { "progressToken": id(number) },
            });
            if let Some(modern) = modern {
                let meta = &mut params["_meta"];
                meta["io.modelcontextprotocol/protocolVersion"] = json!(modern.version);
                if let Some(declared) = &modern.capabilities {
                    meta["io.modelcontextprotocol/clientCapabilities"] =
                        capabilities::to_json(declared);
                }
            }
            if *again {
                params["inputResponses"] = json!({ "a": {} });
                params["requestState"] = json!("s");
            }
            json!({ "id": id(number), "method": method, "params": params })
        }
        Operation::Notify(method) => {
            json!({ "method": method, "params": { "progressToken": "none", "progress": 1 } })
        }
        Operation::Cancel(number) => {
            let params = json!({ "requestId": id(number) });
            json!({ "method": "notifications/cancelled", "params": params })
        }
        Operation::Answer { back, well: true } => json!({ "id": newest + 1 - back, "result": {} }),
        Operation::Answer { back, well: false } => {
            json!({ "id": newest + 1 - back, "error": { "code": -1, "message": "no" } })
        }
        Operation::NotJson => return Some("{".into()),
        Operation::NoMessage(number) => json!({ "id": id(number), "method": 5 }),
        _ => return None,
    };
    let mut message = message;
    message["jsonrpc"] = json!("2.0");
    Some(message.to_string())
}

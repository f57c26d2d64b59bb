//! A server's machine, driven by operations.

use std::time::Duration;

use mcp_sansio::Instant;
use mcp_sansio::catalog::Changes;
use mcp_sansio::jsonrpc::{ErrorObject, RawJson};
use mcp_sansio::peer::{
    CallHandle, CallOptions, CloseReason, CommandError, Event, Failure, Request, RequestHandle,
    Server, Subject as Gone,
};
use mcp_sansio::protocol::Method;
use serde_json::{Value, json};

use crate::capabilities;
use crate::outcome::Outcome;
use crate::question::{KEYS, input_required, spell_inputs};
use crate::transcript::Subject;
use crate::wire::spell_lines;

use super::operation::Operation;

pub(super) struct Machine {
    server: Server,
    now: Instant,
    /// Requests by number, as they were last seen.
    requests: Vec<Request<'static>>,
    calls: Vec<CallHandle>,
    /// The id of the newest request of the server.
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
                Gone::Input(_) => "cancelled an input".into(),
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

    fn nth(&self, number: usize) -> Option<Request<'static>> {
        let number = number.checked_rem(self.requests.len())?;
        self.requests.get(number).cloned()
    }

    fn call(&mut self, method: &str) -> Result<(), &'static str> {
        let method = Method::parse(method).expect("a method of the table");
        let options = CallOptions::default();
        let called = self.server.call(method, &RawJson::EMPTY_OBJECT, &options, self.now);
        self.calls.push(called.map_err(refusal_of_call)?);
        Ok(())
    }

    fn tell(&mut self, method: &str) -> Result<(), &'static str> {
        let method = Method::parse(method).expect("a method of the table");
        self.server.notify(method, &RawJson::EMPTY_OBJECT).map_err(refusal_of_call)
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
        let deadline = self.server.poll_timeout();
        assert!(deadline.is_none_or(|it| it > self.now), "a driver would spin");
        out.waits = deadline.is_some();
    }
}

impl Subject<Operation> for Machine {
    fn apply(&mut self, operation: &Operation) -> Outcome {
        use Operation::*;

        let mut out = Outcome::default();
        let o = &mut out;
        self.steps += 1;
        if let Some(message) = message(operation, self.newest) {
            self.take(&message, o);
        }
        let mut refuse =
            |outcome: Result<(), &'static str>| outcome.unwrap_or_else(|why| o.refuse(why));
        match operation {
            Wait(seconds) => {
                self.now = self.now + Duration::from_secs(*seconds);
                self.server.handle_timeout(self.now);
            }
            EndOfInput => self.server.handle_eof(),
            Respond(request) => {
                if let Some(request) = self.nth(*request) {
                    let empty = RawJson::EMPTY_OBJECT;
                    refuse(self.server.respond_with(request.handle, &empty).map_err(of_answer));
                }
            }
            Reject(request) => {
                if let Some(request) = self.nth(*request) {
                    let error = ErrorObject::internal("no");
                    refuse(self.server.reject(request.handle, error).map_err(of_answer));
                }
            }
            Ask { request, questions, state } => {
                if let Some(request) = self.nth(*request) {
                    let required = input_required(questions, *state);
                    let asked = self.server.require_input(request, &required, self.now);
                    refuse(asked.map_err(of_answer));
                }
            }
            Progress(request) => {
                if let Some(request) = self.nth(*request) {
                    let progress = f64::from(self.steps);
                    self.server.progress(request.handle, progress, None, None, self.now);
                }
            }
            Call(method) => refuse(self.call(method)),
            Tell(method) => refuse(self.tell(method)),
            GiveUp(call) => {
                let call = call.checked_rem(self.calls.len()).map(|call| self.calls[call]);
                call.into_iter().for_each(|call| self.server.cancel(call, "", self.now));
            }
            Announce => {
                let changes = Changes { tools: true, ..Changes::default() };
                self.server.announce(changes);
            }
            Close => self.server.close(),
            _ => {}
        }
        self.drain(&mut out);
        out
    }
}

/// The text of what the client sends.
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
            // Fit for every method: each takes what it knows.
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

pub(crate) fn refusal_of_call(error: CommandError) -> &'static str {
    match error {
        CommandError::Forbidden(_) => "forbidden",
        CommandError::OutOfPlace(_) => "out of place",
        CommandError::NotOpen => "not open",
        CommandError::Closed(_) => "closed",
        other => panic!("{other}"),
    }
}

fn of_answer(error: CommandError) -> &'static str {
    match error {
        CommandError::NotDue => "not due",
        CommandError::NotDeclared(_) => "not declared",
        CommandError::InputNotAllowed(_) => "not allowed",
        other => panic!("{other}"),
    }
}

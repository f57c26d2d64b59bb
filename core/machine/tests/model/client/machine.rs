//! A client machine, driven by operations.

use std::time::Duration;

use mcp_sansio::jsonrpc::ErrorObject;
use mcp_sansio::peer::{
    CallHandle, Client, ClientCommand, ClientOptions, CloseReason, Event, Failure, InputHandle,
    MethodName, RequestHandle, Subject as Gone,
};
use mcp_sansio::{ErrorCode, Instant};
use serde_json::{Value, json};

use crate::capabilities;
use crate::commands::{self, OBJECT, method, nth, options};
use crate::outcome::Outcome;
use crate::question::input_requests;
use crate::transcript::Subject;
use crate::wire::spell_lines;

use super::operation::{Operation, Reply};

pub(super) struct Machine {
    client: Client,
    now: Instant,
    calls: Vec<CallHandle>,
    inputs: Vec<InputHandle>,
    requests: Vec<RequestHandle>,
    /// The id of the client's newest request.
    newest: i64,
}

impl Machine {
    pub(super) fn new(options: ClientOptions) -> Self {
        Self {
            client: Client::new(options, 0, Instant::ZERO),
            now: Instant::ZERO,
            calls: Vec::new(),
            inputs: Vec::new(),
            requests: Vec::new(),
            newest: 0,
        }
    }

    fn take(&mut self, text: &str, out: &mut Outcome) {
        match self.client.handle_message(text.as_bytes(), self.now) {
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
                self.requests.push(request.handle);
                format!("request {} {}", self.requests.len() - 1, request.method)
            }
            Event::InputRequested(input) => {
                assert!(!self.inputs.contains(&input.handle), "an input handle is used twice");
                self.inputs.push(input.handle);
                format!("input {} {}", self.inputs.len() - 1, input.method)
            }
            Event::Notification(it) => format!("notification {}", it.method),
            Event::Ended(ended) => {
                let call = self.calls.iter().position(|call| *call == ended.call);
                let how = match ended.outcome {
                    Ok(_) => "ok",
                    Err(Failure::Refused(_)) => "refused",
                    Err(Failure::InvalidAnswer(_)) => "invalid",
                    Err(Failure::TimedOut { .. }) => "timed out",
                    Err(Failure::Cancelled) => "cancelled",
                    Err(Failure::TooManyRounds { .. }) => "too many rounds",
                    Err(Failure::InputRefused { .. }) => "input refused",
                    Err(Failure::ConnectionLost) => "lost",
                    Err(_) => "another way",
                };
                format!("ended {}: {how}", call.expect("a call that was made"))
            }
            Event::Cancelled(cancelled) => match cancelled.subject {
                Gone::Request(handle) => {
                    let number = self.requests.iter().position(|known| *known == handle);
                    format!("cancelled request {}", number.expect("a request"))
                }
                Gone::Input(handle) => {
                    let number = self.inputs.iter().position(|known| *known == handle);
                    format!("cancelled input {}", number.expect("an input"))
                }
                other => panic!("{other:?} is cancelled"),
            },
            Event::Violation(_) => "violation".into(),
            Event::Closed(CloseReason::Local) => "closed: local".into(),
            Event::Closed(CloseReason::EndOfInput) => "closed: end of input".into(),
            Event::Closed(CloseReason::Violation(_)) => "closed: violation".into(),
            Event::Closed(CloseReason::OpeningFailed(_)) => "closed: opening".into(),
            other => format!("{other:?}"),
        };
        out.tell(line);
    }

    /// Returns the command of an operation, if it belongs to the application and its number refers
    /// to something.
    fn resolve(&self, operation: &Operation) -> Option<ClientCommand<'static>> {
        let Self { calls, inputs, requests, .. } = self;
        Some(match *operation {
            Operation::Call(name) => {
                let method = MethodName::Known(method(name));
                ClientCommand::Call { method, params: OBJECT, options: options() }
            }
            Operation::Tell(name) => ClientCommand::Notify { method: method(name), params: OBJECT },
            Operation::GiveUp(it) => {
                ClientCommand::Cancel { call: *nth(calls, it)?, reason: "".into() }
            }
            Operation::AnswerInput(it) => {
                ClientCommand::AnswerInput { input: *nth(inputs, it)?, result: OBJECT }
            }
            Operation::RefuseInput(it) => {
                let error = ErrorObject::new(ErrorCode(-1), "no");
                ClientCommand::RefuseInput { input: *nth(inputs, it)?, error }
            }
            Operation::Respond(it) => {
                ClientCommand::Respond { request: *nth(requests, it)?, result: OBJECT }
            }
            Operation::Reject(it) => {
                let error = ErrorObject::internal("no");
                ClientCommand::Reject { request: *nth(requests, it)?, error }
            }
            Operation::Close => ClientCommand::Close,
            _ => return None,
        })
    }

    fn drain(&mut self, out: &mut Outcome) {
        while let Some(event) = self.client.poll_event() {
            self.note(event, out);
        }
        let mut sent = Vec::new();
        while let Some(bytes) = self.client.poll_transmit() {
            sent.extend(spell_lines(bytes));
        }
        for line in &sent {
            let id = line.split(' ').nth(1).and_then(|id| id.parse::<i64>().ok());
            let answer = line.starts_with("result") || line.starts_with("error");
            self.newest = self.newest.max(id.filter(|_| !answer).unwrap_or(0));
        }
        out.sent.extend(sent);
        self.client.assert_consistent();
        let deadline = self.client.poll_timeout();
        assert!(deadline.is_none_or(|it| it > self.now), "the driver would spin");
        out.waits = deadline.is_some();
    }
}

impl Subject<Operation> for Machine {
    fn apply(&mut self, operation: &Operation) -> Outcome {
        let mut out = Outcome::default();
        self.drain(&mut out);
        let o = &mut out;
        if let Some(message) = message(operation, self.newest) {
            self.take(&message, o);
        }
        match operation {
            Operation::Wait(seconds) => {
                self.now = self.now + Duration::from_secs(*seconds);
                self.client.handle_timeout(self.now);
            }
            Operation::EndOfInput => self.client.handle_eof(),
            _ => {}
        }
        if let Some(command) = self.resolve(operation) {
            commands::note(self.client.apply(command, self.now), &mut self.calls, o);
        }
        self.drain(&mut out);
        out
    }
}

/// Returns the message that the server sends.
fn message(operation: &Operation, newest: i64) -> Option<String> {
    let id = |id: &str| serde_json::from_str::<Value>(id).expect("an id");
    let mut message = match operation {
        Operation::Answer { back, with } => {
            let mut answer = answer(with);
            answer["id"] = json!(newest + 1 - back);
            answer
        }
        Operation::Request { id: number, method } => {
            json!({ "id": id(number), "method": method, "params": {} })
        }
        Operation::Notify(method) => {
            json!({ "method": method, "params": { "progressToken": "none", "progress": 1 } })
        }
        Operation::Cancel(number) => {
            let params = json!({ "requestId": id(number) });
            json!({ "method": "notifications/cancelled", "params": params })
        }
        Operation::NotJson => return Some("{".into()),
        _ => return None,
    };
    message["jsonrpc"] = json!("2.0");
    Some(message.to_string())
}

fn answer(reply: &Reply) -> Value {
    let error = |code: i64| json!({ "error": { "code": code, "message": "no" } });
    match reply {
        Reply::Discovered { versions, server } => json!({ "result": {
            "resultType": "complete",
            "supportedVersions": versions,
            "capabilities": capabilities::to_json(server),
            "ttlMs": 0,
            "cacheScope": "private",
        } }),
        Reply::Initialized { version, server } => json!({ "result": {
            "protocolVersion": version,
            "capabilities": capabilities::to_json(server),
            "serverInfo": { "name": "s", "version": "1" },
        } }),
        Reply::Error(code) => error(*code),
        Reply::Unsupported { code, versions } => {
            let mut answer = error(*code);
            answer["error"]["data"] = json!({ "supported": versions, "requested": "x" });
            answer
        }
        Reply::Result => json!({ "result": {} }),
        Reply::InputRequired { questions, state } => {
            let mut result = json!({ "resultType": "input_required" });
            if !questions.is_empty() {
                result["inputRequests"] = input_requests(questions);
            }
            if *state {
                result["requestState"] = json!("s");
            }
            json!({ "result": result })
        }
        Reply::OddResult => json!({ "result": { "resultType": "odd" } }),
    }
}

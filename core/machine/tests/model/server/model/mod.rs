//! The rules for a server.

mod calls;
mod lifecycle;
mod requests;
mod rounds;

use std::collections::BTreeSet;

use crate::capabilities::{self, Capabilities};
use crate::ids::Ids;
use crate::outcome::Outcome;
use crate::transcript::Subject;

use super::operation::{Operation, Setting};

/// Timeouts in seconds: of input requests, and of calls of the application.
const HOST: u64 = 600;
const CALL: u64 = 60;

pub(super) struct Model {
    versions: Vec<&'static str>,
    offers: Capabilities,
    strict: bool,
    rounds_max: u32,
    now: u64,
    session: Option<Session>,
    /// Requests that the application has received, in order.
    requests: Vec<Request>,
    /// Ids of open listen streams.
    listening: BTreeSet<&'static str>,
    calls: Ids<Purpose>,
    /// The ids of the application's calls, in order.
    made: Vec<i64>,
    closed: bool,
}

struct Session {
    version: &'static str,
    client: Capabilities,
    confirmed: bool,
}

struct Request {
    id: &'static str,
    method: &'static str,
    version: &'static str,
    client: Capabilities,
    state: State,
    rounds: u32,
}

enum State {
    /// The application handles it.
    Working,
    /// Input is requested: the answer to each request, if there is one, and whether it is a result.
    Asking {
        answers: Vec<Option<bool>>,
        state: bool,
    },
    Over,
}

enum Purpose {
    Call(usize),
    Question { request: usize, index: usize },
}

impl Model {
    pub(super) fn new(setting: &Setting) -> Self {
        Self {
            versions: setting.versions.clone(),
            offers: setting.offers.clone(),
            strict: setting.strict,
            rounds_max: setting.rounds,
            now: 0,
            session: None,
            requests: Vec::new(),
            listening: BTreeSet::new(),
            calls: Ids::new(),
            made: Vec::new(),
            closed: false,
        }
    }
}

impl Subject<Operation> for Model {
    fn apply(&mut self, operation: &Operation) -> Outcome {
        use Operation::*;

        let mut out = Outcome::default();
        let o = &mut out;
        // The numbers of requests and calls are taken modulo how many there have been.
        let (requests, made) = (self.requests.len(), self.made.len());
        let nth = |number: usize, count: usize| number.checked_rem(count);
        match operation {
            // A closed machine remains closed.
            _ if self.closed && operation.is_message() => o.refuse("closed"),
            Initialize { id, .. } if self.is_in_flight(id) && !self.ends_with_session(id) => {
                self.request(id, "initialize", None, false, o)
            }
            Initialize { id, version, client } => self.initialize(id, *version, client, o),
            Initialized => self.initialized(o),
            Request { id, method, modern, again } => {
                self.request(id, method, modern.as_ref(), *again, o);
            }
            Notify(method) => self.notified(method, o),
            Cancel(id) => self.cancelled(id, o),
            Answer { back, well } => self.answered(self.calls.newest() + 1 - back, *well, o),
            // [RPC-017].
            NotJson => self.malformed(None, -32700, o),
            NoMessage(id) => self.malformed(Some(id), -32600, o),
            Wait(seconds) => self.pass(*seconds, o),
            EndOfInput => self.end("end of input", o),
            Respond(it) => nth(*it, requests).into_iter().for_each(|it| self.respond(it, true, o)),
            Reject(it) => nth(*it, requests).into_iter().for_each(|it| self.respond(it, false, o)),
            Ask { request, questions, state } => {
                nth(*request, requests)
                    .into_iter()
                    .for_each(|it| self.ask(it, questions, *state, o));
            }
            Progress(it) => nth(*it, requests).into_iter().for_each(|it| self.progress(it, o)),
            Call(method) => self.call(method, o),
            Tell(method) => self.tell(method, o),
            GiveUp(it) => nth(*it, made).into_iter().for_each(|it| self.give_up(it, o)),
            Announce => self.announce(o),
            Close => self.end("local", o),
        }
        out.waits = !self.calls.is_empty();
        if out.unordered {
            out.sort();
        }
        out
    }
}

fn is_question_of(purpose: &Purpose, number: usize) -> bool {
    matches!(purpose, Purpose::Question { request, .. } if *request == number)
}

/// Returns the error data with the capability that a client must declare.
fn required(path: &'static str) -> String {
    format!(" {}", capabilities::to_json(&[path].into()))
}

// [MRTR-002]; [TASK-015] for the last, which exists in sessions of 2025-11-25 only.
fn takes_input(method: &str) -> bool {
    matches!(method, "tools/call" | "prompts/get" | "resources/read" | "tasks/result")
}

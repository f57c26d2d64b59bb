//! The rules for a client.

mod calls;
mod opening;
mod requests;
mod rounds;

use crate::capabilities::Capabilities;
use crate::ids::Ids;
use crate::outcome::Outcome;
use crate::transcript::Subject;

use super::operation::{Operation, Setting};

/// Timeouts in seconds: of the probe if there is another way to open, of `initialize` and of a
/// call, and of a call with all of its rounds.
const PROBE: u64 = 2;
const ANSWER: u64 = 60;
const CALL: u64 = 600;

pub(super) struct Model {
    versions: Vec<&'static str>,
    guesses_legacy: bool,
    own: Capabilities,
    strict: bool,
    now: u64,
    opening: Option<Opening>,
    session: Option<Session>,
    sent: Ids<Purpose>,
    calls: Vec<Call>,
    /// Input requests that the host has received, in order, until they are settled.
    inputs: Vec<Option<Source>>,
    /// Other requests of the server, in order, until they are answered.
    requests: Vec<Option<&'static str>>,
    closed: bool,
}

#[derive(Clone, Copy)]
enum Opening {
    Probing,
    Initializing { version: &'static str, guessed: bool, told: bool },
}

struct Session {
    version: &'static str,
    server: Capabilities,
}

#[derive(Clone, Copy, PartialEq)]
enum Purpose {
    Opening,
    Call(usize),
}

struct Call {
    method: &'static str,
    until: u64,
    rounds: u32,
    state: State,
}

enum State {
    /// The server handles it, as the request with this id.
    Sent(i64),
    /// Input is requested: whether each request was answered, and whether there is a state of the
    /// server.
    Asking {
        answered: Vec<bool>,
        state: bool,
    },
    Over,
}

#[derive(Clone, Copy)]
enum Source {
    Request(&'static str),
    Round { call: usize, index: usize },
}

impl Model {
    pub(super) fn new(setting: &Setting) -> Self {
        Self {
            versions: setting.versions.clone(),
            guesses_legacy: setting.guesses_legacy,
            own: setting.offers.clone(),
            strict: setting.strict,
            now: 0,
            opening: None,
            session: None,
            sent: Ids::new(),
            calls: Vec::new(),
            inputs: Vec::new(),
            requests: Vec::new(),
            closed: false,
        }
    }
}

impl Subject<Operation> for Model {
    fn apply(&mut self, operation: &Operation) -> Outcome {
        use Operation::*;

        let mut out = Outcome::default();
        let o = &mut out;
        // The first output is pending from the start.
        if self.opening.is_none() && self.session.is_none() && !self.closed {
            self.open(o);
        }
        let (calls, inputs) = (self.calls.len(), self.inputs.len());
        let requests = self.requests.len();
        let nth = |number: usize, count: usize| number.checked_rem(count);
        match operation {
            // A closed machine remains closed.
            Answer { .. } | Request { .. } | Notify(_) | Cancel(_) | NotJson if self.closed => {
                o.refuse("closed");
            }
            Answer { back, with } => self.answered(self.sent.newest() + 1 - back, with, o),
            Request { id, method } => self.request(id, method, o),
            Notify(method) => self.notified(method, o),
            Cancel(id) => self.cancelled(id, o),
            // Invalid output of a server is not a request, so it is not answered.
            NotJson => self.violated(o),
            Wait(seconds) => self.pass(*seconds, o),
            EndOfInput => self.end("end of input", o),
            Call(method) => self.call(method, o),
            Tell(method) => match self.allowed(method, false) {
                Ok(_) => o.notification(method, ""),
                Err(refusal) => o.refuse(refusal),
            },
            GiveUp(it) => {
                nth(*it, calls).into_iter().for_each(|it| self.give_up(it, "cancelled", o));
            }
            AnswerInput(it) => {
                nth(*it, inputs).into_iter().for_each(|it| self.settle_input(it, true, o));
            }
            RefuseInput(it) => {
                nth(*it, inputs).into_iter().for_each(|it| self.settle_input(it, false, o));
            }
            Respond(it) => nth(*it, requests).into_iter().for_each(|it| self.respond(it, true, o)),
            Reject(it) => nth(*it, requests).into_iter().for_each(|it| self.respond(it, false, o)),
            Close => self.end("local", o),
        }
        out.waits = self.waits();
        if out.unordered {
            out.sort();
        }
        out
    }
}

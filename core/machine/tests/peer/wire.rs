//! One machine against a hand-written script: the test is the other side.

use std::collections::VecDeque;
use std::time::Duration;

use mcp_sansio::Instant;
use mcp_sansio::framing::FrameError;
use mcp_sansio::peer::{ClientOptions, ConnectionClosed, Event, ServerOptions};
use mcp_sansio::protocol::Side;
use serde_json::Value;

use crate::machine::{Machine, describe};
use crate::played::{self, Client, Played, Server};
use crate::schema_checker::SchemaChecker;

/// A machine, what it sent and what it told.
pub(crate) struct Wire<M> {
    pub(crate) machine: M,
    pub(crate) now: Instant,
    pub(crate) checker: SchemaChecker,
    lines: VecDeque<String>,
    events: VecDeque<Event<'static>>,
    _played: Played,
}

pub(crate) fn client(options: ClientOptions) -> Wire<Client> {
    Wire::new(played::client(options))
}

pub(crate) fn server(options: ServerOptions) -> Wire<Server> {
    Wire::new(played::server(options))
}

impl<M: Machine> Wire<M> {
    fn new((machine, played): (M, Played)) -> Self {
        Self {
            machine,
            now: Instant::ZERO,
            checker: SchemaChecker::default(),
            lines: VecDeque::new(),
            events: VecDeque::new(),
            _played: played,
        }
    }

    /// Gives the machine a line.
    pub(crate) fn send(&mut self, line: &str) {
        self.try_send(line).unwrap_or_else(|closed| panic!("{closed}: {line}"));
    }

    /// Gives the machine a line that may end the connection.
    pub(crate) fn try_send(&mut self, line: &str) -> Result<(), ConnectionClosed> {
        self.pull();
        let sender = if M::ROLE == Side::Client { Side::Server } else { Side::Client };
        self.checker.hear(sender, line);
        let taken = self.machine.take(line.as_bytes(), self.now);
        let taken = taken.map(|event| self.events.extend(event));
        self.pull();
        taken
    }

    /// Gives the machine something that is no frame.
    pub(crate) fn send_error(&mut self, error: FrameError) {
        let event = self.machine.take_error(error).expect("the connection is open");
        self.events.extend(event);
        self.pull();
    }

    /// Ends the machine's input.
    pub(crate) fn end(&mut self) {
        self.machine.end();
        self.pull();
    }

    /// Lets time pass and wakes the machine if its deadline has come by then.
    pub(crate) fn advance(&mut self, duration: Duration) {
        self.now = self.now + duration;
        if self.machine.deadline().is_some_and(|deadline| deadline <= self.now) {
            self.machine.wake(self.now);
        }
        self.pull();
        assert_progress(&self.machine, self.now);
    }

    /// Lets time pass until the machine's deadline.
    pub(crate) fn advance_to_deadline(&mut self) {
        let deadline = self.machine.deadline().expect("a deadline");
        self.advance(deadline.saturating_since(self.now));
    }

    fn pull(&mut self) {
        while let Some(event) = self.machine.event() {
            self.events.push_back(event);
        }
        while let Some(bytes) = self.machine.transmit() {
            let text = String::from_utf8(bytes).expect("UTF-8");
            for line in text.strip_suffix('\n').expect("whole lines").split('\n') {
                self.checker.examine(M::ROLE, line);
                self.lines.push_back(line.into());
            }
        }
    }

    /// The next line that the machine sends.
    pub(crate) fn line(&mut self) -> String {
        self.pull();
        self.lines.pop_front().expect("the machine sends nothing")
    }

    /// The next message that the machine sends.
    pub(crate) fn message(&mut self) -> Value {
        serde_json::from_str(&self.line()).unwrap()
    }

    /// The next message is `expected`, the order of members aside.
    #[track_caller]
    pub(crate) fn expect(&mut self, expected: &str) {
        self.pull();
        let Some(line) = self.lines.pop_front() else { panic!("nothing instead of {expected}") };
        let value: Value = serde_json::from_str(&line).unwrap();
        let expected: Value = serde_json::from_str(expected).expect("the test's own JSON");
        assert_eq!(value, expected, "{line}");
    }

    /// The next message is an error with `code` to the request `id`.
    #[track_caller]
    pub(crate) fn expect_error(&mut self, id: &str, code: i64) -> Value {
        self.pull();
        let Some(line) = self.lines.pop_front() else { panic!("nothing instead of {code}") };
        let value: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["error"]["code"], code, "{line}");
        assert_eq!(value.get("id").map_or_else(|| "none".into(), Value::to_string), id, "{line}");
        value
    }

    /// The machine sends nothing.
    #[track_caller]
    pub(crate) fn expect_nothing(&mut self) {
        self.pull();
        assert_eq!(self.lines.pop_front(), None);
    }

    /// The next event.
    #[track_caller]
    pub(crate) fn event(&mut self) -> Event<'static> {
        self.pull();
        let Some(event) = self.events.pop_front() else { panic!("no event") };
        event
    }

    /// The next event, as text.
    #[track_caller]
    pub(crate) fn told(&mut self) -> String {
        describe(&self.event())
    }

    /// There is no event.
    #[track_caller]
    pub(crate) fn expect_no_event(&mut self) {
        self.pull();
        assert_eq!(self.events.pop_front().as_ref().map(describe), None);
    }

    /// Nothing is sent and nothing is told.
    #[track_caller]
    pub(crate) fn expect_silence(&mut self) {
        self.expect_nothing();
        self.expect_no_event();
    }
}

/// After a wake-up and a drain the next deadline is none or later: the driver cannot spin.
pub(crate) fn assert_progress(machine: &impl Machine, now: Instant) {
    let deadline = machine.deadline();
    assert!(deadline.is_none_or(|deadline| deadline > now), "{deadline:?} at {now:?}");
}

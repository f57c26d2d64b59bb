//! One machine with a script: the test plays the other side.

use std::collections::VecDeque;
use std::time::Duration;

use mcp_sansio::framing::FrameError;
use mcp_sansio::peer::{ClientOptions, ConnectionClosed, Event, ServerOptions};
use mcp_sansio::{Instant, Side};
use serde_json::Value;

use crate::machine::{Machine, describe};
use crate::played::{self, Client, Played, Server};
use crate::schema_checker::SchemaChecker;

/// A machine with its output and its events.
pub(crate) struct Wire<M> {
    pub(crate) machine: M,
    pub(crate) now: Instant,
    pub(crate) checker: SchemaChecker,
    lines: VecDeque<String>,
    events: VecDeque<Event<'static>>,
    pub(crate) played: Played,
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
            played,
        }
    }

    /// Delivers a line to the machine.
    pub(crate) fn send(&mut self, line: &str) {
        self.try_send(line).unwrap_or_else(|closed| panic!("{closed}: {line}"));
    }

    /// Delivers a line that may close the connection.
    pub(crate) fn try_send(&mut self, line: &str) -> Result<(), ConnectionClosed> {
        self.pull();
        let sender = if M::ROLE == Side::Client { Side::Server } else { Side::Client };
        self.checker.hear(sender, line);
        let taken = self.machine.take(line.as_bytes(), self.now);
        let taken = taken.map(|event| self.events.extend(event));
        self.pull();
        taken
    }

    /// Reports a framing error to the machine.
    pub(crate) fn send_error(&mut self, error: FrameError) {
        let event = self.machine.take_error(error).expect("the connection is open");
        self.events.extend(event);
        self.pull();
    }

    /// Ends the input of the machine.
    pub(crate) fn end(&mut self) {
        self.machine.end();
        self.pull();
    }

    /// Advances the clock, and wakes the machine if its deadline has expired.
    pub(crate) fn advance(&mut self, duration: Duration) {
        self.now = self.now + duration;
        if self.machine.deadline().is_some_and(|deadline| deadline <= self.now) {
            self.machine.wake(self.now);
        }
        self.pull();
        assert_progress(&self.machine, self.now);
    }

    /// Advances the clock to the deadline of the machine.
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

    /// Returns the next line that the machine sends.
    pub(crate) fn line(&mut self) -> String {
        self.pull();
        self.lines.pop_front().expect("the machine sends a line")
    }

    /// Returns the next message that the machine sends.
    pub(crate) fn message(&mut self) -> Value {
        serde_json::from_str(&self.line()).unwrap()
    }

    /// Asserts that the next message is `expected`, in any order of members.
    #[track_caller]
    pub(crate) fn expect(&mut self, expected: &str) {
        self.pull();
        let Some(line) = self.lines.pop_front() else { panic!("nothing instead of {expected}") };
        let value: Value = serde_json::from_str(&line).unwrap();
        let expected: Value = serde_json::from_str(expected).expect("valid JSON");
        assert_eq!(value, expected, "{line}");
    }

    /// Asserts that the next message is an error with `code` for the request `id`, and returns it.
    #[track_caller]
    pub(crate) fn expect_error(&mut self, id: &str, code: i64) -> Value {
        self.pull();
        let Some(line) = self.lines.pop_front() else { panic!("nothing instead of {code}") };
        let value: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["error"]["code"], code, "{line}");
        assert_eq!(value.get("id").map_or_else(|| "none".into(), Value::to_string), id, "{line}");
        value
    }

    /// Takes all lines and events.
    pub(crate) fn take_all(&mut self) -> (Vec<String>, Vec<Event<'static>>) {
        self.pull();
        (self.lines.drain(..).collect(), self.events.drain(..).collect())
    }

    /// Asserts that the machine sends nothing.
    #[track_caller]
    pub(crate) fn expect_nothing(&mut self) {
        self.pull();
        assert_eq!(self.lines.pop_front(), None);
    }

    /// Returns the next event.
    #[track_caller]
    pub(crate) fn event(&mut self) -> Event<'static> {
        self.pull();
        let Some(event) = self.events.pop_front() else { panic!("no event") };
        event
    }

    /// Returns the description of the next event.
    #[track_caller]
    pub(crate) fn told(&mut self) -> String {
        describe(&self.event())
    }

    /// Asserts that there is no event.
    #[track_caller]
    pub(crate) fn expect_no_event(&mut self) {
        self.pull();
        assert_eq!(self.events.pop_front().as_ref().map(describe), None);
    }

    /// Asserts that there is neither output nor an event.
    #[track_caller]
    pub(crate) fn expect_silence(&mut self) {
        self.expect_nothing();
        self.expect_no_event();
    }
}

/// Asserts that no expired deadline is left after a wake-up and a drain: the driver cannot spin.
pub(crate) fn assert_progress(machine: &impl Machine, now: Instant) {
    let deadline = machine.deadline();
    assert!(deadline.is_none_or(|deadline| deadline > now), "{deadline:?} at {now:?}");
}

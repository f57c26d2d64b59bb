use std::collections::BTreeMap;
use std::fmt::Write;

use crate::commands;
use crate::conformance::ConformanceChecker;
use crate::inputs;
use crate::operation::{Operation, script};
use mcp_sansio::Instant;
use mcp_sansio::framing::FrameError;
use mcp_sansio::peer::{
    Applied, CallHandle, Client, ClientMachine, Event, InputHandle, RequestHandle, Subject,
};

/// Runs a client with any operations: it sends whole lines of valid messages, answers every request
/// once and nothing else, ends every call once, accepts the answer to every question once, emits
/// nothing after its end, requests no superfluous wake-up, becomes idle, and is deterministic.
pub fn peer_client(bytes: &[u8]) {
    let run = || {
        let (settings, operations) = script(bytes);
        let mut harness = ClientHarness::new(settings);
        operations.for_each(|operation| {
            harness.operate(&operation);
            harness.sent();
        });
        harness.finish()
    };
    assert_eq!(run(), run(), "the same input has a different outcome");
}

/// A client with its host, and the expected state.
pub(super) struct ClientHarness {
    pub(super) client: Client,
    pub(super) now: Instant,
    pub(super) transcript: String,
    conformance: ConformanceChecker,
    inputs: Vec<InputHandle>,
    requests: Vec<RequestHandle>,
    /// Calls, and how often each has ended.
    calls: BTreeMap<CallHandle, usize>,
    closed: bool,
}

impl ClientHarness {
    pub(super) fn new(settings: &[u8]) -> Self {
        let now = Instant::ZERO;
        Self {
            client: Client::new(inputs::client_options(settings), 0, now),
            now,
            transcript: String::new(),
            conformance: ConformanceChecker::new(&inputs::limits(settings)),
            inputs: Vec::new(),
            requests: Vec::new(),
            calls: BTreeMap::new(),
            closed: false,
        }
    }

    pub(super) fn operate(&mut self, operation: &Operation<'_>) {
        let now = self.now;
        match operation.verb {
            b'{' => self.take(Ok(operation.text)),
            b'E' => self.take(Err(FrameError::TooLong { limit: operation.number })),
            b'i' | b'j' => self.end_input(operation),
            b'a' | b'r' => self.end_request(operation),
            b't' => self.wake(now + operation.duration()),
            b'T' => {
                if let Some(due) = self.client.poll_timeout() {
                    self.wake(due.max(now));
                }
            }
            b'e' if operation.text == b"of" => self.client.handle_eof(),
            _ => {
                let calls = operation.place(self.calls.len());
                let call = calls.and_then(|at| self.calls.keys().nth(at)).copied();
                match commands::ask_client(&mut self.client, operation, call, now) {
                    None => return,
                    Some(asked) => self.called(asked.ok().and_then(Applied::call)),
                }
            }
        }
        self.look();
    }

    fn called(&mut self, call: Option<CallHandle>) {
        if let Some(call) = call {
            assert!(self.calls.insert(call, 0).is_none(), "a handle is reused");
        }
    }

    fn end_input(&mut self, operation: &Operation<'_>) {
        let Some(at) = operation.place(self.inputs.len()) else { return };
        let input = self.inputs.swap_remove(at);
        let outcome = commands::end_input(&mut self.client, operation, input, self.now);
        assert!(outcome.is_ok() || self.client.is_closed(), "a question stands: {outcome:?}");
    }

    fn end_request(&mut self, operation: &Operation<'_>) {
        let Some(at) = operation.place(self.requests.len()) else { return };
        let request = self.requests.swap_remove(at);
        let outcome = if operation.verb == b'a' {
            self.client.respond_with(request, &inputs::params(operation), self.now)
        } else {
            self.client.reject(request, inputs::error(operation), self.now)
        };
        assert!(outcome.is_ok() || self.client.is_closed(), "a request waits: {outcome:?}");
        let again = self.client.respond_with(request, &inputs::EMPTY, self.now);
        assert!(again.is_err(), "answered twice");
    }

    /// Handles a frame or a framing error.
    pub(super) fn take(&mut self, frame: Result<&[u8], FrameError>) {
        let closed = self.client.is_closed();
        let event = match frame {
            Ok(frame) => {
                self.conformance.receive(frame);
                self.client.handle_message(frame, self.now)
            }
            Err(error) => {
                self.conformance.receive_error();
                self.client.handle_frame_error(error)
            }
        };
        assert!(!closed || event.is_err(), "a frame is accepted after the end");
        if let Ok(Some(event)) = event {
            self.see(event.into_owned());
        }
        self.look();
    }

    pub(super) fn wake(&mut self, now: Instant) {
        self.now = now;
        self.client.handle_timeout(now);
        let next = self.client.poll_timeout();
        assert!(next.is_none_or(|next| next > now), "a superfluous wake-up at {now:?}");
    }

    fn see(&mut self, event: Event<'static>) {
        writeln!(self.transcript, "{event:?}").expect("writing to a string succeeds");
        assert!(!self.closed, "after the end: {event:?}");
        match event {
            Event::InputRequested(input) => {
                assert!(!self.inputs.contains(&input.handle), "a question is repeated");
                self.inputs.push(input.handle);
            }
            Event::Request(request) => {
                assert!(!self.requests.contains(&request.handle), "a request is repeated");
                self.requests.push(request.handle);
            }
            Event::Ended(ended) => {
                let count = self.calls.get_mut(&ended.call).expect("the end of a known call");
                *count += 1;
                assert_eq!(*count, 1, "a call ends twice");
            }
            Event::Cancelled(cancelled) => match cancelled.subject {
                Subject::Input(handle) => self.inputs.retain(|input| *input != handle),
                Subject::Request(handle) => self.requests.retain(|request| *request != handle),
                other => panic!("{other:?} is cancelled"),
            },
            Event::Closed(_) => self.closed = true,
            _ => {}
        }
    }

    /// Drains the events of the machine.
    pub(super) fn look(&mut self) {
        while let Some(event) = self.client.poll_event() {
            self.see(event);
        }
        assert!(self.client.poll_event().is_none());
    }

    /// Drains the output of the machine.
    pub(super) fn sent(&mut self) -> Vec<u8> {
        let mut sent = Vec::new();
        while let Some(bytes) = self.client.poll_transmit() {
            sent.extend_from_slice(bytes);
        }
        if !sent.is_empty() {
            self.conformance.check_lines(&sent);
            self.transcript.push_str(&String::from_utf8_lossy(&sent));
        }
        sent
    }

    /// Ends the input: after that the machine is idle.
    pub(super) fn finish(mut self) -> String {
        self.client.handle_eof();
        self.look();
        self.sent();
        assert!(self.client.is_drained(), "{}", self.transcript);
        assert_eq!(self.client.poll_timeout(), None);
        assert!(self.closed && self.calls.values().all(|ends| *ends == 1), "{:?}", self.calls);
        self.transcript
    }
}

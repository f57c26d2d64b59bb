use std::collections::BTreeMap;
use std::fmt::Write;

use crate::commands;
use crate::conformance::ConformanceChecker;
use crate::inputs;
use crate::operation::{Operation, script};
use mcp_sansio::Instant;
use mcp_sansio::framing::FrameError;
use mcp_sansio::jsonrpc::ErrorObject;
use mcp_sansio::peer::{
    Applied, CallHandle, Event, Request, RequestHandle, Server, ServerMachine, Subject,
};

/// Runs a server with any operations: it sends whole lines of valid messages, answers every request
/// once and nothing else, ends every call and every request once, emits nothing after its end,
/// requests no superfluous wake-up, becomes idle, and is deterministic.
pub fn peer_server(bytes: &[u8]) {
    let run = || {
        let (settings, operations) = script(bytes);
        let mut harness = ServerHarness::new(settings);
        operations.for_each(|operation| harness.operate(&operation));
        harness.finish()
    };
    assert_eq!(run(), run(), "the same input has a different outcome");
}

/// A server with its application, and the expected state.
pub(super) struct ServerHarness {
    pub(super) server: Server,
    pub(super) now: Instant,
    pub(super) transcript: String,
    conformance: ConformanceChecker,
    waiting: Vec<Request<'static>>,
    /// Requests passed to the application, and whether each has ended.
    requests: BTreeMap<RequestHandle, bool>,
    /// Calls, and how often each has ended.
    calls: BTreeMap<CallHandle, usize>,
    closed: bool,
    /// Answers of the application that the machine accepted.
    answers: usize,
    /// Whether answers may be dropped, because this side ended the connection or the client
    /// cancelled a request.
    dropping: bool,
}

impl ServerHarness {
    pub(super) fn new(settings: &[u8]) -> Self {
        Self {
            server: Server::new(inputs::server_options(settings), 0),
            now: Instant::ZERO,
            transcript: String::new(),
            conformance: ConformanceChecker::new(&inputs::limits(settings)),
            waiting: Vec::new(),
            requests: BTreeMap::new(),
            calls: BTreeMap::new(),
            closed: false,
            answers: 0,
            dropping: false,
        }
    }

    pub(super) fn operate(&mut self, operation: &Operation<'_>) {
        let now = self.now;
        match operation.verb {
            b'{' => self.take(Ok(operation.text)),
            b'E' => self.take(Err(FrameError::TooLong { limit: operation.number })),
            b'a' | b'r' | b'q' => self.end_one(operation),
            b't' => self.wake(now + operation.duration()),
            b'T' => {
                if let Some(due) = self.server.poll_timeout() {
                    self.wake(due.max(now));
                }
            }
            b'e' if operation.text == b"of" => self.server.handle_eof(),
            _ => {
                if let (b'k', b"ill") = (operation.verb, operation.text) {
                    self.dropping = true;
                    self.forget_requests();
                }
                let request = operation.place(self.waiting.len()).map(|at| self.waiting[at].handle);
                let calls = operation.place(self.calls.len());
                let call = calls.and_then(|at| self.calls.keys().nth(at)).copied();
                match commands::ask_server(&mut self.server, operation, request, call, now) {
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

    /// Handles a frame or a framing error.
    pub(super) fn take(&mut self, frame: Result<&[u8], FrameError>) {
        let closed = self.server.is_closed();
        let event = match frame {
            Ok(frame) => {
                self.conformance.receive(frame);
                self.server.handle_message(frame, self.now)
            }
            Err(error) => {
                self.conformance.receive_error();
                self.server.handle_frame_error(error)
            }
        };
        assert!(!closed || event.is_err(), "a frame is accepted after the end");
        if let Ok(Some(event)) = event {
            self.see(event.into_owned());
        }
        self.look();
    }

    fn end_one(&mut self, operation: &Operation<'_>) {
        let Some(at) = operation.place(self.waiting.len()) else { return };
        let request = self.waiting.swap_remove(at);
        let handle = request.handle;
        let over = self.requests[&handle];
        let outcome = match operation.verb {
            b'a' => self.server.respond_with(handle, &inputs::params(operation), self.now),
            b'r' => self.server.reject(handle, inputs::error(operation), self.now),
            _ => {
                let questions = inputs::questions(operation);
                match self.server.require_input(&request, &questions, self.now) {
                    Ok(()) => return,
                    outcome => return assert!(outcome.is_err()),
                }
            }
        };
        assert_eq!(outcome.is_err(), over, "{outcome:?}");
        self.requests.insert(handle, true);
        if outcome.is_ok() {
            self.answers += 1;
            let again = self.server.reject(handle, ErrorObject::internal("again"), self.now);
            assert!(again.is_err(), "answered twice");
        }
    }

    /// Marks all requests as ended, since this side has closed the connection.
    fn forget_requests(&mut self) {
        self.requests.values_mut().for_each(|over| *over = true);
    }

    pub(super) fn wake(&mut self, now: Instant) {
        self.now = now;
        self.server.handle_timeout(now);
        let next = self.server.poll_timeout();
        assert!(next.is_none_or(|next| next > now), "a superfluous wake-up at {now:?}");
    }

    fn see(&mut self, event: Event<'static>) {
        writeln!(self.transcript, "{event:?}").expect("writing to a string succeeds");
        assert!(!self.closed, "after the end: {event:?}");
        match event {
            Event::Request(request) => {
                // After a round of input the request is repeated.
                let over = self.requests.insert(request.handle, false);
                assert_ne!(over, Some(true), "a request is repeated after its end");
                self.waiting.push(request);
            }
            Event::Ended(ended) => {
                let count = self.calls.get_mut(&ended.call).expect("the end of a known call");
                *count += 1;
                assert_eq!(*count, 1, "a call ends twice");
            }
            Event::Cancelled(cancelled) => {
                self.dropping = true;
                let Subject::Request(handle) = cancelled.subject else { panic!("no input here") };
                let over = self.requests.insert(handle, true);
                assert_eq!(over, Some(false), "cancelled after its end, or before its start");
            }
            Event::Closed(_) => self.closed = true,
            _ => {}
        }
    }

    /// Drains the events of the machine.
    pub(super) fn look(&mut self) {
        while let Some(event) = self.server.poll_event() {
            self.see(event);
        }
        assert!(self.server.poll_event().is_none());
    }

    /// Drains the output of the machine.
    pub(super) fn sent(&mut self) -> Vec<u8> {
        let mut sent = Vec::new();
        while let Some(bytes) = self.server.poll_transmit() {
            sent.extend_from_slice(bytes);
        }
        if !sent.is_empty() {
            self.conformance.check_lines(&sent);
            self.transcript.push_str(&String::from_utf8_lossy(&sent));
        }
        sent
    }

    /// Ends the input and answers the remaining requests: after that the machine is idle.
    pub(super) fn finish(mut self) -> String {
        self.sent();
        self.server.handle_eof();
        self.look();
        while let Some(request) = self.waiting.pop() {
            let outcome = self.server.respond_with(request.handle, &inputs::EMPTY, self.now);
            assert_eq!(outcome.is_err(), self.requests[&request.handle], "{outcome:?}");
            self.answers += usize::from(outcome.is_ok());
            self.look();
        }
        self.sent();
        assert!(self.server.is_drained(), "{}", self.transcript);
        assert_eq!(self.server.poll_timeout(), None);
        assert!(self.closed && self.calls.values().all(|ends| *ends == 1), "{:?}", self.calls);
        assert!(self.dropping || self.answers <= self.conformance.answers(), "an answer is lost");
        self.transcript
    }
}

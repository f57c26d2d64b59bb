use std::collections::BTreeMap;
use std::fmt::Write;

use crate::commands;
use crate::conformance::check_form;
use crate::inputs;
use crate::operation::{Operation, script};
use mcp_sansio::Instant;
use mcp_sansio::http::{
    Client, ClientLimits, ClientTransmit, ExchangeFailure, ExchangeId, HttpClientOptions,
    IncomingResponse, Location, LostSession,
};
use mcp_sansio::peer::Status;
use mcp_sansio::peer::{Applied, CallHandle, ClientMachine, Event, InputHandle, Subject};

use super::heads::{check_event_id, check_fields};

/// Runs an HTTP client with any operations and any server: it sends valid messages in valid
/// requests and to no other origin, uses no exchange id twice, aborts exactly those exchanges that
/// have not ended, ends every call once, emits nothing after its end, requests no superfluous
/// wake-up, becomes idle, and is deterministic.
pub fn http_client(bytes: &[u8]) {
    let run = || {
        let (settings, operations) = script(bytes);
        let mut harness = Harness::new(settings);
        operations.for_each(|operation| harness.operate(&operation));
        harness.finish()
    };
    assert_eq!(run(), run(), "the same input has a different outcome");
}

struct Harness {
    client: Client,
    now: Instant,
    transcript: String,
    /// Header fields of the next response.
    fields: Vec<(String, Vec<u8>)>,
    /// Exchanges in progress, in the order of their requests, and whether each has received its
    /// head.
    open: Vec<(ExchangeId, bool)>,
    inputs: Vec<InputHandle>,
    /// Calls, and how often each has ended.
    calls: BTreeMap<CallHandle, usize>,
    closed: bool,
    /// The most concurrent exchanges that the limits allow.
    exchanges_max: usize,
}

impl Harness {
    /// Each setting is one letter: those of the peer, then one for limits and one for lost
    /// sessions.
    fn new(settings: &[u8]) -> Self {
        let letter = |at: usize| settings.get(at).copied().unwrap_or(b'0');
        let mut limits = ClientLimits::default();
        if letter(5) == b't' {
            limits.requests_max = 1;
            limits.control_exchanges_max = 1;
            limits.body_bytes_max = 1000;
            limits.event_bytes_max = 1000;
            limits.error_bytes_max = 100;
        }
        // Exchanges that are awaited, one that listens, one that ends the session, and a limited
        // number whose responses continue after the answer.
        let waited_for = limits.requests_max + limits.control_exchanges_max + 2;
        let exchanges_max = waited_for + limits.requests_max + 2 * limits.control_exchanges_max;
        let lost =
            if letter(6) == b'r' { LostSession::RepeatCalls } else { LostSession::FailCalls };
        let url = Location::parse("https://example.com/mcp").expect("a valid URL");
        let options = HttpClientOptions::new(url).limits(limits).lost_session(lost);
        let now = Instant::ZERO;
        let mut harness = Self {
            client: Client::new(inputs::client_options(settings), options, 0, now),
            now,
            transcript: String::new(),
            fields: Vec::new(),
            open: Vec::new(),
            inputs: Vec::new(),
            calls: BTreeMap::new(),
            closed: false,
            exchanges_max,
        };
        harness.pull();
        harness
    }

    fn operate(&mut self, operation: &Operation<'_>) {
        let now = self.now;
        let exchange = operation.place(self.open.len()).map(|at| self.open[at].0);
        match operation.verb {
            b'+' => {
                if let Some(colon) = operation.text.iter().position(|byte| *byte == b':')
                    && let Ok(name) = std::str::from_utf8(&operation.text[..colon])
                {
                    self.fields.push((name.to_owned(), operation.text[colon + 1..].to_vec()));
                }
            }
            b'H' => self.head(operation),
            b'{' => {
                if let Some((exchange, _)) = self.open.last().copied() {
                    self.receive(exchange, operation.text);
                }
            }
            // A line of an event.
            b'B' => {
                if let Some(exchange) = exchange {
                    self.receive(exchange, operation.text);
                    self.receive(exchange, b"\n");
                }
            }
            b'V' => {
                if let Some(exchange) = exchange {
                    let event = format!("data: {}\n\n", operation.text());
                    self.receive(exchange, event.as_bytes());
                }
            }
            b'I' => {
                if let Some(exchange) = exchange {
                    let event = format!("id: {}\n", operation.text());
                    self.client.handle_body(exchange, event.as_bytes(), now);
                }
            }
            b'F' => {
                if let Some(exchange) = exchange {
                    self.open.retain(|(open, _)| *open != exchange);
                    self.client.handle_body_end(exchange, now);
                }
            }
            b'X' => {
                if let Some(exchange) = exchange {
                    let failure = match operation.text {
                        b"" => ExchangeFailure::Broken,
                        _ => ExchangeFailure::NotSent,
                    };
                    self.open.retain(|(open, _)| *open != exchange);
                    self.client.handle_exchange_failed(exchange, failure, now);
                }
            }
            b'i' | b'j' => self.end_input(operation),
            b't' => self.wake(now + operation.duration()),
            b'T' => {
                if let Some(due) = self.client.poll_timeout() {
                    self.wake(due.max(now));
                }
            }
            _ => {
                let calls = operation.place(self.calls.len());
                let call = calls.and_then(|at| self.calls.keys().nth(at)).copied();
                match commands::ask_client(&mut self.client, operation, call, now) {
                    None => return,
                    Some(asked) => self.called(asked.ok().and_then(Applied::call)),
                }
            }
        }
        self.pull();
    }

    /// The head of a response: the number is its status, the text selects the exchange.
    fn head(&mut self, operation: &Operation<'_>) {
        let fields = std::mem::take(&mut self.fields);
        let which = Operation::parse(operation.text).map_or(0, |inner| inner.number);
        let headless: Vec<_> = self.open.iter().filter(|(_, headed)| !headed).collect();
        if headless.is_empty() {
            return;
        }
        let exchange = headless[headless.len() - 1 - which % headless.len()].0;
        let mut head = IncomingResponse::new(Status(operation.number as u16));
        for (name, value) in &fields {
            head.field(name, value);
        }
        self.open.iter_mut().filter(|it| it.0 == exchange).for_each(|it| it.1 = true);
        self.client.handle_response(exchange, &head, self.now);
    }

    fn receive(&mut self, exchange: ExchangeId, bytes: &[u8]) {
        self.client.handle_body(exchange, bytes, self.now);
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

    fn wake(&mut self, now: Instant) {
        self.now = now;
        self.client.handle_timeout(now);
        self.pull();
        let next = self.client.poll_timeout();
        assert!(next.is_none_or(|next| next > now), "a superfluous wake-up at {now:?}");
    }

    /// Drains the events and transmits of the machine.
    fn pull(&mut self) {
        while let Some(event) = self.client.poll_event() {
            writeln!(self.transcript, "{event:?}").expect("writing to a string succeeds");
            self.see(event);
        }
        while let Some(transmit) = self.client.poll_transmit() {
            writeln!(self.transcript, "{transmit:?}").expect("writing to a string succeeds");
            match transmit {
                ClientTransmit::Send(request) => {
                    assert_eq!(request.url().authority(), "example.com", "another origin");
                    let (ids, others): (Vec<_>, Vec<_>) =
                        request.fields().partition(|(name, _)| *name == "last-event-id");
                    check_fields(others.into_iter().map(|(_, value)| value.to_owned()));
                    ids.into_iter().for_each(|(_, id)| check_event_id(id));
                    let known = self.open.iter().any(|(open, _)| *open == request.exchange);
                    assert!(!known, "the exchange id is in use");
                    if request.method == "POST" {
                        check_form(&request.body);
                    } else {
                        assert!(request.body.is_empty(), "a body with {}", request.method);
                    }
                    self.open.push((request.exchange, false));
                }
                ClientTransmit::Abort(exchange) => {
                    let at = self.open.iter().position(|(open, _)| *open == exchange);
                    self.open.remove(at.expect("only a running exchange is aborted"));
                }
            }
        }
        assert!(self.open.len() <= self.exchanges_max, "too many exchanges");
    }

    fn see(&mut self, event: Event<'static>) {
        assert!(!self.closed, "after the end: {event:?}");
        match event {
            Event::InputRequested(input) => {
                assert!(!self.inputs.contains(&input.handle), "a question is repeated");
                self.inputs.push(input.handle);
            }
            Event::Ended(ended) => {
                let count = self.calls.get_mut(&ended.call).expect("the end of a known call");
                *count += 1;
                assert_eq!(*count, 1, "a call ends twice");
            }
            Event::Cancelled(cancelled) => {
                if let Subject::Input(handle) = cancelled.subject {
                    self.inputs.retain(|input| *input != handle);
                }
            }
            Event::Closed(_) => self.closed = true,
            _ => {}
        }
    }

    /// Closes the client and breaks the exchanges in progress: after that it is idle.
    fn finish(mut self) -> String {
        self.client.close(self.now);
        self.pull();
        for _ in 0..100 {
            match self.client.poll_timeout() {
                Some(due) => self.wake(due.max(self.now)),
                None => break,
            }
        }
        assert!(self.client.is_drained(), "{}", self.transcript);
        assert_eq!(self.client.poll_timeout(), None);
        assert!(self.open.is_empty(), "{:?} has neither ended nor been aborted", self.open);
        assert!(self.closed && self.calls.values().all(|ends| *ends == 1), "{:?}", self.calls);
        self.transcript
    }
}

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use serde_json::Value;

use crate::commands;
use crate::inputs;
use crate::operation::{Operation, script};
use mcp_sansio::envelope::ParseLimits;
use mcp_sansio::http::{
    ExchangeId, HttpServerOptions, RequestHead, Response, ResponseMode, Server, ServerLimits,
    ServerTimeouts, ServerTransmit,
};
use mcp_sansio::jsonrpc::{ErrorObject, Frame, Message, parse};
use mcp_sansio::peer::{Event, Limits, Request, RequestHandle, ServerMachine, Subject};
use mcp_sansio::peer::{HttpRejection, Status};
use mcp_sansio::{Caller, Instant, Principal, Revision, Revisions};

use super::reply::Reply;

/// Runs an HTTP server with any operations: its internal state is consistent, each exchange gets
/// one head and one end, it sends valid messages in valid responses, every request ends once,
/// admission and handling agree, it requests no superfluous wake-up, retains nothing at the end,
/// and is deterministic.
pub fn http_server(bytes: &[u8]) {
    let run = || {
        let (settings, operations) = script(bytes);
        let mut harness = Harness::new(settings);
        operations.for_each(|operation| harness.operate(&operation));
        harness.finish()
    };
    assert_eq!(run(), run(), "the same input has a different outcome");
}

struct Harness {
    server: Server,
    now: Instant,
    transcript: String,
    /// Header fields of the next request.
    fields: Vec<(String, Vec<u8>)>,
    /// Session ids, latest last.
    sessions: Vec<String>,
    principal: Option<Principal>,
    replies: BTreeMap<ExchangeId, Reply>,
    waiting: Vec<Request<'static>>,
    /// Requests passed to the application, and whether each has ended.
    requests: BTreeMap<RequestHandle, bool>,
    /// Whether clients currently read nothing.
    held: bool,
    /// The revisions served.
    revisions: Revisions,
    /// The limits of the machine under the transport.
    limits: Limits,
}

impl Harness {
    /// Each setting is one letter: those of the peer, then one for limits and one for the form of
    /// answers.
    fn new(settings: &[u8]) -> Self {
        let letter = |at: usize| settings.get(at).copied().unwrap_or(b'0');
        let mut limits = ServerLimits::default();
        if letter(5) == b't' {
            limits.sessions_max = 2;
            limits.exchanges_max = 4;
            limits.unread_bytes_max = 300;
            limits.replay_events_max = 3;
            limits.replay_bytes_max = 300;
            limits.replay_bytes_total_max = 500;
            limits.finished_streams_max = 1;
            limits.body_bytes_max = 2000;
        }
        let mut timeouts = ServerTimeouts::default();
        if letter(6) == b'p' {
            timeouts.poll_after = Some(Duration::from_secs(2));
        }
        let answers =
            if letter(7) == b's' { ResponseMode::Stream } else { ResponseMode::default() };
        let options = HttpServerOptions::new()
            .legacy_sse("/sse", "/messages")
            .limits(limits)
            .timeouts(timeouts)
            .answers(answers);
        let peer = inputs::server_options(settings);
        Self {
            server: Server::new(peer, options, [7; 32], 0).expect("the tools can be served"),
            now: Instant::ZERO,
            transcript: String::new(),
            fields: Vec::new(),
            sessions: Vec::new(),
            principal: None,
            replies: BTreeMap::new(),
            waiting: Vec::new(),
            requests: BTreeMap::new(),
            held: false,
            revisions: inputs::revisions(letter(0)),
            limits: inputs::limits(settings),
        }
    }

    fn operate(&mut self, operation: &Operation<'_>) {
        let now = self.now;
        let waiting = operation.place(self.waiting.len()).map(|at| self.waiting[at].handle);
        match operation.verb {
            b'+' => self.add_field(operation.text),
            b'{' => self.request("POST", "/mcp", operation.text),
            b'M' => self.post_modern(operation.text),
            b'G' => self.request("GET", "/mcp", b""),
            b'D' => self.request("DELETE", "/mcp", b""),
            b'O' => self.request("GET", "/sse", b""),
            b'P' => {
                let at = operation.place(self.sessions.len());
                let session = at.map_or("", |at| &*self.sessions[at]);
                let target = format!("/messages?sessionId={session}");
                self.request("POST", &target, operation.text);
            }
            b'S' => {
                if let Some(at) = operation.place(self.sessions.len()) {
                    let session = self.sessions[at].clone();
                    self.fields.push(("mcp-session-id".to_string(), session.into_bytes()));
                }
            }
            b'b' => {
                let name = operation.text();
                self.principal = (!name.is_empty()).then(|| Principal::new(name));
            }
            b'd' => {
                let open: Vec<_> = self.open().collect();
                if let Some(at) = operation.place(open.len()) {
                    self.server.handle_disconnect(open[at], now);
                    self.replies.remove(&open[at]);
                    assert_eq!(self.server.poll_transmit(open[at], now), None, "after its end");
                }
            }
            b'h' => self.held = operation.number % 2 == 1,
            b'a' | b'r' | b'q' | b'f' => self.end_one(operation),
            b'v' => {
                if let Some(handle) = waiting {
                    self.server.release_connection(handle, operation.duration());
                }
            }
            b't' => self.wake(now + operation.duration()),
            b'T' => {
                if let Some(due) = self.server.poll_timeout() {
                    self.wake(due.max(now));
                }
            }
            _ => {
                if commands::ask_server(&mut self.server, operation, waiting, None, now).is_none() {
                    return;
                }
            }
        }
        self.pump();
    }

    fn add_field(&mut self, line: &[u8]) {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { return };
        if let Ok(name) = std::str::from_utf8(&line[..colon]) {
            self.fields.push((name.to_owned(), line[colon + 1..].to_vec()));
        }
    }

    /// Sends a POST of a modern message, with the header fields that mirror its content.
    fn post_modern(&mut self, body: &[u8]) {
        let tree: Value = serde_json::from_slice(body).unwrap_or_default();
        let members = [
            ("mcp-protocol-version", "/params/_meta/io.modelcontextprotocol~1protocolVersion"),
            ("mcp-method", "/method"),
            ("mcp-name", "/params/name"),
            ("mcp-name", "/params/uri"),
            ("mcp-param-a", "/params/arguments/a"),
        ];
        for (name, pointer) in members {
            if let Some(text) = tree.pointer(pointer).and_then(Value::as_str) {
                self.fields.push((name.to_string(), text.as_bytes().to_vec()));
            }
        }
        self.request("POST", "/mcp", body);
    }

    fn request(&mut self, method: &str, target: &str, body: &[u8]) {
        let fields = std::mem::take(&mut self.fields);
        let mut head = RequestHead::new(method, target);
        let usual: [(&str, &[u8]); 3] = [
            ("host", b"localhost"),
            ("content-type", b"application/json"),
            ("accept", b"application/json, text/event-stream"),
        ];
        for (name, value) in usual {
            if !fields.iter().any(|(known, _)| known.eq_ignore_ascii_case(name)) {
                head.field(name, value);
            }
        }
        fields.iter().for_each(|(name, value)| head.field(name, value));
        let refused = self.server.admit(&head).err();
        let unwanted = self.is_unwanted(&head, &fields, body);
        let caller = Caller::from(self.principal.clone());
        let (exchange, event) = self.server.handle_request(&head, body, &caller, self.now);
        assert!(!unwanted || event.is_none(), "{event:?} from a message that no client sends");
        let mut reply = Reply::new(&self.limits, unwanted);
        reply.conformance.receive(body);
        let fresh = self.replies.insert(exchange, reply).is_none();
        assert!(fresh, "an exchange id is reused");
        if let Some(event) = event {
            self.see(event.into_owned());
        }
        if let Some(refused) = refused {
            let sent = self.server.poll_transmit(exchange, self.now);
            assert_eq!(
                sent,
                Some(ServerTransmit::Respond(refused)),
                "admission and handling disagree"
            );
            self.replies.remove(&exchange);
        }
    }

    /// Returns whether the body is a response at a revision where clients send none.
    fn is_unwanted(
        &self,
        head: &RequestHead<'_>,
        fields: &[(String, Vec<u8>)],
        body: &[u8],
    ) -> bool {
        // MCP 2026-07-28 basic/transports/streamable-http#sending-messages [HSRV-010]
        let modern_only = self.revisions.intersection(Revisions::LEGACY).is_empty();
        let modern_too = self.revisions.contains(Revision::LATEST);
        let version =
            fields.iter().find(|(name, _)| name.eq_ignore_ascii_case("mcp-protocol-version"));
        let named = version
            .is_some_and(|(_, value)| value.trim_ascii() == Revision::LATEST.as_str().as_bytes());
        let response = parse(body, ParseLimits::default());
        let response = matches!(response, Ok(Frame::Single(Message::Response(_))));
        (head.method(), head.path()) == ("POST", "/mcp")
            && (modern_only || modern_too && named)
            && response
    }

    fn end_one(&mut self, operation: &Operation<'_>) {
        let Some(at) = operation.place(self.waiting.len()) else { return };
        let request = self.waiting.swap_remove(at);
        let (handle, now) = (request.handle, self.now);
        let over = self.requests[&handle];
        assert_eq!(self.server.is_pending(handle), !over, "whether an answer is due");
        let outcome = match operation.verb {
            b'a' => self.server.respond_with(handle, &inputs::params(operation), now),
            b'r' => self.server.reject(handle, inputs::error(operation), now),
            b'f' => {
                let error = ErrorObject::invalid_request(operation.text()).into_owned();
                self.server.refuse(handle, HttpRejection::new(Status::FORBIDDEN, error), now)
            }
            _ => {
                let questions = inputs::questions(operation);
                if self.server.require_input(&request, &questions, now).is_err() {
                    self.requests.insert(handle, true);
                }
                return;
            }
        };
        assert_eq!(outcome.is_err(), over, "{outcome:?}");
        self.requests.insert(handle, true);
        assert!(!self.server.is_pending(handle), "pending after its answer");
    }

    fn wake(&mut self, now: Instant) {
        self.now = now;
        self.server.handle_timeout(now);
        self.pump();
        let next = self.server.poll_timeout();
        assert!(next.is_none_or(|next| next > now), "a superfluous wake-up at {now:?}");
    }

    fn see(&mut self, event: Event<'static>) {
        writeln!(self.transcript, "{event:?}").expect("writing to a string succeeds");
        match event {
            Event::Request(request) => {
                let over = self.requests.insert(request.handle, false);
                assert_ne!(over, Some(true), "a request is repeated after its end");
                self.waiting.push(request);
            }
            Event::Cancelled(cancelled) => {
                let Subject::Request(handle) = cancelled.subject else { panic!("no input here") };
                let over = self.requests.insert(handle, true);
                assert_eq!(over, Some(false), "cancelled after its end, or before its start");
            }
            Event::Closed(reason) => panic!("closed: {reason}"),
            _ => {}
        }
    }

    fn open(&self) -> impl Iterator<Item = ExchangeId> {
        self.replies.iter().filter(|(_, reply)| !reply.over).map(|(exchange, _)| *exchange)
    }

    /// Drains the events and transmits of the server.
    fn pump(&mut self) {
        self.server.assert_consistent();
        while let Some(event) = self.server.poll_event() {
            self.see(event);
        }
        while let Some(exchange) = self.server.poll_ready() {
            // An exchange that is held becomes ready again with its next data, or when all are
            // read.
            if !self.held {
                self.read(exchange);
            }
        }
        if !self.held {
            let open: Vec<_> = self.open().collect();
            open.into_iter().for_each(|exchange| self.read(exchange));
        }
        self.server.assert_consistent();
    }

    fn read(&mut self, exchange: ExchangeId) {
        let Some(reply) = self.replies.get_mut(&exchange) else { return };
        while let Some(step) = self.server.poll_transmit(exchange, self.now) {
            writeln!(self.transcript, "{exchange:?} {step:?}")
                .expect("writing to a string succeeds");
            assert!(!reply.over, "{step:?} after the end");
            match step {
                ServerTransmit::Respond(Response { head, body, .. }) => {
                    assert!(reply.head.replace(head).is_none(), "a second head");
                    reply.body = body;
                    reply.over = true;
                }
                ServerTransmit::Open(head) => {
                    assert!(reply.head.replace(head).is_none(), "a second head");
                }
                ServerTransmit::Chunk(bytes) => reply.body.extend_from_slice(bytes),
                ServerTransmit::Finish | ServerTransmit::Abort => reply.over = true,
            }
        }
        if reply.over {
            assert_eq!(self.server.poll_transmit(exchange, self.now), None, "after the end");
        }
        if let Some(session) = reply.check() {
            self.sessions.push(session);
        }
        if self.replies.get(&exchange).is_some_and(|reply| reply.over) {
            self.replies.remove(&exchange);
        }
    }

    fn answer_all(&mut self) {
        while let Some(request) = self.waiting.pop() {
            let over = self.requests[&request.handle];
            let outcome = self.server.respond_with(request.handle, &inputs::EMPTY, self.now);
            assert_eq!(outcome.is_err(), over, "{outcome:?}");
            self.requests.insert(request.handle, true);
            self.pump();
        }
    }

    /// Closes the server and disconnects every client: nothing is retained.
    fn finish(mut self) -> String {
        self.held = false;
        self.server.close(self.now);
        self.pump();
        self.answer_all();
        let open: Vec<_> = self.open().collect();
        for exchange in open {
            self.server.handle_disconnect(exchange, self.now);
            self.replies.remove(&exchange);
        }
        self.pump();
        for _ in 0..1000 {
            match self.server.poll_timeout() {
                Some(due) => self.wake(due.max(self.now)),
                None => break,
            }
            // A round of unanswered questions returns as its request.
            self.answer_all();
        }
        assert_eq!(self.server.poll_timeout(), None, "a deadline is left");
        assert!(self.server.is_drained());
        assert_eq!((self.server.session_count(), self.server.retained()), (0, (0, 0)));
        self.transcript
    }
}

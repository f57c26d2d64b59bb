//! An HTTP server on a virtual clock. The test plays every client.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use mcp_sansio::catalog::Changes;
use mcp_sansio::http::{ExchangeId, HttpServerOptions, ParsedBody, RequestHead, ServerTransmit};
use mcp_sansio::jsonrpc::ErrorObject;
use mcp_sansio::peer::HttpRejection;
use mcp_sansio::peer::{self, Event, Request, RequestHandle, ServerMachine, Subject};
use mcp_sansio::{Instant, Principal, Side};
use serde_json::Value;

use crate::fixtures::raw;
use crate::played::{self, HttpServer as Server, Played};
use crate::reply::{Reply, State};
use crate::schema_checker::SchemaChecker;

/// Index of an exchange in a [`TestServer`], in the order of the requests.
pub(crate) type Ticket = usize;

pub(crate) struct TestServer {
    pub(crate) server: Server,
    pub(crate) now: Instant,
    /// Principal of the next requests.
    pub(crate) principal: Option<Principal>,
    /// Address of the next requests.
    pub(crate) address: Option<IpAddr>,
    /// The check of a layer above the server.
    pub(crate) permit: fn(Option<&ParsedBody<'_>>) -> Result<(), HttpRejection>,
    pub(crate) events: VecDeque<Event<'static>>,
    replies: Vec<Reply>,
    tickets: BTreeMap<ExchangeId, Ticket>,
    /// A checker for each session and each modern request.
    checkers: BTreeMap<String, SchemaChecker>,
    /// The data of each event, by session and id. Replays must be equal.
    said: BTreeMap<(String, String), String>,
    _played: Played,
}

impl TestServer {
    pub(crate) fn new(peer: peer::ServerOptions, options: HttpServerOptions) -> Self {
        Self::over(played::http_server(peer, options))
    }

    pub(crate) fn over((server, played): (Server, Played)) -> Self {
        Self {
            server,
            now: Instant::ZERO,
            principal: None,
            address: None,
            permit: |_| Ok(()),
            events: VecDeque::new(),
            replies: Vec::new(),
            tickets: BTreeMap::new(),
            checkers: BTreeMap::new(),
            said: BTreeMap::new(),
            _played: played,
        }
    }

    /// Sends a request, exactly as given.
    pub(crate) fn request(
        &mut self,
        method: &str,
        target: &str,
        fields: &[(&str, &str)],
        body: &str,
    ) -> Ticket {
        self.request_with(method, target, fields, body, true)
    }

    /// Sends a request of a client that does not read the response.
    pub(crate) fn request_unread(
        &mut self,
        method: &str,
        target: &str,
        fields: &[(&str, &str)],
        body: &str,
    ) -> Ticket {
        self.request_with(method, target, fields, body, false)
    }

    fn request_with(
        &mut self,
        method: &str,
        target: &str,
        fields: &[(&str, &str)],
        body: &str,
        reads: bool,
    ) -> Ticket {
        let mut head = RequestHead::new(method, target);
        if let Some(address) = self.address {
            head.remote_address(address);
        }
        for (name, value) in fields {
            head.field(name, value.as_bytes());
        }
        let ticket = self.replies.len();
        let named = |name: &str| {
            let field = fields.iter().find(|(field, _)| field.eq_ignore_ascii_case(name));
            field.map(|(_, value)| (*value).to_owned())
        };
        let conversation = match named("mcp-session-id") {
            Some(session) if !is_modern(body) => session,
            _ => match target.split_once("sessionId=") {
                Some((_, session)) => session.into(),
                None => format!("#{ticket}"),
            },
        };
        self.checkers.entry(conversation.clone()).or_default().hear(Side::Client, body);
        let refused = self.server.admit(&head).err();
        let (body, caller) = (body.as_bytes(), self.principal.clone().into());
        let mut request = self.server.reader().read(&head, body, &caller);
        let (exchange, event) =
            self.server.handle_read_request(&head, &mut request, &self.permit, self.now);
        let event = event.map(Event::into_owned);
        self.replies.push(Reply { reads, conversation, refused, ..Reply::default() });
        self.tickets.insert(exchange, ticket);
        self.events.extend(event);
        self.pump();
        ticket
    }

    /// Polls all events and output of the server.
    pub(crate) fn pump(&mut self) {
        self.server.assert_consistent();
        while let Some(event) = self.server.poll_event() {
            self.events.push_back(event);
        }
        while let Some(exchange) = self.server.poll_ready() {
            self.drain(exchange, usize::MAX);
        }
        self.server.assert_consistent();
    }

    /// Reads at most `count` parts of the output for an exchange.
    fn drain(&mut self, exchange: ExchangeId, count: usize) {
        let ticket = self.tickets[&exchange];
        if !self.replies[ticket].reads {
            return;
        }
        for _ in 0..count {
            let Some(step) = self.server.poll_transmit(exchange, self.now) else { break };
            let reply = &mut self.replies[ticket];
            assert!(!reply.is_over(), "{step:?} after the end of {reply:?}");
            match step {
                ServerTransmit::Respond(response) => {
                    assert_eq!(reply.status, None, "a second head");
                    reply.head(&response.head);
                    reply.body = response.body;
                    reply.state = State::Complete;
                }
                ServerTransmit::Open(head) => {
                    assert_eq!(reply.status, None, "a second head");
                    reply.head(&head);
                }
                ServerTransmit::Chunk(bytes) => reply.body.extend_from_slice(bytes),
                ServerTransmit::Finish => reply.state = State::Complete,
                ServerTransmit::Abort => reply.state = State::Aborted,
            }
        }
        self.check(ticket);
        if self.replies[ticket].is_over() {
            assert_eq!(self.server.poll_transmit(exchange, self.now), None, "after the end");
        }
    }

    /// Checks the output since the last call.
    fn check(&mut self, ticket: Ticket) {
        let reply = &mut self.replies[ticket];
        if let Some(refused) = reply.refused.take() {
            assert_eq!(
                reply.status,
                Some(refused.head.status.0),
                "admission returned another response"
            );
        }
        if let Some(session) = reply.field("mcp-session-id").map(str::to_owned) {
            // The checker was created before the session had an id.
            if let Some(checker) = self.checkers.remove(&reply.conversation) {
                self.checkers.insert(session.clone(), checker);
            }
            reply.conversation = session;
        }
        let Some(checker) = self.checkers.get_mut(&reply.conversation) else { return };
        let conversation = reply.conversation.clone();
        for event in reply.take_new_events() {
            if let Some(id) = &event.id {
                let key = (conversation.clone(), id.clone());
                if let Some(before) = self.said.get(&key) {
                    assert_eq!(before, &event.data, "a replay of event {id} differs");
                    continue;
                }
                self.said.insert(key, event.data.clone());
            }
            if !event.data.is_empty() && event.kind.as_deref() != Some("endpoint") {
                checker.examine(Side::Server, &event.data);
            }
        }
    }

    /// Reads `steps` parts of the output, or everything from now on.
    pub(crate) fn read(&mut self, ticket: Ticket, steps: usize) {
        let exchange = self.exchange(ticket);
        self.replies[ticket].reads = true;
        self.drain(exchange, steps);
        self.replies[ticket].reads = steps == usize::MAX;
        self.server.assert_consistent();
    }

    pub(crate) fn exchange(&self, ticket: Ticket) -> ExchangeId {
        let found = self.tickets.iter().find(|(_, known)| **known == ticket);
        *found.expect("a ticket of this server").0
    }

    /// Disconnects the client of an exchange.
    pub(crate) fn disconnect(&mut self, ticket: Ticket) {
        self.replies[ticket].state = State::Disconnected;
        self.replies[ticket].reads = false;
        let exchange = self.exchange(ticket);
        self.server.handle_disconnect(exchange, self.now);
        assert_eq!(self.server.poll_transmit(exchange, self.now), None, "after it has gone");
        self.pump();
    }

    /// Advances the clock, stopping at every deadline.
    pub(crate) fn advance(&mut self, duration: Duration) {
        let end = self.now + duration;
        let mut in_a_row = 0;
        while let Some(due) = self.server.poll_timeout().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.server.handle_timeout(self.now);
            self.pump();
            // The driver cannot spin, nor wake again and again after the shortest pause.
            let next = self.server.poll_timeout();
            assert!(next.is_none_or(|next| next > self.now), "{next:?} at {:?}", self.now);
            let soon = next.is_some_and(|next| next <= self.now + Duration::from_millis(1));
            in_a_row = if soon { in_a_row + 1 } else { 0 };
            assert!(in_a_row < 100, "nothing but wake-ups until {:?}", self.now);
        }
        self.now = end;
    }

    /// Returns the number of requests.
    pub(crate) fn count(&self) -> usize {
        self.replies.len()
    }

    /// Returns the response to a request as far as it was read.
    pub(crate) fn reply(&self, ticket: Ticket) -> &Reply {
        &self.replies[ticket]
    }

    // ------------------------------------------------------------------ application

    /// Returns the next event.
    #[track_caller]
    pub(crate) fn event(&mut self) -> Event<'static> {
        self.events.pop_front().expect("an event")
    }

    #[track_caller]
    pub(crate) fn expect_no_event(&mut self) {
        assert!(self.events.is_empty(), "{:?}", self.events);
    }

    /// Returns the next event, which must be a request.
    #[track_caller]
    pub(crate) fn asked(&mut self) -> Request<'static> {
        match self.event() {
            Event::Request(request) => request,
            other => panic!("{other:?} instead of a request"),
        }
    }

    /// Returns the request of the next event, which must be a cancellation.
    #[track_caller]
    pub(crate) fn cancelled(&mut self) -> RequestHandle {
        match self.event() {
            Event::Cancelled(cancelled) => match cancelled.subject {
                Subject::Request(handle) => handle,
                other => panic!("{other:?} is cancelled"),
            },
            other => panic!("{other:?} instead of a cancellation"),
        }
    }

    /// Answers the next request.
    #[track_caller]
    pub(crate) fn answer(&mut self) {
        let request = self.asked();
        self.answer_to(request.handle);
    }

    #[track_caller]
    pub(crate) fn answer_to(&mut self, request: RequestHandle) {
        self.answer_with(request, r#"{"content":[]}"#);
    }

    #[track_caller]
    pub(crate) fn answer_with(&mut self, request: RequestHandle, result: &str) {
        self.server.respond_with(request, &raw(result), self.now).expect("the request is pending");
        self.pump();
    }

    #[track_caller]
    pub(crate) fn reject(&mut self, request: RequestHandle, error: ErrorObject<'_>) {
        self.server.reject(request, error, self.now).expect("the request is pending");
        self.pump();
    }

    #[track_caller]
    pub(crate) fn refuse(&mut self, request: RequestHandle, refusal: HttpRejection) {
        self.server.refuse(request, refusal, self.now).expect("the request is pending");
        self.pump();
    }

    pub(crate) fn progress(&mut self, request: RequestHandle, progress: f64) {
        self.server.progress(request, progress, None, None, self.now);
        self.pump();
    }

    pub(crate) fn resource_updated(&mut self, uri: &str) {
        self.server.resource_updated(uri, self.now);
        self.pump();
    }

    /// Announces a change of the tool list.
    pub(crate) fn tools_changed(&mut self) {
        let changes = Changes::new().tools(true);
        self.server.announce(changes, self.now);
        self.pump();
    }

    /// Asserts that there are no exchanges and no retained state.
    #[track_caller]
    pub(crate) fn expect_empty(&mut self) {
        assert_eq!((self.server.exchange_count(), self.server.session_count()), (0, 0));
        assert_eq!(self.server.retained(), (0, 0));
        self.advance(Duration::from_secs(3600));
        assert_eq!(self.server.poll_timeout(), None);
    }
}

fn is_modern(body: &str) -> bool {
    let value: Value = serde_json::from_str(body).unwrap_or_default();
    value.pointer("/params/_meta/io.modelcontextprotocol~1protocolVersion").is_some()
}

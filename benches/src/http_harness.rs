use core::time::Duration;
use std::hint::black_box;

use mcp_sansio::Instant;
use mcp_sansio::http::{
    ExchangeId, HttpServerOptions, RequestHead, Server, ServerLimits, ServerTransmit,
};
use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::{self, Event, RequestHandle, ServerMachine};
use mcp_sansio::protocol::{
    Implementation, ResourcesCapability, ServerCapabilities, ToolsCapability,
};

/// The first message of a session.
pub(crate) const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
pub(crate) const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// A server on HTTP whose clients are plain text.
#[derive(Debug)]
pub struct HttpHarness {
    pub(crate) server: Server,
    /// All exchanges, including ended ones.
    pub(crate) open: Vec<ExchangeId>,
    pub(crate) now: Instant,
}

impl Default for HttpHarness {
    fn default() -> Self {
        Self::new()
    }
}

impl HttpHarness {
    /// Creates a server with the default limits.
    #[must_use]
    pub fn new() -> Self {
        Self::with_limits(ServerLimits::DEFAULT)
    }

    /// Creates a server that keeps up to `events` events of each stream for replay, of any length.
    #[must_use]
    pub fn with_rings(events: usize) -> Self {
        let mut limits = ServerLimits::DEFAULT;
        limits.replay_events_max = events;
        limits.replay_bytes_max = usize::MAX;
        limits.replay_bytes_total_max = usize::MAX;
        Self::with_limits(limits)
    }

    fn with_limits(mut limits: ServerLimits) -> Self {
        limits.sessions_max = 1 << 20;
        let offers = ServerCapabilities::new()
            .tools(ToolsCapability::new())
            .resources(ResourcesCapability::new().subscribe(true));
        let mut each = peer::Limits::DEFAULT;
        each.requests_in_flight_max = 1 << 20;
        each.subscribed_resources_max = 1 << 20;
        let peer = peer::ServerOptions::new(Implementation::new("s", "1"))
            .capabilities(offers)
            .limits(each);
        let options = HttpServerOptions::new().limits(limits);
        let server = Server::new(peer, options, [1; 32], 1).expect("the options are valid");
        Self { server, open: Vec::new(), now: Instant::ZERO }
    }

    /// Sends a request. Returns the session id of its response, if any.
    pub(crate) fn send(
        &mut self,
        method: &str,
        fields: &[(&str, &str)],
        body: &str,
    ) -> Option<String> {
        self.ask(method, fields, body, false)
    }

    /// Sends a request. If it is a protocol request and `answered` is set, it is answered at once.
    fn ask(
        &mut self,
        method: &str,
        fields: &[(&str, &str)],
        body: &str,
        answered: bool,
    ) -> Option<String> {
        let mut head = head_of(method);
        for (name, value) in fields {
            head.field(name, value.as_bytes());
        }
        if self.server.admit(&head).is_err() {
            return None;
        }
        let (exchange, event) = self.server.handle_request(
            &head,
            body.as_bytes(),
            &mcp_sansio::Caller::ANONYMOUS,
            self.now,
        );
        if let (Some(Event::Request(request)), true) = (&event, answered) {
            let answer = RawJson::parse(r#"{"content":[{"type":"text","text":"hello"}]}"#);
            let answer = answer.expect("JSON");
            self.server.respond_with(request.handle, &answer, self.now).expect("due");
        }
        drop(black_box(event));
        self.open.push(exchange);
        self.transmit(&mut |_| {})
    }

    /// Transmits all output and passes stream chunks to `see`. Returns the session id of the last
    /// complete response, if any.
    pub(crate) fn transmit(&mut self, see: &mut dyn FnMut(&[u8])) -> Option<String> {
        let mut session = None;
        while self.server.poll_event().is_some() {}
        while let Some(ready) = self.server.poll_ready() {
            while let Some(transmit) = self.server.poll_transmit(ready, self.now) {
                match transmit {
                    ServerTransmit::Respond(response) => {
                        let mut fields = response.head.fields();
                        let id = fields.find(|(name, _)| *name == "mcp-session-id");
                        session = id.map(|(_, id)| id.into_owned());
                    }
                    ServerTransmit::Chunk(bytes) => see(black_box(bytes)),
                    _ => {}
                }
            }
        }
        session
    }

    /// Opens a session of 2025-11-25 and returns its id.
    ///
    /// # Panics
    ///
    /// If it is refused.
    pub fn session(&mut self) -> String {
        let session = self.send("POST", &[], INITIALIZE).expect("a session");
        self.send("POST", &in_session(&session), INITIALIZED);
        self.open.clear();
        session
    }

    /// Calls a tool in a session, and answers the call.
    ///
    /// # Panics
    ///
    /// If it is refused.
    pub fn call(&mut self, session: &str) {
        const CALL: &str = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"t","arguments":{"text":"hello"}}}"#;
        self.now = self.now + Duration::from_micros(1);
        self.ask("POST", &in_session(session), CALL, true);
        let exchange = self.open.pop().expect("an exchange");
        assert!(self.server.poll_transmit(exchange, self.now).is_none(), "it is over");
    }

    /// Ends a session.
    pub fn end(&mut self, session: &str) {
        self.send("DELETE", &in_session(session), "");
        self.open.clear();
    }

    /// Subscribes a session to a resource, or unsubscribes it.
    ///
    /// # Panics
    ///
    /// If it is refused.
    pub fn subscribe(&mut self, session: &str, uri: &str, on: bool) {
        let verb = if on { "subscribe" } else { "unsubscribe" };
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":9,"method":"resources/{verb}","params":{{"uri":"{uri}"}}}}"#
        );
        self.send("POST", &in_session(session), &body);
        self.open.clear();
    }

    /// Opens the event stream of a session, after the given event. Returns the bytes that arrive at
    /// once, and the id of the last event.
    ///
    /// # Panics
    ///
    /// If it is refused.
    pub fn listen(&mut self, session: &str, last: Option<&str>) -> Listening {
        let mut head = head_of("GET");
        for (name, value) in in_session(session) {
            head.field(name, value.as_bytes());
        }
        if let Some(last) = last {
            head.field("last-event-id", last.as_bytes());
        }
        self.server.admit(&head).expect("the request is admitted");
        let (exchange, event) =
            self.server.handle_request(&head, b"", &mcp_sansio::Caller::ANONYMOUS, self.now);
        assert!(event.is_none(), "opening a stream emits no event");
        let (mut length, mut last_id) = (0, None);
        self.transmit(&mut |bytes| {
            length += bytes.len();
            if let Some(id) = last_id_of(bytes) {
                last_id = Some(id);
            }
        });
        Listening { exchange, length, last_id }
    }

    /// Disconnects the client of a stream.
    pub fn disconnect(&mut self, listening: &Listening) {
        self.server.handle_disconnect(listening.exchange, self.now);
        self.transmit(&mut |_| {});
    }

    /// Sends a request whose client disconnects after the first progress notification. The server
    /// continues to work on it.
    ///
    /// # Panics
    ///
    /// If it is refused.
    pub fn abandoned(&mut self, session: &str) -> RequestHandle {
        const CALL: &str = r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":8}}}"#;
        let mut head = head_of("POST");
        for (name, value) in in_session(session) {
            head.field(name, value.as_bytes());
        }
        self.server.admit(&head).expect("the request is admitted");
        let (exchange, event) = self.server.handle_request(
            &head,
            CALL.as_bytes(),
            &mcp_sansio::Caller::ANONYMOUS,
            self.now,
        );
        let Some(Event::Request(request)) = event else { panic!("not a request") };
        let handle = request.handle;
        self.progress(handle, 0);
        self.server.handle_disconnect(exchange, self.now);
        self.transmit(&mut |_| {});
        handle
    }

    /// Sends one progress notification of a request.
    pub fn progress(&mut self, request: RequestHandle, step: u32) {
        // Respects the limit on progress notifications per second.
        self.now = self.now + Duration::from_millis(1);
        self.server.progress(request, f64::from(step), None, None, self.now);
        self.transmit(&mut |_| {});
    }

    /// Announces a change of a resource.
    pub fn resource_updated(&mut self, uri: &str) {
        self.now = self.now + Duration::from_micros(1);
        self.server.resource_updated(uri, self.now);
        self.transmit(&mut |_| {});
    }
}

/// A stream opened by a client.
#[derive(Debug)]
pub struct Listening {
    exchange: ExchangeId,
    /// Bytes that arrived at once.
    pub length: usize,
    /// The id of the last event received.
    pub last_id: Option<String>,
}

pub(crate) fn head_of(method: &str) -> RequestHead<'_> {
    let mut head = RequestHead::new(method, "/mcp");
    head.field("host", b"localhost");
    head.field("content-type", b"application/json");
    head.field("accept", b"application/json, text/event-stream");
    head
}

/// Returns the header fields of a request in a session.
pub(crate) fn in_session(id: &str) -> [(&str, &str); 2] {
    [("mcp-session-id", id), ("mcp-protocol-version", "2025-11-25")]
}

/// Returns the id of the last event in a chunk of a stream.
fn last_id_of(bytes: &[u8]) -> Option<String> {
    let place = memchr::memmem::rfind(bytes, b"id: ")? + b"id: ".len();
    let end = memchr::memchr(b'\n', &bytes[place..])?;
    Some(String::from_utf8_lossy(&bytes[place..place + end]).into_owned())
}

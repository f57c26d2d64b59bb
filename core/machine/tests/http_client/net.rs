//! A client, a scripted server, and a virtual clock.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use mcp_sansio::http::{
    ClientLimits, ClientTransmit, ExchangeFailure, ExchangeId, HttpClientOptions, IncomingResponse,
    Location, OutgoingRequest,
};
use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::Status;
use mcp_sansio::peer::{
    self, CallHandle, CallOptions, ClientMachine, Ended, Event, Failure, InputRequested,
    TransportFailure,
};
use mcp_sansio::protocol::{ClientCapabilities, Implementation, RootsCapability};
use mcp_sansio::{Instant, Method, Revision, Revisions};

use crate::played::{self, HttpClient as Client, Played};

pub(crate) const URL: &str = "https://example.com/mcp";

/// The network between a client and the script.
pub(crate) struct Net {
    pub(crate) client: Client,
    pub(crate) now: Instant,
    /// Exchanges by number, in the order of their requests.
    exchanges: BTreeMap<usize, ExchangeId>,
    count: usize,
    calls: Vec<CallHandle>,
    pub(crate) inputs: Vec<InputRequested<'static>>,
    /// The last request of each exchange.
    requests: BTreeMap<usize, OutgoingRequest>,
    _played: Played,
}

pub(crate) fn peer_options() -> peer::ClientOptions {
    peer::ClientOptions::new(Implementation::new("demo", "1.0"))
}

/// Returns limits with which calls do not read the list of tools.
pub(crate) fn client_limits() -> ClientLimits {
    let mut limits = ClientLimits::DEFAULT;
    limits.refresh_pages_max = 0;
    limits
}

pub(crate) fn http_options() -> HttpClientOptions {
    HttpClientOptions::new(Location::parse(URL).unwrap()).limits(client_limits())
}

/// Returns the capabilities of a client with roots that notifies changes.
pub(crate) fn with_roots() -> ClientCapabilities {
    ClientCapabilities::default().roots(RootsCapability::default().list_changed(true))
}

/// The name of this library in requests.
pub(crate) const AGENT: &str = concat!("mcp-sansio/", env!("CARGO_PKG_VERSION"));

/// Fields of a response.
pub(crate) const JSON: &[(&str, &str)] = &[("Content-Type", "application/json")];
pub(crate) const EVENTS: &[(&str, &str)] = &[("content-type", "text/event-stream")];

impl Net {
    pub(crate) fn new(peer: peer::ClientOptions, http: HttpClientOptions) -> Self {
        let (client, played) = played::http_client(peer, http, 7, Instant::ZERO);
        Self {
            client,
            now: Instant::ZERO,
            exchanges: BTreeMap::new(),
            count: 0,
            calls: Vec::new(),
            inputs: Vec::new(),
            requests: BTreeMap::new(),
            _played: played,
        }
    }

    /// Returns a client that supports both eras.
    pub(crate) fn plain() -> Self {
        Self::new(peer_options(), http_options())
    }

    /// Returns a modern client with an open connection; the next exchange is number 2.
    pub(crate) fn modern() -> Self {
        Self::modern_with(peer_options(), http_options())
    }

    pub(crate) fn modern_with(peer: peer::ClientOptions, http: HttpClientOptions) -> Self {
        let revisions = Revisions::only(Revision::V2026_07_28);
        let mut net = Self::new(peer.revisions(revisions), http);
        assert_eq!(net.sent(), "#1 POST server/discover\n");
        net.json(1, &result(1, DISCOVERED));
        assert_eq!(net.told(), "opened at 2026-07-28\n");
        net
    }

    /// Returns a legacy client with an open connection, in session `s1`, and its standalone stream
    /// on exchange 3; the next exchange is number 4.
    pub(crate) fn legacy(revision: Revision) -> Self {
        Self::legacy_with(revision, peer_options(), http_options())
    }

    pub(crate) fn legacy_with(
        revision: Revision,
        peer: peer::ClientOptions,
        http: HttpClientOptions,
    ) -> Self {
        let mut net = Self::new(peer.revisions(Revisions::only(revision)), http);
        assert_eq!(net.sent(), "#1 POST initialize\n");
        net.initialize(1, 1, revision, Some("s1"));
        assert_eq!(net.told(), format!("opened at {revision}\n"));
        let version = if revision >= Revision::V2025_06_18 {
            format!(" version={revision}")
        } else {
            String::new()
        };
        let sent = net.sent();
        assert_eq!(sent, format!("#2 POST notifications/initialized{version} session=s1\n"));
        net.answer(2, 202, &[], "");
        if revision >= Revision::V2025_03_26 {
            assert_eq!(net.sent(), format!("#3 GET{version} session=s1\n"));
            net.answer_head(3, 200, EVENTS);
        }
        net
    }

    // ------------------------------------------------------------------ script

    /// Answers `initialize`, whose JSON-RPC id is `id`.
    pub(crate) fn initialize(&mut self, n: usize, id: i64, at: Revision, session: Option<&str>) {
        let body = result(id, &initialized(at));
        let mut fields = JSON.to_vec();
        if let Some(session) = session {
            fields.push(("Mcp-Session-Id", session));
        }
        self.answer(n, 200, &fields, &body);
    }

    pub(crate) fn answer_head(&mut self, n: usize, status: u16, fields: &[(&str, &str)]) {
        let mut head = IncomingResponse::new(Status(status));
        for (name, value) in fields {
            head.field(name, value.as_bytes());
        }
        let exchange = self.exchange(n);
        self.client.handle_response(exchange, &head, self.now);
    }

    /// Delivers a whole response.
    pub(crate) fn answer(&mut self, n: usize, status: u16, fields: &[(&str, &str)], body: &str) {
        self.answer_head(n, status, fields);
        self.body(n, body);
        self.end(n);
    }

    pub(crate) fn json(&mut self, n: usize, body: &str) {
        self.answer(n, 200, JSON, body);
    }

    pub(crate) fn body(&mut self, n: usize, bytes: &str) {
        let exchange = self.exchange(n);
        self.client.handle_body(exchange, bytes.as_bytes(), self.now);
    }

    pub(crate) fn end(&mut self, n: usize) {
        let exchange = self.exchange(n);
        self.client.handle_body_end(exchange, self.now);
    }

    pub(crate) fn broken(&mut self, n: usize) {
        self.failed(n, ExchangeFailure::Broken);
    }

    pub(crate) fn failed(&mut self, n: usize, failure: ExchangeFailure) {
        let exchange = self.exchange(n);
        self.client.handle_exchange_failed(exchange, failure, self.now);
    }

    pub(crate) fn exchange(&self, n: usize) -> ExchangeId {
        *self.exchanges.get(&n).unwrap_or_else(|| panic!("no exchange #{n}"))
    }

    /// Advances the clock, stopping at every deadline.
    pub(crate) fn advance(&mut self, duration: Duration) {
        let until = self.now + duration;
        for _ in 0..10_000 {
            match self.client.poll_timeout().filter(|due| *due <= until) {
                Some(due) => {
                    self.now = due.max(self.now);
                    self.client.handle_timeout(self.now);
                }
                None => {
                    self.now = until;
                    self.client.handle_timeout(self.now);
                    return;
                }
            }
        }
        panic!("the clock does not advance past {:?}", self.now);
    }

    /// Advances the clock until a request is sent. Returns the time and the request.
    pub(crate) fn wait_for_request(&mut self) -> (Duration, String) {
        let start = self.now;
        for _ in 0..100 {
            let sent = self.sent();
            if !sent.is_empty() {
                return (self.now.saturating_since(start), sent);
            }
            let due = self.client.poll_timeout().expect("a deadline");
            self.now = due.max(self.now);
            self.client.handle_timeout(self.now);
        }
        panic!("no request is sent");
    }

    // ------------------------------------------------------------------ application

    pub(crate) fn call(&mut self, method: Method, params: &str) {
        self.call_with(method, params, &CallOptions::default());
    }

    pub(crate) fn call_with(&mut self, method: Method, params: &str, options: &CallOptions<'_>) {
        let params = RawJson::parse(params).unwrap();
        let handle = self.client.call(method, &params, options, self.now).unwrap();
        self.calls.push(handle);
    }

    /// Calls the tool `echo`.
    pub(crate) fn call_echo(&mut self) {
        self.call(Method::ToolsCall, r#"{"name":"echo","arguments":{}}"#);
    }

    /// Returns the handle of a call. The first call is number 1.
    pub(crate) fn handle(&self, number: usize) -> CallHandle {
        self.calls[number - 1]
    }

    pub(crate) fn adopt(&mut self, handle: CallHandle) {
        self.calls.push(handle);
    }

    pub(crate) fn cancel(&mut self, number: usize) {
        let handle = self.handle(number);
        self.client.cancel(handle, "enough", self.now);
    }

    // ------------------------------------------------------------------ output

    /// Returns the output: a line for each request and each abort.
    pub(crate) fn sent(&mut self) -> String {
        let mut text = String::new();
        while let Some(transmit) = self.client.poll_transmit() {
            match transmit {
                ClientTransmit::Send(request) => {
                    self.count += 1;
                    self.exchanges.insert(self.count, request.exchange);
                    describe_request(&mut text, self.count, &request);
                    self.requests.insert(self.count, request);
                }
                ClientTransmit::Abort(exchange) => {
                    let known = self.exchanges.iter().find(|(_, id)| **id == exchange);
                    let number = known.map(|(number, _)| *number).expect("a known exchange");
                    writeln!(text, "#{number} abort").unwrap();
                }
            }
        }
        text
    }

    pub(crate) fn request(&self, n: usize) -> &OutgoingRequest {
        &self.requests[&n]
    }

    /// Returns the fields and the body of a request.
    pub(crate) fn full(&self, n: usize) -> String {
        let request = self.request(n);
        let mut text = format!("{} {}\n", request.method, request.url().as_str());
        for (name, value) in request.fields() {
            let value = value.replace(AGENT, "mcp-sansio/VERSION");
            writeln!(text, "{name}: {value}").unwrap();
        }
        let body = String::from_utf8(request.body.to_vec()).unwrap();
        writeln!(text, "{body}").unwrap();
        text
    }

    pub(crate) fn field(&self, n: usize, name: &str) -> Option<String> {
        let mut fields = self.request(n).fields();
        fields.find(|(key, _)| *key == name).map(|(_, value)| value.into())
    }

    /// Returns the events: a line for each.
    pub(crate) fn told(&mut self) -> String {
        let mut text = String::new();
        while let Some(event) = self.client.poll_event() {
            self.describe_event(&mut text, event);
        }
        text
    }

    /// Returns the message of the failure that ended the only call.
    pub(crate) fn failure(&mut self) -> String {
        while let Some(event) = self.client.poll_event() {
            if let Event::Ended(Ended { outcome: Err(failure), .. }) = event {
                return failure.to_string();
            }
        }
        panic!("no call failed")
    }

    fn number(&self, handle: CallHandle) -> String {
        let at = self.calls.iter().position(|known| *known == handle);
        at.map_or_else(|| "?".into(), |at| (at + 1).to_string())
    }

    fn describe_event(&mut self, text: &mut String, event: Event<'static>) {
        match event {
            Event::Opened(opened) => writeln!(text, "opened at {}", opened.revision),
            Event::Ended(ended) => {
                let number = self.number(ended.call);
                match ended.outcome {
                    Ok(result) => writeln!(text, "call {number}: {result}"),
                    Err(failure) => writeln!(text, "call {number} failed: {}", words(&failure)),
                }
            }
            Event::Progress(progress) => {
                let number = self.number(progress.call);
                writeln!(text, "progress of call {number}: {}", progress.progress)
            }
            Event::Notification(notification) => {
                writeln!(text, "{} {}", notification.method, notification.params)
            }
            Event::InputRequested(input) => {
                let line = format!("asked: {} {}", input.method, input.params);
                self.inputs.push(input);
                writeln!(text, "{line}")
            }
            Event::Subscribed(subscribed) => {
                writeln!(text, "subscribed: call {}", self.number(subscribed.subscription))
            }
            Event::Cancelled(_) => writeln!(text, "withdrawn"),
            Event::Violation(violation) => writeln!(text, "violation: {violation}"),
            Event::DeliveryFailed(failed) => writeln!(text, "delivery failed: {failed}"),
            Event::EventStreamLost(failure) => writeln!(text, "event stream lost: {failure}"),
            Event::Closed(reason) => writeln!(text, "closed: {reason}"),
            other => writeln!(text, "{other:?}"),
        }
        .unwrap();
    }

    /// Asserts that there is neither output nor an event.
    pub(crate) fn expect_silence(&mut self) {
        assert_eq!((self.sent(), self.told()), (String::new(), String::new()));
    }
}

/// Describes a failure by its kind, independent of its message.
fn words(failure: &Failure<'_>) -> String {
    match failure {
        Failure::Transport(TransportFailure::Status { status, .. }) => format!("status {status}"),
        Failure::Transport(failure) => format!("{failure:?}"),
        Failure::Refused(error) => format!("refused, {}", error.code),
        failure => format!("{failure:?}"),
    }
}

fn describe_request(text: &mut String, number: usize, request: &OutgoingRequest) {
    write!(text, "#{number} {}", request.method).unwrap();
    if request.url().as_str() != URL {
        write!(text, " to {}", request.url().as_str()).unwrap();
    }
    let field = |name| request.fields().find(|(key, _)| *key == name).map(|(_, value)| value);
    if !request.body.is_empty() {
        let body = core::str::from_utf8(&request.body).unwrap();
        let body = RawJson::parse(body).unwrap();
        let method = body.get("method").and_then(|method| method.to_text().map(String::from));
        let method = method.unwrap_or_else(|| match body.get("error") {
            Some(error) => format!("error {}", error.get("code").unwrap()),
            None => format!("result {}", body.get("result").unwrap()),
        });
        write!(text, " {method}").unwrap();
    }
    let modern = field("mcp-method").is_some();
    if let Some(version) = field("mcp-protocol-version").filter(|_| !modern) {
        write!(text, " version={version}").unwrap();
    }
    if let Some(session) = field("mcp-session-id") {
        write!(text, " session={session}").unwrap();
    }
    if let Some(id) = field("last-event-id") {
        write!(text, " after={id}").unwrap();
    }
    text.push('\n');
}

// ---------------------------------------------------------------------- messages of the script

pub(crate) fn result(id: i64, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

pub(crate) fn error(id: &str, code: i64, rest: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"no"{rest}}}}}"#)
}

/// Returns an error without an id.
pub(crate) fn bare_error(code: i64) -> String {
    format!(r#"{{"jsonrpc":"2.0","error":{{"code":{code},"message":"no"}}}}"#)
}

pub(crate) fn notification(level: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"{level}","data":1}}}}"#
    )
}

pub(crate) fn event(data: &str) -> String {
    format!("data: {data}\n\n")
}

pub(crate) fn event_with_id(id: &str, data: &str) -> String {
    format!("id: {id}\ndata: {data}\n\n")
}

pub(crate) const DISCOVERED: &str = r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true},"prompts":{},"logging":{}},"ttlMs":0,"cacheScope":"private"}"#;

pub(crate) fn initialized(revision: Revision) -> String {
    format!(
        r#"{{"protocolVersion":"{revision}","capabilities":{{"tools":{{}},"resources":{{"subscribe":true}},"prompts":{{}},"logging":{{}}}},"serverInfo":{{"name":"s","version":"1"}}}}"#
    )
}

/// The revisions with resumable streams.
pub(crate) const RESUMING: [Revision; 3] =
    [Revision::V2025_03_26, Revision::V2025_06_18, Revision::V2025_11_25];

pub(crate) const OK: &str = r#"{"resultType":"complete","content":[]}"#;

impl Net {
    /// Returns the number of the last request.
    pub(crate) const fn last(&self) -> usize {
        self.count
    }

    /// Returns the JSON-RPC id of an exchange's message.
    pub(crate) fn id_of(&self, n: usize) -> i64 {
        let body = core::str::from_utf8(&self.request(n).body).unwrap();
        RawJson::parse(body).unwrap().get("id").unwrap().decode().unwrap()
    }
}

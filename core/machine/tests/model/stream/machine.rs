//! An HTTP server machine with one session, driven by operations.

use std::collections::BTreeMap;

use mcp_sansio::http::{
    ExchangeId, HttpServerOptions, RequestHead, ResponseMode, Server, ServerLimits, ServerTransmit,
};
use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::{self, Body, CommandError, Event, RequestHandle, ServerCommand};
use mcp_sansio::protocol::{Implementation, ServerCapabilities};
use mcp_sansio::{Instant, LoggingLevel};
use serde_json::{Value, json};

use crate::commands::{OBJECT, nth};
use crate::outcome::Outcome;
use crate::transcript::Subject;

use super::operation::{Operation, Setting};

pub(super) struct Machine {
    server: Server,
    version: &'static str,
    session: String,
    exchanges: Vec<Exchange>,
    calls: Vec<RequestHandle>,
    /// The event ids of each stream.
    ids: Vec<Vec<String>>,
    /// The event of each id.
    named: BTreeMap<String, String>,
    steps: u32,
}

struct Exchange {
    id: ExchangeId,
    stream: usize,
    status: u16,
    session: Option<String>,
    body: String,
    stalled: bool,
    over: bool,
}

impl Machine {
    pub(super) fn new(setting: &Setting) -> Self {
        let offers = r#"{"tools":{},"logging":{}}"#;
        let offers: ServerCapabilities = serde_json::from_str(offers).expect("a declaration");
        let peer = peer::ServerOptions::new(Implementation::new("s", "1")).capabilities(offers);
        let mut limits = ServerLimits::default();
        limits.replay_events_max = setting.kept;
        let options = HttpServerOptions::new().answers(ResponseMode::Stream).limits(limits);
        let mut machine = Self {
            server: Server::new(peer, options, [7; 32], 0).expect("no tools"),
            version: setting.version,
            session: String::new(),
            exchanges: Vec::new(),
            calls: Vec::new(),
            ids: vec![Vec::new()],
            named: BTreeMap::new(),
            steps: 0,
        };
        let client = json!({ "name": "c", "version": "1" });
        let version = setting.version;
        let params =
            json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": client });
        machine.post(&json!({ "id": 0, "method": "initialize", "params": params }), 0);
        machine.drain();
        machine.session = machine.exchanges[0].session.clone().expect("a session");
        machine.post(&json!({ "method": "notifications/initialized" }), 0);
        machine.drain();
        // The opening is not compared.
        machine.exchanges.clear();
        machine.ids[0].clear();
        machine
    }

    fn post(&mut self, message: &Value, stream: usize) {
        let mut message = message.clone();
        message["jsonrpc"] = json!("2.0");
        self.send("POST", &message.to_string(), None, stream);
    }

    fn send(&mut self, method: &str, body: &str, last: Option<&str>, stream: usize) {
        let mut head = RequestHead::new(method, "/mcp");
        head.field("Host", b"localhost");
        head.field("Accept", b"application/json, text/event-stream");
        head.field("Content-Type", b"application/json");
        if !self.session.is_empty() {
            head.field("Mcp-Session-Id", self.session.as_bytes());
            head.field("MCP-Protocol-Version", self.version.as_bytes());
        }
        if let Some(last) = last {
            head.field("Last-Event-ID", last.as_bytes());
        }
        let (id, event) = self.server.handle_request(
            &head,
            body.as_bytes(),
            &mcp_sansio::Caller::ANONYMOUS,
            Instant::ZERO,
        );
        if let Some(Event::Request(request)) = event {
            self.calls.push(request.handle);
        }
        let (session, body) = (None, String::new());
        self.exchanges.push(Exchange {
            id,
            stream,
            status: 0,
            session,
            body,
            stalled: false,
            over: false,
        });
    }

    /// Returns all output, exchange by exchange.
    fn drain(&mut self) -> Vec<String> {
        let mut said = Vec::new();
        while self.server.poll_ready().is_some() {}
        for number in 0..self.exchanges.len() {
            let lines = self.drain_exchange(number);
            said.extend(lines.into_iter().map(|line| format!("exchange {number}: {line}")));
        }
        while let Some(event) = self.server.poll_event() {
            assert!(!matches!(event, Event::Cancelled(_)), "a broken connection cancels nothing");
        }
        self.server.assert_consistent();
        said
    }

    fn drain_exchange(&mut self, number: usize) -> Vec<String> {
        let exchange = &mut self.exchanges[number];
        let mut lines = Vec::new();
        if exchange.over || exchange.stalled {
            return lines;
        }
        let mut ended = false;
        while let Some(step) = self.server.poll_transmit(exchange.id, Instant::ZERO) {
            let head = match step {
                ServerTransmit::Open(head) => head,
                ServerTransmit::Respond(response) => {
                    exchange.over = true;
                    response.head
                }
                ServerTransmit::Chunk(bytes) => {
                    exchange.body += std::str::from_utf8(bytes).expect("UTF-8");
                    continue;
                }
                ServerTransmit::Finish => {
                    (exchange.over, ended) = (true, true);
                    continue;
                }
                ServerTransmit::Abort => panic!("it was read"),
            };
            exchange.status = head.status.0;
            let mut fields = head.fields();
            exchange.session =
                fields.find(|(name, _)| *name == "mcp-session-id").map(|(_, value)| value.into());
            lines.push(exchange.status.to_string());
        }
        while let Some((event, rest)) = exchange.body.split_once("\n\n") {
            let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name));
            let data = field("data: ").filter(|data| !data.is_empty());
            let line = data.map_or_else(|| "an id".into(), spell);
            let id = field("id: ").expect("every event has an id").to_owned();
            // [RESUME-002].
            let named = self.named.entry(id.clone()).or_insert_with(|| line.clone());
            assert_eq!(*named, line, "the id {id} belongs to two events");
            self.ids[exchange.stream].push(id);
            lines.push(line);
            exchange.body = rest.to_owned();
        }
        lines.extend(ended.then(|| "end".into()));
        lines
    }

    /// Returns the command of an operation, if it belongs to the application and its number refers
    /// to something.
    fn resolve<'a>(&self, operation: Operation, step: u32) -> Option<ServerCommand<'a>> {
        let calls = &self.calls;
        Some(match operation {
            Operation::Progress(it) => {
                let (request, progress) = (*nth(calls, it)?, f64::from(step));
                ServerCommand::Progress { request, progress, total: None, message: None }
            }
            Operation::Answer(it) => {
                ServerCommand::Respond { request: *nth(calls, it)?, result: OBJECT }
            }
            Operation::Log => {
                let level = LoggingLevel::Error;
                let step = RawJson::parse(&step.to_string()).unwrap().into_owned();
                ServerCommand::Log { request: None, level, logger: None, data: Body::Json(step) }
            }
            _ => return None,
        })
    }
}

/// Describes a message in the form of the model.
fn spell(data: &str) -> String {
    let message: Value = serde_json::from_str(data).expect("JSON");
    match message["method"].as_str() {
        Some("notifications/progress") => {
            format!("progress {}", message["params"]["progress"].as_f64().expect("a number"))
        }
        Some(_) => format!("log {}", message["params"]["data"]),
        None => "answer".into(),
    }
}

impl Subject<Operation> for Machine {
    fn apply(&mut self, operation: &Operation) -> Outcome {
        let now = Instant::ZERO;
        self.steps += 1;
        match *operation {
            Operation::Post => {
                let stream = self.ids.len();
                self.ids.push(Vec::new());
                let params = json!({ "name": "t", "_meta": { "progressToken": stream } });
                let call = json!({ "id": stream, "method": "tools/call", "params": params });
                self.post(&call, stream);
            }
            Operation::Listen => self.send("GET", "", None, 0),
            Operation::Resume { stream, back } => {
                let stream = stream % self.ids.len();
                let last = self.ids[stream].iter().rev().nth(back).cloned();
                last.into_iter().for_each(|last| self.send("GET", "", Some(&last), stream));
            }
            Operation::Invent => self.send("GET", "", Some("999-0"), 0),
            Operation::Break(exchange) => {
                if let Some(exchange) = exchange.checked_rem(self.exchanges.len()) {
                    let exchange = &mut self.exchanges[exchange];
                    exchange.over = true;
                    self.server.handle_disconnect(exchange.id, now);
                }
            }
            Operation::Stall(exchange) => {
                if let Some(exchange) = exchange.checked_rem(self.exchanges.len()) {
                    self.exchanges[exchange].stalled ^= true;
                }
            }
            _ => {}
        }
        let step = self.steps;
        if let Some(command) = self.resolve(*operation, step) {
            match self.server.apply(command, now) {
                // A repeated response is refused, which cannot be observed here.
                Ok(_) | Err(CommandError::NotDue) => {}
                Err(other) => panic!("{other}"),
            }
        }
        Outcome { sent: self.drain(), ..Outcome::default() }
    }
}

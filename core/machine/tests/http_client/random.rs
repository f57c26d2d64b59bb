//! A server with random behavior. Each call ends exactly once, the machine becomes idle, and the
//! same inputs give the same outputs.

use std::fmt::Write;
use std::time::Duration;

use mcp_sansio::http::{
    ClientLimits, ClientTransmit, ExchangeFailure, ExchangeId, IncomingResponse, LostSession,
};
use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::Status;
use mcp_sansio::peer::{CallHandle, CallOptions, ClientMachine, Event};
use mcp_sansio::protocol::SubscriptionFilter;
use mcp_sansio::{Era, Instant, Method, Revision, Revisions};
use seeded_random::{Random, scaled};

use crate::net::{
    DISCOVERED, error, event_with_id, http_options, initialized, notification, peer_options,
    result, with_roots,
};
use crate::played::{self, HttpClient as Client, Played};

struct Chaos {
    random: Random,
    client: Client,
    now: Instant,
    /// Pending exchanges: whether the head was delivered, the method, and the id of the request.
    open: Vec<(ExchangeId, bool, String, i64)>,
    calls: Vec<CallHandle>,
    ended: Vec<CallHandle>,
    transcript: String,
    _played: Played,
}

impl Chaos {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let revisions = random.one_of([Revisions::ALL, Revisions::LEGACY, Revisions::MODERN]);
        let mut limits = ClientLimits::default();
        limits.requests_max = 1 + random.below(4) as usize;
        limits.control_exchanges_max = 1 + random.below(2) as usize;
        let lost = random.one_of([LostSession::FailCalls, LostSession::RepeatCalls]);
        let mut peer = peer_options().revisions(revisions).capabilities(with_roots());
        if random.below(4) == 0 {
            peer = peer.known_era(Era::Legacy);
        }
        let http = http_options().limits(limits).lost_session(lost);
        let (client, played) = played::http_client(peer, http, seed, Instant::ZERO);
        Self {
            client,
            random,
            now: Instant::ZERO,
            open: Vec::new(),
            calls: Vec::new(),
            ended: Vec::new(),
            transcript: String::new(),
            _played: played,
        }
    }

    fn pull(&mut self) {
        while let Some(event) = self.client.poll_event() {
            if let Event::Ended(ended) = &event {
                assert!(self.calls.contains(&ended.call), "an unknown call ended");
                assert!(!self.ended.contains(&ended.call), "a call ended twice");
                self.ended.push(ended.call);
            }
            writeln!(self.transcript, "{event:?}").unwrap();
        }
        while let Some(transmit) = self.client.poll_transmit() {
            writeln!(self.transcript, "{transmit:?}").unwrap();
            match transmit {
                ClientTransmit::Send(request) => {
                    assert!(self.open.iter().all(|(id, ..)| *id != request.exchange));
                    let body = String::from_utf8(request.body.to_vec()).unwrap();
                    let body = if body.is_empty() { "{}".into() } else { body };
                    let body = RawJson::parse(&body).unwrap();
                    let method = body.get("method").and_then(|m| m.to_text().map(String::from));
                    let method = method.unwrap_or_else(|| request.method.into());
                    let id = body.get("id").and_then(|id| id.decode().ok()).unwrap_or(0);
                    self.open.push((request.exchange, false, method, id));
                }
                ClientTransmit::Abort(exchange) => self.open.retain(|(id, ..)| *id != exchange),
            }
        }
        assert!(self.open.len() < 64, "too many exchanges");
    }

    fn step(&mut self) {
        match self.random.below(12) {
            0 => self.apply(),
            1 => {
                self.now = self.now + Duration::from_millis(self.random.below(3000));
                self.client.handle_timeout(self.now);
            }
            2 => {
                if let Some(due) = self.client.poll_timeout() {
                    self.now = self.now.max(due);
                    self.client.handle_timeout(self.now);
                    let next = self.client.poll_timeout();
                    assert!(next.is_none_or(|next| next > self.now), "no progress at {due:?}");
                }
            }
            _ => self.respond(),
        }
        self.client.assert_consistent();
        self.pull();
        self.client.assert_consistent();
    }

    /// Performs a random command of the application.
    fn apply(&mut self) {
        let now = self.now;
        match self.random.below(6) {
            0 if !self.calls.is_empty() => {
                let at = self.random.index(self.calls.len());
                self.client.cancel(self.calls[at], "", now);
            }
            1 => {
                let mut filter = SubscriptionFilter::new();
                filter.resource_subscriptions = Some(vec!["file:///a".into()]);
                filter.tools_list_changed = Some(true);
                self.calls.extend(self.client.subscribe(&filter, now));
            }
            2 => {
                let params = RawJson::EMPTY_OBJECT;
                let _ = self.client.notify(Method::RootsListChanged, &params, now);
            }
            _ => {
                let method = self.random.one_of([Method::ToolsCall, Method::ToolsList]);
                let params = RawJson::parse(r#"{"name":"echo","arguments":{"a":"b"}}"#).unwrap();
                let options = CallOptions::default();
                self.calls.extend(self.client.call(method, &params, &options, now));
            }
        }
    }

    /// Performs a random action of the server or the network.
    fn respond(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let at = self.random.index(self.open.len());
        let (exchange, headed, method, request) = self.open[at].clone();
        let now = self.now;
        // Most connections should open, to reach more states.
        if !self.transcript.contains("Opened(") && !headed && self.random.below(5) > 0 {
            let revision = self.random.one_of(Revision::ALL);
            let mut head = IncomingResponse::new(Status::OK);
            head.field("content-type", b"application/json");
            head.field("mcp-session-id", b"s");
            self.client.handle_response(exchange, &head, now);
            let answer = match &*method {
                "initialize" => result(request, &initialized(revision)),
                _ => result(request, DISCOVERED),
            };
            self.client.handle_body(exchange, answer.as_bytes(), now);
            self.open.remove(at);
            return self.client.handle_body_end(exchange, now);
        }
        if !headed {
            if self.random.below(12) == 0 {
                let failure =
                    self.random.one_of([ExchangeFailure::NotSent, ExchangeFailure::Broken]);
                self.open.remove(at);
                return self.client.handle_exchange_failed(exchange, failure, now);
            }
            let unlucky = [400, 401, 404, 404, 405, 307, 429, 500, 503, 204];
            let usual = if request > 0 || method == "GET" { 200 } else { 202 };
            let status =
                if self.random.below(5) == 0 { self.random.one_of(unlucky) } else { usual };
            let mut head = IncomingResponse::new(Status(status));
            let json = method != "GET" && self.random.below(2) == 0;
            let media = if json { "application/json" } else { "text/event-stream" };
            head.field("content-type", media.as_bytes());
            head.field("location", b"/mcp");
            if self.random.below(2) == 0 {
                head.field("retry-after", b"1");
            }
            if method == "initialize" && self.random.below(3) > 0 {
                head.field("mcp-session-id", b"s");
            }
            self.open[at].1 = true;
            return self.client.handle_response(exchange, &head, now);
        }
        match self.random.below(8) {
            0 => {
                self.open.remove(at);
                self.client.handle_exchange_failed(exchange, ExchangeFailure::Broken, now);
            }
            1 | 2 => {
                self.open.remove(at);
                self.client.handle_body_end(exchange, now);
            }
            _ => {
                let text = self.text(&method, request);
                let id = self.random.below(9);
                let text = match self.random.below(3) {
                    0 => text,
                    _ => event_with_id(&format!("e{id}"), &text),
                };
                self.client.handle_body(exchange, text.as_bytes(), now);
            }
        }
    }

    fn text(&mut self, method: &str, request: i64) -> String {
        let revision = self.random.one_of(Revision::ALL);
        match self.random.below(12) {
            0 => notification("info"),
            1 => String::new(),
            2 => "nonsense".into(),
            3 => r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#.into(),
            4 => r#"{"jsonrpc":"2.0","id":2,"method":"roots/list"}"#.into(),
            5 => {
                let code = self.random.one_of([-32020, -32022, -32601, -1]);
                error(&request.to_string(), code, "")
            }
            6 => {
                let other = 1 + self.random.below(20);
                result(other as i64, "{}")
            }
            7 => "/messages\nevent: endpoint".into(),
            _ => match method {
                "initialize" => result(request, &initialized(revision)),
                "server/discover" => result(request, DISCOVERED),
                "tools/list" => result(request, r#"{"tools":[{"name":"echo"}]}"#),
                "GET" => result(1 + self.random.below(20) as i64, "{}"),
                _ => result(request, r#"{"resultType":"complete"}"#),
            },
        }
    }

    fn run(mut self) -> String {
        self.pull();
        for _ in 0..400 {
            self.step();
        }
        self.client.close(self.now);
        self.pull();
        for _ in 0..4 {
            self.now = self.now + Duration::from_secs(5);
            self.client.handle_timeout(self.now);
            self.pull();
        }
        assert!(self.client.is_drained() && self.client.poll_timeout().is_none());
        assert_eq!(self.calls.len(), self.ended.len(), "each call ends");
        assert_eq!(self.transcript.matches("Closed(").count(), 1, "{}", self.transcript);
        assert!(self.transcript.trim_end().lines().any(|line| line.starts_with("Closed(")));
        self.transcript
    }
}

#[test]
fn every_call_ends_exactly_once_under_random_server_behaviour() {
    let mut opened = 0;
    let seeds = u64::from(scaled(100));
    for seed in 0..seeds {
        let transcript = Chaos::new(seed).run();
        opened += usize::from(transcript.contains("Opened("));
        if seed % 50 == 0 {
            assert_eq!(transcript, Chaos::new(seed).run(), "{seed}");
        }
    }
    assert!(opened * 3 > seeds as usize, "only {opened} connections opened");
}

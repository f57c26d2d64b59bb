//! Malicious servers and a client on HTTP.

use std::time::Duration;

use mcp_sansio::http::{
    Client, ClientLimits, ClientTransmit, ExchangeFailure, ExchangeId, HttpClientOptions,
    IncomingResponse, Location,
};
use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::Status;
use mcp_sansio::peer::{
    self, CallOptions, ClientMachine, Event, Failure, Limits, TransportFailure,
};
use mcp_sansio::protocol::Implementation;
use mcp_sansio::{Instant, Method, Revision, Revisions};

use crate::allocator::{begin, held, measured};

const MANY: usize = 3000;
const EVENT_MAX: usize = 2048;

/// A legacy client with an open connection. The test controls its network.
struct TestClient {
    client: Client,
    now: Instant,
    /// Pending requests: the body, or the method of a request without one.
    sent: Vec<(ExchangeId, String)>,
    ended: Vec<Result<String, Failure<'static>>>,
    listening: Option<ExchangeId>,
}

impl TestClient {
    fn new() -> Self {
        let revisions = Revisions::only(Revision::V2025_11_25);
        let peer = peer::ClientOptions::new(Implementation::new("c", "1"))
            .revisions(revisions)
            .limits(Limits::SMALL);
        let mut limits = ClientLimits::DEFAULT;
        limits.event_bytes_max = EVENT_MAX;
        let options =
            HttpClientOptions::new(Location::parse("http://localhost/mcp").unwrap()).limits(limits);
        begin();
        let mut client = Self {
            client: measured(|| Client::new(peer, options, 1, Instant::ZERO)),
            now: Instant::ZERO,
            sent: Vec::new(),
            ended: Vec::new(),
            listening: None,
        };
        client.turn();
        let (opening, _) = client.sent.pop().unwrap();
        let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}"#;
        client.answer(opening, 200, "application/json", answer);
        let (confirmed, _) = client.sent.pop().unwrap();
        client.answer(confirmed, 202, "", "");
        let (listening, method) = client.sent.pop().unwrap();
        assert_eq!(method, "GET");
        client.head(listening, 200, "text/event-stream");
        client.listening = Some(listening);
        client
    }

    fn head(&mut self, exchange: ExchangeId, status: u16, media: &str) {
        measured(|| {
            let mut head = IncomingResponse::new(Status(status));
            if !media.is_empty() {
                head.field("content-type", media.as_bytes());
            }
            self.client.handle_response(exchange, &head, self.now);
        });
        self.turn();
    }

    fn body(&mut self, exchange: ExchangeId, bytes: &[u8]) {
        measured(|| self.client.handle_body(exchange, bytes, self.now));
        self.turn();
    }

    fn answer(&mut self, exchange: ExchangeId, status: u16, media: &str, body: &str) {
        self.head(exchange, status, media);
        self.body(exchange, body.as_bytes());
        measured(|| self.client.handle_body_end(exchange, self.now));
        self.turn();
    }

    /// Polls the output of the client.
    fn turn(&mut self) {
        while let Some(transmit) = measured(|| self.client.poll_transmit()) {
            if let ClientTransmit::Send(request) = &transmit {
                let body = String::from_utf8(request.body.to_vec()).unwrap();
                let text = if body.is_empty() { request.method.into() } else { body };
                self.sent.push((request.exchange, text));
            }
            measured(|| drop(transmit));
        }
        while let Some(event) = measured(|| self.client.poll_event()) {
            if let Event::Ended(ended) = &event {
                let outcome = ended.outcome.as_ref();
                let outcome = outcome.map(ToString::to_string).map_err(Clone::clone);
                self.ended.push(outcome);
            }
            measured(|| drop(event));
        }
    }

    fn wait(&mut self, duration: Duration) -> u32 {
        let until = self.now + duration;
        let mut woken = 0;
        while let Some(due) = self.client.poll_timeout().filter(|due| *due <= until) {
            self.now = due.max(self.now);
            measured(|| self.client.handle_timeout(self.now));
            self.turn();
            woken += 1;
            assert!(woken < 10_000, "the client spins");
        }
        self.now = until;
        woken
    }

    fn call(&mut self) -> (ExchangeId, i64) {
        let params = RawJson::parse(r#"{"name":"t"}"#).unwrap();
        let (options, now) = (CallOptions::default(), self.now);
        measured(|| self.client.call(Method::ToolsCall, &params, &options, now).unwrap());
        self.turn();
        let at = self.sent.iter().rposition(|(_, text)| text.contains("tools/call")).unwrap();
        let (exchange, text) = self.sent.remove(at);
        (exchange, RawJson::parse(&text).unwrap().get("id").unwrap().decode().unwrap())
    }

    /// Asserts that a well-behaved server is still served.
    fn hears(&mut self) {
        for (exchange, _) in core::mem::take(&mut self.sent) {
            self.head(exchange, 405, "");
            measured(|| self.client.handle_body_end(exchange, self.now));
            self.turn();
        }
        self.ended.clear();
        let (exchange, id) = self.call();
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[]}}}}"#);
        self.answer(exchange, 200, "application/json", &answer);
        assert!(matches!(&self.ended[..], [Ok(_)]), "{:?}", self.ended);
    }
}

#[test]
fn endless_comments_use_no_memory() {
    let mut client = TestClient::new();
    let listening = client.listening.unwrap();
    client.body(listening, b": still here\n\n");
    let before = held();
    for _ in 0..MANY {
        client.body(listening, &b": still here\n\n".repeat(50));
    }
    assert!(held() <= before + 2 * EVENT_MAX, "{before} bytes grew to {}", held());
    client.hears();
}

#[test]
fn an_endless_event_ends_its_call_only() {
    let mut client = TestClient::new();
    let (exchange, _) = client.call();
    client.head(exchange, 200, "text/event-stream");
    let before = held();
    for _ in 0..MANY {
        client.body(exchange, b"data: and more, and more, and more\n");
    }
    assert!(held() <= before + 8 * EVENT_MAX, "{before} bytes grew to {}", held());
    let too_long = Failure::Transport(TransportFailure::TooLong { limit: EVENT_MAX });
    assert_eq!(client.ended, [Err(too_long)]);
    client.hears();
}

#[test]
fn a_retry_delay_of_zero_does_not_make_the_client_spin() {
    // Rule: [SSE-008].
    let mut client = TestClient::new();
    let (mut exchange, _) = client.call();
    for number in 0..200 {
        client.head(exchange, 200, "text/event-stream");
        client.body(exchange, format!("retry: 0\nid: {number}\ndata:\n\n").as_bytes());
        let start = client.now;
        measured(|| client.client.handle_body_end(exchange, client.now));
        client.turn();
        client.sent.clear();
        while client.sent.is_empty() && client.ended.is_empty() {
            let due = client.client.poll_timeout().unwrap();
            client.now = due.max(client.now);
            measured(|| client.client.handle_timeout(client.now));
            client.turn();
        }
        if !client.ended.is_empty() {
            break;
        }
        assert!(client.now.saturating_since(start) >= ClientLimits::DEFAULT.reconnect_pause_min);
        exchange = client.sent.pop().unwrap().0;
    }
    client.wait(Duration::from_secs(700));
    assert_eq!(client.ended.len(), 1, "{:?}", client.ended);
    client.hears();
}

#[test]
fn an_endless_retry_delay_does_not_keep_a_call() {
    let mut client = TestClient::new();
    let (exchange, _) = client.call();
    client.head(exchange, 200, "text/event-stream");
    client.body(exchange, b"retry: 18446744073709551615\nid: 1\ndata:\n\n");
    measured(|| client.client.handle_body_end(exchange, client.now));
    client.turn();
    client.wait(Duration::from_secs(700));
    assert!(matches!(&client.ended[..], [Err(_)]), "{:?}", client.ended);
    client.hears();
}

#[test]
fn streams_that_keep_breaking_are_abandoned() {
    // Rule: [RESUME-001].
    let mut client = TestClient::new();
    let (exchange, _) = client.call();
    client.head(exchange, 200, "text/event-stream");
    client.body(exchange, b"id: 1\ndata:\n\n");
    measured(|| {
        client.client.handle_exchange_failed(exchange, ExchangeFailure::Broken, client.now);
    });
    client.turn();
    let mut attempts = 0;
    while client.ended.is_empty() {
        for (exchange, _) in core::mem::take(&mut client.sent) {
            attempts += 1;
            measured(|| {
                client.client.handle_exchange_failed(
                    exchange,
                    ExchangeFailure::NotSent,
                    client.now,
                );
            });
            client.turn();
        }
        assert!(attempts < 1000, "no end");
        client.wait(Duration::from_secs(1));
    }
    assert!(matches!(&client.ended[..], [Err(_)]), "{:?}", client.ended);
    client.hears();
}

#[test]
fn endless_pings_congest_the_client() {
    let mut client = TestClient::new();
    let listening = client.listening.unwrap();
    let ping = "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n\n";
    let mut pings = 0;
    while !client.client.is_congested() {
        client.body(listening, ping.as_bytes());
        pings += 1;
        assert!(pings < MANY, "it reads on");
    }
    assert!(pings > 8);
    // Responses are sent one after the other, as the server accepts them.
    let mut answered = 0;
    while let Some((exchange, _)) = client.sent.pop() {
        client.answer(exchange, 202, "", "");
        answered += 1;
    }
    assert_eq!(answered, pings);
    client.hears();
}

//! Servers that mean harm to a client on HTTP.

use std::time::Duration;

use mcp_sansio::http::client::Transmit;
use mcp_sansio::http::{
    Client, ClientLimits, ClientOptions, ExchangeFailure, ExchangeId, IncomingResponse, Location,
    Status,
};
use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::{self, CallOptions, Event, Failure, Limits, TransportFailure};
use mcp_sansio::protocol::{Implementation, Method};
use mcp_sansio::{Instant, Revision, Revisions};

use crate::allocator::{begin, held, measured};

const MANY: usize = 3000;
const EVENT_MAX: usize = 2048;

/// A legacy client with an open connection, whose network is in the hands of its server.
struct Site {
    client: Client,
    now: Instant,
    /// What was sent and not answered yet: its body, or its method where it has none.
    sent: Vec<(ExchangeId, String)>,
    ended: Vec<Result<String, Failure<'static>>>,
    listening: Option<ExchangeId>,
}

impl Site {
    fn new() -> Self {
        let revisions = Revisions::only(Revision::V2025_11_25);
        let peer = peer::ClientOptions::new(Implementation::new("c", "1"))
            .revisions(revisions)
            .limits(Limits::SMALL);
        let mut limits = ClientLimits::DEFAULT;
        limits.event_bytes_max = EVENT_MAX;
        let options =
            ClientOptions::new(Location::parse("http://localhost/mcp").unwrap()).limits(limits);
        begin();
        let mut site = Self {
            client: measured(|| Client::new(peer, options, 1, Instant::ZERO)),
            now: Instant::ZERO,
            sent: Vec::new(),
            ended: Vec::new(),
            listening: None,
        };
        site.turn();
        let (opening, _) = site.sent.pop().unwrap();
        let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}"#;
        site.answer(opening, 200, "application/json", answer);
        let (confirmed, _) = site.sent.pop().unwrap();
        site.answer(confirmed, 202, "", "");
        let (listening, method) = site.sent.pop().unwrap();
        assert_eq!(method, "GET");
        site.head(listening, 200, "text/event-stream");
        site.listening = Some(listening);
        site
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

    /// Takes out what the client has made.
    fn turn(&mut self) {
        while let Some(transmit) = measured(|| self.client.poll_transmit()) {
            if let Transmit::Send(request) = &transmit {
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

    /// A server that behaves is heard.
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
fn comments_without_end_take_no_memory() {
    let mut site = Site::new();
    let listening = site.listening.unwrap();
    site.body(listening, b": still here\n\n");
    let before = held();
    for _ in 0..MANY {
        site.body(listening, &b": still here\n\n".repeat(50));
    }
    assert!(held() <= before + 2 * EVENT_MAX, "{before} bytes became {}", held());
    site.hears();
}

#[test]
fn an_event_without_end_ends_its_call_and_nothing_else() {
    let mut site = Site::new();
    let (exchange, _) = site.call();
    site.head(exchange, 200, "text/event-stream");
    let before = held();
    for _ in 0..MANY {
        site.body(exchange, b"data: and more, and more, and more\n");
    }
    assert!(held() <= before + 8 * EVENT_MAX, "{before} bytes became {}", held());
    let too_long = Failure::Transport(TransportFailure::TooLong { limit: EVENT_MAX });
    assert_eq!(site.ended, [Err(too_long)]);
    site.hears();
}

#[test]
fn a_server_that_wants_no_pause_between_streams_does_not_make_the_client_spin() {
    // Rule: [SSE-008].
    let mut site = Site::new();
    let (mut exchange, _) = site.call();
    for number in 0..200 {
        site.head(exchange, 200, "text/event-stream");
        site.body(exchange, format!("retry: 0\nid: {number}\ndata:\n\n").as_bytes());
        let start = site.now;
        measured(|| site.client.handle_body_end(exchange, site.now));
        site.turn();
        site.sent.clear();
        while site.sent.is_empty() && site.ended.is_empty() {
            let due = site.client.poll_timeout().unwrap();
            site.now = due.max(site.now);
            measured(|| site.client.handle_timeout(site.now));
            site.turn();
        }
        if !site.ended.is_empty() {
            break;
        }
        assert!(site.now.saturating_since(start) >= ClientLimits::DEFAULT.reconnect_pause_min);
        exchange = site.sent.pop().unwrap().0;
    }
    site.wait(Duration::from_secs(700));
    assert_eq!(site.ended.len(), 1, "{:?}", site.ended);
    site.hears();
}

#[test]
fn a_server_that_wants_to_be_left_alone_forever_does_not_keep_its_call() {
    let mut site = Site::new();
    let (exchange, _) = site.call();
    site.head(exchange, 200, "text/event-stream");
    site.body(exchange, b"retry: 18446744073709551615\nid: 1\ndata:\n\n");
    measured(|| site.client.handle_body_end(exchange, site.now));
    site.turn();
    site.wait(Duration::from_secs(700));
    assert!(matches!(&site.ended[..], [Err(_)]), "{:?}", site.ended);
    site.hears();
}

#[test]
fn streams_that_break_without_end_are_given_up() {
    // Rule: [RESUME-001].
    let mut site = Site::new();
    let (exchange, _) = site.call();
    site.head(exchange, 200, "text/event-stream");
    site.body(exchange, b"id: 1\ndata:\n\n");
    measured(|| {
        site.client.handle_exchange_failed(exchange, ExchangeFailure::Broken, site.now);
    });
    site.turn();
    let mut attempts = 0;
    while site.ended.is_empty() {
        for (exchange, _) in core::mem::take(&mut site.sent) {
            attempts += 1;
            measured(|| {
                site.client.handle_exchange_failed(exchange, ExchangeFailure::NotSent, site.now);
            });
            site.turn();
        }
        assert!(attempts < 1000, "no end");
        site.wait(Duration::from_secs(1));
    }
    assert!(matches!(&site.ended[..], [Err(_)]), "{:?}", site.ended);
    site.hears();
}

#[test]
fn pings_without_end_ask_the_driver_to_stop_reading() {
    let mut site = Site::new();
    let listening = site.listening.unwrap();
    let ping = "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n\n";
    let mut pings = 0;
    while !site.client.is_congested() {
        site.body(listening, ping.as_bytes());
        pings += 1;
        assert!(pings < MANY, "it reads on");
    }
    assert!(pings > 8);
    // They leave one after the other as the server takes them.
    let mut answered = 0;
    while let Some((exchange, _)) = site.sent.pop() {
        site.answer(exchange, 202, "", "");
        answered += 1;
    }
    assert_eq!(answered, pings);
    site.hears();
}

//! Malicious clients and a server on a byte stream.

use std::collections::BTreeMap;

use mcp_sansio::Instant;
use mcp_sansio::framing::LineDecoder;
use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::{
    Event, Limits, MessageLengths, RequestHandle, Server, ServerMachine, ServerOptions,
};
use mcp_sansio::protocol::{
    Implementation, ResourcesCapability, ServerCapabilities, ToolsCapability,
};

use crate::allocator::{begin, measured, peak};

const LINE_MAX: usize = 2048;
const LENGTHS: MessageLengths = MessageLengths::new(LINE_MAX, 512);
const MANY: usize = 3000;
const MODERN: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

/// A server with small limits, driven as its contract requires.
struct TestServer {
    decoder: LineDecoder<'static>,
    server: Server,
    /// Requests whose handlers never finish.
    due: Vec<RequestHandle>,
    /// How often each kind of line was sent, without ids.
    said: BTreeMap<String, usize>,
    /// How many violations were reported.
    violations: usize,
}

impl TestServer {
    fn new() -> Self {
        let offers = ServerCapabilities::new()
            .tools(ToolsCapability::new())
            .resources(ResourcesCapability::new().subscribe(true));
        let options = ServerOptions::new(Implementation::new("s", "1"))
            .capabilities(offers)
            .limits(Limits::SMALL);
        let server = Server::new(options, 99);
        begin();
        let mut server = Self {
            decoder: LineDecoder::growing(LINE_MAX),
            server,
            due: Vec::with_capacity(64),
            said: BTreeMap::new(),
            violations: 0,
        };
        server.line(r#"{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#);
        server.line(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        server.said.clear();
        server
    }

    fn line(&mut self, line: &str) {
        self.bytes(line.as_bytes());
        self.bytes(b"\n");
    }

    fn bytes(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let Self { decoder, server, due, violations, .. } = self;
            bytes = measured(|| {
                let taken = decoder.feed(bytes);
                while let Some(frame) = decoder.next_frame() {
                    let event = match frame {
                        Ok(frame) => server.handle_message(frame, Instant::ZERO).unwrap(),
                        Err(error) => server.handle_frame_error(error).unwrap(),
                    };
                    let mut next = event;
                    while let Some(event) = next {
                        match event {
                            Event::Request(request) => due.push(request.handle),
                            Event::Violation(_) => *violations += 1,
                            _ => {}
                        }
                        next = server.poll_event();
                    }
                }
                &bytes[taken..]
            });
            self.read();
        }
    }

    fn read(&mut self) {
        while let Some(bytes) = measured(|| self.server.poll_transmit().map(<[u8]>::to_vec)) {
            for line in String::from_utf8(bytes.clone()).unwrap().lines() {
                *self.said.entry(kind(line)).or_default() += 1;
            }
            measured(|| drop(bytes));
        }
    }

    /// Returns how many lines of this kind were sent.
    fn count(&self, words: &str) -> usize {
        self.said.iter().filter(|(kind, _)| kind.contains(words)).map(|(_, count)| count).sum()
    }

    /// Asserts that a well-behaved client is still served, and that the memory stayed within the
    /// limit.
    fn serves(&mut self) {
        for handle in core::mem::take(&mut self.due) {
            measured(|| {
                drop(self.server.respond_with(handle, &RawJson::EMPTY_OBJECT, Instant::ZERO))
            });
        }
        self.read();
        self.said.clear();
        self.line(r#"{"jsonrpc":"2.0","id":"well","method":"tools/call","params":{"name":"t"}}"#);
        let handle = self.due.pop().expect("a call is delivered");
        let answer = RawJson::parse(r#"{"content":[],"well":true}"#).unwrap();
        measured(|| self.server.respond_with(handle, &answer, Instant::ZERO).unwrap());
        self.read();
        assert_eq!(self.count(r#""well":true"#), 1, "{:?}", self.said);
        let most = Limits::SMALL.server_memory_max(LENGTHS) + LineDecoder::memory_max(LINE_MAX);
        // `read` copies the chunk.
        let copy = 3 * Limits::SMALL.transmit_bytes_max;
        assert!(peak() <= most + copy, "{} bytes, of {most}", peak());
    }
}

/// Returns the line without digits, to group lines of one kind.
fn kind(line: &str) -> String {
    let kept: String = line.chars().filter(|c| !c.is_ascii_digit()).collect();
    kept.chars().take(200).collect()
}

#[test]
fn an_endless_line_is_reported_once_and_skipped() {
    // Rule: [RPC-017].
    let mut server = TestServer::new();
    for _ in 0..MANY {
        server.bytes(&[b'x'; 1000]);
    }
    server.bytes(b"\n");
    assert_eq!((server.count("a frame of more than"), server.violations), (1, 1));
    server.serves();
}

#[test]
fn a_request_byte_by_byte_is_a_request() {
    let mut server = TestServer::new();
    for byte in br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}"# {
        server.bytes(&[*byte]);
    }
    server.bytes(b"\n");
    assert_eq!(server.due.len(), 1);
    server.serves();
}

#[test]
fn requests_over_the_limit_are_each_refused() {
    let mut server = TestServer::new();
    for id in 0..MANY {
        server.line(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t"}}}}"#
        ));
    }
    let limit = Limits::SMALL.requests_in_flight_max;
    assert_eq!(server.due.len(), limit);
    assert_eq!(server.count("too many requests in flight"), MANY - limit);
    server.serves();
}

#[test]
fn requests_with_an_id_in_use_are_each_refused() {
    let mut server = TestServer::new();
    for _ in 0..MANY {
        server.line(r#"{"jsonrpc":"2.0","id":"same","method":"tools/call","params":{"name":"t"}}"#);
    }
    assert_eq!((server.due.len(), server.violations), (1, MANY - 1));
    assert_eq!(server.count("a request with this id is in flight"), MANY - 1);
    server.serves();
}

#[test]
fn requests_that_repeat_members_are_each_refused() {
    let mut server = TestServer::new();
    // As many repeats as fit, of known members and of others.
    let (names, unknown) = (r#","name":"u""#.repeat(120), r#","x":1"#.repeat(200));
    for id in 0..MANY {
        let known = format!(r#"{{"name":"t"{names}}}"#);
        let late = format!(r#"{{"name":"t"{unknown},"n\u0061me":"u"}}"#);
        let params = if id % 2 == 0 { known } else { late };
        server.line(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#
        ));
    }
    assert!(server.due.is_empty());
    assert_eq!((server.count("`name` is repeated"), server.violations), (MANY, MANY));
    server.violations = 0;
    for _ in 0..MANY {
        server.line(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"requestId":1}}"#);
    }
    assert_eq!(server.violations, MANY);
    server.serves();
}

#[test]
fn unknown_cancellations_are_skipped() {
    // Rule: [CANC-004].
    let mut server = TestServer::new();
    for id in 0..MANY {
        server.line(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
        ));
    }
    assert!(server.said.is_empty(), "{:?}", server.said);
    server.serves();
}

#[test]
fn requests_that_are_cancelled_at_once_leave_no_state() {
    // Rule: [CANC-003].
    let mut server = TestServer::new();
    for id in 0..MANY {
        server.line(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t"}}}}"#
        ));
        server.line(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
        ));
        server.due.clear();
    }
    assert!(server.said.is_empty(), "{:?}", server.said);
    server.serves();
}

#[test]
fn unknown_progress_is_ignored_and_malformed_progress_reported() {
    // Rule: [PROG-006].
    let mut server = TestServer::new();
    for token in 0..MANY {
        server.line(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":1}}}}"#
        ));
        server.line(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":"{token}","progress":"x"}}}}"#
        ));
    }
    assert!(server.said.is_empty(), "{:?}", server.said);
    assert_eq!(server.violations, MANY);
    server.serves();
}

#[test]
fn subscriptions_over_the_limit_are_each_refused() {
    let mut server = TestServer::new();
    for id in 0..MANY {
        server.line(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"resources/subscribe","params":{{"uri":"a:{id:0>100}"}}}}"#
        ));
    }
    let limit = Limits::SMALL.subscribed_resources_max;
    assert_eq!(server.count("too many subscriptions"), MANY - limit);
    server.serves();
}

#[test]
fn listen_streams_over_the_limit_are_each_refused() {
    let mut server = TestServer::new();
    for id in 0..MANY {
        server.line(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"subscriptions/listen","params":{{"notifications":{{"resourceSubscriptions":["a:1"]}},{MODERN}}}}}"#
        ));
    }
    let limit = Limits::SMALL.listen_streams_max;
    assert_eq!(server.count("acknowledged"), limit);
    assert_eq!(server.count("too many listen streams"), MANY - limit);
    for id in 0..limit {
        server.line(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
        ));
    }
    server.serves();
}

#[test]
fn a_filter_of_a_thousand_empty_names_is_refused_before_it_is_parsed() {
    let mut server = TestServer::new();
    let names = vec![r#""""#; 500].join(",");
    for id in 0..100 {
        server.line(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"subscriptions/listen","params":{{"notifications":{{"resourceSubscriptions":[{names}]}},{MODERN}}}}}"#
        ));
    }
    assert_eq!(server.count("too many resources"), 100);
    server.serves();
}

#[test]
fn invalid_batches_are_answered_element_by_element() {
    // Rule: [BATCH-003].
    let mut server = TestServer::new();
    let limit = Limits::SMALL.batch_length_max;
    for _ in 0..MANY {
        server.line(&format!("[{}]", vec!["1"; limit].join(",")));
        server.line(&format!("[{}]", vec!["1"; limit + 1].join(",")));
        server.line("[]");
    }
    assert_eq!(server.violations, MANY * (limit + 2));
    server.serves();
}

#[test]
fn incomplete_batches_do_not_accumulate() {
    let mut server = TestServer::new();
    for id in 0..MANY {
        let pings = [r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#; 7].join(",");
        server.line(&format!(
            r#"[{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t"}}}},{pings}]"#
        ));
    }
    assert_eq!(server.due.len(), Limits::SMALL.requests_in_flight_max);
    server.serves();
}

#[test]
fn values_that_are_nested_too_deeply_are_refused_with_their_id() {
    let mut server = TestServer::new();
    for (open, close) in [("[", "]"), (r#"{"a":"#, "}")] {
        let (open, close) = (open.repeat(300), close.repeat(300));
        server.line(&format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t","a":{open}1{close}}}}}"#
        ));
    }
    assert_eq!(server.count(r#""id":,"error""#), 2, "{:?}", server.said);
    server.serves();
}

#[test]
fn huge_numbers_and_escaped_strings_are_accepted() {
    let mut server = TestServer::new();
    let digits = "9".repeat(1800);
    let escapes = r"\u0041".repeat(300);
    // Short enough that the response is counted whole.
    let id = r"\u0041".repeat(30);
    for line in [
        format!(r#"{{"jsonrpc":"2.0","id":{digits},"method":"tools/call"}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":1e{digits},"method":"tools/call"}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":"tools/call"}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{escapes}"}}"#),
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","{escapes}":1,"params":{{"_meta":{{"progressToken":{digits}}}}}}}"#
        ),
    ] {
        for _ in 0..200 {
            server.line(&line);
        }
    }
    assert_eq!(server.count(r#""error""#), 1000, "{:?}", server.said);
    server.serves();
}

#[test]
fn unknown_responses_are_reported_and_ignored() {
    let mut server = TestServer::new();
    for id in 0..MANY {
        server.line(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
        server.line(&format!(
            r#"{{"jsonrpc":"2.0","id":"{id}","error":{{"code":1,"message":"no"}}}}"#
        ));
    }
    assert_eq!((server.violations, server.said.len()), (2 * MANY, 0));
    server.serves();
}

//! A server whose client takes everything that it can get.

use std::time::Duration;

use mcp_sansio::Instant;
use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::{
    CallOptions, Event, Limits, MessageLengths, RequestHandle, Server, ServerOptions,
};
use mcp_sansio::protocol::{
    Implementation, InputRequest, InputRequiredResult, ListRootsParams, LoggingLevel, Map, Method,
    ResourcesCapability, ServerCapabilities, ToolsCapability,
};

use crate::allocator::{begin, measured, peak};
use crate::limits::{large, odd, small};

const MODERN: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}"#;

/// The server, and a client that reads nothing unless it is told to.
struct TestServer {
    server: Server,
    limits: Limits,
    lengths: MessageLengths,
    now: Instant,
    /// Requests that wait for an answer, as far as their handlers go on.
    due: Vec<RequestHandle>,
    next_id: u64,
}

impl TestServer {
    fn new(limits: &Limits, lengths: MessageLengths, seed: u64) -> Self {
        let offers = ServerCapabilities::new()
            .tools(ToolsCapability::new().list_changed(true))
            .resources(ResourcesCapability::new().subscribe(true).list_changed(true))
            .extensions(Map::new().with("io.modelcontextprotocol/tasks", RawJson::EMPTY_OBJECT));
        let options = ServerOptions::new(Implementation::new("s", "1"))
            .capabilities(offers)
            .limits(limits.clone());
        Self {
            server: Server::new(options, seed),
            limits: limits.clone(),
            lengths,
            now: Instant::ZERO,
            due: Vec::with_capacity(limits.requests_in_flight_max),
            next_id: 0,
        }
    }

    /// A frame comes in, unless it would be too long or nothing is read.
    fn send(&mut self, frame: &str) -> bool {
        if frame.len() > self.lengths.received_max || self.server.is_congested() {
            return false;
        }
        let Self { server, due, now, .. } = self;
        measured(|| {
            let event = server.handle_message(frame.as_bytes(), *now).unwrap();
            if let Some(Event::Request(request)) = event {
                due.push(request.handle);
            }
        });
        self.take_events();
        true
    }

    fn take_events(&mut self) {
        let Self { server, due, .. } = self;
        measured(|| {
            while let Some(event) = server.poll_event() {
                if let Event::Request(request) = event {
                    due.push(request.handle);
                }
            }
        });
    }

    fn drain(&mut self) {
        measured(|| while self.server.poll_transmit().is_some() {});
    }

    /// A name that is as long as names of requests may be.
    fn id(&mut self) -> String {
        self.next_id += 1;
        let length = self.limits.id_length_max;
        format!("{:0>length$}", self.next_id)
    }

    /// A frame as long as frames may be: `before`, a text, `after`.
    fn longest(&self, before: &str, after: &str) -> String {
        let length = self.lengths.received_max.saturating_sub(before.len() + after.len());
        [before, &"x".repeat(length), after].concat()
    }

    fn uri(&self, number: usize) -> String {
        let uri = format!("r://{number}/");
        format!("{uri}{}", "u".repeat(self.limits.uri_length_max.saturating_sub(uri.len())))
    }

    fn open(&mut self) {
        let opening = {
            self.longest(
                r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{"roots":{}},"clientInfo":{"name":""#,
                r#"","version":"1"}}}"#,
            )
        };
        assert!(self.send(&opening));
        self.drain();
        assert!(self.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#));
        self.drain();
    }

    fn subscribe(&mut self) {
        for number in 0..self.limits.subscribed_resources_max {
            let frame = {
                let (id, uri) = (self.id(), self.uri(number));
                format!(
                    r#"{{"jsonrpc":"2.0","id":"{id}","method":"resources/subscribe","params":{{"uri":"{uri}"}}}}"#
                )
            };
            self.send(&frame);
            self.drain();
        }
    }

    /// Listen streams that name as many resources and tasks as there is room for.
    fn listen(&mut self) {
        let mut number = 0;
        for _ in 0..self.limits.listen_streams_max {
            let each = self.limits.subscribed_resources_max / self.limits.listen_streams_max;
            let frame = {
                let names: Vec<String> = (number..number + each)
                    .map(|number| format!("{:?}", self.uri(number)))
                    .collect();
                let (id, names) = (self.id(), names.join(","));
                format!(
                    r#"{{"jsonrpc":"2.0","id":"{id}","method":"subscriptions/listen","params":{{"notifications":{{"resourceSubscriptions":[{names}],"taskIds":[{names}]}},{MODERN}}}}}"#
                )
            };
            number += each;
            self.send(&frame);
            self.drain();
        }
    }

    /// Requests come and go, under ever new names, and then as many as there may be stay.
    fn fill_requests(&mut self) {
        for _ in 0..self.limits.requests_in_flight_max * 4 {
            let frame = self.call();
            self.send(&frame);
            if self.due.len() >= self.limits.requests_in_flight_max {
                let first = self.due.remove(0);
                measured(|| self.server.respond_with(first, &RawJson::EMPTY_OBJECT).unwrap());
            }
            self.drain();
        }
        for _ in 0..=self.limits.requests_in_flight_max {
            let frame = self.call();
            self.send(&frame);
            self.drain();
        }
    }

    fn call(&mut self) -> String {
        let (id, token) = (self.id(), self.id());
        format!(
            r#"{{"jsonrpc":"2.0","id":"{id}","method":"tools/call","params":{{"name":"t","_meta":{{"progressToken":"{token}"}}}}}}"#
        )
    }

    /// Requests whose handlers ask the host, as many as are let through.
    fn ask(&mut self) {
        for _ in 0..self.limits.requests_in_flight_max {
            if self.limits.inputs_per_round_max == 0 {
                return;
            }
            let frame = {
                let id = self.id();
                self.longest(
                    &format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":"tools/call","params":{{"name":"t","arguments":{{"a":""#),
                    r#""}}}"#,
                )
            };
            if frame.len() > self.lengths.received_max {
                return;
            }
            let questions: Map<InputRequest> = {
                (0..self.limits.inputs_per_round_max).fold(Map::new(), |questions, number| {
                    questions.with(format!("{number}"), InputRequest::from(ListRootsParams::new()))
                })
            };
            let required = InputRequiredResult::new().input_requests(questions);
            let Self { server, now, .. } = self;
            measured(|| {
                let event = server.handle_message(frame.as_bytes(), *now).unwrap();
                if let Some(Event::Request(request)) = event {
                    let _refused = server.require_input(request, &required, *now);
                }
            });
            self.drain();
        }
    }

    /// The client answers some questions, at length.
    fn answer(&mut self) {
        for id in 1..=self.limits.inputs_per_round_max / 2 {
            let frame = {
                self.longest(
                    &format!(
                        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"roots":[{{"uri":"file:///"#
                    ),
                    r#""}]}}"#,
                )
            };
            self.send(&frame);
            self.drain();
        }
    }

    /// Calls of this side, some of them given up.
    fn fill_calls(&mut self) {
        for round in 0..2 {
            let mut calls = Vec::new();
            loop {
                let (options, params) = (CallOptions::default(), RawJson::EMPTY_OBJECT);
                let ping = measured(|| self.server.call(Method::Ping, &params, &options, self.now));
                self.drain();
                let Ok(ping) = ping else { break };
                calls.push(ping);
            }
            if round == 0 {
                for call in &calls {
                    measured(|| self.server.cancel(*call, "not needed", self.now));
                    self.drain();
                    self.take_events();
                }
            }
        }
    }

    /// Batches of which one request is not answered yet, so that the other answers wait.
    fn batch(&mut self) {
        let frame = {
            let mut text = format!("[{}", self.call());
            for _ in 1..self.limits.batch_length_max {
                let more = self.id();
                let more = format!(r#",{{"jsonrpc":"2.0","id":"{more}","method":"ping"}}"#);
                if text.len() + more.len() < self.lengths.received_max {
                    text.push_str(&more);
                }
            }
            text.push(']');
            text
        };
        self.send(&frame);
        self.drain();
    }

    /// Frames that need memory only while they are read.
    fn try_passing(&mut self) {
        let frames = {
            let odd = "\u{200b}";
            let cut = |before: &str, unit: &str, after: &str| {
                let room = self.lengths.received_max - before.len() - after.len();
                [before, &unit.repeat(room / unit.len()), after].concat()
            };
            [
                cut(
                    r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":""#,
                    odd,
                    r#"","progress":1}}"#,
                ),
                cut(
                    r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":""#,
                    odd,
                    r#""}}"#,
                ),
                cut(
                    r#"{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":""#,
                    odd,
                    r#""}}"#,
                ),
                cut(r#"{"jsonrpc":"2.0","id":1,"method":""#, r"\u0001", r#""}"#),
                cut(
                    r#"{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":""#,
                    r"\u0001",
                    r#""}}"#,
                ),
                cut(
                    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":""#,
                    r"\u0001",
                    r#""}}}"#,
                ),
                cut(
                    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":""#,
                    odd,
                    r#""}}}"#,
                ),
                cut(
                    r#"{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["#,
                    r#""","#,
                    &format!(r#"""]}},{MODERN}}}}}"#),
                ),
                cut(
                    r#"{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":""#,
                    odd,
                    &format!(r#""}},{MODERN}}}}}"#),
                ),
                cut(
                    r#"{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"taskIds":""#,
                    odd,
                    &format!(r#""}},{MODERN}}}}}"#),
                ),
                cut("[", "1,", "1]"),
            ]
        };
        for frame in &frames {
            self.send(frame);
            self.drain();
        }
    }

    /// The client stops reading: the queue fills up, and then everything ends at once.
    fn stop_reading(&mut self) {
        // Up to the last frame that is read at all.
        /// More than a refusal with the longest id takes.
        const REFUSAL: usize = 160;
        for _ in 0..self.limits.transmit_bytes_max.saturating_sub(REFUSAL) / REFUSAL {
            let id = self.id();
            self.send(&format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":"x"}}"#));
        }
        let elements = "1,".repeat(self.limits.batch_length_max.saturating_sub(1));
        self.send(&format!("[{elements}1]"));
        while !self.server.is_congested() {
            let id = self.id();
            self.send(&format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":"x"}}"#));
        }
        for number in 0..self.limits.subscribed_resources_max {
            let uri = self.uri(number);
            measured(|| self.server.resource_updated(&uri));
        }
        let text = "x".repeat(self.lengths.sent_max.saturating_sub(120));
        let answer =
            RawJson::from_serialize(&std::collections::BTreeMap::from([("t", &text)])).unwrap();
        let due = core::mem::take(&mut self.due);
        for (handle, number) in due.iter().zip(0_u32..) {
            let handle = *handle;
            let Self { server, now, .. } = self;
            measured(|| {
                server.progress(handle, f64::from(number), None, Some(&text), *now);
                server.log(Some(handle), LoggingLevel::Error, None, &*text).unwrap();
                let _gone = server.respond_with(handle, &answer);
            });
        }
        self.due = due;
        self.now = self.now + Duration::from_secs(3600);
        measured(|| {
            self.server.handle_timeout(self.now);
            self.server.handle_eof();
        });
        self.take_events();
        self.drain();
    }
}

/// What a client can make a server take, in the way that comes to most, and what the formula says.
fn measure((limits, lengths): (Limits, MessageLengths), seed: u64) -> (usize, usize) {
    let formula = limits.server_memory_max(lengths);
    let mut most = 0;
    // Requests that wait for the host, or that are answered while the client reads nothing.
    for asks in [true, false] {
        let mut server = TestServer::new(&limits, lengths, seed);
        begin();
        server.open();
        server.try_passing();
        server.subscribe();
        server.listen();
        if asks {
            server.ask();
            server.answer();
        }
        server.fill_calls();
        server.batch();
        server.fill_requests();
        server.stop_reading();
        let peak = peak();
        assert!(peak <= formula, "{peak} bytes, of {formula}: {limits:?}, {lengths:?}");
        most = most.max(peak);
    }
    (most, formula)
}

#[test]
fn a_small_server_stays_within_its_formula_and_needs_a_fifth_of_it() {
    let (peak, formula) = measure(small(), 7);
    assert!(peak * 5 >= formula, "{peak} of {formula}");
}

#[test]
fn a_large_server_stays_within_its_formula_and_needs_a_fifth_of_it() {
    let (peak, formula) = measure(large(), 7);
    assert!(peak * 5 >= formula, "{peak} of {formula}");
}

#[test]
fn servers_of_odd_limits_stay_within_their_formula() {
    for seed in 0..60 {
        let (peak, formula) = measure(odd(seed), seed);
        assert!(peak * 12 >= formula, "{peak} of {formula}, seed {seed}");
    }
}

//! A server whose client makes it use as much memory as possible.

use std::time::Duration;

use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::{
    CallOptions, Event, Limits, MessageLengths, RequestHandle, Server, ServerMachine, ServerOptions,
};
use mcp_sansio::protocol::{
    Implementation, InputRequest, InputRequiredResult, ListRootsParams, Map, ResourcesCapability,
    ServerCapabilities, ToolsCapability,
};
use mcp_sansio::{Instant, LoggingLevel, Method};

use crate::allocator::{begin, measured, peak};
use crate::limits::{large, odd, small};

const MODERN: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}"#;

/// The server, and a client that reads nothing until the test does.
struct TestServer {
    server: Server,
    limits: Limits,
    lengths: MessageLengths,
    now: Instant,
    /// Pending requests of running handlers.
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

    /// Delivers a frame, unless it is too long or the server is congested. Returns whether it was
    /// delivered.
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

    /// Returns a new request id of the greatest length.
    fn id(&mut self) -> String {
        self.next_id += 1;
        let length = self.limits.id_length_max;
        format!("{:0>length$}", self.next_id)
    }

    /// Returns a frame of the greatest length: `before`, a text, `after`.
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

    /// Opens listen streams with as many resources and tasks as the limits allow.
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

    /// Sends requests with new ids and answers them, then leaves as many pending as the limit
    /// allows.
    fn fill_requests(&mut self) {
        for _ in 0..self.limits.requests_in_flight_max * 4 {
            let frame = self.call();
            self.send(&frame);
            if self.due.len() >= self.limits.requests_in_flight_max {
                let first = self.due.remove(0);
                measured(|| {
                    self.server.respond_with(first, &RawJson::EMPTY_OBJECT, self.now).unwrap()
                });
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

    /// Sends requests whose handlers request input, as many as the limit allows.
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
                    let _refused = server.require_input(&request, &required, *now);
                }
            });
            self.drain();
        }
    }

    /// Answers some input requests with long texts.
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

    /// Makes calls of the server, and cancels some of them.
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

    /// Sends batches in which one request stays pending, so that the other responses wait.
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

    /// Sends frames that use memory only while they are parsed.
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

    /// Stops reading until the queue is full, then ends the connection.
    fn stop_reading(&mut self) {
        // Up to the last frame that is accepted.
        /// An upper bound for an error response, without its id.
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
            measured(|| self.server.resource_updated(&uri, self.now));
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
                server.log(Some(handle), LoggingLevel::Error, None, &*text, *now).unwrap();
                let _gone = server.respond_with(handle, &answer, *now);
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

/// Returns the greatest memory that a client can make a server use, and the result of the formula.
fn measure((limits, lengths): (Limits, MessageLengths), seed: u64) -> (usize, usize) {
    let formula = limits.server_memory_max(lengths);
    let mut most = 0;
    // Requests that wait for input, or that are answered while the client reads nothing.
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
        assert!(
            peak <= formula,
            "{peak} bytes, but the formula allows {formula}: {limits:?}, {lengths:?}"
        );
        most = most.max(peak);
    }
    (most, formula)
}

#[test]
fn a_small_server_uses_between_a_fifth_and_all_of_its_formula() {
    let (peak, formula) = measure(small(), 7);
    assert!(peak * 5 >= formula, "{peak} of {formula}");
}

#[test]
fn a_large_server_uses_between_a_fifth_and_all_of_its_formula() {
    let (peak, formula) = measure(large(), 7);
    assert!(peak * 5 >= formula, "{peak} of {formula}");
}

#[test]
fn servers_with_unusual_limits_stay_within_their_formula() {
    for seed in 0..u64::from(seeded_random::scaled(15)) {
        let (peak, formula) = measure(odd(seed), seed);
        assert!(peak * 12 >= formula, "{peak} of {formula}, seed {seed}");
    }
}

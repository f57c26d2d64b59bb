//! Floods of messages to a server or to a client over a byte stream.

use std::fmt::Write as _;
use std::hint::black_box;

use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::{
    CallOptions, Client, ClientMachine, ClientOptions, Event, Limits, RequestHandle, Server,
    ServerMachine, ServerOptions,
};
use mcp_sansio::protocol::{
    ClientCapabilities, Implementation, ResourcesCapability, RootsCapability, ServerCapabilities,
    ToolsCapability,
};
use mcp_sansio::{Instant, Method, Revision, Revisions};

use super::Input;

const NOW: Instant = Instant::ZERO;
const UNIT: usize = 128;

/// Limits that exclude no input.
fn limits() -> Limits {
    let mut limits = Limits::DEFAULT;
    limits.requests_in_flight_max = 1 << 20;
    limits.calls_in_flight_max = 1 << 20;
    limits.listen_streams_max = 1 << 20;
    limits.subscribed_resources_max = 1 << 20;
    limits.batch_length_max = 1 << 20;
    limits.rounds_max = 1 << 20;
    limits
}

pub(super) struct ServerHarness {
    server: Server,
    due: Vec<RequestHandle>,
}

impl ServerHarness {
    fn new(limits: Limits) -> Self {
        let offers = ServerCapabilities::new()
            .tools(ToolsCapability::new())
            .resources(ResourcesCapability::new().subscribe(true));
        let options =
            ServerOptions::new(Implementation::new("s", "1")).capabilities(offers).limits(limits);
        let mut harness = Self { server: Server::new(options, 1), due: Vec::new() };
        harness.send(r#"{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#);
        harness.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        harness
    }

    pub(super) fn modern(method: &str, params: &str) -> String {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
        )
    }

    fn send(&mut self, line: &str) {
        let event =
            self.server.handle_message(line.as_bytes(), NOW).expect("the connection is open");
        if let Some(Event::Request(request)) = &event {
            self.due.push(request.handle);
        }
        drop(event);
        while let Some(event) = self.server.poll_event() {
            if let Event::Request(request) = &event {
                self.due.push(request.handle);
            }
        }
        while let Some(bytes) = self.server.poll_transmit() {
            black_box(bytes);
        }
    }
}

/// Feeds one frame, and drains all output.
pub(super) fn one_frame(frame: String) -> Input {
    frames(ServerHarness::new(limits()), vec![frame])
}

fn frames(mut harness: ServerHarness, frames: Vec<String>) -> Input {
    Input::new(frames.iter().map(String::len).sum(), move || {
        for frame in &frames {
            harness.send(frame);
        }
    })
}

fn many(step: usize, frame: impl Fn(usize) -> String) -> Vec<String> {
    (0..step * UNIT).map(|number| frame(number + 10_000)).collect()
}

fn call(id: usize) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t"}}}}"#)
}

pub(super) fn new_ids(step: usize) -> Input {
    frames(ServerHarness::new(limits()), many(step, call))
}

/// Requests, their answers, and cancellations, from a client that does not read meanwhile.
fn unread(step: usize, is_cancelled: fn(usize) -> bool) -> Input {
    let mut harness = ServerHarness::new(limits());
    let requests = many(step, call);
    let cancel = |id: usize| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
        )
    };
    let mut cancellations = many(step, cancel);
    let mut number = 0;
    cancellations.retain(|_| {
        number += 1;
        is_cancelled(number)
    });
    let length = requests.iter().chain(&cancellations).map(String::len).sum();
    Input::new(length, move || {
        for frame in requests.iter().chain(&cancellations) {
            let event = harness
                .server
                .handle_message(frame.as_bytes(), NOW)
                .expect("the connection is open");
            if let Some(Event::Request(request)) = event {
                let handle = request.handle;
                harness
                    .server
                    .respond_with(handle, &RawJson::EMPTY_OBJECT, NOW)
                    .expect("the request is pending");
            }
        }
        while let Some(bytes) = harness.server.poll_transmit() {
            black_box(bytes);
        }
    })
}

pub(super) fn withdrawals(step: usize) -> Input {
    unread(step, |_| true)
}

pub(super) fn half_withdrawn(step: usize) -> Input {
    unread(step, |number| number % 2 == 0)
}

pub(super) fn one_id(step: usize) -> Input {
    frames(ServerHarness::new(limits()), many(step, |_| call(1)))
}

pub(super) fn beyond_limit(step: usize) -> Input {
    frames(ServerHarness::new(Limits::SMALL), many(step, call))
}

pub(super) fn batch(step: usize) -> Input {
    let mut harness = ServerHarness::new(limits());
    let frame = format!("[{}]", many(step, call).join(","));
    Input::new(frame.len(), move || {
        harness.send(&frame);
        for handle in core::mem::take(&mut harness.due) {
            harness
                .server
                .respond_with(handle, &RawJson::EMPTY_OBJECT, NOW)
                .expect("the request is pending");
        }
        while let Some(bytes) = harness.server.poll_transmit() {
            black_box(bytes);
        }
    })
}

pub(super) fn batch_of_nothing(step: usize) -> Input {
    // Longer than other inputs: each element is short and gets an answer, so that a short input would
    // show how the buffers of the answers grow at first.
    one_frame(format!("[{}1]", "1,".repeat(8 * step * UNIT)))
}

fn cancel(id: usize) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
    )
}

/// Creates a server with this number of requests in flight.
fn busy(step: usize) -> ServerHarness {
    let mut harness = ServerHarness::new(limits());
    for frame in many(step, call) {
        harness.send(&frame);
    }
    harness
}

pub(super) fn idle_cancellations(step: usize) -> Input {
    frames(busy(step), many(step, |id| cancel(id + 1_000_000)))
}

pub(super) fn cancellations(step: usize) -> Input {
    frames(busy(step), many(step, cancel))
}

pub(super) fn idle_answers(step: usize) -> Input {
    let mut harness = ServerHarness::new(limits());
    // Fill all tombstones.
    for _ in 0..256 {
        let (ping, params) = (Method::Ping, RawJson::EMPTY_OBJECT);
        let call = harness.server.call(ping, &params, &CallOptions::default(), NOW).expect("open");
        harness.server.cancel(call, "", NOW);
    }
    frames(harness, many(step, |id| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)))
}

pub(super) fn subscriptions(step: usize) -> Input {
    let frame = |id: usize| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"resources/subscribe","params":{{"uri":"file:///{id:0>200}"}}}}"#
        )
    };
    frames(ServerHarness::new(limits()), many(step, frame))
}

fn listen(id: usize) -> String {
    let filter = r#""notifications":{"resourcesListChanged":true,"resourceSubscriptions":["a:1"]}"#;
    ServerHarness::modern("subscriptions/listen", filter).replacen(
        r#""id":1"#,
        &format!(r#""id":"l{id}""#),
        1,
    )
}

pub(super) fn listening(step: usize) -> Input {
    frames(busy(step), many(step, listen))
}

pub(super) fn long_filter(step: usize) -> Input {
    let mut names = String::new();
    for number in 0..step * UNIT {
        let _written = write!(names, r#""file:///{number}","#);
    }
    let filter = format!(r#""notifications":{{"resourceSubscriptions":[{names}"a:1"]}}"#);
    one_frame(ServerHarness::modern("subscriptions/listen", &filter))
}

pub(super) fn end_with_requests(step: usize) -> Input {
    let mut harness = busy(step);
    Input::new(step * UNIT, move || {
        harness.server.close(NOW);
        while let Some(event) = harness.server.poll_event() {
            black_box(event);
        }
    })
}

pub(super) fn end_with_streams(step: usize) -> Input {
    let mut harness = busy(step);
    for frame in many(step, listen) {
        harness.send(&frame);
    }
    Input::new(step * UNIT, move || {
        harness.server.handle_eof();
        while let Some(bytes) = harness.server.poll_transmit() {
            black_box(bytes);
        }
    })
}

// ---------------------------------------------------------------------- a client

fn client(revision: Revision) -> Client {
    let options = ClientOptions::new(Implementation::new("c", "1"))
        .revisions(Revisions::only(revision))
        .capabilities(ClientCapabilities::new().roots(RootsCapability::new()))
        .limits(limits());
    let mut client = Client::new(options, 1, NOW);
    let answer = if revision == Revision::V2026_07_28 {
        r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}}"#
    } else {
        r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}"#
    };
    take(&mut client, answer);
    client
}

fn take(client: &mut Client, line: &str) {
    let event = client.handle_message(line.as_bytes(), NOW).expect("the connection is open");
    black_box(event);
    while let Some(event) = client.poll_event() {
        black_box(event);
    }
    while let Some(bytes) = client.poll_transmit() {
        black_box(bytes);
    }
}

fn start(client: &mut Client, method: Method) {
    let params = RawJson::parse(r#"{"name":"t"}"#).expect("JSON");
    let options = CallOptions::default().progress();
    client.call(method, &params, &options, NOW).expect("the connection is open");
    while let Some(bytes) = client.poll_transmit() {
        black_box(bytes);
    }
}

fn answers(mut client: Client, lines: Vec<String>, before_each: Option<Method>) -> Input {
    Input::new(lines.iter().map(String::len).sum(), move || {
        for line in &lines {
            if let Some(method) = before_each {
                start(&mut client, method);
            }
            take(&mut client, line);
        }
    })
}

pub(super) fn end_with_calls(step: usize) -> Input {
    let mut client = client(Revision::V2025_11_25);
    for _ in 0..step * UNIT {
        start(&mut client, Method::ToolsCall);
    }
    Input::new(step * UNIT, move || {
        client.handle_eof();
        while let Some(event) = client.poll_event() {
            black_box(event);
        }
    })
}

pub(super) fn progress(step: usize) -> Input {
    let mut client = client(Revision::V2025_11_25);
    start(&mut client, Method::ToolsCall);
    let line = |number| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":2,"progress":{number},"message":"on"}}}}"#
        )
    };
    answers(client, many(step, line), None)
}

pub(super) fn pages(step: usize) -> Input {
    let mut id = 1;
    let lines = (0..step * UNIT).map(|page| {
        id += 1;
        format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"tools":[],"nextCursor":"{page}"}}}}"#)
    });
    answers(client(Revision::V2025_11_25), lines.collect(), Some(Method::ToolsList))
}

pub(super) fn rounds(step: usize) -> Input {
    let mut client = client(Revision::V2026_07_28);
    start(&mut client, Method::ToolsCall);
    let lines = (0..step * UNIT).map(|round| {
        let id = round + 2;
        format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"input_required","requestState":"{round}"}}}}"#)
    });
    answers(client, lines.collect(), None)
}

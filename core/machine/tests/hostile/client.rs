//! Malicious servers and a client on a byte stream.

use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::{
    CallHandle, CallOptions, Client, ClientMachine, ClientOptions, Event, Failure, Limits,
    MessageLengths,
};
use mcp_sansio::protocol::{ClientCapabilities, Implementation, RootsCapability};
use mcp_sansio::{Instant, Method, Revision, Revisions};

use crate::allocator::{begin, measured, peak};

const LENGTHS: MessageLengths = MessageLengths::new(2048, 512);
const MANY: usize = 3000;
const NOW: Instant = Instant::ZERO;

struct TestClient {
    client: Client,
    ended: Vec<(CallHandle, Result<String, Failure<'static>>)>,
    asked: usize,
    violations: usize,
    said: Vec<String>,
    /// The id of the last call.
    last_id: i64,
}

impl TestClient {
    fn legacy() -> Self {
        Self::open(
            Revision::V2025_03_26,
            r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-03-26","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}"#,
        )
    }

    fn modern() -> Self {
        Self::open(
            Revision::V2026_07_28,
            r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}}"#,
        )
    }

    fn open(revision: Revision, answer: &str) -> Self {
        let options = ClientOptions::new(Implementation::new("c", "1"))
            .revisions(Revisions::only(revision))
            .capabilities(ClientCapabilities::new().roots(RootsCapability::new()))
            .limits(Limits::SMALL);
        begin();
        let mut client = Self {
            client: measured(|| Client::new(options, 5, NOW)),
            ended: Vec::new(),
            asked: 0,
            violations: 0,
            said: Vec::new(),
            last_id: 1,
        };
        client.line(answer);
        client.said.clear();
        client
    }

    fn line(&mut self, line: &str) {
        let Self { client, ended, asked, violations, .. } = self;
        let mut next = measured(|| {
            client.handle_message(line.as_bytes(), NOW).unwrap().map(Event::into_owned)
        });
        while let Some(event) = next {
            match &event {
                Event::Ended(end) => {
                    let outcome = end.outcome.as_ref();
                    let outcome = outcome.map(ToString::to_string).map_err(Clone::clone);
                    ended.push((end.call, outcome));
                }
                Event::InputRequested(_) => *asked += 1,
                Event::Violation(_) => *violations += 1,
                _ => {}
            }
            next = measured(|| {
                drop(event);
                client.poll_event()
            });
        }
        self.read();
    }

    fn read(&mut self) {
        while let Some(bytes) = measured(|| self.client.poll_transmit().map(<[u8]>::to_vec)) {
            let text = String::from_utf8(bytes.clone()).unwrap();
            self.said.extend(text.lines().map(String::from));
            measured(|| drop(bytes));
        }
    }

    fn call(&mut self, method: Method) -> CallHandle {
        let params = RawJson::parse(r#"{"name":"t"}"#).unwrap();
        let options = CallOptions::default().progress();
        let call = measured(|| self.client.call(method, &params, &options, NOW).unwrap());
        self.read();
        self.last_id = self
            .said
            .iter()
            .rev()
            .find_map(|line| RawJson::parse(line).ok()?.get("id")?.decode().ok())
            .unwrap();
        call
    }

    /// Asserts that a well-behaved server is still served, and that the memory stayed within the
    /// limit.
    fn hears(&mut self) {
        let call = self.call(Method::ToolsCall);
        self.ended.clear();
        let id = self.last_id;
        self.line(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","content":[]}}}}"#
        ));
        assert_eq!(self.ended.len(), 1);
        assert!(self.ended[0].0 == call && self.ended[0].1.is_ok(), "{:?}", self.ended);
        let most = Limits::SMALL.client_memory_max(LENGTHS);
        assert!(peak() <= most, "{} bytes, of {most}", peak());
    }
}

#[test]
fn unknown_responses_are_reported_and_ignored() {
    for mut client in [TestClient::legacy(), TestClient::modern()] {
        for id in 0..MANY {
            client.line(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{}}}}"#, id + 100));
            client.line(r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"what"}}"#);
        }
        assert_eq!((client.violations, client.said.len()), (2 * MANY, 0));
        client.hears();
    }
}

#[test]
fn each_input_request_beyond_the_limit_is_rejected() {
    let mut client = TestClient::legacy();
    for id in 0..MANY {
        client.line(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"roots/list"}}"#));
    }
    let limit = Limits::SMALL.requests_in_flight_max;
    assert_eq!(client.asked, limit);
    let refused = client.said.iter().filter(|line| line.contains("too many requests")).count();
    assert_eq!(refused, MANY - limit);
    client.hears();
}

#[test]
fn input_requests_with_one_id_are_delivered_once() {
    let mut client = TestClient::legacy();
    for _ in 0..MANY {
        client.line(r#"{"jsonrpc":"2.0","id":"same","method":"roots/list"}"#);
    }
    assert_eq!((client.asked, client.violations), (1, MANY - 1));
    client.hears();
}

#[test]
fn a_request_of_a_modern_server_is_reported_and_not_answered() {
    // Rule: [RPC-030] [RPC-031].
    let mut client = TestClient::modern();
    for id in 0..MANY {
        client.line(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"roots/list"}}"#));
    }
    assert_eq!((client.violations, client.said.len()), (MANY, 0));
    client.hears();
}

#[test]
fn endless_progress_is_delivered_and_ends_with_its_call() {
    // Rule: [PROG-003] [PROG-006].
    let mut client = TestClient::legacy();
    client.call(Method::ToolsCall);
    let token = client.last_id;
    for number in 0..MANY {
        client.line(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{number}}}}}"#
        ));
        client.line(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":0}}}}"#
        ));
    }
    assert_eq!(client.violations, MANY);
    client.line(&format!(r#"{{"jsonrpc":"2.0","id":{token},"result":{{}}}}"#));
    client.line(&format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":99999}}}}"#
    ));
    assert_eq!(client.violations, MANY);
    client.hears();
}

#[test]
fn endless_input_rounds_end_the_call() {
    // Rule: [MRTR-009].
    let mut client = TestClient::modern();
    client.call(Method::ToolsCall);
    for round in 0..MANY {
        let id = client.last_id + i64::try_from(round).unwrap();
        client.line(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"input_required","requestState":"{round}"}}}}"#
        ));
    }
    let limit = Limits::SMALL.rounds_max;
    assert!(
        matches!(client.ended[..], [(_, Err(Failure::TooManyRounds { limit: l }))] if l == limit)
    );
    client.hears();
}

#[test]
fn too_many_input_requests_end_the_call() {
    let mut client = TestClient::modern();
    for _ in 0..MANY / 10 {
        client.call(Method::ToolsCall);
        let questions: Vec<String> =
            (0..5).map(|n| format!(r#""{n}":{{"method":"roots/list"}}"#)).collect();
        let (id, questions) = (client.last_id, questions.join(","));
        client.line(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"input_required","inputRequests":{{{questions}}}}}}}"#
        ));
    }
    assert_eq!((client.ended.len(), client.asked), (MANY / 10, 0));
    client.hears();
}

#[test]
fn states_over_the_limit_end_their_calls() {
    let mut client = TestClient::modern();
    let state = "s".repeat(1200);
    for _ in 0..3 {
        client.call(Method::ToolsCall);
        let id = client.last_id;
        client.line(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"input_required","inputRequests":{{"q":{{"method":"roots/list"}}}},"requestState":"{state}"}}}}"#
        ));
    }
    assert_eq!(client.asked, 1);
    assert_eq!(client.ended.len(), 2);
    assert!(client.ended.iter().all(|(_, end)| matches!(end, Err(Failure::TooMuchInput { .. }))));
    client.hears();
}

#[test]
fn invalid_batches_are_ignored() {
    let mut client = TestClient::legacy();
    for _ in 0..MANY {
        client.line("[1,1,1,1,1,1,1,1]");
        client.line("[1,1,1,1,1,1,1,1,1]");
    }
    assert_eq!((client.violations, client.said.len()), (9 * MANY, 0));
    client.hears();
}

#[test]
fn endless_lists_are_left_to_the_caller() {
    // Rule: [PAGE-004].
    let mut client = TestClient::modern();
    for page in 0..MANY {
        client.call(Method::ToolsList);
        let id = client.last_id;
        client.line(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","tools":[],"nextCursor":"{page}"}}}}"#
        ));
        client.said.clear();
    }
    assert_eq!(client.ended.len(), MANY);
    client.hears();
}

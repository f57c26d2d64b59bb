//! Messages for a cancelled request are withdrawn if they have not been sent.

use core::time::Duration;

use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::{
    CallOptions, ClientMachine, Event, Failure, Limits, Request, RequestHandle, Server,
    ServerMachine, ServerOptions,
};
use mcp_sansio::protocol::{
    ClientCapabilities, InputRequest, InputRequiredResult, ListRootsParams, Map, RootsCapability,
    SubscriptionFilter,
};
use mcp_sansio::{Instant, LoggingLevel, Method, Revision};

use crate::fixtures::*;

const NOW: Instant = Instant::ZERO;

/// A server and a client that reads nothing until the test does.
struct TestServer {
    server: Server,
    revision: Revision,
}

impl TestServer {
    fn new(revision: Revision, options: ServerOptions, capabilities: &str) -> Self {
        let mut server = Self { server: Server::new(options, 1), revision };
        if LEGACY.contains(&revision) {
            server.send(&initialize(revision.as_str(), capabilities));
            server.send(INITIALIZED);
            server.read();
        }
        server
    }

    fn send(&mut self, line: &str) -> Option<Event<'static>> {
        let event = self.server.handle_message(line.as_bytes(), NOW).expect("it is open");
        event.map(Event::into_owned)
    }

    /// Sends a request of the server's era that asks for progress and log messages.
    fn ask(&mut self, id: &str, method: &str, members: &str) -> Option<Event<'static>> {
        let line = if LEGACY.contains(&self.revision) {
            let members = if members.is_empty() { String::new() } else { format!("{members},") };
            request(id, method, &format!(r#"{{{members}"_meta":{{"progressToken":{id}}}}}"#))
        } else {
            let meta =
                format!(r#""progressToken":{id},"io.modelcontextprotocol/logLevel":"debug""#);
            modern_with(id, method, members, "{}", &meta)
        };
        self.send(&line)
    }

    fn call(&mut self, id: &str) -> Request<'static> {
        match self.ask(id, "tools/call", r#""name":"t""#) {
            Some(Event::Request(request)) => request,
            other => panic!("{other:?}"),
        }
    }

    /// Sends progress and a log message, which remain unread.
    fn work(&mut self, request: RequestHandle) {
        self.server.progress(request, 1.0, None, None, NOW);
        self.server.log(Some(request), LoggingLevel::Error, None, "l", NOW).unwrap();
        self.server.progress(request, 2.0, None, None, NOW);
    }

    fn answer(&mut self, request: RequestHandle) {
        self.server.respond_with(request, &RawJson::EMPTY_OBJECT, NOW).unwrap();
    }

    fn cancel(&mut self, id: &str) -> Option<Event<'static>> {
        let params = format!(r#"{{"requestId":{id}}}"#);
        self.send(&notification("notifications/cancelled", &params))
    }

    /// Returns a description of each unread message.
    fn read(&mut self) -> Vec<String> {
        let mut text = Vec::new();
        while let Some(bytes) = self.server.poll_transmit() {
            text.extend_from_slice(bytes);
        }
        let text = String::from_utf8(text).unwrap();
        let say = |line: &str| -> String {
            let message: serde_json::Value = serde_json::from_str(line).unwrap();
            if let Some(messages) = message.as_array() {
                let ids: Vec<_> = messages.iter().map(|it| it["id"].to_string()).collect();
                return format!("[{}]", ids.join(","));
            }
            match (message.get("method"), message.get("id")) {
                (Some(method), _) if method == "notifications/progress" => {
                    format!("progress of {}", message["params"]["progressToken"])
                }
                (Some(method), _) => method.as_str().unwrap().to_owned(),
                (None, Some(id)) => format!("answer {id}"),
                (None, None) => panic!("{line}"),
            }
        };
        text.lines().map(say).collect()
    }
}

#[test]
fn no_messages_are_sent_for_a_cancelled_request() {
    // Rule: [CANC-003] [CANC-016].
    for revision in Revision::ALL {
        for answered in [false, true] {
            for id in ["1", r#""one""#, &format!("\"{}\"", "x".repeat(500))] {
                let mut server = TestServer::new(revision, full_server(), "{}");
                let (first, second) = (server.call(id), server.call("2"));
                for request in [first.handle, second.handle, first.handle] {
                    server.work(request);
                }
                if answered {
                    server.answer(first.handle);
                }
                server.answer(second.handle);
                let event = server.cancel(id);
                assert_eq!(matches!(event, Some(Event::Cancelled(_))), !answered, "{event:?}");
                let expected =
                    ["progress of 2", "notifications/message", "progress of 2", "answer 2"];
                assert_eq!(server.read(), expected, "{id} at {revision}");
                // At 2026-07-28 the id is free again, and messages for the new request are sent.
                if !LEGACY.contains(&revision) {
                    let again = server.call(id);
                    server.answer(again.handle);
                    assert_eq!(server.read(), [format!("answer {id}")]);
                }
            }
        }
    }
}

#[test]
fn sent_messages_are_not_withdrawn_and_later_ones_are() {
    // Rule: [CANC-006] [CANC-016].
    for revision in Revision::ALL {
        let mut server = TestServer::new(revision, full_server(), "{}");
        let request = server.call("1").handle;
        server.work(request);
        // Messages count as sent once they were peeked, as a part may have been written.
        let shown = server.server.peek_transmit().len();
        assert!(shown > 0);
        server.answer(request);
        assert!(server.cancel("1").is_none());
        assert_eq!(server.server.peek_transmit().len(), shown);
        let said = ["progress of 1", "notifications/message", "progress of 1"];
        assert_eq!(server.read(), said, "{revision}");
    }
}

#[test]
fn a_response_of_the_machine_is_withdrawn() {
    // Rule: [CANC-003] [CANC-016].
    for revision in Revision::ALL {
        let mut server = TestServer::new(revision, full_server(), "{}");
        for id in ["1", "2", "3"] {
            let list = server.ask(id, "no/such", "");
            assert!(list.is_none());
        }
        if LEGACY.contains(&revision) {
            server.send(&request("4", "ping", "{}"));
            server.cancel("4");
        }
        server.cancel("1");
        server.cancel("3");
        assert_eq!(server.read(), ["answer 2"], "{revision}");
    }
}

#[test]
fn the_response_to_initialize_is_never_withdrawn() {
    // Rule: [CANC-002].
    let mut server =
        TestServer { server: Server::new(bare_server(), 1), revision: Revision::V2025_11_25 };
    server.send(&initialize("2025-11-25", "{}"));
    server.cancel("1");
    assert_eq!(server.read(), ["answer 1"]);
}

#[test]
fn a_cancelled_listen_stream_sends_nothing() {
    // Rule: [CANC-016] [SUBS-010].
    let mut server = TestServer::new(Revision::V2026_07_28, full_server(), "{}");
    let filter = r#""notifications":{"toolsListChanged":true}"#;
    for id in ["1", "2"] {
        server.ask(id, "subscriptions/listen", filter);
    }
    server.server.announce(mcp_sansio::catalog::Changes::new().tools(true), NOW);
    server.cancel("1");
    let said = ["notifications/subscriptions/acknowledged", "notifications/tools/list_changed"];
    assert_eq!(server.read(), said);
}

#[test]
fn withdrawn_messages_free_their_space() {
    // Rule: [CANC-016].
    let mut limits = Limits::default();
    limits.transmit_bytes_max = 100_000;
    for revision in Revision::ALL {
        let mut server = TestServer::new(revision, full_server().limits(limits.clone()), "{}");
        for round in 0..5 {
            let mut ids = Vec::new();
            while !server.server.is_congested() {
                let id = (round * 10_000 + ids.len() + 10).to_string();
                server.ask(&id, "no/such", "");
                ids.push(id);
            }
            assert!(ids.len() > 500, "{}", ids.len());
            // From both ends and from the middle.
            ids.sort_by_key(|id| (id.len(), id.chars().rev().collect::<String>()));
            for id in &ids[1..] {
                server.cancel(id);
            }
            assert!(!server.server.is_congested());
            assert_eq!(server.read(), [format!("answer {}", ids[0])], "{revision}");
        }
    }
}

#[test]
fn ten_thousand_responses_and_cancellations() {
    // Rule: [CANC-016].
    const COUNT: usize = 10_000;
    let mut limits = Limits::default();
    limits.requests_in_flight_max = COUNT;
    let mut server = TestServer::new(Revision::V2026_07_28, full_server().limits(limits), "{}");
    let requests: Vec<_> = (0..COUNT).map(|id| server.call(&id.to_string()).handle).collect();
    for request in requests {
        server.work(request);
        server.answer(request);
    }
    for id in (0..COUNT).filter(|id| id % 100 != 7) {
        server.cancel(&id.to_string());
    }
    let said = server.read();
    assert_eq!(said.len(), 4 * COUNT / 100);
    assert!(said.iter().all(|it| it.ends_with("07") || !it.contains(' ') || it.ends_with(" 7")));
}

/// Sends a batch of calls with these ids.
fn batch(server: &mut TestServer, ids: &[u32]) -> Vec<RequestHandle> {
    let calls: Vec<_> =
        ids.iter().map(|id| request(&id.to_string(), "tools/call", r#"{"name":"t"}"#)).collect();
    let mut events: Vec<_> = server.send(&format!("[{}]", calls.join(","))).into_iter().collect();
    events.extend(core::iter::from_fn(|| server.server.poll_event()));
    let handle = |event| match event {
        Event::Request(request) => request.handle,
        other => panic!("{other:?}"),
    };
    events.into_iter().map(handle).collect()
}

#[test]
fn a_response_is_withdrawn_from_its_batch() {
    // Rule: [CANC-003] [BATCH-006].
    // `answered` requests have a response before the cancellations; the last response sends the
    // batch.
    for answered in 0..=4 {
        for gone in 0..16_u32 {
            let mut server = TestServer::new(Revision::V2025_03_26, full_server(), "{}");
            let requests = batch(&mut server, &[1, 2, 3, 4]);
            for request in &requests[..answered] {
                server.answer(*request);
            }
            let is_gone = |id: u32| gone >> (id - 1) & 1 > 0;
            for id in (1..=4).filter(|id| is_gone(*id)) {
                server.cancel(&id.to_string());
            }
            for (request, id) in requests.iter().zip(1..).skip(answered) {
                if !is_gone(id) {
                    server.answer(*request);
                }
            }
            let left: Vec<_> =
                (1..=4).filter(|id| !is_gone(*id)).map(|id| id.to_string()).collect();
            let expected =
                if left.is_empty() { vec![] } else { vec![format!("[{}]", left.join(","))] };
            assert_eq!(server.read(), expected, "{answered} answered, {gone:04b} cancelled");
            assert!(!server.server.is_congested());
        }
    }
}

#[test]
fn input_requests_of_a_cancelled_request_are_withdrawn_or_cancelled() {
    // Rule: [CANC-001] [CANC-003].
    for revision in LEGACY {
        for read in [false, true] {
            let mut server = TestServer::new(revision, full_server(), r#"{"roots":{}}"#);
            let request = server.call("1");
            let question: InputRequest = ListRootsParams::new().into();
            let questions = Map::default().with("q", question);
            let questions = InputRequiredResult::new().input_requests(questions);
            server.server.require_input(&request, &questions, NOW).unwrap();
            if read {
                assert_eq!(server.read(), ["roots/list"]);
            }
            assert!(matches!(server.cancel("1"), Some(Event::Cancelled(_))));
            let expected: &[&str] = if read { &["notifications/cancelled"] } else { &[] };
            assert_eq!(server.read(), expected, "{revision}");
        }
    }
}

#[test]
fn a_call_that_is_cancelled_before_it_is_sent_is_never_sent() {
    // Rule: [CANC-001] [CANC-018].
    for revision in Revision::ALL {
        let mut wire = client_at(revision, plain_client());
        let options = CallOptions::default();
        let mut call = || wire.machine.call(Method::ToolsCall, &echo(), &options, NOW).unwrap();
        let calls = [call(), call(), call()];
        wire.machine.cancel(calls[0], "", NOW);
        wire.machine.cancel(calls[2], "", NOW);
        assert_eq!(wire.message()["id"], 3);
        wire.expect_nothing();
        for call in [calls[0], calls[2]] {
            let Event::Ended(ended) = wire.event() else { panic!("an end") };
            assert_eq!((ended.call, ended.outcome.unwrap_err()), (call, Failure::Cancelled));
        }
        wire.send(&result("3", "{}"));
        assert_eq!(wire.told(), "ended with {}");
    }
}

#[test]
fn a_cancelled_subscription_is_ended_on_the_server_even_after_a_day() {
    for revision in LEGACY {
        let mut wire = client_at(revision, plain_client());
        let filter = SubscriptionFilter::new().resource_subscriptions(["a:b".to_owned()]);
        let subscription = wire.machine.subscribe(&filter, NOW).unwrap();
        let subscribed = wire.message();
        assert_eq!(subscribed["method"], "resources/subscribe");
        wire.send(&result(&subscribed["id"].to_string(), "{}"));
        // The server reads nothing for a day; without this request it would keep sending updates.
        wire.machine.cancel(subscription, "", NOW);
        wire.machine.handle_timeout(NOW + Duration::from_secs(86_400));
        let unsubscribed = wire.message();
        assert_eq!(unsubscribed["method"], "resources/unsubscribe");
        wire.expect_nothing();
        wire.send(&result(&unsubscribed["id"].to_string(), "{}"));
    }
}

#[test]
fn a_response_of_a_client_is_withdrawn() {
    // Rule: [CANC-003].
    for revision in LEGACY {
        let host =
            plain_client().capabilities(ClientCapabilities::new().roots(RootsCapability::new()));
        let mut client = client_at(revision, host).machine;
        for id in ["7", "8"] {
            let line = request(id, "roots/list", "{}");
            let event = client.handle_message(line.as_bytes(), NOW).unwrap();
            let Some(Event::InputRequested(input)) = event else { panic!("{event:?}") };
            let input = input.handle;
            client.answer_input_with(input, &raw(r#"{"roots":[]}"#), NOW).unwrap();
        }
        let cancelled = notification("notifications/cancelled", r#"{"requestId":7}"#);
        assert!(client.handle_message(cancelled.as_bytes(), NOW).unwrap().is_none());
        let sent = core::str::from_utf8(client.poll_transmit().unwrap()).unwrap().to_owned();
        assert!(sent.contains(r#""id":8"#) && !sent.contains(r#""id":7"#), "{sent}");
    }
}

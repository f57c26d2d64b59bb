//! A client that reads nothing, or sends more requests than it reads responses: the output that
//! waits for it is bounded.

use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::{Event, Limits, Request, Server, ServerMachine, ServerOptions};
use mcp_sansio::protocol::{
    CapabilitySettings, Implementation, ResourcesCapability, ServerCapabilities, ToolsCapability,
};
use mcp_sansio::{Instant, LoggingLevel, Revision};

const NOW: Instant = Instant::ZERO;

fn server(limits: Limits) -> Server {
    let offers = ServerCapabilities::new()
        .logging(CapabilitySettings::default())
        .tools(ToolsCapability::new().list_changed(true))
        .resources(ResourcesCapability::new().subscribe(true).list_changed(true));
    let options =
        ServerOptions::new(Implementation::new("s", "1")).capabilities(offers).limits(limits);
    Server::new(options, 1)
}

/// Opens a session of 2025-03-26, the revision with batches.
fn session(limits: Limits) -> Server {
    let mut server = server(limits);
    for line in [
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    ] {
        send(&mut server, line);
    }
    assert_eq!(server.session().unwrap().revision(), Revision::V2025_03_26);
    read(&mut server);
    server
}

fn send(server: &mut Server, line: &str) -> Option<Event<'static>> {
    server.handle_message(line.as_bytes(), NOW).unwrap().map(Event::into_owned)
}

fn request(event: Option<Event<'static>>) -> Request<'static> {
    let Some(Event::Request(request)) = event else { panic!("{event:?}") };
    request
}

/// Returns all pending output, line by line.
fn read(server: &mut Server) -> Vec<String> {
    let mut text = Vec::new();
    while let Some(bytes) = server.poll_transmit() {
        text.extend_from_slice(bytes);
    }
    String::from_utf8(text).unwrap().lines().map(String::from).collect()
}

/// Sends requests until the server is congested, and returns how many.
fn congest(server: &mut Server) -> usize {
    let mut sent = 0;
    while !server.is_congested() {
        send(server, r#"{"jsonrpc":"2.0","id":1,"method":"x"}"#);
        sent += 1;
    }
    sent
}

const CALL: &str = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":7}}}"#;

#[test]
fn logs_and_progress_do_not_accumulate_for_a_client_that_reads_nothing() {
    let mut server = session(Limits::SMALL);
    let call = request(send(&mut server, CALL));
    let refusals = congest(&mut server);
    for report in 0..1000 {
        server.log(Some(call.handle), LoggingLevel::Error, None, "news", NOW).unwrap();
        server.progress(call.handle, f64::from(report), None, Some("more"), NOW);
    }
    assert_eq!(read(&mut server).len(), refusals);
    server.log(Some(call.handle), LoggingLevel::Error, None, "news", NOW).unwrap();
    server.progress(call.handle, 1000.0, None, None, NOW);
    server.respond_with(call.handle, &RawJson::EMPTY_OBJECT, NOW).unwrap();
    assert_eq!(read(&mut server).len(), 3);
}

#[test]
fn notifications_to_a_slow_client_are_coalesced() {
    // Rule: [RSRC-005] [TOOL-005].
    let mut server = session(Limits::SMALL);
    for uri in ["a:1", "a:2"] {
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{{"uri":"{uri}"}}}}"#
        );
        send(&mut server, &line);
    }
    read(&mut server);
    let refusals = congest(&mut server);
    for _ in 0..1000 {
        server.resource_updated("a:2", NOW);
        server.resource_updated("a:1", NOW);
        server.resource_updated("a:3", NOW);
        server.announce(mcp_sansio::catalog::Changes::new().tools(true), NOW);
    }
    let lines = read(&mut server);
    let news: Vec<&str> = lines[refusals..].iter().map(String::as_str).collect();
    assert_eq!(
        news,
        [
            r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:1"}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:2"}}"#,
        ]
    );
    assert!(read(&mut server).is_empty());
}

#[test]
fn responses_of_a_batch_over_the_limit_are_sent_before_the_batch_is_complete() {
    // Rule: [BATCH-003] [BATCH-009].
    let mut limits = Limits::DEFAULT;
    limits.batch_bytes_max = 400;
    let mut server = session(limits);
    let pings: Vec<String> =
        (10..40).map(|id| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#)).collect();
    let call = request(send(&mut server, &format!("[{CALL},{}]", pings.join(","))));
    let early = read(&mut server);
    assert!(early.len() > 1, "{early:?}");
    server.respond_with(call.handle, &RawJson::EMPTY_OBJECT, NOW).unwrap();
    let late = read(&mut server);
    assert_eq!(late.len(), 1);
    let mut ids = Vec::new();
    for line in early.iter().chain(&late) {
        assert!(line.len() < 600, "{line}");
        let answers = RawJson::parse(line).unwrap();
        for answer in
            answers.decode::<Vec<std::collections::BTreeMap<String, RawJson<'_>>>>().unwrap()
        {
            ids.push(answer["id"].decode::<i64>().unwrap());
        }
    }
    ids.sort_unstable();
    assert!(ids.into_iter().eq([7].into_iter().chain(10..40)));
}

#[test]
fn the_rest_of_a_batch_is_rejected_if_too_many_responses_wait() {
    let mut limits = Limits::SMALL;
    (limits.batch_length_max, limits.batch_bytes_max, limits.transmit_bytes_max) = (1000, 100, 300);
    let mut server = session(limits);
    let calls: Vec<String> = (0..100)
        .map(|id| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"logging/setLevel","params":{{"level":"info"}}}}"#))
        .collect();
    send(&mut server, &format!("[{}]", calls.join(",")));
    let lines = read(&mut server).concat();
    assert!(lines.matches(r#""result":{}"#).count() >= 5, "{lines}");
    assert!(lines.matches("too many responses are queued").count() >= 50, "{lines}");
    assert_eq!(lines.matches(r#""id":"#).count(), 100);
}

#[test]
fn listen_streams_share_the_limit_of_resources_of_a_client() {
    // Rule: [SUBS-001].
    let mut limits = Limits::DEFAULT;
    limits.subscribed_resources_max = 3;
    let mut server = server(limits);
    let mut listen = |id: u32, uris: &str| {
        send(
            &mut server,
            &format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"subscriptions/listen","params":{{"notifications":{{"resourceSubscriptions":[{uris}]}},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
            ),
        );
        read(&mut server).concat()
    };
    assert!(listen(1, r#""a:1","a:2""#).contains("acknowledged"));
    assert!(listen(2, r#""a:3","a:4""#).contains("too many resources"));
    assert!(listen(3, r#""a:3""#).contains("acknowledged"));
    assert!(listen(4, r#""a:4""#).contains("too many resources"));
    send(
        &mut server,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
    );
    let line = r#"{"jsonrpc":"2.0","id":5,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["a:4"]},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    send(&mut server, line);
    assert!(read(&mut server).concat().contains("acknowledged"));
}

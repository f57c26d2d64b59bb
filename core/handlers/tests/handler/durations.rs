//! Durations that a server sends, at 0, 1 and their maximum: the client pauses between its
//! requests, and no caller waits longer than the documented bound.

use std::future::IntoFuture;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcp_sansio::http::{
    Content, HttpClientOptions, HttpServerOptions, Location, Response, ResponseHead,
};
use mcp_sansio::jsonrpc::{ErrorObject, RawJson};
use mcp_sansio::peer::CacheOptions;
use mcp_sansio::peer::{HttpRejection, Status};
use mcp_sansio::protocol::Tool;
use mcp_sansio::{Instant, Revision, Revisions};
use mcp_sansio_handlers::{Host, NoArguments, Server};
use mcp_sansio_test::{Http, Pair, Script, Stream, URL};

use crate::text;

/// The texts of durations.
const DURATIONS: [&str; 5] =
    ["0", "1", "9007199254740991", "18446744073709551615", "99999999999999999999"];

const HOUR: Duration = Duration::from_secs(3600);
const PAUSE_MIN: Duration = Duration::from_millis(50);

fn host(revision: Revision) -> Host {
    Host::new("h", "1").revisions(Revisions::only(revision))
}

fn opened(
    script: Script,
    host: &Host,
) -> (
    mcp_sansio_handlers::Client,
    Pair<Stream<Script, mcp_sansio_handlers::endpoint::ClientEndpoint>>,
) {
    let (client, endpoint) = host.connect(7, Instant::ZERO);
    let mut pair = Pair::new(Stream::new(script, endpoint));
    pair.run(client.opened()).unwrap();
    (client, pair)
}

#[test]
fn the_interval_between_status_requests_has_bounds() {
    let modern = |interval: &str| {
        let rest = r#""taskId":"t","createdAt":"2026-07-28T00:00:00Z","lastUpdatedAt":"2026-07-28T00:00:00Z","ttlMs":null"#;
        let task = |more: &str| format!(r#"{{{rest},"pollIntervalMs":{interval},{more}}}"#);
        let working = task(r#""resultType":"complete","status":"working""#);
        let result = r#"{"resultType":"complete","content":[{"type":"text","text":"done"}]}"#;
        Script::new()
            .expect(r#"{"method":"server/discover"}"#)
            .reply(r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}},"ttlMs":0,"cacheScope":"private"}"#)
            .expect(r#"{"method":"tools/call"}"#)
            .reply(&task(r#""resultType":"task","status":"working""#))
            .expect(r#"{"method":"tasks/get"}"#)
            .reply(&working)
            .expect(r#"{"method":"tasks/get"}"#)
            .reply(&working)
            .expect(r#"{"method":"tasks/get"}"#)
            .reply(&task(&format!(r#""resultType":"complete","status":"completed","result":{result}"#)))
    };
    // A number beyond 64 bits is no interval.
    for interval in &DURATIONS[..4] {
        let host = host(Revision::LATEST).follow_tasks();
        let (client, mut pair) = opened(modern(interval), &host);
        let result = pair.run(client.call_tool("t", &NoArguments {})).unwrap();
        assert_eq!(text(&result), "done");
        let waited = pair.clock().elapsed();
        assert!(waited >= PAUSE_MIN * 3 && waited <= HOUR * 3, "{interval}: {waited:?}");
    }
}

#[test]
fn a_result_does_not_stay_fresh_for_ever() {
    for ttl in DURATIONS {
        let answer = format!(
            r#"{{"resultType":"complete","tools":[],"ttlMs":{ttl},"cacheScope":"private"}}"#
        );
        let mut script = Script::server(Revision::LATEST);
        for _ in 0..4 {
            script = script.expect(r#"{"method":"tools/list"}"#).reply(&answer);
        }
        let options = CacheOptions::DEFAULT;
        let (client, mut pair) = opened(script, &host(Revision::LATEST).cache(options.clone()));
        for _ in 0..2 {
            pair.run(client.list_tools(None)).unwrap();
            pair.run(client.list_tools(None)).unwrap();
            pair.advance(options.ttl_max);
        }
        let listed = pair.transcript.lines().iter();
        let listed = listed.filter(|line| line.contains(r#""method":"tools/list""#)).count();
        assert_eq!(listed, if ttl == "0" { 4 } else { 2 }, "{ttl}");
    }
}

/// Connects to a server that answers the GET of the listening stream with `answer`. Returns how
/// often the client asks for the stream in an hour, and whether it reports the loss.
fn listens(answer: impl Fn() -> Response + Send + 'static) -> (usize, bool) {
    let server = Server::new("s", "1").http(HttpServerOptions::new(), [7; 32], 7).unwrap();
    let lost = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&lost);
    let host = host(Revision::V2025_11_25).observe(move |event| {
        if matches!(event, mcp_sansio::peer::Event::EventStreamLost(_)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    let options = HttpClientOptions::new(Location::parse(URL).unwrap());
    let (client, endpoint) = host.connect_http(options, 7, Instant::ZERO);
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let transport = Http::new(server, endpoint).intercept(move |request| {
        let listens = request.method == "GET";
        count.fetch_add(usize::from(listens), Ordering::Relaxed);
        listens.then(&answer)
    });
    let mut pair = Pair::new(transport);
    pair.run(client.opened()).unwrap();
    for _ in 0..60 {
        pair.advance(Duration::from_secs(60));
    }
    (asked.load(Ordering::Relaxed), lost.load(Ordering::Relaxed) > 0)
}

#[test]
fn a_stream_is_reopened_after_a_pause_or_reported_as_lost() {
    // Rule: [SSE-008].
    for delay in DURATIONS {
        let text = format!("retry: {delay}\n\n");
        let (asked, lost) = listens(move || {
            let head = ResponseHead::new(Status::OK, Some(Content::EventStream));
            Response::new(head, text.clone().into_bytes())
        });
        let is_short = delay.len() == 1;
        // The server wants to be polled, and half of the first interval is fixed.
        assert!(if is_short { (2..=7_200).contains(&asked) } else { asked == 1 }, "{asked}");
        assert_eq!(lost, !is_short, "retry: {delay}");
    }
    for delay in [0, 1, u32::MAX] {
        let (asked, lost) = listens(move || {
            let error = ErrorObject::internal("down");
            let mut refusal = HttpRejection::new(Status::SERVICE_UNAVAILABLE, error);
            refusal.retry_after = Some(delay);
            refusal.to_response(None)
        });
        assert!(lost && asked <= 9, "Retry-After: {delay}: {asked}");
        assert_eq!(asked == 1, delay == u32::MAX, "Retry-After: {delay}: {asked}");
    }
}

#[test]
fn the_interval_of_a_requested_task_has_bounds() {
    let schema = RawJson::parse(r#"{"type":"object"}"#).unwrap();
    let tool = Tool::new("t", schema).execution(
        mcp_sansio::protocol::ToolExecution::new()
            .task_support(mcp_sansio::protocol::TaskSupport::Optional),
    );
    for interval in &DURATIONS[..4] {
        let task = |status: &str| {
            format!(
                r#""taskId":"t","status":"{status}","createdAt":"2026-07-28T00:00:00Z","lastUpdatedAt":"2026-07-28T00:00:00Z","ttl":null,"pollInterval":{interval}"#
            )
        };
        let script = Script::new()
            .expect(r#"{"method":"initialize"}"#)
            .reply(r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":{"requests":{"tools":{"call":{}}}}},"serverInfo":{"name":"s","version":"1"}}"#)
            .expect(r#"{"method":"notifications/initialized"}"#)
            .expect(r#"{"method":"tools/call"}"#)
            .reply(&format!(r#"{{"task":{{{}}}}}"#, task("working")))
            .expect(r#"{"method":"tasks/get"}"#)
            .reply(&format!("{{{}}}", task("working")))
            .expect(r#"{"method":"tasks/get"}"#)
            .reply(&format!("{{{}}}", task("completed")))
            .expect(r#"{"method":"tasks/result"}"#)
            .reply(r#"{"content":[{"type":"text","text":"done"}]}"#);
        let (client, mut pair) = opened(script, &host(Revision::V2025_11_25));
        let call = client.call_tool_as_task(&tool, &NoArguments {});
        let task = pair.run(call).unwrap();
        let mut result = pin!(task.result());
        let result = pair.run(result.as_mut().into_future()).unwrap();
        assert_eq!(text(&result), "done");
        let waited = pair.clock().elapsed();
        assert!(waited >= PAUSE_MIN * 2 && waited <= HOUR * 2, "{interval}: {waited:?}");
    }
}

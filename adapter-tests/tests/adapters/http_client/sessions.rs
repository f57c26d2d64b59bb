use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mcp_sansio_tokio::http::{HttpClientOptions, Location};
use mcp_sansio_tokio::{Connector, HttpConnection, Proxy, connect, connect_with};

use super::scripts::{
    answer_event, host, legacy, legacy_host, progress_event, progress_token, said,
};
use super::server::{Action, Server, answer, chunks, end, respond, stream};
use super::{text, within};

async fn call(client: &HttpConnection) -> String {
    let arguments = std::collections::BTreeMap::<String, String>::new();
    text(&client.call_tool("forecast", &arguments).await).to_owned()
}

#[tokio::test]
async fn every_request_carries_the_session_id_and_the_session_is_deleted() {
    // Rule: [SESS-004] [SESS-010].
    let server =
        Server::start(|asked, _| legacy(asked, "s1", |asked| answer(asked, "", &said("sunny"))))
            .await;
    within(async {
        let client = connect(&server.url(), &legacy_host()).await.unwrap();
        assert_eq!(call(&client).await, "sunny");
        client.close().await;
        let expected = [
            "POST - initialize",
            "POST s1 notifications/initialized",
            "GET s1",
            "POST s1 tools/call",
            "DELETE s1",
        ];
        assert_eq!(server.lines(), expected);
    })
    .await;
}

#[tokio::test]
async fn a_connection_that_is_dropped_ends_its_session() {
    let (ended, ends) = (Arc::new(tokio::sync::Notify::new()), Arc::new(AtomicBool::new(false)));
    let (tells, told) = (Arc::clone(&ended), Arc::clone(&ends));
    let server = Server::start(move |asked, _| {
        if asked.method == "DELETE" {
            told.store(true, Ordering::SeqCst);
            tells.notify_one();
        }
        legacy(asked, "s1", |_| unreachable!("no tool is called"))
    })
    .await;
    within(async {
        drop(connect(&server.url(), &legacy_host()).await.unwrap());
        ended.notified().await;
    })
    .await;
    assert!(ends.load(Ordering::SeqCst));
}

#[tokio::test]
async fn an_interrupted_stream_resumes_at_the_last_event() {
    // Rule: [RESUME-004] [SSE-008].
    let id = std::sync::Mutex::new(String::new());
    let server = Server::start(move |asked, _| {
        legacy(asked, "s1", |asked| {
            if let Some(last) = asked.field("last-event-id") {
                assert_eq!(last, "é2", "beyond ASCII, as browsers send it");
                let text = format!("id: e3\n{}", answer_event(&id.lock().unwrap(), "sunny"));
                return [vec![stream()], chunks(&text, 7), vec![end()]].concat();
            }
            *id.lock().unwrap() = asked.id().to_owned();
            let progress = progress_event(&progress_token(asked), 1);
            let text =
                format!("id: e1\nretry: 20\ndata:\n\nid: é2\n{progress}id: e3\ndata: {{\"js");
            // The stream ends without its final chunk.
            [vec![stream()], chunks(&text, 7), vec![Action::Close]].concat()
        })
    })
    .await;
    within(async {
        let client = connect(&server.url(), &legacy_host()).await.unwrap();
        let arguments = std::collections::BTreeMap::<String, String>::new();
        let result = client.call_tool("forecast", &arguments).on_progress(|_| ()).await;
        assert_eq!(text(&result), "sunny");
        assert!(client.last_failure().is_some(), "the lost stream is reported as the last failure");
        let lines = server.lines();
        assert_eq!(lines[3..], ["POST s1 tools/call", "GET s1"], "{lines:?}");
    })
    .await;
}

#[tokio::test]
async fn a_session_unknown_to_the_server_is_replaced() {
    // Rule: [SESS-009].
    let forgot = AtomicBool::new(false);
    let server = Server::start(move |asked, _| {
        let session = if forgot.load(Ordering::SeqCst) { "s2" } else { "s1" };
        legacy(asked, session, |asked| {
            if asked.field("mcp-session-id") == Some("s1") {
                forgot.store(true, Ordering::SeqCst);
                return respond(404, "", "");
            }
            answer(asked, "", &said("sunny"))
        })
    })
    .await;
    within(async {
        let client = connect(&server.url(), &legacy_host()).await.unwrap();
        assert_eq!(call(&client).await, "sunny");
        client.close().await;
        let lines = server.lines();
        let expected = [
            "POST s1 tools/call",
            "POST - initialize",
            "POST s2 notifications/initialized",
            "POST s2 tools/call",
            "DELETE s2",
        ];
        let lines: Vec<_> = lines[3..].iter().filter(|line| !line.starts_with("GET")).collect();
        assert_eq!(lines, expected);
    })
    .await;
}

#[tokio::test]
async fn the_era_of_a_server_is_probed_once_per_connector() {
    // Rule: [VER-018].
    let server = Server::start(|asked, _| legacy(asked, "s1", |_| respond(400, "", ""))).await;
    within(async {
        let connector = Connector::builder().proxy(Proxy::none()).build().unwrap();
        let options = || HttpClientOptions::new(Location::parse(&server.url()).unwrap());
        for _ in 0..3 {
            let client = connect_with(options(), &connector, &host()).await.unwrap();
            client.close().await;
        }
        let count = |message| server.asked().iter().filter(|asked| asked.is(message)).count();
        assert_eq!(count("server/discover"), 1);
        assert_eq!(count("initialize"), 3);
    })
    .await;
}

use std::sync::{Arc, Mutex};

use mcp_sansio_tokio::protocol::{ElicitParams, ElicitResult};
use mcp_sansio_tokio::{Client, HostRequest, connect};
use tokio::sync::Notify;

use super::scripts::{
    answer_event, host, legacy, legacy_host, modern, progress_event, progress_token, said,
};
use super::server::{Action, RecordedRequest, Server, answer, chunks, end, respond, stream};
use super::{text, within};

const NOTHING: [(&str, &str); 0] = [];

/// Calls a tool without arguments.
async fn call(client: &Client, tool: &str) -> String {
    let arguments = std::collections::BTreeMap::from(NOTHING);
    text(&client.call_tool(tool, &arguments).await).to_owned()
}

#[tokio::test]
async fn a_json_response_is_the_result() {
    let server =
        Server::start(|asked, _| modern(asked, |asked| answer(asked, "", &said("sunny")))).await;
    within(async {
        let client = connect(&server.url(), &host()).await.unwrap();
        assert_eq!(call(&client, "forecast").await, "sunny");
        client.close().await;
        let methods = ["server/discover", "tools/list", "tools/call"];
        assert_eq!(server.lines(), methods.map(|method| format!("POST - {method}")));
    })
    .await;
}

#[tokio::test]
async fn a_stream_is_read_in_chunks_of_any_size() {
    for length in [1, 2, 3, 5, 11, 64, 4096] {
        let server = Server::start(move |asked, _| {
            modern(asked, |asked| {
                let token = progress_token(asked);
                let mut text = String::from(": hello\r\n\r\n");
                text += &progress_event(&token, 1);
                text += &progress_event(&token, 2);
                text += &answer_event(asked.id(), "sunny");
                [vec![stream()], chunks(&text, length), vec![end()]].concat()
            })
        })
        .await;
        within(async {
            let client = connect(&server.url(), &host()).await.unwrap();
            let seen = Arc::new(Mutex::new(Vec::new()));
            let shown = Arc::clone(&seen);
            let arguments = std::collections::BTreeMap::from(NOTHING);
            let result = client
                .call_tool("forecast", &arguments)
                .on_progress(move |progress| shown.lock().unwrap().push(progress.progress))
                .await;
            assert_eq!(text(&result), "sunny");
            assert_eq!(*seen.lock().unwrap(), [1.0, 2.0], "chunks of {length}");
        })
        .await;
    }
}

#[tokio::test]
async fn a_slow_exchange_does_not_block_others_and_is_aborted_with_its_call() {
    // Rule: [HCLI-001] [CANC-017].
    let (begun, gone) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (begins, goes) = (Arc::clone(&begun), Arc::clone(&gone));
    let server = Server::start(move |asked, _| {
        modern(asked, |asked| {
            if asked.body.contains("slow") {
                begins.notify_one();
                return vec![stream(), Action::Held(Arc::clone(&goes))];
            }
            answer(asked, "", &said("quick"))
        })
    })
    .await;
    within(async {
        let client = connect(&server.url(), &host()).await.unwrap();
        let slow = call(&client, "slow");
        let quick = async {
            begun.notified().await;
            for _ in 0..3 {
                assert_eq!(call(&client, "fast").await, "quick");
            }
        };
        tokio::select! {
            biased;
            said = slow => panic!("unexpected result {said}"),
            () = quick => {}
        }
        // The slow call was aborted.
        gone.notified().await;
        assert_eq!(call(&client, "fast").await, "quick");
    })
    .await;
}

#[tokio::test]
async fn a_request_on_the_stream_of_a_call_is_answered_separately() {
    // Rule: [HCLI-005].
    let answered = Arc::new(Notify::new());
    let server = Server::start(move |asked: &RecordedRequest, _| {
        legacy(asked, "s1", |asked| {
            if !asked.is("tools/call") {
                // The response to the elicitation request.
                assert!(asked.body.contains(r#""action":"decline""#), "{}", asked.body);
                answered.notify_one();
                return respond(202, "", "");
            }
            let question = "data: {\"jsonrpc\":\"2.0\",\"id\":\"q\",\
                \"method\":\"elicitation/create\",\"params\":{\"message\":\"Sure?\",\
                \"requestedSchema\":{\"type\":\"object\",\"properties\":{}}}}\n\n";
            let answer = answer_event(asked.id(), "not booked");
            let wait = vec![Action::Wait(Arc::clone(&answered))];
            [vec![stream()], chunks(question, 9), wait, chunks(&answer, 9), vec![end()]].concat()
        })
    })
    .await;
    within(async {
        let host = legacy_host()
            .on_elicit(async |_: HostRequest<ElicitParams>| Ok(ElicitResult::decline()));
        let client = connect(&server.url(), &host).await.unwrap();
        assert_eq!(call(&client, "book").await, "not booked");
        client.close().await;
    })
    .await;
}

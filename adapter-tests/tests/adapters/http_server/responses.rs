//! All forms of responses.

use serde_json::json;

use super::served::{HandlerGate, Served, gated};
use super::wire::{Post, Wire, get, id_of, open_session, text, text_of};

#[tokio::test]
async fn plain_results_are_json_on_one_connection() {
    let served = Served::new(gated(&HandlerGate::new())).await;
    let mut wire = Wire::connect(served.address).await;
    for _ in 0..3 {
        let (head, body) = wire.ask(&Post::call("plain")).await;
        assert_eq!((head.status, head.field("content-type")), (200, Some("application/json")));
        assert_eq!(text(&body), "plain");
    }
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let served = Served::new(gated(&HandlerGate::new())).await;
    let mut wire = Wire::connect(served.address).await;
    wire.send(Post::call("plain").bytes().repeat(5)).await;
    for _ in 0..5 {
        assert_eq!(text(&wire.response().await.1), "plain");
    }
}

#[tokio::test]
async fn events_arrive_one_by_one_while_the_handler_waits() {
    let gate = HandlerGate::new();
    let served = Served::new(gated(&gate)).await;
    let mut wire = Wire::connect(served.address).await;
    wire.send(Post::call("progress").bytes()).await;
    let head = wire.head().await;
    assert_eq!((head.status, head.field("content-type")), (200, Some("text/event-stream")));
    assert_eq!(wire.message().await["params"]["message"], "before");
    gate.arrival().await;
    assert_eq!(gate.finished(), 0);
    gate.open.add_permits(1);
    assert_eq!(wire.message().await["params"]["message"], "after");
    assert_eq!(text_of(&wire.message().await), "reported");
    assert_eq!(wire.event().await, None);
    // The connection accepts the next request.
    assert_eq!(text(&wire.ask(&Post::call("plain")).await.1), "plain");
}

#[tokio::test]
async fn a_handler_that_only_returns_a_result_answers_as_json() {
    let gate = HandlerGate::new();
    let served = Served::new(gated(&gate)).await;
    let mut wire = Wire::connect(served.address).await;
    wire.send(Post::call("wait").bytes()).await;
    gate.arrival().await;
    gate.open.add_permits(1);
    let (head, body) = wire.response().await;
    assert_eq!(head.field("content-type"), Some("application/json"));
    assert_eq!(text(&body), "waited");
}

#[tokio::test]
async fn a_session_has_a_stream_for_server_messages() {
    let served = Served::new(gated(&HandlerGate::new())).await;
    let mut wire = Wire::connect(served.address).await;
    let session = open_session(&mut wire).await;
    let mut stream = Wire::connect(served.address).await;
    stream.send(get(&session, None)).await;
    assert_eq!(stream.head().await.status, 200);
    assert!(id_of(&stream.event().await.unwrap()).is_some());
    let edited = served.service.handle().edit_catalog(|catalog| {
        catalog.remove_tool("wait");
    });
    edited.unwrap();
    assert_eq!(stream.message().await["method"], "notifications/tools/list_changed");
    // Deleting the session ends the stream.
    wire.send(get(&session, None).replacen("GET", "DELETE", 1)).await;
    assert_eq!(wire.head().await.status, 204);
    assert_eq!(stream.event().await, None);
    let ping = json!({ "jsonrpc": "2.0", "id": 9, "method": "ping" });
    assert_eq!(wire.ask(&Post::legacy(&session, &ping)).await.0.status, 404);
}

#[tokio::test]
async fn a_returning_client_replaces_its_open_stream() {
    let served = Served::new(gated(&HandlerGate::new())).await;
    let session = open_session(&mut Wire::connect(served.address).await).await;
    let mut streams = Vec::new();
    for _ in 0..2 {
        let mut stream = Wire::connect(served.address).await;
        stream.send(get(&session, None)).await;
        assert_eq!(stream.head().await.status, 200);
        stream.event().await.unwrap();
        streams.push(stream);
    }
    assert_eq!(streams[0].event().await, None);
}

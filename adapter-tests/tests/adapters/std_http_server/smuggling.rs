//! Requests that two servers may interpret differently.

use std::time::Duration;

use mcp_sansio::http::HttpServerOptions;

use super::served::{HandlerGate, Served, gated};
use super::wire::{Post, Wire, text};

async fn served() -> Served {
    Served::new(gated(&HandlerGate::new())).await
}

/// Returns the status of the response to `request`. The connection must close after it.
async fn refusal(served: &Served, request: &str) -> u16 {
    let mut wire = Wire::connect(served.address).await;
    wire.send(request).await;
    let (head, _) = wire.response().await;
    // The rest of the request is not read as another one.
    assert_eq!(wire.closed().await, 0, "{:.500}", request);
    head.status
}

#[tokio::test]
async fn a_body_with_an_ambiguous_length_is_refused() {
    let served = served().await;
    let call = Post::call("plain");
    let (head, body) = (call.open_head(), &call.body);
    let length = body.len();
    for fields in [
        format!("Content-Length: {length}\r\nTransfer-Encoding: chunked\r\n"),
        format!("Content-Length: {length}\r\nContent-Length: 0\r\n"),
        format!("Content-Length: {length}, {length}\r\n"),
        format!("Content-Length: +{length}\r\n"),
        format!("Content-Length : {length}\r\n"),
        format!("Content-Length:\r\n {length}\r\n"),
        format!("X: y\r\n Content-Length: {length}\r\n"),
        format!("X: y\rContent-Length: {length}\r\n"),
    ] {
        assert_eq!(refusal(&served, &format!("{head}{fields}\r\n{body}")).await, 400, "{fields}");
    }
    let coded = format!("{head}Transfer-Encoding: gzip, chunked\r\n\r\n{body}");
    assert_eq!(refusal(&served, &coded).await, 400);
}

#[tokio::test]
async fn malformed_chunks_are_refused() {
    let served = served().await;
    let call = Post::call("plain");
    let (head, body) = (call.open_head(), &call.body);
    let size = format!("{:x}", body.len());
    for chunks in [
        format!("{size}\r\n{body}x\r\n0\r\n\r\n"),
        format!("{size}\r\n{body}\n0\r\n\r\n"),
        format!("{size}\n{body}\r\n0\r\n\r\n"),
        format!("{size};a\nb\r\n{body}\r\n0\r\n\r\n"),
        format!("0x{size}\r\n{body}\r\n0\r\n\r\n"),
        format!("ffffffffffffffffff\r\n{body}\r\n0\r\n\r\n"),
    ] {
        let request = format!("{head}Transfer-Encoding: chunked\r\n\r\n{chunks}");
        assert_eq!(refusal(&served, &request).await, 400, "{chunks}");
    }
}

#[tokio::test]
async fn trailers_and_chunk_extensions_are_skipped() {
    let served = served().await;
    let call = Post::call("plain");
    let (head, body) = (call.open_head(), &call.body);
    let chunked = format!(
        "{head}Transfer-Encoding: chunked\r\n\r\n{:x};a=b\r\n{body}\r\n0\r\nX: y\r\n\r\n",
        body.len()
    );
    let mut wire = Wire::connect(served.address).await;
    // All requests in one write, as a client may send them.
    wire.send(format!("{chunked}{}{chunked}", call.bytes())).await;
    for _ in 0..3 {
        assert_eq!(text(&wire.response().await.1), "plain");
    }
}

#[tokio::test]
async fn a_request_names_one_host() {
    let served = served().await;
    let request = Post::call("plain").bytes();
    let mut wire = Wire::connect(served.address).await;
    wire.send(request.replacen("\r\n", "\r\nHost: localhost\r\n", 1)).await;
    assert_eq!(wire.response().await.0.status, 400);
}

#[tokio::test]
async fn a_head_beyond_a_limit_is_refused() {
    let served = served().await;
    let long = Post::call("plain").with("X", "y".repeat(128 * 1024));
    assert_eq!(refusal(&served, &long.bytes()).await, 431);
    let many = format!("GET /mcp HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(101));
    assert_eq!(refusal(&served, &many).await, 431);
    assert_eq!(refusal(&served, "nonsense\r\n\r\n").await, 400);
    assert_eq!(refusal(&served, "GET /mcp HTTP/3.0\r\n\r\n").await, 400);
}

#[tokio::test]
async fn a_connection_whose_head_is_late_is_closed() {
    let tune =
        |listener: mcp_sansio_std::HttpListener| listener.head_timeout(Duration::from_millis(100));
    let served = Served::with(gated(&HandlerGate::new()), HttpServerOptions::new(), tune).await;
    let mut wire = Wire::connect(served.address).await;
    wire.send("POST /mcp HTTP/1.1\r\n").await;
    assert_eq!(wire.closed().await, 0);
    assert_eq!(Wire::connect(served.address).await.closed().await, 0);
}

#[tokio::test]
async fn connections_beyond_the_limit_wait_for_a_free_slot() {
    let tune = |listener: mcp_sansio_std::HttpListener| listener.connections_max(1);
    let served = Served::with(gated(&HandlerGate::new()), HttpServerOptions::new(), tune).await;
    let mut first = Wire::connect(served.address).await;
    assert_eq!(text(&first.ask(&Post::call("plain")).await.1), "plain");
    let mut second = Wire::connect(served.address).await;
    second.send(Post::call("plain").bytes()).await;
    assert_eq!(text(&first.ask(&Post::call("plain")).await.1), "plain");
    drop(first);
    assert_eq!(text(&second.response().await.1), "plain");
}

#[tokio::test]
async fn an_http_1_0_client_reads_its_stream_until_the_connection_closes() {
    let gate = HandlerGate::new();
    let served = Served::new(gated(&gate)).await;
    let mut wire = Wire::connect(served.address).await;
    wire.send(Post::call("progress").bytes().replacen("HTTP/1.1", "HTTP/1.0", 1)).await;
    let head = wire.head().await;
    assert_eq!((head.status, head.field("transfer-encoding")), (200, None));
    assert!(gate.let_pass().await);
    assert!(wire.closed().await > 0);
}

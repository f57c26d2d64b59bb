//! Request bodies that are too long, too slow or truncated.

use std::time::Duration;

use mcp_sansio::http::{HttpServerOptions, ServerLimits, ServerTimeouts};
use serde_json::json;

use super::served::{HandlerGate, Served, gated};
use super::wire::{Post, Wire, in_time, text};

async fn served(options: HttpServerOptions) -> Served {
    Served::with(gated(&HandlerGate::new()), options, |listener| listener).await
}

fn short() -> HttpServerOptions {
    let mut limits = ServerLimits::default();
    limits.body_bytes_max = 1000;
    HttpServerOptions::new().limits(limits)
}

#[tokio::test]
async fn a_length_beyond_the_limit_is_refused_before_the_body_is_read() {
    let served = served(short()).await;
    let mut wire = Wire::connect(served.address).await;
    wire.send(format!("{}Content-Length: 1001\r\n\r\n", Post::call("plain").open_head())).await;
    assert_eq!(wire.head().await.status, 413);
}

#[tokio::test]
async fn a_client_whose_head_is_refused_may_finish_its_body() {
    let served = served(short()).await;
    let mut wire = Wire::connect(served.address).await;
    wire.send(format!("{}Content-Length: 2000\r\n\r\n", Post::call("plain").open_head())).await;
    assert_eq!(wire.head().await.status, 413);
    // On a connection that was reset, one of the next writes fails.
    for _ in 0..20 {
        wire.send(" ".repeat(100)).await;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn chunks_beyond_the_limit_are_refused_before_the_body_ends() {
    let served = served(short()).await;
    let head = Post::call("plain").open_head();
    let mut wire = Wire::connect(served.address).await;
    wire.send(format!("{head}Transfer-Encoding: chunked\r\n\r\n")).await;
    let chunk = format!("200\r\n{}\r\n", " ".repeat(0x200));
    wire.send(chunk.repeat(2)).await;
    // The client keeps sending, and still receives the response.
    wire.send(chunk.repeat(1000)).await;
    assert_eq!(wire.head().await.status, 413);
}

#[tokio::test]
async fn chunks_within_the_limit_are_a_body() {
    let served = served(short()).await;
    let call = Post::call("plain");
    let mut wire = Wire::connect(served.address).await;
    wire.send(format!("{}Transfer-Encoding: chunked\r\n\r\n", call.open_head())).await;
    for byte in call.body.chars() {
        wire.send(format!("1\r\n{byte}\r\n")).await;
    }
    wire.send("0\r\n\r\n").await;
    assert_eq!(text(&wire.response().await.1), "plain");
}

#[tokio::test]
async fn a_trickling_body_times_out() {
    let mut timeouts = ServerTimeouts::default();
    timeouts.body = Duration::from_millis(200);
    let served = served(HttpServerOptions::new().timeouts(timeouts)).await;
    let mut wire = Wire::connect(served.address).await;
    wire.send(format!("{}Content-Length: 100\r\n\r\n", Post::call("plain").open_head())).await;
    let Wire { stream, .. } = &wire;
    let mut answered = false;
    for _ in 0..100 {
        let _sent = stream.try_write(b" ");
        let readable = tokio::time::timeout(Duration::from_millis(20), stream.readable());
        answered |= readable.await.is_ok();
        if answered {
            break;
        }
    }
    assert!(answered);
    assert_eq!(wire.head().await.status, 408);
}

#[tokio::test]
async fn a_truncated_body_is_not_a_message() {
    let gate = HandlerGate::new();
    let served = Served::new(gated(&gate)).await;
    let call = Post::call("wait");
    let mut wire = Wire::connect(served.address).await;
    let length = call.body.len();
    let head = format!("{}Transfer-Encoding: chunked\r\n\r\n", call.open_head());
    // The message is complete, but the body is not.
    wire.send(format!("{head}{length:x}\r\n{}\r\n", call.body)).await;
    drop(wire);
    // A later request is still served.
    let mut other = Wire::connect(served.address).await;
    assert_eq!(text(&other.ask(&Post::call("plain")).await.1), "plain");
    assert_eq!(gate.arrived.available_permits(), 0);
}

#[tokio::test]
async fn a_client_that_expects_100_continue_gets_it() {
    let served = served(short()).await;
    let call = Post::call("plain").with("Expect", "100-continue");
    let head = format!("{}Content-Length: {}\r\n\r\n", call.open_head(), call.body.len());
    let mut wire = Wire::connect(served.address).await;
    wire.send(head).await;
    assert_eq!(wire.head().await.status, 100);
    wire.send(&call.body).await;
    assert_eq!(text(&wire.response().await.1), "plain");
    // The same client is refused before it sends a body beyond the limit.
    let head = format!("{}Content-Length: 5000\r\n\r\n", call.open_head());
    wire.send(head).await;
    assert_eq!(wire.head().await.status, 413);
}

#[tokio::test]
async fn trickling_heads_time_out() {
    let gate = HandlerGate::new();
    let served = Served::with(gated(&gate), HttpServerOptions::new(), |listener| {
        listener.head_timeout(Duration::from_millis(200)).idle_timeout(Duration::from_millis(200))
    })
    .await;
    // Nothing, a part of an HTTP/1 head, a part of the HTTP/2 preface, and the whole preface.
    for part in ["", "POST /mcp HTTP/1.1\r\nHo", "PRI * HT", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"] {
        let mut wire = Wire::connect(served.address).await;
        wire.send(part).await;
        in_time(wire.closed()).await;
    }
    // The time of a response does not count, whether it has a body, no body or a stream.
    let mut wire = Wire::connect(served.address).await;
    let (head, _) = wire.ask(&Post::initialize()).await;
    let session = head.field("mcp-session-id").unwrap();
    let too_late = json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 99 },
    });
    let posts = [
        (200, Post::call("plain")),
        (202, Post::legacy(session, &too_late)),
        (200, Post::call("progress")),
        (404, Post::legacy("of nobody", &too_late)),
    ];
    for (status, post) in posts {
        for next in ["", "POST /mcp HTTP/1.1\r\nHo"] {
            let mut wire = Wire::connect(served.address).await;
            wire.send(post.bytes()).await;
            if post.body.contains("\"progress\"") {
                // Longer than a head may take.
                tokio::time::sleep(Duration::from_millis(300)).await;
                assert!(gate.let_pass().await);
            }
            assert_eq!(wire.response().await.0.status, status);
            wire.send(next).await;
            in_time(wire.closed()).await;
        }
    }
}

#[tokio::test]
async fn an_idle_connection_stays_open_for_longer_than_a_head_may_take() {
    let head_time = Duration::from_millis(200);
    let tune = |listener: super::served::Listener| listener.head_timeout(head_time);
    let served = Served::with(gated(&HandlerGate::new()), HttpServerOptions::new(), tune).await;
    let mut wire = Wire::connect(served.address).await;
    for _ in 0..2 {
        assert_eq!(text(&wire.ask(&Post::call("plain")).await.1), "plain");
        tokio::time::sleep(2 * head_time).await;
    }
    // A head that has begun is due.
    wire.send("POST /mcp HTTP/1.1\r\nHo").await;
    in_time(wire.closed()).await;
}

#[tokio::test]
async fn concurrent_bodies_share_a_temporary_limit() {
    let mut limits = ServerLimits::default();
    limits.bodies_bytes_max = 1000;
    let served = served(HttpServerOptions::new().limits(limits)).await;
    let call = Post::call("plain");
    // Each client has its own share, so it takes two to reach the limit of all.
    let mut slow = Vec::new();
    let mut other = Wire::connect_from([127, 0, 0, 3], served.address).await;
    let padding = " ".repeat(500);
    let length = call.body.len() + padding.len();
    let begun = format!("{}Content-Length: {length}\r\n\r\n{padding}", call.open_head());
    // `other` detects that a slow body is being read when it is refused with 503. A slow request
    // may itself be refused because of `other`, so the loop opens several.
    in_time(async {
        loop {
            let source = [127, 0, 0, if slow.len() % 2 == 0 { 1 } else { 2 }];
            slow.push(Wire::connect_from(source, served.address).await);
            slow.last_mut().unwrap().send(&begun).await;
            let (head, body) = other.ask(&call).await;
            if head.status == 503 {
                assert!(head.field("retry-after").is_some(), "{body}");
                break;
            }
            assert_eq!(text(&body), "plain");
        }
    })
    .await;
    drop(slow);
    in_time(async {
        while Wire::connect(served.address).await.ask(&call).await.0.status != 200 {}
    })
    .await;
}

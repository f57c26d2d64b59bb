//! HTTP/1.1 clients that waste resources: slow, idle, or sending without end.

use std::time::Duration;

use mcp_sansio::http::HttpServerOptions;
use mcp_sansio_handlers::{Call, NoArguments};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpSocket;

use super::served::{HandlerGate, Served, gated};
use super::wire::{Post, Wire, in_time, text};

const SHORT: Duration = Duration::from_millis(300);
const LONG: Duration = Duration::from_secs(3600);
/// The pause between two bytes of a slow client.
const PAUSE: Duration = Duration::from_millis(20);

/// Sends one byte at a time until the server closes the connection.
async fn trickle(wire: &mut Wire, bytes: &[u8]) {
    in_time(async {
        for byte in bytes.iter().cycle() {
            if wire.stream.write_all(&[*byte]).await.is_err() {
                return;
            }
            let ended = tokio::time::timeout(PAUSE, wire.closed());
            if ended.await.is_ok() {
                return;
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_head_sent_byte_by_byte_times_out() {
    let gate = HandlerGate::new();
    let tune = |listener: super::served::Listener| listener.head_timeout(SHORT).stall_timeout(LONG);
    let served = Served::with(gated(&gate), HttpServerOptions::new(), tune).await;
    let mut first = Wire::connect(served.address).await;
    trickle(&mut first, b"GET /mcp HTTP/1.1\r\nX: yyyyyyyyyyyyyyyyyyyyyyyyyyy").await;
    let mut second = Wire::connect(served.address).await;
    assert_eq!(text(&second.ask(&Post::call("plain")).await.1), "plain");
    trickle(&mut second, b"GET /mcp HTTP/1.1\r\nX: yyyyyyyyyyyyyyyyyyyyyyyyyyy").await;
    // Empty lines before a head are not part of it, and do not extend its timeout.
    let mut third = Wire::connect(served.address).await;
    trickle(&mut third, b"\r\n").await;
}

#[tokio::test]
async fn idle_connections_are_closed_to_admit_others() {
    let gate = HandlerGate::new();
    let tune = |listener: super::served::Listener| listener.head_timeout(SHORT).connections_max(16);
    let served = Served::with(gated(&gate), HttpServerOptions::new(), tune).await;
    let mut idle = Vec::new();
    for number in 0..64 {
        // None has more than its share.
        let mut wire = Wire::connect_from([127, 0, 0, 2 + number / 4], served.address).await;
        if number % 2 == 0 {
            wire.send("POST /mcp HTTP/1.1\r\n").await;
        }
        idle.push(wire);
    }
    let mut wire = Wire::connect(served.address).await;
    wire.send(Post::call("plain").bytes()).await;
    assert_eq!(text(&wire.response().await.1), "plain");
    for mut wire in idle {
        wire.closed().await;
    }
}

#[tokio::test]
async fn endless_requests_whose_responses_are_not_read_are_disconnected() {
    let gate = HandlerGate::new();
    let tune = |listener: super::served::Listener| listener.stall_timeout(SHORT);
    let server = gated(&gate).tool("large", "Much", |_: Call<NoArguments>| "x".repeat(200_000));
    let served = Served::with(server, HttpServerOptions::new(), tune).await;
    let mut flood = Wire::connect(served.address).await;
    let calls = Post::call("large").bytes().repeat(100);
    in_time(async { while flood.stream.write_all(calls.as_bytes()).await.is_ok() {} }).await;
    let mut other = Wire::connect(served.address).await;
    assert_eq!(text(&other.ask(&Post::call("plain")).await.1), "plain");
    in_time(served.service.close()).await;
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let served = Served::new(gated(&HandlerGate::new())).await;
    let mut wire = Wire::connect(served.address).await;
    let calls = Post::call("plain").bytes().repeat(500);
    wire.send(calls).await;
    for _ in 0..500 {
        assert_eq!(text(&wire.response().await.1), "plain");
    }
}

#[tokio::test]
async fn a_client_that_reads_too_slowly_is_disconnected() {
    let gate = HandlerGate::new();
    let tune = |listener: super::served::Listener| listener.stall_timeout(SHORT);
    let served = Served::with(gated(&gate), HttpServerOptions::new(), tune).await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut unread = Wire::from(socket.connect(served.address).await.unwrap());
    unread.send(Post::call("flood").bytes()).await;
    // Less than the limit for unread bytes, more than fits into the socket buffers.
    gate.open.add_permits(12);
    let (mut byte, stream) = ([0], &mut unread.stream);
    let take = async {
        use tokio::io::AsyncReadExt;
        while stream.read_exact(&mut byte).await.is_ok() {
            tokio::time::sleep(PAUSE).await;
        }
    };
    tokio::select! {
        () = take => {}
        () = gate.departure() => {}
    }
    in_time(served.service.close()).await;
}

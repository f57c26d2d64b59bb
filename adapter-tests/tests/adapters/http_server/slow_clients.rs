//! Clients that do not read.

use std::time::Duration;

use mcp_sansio::http::{HttpServerOptions, ServerLimits};
use tokio::net::TcpSocket;

use super::served::{HandlerGate, Served, gated};
use super::wire::{Post, Wire, in_time, text};

/// The maximum number of unread bytes held by socket buffers and hyper.
const IN_TRANSIT_MAX: usize = 8 << 20;

/// Connects a client with the smallest possible receive buffer.
async fn connect_without_reading(served: &Served) -> Wire {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    Wire::from(socket.connect(served.address).await.unwrap())
}

fn impatient() -> HttpServerOptions {
    let mut limits = ServerLimits::default();
    limits.unread_bytes_max = 4 << 20;
    HttpServerOptions::new().limits(limits)
}

#[tokio::test]
async fn an_unread_stream_stalls_no_other_and_is_disconnected() {
    let gate = HandlerGate::new();
    let served = Served::with(gated(&gate), impatient(), |listener| {
        // Long enough that the test does not depend on it.
        listener.stall_timeout(Duration::from_secs(3600))
    })
    .await;
    let mut unread = connect_without_reading(&served).await;
    unread.send(Post::call("flood").bytes()).await;
    let mut megabytes = 0;
    // The handler waits after each megabyte. Finally, it is dropped.
    while gate.let_pass().await {
        megabytes += 1;
        assert!(megabytes < 64, "the client has not been disconnected");
        let mut other = Wire::connect(served.address).await;
        assert_eq!(text(&other.ask(&Post::call("plain")).await.1), "plain");
    }
    assert!((megabytes << 20) <= IN_TRANSIT_MAX + (4 << 20), "{megabytes}");
    // The whole connection is closed, not only the handler, and long before the stall timeout.
    let came = in_time(unread.closed()).await;
    assert!(came <= IN_TRANSIT_MAX, "{came}");
    in_time(served.service.close()).await;
}

#[tokio::test]
async fn a_client_that_does_not_read_is_disconnected() {
    let gate = HandlerGate::new();
    let served = Served::with(gated(&gate), HttpServerOptions::new(), |listener| {
        listener.stall_timeout(Duration::from_millis(200))
    })
    .await;
    let mut unread = connect_without_reading(&served).await;
    unread.send(Post::call("flood").bytes()).await;
    // Less than the limit for unread bytes, more than fits into the socket buffers.
    for _ in 0..11 {
        if !gate.let_pass().await {
            return;
        }
    }
    gate.arrival().await;
    gate.departure().await;
    assert_eq!(gate.finished(), 11);
}

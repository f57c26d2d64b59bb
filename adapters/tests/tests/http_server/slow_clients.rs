//! Clients that do not read.

use std::time::Duration;

use mcp_sansio::http::ServerOptions;
use mcp_sansio::http::server::ServerLimits;
use tokio::net::TcpSocket;

use crate::served::{HandlerGate, Served, gated};
use crate::wire::{Post, Wire, in_time, text};

/// What the system and hyper hold, at most, of what a client does not read.
const ON_THE_WAY: usize = 8 << 20;

/// A client that takes as little as it can.
async fn connect_without_reading(served: &Served) -> Wire {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    Wire::from(socket.connect(served.address).await.unwrap())
}

fn impatient() -> ServerOptions {
    let mut limits = ServerLimits::default();
    limits.unread_bytes_max = 4 << 20;
    ServerOptions::new().limits(limits)
}

#[tokio::test]
async fn an_unread_stream_stalls_no_other_and_is_disconnected() {
    let gate = HandlerGate::new();
    let served = Served::with(gated(&gate), impatient(), |listener| {
        // Long enough to make the difference.
        listener.stall_timeout(Duration::from_secs(3600))
    })
    .await;
    let mut unread = connect_without_reading(&served).await;
    unread.send(Post::call("flood").bytes()).await;
    let mut megabytes = 0;
    // Each time it has sent a megabyte it waits; in the end it is gone instead.
    while gate.let_pass().await {
        megabytes += 1;
        assert!(megabytes < 64, "nobody has cut it off");
        let mut other = Wire::connect(served.address).await;
        assert_eq!(text(&other.ask(&Post::call("plain")).await.1), "plain");
    }
    assert!((megabytes << 20) <= ON_THE_WAY + (4 << 20), "{megabytes}");
    // The connection is over, not only the handler, and long before it stalls for too long.
    let came = in_time(unread.closed()).await;
    assert!(came <= ON_THE_WAY, "{came}");
    in_time(served.service.close()).await;
}

#[tokio::test]
async fn a_client_that_does_not_read_is_disconnected() {
    let gate = HandlerGate::new();
    let served = Served::with(gated(&gate), ServerOptions::new(), |listener| {
        listener.stall_timeout(Duration::from_millis(200))
    })
    .await;
    let mut unread = connect_without_reading(&served).await;
    unread.send(Post::call("flood").bytes()).await;
    // Less than may be unread, more than fits on the way.
    for _ in 0..11 {
        if !gate.let_pass().await {
            return;
        }
    }
    gate.arrival().await;
    gate.departure().await;
    assert_eq!(gate.finished(), 11);
}

//! Shutdown of a server.

use std::time::Duration;

use mcp_sansio::http::HttpServerOptions;
use tokio::net::TcpStream;

use super::served::{HandlerGate, Served, gated};
use super::wire::{Post, Wire, get, in_time, open_session, text};

#[tokio::test]
async fn only_requests_in_flight_are_completed() {
    let gate = HandlerGate::new();
    let mut served = Served::new(gated(&gate)).await;
    let address = served.address;
    let mut idle = Wire::connect(address).await;
    let session = open_session(&mut idle).await;
    let mut stream = Wire::connect(address).await;
    stream.send(get(&session, None)).await;
    assert_eq!(stream.head().await.status, 200);
    let fresh = Wire::connect(address).await;
    let mut call = Wire::connect(address).await;
    call.send(Post::call("wait").bytes()).await;
    gate.arrival().await;

    served.stop();
    // Open streams and idle connections are closed.
    while stream.event().await.is_some() {}
    stream.closed().await;
    idle.closed().await;
    drop(fresh);
    assert!(TcpStream::connect(address).await.is_err());
    gate.open.add_permits(1);
    let (head, body) = call.response().await;
    assert_eq!((text(&body).as_str(), head.field("connection")), ("waited", Some("close")));
    call.closed().await;
    served.ended().await;
}

#[tokio::test]
async fn a_client_that_is_too_slow_is_disconnected() {
    let gate = HandlerGate::new();
    let mut served = Served::with(gated(&gate), HttpServerOptions::new(), |listener| {
        listener.linger(Duration::from_millis(100))
    })
    .await;
    let mut call = Wire::connect(served.address).await;
    call.send(Post::call("wait").bytes()).await;
    gate.arrival().await;
    served.stop();
    served.ended().await;
    assert_eq!(call.closed().await, 0);
    gate.departure().await;
    assert_eq!(gate.finished(), 0);
}

#[tokio::test]
async fn close_returns_to_all_callers_once_requests_finish() {
    let gate = HandlerGate::new();
    let served = Served::new(gated(&gate)).await;
    let mut call = Wire::connect(served.address).await;
    call.send(Post::call("wait").bytes()).await;
    gate.arrival().await;
    let waiting = [(); 3].map(|()| {
        let service = served.service.clone();
        tokio::spawn(async move { service.close().await })
    });
    while call_is_served(&served).await {}
    assert!(waiting.iter().all(|waiting| !waiting.is_finished()));
    gate.open.add_permits(1);
    assert_eq!(text(&call.response().await.1), "waited");
    for waiting in waiting {
        in_time(waiting).await.unwrap();
    }
}

async fn call_is_served(served: &Served) -> bool {
    let mut wire = Wire::connect(served.address).await;
    let (head, _) = wire.ask(&Post::call("plain")).await;
    assert!(matches!(head.status, 200 | 503));
    head.status == 200
}

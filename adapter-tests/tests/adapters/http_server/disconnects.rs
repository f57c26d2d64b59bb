//! Clients that disconnect, and clients that reconnect.

use super::served::{HandlerGate, Served, gated};
use super::wire::{Post, Wire, get, id_of, open_session, text, text_of};

#[tokio::test]
async fn a_modern_client_that_disconnects_cancels_its_handler() {
    for tool in ["wait", "progress"] {
        let gate = HandlerGate::new();
        let served = Served::new(gated(&gate)).await;
        let mut wire = Wire::connect(served.address).await;
        wire.send(Post::call(tool).bytes()).await;
        if tool == "progress" {
            assert_eq!(wire.head().await.status, 200);
            assert_eq!(wire.message().await["params"]["message"], "before");
        }
        gate.arrival().await;
        drop(wire);
        gate.departure().await;
        assert_eq!(gate.finished(), 0);
    }
}

#[tokio::test]
async fn a_legacy_client_that_disconnects_can_resume_for_its_response() {
    let gate = HandlerGate::new();
    let served = Served::new(gated(&gate)).await;
    let mut wire = Wire::connect(served.address).await;
    let session = open_session(&mut wire).await;
    wire.send(Post::legacy_call(&session, "progress").bytes()).await;
    assert_eq!(wire.head().await.status, 200);
    let mut last = None;
    let report = loop {
        let event = wire.event().await.unwrap();
        last = id_of(&event).or(last);
        if event.contains("before") {
            break event;
        }
    };
    assert!(report.contains("notifications/progress"));
    gate.arrival().await;
    drop(wire);
    gate.open.add_permits(1);
    gate.departure().await;
    assert_eq!(gate.finished(), 1);
    let mut again = Wire::connect(served.address).await;
    again.send(get(&session, last.as_deref())).await;
    assert_eq!(again.head().await.status, 200);
    assert_eq!(again.message().await["params"]["message"], "after");
    assert_eq!(text_of(&again.message().await), "reported");
    assert_eq!(again.event().await, None);
}

#[tokio::test]
async fn a_released_connection_closes_and_can_be_resumed() {
    let gate = HandlerGate::new();
    let served = Served::new(gated(&gate)).await;
    let mut wire = Wire::connect(served.address).await;
    let session = open_session(&mut wire).await;
    wire.send(Post::legacy_call(&session, "release").bytes()).await;
    assert_eq!(wire.head().await.status, 200);
    let (mut last, mut retry) = (None, false);
    while let Some(event) = wire.event().await {
        last = id_of(&event).or(last);
        retry |= event.contains("retry: 1\n");
    }
    assert!(retry);
    assert_eq!(gate.finished(), 0);
    gate.arrival().await;
    let mut again = Wire::connect(served.address).await;
    again.send(get(&session, last.as_deref())).await;
    assert_eq!(again.head().await.status, 200);
    gate.open.add_permits(1);
    assert_eq!(text_of(&again.message().await), "came back");
    assert_eq!(again.event().await, None);
}

#[tokio::test]
async fn a_disconnected_client_leaves_no_state() {
    let gate = HandlerGate::new();
    let served = Served::new(gated(&gate)).await;
    for _ in 0..50 {
        let mut wire = Wire::connect(served.address).await;
        wire.send(Post::call("wait").bytes()).await;
        gate.arrival().await;
        drop(wire);
        gate.departure().await;
    }
    let mut wire = Wire::connect(served.address).await;
    assert_eq!(text(&wire.ask(&Post::call("plain")).await.1), "plain");
    // No request is in flight, so closing does not wait.
    super::wire::in_time(served.service.close()).await;
}

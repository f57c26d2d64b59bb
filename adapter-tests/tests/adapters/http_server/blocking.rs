//! Handlers that block a thread of a runtime with several threads.

use super::served::{HandlerGate, Served, gated};
use super::wire::{Post, Wire, in_time, text};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blocking_handler_does_not_block_other_requests() {
    let gate = HandlerGate::new();
    let served = Served::new(gated(&gate)).await;
    let mut blocked = Wire::connect(served.address).await;
    blocked.send(Post::call("block").bytes()).await;
    gate.arrival().await;
    // Not while the lock is held, because this inspects and closes the service.
    in_time(tokio::task::spawn_blocking({
        let service = served.service.clone();
        move || service.handle().resource_updated("test://resource")
    }))
    .await
    .unwrap()
    .unwrap();
    let mut other = Wire::connect(served.address).await;
    assert_eq!(text(&other.ask(&Post::call("plain")).await.1), "plain");
    gate.open.add_permits(1);
    assert_eq!(text(&blocked.response().await.1), "blocked");
}

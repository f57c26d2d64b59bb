//! Requests that are refused because of their head.

use super::served::{HandlerGate, Served, gated};
use super::wire::{Post, Wire};

#[tokio::test]
async fn each_refusal_has_its_status() {
    let served = Served::new(gated(&HandlerGate::new())).await;
    let call = Post::call("plain");
    let elsewhere = call.bytes().replacen("/mcp", "/other", 1);
    let put = call.bytes().replacen("POST", "PUT", 1);
    let cases = [
        (404, elsewhere),
        (405, put),
        (415, call.clone().with("Content-Type", "text/plain").bytes()),
        (415, call.clone().without("Content-Type").bytes()),
        (406, call.clone().with("Accept", "text/html").bytes()),
        (403, call.clone().with("Host", "evil.example").bytes()),
        (403, call.clone().with("Origin", "http://evil.example").bytes()),
        (400, call.clone().with("Mcp-Name", "another").bytes()),
        (400, call.clone().with("Host", "localhost\r\nHost: 127.0.0.1").bytes()),
    ];
    for (status, request) in cases {
        let mut wire = Wire::connect(served.address).await;
        wire.send(&request).await;
        let (head, body) = wire.response().await;
        assert_eq!(head.status, status, "{request}\n{body}");
        if status == 405 {
            assert!(head.field("allow").unwrap().contains("POST"));
        }
    }
}

#[tokio::test]
async fn the_host_of_an_absolute_target_is_checked() {
    let served = Served::new(gated(&HandlerGate::new())).await;
    let call = Post::call("plain").bytes();
    for (target, status) in [("http://localhost/mcp", 200), ("http://evil.example/mcp", 403)] {
        let mut wire = Wire::connect(served.address).await;
        wire.send(call.replacen("/mcp", target, 1)).await;
        assert_eq!(wire.head().await.status, status);
    }
}

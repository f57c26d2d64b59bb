//! Handlers that panic.

use mcp_sansio::handler::{Call, NoArguments, Server};
use mcp_sansio::peer::Event;
use serde_json::{Value, json};

use crate::served::{Gate, Served, gated};
use crate::wire::{Post, Wire, open_session, text};

fn clumsy(gate: &std::sync::Arc<Gate>) -> Server {
    gated(gate)
        .tool("panic", "Panics", |_: Call<NoArguments>| -> &str { panic!("at once") })
        .tool("panic-first", "Panics", async |_: Call<NoArguments>| -> &str { panic!("polled") })
        .tool("panic-later", "Panics", async |_: Call<NoArguments>| -> &str {
            tokio::task::yield_now().await;
            panic!("later")
        })
        .tool("panic-edit", "Panics", |call: Call<NoArguments>| {
            call.edit_catalog(|_| panic!("in an edit"));
            "edited"
        })
}

#[tokio::test]
async fn a_handler_that_panics_is_an_internal_error_and_nothing_more() {
    let gate = Gate::new();
    let served = Served::new(clumsy(&gate)).await;
    let mut wire = Wire::connect(served.address).await;
    let mut bystander = Wire::connect(served.address).await;
    bystander.send(Post::call("wait").bytes()).await;
    gate.arrival().await;
    for tool in ["panic", "panic-first", "panic-later", "panic-edit"] {
        let (head, body) = wire.ask(&Post::call(tool)).await;
        let answer: Value = serde_json::from_str(&body).unwrap();
        // What keeps the time may be first to take the edit; then the handler's answer stands.
        if tool == "panic-edit" && answer["error"].is_null() {
            assert_eq!(text(&body), "edited");
        } else {
            assert_eq!(answer["error"]["code"], json!(-32603), "{body}");
        }
        assert_eq!(head.status, 200, "{body}");
        assert!(!body.contains("panic"), "{body}");
        assert_eq!(text(&wire.ask(&Post::call("plain")).await.1), "plain");
    }
    let session = open_session(&mut wire).await;
    let (_, body) = wire.ask(&Post::legacy_call(&session, "panic-later")).await;
    assert!(body.contains("-32603"), "{body}");
    gate.open.add_permits(1);
    assert_eq!(text(&bystander.response().await.1), "waited");
}

#[tokio::test]
async fn an_edit_from_outside_that_panics_does_not_stop_the_time() {
    let gate = Gate::new();
    let served = Served::new(clumsy(&gate)).await;
    served.service.remote().edit_catalog(|_| panic!("from outside"));
    // Progress comes through the one who takes edits.
    let mut wire = Wire::connect(served.address).await;
    wire.send(Post::call("progress").bytes()).await;
    assert_eq!(wire.head().await.status, 200);
    assert_eq!(wire.message().await["params"]["message"], "before");
}

#[tokio::test]
async fn an_observer_that_panics_costs_a_request_and_no_more() {
    let server = gated(&Gate::new()).observe(|event| {
        if let Event::Request(request) = event {
            assert!(!request.params.as_str().contains("wait"), "an observer's panic");
        }
    });
    let served = Served::new(server).await;
    let mut wire = Wire::connect(served.address).await;
    wire.send(Post::call("wait").bytes()).await;
    wire.closed().await;
    let mut wire = Wire::connect(served.address).await;
    assert_eq!(text(&wire.ask(&Post::call("plain")).await.1), "plain");
    crate::wire::in_time(served.service.close()).await;
}

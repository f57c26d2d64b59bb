//! Handlers that panic.

use mcp_sansio::peer::Event;
use mcp_sansio_handlers::{Call, NoArguments, Server, blocking};
use serde_json::{Value, json};

use super::served::{HandlerGate, Served, gated};
use super::wire::{Post, Wire, open_session, text};

fn panicking(gate: &std::sync::Arc<HandlerGate>) -> Server {
    gated(gate)
        .tool("panic", "Panics", |_: Call<NoArguments>| -> &str { panic!("at once") })
        .tool("panic-first", "Panics", async |_: Call<NoArguments>| -> &str { panic!("polled") })
        .tool("panic-later", "Panics", async |_: Call<NoArguments>| -> &str {
            tokio::task::yield_now().await;
            panic!("later")
        })
        .tool(
            "panic-blocking",
            "Panics",
            blocking(|_: Call<NoArguments>| -> &str { panic!("blocks") }),
        )
        .tool("panic-edit", "Panics", |call: Call<NoArguments>| {
            call.edit_catalog(|_| panic!("in an edit")).unwrap();
            "edited"
        })
}

#[tokio::test]
async fn a_panicking_handler_is_answered_with_an_internal_error() {
    let gate = HandlerGate::new();
    let served = Served::new(panicking(&gate)).await;
    let mut wire = Wire::connect(served.address).await;
    let mut bystander = Wire::connect(served.address).await;
    bystander.send(Post::call("wait").bytes()).await;
    gate.arrival().await;
    // The edit is discarded, and the handler still returns its result.
    assert_eq!(text(&wire.ask(&Post::call("panic-edit")).await.1), "edited");
    for tool in ["panic", "panic-first", "panic-later", "panic-blocking"] {
        let (head, body) = wire.ask(&Post::call(tool)).await;
        let answer: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(answer["error"]["code"], json!(-32603), "{body}");
        assert_eq!(head.status, 200, "{body}");
        let message = format!("the handler of tool `{tool}` panicked");
        assert_eq!(answer["error"]["message"], message, "{body}");
        assert_eq!(text(&wire.ask(&Post::call("plain")).await.1), "plain");
    }
    let session = open_session(&mut wire).await;
    let (_, body) = wire.ask(&Post::legacy_call(&session, "panic-later")).await;
    assert!(body.contains("-32603"), "{body}");
    gate.open.add_permits(1);
    assert_eq!(text(&bystander.response().await.1), "waited");
}

#[tokio::test]
async fn a_panicking_edit_does_not_stop_the_timer() {
    let gate = HandlerGate::new();
    let served = Served::new(panicking(&gate)).await;
    served.service.handle().edit_catalog(|_| panic!("from outside")).unwrap();
    // Progress is delivered by the task that also applies the edits.
    let mut wire = Wire::connect(served.address).await;
    wire.send(Post::call("progress").bytes()).await;
    assert_eq!(wire.head().await.status, 200);
    assert_eq!(wire.message().await["params"]["message"], "before");
}

#[tokio::test]
async fn a_panicking_observer_is_answered_with_an_internal_error() {
    let server = gated(&HandlerGate::new()).observe(|event| {
        if let Event::Request(request) = event {
            assert!(!request.params.as_str().contains("wait"), "an observer's panic");
        }
    });
    let served = Served::new(server).await;
    let mut wire = Wire::connect(served.address).await;
    let (_, body) = wire.ask(&Post::call("wait")).await;
    let answer: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(answer["error"]["code"], json!(-32603), "{body}");
    assert_eq!(text(&wire.ask(&Post::call("plain")).await.1), "plain");
    super::wire::in_time(served.service.close()).await;
}

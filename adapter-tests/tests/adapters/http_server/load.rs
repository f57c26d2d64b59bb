//! Many concurrent clients.

use mcp_sansio_handlers::{Call, NoArguments};
use seeded_random::scaled;

use super::served::{HandlerGate, Served, gated, on_runtime};
use super::wire::{Post, Wire, get, in_time, open_session, text, text_of};

const CONNECTIONS: usize = 64;
const CALLS: u32 = 25;

/// The tools that each connection calls in rotation: handlers that return at once, that continue in
/// a task, and that send a notification first, which opens a stream.
const TOOLS: [&str; 4] = ["plain", "yield", "report", "elsewhere"];

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_one_of_many_calls_is_answered() {
    let server = gated(&HandlerGate::new())
        .tool("yield", "Goes on", async |_: Call<NoArguments>| {
            tokio::task::yield_now().await;
            "yield"
        })
        .tool("report", "Reports", async |call: Call<NoArguments>| {
            call.progress(1.0, None, "");
            tokio::task::yield_now().await;
            call.progress(2.0, None, "");
            "report"
        })
        .tool("elsewhere", "Waits for a task", async |_: Call<NoArguments>| {
            on_runtime(async { "elsewhere" }).await
        });
    let served = Served::new(server).await;
    let mut clients = tokio::task::JoinSet::new();
    let calls = scaled(CALLS) as usize;
    for client in 0..CONNECTIONS {
        let address = served.address;
        clients.spawn(async move {
            let mut wire = Wire::connect(address).await;
            let session = if client % 2 == 0 { None } else { Some(open_session(&mut wire).await) };
            for call in 0..calls {
                let tool = TOOLS[(client / 2 + call) % TOOLS.len()];
                let post = match &session {
                    None => Post::call(tool),
                    Some(session) => Post::legacy_call(session, tool),
                };
                assert_eq!(answer(&mut wire, &post).await, tool);
            }
        });
    }
    while let Some(ended) = in_time(clients.join_next()).await {
        ended.unwrap();
    }
    in_time(served.service.close()).await;
}

/// Returns the text of the response, which may be JSON or an event stream.
async fn answer(wire: &mut Wire, post: &Post) -> String {
    let (head, body) = wire.ask(post).await;
    if head.field("content-type") == Some("application/json") {
        return text(&body);
    }
    let last = body.lines().rev().find_map(|line| line.strip_prefix("data: "));
    text(last.unwrap_or_else(|| panic!("{body}")))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn clients_that_connect_and_disconnect_do_not_disturb_others() {
    let gate = HandlerGate::new();
    let served = Served::new(gated(&gate)).await;
    let address = served.address;
    let coming_and_going = tokio::spawn(async move {
        for _ in 0..300 {
            let mut wire = Wire::connect(address).await;
            wire.send(Post::call("wait").bytes()).await;
            drop(wire);
        }
    });
    let mut wire = Wire::connect(address).await;
    let session = open_session(&mut wire).await;
    let mut stream = Wire::connect(address).await;
    stream.send(get(&session, None)).await;
    assert_eq!(stream.head().await.status, 200);
    for _ in 0..300 {
        assert_eq!(text(&wire.ask(&Post::call("plain")).await.1), "plain");
        let edited = served.service.handle().edit_catalog(|catalog| {
            let tool = catalog.remove_tool("plain").unwrap();
            catalog.add_tool(tool, |_: Call<NoArguments>| "plain").unwrap();
        });
        edited.unwrap();
        assert_eq!(stream.message().await["method"], "notifications/tools/list_changed");
    }
    in_time(coming_and_going).await.unwrap();
    gate.open.add_permits(300);
    let mut last = Wire::connect(address).await;
    last.send(Post::call("progress").bytes()).await;
    assert_eq!(last.head().await.status, 200);
    assert_eq!(last.message().await["params"]["message"], "before");
    gate.open.add_permits(1);
    last.message().await;
    assert_eq!(text_of(&last.message().await), "reported");
}

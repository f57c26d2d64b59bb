//! Everything that clients share has a share for each address: while one address takes all that it
//! can, another is served within a second.

use std::future::Future;
use std::time::Duration;

use mcp_sansio::http::{HttpServerOptions, ServerLimits, SharedResource};
use mcp_sansio_handlers::{Call, NoArguments, Server};
use serde_json::Value;

use super::served::{HandlerGate, Listener, Served, gated};
use super::wire::{Head, Post, Wire, get, id_of, open_session, text};

const GREEDY: [u8; 4] = [127, 0, 0, 1];
const MODEST: [u8; 4] = [127, 0, 0, 2];

/// Connections of the greedy client, more than its share of anything.
const MANY: usize = 12;

/// Returns a server with the tools of [`gated`], and with `large`, whose result fits into no buffer,
/// `chatty`, which reports twenty times, and `burst`, whose reports fit into no buffer.
fn server() -> Server {
    gated(&HandlerGate::new())
        .tool("large", "Much", |_: Call<NoArguments>| "x".repeat(5_000_000))
        .tool("chatty", "Reports", |call: Call<NoArguments>| {
            for step in 0..20 {
                call.progress(f64::from(step), None, &"y".repeat(500));
            }
            "reported"
        })
        .tool("burst", "Reports much", |call: Call<NoArguments>| {
            for step in 0..30 {
                call.progress(f64::from(step), None, &"y".repeat(4000));
            }
            "reported"
        })
}

async fn serve(change: impl FnOnce(&mut ServerLimits)) -> Served {
    let mut limits = ServerLimits::DEFAULT;
    change(&mut limits);
    Served::with(server(), HttpServerOptions::new().limits(limits), |listener| listener).await
}

async fn connect_many(served: &Served) -> Vec<Wire> {
    let mut wires = Vec::new();
    for _ in 0..MANY {
        wires.push(Wire::connect_unread_from(GREEDY, served.address).await);
    }
    wires
}

/// Opens many connections that send these bytes and read nothing.
async fn send_on_many(served: &Served, bytes: &str) -> Vec<Wire> {
    let mut wires = connect_many(served).await;
    for wire in &mut wires {
        wire.send(bytes).await;
    }
    wires
}

/// Checks the response to a client beyond its share.
#[track_caller]
fn expect_refusal((head, body): &(Head, String)) {
    assert_eq!((head.status, head.field("retry-after")), (429, Some("10")), "{body:.200}");
    assert_eq!(head.field("content-type"), Some("application/json"));
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!(body["error"]["code"], -32600);
    let message = body["error"]["message"].as_str().unwrap();
    assert!(message.contains("this client"), "{message}");
}

/// Checks that one client of an address is refused. Which one depends on their order.
async fn expect_a_refusal(wires: &mut [Wire]) {
    for wire in wires.iter_mut().rev() {
        let response = tokio::time::timeout(Duration::from_millis(300), wire.response()).await;
        if let Ok(response) = response
            && response.0.status != 200
        {
            return expect_refusal(&response);
        }
    }
    panic!("none is refused");
}

/// Awaits the requests of a newcomer, within a time limit. They take less than a second on an idle
/// computer, and the limit leaves room for a busy one; a successful attack would delay them longer.
async fn soon<T>(newcomer: impl Future<Output = T>) -> T {
    let served = tokio::time::timeout(Duration::from_secs(5), newcomer).await;
    served.expect("a newcomer is served within a second")
}

/// Checks that a client at another address gets the result of a tool.
async fn serves_another(served: &Served, tool: &str) {
    let body = soon(async {
        let mut wire = Wire::connect_from(MODEST, served.address).await;
        wire.ask(&Post::call(tool)).await.1
    })
    .await;
    assert!(!text(&body).is_empty());
}

#[tokio::test]
async fn an_address_that_takes_all_it_can_does_not_keep_another_from_being_served() {
    let mut table = ServerLimits::DEFAULT.shared().to_vec();
    let served = Served::with(server(), HttpServerOptions::new(), |listener: Listener| {
        table.extend(listener.shared_limits());
        listener
    });
    serves_another(&served.await, "plain").await;
    for limit in table {
        assert!(limit.per_caller < limit.total, "{limit:?}");
        match limit.resource {
            SharedResource::Connections => connections().await,
            SharedResource::Exchanges => calls(|limits| limits.exchanges_max = 8).await,
            SharedResource::Handlers => calls(|limits| limits.handlers_max = 8).await,
            SharedResource::Sessions => sessions().await,
            SharedResource::BodyBytes => bodies().await,
            SharedResource::ResponseBytes => responses().await,
            SharedResource::KeptEventBytes => kept_events().await,
            SharedResource::UnreadEventBytes => unread_events().await,
            // Tested with the machine, where a store can be slow for one client alone.
            SharedResource::StoreReaders
            | SharedResource::StoreActions
            | SharedResource::StoreBytes => {}
            other => panic!("{other:?} has no attack"),
        }
    }
}

async fn connections() {
    let tune = |listener: Listener| listener.connections_max(16);
    let served = Served::with(server(), HttpServerOptions::new(), tune).await;
    let mut greedy = connect_many(&served).await;
    serves_another(&served, "plain").await;
    // A quarter of the connections are open. The client of another learns why it is not.
    assert_eq!(text(&greedy[3].ask(&Post::call("plain")).await.1), "plain");
    for refused in &mut greedy[4..] {
        refused.send(Post::call("plain").bytes()).await;
        expect_refusal(&refused.response().await);
        refused.closed().await;
    }
    // Once one is closed, another is accepted.
    drop(greedy.pop());
    drop(greedy.drain(..4));
    let again = async {
        loop {
            let mut wire = Wire::connect_from(GREEDY, served.address).await;
            if wire.ask(&Post::call("plain")).await.0.status == 200 {
                return;
            }
        }
    };
    soon(again).await;
}

async fn calls(change: impl FnOnce(&mut ServerLimits)) {
    let served = serve(change).await;
    let mut greedy = send_on_many(&served, &Post::call("wait").bytes()).await;
    serves_another(&served, "plain").await;
    expect_a_refusal(&mut greedy).await;
}

async fn sessions() {
    let served = serve(|limits| limits.sessions_max = 8).await;
    let mut greedy = send_on_many(&served, &Post::initialize().bytes()).await;
    let newcomer = async {
        let mut wire = Wire::connect_from(MODEST, served.address).await;
        open_session(&mut wire).await
    };
    soon(newcomer).await;
    // The sessions that an address left make room for its next, so none is refused.
    for wire in &mut greedy {
        assert_eq!(wire.response().await.0.status, 200);
    }
}

async fn bodies() {
    let served = serve(|limits| limits.bodies_bytes_max = 8000).await;
    let head = Post::call("plain").open_head();
    let begun = format!("{head}Content-Length: 5000\r\n\r\n{}", " ".repeat(1000));
    let mut greedy = send_on_many(&served, &begun).await;
    serves_another(&served, "plain").await;
    expect_a_refusal(&mut greedy).await;
}

async fn responses() {
    let tune = |listener: Listener| listener.held_bytes_max(25_000_000);
    let served = Served::with(server(), HttpServerOptions::new(), tune).await;
    let mut greedy = Vec::new();
    // One may exceed the share, and the buffers of the system take a part of each.
    for place in 0..6 {
        let mut wire = Wire::connect_unread_from(GREEDY, served.address).await;
        wire.send(Post::call("large").bytes()).await;
        // The next request comes once this response has begun.
        let head = wire.head().await;
        if head.status != 200 {
            let body = wire.body(&head).await;
            expect_refusal(&(head, body));
            break;
        }
        assert!(place < 5, "none is refused");
        greedy.push(wire);
    }
    serves_another(&served, "large").await;
    serves_another(&served, "plain").await;
}

async fn kept_events() {
    let served = serve(|limits| limits.replay_bytes_total_max = 80_000).await;
    let mut greedy = connect_many(&served).await;
    for wire in &mut greedy {
        let session = open_session(wire).await;
        for _ in 0..3 {
            wire.send(Post::legacy_call(&session, "chatty").bytes()).await;
            wire.head().await;
            while wire.event().await.is_some() {}
        }
    }
    let newcomer = async {
        let mut wire = Wire::connect_from(MODEST, served.address).await;
        let session = open_session(&mut wire).await;
        wire.send(Post::legacy_call(&session, "chatty").bytes()).await;
        wire.head().await;
        let first = loop {
            if let Some(id) = id_of(&wire.event().await.unwrap()) {
                break id;
            }
        };
        drop(wire);
        let mut wire = Wire::connect_from(MODEST, served.address).await;
        wire.send(get(&session, Some(&first))).await;
        assert_eq!(wire.head().await.status, 200, "its events are kept");
        let mut messages = 0;
        while let Some(event) = wire.event().await {
            messages += usize::from(event.contains("jsonrpc"));
        }
        messages
    };
    assert!(soon(newcomer).await >= 20);
}

async fn unread_events() {
    let served = serve(|limits| limits.unread_bytes_total_max = 200_000).await;
    let mut greedy = send_on_many(&served, &Post::call("burst").bytes()).await;
    for wire in &mut greedy {
        wire.head().await;
    }
    let newcomer = async {
        let mut wire = Wire::connect_from(MODEST, served.address).await;
        wire.send(Post::call("chatty").bytes()).await;
        wire.head().await;
        let mut messages = 0;
        while wire.event().await.is_some() {
            messages += 1;
        }
        messages
    };
    assert_eq!(soon(newcomer).await, 21);
}

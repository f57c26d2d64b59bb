//! A server as several shards.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;

use mcp_sansio::http::{HttpServerOptions, ServerLimits, SessionId, Shards};
use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::protocol::Tool;
use mcp_sansio_handlers::{Call, NoArguments};
use serde_json::{Value, json};

use super::adapter::{Error, HttpService};
use super::served::{HandlerGate, Served, gated, in_runtime, on_runtime};
use super::wire::{Post, Wire, get, id_of, open_session, text, text_of};

fn options(shards: usize) -> HttpServerOptions {
    HttpServerOptions::new().shards(NonZeroUsize::new(shards).unwrap())
}

async fn serve(gate: &Arc<HandlerGate>, options: HttpServerOptions) -> Served {
    Served::with(gated(gate), options, |listener| listener).await
}

/// Opens sessions until each shard has at least one, and returns one of each.
async fn session_in_each(address: SocketAddr, options: &HttpServerOptions) -> Vec<String> {
    let shards = Shards::new(options, 0).unwrap();
    let mut found = vec![None; shards.count()];
    let mut wire = Wire::connect(address).await;
    for _ in 0..64 {
        let session = open_session(&mut wire).await;
        let shard = shards.of_session(&SessionId::parse(session.as_bytes()).unwrap());
        found[shard] = Some(session);
        if let Some(all) = found.iter().cloned().collect::<Option<Vec<_>>>() {
            return all;
        }
    }
    panic!("a shard opens no session");
}

async fn delete(wire: &mut Wire, session: &str) -> u16 {
    wire.send(format!(
        "DELETE /mcp HTTP/1.1\r\nHost: localhost\r\nMCP-Protocol-Version: 2025-11-25\r\n\
         Mcp-Session-Id: {session}\r\n\r\n"
    ))
    .await;
    wire.response().await.0.status
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_of_all_shards_are_served_on_any_connection() {
    // Rule: [SESS-010] [RESUME-006].
    for count in [2, 3] {
        let gate = HandlerGate::new();
        let options = options(count);
        let served = serve(&gate, options.clone()).await;
        let address = served.address;
        for session in session_in_each(address, &options).await {
            let mut wire = Wire::connect(address).await;
            let plain = wire.ask(&Post::legacy_call(&session, "plain")).await;
            assert_eq!(text(&plain.1), "plain");
            // A stream breaks and continues on another connection.
            wire.send(Post::legacy_call(&session, "progress").bytes()).await;
            assert_eq!(wire.head().await.status, 200);
            let first = wire.event().await.unwrap();
            let first = id_of(&first).unwrap();
            gate.arrival().await;
            drop(wire);
            gate.open.add_permits(1);
            let mut again = Wire::connect(address).await;
            again.send(get(&session, Some(&first))).await;
            assert_eq!(again.head().await.status, 200);
            let mut messages = Vec::new();
            while messages.last().is_none_or(|last: &Value| last.get("result").is_none()) {
                messages.push(again.message().await);
            }
            let said: Vec<_> =
                messages.iter().filter_map(|it| it["params"]["message"].as_str()).collect();
            assert!(said.ends_with(&["after"]), "{messages:?}");
            assert_eq!(text_of(messages.last().unwrap()), "reported");
            let mut wire = Wire::connect(address).await;
            assert_eq!(delete(&mut wire, &session).await, 204);
            let gone = wire.ask(&Post::legacy_call(&session, "plain")).await;
            assert_eq!(gone.0.status, 404);
        }
    }
}

/// A modern request for a stream of changes of the tool list.
fn listen() -> Post {
    let mut post = Post::call("plain");
    let mut message: Value = serde_json::from_str(&post.body).unwrap();
    message["method"] = "subscriptions/listen".into();
    let meta = message["params"]["_meta"].take();
    message["params"] = json!({ "notifications": { "toolsListChanged": true }, "_meta": meta });
    post.body = message.to_string();
    post.without("Mcp-Name").with("Mcp-Method", "subscriptions/listen")
}

#[tokio::test]
async fn a_change_of_the_catalog_reaches_streams_in_all_shards() {
    let gate = HandlerGate::new();
    let options = options(3);
    let served = serve(&gate, options.clone()).await;
    let address = served.address;
    // Requests take turns, so these streams are in different shards.
    let mut streams = Vec::new();
    for _ in 0..6 {
        let mut wire = Wire::connect(address).await;
        wire.send(listen().bytes()).await;
        assert_eq!(wire.head().await.status, 200);
        let acknowledged = wire.message().await;
        assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
        streams.push(wire);
    }
    for session in session_in_each(address, &options).await {
        let mut wire = Wire::connect(address).await;
        wire.send(get(&session, None)).await;
        assert_eq!(wire.head().await.status, 200);
        streams.push(wire);
    }
    let tool = Tool::new("late", RawJson::parse(r#"{"type":"object"}"#).unwrap());
    let edited = served.service.handle().edit_catalog(|catalog| {
        catalog.add_tool(tool, |_: Call<NoArguments>| "late").unwrap();
    });
    edited.unwrap();
    for wire in &mut streams {
        // A stream with event ids begins with an event that has no message.
        assert_eq!(wire.message().await["method"], "notifications/tools/list_changed");
    }
    let mut wire = Wire::connect(address).await;
    for _ in 0..3 {
        assert_eq!(text(&wire.ask(&Post::call("late")).await.1), "late");
    }
}

#[tokio::test]
async fn clients_have_one_limit_in_all_shards() {
    let mut limits = ServerLimits::DEFAULT;
    (limits.sessions_per_caller_max, limits.exchanges_per_caller_max) = (4, 5);
    let gate = HandlerGate::new();
    let served = serve(&gate, options(3).limits(limits)).await;
    let address = served.address;
    let mut wire = Wire::connect(address).await;
    let mut sessions = Vec::new();
    for _ in 0..4 {
        sessions.push(open_session(&mut wire).await);
    }
    assert_eq!(wire.ask(&Post::initialize()).await.0.status, 429);
    assert_eq!(delete(&mut wire, &sessions[0]).await, 204);
    open_session(&mut wire).await;
    assert_eq!(wire.ask(&Post::initialize()).await.0.status, 429);
    // Five calls wait, in whatever shards.
    let mut waiting = Vec::new();
    for _ in 0..5 {
        let mut wire = Wire::connect(address).await;
        wire.send(Post::call("wait").bytes()).await;
        gate.arrival().await;
        waiting.push(wire);
    }
    for _ in 0..3 {
        assert_eq!(wire.ask(&Post::call("plain")).await.0.status, 429);
    }
    gate.open.add_permits(5);
    for wire in &mut waiting {
        assert_eq!(text(&wire.response().await.1), "waited");
    }
    assert_eq!(text(&wire.ask(&Post::call("plain")).await.1), "plain");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_clients_at_once_leave_nothing_behind() {
    let gate = HandlerGate::new();
    let options = options(2);
    let service = in_runtime(|| HttpService::new(&gated(&gate), options.clone()).unwrap());
    let served = Served::from_service(service.health("/health"), |listener| listener).await;
    let address = served.address;
    let clients: Vec<_> = (0..8)
        .map(|_| {
            tokio::spawn(async move {
                let mut wire = Wire::connect(address).await;
                for _ in 0..10 {
                    let session = open_session(&mut wire).await;
                    for _ in 0..5 {
                        let answered = wire.ask(&Post::legacy_call(&session, "plain")).await;
                        assert_eq!(text(&answered.1), "plain");
                        assert_eq!(text(&wire.ask(&Post::call("plain")).await.1), "plain");
                    }
                    assert_eq!(delete(&mut wire, &session).await, 204);
                }
            })
        })
        .collect();
    for client in clients {
        client.await.unwrap();
    }
    let mut wire = Wire::connect(address).await;
    wire.send("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    let (head, body) = wire.response().await;
    assert_eq!(head.status, 200);
    let health: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((&health["sessions"], &health["status"]), (&json!(0), &json!("ready")));
    let sessions = session_in_each(address, &options).await;
    assert_eq!(sessions.iter().collect::<BTreeSet<_>>().len(), 2);
    // All shards close.
    let closing = served.service.clone();
    on_runtime(async move { closing.close().await }).await;
    for session in sessions {
        let refused = Wire::connect(address).await.ask(&Post::legacy_call(&session, "plain")).await;
        assert_eq!(refused.0.status, 503);
    }
}

#[tokio::test]
async fn shards_cannot_have_a_store() {
    let options = options(2).event_store(mcp_sansio::http::EventStore::External);
    let server = gated(&HandlerGate::new());
    let refused = in_runtime(|| HttpService::new(&server, options));
    assert!(matches!(refused, Err(Error::Http(_))), "{refused:?}");
}

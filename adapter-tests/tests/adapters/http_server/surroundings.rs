//! What surrounds a request, as the token check, conditions of the catalog, middleware and handlers
//! see it.

use std::time::Duration;

use mcp_sansio::http::HttpServerOptions;
use mcp_sansio::protocol::CacheHints;
use mcp_sansio::{Caller, Principal};
use mcp_sansio_handlers::middleware::{MiddlewareResult, Next, ServerRequest};
use mcp_sansio_handlers::{Call, HandlerError, NoArguments, Server, ServerItem};
use mcp_sansio_oauth::protected_resource::{
    ProtectedResource, TokenCheck, TokenRefusal, VerifiedToken,
};
use serde_json::json;

use super::served::Served;
use super::wire::{Post, Wire, open_session_with, text};

/// Refuses the calls of a tenant, by a header field.
async fn only_open_tenants(request: ServerRequest, next: Next) -> MiddlewareResult {
    match request.header("x-tenant") {
        Some("closed") => Err(HandlerError::failed("this tenant is closed")),
        _ => next.run(request).await,
    }
}

/// A server whose tool tells what it sees, with a tool for one tenant.
fn server() -> Server {
    let tell = |call: Call<NoArguments>| {
        let header = |name| call.header(name).unwrap_or("-");
        let address = call.remote_address().expect("the listener knows it").ip();
        let client = call.client_info().map_or_else(|| "-".into(), |client| client.name);
        let (tenant, other) = (header("X-Tenant"), header("X-Other"));
        let who = call.principal().map_or("-", Principal::as_str);
        assert!(call.is_http());
        format!("{tenant} {other} {address} {client} {who} {}", call.meta().get("note").is_some())
    };
    let of_acme = ServerItem::tool("of_acme", "For one tenant", |_: Call<NoArguments>| "yes");
    let of_acme = of_acme.visible_if("acme", |caller| caller.header("x-tenant") == Some("acme"));
    Server::new("surrounded", "1")
        .keep_meta()
        .cache(CacheHints::public(Duration::from_secs(60)))
        .middleware(only_open_tenants)
        .tool("tell", "Tells what it sees", tell)
        .add_item(of_acme)
}

fn options() -> HttpServerOptions {
    HttpServerOptions::new().keep_headers(["X-Tenant"])
}

/// Returns the same call at 2026-07-28 and, in a session, at 2025-11-25.
async fn both_eras(wire: &mut Wire, tool: &str, fields: &[(&'static str, &str)]) -> [Post; 2] {
    let session = open_session_with(wire, fields).await;
    [Post::call(tool), Post::legacy_call(&session, tool)]
        .map(|post| fields.iter().fold(post, |post, (name, value)| post.with(name, *value)))
}

#[tokio::test]
async fn handlers_see_the_kept_headers_and_no_others() {
    let served = Served::with(server(), options(), |listener| listener).await;
    let mut wire = Wire::connect(served.address).await;
    let fields = [("X-Tenant", "acme"), ("X-Other", "secret")];
    let [modern, legacy] = both_eras(&mut wire, "tell", &fields).await;
    let (_, body) = wire.ask(&modern).await;
    assert_eq!(text(&body), "acme - 127.0.0.1 - - false");
    let (_, body) = wire.ask(&legacy).await;
    assert_eq!(text(&body), "acme - 127.0.0.1 test - false");
    // Each request has its own, also in a session.
    for post in [modern, legacy] {
        let (_, body) = wire.ask(&post.clone().without("X-Tenant")).await;
        assert!(text(&body).starts_with("- - "), "{body}");
        let repeated =
            Post { fields: [post.fields, vec![("x-tenant", "b".into())]].concat(), ..post };
        let (_, body) = wire.ask(&repeated).await;
        assert!(text(&body).starts_with("acme, b - "), "{body}");
    }
}

#[tokio::test]
async fn middleware_and_lists_decide_by_a_header_and_lists_are_not_shared() {
    let served = Served::with(server(), options(), |listener| listener).await;
    let mut wire = Wire::connect(served.address).await;
    for (tenant, is_shown) in [("acme", true), ("other", false)] {
        let fields = [("X-Tenant", tenant)];
        for post in both_eras(&mut wire, "of_acme", &fields).await {
            let (_, body) = wire.ask(&post).await;
            assert_eq!(body.contains("yes"), is_shown, "{tenant}: {body}");
        }
        let list = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            } },
        });
        let list = Post { body: list.to_string(), ..Post::call("any") }
            .without("Mcp-Name")
            .with("Mcp-Method", "tools/list")
            .with("X-Tenant", tenant);
        let (_, body) = wire.ask(&list).await;
        assert_eq!(body.contains("of_acme"), is_shown, "{body}");
        assert!(body.contains(r#""cacheScope":"private""#), "{body}");
    }
    for post in both_eras(&mut wire, "tell", &[("X-Tenant", "closed")]).await {
        let (_, body) = wire.ask(&post).await;
        assert_eq!(text(&body), "this tenant is closed");
    }
}

#[tokio::test]
async fn a_token_check_sees_the_headers_and_handlers_see_them_next_to_the_token() {
    let check = async |check: TokenCheck| {
        let tenant = check.sender().header("x-tenant").ok_or(TokenRefusal::Invalid)?;
        assert!(check.sender().remote_address().is_some());
        let principal = Principal::new(format!("{tenant}|{}", check.token()));
        Ok(VerifiedToken::new(principal).audiences([check.resource()]))
    };
    let resource = ProtectedResource::without_issuer("http://localhost/mcp").unwrap();
    let server = server().protect(resource, check);
    let served = Served::with(server, options(), |listener| listener).await;
    let mut wire = Wire::connect(served.address).await;
    let fields = [("Authorization", "Bearer ann"), ("X-Tenant", "acme")];
    for post in both_eras(&mut wire, "tell", &fields).await {
        let (_, body) = wire.ask(&post).await;
        let seen = text(&body);
        assert!(seen.starts_with("acme - 127.0.0.1 "), "{seen}");
        assert!(seen.contains(" acme|ann "), "{seen}");
        let (head, _) = wire.ask(&post.without("X-Tenant")).await;
        assert_eq!(head.status, 401);
    }
}

#[tokio::test]
async fn kept_headers_that_are_too_long_or_no_text_are_refused_whole() {
    let served = Served::with(server(), options(), |listener| listener).await;
    let mut wire = Wire::connect(served.address).await;
    for (value, status) in [("x".repeat(4 * 1024), 431), ("x".repeat(2 * 1024), 200)] {
        let (head, body) = wire.ask(&Post::call("tell").with("X-Tenant", value)).await;
        assert_eq!(head.status, status, "{body}");
    }
    let long = Post::call("tell").with("X-Other", "x".repeat(4 * 1024));
    assert_eq!(wire.ask(&long).await.0.status, 200);
    let head = Post::call("tell").with("X-Tenant", "~").bytes();
    wire.send(head.bytes().map(|byte| if byte == b'~' { 0xff } else { byte }).collect::<Vec<_>>())
        .await;
    assert_eq!(wire.response().await.0.status, 400);
}

#[tokio::test]
async fn a_server_that_keeps_nothing_shows_nothing() {
    let seen = |call: Call<NoArguments>| {
        let is_alone = call.header("x-tenant").is_none() && call.extension::<Caller>().is_none();
        format!("{is_alone} {} {:?}", call.meta(), call.client_info())
    };
    let server = Server::new("bare", "1").tool("see", "", seen);
    let served = Served::new(server).await;
    let mut wire = Wire::connect(served.address).await;
    for post in both_eras(&mut wire, "see", &[("X-Tenant", "acme")]).await {
        let (_, body) = wire.ask(&post).await;
        assert_eq!(text(&body), "true {} None");
    }
}

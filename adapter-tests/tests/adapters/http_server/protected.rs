//! A server that requires tokens. Its token check trusts the contents of the token.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use mcp_sansio::Principal;
use mcp_sansio::http::{HttpServerOptions, Location};
use mcp_sansio_oauth::protected_resource::{
    Operation, ProtectedResource, TokenCheck, TokenRefusal, VerifiedToken,
};
use mcp_sansio_oauth::{BearerChallenge, Challenge, ProtectedResourceMetadata};
use tokio::sync::Semaphore;

use super::adapter::{Call, HttpService, NoArguments, Server};
use super::served::{HandlerGate, Served, gated, in_runtime};
use super::wire::{Head, Post, Wire, get, in_time, open_session_with, text};

const URI: &str = "http://localhost/mcp";

fn resource() -> ProtectedResource {
    let resource = ProtectedResource::new(URI, ["https://auth.example.com"]).unwrap();
    let resource = resource.base_scopes(["use"]).unwrap();
    resource.scopes_for(Operation::tool("delete"), ["write"]).unwrap()
}

/// Parses a token of the form `name/scope+scope/…`. An optional third part names a defect.
fn read(check: &TokenCheck) -> Result<VerifiedToken, TokenRefusal> {
    let parts: Vec<&str> = check.token().split('/').collect();
    let [name, scopes, rest @ ..] = &parts[..] else { return Err(TokenRefusal::Invalid) };
    let token = VerifiedToken::new(Principal::new(*name)).scopes(scopes.split('+'));
    match rest {
        ["old"] => Ok(token.audiences([check.resource()]).expires_at(check.unix_time() - 1)),
        ["other"] => Ok(token.audiences(["http://localhost/other"])),
        ["panic"] => panic!("at once"),
        _ => Ok(token.audiences([check.resource()]).expires_at(check.unix_time() + 60)),
    }
}

fn tools(server: Server) -> Server {
    server
        .tool("who", "Tells", |call: Call<NoArguments>| {
            let who = call.principal().map_or("nobody", Principal::as_str);
            format!("{who}: {}", call.scopes().join(" "))
        })
        .tool("delete", "Deletes", |_: Call<NoArguments>| "deleted")
        .tool("look", "Looks first", async |call: Call<NoArguments>| {
            tokio::task::yield_now().await;
            call.require_scopes(&["write"])?;
            Ok("written")
        })
}

/// Returns a server whose token check never finishes for `hang`, and panics after a delay for
/// `late`.
fn server() -> Server {
    let check = async |check: TokenCheck| {
        tokio::task::yield_now().await;
        match check.token() {
            "hang" => std::future::pending().await,
            "late" => panic!("later"),
            _ => read(&check),
        }
    };
    let resource = resource().check_time(Duration::from_millis(300));
    tools(gated(&HandlerGate::new())).protect(resource, check)
}

fn with(post: Post, token: &str) -> Post {
    post.with("Authorization", format!("Bearer {token}"))
}

fn challenge(head: &Head) -> BearerChallenge {
    let field = head.field("www-authenticate").expect("a challenge");
    BearerChallenge::select(&Challenge::parse([field.as_bytes()])).expect("a Bearer challenge")
}

#[tokio::test]
async fn a_client_follows_the_challenge_and_the_metadata_to_a_result() {
    // Rule: [AUTHS-001] [AUTHS-008] [AUTHS-009] [AUTHS-010] [AUTHS-011].
    let served = Served::new(server()).await;
    let mut wire = Wire::connect(served.address).await;
    let (head, _) = wire.ask(&Post::call("who")).await;
    assert_eq!(head.status, 401);
    let challenge = challenge(&head);
    assert_eq!((challenge.error, challenge.scope.as_deref()), (None, Some("use")));
    let url = Location::parse(&challenge.resource_metadata.unwrap()).unwrap();
    let target = url.path_and_query();
    wire.send(format!("GET {target} HTTP/1.1\r\nHost: {}\r\n\r\n", url.authority())).await;
    let (head, body) = wire.response().await;
    assert_eq!((head.status, head.field("content-type")), (200, Some("application/json")));
    assert_eq!(head.field("access-control-allow-origin"), Some("*"));
    let metadata = ProtectedResourceMetadata::parse(body.as_bytes()).unwrap();
    assert_eq!(metadata.issuers().unwrap(), ["https://auth.example.com"]);
    let resource = metadata.resource_for(&Location::parse(URI).unwrap()).unwrap();
    assert_eq!(resource.as_str(), URI);
    let (head, body) = wire.ask(&with(Post::call("who"), "ann/use")).await;
    assert_eq!((head.status, text(&body).as_str()), (200, "ann: use"));
}

#[tokio::test]
async fn health_checks_tell_other_hosts_the_status_only_and_strangers_no_counts() {
    let gate = HandlerGate::new();
    for (server, has_counts) in [(server(), false), (gated(&gate), true)] {
        let service = in_runtime(|| HttpService::new(&server, HttpServerOptions::new()).unwrap());
        let served = Served::from_service(service.health("/health"), |listener| listener).await;
        let mut wire = Wire::connect(served.address).await;
        for (fields, is_allowed) in [
            ("Host: localhost\r\n", true),
            ("Host: 127.0.0.1:8000\r\n", true),
            ("Host: localhost\r\nOrigin: http://localhost:5173\r\n", true),
            ("Host: rebound.example\r\n", false),
            ("Host: localhost\r\nOrigin: https://rebound.example\r\n", false),
            // As the checks of Kubernetes and of AWS.
            ("Host: 10.244.0.5:8000\r\n", false),
        ] {
            wire.send(format!("GET /health HTTP/1.1\r\n{fields}\r\n")).await;
            let (head, body) = wire.response().await;
            assert_eq!(head.status, 200, "{fields}");
            assert_eq!(body.is_empty(), !is_allowed, "{fields}: {body}");
            assert_eq!(body.contains("\"status\":\"ready\""), is_allowed, "{body}");
            assert_eq!(body.contains("\"sessions\":0"), is_allowed && has_counts, "{body}");
        }
    }
}

#[tokio::test]
async fn a_token_is_checked_before_the_body_arrives() {
    // Rule: [AUTHS-012] [SEC-011].
    let served = Served::new(server()).await;
    for (post, status) in [
        (Post::call("who"), 401),
        (with(Post::call("who"), "nonsense"), 401),
        (with(Post::call("who"), "ann/use/old"), 401),
        (with(Post::call("who"), "ann/use/other"), 401),
        (with(Post::call("who"), "a b"), 400),
    ] {
        let mut wire = Wire::connect(served.address).await;
        wire.send(format!("{}Content-Length: 500\r\n\r\n", post.open_head())).await;
        let head = wire.head().await;
        assert_eq!(head.status, status, "{post:?}");
        let error = if status == 400 { "invalid_request" } else { "invalid_token" };
        let sent = post.fields.iter().any(|(name, _)| *name == "Authorization");
        assert_eq!(challenge(&head).error.as_deref(), sent.then_some(error));
    }
}

#[tokio::test]
async fn a_request_with_insufficient_scope_is_answered_403_in_both_eras() {
    // Rule: [AUTHS-002] [AUTHS-015] [AUTHS-018].
    let served = Served::new(server()).await;
    let mut wire = Wire::connect(served.address).await;
    let bearer = |token: &str| format!("Bearer {token}");
    let session = open_session_with(&mut wire, &[("Authorization", &bearer("ann/use"))]).await;
    // At dispatch, and from within a running handler.
    for tool in ["delete", "look"] {
        for post in [Post::call(tool), Post::legacy_call(&session, tool)] {
            let (head, body) = wire.ask(&with(post.clone(), "ann/use")).await;
            assert_eq!(head.status, 403, "{body}");
            let challenge = challenge(&head);
            assert_eq!(challenge.error.as_deref(), Some("insufficient_scope"));
            assert_eq!(challenge.scope.as_deref(), Some("use write"));
            let (head, body) = wire.ask(&with(post, "ann/use+write")).await;
            assert_eq!(head.status, 200, "{body}");
        }
    }
}

#[tokio::test]
async fn the_session_of_another_principal_is_not_found() {
    // Rule: [SESS-014] [SEC-011].
    let served = Served::new(server()).await;
    let mut wire = Wire::connect(served.address).await;
    let session = open_session_with(&mut wire, &[("Authorization", "Bearer ann/use")]).await;
    for (token, status) in [("ann/use", 200), ("bob/use", 404), ("ann/use/old", 401)] {
        let (head, body) = wire.ask(&with(Post::legacy_call(&session, "who"), token)).await;
        assert_eq!(head.status, status, "{token}: {body}");
    }
    let stream = get(&session, None);
    let stream = stream.replacen("\r\n", "\r\nAuthorization: Bearer bob/use\r\n", 1);
    wire.send(stream).await;
    assert_eq!(wire.head().await.status, 404);
}

#[tokio::test]
async fn a_token_check_that_hangs_or_panics_is_answered_503() {
    let served = Served::new(server()).await;
    let mut hanging = Wire::connect(served.address).await;
    hanging.send(with(Post::call("who"), "hang").bytes()).await;
    let mut wire = Wire::connect(served.address).await;
    for token in ["late", "ann/use/panic"] {
        let (head, body) = wire.ask(&with(Post::call("who"), token)).await;
        assert_eq!((head.status, head.field("www-authenticate")), (503, None));
        assert!(head.field("retry-after").is_some() && !body.contains("later"), "{body}");
        let (_, body) = wire.ask(&with(Post::call("who"), "ann/use")).await;
        assert_eq!(text(&body), "ann: use");
    }
    assert_eq!(in_time(hanging.head()).await.status, 503);
    in_time(served.service.close()).await;
}

#[tokio::test]
async fn a_pending_token_check_blocks_no_other_request_and_is_dropped_on_disconnect() {
    let arrived = Arc::new(Semaphore::new(0));
    let gone = Arc::new(Semaphore::new(0));
    let (here, there) = (Arc::clone(&arrived), Arc::clone(&gone));
    let check = move |check: TokenCheck| {
        let (arrived, gone) = (Arc::clone(&here), Arc::clone(&there));
        async move {
            if check.token() == "hang" {
                let _leaving = DepartureGuard(gone);
                arrived.add_permits(1);
                std::future::pending::<()>().await;
            }
            read(&check)
        }
    };
    let resource = resource().check_time(Duration::from_secs(3600));
    let served = Served::new(tools(Server::new("s", "1")).protect(resource, check)).await;
    let mut hanging = Wire::connect(served.address).await;
    hanging.send(with(Post::call("who"), "hang").bytes()).await;
    in_time(arrived.acquire()).await.unwrap().forget();
    let mut wire = Wire::connect(served.address).await;
    let (_, body) = wire.ask(&with(Post::call("who"), "ann/use")).await;
    assert_eq!(text(&body), "ann: use");
    assert_eq!(gone.available_permits(), 0);
    drop(hanging);
    in_time(gone.acquire()).await.unwrap().forget();
}

struct DepartureGuard(Arc<Semaphore>);

impl Drop for DepartureGuard {
    fn drop(&mut self) {
        self.0.add_permits(1);
    }
}

#[tokio::test]
async fn the_principal_comes_from_the_token_and_the_token_is_never_exposed() {
    let seen = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&seen);
    let server = server().observe(move |event| {
        count.fetch_add(1, Ordering::SeqCst);
        assert!(!format!("{event:?}").contains("ann/use"), "an event contains the token");
    });
    let service = in_runtime(|| HttpService::new(&server, HttpServerOptions::new()).unwrap());
    let post = with(Post::call("who"), "ann/use");
    let mut request = http::Request::post("/mcp").extension(Principal::new("bob"));
    for (name, value) in &post.fields {
        request = request.header(*name, value);
    }
    let body: Full<bytes::Bytes> = Full::from(post.body.clone());
    let response = service.serve(request.body(body).unwrap()).await;
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(text(std::str::from_utf8(&body).unwrap()), "ann: use");
    assert_eq!(seen.load(Ordering::SeqCst), 1);
    assert!(!format!("{service:?}").contains("ann/use"));
}

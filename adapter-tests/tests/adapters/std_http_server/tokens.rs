//! A server that requires tokens.

use std::time::Duration;

use mcp_sansio::Principal;
use mcp_sansio_handlers::{Call, NoArguments, Server};
use mcp_sansio_oauth::protected_resource::{
    ProtectedResource, TokenCheck, TokenRefusal, VerifiedToken,
};
use mcp_sansio_std::adapter::Timer;
use mcp_sansio_std::{Clock, now};

use super::served::Served;
use super::wire::{Post, Wire, text};

async fn served() -> Served {
    let resource =
        ProtectedResource::new("http://localhost/mcp", ["https://auth.example.com"]).unwrap();
    let resource = resource.check_time(Duration::from_millis(300));
    let check = async |check: TokenCheck| {
        // A wait that only ends if this adapter's timer thread wakes the check.
        let (mut clock, soon) = (Clock::new(), now() + Duration::from_millis(1));
        std::future::poll_fn(|cx| clock.poll_until(cx, soon)).await;
        match check.token() {
            "ann" => Ok(VerifiedToken::new(Principal::new("ann")).audiences([check.resource()])),
            "hang" => std::future::pending().await,
            "panic" => panic!("the check panics"),
            _ => Err(TokenRefusal::Invalid),
        }
    };
    let server = Server::new("test", "1")
        .tool("who", "Tells", |call: Call<NoArguments>| {
            call.principal().map_or("nobody", Principal::as_str).to_owned()
        })
        .protect(resource, check);
    Served::new(server).await
}

#[tokio::test]
async fn a_token_is_checked_before_anything_else() {
    let served = served().await;
    for (token, status) in
        [(None, 401), (Some("bob"), 401), (Some("hang"), 503), (Some("panic"), 503)]
    {
        let mut call = Post::call("who");
        if let Some(token) = token {
            call = call.with("Authorization", format!("Bearer {token}"));
        }
        let mut wire = Wire::connect(served.address).await;
        let (head, _) = wire.ask(&call).await;
        assert_eq!(head.status, status, "{token:?}");
        assert_eq!(head.field("www-authenticate").is_some(), status == 401, "{token:?}");
    }
    let call = Post::call("who").with("Authorization", "Bearer ann");
    let mut wire = Wire::connect(served.address).await;
    for _ in 0..2 {
        assert_eq!(text(&wire.ask(&call).await.1), "ann");
    }
}

#[tokio::test]
async fn the_metadata_needs_no_token() {
    let served = served().await;
    let mut wire = Wire::connect(served.address).await;
    wire.send("GET /.well-known/oauth-protected-resource/mcp HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await;
    let (head, body) = wire.response().await;
    assert_eq!(head.status, 200);
    assert!(body.contains("https://auth.example.com"), "{body}");
}

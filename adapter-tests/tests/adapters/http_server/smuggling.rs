//! Request heads that two implementations may interpret differently.

use mcp_sansio::Principal;
use mcp_sansio_oauth::protected_resource::{
    ProtectedResource, TokenCheck, TokenRefusal, VerifiedToken,
};

use super::adapter::Server;
use super::served::{HandlerGate, Served, gated};
use super::wire::{Post, Wire};

/// Returns a server that accepts the tokens `ann` and `bob`.
fn server() -> Server {
    let resource =
        ProtectedResource::new("http://localhost/mcp", ["https://auth.example.com"]).unwrap();
    let check = |check: TokenCheck| match check.token() {
        name @ ("ann" | "bob") => {
            Ok(VerifiedToken::new(Principal::new(name)).audiences([check.resource()]))
        }
        _ => Err(TokenRefusal::Invalid),
    };
    gated(&HandlerGate::new()).protect(resource, check)
}

#[tokio::test]
async fn a_request_names_one_host() {
    let served = Served::new(server()).await;
    let request = Post::call("plain").with("Authorization", "Bearer ann").bytes();
    for (repeated, status) in [("\r\n", 200), ("\r\nHost: localhost\r\n", 400)] {
        let mut wire = Wire::connect(served.address).await;
        wire.send(request.replacen("\r\n", repeated, 1)).await;
        assert_eq!(wire.response().await.0.status, status, "{repeated:?}");
    }
}

#[tokio::test]
async fn an_ambiguous_token_is_refused() {
    // Rule: [AUTHS-002] [AUTHS-012].
    let served = Served::new(server()).await;
    for (value, status) in [
        ("Bearer ann", 200),
        ("bEARER ann", 200),
        ("Bearer ann\r\nauthorization: Bearer bob", 400),
        ("Bearer ann\r\nAuthorization: Bearer ann", 400),
        ("Basic YTpi\r\nAuthorization: Bearer ann", 400),
        ("Bearer ann, Bearer bob", 400),
        ("Bearer ann,bob", 400),
        ("Bearer ann bob", 400),
        ("Basic YTpi, Bearer ann", 401),
        ("Bearer\tann", 401),
        ("Bearer:ann", 401),
        ("Bearer=ann", 401),
        ("Bearer\"ann\"", 401),
        ("Bearer \"ann\"", 400),
        // Folded lines, and characters that are not allowed in a field.
        ("Bearer ann\r\n bob", 400),
        ("Bearer\r\n ann", 400),
        ("Bearer ann\0", 400),
        ("Bearer ann\nX: y", 200),
    ] {
        let mut wire = Wire::connect(served.address).await;
        wire.send(Post::call("plain").with("Authorization", value).bytes()).await;
        let (head, body) = wire.response().await;
        assert_eq!(head.status, status, "{value:?} {body}");
        assert!(!body.contains("bob"), "{body}");
    }
    for name in ["Authorization ", " Authorization", "Authorization\t", "X-Authorization"] {
        let mut wire = Wire::connect(served.address).await;
        wire.send(Post::call("plain").with(name, "Bearer ann").bytes()).await;
        let status = wire.head().await.status;
        assert!(matches!(status, 400 | 401), "{name:?}: {status}");
    }
}

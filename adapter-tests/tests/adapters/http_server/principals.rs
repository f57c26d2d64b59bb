//! The principal of a request.

use std::convert::Infallible;
use std::sync::Arc;

use http_body_util::{BodyExt, Full};
use mcp_sansio::http::HttpServerOptions;
use mcp_sansio::{Caller, Principal};
use mcp_sansio_async::http_server::ServedBody;
use mcp_sansio_oauth::protected_resource::{ProtectedResource, TokenCheck, VerifiedToken};

use super::adapter::{Call, HttpService, NoArguments, Server};
use super::served::in_runtime;
use super::wire::{Post, text};

/// Sends a POST through the service, like a middleware that has authenticated the client.
async fn send(
    service: &HttpService,
    post: &Post,
    principal: Option<&str>,
) -> http::Response<ServedBody> {
    let mut request = http::Request::post("/mcp");
    for (name, value) in &post.fields {
        request = request.header(*name, value);
    }
    if let Some(principal) = principal {
        request = request.extension(Principal::new(principal));
    }
    let body: Full<bytes::Bytes> = Full::from(post.body.clone());
    service.serve(request.body(body.map_err(|never: Infallible| never)).unwrap()).await
}

async fn body(response: http::Response<ServedBody>) -> String {
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[tokio::test]
async fn handlers_see_the_principal_and_a_session_belongs_to_one_principal() {
    let server = Server::new("named", "1").tool("who", "Tells", |call: Call<NoArguments>| {
        call.principal().map_or_else(|| "nobody".into(), |who| who.as_str().to_owned())
    });
    let service = in_runtime(|| HttpService::new(&server, HttpServerOptions::new()).unwrap());
    for (principal, name) in [(Some("ann"), "ann"), (None, "nobody")] {
        let response = send(&service, &Post::call("who"), principal).await;
        assert_eq!(text(&body(response).await), name);
    }
    let response = send(&service, &Post::initialize(), Some("ann")).await;
    let session = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let call = Post::legacy_call(&session, "who");
    for (principal, status) in [(Some("ann"), 200), (Some("bob"), 404), (None, 404)] {
        let response = send(&service, &call, principal).await;
        assert_eq!(response.status(), status);
        if status == 200 {
            assert_eq!(text(&body(response).await), "ann");
        }
    }
}

/// What a layer of an application knows of the sender.
#[derive(Clone)]
struct User {
    name: &'static str,
    alive: Arc<()>,
}

/// Sends a POST like a layer that has identified the client in its own way.
async fn send_as(
    service: &HttpService,
    post: &Post,
    user: &User,
    caller: &Caller,
) -> http::Response<ServedBody> {
    let mut request = http::Request::post("/mcp");
    for (name, value) in &post.fields {
        request = request.header(*name, value);
    }
    let request = request.extension(user.clone()).extension(caller.clone()).extension(1_u8);
    let body: Full<bytes::Bytes> = Full::from(post.body.clone());
    service.serve(request.body(body.map_err(|never: Infallible| never)).unwrap()).await
}

#[tokio::test]
async fn handlers_see_the_extensions_of_layers_and_protect_does_not_hide_their_caller() {
    let server = Server::new("layered", "1").tool("see", "Tells", |call: Call<NoArguments>| {
        let who = |caller: &Caller| caller.principal().map_or("-", Principal::as_str).to_owned();
        let layer = call.extension().map_or_else(|| "-".into(), who);
        let user = call.extension::<User>().map_or("-", |user| user.name);
        let scopes = call.scopes().join("+");
        assert!(call.extension::<u8>().is_none(), "nobody asked for it");
        format!("{user} {} {layer} {scopes}", who(call.caller()))
    });
    let check = async |check: TokenCheck| {
        let user = check.sender().extension::<User>().map(|user| user.name);
        assert_eq!(user, Some("ann"));
        assert_eq!(check.sender().principal().map(Principal::as_str), Some("layer"));
        Ok(VerifiedToken::new(Principal::new("token")).audiences([check.resource()]).scope("use"))
    };
    let resource = ProtectedResource::without_issuer("http://localhost/mcp").unwrap();
    let protected = server.clone().protect(resource, check);
    let caller = Caller::from_scopes(Principal::new("layer"), ["read"]);
    for (server, seen) in [(server, "ann layer - read"), (protected, "ann token layer use")] {
        let service = in_runtime(|| HttpService::new(&server, HttpServerOptions::new()).unwrap());
        let service = service.extension::<User>();
        let bearer = |post: Post| post.with("Authorization", "Bearer any");
        let user = User { name: "ann", alive: Arc::default() };
        let response = send_as(&service, &bearer(Post::call("see")), &user, &caller).await;
        assert_eq!(text(&body(response).await), seen);
        assert_eq!(Arc::strong_count(&user.alive), 1, "kept after the request");
        let response = send_as(&service, &bearer(Post::initialize()), &user, &caller).await;
        let session = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
        for post in [Post::call("see"), Post::legacy_call(&session, "see")] {
            let response = send_as(&service, &bearer(post), &user, &caller).await;
            assert_eq!(text(&body(response).await), seen);
        }
    }
}

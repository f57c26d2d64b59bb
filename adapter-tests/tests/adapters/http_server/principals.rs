//! The principal of a request.

use std::convert::Infallible;

use http_body_util::{BodyExt, Full};
use mcp_sansio::Principal;
use mcp_sansio::http::HttpServerOptions;
use mcp_sansio_async::http_server::ServedBody;

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

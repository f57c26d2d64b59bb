//! HTTP/2 with prior knowledge.

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

use super::served::{HandlerGate, Served, gated};
use super::wire::{Post, in_time, text};

async fn connect(served: &Served) -> SendRequest<Full<Bytes>> {
    let socket = TcpStream::connect(served.address).await.unwrap();
    let (client, connection) = handshake(TokioExecutor::new(), TokioIo::new(socket)).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn send(
    client: &mut SendRequest<Full<Bytes>>,
    post: &Post,
    authority: &str,
) -> Response<Incoming> {
    let mut request = Request::post(format!("http://{authority}/mcp"));
    for (name, value) in post.fields.iter().filter(|(name, _)| *name != "Host") {
        request = request.header(*name, value);
    }
    in_time(client.ready()).await.unwrap();
    let request = request.body(Full::from(post.body.clone())).unwrap();
    in_time(client.send_request(request)).await.unwrap()
}

async fn body(response: Response<Incoming>) -> String {
    let bytes = in_time(response.into_body().collect()).await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[tokio::test]
async fn calls_share_a_connection_and_the_authority_is_the_host() {
    let gate = HandlerGate::new();
    let served = Served::new(gated(&gate)).await;
    let mut client = connect(&served).await;
    let mut other = client.clone();
    let waiting = tokio::spawn(async move {
        body(send(&mut other, &Post::call("wait"), "localhost").await).await
    });
    gate.arrival().await;
    let response = send(&mut client, &Post::call("plain"), "localhost").await;
    assert_eq!(text(&body(response).await), "plain");
    let response = send(&mut client, &Post::call("plain"), "evil.example").await;
    assert_eq!(response.status(), 403);
    gate.open.add_permits(1);
    assert_eq!(text(&waiting.await.unwrap()), "waited");
}

#[tokio::test]
async fn a_stream_reset_cancels_only_its_own_handler() {
    let gate = HandlerGate::new();
    let served = Served::new(gated(&gate)).await;
    let mut client = connect(&served).await;
    let response = send(&mut client, &Post::call("progress"), "localhost").await;
    gate.arrival().await;
    let mut other = client.clone();
    let waiting = tokio::spawn(async move {
        body(send(&mut other, &Post::call("wait"), "localhost").await).await
    });
    gate.arrival().await;
    drop(response);
    gate.departure().await;
    assert_eq!(gate.finished(), 0);
    gate.open.add_permits(1);
    assert_eq!(text(&waiting.await.unwrap()), "waited");
}

#[tokio::test]
async fn only_the_unread_stream_is_reset() {
    let gate = HandlerGate::new();
    let mut limits = mcp_sansio::http::ServerLimits::default();
    limits.unread_bytes_max = 4 << 20;
    let options = mcp_sansio::http::HttpServerOptions::new().limits(limits);
    let served = Served::with(gated(&gate), options, |listener| listener).await;
    let mut client = connect(&served).await;
    let unread = send(&mut client, &Post::call("flood"), "localhost").await;
    while gate.let_pass().await {}
    let response = send(&mut client, &Post::call("plain"), "localhost").await;
    assert_eq!(text(&body(response).await), "plain");
    assert!(in_time(unread.into_body().collect()).await.is_err());
    in_time(served.service.close()).await;
}

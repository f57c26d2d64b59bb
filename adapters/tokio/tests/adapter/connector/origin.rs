//! Helpers for hand-written servers.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use mcp_sansio_tokio::adapter::http_client::ResponseBody;
use mcp_sansio_tokio::runtime::ConnectorBuilder;
use mcp_sansio_tokio::{Connector, Proxy};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::{TcpListener, TcpSocket};

/// The time limit of a test.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) async fn within<T>(test: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, test).await.expect("the test finishes in time")
}

pub(crate) async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Returns an address that refuses connections while the socket exists: it is bound but not
/// listening, so no other process can take its port.
pub(crate) fn closed_port() -> (TcpSocket, SocketAddr) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

/// Returns a builder that ignores the proxies of the environment.
pub(crate) fn builder() -> ConnectorBuilder {
    Connector::builder().proxy(Proxy::none())
}

pub(crate) fn connector() -> Connector {
    builder().build().unwrap()
}

pub(crate) fn get(url: impl AsRef<str>) -> Request<Bytes> {
    Request::get(url.as_ref()).body(Bytes::new()).unwrap()
}

/// Reads the head of a request, and the body if it has a length.
pub(crate) async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut request = Vec::with_capacity(4096);
    loop {
        if stream.read_buf(&mut request).await.ok()? == 0 {
            return None;
        }
        let text = String::from_utf8(request.clone()).unwrap();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
            return Some(text);
        }
    }
}

pub(crate) async fn read_all(mut body: ResponseBody) -> String {
    let mut all = Vec::new();
    while let Some(chunk) = body.chunk().await {
        all.extend_from_slice(&chunk.unwrap());
    }
    String::from_utf8(all).unwrap()
}

/// Waits until the peer closes the connection, cleanly or not.
pub(crate) async fn closed(mut stream: impl AsyncRead + Unpin) {
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest).await;
}

//! What a test needs to be a server by hand.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use mcp_sansio_tokio::{Connector, ConnectorBuilder, Proxy, ResponseBody};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::TcpListener;

/// How long a test may take before it is given up.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) async fn within<T>(test: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, test).await.expect("the test hangs")
}

pub(crate) async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Without the proxies of whoever runs the test.
pub(crate) fn builder() -> ConnectorBuilder {
    Connector::builder().proxy(Proxy::none())
}

pub(crate) fn connector() -> Connector {
    builder().build().unwrap()
}

pub(crate) fn get(url: impl AsRef<str>) -> Request<Bytes> {
    Request::get(url.as_ref()).body(Bytes::new()).unwrap()
}

/// Reads up to the empty line after the fields; with what of the body came along.
pub(crate) async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut head = Vec::new();
    while !head.windows(4).any(|window| window == b"\r\n\r\n") {
        if stream.read_buf(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    Some(String::from_utf8(head).unwrap())
}

pub(crate) async fn read_all(mut body: ResponseBody) -> String {
    let mut all = Vec::new();
    while let Some(chunk) = body.chunk().await {
        all.extend_from_slice(&chunk.unwrap());
    }
    String::from_utf8(all).unwrap()
}

/// Waits until the other side closes, in good order or not.
pub(crate) async fn closed(mut stream: impl AsyncRead + Unpin) {
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest).await;
}

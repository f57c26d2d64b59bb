//! The HTTP client on tokio against hand-written servers on real sockets.

mod authorization;
mod calls;
mod dpop;
mod failures;
mod scripts;
mod server;
mod server_card;
mod sessions;

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use mcp_sansio_tokio::ClientError;
use mcp_sansio_tokio::protocol::CallToolResult;
use tokio::net::TcpSocket;

/// Far longer than any test takes.
const PATIENCE: Duration = Duration::from_secs(30);

async fn within<T>(test: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, test).await.expect("the test finishes in time")
}

/// Returns an address that refuses connections while the socket exists: it is bound but not
/// listening, so no other process can take its port.
pub(crate) fn closed_port() -> (TcpSocket, SocketAddr) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

/// Returns the text of a tool result.
fn text(result: &Result<CallToolResult, ClientError>) -> &str {
    let result = result.as_ref().unwrap_or_else(|error| panic!("{error}"));
    result.content.iter().find_map(|block| block.as_text()).unwrap_or_default()
}

use futures_util::{SinkExt, StreamExt};
use mcp_sansio_test::transport::{Promises, check};
use mcp_sansio_tokio::{self as mcp, Server};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::{WebSocketStream, client_async};
use transports::websocket::{MESSAGE_LENGTH_MAX, SUBPROTOCOL, accept, connect};

use crate::tokio_ends::{TokioEnds, sockets};
use tokio::net::TcpStream;

const URL: &str = "ws://127.0.0.1/mcp";

#[test]
fn web_sockets_conform() {
    for limit in [256 * 1024, MESSAGE_LENGTH_MAX] {
        let report = check(&mut TokioEnds::new(Promises::messages(limit), async move || {
            let (near, far) = sockets().await;
            let (near, far) = tokio::join!(connect(URL, near, limit), accept(far, limit));
            (near.unwrap(), far.unwrap())
        }));
        println!("WebSocket: {report}");
    }
}

/// Returns a raw WebSocket to a server of this crate, with these header fields.
async fn raw(fields: &[(&'static str, &str)]) -> Option<WebSocketStream<TcpStream>> {
    let (near, far) = sockets().await;
    tokio::spawn(async move {
        let Ok(stream) = accept(far, 1000).await else { return };
        let server = Server::new("s", "1").endpoint(mcp::seed()).unwrap();
        drop(mcp::drive(server, stream).await);
    });
    let mut request = URL.into_client_request().unwrap();
    for (name, value) in fields {
        request.headers_mut().insert(*name, value.parse().unwrap());
    }
    client_async(request, near).await.ok().map(|(socket, _)| socket)
}

const MCP: (&str, &str) = ("sec-websocket-protocol", SUBPROTOCOL);

#[tokio::test]
async fn web_pages_and_other_protocols_are_refused() {
    assert!(raw(&[MCP]).await.is_some());
    assert!(raw(&[("sec-websocket-protocol", "chat")]).await.is_none());
    assert!(raw(&[]).await.is_none());
    assert!(raw(&[MCP, ("origin", "https://example.com")]).await.is_none());
}

/// Returns the next frame that is not empty.
async fn next(socket: &mut WebSocketStream<TcpStream>) -> Option<Message> {
    socket.next().await.and_then(Result::ok)
}

#[tokio::test]
async fn pings_are_answered_and_a_close_frame_ends_the_connection() {
    let mut socket = raw(&[MCP]).await.unwrap();
    socket.send(Message::Ping("a".into())).await.unwrap();
    assert_eq!(next(&mut socket).await, Some(Message::Pong("a".into())));
    socket.send(Message::text(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#)).await.unwrap();
    let answer = next(&mut socket).await.unwrap().into_text().unwrap();
    assert!(answer.starts_with(r#"{"jsonrpc":"2.0","id":1,"#), "{answer}");
    let close = CloseFrame { code: CloseCode::Away, reason: "bye".into() };
    socket.close(Some(close.clone())).await.unwrap();
    assert_eq!(next(&mut socket).await, Some(Message::Close(Some(close))));
    assert_eq!(next(&mut socket).await, None);
}

#[tokio::test]
async fn binary_frames_and_long_messages_end_the_connection() {
    for message in [Message::binary(b"{}".to_vec()), Message::text("x".repeat(1001))] {
        let mut socket = raw(&[MCP]).await.unwrap();
        socket.send(message).await.unwrap();
        while let Some(Ok(message)) = socket.next().await {
            assert!(message.is_close(), "{message}");
        }
    }
}

#[tokio::test]
async fn a_client_refuses_a_server_without_the_subprotocol() {
    let (near, far) = sockets().await;
    tokio::spawn(async move {
        let mut socket = tokio_tungstenite::accept_async(far).await?;
        socket.next().await;
        Ok::<_, tokio_tungstenite::tungstenite::Error>(())
    });
    assert!(connect(URL, near, 1000).await.is_err());
}

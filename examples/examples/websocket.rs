//! MCP over WebSockets, where each message is a text frame: `websocket ADDRESS` is a server, and
//! `websocket ws://ADDRESS` a client that calls it.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line program")]

use std::error::Error;
use std::future::ready;

use futures_util::{SinkExt, StreamExt, TryStreamExt};
use mcp_sansio_tokio::adapter::ByteStream;
use mcp_sansio_tokio::{self as mcp, Host, MessageStream, Server, tool};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::{self, Message, http::StatusCode};
use tokio_tungstenite::{WebSocketStream, accept_hdr_async, connect_async};

type Fallible<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

/// Makes a stream of text frames of a WebSocket. The library limits messages to 64 MiB.
fn text_frames<S: AsyncRead + AsyncWrite + Unpin>(socket: WebSocketStream<S>) -> impl ByteStream {
    let (writer, reader) = socket.split();
    let texts = reader.try_filter_map(|message| {
        ready(Ok(if let Message::Text(text) = message { Some(text) } else { None }))
    });
    let writer = writer.with(|text: String| ready(Ok::<_, tungstenite::Error>(text.into())));
    MessageStream::new(texts, writer)
}

/// Refuses web pages: browsers open WebSockets to any address for them.
#[expect(clippy::result_large_err, reason = "the type of the library")]
fn check_origin(request: &Request, response: Response) -> Result<Response, ErrorResponse> {
    if request.headers().contains_key("origin") {
        let mut refusal = ErrorResponse::new(None);
        *refusal.status_mut() = StatusCode::FORBIDDEN;
        return Err(refusal);
    }
    Ok(response)
}

/// Repeats a text
#[tool]
fn echo(text: String) -> String {
    text
}

async fn serve(server: Server, socket: TcpStream) -> Fallible {
    let socket = accept_hdr_async(socket, check_origin).await?;
    Ok(mcp::serve_stream(server, text_frames(socket)).await?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Fallible {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8000".into());
    if address.starts_with("ws://") {
        let (socket, _) = connect_async(address).await?;
        let host = Host::new("demo", "1.0.0");
        let client = mcp::connect_stream(text_frames(socket), &host).await?;
        let result = client.call_tool("echo", &serde_json::json!({ "text": "Hello!" })).await?;
        println!("{}", result.first_text().unwrap_or("no text"));
        return Ok(());
    }
    let listener = TcpListener::bind(address).await?;
    eprintln!("listening on ws://{}", listener.local_addr()?);
    loop {
        let (socket, _) = listener.accept().await?;
        tokio::spawn(serve(Server::new("echo", "1.0.0").add_item(echo_tool()), socket));
    }
}

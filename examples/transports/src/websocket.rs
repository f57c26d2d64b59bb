//! MCP over WebSockets, in either role: each message is a text frame, and the subprotocol is `mcp`.
//!
//! Pings are answered by the library. A close frame, or the loss of the socket, ends the connection.
//! A binary frame is a violation, and so is a longer message than the limit: the connection ends.

use std::error::Error;
use std::future::ready;

use futures_util::{SinkExt, StreamExt};
use mcp_sansio_tokio::MessageStream;
use mcp_sansio_tokio::adapter::ByteStream;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::header::{ORIGIN, SEC_WEBSOCKET_PROTOCOL};
use tokio_tungstenite::tungstenite::http::{HeaderMap, HeaderValue, StatusCode};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{WebSocketStream, accept_hdr_async_with_config, client_async_with_config};

type Fallible<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// The subprotocol that both sides name in the handshake.
pub const SUBPROTOCOL: &str = "mcp";

/// The longest message that is accepted, in bytes: that of a byte stream.
pub const MESSAGE_LENGTH_MAX: usize = 16 << 20;

fn config(message_length_max: usize) -> WebSocketConfig {
    WebSocketConfig::default()
        .max_message_size(Some(message_length_max))
        .max_frame_size(Some(message_length_max))
}

/// Makes a stream of the text frames of a WebSocket.
fn text_frames<S: AsyncRead + AsyncWrite + Unpin>(
    socket: WebSocketStream<S>,
) -> impl ByteStream + use<S> {
    let (writer, reader) = socket.split();
    let texts = reader.filter_map(|message| {
        ready(match message {
            Ok(Message::Text(text)) => Some(Ok(text)),
            Ok(Message::Binary(_)) => Some(Err(tungstenite::Error::Utf8("a binary frame".into()))),
            // Pings, pongs, and the close frame, after which the stream ends.
            Ok(_) => None,
            Err(error) => Some(Err(error)),
        })
    });
    let writer = writer.with(|text: String| ready(Ok::<_, tungstenite::Error>(text.into())));
    MessageStream::new(texts, writer)
}

fn names_subprotocol(headers: &HeaderMap) -> bool {
    let offers = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter();
    let offers = offers.filter_map(|value| value.to_str().ok()).flat_map(|list| list.split(','));
    offers.map(str::trim).any(|name| name == SUBPROTOCOL)
}

/// Checks a handshake: refuses web pages, for which browsers open WebSockets to any address, and
/// clients that do not speak the subprotocol.
#[expect(clippy::result_large_err, reason = "the type of the library")]
fn check(request: &Request, mut response: Response) -> Result<Response, ErrorResponse> {
    let refuse = |status| {
        let mut refusal = ErrorResponse::new(None);
        *refusal.status_mut() = status;
        Err(refusal)
    };
    if request.headers().contains_key(ORIGIN) {
        return refuse(StatusCode::FORBIDDEN);
    }
    if !names_subprotocol(request.headers()) {
        return refuse(StatusCode::BAD_REQUEST);
    }
    let name = HeaderValue::from_static(SUBPROTOCOL);
    response.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, name);
    Ok(response)
}

/// Accepts a WebSocket of a client, with messages of up to `message_length_max` bytes. Pass the
/// stream to `mcp_sansio_tokio::drive`.
///
/// # Errors
///
/// The handshake failed or was refused.
pub async fn accept(socket: TcpStream, message_length_max: usize) -> Fallible<impl ByteStream> {
    let config = Some(config(message_length_max));
    Ok(text_frames(accept_hdr_async_with_config(socket, check, config).await?))
}

/// Opens a WebSocket to the server of `url` on a connected socket, which may be a TLS stream.
///
/// # Errors
///
/// The handshake failed, or the server does not speak the subprotocol.
pub async fn connect<S: AsyncRead + AsyncWrite + Unpin>(
    url: &str,
    socket: S,
    message_length_max: usize,
) -> Fallible<impl ByteStream + use<S>> {
    let mut request = url.into_client_request()?;
    let name = HeaderValue::from_static(SUBPROTOCOL);
    request.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, name);
    let config = Some(config(message_length_max));
    let (socket, response) = client_async_with_config(request, socket, config).await?;
    if !names_subprotocol(response.headers()) {
        return Err("the server does not speak MCP".into());
    }
    Ok(text_frames(socket))
}

//! The code of docs/guide/custom-transport.md.

mod websockets {
    use std::error::Error;
    use std::future::ready;

    use futures_util::{SinkExt, StreamExt, TryStreamExt};
    use mcp_sansio_tokio::adapter::ByteStream;
    use mcp_sansio_tokio::{self as mcp, Client, Host, MessageStream, Server};
    use tokio::io::{AsyncRead, AsyncWrite};
    use tokio::net::TcpStream;
    use tokio_tungstenite::tungstenite::{self, Message};
    use tokio_tungstenite::{WebSocketStream, accept_async, connect_async};

    fn text_frames<S: AsyncRead + AsyncWrite + Unpin>(
        socket: WebSocketStream<S>,
    ) -> impl ByteStream {
        let (writer, reader) = socket.split();
        let texts = reader.try_filter_map(|message| {
            ready(Ok(if let Message::Text(text) = message { Some(text) } else { None }))
        });
        let writer = writer.with(|text: String| ready(Ok::<_, tungstenite::Error>(text.into())));
        MessageStream::new(texts, writer)
    }

    /// Serves one connection; returns when it ends.
    async fn serve(server: &Server, socket: TcpStream) -> Result<(), Box<dyn Error + Send + Sync>> {
        let socket = accept_async(socket).await?;
        Ok(mcp::drive(server.endpoint(mcp::seed())?, text_frames(socket)).await?)
    }

    async fn connect(url: &str, host: &Host) -> Result<Client, Box<dyn Error + Send + Sync>> {
        let (socket, _) = connect_async(url).await?;
        let (client, endpoint) = host.connect(mcp::seed(), mcp::now());
        tokio::spawn(mcp::drive(endpoint, text_frames(socket)));
        client.opened().await?;
        Ok(client)
    }

    fn main() {}
}

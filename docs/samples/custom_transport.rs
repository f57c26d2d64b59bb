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
        Ok(mcp::serve_stream(server, text_frames(socket)).await?)
    }

    async fn connect(url: &str, host: &Host) -> Result<Client, Box<dyn Error + Send + Sync>> {
        let (socket, _) = connect_async(url).await?;
        Ok(mcp::connect_stream(text_frames(socket), host).await?)
    }

    #[tokio::test]
    async fn a_call_is_answered() -> Result<(), Box<dyn Error + Send + Sync>> {
        let server = Server::new("clock", "1.0.0").tool(
            "now",
            "The time",
            |_: mcp::Call<mcp::NoArguments>| "about noon",
        );
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("ws://{}", listener.local_addr()?);
        let serving = tokio::spawn(async move { serve(&server, listener.accept().await?.0).await });
        let client = connect(&url, &Host::new("demo", "1.0.0")).await?;
        let result = client.call_tool("now", &mcp::NoArguments {}).await?;
        assert_eq!(result.first_text(), Some("about noon"));
        drop(client);
        serving.await?
    }
}

//! The code of docs/guide/getting-started.md.

mod over_http {
    use mcp_sansio_tokio::{self as mcp, Host, Server};
    use tokio::net::TcpListener;
    async fn server(server: Server) -> Result<(), mcp::Error> {
        let listener = TcpListener::bind("127.0.0.1:8000").await?;
        mcp::serve_http(server, listener).await
    }

    async fn client() -> Result<(), mcp::Error> {
        let client = mcp::connect("http://127.0.0.1:8000/mcp", &Host::new("demo", "1.0.0")).await?;

        client.close().await;
        Ok(())
    }
}

mod without_tokio {
    use mcp_sansio_std::{self as mcp, Call, Server};

    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Place {
        location: String,
    }

    fn main() -> Result<(), mcp::Error> {
        let server = Server::new("weather", "1.0.0").tool(
            "forecast",
            "Weather at a place",
            async |call: Call<Place>| format!("Sunny in {}", call.arguments.location),
        );
        mcp::serve_stdio(server)
    }
}

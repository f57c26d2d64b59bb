//! A server on HTTP that gets new tools while it runs: each phrase that a client teaches becomes a
//! tool of its own, for all clients.

use mcp_sansio_tokio::{self as mcp, Call, Connections, NoArguments, Server, ServerItem};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Phrase {
    /// The name of the new tool
    name: String,
    /// The text that the tool returns
    text: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let connections = Connections::new();
    let everyone = connections.clone();
    let teach = move |call: Call<Phrase>| {
        let Phrase { name, text } = call.arguments;
        let added = everyone.edit_catalog(move |catalog| {
            let text = text.clone();
            let say = move |_: Call<NoArguments>| text.clone();
            catalog.add_item(ServerItem::tool(&name, "Says a phrase", say)).map(|_| "Learned.")
        });
        Ok(added??)
    };
    let server =
        Server::new("phrases", "1.0.0").tool("teach", "Adds a tool that says a phrase", teach);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:8000").await?;
    Ok(mcp::serve_http(server.connections(&connections), listener).await?)
}

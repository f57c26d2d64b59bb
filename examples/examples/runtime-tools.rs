//! A server on HTTP that gets new tools while it runs: each phrase that a client teaches becomes
//! one.
#![allow(clippy::print_stderr, reason = "a command line program")]

use mcp_sansio_tokio::{self as mcp, Connections, HandlerError, Server, ServerItem, State, tool};

/// Adds a tool that says a phrase
#[tool]
fn teach(name: String, text: String, all: State<Connections>) -> Result<(), HandlerError> {
    all.edit_catalog(move |catalog| {
        let text = text.clone();
        let say = move |_: mcp::Call<mcp::NoArguments>| text.clone();
        catalog.add_item(ServerItem::tool(&name, "Says a phrase", say)).map(drop)
    })??;
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8000".into());
    let listener = tokio::net::TcpListener::bind(address).await?;
    eprintln!("listening on http://{}/mcp", listener.local_addr()?);
    let all = Connections::new();
    let server = Server::new("phrases", "1.0.0").add_item(teach_tool()).state(all.clone());
    Ok(mcp::serve_http(server.connections(&all), listener).await?)
}

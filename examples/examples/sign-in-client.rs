//! A client with a browser sign-in that lists the tools of the server at the given URL. Try it with
//! `everything-server --http 127.0.0.1:8000 --auth`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line program")]

use mcp_sansio_tokio::auth::client::{ApplicationType, AuthorizationOptions, ClientMetadata};
use mcp_sansio_tokio::{self as mcp, Authorization, FileStore, Host, Loopback, open_in_browser};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "http://127.0.0.1:8000/mcp".into());
    let loopback = Loopback::bind(0).await?.application("the demo");
    let options = AuthorizationOptions::code(loopback.redirect_uri())?
        .fallback_redirect_uri(loopback.localhost_redirect_uri())?
        .register_as(ClientMetadata::new("demo", ApplicationType::Native));
    let authorization = Authorization::new(options)
        .store(FileStore::new("demo-credentials"))
        .on_authorize(move |request| {
            loopback.authorize(request, |url| {
                if open_in_browser(url).is_err() {
                    eprintln!("To sign in, open {url}");
                }
            })
        });
    let host = Host::new("demo", "1.0.0").authorization(authorization);
    let client = mcp::connect(&url, &host).await?;
    for tool in client.all_tools().await? {
        println!("{}", tool.name);
    }
    client.close().await;
    Ok(())
}

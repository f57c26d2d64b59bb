//! A server on HTTP whose users see their own tools and resources. The tokens of the users are in
//! the environment, as `ANN_TOKEN` and `BOB_TOKEN`; the argument is the address.
#![allow(clippy::print_stderr, reason = "a command line program")]

use std::env;
use std::error::Error;

use mcp_sansio_tokio::auth::protected_resource::StaticTokens;
use mcp_sansio_tokio::machine::catalog::Audience;
use mcp_sansio_tokio::protocol::{Resource, TextResourceContents};
use mcp_sansio_tokio::{
    self as mcp, Call, NoArguments, Principal, ProtectedResource, ReadResource, Server, ServerItem,
    VerifiedToken,
};

/// Returns a resource that only its owner sees.
fn diary(owner: &'static str) -> ServerItem<Resource> {
    let read = move |call: Call<ReadResource>| {
        TextResourceContents::new(call.arguments.uri.as_str(), format!("The diary of {owner}"))
    };
    let owned = Audience::new().principal(Principal::new(owner));
    ServerItem::new(Resource::new(format!("diary:///{owner}"), "Diary"), read).audience(owned)
}

fn whoami(call: Call<NoArguments>) -> String {
    call.principal().map_or("nobody", Principal::as_str).to_owned()
}

fn purge(_: Call<NoArguments>) -> &'static str {
    "All diaries are empty."
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8000".into());
    let listener = tokio::net::TcpListener::bind(address).await?;
    let url = format!("http://{}/mcp", listener.local_addr()?);
    let user = |name| VerifiedToken::new(Principal::new(name));
    let tokens = StaticTokens::new([
        (env::var("ANN_TOKEN")?, user("ann").scopes(["diaries:purge"])),
        (env::var("BOB_TOKEN")?, user("bob")),
    ])?;
    let purge = ServerItem::tool("purge", "Empties all diaries", purge).requires("diaries:purge");
    let server = Server::new("diaries", "1.0.0")
        .tool("whoami", "Names the user", whoami)
        .add_item(purge)
        .add_item(diary("ann"))
        .add_item(diary("bob"))
        .protect(ProtectedResource::without_issuer(&url)?, move |check| tokens.check(&check));
    eprintln!("listening on {url}");
    Ok(mcp::serve_http(server, listener).await?)
}

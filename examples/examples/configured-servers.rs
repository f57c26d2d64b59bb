//! A host of the servers in a configuration file, on tokio: `configured-servers FILE [TOOL ARGUMENTS]`.
//! Shows the tools of all servers and why others are missing, or calls a tool with arguments in JSON.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line program")]

use std::env;
use std::error::Error;
use std::time::Duration;

use mcp_sansio_tokio::jsonrpc::RawJson;
use mcp_sansio_tokio::{self as mcp, AnyConnection, Host, Servers, ServersConfig};
use tokio::time::sleep;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let file = arguments.next().ok_or("which file?")?;
    let text = std::fs::read_to_string(file)?;
    let config = ServersConfig::parse(&text, |name| env::var(name).ok())?;
    for place in &config.ignored {
        eprintln!("not used: {place}");
    }
    let servers = Servers::<AnyConnection>::new();
    mcp::connect_servers(&servers, config, &Host::new("configured-servers", "1.0.0"))?;
    for error in servers.ready(sleep(Duration::from_secs(10))).await {
        eprintln!("{error}");
    }
    match arguments.next() {
        Some(tool) => {
            let given = arguments.next().unwrap_or_else(|| "{}".into());
            let result = servers.call_tool(&tool, &RawJson::parse(&given)?)?.await?;
            println!("{}", result.first_text().unwrap_or("no text"));
        }
        None => {
            for tool in servers.all_tools().await.items {
                println!("{}: {}", tool.item.name, tool.item.description.unwrap_or_default());
            }
        }
    }
    for (_, connection) in servers.close() {
        connection.shutdown().await?;
    }
    Ok(())
}

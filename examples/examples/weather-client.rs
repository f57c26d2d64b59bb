//! A complete client on tokio. It starts `weather-server`, or the command on the command line, and
//! calls a tool.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line program")]

use std::time::Duration;

use mcp_sansio_tokio::{self as mcp, Host};
use serde_json::json;
use tokio::process::Command;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), mcp::Error> {
    let server = std::env::args().nth(1).unwrap_or_else(|| "weather-server".into());
    let client = mcp::spawn(Command::new(server), &Host::new("demo", "1.0.0")).await?;
    let report = client
        .call_tool("forecast", &json!({ "location": "Oslo" }))
        .timeout(Duration::from_secs(30))
        .on_progress(|progress| eprintln!("{} of 2", progress.progress))
        .await?;
    println!("{}", report.first_text().unwrap_or("no text"));
    client.shutdown().await?;
    Ok(())
}

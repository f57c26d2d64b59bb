//! A complete client without a runtime. It starts `weather-server-std`, or the command on the
//! command line, and calls a tool.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line program")]

use std::process::Command;
use std::time::Duration;

use mcp_sansio_std::{self as mcp, Host, Wait};
use serde_json::json;

fn main() -> Result<(), mcp::Error> {
    let server = std::env::args().nth(1).unwrap_or_else(|| "weather-server-std".into());
    let client = mcp::spawn(Command::new(server), &Host::new("demo", "1.0.0"))?;
    let report = client
        .call_tool("forecast", &json!({ "location": "Oslo" }))
        .timeout(Duration::from_secs(30))
        .on_progress(|progress| eprintln!("{} of 2", progress.progress))
        .wait()?;
    println!("{}", report.first_text().unwrap_or("no text"));
    client.shutdown().wait()?;
    Ok(())
}

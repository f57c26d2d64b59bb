//! A client of three servers on tokio, with their tools in one list. One of the servers is killed,
//! and comes back.
#![allow(clippy::print_stdout, reason = "a command line program")]

use std::env;
use std::error::Error;
use std::process;

use mcp_sansio_tokio::{self as mcp, Call, Host, NoArguments, Server, Servers};
use tokio::process::Command;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::sleep;

/// The servers are this program with the name of a city as its argument.
fn server(city: String) -> Server {
    Server::new(&*city, "1.0.0")
        .tool("weather", "The weather", async move |_: Call<NoArguments>| {
            format!("Sunny in {city}")
        })
        .tool("crash", "Ends the server", |_: Call<NoArguments>| -> &str { process::exit(1) })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    if let Some(city) = env::args().nth(1) {
        return Ok(mcp::serve_stdio(server(city)).await?);
    }
    let (sender, mut changes) = unbounded_channel();
    let servers = Servers::new().observe(move |name, state| {
        // Fails only at the end of the program.
        let _sent = sender.send(format!("{name}: {state}"));
    });
    let host = Host::new("three-servers", "1.0.0");
    for city in ["lima", "oslo", "pune"] {
        let host = host.clone();
        let connect = async move || {
            let mut command = Command::new(env::current_exe()?);
            command.arg(city);
            mcp::spawn(command, &host).await
        };
        tokio::spawn(servers.connect(city, connect, sleep)?);
    }
    connected(3, &mut changes).await;
    show(&servers).await?;

    let lost = servers.call_tool("oslo_crash", &NoArguments {})?.await;
    println!("oslo_crash: {}", lost.err().ok_or("the server is still there")?);
    println!("{}", changes.recv().await.unwrap_or_default());
    show(&servers).await?;
    connected(1, &mut changes).await;
    show(&servers).await?;

    for (_, connection) in servers.close() {
        connection.shutdown().await?;
    }
    Ok(())
}

/// Waits until servers are connected.
async fn connected(count: usize, changes: &mut UnboundedReceiver<String>) {
    let mut missing = count;
    while missing > 0
        && let Some(change) = changes.recv().await
    {
        println!("{change}");
        missing -= usize::from(change.ends_with(": connected"));
    }
}

/// Shows the merged list, and calls each tool that tells the weather.
async fn show(servers: &Servers<mcp::ChildConnection>) -> Result<(), Box<dyn Error>> {
    let tools = servers.all_tools().await;
    for tool in tools.items.iter().filter(|tool| tool.item.name.ends_with("_weather")) {
        let result = servers.call_tool(&tool.item.name, &NoArguments {})?.await?;
        println!("  {}: {}", tool.item.name, result.first_text().unwrap_or("no text"));
    }
    for error in tools.errors {
        println!("  {error}");
    }
    Ok(())
}

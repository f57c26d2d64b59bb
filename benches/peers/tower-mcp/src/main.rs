//! tower-mcp in the comparison.

use axum::serve::ListenerExt;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use shape::{MemoryReport, Meter, Subject, Task, Work};
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tower_mcp::client::{ChannelTransport, McpClient};
use tower_mcp::extract::{Context, Json};
use tower_mcp::{CallToolResult, HttpTransport, McpRouter, StdioTransport, ToolBuilder};

#[derive(Debug, Deserialize, JsonSchema)]
struct Echo {
    text: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Add {
    a: f64,
    b: f64,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Count {
    count: u32,
}

fn main() {
    let one_thread = || Builder::new_current_thread().enable_all().build().expect("a runtime");
    match Subject::from_args().task {
        Task::Link { work, rounds } => one_thread().block_on(link(work, rounds)),
        Task::Pairs(count) => one_thread().block_on(idle(count)),
        Task::Stdio => one_thread().block_on(async {
            StdioTransport::new(server()).run().await.expect("serves");
        }),
        Task::Http { address, .. } => {
            let runtime = Builder::new_multi_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let router = HttpTransport::new(server()).require_sessions().into_router_at("/mcp");
                let listener = tokio::net::TcpListener::bind(address).await.expect("listens");
                axum::serve(listener.tap_io(disable_nagle), router).await.expect("serves");
            });
        }
    }
}

fn server() -> McpRouter {
    let echo = ToolBuilder::new("echo")
        .description("Sends the text back")
        .handler(|echo: Echo| async move { Ok(CallToolResult::text(echo.text)) })
        .build();
    let add = ToolBuilder::new("add")
        .description("Adds two numbers")
        .handler(|add: Add| async move { Ok(CallToolResult::text((add.a + add.b).to_string())) })
        .build();
    let progress = ToolBuilder::new("progress")
        .description("Reports progress, step by step")
        .extractor_handler((), |context: Context, Json(count): Json<Count>| async move {
            let total = f64::from(count.count);
            for step in 1..=count.count {
                context.report_progress(f64::from(step), Some(total), None).await;
            }
            Ok(CallToolResult::text(format!("{} steps", count.count)))
        })
        .build();
    McpRouter::new().server_info("bench-server", "1.0.0").tool(echo).tool(add).tool(progress)
}

/// Runs round trips between a client and the server as tokio tasks, with strings in channels.
async fn link(work: Work, rounds: u64) {
    let client = open().await;
    let text = work.text();
    let meter = Meter::start();
    for _ in 0..rounds {
        match work {
            Work::Ping => client.ping().await.expect("an answer"),
            Work::Echo(_) => {
                let result = client.call_tool("echo", json!({ "text": text })).await;
                assert_eq!(result.expect("an answer").first_text(), Some(&*text));
            }
        }
    }
    meter.report();
}

/// Measures idle clients and servers.
async fn idle(count: usize) {
    // The first pair excludes one-time allocations.
    let _first = open().await;
    let mut pairs = Vec::with_capacity(count);
    let memory_report = MemoryReport::start();
    for _ in 0..count {
        pairs.push(open().await);
    }
    // Let the tasks finish their pending work.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    memory_report.report();
}

async fn open() -> McpClient {
    let client = McpClient::connect(ChannelTransport::new(server())).await.expect("connects");
    client.initialize("peers", "1.0.0").await.expect("opens");
    client
}

/// Disables Nagle's algorithm, so that a response in several writes does not wait for
/// acknowledgements.
fn disable_nagle(socket: &mut TcpStream) {
    socket.set_nodelay(true).expect("a socket");
}

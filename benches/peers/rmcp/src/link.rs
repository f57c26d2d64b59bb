use rmcp::model::{CallToolRequestParams, ClientRequest, PingRequest};
use rmcp::service::RunningService;
use rmcp::{RoleClient, ServerHandler, ServiceExt};
use serde_json::json;
use shape::{MemoryReport, Meter, Work};

/// The size of a typical socket buffer.
const BUFFER_LENGTH: usize = 256 * 1024;

/// Runs round trips between a client and `server` as tokio tasks.
pub(crate) async fn run(server: impl ServerHandler, work: Work, rounds: u64) {
    let client = open(server).await;
    let text = work.text();
    let meter = Meter::start();
    for _ in 0..rounds {
        match work {
            Work::Ping => {
                let ping = ClientRequest::PingRequest(PingRequest::default());
                client.send_request(ping).await.expect("an answer");
            }
            Work::Echo(_) => {
                let mut arguments = serde_json::Map::new();
                arguments.insert("text".into(), json!(text));
                let params = CallToolRequestParams::new("echo").with_arguments(arguments);
                let result = client.call_tool(params).await.expect("an answer");
                let block = result.content[0].as_text().expect("a text");
                assert_eq!(block.text, text);
            }
        }
    }
    meter.report();
}

/// Measures idle clients and servers.
pub(crate) async fn idle<S: ServerHandler>(server: impl Fn() -> S, count: usize) {
    // The first pair excludes one-time allocations.
    let _first = open(server()).await;
    let mut pairs = Vec::with_capacity(count);
    let memory_report = MemoryReport::start();
    for _ in 0..count {
        pairs.push(open(server()).await);
    }
    // Let the tasks finish their pending work.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    memory_report.report();
}

async fn open(server: impl ServerHandler) -> RunningService<RoleClient, ()> {
    let (near, far) = tokio::io::duplex(BUFFER_LENGTH);
    tokio::spawn(async move {
        let running = server.serve(far).await.expect("opens");
        running.waiting().await.expect("serves");
    });
    ().serve(near).await.expect("opens")
}

use rmcp::model::{CallToolRequestParams, ClientRequest, PingRequest};
use rmcp::service::RunningService;
use rmcp::{RoleClient, ServerHandler, ServiceExt};
use serde_json::json;
use shape::{MemoryReport, Meter, Work};

/// As much as a socket takes.
const BUFFER_LENGTH: usize = 256 * 1024;

/// Round trips between a client and `server`, as tasks of tokio.
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

/// Clients and servers that do nothing.
pub(crate) async fn idle<S: ServerHandler>(server: impl Fn() -> S, count: usize) {
    // What all have in common is made for the first.
    let _first = open(server()).await;
    let mut pairs = Vec::with_capacity(count);
    let memory_report = MemoryReport::start();
    for _ in 0..count {
        pairs.push(open(server()).await);
    }
    // What their tasks still have to do.
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

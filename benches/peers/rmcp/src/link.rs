use rmcp::model::{CallToolRequestParams, ClientRequest, PingRequest};
use rmcp::{ServerHandler, ServiceExt};
use serde_json::json;
use shape::{Meter, Work};

/// As much as a socket takes.
const BUFFER_LENGTH: usize = 256 * 1024;

/// Round trips between a client and `server`, as tasks of tokio.
pub(crate) async fn run(server: impl ServerHandler, work: Work, rounds: u64) {
    let (near, far) = tokio::io::duplex(BUFFER_LENGTH);
    tokio::spawn(async move {
        let running = server.serve(far).await.expect("opens");
        running.waiting().await.expect("serves");
    });
    let client = ().serve(near).await.expect("opens");
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

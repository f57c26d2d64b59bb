//! The driver with a real server endpoint.

use mcp_sansio_handlers::Server;

use super::DriverTest;
use super::scripted::{Scripted, Step};

#[test]
fn a_server_answers_requests_received_before_the_end_of_input() {
    let server = Server::new("quiet", "1").endpoint(7).unwrap();
    let pings: String = (0..5000)
        .map(|id| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n"))
        .collect();
    let stream = Scripted::default().read(&pings).read("{\"jsonrpc\":").step(Step::End);
    let mut bench = DriverTest::new(server, stream);
    bench.run(5000).unwrap();
    let written = bench.stream.written();
    assert_eq!(written.matches("\"result\"").count(), 5000, "{written}");
    assert!(written.contains("-32700"), "the truncated line is a parse error");
}

//! Telemetry through real exporters: OTLP over a socket, Prometheus, and a subscriber of `tracing`.

mod access_log;
mod collector;
mod otlp;
mod prometheus;
mod tracing_spans;

use mcp_sansio_handlers::{Call, Host, NoArguments, Server};
use mcp_sansio_telemetry::Telemetry;
use mcp_sansio_test::connect;

/// Calls two tools of a server; both sides report to `telemetry`.
fn call_tools(telemetry: &Telemetry) {
    let server = Server::new("s", "1")
        .tool("now", "", |_: Call<NoArguments>| "noon")
        .tool("fail", "", |_: Call<NoArguments>| {
            Err::<String, _>(mcp_sansio_handlers::HandlerError::failed("closed"))
        })
        .observe_operations(telemetry.clone());
    let host = Host::new("h", "1").observe_operations(telemetry.clone());
    let (client, mut pair) = connect(&server, &host);
    pair.run(client.call_tool("now", &NoArguments {})).unwrap();
    pair.run(client.call_tool("fail", &NoArguments {})).unwrap();
}

//! Requests for tests, as received from a machine.

use alloc::format;
use alloc::vec::Vec;

use mcp_sansio::Instant;
use mcp_sansio::peer::{Event, Policy, Request, Server, ServerOptions};
use mcp_sansio::protocol::Implementation;

/// Returns `count` unanswered `x/wait` requests of one client.
pub(super) fn received_requests(count: u32) -> Vec<Request<'static>> {
    let mut policy = Policy::default();
    policy.deliver_unknown_methods = true;
    let mut server =
        Server::new(ServerOptions::new(Implementation::new("s", "1")).policy(policy), 1);
    let receive = |id| {
        let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"x/wait","params":{{"_meta":{meta}}}}}"#
        );
        match server.handle_message(line.as_bytes(), Instant::ZERO) {
            Ok(Some(Event::Request(request))) => request.into_owned(),
            other => panic!("no request: {other:?}"),
        }
    };
    (0..count).map(receive).collect()
}

//! What the machines of a server's two bindings do not have in common.

use std::time::Duration;

use mcp_sansio::http;
use mcp_sansio::peer::{self, RequestHandle, ServerMachine};

/// A server's machine, as its application sees it.
pub(crate) trait DeskMachine: ServerMachine {
    /// Whether so much waits for the client that what can be left out is.
    fn is_behind(&self) -> bool;
    fn release(&mut self, request: RequestHandle, retry: Duration);
}

impl DeskMachine for peer::Server {
    fn is_behind(&self) -> bool {
        self.is_congested()
    }

    fn release(&mut self, _request: RequestHandle, _retry: Duration) {}
}

impl DeskMachine for http::Server {
    fn is_behind(&self) -> bool {
        // Each stream has bounds of its own, and what they drop is reported.
        false
    }

    fn release(&mut self, request: RequestHandle, retry: Duration) {
        self.release_connection(request, retry);
    }
}

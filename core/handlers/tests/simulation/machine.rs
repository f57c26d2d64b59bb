//! Differences between the server machines of the two bindings.

use std::time::Duration;

use mcp_sansio::peer::{RequestHandle, ServerMachine};

use crate::played::{HttpServer, Server};

/// The machine of a server, as its application uses it.
pub(crate) trait BoundServerMachine: ServerMachine {
    /// Returns whether so much output is queued that optional messages are dropped.
    fn is_behind(&self) -> bool;
    fn release(&mut self, request: RequestHandle, retry: Duration);
}

impl BoundServerMachine for Server {
    fn is_behind(&self) -> bool {
        self.is_congested()
    }

    fn release(&mut self, _request: RequestHandle, _retry: Duration) {}
}

impl BoundServerMachine for HttpServer {
    fn is_behind(&self) -> bool {
        // Each stream has its own limits, and dropped messages are reported.
        false
    }

    fn release(&mut self, request: RequestHandle, retry: Duration) {
        self.release_connection(request, retry);
    }
}

//! Input of an HTTP server from its stores and from other nodes.

use alloc::vec::Vec;

use mcp_sansio::Instant;
#[cfg(doc)]
use mcp_sansio::http;
use mcp_sansio::http::{
    ActionId, EventPosition, NotStored, ReadId, StoreError, StoreReply, StoredEvent,
};

use super::http_server::HttpServer;
use super::threading::Threading;

impl<K: Threading> HttpServer<K> {
    /// Handles the events that a read of the event store returned: see
    /// [`http::Server::handle_stored`].
    pub fn handle_stored(
        &mut self,
        read: ReadId,
        events: Result<Vec<StoredEvent>, NotStored>,
        now: Instant,
    ) {
        self.endpoint.machine.handle_stored(read, events, now);
    }

    /// Handles a read that failed because the store cannot be reached: see
    /// [`http::Server::fail_read`].
    pub fn fail_read(&mut self, read: ReadId, now: Instant) {
        self.latest = now;
        self.endpoint.machine.fail_read(read, now);
    }

    /// Handles the result of a shared store's action: see [`http::Server::handle_store`].
    pub fn handle_store(
        &mut self,
        action: ActionId,
        result: Result<StoreReply, StoreError>,
        now: Instant,
    ) {
        self.latest = now;
        self.endpoint.machine.handle_store(action, result, now);
    }

    /// Handles an event that a shared store has stored, or failed to store: see
    /// [`http::Server::handle_appended`].
    pub fn handle_appended(&mut self, place: &EventPosition) {
        self.endpoint.machine.handle_appended(place);
    }

    /// Handles an event that a shared store has refused: see
    /// [`http::Server::handle_append_refused`].
    pub fn handle_append_refused(&mut self, place: &EventPosition, now: Instant) {
        self.latest = now;
        self.endpoint.machine.handle_append_refused(place, now);
    }

    /// Handles a message of another node: see [`http::Server::handle_node_message`].
    pub fn handle_node_message(&mut self, message: &[u8], now: Instant) {
        self.latest = now;
        self.endpoint.machine.handle_node_message(message, now);
    }

    /// Announces the end of this node to the others: see [`http::Server::leave`].
    pub fn leave(&mut self) {
        self.endpoint.machine.leave();
    }
}

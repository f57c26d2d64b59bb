//! Ends streams when the token with which they were opened expires.

use mcp_sansio_collections::Key;

use crate::Instant;
use crate::http::ExchangeId;

use super::{Connection, Server};

impl Server {
    /// Sets when the authorization of an exchange's request expires, such as a token. At `deadline`
    /// its stream ends, so that the client must come back with a valid authorization:
    ///
    /// * at 2026-07-28 a listen stream, with its result;
    /// * at 2025-11-25 every stream, as by [`release_connection`](Self::release_connection);
    /// * at the older revisions a stream opened by a GET. The stream of HTTP+SSE is the session.
    ///
    /// Any other response continues until its JSON-RPC response: its request was authorized when it
    /// arrived, and the client cannot come back for the response, or the revision requires it on
    /// this stream. It has no effect if the exchange has ended.
    // MCP 2025-03-26 basic/transports#sending-messages-to-the-server [SSE-002]
    // MCP 2025-11-25 basic/transports#listening-for-messages-from-the-server [HSRV-014]
    pub fn set_expiry(&mut self, exchange: ExchangeId, deadline: Instant) {
        let key = exchange.0;
        if !self.ends_at_expiry(key) {
            if self.shared.is_some() {
                self.note_expiry(key, deadline);
            }
            return;
        }
        let Some(entry) = self.exchanges.get_mut(key) else { return };
        entry.expires = Some(deadline);
        let due = self.exchange_deadlines.get(key.slot).map_or(deadline, |due| due.min(deadline));
        self.exchange_deadlines.set(key.slot, due);
    }

    pub(crate) fn ends_at_expiry(&self, key: Key) -> bool {
        let Some(entry) = self.exchanges.get(key) else { return false };
        let connection = entry.connection.and_then(|connection| self.connections.get(connection));
        connection.is_some_and(|connection| match &connection.session {
            None => connection.machine.is_listening(),
            Some(_) => connection.polls() || !entry.asks,
        })
    }

    /// Handles the expiry of an exchange's authorization.
    pub(super) fn expire(&mut self, key: Key, now: Instant) {
        let Some(entry) = self.exchanges.get_mut(key) else { return };
        entry.expires = None;
        let (Some(connection), number) = (entry.connection, entry.stream) else { return };
        let Some(Connection { machine, session, .. }) = self.connections.get_mut(connection) else {
            return;
        };
        if session.is_none() {
            // MCP 2026-07-28 basic/patterns/subscriptions#graceful-closure [SUBS-008]
            machine.finish_listening();
            self.pump(connection, now);
        } else if self.connections.get(connection).is_some_and(Connection::polls) {
            // MCP 2025-11-25 basic/transports#sending-messages-to-the-server [SSE-006] [SSE-007]
            self.close_reader(connection, number, self.options.timeouts.retry);
        } else {
            self.close_after_the_rest(key);
        }
    }
}

//! The server on a binding with one channel per request.

use alloc::string::String;

use mcp_sansio_sync::Arc;

use crate::jsonrpc::{Frame, Malformed, RequestId};
use crate::peer::connection::Flow;
use crate::peer::handle::RequestHandle;
use crate::peer::outbox::{Channel, ChannelMessage};
use crate::peer::requests::ReplyTo;
use crate::{Caller, Instant, Revision};

use super::{Reading, Server, ServerConfig};
use crate::gate::metadata::Read;

impl Server {
    /// Handles a frame received on `channel`. Responses to its requests are sent on that channel,
    /// at once or later. Each channel with a request gets a response or a signal that it will not
    /// be answered. `read` is the metadata of a single request, and `reading` what its reader found
    /// out about a modern one.
    pub(crate) fn handle_on_channel<'f>(
        &mut self,
        frame: Result<Frame<'f>, Malformed>,
        read: Option<&mut Read<'f>>,
        reading: Option<&mut Reading>,
        channel: Channel,
        now: Instant,
    ) -> Flow<'f> {
        self.connection.check_open()?;
        let flow = match frame {
            Ok(Frame::Single(message)) => {
                self.receive(message, (read, reading), ReplyTo::on(channel), now)
            }
            Ok(Frame::Batch(batch)) => self.receive_batch(batch, channel, now),
            Err(malformed) => self.receive_malformed(&malformed, channel, now),
        };
        if flow.is_err() {
            self.finish_close();
        }
        flow
    }

    /// Handles a closed channel, which in the modern era cancels its request.
    // MCP 2026-07-28 basic/transports/streamable-http#cancellation [CANC-017]
    pub(crate) fn handle_channel_closed(&mut self, channel: Channel, now: Instant) {
        // There is at most one request, because each modern request has its own machine.
        let found = self.connection.requests.find_from(0, |entry| entry.reply.channel == channel);
        if let Some(key) = found {
            let event = self.give_up_request(key, None, now);
            self.connection.events.extend(event);
        }
    }

    /// Replaces the catalog and the capabilities of the server without notifying the client.
    pub(crate) fn adopt(&mut self, server_config: &ServerConfig) {
        self.config.catalog = Arc::clone(&server_config.catalog);
        self.config.modern = server_config.modern;
        self.config.guard = server_config.guard;
    }

    /// Sets the sender of the next frames, in the session of the machine.
    pub(crate) fn set_caller(&mut self, caller: &Caller) {
        self.caller = caller.clone().with_session(self.caller.session());
    }

    /// Changes the description of the connection for its observer.
    pub(crate) fn change_transport(
        &mut self,
        change: impl FnOnce(&mut crate::peer::OperationTransport),
    ) {
        if let Some(transport) = self.connection.observed.transport() {
            change(transport);
        }
    }

    /// Returns the next outgoing message and its channel, without removing it.
    pub(crate) fn next_message(&self) -> Option<(ChannelMessage, &str)> {
        self.connection.outbox.next_message()
    }

    pub(crate) fn skip_message(&mut self) {
        self.connection.outbox.skip_message();
    }

    pub(crate) fn take_message(&mut self) -> String {
        self.connection.outbox.take_message()
    }

    /// Returns the channel that received a request.
    pub(crate) fn channel_of(&self, request: RequestHandle) -> Option<Channel> {
        self.connection.requests.get(request.key).map(|entry| entry.reply.channel)
    }

    /// Returns whether a listen stream is open.
    pub(crate) const fn is_listening(&self) -> bool {
        self.connection.requests.listening().streams > 0
    }

    /// Ends all listen streams.
    pub(crate) fn finish_listening(&mut self) {
        self.end_listening();
    }

    /// Handles the permanent loss of the client: drops its requests and ends its calls.
    pub(crate) fn abandon(&mut self, now: Instant) {
        let mut slot = 0;
        while let Some(key) = self.connection.requests.find_from(slot, |_| true) {
            slot = key.slot + 1;
            let event = self.give_up_request(key, None, now);
            self.connection.events.extend(event);
        }
        self.end();
    }

    /// Releases spare memory, because many connections may be idle.
    pub(crate) fn shrink(&mut self) {
        const EVENTS: usize = 4;
        let events = &mut self.connection.events;
        if events.is_empty() && events.capacity() > EVENTS {
            *events = alloc::collections::VecDeque::new();
        }
        self.connection.outbox.shrink();
    }

    /// Returns the revision of the legacy session, if there is one.
    pub(crate) fn session_revision(&self) -> Option<Revision> {
        self.session.as_ref().map(super::ServerSession::revision)
    }

    /// Returns the number of pending requests of the client.
    pub(crate) fn requests_in_flight(&self) -> usize {
        self.connection.requests.len()
    }

    /// Returns whether a request of the client is in flight.
    pub(crate) fn is_in_flight(&self, id: &RequestId) -> bool {
        self.connection.requests.contains(id)
    }

    /// Returns whether the machine is idle, so that it may serve another modern request.
    pub(crate) fn is_fresh(&self) -> bool {
        self.session.is_none() && self.connection.requests.len() == 0 && self.is_quiet()
    }

    /// Returns whether the machine is open and has no output.
    pub(crate) fn is_quiet(&self) -> bool {
        self.connection.closed.is_none()
            && self.connection.events.is_empty()
            && self.connection.outbox.next_message().is_none()
    }
}

//! The server's side of a binding with a channel for each request.

use alloc::string::String;

use mcp_sansio_sync::Arc;

use crate::jsonrpc::{Frame, Malformed};
use crate::peer::connection::Flow;
use crate::peer::handle::RequestHandle;
use crate::peer::outbox::{Channel, ChannelMessage};
use crate::peer::requests::ReplyTo;
use crate::{Instant, Revision};

use super::{Declared, Server, ServerConfig};
use crate::peer::metadata::Read;

impl Server {
    /// Takes one frame that came on `channel`. What it says of requests is answered there, at once
    /// or later; for each channel with a request an answer comes, or the news that none will. `read`
    /// is what the parameters of a single request say.
    pub(crate) fn handle_on_channel<'f>(
        &mut self,
        frame: Result<Frame<'f>, Malformed>,
        read: Option<&mut Read<'f>>,
        channel: Channel,
        now: Instant,
    ) -> Flow<'f> {
        self.connection.check_open()?;
        let flow = match frame {
            Ok(Frame::Single(message)) => self.receive(message, read, ReplyTo::on(channel), now),
            Ok(Frame::Batch(batch)) => self.receive_batch(batch, channel, now),
            Err(malformed) => self.receive_malformed(&malformed, channel, now),
        };
        if flow.is_err() {
            self.finish_close();
        }
        flow
    }

    /// Swaps what is known of the last modern client. Where each modern request has a machine of
    /// its own, whoever has these machines keeps it for them.
    pub(crate) const fn swap_declared(&mut self, declared: &mut Option<Declared>) {
        core::mem::swap(&mut self.last_declared, declared);
    }

    /// The client has closed the channel of a request, which in the modern era gives it up.
    // MCP 2026-07-28 basic/transports/streamable-http#cancellation [CANC-017]
    pub(crate) fn handle_channel_closed(&mut self, channel: Channel, now: Instant) {
        // One request, or none: each modern request has a machine of its own.
        let found = self.connection.requests.find_from(0, |entry| entry.reply.channel == channel);
        if let Some(key) = found {
            let event = self.give_up_request(key, None, now);
            self.connection.events.extend(event);
        }
    }

    /// Takes over what the server offers from now on. Nobody is told.
    pub(crate) fn adopt(&mut self, server_config: &ServerConfig) {
        self.catalog = Arc::clone(&server_config.catalog);
        self.modern = server_config.modern;
        self.guard = server_config.guard;
    }

    /// The next message of this side and its channel, until it is taken.
    pub(crate) fn next_message(&self) -> Option<(ChannelMessage, &str)> {
        self.connection.outbox.next_message()
    }

    pub(crate) fn skip_message(&mut self) {
        self.connection.outbox.skip_message();
    }

    pub(crate) fn take_message(&mut self) -> String {
        self.connection.outbox.take_message()
    }

    /// The channel on which a request came.
    pub(crate) fn channel_of(&self, request: RequestHandle) -> Option<Channel> {
        self.connection.requests.get(request.key).map(|entry| entry.reply.channel)
    }

    /// Whether a listen stream is open.
    pub(crate) const fn is_listening(&self) -> bool {
        self.connection.requests.listening().streams > 0
    }

    /// Ends every listen stream.
    pub(crate) fn finish_listening(&mut self) {
        self.end_listening();
    }

    /// The client has gone for good: its requests are given up and its calls end.
    pub(crate) fn abandon(&mut self, now: Instant) {
        let mut slot = 0;
        while let Some(key) = self.connection.requests.find_from(slot, |_| true) {
            slot = key.slot + 1;
            let event = self.give_up_request(key, None, now);
            self.connection.events.extend(event);
        }
        self.close();
    }

    /// Gives back the memory of a busier time, as many connections may stand idle.
    pub(crate) fn shrink(&mut self) {
        const EVENTS: usize = 4;
        let events = &mut self.connection.events;
        if events.is_empty() && events.capacity() > EVENTS {
            *events = alloc::collections::VecDeque::new();
        }
        self.connection.outbox.shrink();
    }

    /// The revision of the legacy session, once a client opened one.
    pub(crate) fn session_revision(&self) -> Option<Revision> {
        self.session.as_ref().map(super::Session::revision)
    }

    /// Requests of the client that wait for their answer.
    pub(crate) fn requests_in_flight(&self) -> usize {
        self.connection.requests.len()
    }

    /// Whether nothing is under way, so that the machine may serve another modern request.
    pub(crate) fn is_fresh(&self) -> bool {
        self.session.is_none() && self.connection.requests.len() == 0 && self.is_quiet()
    }

    /// Whether it has made nothing that is still to be taken, and goes on.
    pub(crate) fn is_quiet(&self) -> bool {
        self.connection.closed.is_none()
            && self.connection.events.is_empty()
            && self.connection.outbox.next_message().is_none()
    }
}

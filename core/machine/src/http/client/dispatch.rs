//! Turns the messages of the peer into exchanges, and decides when they are sent.

use alloc::vec::Vec;

use bytes::Bytes;
use bytestring::ByteString;
use mcp_sansio_sync::Arc;

use crate::binding::{Field, HeaderFields};
use crate::http::ExchangeId;
use crate::http::header_params::UnsendableCall;
use crate::peer::outbox::Part;
use crate::peer::{DeliveryFailed, Event, Failure, TransportFailure};
use crate::protocol::Method;
use crate::{Era, Instant};

use super::exchanges::{Exchange, Purpose, Receiving};
use super::message::{Message, MessageKind, RequestKind};
use super::transmit::{ClientTransmit, OutgoingRequest};
use super::{Client, SendState, Transport};

impl Client {
    /// Processes everything that can be done before the next input.
    pub(super) fn pump(&mut self, now: Instant) {
        loop {
            let mut moved = self.forward_events();
            moved |= self.take_posts(now);
            if self.peer.is_closed() {
                self.forward_events();
                self.shut_down(now);
                return;
            }
            moved |= self.resolve_lookups(now);
            moved |= self.dispatch(now);
            if !moved {
                return self.pause_queue(now);
            }
        }
    }

    /// Forwards the pending events of the peer. Returns whether there were any.
    pub(super) fn forward_events(&mut self) -> bool {
        let mut told = false;
        while let Some(event) = self.peer.poll_event() {
            self.report_event(event);
            told = true;
        }
        told
    }

    pub(super) fn report_event(&mut self, event: Event<'static>) {
        if let Event::Opened(opened) = &event {
            self.session_opened(opened.revision);
        }
        if let Event::Ended(ended) = &event {
            self.call_fields.remove(ended.call);
        }
        if self.events.capacity() == 0 {
            // Events are large and usually taken one by one: a queue would start with room for
            // four.
            self.events.reserve_exact(1);
        }
        self.events.push_back(event);
    }

    /// Takes the pending messages of the peer. Returns whether there were any.
    pub(super) fn take_posts(&mut self, now: Instant) -> bool {
        let mut taken = false;
        while let Some((post, _)) = self.peer.next_message() {
            let part = post.part;
            self.take_post(part, now);
            taken = true;
        }
        taken
    }

    /// Returns the next message that the peer has to send.
    pub(super) fn next_post(&mut self) -> Option<Message> {
        let part = self.peer.next_message()?.0.part;
        Some(Message::new(part, self.peer.take_message()))
    }

    fn take_post(&mut self, part: Part, now: Instant) {
        match part {
            // MCP 2025-11-25 basic/transports#sending-messages-to-the-server [HCLI-015]: a response
            // is posted like any other message, regardless of the stream on which its request
            // arrived.
            Part::Request(_) | Part::Notification(_) | Part::Answers | Part::Answer(_) => {
                let message = Message::new(part, self.peer.take_message());
                if let MessageKind::Cancellation(id) = message.kind
                    && !self.cancel_legacy(id, now)
                {
                    return;
                }
                self.queue.push_back(message);
            }
            Part::Withdrawn | Part::Recalled(_) => self.peer.skip_message(),
            Part::Abort(id) => {
                self.peer.skip_message();
                self.give_up(id);
            }
        }
    }

    /// Abandons a request to a modern server by closing its exchange, which tells the server.
    // MCP 2026-07-28 basic/transports/streamable-http#cancellation [CANC-017]
    // MCP 2026-07-28 basic/transports/streamable-http#sending-messages [HCLI-014]
    fn give_up(&mut self, id: i64) {
        if self.queue.withdraw(id) {
            return;
        }
        if let Some(exchange) = self.exchanges.find_by_request(id) {
            self.abort(exchange);
        }
        self.drop_pause(id);
    }

    /// Cancels a request to a legacy server. Returns whether the server must be notified.
    fn cancel_legacy(&mut self, id: i64, now: Instant) -> bool {
        // A request that was never sent, or not executed, needs no cancellation.
        let waits = self.tools.waiting_calls().any(|call| call == id);
        if self.queue.withdraw(id) || self.drop_pause(id) || waits {
            return false;
        }
        // MCP 2025-11-25 basic/transports#sending-messages-to-the-server [SSE-011]: closing the
        // exchange does not cancel the request, so it stays open for further messages of the
        // server.
        let Some(id) = self.exchanges.find_by_request(id) else { return true };
        let exchange = self.exchanges.get(id);
        // A paused request has not been sent, so it never ran.
        if exchange.is_some_and(|exchange| exchange.paused && exchange.purpose == Purpose::Post) {
            self.abort(id);
            return false;
        }
        // If the session in which it was sent has ended, the next session does not know the
        // request.
        // MCP 2025-11-25 basic/utilities/cancellation#behavior-requirements [CANC-001]
        let session = exchange.and_then(|exchange| exchange.session);
        let known = session.is_none_or(|number| number == self.legacy.number);
        self.linger(id, now);
        known
    }

    /// Returns whether the request was to be sent again.
    fn drop_pause(&mut self, id: i64) -> bool {
        let pauses = &mut self.exchanges.pauses;
        let again = pauses.iter().any(|pause| pause.again && pause.is_of(id));
        pauses.retain(|pause| !pause.is_of(id));
        again
    }

    /// Sends the messages that may be sent now. Returns whether there were any.
    // MCP 2025-11-25 basic/transports#sending-messages-to-the-server [HCLI-001] [HCLI-005]: every
    // message has its own POST, and does not wait for other responses.
    pub(super) fn dispatch(&mut self, now: Instant) -> bool {
        let mut moved = false;
        while let Some(message) = self.next_message() {
            self.post(message, now);
            moved = true;
        }
        moved
    }

    fn next_message(&mut self) -> Option<Message> {
        let (send_state, limits) = (self.send_state, &self.options.limits);
        let probe = matches!(self.transport, Transport::Probing(_));
        if self.exchanges.control() < limits.control_exchanges_max.max(1) {
            let may_leave = |message: &Message| match message.kind {
                MessageKind::Initialized | MessageKind::Answer | MessageKind::Cancellation(_) => {
                    !probe
                }
                _ => matches!(send_state, SendState::Open | SendState::Listening(_)),
            };
            if let Some(message) = self.queue.take_control(may_leave) {
                return Some(message);
            }
        }
        if self.exchanges.requests() < limits.requests_max.max(1) {
            let may_leave = |message: &Message| match message.request() {
                Some((_, RequestKind::Discover)) => true,
                Some((_, RequestKind::Initialize)) => !probe,
                _ => send_state == SendState::Open,
            };
            return self.queue.take_request(may_leave);
        }
        None
    }

    // MCP 2025-03-26 basic/transports#sending-messages-to-the-server [BATCH-005]: a body is never
    // an array, so messages are never mixed.
    fn post(&mut self, message: Message, now: Instant) {
        // A request may end while it is queued again: its server has answered it on another stream.
        if let Some((id, _)) = message.request()
            && !self.peer.resume_call(id, now)
        {
            return;
        }
        let url = match &self.transport {
            Transport::Streamable | Transport::Probing(_) => Arc::clone(&self.url),
            // MCP 2024-11-05 basic/transports#http-with-sse [LSSE-003]
            Transport::HttpSse(endpoint) => Arc::clone(endpoint),
        };
        let exchange = Exchange { message: Some(message), ..Exchange::new(Purpose::Post, url) };
        self.send(exchange, now);
    }

    /// Opens an exchange.
    pub(super) fn send(&mut self, mut exchange: Exchange, now: Instant) -> Option<ExchangeId> {
        let fields = match self.fields(&exchange) {
            Ok((fields, session)) => {
                exchange.session = session;
                if self.tools.is_mirrored_in_sessions
                    && let Some(message) = &mut exchange.message
                    && let Some(tool) = message.tool_if_called()
                {
                    message.mirrored = self.tools.header_params(&tool).is_some();
                }
                fields
            }
            Err(UnsendableCall::Unlisted { tool }) => {
                if let Some(message) = exchange.message {
                    self.look_up_tool(message, tool, now);
                }
                return None;
            }
            Err(error) => {
                if let Some(id) = exchange.request_id() {
                    let what = alloc::string::ToString::to_string(&error);
                    let failure = TransportFailure::Unmirrorable { what };
                    self.peer.fail_call(id, Failure::Transport(failure), now);
                }
                return None;
            }
        };
        if exchange.is_control() {
            exchange.cut_off_at = Some(now + self.peer.call_timeout());
        }
        let (method, body) = match exchange.purpose {
            Purpose::Post => {
                let body = exchange.message.as_ref().map(|message| message.text.as_bytes().clone());
                ("POST", body.unwrap_or_default())
            }
            Purpose::Resume | Purpose::Listen | Purpose::HttpSse => ("GET", Bytes::new()),
            Purpose::End => ("DELETE", Bytes::new()),
        };
        let url = Arc::clone(&exchange.url);
        let looks_up = |request| self.tools.call_waiting_for(request).is_some();
        let is_lookup = exchange.request_id().is_some_and(looks_up);
        let exchange = self.exchanges.insert(exchange);
        let request = OutgoingRequest { exchange, method, body, url, fields, is_lookup };
        self.transmits.push_back(ClientTransmit::Send(request));
        Some(exchange)
    }

    /// Returns the header fields of an exchange, and the number of the session that they name.
    fn fields(&self, exchange: &Exchange) -> Result<(Vec<Field>, Option<u32>), UnsendableCall> {
        const EVENTS: &str = "text/event-stream";
        const BOTH: &str = "application/json, text/event-stream";
        /// The number of fields of a tool call without mirrored arguments.
        const FIELDS: usize = 7;
        let mut fields = Vec::with_capacity(FIELDS);
        let accept = match exchange.purpose {
            // MCP 2025-11-25 basic/transports#sending-messages-to-the-server [HCLI-002]
            Purpose::Post => BOTH,
            // MCP 2025-11-25 basic/transports#listening-for-messages-from-the-server [HCLI-008]
            Purpose::Resume | Purpose::Listen | Purpose::HttpSse => EVENTS,
            Purpose::End => "*/*",
        };
        fields.push(("accept".into(), ByteString::from_static(accept)));
        // Without the field, a server may compress.
        fields.push(("accept-encoding".into(), ByteString::from_static("identity")));
        let message = exchange.message.as_ref();
        if let (Purpose::Post, Some(message)) = (exchange.purpose, message) {
            // MCP 2026-07-28 basic/transports/streamable-http#standard-request-headers [HCLI-004]
            let json = ByteString::from_static("application/json");
            fields.push(("content-type".into(), json));
            let session = self.peer.session_revision();
            message.metadata_fields(session, &self.tools, &mut fields)?;
        }
        // MCP 2025-11-25 basic/transports#resumability-and-redelivery [RESUME-004] [RESUME-005]
        if matches!(exchange.purpose, Purpose::Resume | Purpose::Listen)
            && let Some(id) = exchange.stream.as_ref().and_then(|stream| stream.last_id.as_ref())
        {
            fields.push(("last-event-id".into(), id.as_str().into()));
        }
        let session =
            self.place_in_session(message, exchange.purpose == Purpose::Post, &mut fields);
        // They may be secrets for this server only. All exchanges go to its origin: redirects and
        // endpoints of other origins are refused.
        let of_call = self.fields_of_call(exchange);
        fields.extend(self.options.headers.without(of_call));
        fields.extend(of_call.into_iter().flat_map(|fields| fields.without(None)));
        Ok((fields, session))
    }

    /// Returns the fields that the application set for the call of an exchange. All requests of
    /// the call have them, also those of its input rounds, those that resume its stream, and those
    /// that read the list of tools for it.
    fn fields_of_call(&self, exchange: &Exchange) -> Option<&HeaderFields> {
        if self.call_fields.is_empty() {
            return None;
        }
        let request = exchange.request_id()?;
        let request = self.tools.call_waiting_for(request).unwrap_or(request);
        self.call_fields.get(self.peer.call_of_application(request)?)
    }

    // ------------------------------------------------------------------ end of exchanges

    /// Takes the state out of an exchange and lets the rest of its response arrive, because
    /// aborting it would close the connection.
    pub(super) fn detach(&mut self, id: ExchangeId, now: Instant) -> Option<Exchange> {
        let limits = &self.options.limits;
        let many =
            limits.requests_max.saturating_add(limits.control_exchanges_max.saturating_mul(2));
        if self.exchanges.len() > many {
            return self.abort(id);
        }
        self.exchanges.detach(id, now + limits.linger)
    }

    /// Aborts an exchange, or removes it from the queue if it was not sent yet.
    pub(super) fn abort(&mut self, id: ExchangeId) -> Option<Exchange> {
        let exchange = self.exchanges.remove(id)?;
        let waits = |transmit: &ClientTransmit| matches!(transmit, ClientTransmit::Send(request) if request.exchange == id);
        // Only exchanges without a response head can still be in the transmit queue.
        if matches!(exchange.receiving, Receiving::Head)
            && let Some(at) = self.transmits.iter().position(waits)
        {
            self.transmits.remove(at);
        } else if !exchange.over {
            self.transmits.push_back(ClientTransmit::Abort(id));
        }
        Some(exchange)
    }

    /// Lets the response of an ended request arrive for a while, because aborting it would close
    /// the connection.
    pub(super) fn linger(&mut self, id: ExchangeId, now: Instant) {
        let until = now + self.options.limits.linger;
        self.exchanges.set_paused(id, false);
        if let Some(exchange) = self.exchanges.get_mut(id) {
            exchange.cut_off_by(until);
        }
    }

    /// Reports that a notification or response could not be delivered.
    pub(super) fn delivery_failed(&mut self, message: &Message, failure: TransportFailure) {
        let method = match &message.kind {
            MessageKind::Answer => None,
            MessageKind::Initialized => Some(Method::Initialized),
            MessageKind::Cancellation(_) => Some(Method::Cancelled),
            MessageKind::Notification(method) => *method,
            MessageKind::Request(..) => return,
        };
        self.peer.report(Event::DeliveryFailed(DeliveryFailed { method, failure }));
    }

    /// Returns whether the server is a modern one.
    pub(super) fn is_modern(&self) -> bool {
        self.peer.session_revision().is_some_and(|revision| revision.era() == Era::Modern)
    }
}

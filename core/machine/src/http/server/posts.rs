//! Handles posted messages.

use alloc::format;
use alloc::vec::Vec;

use mcp_sansio_collections::Key;

use crate::http::{ExchangeId, RequestHead, Response, ResponseHead, SessionId, Status};
use crate::jsonrpc::{Frame, Malformed, Message, RequestId, RequestMessage};
use crate::peer::outbox::Channel;
use crate::peer::server::Reading;
use crate::peer::{Event, Violation};
use crate::protocol::Method;
use crate::{Instant, Revisions};

use super::callers::Sender;
use super::exchange::{Exchange, State};
use super::options::ResponseMode;
use super::reader::{
    Body, Post, Posted, closing, named_revision, refusal, refuse_malformed, take_refusal,
};
use super::sessions::no_session;
use super::sessions::{STANDALONE, Transport};
use super::stream::Stream;
use super::streams::Streams;
use super::{Connection, Server, stamp};

/// The channel of the only request on a modern connection, and the number of its stream.
pub(super) const ONLY: u32 = 0;

/// The outcome of a request: its exchange, and at most one event.
pub(super) type Handled<'f> = (ExchangeId, Option<Event<'f>>);

impl Server {
    /// Handles a message to the endpoint.
    pub(super) fn post<'f>(
        &mut self,
        head: &RequestHead<'_>,
        post: Post<'_, 'f>,
        sender: Sender<'_>,
        now: Instant,
    ) -> Result<Handled<'f>, Response> {
        let Post { body, posted } = post;
        self.check_not_closing(&body.frame)?;
        match posted {
            Posted::Request(Ok(reading)) => return Ok(self.modern(body, reading, sender, now)),
            Posted::Notification(repeats) => {
                let repeats = *repeats;
                let Ok(Frame::Single(Message::Notification(notification))) = &body.frame else {
                    return Ok((self.respond_whole(accepted()), None));
                };
                self.observe_notification(notification, repeats, sender.identity);
                return match repeats {
                    Ok(()) => Ok((self.respond_whole(accepted()), None)),
                    Err(what) => Ok(self.refuse_notification(&notification.method, what)),
                };
            }
            Posted::Request(Err(refused)) | Posted::Refused(refused) => {
                return Err(take_refusal(refused));
            }
            Posted::Malformed(refused) => {
                let event = body
                    .frame
                    .err()
                    .map(|malformed| Event::Violation(Violation::Malformed(malformed.reason)));
                return Ok((self.respond_whole(take_refusal(refused)), event));
            }
            Posted::InSession => {}
        }
        self.legacy(head, body, sender, now)
    }

    /// Refuses new requests once the server is closing. Messages for pending requests are still
    /// accepted.
    pub(super) fn check_not_closing(
        &self,
        frame: &Result<Frame<'_>, Malformed>,
    ) -> Result<(), Response> {
        let new = matches!(frame, Ok(Frame::Single(Message::Request(_)) | Frame::Batch(_)));
        if self.closing && new { Err(closing(named_request(frame))) } else { Ok(()) }
    }

    // ------------------------------------------------------------------ modern

    /// Refuses a modern notification.
    fn refuse_notification<'f>(&mut self, method: &str, what: &'static str) -> Handled<'f> {
        let violation = match Method::parse(method) {
            Some(method) => Violation::BadParameters { method, what },
            None => Violation::OutOfPlace(what),
        };
        let response = refusal(Status::BAD_REQUEST, None, &format!("{violation}"));
        (self.respond_whole(response), Some(Event::Violation(violation)))
    }

    /// Handles a modern request, which is a connection of its own. Its stream has no event ids.
    // MCP 2026-07-28 basic/transports/streamable-http#receiving-messages [RESUME-008] [HSRV-020]
    fn modern<'f>(
        &mut self,
        body: Body<'_, 'f>,
        reading: &mut Reading,
        sender: Sender<'_>,
        now: Instant,
    ) -> Handled<'f> {
        let connection = Connection {
            machine: self.fresh_machine(),
            caller: sender.caller,
            session: None,
            streams: Streams::new(Stream::new(ONLY)),
        };
        let connection = self.connections.insert(connection);
        let mode = ResponseMode::JsonWhenAlone.for_client(sender.accepted);
        let exchange = Exchange::new(Some(connection), ONLY, State::Waiting);
        let exchange = self.open_exchange(exchange, sender.caller);
        let Some(Connection { machine, streams, .. }) = self.connections.get_mut(connection) else {
            return (ExchangeId(exchange), None);
        };
        if let Some(stream) = streams.get_mut(ONLY) {
            stream.reader = Some(exchange);
            stream.mode = mode;
        }
        machine.set_caller(sender.identity);
        machine.change_transport(|transport| transport.clone_from(&self.arriving));
        let (Body { frame, read }, channel) = (body, Channel(ONLY));
        let mut flow = machine.handle_on_channel(frame, read, Some(reading), channel, now);
        // Most requests are for a handler, and have no output yet.
        if !machine.is_quiet() {
            self.pump(connection, now);
        }
        self.arm_waiting(exchange, (mode, sender.accepted), now);
        if let Ok(Some(event)) = &mut flow {
            stamp(event, connection);
        }
        (ExchangeId(exchange), flow.ok().flatten())
    }

    // ------------------------------------------------------------------ legacy

    fn legacy<'f>(
        &mut self,
        head: &RequestHead<'_>,
        body: Body<'_, 'f>,
        sender: Sender<'_>,
        now: Instant,
    ) -> Result<Handled<'f>, Response> {
        let request = named_request(&body.frame);
        let initialize = matches!(
            request_in(&body.frame),
            Some(request) if Method::parse(&request.method) == Some(Method::Initialize)
        );
        // The version of a session is negotiated in the body. Some clients have the header of the
        // newest version that they know in all requests.
        if !initialize {
            check_version(head, self.legacy_revisions(), request)?;
        }
        if initialize {
            // A client that opens a session anew has no use for the one that it names, if that
            // still exists.
            // MCP 2025-11-25 basic/transports#session-management [SESS-009]
            let old = head.session_id.and_then(SessionId::parse).and_then(|id| {
                self.session_of(id, sender.identity.principal(), Transport::Streamable)
            });
            let (exchange, event, opened) = self.initialize(body, sender, now)?;
            if let Some(old) = old.filter(|_| opened) {
                self.end_shared_session(old, now);
            }
            return Ok((exchange, event));
        }
        let session = self.find_session(head, sender.identity.principal(), request)?;
        Ok(self.deliver(session, body, sender, now))
    }

    /// Handles a request that opens a session, if it is valid. Returns whether it does.
    fn initialize<'f>(
        &mut self,
        body: Body<'_, 'f>,
        sender: Sender<'_>,
        now: Instant,
    ) -> Result<(ExchangeId, Option<Event<'f>>, bool), Response> {
        let key =
            self.new_session(Transport::Streamable, sender, named_request(&body.frame), now)?;
        let (exchange, event) = self.deliver(key, body, sender, now);
        let opened = self
            .connections
            .get(key)
            .is_some_and(|connection| connection.machine.session_revision().is_some());
        if opened {
            self.prime_standalone(key);
        } else {
            // The response contains the reason. No session was opened.
            self.forget_session(key);
        }
        Ok((exchange, event, opened))
    }

    /// Passes a frame to its session.
    pub(super) fn deliver<'f>(
        &mut self,
        key: Key,
        body: Body<'_, 'f>,
        sender: Sender<'_>,
        now: Instant,
    ) -> Handled<'f> {
        let Sender { identity, caller, accepted } = sender;
        self.touch_session(key);
        // Frames that are answered on this exchange: requests, and malformed frames that may be
        // requests.
        let answered = match &body.frame {
            Ok(Frame::Single(message)) => matches!(message, Message::Request(_)),
            Ok(Frame::Batch(_)) => true,
            Err(malformed) => malformed.answer().is_some(),
        };
        // MCP 2025-11-25 basic/utilities/tasks#input-required-status [TASK-022]: a polling client
        // does not want a stream.
        let polls = matches!(
            request_in(&body.frame),
            Some(request) if Method::parse(&request.method) == Some(Method::TasksGet)
        );
        let mode = if polls { ResponseMode::JsonWhenAlone } else { self.options.answers };
        let mode = mode.for_client(accepted);
        let Some(Connection { machine, session: Some(session), .. }) =
            self.connections.get_mut(key)
        else {
            return (self.respond_whole(no_session(named_request(&body.frame))), None);
        };
        if session.next_stream == u32::MAX {
            // Numbers are never reused, and none are left.
            let gone = no_session(named_request(&body.frame));
            match self.shared {
                Some(_) => self.end_shared_session(key, now),
                None => self.end_session(key, now),
            }
            return (self.respond_whole(gone), None);
        }
        session.last_used = now;
        // The principal is that of the session; its credentials may be new.
        machine.set_caller(identity);
        machine.change_transport(|transport| {
            transport.clone_from(&self.arriving);
            transport.session_id = Some(session.id.as_str().into());
        });
        if !answered || session.transport == Transport::EventStream {
            return self.acknowledge(key, body, now);
        }
        // MCP 2025-11-25 basic/transports#session-management [SESS-001]
        let opens = machine.session_revision().is_none();
        let number = session.next_stream;
        session.next_stream += 1;
        session.open += 1;
        // MCP 2025-03-26 schema.json#JSONRPCBatchResponse [BATCH-007]: one exchange, for a single
        // request or a batch.
        let mut exchange = Exchange::new(Some(key), number, State::Waiting);
        (exchange.opens_session, exchange.caller) = (opens, caller);
        self.callers.open_exchange(caller);
        let exchange = self.insert_exchange(exchange);
        let Some(Connection { streams, .. }) = self.connections.get_mut(key) else {
            return (ExchangeId(exchange), None);
        };
        let mut stream = Stream::new(number);
        stream.reader = Some(exchange);
        stream.mode = mode;
        streams.insert(stream);
        let event = self.hand_over(key, body, number, now);
        if let Some(entry) = self.exchanges.get_mut(exchange)
            && let Some(connection) = self.connections.get_mut(key)
        {
            let (resumes, polls) = (connection.resumes(), connection.polls());
            entry.polls = polls;
            if let Some(stream) = connection.streams.get_mut(number) {
                (stream.resumable, stream.primes) = (resumes, polls);
            }
        }
        self.pump(key, now);
        let waits = self.exchanges.get_mut(exchange).filter(|e| matches!(e.state, State::Waiting));
        if let Some(entry) = waits {
            entry.asks = true;
            self.arm_waiting(exchange, (mode, accepted), now);
        }
        (ExchangeId(exchange), event)
    }

    /// Passes a frame to its machine, which keeps the output until it is pumped.
    fn hand_over<'f>(
        &mut self,
        key: Key,
        body: Body<'_, 'f>,
        number: u32,
        now: Instant,
    ) -> Option<Event<'f>> {
        let machine = &mut self.connections.get_mut(key)?.machine;
        let mut flow = machine.handle_on_channel(body.frame, body.read, None, Channel(number), now);
        if let Ok(Some(event)) = &mut flow {
            stamp(event, key);
        }
        flow.ok().flatten()
    }

    /// Passes a frame to its session and answers with an acknowledgement.
    // MCP 2025-11-25 basic/transports#sending-messages-to-the-server [HSRV-008] [HSRV-010]
    fn acknowledge<'f>(&mut self, key: Key, body: Body<'_, 'f>, now: Instant) -> Handled<'f> {
        let malformed = body.frame.as_ref().err().map(refuse_malformed);
        let is_request = request_in(&body.frame).is_some();
        let session_of = |server: &Self| server.connections.get(key)?.machine.caller().session();
        let before = session_of(self);
        let event = self.hand_over(key, body, STANDALONE, now);
        // A second `initialize` has opened the session anew.
        if let Some(old) = before.filter(|_| before != session_of(self)) {
            self.note_ended(old);
        }
        self.pump(key, now);
        let response = match (&event, malformed) {
            (_, Some(refused)) => refused,
            // A late or repeated response does no harm, and a request is answered elsewhere.
            (Some(Event::Violation(Violation::UnknownResponse(_))), None) => accepted(),
            (Some(Event::Violation(violation)), None) if !is_request => {
                refusal(Status::BAD_REQUEST, None, &format!("{violation}"))
            }
            _ if self.connections.get(key).is_none() => {
                refusal(Status::BAD_REQUEST, None, "the session ended because of this message")
            }
            _ => accepted(),
        };
        (self.respond_whole(response), event)
    }

    /// Refuses a version that a message of a session cannot have.
    pub(super) fn check_legacy_version(&self, head: &RequestHead<'_>) -> Result<(), Response> {
        check_version(head, self.legacy_revisions(), None)
    }

    const fn legacy_revisions(&self) -> Revisions {
        self.revisions.intersection(Revisions::LEGACY)
    }
}

/// Refuses a version that is not served.
// MCP 2025-11-25 basic/transports#protocol-version-header [HSRV-029] [HSRV-030]: without the header
// it is that of the session.
fn check_version(
    head: &RequestHead<'_>,
    served: Revisions,
    request: Option<&RequestId>,
) -> Result<(), Response> {
    let is_served = || named_revision(head).is_some_and(|revision| served.contains(revision));
    if head.protocol_version.is_some() && !is_served() {
        let message = "`MCP-Protocol-Version` is not a version that this server speaks";
        return Err(refusal(Status::BAD_REQUEST, request, message));
    }
    Ok(())
}

/// Returns the request in a body, if it is a single request.
pub(super) fn request_in<'m, 'f>(
    frame: &'m Result<Frame<'f>, Malformed>,
) -> Option<&'m RequestMessage<'f>> {
    match frame {
        Ok(Frame::Single(Message::Request(request))) => Some(request),
        _ => None,
    }
}

/// Returns the request id for an error about a frame.
pub(super) fn named_request<'m>(frame: &'m Result<Frame<'_>, Malformed>) -> Option<&'m RequestId> {
    match frame {
        Err(malformed) if malformed.answer().is_some() => malformed.id.as_ref(),
        _ => request_in(frame).map(|request| &request.id),
    }
}

/// Returns the response to a message that is not answered.
pub(super) fn accepted() -> Response {
    Response { head: ResponseHead::new(Status::ACCEPTED, None), body: Vec::new() }
}

//! Handles posted messages.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use mcp_sansio_collections::Key;

use crate::http::{Content, ExchangeId, RequestHead, Response, ResponseHead, SessionId, Status};
use crate::jsonrpc::{
    ErrorObject, Frame, Malformed, Message, RawJson, RequestId, RequestMessage, write_error,
};
use crate::peer::members::check_repeats;
use crate::peer::metadata::Metadata;
use crate::peer::metadata::Read;
use crate::peer::outbox::{Channel, Verdict};
use crate::peer::{Event, Violation};
use crate::protocol::{Era, Method};
use crate::{Instant, Revisions};

use super::admission::{named_revision, refusal};
use super::answers::status_of;
use super::body::Body;
use super::callers::Sender;
use super::exchange::{Exchange, State};
use super::options::ResponseMode;
use super::session::{STANDALONE, Transport};
use super::sessions::no_session;
use super::stream::Stream;
use super::streams::Streams;
use super::{Connection, Server, stamped};

/// The channel of the only request on a modern connection, and the number of its stream.
pub(super) const ONLY: u32 = 0;

/// The outcome of a request: its exchange, and at most one event.
pub(super) type Handled<'f> = (ExchangeId, Option<Event<'f>>);

impl Server {
    /// Handles a message to the endpoint.
    pub(super) fn post<'f>(
        &mut self,
        head: &RequestHead<'_>,
        body: Body<'_, 'f>,
        sender: Sender<'_>,
        now: Instant,
    ) -> Result<Handled<'f>, Response> {
        self.check_not_closing(&body.frame)?;
        match (body.frame.as_ref(), body.read.as_deref()) {
            (Ok(Frame::Single(Message::Request(request))), Some(read)) => {
                if self.is_modern(head, names_revision(read)) {
                    self.check_modern(head, request, read)?;
                    return Ok(self.modern(body, sender, now));
                }
                // The message has no sign of its era, and both eras would refuse it.
                if let Err(what) = read
                    && head.session_id.is_none()
                    && Method::parse(&request.method) != Some(Method::Initialize)
                {
                    return Err(refuse_request(&request.id, &ErrorObject::invalid_params(*what)));
                }
            }
            // MCP 2026-07-28 basic/transports/streamable-http#sending-messages [HSRV-009] [HCLI-006]
            (Ok(Frame::Single(Message::Notification(notification))), _) => {
                let params = notification.params.as_ref().unwrap_or(&RawJson::EMPTY_OBJECT);
                if self.is_modern(head, names_revision(&Metadata::read(params))) {
                    let repeats = check_repeats(params);
                    self.observe_notification(notification, repeats, sender.identity);
                    return match repeats {
                        Ok(()) => Ok((self.respond_whole(accepted()), None)),
                        Err(what) => Ok(self.refuse_notification(&notification.method, what)),
                    };
                }
            }
            // MCP 2026-07-28 basic/transports/streamable-http#sending-messages [HSRV-010]
            (Ok(Frame::Single(Message::Response(_))), _) if self.is_modern(head, false) => {
                let message = "at this revision clients do not send responses";
                return Err(refusal(Status::BAD_REQUEST, None, message));
            }
            // MCP 2025-06-18 basic/transports#sending-messages-to-the-server [BATCH-010]
            (Ok(Frame::Batch(_)), _) if self.is_modern(head, false) => {
                let message = "at this revision a body must be a single message";
                return Err(refusal(Status::BAD_REQUEST, None, message));
            }
            (Err(malformed), _) if head.session_id.is_none() || self.is_modern(head, false) => {
                let event = Event::Violation(Violation::Malformed(malformed.reason));
                return Ok((self.respond_whole(refuse_malformed(malformed)), Some(event)));
            }
            _ => {}
        }
        self.legacy(head, body, sender, now)
    }

    /// Returns whether a message belongs to the modern era.
    // MCP 2026-07-28 basic/versioning#backward-compatibility-with-initialization-based-versions
    // [VER-016], MCP 2026-07-28 basic/transports/streamable-http#earlier-streamable-http-revisions
    // [HSRV-025] [HSRV-026], MCP 2026-07-28 changelog#major-changes [SESS-016]: regardless of its
    // session and event headers.
    pub(super) fn is_modern(&self, head: &RequestHead<'_>, named_in_body: bool) -> bool {
        if self.revisions.intersection(Revisions::MODERN).is_empty() {
            return false;
        }
        if self.revisions.intersection(Revisions::LEGACY).is_empty() {
            return true;
        }
        named_in_body || named_revision(head).is_some_and(|named| named.era() == Era::Modern)
    }

    // ------------------------------------------------------------------ modern

    /// Checks a modern request before its revision and method.
    // MCP 2026-07-28 basic/index#_meta [META-009],
    // MCP 2026-07-28 basic/transports/streamable-http#server-validation [HSRV-023]
    fn check_modern(
        &self,
        head: &RequestHead<'_>,
        request: &RequestMessage<'_>,
        read: &Read<'_>,
    ) -> Result<(), Response> {
        let refuse = |error: &ErrorObject<'_>| refuse_request(&request.id, error);
        let metadata = read.as_ref().map_err(|what| refuse(&ErrorObject::invalid_params(*what)))?;
        let lacking = if metadata.prefix_matched {
            metadata.modern_fault
        } else if metadata.protocol_version.is_none() {
            Some("`_meta` lacks `io.modelcontextprotocol/protocolVersion`")
        } else if metadata.client_capabilities.is_none() {
            Some("`_meta` lacks `io.modelcontextprotocol/clientCapabilities`")
        } else {
            metadata.modern_fault
        };
        if let Some(what) = lacking {
            // MCP 2026-07-28 basic/versioning#backward-compatibility-with-initialization-based-versions
            // [VER-017]: a legacy client is told the supported revisions.
            return Err(if Method::parse(&request.method) == Some(Method::Initialize) {
                refuse(&self.no_session_here(what))
            } else {
                refuse(&ErrorObject::invalid_params(what))
            });
        }
        let params = request.params.as_ref().unwrap_or(&RawJson::EMPTY_OBJECT);
        self.check_headers(head, &request.method, params, metadata).map_err(|error| refuse(&error))
    }

    /// Refuses a modern notification.
    fn refuse_notification<'f>(&mut self, method: &str, what: &'static str) -> Handled<'f> {
        let violation = match Method::parse(method) {
            Some(method) => Violation::BadParameters { method, what },
            None => Violation::OutOfPlace(what),
        };
        let response = refusal(Status::BAD_REQUEST, None, &format!("{violation}"));
        (self.respond_whole(response), Some(Event::Violation(violation)))
    }

    /// Returns the error for an `initialize` without metadata if sessions are not supported.
    fn no_session_here(&self, what: &str) -> ErrorObject<'static> {
        let mut supported = String::new();
        for revision in self.revisions.iter().rev() {
            let comma = if supported.is_empty() { "" } else { "," };
            supported.push_str(&format!("{comma}\"{revision}\""));
        }
        let message =
            format!("`initialize` is not supported, this server speaks [{supported}]; {what}");
        let data = format!(r#"{{"supported":[{supported}]}}"#);
        ErrorObject::invalid_params(message).with_data(RawJson::trusted_shared(data.into()))
    }

    /// Handles a modern request, which is a connection of its own. Its stream has no event ids.
    // MCP 2026-07-28 basic/transports/streamable-http#receiving-messages [RESUME-008] [HSRV-020]
    fn modern<'f>(&mut self, body: Body<'_, 'f>, sender: Sender<'_>, now: Instant) -> Handled<'f> {
        let connection = Connection {
            machine: self.fresh_machine(),
            caller: sender.caller,
            session: None,
            streams: Streams::new(Stream::new(ONLY)),
        };
        let connection = self.connections.insert(connection);
        let exchange = Exchange::new(Some(connection), ONLY, State::Waiting);
        let exchange = self.open_exchange(exchange, sender.caller);
        let mut event = None;
        if let Some(Connection { machine, streams, .. }) = self.connections.get_mut(connection) {
            if let Some(stream) = streams.get_mut(ONLY) {
                stream.reader = Some(exchange);
            }
            machine.set_caller(sender.identity);
            machine.change_transport(|transport| transport.clone_from(&self.arriving));
            // The body was parsed with this declaration.
            machine.swap_declared(&mut self.declared);
            event =
                machine.handle_on_channel(body.frame, body.read, Channel(ONLY), now).ok().flatten();
            machine.swap_declared(&mut self.declared);
        }
        self.pump(connection, now);
        self.arm_waiting(exchange, now);
        (ExchangeId(exchange), event.map(|event| stamped(event, connection)))
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
        self.check_legacy_version(head, request)?;
        let initialize = matches!(
            request_in(&body.frame),
            Some(request) if Method::parse(&request.method) == Some(Method::Initialize)
        );
        if initialize {
            // A client that opens a session anew has no use for the one that it names, if that still
            // exists.
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
        let Sender { identity, caller } = sender;
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
        let brief = matches!(
            request_in(&body.frame),
            Some(request) if Method::parse(&request.method) == Some(Method::TasksGet)
        );
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
        stream.brief = brief;
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
            if self.options.answers == ResponseMode::Stream && !brief {
                self.open_stream(exchange);
            } else {
                self.arm_waiting(exchange, now);
            }
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
        let event = machine
            .handle_on_channel(body.frame, body.read, Channel(number), now)
            .ok()
            .flatten()?;
        Some(stamped(event, key))
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

    /// Refuses a version that a legacy message cannot have.
    // MCP 2025-11-25 basic/transports#protocol-version-header [HSRV-029] [HSRV-030]: without the
    // header it is that of the session.
    pub(super) fn check_legacy_version(
        &self,
        head: &RequestHead<'_>,
        request: Option<&RequestId>,
    ) -> Result<(), Response> {
        let legacy = self.revisions.intersection(Revisions::LEGACY);
        let served = || named_revision(head).is_some_and(|revision| legacy.contains(revision));
        if head.protocol_version.is_some() && !served() {
            let message = "`MCP-Protocol-Version` is not a version that this server speaks";
            return Err(refusal(Status::BAD_REQUEST, request, message));
        }
        Ok(())
    }
}

/// Returns whether the body contains its revision.
pub(super) fn names_revision(read: &Read<'_>) -> bool {
    read.as_ref()
        .is_ok_and(|metadata| metadata.prefix_matched || metadata.protocol_version.is_some())
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

/// Returns the response to a malformed message.
// MCP 2025-11-25 basic/transports#sending-messages-to-the-server [HSRV-010] [HSRV-011]
fn refuse_malformed(malformed: &Malformed) -> Response {
    let mut body = String::new();
    match malformed.answer() {
        Some(error) => write_error(&mut body, malformed.id.as_ref(), &error),
        None => {
            let error = ErrorObject::new(malformed.code(), format!("{malformed}"));
            write_error(&mut body, None, &error);
        }
    }
    Response {
        head: ResponseHead::new(Status::BAD_REQUEST, Some(Content::Json)),
        body: body.into_bytes(),
    }
}

/// Returns a response that refuses a modern request.
fn refuse_request(id: &RequestId, error: &ErrorObject<'_>) -> Response {
    let mut body = String::new();
    write_error(&mut body, Some(id), error);
    let status = status_of(Verdict::Refused(error.code), Era::Modern);
    Response { head: ResponseHead::new(status, Some(Content::Json)), body: body.into_bytes() }
}

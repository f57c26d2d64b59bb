//! Handles the bodies of responses, message by message.

use alloc::format;
use alloc::string::String;

use crate::Instant;
use crate::binding::After;
use crate::http::ExchangeId;
use crate::jsonrpc::{
    ErrorCode, ErrorObject, Frame, Malformed, Message as JsonRpc, RequestId, ResponseMessage, parse,
};
use crate::peer::{CloseReason, Failure, TransportFailure};

use super::exchanges::{ErrorResponse, Exchange, Receiving};
use super::message::{Message, MessageKind, RequestKind};
use super::{Client, Transport};

impl Client {
    pub(super) fn receive_body(&mut self, id: ExchangeId, bytes: &[u8], now: Instant) {
        let limits = &self.options.limits;
        let (body_max, error_max) = (limits.body_bytes_max, limits.error_bytes_max);
        let Some(exchange) = self.exchanges.get_mut(id) else { return };
        match &mut exchange.receiving {
            Receiving::Json(body) if bytes.len() > body_max - body.len() => {
                self.too_long(id, body_max, now);
            }
            Receiving::Json(body) => body.extend_from_slice(bytes),
            Receiving::ErrorBody(refusal) => {
                let room = error_max - refusal.body.len();
                if let Some((fitting, _)) =
                    bytes.split_at_checked(room).filter(|(_, rest)| !rest.is_empty())
                {
                    refusal.body.extend_from_slice(fitting);
                    refusal.overlong = true;
                    self.complete_error_response(id, now);
                } else {
                    refusal.body.extend_from_slice(bytes);
                }
            }
            Receiving::Events(_) => self.receive_events(id, bytes, now),
            Receiving::Head | Receiving::Nothing => {}
        }
    }

    /// A body or an event exceeds the limit, so a response in it may be lost.
    pub(super) fn too_long(&mut self, id: ExchangeId, limit: usize, now: Instant) {
        let Some(exchange) = self.abort(id) else { return };
        if let Some((request, _)) = exchange.message.as_ref().and_then(Message::request) {
            let failure = Failure::Transport(TransportFailure::TooLong { limit });
            self.peer.fail_call(request, failure, now);
        }
    }

    /// Handles the end of a JSON body.
    pub(super) fn body_complete(&mut self, id: ExchangeId, now: Instant) {
        let Some(exchange) = self.exchanges.get_mut(id) else { return };
        let Receiving::Json(body) = &mut exchange.receiving else { return };
        let body = core::mem::take(body);
        exchange.receiving = Receiving::Nothing;
        let Some((request, asks)) = exchange.message.as_ref().and_then(Message::request) else {
            return;
        };
        if asks == RequestKind::Discover && parse(&body, self.peer.parse_limits()).is_err() {
            // MCP 2026-07-28 basic/transports/streamable-http#backward-compatibility [VER-025]
            return self.peer.probe_unsupported(request, now);
        }
        if matches!(self.transport, Transport::HttpSse(_)) {
            self.deliver_answer(id, &body, now);
            return;
        }
        self.deliver(id, &body, now);
        if self.peer.is_pending(request) {
            let what = if is_event_stream(&body) {
                "the body is an event stream, and its content type is JSON or missing"
            } else {
                "the body does not contain a response to the request"
            };
            if asks == RequestKind::Discover {
                return self.peer.probe_unsupported(request, now);
            }
            // A call whose headers are being corrected waits for another exchange.
            if self.exchanges.get(id).is_some_and(|exchange| exchange.message.is_some()) {
                let what = format!("{what}{}", After(TransportFailure::excerpt(&body)));
                let failure = TransportFailure::InvalidResponse(what.into());
                self.peer.fail_call(request, Failure::Transport(failure), now);
            }
        }
    }

    /// Handles a text in a place where messages are not expected. Returns whether it is a response
    /// to the request of this exchange; anything else is ignored.
    pub(super) fn deliver_answer(&mut self, id: ExchangeId, text: &[u8], now: Instant) -> bool {
        let Some(own) = self.exchanges.get(id).and_then(Exchange::request_id) else { return false };
        let answers = match parse(text, self.peer.parse_limits()) {
            Ok(Frame::Single(JsonRpc::Response(response))) => is_answer(&response, own),
            _ => false,
        };
        let answers = answers && self.peer.is_pending(own);
        if answers {
            self.deliver(id, text, now);
        }
        answers
    }

    /// Handles one message that was received on this exchange.
    pub(super) fn deliver(&mut self, id: ExchangeId, text: &[u8], now: Instant) {
        let frame = parse(text, self.peer.parse_limits());
        if let Err(malformed) = &frame
            && let Some(repaired) = malformed.repair(text)
        {
            return self.deliver(id, &repaired, now);
        }
        let session = self.exchanges.get(id).and_then(|exchange| exchange.session);
        if self.is_over(session) {
            return self.deliver_late(frame, now);
        }
        let carried = self.exchanges.get(id).and_then(|exchange| exchange.message.as_ref());
        let request = carried.and_then(|m| m.request().map(|(id, asks)| (id, asks, m.revision)));
        let (Ok(Frame::Single(JsonRpc::Response(response))), Some((own, asks, revision))) =
            (&frame, request)
        else {
            // Messages on a listen stream belong to its subscription.
            let listens = request.filter(|(_, asks, _)| *asks == RequestKind::Listen);
            self.peer.set_stream(listens.map(|(own, ..)| own));
            self.process(frame, now);
            return self.peer.set_stream(None);
        };
        if revision.is_none() {
            return match &response.outcome {
                Ok(result)
                    if is_answer(response, own) && self.tools.call_waiting_for(own).is_some() =>
                {
                    let _all_are_kept = self.take_note_of_tools(own, result);
                    self.process(frame, now);
                }
                // An error without an id refers to the request that the exchange carried. No other
                // response to that request will arrive.
                Err(error) if response.id.is_none() && self.peer.is_pending(own) => {
                    let error = error.clone().into_owned();
                    self.answer_with(own, error, now);
                }
                _ => self.process(frame, now),
            };
        }
        // MCP 2026-07-28 basic/transports/streamable-http#receiving-messages [HCLI-003]: a modern
        // response stream belongs to its request.
        if !is_answer(response, own) {
            let what = "a response to a request that its exchange does not carry";
            return self.peer.report_out_of_place(what);
        }
        match (asks, &response.outcome) {
            // MCP 2026-07-28 basic/transports/streamable-http#client-behavior [HDR-032]
            (_, Err(error)) if is_mismatch(asks, error) => {
                let error = error.clone().into_owned();
                if !self.correct_headers(id, &error, now) {
                    self.answer_with(own, error, now);
                }
            }
            (_, Err(error)) if is_unsupported(error) && self.is_modern() => {
                let error = error.clone().into_owned();
                if let Some(message) = self.detach(id, now).and_then(|exchange| exchange.message) {
                    self.revision_refused(message, error, now);
                }
            }
            (RequestKind::ListTools, Ok(result)) if self.is_modern() => {
                let kept = self.take_note_of_tools(own, result);
                match kept {
                    Some(text) => {
                        let outcome = Ok(crate::jsonrpc::RawJson::trusted(&text));
                        let id = response.id.clone();
                        let response = JsonRpc::Response(ResponseMessage { id, outcome });
                        self.process(Ok(Frame::Single(response)), now);
                    }
                    None => self.process(frame, now),
                }
            }
            (_, Err(error)) if response.id.is_none() => {
                let error = error.clone().into_owned();
                self.answer_with(own, error, now);
            }
            _ => self.process(frame, now),
        }
    }

    /// Handles a message from a session that has ended. Requests are ignored: a response would go
    /// to the next session, where another request may have the same id.
    // MCP 2025-11-25 basic/transports#session-management [SESS-009]
    fn deliver_late(&mut self, frame: Result<Frame<'_>, Malformed>, now: Instant) {
        match frame {
            Ok(Frame::Single(JsonRpc::Request(_))) => {}
            Ok(Frame::Batch(batch)) => {
                for message in batch {
                    self.deliver_late(message.map(Frame::Single), now);
                }
            }
            frame => self.process(frame, now),
        }
    }

    /// Handles a request that was refused for its revision, after the connection was opened at that
    /// revision: the server was replaced, or is one of several. The request did not run, and is
    /// sent once more if the server lists its revision. If it lists others that this client
    /// supports, the connection closes, because only a new one can use them.
    // MCP 2026-07-28 basic/versioning#protocol-version-negotiation [VER-013]
    fn revision_refused(
        &mut self,
        mut message: Message,
        error: ErrorObject<'static>,
        now: Instant,
    ) {
        let request = message.request().filter(|(id, _)| self.peer.is_pending(*id));
        let (Some((request, _)), Some(asked)) = (request, message.revision) else { return };
        let common = self.peer.revisions_in_common(&error);
        let is_listed = common.contains(asked);
        if is_listed && message.resends < self.options.limits.resends_max {
            message.resends += 1;
            return self.queue.push_first(message);
        }
        self.answer_with(request, error, now);
        if let Some(other) = common.latest().filter(|_| !is_listed) {
            let what = format!(
                "it no longer supports revision {asked} of the connection; connect again for \
                 revision {other}"
            );
            let failure = TransportFailure::InvalidResponse(what.into());
            self.peer.close_because(CloseReason::Transport(failure));
        }
    }

    /// Ends a request as if the server had responded with this error.
    pub(super) fn answer_with(&mut self, request: i64, error: ErrorObject<'_>, now: Instant) {
        let id = Some(RequestId::Number(request));
        let response = JsonRpc::Response(ResponseMessage { id, outcome: Err(error) });
        self.process(Ok(Frame::Single(response)), now);
    }

    fn process(&mut self, frame: Result<Frame<'_>, Malformed>, now: Instant) {
        // Reports about the message itself come before the event that it causes.
        self.forward_events();
        if let Ok(Some(event)) = self.peer.handle_parsed(frame, now) {
            self.report_event(event.into_owned());
        }
        self.forward_events();
    }

    // ------------------------------------------------------------------ refusals

    /// Handles the end of a refusal body, or a refusal body that is too long to be read.
    pub(super) fn complete_error_response(&mut self, id: ExchangeId, now: Instant) {
        let Some(exchange) = self.detach(id, now) else { return };
        let lost_session = exchange.has_lost_session();
        let Exchange { receiving: Receiving::ErrorBody(refusal), message, session, .. } = exchange
        else {
            return;
        };
        let Some(message) = message else { return };
        let body = if refusal.overlong { &[][..] } else { &refusal.body };
        let own = message.request().map(|(id, _)| id);
        let (error, named, unnamed) = match parse(body, self.peer.parse_limits()) {
            Ok(Frame::Single(JsonRpc::Response(ResponseMessage { id, outcome: Err(error) }))) => {
                let named = own.is_some() && id.as_ref().and_then(RequestId::own_number) == own;
                (Some(error.into_owned()), named, id.is_none())
            }
            _ => (None, false, false),
        };
        let once = message.resends < self.options.limits.resends_max;
        let lost_session = lost_session
            || (session.is_some()
                && once
                && !named
                && is_about_session(&refusal, &message, error.as_ref()));
        let mut failure = refusal.into_failure(error.clone());
        if let (
            Transport::HttpSse(endpoint),
            TransportFailure::Status { status: 400..500, body, .. },
        ) = (&self.transport, &mut failure)
            && message.opens()
        {
            // The query may name the session.
            let path = endpoint.as_str().split('?').next().unwrap_or_default();
            let url = self.url.as_str();
            let words = body.as_deref().map_or_else(String::new, |body| format!("{body}; "));
            let hint = format!(
                "{words}the message was posted to {path}, the URL in the event `endpoint` of {url}; \
                 if the server is behind a proxy that changes paths, it must announce the path at \
                 the proxy, or a relative one"
            );
            *body = Some(hint.into());
        }
        if lost_session {
            let answer = error.filter(|_| named);
            return self.session_refused(message, session, answer, failure, now);
        }
        if message.is_control() && self.is_over(session) {
            return self.delivery_failed(&message, failure);
        }
        let addressed = named || unnamed;
        match (&message.kind, error) {
            (MessageKind::Request(_, RequestKind::Discover), error) => {
                self.probe_refused(message, error, failure, now);
            }
            _ if !matches!(failure, TransportFailure::Status { .. }) => {
                self.message_failed(message, failure, now);
            }
            (MessageKind::Request(_, RequestKind::Initialize), error)
                if matches!(self.transport, Transport::Streamable) =>
            {
                self.handshake_refused(message, error, failure, now);
            }
            // It may still be executed, so the error does not answer it.
            (MessageKind::Request(..), Some(_)) if failure.is_postponement() => {
                self.message_failed(message, failure, now);
            }
            (MessageKind::Request(request, asks), Some(error)) if addressed => {
                let request = *request;
                // Some servers refuse so in sessions of older revisions, too, where no header is due:
                // what they miss can be sent all the same.
                if is_unsupported(&error) && message.revision.is_some() {
                    self.revision_refused(message, error, now);
                } else if is_mismatch(*asks, &error) {
                    if let Some(error) = self.correct_message(message, error, now) {
                        self.answer_with(request, error, now);
                    }
                } else if self.peer.is_pending(request) {
                    self.answer_with(request, error, now);
                }
            }
            // MCP 2025-11-25 basic/transports#sending-messages-to-the-server [HCLI-005]: a refused
            // notification or response is lost, but the connection stays open.
            _ => self.message_failed(message, failure, now),
        }
    }
}

impl ErrorResponse {
    /// Returns the failure with the start of the body.
    fn into_failure(self, error: Option<ErrorObject<'static>>) -> TransportFailure {
        let body = TransportFailure::excerpt(&self.body);
        let (status, retry_after) = (self.status, self.retry_after);
        match self.failure {
            Some(TransportFailure::Unauthorized { status, challenge, .. }) => {
                TransportFailure::Unauthorized { status, challenge, body }
            }
            Some(TransportFailure::InvalidResponse(what)) => {
                let what = alloc::format!("{what}{}", After(body.as_deref()));
                TransportFailure::InvalidResponse(what.into())
            }
            _ => TransportFailure::Status { status, retry_after, error, body },
        }
    }
}

/// Returns whether the refusal of a request says that the server does not know its session. Many
/// servers have 400 or 401 where the specification has 404, and would refuse all that follows.
// MCP 2025-11-25 basic/transports#session-management [SESS-009]
fn is_about_session(
    refusal: &ErrorResponse,
    message: &Message,
    error: Option<&ErrorObject<'_>>,
) -> bool {
    let text = match error {
        Some(error) => error.message.as_bytes(),
        // A page for people.
        None if refusal.overlong || refusal.body.starts_with(b"<") => &[],
        None => &refusal.body,
    };
    let names = |words: &[u8]| text.windows(words.len()).any(|it| it.eq_ignore_ascii_case(words));
    let speaks = match (refusal.status, &refusal.failure) {
        (400, _) => names(b"session") || names(b"not initialized"),
        (401, Some(TransportFailure::Unauthorized { challenge: None, .. })) => names(b"session"),
        _ => false,
    };
    speaks && message.request().is_some() && !message.opens()
}

/// Returns whether a call of a tool was refused for its headers.
fn is_mismatch(asks: RequestKind, error: &ErrorObject<'_>) -> bool {
    asks == RequestKind::CallTool && error.code == ErrorCode::HEADER_MISMATCH
}

/// Returns whether a request was refused for its revision.
fn is_unsupported(error: &ErrorObject<'_>) -> bool {
    error.code == ErrorCode::UNSUPPORTED_PROTOCOL_VERSION
}

/// Returns whether a response answers the request with this id, which its exchange carried. An error
/// without an id refers to that request.
fn is_answer(response: &ResponseMessage<'_>, own: i64) -> bool {
    match &response.id {
        Some(id) => id.own_number() == Some(own),
        None => response.outcome.is_err(),
    }
}

/// Returns whether a body that is not JSON starts like an event stream.
fn is_event_stream(body: &[u8]) -> bool {
    let fields: [&[u8]; 5] = [b"data:", b"event:", b"id:", b"retry:", b":"];
    fields.iter().any(|field| body.starts_with(field))
}

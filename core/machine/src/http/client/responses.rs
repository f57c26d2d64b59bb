//! Decides on the head of a response.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use mcp_sansio_sync::Arc;

use crate::Instant;
use crate::http::media::Media;
use crate::http::{ExchangeId, LOCATION_LENGTH_MAX, Location};
use crate::peer::{Failure, TransportFailure};

use super::exchanges::{ErrorResponse, Exchange, Purpose, Receiving, Stream};
use super::message::{Message, MessageKind, RequestKind};
use super::session::SessionKey;
use super::{Client, IncomingResponse, Transport};

impl Client {
    pub(super) fn receive_head(
        &mut self,
        id: ExchangeId,
        head: &IncomingResponse<'_>,
        now: Instant,
    ) {
        let status = head.status.0;
        self.resume_exchange(id, now);
        let Some(exchange) = self.exchanges.get(id) else { return };
        if status < 200 || !matches!(exchange.receiving, Receiving::Head) {
            return;
        }
        if (300..400).contains(&status) && status != 304 {
            return self.redirected(id, head, now);
        }
        // MCP 2025-11-25 basic/transports#session-management [SESS-009]
        let placed = exchange.session.is_some();
        match exchange.purpose {
            Purpose::Post if head.status.is_success() => self.post_accepted(id, head, now),
            Purpose::Post => self.post_refused(id, head, now),
            Purpose::Resume if status == 404 && placed => self.session_ended(id, now),
            Purpose::Resume => self.resume_answered(id, head, now),
            Purpose::Listen => self.listen_answered(id, head, now),
            Purpose::HttpSse => self.old_stream_answered(id, head, now),
            // MCP 2025-11-25 basic/transports#session-management [SESS-011]: whatever the response
            // is.
            Purpose::End => drop(self.detach(id, now)),
        }
    }

    fn post_accepted(&mut self, id: ExchangeId, head: &IncomingResponse<'_>, now: Instant) {
        let current = self.legacy.number;
        let Some(exchange) = self.exchanges.get_mut(id) else { return };
        let Some(message) = &exchange.message else { return };
        if exchange.session == Some(current) && !message.opens() {
            self.legacy.renewals = 0;
        }
        let request = match &message.kind {
            MessageKind::Request(_, asks) => Some(*asks),
            // MCP 2025-11-25 basic/transports#sending-messages-to-the-server [HCLI-005]: with
            // status 202 or another success status.
            MessageKind::Initialized => {
                drop(self.detach(id, now));
                return self.acknowledged(now);
            }
            _ => None,
        };
        let Some(asks) = request else { return drop(self.detach(id, now)) };
        if matches!(self.transport, Transport::HttpSse(_)) {
            return self.old_message_accepted(id, head, now);
        }
        if asks == RequestKind::Initialize && !self.take_session_key(id, head, now) {
            return;
        }
        let Some(exchange) = self.exchanges.get_mut(id) else { return };
        if matches!(head.status.0, 202 | 204 | 205) {
            let what = "a request was accepted without a response";
            return self.invalid_response(id, what.into(), now);
        }
        // MCP 2025-11-25 basic/transports#sending-messages-to-the-server [HCLI-003]
        match head.media() {
            // RFC 9110, section 8.3: without a type, the data show what they are.
            Some(Media::Json) | None => exchange.receiving = Receiving::Json(Vec::new()),
            Some(Media::EventStream) => self.open_stream(id, now),
            Some(Media::Other) => match head.encoding_fault() {
                Some(what) => self.invalid_response(id, what.into(), now),
                None => self.refuse_media(id, head.content_type.unwrap_or_default(), now),
            },
        }
    }

    /// Handles a response that is an event stream.
    pub(super) fn open_stream(&mut self, id: ExchangeId, now: Instant) {
        let Some(exchange) = self.exchanges.get_mut(id) else { return };
        let before = exchange.message.as_mut().and_then(|message| message.attempts.take());
        let reopened = before.is_some();
        let attempts = before.unwrap_or_else(|| self.attempts());
        let decoder = self.decoder();
        let Some(exchange) = self.exchanges.get_mut(id) else { return };
        let stream = Stream { reopened, ..Stream::new(attempts, now) };
        exchange.stream = Some(stream.into());
        exchange.receiving = Receiving::Events(decoder);
    }

    /// Handles a success that is neither JSON nor a stream: its text is often the reason.
    fn refuse_media(&mut self, id: ExchangeId, content_type: &[u8], now: Instant) {
        let name = TransportFailure::excerpt(content_type).unwrap_or_default();
        let what = format!("the content type `{name}` is neither JSON nor an event stream");
        let Some(exchange) = self.exchanges.get_mut(id) else { return };
        if exchange.message.as_ref().is_some_and(Message::is_probe) {
            return self.invalid_response(id, what.into(), now);
        }
        exchange.cut_off_by(now + self.options.limits.linger);
        let failure = Some(TransportFailure::InvalidResponse(what.into()));
        exchange.receiving = Receiving::ErrorBody(Box::new(ErrorResponse {
            status: 200,
            retry_after: None,
            failure,
            body: Vec::new(),
            overlong: false,
        }));
    }

    /// Stores the session id of the response that carries the `InitializeResult`. Returns `false`
    /// if the id is invalid, and the opening has failed.
    // MCP 2025-11-25 basic/transports#session-management [SESS-001] [SESS-003]
    fn take_session_key(
        &mut self,
        id: ExchangeId,
        head: &IncomingResponse<'_>,
        now: Instant,
    ) -> bool {
        let Some(text) = head.session_id else { return true };
        match SessionKey::parse(text.0, self.options.limits.session_id_length_max) {
            Ok(key) => {
                let shown = key.text().into();
                self.peer.change_transport(|transport| transport.session_id = Some(shown));
                self.legacy.key = Some(key);
                true
            }
            Err(what) => {
                self.legacy.key = None;
                self.invalid_response(id, what.into(), now);
                false
            }
        }
    }

    /// Handles a response that the transport does not allow for a request.
    pub(super) fn invalid_response(
        &mut self,
        id: ExchangeId,
        what: Cow<'static, str>,
        now: Instant,
    ) {
        let Some(exchange) = self.abort(id) else { return };
        match exchange.message.as_ref().and_then(Message::request) {
            // MCP 2026-07-28 basic/transports/streamable-http#backward-compatibility [VER-025]
            // [VER-027]: any response except a modern one means that the server is a legacy server.
            Some((request, RequestKind::Discover)) => self.peer.probe_unsupported(request, now),
            Some((request, _)) => {
                let failure = TransportFailure::InvalidResponse(what);
                self.peer.fail_call(request, Failure::Transport(failure), now);
            }
            None => {}
        }
    }

    fn post_refused(&mut self, id: ExchangeId, head: &IncomingResponse<'_>, now: Instant) {
        let status = head.status.0;
        let failure = matches!(status, 401 | 403).then(|| self.unauthorized(head));
        let congested = self.is_congested();
        let until = now + self.options.limits.linger;
        let Some(exchange) = self.exchanges.get_mut(id) else { return };
        let retry_after = head.retry_after.and_then(seconds);
        let (body, overlong) = (Vec::new(), false);
        let refusal = ErrorResponse { status, retry_after, failure, body, overlong };
        exchange.receiving = Receiving::ErrorBody(Box::new(refusal));
        // The text of a refusal is not worth a longer wait.
        exchange.cut_off_by(until);
        // The body is not read before other messages are sent, which may wait for this exchange.
        if congested && exchange.is_control() {
            self.complete_error_response(id, now);
        }
    }

    /// Handles a failed POST.
    pub(super) fn post_failed(&mut self, id: ExchangeId, failure: TransportFailure, now: Instant) {
        let Some(mut exchange) = self.detach(id, now) else { return };
        let Some(message) = exchange.message.take() else { return };
        if message.is_control() && self.is_over(exchange.session) {
            return self.delivery_failed(&message, failure);
        }
        let message = match failure {
            // MCP 2024-11-05 basic/transports#http-with-sse [LSSE-004]: the answer arrives on the
            // stream, and intermediaries may close the connection of the POST early.
            TransportFailure::Broken
                if matches!(self.transport, Transport::HttpSse(_)) && !message.is_control() =>
            {
                return;
            }
            TransportFailure::Broken => self.try_handshake(message, now),
            _ => Some(message),
        };
        if let Some(message) = message {
            self.message_failed(message, failure, now);
        }
    }

    pub(super) fn message_failed(
        &mut self,
        message: Message,
        failure: TransportFailure,
        now: Instant,
    ) {
        let Some(message) = self.send_again_later(message, &failure, now) else { return };
        match message.request() {
            // A listen stream that was open before is opened again.
            Some((_, RequestKind::Listen)) if message.attempts.is_some() => {
                self.listen_again_later(message, failure, now);
            }
            Some((request, _)) => {
                self.fail_lookups(request, &failure, now);
                self.peer.fail_call(request, Failure::Transport(failure), now);
            }
            None => {
                self.delivery_failed(&message, failure);
                if message.kind == MessageKind::Initialized {
                    self.acknowledged(now);
                }
            }
        }
    }

    pub(super) fn unauthorized(&self, head: &IncomingResponse<'_>) -> TransportFailure {
        let limit = self.options.limits.challenge_length_max;
        let challenge = head.challenges.first().filter(|value| value.len() <= limit);
        let challenge = challenge.map(|value| String::from_utf8_lossy(value).into_owned());
        TransportFailure::Unauthorized { status: head.status.0, challenge, body: None }
    }

    /// Follows a redirect if it stays on the same origin, so that no data reaches another server,
    /// and if it preserves the method and the body.
    fn redirected(&mut self, id: ExchangeId, head: &IncomingResponse<'_>, now: Instant) {
        let Some(exchange) = self.exchanges.get(id) else { return };
        let target = head.location.unwrap_or_default();
        let target = String::from_utf8_lossy(&target[..target.len().min(LOCATION_LENGTH_MAX)]);
        // RFC 9110, sections 15.4.2 to 15.4.4: only a POST may become a GET.
        let gets = !matches!(exchange.purpose, Purpose::Post | Purpose::End);
        let keeps = match head.status.0 {
            307 | 308 => true,
            301..=303 => gets,
            _ => false,
        };
        let followed = match exchange.url.resolve(&target) {
            _ if head.location.is_none() => Err("the response names no target"),
            _ if !keeps => Err("the status may change the method"),
            Err(_) => Err("the target is not a valid URL"),
            Ok(url) if !url.same_origin(&exchange.url) => Err(OTHER_ORIGIN),
            Ok(_) if exchange.redirects >= self.options.limits.redirects_max => {
                Err("there were too many redirects before")
            }
            Ok(url) => Ok(url),
        };
        let reason = match followed {
            Ok(url) => return self.follow(id, url, now),
            Err(reason) => reason,
        };
        let failure = TransportFailure::Redirected { target: target.into_owned(), reason };
        self.exchange_failed(id, failure, now);
    }

    /// Repeats the request of an exchange at another URL.
    fn follow(&mut self, id: ExchangeId, url: Location, now: Instant) {
        let Some(exchange) = self.detach(id, now) else { return };
        // MCP 2025-11-25 basic/transports#session-management [SESS-009]: it did not run, and the
        // next session may not be open yet.
        if self.is_over(exchange.session)
            && let Some(message) = exchange.message
        {
            return self.move_to_new_session(message, now);
        }
        let redirects = exchange.redirects + 1;
        let exchange = Exchange {
            url: Arc::new(url),
            redirects,
            message: exchange.message,
            stream: exchange.stream,
            ..Exchange::new(exchange.purpose, exchange.url)
        };
        let purpose = exchange.purpose;
        match (self.send(exchange, now), purpose) {
            (Some(sent), Purpose::Listen) => self.listening_moved(sent),
            (Some(sent), Purpose::HttpSse) => self.old_stream_moved(sent),
            _ => {}
        }
    }

    /// Handles an exchange that failed before its response head.
    pub(super) fn exchange_failed(
        &mut self,
        id: ExchangeId,
        failure: TransportFailure,
        now: Instant,
    ) {
        let Some(exchange) = self.exchanges.get(id) else { return };
        match exchange.purpose {
            Purpose::Post => self.post_failed(id, failure, now),
            Purpose::Resume => {
                let Some(exchange) = self.detach(id, now) else { return };
                match failure {
                    TransportFailure::NotSent | TransportFailure::Broken => {
                        self.resume_later(exchange, None, now);
                    }
                    failure => self.stream_failed(exchange, failure, now),
                }
            }
            Purpose::Listen => {
                let Some(exchange) = self.detach(id, now) else { return };
                match failure {
                    TransportFailure::NotSent | TransportFailure::Broken => {
                        self.listen_later(exchange.stream, None, now);
                    }
                    failure => self.listening_refused(exchange.stream, failure, now),
                }
            }
            Purpose::HttpSse => self.old_transport_failed(id, failure, now),
            Purpose::End => drop(self.detach(id, now)),
        }
    }

    pub(super) fn receive_failure(
        &mut self,
        id: ExchangeId,
        failure: TransportFailure,
        now: Instant,
    ) {
        if let Some(exchange) = self.exchanges.get_mut(id) {
            exchange.over = true;
        }
        self.resume_exchange(id, now);
        let Some(exchange) = self.exchanges.get(id) else { return };
        match exchange.receiving {
            Receiving::Head => self.exchange_failed(id, failure, now),
            Receiving::Json(_) => self.post_failed(id, failure, now),
            Receiving::ErrorBody(_) => self.complete_error_response(id, now),
            Receiving::Events(_) => self.stream_over(id, true, now),
            Receiving::Nothing => {}
        }
        // The driver has already dropped the exchange.
        self.exchanges.remove(id);
    }

    pub(super) fn receive_end(&mut self, id: ExchangeId, now: Instant) {
        let Some(exchange) = self.exchanges.get_mut(id) else { return };
        exchange.over = true;
        match exchange.receiving {
            Receiving::Head => {
                self.exchange_failed(id, TransportFailure::Broken, now);
            }
            Receiving::Json(_) => self.body_complete(id, now),
            Receiving::ErrorBody(_) => self.complete_error_response(id, now),
            Receiving::Events(_) => self.stream_over(id, false, now),
            Receiving::Nothing => {}
        }
        self.exchanges.remove(id);
    }
}

/// Why a redirect or an endpoint is refused that would send data to another server.
pub(super) const OTHER_ORIGIN: &str = "the target has another origin";

/// Returns whether a status is a temporary failure.
pub(super) const fn is_passing(status: u16) -> bool {
    matches!(status, 408 | 425 | 429 | 500..=599)
}

/// Returns whether a status says that the server did not look at the request.
pub(super) const fn is_unavailable(status: u16) -> bool {
    matches!(status, 408 | 425 | 429 | 502..=504)
}

/// Parses `Retry-After` in seconds. Dates are ignored, because no calendar is available here.
pub(super) fn seconds(value: &[u8]) -> Option<Duration> {
    let text = core::str::from_utf8(value).ok()?;
    text.parse().ok().map(|seconds: u32| Duration::from_secs(seconds.into()))
}

impl TransportFailure {
    /// Returns the failure for an error status whose body carries no error.
    pub(super) const fn from_status(status: u16, retry_after: Option<Duration>) -> Self {
        Self::Status { status, retry_after, error: None, body: None }
    }
}

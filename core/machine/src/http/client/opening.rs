//! Interprets the responses to the opening requests.

use alloc::format;
use alloc::vec::Vec;

use mcp_sansio_sync::Arc;

use crate::Instant;
use crate::http::media::Media;
use crate::http::{ExchangeId, Location, Scheme};
use crate::jsonrpc::{ErrorCode, ErrorObject, Frame, Message as JsonRpc, parse};
use crate::peer::{CloseReason, Failure, OpeningFailure, TransportFailure};

use super::exchanges::{Exchange, Purpose, Receiving};
use super::message::{Message, RequestKind};
use super::responses::{OTHER_ORIGIN, is_passing, is_unavailable};
use super::{Client, IncomingResponse, Transport};

/// State of the probe for a server of the 2024-11-05 transport.
#[derive(Debug)]
pub(super) struct LegacyProbe {
    /// The refused `initialize`, which is sent again.
    message: Message,
    /// The error with which it was refused.
    error: Option<ErrorObject<'static>>,
    failure: TransportFailure,
    /// The GET that opens the stream.
    stream: ExchangeId,
}

impl LegacyProbe {
    /// Returns whether the probe keeps the request with this id.
    pub(super) fn carries(&self, id: i64) -> bool {
        self.message.request().is_some_and(|(own, _)| own == id)
    }
}

impl Client {
    /// Handles a refused probe.
    // MCP 2026-07-28 basic/transports/streamable-http#backward-compatibility [VER-025] [VER-026]
    // [VER-027]
    pub(super) fn probe_refused(
        &mut self,
        message: Message,
        error: Option<ErrorObject<'static>>,
        failure: TransportFailure,
        now: Instant,
    ) {
        let Some((request, _)) = message.request() else { return };
        let status = match &failure {
            TransportFailure::Status { status, .. }
            | TransportFailure::Unauthorized { status, .. } => *status,
            _ => return,
        };
        let denied = failure.is_authorization_failure();
        let code = error.as_ref().map(|error| error.code);
        match error {
            // The server is modern: the code of the error determines the next step.
            Some(error) if error.code.is_modern_error() && !denied => {
                return self.answer_with(request, error, now);
            }
            // The server is temporarily unable to respond, which does not reveal its era.
            _ if is_unavailable(status) => return self.message_failed(message, failure, now),
            _ => {}
        }
        // MCP 2026-07-28 basic/versioning#protocol-version-negotiation [VER-014]: "Servers MUST
        // implement `server/discover`", so it is not certain that a server without it is modern.
        // MCP 2026-07-28 basic/transports/streamable-http#protocol-version-header [VER-028]
        let lacks_method = status == 404 && code == Some(ErrorCode::METHOD_NOT_FOUND);
        // MCP 2026-07-28 basic/versioning#backward-compatibility-with-initialization-based-versions
        // [VER-018]: "Anything else identifies a legacy server." Some servers answer an unknown
        // method with 500, and others let only the handshake pass without authorization. Since the
        // same statuses have other reasons too, the server is probed again if it refuses the
        // handshake.
        if !(lacks_method || denied || status >= 500) {
            return self.peer.probe_unsupported(request, now);
        }
        let Some(message) = self.try_handshake(message, now) else { return };
        if lacks_method {
            self.peer.assume_modern(request, now);
        } else {
            self.message_failed(message, failure, now);
        }
    }

    /// Tries the handshake if the message is a probe that failed in a way that does not reveal the
    /// era. Returns any other message, and a probe if there is no legacy revision to try.
    pub(super) fn try_handshake(&mut self, message: Message, now: Instant) -> Option<Message> {
        match message.request() {
            Some((request, RequestKind::Discover))
                if self.peer.probe_inconclusive(request, now) =>
            {
                None
            }
            _ => Some(message),
        }
    }

    /// Handles a handshake that was refused with an HTTP status.
    // MCP 2026-07-28 basic/transports/streamable-http#httpsse-transport-2024-11-05 [LSSE-009]
    pub(super) fn handshake_refused(
        &mut self,
        message: Message,
        error: Option<ErrorObject<'static>>,
        failure: TransportFailure,
        now: Instant,
    ) {
        let Some((request, _)) = message.request() else { return };
        let TransportFailure::Status { status, .. } = failure else { return };
        if is_passing(status) {
            return self.message_failed(message, failure, now);
        }
        // A modern error, or one that lists versions, comes from a server that has this endpoint.
        // MCP 2026-07-28 basic/versioning#backward-compatibility-with-initialization-based-versions
        // [VER-017]
        let answered = error.as_ref().is_some_and(|error| {
            error.code.is_modern_error()
                || (status == 404 && error.code == ErrorCode::METHOD_NOT_FOUND)
                || error.data.as_ref().is_some_and(|data| data.get_present("supported").is_some())
        });
        // MCP 2025-03-26 basic/transports#backwards-compatibility [LSSE-007]
        // MCP 2025-11-25 basic/transports#backwards-compatibility [LSSE-008]: the newer revisions
        // name only 400, 404 and 405 of all 4xx. An unsuccessful GET does no harm, and a server of
        // the old transport may use any of the others.
        let tries = (400..500).contains(&status) && self.options.old_transport;
        if answered || !tries || self.peer.session_revision().is_some() {
            let opening = OpeningFailure::Transport(failure);
            return self.peer.handshake_refused(request, error, opening, now);
        }
        self.seek_old_transport(message, error, failure, now);
    }

    /// Looks for the old transport, after the handshake has failed.
    // MCP 2026-07-28 basic/transports/streamable-http#httpsse-transport-2024-11-05 [LSSE-010]
    fn seek_old_transport(
        &mut self,
        message: Message,
        error: Option<ErrorObject<'static>>,
        failure: TransportFailure,
        now: Instant,
    ) {
        let exchange = Exchange::new(Purpose::HttpSse, Arc::clone(&self.url));
        if let Some(stream) = self.send(exchange, now) {
            self.transport =
                Transport::Probing(LegacyProbe { message, error, failure, stream }.into());
        }
    }

    pub(super) fn old_stream_answered(
        &mut self,
        id: ExchangeId,
        head: &IncomingResponse<'_>,
        now: Instant,
    ) {
        if matches!(head.status.0, 401 | 403) {
            let failure = self.unauthorized(head);
            return self.old_transport_failed(id, failure, now);
        }
        let events = head.media() == Some(Media::EventStream);
        if head.status.is_success() && events {
            let decoder = self.decoder();
            if let Some(exchange) = self.exchanges.get_mut(id) {
                exchange.receiving = Receiving::Events(decoder);
            }
            return;
        }
        let failure = TransportFailure::from_status(head.status.0, None);
        self.old_transport_failed(id, failure, now);
    }

    /// Handles the event with the URL to which messages are posted. Other events may come before
    /// it.
    // MCP 2024-11-05 basic/transports#http-with-sse [LSSE-002] [LSSE-003]
    pub(super) fn receive_endpoint(&mut self, id: ExchangeId, data: &[u8], now: Instant) {
        let Some(exchange) = self.exchanges.get(id) else { return };
        if exchange.purpose != Purpose::HttpSse {
            return self.answered_by_old_transport(id, now);
        }
        // RFC 3986, section 5.1.3: the base is the URL after redirects.
        let base = Arc::clone(&exchange.url);
        if !matches!(self.transport, Transport::Probing(_)) {
            return;
        }
        let invalid = |what: &dyn core::fmt::Display| {
            let excerpt = TransportFailure::excerpt(data).unwrap_or_default();
            let what = format!("the event `endpoint` has no valid URL: {excerpt}: {what}");
            TransportFailure::InvalidResponse(what.into())
        };
        let endpoint = match core::str::from_utf8(data.trim_ascii()) {
            Ok(reference) => base.resolve(reference).map_err(|error| invalid(&error)),
            Err(error) => Err(invalid(&error)),
        };
        let endpoint = endpoint.and_then(|endpoint| {
            if endpoint.same_origin(&base) {
                return Ok(endpoint);
            }
            // The message goes to the origin of the stream, whatever the server calls itself.
            if is_behind_proxy(&endpoint, &base)
                && let Ok(public) = base.resolve(endpoint.path_and_query())
                && public.same_origin(&base)
            {
                return Ok(public);
            }
            let (target, reason) = (endpoint.as_str().into(), OTHER_ORIGIN);
            Err(TransportFailure::Redirected { target, reason })
        });
        let endpoint = match endpoint {
            Ok(endpoint) => endpoint,
            Err(failure) => return self.old_transport_refused(id, failure, now),
        };
        let old = Transport::HttpSse(Arc::new(endpoint));
        if let Transport::Probing(probe) = core::mem::replace(&mut self.transport, old) {
            self.queue.push_first(probe.message);
        }
    }

    /// Handles an opening request that was answered with the stream of the old transport.
    // MCP 2026-07-28 basic/versioning#compatibility-matrix [VER-018]: "falls back to `initialize`
    // (and possibly further to the deprecated HTTP+SSE transport)".
    fn answered_by_old_transport(&mut self, id: ExchangeId, now: Instant) {
        let request = self.exchanges.get(id).and_then(|it| it.message.as_ref());
        let Some((request, asks)) = request.and_then(Message::request) else { return };
        let opens = matches!(asks, RequestKind::Discover | RequestKind::Initialize);
        if !opens || !matches!(self.transport, Transport::Streamable) {
            return;
        }
        let Some(message) = self.abort(id).and_then(|exchange| exchange.message) else { return };
        if asks == RequestKind::Discover {
            return self.peer.probe_unsupported(request, now);
        }
        let what = "its stream is one of the transport HTTP+SSE";
        let failure = TransportFailure::InvalidResponse(what.into());
        if self.options.old_transport && self.peer.session_revision().is_none() {
            self.seek_old_transport(message, None, failure, now);
        } else {
            self.message_failed(message, failure, now);
        }
    }

    /// Handles a message that arrives before the URL to which its answer is posted.
    pub(super) fn receive_early(&mut self, id: ExchangeId, text: &[u8], now: Instant) {
        if let Ok(Frame::Single(JsonRpc::Request(_))) = parse(text, self.peer.parse_limits()) {
            self.deliver(id, text, now);
        }
    }

    /// Handles the accepted POST of a request. The response arrives on the stream, and some servers
    /// send it here instead, or too.
    // MCP 2024-11-05 basic/transports#http-with-sse [LSSE-004]
    pub(super) fn old_message_accepted(
        &mut self,
        id: ExchangeId,
        head: &IncomingResponse<'_>,
        now: Instant,
    ) {
        match head.media() {
            Some(Media::Json) => {
                if let Some(exchange) = self.exchanges.get_mut(id) {
                    exchange.receiving = Receiving::Json(Vec::new());
                }
            }
            Some(Media::EventStream) => self.open_stream(id, now),
            _ => drop(self.detach(id, now)),
        }
    }

    /// The server does not use the old transport either, so its first refusal is final.
    pub(super) fn old_transport_failed(
        &mut self,
        id: ExchangeId,
        failure: TransportFailure,
        now: Instant,
    ) {
        self.abort(id);
        match core::mem::replace(&mut self.transport, Transport::Streamable) {
            Transport::Probing(probe) => {
                // Answers to early requests cannot be posted.
                self.drop_answers();
                let Some((request, _)) = probe.message.request() else { return };
                let unauthorized = failure.is_authorization_failure();
                let failure = if unauthorized { failure } else { probe.failure };
                let opening = OpeningFailure::Transport(failure);
                let error = probe.error.filter(|_| !unauthorized);
                self.peer.handshake_refused(request, error, opening, now);
            }
            transport => {
                self.transport = transport;
                self.peer.close_because(CloseReason::Transport(failure));
            }
        }
    }

    /// The server uses the old transport, but violates it.
    fn old_transport_refused(&mut self, id: ExchangeId, failure: TransportFailure, now: Instant) {
        self.abort(id);
        if let Transport::Probing(probe) =
            core::mem::replace(&mut self.transport, Transport::Streamable)
            && let Some((request, _)) = probe.message.request()
        {
            self.peer.fail_call(request, Failure::Transport(failure), now);
        }
    }

    /// Closes the connection after the end of the old transport's stream, which cannot be resumed.
    pub(super) fn old_stream_over(&mut self, id: ExchangeId, broken: bool, now: Instant) {
        if matches!(self.transport, Transport::Probing(_)) {
            let failure = TransportFailure::StreamEnded;
            return self.old_transport_failed(id, failure, now);
        }
        self.exchanges.remove(id);
        let reason = if broken {
            CloseReason::Transport(TransportFailure::Broken)
        } else {
            CloseReason::EndOfInput
        };
        self.peer.close_because(reason);
    }

    /// Records that the GET of the old transport continues as another exchange.
    pub(super) fn old_stream_moved(&mut self, id: ExchangeId) {
        if let Transport::Probing(probe) = &mut self.transport {
            probe.stream = id;
        }
    }
}

/// Returns whether the URL that a server gives itself is probably what it sees behind the proxy that
/// `base` names: without TLS, under the same name or that of its own socket.
fn is_behind_proxy(endpoint: &Location, base: &Location) -> bool {
    let own = endpoint.origin().is_loopback() || matches!(endpoint.host(), "0.0.0.0" | "::");
    // Two ports of one machine are two servers.
    let own = own && (!base.origin().is_loopback() || endpoint.port() == base.port());
    let named = endpoint.host() == base.host() && base.origin().scheme() == Scheme::Https;
    endpoint.origin().scheme() == Scheme::Http && (own || named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_server_behind_a_proxy_has_another_name() {
        // Rule: [LSSE-003].
        for (endpoint, base, behind) in [
            ("http://a.example/m", "https://a.example/sse", true),
            ("http://a.example:81/m", "https://a.example/sse", true),
            ("http://a.example:81/m", "http://a.example/sse", false),
            ("https://a.example:444/m", "https://a.example/sse", false),
            ("http://b.example/m", "https://a.example/sse", false),
            ("https://127.0.0.1/m", "https://a.example/sse", false),
            ("http://0.0.0.0:3001/m", "http://a.example:3001/sse", true),
            ("http://127.0.0.1:3001/m", "http://localhost:3001/sse", true),
            ("http://127.0.0.1:3002/m", "http://localhost:3001/sse", false),
            ("http://192.168.0.1/m", "https://a.example/sse", false),
        ] {
            let parse = |url| Location::parse(url).unwrap();
            assert_eq!(
                is_behind_proxy(&parse(endpoint), &parse(base)),
                behind,
                "{endpoint} {base}"
            );
        }
    }
}

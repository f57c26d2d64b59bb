//! Event streams: their events, their ends, and the resumption of calls' streams.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use core::hash::BuildHasher;
use core::time::Duration;

use mcp_sansio_collections::KeyedHash;
use mcp_sansio_sync::Arc;

use crate::framing::{FrameError, SseDecoder, SseEvent};
use crate::http::ExchangeId;
use crate::http::media::Media;
use crate::peer::{Failure, TransportFailure};
use crate::{Era, Instant, Revision};

use super::exchanges::{Exchange, Pause, Purpose, Receiving, Stream};
use super::message::{Message, RequestKind};
use super::responses::{is_passing, seconds};
use super::session::SessionKey;
use super::{Client, IncomingResponse, Transport};

impl Client {
    pub(super) fn receive_events(&mut self, id: ExchangeId, bytes: &[u8], now: Instant) {
        let Some(exchange) = self.exchanges.get_mut(id) else { return };
        let taken = core::mem::replace(&mut exchange.receiving, Receiving::Nothing);
        let Receiving::Events(mut decoder) = taken else { return };
        if let Some(stream) = &mut exchange.stream
            && !core::mem::replace(&mut stream.begun, true)
            && matches!(bytes.trim_ascii_start(), [b'{' | b'[', ..])
        {
            // No line of an event starts so.
            stream.fault = Some("its content is JSON, not events".into());
        }
        let mut rest = bytes;
        loop {
            let length = decoder.feed(rest);
            rest = &rest[length..];
            while let Some(next) = decoder.next_event() {
                match next {
                    Ok(event) => self.receive_event(id, &event, now),
                    Err(error) => self.event_unreadable(id, error, now),
                }
                if self.peer.is_closed() || !self.is_streaming(id) {
                    return;
                }
            }
            if rest.is_empty() || length == 0 {
                break;
            }
        }
        let Some(exchange) = self.exchanges.get_mut(id) else { return };
        exchange.receiving = Receiving::Events(decoder);
    }

    /// Returns whether the exchange still has an open stream.
    fn is_streaming(&self, id: ExchangeId) -> bool {
        self.exchanges.get(id).is_some_and(|exchange| {
            exchange.stream.is_some() || exchange.purpose == Purpose::HttpSse
        })
    }

    fn receive_event(&mut self, id: ExchangeId, event: &SseEvent<'_>, now: Instant) {
        let Some(exchange) = self.exchanges.get_mut(id) else { return };
        let listens = exchange.listens();
        if let Some(stream) = &mut exchange.stream {
            stream.heard = true;
            // A subscription has no end: if each attempt brought one event, such as the
            // acknowledgement, and then the end, a success would not be worth much.
            if listens && !stream.has_stood(self.options.backoff.ceiling, now) {
                stream.attempts.keep_one();
            } else {
                stream.attempts.reset();
            }
            if stream.has_had(event) {
                return;
            }
        }
        if exchange.purpose == Purpose::Listen
            && !event.data.is_empty()
            && exchange.session == Some(self.legacy.number)
        {
            self.legacy.renewals = 0;
        }
        if event.event == "endpoint" {
            return self.receive_endpoint(id, event.data, now);
        }
        // MCP 2025-11-25 basic/transports#sending-messages-to-the-server [SSE-005] [SSE-010]
        // MCP 2024-11-05 basic/transports#http-with-sse [LSSE-004]
        if event.data.is_empty() {
            return;
        }
        if event.event != "message" {
            if !self.deliver_answer(id, event.data, now) {
                self.note_error_event(id, event);
            }
        } else if matches!(self.transport, Transport::Probing(_)) {
            self.receive_early(id, event.data, now);
        } else {
            self.deliver(id, event.data, now);
        }
        // MCP 2025-11-25 basic/transports#sending-messages-to-the-server [SSE-004]: the server ends
        // the stream after the response.
        let request = self.exchanges.get(id).and_then(Exchange::request_id);
        if request.is_some_and(|request| !self.peer.is_pending(request)) {
            self.linger(id, now);
        }
    }

    /// Keeps the text of an event of the type `error`, which some servers send in place of the
    /// response.
    fn note_error_event(&mut self, id: ExchangeId, event: &SseEvent<'_>) {
        if let Some(stream) = self.exchanges.get_mut(id).and_then(|it| it.stream.as_mut())
            && event.event == "error"
            && let Some(text) = TransportFailure::excerpt(event.data)
        {
            stream.fault = Some(format!("it has an event of the type `error`: {text}").into());
        }
    }

    /// Handles an event that cannot be read; it may have been the response.
    fn event_unreadable(&mut self, id: ExchangeId, error: FrameError, now: Instant) {
        let _reported = self.peer.handle_frame_error(error).map(|event| {
            if let Some(event) = event {
                self.report_event(event);
            }
        });
        let of_call = self.exchanges.get(id).is_some_and(|exchange| exchange.message.is_some());
        if of_call && let FrameError::TooLong { limit } = error {
            self.too_long(id, limit, now);
        }
    }

    /// Handles the end of a stream, regular or not.
    pub(super) fn stream_over(&mut self, id: ExchangeId, broken: bool, now: Instant) {
        if self.exchanges.get(id).is_some_and(|exchange| exchange.purpose == Purpose::HttpSse) {
            return self.old_stream_over(id, broken, now);
        }
        let Some(mut exchange) = self.exchanges.remove(id) else { return };
        let Receiving::Events(decoder) = &mut exchange.receiving else { return };
        if let Some(stream) = &mut exchange.stream {
            // MCP 2025-11-25 basic/transports#sending-messages-to-the-server [SSE-008]
            stream.retry = decoder.retry().or(stream.retry);
            if let Some(id) = decoder.last_event_id() {
                stream.last_id = Some(id).filter(|id| is_header_value(id)).map(String::from);
            }
            // MCP 2025-11-25 basic/transports#resumability-and-redelivery [RESUME-002]: an id that
            // several events have, such as that of the session, names no position.
            stream.repeats_id |= decoder.repeats_id();
            let session = self.legacy.key.as_ref().map(SessionKey::text);
            if stream.repeats_id || stream.last_id.as_deref() == session {
                stream.last_id = None;
            }
            if decoder.handle_eof().is_some() && stream.fault.is_none() {
                stream.fault = Some("its last event is incomplete".into());
            }
        }
        match exchange.purpose {
            Purpose::Listen => self.listening_over(exchange.stream, broken, now),
            _ => self.call_stream_over(exchange, broken, now),
        }
    }

    fn call_stream_over(&mut self, mut exchange: Exchange, broken: bool, now: Instant) {
        let Some(message) = &exchange.message else { return };
        let Some((request, asks)) = message.request() else { return };
        // MCP 2024-11-05 basic/transports#http-with-sse [LSSE-004]: the answer arrives on the other
        // stream.
        if !self.peer.is_pending(request) || matches!(self.transport, Transport::HttpSse(_)) {
            return;
        }
        let fault = exchange.stream.as_mut().and_then(|stream| stream.fault.take());
        let failure = match fault {
            _ if broken => TransportFailure::Broken,
            Some(fault) if asks != RequestKind::Listen => {
                let what = format!("the stream ended before the answer; {fault}");
                TransportFailure::InvalidResponse(what.into())
            }
            _ => TransportFailure::StreamEnded,
        };
        if message.revision.is_some() {
            // MCP 2026-07-28 basic/transports/streamable-http#receiving-messages [RESUME-008],
            // MCP 2026-07-28 changelog#major-changes [HCLI-012]: a modern stream cannot be resumed.
            let Exchange { message: Some(message), stream: Some(mut stream), .. } = exchange else {
                return;
            };
            if stream.has_stood(self.options.backoff.ceiling, now) {
                stream.attempts.reset();
            }
            let Some(mut message) = self.try_handshake(message, now) else { return };
            if asks == RequestKind::Listen && (stream.heard || stream.reopened) {
                message.attempts = Some(stream.attempts);
            }
            return self.message_failed(message, failure, now);
        }
        if self.is_over(exchange.session) {
            let Some(message) = exchange.message else { return };
            return self.lose(message, now);
        }
        let Some(stream) = &mut exchange.stream else { return };
        if !self.resumes() || stream.last_id.is_none() {
            return self.peer.fail_call(request, Failure::Transport(failure), now);
        }
        // MCP 2025-11-25 basic/transports#sending-messages-to-the-server [SSE-006] [SSE-009]: the
        // server is available and wants to be polled; the call's deadline limits how long.
        if !broken {
            stream.attempts.reset();
        }
        self.resume_later(exchange, None, now);
    }

    /// Returns whether streams can be resumed at the revision of the session, or may be if no
    /// session is open yet.
    fn resumes(&self) -> bool {
        self.peer.session_revision().is_none_or(|revision| {
            revision.era() == Era::Legacy && revision >= Revision::V2025_03_26
        })
    }

    /// Schedules the resumption of a call's stream, unless the limit of attempts is reached.
    pub(super) fn resume_later(
        &mut self,
        exchange: Exchange,
        retry_after: Option<Duration>,
        now: Instant,
    ) {
        let Exchange { message: Some(message), stream: Some(mut stream), .. } = exchange else {
            return;
        };
        if message.request().is_none_or(|(id, _)| !self.peer.is_pending(id)) {
            return;
        }
        match self.pause_before(&mut stream, retry_after, now) {
            Some(due) => {
                let pause = Pause { due, message: Some(message), stream, again: false };
                self.exchanges.pauses.push(pause);
            }
            None => {
                let attempts = stream.attempts.made();
                let failure = TransportFailure::StreamLost { attempts };
                self.message_failed(message, failure, now);
            }
        }
    }

    /// Schedules another attempt of a message that was not handled, if its time and the limit of
    /// attempts allow one. Returns the message otherwise.
    pub(super) fn send_again_later(
        &mut self,
        mut message: Message,
        failure: &TransportFailure,
        now: Instant,
    ) -> Option<Message> {
        let request = message.request();
        let repeats = match request {
            // A server that is not there is reported at once.
            _ if message.opens() => failure.retry_after().is_some(),
            Some((_, RequestKind::Listen)) => false,
            Some((id, _)) => self.peer.is_from_application(id),
            None => true,
        };
        if !repeats || !failure.is_postponement() {
            return Some(message);
        }
        let attempts = message.attempts.take().unwrap_or_else(|| self.attempts());
        if attempts.made() >= self.options.limits.retries_max {
            return Some(message);
        }
        let mut stream = Box::new(Stream::new(attempts, now));
        let due = self.pause_before(&mut stream, failure.retry_after(), now);
        let deadline = match request {
            Some((id, _)) => self.peer.deadline_of(id),
            None => Some(now + self.peer.call_timeout()),
        };
        match due.filter(|due| deadline.is_none_or(|deadline| *due < deadline)) {
            Some(due) => {
                let pause = Pause { due, message: Some(message), stream, again: true };
                self.exchanges.pauses.push(pause);
                None
            }
            None => Some(message),
        }
    }

    /// Returns when to open a stream again, or `None` if no attempts are left or the server asks
    /// for a longer delay than the limit.
    pub(super) fn pause_before(
        &self,
        stream: &mut Stream,
        retry_after: Option<Duration>,
        now: Instant,
    ) -> Option<Instant> {
        let limits = &self.options.limits;
        let wanted = stream.retry.max(retry_after);
        if wanted > Some(limits.reconnect_pause_max) {
            return None;
        }
        // MCP 2025-11-25 basic/transports#sending-messages-to-the-server [SSE-008]
        let delay = stream.attempts.next_delay(wanted)?;
        Some(now + delay.max(limits.reconnect_pause_min))
    }

    /// Resumes the streams that are due.
    pub(super) fn resume_due(&mut self, now: Instant) {
        while let Some(at) = self.exchanges.pauses.iter().position(|pause| pause.due <= now) {
            let Pause { message, stream, again, .. } = self.exchanges.pauses.remove(at);
            let Some(mut message) = message else {
                self.listen_with(stream, now);
                continue;
            };
            if message.is_control() {
                message.attempts = Some(stream.attempts);
                self.queue.push_control_again(message);
                continue;
            }
            // The call may have ended with a response on another stream.
            let request = message.request().map(|(request, _)| request);
            let Some(request) = request.filter(|request| self.peer.is_pending(*request)) else {
                continue;
            };
            if again {
                message.attempts = Some(stream.attempts);
                self.queue.push_back(message);
                continue;
            }
            if message.revision.is_some() {
                self.take_posts(now);
                if self.peer.listen_again(request, now)
                    && let Some(posted) = self.next_post()
                {
                    message = posted;
                    message.attempts = Some(stream.attempts);
                    self.queue.push_back(message);
                }
                continue;
            }
            let url = Arc::clone(&self.url);
            let new = Exchange::new(Purpose::Resume, url);
            self.send(Exchange { message: Some(message), stream: Some(stream), ..new }, now);
        }
    }

    /// Handles the response to the resumption of a call's stream.
    pub(super) fn resume_answered(
        &mut self,
        id: ExchangeId,
        head: &IncomingResponse<'_>,
        now: Instant,
    ) {
        let status = head.status.0;
        let events = head.media() == Some(Media::EventStream);
        if head.status.is_success() && events {
            return self.stream_resumed(id, now);
        }
        let Some(exchange) = self.detach(id, now) else { return };
        if is_passing(status) {
            return self.resume_later(exchange, head.retry_after.and_then(seconds), now);
        }
        let failure = match status {
            401 | 403 => self.unauthorized(head),
            _ => TransportFailure::NotResumed { status },
        };
        self.stream_failed(exchange, failure, now);
    }

    pub(super) fn stream_resumed(&mut self, id: ExchangeId, now: Instant) {
        let decoder = self.decoder();
        let Some(exchange) = self.exchanges.get_mut(id) else { return };
        exchange.receiving = Receiving::Events(decoder);
        if let Some(stream) = &mut exchange.stream {
            stream.resumed = stream.last_id.is_some();
            (stream.heard, stream.since) = (false, now);
        }
    }

    pub(super) fn stream_failed(
        &mut self,
        exchange: Exchange,
        failure: TransportFailure,
        now: Instant,
    ) {
        if let Some(message) = exchange.message {
            self.message_failed(message, failure, now);
        }
    }

    /// Schedules the reopening of a modern listen stream.
    pub(super) fn listen_again_later(
        &mut self,
        mut message: Message,
        failure: TransportFailure,
        now: Instant,
    ) {
        let Some((request, _)) = message.request() else { return };
        let Some(attempts) = message.attempts.take() else { return };
        // A server that refuses permanently is not asked again.
        let passing = match &failure {
            TransportFailure::Status { status, .. } => is_passing(*status),
            TransportFailure::NotSent
            | TransportFailure::Broken
            | TransportFailure::StreamEnded => true,
            _ => false,
        };
        if !passing || !self.peer.is_pending(request) {
            return self.peer.fail_call(request, Failure::Transport(failure), now);
        }
        let stream = Box::new(Stream::new(attempts, now));
        let exchange = Exchange::new(Purpose::Post, Arc::clone(&self.url));
        let exchange = Exchange { message: Some(message), stream: Some(stream), ..exchange };
        self.resume_later(exchange, failure.retry_after(), now);
    }

    pub(super) fn decoder(&self) -> Box<SseDecoder<'static>> {
        Box::new(SseDecoder::growing(self.options.limits.event_bytes_max))
    }
}

impl Stream {
    /// Takes note of an event. Returns whether it is the one after which the stream was resumed:
    /// some servers replay that one too. It is the first message with an id, and has the same data.
    // MCP 2025-11-25 basic/transports#resumability-and-redelivery [RESUME-006]: only events after
    // that id are replayed.
    fn has_had(&mut self, event: &SseEvent<'_>) -> bool {
        if !event.sets_id || event.data.is_empty() {
            return false;
        }
        let data = KeyedHash::default().hash_one(event.data);
        let before = core::mem::replace(&mut self.last_data, data);
        if !core::mem::take(&mut self.resumed) || event.id != self.last_id.as_deref() {
            return false;
        }
        let replayed = data == before;
        self.repeats_id |= !replayed;
        replayed
    }
}

/// Returns whether an event id can be a header value unchanged. Other ids cannot resume a stream.
fn is_header_value(id: &str) -> bool {
    let printable = id.bytes().all(|byte| byte >= b' ' && byte != 0x7F);
    !id.is_empty() && printable && id.trim_matches(' ') == id
}

//! The stream on which a legacy server sends messages that belong to no request.

use alloc::boxed::Box;
use core::time::Duration;

use mcp_sansio_sync::Arc;

use crate::Instant;
use crate::http::ExchangeId;
use crate::http::media::Media;
use crate::peer::{Event, TransportFailure};

use super::exchanges::{Exchange, Pause, Purpose, Stream};
use super::responses::{is_passing, seconds};
use super::{Client, IncomingResponse, SendState};

/// The state of the listening stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Listening {
    /// The stream is not open.
    #[default]
    Off,
    /// An exchange opens, resumes or carries the stream.
    On { exchange: ExchangeId, stood: bool },
    /// The stream waits to be opened again, after it was open if `stood` is set.
    Waiting { stood: bool },
    /// The server does not offer the stream, and is not asked again.
    NotOffered,
}

impl Client {
    /// Opens the listening stream of a new session.
    // MCP 2025-11-25 basic/transports#listening-for-messages-from-the-server [HCLI-007]
    // MCP 2025-11-25 basic/transports#multiple-connections [HCLI-010]: in addition to those of
    // calls.
    // MCP 2025-11-25 basic/utilities/tasks#input-required-status [HCLI-011]: messages of a task may
    // arrive on this stream or on that of the call.
    pub(super) fn listen(&mut self, now: Instant) {
        let stream = Stream::new(self.attempts(), now);
        self.listening = Listening::Off;
        self.listen_with(stream.into(), now);
    }

    pub(super) fn listen_with(&mut self, stream: Box<Stream>, now: Instant) {
        let stood = matches!(self.listening, Listening::Waiting { stood: true });
        let exchange = Exchange::new(Purpose::Listen, Arc::clone(&self.url));
        let exchange = Exchange { stream: Some(stream), ..exchange };
        if let Some(exchange) = self.send(exchange, now) {
            self.listening = Listening::On { exchange, stood };
        }
    }

    pub(super) fn listening_moved(&mut self, to: ExchangeId) {
        if let Listening::On { exchange, .. } = &mut self.listening {
            *exchange = to;
        }
    }

    /// Closes the stream of a session that has ended.
    pub(super) fn forget_listening(&mut self) {
        if let Listening::On { exchange, .. } = self.listening {
            self.abort(exchange);
        }
        if self.listening != Listening::NotOffered {
            self.listening = Listening::Off;
        }
    }

    pub(super) fn listen_answered(
        &mut self,
        id: ExchangeId,
        head: &IncomingResponse<'_>,
        now: Instant,
    ) {
        self.stop_waiting_for_listening();
        let status = head.status.0;
        let events = head.media() == Some(Media::EventStream);
        if head.status.is_success() && events {
            self.stream_resumed(id, now);
            self.listening = Listening::On { exchange: id, stood: true };
            return;
        }
        let stood = matches!(self.listening, Listening::On { stood: true, .. });
        let placed = self.exchanges.get(id).is_some_and(|exchange| exchange.session.is_some());
        // From a server that never had such a stream, 404 means the same as 405: the session was
        // just opened, and if it has ended, the next POST will show it.
        // MCP 2025-11-25 basic/transports#session-management [SESS-009]
        if status == 404 && placed && stood {
            return self.session_ended(id, now);
        }
        let Some(exchange) = self.detach(id, now) else { return };
        // A server that offers one stream for each session may not have noticed yet that the
        // previous one is gone, for example behind a proxy.
        let occupied = stood && matches!(status, 400 | 409);
        if is_passing(status) || occupied {
            let retry_after = head.retry_after.and_then(seconds);
            return self.listen_later(exchange.stream, retry_after, now);
        }
        let failure = match status {
            401 | 403 => self.unauthorized(head),
            200..=299 => TransportFailure::InvalidResponse("it is not an event stream".into()),
            _ => TransportFailure::NotResumed { status },
        };
        self.listening_refused(exchange.stream, failure, now);
    }

    /// Handles the end of the stream. Its messages have been processed.
    pub(super) fn listening_over(
        &mut self,
        stream: Option<Box<Stream>>,
        broken: bool,
        now: Instant,
    ) {
        let Some(mut stream) = stream else { return };
        let stood_long = stream.has_stood(self.options.backoff.ceiling, now);
        // MCP 2025-11-25 basic/transports#listening-for-messages-from-the-server [SSE-009]: a
        // server that sends a reconnection delay wants to be polled, for as long as it likes.
        let polled = stream.retry.is_some();
        if stood_long {
            self.legacy.renewals = 0;
        }
        if (stood_long || polled) && !broken {
            stream.attempts.reset();
        }
        self.listen_later(Some(stream), None, now);
    }

    // MCP 2025-11-25 basic/transports#listening-for-messages-from-the-server [SSE-007] [SSE-009]
    pub(super) fn listen_later(
        &mut self,
        stream: Option<Box<Stream>>,
        retry_after: Option<Duration>,
        now: Instant,
    ) {
        let Some(mut stream) = stream else { return };
        match self.pause_before(&mut stream, retry_after, now) {
            Some(due) => {
                let stood = matches!(self.listening, Listening::On { stood: true, .. });
                self.listening = Listening::Waiting { stood };
                self.exchanges.pauses.push(Pause { due, message: None, stream, again: false });
            }
            None => {
                let attempts = stream.attempts.made();
                self.listening_lost(TransportFailure::StreamLost { attempts });
            }
        }
    }

    /// The server does not offer such a stream, or no longer does.
    // MCP 2025-11-25 basic/transports#listening-for-messages-from-the-server [HCLI-009]
    pub(super) fn listening_refused(
        &mut self,
        _stream: Option<Box<Stream>>,
        failure: TransportFailure,
        _now: Instant,
    ) {
        self.stop_waiting_for_listening();
        let stood = matches!(self.listening, Listening::On { stood: true, .. });
        // The session may have ended before its stream was open: the next session asks again.
        // MCP 2025-11-25 basic/transports#session-management [SESS-009]
        let of_session = matches!(failure, TransportFailure::NotResumed { status: 404 });
        // The server offers the stream, but no longer has all of its events.
        let lost = matches!(failure, TransportFailure::NotResumed { status: 410 });
        if stood || lost || failure.is_authorization_failure() {
            return self.listening_lost(failure);
        }
        self.listening_lost(match failure {
            TransportFailure::NotResumed { status } => TransportFailure::from_status(status, None),
            failure => failure,
        });
        if !of_session {
            self.listening = Listening::NotOffered;
        }
    }

    fn listening_lost(&mut self, failure: TransportFailure) {
        self.listening = Listening::Off;
        self.peer.report(Event::EventStreamLost(failure));
    }

    /// Releases the calls that wait for the stream.
    pub(super) fn stop_waiting_for_listening(&mut self) {
        if matches!(self.send_state, SendState::Listening(_)) {
            self.send_state = SendState::Open;
        }
    }
}

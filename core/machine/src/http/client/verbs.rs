//! What the application wants: the verbs of [`peer::Client`](crate::peer::Client).

use crate::Instant;
use crate::jsonrpc::{ErrorObject, Typed, WriteJson};
use crate::peer::{AnswerError, CallError, CallHandle, CallOptions, InputHandle, RequestHandle};
use crate::protocol::{At, LoggingLevel, Method, SubscriptionFilter, Wire};

#[cfg(feature = "recording")]
use crate::peer::MethodName;

use super::Client;

impl Client {
    /// Sends a request. See [`peer::Client::call`](crate::peer::Client::call).
    ///
    /// # Errors
    ///
    /// Nothing was sent: see [`CallError`].
    pub fn call(
        &mut self,
        method: Method,
        params: &impl WriteJson,
        options: &CallOptions<'_>,
        now: Instant,
    ) -> Result<CallHandle, CallError> {
        note!(self, started(MethodName::Known(method), params, options, now));
        let started = self.peer.call(method, params, options, now);
        self.settle(now);
        started
    }

    /// Sends a request with one of the protocol's typed parameters. See
    /// [`peer::Client::call_typed`](crate::peer::Client::call_typed).
    ///
    /// # Errors
    ///
    /// Nothing was sent: see [`CallError`].
    pub fn call_typed<P: Wire + ?Sized>(
        &mut self,
        method: Method,
        params: &P,
        options: &CallOptions<'_>,
        now: Instant,
    ) -> Result<CallHandle, CallError> {
        let revision = self.peer.check_gate(method)?;
        self.call(method, &Typed(&At(params, revision)), options, now)
    }

    /// Sends a request that the protocol does not know, for extensions.
    ///
    /// # Errors
    ///
    /// Nothing was sent: see [`CallError`].
    pub fn call_other(
        &mut self,
        method: &str,
        params: &impl WriteJson,
        options: &CallOptions<'_>,
        now: Instant,
    ) -> Result<CallHandle, CallError> {
        note!(self, started(MethodName::Other(method.into()), params, options, now));
        let started = self.peer.call_other(method, params, options, now);
        self.settle(now);
        started
    }

    /// Gives up a call or ends a subscription: it ends with
    /// [`Failure::Cancelled`](crate::peer::Failure::Cancelled). A modern server is told by closing
    /// the exchange, a legacy one by a notification; neither if the request never left.
    // MCP 2026-07-28 basic/transports/streamable-http#cancellation [CANC-017],
    // MCP 2026-07-28 basic/patterns/cancellation#cancellation-flow [CANC-013]
    // MCP 2025-11-25 basic/transports#sending-messages-to-the-server [CANC-011]: closing a legacy stream
    // would say nothing.
    pub fn cancel(&mut self, call: CallHandle, reason: &str, now: Instant) {
        note!(self, cancel(call, reason, now));
        self.peer.cancel(call, reason, now);
        self.settle(now);
    }

    /// Sends a notification. See [`peer::Client::notify`](crate::peer::Client::notify).
    ///
    /// # Errors
    ///
    /// Nothing was sent: see [`CallError`].
    pub fn notify(
        &mut self,
        method: Method,
        params: &impl WriteJson,
        now: Instant,
    ) -> Result<(), CallError> {
        note!(self, notify(method, params, Some(now)));
        let sent = self.peer.notify(method, params);
        self.settle(now);
        sent
    }

    /// Subscribes to changes. See [`peer::Client::subscribe`](crate::peer::Client::subscribe).
    ///
    /// When the stream of a subscription to a modern server breaks it is opened again, and
    /// [`Event::Subscribed`](crate::peer::Event::Subscribed) comes again: what changed in between
    /// was not told. After as many attempts in vain as the [`Backoff`](crate::http::Backoff) has,
    /// the subscription ends with
    /// [`TransportFailure::StreamLost`](crate::peer::TransportFailure::StreamLost).
    ///
    /// # Errors
    ///
    /// Nothing was sent: see [`CallError`].
    pub fn subscribe(
        &mut self,
        filter: &SubscriptionFilter,
        now: Instant,
    ) -> Result<CallHandle, CallError> {
        note!(self, subscribe(filter, now));
        let started = self.peer.subscribe(filter, now);
        self.settle(now);
        started
    }

    /// Asks for log messages from `level` on.
    ///
    /// # Errors
    ///
    /// Nothing was sent: see [`CallError`].
    pub fn set_log_level(&mut self, level: LoggingLevel, now: Instant) -> Result<(), CallError> {
        note!(self, set_log_level(level, now));
        let sent = self.peer.set_log_level(level, now);
        self.settle(now);
        sent
    }

    /// Answers a question with the result of its method.
    ///
    /// # Errors
    ///
    /// See [`peer::Client::answer_input`](crate::peer::Client::answer_input).
    pub fn answer_input<R: Wire + ?Sized>(
        &mut self,
        input: InputHandle,
        result: &R,
        now: Instant,
    ) -> Result<(), AnswerError> {
        let revision = self.peer.session_revision().ok_or(AnswerError::NotDue)?;
        self.answer_input_with(input, &Typed(&At(result, revision)), now)
    }

    /// The same with a result of the caller's own.
    ///
    /// # Errors
    ///
    /// See [`answer_input`](Self::answer_input).
    pub fn answer_input_with(
        &mut self,
        input: InputHandle,
        result: &impl WriteJson,
        now: Instant,
    ) -> Result<(), AnswerError> {
        note!(self, answer_input(input, result, now));
        let answered = self.peer.answer_input_with(input, result, now);
        self.settle(now);
        answered
    }

    /// Refuses a question.
    ///
    /// # Errors
    ///
    /// See [`peer::Client::refuse_input`](crate::peer::Client::refuse_input).
    pub fn refuse_input(
        &mut self,
        input: InputHandle,
        error: ErrorObject<'_>,
        now: Instant,
    ) -> Result<(), AnswerError> {
        note!(self, refuse_input(input, &error, Some(now)));
        let refused = self.peer.refuse_input(input, error);
        self.settle(now);
        refused
    }

    /// Answers a request of a legacy server that is no question to the host.
    ///
    /// # Errors
    ///
    /// See [`peer::Client::respond_with`](crate::peer::Client::respond_with).
    pub fn respond_with(
        &mut self,
        request: RequestHandle,
        result: &impl WriteJson,
        now: Instant,
    ) -> Result<(), AnswerError> {
        note!(self, respond(request, result, Some(now)));
        let answered = self.peer.respond_with(request, result);
        self.settle(now);
        answered
    }

    /// Answers a request of a legacy server with an error.
    ///
    /// # Errors
    ///
    /// See [`peer::Client::reject`](crate::peer::Client::reject).
    pub fn reject(
        &mut self,
        request: RequestHandle,
        error: ErrorObject<'_>,
        now: Instant,
    ) -> Result<(), AnswerError> {
        note!(self, reject(request, &error, Some(now)));
        let refused = self.peer.reject(request, error);
        self.settle(now);
        refused
    }

    /// Ends the connection from this side: every call ends with
    /// [`Failure::ConnectionLost`](crate::peer::Failure::ConnectionLost), every exchange is cut off,
    /// and the server of a legacy session is told that it is over. Go on driving the machine until
    /// it [is drained](Self::is_drained).
    pub fn close(&mut self, now: Instant) {
        note!(self, close(Some(now)));
        self.peer.close();
        self.settle(now);
    }
}

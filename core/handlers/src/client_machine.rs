use core::fmt;

use mcp_sansio::Instant;
use mcp_sansio::jsonrpc::{ErrorObject, RawJson};
use mcp_sansio::peer::client::Session;
use mcp_sansio::peer::{
    self, AnswerError, CallError, CallHandle, CallOptions, Event, InputHandle, MethodName,
    RequestHandle,
};
use mcp_sansio::protocol::{LoggingLevel, Method, SubscriptionFilter};

use super::reply::Body;

/// A client's machine, whatever it is bound to: what a
/// [`ClientEndpoint`](super::ClientEndpoint) wants of it.
#[allow(unnameable_types, reason = "the machines of this crate are all that there are")]
pub trait ClientMachine: fmt::Debug {
    fn call(
        &mut self,
        method: &MethodName<'_>,
        params: &RawJson<'_>,
        options: &CallOptions<'_>,
        now: Instant,
    ) -> Result<CallHandle, CallError>;

    fn subscribe(
        &mut self,
        filter: &SubscriptionFilter,
        now: Instant,
    ) -> Result<CallHandle, CallError>;

    fn cancel(&mut self, call: CallHandle, reason: &str, now: Instant);

    fn notify(
        &mut self,
        method: Method,
        params: &RawJson<'_>,
        now: Instant,
    ) -> Result<(), CallError>;

    fn set_log_level(&mut self, level: LoggingLevel, now: Instant) -> Result<(), CallError>;

    fn answer_input(
        &mut self,
        input: InputHandle,
        body: &Body,
        now: Instant,
    ) -> Result<(), AnswerError>;

    fn refuse_input(
        &mut self,
        input: InputHandle,
        error: ErrorObject<'_>,
        now: Instant,
    ) -> Result<(), AnswerError>;

    fn reject(
        &mut self,
        request: RequestHandle,
        error: ErrorObject<'_>,
        now: Instant,
    ) -> Result<(), AnswerError>;

    fn close(&mut self, now: Instant);

    fn handle_timeout(&mut self, now: Instant);

    fn poll_event(&mut self) -> Option<Event<'static>>;

    fn session(&self) -> Option<&Session>;
}

impl ClientMachine for peer::Client {
    fn call(
        &mut self,
        method: &MethodName<'_>,
        params: &RawJson<'_>,
        options: &CallOptions<'_>,
        now: Instant,
    ) -> Result<CallHandle, CallError> {
        match method {
            MethodName::Known(method) => self.call(*method, params, options, now),
            MethodName::Other(name) => self.call_other(name, params, options, now),
        }
    }

    fn subscribe(
        &mut self,
        filter: &SubscriptionFilter,
        now: Instant,
    ) -> Result<CallHandle, CallError> {
        self.subscribe(filter, now)
    }

    fn cancel(&mut self, call: CallHandle, reason: &str, now: Instant) {
        self.cancel(call, reason, now);
    }

    fn notify(
        &mut self,
        method: Method,
        params: &RawJson<'_>,
        _now: Instant,
    ) -> Result<(), CallError> {
        self.notify(method, params)
    }

    fn set_log_level(&mut self, level: LoggingLevel, now: Instant) -> Result<(), CallError> {
        self.set_log_level(level, now)
    }

    fn answer_input(
        &mut self,
        input: InputHandle,
        body: &Body,
        now: Instant,
    ) -> Result<(), AnswerError> {
        self.answer_input(input, body, now)
    }

    fn refuse_input(
        &mut self,
        input: InputHandle,
        error: ErrorObject<'_>,
        _now: Instant,
    ) -> Result<(), AnswerError> {
        self.refuse_input(input, error)
    }

    fn reject(
        &mut self,
        request: RequestHandle,
        error: ErrorObject<'_>,
        _now: Instant,
    ) -> Result<(), AnswerError> {
        self.reject(request, error)
    }

    fn close(&mut self, _now: Instant) {
        self.close();
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.handle_timeout(now);
    }

    fn poll_event(&mut self) -> Option<Event<'static>> {
        self.poll_event()
    }

    fn session(&self) -> Option<&Session> {
        self.session()
    }
}

#[cfg(feature = "http")]
impl ClientMachine for mcp_sansio::http::Client {
    fn call(
        &mut self,
        method: &MethodName<'_>,
        params: &RawJson<'_>,
        options: &CallOptions<'_>,
        now: Instant,
    ) -> Result<CallHandle, CallError> {
        match method {
            MethodName::Known(method) => self.call(*method, params, options, now),
            MethodName::Other(name) => self.call_other(name, params, options, now),
        }
    }

    fn subscribe(
        &mut self,
        filter: &SubscriptionFilter,
        now: Instant,
    ) -> Result<CallHandle, CallError> {
        self.subscribe(filter, now)
    }

    fn cancel(&mut self, call: CallHandle, reason: &str, now: Instant) {
        self.cancel(call, reason, now);
    }

    fn notify(
        &mut self,
        method: Method,
        params: &RawJson<'_>,
        now: Instant,
    ) -> Result<(), CallError> {
        self.notify(method, params, now)
    }

    fn set_log_level(&mut self, level: LoggingLevel, now: Instant) -> Result<(), CallError> {
        self.set_log_level(level, now)
    }

    fn answer_input(
        &mut self,
        input: InputHandle,
        body: &Body,
        now: Instant,
    ) -> Result<(), AnswerError> {
        self.answer_input(input, body, now)
    }

    fn refuse_input(
        &mut self,
        input: InputHandle,
        error: ErrorObject<'_>,
        now: Instant,
    ) -> Result<(), AnswerError> {
        self.refuse_input(input, error, now)
    }

    fn reject(
        &mut self,
        request: RequestHandle,
        error: ErrorObject<'_>,
        now: Instant,
    ) -> Result<(), AnswerError> {
        self.reject(request, error, now)
    }

    fn close(&mut self, now: Instant) {
        self.close(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.handle_timeout(now);
    }

    fn poll_event(&mut self) -> Option<Event<'static>> {
        self.poll_event()
    }

    fn session(&self) -> Option<&Session> {
        self.session()
    }
}

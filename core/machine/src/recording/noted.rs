//! What the verbs of a machine are on a line.

use alloc::borrow::Cow;
use alloc::string::{String, ToString};
#[cfg(feature = "http")]
use core::time::Duration;

use serde::Serialize;

use crate::Instant;
use crate::catalog::recorded::{Kinds, State};
use crate::catalog::{Catalog, Changes};
use crate::framing::FrameError;
#[cfg(feature = "http")]
use crate::http::{ExchangeId, Refusal};
use crate::jsonrpc::{ErrorObject, Typed, WriteJson};
#[cfg(feature = "http")]
use crate::peer::TransportFailure;
use crate::peer::{
    CallHandle, CallOptions, ConnectionClosed, Event, InputHandle, MethodName, RequestHandle,
};
use crate::protocol::{
    InputRequiredResult, LoggingLevel, Method, SubscriptionFilter, TaskStatusParams,
};

use super::arguments::{Options, text};
use super::call::Call;
use super::event::describe;
use super::every_revision::whole;
#[cfg(feature = "http")]
use super::exchange::{Cause, Refused};
use super::handle::Handle;
use super::payload::Payload;

pub(super) const fn nanos(at: Instant) -> u64 {
    at.as_nanos()
}

impl<'a> Call<'a> {
    pub(crate) fn message(
        frame: &'a [u8],
        now: Instant,
        flow: &Result<Option<Event<'_>>, ConnectionClosed>,
    ) -> Self {
        Self::Message { at: nanos(now), frame: Payload::of(frame), event: of_flow(flow) }
    }

    pub(crate) fn frame_error(
        error: FrameError,
        flow: &Result<Option<Event<'_>>, ConnectionClosed>,
    ) -> Self {
        Self::FrameError { error: error.into(), event: of_flow(flow) }
    }

    pub(crate) const fn end_of_input() -> Self {
        Self::EndOfInput {}
    }

    pub(crate) const fn restart(now: Instant) -> Self {
        Self::Restart { at: nanos(now) }
    }

    pub(crate) const fn timeout(now: Instant) -> Self {
        Self::Timeout { at: nanos(now) }
    }

    pub(crate) fn started(
        name: MethodName<'a>,
        params: &(impl WriteJson + ?Sized),
        options: &CallOptions<'a>,
        now: Instant,
    ) -> Self {
        let (method, other) = match name {
            MethodName::Known(method) => (method.as_str().into(), false),
            MethodName::Other(name) => (name, true),
        };
        let options = Options::of(options);
        Self::Started { at: nanos(now), method, params: text(params), options, other }
    }

    pub(crate) fn cancel(call: CallHandle, reason: &'a str, now: Instant) -> Self {
        Self::Cancel { at: nanos(now), call: call.into(), reason: reason.into() }
    }

    pub(crate) fn notify(
        method: Method,
        params: &(impl WriteJson + ?Sized),
        now: Option<Instant>,
    ) -> Self {
        let at = now.map(nanos);
        Self::Notify { at, method: method.as_str().into(), params: text(params) }
    }

    pub(crate) fn set_log_level(level: LoggingLevel, now: Instant) -> Self {
        Self::SetLogLevel { at: nanos(now), level: level.as_str().into() }
    }

    pub(crate) fn subscribe(filter: &SubscriptionFilter, now: Instant) -> Self {
        Self::Subscribe { at: nanos(now), filter: whole(filter) }
    }

    pub(crate) fn answer_input(
        input: InputHandle,
        result: &(impl WriteJson + ?Sized),
        now: Instant,
    ) -> Self {
        Self::AnswerInput { at: nanos(now), input: input.into(), result: text(result) }
    }

    pub(crate) fn refuse_input(
        input: InputHandle,
        error: &ErrorObject<'a>,
        now: Option<Instant>,
    ) -> Self {
        Self::RefuseInput { at: now.map(nanos), input: input.into(), error: error.clone() }
    }

    pub(crate) fn respond(
        request: RequestHandle,
        result: &(impl WriteJson + ?Sized),
        now: Option<Instant>,
    ) -> Self {
        Self::Respond { at: now.map(nanos), request: request.into(), result: text(result) }
    }

    pub(crate) fn reject(
        request: RequestHandle,
        error: &ErrorObject<'a>,
        now: Option<Instant>,
    ) -> Self {
        Self::Reject { at: now.map(nanos), request: request.into(), error: error.clone() }
    }

    pub(crate) fn require_input(
        request: RequestHandle,
        method: &'a MethodName<'_>,
        required: &InputRequiredResult,
        now: Instant,
    ) -> Self {
        let method = method.as_str().into();
        let (at, request) = (nanos(now), request.into());
        Self::RequireInput { at, request, method, required: whole(required) }
    }

    pub(crate) fn withdraw_input(request: RequestHandle, now: Instant) -> Self {
        Self::WithdrawInput { at: nanos(now), request: request.into() }
    }

    pub(crate) fn task_progress(
        request: RequestHandle,
        params: &(impl WriteJson + ?Sized),
        now: Option<Instant>,
    ) -> Self {
        Self::TaskProgress { at: now.map(nanos), request: request.into(), params: text(params) }
    }

    pub(crate) fn progress(
        request: RequestHandle,
        progress: f64,
        total: Option<f64>,
        message: Option<&'a str>,
        now: Instant,
    ) -> Self {
        Self::Progress {
            at: nanos(now),
            request: request.into(),
            progress: progress.to_string().into(),
            total: total.map(|total| total.to_string().into()),
            message: message.map(Cow::Borrowed),
        }
    }

    /// `None`: the data cannot be written, so that nothing comes of the call.
    pub(crate) fn log<D: Serialize + ?Sized>(
        request: Option<RequestHandle>,
        level: LoggingLevel,
        logger: Option<&'a str>,
        data: &D,
        now: Option<Instant>,
    ) -> Option<Self> {
        Some(Self::Log {
            at: now.map(nanos),
            request: request.map(Handle::from),
            level: level.as_str().into(),
            logger: logger.map(Cow::Borrowed),
            data: text(&Typed(data))?,
        })
    }

    pub(crate) fn resource_updated(uri: &'a str, now: Option<Instant>) -> Self {
        Self::ResourceUpdated { at: now.map(nanos), uri: uri.into() }
    }

    pub(crate) fn task_changed(
        status: &TaskStatusParams,
        principal: Option<String>,
        now: Option<Instant>,
    ) -> Self {
        let principal = principal.map(Cow::Owned);
        Self::TaskChanged { at: now.map(nanos), status: whole(status), principal }
    }

    pub(crate) const fn announce(changes: Changes, now: Option<Instant>) -> Self {
        let at = match now {
            Some(now) => Some(nanos(now)),
            None => None,
        };
        Self::Announce { at, changed: Kinds::of(changes) }
    }

    pub(crate) fn catalog(
        catalog: &Catalog,
        changes: Option<Changes>,
        now: Option<Instant>,
    ) -> Self {
        let (at, changed) = (now.map(nanos), changes.map(Kinds::of));
        Self::Catalog { at, catalog: State::of(catalog), changed }
    }

    pub(crate) const fn peek() -> Self {
        Self::Peek {}
    }

    pub(crate) const fn close(now: Option<Instant>) -> Self {
        let at = match now {
            Some(now) => Some(nanos(now)),
            None => None,
        };
        Self::Close { at }
    }

    pub(crate) fn transmit(bytes: Option<&'a [u8]>) -> Option<Self> {
        Some(Self::Transmit { bytes: Payload::of(bytes?) })
    }

    pub(crate) fn sent(bytes: &'a [u8]) -> Self {
        Self::Sent { bytes: Payload::of(bytes) }
    }

    pub(crate) fn event(event: &Event<'_>) -> Self {
        Self::Event { event: describe(event).into() }
    }
}

fn of_flow<'a>(flow: &Result<Option<Event<'_>>, ConnectionClosed>) -> Option<Cow<'a, str>> {
    match flow {
        Ok(event) => event.as_ref().map(|event| describe(event).into()),
        Err(closed) => Some(alloc::format!("closed: {closed}").into()),
    }
}

#[cfg(feature = "http")]
impl<'a> Call<'a> {
    pub(crate) const fn ready(exchange: ExchangeId) -> Self {
        Self::Ready { exchange: Handle::of(exchange.0) }
    }

    pub(crate) const fn disconnect(exchange: ExchangeId, now: Instant) -> Self {
        Self::Disconnect { at: nanos(now), exchange: Handle::of(exchange.0) }
    }

    pub(crate) fn refuse(request: RequestHandle, refusal: &'a Refusal, now: Instant) -> Self {
        let (at, request) = (nanos(now), request.into());
        Self::Refuse { at, request, refusal: Refused::of(refusal) }
    }

    pub(crate) const fn expiry(exchange: ExchangeId, deadline: Instant) -> Self {
        Self::Expiry { exchange: Handle::of(exchange.0), until: nanos(deadline) }
    }

    pub(crate) fn release(request: RequestHandle, retry: Duration) -> Self {
        Self::Release { request: request.into(), retry }
    }

    pub(crate) fn body(exchange: ExchangeId, bytes: &'a [u8], now: Instant) -> Self {
        let (at, exchange) = (nanos(now), Handle::of(exchange.0));
        Self::Body { at, exchange, bytes: Payload::of(bytes) }
    }

    pub(crate) const fn body_end(exchange: ExchangeId, now: Instant) -> Self {
        Self::BodyEnd { at: nanos(now), exchange: Handle::of(exchange.0) }
    }

    pub(crate) fn exchange_failed(
        exchange: ExchangeId,
        failure: &'a TransportFailure,
        now: Instant,
    ) -> Self {
        let (at, exchange) = (nanos(now), Handle::of(exchange.0));
        Self::ExchangeFailed { at, exchange, failure: Cause::of(failure) }
    }

    pub(crate) const fn pause(exchange: ExchangeId, now: Instant) -> Self {
        Self::Pause { at: nanos(now), exchange: Handle::of(exchange.0) }
    }

    pub(crate) const fn resume(exchange: ExchangeId, now: Instant) -> Self {
        Self::Resume { at: nanos(now), exchange: Handle::of(exchange.0) }
    }
}

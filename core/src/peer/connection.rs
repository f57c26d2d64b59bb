//! What both roles share: the calls of this side, the requests of the other, what waits to be sent
//! and to be told, and the rules that do not depend on the role.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use crate::framing::FrameError;
use crate::jsonrpc::{
    ErrorCode, ErrorObject, Malformed, ParseLimits, RawJson, RequestId, WriteError, WriteJson,
    close_object_with, write_error, write_integer, write_notification, write_request, write_string,
};
use crate::protocol::{LoggingLevel, Method, Side};
use crate::{Era, Instant, Revision};

use super::calls::{Answered, Call, Calls, Purpose, Repeat, Timing};
use super::error::{CallError, ConnectionClosed};
use super::event::{
    CallHandle, CloseReason, Ended, Event, Failure, MethodName, Progress, Violation,
};
use super::limits::{Limits, Timeouts};
use super::metadata::{self, text};
use super::outbox::{Lane, Outbox};
use super::policy::{Policy, Reaction};
use super::requests::Requests;
use super::slab::Key;

/// What a message comes to: an event at most, or the end of the connection.
pub(super) type Flow<'f> = Result<Option<Event<'f>>, ConnectionClosed>;

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) role: Side,
    pub(super) limits: Limits,
    pub(super) timeouts: Timeouts,
    pub(super) policy: Policy,
    pub(super) outbox: Outbox,
    pub(super) events: VecDeque<Event<'static>>,
    pub(super) calls: Calls,
    pub(super) requests: Requests,
    pub(super) closed: Option<CloseReason>,
    keep_alive_due: Option<Instant>,
    keep_alive_failures: u32,
}

/// How one call is made: its time, its progress, its metadata.
///
/// `CallOptions::default()` takes the connection's [`Timeouts`] and asks for no progress.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CallOptions<'a> {
    /// Without an answer and without progress for this long, the call is given up and cancelled.
    /// `None`: [`Timeouts::call`].
    pub timeout: Option<Duration>,
    /// The longest that the call may take altogether. `None`: [`Timeouts::call_hard`].
    pub timeout_hard: Option<Duration>,
    /// Progress does not push the deadline back.
    pub progress_keeps_deadline: bool,
    /// Ask for progress notifications.
    pub progress: bool,
    /// The least level of log messages for this call, at revisions that have it per request; at
    /// others it has no effect. `None`: that of the connection.
    pub log_level: Option<LoggingLevel>,
    /// Members for `_meta`, an object. Keys that the machine writes itself are left out.
    pub meta: Option<RawJson<'a>>,
}

impl<'a> CallOptions<'a> {
    /// The same with another `timeout`.
    #[must_use]
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// The same with another `timeout_hard`.
    #[must_use]
    pub const fn timeout_hard(mut self, timeout: Duration) -> Self {
        self.timeout_hard = Some(timeout);
        self
    }

    /// The same, asking for progress.
    #[must_use]
    pub const fn progress(mut self) -> Self {
        self.progress = true;
        self
    }

    /// The same with another `log_level`.
    #[must_use]
    pub const fn log_level(mut self, level: LoggingLevel) -> Self {
        self.log_level = Some(level);
        self
    }

    /// The same with members for `_meta`.
    #[must_use]
    pub fn meta(mut self, meta: RawJson<'a>) -> Self {
        self.meta = Some(meta);
        self
    }
}

/// The `_meta` of an outgoing request.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MetaParts<'a> {
    /// Members that every request of the session has, already written, without braces.
    pub(super) fixed: &'a [u8],
    pub(super) log_level: Option<LoggingLevel>,
    pub(super) progress_token: Option<i64>,
    pub(super) own: Option<&'a RawJson<'a>>,
}

impl Connection {
    pub(super) fn new(
        role: Side,
        limits: Limits,
        timeouts: Timeouts,
        policy: Policy,
        seed: u64,
    ) -> Self {
        Self {
            role,
            limits,
            timeouts,
            policy,
            outbox: Outbox::default(),
            events: VecDeque::new(),
            calls: Calls::new(seed),
            requests: Requests::new(seed),
            closed: None,
            keep_alive_due: None,
            keep_alive_failures: 0,
        }
    }

    pub(super) const fn parse_limits(&self) -> ParseLimits {
        ParseLimits { depth: self.limits.depth_max, batch: self.limits.batch_length_max }
    }

    /// Fatal is sticky: from the close on, every input gets the same error.
    pub(super) fn check_open(&self) -> Result<(), ConnectionClosed> {
        match &self.closed {
            None => Ok(()),
            Some(reason) => Err(ConnectionClosed { reason: reason.clone() }),
        }
    }

    // ------------------------------------------------------------------ violations

    pub(super) fn violation<'f>(&mut self, reaction: Reaction, violation: Violation) -> Flow<'f> {
        match reaction {
            Reaction::Survive => Ok(Some(Event::Violation(violation))),
            Reaction::Close => {
                let reason = CloseReason::Violation(violation);
                self.close(reason.clone());
                Err(ConnectionClosed { reason })
            }
        }
    }

    /// A frame that is no message. Only a server answers it: what a client finds on a server's
    /// output that is no message is noise, not a request.
    pub(super) fn malformed<'f>(
        &mut self,
        malformed: &Malformed,
        revision: Option<Revision>,
    ) -> Flow<'f> {
        if self.role == Side::Server
            && let Some(error) = malformed.answer()
        {
            self.answer_unread(malformed.id.as_ref(), &error, revision);
        }
        self.violation(self.policy.malformed, Violation::Malformed(malformed.reason))
    }

    /// Something on the stream that is no frame.
    // MCP 2025-11-25 basic/index#messages [RPC-017]
    pub(super) fn frame_error(
        &mut self,
        error: FrameError,
        revision: Option<Revision>,
    ) -> Flow<'static> {
        let violation = match error {
            FrameError::TooLong { limit } => Violation::FrameTooLong { limit },
            FrameError::Truncated { length } => Violation::FrameCutShort { length },
        };
        if self.role == Side::Server {
            let message = alloc::string::ToString::to_string(&violation);
            let error = ErrorObject::new(ErrorCode::PARSE_ERROR, message);
            self.answer_unread(None, &error, revision);
        }
        self.violation(self.policy.malformed, violation)
    }

    /// Answers a message whose request has no entry in the table.
    // MCP 2025-11-25 basic/index#error-responses [RPC-009]: only the newer revisions let an error
    // go without an id; to the others it is `null`, as JSON-RPC has it.
    pub(super) fn answer_unread(
        &mut self,
        id: Option<&RequestId>,
        error: &ErrorObject<'_>,
        revision: Option<Revision>,
    ) {
        let null_id = id.is_none() && revision.is_some_and(|r| r < Revision::V2025_11_25);
        self.outbox.push(Lane::Bulk, |out| {
            if null_id {
                out.extend_from_slice(br#"{"jsonrpc":"2.0","id":null,"error":"#);
                write_error_object(out, error);
                out.push(b'}');
            } else {
                write_error(out, id, error);
            }
        });
    }

    // ------------------------------------------------------------------ calls of this side

    /// Puts a request on the wire and into the table.
    pub(super) fn start_call(
        &mut self,
        method: &MethodName<'_>,
        purpose: Purpose,
        params: &impl WriteJson,
        options: &CallOptions<'_>,
        parts: MetaParts<'_>,
        repeatable: bool,
        now: Instant,
    ) -> Result<Key, CallError> {
        self.check_open()?;
        if self.calls.len() >= self.limits.calls_in_flight_max {
            return Err(CallError::TooManyCalls { limit: self.limits.calls_in_flight_max });
        }
        let id = self.calls.fresh_id();
        // MCP 2025-11-25 basic/utilities/progress#progress-flow [PROG-001]: unique across the
        // active requests, as the id is.
        let progress_token = options.progress.then_some(id);
        let parts = MetaParts { progress_token, own: options.meta.as_ref(), ..parts };
        let repeat = if repeatable {
            let params = params.to_shared_json()?;
            write_call(&mut self.outbox, id, method, &params, parts)?;
            let meta = options.meta.clone().map(RawJson::into_owned);
            Some(Repeat { params, meta, rounds: 0 })
        } else {
            write_call(&mut self.outbox, id, method, params, parts)?;
            None
        };
        let timing = self.timing(options, now);
        let call = Call {
            id,
            method: match method {
                MethodName::Known(method) => Some(*method),
                MethodName::Other(_) => None,
            },
            purpose,
            timing,
            written: self.outbox.mark(),
            wants_progress: options.progress,
            last_progress: None,
            repeat,
        };
        Ok(self.calls.insert(call, now))
    }

    pub(super) fn timing(&self, options: &CallOptions<'_>, now: Instant) -> Timing {
        Timing {
            timeout: options.timeout.unwrap_or(self.timeouts.call),
            hard: now + options.timeout_hard.unwrap_or(self.timeouts.call_hard),
            extend_on_progress: !options.progress_keeps_deadline,
        }
    }

    /// Puts a call on the wire again, for its next round: a new id, the same parameters, and what
    /// `extra` adds to them.
    pub(super) fn repeat_call(
        &mut self,
        key: Key,
        parts: MetaParts<'_>,
        extra: impl Fn(&mut Vec<u8>) -> Result<(), WriteError>,
        now: Instant,
    ) -> Result<(), WriteError> {
        let id = self.calls.fresh_id();
        let Self { calls, outbox, .. } = self;
        let Some(call) = calls.get(key) else { return Ok(()) };
        let (Some(method), Some(repeat)) = (call.method, &call.repeat) else { return Ok(()) };
        let progress_token = call.wants_progress.then_some(id);
        let parts = MetaParts { progress_token, own: repeat.meta.as_ref(), ..parts };
        let params = |out: &mut Vec<u8>| {
            extra(out)?;
            close_object_with(out, &repeat.params)
        };
        write_call(outbox, id, &MethodName::Known(method), &params, parts)?;
        self.calls.reissue(key, id, self.outbox.mark(), now);
        Ok(())
    }

    /// What a response answers; `None` where the machine has dealt with it.
    pub(super) fn answered<'f>(
        &mut self,
        id: Option<RequestId>,
        now: Instant,
    ) -> Result<Key, Flow<'f>> {
        let number = match &id {
            Some(RequestId::Number(number)) => Some(*number),
            _ => None,
        };
        match self.calls.answered(number, now) {
            Answered::Call(key) => Ok(key),
            Answered::Late => Err(Ok(None)),
            Answered::Unknown => {
                let violation = Violation::UnknownResponse(id);
                Err(self.violation(self.policy.unknown_response, violation))
            }
        }
    }

    /// Ends a call of the application with something that the machine found out by itself.
    pub(super) fn end_call(&mut self, key: Key, failure: Failure<'static>) {
        self.events.push_back(Event::Ended(Ended { call: CallHandle(key), outcome: Err(failure) }));
    }

    /// Gives a call up: its late answer is expected and the other side is told.
    // MCP 2025-11-25 basic/utilities/cancellation#cancellation-flow [CANC-001] [CANC-014]
    pub(super) fn give_up(&mut self, call: &Call, reason: &str, now: Instant) {
        self.calls.bury(call.id, &self.limits, now);
        // MCP 2025-11-25 basic/utilities/cancellation#behavior-requirements [CANC-002]
        if call.method == Some(Method::Initialize) {
            return;
        }
        let id = call.id;
        // It hurries past bulk, but never past the request that it cancels.
        let departed = self.outbox.has_departed(call.written);
        let lane = if departed { Lane::Control } else { Lane::Bulk };
        self.write_cancelled(lane, |out| write_integer(out, id), reason);
    }

    pub(super) fn write_cancelled(&mut self, lane: Lane, id: impl Fn(&mut Vec<u8>), reason: &str) {
        let params = |out: &mut Vec<u8>| {
            out.extend_from_slice(br#"{"requestId":"#);
            id(out);
            if !reason.is_empty() {
                out.extend_from_slice(br#","reason":"#);
                write_string(out, reason);
            }
            out.push(b'}');
            Ok(())
        };
        let written = self.outbox.try_push(lane, |out| {
            write_notification(out, Method::Cancelled.as_str(), Some(&params))
        });
        debug_assert!(written.is_ok(), "ids and strings are always JSON");
    }

    /// A progress notification of the other side.
    // MCP 2025-11-25 basic/utilities/progress#progress-flow [PROG-003] [PROG-005]
    pub(super) fn on_progress<'f>(&mut self, params: &RawJson<'f>, now: Instant) -> Flow<'f> {
        const BAD: &str = "`progressToken` and a number `progress` are required";
        let (mut token, mut progress, mut total, mut message) = (None, None, None, None);
        for member in params.walk() {
            match &*member.name() {
                "progressToken" => token = member.value.decode::<i64>().ok(),
                "progress" => progress = member.value.decode::<f64>().ok(),
                "total" => total = member.value.decode::<f64>().ok(),
                "message" => message = text(&member.value),
                _ => {}
            }
        }
        let bad = |what| Violation::BadParameters { method: Method::Progress, what };
        let Some(progress) = progress else {
            return self.violation(self.policy.malformed, bad(BAD));
        };
        // A token that is not in use belongs to a call that ended a moment ago, or to none.
        // MCP 2025-11-25 basic/utilities/progress#progress-flow [PROG-006]
        let Some(key) = token.and_then(|token| self.calls.by_id(token)) else { return Ok(None) };
        let Some(call) = self.calls.get_mut(key) else { return Ok(None) };
        if !call.wants_progress {
            return Ok(None);
        }
        if call.last_progress.is_some_and(|last| progress <= last) {
            return self.violation(self.policy.malformed, bad("`progress` did not increase"));
        }
        call.last_progress = Some(progress);
        self.calls.extend(key, now);
        let call = CallHandle(key);
        Ok(Some(Event::Progress(Progress { call, progress, total, message })))
    }

    // ------------------------------------------------------------------ time

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        [self.calls.next_deadline(), self.keep_alive_due].into_iter().flatten().min()
    }

    pub(super) fn take_expired(&mut self, now: Instant) -> Option<(Key, Call)> {
        let key = self.calls.expired(now)?;
        self.calls.remove(key).map(|call| (key, call))
    }

    /// The session is open: keep-alive starts, where it is wanted and the era has pings.
    pub(super) fn start_keep_alive(&mut self, revision: Revision, now: Instant) {
        if revision.era() == Era::Legacy {
            self.keep_alive_due = self.timeouts.keep_alive.map(|pause| now + pause);
        }
    }

    /// Sends a keep-alive ping if one is due.
    // MCP 2025-11-25 basic/utilities/ping#usage-patterns [PING-002] [PING-003]
    pub(super) fn keep_alive(&mut self, now: Instant) {
        if self.closed.is_some() || self.keep_alive_due.is_none_or(|due| due > now) {
            return;
        }
        self.keep_alive_due = None;
        let options = CallOptions::default().timeout(self.timeouts.keep_alive_answer);
        let ping = MethodName::Known(Method::Ping);
        let parts = MetaParts::default();
        let params = RawJson::EMPTY_OBJECT;
        let started =
            self.start_call(&ping, Purpose::KeepAlive, &params, &options, parts, false, now);
        if started.is_err() {
            // The table is full of calls: the other side has enough to answer.
            self.keep_alive_due = self.timeouts.keep_alive.map(|pause| now + pause);
        }
    }

    pub(super) fn keep_alive_answered(&mut self, now: Instant) {
        self.keep_alive_failures = 0;
        self.keep_alive_due = self.timeouts.keep_alive.map(|pause| now + pause);
    }

    pub(super) fn keep_alive_expired(&mut self, call: &Call, now: Instant) {
        self.calls.bury(call.id, &self.limits, now);
        self.keep_alive_failures += 1;
        if self.keep_alive_failures >= self.timeouts.keep_alive_failures_max {
            self.close(CloseReason::Unresponsive);
        } else {
            self.keep_alive_due = Some(now);
            self.keep_alive(now);
        }
    }

    // ------------------------------------------------------------------ the end

    /// Ends the connection: every call ends, once, and the last event says why.
    pub(super) fn close(&mut self, reason: CloseReason) {
        if self.closed.is_some() {
            return;
        }
        while let Some(key) = self.calls.first() {
            if let Some(call) = self.calls.remove(key)
                && matches!(call.purpose, Purpose::Application | Purpose::Listen | Purpose::Waiting)
            {
                self.end_call(key, Failure::ConnectionLost);
            }
        }
        self.keep_alive_due = None;
        // Only a peer that ended its output may still read answers.
        if reason != CloseReason::EndOfInput {
            self.requests.clear();
        }
        self.closed = Some(reason.clone());
        self.events.push_back(Event::Closed(reason));
    }
}

fn write_error_object(out: &mut Vec<u8>, error: &ErrorObject<'_>) {
    out.extend_from_slice(br#"{"code":"#);
    write_integer(out, error.code.0);
    out.extend_from_slice(br#","message":"#);
    write_string(out, &error.message);
    out.push(b'}');
}

/// Writes a request: `_meta` first, where there is any, then the parameters.
fn write_call(
    outbox: &mut Outbox,
    id: i64,
    method: &MethodName<'_>,
    params: &impl WriteJson,
    parts: MetaParts<'_>,
) -> Result<(), WriteError> {
    let id = RequestId::Number(id);
    outbox.try_push(Lane::Bulk, |out| {
        if parts.is_empty() {
            return write_request(out, &id, method.as_str(), Some(params));
        }
        let with_meta = |out: &mut Vec<u8>| {
            out.extend_from_slice(br#"{"_meta":{"#);
            parts.write(out);
            out.push(b'}');
            close_object_with(out, params)
        };
        write_request(out, &id, method.as_str(), Some(&with_meta))
    })
}

impl MetaParts<'_> {
    const fn is_empty(&self) -> bool {
        self.fixed.is_empty()
            && self.log_level.is_none()
            && self.progress_token.is_none()
            && self.own.is_none()
    }

    /// The members, without the braces.
    fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let comma = |out: &mut Vec<u8>| {
            if out.len() > start {
                out.push(b',');
            }
        };
        out.extend_from_slice(self.fixed);
        if let Some(level) = self.log_level {
            comma(out);
            write_string(out, metadata::LOG_LEVEL);
            out.push(b':');
            write_string(out, level.as_str());
        }
        if let Some(token) = self.progress_token {
            comma(out);
            write_string(out, metadata::PROGRESS_TOKEN);
            out.push(b':');
            write_integer(out, token);
        }
        for member in self.own.iter().flat_map(|own| own.members()) {
            if !is_written_by_the_machine(&member.name()) {
                comma(out);
                write_string(out, &member.name());
                out.push(b':');
                out.extend(member.value.as_str().bytes().map(|b| match b {
                    b'\n' | b'\r' => b' ',
                    other => other,
                }));
            }
        }
    }
}

fn is_written_by_the_machine(key: &str) -> bool {
    matches!(
        key,
        metadata::PROTOCOL_VERSION
            | metadata::CLIENT_INFO
            | metadata::CLIENT_CAPABILITIES
            | metadata::LOG_LEVEL
            | metadata::PROGRESS_TOKEN
    )
}

/// The error as it may be said at `revision`.
// MCP 2026-07-28 basic/index#error-codes [RPC-023] [RPC-025] [RPC-027] [RSRC-009] [RSRC-010]
pub(super) fn error_at(mut error: ErrorObject<'_>, revision: Revision) -> ErrorObject<'_> {
    if error.code == ErrorCode::RESOURCE_NOT_FOUND && revision.era() == Era::Modern {
        error.code = ErrorCode::INVALID_PARAMS;
    } else if !error.code.is_emittable_at(revision) {
        error.code = ErrorCode::INTERNAL_ERROR;
    }
    error
}

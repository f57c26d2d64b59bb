//! The part of a connection that both roles share: calls of this side, requests of the peer, output
//! and event queues, and the rules that do not depend on the role.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use core::time::Duration;

use mcp_sansio_collections::Key;
use mcp_sansio_sync::Arc;

use crate::binding::Binding;
use crate::framing::FrameError;
use crate::gate::{MethodKind, Phase};
use crate::jsonrpc::{
    ErrorCode, ErrorObject, Malformed, ParseLimits, RawJson, Reason, RequestId, Shape, WriteError,
    WriteJson, close_object_with, write_error, write_integer, write_notification, write_string,
};
use crate::protocol::{Method, Side};
use crate::{Era, Instant, Revision};

use super::calls::{Answered, Call, Calls, Purpose, Repeat, Timing};
use super::error::{CommandError, ConnectionClosed};
use super::event::{CloseReason, Ended, Event, Failure, Progress, Violation};
use super::handle::CallHandle;
use super::method_name::MethodName;
use super::observed::{NotObserved, Observing};
use super::options::ConnectionConfig;
use super::outbox::{Channel, Lane, Outbox, Part, SentNotification, Verdict};
use super::outgoing::{CallOptions, MetaParts, Outgoing, write_call};
use super::passing::{Pass, Passed};
use super::policy::Reaction;
use super::queue::Tag;
use super::requests::Requests;
use crate::gate::members::{Param, Seen, check_meta};

/// The outcome of a message: at most one event, or the closed connection.
pub(super) type Flow<'f> = Result<Option<Event<'f>>, ConnectionClosed>;

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) role: Side,
    pub(super) config: Arc<ConnectionConfig>,
    pub(super) outbox: Outbox,
    pub(super) events: VecDeque<Event<'static>>,
    pub(super) calls: Calls,
    pub(super) requests: Requests,
    /// Boxed, because a reason is large and most connections are open.
    pub(super) closed: Option<Box<CloseReason>>,
    pub(super) binding: Binding,
    /// Whether calls are cancelled by closing their channel, not by a notification.
    pub(super) cancels_by_closing: bool,
    pub(super) observed: Box<dyn Observing>,
    pub(super) passing: Option<Box<dyn Pass>>,
    keep_alive_due: Option<Instant>,
    keep_alive_failures: u32,
}

impl Connection {
    pub(super) fn new(
        role: Side,
        config: &Arc<ConnectionConfig>,
        binding: Binding,
        seed: u64,
    ) -> Self {
        let mut outbox = Outbox::new(binding);
        outbox.hold_to(config.limits.transmit_bytes_max);
        outbox.key_with(seed);
        Self {
            role,
            config: Arc::clone(config),
            outbox,
            events: VecDeque::new(),
            calls: Calls::new(),
            requests: Requests::new(seed),
            closed: None,
            binding,
            cancels_by_closing: false,
            observed: match &config.observer {
                Some(observer) => observer.connection(config, role, binding),
                None => Box::new(NotObserved),
            },
            passing: config.middleware.as_ref().map(|list| list.connection(role)),
            keep_alive_due: None,
            keep_alive_failures: 0,
        }
    }

    /// Returns whether the queued output exceeds the limit.
    pub(super) fn is_congested(&self) -> bool {
        self.outbox.held() > self.config.limits.transmit_bytes_max
    }

    /// Returns the tag of messages that are sent for a request of the peer.
    pub(super) fn tag(&self, id: &RequestId) -> Tag {
        self.requests.tag(id)
    }

    /// Like [`tag`](Self::tag), for a request in flight.
    pub(super) fn tag_of(&self, request: Key) -> Tag {
        self.requests.get(request).map_or(Tag::NONE, |entry| self.tag(&entry.id))
    }

    /// Reports to the observer that a request of the peer gets an empty result.
    pub(super) fn observe_empty_answer(&mut self, id: &RequestId) {
        self.observed.answered_empty(id, self.requests.hasher_ref());
    }

    /// Returns the observation of a peer's request.
    pub(super) fn observation_of(&self, request: Key) -> Option<Arc<dyn super::Observation>> {
        let id = &self.requests.get(request)?.id;
        self.observed.observation(id, self.requests.hasher_ref())
    }

    /// Withdraws the queued messages for a request of the peer.
    pub(super) fn withdraw(&mut self, id: &RequestId) {
        self.outbox.withdraw(self.tag(id));
    }

    pub(super) fn parse_limits(&self) -> ParseLimits {
        self.config.limits.parse_limits()
    }

    /// Fails if the connection is closed. The error is sticky: after the close, every input gets
    /// the same one.
    pub(super) fn check_open(&self) -> Result<(), ConnectionClosed> {
        match &self.closed {
            None => Ok(()),
            Some(reason) => Err(ConnectionClosed { reason: CloseReason::clone(reason) }),
        }
    }

    /// Checks whether the application may send `method` as a message of `kind`, judging by the
    /// method alone.
    ///
    /// Only the machine sends opening requests, cancellations, progress and subscriptions.
    pub(super) fn check_kind(method: Method, kind: MethodKind) -> Result<(), CommandError> {
        let row = method.row();
        let sent_by_machine_only = row.client.phase == Phase::Opening
            || matches!(
                method,
                Method::Initialized
                    | Method::Cancelled
                    | Method::Progress
                    | Method::SubscriptionsListen
                    | Method::SubscriptionsAcknowledged
            );
        if row.kind == kind && !sent_by_machine_only {
            Ok(())
        } else {
            Err(CommandError::OutOfPlace(method))
        }
    }

    /// Returns the first event of a batch and queues the others. An event is also queued if an
    /// earlier message of the batch queued one.
    pub(super) fn keep_in_order<'f>(
        &mut self,
        first: &mut Option<Event<'f>>,
        event: Option<Event<'f>>,
    ) {
        match event {
            Some(event) if first.is_none() && self.events.is_empty() => *first = Some(event),
            Some(event) => self.events.push_back(event.into_owned()),
            None => {}
        }
    }

    /// Queues the event of a batch that closed the connection before the closing events.
    pub(super) fn keep_first(&mut self, first: Option<Event<'_>>) {
        if let Some(event) = first {
            self.events.push_front(event.into_owned());
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

    /// Reports a message that the protocol does not allow here.
    pub(super) fn forbidden<'f>(&mut self, violation: Violation) -> Flow<'f> {
        self.violation(self.config.policy.forbidden, violation)
    }

    /// Reports a message that the protocol does not allow here because of its kind.
    pub(super) fn out_of_place<'f>(&mut self, what: &'static str) -> Flow<'f> {
        self.forbidden(Violation::OutOfPlace(what))
    }

    /// Reports a message that cannot be read.
    pub(super) fn malformed<'f>(&mut self, violation: Violation) -> Flow<'f> {
        self.violation(self.config.policy.malformed, violation)
    }

    /// Reports a message with invalid parameters.
    pub(super) fn bad_parameters<'f>(&mut self, method: Method, what: &'static str) -> Flow<'f> {
        self.malformed(Violation::BadParameters { method, what })
    }

    /// Handles a malformed frame, and answers it. A client answers only requests with an id:
    /// anything else in a server's output is noise.
    pub(super) fn malformed_frame<'f>(
        &mut self,
        malformed: &Malformed,
        revision: Option<Revision>,
        channel: Channel,
    ) -> Flow<'f> {
        // MCP 2026-07-28 basic/transports/stdio#sending-messages [STDIO-011]: clients do not send
        // responses.
        let is_request = malformed.shape == Shape::Request
            && malformed.id.is_some()
            && revision.is_none_or(|revision| revision.era() == Era::Legacy);
        if (self.role == Side::Server || is_request)
            && let Some(error) = malformed.answer()
        {
            self.answer_unread(malformed.id.as_ref(), &error, revision, channel);
        }
        self.malformed(Violation::Malformed(malformed.reason))
    }

    /// Removes the call that a malformed response names, because no other response to it will
    /// arrive. A message with an id and without a method can only be a response.
    pub(super) fn take_call_of_malformed(&mut self, malformed: &Malformed) -> Option<(Key, Call)> {
        // A server answers a message that may be a request. Without any purpose it cannot be one: some
        // clients leave an empty result out.
        let is_response = match malformed.shape {
            Shape::Response => true,
            Shape::Unknown => self.role == Side::Client || malformed.reason == Reason::Purposeless,
            _ => self.role == Side::Client && malformed.reason == Reason::MethodAndOutcome,
        };
        let id = malformed.id.as_ref().filter(|_| is_response)?.own_number()?;
        let key = self.calls.by_id(id)?;
        self.observed.call_ended(key, &Failure::InvalidAnswer(malformed.reason.as_str()));
        self.calls.remove(key).map(|call| (key, call))
    }

    /// Answers a message whose request is not in the table.
    pub(super) fn answer_unread(
        &mut self,
        id: Option<&RequestId>,
        error: &ErrorObject<'_>,
        revision: Option<Revision>,
        channel: Channel,
    ) {
        let part = Part::Answer(Verdict::Refused(error.code));
        let tag = id.map_or(Tag::NONE, |id| self.tag(id));
        self.outbox.push(Lane::Bulk, channel, part, tag, |out| {
            write_error_unread(out, id, error, revision);
        });
    }

    /// Handles a framing error.
    // MCP 2026-07-28 schema.json#InvalidRequestError [RPC-017]
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
            self.answer_unread(None, &error, revision, Channel::UNSOLICITED);
        }
        self.malformed(violation)
    }

    // ------------------------------------------------------------------ calls of this side

    /// Sends a request and adds it to the table. `cause` is the request of the peer that it belongs
    /// to.
    pub(super) fn start_call(
        &mut self,
        outgoing: Outgoing<'_>,
        params: &dyn WriteJson,
        options: &CallOptions<'_>,
        cause: Option<Tag>,
        now: Instant,
    ) -> Result<Key, CommandError> {
        let Outgoing { method, purpose, parts, repeatable, channel } = outgoing;
        self.check_open()?;
        if self.calls.len() >= self.config.limits.calls_in_flight_max {
            return Err(CommandError::TooManyCalls {
                limit: self.config.limits.calls_in_flight_max,
            });
        }
        let id = self.calls.fresh_id();
        let passed = self.pass_call(id, method.as_str(), params, options.meta.as_ref())?;
        let options_passed;
        let (params_passed, options_passed) = match &passed {
            None => (None, options),
            Some(changed) => {
                options_passed = CallOptions { meta: changed.meta.clone(), ..options.clone() };
                (Some(&changed.params as &dyn WriteJson), &options_passed)
            }
        };
        // MCP 2025-11-25 basic/utilities/progress#progress-flow [PROG-001]: unique among the active
        // requests, like the id.
        let progress_token = options.progress.map(|_| id);
        let sent = params_passed.unwrap_or(params);
        let begun = self.observed.begin_call(&outgoing, id, sent, options_passed, cause)?;
        let own = begun.meta(options_passed.meta.as_ref());
        let parts = MetaParts { progress_token, own, ..parts };
        let repeat = if repeatable {
            // A further round passes the middleware again, with the parameters of the application.
            let params = self.calls.keep_parameters(params)?;
            let sent = params_passed.unwrap_or(&params);
            write_call(&mut self.outbox, channel, id, method, sent, parts)?;
            let meta = options.meta.clone().map(RawJson::into_owned);
            let (log_level, context) = (parts.log_level, options.context.clone());
            Some(Repeat { params, meta, log_level, rounds: 0, round: None, context })
        } else {
            write_call(&mut self.outbox, channel, id, method, sent, parts)?;
            None
        };
        let timing = self.timing(options, now);
        let call = Call {
            id,
            method: method.known(),
            purpose,
            channel,
            timing,
            paused: None,
            wants_progress: options.progress,
            last_progress: None,
            repeat,
            task: None,
        };
        let key = self.calls.insert(call, now);
        self.observed.called(key, begun);
        Ok(key)
    }

    pub(super) fn timing(&self, options: &CallOptions<'_>, now: Instant) -> Timing {
        Timing {
            timeout: options.timeout.unwrap_or(self.config.timeouts.call),
            hard: now + options.timeout_hard.unwrap_or(self.config.timeouts.call_hard),
            extend_on_progress: !options.progress_keeps_deadline,
        }
    }

    /// Sends a call again for its next round, with a new id, the same parameters and the members
    /// that `extra` adds.
    pub(super) fn repeat_call(
        &mut self,
        key: Key,
        parts: MetaParts<'_>,
        extra: impl Fn(&mut String) -> Result<(), WriteError>,
        now: Instant,
    ) -> Result<(), CommandError> {
        let id = self.calls.fresh_id();
        let Some(call) = self.calls.get(key) else { return Ok(()) };
        let (Some(method), Some(repeat)) = (call.method, &call.repeat) else { return Ok(()) };
        let progress_token = call.wants_progress.map(|_| id);
        let own = repeat.meta.as_ref();
        let params = |out: &mut String| {
            extra(out)?;
            close_object_with(out, &repeat.params)
        };
        let passed = self.pass_call(id, method.as_str(), &params, own)?;
        let (params, own): (&dyn WriteJson, _) = match &passed {
            None => (&params, own),
            Some(changed) => (&changed.params, changed.meta.as_ref()),
        };
        let Self { outbox, observed, .. } = self;
        let revision = parts.fixed.map(|fixed| fixed.revision);
        let context = repeat.context.clone();
        let begun = observed.begin_round(key, (id, method), params, own, revision, context)?;
        let own = begun.meta(own);
        let parts = MetaParts { progress_token, own, log_level: repeat.log_level, ..parts };
        write_call(outbox, call.channel, id, &MethodName::Known(method), params, parts)?;
        self.calls.reissue(key, id, now);
        self.observed.called(key, begun);
        Ok(())
    }

    /// Returns the call that a response answers, or `None` if the call was recently abandoned.
    pub(super) fn answered(
        &mut self,
        id: Option<RequestId>,
        now: Instant,
    ) -> Result<Option<Key>, Violation> {
        match self.calls.answered(id.as_ref().and_then(RequestId::own_number), now) {
            Answered::Call(key) => Ok(Some(key)),
            Answered::Late => Ok(None),
            Answered::Unknown => Err(Violation::UnknownResponse(id)),
        }
    }

    /// Ends a call of the application with a failure that the machine detected.
    pub(super) fn end_call(&mut self, key: Key, failure: Failure<'static>) {
        self.observed.call_ended(key, &failure);
        self.events.push_back(Event::Ended(Ended::new(CallHandle::new(key), Err(failure))));
    }

    /// Abandons a call: notifies the peer and expects a late response. If its request is still
    /// queued, the request is withdrawn instead and the peer is not notified.
    // MCP 2025-11-25 basic/utilities/cancellation#cancellation-flow [CANC-001]
    // MCP 2026-07-28 basic/transports/stdio#cancellation [CANC-014]
    pub(super) fn give_up(&mut self, call: &Call, reason: &str, now: Instant) {
        let tag = Tag::own(call.id);
        if call.purpose == Purpose::Chore {
            // The request has an effect even without a response: a withdrawn `unsubscribe` would
            // leave the subscription open at the peer.
            if self.outbox.is_waiting(tag) {
                self.calls.bury(call.id, &self.config.limits, now);
                return;
            }
        } else if self.outbox.withdraw(tag) {
            return;
        }
        self.calls.bury(call.id, &self.config.limits, now);
        if self.cancels_by_closing {
            // MCP 2026-07-28 basic/transports/streamable-http#cancellation [CANC-017]
            self.outbox.signal(call.channel, Part::Abort(call.id));
            return;
        }
        // MCP 2025-11-25 basic/transports#sending-messages-to-the-server [CANC-011]: closing a
        // legacy stream does not cancel the request.
        // MCP 2025-11-25 basic/utilities/cancellation#behavior-requirements [CANC-002] [CANC-009]:
        // a task is cancelled by its id, which is in the response.
        if call.method == Some(Method::Initialize) || call.task.is_some() {
            return;
        }
        let id = call.id;
        // Overtakes the bulk lane, because the request has already been sent.
        let write = |out: &mut String| write_integer(out, id);
        self.write_cancelled(Lane::Control, call.channel, (write, Some(id)), reason);
    }

    /// Writes a cancellation with the request id as `id` writes it; for a request of this side, the
    /// id is also passed as a number.
    // MCP 2025-11-25 schema.json#CancelledNotificationParams [CANC-010]: optional there, always
    // written here.
    pub(super) fn write_cancelled(
        &mut self,
        lane: Lane,
        channel: Channel,
        (id, cancelled): (impl Fn(&mut String), Option<i64>),
        reason: &str,
    ) {
        let params = |out: &mut String| {
            out.push_str(r#"{"requestId":"#);
            id(out);
            if !reason.is_empty() {
                out.push_str(r#","reason":"#);
                write_string(out, reason);
            }
            out.push('}');
            Ok(())
        };
        let method = Method::Cancelled;
        let part = Part::Notification(SentNotification { method: Some(method), cancelled });
        let route = (lane, channel, Tag::NONE);
        let written = self.send_notification(route, part, method.as_str(), Some(&params));
        debug_assert!(written.is_ok(), "ids and strings are always JSON");
    }

    /// Sends a notification, unless middleware drops it.
    pub(super) fn send_notification(
        &mut self,
        route: (Lane, Channel, Tag),
        part: Part,
        method: &str,
        params: Option<&dyn WriteJson>,
    ) -> Result<(), WriteError> {
        let passed = self.pass_sent(method, params);
        let params = match &passed {
            Passed::Unchanged => params,
            Passed::Changed(changed) => Some(changed as &dyn WriteJson),
            Passed::Dropped => return Ok(()),
        };
        self.write_passed_notification(route, part, method, params)
    }

    /// Writes a notification that has passed the middleware, with what the observer adds to it.
    pub(super) fn write_passed_notification(
        &mut self,
        (lane, channel, tag): (Lane, Channel, Tag),
        part: Part,
        method: &str,
        params: Option<&dyn WriteJson>,
    ) -> Result<(), WriteError> {
        let observed = self.observed.notify(method, params, tag);
        let params = observed.as_ref().map(|params| params as &dyn WriteJson).or(params);
        self.outbox
            .try_push(lane, channel, part, tag, |out| write_notification(out, method, params))
    }

    /// Handles a progress notification of the peer.
    // MCP 2025-11-25 basic/utilities/progress#progress-flow [PROG-003] [PROG-005]
    pub(super) fn on_progress<'f>(&mut self, params: &RawJson<'f>, now: Instant) -> Flow<'f> {
        const BAD: &str = "`progressToken` and `progress` are required";
        let (mut token, mut progress, mut total, mut message) = (None, None, None, None);
        let mut seen = Seen::default();
        let mut members = params.walk();
        while let Some(member) = members.next_after("") {
            let Some(param) = Param::parse(member.written()) else { continue };
            let mut once = param.once(&mut seen);
            match param {
                Param::ProgressToken => token = member.value.to_id().and_then(|id| id.own_number()),
                Param::Progress => progress = Some(member.value).filter(is_number),
                Param::Total => total = Some(member.value).filter(is_number),
                Param::Message => message = member.value.to_text(),
                Param::Meta => once = once.and_then(|()| check_meta(member.value.view())),
                _ => {}
            }
            if let Err(what) = once {
                return self.bad_parameters(Method::Progress, what);
            }
        }
        let Some(progress) = progress else {
            return self.bad_parameters(Method::Progress, BAD);
        };
        // An unused token belongs to a recently ended call or to no call.
        // MCP 2025-11-25 basic/utilities/progress#progress-flow [PROG-006]
        let Some(key) = token.and_then(|token| self.calls.by_id(token)) else { return Ok(None) };
        let Some(call) = self.calls.get_mut(key) else { return Ok(None) };
        let Some(read) = call.wants_progress else { return Ok(None) };
        let total = total.and_then(|total| read(&total));
        let Some(progress) = read(&progress) else {
            return self.bad_parameters(Method::Progress, BAD);
        };
        let increases = call.last_progress.is_none_or(|last| progress > last);
        call.last_progress = if increases { Some(progress) } else { call.last_progress };
        // Some servers repeat their progress to show that they still work.
        self.calls.extend(key, now);
        if !increases {
            return self.bad_parameters(Method::Progress, "`progress` did not increase");
        }
        let call = CallHandle::new(key);
        Ok(Some(Event::Progress(Progress { call, progress, total, message })))
    }

    // ------------------------------------------------------------------ time

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        [self.calls.next_deadline(), self.keep_alive_due].into_iter().flatten().min()
    }

    pub(super) fn take_expired(&mut self, now: Instant) -> Option<(Key, Call)> {
        let key = self.calls.expired(now)?;
        let call = self.calls.remove(key)?;
        let hard = now >= call.timing.hard;
        self.observed.call_ended(key, &Failure::TimedOut { hard });
        Some((key, call))
    }

    /// Starts keep-alive pings after the session opened, if they are enabled and the era supports
    /// them. A ping of a lost session continues in the one that replaces it.
    pub(super) fn start_keep_alive(&mut self, revision: Revision, now: Instant) {
        if revision.era() == Era::Legacy && !self.calls.any(Purpose::KeepAlive) {
            self.keep_alive_due = self.next_keep_alive(now);
        }
    }

    /// Stops the pings until the connection is open again.
    pub(super) const fn stop_keep_alive(&mut self) {
        (self.keep_alive_due, self.keep_alive_failures) = (None, 0);
    }

    /// Returns the time of the next ping. It always lies in the future, so that a driver cannot
    /// spin.
    fn next_keep_alive(&self, now: Instant) -> Option<Instant> {
        const LEAST: Duration = Duration::from_millis(1);
        self.config.timeouts.keep_alive.map(|pause| now + pause.max(LEAST))
    }

    /// Sends a keep-alive ping if one is due.
    // MCP 2025-11-25 basic/utilities/ping#usage-patterns [PING-002] [PING-003]
    pub(super) fn keep_alive(&mut self, now: Instant) {
        if self.closed.is_some() || self.keep_alive_due.is_none_or(|due| due > now) {
            return;
        }
        self.keep_alive_due = None;
        let options = CallOptions::default().timeout(self.config.timeouts.keep_alive_answer);
        let ping = MethodName::Known(Method::Ping);
        let outgoing = Outgoing::new(&ping, Purpose::KeepAlive);
        let params = RawJson::EMPTY_OBJECT;
        let started = self.start_call(outgoing, &params, &options, None, now);
        if started.is_err() {
            // The table of calls is full: the peer is already busy with other requests.
            self.keep_alive_due = self.next_keep_alive(now);
        }
    }

    pub(super) fn keep_alive_answered(&mut self, now: Instant) {
        self.keep_alive_failures = 0;
        self.keep_alive_due = self.next_keep_alive(now);
    }

    pub(super) fn keep_alive_expired(&mut self, call: &Call, now: Instant) {
        self.calls.bury(call.id, &self.config.limits, now);
        self.keep_alive_failed(Duration::ZERO, now);
    }

    /// Handles a ping without an answer: another one follows after the pause, unless it was the
    /// last.
    pub(super) fn keep_alive_failed(&mut self, pause: Duration, now: Instant) {
        self.keep_alive_failures += 1;
        if self.keep_alive_failures >= self.config.timeouts.keep_alive_failures_max {
            self.close(CloseReason::Unresponsive);
        } else {
            self.keep_alive_due = Some(now + pause);
            self.keep_alive(now);
        }
    }

    // ------------------------------------------------------------------ the end

    /// Closes the connection: ends every call once, and reports the reason in the last event.
    pub(super) fn close(&mut self, reason: CloseReason) {
        if self.closed.is_some() {
            return;
        }
        self.calls.forget_deadlines();
        self.events.reserve(self.calls.len() + 1);
        let mut slot = 0;
        while let Some(key) = self.calls.first_from(slot) {
            slot = key.slot + 1;
            if let Some(call) = self.calls.remove(key)
                && matches!(call.purpose, Purpose::Application | Purpose::Listen | Purpose::Waiting)
            {
                self.end_call(key, Failure::ConnectionLost);
            }
        }
        self.keep_alive_due = None;
        self.observed.closed(&reason);
        self.closed = Some(Box::new(reason.clone()));
        self.events.push_back(Event::Closed(reason));
    }
}

fn is_number(value: &RawJson<'_>) -> bool {
    value.as_str().starts_with(|first: char| first == '-' || first.is_ascii_digit())
}

/// Writes an error response to a message whose id may not have been readable.
// MCP 2025-11-25 basic/index#error-responses [RPC-009]: only newer revisions allow an error without
// an id; for the others the id is `null`, as in JSON-RPC.
pub(super) fn write_error_unread(
    out: &mut String,
    id: Option<&RequestId>,
    error: &ErrorObject<'_>,
    revision: Option<Revision>,
) {
    if id.is_none() && revision.is_some_and(|revision| revision < Revision::V2025_11_25) {
        out.push_str(r#"{"jsonrpc":"2.0","id":null,"error":"#);
        write_error_object(out, error);
        out.push('}');
    } else {
        write_error(out, id, error);
    }
}

fn write_error_object(out: &mut String, error: &ErrorObject<'_>) {
    out.push_str(r#"{"code":"#);
    write_integer(out, error.code.0);
    out.push_str(r#","message":"#);
    write_string(out, &error.message);
    out.push('}');
}

impl Connection {
    /// Checks the tables that both roles share. `is_open` says whether the session is established.
    pub(in crate::peer) fn assert_consistent(&self, is_open: bool) {
        self.calls.assert_consistent();
        self.requests.assert_consistent();
        self.observed.assert_consistent(&self.calls, &self.requests);
        if self.closed.is_some() {
            assert_eq!(self.calls.len(), 0, "calls of a closed connection");
            assert_eq!(self.keep_alive_due, None, "a ping of a closed connection is due");
        }
        let is_ping = |purpose| purpose == Purpose::KeepAlive;
        let pings = self.calls.iter().filter(|(_, call)| is_ping(call.purpose)).count();
        let pings = pings + usize::from(self.keep_alive_due.is_some());
        let wanted = is_open && self.closed.is_none() && self.config.timeouts.keep_alive.is_some();
        assert!(pings <= 1, "{pings} pings at a time");
        assert!(pings == 1 || !wanted, "the pings of an open connection have stopped");
    }
}

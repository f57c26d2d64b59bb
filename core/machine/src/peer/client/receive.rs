use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::ToString;

use mcp_sansio_collections::Key;

use crate::binding::TransportFailure;
use crate::gate::members::check_repeats;
use crate::gate::metadata::Metadata;
use crate::gate::{MethodKind, Phase};
use crate::jsonrpc::{
    Batch, ErrorObject, Frame, Malformed, MemberIndex, Message, NotificationMessage, RawJson,
    Reason, RequestId, RequestMessage, ResponseMessage, Shape, write_result,
};
use crate::peer::calls::{Call, Purpose};
use crate::peer::connection::Flow;
use crate::peer::event::{
    Cancelled, Ended, Event, Failure, InputRequested, InputResponseParams, Notification, Request,
    Subject, Violation,
};
use crate::peer::handle::{CallHandle, InputHandle, InputSource, RequestHandle};
use crate::peer::input_support::unsupported_input;
use crate::peer::method_name::MethodName;
use crate::peer::outbox::{Channel, Lane, Part, Verdict};
use crate::peer::requests::{InFlight, ProgressLimiter, ReplyTo, RequestOwner};
use crate::protocol::{Capability, Method, Side};
use crate::{Caller, Era, Instant, Revision};

use super::Client;
use super::subscriptions::UriState;

/// The start of most results: the first member marks the result as complete.
pub(super) const COMPLETE: &str = r#"{"resultType":"complete","#;

/// Returns the type of `result`, which `index` may describe, or `None` if it is complete.
fn result_type<'r>(result: &'r RawJson<'_>, index: Option<&MemberIndex>) -> Option<RawJson<'r>> {
    if result.as_str().starts_with(COMPLETE) {
        return None;
    }
    let kind = match index.and_then(|index| index.members(result.as_str())) {
        Some(mut members) => members.find(|it| it.key.is("resultType")).map(|it| it.value.into()),
        None => result.get("resultType"),
    };
    kind.filter(|kind| *kind != RawJson::NULL)
}

impl Client {
    /// Handles a parsed frame. `line` is the text of one from a byte stream; `index` may describe
    /// the members of its result.
    // Inlined, because a frame is large to pass by value.
    #[inline(always)]
    pub(super) fn receive_frame<'f>(
        &mut self,
        frame: Result<Frame<'f>, Malformed>,
        line: &[u8],
        index: Option<&MemberIndex>,
        now: Instant,
    ) -> Flow<'f> {
        match frame {
            Ok(Frame::Single(message)) => self.receive(message, index, now),
            Ok(Frame::Batch(batch)) => self.receive_batch(batch, now),
            Err(malformed) => self.receive_malformed(&malformed, line, now),
        }
    }

    fn receive<'f>(
        &mut self,
        message: Message<'f>,
        index: Option<&MemberIndex>,
        now: Instant,
    ) -> Flow<'f> {
        let connection = &mut self.connection;
        let hasher = connection.requests.hasher_ref();
        connection.observed.begin_received(&message, hasher, None);
        let flow = match message {
            Message::Request(request) => self.receive_request(request),
            Message::Notification(notification) => self.receive_notification(notification, now),
            Message::Response(response) => self.receive_response(response, index, now),
        };
        self.connection.observed.received(&flow);
        flow
    }

    /// Handles a batch: returns the first event and queues the others.
    ///
    /// Responses to requests in the batch are sent one by one, which JSON-RPC allows.
    // MCP 2025-03-26 basic/index#batching [BATCH-001],
    // MCP 2025-03-26 basic/transports#sending-messages-to-the-server [BATCH-009]
    // MCP 2025-06-18 basic/transports#stdio [BATCH-010] [STDIO-010]
    fn receive_batch<'f>(&mut self, batch: Batch<'f>, now: Instant) -> Flow<'f> {
        let revision = self.session.as_ref().map(|session| session.revision);
        if revision != Some(Revision::V2025_03_26) {
            return self.refuse_batch(batch, now);
        }
        let mut first = None;
        for message in batch {
            let flow = match message {
                Ok(message) => self.receive(message, None, now),
                Err(malformed) => self.receive_malformed(&malformed, &[], now),
            };
            match flow {
                Ok(event) => self.connection.keep_in_order(&mut first, event),
                Err(closed) => {
                    self.connection.keep_first(first);
                    return Err(closed);
                }
            }
        }
        Ok(first)
    }

    /// Refuses a batch. No other responses arrive to the calls whose responses are in it, so these
    /// calls end; nor does the server send its requests again, so these are answered.
    fn refuse_batch<'f>(&mut self, batch: Batch<'f>, now: Instant) -> Flow<'f> {
        let mut first = None;
        for message in batch {
            let Some(refused) = Malformed::element_refused(message) else { continue };
            let event = self.receive_malformed(&refused, &[], now)?;
            if self.connection.closed.is_some() {
                // It was the response to the opening, and the end is queued.
                return Ok(first.or(event));
            }
            self.connection.keep_in_order(&mut first, event);
        }
        if first.is_some() {
            return Ok(first);
        }
        self.receive_malformed(&Malformed::batch_refused(), &[], now)
    }

    // ------------------------------------------------------------------ responses

    /// Handles a malformed message. If it names a call, the call ends.
    // MCP 2025-11-25 basic/index#responses [RPC-007], MCP 2025-11-25 schema.json#Result [RPC-010]
    fn receive_malformed<'f>(
        &mut self,
        malformed: &Malformed,
        line: &[u8],
        now: Instant,
    ) -> Flow<'f> {
        let why = malformed.reason.as_str();
        if let Some((key, call)) = self.connection.take_call_of_malformed(malformed) {
            match call.purpose {
                Purpose::Opening => {
                    let error = ErrorObject::internal(why);
                    self.opening_answered(Err(error), now)?;
                }
                Purpose::KeepAlive => self.connection.keep_alive_answered(now),
                Purpose::SubscribeResource { subscription, index } => {
                    // A result that should be empty is a success, whatever it contains.
                    let has_result = malformed.reason == Reason::ResultNotObject;
                    let answer = if has_result { UriState::Honoured } else { UriState::Unknown };
                    self.resource_subscribed(subscription, index, answer, now);
                }
                Purpose::Application | Purpose::Listen => {
                    self.connection.end_call(key, Failure::InvalidAnswer(why));
                }
                _ => {}
            }
            return self.connection.malformed(Violation::Malformed(malformed.reason));
        }
        // It is not answered.
        if malformed.shape == Shape::Unknown
            && matches!(malformed.reason, Reason::NotJson { .. } | Reason::NotAnObject)
            && let Some(line) = TransportFailure::excerpt(line)
        {
            return self
                .connection
                .malformed(Violation::NotAMessage { reason: malformed.reason, line });
        }
        let revision = self.session.as_ref().map(|session| session.revision);
        self.connection.malformed_frame(malformed, revision, Channel::UNSOLICITED)
    }

    fn receive_response<'f>(
        &mut self,
        message: ResponseMessage<'f>,
        index: Option<&MemberIndex>,
        now: Instant,
    ) -> Flow<'f> {
        let id = message.id.or_else(|| self.unaddressed(&message.outcome));
        let key = match (self.connection.answered(id, now), &message.outcome) {
            (Ok(Some(key)), _) => key,
            (Ok(None), _) => return Ok(None),
            (Err(violation), outcome) => {
                let reaction = self.connection.config.policy.unknown_response;
                return self.connection.violation(reaction, with_error(violation, outcome));
            }
        };
        self.connection.observed.call_answered(key, &message.outcome);
        if self.connection.has_middleware() {
            return self.answer_through_middleware(key, message.outcome, now);
        }
        self.receive_passed_response(key, message.outcome, index, now)
    }

    /// Returns the id of the request that an error without an id answers: the opening request, while
    /// nothing else has been sent. Later it could also be about a notification, which some servers
    /// answer.
    // JSON-RPC 2.0: the id of a response is null if the id of the request could not be read.
    fn unaddressed(&self, outcome: &Result<RawJson<'_>, ErrorObject<'_>>) -> Option<RequestId> {
        let call = self.connection.calls.only()?;
        let opens = outcome.is_err() && call.purpose == Purpose::Opening;
        opens.then_some(RequestId::Number(call.id))
    }

    /// Handles the response to a call that has passed the middleware.
    pub(super) fn receive_passed_response<'f>(
        &mut self,
        key: Key,
        outcome: Result<RawJson<'f>, ErrorObject<'f>>,
        index: Option<&MemberIndex>,
        now: Instant,
    ) -> Flow<'f> {
        let Some(call) = self.connection.calls.get(key) else { return Ok(None) };
        let purpose = call.purpose;
        if purpose == Purpose::Application {
            return self.call_answered(key, outcome, index, now);
        }
        let id = call.id;
        if purpose == Purpose::Task {
            let violation = Violation::UnknownResponse(Some(RequestId::Number(id)));
            return self
                .connection
                .violation(self.connection.config.policy.unknown_response, violation);
        }
        self.connection.calls.remove(key);
        match purpose {
            Purpose::Opening => self.opening_answered(outcome, now),
            Purpose::KeepAlive => {
                self.connection.keep_alive_answered(now);
                Ok(None)
            }
            Purpose::SubscribeResource { subscription, index } => {
                self.resource_answered((subscription, index), outcome, now);
                Ok(None)
            }
            // MCP 2026-07-28 basic/patterns/subscriptions#graceful-closure [SUBS-008],
            // MCP 2026-07-28 schema.json#CancelledNotification [SUBS-011]
            Purpose::Listen => {
                self.connection.calls.bury(id, &self.connection.config.limits, now);
                Ok(Some(ended(key, outcome.map_err(Failure::Refused))))
            }
            _ => Ok(None),
        }
    }

    fn call_answered<'f>(
        &mut self,
        key: Key,
        outcome: Result<RawJson<'f>, ErrorObject<'f>>,
        index: Option<&MemberIndex>,
        now: Instant,
    ) -> Flow<'f> {
        let result = match outcome {
            Ok(result) => result,
            Err(error) => {
                self.connection.calls.remove(key);
                return Ok(Some(ended(key, Err(Failure::Refused(error)))));
            }
        };
        // MCP 2026-07-28 basic/index#resulttype [RPC-020] [RPC-021] [RPC-022]
        let kind = if self.is_modern() { result_type(&result, index) } else { None };
        match kind.as_ref().map(RawJson::as_str) {
            None if self.is_unrequested_task(key, &result) => {
                self.connection.calls.remove(key);
                let why = "a task, which the call does not request";
                Ok(Some(ended(key, Err(Failure::InvalidAnswer(why)))))
            }
            None | Some(r#""complete""#) => {
                // MCP 2025-11-25 basic/utilities/progress#behavior-requirements [PROG-010]
                let input_rounds = if self.connection.calls.keep(key, &result) {
                    0
                } else {
                    let call = self.connection.calls.remove(key);
                    call.and_then(|call| call.repeat).map_or(0, |repeat| repeat.rounds)
                };
                let (call, outcome) = (CallHandle::new(key), Ok(result));
                Ok(Some(Event::Ended(Ended { call, outcome, input_rounds })))
            }
            Some(r#""input_required""#) => self.input_required(key, &result, now),
            Some(r#""task""#) if self.accepts_task(key) => {
                self.connection.calls.remove(key);
                Ok(Some(ended(key, Ok(result))))
            }
            Some(kind) => {
                let why = match kind {
                    r#""task""# => "a task, which this client does not accept for the method",
                    _ => "`resultType` is not `complete`, `input_required` or `task`",
                };
                self.connection.calls.remove(key);
                Ok(Some(ended(key, Err(Failure::InvalidAnswer(why)))))
            }
        }
    }

    /// Returns whether a server of 2025-11-25 answers a tool call with a task that the call did not
    /// request. It would be read as a result without content.
    // MCP 2025-11-25 basic/utilities/tasks#creating-tasks [TASK-001]
    fn is_unrequested_task(&self, key: Key, result: &RawJson<'_>) -> bool {
        // The result of a tool usually starts with its content.
        !result.as_str().starts_with(r#"{"content""#)
            && self.session.as_ref().is_some_and(|it| it.revision == Revision::V2025_11_25)
            && self
                .connection
                .calls
                .get(key)
                .is_some_and(|it| it.method == Some(Method::ToolsCall) && it.task.is_none())
            && result.get_present("content").is_none()
            && result.get_present("task").is_some()
    }

    /// Returns whether the session is modern.
    pub(super) fn is_modern(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.revision.era() == Era::Modern)
    }

    // MCP 2026-07-28 ext-tasks:tasks#polymorphic-results [TASK-026],
    // MCP 2026-07-28 ext-tasks:tasks#capability-negotiation [TASK-027]
    // MCP 2026-07-28 basic/versioning#extension-negotiation [CAP-025]
    fn accepts_task(&self, key: Key) -> bool {
        let method = self.connection.calls.get(key).and_then(|call| call.method);
        let declared = self
            .session
            .as_ref()
            .is_some_and(|session| session.client.contains(Capability::TasksExtension));
        declared && method == Some(Method::ToolsCall)
    }

    // ------------------------------------------------------------------ requests

    fn receive_request<'f>(&mut self, message: RequestMessage<'f>) -> Flow<'f> {
        let RequestMessage { id, method, params } = message;
        let revision = match &self.session {
            Some(session) => session.revision,
            // Before the handshake completes, only a legacy server sends requests.
            None => self.newest_or_latest(),
        };
        // MCP 2026-07-28 basic/patterns/index#request-and-response [RPC-030],
        // MCP 2026-07-28 basic/transports/streamable-http#sending-messages [RPC-031]: a modern
        // server sends no requests, and a modern client no responses.
        // MCP 2026-07-28 basic/transports/stdio#sending-messages [STDIO-011]
        if revision.era() == Era::Modern {
            return self.connection.out_of_place("a request from a modern server");
        }
        if self.connection.requests.contains(&id) {
            let error = ErrorObject::invalid_request("a request with this id is in flight");
            self.refuse_request(&id, &error);
            let violation = Violation::DuplicateId(id);
            return self
                .connection
                .violation(self.connection.config.policy.duplicate_id, violation);
        }
        if self.connection.has_middleware() {
            let message = RequestMessage { id, method, params };
            return self.receive_through_middleware(message, revision);
        }
        self.receive_passed_request(id, method, params, revision)
    }

    /// Handles a request that has passed the middleware.
    pub(super) fn receive_passed_request<'f>(
        &mut self,
        id: RequestId,
        method: Cow<'f, str>,
        params: Option<RawJson<'f>>,
        revision: Revision,
    ) -> Flow<'f> {
        let known = Method::parse(&method);
        let params = params.unwrap_or(RawJson::EMPTY_OBJECT);
        if let Some(result) = self.connection.take_early_result() {
            self.answer_passed(Lane::Bulk, known, &id, result);
            return Ok(None);
        }
        // MCP 2025-11-25 basic/utilities/ping#behavior-requirements [PING-001]
        if known == Some(Method::Ping) && check_repeats(params.view()).is_ok() {
            if self.connection.has_middleware() {
                self.answer_passed(Lane::Control, known, &id, RawJson::EMPTY_OBJECT);
                return Ok(None);
            }
            let (part, tag) = (Part::Answer(Verdict::Result), self.connection.tag(&id));
            self.connection.observe_empty_answer(&id);
            self.connection.outbox.push(Lane::Control, Channel::UNSOLICITED, part, tag, |out| {
                let written = write_result(out, &id, &RawJson::EMPTY_OBJECT);
                debug_assert!(written.is_ok(), "an empty object is JSON");
            });
            return Ok(None);
        }
        let Some(session) = &self.session else {
            self.refuse_request(&id, &ErrorObject::invalid_request("the session is not open"));
            return self.connection.out_of_place("a request before the session was open");
        };
        let (client, server) = (session.client, session.server);
        let metadata = match Metadata::read(&params) {
            Ok(metadata) => metadata,
            Err(what) => {
                self.refuse_request(&id, &ErrorObject::invalid_params(what));
                return match known {
                    Some(method) => self.connection.bad_parameters(method, what),
                    None => Ok(None),
                };
            }
        };
        let Some(known) = known else {
            if !self.connection.config.policy.deliver_unknown_methods {
                self.refuse_request(&id, &ErrorObject::method_not_found(&method));
                return Ok(None);
            }
            let method = MethodName::Other(method);
            return Ok(self.deliver(id, None, method, params, &metadata, revision));
        };
        if known.row().kind != MethodKind::Request {
            self.refuse_request(&id, &ErrorObject::method_not_found(&method));
            return self.connection.out_of_place("a notification with an id");
        }
        // MCP 2025-11-25 client/roots#error-handling [CAP-027] [ROOT-004]
        if let Err(refusal) = known.row().check(Side::Server, revision, client, server) {
            self.refuse_request(&id, &ErrorObject::method_not_found(&method));
            return self.connection.forbidden(Violation::Forbidden(refusal));
        }
        if let Some(what) = unsupported_input(known, &params, client, revision) {
            let what = what.as_str();
            self.refuse_request(&id, &ErrorObject::invalid_params(what));
            return self.connection.forbidden(Violation::BadParameters { method: known, what });
        }
        Ok(self.deliver(id, Some(known), MethodName::Known(known), params, &metadata, revision))
    }

    fn newest_or_latest(&self) -> Revision {
        self.newest_legacy().unwrap_or(Revision::LATEST)
    }

    fn deliver<'f>(
        &mut self,
        id: RequestId,
        known: Option<Method>,
        method: MethodName<'f>,
        params: RawJson<'f>,
        metadata: &Metadata<'f>,
        revision: Revision,
    ) -> Option<Event<'f>> {
        if self.connection.requests.len() >= self.connection.config.limits.requests_in_flight_max {
            let error = ErrorObject::internal("too many requests in flight; try again later");
            self.refuse_request(&id, &error);
            return Some(Event::Violation(Violation::TooManyRequests));
        }
        let capabilities = self.session.as_ref().map(|s| s.server).unwrap_or_default();
        let token = metadata.progress_token.map(RequestId::from);
        let wants_progress = token.is_some();
        let key = self.connection.requests.insert(InFlight {
            id,
            method: known,
            revision,
            capabilities,
            progress: token.map(ProgressLimiter::new),
            log_level: None,
            reply: ReplyTo::on(Channel::UNSOLICITED),
            owner: RequestOwner::Application,
            rounds: 0,
            tool: None,
            restricted: false,
        });
        Some(match known {
            Some(
                method @ (Method::SamplingCreateMessage
                | Method::ElicitationCreate
                | Method::RootsList),
            ) => Event::InputRequested(InputRequested {
                handle: InputHandle(InputSource::Request(key)),
                method,
                params,
                revision,
                call: None,
            }),
            _ => Event::Request(Request {
                handle: RequestHandle::new(key),
                method,
                params,
                revision,
                capabilities,
                wants_progress,
                inputs: InputResponseParams::default(),
                target: crate::catalog::Target::None,
                spans: known.map(|method| metadata.spans(method)).unwrap_or_default(),
                caller: Caller::ANONYMOUS,
            }),
        })
    }

    // ------------------------------------------------------------------ notifications

    // MCP 2025-11-25 basic/index#notifications [RPC-013]: never answered, even if it is malformed.
    fn receive_notification<'f>(
        &mut self,
        message: NotificationMessage<'f>,
        now: Instant,
    ) -> Flow<'f> {
        if self.connection.has_middleware() {
            return self.notice_through_middleware(message, now);
        }
        self.receive_passed_notification(message, now)
    }

    /// Handles a notification that has passed the middleware.
    pub(super) fn receive_passed_notification<'f>(
        &mut self,
        message: NotificationMessage<'f>,
        now: Instant,
    ) -> Flow<'f> {
        let params = message.params.unwrap_or(RawJson::EMPTY_OBJECT);
        let Some(method) = Method::parse(&message.method) else {
            if !self.connection.config.policy.deliver_unknown_methods {
                return Ok(None);
            }
            if let Err(what) = check_repeats(params.view()) {
                return self.connection.malformed(Violation::OutOfPlace(what));
            }
            let revision = self.session.as_ref().map_or(Revision::LATEST, |s| s.revision);
            return Ok(Some(Event::Notification(Notification {
                method: MethodName::Other(message.method),
                params,
                revision,
                subscriptions: Box::default(),
            })));
        };
        if method.row().kind != MethodKind::Notification {
            return self.connection.out_of_place("a request without an id");
        }
        // Progress handling checks for repeated members on its own.
        if method != Method::Progress
            && let Err(what) = check_repeats(params.view())
        {
            return self.connection.bad_parameters(method, what);
        }
        let Some(session) = &self.session else {
            // MCP 2025-11-25 basic/lifecycle#initialization [LIFE-005]
            if method.row().server.phase == Phase::Always {
                return Ok(None);
            }
            return self.connection.out_of_place("a notification before the session was open");
        };
        let revision = session.revision;
        let checked = method.row().check(Side::Server, revision, session.client, session.server);
        if let Err(refusal) = checked {
            return self.connection.forbidden(Violation::Forbidden(refusal));
        }
        match method {
            Method::Cancelled if revision.era() == Era::Modern => {
                Ok(self.stream_cancelled(&params, now))
            }
            Method::Cancelled => Ok(self.cancelled(&params)),
            Method::Progress => self.connection.on_progress(&params, now),
            Method::SubscriptionsAcknowledged => self.acknowledged(&params),
            _ => {
                let subscriptions = self.subscriptions_of(method, &params);
                Ok(Some(Event::Notification(Notification {
                    method: MethodName::Known(method),
                    params,
                    revision,
                    subscriptions,
                })))
            }
        }
    }

    /// Handles a legacy server's cancellation of its own request. Ids of this side's calls are
    /// separate and cannot be meant.
    // MCP 2025-11-25 basic/utilities/cancellation#error-handling [CANC-001] [CANC-004] [CANC-007]
    fn cancelled<'f>(&mut self, params: &RawJson<'f>) -> Option<Event<'f>> {
        let (id, reason) = cancellation(params);
        let id = id?;
        // MCP 2025-11-25 basic/utilities/cancellation#behavior-requirements [CANC-003]: its
        // response may still be queued.
        self.connection.withdraw(&id);
        let key = self.connection.requests.by_id(&id)?;
        let request = self.connection.requests.remove(key)?;
        self.connection.observed.cancelled(self.connection.tag(&id));
        let input = matches!(
            request.method,
            Some(Method::SamplingCreateMessage | Method::ElicitationCreate | Method::RootsList)
        );
        let subject = if input {
            Subject::Input(InputHandle(InputSource::Request(key)))
        } else {
            Subject::Request(RequestHandle::new(key))
        };
        Some(Event::Cancelled(Cancelled { subject, reason }))
    }

    /// Handles the end of a listen stream from a modern server. The server may also send the
    /// result, before or after.
    // MCP 2026-07-28 basic/patterns/cancellation#behavior-requirements [CANC-019],
    // MCP 2026-07-28 schema.json#CancelledNotification [SUBS-011]
    fn stream_cancelled<'f>(&mut self, params: &RawJson<'f>, now: Instant) -> Option<Event<'f>> {
        let id = cancellation(params).0?.own_number()?;
        let key = self.connection.calls.by_id(id)?;
        let listens = |call: &Call| call.purpose == Purpose::Listen;
        if !self.connection.calls.get(key).is_some_and(listens) {
            return None;
        }
        self.connection.observed.call_answered(key, &Ok(RawJson::EMPTY_OBJECT));
        self.connection.calls.remove(key);
        self.connection.calls.bury(id, &self.connection.config.limits, now);
        Some(ended(key, Ok(RawJson::EMPTY_OBJECT)))
    }
}

/// Adds the error to the report of a response that names no request.
fn with_error(violation: Violation, outcome: &Result<RawJson<'_>, ErrorObject<'_>>) -> Violation {
    let excerpt = match (&violation, outcome) {
        (Violation::UnknownResponse(None), Err(error)) => {
            TransportFailure::excerpt(error.to_string().as_bytes())
        }
        _ => None,
    };
    excerpt.map_or(violation, Violation::UnaddressedError)
}

/// Returns the id and the reason from the parameters of a cancellation.
fn cancellation<'f>(params: &RawJson<'f>) -> (Option<RequestId>, Option<Cow<'f, str>>) {
    let (mut id, mut reason) = (None, None);
    for member in params.walk() {
        match &*member.name() {
            "requestId" => id = member.value.to_id(),
            "reason" => reason = member.value.to_text(),
            _ => {}
        }
    }
    (id, reason)
}

fn ended<'f>(key: Key, outcome: Result<RawJson<'f>, Failure<'f>>) -> Event<'f> {
    Event::Ended(Ended::new(CallHandle::new(key), outcome))
}

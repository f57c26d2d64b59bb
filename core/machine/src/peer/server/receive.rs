use alloc::borrow::Cow;
use alloc::boxed::Box;

use mcp_sansio_collections::Key;
use mcp_sansio_sync::Arc;

use crate::catalog::subject::Given;
use crate::catalog::{Invalid, Target};
use crate::envelope::Written;
use crate::gate::members::check_repeats;
use crate::gate::metadata::{self, Metadata, Read};
use crate::gate::{GateError, MethodKind, Refusal};
use crate::jsonrpc::{
    AsJson, ErrorObject, Malformed, Message, RawJson, RequestId, RequestMessage, ResponseMessage,
    resolved,
};
use crate::peer::calls::Purpose;
use crate::peer::connection::Flow;
use crate::peer::event::{Ended, Event, Failure, InputResponseParams, Request, Violation};
use crate::peer::handle::{CallHandle, RequestHandle};
use crate::peer::method_name::MethodName;
use crate::peer::outbox::{Channel, Lane};
use crate::peer::requests::{InFlight, ProgressLimiter, ReplyTo, RequestOwner};
use crate::protocol::{
    AtRevision, CallToolResult, Capabilities, Capability, LoggingLevel, Method, Side,
};
use crate::{Caller, Era, Instant, Revision};

use super::declared::{Declaration, Declared, Reading, Undeclared, fault_of};
use super::result_body::Contents;
#[cfg(feature = "http")]
use super::session_key::outside_sessions;
use super::{NO_PARAMS, Server, ServerConfig, ServerSession};

/// A request to be answered. The metadata is borrowed, because it is too large to move.
pub(super) struct Incoming<'m, 'f> {
    pub(super) id: RequestId,
    pub(super) method: MethodName<'f>,
    pub(super) params: RawJson<'f>,
    pub(super) metadata: &'m mut Metadata<'f>,
    pub(super) revision: Revision,
    pub(super) client: Capabilities,
    pub(super) reply: ReplyTo,
}

/// The item that a request names, or the answer without one.
pub(crate) type Found = Result<Target, Box<NotFound>>;

/// The answer to a request whose item does not exist, or does not take its arguments.
#[derive(Debug)]
pub(crate) enum NotFound {
    /// The result of a tool that reports invalid arguments.
    Result(CallToolResult),
    /// An error.
    Error(ErrorObject<'static>),
}

impl From<ErrorObject<'static>> for Box<NotFound> {
    fn from(error: ErrorObject<'static>) -> Self {
        Self::new(NotFound::Error(error))
    }
}

impl Server {
    /// Handles a message. `read` is its metadata, unless the parameters are still to be parsed, and
    /// what its reader found out about a modern request.
    pub(super) fn receive<'f>(
        &mut self,
        message: Message<'f>,
        read: (Option<&mut Read<'f>>, Option<&mut Reading>),
        reply: ReplyTo,
        now: Instant,
    ) -> Flow<'f> {
        let Self { connection, caller, .. } = self;
        let hasher = connection.requests.hasher_ref();
        connection.observed.begin_received(&message, hasher, Some(caller));
        let flow = match message {
            Message::Request(request) => self.receive_request(request, read, reply),
            Message::Notification(notification) => self.receive_notification(notification, now),
            Message::Response(response) => self.receive_response(response, now),
        };
        self.connection.observed.received(&flow);
        flow
    }

    // ------------------------------------------------------------------ requests

    // Called once: without a copy of the message.
    #[inline(always)]
    fn receive_request<'f>(
        &mut self,
        message: RequestMessage<'f>,
        read: (Option<&mut Read<'f>>, Option<&mut Reading>),
        reply: ReplyTo,
    ) -> Flow<'f> {
        let RequestMessage { id, method, params } = message;
        // The two responses could not be told apart.
        if let Some(key) = self.connection.requests.by_id(&id)
            && !self.ends_with_session(key, &method, params.as_ref())
        {
            let error = ErrorObject::invalid_request("a request with this id is in flight");
            self.answer_refusal(&id, &error, reply);
            let violation = Violation::DuplicateId(id);
            return self
                .connection
                .violation(self.connection.config.policy.duplicate_id, violation);
        }
        if self.connection.has_middleware() {
            let message = RequestMessage { id, method, params };
            return self.receive_through_middleware(message, read, reply);
        }
        self.receive_passed_request(id, method, params, read, reply)
    }

    /// Returns whether this message, an `initialize`, ends the pending request with its session.
    fn ends_with_session(&self, key: Key, method: &str, params: Option<&RawJson<'_>>) -> bool {
        let names_revision = |meta: RawJson<'_>| meta.get(metadata::PROTOCOL_VERSION).is_some();
        method == Method::Initialize.as_str()
            && self.connection.requests.get(key).is_some_and(|it| it.revision.era() == Era::Legacy)
            && !params.and_then(|params| params.get("_meta").map(names_revision)).unwrap_or(false)
    }

    /// Handles a request that has passed the middleware.
    // Without the feature there is one caller.
    pub(super) fn receive_passed_request<'f>(
        &mut self,
        id: RequestId,
        method: Cow<'f, str>,
        params: Option<RawJson<'f>>,
        (read, reading): (Option<&mut Read<'f>>, Option<&mut Reading>),
        reply: ReplyTo,
    ) -> Flow<'f> {
        let known = Method::parse(&method);
        // MCP 2025-11-25 basic/utilities/ping#behavior-requirements [PING-001]: promptly, even
        // before initialization is complete. Most pings have no parameters.
        let ping = known == Some(Method::Ping) && self.speaks(Era::Legacy);
        if ping && params.as_ref().is_none_or(|params| params.as_str() == "{}") {
            self.answer_ping(&id, reply);
            return Ok(None);
        }
        let params = params.unwrap_or(NO_PARAMS);
        let mut read_here;
        let read = match read {
            Some(read) => read,
            None => {
                let prefix = self.last_declared.as_deref().map(Declared::cached_prefix);
                read_here = Metadata::read_after(&params, prefix.unwrap_or_default());
                &mut read_here
            }
        };
        let metadata = match read {
            Ok(metadata) => metadata,
            // Other defects of its parameters do not matter.
            Err(_) if ping && check_repeats(params.view()).is_ok() => {
                self.answer_ping(&id, reply);
                return Ok(None);
            }
            Err(what) => {
                self.answer_refusal(&id, &ErrorObject::invalid_params(*what), reply);
                return match known {
                    Some(method) => self.connection.bad_parameters(method, what),
                    None => Ok(None),
                };
            }
        };
        let method = known.map_or(MethodName::Other(method), MethodName::Known);
        let modern = metadata.is_modern(self.config.revisions);
        if ping && !modern {
            self.answer_ping(&id, reply);
            return Ok(None);
        }
        let incoming = Incoming {
            id,
            method,
            params,
            metadata,
            revision: Revision::LATEST,
            client: Capabilities::NONE,
            reply,
        };
        if modern { self.receive_modern(incoming, reading) } else { self.receive_legacy(incoming) }
    }

    fn receive_legacy<'f>(&mut self, mut incoming: Incoming<'_, 'f>) -> Flow<'f> {
        if incoming.method == Method::Initialize {
            return self.initialize(&incoming);
        }
        let Some(session) = &self.session else {
            return self.refuse_before_initialize(&incoming);
        };
        incoming.revision = session.revision;
        incoming.client = session.client;
        let server = session.server;
        if let MethodName::Known(method) = incoming.method {
            if method.row().kind != MethodKind::Request {
                return self.refuse_notification(&incoming);
            }
            let checked =
                method.row().check(Side::Client, incoming.revision, incoming.client, server);
            if let Err(refusal) = checked {
                return self.refuse(&incoming, refusal);
            }
        }
        self.dispatch(incoming, None)
    }

    /// Refuses a request without metadata and without a session.
    fn refuse_before_initialize<'f>(&mut self, incoming: &Incoming<'_, 'f>) -> Flow<'f> {
        let name = Written::plain(incoming.method.as_str());
        let refusal =
            Refusal::before_initialize(incoming.method.known(), name, self.config.revisions);
        let error = refusal.into();
        self.answer_refusal(&incoming.id, &error, incoming.reply);
        // A client of both eras asks which one this server is of, and the refusal tells it.
        let is_probe = matches!(incoming.method, MethodName::Known(Method::Discover));
        if is_probe && !self.speaks(Era::Modern) {
            return Ok(None);
        }
        self.connection.out_of_place("a request before `initialize`")
    }

    /// Handles a request with its own metadata, independent of any session.
    // MCP 2026-07-28 basic/index#statelessness [LIFE-009],
    // MCP 2026-07-28 schema.json#RequestMetaObject [CAP-020]
    fn receive_modern<'f>(
        &mut self,
        mut incoming: Incoming<'_, 'f>,
        reading: Option<&mut Reading>,
    ) -> Flow<'f> {
        // MCP 2025-06-18 basic/transports#sending-messages-to-the-server [BATCH-010]: no batches.
        if incoming.reply.batch.is_some() {
            let error = ErrorObject::invalid_request("a modern request is not part of a batch");
            self.answer_refusal(&incoming.id, &error, incoming.reply);
            return self.connection.out_of_place("a modern request in a batch");
        }
        if let Some(what) = incoming.metadata.modern_fault {
            self.answer_refusal(&incoming.id, &ErrorObject::invalid_params(what), incoming.reply);
            return match incoming.method {
                MethodName::Known(method) => self.connection.bad_parameters(method, what),
                MethodName::Other(_) => Ok(None),
            };
        }
        let declared_here;
        let (declared, found) = match reading {
            Some(reading) => (&reading.declared, reading.found.take()),
            None => {
                declared_here = self.declared_in(incoming.metadata);
                (&declared_here, None)
            }
        };
        let (revision, client) = match declared {
            Ok(declared) => *declared,
            Err(Undeclared::Revision(error)) => {
                self.answer_refusal(&incoming.id, error, incoming.reply);
                return Ok(None);
            }
            Err(Undeclared::Malformed(refusal)) => {
                self.answer_refusal(&incoming.id, &(*refusal).into(), incoming.reply);
                return match incoming.method {
                    MethodName::Known(method) => {
                        self.connection.bad_parameters(method, fault_of(refusal))
                    }
                    MethodName::Other(_) => Ok(None),
                };
            }
        };
        (incoming.revision, incoming.client) = (revision, client);
        if let MethodName::Known(method) = incoming.method {
            if method.row().kind != MethodKind::Request {
                return self.refuse_notification(&incoming);
            }
            let checked =
                method.row().check(Side::Client, revision, incoming.client, self.config.modern);
            if let Err(refusal) = checked {
                return self.refuse(&incoming, refusal);
            }
        }
        self.dispatch(incoming, found)
    }

    /// Reads what the client declares, and keeps it for its next request.
    // Not inlined: its stack is free again when the request is handled.
    #[inline(never)]
    fn declared_in(&mut self, metadata: &Metadata<'_>) -> Declaration {
        let last = self.last_declared.as_deref();
        let (declared, other) = self.config.declared_in(metadata, last);
        if let Some(other) = other {
            self.last_declared = Some(Arc::new(other));
        }
        declared
    }

    /// Refuses a request whose method is defined only as a notification.
    fn refuse_notification<'f>(&mut self, incoming: &Incoming<'_, 'f>) -> Flow<'f> {
        let error = ErrorObject::method_not_found(incoming.method.as_str());
        self.answer_refusal(&incoming.id, &error, incoming.reply);
        self.connection.out_of_place("a notification with an id")
    }

    /// Refuses a request that failed the capability checks.
    fn refuse<'f>(&mut self, incoming: &Incoming<'_, 'f>, refusal: GateError) -> Flow<'f> {
        let name = Written::plain(incoming.method.as_str());
        let error = Refusal::by_gate(refusal, name, incoming.revision).into();
        self.answer_refusal(&incoming.id, &error, incoming.reply);
        self.connection.forbidden(Violation::Forbidden(refusal))
    }

    /// Dispatches a valid request, whose item may have been found before. The machine answers some
    /// methods itself.
    fn dispatch<'f>(&mut self, incoming: Incoming<'_, 'f>, found: Option<Found>) -> Flow<'f> {
        if let Some(result) = self.connection.take_early_result() {
            self.answer_by_machine(&incoming, &result, Contents::Any);
            return Ok(None);
        }
        let method = match &incoming.method {
            MethodName::Known(method) => *method,
            MethodName::Other(name) => {
                if self.connection.config.policy.deliver_unknown_methods {
                    return self.deliver(incoming, Target::None);
                }
                // MCP 2026-07-28 schema.json#MethodNotFoundError [RPC-018]
                let error = ErrorObject::method_not_found(name);
                self.answer_refusal(&incoming.id, &error, incoming.reply);
                return Ok(None);
            }
        };
        if let Some(what) = incoming.metadata.fault_of_arguments(method) {
            let error = ErrorObject::invalid_params(what);
            self.answer_error(&incoming.id, &error, incoming.reply);
            return Ok(None);
        }
        match method {
            Method::Discover => {
                self.answer_discover(&incoming);
                Ok(None)
            }
            Method::ToolsList
            | Method::PromptsList
            | Method::ResourcesList
            | Method::ResourcesTemplatesList => self.list(method, incoming),
            Method::LoggingSetLevel => {
                self.set_log_level(&incoming);
                Ok(None)
            }
            Method::ResourcesSubscribe | Method::ResourcesUnsubscribe => {
                self.change_subscription(method, &incoming);
                Ok(None)
            }
            Method::SubscriptionsListen => self.listen(incoming),
            _ if found.is_none() && !self.config.catalog.manages(method) => {
                self.deliver(incoming, Target::None)
            }
            _ => {
                let found = found.unwrap_or_else(|| {
                    let Incoming { params, metadata, revision, .. } = &incoming;
                    let tasks = self.runs_tools_as_tasks();
                    let caller = self.caller_at(*revision);
                    self.config.find((method, params), metadata, (*revision, tasks), &caller)
                });
                match found.map_err(|it| *it) {
                    Ok(target) => self.deliver(incoming, target),
                    // MCP 2025-11-25 server/tools#error-handling [TOOL-010]
                    Err(NotFound::Result(failed)) => {
                        let result = AsJson(&AtRevision(&failed, incoming.revision));
                        self.answer_by_machine(&incoming, &result, Contents::Plain);
                        Ok(None)
                    }
                    Err(NotFound::Error(error)) => {
                        self.answer_error(&incoming.id, &error, incoming.reply);
                        Ok(None)
                    }
                }
            }
        }
    }

    /// Returns whether the server declared to the client of the session that tools run as tasks.
    fn runs_tools_as_tasks(&self) -> bool {
        let session = self.session.as_ref();
        session.is_some_and(|session| session.server.contains(Capability::TasksToolsCall))
    }

    /// Delivers a request to the application.
    pub(super) fn deliver<'f>(&mut self, incoming: Incoming<'_, 'f>, target: Target) -> Flow<'f> {
        let Incoming { id, method, params, metadata, revision, client, reply } = incoming;
        if self.connection.requests.len() >= self.connection.config.limits.requests_in_flight_max {
            let error = ErrorObject::internal("too many requests in flight; try again later");
            self.answer_error(&id, &error, reply);
            return Ok(Some(Event::Violation(Violation::TooManyRequests)));
        }
        let token_length_max = self.connection.config.limits.id_length_max;
        let token = metadata.progress_token.take().map(RequestId::from);
        if let Some(RequestId::Text(token)) = &token
            && token.len() > token_length_max
        {
            let error = ErrorObject::invalid_params("`progressToken` is too long");
            self.answer_error(&id, &error, reply);
            return Ok(None);
        }
        let known = method.known();
        let spans = known.map(|method| metadata.spans(method)).unwrap_or_default();
        let inputs =
            if known.is_some_and(Method::allows_input_rounds) && revision.era() == Era::Modern {
                InputResponseParams {
                    responses: metadata.input_responses.take().map(RawJson::from),
                    state: metadata.request_state.take().map(resolved),
                    refused: None,
                }
            } else {
                InputResponseParams::default()
            };
        let wants_progress = token.is_some();
        let key = self.connection.requests.insert(InFlight {
            id,
            method: known,
            revision,
            capabilities: client,
            progress: token.map(ProgressLimiter::new),
            log_level: metadata.log_level,
            reply,
            owner: RequestOwner::Application,
            rounds: 0,
            tool: match target {
                Target::Tool(id) => self.config.catalog.described_tool(id, revision),
                _ => None,
            },
            restricted: target.item().is_some_and(|id| self.config.catalog.audience(id).is_some()),
        });
        Ok(Some(Event::Request(Request {
            handle: RequestHandle::new(key),
            method,
            params,
            revision,
            capabilities: client,
            wants_progress,
            inputs,
            target,
            spans,
            caller: self.caller_at(revision).into_owned(),
        })))
    }

    // MCP 2025-11-25 server/utilities/logging#setting-log-level [LOG-003] [LOG-005]
    fn set_log_level(&mut self, incoming: &Incoming<'_, '_>) {
        let level =
            incoming.params.get("level").and_then(|level| level.decode::<LoggingLevel>().ok());
        match (level, &mut self.session) {
            (Some(level), Some(session)) => {
                session.log_level = level;
                self.answer_empty(
                    Lane::Bulk,
                    Method::LoggingSetLevel,
                    &incoming.id,
                    incoming.reply,
                );
            }
            _ => {
                let error =
                    ErrorObject::invalid_params("`level` is not a log level, such as `info`");
                self.answer_error(&incoming.id, &error, incoming.reply);
            }
        }
    }

    // ------------------------------------------------------------------ responses

    /// Handles a malformed message. If it names a call, the call ends.
    // MCP 2025-11-25 basic/index#responses [RPC-007], MCP 2025-11-25 schema.json#Result [RPC-010]
    pub(super) fn receive_malformed<'f>(
        &mut self,
        malformed: &Malformed,
        channel: Channel,
        now: Instant,
    ) -> Flow<'f> {
        if self.end_call_of_malformed(malformed, now) {
            return self.connection.malformed(Violation::Malformed(malformed.reason));
        }
        let revision = self.session.as_ref().map(ServerSession::revision);
        self.connection.malformed_frame(malformed, revision, channel)
    }

    /// Ends the call that a malformed message names, if there is one.
    pub(super) fn end_call_of_malformed(&mut self, malformed: &Malformed, now: Instant) -> bool {
        let why = malformed.reason.as_str();
        let Some((key, call)) = self.connection.take_call_of_malformed(malformed) else {
            return false;
        };
        match call.purpose {
            Purpose::KeepAlive => self.connection.keep_alive_answered(now),
            Purpose::Input { round, index } => self.input_failed(round, index, why),
            Purpose::Chore | Purpose::UnneededTask(_) => {}
            _ => self.connection.end_call(key, Failure::InvalidAnswer(why)),
        }
        true
    }

    fn receive_response<'f>(&mut self, message: ResponseMessage<'f>, now: Instant) -> Flow<'f> {
        let key = match self.connection.answered(message.id, now) {
            Ok(Some(key)) => key,
            Ok(None) => return Ok(None),
            Err(violation) => {
                let reaction = self.connection.config.policy.unknown_response;
                return self.connection.violation(reaction, violation);
            }
        };
        self.connection.observed.call_answered(key, &message.outcome);
        if self.connection.has_middleware() {
            return self.answer_through_middleware(key, message.outcome, now);
        }
        self.receive_passed_response(key, message.outcome, now)
    }

    /// Handles the response to a call that has passed the middleware.
    pub(super) fn receive_passed_response<'f>(
        &mut self,
        key: Key,
        outcome: Result<RawJson<'f>, ErrorObject<'f>>,
        now: Instant,
    ) -> Flow<'f> {
        let Some(call) = self.connection.calls.remove(key) else { return Ok(None) };
        match call.purpose {
            Purpose::KeepAlive => {
                self.connection.keep_alive_answered(now);
                Ok(None)
            }
            Purpose::Input { round, index } => {
                self.input_call_answered(round, index, call, outcome, now);
                Ok(None)
            }
            Purpose::UnneededTask(cancel) => {
                if let Ok(result) = outcome {
                    (cancel.0)(self, call.channel, &result, now);
                }
                Ok(None)
            }
            Purpose::Chore => Ok(None),
            _ => {
                let outcome = outcome.map_err(Failure::Refused);
                Ok(Some(Event::Ended(Ended::new(CallHandle::new(key), outcome))))
            }
        }
    }
}

impl ServerConfig {
    /// Reads the rest of a modern request whose declaration is valid: finds the item that it names.
    /// Middleware may change the request, so its item is not looked up before.
    #[cfg(feature = "http")]
    pub(crate) fn find_early(
        &self,
        request: &RequestMessage<'_>,
        metadata: &Metadata<'_>,
        revision: Revision,
        caller: &Caller,
    ) -> Option<Found> {
        let method = Method::parse(&request.method)?;
        let names_item = matches!(
            method,
            Method::ToolsCall
                | Method::PromptsGet
                | Method::ResourcesRead
                | Method::CompletionComplete
        );
        if !names_item || !self.catalog.manages(method) || self.config.middleware.is_some() {
            return None;
        }
        let params = request.params.as_ref().unwrap_or(&NO_PARAMS);
        let caller = outside_sessions(caller);
        Some(self.find((method, params), metadata, (revision, false), &caller))
    }

    /// Finds the item that a request names, and validates the arguments of a call with the
    /// catalog's validator, if there is one. `tasks` says whether the client knows that tools run
    /// as tasks. If a call asks for a task, the creator of the task validates its arguments, and
    /// the task fails instead of the call.
    // MCP 2026-07-28 server/tools#security-considerations [TOOL-030]
    fn find(
        &self,
        (method, params): (Method, &RawJson<'_>),
        metadata: &Metadata<'_>,
        (revision, tasks): (Revision, bool),
        caller: &Caller,
    ) -> Found {
        let subject = metadata.subject(method).map(resolved);
        let arguments = metadata.arguments.map(RawJson::from);
        let arguments = arguments.as_ref();
        // MCP 2025-11-25 basic/utilities/tasks#task-support-and-handling [TASK-006]
        let asks_for_task = metadata.asks_for_task;
        let given = Given { params, arguments, tasks, asks_for_task, caller };
        let target = self.catalog.resolve_given(method, subject.as_deref(), &given, revision)?;
        let starts_task = tasks && revision.era() == Era::Legacy && asks_for_task;
        let Target::Tool(tool) = target else { return Ok(target) };
        if !self.catalog.validates() || starts_task {
            return Ok(target);
        }
        let arguments = arguments.unwrap_or(&NO_PARAMS);
        let validate = || self.catalog.validate_arguments(tool, arguments, revision);
        match self.guard.run(validate) {
            Ok(Ok(())) => Ok(target),
            Ok(Err(Invalid::Tool(message))) => {
                Err(Box::new(NotFound::Result(CallToolResult::error(message))))
            }
            Ok(Err(Invalid::Protocol(error))) => Err(error.into()),
            Err(panicked) => Err(ErrorObject::from(panicked).into()),
        }
    }
}

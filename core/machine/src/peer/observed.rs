//! The operations in progress on a connection, for its observer.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use core::cell::RefCell;
use core::fmt;

use mcp_sansio_collections::{Key, KeyedHash};
use mcp_sansio_sync::Arc;

use crate::binding::{Binding, OperationTransport};
use crate::jsonrpc::{
    ErrorObject, Members, Message, RawJson, RequestId, WriteError, WriteJson, to_shared_json,
    write_string,
};
use crate::protocol::{Method, Side, ToolOutput};
use crate::{Caller, Revision};

use super::calls::{Calls, Purpose};
use super::connection::Flow;
use super::event::{CloseReason, Event, Failure};
use super::operation::CallContext;
use super::operation::{
    Cause, Direction, Observation, Operation, OperationEnd, OperationObserver, OperationOutcome,
};
use super::options::ConnectionConfig;
use super::outgoing::{CallOptions, Outgoing};
use super::queue::Tag;
use super::requests::Requests;
use crate::gate::metadata;

#[derive(Debug)]
struct State {
    observer: Arc<dyn OperationObserver>,
    role: Side,
    revision: Option<Revision>,
    transport: OperationTransport,
    /// The message that is being handled, with the tag of a request that is not answered yet.
    current: Option<(Option<Tag>, Arc<dyn Observation>)>,
    /// Requests of the peer in progress.
    received: BTreeMap<Tag, Arc<dyn Observation>>,
    /// Calls of this side in progress.
    sent: BTreeMap<u64, Sent>,
    session: Option<Arc<dyn Observation>>,
    /// Whether the next result says that a tool has failed, if it is known.
    tool_failed: Option<bool>,
}

/// A call in progress.
#[derive(Debug)]
struct Sent {
    observation: Option<Arc<dyn Observation>>,
    method: Option<Method>,
}

/// A call that has begun and is not written yet: with the members of its `_meta`, those of the
/// caller included, if it is observed.
#[derive(Debug)]
pub(in crate::peer) struct Begun(Option<Box<(Sent, Option<RawJson<'static>>)>>);

impl Begun {
    /// Returns the members to write in place of `own`.
    pub(in crate::peer) fn meta<'a>(
        &'a self,
        own: Option<&'a RawJson<'a>>,
    ) -> Option<&'a RawJson<'a>> {
        self.0.as_ref().and_then(|begun| begun.1.as_ref()).or(own)
    }
}

/// A copy of a result that an observation needs.
#[derive(Debug)]
pub(in crate::peer) struct KeptResult(Option<RefCell<String>>);

impl KeptResult {
    /// Copies the result, if it is needed.
    pub(in crate::peer) fn keep(&self, result: &str) {
        if let Some(kept) = &self.0 {
            kept.borrow_mut().push_str(result);
        }
    }
}

/// What a connection reports of its messages, for its observer.
pub(in crate::peer) trait Observing: fmt::Debug + Send + Sync {
    /// Checks that each operation in progress belongs to a call or a request in progress.
    fn assert_consistent(&self, calls: &Calls, requests: &Requests) {
        let _ = (calls, requests);
    }

    /// Returns the description of the connection, to change it.
    fn transport(&mut self) -> Option<&mut OperationTransport> {
        None
    }

    /// A handshake has succeeded, or a modern connection is open.
    fn opened(&mut self, revision: Revision) {
        let _ = revision;
    }

    /// The session has ended, and the connection may have another one.
    fn session_ended(&mut self) {}

    /// The connection was closed: its calls and its session end.
    fn closed(&mut self, reason: &CloseReason) {
        let _ = reason;
    }

    /// The calls in progress end without a response, because their stream has ended.
    fn lost(&mut self) {}

    /// A message was received. `hasher` makes the tags of requests.
    fn begin_received(
        &mut self,
        message: &Message<'_>,
        hasher: &KeyedHash,
        caller: Option<&Caller>,
    ) {
        let _ = (message, hasher, caller);
    }

    /// The message was handled, with this outcome.
    fn received(&mut self, flow: &Flow<'_>) {
        let _ = flow;
    }

    /// Notes what the next result says about its tool.
    fn tool_output(&mut self, output: ToolOutput<'_>) {
        let _ = output;
    }

    /// Returns the place for a copy of the result that answers a request.
    fn keeps_result(&self, tag: Tag, method: Option<Method>) -> KeptResult {
        let _ = (tag, method);
        KeptResult(None)
    }

    /// A result for a request of the peer was queued.
    fn answered(&mut self, tag: Tag, method: Option<Method>, kept: KeptResult) {
        let _ = (tag, method, kept);
    }

    /// An empty result for a request of the peer was queued.
    fn answered_empty(&mut self, id: &RequestId, hasher: &KeyedHash) {
        let _ = (id, hasher);
    }

    /// An error for a request of the peer was queued.
    fn refused(&mut self, tag: Tag, error: &ErrorObject<'_>) {
        let _ = (tag, error);
    }

    /// A request of the peer needs no response any more.
    fn cancelled(&mut self, tag: Tag) {
        let _ = tag;
    }

    /// All requests of the peer were dropped.
    fn all_cancelled(&mut self) {}

    /// Returns the observation of a peer's request.
    fn observation(&self, id: &RequestId, hasher: &KeyedHash) -> Option<Arc<dyn Observation>> {
        let _ = (id, hasher);
        None
    }

    /// A call is about to be written. `cause` is the request of the peer that it belongs to.
    fn begin_call(
        &mut self,
        outgoing: &Outgoing<'_>,
        id: i64,
        params: &dyn WriteJson,
        options: &CallOptions<'_>,
        cause: Option<Tag>,
    ) -> Result<Begun, WriteError> {
        let _ = (outgoing, id, params, options, cause);
        Ok(Begun(None))
    }

    /// A call is about to be written for a further round.
    fn begin_round(
        &mut self,
        call: Key,
        round: (i64, Method),
        params: &dyn WriteJson,
        meta: Option<&RawJson<'_>>,
        revision: Option<Revision>,
        context: Option<CallContext>,
    ) -> Result<Begun, WriteError> {
        let _ = (call, round, params, meta, revision, context);
        Ok(Begun(None))
    }

    /// The call was written.
    fn called(&mut self, call: Key, begun: Begun) {
        let _ = (call, begun);
    }

    /// The response to a call was received.
    fn call_answered(&mut self, call: Key, outcome: &Result<RawJson<'_>, ErrorObject<'_>>) {
        let _ = (call, outcome);
    }

    /// A call has ended.
    fn call_ended(&mut self, call: Key, failure: &Failure<'_>) {
        let _ = (call, failure);
    }

    /// A notification is about to be written for the request with the tag `cause`. Returns its
    /// parameters with the members of its observation.
    fn notify(
        &mut self,
        method: &str,
        params: Option<&dyn WriteJson>,
        cause: Tag,
    ) -> Option<RawJson<'static>> {
        let _ = (method, params, cause);
        None
    }
}

/// A connection without an observer.
#[derive(Debug)]
pub(in crate::peer) struct NotObserved;

impl Observing for NotObserved {}

/// An observer, and the function that observes a connection for it. Only a program that has an
/// observer contains that function.
#[derive(Clone, Debug)]
pub(crate) struct Observer {
    pub(crate) operations: Arc<dyn OperationObserver>,
    observe: fn(Arc<dyn OperationObserver>, OperationTransport, Side) -> Box<dyn Observing>,
}

impl Observer {
    pub(in crate::peer) fn new(operations: Arc<dyn OperationObserver>) -> Self {
        Self { operations, observe: State::observe }
    }

    /// Observes a connection.
    pub(in crate::peer) fn connection(
        &self,
        config: &ConnectionConfig,
        role: Side,
        binding: Binding,
    ) -> Box<dyn Observing> {
        let protocol_name = binding.protocol_name();
        let known = config.transport.as_deref().cloned().unwrap_or_default();
        let transport = OperationTransport { protocol_name, ..known };
        (self.observe)(Arc::clone(&self.operations), transport, role)
    }
}

impl Observing for State {
    fn assert_consistent(&self, calls: &Calls, requests: &Requests) {
        assert!(self.current.is_none(), "no message is being handled");
        for call in self.sent.keys() {
            let call = calls.get(Key::from_number(*call));
            let is_sent = call.is_some_and(|call| {
                !matches!(
                    call.purpose,
                    Purpose::Waiting | Purpose::Task | Purpose::InputTask { .. }
                )
            });
            assert!(is_sent, "the operation of a call that has ended: {call:?}");
        }
        let pending: BTreeSet<Tag> =
            requests.iter().map(|(_, entry)| requests.tag(&entry.id)).collect();
        for tag in self.received.keys() {
            assert!(pending.contains(tag), "the operation of a request that was answered");
        }
    }

    // ------------------------------------------------------------------ the connection

    fn transport(&mut self) -> Option<&mut OperationTransport> {
        Some(&mut self.transport)
    }

    fn opened(&mut self, revision: Revision) {
        self.revision = Some(revision);
        if revision.era() == crate::Era::Legacy && self.session.is_none() {
            let (role, transport) = (self.role, &self.transport);
            self.session = self.observer.begin_session(role, revision, transport);
        }
    }

    fn session_ended(&mut self) {
        let session = self.session.take();
        self.end(session, OperationOutcome::Done);
    }

    fn closed(&mut self, reason: &CloseReason) {
        while let Some((_, sent)) = self.sent.pop_first() {
            self.end(sent.observation, OperationOutcome::Failed(&Failure::ConnectionLost));
        }
        let session = self.session.take();
        let outcome = match reason {
            CloseReason::Local | CloseReason::EndOfInput => OperationOutcome::Done,
            reason => OperationOutcome::Closed(reason),
        };
        self.end(session, outcome);
    }

    fn lost(&mut self) {
        while let Some((_, sent)) = self.sent.pop_first() {
            self.end(sent.observation, OperationOutcome::Failed(&Failure::ConnectionLost));
        }
        let session = self.session.take();
        self.end(session, OperationOutcome::Done);
        self.revision = None;
    }

    // ------------------------------------------------------------------ received

    // MCP 2026-07-28 otel:mcp#spans [TRACE-008]: each request and notification, before its checks.
    fn begin_received(
        &mut self,
        message: &Message<'_>,
        hasher: &KeyedHash,
        caller: Option<&Caller>,
    ) {
        let (method, id, params) = match message {
            Message::Request(request) => (&*request.method, Some(&request.id), &request.params),
            Message::Notification(sent) => (&*sent.method, None, &sent.params),
            Message::Response(_) => return,
        };
        let params = params.as_ref().unwrap_or(&RawJson::EMPTY_OBJECT);
        let meta = params.get("_meta");
        let named = meta.as_ref().and_then(|meta| meta.get(metadata::PROTOCOL_VERSION));
        let named = named.and_then(|named| Revision::parse(&named.to_text()?));
        if self.session.is_none() && named.is_some() {
            self.revision = named;
        }
        let begun = self.observer.begin(&Operation {
            direction: Direction::Received,
            role: self.role,
            method,
            id,
            params,
            meta,
            revision: named.or(self.revision),
            transport: &self.transport,
            caller,
            cause: Cause::Unknown,
        });
        self.current =
            begun.map(|observation| (id.map(|id| Tag::from_id(id, hasher)), observation));
    }

    fn received(&mut self, flow: &Flow<'_>) {
        let Some((tag, observation)) = self.current.take() else { return };
        match (tag, flow) {
            (_, Err(_) | Ok(Some(Event::Violation(_)))) => {
                self.end(Some(observation), OperationOutcome::Violation);
            }
            (None, Ok(_)) => self.end(Some(observation), OperationOutcome::Done),
            // The response follows later.
            (Some(tag), Ok(_)) => drop(self.received.insert(tag, observation)),
        }
    }

    fn tool_output(&mut self, output: ToolOutput<'_>) {
        self.tool_failed = match output {
            ToolOutput::Unknown => None,
            output => Some(matches!(output, ToolOutput::Failed)),
        };
    }

    fn keeps_result(&self, tag: Tag, method: Option<Method>) -> KeptResult {
        let wants = self.find(tag).is_some_and(|observation| observation.wants_result());
        let unknown = method == Some(Method::ToolsCall) && self.tool_failed.is_none();
        KeptResult((wants || unknown).then(RefCell::default))
    }

    fn answered(&mut self, tag: Tag, method: Option<Method>, kept: KeptResult) {
        let failed = self.tool_failed.take();
        let Some(observation) = self.take(tag) else { return };
        let text = kept.0.map(RefCell::into_inner).filter(|text| !text.is_empty());
        let result = text.map(RawJson::trusted_string);
        let is_error = || result.as_ref().is_some_and(is_tool_error);
        let failed = method == Some(Method::ToolsCall) && failed.unwrap_or_else(is_error);
        let outcome = if failed { OperationOutcome::ToolFailed } else { OperationOutcome::Done };
        let result = result.filter(|_| observation.wants_result());
        observation.end(&OperationEnd { result, ..self.end_of(outcome) });
    }

    fn answered_empty(&mut self, id: &RequestId, hasher: &KeyedHash) {
        self.answered(Tag::from_id(id, hasher), None, KeptResult(None));
    }

    fn refused(&mut self, tag: Tag, error: &ErrorObject<'_>) {
        self.tool_failed = None;
        let observation = self.take(tag);
        self.end(observation, OperationOutcome::Error(error));
    }

    fn cancelled(&mut self, tag: Tag) {
        let observation = self.received.remove(&tag);
        self.end(observation, OperationOutcome::Cancelled);
    }

    fn all_cancelled(&mut self) {
        while let Some((_, observation)) = self.received.pop_first() {
            self.end(Some(observation), OperationOutcome::Cancelled);
        }
    }

    fn observation(&self, id: &RequestId, hasher: &KeyedHash) -> Option<Arc<dyn Observation>> {
        self.find(Tag::from_id(id, hasher)).map(Arc::clone)
    }

    // ------------------------------------------------------------------ sent

    // MCP 2026-07-28 otel:mcp#context-propagation [TRACE-004]
    fn begin_call(
        &mut self,
        outgoing: &Outgoing<'_>,
        id: i64,
        params: &dyn WriteJson,
        options: &CallOptions<'_>,
        cause: Option<Tag>,
    ) -> Result<Begun, WriteError> {
        let context = options.context.clone();
        let revision = outgoing.parts.fixed.map(|fixed| fixed.revision);
        let meta = options.meta.as_ref();
        self.begin_sent(outgoing.method.as_str(), id, params, meta, revision, context, cause)
    }

    fn begin_round(
        &mut self,
        call: Key,
        (id, method): (i64, Method),
        params: &dyn WriteJson,
        meta: Option<&RawJson<'_>>,
        revision: Option<Revision>,
        context: Option<CallContext>,
    ) -> Result<Begun, WriteError> {
        if let Some(sent) = self.sent.remove(&call.to_number()) {
            // A listen stream that moves to another channel.
            self.end(sent.observation, OperationOutcome::Done);
        }
        self.begin_sent(method.as_str(), id, params, meta, revision, context, None)
    }

    fn called(&mut self, call: Key, begun: Begun) {
        if let Some(begun) = begun.0 {
            self.sent.insert(call.to_number(), begun.0);
        }
    }

    fn call_answered(&mut self, call: Key, outcome: &Result<RawJson<'_>, ErrorObject<'_>>) {
        let Some(sent) = self.sent.remove(&call.to_number()) else { return };
        let is_tool_call = sent.method == Some(Method::ToolsCall);
        let Some(observation) = sent.observation else { return };
        if sent.method == Some(Method::Initialize)
            && let Ok(result) = outcome
        {
            let named = result.get("protocolVersion");
            self.revision = named.and_then(|named| Revision::parse(&named.to_text()?));
        }
        let (outcome, result) = match outcome {
            Ok(result) if is_tool_call && is_tool_error(result) => {
                (OperationOutcome::ToolFailed, Some(result))
            }
            Ok(result) => (OperationOutcome::Done, Some(result)),
            Err(error) => (OperationOutcome::Error(error), None),
        };
        let result = result.filter(|_| observation.wants_result()).map(RawJson::borrow);
        observation.end(&OperationEnd { result, ..self.end_of(outcome) });
    }

    fn call_ended(&mut self, call: Key, failure: &Failure<'_>) {
        let Some(sent) = self.sent.remove(&call.to_number()) else { return };
        self.end(sent.observation, OperationOutcome::Failed(failure));
    }

    // MCP 2026-07-28 otel:mcp#context-propagation [TRACE-004] [TRACE-005]
    fn notify(
        &mut self,
        method: &str,
        params: Option<&dyn WriteJson>,
        cause: Tag,
    ) -> Option<RawJson<'static>> {
        let params = match params {
            Some(params) => to_shared_json(params).ok()?,
            None => RawJson::EMPTY_OBJECT,
        };
        let (meta, request) = (params.get("_meta"), self.find(cause).map(Arc::clone));
        let observation = self.observer.begin(&Operation {
            direction: Direction::Sent,
            role: self.role,
            method,
            id: None,
            params: &params,
            meta: meta.as_ref().map(RawJson::borrow),
            revision: self.revision,
            transport: &self.transport,
            caller: None,
            cause: request.as_deref().map_or(Cause::Unknown, Cause::Request),
        })?;
        let with = with_members(&*observation, meta.as_ref());
        self.end(Some(observation), OperationOutcome::Done);
        let mut text = String::from(r#"{"_meta":"#);
        text.push_str(with?.as_str());
        for member in params.members().filter(|member| !member.is_named("_meta")) {
            text.push(',');
            write_string(&mut text, &member.name());
            text.push(':');
            text.push_str(member.value.as_str());
        }
        text.push('}');
        Some(RawJson::trusted_string(text))
    }
}

impl State {
    fn observe(
        observer: Arc<dyn OperationObserver>,
        transport: OperationTransport,
        role: Side,
    ) -> Box<dyn Observing> {
        Box::new(Self {
            observer,
            role,
            revision: None,
            transport,
            current: None,
            received: BTreeMap::new(),
            sent: BTreeMap::new(),
            session: None,
            tool_failed: None,
        })
    }

    #[allow(clippy::too_many_arguments, reason = "the parts of one operation, used here only")]
    fn begin_sent(
        &mut self,
        method: &str,
        id: i64,
        params: &dyn WriteJson,
        meta: Option<&RawJson<'_>>,
        revision: Option<Revision>,
        context: Option<CallContext>,
        cause: Option<Tag>,
    ) -> Result<Begun, WriteError> {
        let request = cause.and_then(|tag| self.find(tag)).map(Arc::clone);
        let (id, params) = (RequestId::Number(id), to_shared_json(params)?);
        let observation = self.observer.begin(&Operation {
            direction: Direction::Sent,
            role: self.role,
            method,
            id: Some(&id),
            params: &params,
            meta: meta.map(RawJson::borrow),
            revision: revision.or(self.revision),
            transport: &self.transport,
            caller: None,
            cause: match (&context, &request) {
                (Some(context), _) => Cause::Call(context),
                (None, Some(request)) => Cause::Request(&**request),
                (None, None) => Cause::Unknown,
            },
        });
        let meta = observation.as_ref().and_then(|it| with_members(&**it, meta));
        let sent = Sent { observation, method: Method::parse(method) };
        Ok(Begun(Some(Box::new((sent, meta)))))
    }

    fn find(&self, tag: Tag) -> Option<&Arc<dyn Observation>> {
        match &self.current {
            Some((Some(current), observation)) if *current == tag => Some(observation),
            _ => self.received.get(&tag),
        }
    }

    /// Removes the request that a response answers: the current one before others with its id.
    fn take(&mut self, tag: Tag) -> Option<Arc<dyn Observation>> {
        let is_current = |current: &mut (Option<Tag>, _)| current.0 == Some(tag);
        match self.current.take_if(is_current) {
            Some((_, observation)) => Some(observation),
            None => self.received.remove(&tag),
        }
    }

    fn end(&self, observation: Option<Arc<dyn Observation>>, outcome: OperationOutcome<'_>) {
        if let Some(observation) = observation {
            observation.end(&self.end_of(outcome));
        }
    }

    fn end_of<'a>(&'a self, outcome: OperationOutcome<'a>) -> OperationEnd<'a> {
        let session_id = self.transport.session_id.as_deref();
        OperationEnd { outcome, revision: self.revision, session_id, result: None }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        for (_, Sent { observation, .. }) in core::mem::take(&mut self.sent) {
            self.end(observation, OperationOutcome::Failed(&Failure::ConnectionLost));
        }
        let (current, session) = (self.current.take(), self.session.take());
        let received = core::mem::take(&mut self.received).into_values();
        for observation in received.chain(current.map(|(_, observation)| observation)) {
            self.end(Some(observation), OperationOutcome::Cancelled);
        }
        self.end(session, OperationOutcome::Done);
    }
}

/// Returns whether a result reports the failure of a tool.
fn is_tool_error(result: &RawJson<'_>) -> bool {
    result.get("isError").is_some_and(|value| value.as_str() == "true")
}

/// Returns the members of `own` and those of the observation, as an object; `None` if the
/// observation adds no members.
fn with_members(
    observation: &dyn Observation,
    own: Option<&RawJson<'_>>,
) -> Option<RawJson<'static>> {
    let mut text = String::new();
    observation.meta(&mut |key, value| {
        if text.is_empty() {
            // Most observations add a trace context alone.
            text.reserve(128);
        }
        text.push(if text.is_empty() { '{' } else { ',' });
        write_string(&mut text, key);
        text.push(':');
        write_string(&mut text, value);
    });
    if text.is_empty() {
        return None;
    }
    let added = text.len();
    for member in own.into_iter().flat_map(RawJson::members) {
        let name = member.name();
        let mut replaced = Members::new(&text[..added]);
        if !replaced.any(|added| added.is_named(&name)) {
            text.push(',');
            write_string(&mut text, &name);
            text.push(':');
            text.push_str(member.value.as_str());
        }
    }
    text.push('}');
    Some(RawJson::trusted_string(text))
}

//! The operations in progress on a connection, for its observer.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use core::cell::RefCell;

use mcp_sansio_collections::Key;
use mcp_sansio_sync::Arc;

use crate::binding::{Binding, OperationTransport};
use crate::jsonrpc::{
    ErrorObject, Message, RawJson, RequestId, WriteError, WriteJson, to_shared_json, write_string,
};
use crate::protocol::{Method, Side, ToolOutput};
use crate::{Caller, Revision};

use super::call_context::CallContext;
use super::calls::{Calls, Purpose};
use super::connection::Flow;
use super::event::{CloseReason, Event, Failure};
use super::metadata;
use super::operation::{
    Cause, Direction, Observation, Operation, OperationEnd, OperationObserver, OperationOutcome,
    SessionStart,
};
use super::options::ConnectionConfig;
use super::outgoing::{CallOptions, Outgoing};
use super::queue::Tag;
use super::requests::Requests;

/// The operations in progress, if the connection has an observer. Nothing is allocated without one.
#[derive(Debug)]
pub(in crate::peer) struct Observed(Option<Box<State>>);

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

/// A call that has begun and is not written yet.
#[derive(Debug)]
pub(in crate::peer) struct Begun {
    sent: Option<Sent>,
    /// The members of `_meta`, those of the caller included.
    meta: Option<RawJson<'static>>,
}

impl Begun {
    const NONE: Self = Self { sent: None, meta: None };

    /// Returns the members to write in place of `own`.
    pub(in crate::peer) fn meta<'a>(
        &'a self,
        own: Option<&'a RawJson<'a>>,
    ) -> Option<&'a RawJson<'a>> {
        self.meta.as_ref().or(own)
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

impl Observed {
    pub(in crate::peer) fn new(config: &ConnectionConfig, role: Side, binding: Binding) -> Self {
        Self(config.observer.as_ref().map(|observer| {
            Box::new(State {
                observer: Arc::clone(observer),
                role,
                revision: None,
                transport: OperationTransport {
                    protocol_name: binding.protocol_name(),
                    ..config.transport.clone()
                },
                current: None,
                received: BTreeMap::new(),
                sent: BTreeMap::new(),
                session: None,
                tool_failed: None,
            })
        }))
    }

    /// Checks that each operation in progress belongs to a call or a request in progress.
    pub(in crate::peer) fn assert_consistent(&self, calls: &Calls, requests: &Requests) {
        let Some(state) = &self.0 else { return };
        assert!(state.current.is_none(), "no message is being handled");
        for call in state.sent.keys() {
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
        for tag in state.received.keys() {
            assert!(pending.contains(tag), "the operation of a request that was answered");
        }
    }

    // ------------------------------------------------------------------ the connection

    /// Changes the description of the connection.
    #[cfg(feature = "http")]
    pub(in crate::peer) fn change_transport(
        &mut self,
        change: impl FnOnce(&mut OperationTransport),
    ) {
        if let Some(state) = &mut self.0 {
            change(&mut state.transport);
        }
    }

    /// A handshake has succeeded, or a modern connection is open.
    pub(in crate::peer) fn opened(&mut self, revision: Revision) {
        let Some(state) = &mut self.0 else { return };
        state.revision = Some(revision);
        if revision.era() == crate::Era::Legacy && state.session.is_none() {
            let (role, transport) = (state.role, &state.transport);
            let start = SessionStart { role, revision, transport };
            state.session = state.observer.begin_session(&start);
        }
    }

    /// The session has ended, and the connection may have another one.
    pub(in crate::peer) fn session_ended(&mut self) {
        let Some(state) = &mut self.0 else { return };
        let session = state.session.take();
        state.end(session, OperationOutcome::Done);
    }

    /// The connection was closed: its calls and its session end.
    pub(in crate::peer) fn closed(&mut self, reason: &CloseReason) {
        let Some(state) = &mut self.0 else { return };
        while let Some((_, sent)) = state.sent.pop_first() {
            state.end(sent.observation, OperationOutcome::Failed(&Failure::ConnectionLost));
        }
        let session = state.session.take();
        let outcome = match reason {
            CloseReason::Local | CloseReason::EndOfInput => OperationOutcome::Done,
            reason => OperationOutcome::Closed(reason),
        };
        state.end(session, outcome);
    }

    /// The calls in progress end without a response, because their stream has ended.
    pub(in crate::peer) fn lost(&mut self) {
        let Some(state) = &mut self.0 else { return };
        while let Some((_, sent)) = state.sent.pop_first() {
            state.end(sent.observation, OperationOutcome::Failed(&Failure::ConnectionLost));
        }
        let session = state.session.take();
        state.end(session, OperationOutcome::Done);
        state.revision = None;
    }

    // ------------------------------------------------------------------ received

    /// A message was received. `tag` is that of a request.
    // MCP 2026-07-28 otel:mcp#spans [TRACE-008]: each request and notification, before its checks.
    pub(in crate::peer) fn begin_received(
        &mut self,
        message: &Message<'_>,
        tag: impl FnOnce(&RequestId) -> Tag,
        caller: Option<&Caller>,
    ) {
        let Some(state) = &mut self.0 else { return };
        let (method, id, params) = match message {
            Message::Request(request) => (&*request.method, Some(&request.id), &request.params),
            Message::Notification(sent) => (&*sent.method, None, &sent.params),
            Message::Response(_) => return,
        };
        let params = params.as_ref().unwrap_or(&RawJson::EMPTY_OBJECT);
        let meta = params.get("_meta");
        let named = meta.as_ref().and_then(|meta| meta.get(metadata::PROTOCOL_VERSION));
        let named = named.and_then(|named| Revision::parse(&named.to_text()?));
        if state.session.is_none() && named.is_some() {
            state.revision = named;
        }
        let begun = state.observer.begin(&Operation {
            direction: Direction::Received,
            role: state.role,
            method,
            id,
            params,
            meta,
            revision: named.or(state.revision),
            transport: &state.transport,
            caller,
            cause: Cause::Unknown,
        });
        state.current = begun.map(|observation| (id.map(tag), observation));
    }

    /// The message was handled, with this outcome.
    pub(in crate::peer) fn received(&mut self, flow: &Flow<'_>) {
        let Some(state) = &mut self.0 else { return };
        let Some((tag, observation)) = state.current.take() else { return };
        match (tag, flow) {
            (_, Err(_) | Ok(Some(Event::Violation(_)))) => {
                state.end(Some(observation), OperationOutcome::Violation);
            }
            (None, Ok(_)) => state.end(Some(observation), OperationOutcome::Done),
            // The response follows later.
            (Some(tag), Ok(_)) => drop(state.received.insert(tag, observation)),
        }
    }

    /// Notes what the next result says about its tool.
    pub(in crate::peer) fn tool_output(&mut self, output: ToolOutput<'_>) {
        let Some(state) = &mut self.0 else { return };
        state.tool_failed = match output {
            ToolOutput::Unknown => None,
            output => Some(matches!(output, ToolOutput::Failed)),
        };
    }

    /// Returns the place for a copy of the result that answers a request.
    pub(in crate::peer) fn keeps_result(&self, tag: Tag, method: Option<Method>) -> KeptResult {
        let Some(state) = &self.0 else { return KeptResult(None) };
        let wants = state.find(tag).is_some_and(|observation| observation.wants_result());
        let unknown = method == Some(Method::ToolsCall) && state.tool_failed.is_none();
        KeptResult((wants || unknown).then(RefCell::default))
    }

    /// A result for a request of the peer was queued.
    pub(in crate::peer) fn answered(&mut self, tag: Tag, method: Option<Method>, kept: KeptResult) {
        let Some(state) = &mut self.0 else { return };
        let failed = state.tool_failed.take();
        let Some(observation) = state.take(tag) else { return };
        let text = kept.0.map(RefCell::into_inner).filter(|text| !text.is_empty());
        let result = text.map(RawJson::trusted_string);
        let is_error = || result.as_ref().is_some_and(is_tool_error);
        let failed = method == Some(Method::ToolsCall) && failed.unwrap_or_else(is_error);
        let outcome = if failed { OperationOutcome::ToolFailed } else { OperationOutcome::Done };
        let result = result.filter(|_| observation.wants_result());
        observation.end(&OperationEnd { result, ..state.end_of(outcome) });
    }

    /// An empty result for a request of the peer was queued.
    pub(in crate::peer) fn answered_empty(&mut self, tag: Tag) {
        self.answered(tag, None, KeptResult(None));
    }

    /// An error for a request of the peer was queued.
    pub(in crate::peer) fn refused(&mut self, tag: Tag, error: &ErrorObject<'_>) {
        let Some(state) = &mut self.0 else { return };
        state.tool_failed = None;
        let observation = state.take(tag);
        state.end(observation, OperationOutcome::Error(error));
    }

    /// A request of the peer needs no response any more.
    pub(in crate::peer) fn cancelled(&mut self, tag: Tag) {
        let Some(state) = &mut self.0 else { return };
        let observation = state.received.remove(&tag);
        state.end(observation, OperationOutcome::Cancelled);
    }

    /// All requests of the peer were dropped.
    pub(in crate::peer) fn all_cancelled(&mut self) {
        let Some(state) = &mut self.0 else { return };
        while let Some((_, observation)) = state.received.pop_first() {
            state.end(Some(observation), OperationOutcome::Cancelled);
        }
    }

    /// Returns the observation of a peer's request.
    pub(in crate::peer) fn observation(&self, tag: Tag) -> Option<Arc<dyn Observation>> {
        self.0.as_ref()?.find(tag).map(Arc::clone)
    }

    // ------------------------------------------------------------------ sent

    /// A call is about to be written. `cause` is the request of the peer that it belongs to.
    // MCP 2026-07-28 otel:mcp#context-propagation [TRACE-004]
    pub(in crate::peer) fn begin_call(
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

    /// A call is about to be written for a further round.
    pub(in crate::peer) fn begin_round(
        &mut self,
        call: Key,
        (id, method): (i64, Method),
        params: &dyn WriteJson,
        meta: Option<&RawJson<'_>>,
        revision: Option<Revision>,
        context: Option<CallContext>,
    ) -> Result<Begun, WriteError> {
        let Some(state) = &mut self.0 else { return Ok(Begun::NONE) };
        if let Some(sent) = state.sent.remove(&call.to_number()) {
            // A listen stream that moves to another channel.
            state.end(sent.observation, OperationOutcome::Done);
        }
        self.begin_sent(method.as_str(), id, params, meta, revision, context, None)
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
        let Some(state) = &mut self.0 else { return Ok(Begun::NONE) };
        let request = cause.and_then(|tag| state.find(tag)).map(Arc::clone);
        let (id, params) = (RequestId::Number(id), to_shared_json(params)?);
        let observation = state.observer.begin(&Operation {
            direction: Direction::Sent,
            role: state.role,
            method,
            id: Some(&id),
            params: &params,
            meta: meta.map(RawJson::borrow),
            revision: revision.or(state.revision),
            transport: &state.transport,
            caller: None,
            cause: match (&context, &request) {
                (Some(context), _) => Cause::Call(context),
                (None, Some(request)) => Cause::Request(&**request),
                (None, None) => Cause::Unknown,
            },
        });
        let meta = observation.as_ref().and_then(|it| with_members(&**it, meta));
        let sent = Sent { observation, method: Method::parse(method) };
        Ok(Begun { sent: Some(sent), meta })
    }

    /// The call was written.
    pub(in crate::peer) fn called(&mut self, call: Key, begun: Begun) {
        if let Some(state) = &mut self.0
            && let Some(sent) = begun.sent
        {
            state.sent.insert(call.to_number(), sent);
        }
    }

    /// The response to a call was received.
    pub(in crate::peer) fn call_answered(
        &mut self,
        call: Key,
        outcome: &Result<RawJson<'_>, ErrorObject<'_>>,
    ) {
        let Some(state) = &mut self.0 else { return };
        let Some(sent) = state.sent.remove(&call.to_number()) else { return };
        let is_tool_call = sent.method == Some(Method::ToolsCall);
        let Some(observation) = sent.observation else { return };
        if sent.method == Some(Method::Initialize)
            && let Ok(result) = outcome
        {
            let named = result.get("protocolVersion");
            state.revision = named.and_then(|named| Revision::parse(&named.to_text()?));
        }
        let (outcome, result) = match outcome {
            Ok(result) if is_tool_call && is_tool_error(result) => {
                (OperationOutcome::ToolFailed, Some(result))
            }
            Ok(result) => (OperationOutcome::Done, Some(result)),
            Err(error) => (OperationOutcome::Error(error), None),
        };
        let result = result.filter(|_| observation.wants_result()).map(RawJson::borrow);
        observation.end(&OperationEnd { result, ..state.end_of(outcome) });
    }

    /// A call has ended.
    pub(in crate::peer) fn call_ended(&mut self, call: Key, failure: &Failure<'_>) {
        let Some(state) = &mut self.0 else { return };
        let Some(sent) = state.sent.remove(&call.to_number()) else { return };
        state.end(sent.observation, OperationOutcome::Failed(failure));
    }

    /// A notification is about to be written for the request with the tag `cause`. Returns its
    /// parameters with the members of its observation.
    // MCP 2026-07-28 otel:mcp#context-propagation [TRACE-004] [TRACE-005]
    pub(in crate::peer) fn notify(
        &mut self,
        method: &str,
        params: Option<&dyn WriteJson>,
        cause: Tag,
    ) -> Option<RawJson<'static>> {
        let state = self.0.as_mut()?;
        let params = match params {
            Some(params) => to_shared_json(params).ok()?,
            None => RawJson::EMPTY_OBJECT,
        };
        let (meta, request) = (params.get("_meta"), state.find(cause).map(Arc::clone));
        let observation = state.observer.begin(&Operation {
            direction: Direction::Sent,
            role: state.role,
            method,
            id: None,
            params: &params,
            meta: meta.as_ref().map(RawJson::borrow),
            revision: state.revision,
            transport: &state.transport,
            caller: None,
            cause: request.as_deref().map_or(Cause::Unknown, Cause::Request),
        })?;
        let with = with_members(&*observation, meta.as_ref());
        state.end(Some(observation), OperationOutcome::Done);
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
    let mut added: alloc::vec::Vec<(String, String)> = alloc::vec::Vec::new();
    observation.meta(&mut |key, value| added.push((key.into(), value.into())));
    if added.is_empty() {
        return None;
    }
    let mut text = String::from("{");
    for (key, value) in &added {
        if text.len() > 1 {
            text.push(',');
        }
        write_string(&mut text, key);
        text.push(':');
        write_string(&mut text, value);
    }
    for member in own.into_iter().flat_map(RawJson::members) {
        let name = member.name();
        if added.iter().all(|(key, _)| *key != *name) {
            text.push(',');
            write_string(&mut text, &name);
            text.push(':');
            text.push_str(member.value.as_str());
        }
    }
    text.push('}');
    Some(RawJson::trusted_string(text))
}

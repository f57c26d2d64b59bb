//! Input rounds: how a handler obtains input from the user or the host, in either era.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use mcp_sansio_collections::{Key, Slab};

use crate::jsonrpc::{AsJson, ErrorObject, RawJson, WriteJson, write_string};
use crate::peer::calls::{Calls, Purpose};
use crate::peer::error::CommandError;
use crate::peer::event::{Event, Failure, InputResponseParams, Keyed, Request};
use crate::peer::handle::RequestHandle;
use crate::peer::method_name::MethodName;
use crate::peer::outbox::Channel;
use crate::peer::outgoing::{CallOptions, Outgoing};
use crate::peer::requests::{RequestOwner, Requests};
use crate::protocol::{
    AtRevision, CallToolResult, Capabilities, Capability, InputRequest, InputRequiredResult, Map,
    Method,
};
use crate::{Era, Instant, Revision};

use super::Server;
use super::input_tasks::{TaskSteps, asked_task};
use super::result_body::Body;

/// The input requests of one round in a legacy session.
#[derive(Debug)]
pub(in crate::peer) struct Round {
    /// The request to deliver to the application again once all input requests are answered. If the
    /// application passed in an owned request, the data is shared by reference count.
    request: Request<'static>,
    state: Option<String>,
    pub(super) questions: Vec<PendingInput>,
    waiting: usize,
    /// Number of bytes that count against the limit.
    pub(super) bytes: usize,
    /// Set if an input request of the round asks for a task.
    pub(super) task_steps: Option<&'static TaskSteps>,
}

#[derive(Debug)]
pub(in crate::peer) struct PendingInput {
    key: String,
    pub(super) call: Option<Key>,
    answer: Option<Result<RawJson<'static>, ErrorObject<'static>>>,
}

impl Round {
    /// Returns the key of the request that waits for the round.
    pub(super) const fn request_key(&self) -> Key {
        self.request.handle.key
    }
}

impl Round {
    /// Checks the round, whose key is `key`. Returns the number of bytes that it holds.
    pub(super) fn assert_consistent(&self, key: Key, requests: &Requests, calls: &Calls) -> usize {
        let owner = requests.get(self.request_key()).map(|entry| &entry.owner);
        let waits = matches!(owner, Some(RequestOwner::Input { round }) if *round == key);
        assert!(waits, "a round without its request");
        let mut open = 0;
        for (question, at) in self.questions.iter().zip(0..) {
            let call = question.call.and_then(|call| calls.get(call));
            let is_pending = call.is_some_and(|call| match call.purpose {
                Purpose::Input { round, index } | Purpose::InputTask { round, index } => {
                    (round, index) == (key, at)
                }
                _ => false,
            });
            assert_eq!(is_pending, question.answer.is_none(), "an input request and its call");
            open += usize::from(is_pending);
        }
        assert_eq!(self.waiting, open, "open input requests of a round");
        assert!(open > 0, "a round that waits for nothing");
        self.bytes
    }
}

impl Server {
    pub(super) fn send_input_requests(
        &mut self,
        request: &Request<'_>,
        required: &InputRequiredResult,
        now: Instant,
    ) -> Result<(), CommandError> {
        let handle = request.handle;
        let revision = self.revision_of_request(handle)?;
        let Some(entry) = self.connection.requests.get(handle.key) else {
            return Err(CommandError::NotDue);
        };
        let questions = required.input_requests.as_ref();
        let count = questions.map_or(0, |questions| questions.iter().count());
        // MCP 2026-07-28 basic/patterns/mrtr#server-requirements-basic-workflow [MRTR-002]
        // [MRTR-003] [MRTR-004]
        let unknown = |question: &InputRequest| {
            question.method().is_none()
                && (revision.era() == Era::Modern || other_request(question).is_none())
        };
        // MCP 2025-11-25 basic/utilities/tasks#input-required-status [TASK-015]: input requests of
        // a task are sent on the channel of the request that waits for its result.
        let waits_for_task = entry.method == Some(Method::TasksResult);
        let not_allowed = if !waits_for_task
            && !entry.method.is_some_and(Method::allows_input_rounds)
        {
            Some(
                "only tools/call, prompts/get and resources/read can be answered with input requests",
            )
        } else if count == 0 && required.request_state.is_none() {
            Some("input required, but neither questions nor a state")
        } else if count > self.connection.config.limits.inputs_per_round_max {
            Some("more input requests than one round may have")
        } else if questions.into_iter().flat_map(Map::iter).any(|(_, question)| unknown(question)) {
            Some("an input request with an unknown method")
        } else if entry.rounds >= self.connection.config.limits.rounds_max {
            Some("more input rounds than the limit allows")
        } else if revision.era() == Era::Legacy && self.connection.closed.is_some() {
            Some("the connection is closed, so no input can be requested")
        } else if revision.era() == Era::Legacy && count > 0 && !self.is_initialized() {
            // MCP 2025-11-25 basic/lifecycle#initialization [LIFE-005]
            Some("the client has not confirmed the session yet, so no input can be requested")
        } else if revision.era() == Era::Legacy
            && round_bytes(request, required) > self.input_room()
        {
            Some("the pending input exceeds the limit")
        } else {
            None
        };
        if let Some(what) = not_allowed {
            self.send_error(handle, ErrorObject::internal(what))?;
            return Err(CommandError::InputNotAllowed(what));
        }
        // MCP 2026-07-28 basic/patterns/mrtr#server-requirements-basic-workflow [MRTR-005],
        // MCP 2026-07-28 basic/index#_meta [CAP-021]
        // MCP 2025-11-25 client/elicitation#capabilities [ELIC-001] [ELIC-005],
        // MCP 2025-11-25 client/sampling#capabilities [SAMP-001],
        // MCP 2025-11-25 client/roots#listing-roots [ROOT-001]
        let missing = questions.and_then(|them| them.missing(entry.capabilities, revision));
        if let Some(capability) = missing {
            match (revision.era(), entry.method) {
                (Era::Modern, _) => self.send_error(handle, capability.missing())?,
                // A tool result for the model, which may continue without the input.
                // MCP 2025-11-25 schema.json#CallToolResult [TOOL-008]
                (Era::Legacy, Some(Method::ToolsCall)) => {
                    let text = missing_text(capability, revision);
                    self.send_result(handle, &CallToolResult::error(text))?;
                }
                (Era::Legacy, _) => {
                    let text = missing_text(capability, revision);
                    self.send_error(handle, ErrorObject::internal(text))?
                }
            }
            return Err(CommandError::NotDeclared(capability));
        }
        match revision.era() {
            Era::Modern => {
                let entry = self.take_request(handle)?;
                let result = AsJson(&AtRevision(required, revision));
                self.finish_answer(
                    &entry.id,
                    entry.method,
                    revision,
                    entry.reply,
                    Body::new(&result),
                )?;
                Ok(())
            }
            Era::Legacy => self.ask(request, required, revision, now),
        }
    }

    fn revision_of_request(&self, handle: RequestHandle) -> Result<Revision, CommandError> {
        match self.connection.requests.get(handle.key) {
            Some(entry) if matches!(entry.owner, RequestOwner::Application) => Ok(entry.revision),
            _ => Err(CommandError::NotDue),
        }
    }

    /// Sends the input requests of a round as requests of this side.
    fn ask(
        &mut self,
        request: &Request<'_>,
        required: &InputRequiredResult,
        revision: Revision,
        now: Instant,
    ) -> Result<(), CommandError> {
        let handle = request.handle;
        let bytes = round_bytes(request, required);
        self.input_bytes += bytes;
        let mut request = request.clone().into_owned();
        request.inputs = InputResponseParams::default();
        let questions: Vec<PendingInput> = required
            .input_requests
            .iter()
            .flat_map(|questions| questions.iter())
            .map(|(key, _)| PendingInput { key: key.into(), call: None, answer: None })
            .collect();
        let waiting = questions.len();
        // MCP 2025-11-25 basic/transports#sending-messages-to-the-server [HSRV-018]
        let entry = self.connection.requests.get(handle.key);
        let channel = entry.map_or(Channel::UNSOLICITED, |entry| entry.reply.channel);
        let client = entry.map_or(Capabilities::NONE, |entry| entry.capabilities);
        let state = required.request_state.clone();
        let round = Round { request, state, questions, waiting, bytes, task_steps: None };
        let round = self.rounds.insert(round);
        if let Some(entry) = self.connection.requests.get_mut(handle.key) {
            entry.rounds += 1;
            entry.owner = RequestOwner::Input { round };
        }
        let asked = required.input_requests.iter().flat_map(|questions| questions.iter());
        for ((_, question), index) in asked.zip(0..) {
            let other = other_request(question);
            let method = match (question.method(), &other) {
                (Some(method), _) => MethodName::Known(method),
                (None, Some((method, _))) => MethodName::Other((&**method).into()),
                (None, None) => continue,
            };
            let purpose = Purpose::Input { round, index };
            let outgoing = Outgoing { channel, ..Outgoing::new(&method, purpose) };
            let mut options =
                CallOptions::default().timeout(self.connection.config.timeouts.call_hard);
            let task = asked_task(question, client, revision);
            if let Some(task) = &task {
                options = options.timeout_hard(task.patience);
            }
            let of_protocol = question.params_for(task.as_ref().map(|task| task.task));
            let of_protocol = AtRevision(&of_protocol, revision);
            let of_protocol = AsJson(&of_protocol);
            let params: &dyn WriteJson = match &other {
                Some((_, params)) => params,
                None => &of_protocol,
            };
            let cause = Some(self.connection.tag_of(handle.key));
            let started = self.connection.start_call(outgoing, params, &options, cause, now);
            match started {
                Ok(call) => {
                    if let Some(task) = &task {
                        self.connection.calls.augment(call, task.lasts);
                    }
                    if let Some(round) = self.rounds.get_mut(round) {
                        round.questions[index as usize].call = Some(call);
                        round.task_steps = task.map(|task| task.steps).or(round.task_steps);
                    }
                }
                Err(error) => {
                    let message = alloc::string::ToString::to_string(&error);
                    self.complete_input(round, index, Err(ErrorObject::internal(message)));
                }
            }
        }
        if waiting == 0 {
            // There is only a state: the application wants to be called again.
            self.finish_round(round);
        }
        Ok(())
    }

    /// Returns how many more bytes input rounds may store.
    pub(super) fn input_room(&self) -> usize {
        self.connection.config.limits.input_bytes_max.saturating_sub(self.input_bytes)
    }

    fn remove_round(&mut self, key: Key) -> Option<Round> {
        let round = self.rounds.remove(key)?;
        self.input_bytes -= round.bytes;
        Some(round)
    }

    pub(super) fn input_answered(
        &mut self,
        round: Key,
        index: u32,
        outcome: Result<RawJson<'_>, ErrorObject<'_>>,
    ) {
        let length = match &outcome {
            Ok(result) => result.as_str().len(),
            Err(error) => error.message.len() + error.data.as_ref().map_or(0, |d| d.as_str().len()),
        };
        if length > self.input_room() {
            return self.input_failed(round, index, "the input response is too long to be stored");
        }
        if let Some(round) = self.rounds.get_mut(round) {
            round.bytes += length;
            self.input_bytes += length;
        }
        let outcome = outcome.map(RawJson::into_owned).map_err(ErrorObject::into_owned);
        self.complete_input(round, index, outcome);
    }

    pub(super) fn input_failed(&mut self, round: Key, index: u32, why: &'static str) {
        self.complete_input(round, index, Err(ErrorObject::internal(why)));
    }

    fn complete_input(
        &mut self,
        key: Key,
        index: u32,
        outcome: Result<RawJson<'static>, ErrorObject<'static>>,
    ) {
        let Some(round) = self.rounds.get_mut(key) else { return };
        let question = &mut round.questions[index as usize];
        question.call = None;
        question.answer = Some(outcome);
        round.waiting -= 1;
        if round.waiting == 0 {
            self.finish_round(key);
        }
    }

    /// Ends a round with all input requests answered: delivers the request to the application
    /// again, as if the client had sent it again.
    fn finish_round(&mut self, key: Key) {
        let Some(round) = self.remove_round(key) else { return };
        let Round { mut request, state, questions, .. } = round;
        // Allocated once, because the responses exist while the text grows.
        let length = |question: &PendingInput| {
            let answer = question.answer.as_ref().and_then(|answer| answer.as_ref().ok());
            answer.map_or(0, |answer| question.key.len() + answer.as_str().len() + 4)
        };
        let length: usize = questions.iter().map(length).sum();
        let (mut responses, mut refused) = (String::with_capacity(length + 2), Keyed::new());
        responses.push('{');
        for PendingInput { key, answer, .. } in questions {
            match answer {
                Some(Ok(result)) => {
                    if responses.len() > 1 {
                        responses.push(',');
                    }
                    write_string(&mut responses, &key);
                    responses.push(':');
                    responses.push_str(result.as_str());
                }
                Some(Err(error)) => refused.push((key, error)),
                None => {}
            }
        }
        responses.push('}');
        request.inputs = InputResponseParams {
            responses: Some(RawJson::trusted_shared(responses.into())),
            state: state.map(Into::into),
            refused: (!refused.is_empty()).then(|| Box::from(refused)),
        };
        if let Some(entry) = self.connection.requests.get_mut(request.handle.key) {
            entry.owner = RequestOwner::Application;
            self.connection.events.push_back(Event::Request(request));
        }
    }

    /// Cancels the input requests of a round whose request was cancelled.
    pub(super) fn abandon_round(&mut self, key: Key, now: Instant) {
        let Some(round) = self.remove_round(key) else { return };
        for call in round.questions.iter().filter_map(|question| question.call) {
            self.connection.observed.call_ended(call, &Failure::Cancelled);
            if let Some(call) = self.connection.calls.remove(call) {
                self.give_up_input(round.task_steps, call, "the request was cancelled", now);
            }
        }
    }

    /// Fails all rounds after the connection was closed, because their input cannot arrive any
    /// more. The client is notified.
    pub(super) fn fail_rounds(&mut self) {
        let mut slot = 0;
        while let Some(key) = self
            .connection
            .requests
            .find_from(slot, |entry| matches!(entry.owner, RequestOwner::Input { .. }))
        {
            slot = key.slot + 1;
            if let Some(entry) = self.connection.requests.remove(key) {
                let error = ErrorObject::internal("the required input cannot arrive any more");
                self.answer_error(&entry.id, &error, entry.reply);
            }
        }
        self.rounds = Slab::new();
        self.input_bytes = 0;
    }

    /// Drops all requests without a response after the application closed the connection.
    pub(super) fn drop_requests(&mut self) {
        let mut slot = 0;
        while let Some(key) = self.connection.requests.find_from(slot, |_| true) {
            slot = key.slot + 1;
            if let Some(entry) = self.connection.requests.remove(key) {
                self.connection.observed.cancelled(self.connection.tag(&entry.id));
                self.withdraw(entry.reply);
            }
        }
        self.rounds = Slab::new();
        self.input_bytes = 0;
    }
}

/// Returns the number of bytes that a round stores from its start.
fn round_bytes(request: &Request<'_>, required: &InputRequiredResult) -> usize {
    let names = required.input_requests.iter().flat_map(Map::iter).map(|(name, _)| name.len());
    let state = required.request_state.as_ref().map_or(0, String::len);
    request.params.as_str().len() + state + names.sum::<usize>()
}

/// Returns the method and the parameters of an extension's request, if it is well-formed. Only
/// legacy sessions have such requests of a server.
// MCP 2026-07-28 extensions:SEP-3371-summary#2-custom-methods [EXT-025]
fn other_request(question: &InputRequest) -> Option<(String, RawJson<'static>)> {
    let InputRequest::Unknown(request) = question else { return None };
    let request = request.as_raw();
    let method = request.get("method")?.to_text()?.into_owned();
    let params = request.get("params").map_or(RawJson::EMPTY_OBJECT, RawJson::into_owned);
    (Method::parse(&method).is_none() && params.is_object()).then_some((method, params))
}

/// Says to a legacy client which capability an input request needs: it can declare only those of
/// its revision.
fn missing_text(capability: Capability, revision: Revision) -> Cow<'static, str> {
    let since = match capability {
        Capability::Elicitation => Revision::V2025_06_18,
        Capability::ElicitationUrl => Revision::V2025_11_25,
        _ => Revision::V2024_11_05,
    };
    if revision >= since {
        return capability.missing().message;
    }
    let path = capability.path();
    format!("the request needs the client capability `{path}`, which is new in revision {since}")
        .into()
}

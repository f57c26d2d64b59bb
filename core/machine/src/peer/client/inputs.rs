//! Input requests to the host: requests of a legacy server, and input rounds of a call to a modern
//! one.

use alloc::string::String;
use alloc::vec::Vec;

use mcp_sansio_collections::Key;

use crate::gate::members::check_repeats;
use crate::jsonrpc::{
    ErrorObject, RawJson, WriteError, WriteJson, to_shared_json, write_result, write_string,
};
use crate::peer::Exchanged;
use crate::peer::calls::{Call, Calls};
use crate::peer::connection::Flow;
use crate::peer::error::CommandError;
use crate::peer::event::{Ended, Event, Failure, InputRequested};
use crate::peer::handle::{CallHandle, InputHandle, InputSource, RequestHandle};
use crate::peer::input_support::unsupported_input;
use crate::peer::outbox::{Channel, Lane, Part, Verdict};
use crate::peer::outgoing::MetaParts;
use crate::protocol::{Capabilities, JsonAtRevision, Method, Side, WriteJsonAt};
use crate::{Instant, Revision};

use super::Client;

/// Length of the shortest possible input request, in bytes: `"":{"method":"roots/list"}`.
pub(in crate::peer) const INPUT_REQUEST_LENGTH_MIN: usize = 25;

/// One input round of a call: the server's input requests and the host's responses so far.
#[derive(Debug)]
pub(in crate::peer) struct Round {
    call: Key,
    number: u32,
    /// The server's state as JSON text, returned to it unchanged.
    state: Option<RawJson<'static>>,
    questions: Vec<PendingInput>,
    waiting: usize,
    /// Number of bytes that count against the limit.
    bytes: usize,
}

#[derive(Debug)]
pub(in crate::peer) struct PendingInput {
    key: String,
    answer: Option<RawJson<'static>>,
}

impl Round {
    /// Checks the round, whose key is `key`. Returns the number of bytes that it holds.
    pub(super) fn assert_consistent(&self, key: Key, calls: &Calls) -> usize {
        let call = calls.get(self.call).and_then(|call| call.repeat.as_ref());
        assert_eq!(call.and_then(|call| call.round), Some(key), "a round without its call");
        let open = self.questions.iter().filter(|question| question.answer.is_none()).count();
        assert_eq!(self.waiting, open, "open input requests of a round");
        assert!(open > 0, "a round that waits for nothing");
        self.bytes
    }
}

impl Client {
    /// Handles a result that asks for input.
    // MCP 2026-07-28 basic/patterns/mrtr#client-requirements-basic-workflow [MRTR-010] [MRTR-011]
    pub(super) fn input_required<'f>(
        &mut self,
        key: Key,
        result: &RawJson<'f>,
        now: Instant,
    ) -> Flow<'f> {
        let fail = |client: &mut Self, failure| {
            client.connection.calls.remove(key);
            let call = CallHandle::new(key);
            Ok(Some(Event::Ended(Ended::new(call, Err(failure)))))
        };
        let (mut asked, mut state, mut repeated) = (None, None, false);
        for member in result.walk() {
            let before = match &*member.name() {
                _ if member.value.as_str() == "null" => None,
                "inputRequests" => asked.replace(member.value),
                "requestState" => state.replace(member.value),
                _ => None,
            };
            repeated |= before.is_some();
        }
        // PHP writes its empty map as a list.
        let asked = asked.filter(|asked| !asked.view().is_empty_array());
        let fault = if repeated {
            Some("`inputRequests` or `requestState` is repeated")
        } else if !asked.as_ref().is_none_or(RawJson::is_object) {
            Some("`inputRequests` is not an object")
        } else if state.as_ref().is_some_and(|state| state.to_text().is_none()) {
            Some("`requestState` is not a string")
        } else {
            None
        };
        if let Some(fault) = fault {
            return fail(self, Failure::InvalidAnswer(fault));
        }
        if asked.is_none() && state.is_none() {
            return fail(
                self,
                Failure::InvalidAnswer(
                    "the result requires input but has neither input requests nor a state",
                ),
            );
        }
        let limits = self.connection.config.limits.clone();
        let Some(repeat) = self.connection.calls.get_mut(key).and_then(|c| c.repeat.as_mut())
        else {
            return fail(self, Failure::InvalidAnswer("this call does not accept input requests"));
        };
        repeat.rounds += 1;
        let number = repeat.rounds;
        if number > limits.rounds_max {
            return fail(self, Failure::TooManyRounds { limit: limits.rounds_max });
        }
        let Some(session) = &self.session else { return Ok(None) };
        let (client, revision) = (session.client, session.revision);
        // The input requests are events for the application, but may be queued for a while.
        let length = |value: &Option<RawJson<'_>>| value.as_ref().map_or(0, |v| v.as_str().len());
        let bytes = length(&state) + length(&asked);
        let limit = limits.input_bytes_max;
        if bytes > limit.saturating_sub(self.input_bytes) {
            return fail(self, Failure::TooMuchInput { limit });
        }
        let mut round = Round {
            call: key,
            number,
            state: state.map(RawJson::into_owned),
            questions: Vec::new(),
            waiting: 0,
            bytes,
        };
        let mut inputs = Vec::new();
        for (member, index) in asked.iter().flat_map(RawJson::walk).zip(0_u32..) {
            if inputs.len() >= limits.inputs_per_round_max {
                return fail(self, Failure::InvalidAnswer("too many input requests in one round"));
            }
            let name = member.name();
            // Their number is bounded above.
            if round.questions.iter().any(|it| *it.key == *name) {
                return fail(self, Failure::InvalidAnswer("an input request is repeated"));
            }
            let Some((method, params)) = question(&member.value, client, revision) else {
                return fail(
                    self,
                    Failure::InvalidAnswer("an input request that this client does not support"),
                );
            };
            let handle = InputHandle(InputSource::Round { call: key, round: number, index });
            let call = Some(CallHandle::new(key));
            inputs.push(InputRequested { handle, method, params, revision, call });
            round.questions.push(PendingInput { key: name.into_owned(), answer: None });
            round.waiting += 1;
        }
        if round.waiting == 0 {
            self.next_round(&round, now);
            return Ok(None);
        }
        self.connection.calls.park(key, now);
        self.input_bytes += bytes;
        let round = self.rounds.insert(round);
        self.set_round(key, Some(round));
        let mut inputs = inputs.into_iter().map(Event::InputRequested);
        let first = inputs.next();
        self.connection.events.extend(inputs.map(Event::into_owned));
        Ok(first)
    }

    pub(super) fn take_answer(
        &mut self,
        input: InputHandle,
        result: &dyn WriteJsonAt,
        now: Instant,
    ) -> Result<(), CommandError> {
        let revision = self.session.as_ref().ok_or(CommandError::NotDue)?.revision;
        let result = &JsonAtRevision(result, revision);
        match input.0 {
            InputSource::Request(key) => self.send_result(RequestHandle::new(key), result),
            InputSource::Round { call, round, index } => {
                let (key, open) = self.round_of(call, round).ok_or(CommandError::NotDue)?;
                let question =
                    open.questions.get_mut(index as usize).ok_or(CommandError::NotDue)?;
                if question.answer.is_some() {
                    return Err(CommandError::NotDue);
                }
                let answer = to_shared_json(result)?;
                if !answer.is_object() {
                    return Err(WriteError::NotAnObject.into());
                }
                let length = answer.as_str().len();
                question.answer = Some(answer);
                open.waiting -= 1;
                open.bytes += length;
                let done = open.waiting == 0;
                self.input_bytes += length;
                if done && let Some(round) = self.remove_round(key) {
                    self.set_round(call, None);
                    self.next_round(&round, now);
                }
                Ok(())
            }
        }
    }

    // MCP 2025-11-25 client/sampling#error-handling [SAMP-012]
    pub(super) fn take_refusal(
        &mut self,
        input: InputHandle,
        error: ErrorObject<'_>,
    ) -> Result<(), CommandError> {
        match input.0 {
            InputSource::Request(key) => self.send_error(RequestHandle::new(key), error),
            InputSource::Round { call, round, index } => {
                let (_, open) = self.round_of(call, round).ok_or(CommandError::NotDue)?;
                let question =
                    open.questions.get_mut(index as usize).ok_or(CommandError::NotDue)?;
                if question.answer.is_some() {
                    return Err(CommandError::NotDue);
                }
                let key = core::mem::take(&mut question.key);
                question.answer = Some(RawJson::NULL);
                let error = error.into_owned();
                if let Some(entry) = self.connection.calls.remove(call) {
                    self.drop_round(&entry);
                    self.connection.end_call(call, Failure::InputRefused { key, error });
                }
                Ok(())
            }
        }
    }

    pub(super) fn send_result(
        &mut self,
        request: RequestHandle,
        result: &dyn WriteJson,
    ) -> Result<(), CommandError> {
        let entry = self.connection.requests.get(request.key).ok_or(CommandError::NotDue)?;
        let id = entry.id.clone();
        let part = Part::Answer(Verdict::Result);
        let tag = self.connection.tag(&id);
        let method = entry.method;
        let passed;
        let mut result = result;
        if self.connection.has_middleware() {
            let text = to_shared_json(result)?;
            if !text.is_object() {
                return Err(WriteError::NotAnObject.into());
            }
            match self.connection.pass_result(&id, method, &text) {
                Exchanged::Unchanged => passed = text,
                Exchanged::Changed(changed) => passed = changed,
                Exchanged::Refused(error) => {
                    self.connection.requests.remove(request.key);
                    self.write_refusal(&id, &error);
                    return Ok(());
                }
            }
            result = &passed;
        }
        let kept = self.connection.observed.keeps_result(tag, None);
        self.connection.outbox.try_push(Lane::Bulk, Channel::UNSOLICITED, part, tag, |out| {
            write_result(out, &id, result)
        })?;
        self.connection.observed.answered(tag, None, kept);
        self.connection.requests.remove(request.key);
        Ok(())
    }

    pub(super) fn send_error(
        &mut self,
        request: RequestHandle,
        mut error: ErrorObject<'_>,
    ) -> Result<(), CommandError> {
        let entry = self.connection.requests.remove(request.key).ok_or(CommandError::NotDue)?;
        error.code = error.code.at_revision(entry.revision);
        self.refuse_request(&entry.id, &error);
        Ok(())
    }

    /// Removes the round that `call` waits for and withdraws its open input requests. Returns
    /// whether there was a round.
    pub(super) fn drop_round(&mut self, call: &Call) -> bool {
        let Some(key) = call.repeat.as_ref().and_then(|repeat| repeat.round) else { return false };
        let Some(round) = self.remove_round(key) else { return false };
        for (question, index) in round.questions.iter().zip(0_u32..) {
            if question.answer.is_none() {
                let (call, round) = (round.call, round.number);
                self.withdraw_input(InputSource::Round { call, round, index });
            }
        }
        true
    }

    fn remove_round(&mut self, key: Key) -> Option<Round> {
        let round = self.rounds.remove(key)?;
        self.input_bytes -= round.bytes;
        Some(round)
    }

    fn round_of(&mut self, call: Key, number: u32) -> Option<(Key, &mut Round)> {
        let key = self.connection.calls.get(call)?.repeat.as_ref()?.round?;
        let round = self.rounds.get_mut(key).filter(|round| round.number == number)?;
        Some((key, round))
    }

    fn set_round(&mut self, call: Key, round: Option<Key>) {
        let call = self.connection.calls.get_mut(call);
        if let Some(repeat) = call.and_then(|call| call.repeat.as_mut()) {
            repeat.round = round;
        }
    }

    /// Sends the call again, with the input responses and the server's state.
    // MCP 2026-07-28 basic/patterns/mrtr#client-requirements-basic-workflow [MRTR-012] [MRTR-013]
    // [MRTR-014] [MRTR-015]
    fn next_round(&mut self, round: &Round, now: Instant) {
        let extra = |out: &mut String| -> Result<(), WriteError> {
            out.push('{');
            for (question, index) in round.questions.iter().zip(0_usize..) {
                out.push_str(if index == 0 { r#""inputResponses":{"# } else { "," });
                write_string(out, &question.key);
                out.push(':');
                if let Some(answer) = &question.answer {
                    answer.write_json(out)?;
                }
            }
            if !round.questions.is_empty() {
                out.push('}');
            }
            if let Some(state) = &round.state {
                if !round.questions.is_empty() {
                    out.push(',');
                }
                out.push_str(r#""requestState":"#);
                state.write_json(out)?;
            }
            Ok(())
        };
        let parts = MetaParts { fixed: self.request_meta.as_ref(), ..MetaParts::default() };
        if self.connection.repeat_call(round.call, parts, extra, now).is_err() {
            self.connection.calls.remove(round.call);
            let failure = Failure::InvalidAnswer("the next round could not be written");
            self.connection.end_call(round.call, failure);
        }
    }
}

/// Returns the method and parameters of an `inputRequests` entry, if this client declared
/// support for it.
// MCP 2026-07-28 basic/patterns/mrtr#inputrequests [MRTR-004] [MRTR-005]
fn question<'f>(
    entry: &RawJson<'f>,
    client: Capabilities,
    revision: Revision,
) -> Option<(Method, RawJson<'f>)> {
    let (mut method, mut params) = (None, None);
    for member in entry.walk() {
        let before = match &*member.name() {
            "method" => method.replace(member.value),
            "params" => params.replace(member.value),
            _ => None,
        };
        if before.is_some() {
            return None;
        }
    }
    let method = Method::parse(&method?.to_text()?)?;
    let params = params.unwrap_or(RawJson::EMPTY_OBJECT);
    check_repeats(params.view()).ok()?;
    let gates = match method {
        Method::SamplingCreateMessage | Method::RootsList | Method::ElicitationCreate => {
            method.row().side(Side::Server).gates
        }
        _ => return None,
    };
    // The same capabilities gate the corresponding legacy requests.
    let offered = gates.iter().all(|gate| client.contains(gate.capability));
    (offered && unsupported_input(method, &params, client, revision).is_none())
        .then_some((method, params))
}

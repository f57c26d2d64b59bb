//! Input rounds: what a handler needs from the user or the host, asked in the way of the era.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use crate::jsonrpc::{ErrorObject, RawJson, Typed, write_string};
use crate::peer::calls::Purpose;
use crate::peer::error::AnswerError;
use crate::peer::event::{Event, Inputs, Keyed, MethodName, Request, RequestHandle};
use crate::peer::outbox::Channel;
use crate::peer::outgoing::{CallOptions, Outgoing};
use crate::peer::requests::Work;
use crate::peer::slab::{Key, Slab};
use crate::protocol::{
    At, CallToolResult, Capabilities, Capability, InputRequest, InputRequiredResult, Map, Method,
};
use crate::{Era, Instant, Revision};

use super::Server;
use super::receive::missing_capability;

/// The questions of one round in a legacy session.
#[derive(Debug)]
pub(super) struct Round {
    /// What is handed to the application again when all are answered. Shared with the application
    /// by reference count where it handed in an owned request.
    request: Request<'static>,
    state: Option<String>,
    questions: Vec<Question>,
    waiting: usize,
}

#[derive(Debug)]
struct Question {
    key: String,
    call: Option<Key>,
    answer: Option<Result<RawJson<'static>, ErrorObject<'static>>>,
}

impl Server {
    /// Answers a request with questions for the user or the host: "input required".
    ///
    /// In the modern era the client answers them and sends the request again. In a legacy session
    /// the machine asks, waits for all answers, and hands the same request to the application once
    /// more, with the answers in [`Request::inputs`]. The application sees no difference.
    ///
    /// `request` is kept only in a legacy session; hand in an owned one to share its text instead
    /// of copying it.
    ///
    /// # Errors
    ///
    /// In each case the client got an answer. [`AnswerError::NotDeclared`]: the client cannot be
    /// asked this. [`AnswerError::InputNotAllowed`]: the caller's fault.
    pub fn require_input(
        &mut self,
        request: Request<'_>,
        required: &InputRequiredResult,
        now: Instant,
    ) -> Result<(), AnswerError> {
        let handle = request.handle;
        let revision = self.revision_of_request(handle)?;
        let Some(entry) = self.connection.requests.get(handle.key) else {
            return Err(AnswerError::NotDue);
        };
        let questions = required.input_requests.as_ref();
        let count = questions.map_or(0, |questions| questions.iter().count());
        // MCP 2026-07-28 basic/patterns/mrtr#server-requirements-basic-workflow [MRTR-002]
        // [MRTR-003] [MRTR-004]
        let unknown = |question: &InputRequest| question.method().is_none();
        let not_allowed = if !entry.method.is_some_and(Method::allows_input_rounds) {
            Some("only tools/call, prompts/get and resources/read can be answered with questions")
        } else if count == 0 && required.request_state.is_none() {
            Some("input required, but neither questions nor a state")
        } else if count > self.connection.limits.inputs_per_round_max {
            Some("more questions than one round may have")
        } else if questions.into_iter().flat_map(Map::iter).any(|(_, question)| unknown(question)) {
            Some("a question of a method that hosts do not know")
        } else if entry.rounds >= self.connection.limits.rounds_max {
            Some("more rounds of input than the limit allows")
        } else if revision.era() == Era::Legacy && self.connection.closed.is_some() {
            Some("the connection is over, so nobody can be asked")
        } else {
            None
        };
        if let Some(what) = not_allowed {
            self.reject(handle, ErrorObject::internal(what))?;
            return Err(AnswerError::InputNotAllowed(what));
        }
        // MCP 2026-07-28 basic/patterns/mrtr#server-requirements-basic-workflow [MRTR-005] [CAP-021]
        // MCP 2025-11-25 client/elicitation#capabilities [ELIC-001] [ELIC-005] [SAMP-001] [ROOT-001]
        let missing = questions
            .into_iter()
            .flat_map(|questions| questions.iter())
            .find_map(|(_, question)| missing_for(question, entry.capabilities, revision));
        if let Some(capability) = missing {
            let message = alloc::format!("this needs the client capability `{capability}`");
            match (revision.era(), entry.method) {
                (Era::Modern, _) => self.reject(handle, missing_capability(capability))?,
                // A result that the model sees: it may do without.
                // MCP 2025-11-25 server/tools#error-handling [TOOL-008]
                (Era::Legacy, Some(Method::ToolsCall)) => {
                    self.respond(handle, &CallToolResult::error(message))?;
                }
                (Era::Legacy, _) => self.reject(handle, ErrorObject::internal(message))?,
            }
            return Err(AnswerError::NotDeclared(capability));
        }
        match revision.era() {
            Era::Modern => {
                let entry = self.take_request(handle)?;
                let result = Typed(&At(required, revision));
                self.finish_answer(&entry.id, entry.method, revision, entry.reply, &result)?;
                Ok(())
            }
            Era::Legacy => self.ask(request, required, revision, now),
        }
    }

    fn revision_of_request(&self, handle: RequestHandle) -> Result<Revision, AnswerError> {
        match self.connection.requests.get(handle.key) {
            Some(entry) if matches!(entry.work, Work::Application) => Ok(entry.revision),
            _ => Err(AnswerError::NotDue),
        }
    }

    /// Sends the questions of a round as requests of this side.
    fn ask(
        &mut self,
        request: Request<'_>,
        required: &InputRequiredResult,
        revision: Revision,
        now: Instant,
    ) -> Result<(), AnswerError> {
        let handle = request.handle;
        let mut request = request.into_owned();
        request.inputs = Inputs::default();
        let questions: Vec<Question> = required
            .input_requests
            .iter()
            .flat_map(|questions| questions.iter())
            .map(|(key, _)| Question { key: key.into(), call: None, answer: None })
            .collect();
        let waiting = questions.len();
        // MCP 2025-11-25 basic/transports#sending-messages-to-the-server [HSRV-018]
        let entry = self.connection.requests.get(handle.key);
        let channel = entry.map_or(Channel::UNSOLICITED, |entry| entry.reply.channel);
        let state = required.request_state.clone();
        let round = self.rounds.insert(Round { request, state, questions, waiting });
        if let Some(entry) = self.connection.requests.get_mut(handle.key) {
            entry.rounds += 1;
            entry.work = Work::Input { round };
        }
        let asked = required.input_requests.iter().flat_map(|questions| questions.iter());
        for ((_, question), index) in asked.zip(0..) {
            let Some(method) = question.method().map(MethodName::Known) else { continue };
            let purpose = Purpose::Input { round, index };
            let outgoing = Outgoing { channel, ..Outgoing::new(&method, purpose) };
            let params = Typed(&At(&question.params(), revision));
            let options = CallOptions::default().timeout(self.connection.timeouts.call_hard);
            let started = self.connection.start_call(outgoing, &params, &options, now);
            match started {
                Ok(call) => {
                    if let Some(round) = self.rounds.get_mut(round) {
                        round.questions[index as usize].call = Some(call);
                    }
                }
                Err(error) => {
                    let message = alloc::string::ToString::to_string(&error);
                    self.settle_question(round, index, Err(ErrorObject::internal(message)));
                }
            }
        }
        if waiting == 0 {
            // Only a state: the application wants to be called again.
            self.finish_round(round);
        }
        Ok(())
    }

    pub(super) fn input_answered(
        &mut self,
        round: Key,
        index: u32,
        outcome: Result<RawJson<'_>, ErrorObject<'_>>,
    ) {
        let outcome = outcome.map(RawJson::into_owned).map_err(ErrorObject::into_owned);
        self.settle_question(round, index, outcome);
    }

    pub(super) fn input_failed(&mut self, round: Key, index: u32, why: &'static str) {
        self.settle_question(round, index, Err(ErrorObject::internal(why)));
    }

    fn settle_question(
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

    /// All is answered: the application gets its request back, as if the client had sent it again.
    fn finish_round(&mut self, key: Key) {
        let Some(round) = self.rounds.remove(key) else { return };
        let Round { mut request, state, questions, .. } = round;
        let (mut responses, mut refused) = (Vec::new(), Keyed::new());
        responses.push(b'{');
        for Question { key, answer, .. } in questions {
            match answer {
                Some(Ok(result)) => {
                    if responses.len() > 1 {
                        responses.push(b',');
                    }
                    write_string(&mut responses, &key);
                    responses.push(b':');
                    responses.extend_from_slice(result.as_str().as_bytes());
                }
                Some(Err(error)) => refused.push((key, error)),
                None => {}
            }
        }
        responses.push(b'}');
        let responses = String::from_utf8(responses).expect("joined from strings");
        request.inputs = Inputs {
            responses: Some(RawJson::trusted_shared(responses.into())),
            state: state.map(Into::into),
            refused: (!refused.is_empty()).then(|| Box::from(refused)),
        };
        if let Some(entry) = self.connection.requests.get_mut(request.handle.key) {
            entry.work = Work::Application;
            self.connection.events.push_back(Event::Request(request));
        }
    }

    /// The request of a round is cancelled, so its questions are too.
    pub(super) fn abandon_round(&mut self, key: Key, now: Instant) {
        let Some(round) = self.rounds.remove(key) else { return };
        for call in round.questions.iter().filter_map(|question| question.call) {
            if let Some(call) = self.connection.calls.remove(call) {
                self.connection.give_up(&call, "the request was cancelled", now);
            }
        }
    }

    /// The connection is over, so what rounds wait for cannot come: the client is told so.
    pub(super) fn fail_rounds(&mut self) {
        while let Some(key) =
            self.connection.requests.find_from(0, |entry| matches!(entry.work, Work::Input { .. }))
        {
            if let Some(entry) = self.connection.requests.remove(key) {
                let error = ErrorObject::internal("the input that this needs cannot come any more");
                self.answer_error(&entry.id, &error, entry.reply);
            }
        }
        self.rounds = Slab::new();
    }

    /// The application closed the connection: no request gets an answer any more.
    pub(super) fn drop_requests(&mut self) {
        while let Some(key) = self.connection.requests.find_from(0, |_| true) {
            if let Some(entry) = self.connection.requests.remove(key) {
                self.withdraw(entry.reply);
            }
        }
        self.rounds = Slab::new();
    }
}

/// The capability that a question needs and the client lacks.
fn missing_for(
    question: &InputRequest,
    declared: Capabilities,
    revision: Revision,
) -> Option<Capability> {
    question.needs(revision).find(|capability| !declared.contains(*capability))
}

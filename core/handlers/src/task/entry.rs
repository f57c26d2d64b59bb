use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use mcp_sansio::jsonrpc::{ErrorObject, Json, RawJson, write_string};
use mcp_sansio::peer::ProgressLimiter;
use mcp_sansio::peer::{InputResponseParams, Limits, Request, RequestHandle};
use mcp_sansio::protocol::{
    Capability, DetailedTask, InputRequests, InputRequiredResult, Meta, SerializeAt, Task,
    TaskStatus,
};
use mcp_sansio::{Era, Instant};

use super::related::relate;
use super::requestors::Requestor;

/// One task.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) task: Task,
    /// Whose it is: to anybody else it does not exist.
    pub(super) requestor: Requestor,
    /// The how many-eth of its requestor it is.
    pub(super) number: u64,
    /// What its handler is called with, again after each round of questions.
    pub(super) request: Request<'static>,
    pub(super) state: State,
    pub(super) expires: Instant,
    rounds: u32,
    /// The names of all questions so far.
    // MCP 2026-07-28 ext-tasks:tasks#task-update-requests [TASK-031]
    names: BTreeSet<String>,
    /// The progress that its call asked for; at 2025-11-25 alone.
    pub(super) progress: Option<ProgressLimiter>,
    /// Requests for its result that wait for it, a few, the oldest first; at 2025-11-25 alone.
    pub(super) waiting: Vec<Request<'static>>,
    /// The one of them on whose way its questions were asked.
    pub(super) asked: Option<RequestHandle>,
}

/// How far a task is. From one that is over no other follows.
#[derive(Debug)]
pub(super) enum State {
    /// A handler is at work.
    Working,
    /// The handler waits for answers.
    InputRequired(Box<InputRound>),
    /// It has a result.
    Completed(Json),
    /// It has a result that says of itself that it is a failure; at 2025-11-25 alone.
    ToolError(Json),
    /// It has an error of the protocol.
    Failed(Json),
    /// The client gave it up.
    Cancelled,
}

/// The questions of one round.
#[derive(Debug, Default)]
pub(super) struct InputRound {
    /// Those without an answer, by the names that the client knows.
    open: InputRequests,
    /// The names of all of them: the client's, and the handler's.
    names: Vec<(String, String)>,
    /// The answers so far, by the handler's names.
    answers: Vec<(String, RawJson<'static>)>,
    /// What the handler wants back.
    state: Option<String>,
    /// What the questions cost.
    bytes: usize,
}

impl Entry {
    pub(super) fn new(
        task: Task,
        requestor: Requestor,
        mut request: Request<'static>,
        expires: Instant,
    ) -> Self {
        // MCP 2026-07-28 ext-tasks:tasks#task-creation [TASK-042]: what was asked before there was
        // a task is over.
        request.inputs = InputResponseParams::default();
        let legacy = request.revision.era() == Era::Legacy;
        let meta = request.params.get("_meta").filter(|_| legacy);
        let token = meta.and_then(|meta| meta.get(Meta::PROGRESS_TOKEN)?.decode().ok());
        Self {
            task,
            requestor,
            number: 0,
            request,
            state: State::Working,
            expires,
            rounds: 0,
            names: BTreeSet::new(),
            progress: token.map(ProgressLimiter::new),
            waiting: Vec::new(),
            asked: None,
        }
    }

    /// Whether its client asked for a task, as at 2025-11-25; else the server made it one.
    pub(super) const fn is_client_requested(&self) -> bool {
        matches!(self.request.revision.era(), Era::Legacy)
    }

    pub(super) const fn is_over(&self) -> bool {
        !matches!(self.state, State::Working | State::InputRequired(_))
    }

    /// What it holds that a client or a handler made long.
    pub(super) fn bytes(&self) -> usize {
        let names: usize = self.names.iter().map(String::len).sum();
        let message = self.task.status_message.as_ref().map_or(0, String::len);
        let held = match &self.state {
            State::Working | State::Cancelled => 0,
            State::InputRequired(waiting) => {
                let answers = waiting.answers.iter();
                waiting.bytes + answers.map(|(_, answer)| answer.as_str().len()).sum::<usize>()
            }
            State::Completed(json) | State::ToolError(json) | State::Failed(json) => {
                json.as_str().len()
            }
        };
        let inputs = &self.request.inputs;
        let answers = inputs.responses().map_or(0, |answers| answers.as_str().len());
        let state = inputs.state().map_or(0, str::len);
        self.request.params.as_str().len() + answers + state + names + message + held
    }

    /// Goes over to `state`, at a time of day. Not from one that is over.
    // MCP 2025-11-25 basic/utilities/tasks#task-status-lifecycle [TASK-009]
    pub(super) fn transition(&mut self, state: State, time: String) {
        debug_assert!(!self.is_over(), "what is over stays as it is");
        self.task.status = match state {
            State::Working => TaskStatus::Working,
            State::InputRequired(_) => TaskStatus::InputRequired,
            State::Completed(_) => TaskStatus::Completed,
            // MCP 2025-11-25 basic/utilities/tasks#task-execution-errors [TASK-020]
            State::ToolError(_) | State::Failed(_) => TaskStatus::Failed,
            State::Cancelled => TaskStatus::Cancelled,
        };
        self.state = state;
        self.task.last_updated_at = time;
        // The handler is not called any more.
        if self.is_over() {
            self.request.clear_params();
            self.request.inputs = InputResponseParams::default();
        }
    }

    /// The task with what it has to show.
    // MCP 2026-07-28 ext-tasks:tasks#response [TASK-030]
    pub(super) fn detailed(&self) -> DetailedTask {
        let task = self.task.clone();
        match &self.state {
            State::Working | State::Cancelled | State::ToolError(_) => task.into(),
            State::InputRequired(waiting) => {
                DetailedTask::input_required(task, waiting.open.clone())
            }
            State::Completed(result) => DetailedTask::completed(task, result.clone()),
            State::Failed(error) => DetailedTask::failed(task, error.clone()),
        }
    }

    /// Takes the questions of a handler; `None` of those that ask nothing, but want the handler to
    /// be called again at once.
    ///
    /// The error is how the task ends instead.
    pub(super) fn ask(
        &mut self,
        required: InputRequiredResult,
        limits: &Limits,
    ) -> Result<Option<Box<InputRound>>, ErrorObject<'static>> {
        let questions = required.input_requests.unwrap_or_default();
        self.rounds += 1;
        let fault = if questions.is_empty() && required.request_state.is_none() {
            Some("input required, but neither questions nor a state")
        } else if questions.len() > limits.inputs_per_round_max {
            Some("more questions than one round may have")
        } else if self.rounds > limits.rounds_max {
            Some("more rounds of input than the limit allows")
        } else if questions.iter().any(|(_, question)| question.method().is_none()) {
            Some("a question of a method that hosts do not know")
        } else {
            None
        };
        if let Some(fault) = fault {
            return Err(ErrorObject::internal(fault));
        }
        // MCP 2026-07-28 basic/patterns/mrtr#server-requirements-basic-workflow [MRTR-005],
        // MCP 2026-07-28 basic/index#_meta [CAP-021]
        let (declared, revision) = (self.request.capabilities, self.request.revision);
        let lacks = |capability: &Capability| !declared.contains(*capability);
        let missing =
            questions.iter().find_map(|(_, question)| question.needs(revision).find(lacks));
        if let Some(capability) = missing {
            return Err(capability.missing());
        }
        if questions.is_empty() {
            self.request.inputs = InputResponseParams::new(None, required.request_state);
            return Ok(None);
        }
        let bytes = questions.to_json_at(revision).map_or(0, |text| text.as_str().len())
            + required.request_state.as_ref().map_or(0, String::len);
        let mut waiting =
            InputRound { state: required.request_state, bytes, ..InputRound::default() };
        for (name, mut question) in questions {
            let known = if self.is_client_requested() {
                // MCP 2025-11-25 basic/utilities/tasks#input-required-status [TASK-015]
                relate(&mut question, &self.task.task_id);
                name.clone()
            } else {
                self.rename(&name)
            };
            waiting.open.insert(known.clone(), question);
            waiting.names.push((known, name));
        }
        Ok(Some(Box::new(waiting)))
    }

    /// The name under which the client is asked: the handler's own, unless it has had that before.
    // MCP 2026-07-28 ext-tasks:tasks#task-update-requests [TASK-031]
    fn rename(&mut self, name: &str) -> String {
        let mut known = String::from(name);
        let mut count = 1_u32;
        while self.names.contains(&known) {
            count += 1;
            known = format!("{name}#{count}");
        }
        self.names.insert(known.clone());
        known
    }

    /// The questions that wait for answers.
    pub(super) fn questions(&self) -> Option<InputRequiredResult> {
        let State::InputRequired(waiting) = &self.state else { return None };
        let mut required = InputRequiredResult::new();
        required.input_requests = Some(waiting.open.clone());
        Some(required)
    }

    /// Takes what came of all the questions that were asked; whether they were waited for.
    pub(super) fn take_inputs(&mut self, mut inputs: InputResponseParams<'static>) -> bool {
        let State::InputRequired(waiting) = &mut self.state else { return false };
        inputs.set_state(waiting.state.take());
        self.request.inputs = inputs;
        true
    }

    /// Takes answers. Whether any was waited for, and the request to be handled again if none is
    /// open any more.
    // MCP 2026-07-28 ext-tasks:tasks#task-update-requests [TASK-033]: what nobody asked for is
    // ignored.
    pub(super) fn answer(&mut self, responses: &RawJson<'_>) -> Responses {
        let State::InputRequired(waiting) = &mut self.state else { return Responses::Unexpected };
        let mut taken = false;
        for member in responses.members() {
            let name = member.name();
            if waiting.open.remove(&name).is_none() {
                continue;
            }
            taken = true;
            if let Some((_, own)) = waiting.names.iter().find(|(known, _)| *known == name) {
                waiting.answers.push((own.clone(), member.value.into_owned()));
            }
        }
        if !taken {
            return Responses::Unexpected;
        }
        if !waiting.open.is_empty() {
            return Responses::Partial;
        }
        let InputRound { answers, state, .. } = core::mem::take(&mut **waiting);
        self.request.inputs = InputResponseParams::new(Some(joined(&answers)), state);
        Responses::Complete
    }
}

/// What answers brought.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Responses {
    /// Nothing that was waited for.
    Unexpected,
    /// Some of it.
    Partial,
    /// The rest of it: the handler can go on.
    Complete,
}

/// The answers as one object.
fn joined(answers: &[(String, RawJson<'static>)]) -> RawJson<'static> {
    let mut text = String::new();
    for (name, answer) in answers {
        text.push(if text.is_empty() { '{' } else { ',' });
        write_string(&mut text, name);
        text.push(':');
        text.push_str(answer.as_str());
    }
    text.push('}');
    RawJson::trusted_string(text)
}

//! A task in the table, and the messages about it.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use mcp_sansio::envelope::write_string;
use mcp_sansio::jsonrpc::{ErrorObject, Json, RawJson};
use mcp_sansio::peer::{InputResponseParams, Limits, ProgressLimiter, Request, RequestHandle};
use mcp_sansio::protocol::{
    DetailedTask, ElicitParams, InputRequest, InputRequests, InputRequiredResult, Meta,
    RelatedTask, SerializeAt, Task, TaskStatus,
};
use mcp_sansio::{Era, Instant, Revision};

use super::requestors::Requestor;

/// A task in the table.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) task: Task,
    /// The owner of the task: it does not exist for others.
    pub(super) requestor: Requestor,
    /// The number of the task among those of its requestor.
    pub(super) number: u64,
    /// The request that the handler is called with, again after each round of input.
    pub(super) request: Request<'static>,
    pub(super) state: State,
    pub(super) expires: Instant,
    rounds: u32,
    /// The names of all input requests so far.
    // MCP 2026-07-28 ext-tasks:tasks#task-update-requests [TASK-031]
    names: BTreeSet<String>,
    /// The progress that the call asked for; only at 2025-11-25.
    pub(super) progress: Option<ProgressLimiter>,
    /// The requests that wait for the result, a few, the oldest first; only at 2025-11-25.
    pub(super) waiting: Vec<Request<'static>>,
    /// The waiting request through which the current input requests were sent.
    pub(super) asked: Option<RequestHandle>,
}

/// The state of a task. The terminal states do not change.
#[derive(Debug)]
pub(super) enum State {
    /// A handler is running.
    Working,
    /// The handler waits for answers.
    InputRequired(Box<InputRound>),
    /// The task has a result.
    Completed(Json),
    /// The task has a result that is a tool error; only at 2025-11-25.
    ToolError(Json),
    /// The task has a protocol error.
    Failed(Json),
    /// The client cancelled the task.
    Cancelled,
}

/// The input requests of one round.
#[derive(Debug, Default)]
pub(super) struct InputRound {
    /// The unanswered ones, by the names that the client knows.
    open: InputRequests,
    /// The names of all of them: the client's, and the handler's.
    names: Vec<(String, String)>,
    /// The answers so far, by the handler's names.
    answers: Vec<(String, RawJson<'static>)>,
    /// The state to return to the handler.
    state: Option<String>,
    /// The size of the input requests in bytes.
    bytes: usize,
}

impl Entry {
    pub(super) fn new(
        task: Task,
        requestor: Requestor,
        mut request: Request<'static>,
        expires: Instant,
    ) -> Self {
        // MCP 2026-07-28 ext-tasks:tasks#task-creation [TASK-042]: input requests sent before the
        // task was created are complete.
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

    /// Whether the client requested the task, as at 2025-11-25; otherwise the server created it.
    pub(super) const fn is_client_requested(&self) -> bool {
        matches!(self.request.revision.era(), Era::Legacy)
    }

    /// Returns the number of rounds of input requests so far.
    pub(super) const fn rounds(&self) -> u32 {
        self.rounds
    }

    pub(super) const fn is_over(&self) -> bool {
        !matches!(self.state, State::Working | State::InputRequired(_))
    }

    /// Returns the size of the data whose length a client or a handler determines.
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

    /// Moves the task to `state` at `time`, an ISO 8601 timestamp. The task must not have ended.
    // MCP 2025-11-25 basic/utilities/tasks#task-status-lifecycle [TASK-009]
    pub(super) fn transition(&mut self, state: State, time: String) {
        debug_assert!(!self.is_over(), "a terminal state does not change");
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
        // The handler is not called again.
        if self.is_over() {
            self.request.clear_params();
            self.request.inputs = InputResponseParams::default();
        }
    }

    /// Returns the task with its result, error or input requests.
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

    /// Starts a round with the input requests of a handler; `None` for an empty
    /// set, after which the handler is called again at once.
    ///
    /// Returns an error to fail the task with.
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
            Some("more input requests than one round may have")
        } else if self.rounds > limits.rounds_max {
            Some("more rounds of input than the limit allows")
        } else if questions.iter().any(|(_, question)| question.method().is_none()) {
            Some("an input request with an unknown method")
        } else {
            None
        };
        if let Some(fault) = fault {
            return Err(ErrorObject::internal(fault));
        }
        // MCP 2026-07-28 basic/patterns/mrtr#server-requirements-basic-workflow [MRTR-005],
        // MCP 2026-07-28 basic/index#_meta [CAP-021]
        let revision = self.request.revision;
        if let Some(capability) = questions.missing(self.request.capabilities, revision) {
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

    /// Returns the name of an input request towards the client: the handler's own, unless it was
    /// used before.
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

    /// Returns the unanswered input requests.
    pub(super) fn questions(&self) -> Option<InputRequiredResult> {
        let State::InputRequired(waiting) = &self.state else { return None };
        let mut required = InputRequiredResult::new();
        required.input_requests = Some(waiting.open.clone());
        Some(required)
    }

    /// Takes the answers to all sent input requests; returns whether the task was waiting for them.
    pub(super) fn take_inputs(&mut self, mut inputs: InputResponseParams<'static>) -> bool {
        let State::InputRequired(waiting) = &mut self.state else { return false };
        inputs.set_state(waiting.state.take());
        self.request.inputs = inputs;
        true
    }

    /// Takes some answers. Returns whether they were expected, and whether the round is complete.
    // MCP 2026-07-28 ext-tasks:tasks#task-update-requests [TASK-033]: unexpected answers are
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

/// The effect of answers on a round.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Responses {
    /// No answer was expected.
    Unexpected,
    /// Some answers are still missing.
    Partial,
    /// All answers are present: the handler can be called again.
    Complete,
}

/// Joins the answers to one JSON object.
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

// ------------------------------------------------------------------ messages that name the task they belong to

/// Adds the task id to the metadata of an input request.
// MCP 2025-11-25 basic/utilities/tasks#associating-task-related-messages [TASK-014] [TASK-015]
pub(super) fn relate(question: &mut InputRequest, task: &str) {
    let meta = match question {
        InputRequest::CreateMessage(params) => &mut params.meta,
        InputRequest::ListRoots(params) => &mut params.meta,
        InputRequest::Elicit(ElicitParams::Form(params)) => &mut params.meta,
        InputRequest::Elicit(ElicitParams::Url(params)) => &mut params.meta,
        _ => return,
    };
    relate_meta(meta.get_or_insert_default(), task);
}

/// Adds the task id to `meta`.
pub(super) fn relate_meta(meta: &mut Meta, task: &str) {
    if let Ok(related) = RelatedTask::new(task).to_json_at(Revision::V2025_11_25) {
        meta.insert(Meta::RELATED_TASK, related);
    }
}

/// Returns the result with the task id added to its metadata, which comes first. A result has one
/// `_meta`: another one, or one that is not an object, is left out.
// MCP 2025-11-25 basic/utilities/tasks#related-task-metadata [TASK-014] [META-015]
pub(super) fn related(result: &Json, task: &str) -> Json {
    let whole = result.as_raw();
    let mut out = String::with_capacity(result.as_str().len() + task.len() + 64);
    out.push_str(r#"{"_meta":{"#);
    write_string(&mut out, Meta::RELATED_TASK);
    out.push_str(r#":{"taskId":"#);
    write_string(&mut out, task);
    out.push('}');
    if let Some(meta) = whole.get("_meta") {
        copy_members(&meta, Meta::RELATED_TASK, &mut out);
    }
    out.push('}');
    copy_members(&whole, "_meta", &mut out);
    out.push('}');
    RawJson::trusted_string(out).into()
}

/// Appends the members of an object, except those called `name`, after other members.
fn copy_members(object: &RawJson<'_>, name: &str, out: &mut String) {
    for member in object.members().filter(|member| !member.is_named(name)) {
        out.push_str(",\"");
        out.push_str(member.key);
        out.push_str("\":");
        out.push_str(member.value.as_str());
    }
}

// ------------------------------------------------------------------ timestamps

/// The last second of the year 9999.
const LAST: u64 = 253_402_300_799;

/// Formats a time since 1970 as ISO 8601, in UTC, to the millisecond; later times are clamped to
/// the year 9999.
// MCP 2025-11-25 schema.json#Task [TASK-010]
pub(super) fn iso_8601(since_1970: Duration) -> String {
    let seconds = since_1970.as_secs().min(LAST);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let millis = since_1970.subsec_millis();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// Returns year, month and day of a day since 1970.
///
/// Years are counted from March, so that the leap day is the last day, in eras of 400 years of
/// equal length.
const fn date(days_since_1970: u64) -> (u64, u64, u64) {
    // Counted from the first of March of the year 0.
    let days = days_since_1970 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let leap_days = day_of_era / 1460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leap_days) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // From March on, the lengths 31, 30, 31, 30, 31 of months repeat.
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year_of_era + next, month, day)
}

#[cfg(test)]
mod related_tests {
    use super::*;

    #[test]
    fn a_result_keeps_its_members_and_names_its_task() {
        // Rule: [TASK-014] [META-015].
        let task = r#""io.modelcontextprotocol/related-task":{"taskId":"t\"1"}"#;
        for (before, after) in [
            ("{}", alloc::format!(r#"{{"_meta":{{{task}}}}}"#)),
            (r#"{"a":[1],"b":2}"#, alloc::format!(r#"{{"_meta":{{{task}}},"a":[1],"b":2}}"#)),
            (r#"{"a":1, "_meta": {} }"#, alloc::format!(r#"{{"_meta":{{{task}}},"a":1}}"#)),
            (r#"{"_meta":null,"a":1}"#, alloc::format!(r#"{{"_meta":{{{task}}},"a":1}}"#)),
            (
                r#"{"_meta":{"x":1},"a":1,"_meta":{"y":1}}"#,
                alloc::format!(r#"{{"_meta":{{{task},"x":1}},"a":1}}"#),
            ),
            (
                r#"{"_meta":{"x":{"y":1}},"a":1}"#,
                alloc::format!(r#"{{"_meta":{{{task},"x":{{"y":1}}}},"a":1}}"#),
            ),
            (
                r#"{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"other"}}}"#,
                alloc::format!(r#"{{"_meta":{{{task}}}}}"#),
            ),
        ] {
            let before: Json = RawJson::parse(before).unwrap().into_owned().into();
            let result = related(&before, "t\"1");
            assert_eq!(result.as_str(), after);
            assert!(RawJson::parse(result.as_str()).is_ok());
        }
    }
}

#[cfg(test)]
mod timestamp_tests {
    use super::*;

    #[test]
    fn known_times_are_formatted() {
        // Rule: [TASK-010].
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_000_000_000_000, "2001-09-09T01:46:40.000Z"),
            (1_709_164_800_001, "2024-02-29T00:00:00.001Z"),
            (1_735_689_599_000, "2024-12-31T23:59:59.000Z"),
            (1_785_196_800_000, "2026-07-28T00:00:00.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(iso_8601(Duration::from_millis(millis)), text);
        }
        assert!(iso_8601(Duration::MAX).starts_with("9999-12-31T23:59:59."));
    }

    #[test]
    fn every_day_of_four_centuries_follows_the_one_before() {
        let mut last = date(0);
        assert_eq!(last, (1970, 1, 1));
        for day in 1..=146_097 {
            let next = date(day);
            let year = last.0;
            let century = year.is_multiple_of(100) && !year.is_multiple_of(400);
            let leap = year.is_multiple_of(4) && !century;
            let length = match last.1 {
                2 if leap => 29,
                2 => 28,
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            let expected = match last {
                (year, 12, 31) => (year + 1, 1, 1),
                (year, month, of_month) if of_month == length => (year, month + 1, 1),
                (year, month, of_month) => (year, month, of_month + 1),
            };
            assert_eq!(next, expected);
            last = next;
        }
        assert_eq!(last, (2370, 1, 1));
    }
}

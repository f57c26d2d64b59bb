//! Input requests that a client of 2025-11-25 runs as tasks: their tasks are followed to the
//! result, which becomes the response.

use alloc::string::String;
use core::time::Duration;

use mcp_sansio_collections::Key;

use crate::jsonrpc::{ErrorObject, RawJson, WriteJson, write_string};
use crate::peer::augmentation::Lasts;
use crate::peer::calls::{Call, CancelTask, Parameters, Purpose, Repeat, Timing};
use crate::peer::method_name::MethodName;
use crate::peer::outbox::Channel;
use crate::peer::outgoing::{CallOptions, MetaParts, Outgoing, write_call};
use crate::peer::queue::Tag;
use crate::protocol::{Capabilities, Capability, InputRequest, Method, TaskMetadata, TaskStatus};
use crate::{Instant, Revision};

use super::{Round, Server};

/// How long to wait for a result if the handler requested no time to live.
const PATIENCE: Duration = Duration::from_secs(3600);

/// How long to wait between status requests if the client does not say.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The least pause between status requests, whatever interval the client gives: an interval of zero
/// would cause a busy loop.
const POLL_INTERVAL_MIN: Duration = Duration::from_millis(50);

/// The longest pause between status requests, whatever interval the client gives: a handler that
/// waits longer for its input can be notified of the result at most this much later.
const POLL_INTERVAL_MAX: Duration = Duration::from_secs(60);

/// The outcome of a request to the client.
type Outcome<'f> = Result<RawJson<'f>, ErrorObject<'f>>;

/// The functions that follow a task. A round refers to them only if it asks for a task, so a server
/// that requires no input does not contain them.
#[derive(Debug)]
pub(in crate::peer) struct TaskSteps {
    answered: fn(&mut Server, InputCall, Outcome<'_>, Instant),
    due: fn(&mut Server, InputCall, Instant),
    give_up: fn(&mut Server, Call, &str, Instant),
}

const STEPS: TaskSteps = TaskSteps {
    answered: Server::task_answered,
    due: Server::task_due,
    give_up: Server::drop_task,
};

/// A call on behalf of an input request.
struct InputCall {
    round: Key,
    index: u32,
    call: Call,
}

/// How an input request is run as a task.
pub(super) struct AskedTask<'a> {
    /// What the client is asked for.
    pub(super) task: &'a TaskMetadata,
    /// The longest time to wait for the result.
    pub(super) patience: Duration,
    /// Marks the call as one that is answered with a task.
    pub(super) lasts: Lasts,
    pub(super) steps: &'static TaskSteps,
}

/// Returns how to ask for a task, if the handler wants it and the client supports it.
// MCP 2025-11-25 basic/utilities/tasks#capability-negotiation [TASK-002]
pub(super) fn asked_task(
    question: &InputRequest,
    client: Capabilities,
    revision: Revision,
) -> Option<AskedTask<'_>> {
    let task = question.task()?;
    let capability = match question {
        InputRequest::CreateMessage(_) => Capability::TasksSampling,
        _ => Capability::TasksElicitation,
    };
    let patience = task.ttl.map_or(PATIENCE, Duration::from_millis);
    (revision == Revision::V2025_11_25 && client.contains(capability)).then_some(AskedTask {
        task,
        patience,
        lasts: |_, _| false,
        steps: &STEPS,
    })
}

impl Server {
    /// Handles the response to an input request, or to a request about its task.
    pub(super) fn input_call_answered(
        &mut self,
        round: Key,
        index: u32,
        call: Call,
        outcome: Outcome<'_>,
        now: Instant,
    ) {
        match self.task_steps(round) {
            Some(steps) => (steps.answered)(self, InputCall { round, index, call }, outcome, now),
            None => self.input_answered(round, index, outcome),
        }
    }

    /// Handles an input request, or a request about its task, that was not answered in time.
    pub(super) fn input_timed_out(&mut self, round: Key, index: u32, call: Call, now: Instant) {
        self.give_up_input(self.task_steps(round), call, "timed out", now);
        self.input_failed(round, index, "the client did not answer in time");
    }

    /// Handles the end of the pause before the next request about a task.
    pub(super) fn input_task_due(&mut self, round: Key, index: u32, call: Call, now: Instant) {
        if let Some(steps) = self.task_steps(round) {
            (steps.due)(self, InputCall { round, index, call }, now);
        }
    }

    /// Abandons the call of an input request, and its task, if it has one.
    pub(super) fn give_up_input(
        &mut self,
        steps: Option<&'static TaskSteps>,
        call: Call,
        reason: &str,
        now: Instant,
    ) {
        match steps {
            Some(steps) => (steps.give_up)(self, call, reason, now),
            None => self.connection.give_up(&call, reason, now),
        }
    }

    /// Cancels the task of a response.
    fn cancel_task_in(&mut self, channel: Channel, result: &RawJson<'_>, now: Instant) {
        if let Some(params) = result.get("task").as_ref().and_then(task_params) {
            self.cancel_client_task(channel, &params, now);
        }
    }

    /// Cancels a task of the client. A client that cannot is left alone.
    fn cancel_client_task(&mut self, channel: Channel, params: &str, now: Instant) {
        let cancels = |session: &super::ServerSession| {
            session.client_capabilities().contains(Capability::TasksCancel)
        };
        if self.connection.closed.is_some() || !self.session.as_ref().is_some_and(cancels) {
            return;
        }
        let method = MethodName::Known(Method::TasksCancel);
        let outgoing = Outgoing { channel, ..Outgoing::new(&method, Purpose::Chore) };
        let params = RawJson::trusted_string(params.into());
        let options = CallOptions::default();
        // If too many calls are pending, the task ends with its time to live.
        let _sent = self.connection.start_call(outgoing, &params, &options, None, now);
    }

    fn task_steps(&self, round: Key) -> Option<&'static TaskSteps> {
        self.rounds.get(round)?.task_steps
    }

    // MCP 2025-11-25 basic/utilities/tasks#getting-tasks [TASK-012]
    // MCP 2025-11-25 basic/utilities/tasks#input-required-status [TASK-015]
    // MCP 2025-11-25 basic/utilities/tasks#task-notifications [TASK-016]: notifications of the client
    // are not needed.
    fn task_answered(&mut self, asked: InputCall, outcome: Outcome<'_>, now: Instant) {
        let InputCall { round, index, mut call } = asked;
        let result = match outcome {
            Ok(result) => result,
            refused => return self.input_answered(round, index, refused),
        };
        let task = match (call.method, call.task.take(), &call.repeat) {
            // The request asked for a task.
            (_, Some(_), None) => result.get("task").filter(RawJson::is_object),
            (Some(Method::TasksGet), None, Some(_)) => Some(result.clone()),
            _ => None,
        };
        // The result of the task, or a response without one.
        let Some(task) = task else { return self.input_answered(round, index, Ok(result)) };
        if call.repeat.is_none() {
            let Some(params) = task_params(&task) else {
                return self.input_failed(round, index, "the client's task has no id");
            };
            if params.len() > self.input_room() {
                self.cancel_client_task(call.channel, &params, now);
                return self.input_failed(round, index, "the id of the client's task is too long");
            }
            if let Some(round) = self.rounds.get_mut(round) {
                round.bytes += params.len();
                self.input_bytes += params.len();
            }
            // Removing a call reuses the buffer of parameters that it owns.
            let params = Parameters::Shared(params.into());
            call.repeat = Some(Repeat {
                params,
                meta: None,
                log_level: None,
                rounds: 0,
                round: None,
                context: None,
            });
        }
        match task.get("status").and_then(|status| status.decode::<TaskStatus>().ok()) {
            None => {
                call.purpose = Purpose::InputTask { round, index };
                self.drop_task(call, "", now);
                self.input_failed(round, index, "the client's task has no status");
            }
            // MCP 2025-11-25 basic/utilities/tasks#result-retrieval [TASK-013]: the response comes
            // when the task has ended.
            Some(status) if status.is_terminal() || status == TaskStatus::InputRequired => {
                let asked = InputCall { round, index, call };
                self.request_task(asked, Method::TasksResult, Duration::MAX, now);
            }
            Some(_) => {
                let pause = millis(&task, "pollInterval").unwrap_or(POLL_INTERVAL);
                call.purpose = Purpose::InputTask { round, index };
                call.timing.timeout = pause.clamp(POLL_INTERVAL_MIN, POLL_INTERVAL_MAX);
                let key = self.connection.calls.insert_waiting(call, now);
                self.set_input_call(round, index, key);
            }
        }
    }

    fn task_due(&mut self, asked: InputCall, now: Instant) {
        let InputCall { round, index, call } = asked;
        if now >= call.timing.hard {
            self.drop_task(call, "", now);
            return self.input_failed(round, index, "the client's task has not ended in time");
        }
        let timeout = self.connection.config.timeouts.call;
        self.request_task(InputCall { round, index, call }, Method::TasksGet, timeout, now);
    }

    /// Sends a request about the task of an input request.
    // MCP 2025-11-25 basic/utilities/tasks#associating-task-related-messages [TASK-014]: only the
    // parameter names the task.
    fn request_task(&mut self, asked: InputCall, method: Method, timeout: Duration, now: Instant) {
        let InputCall { round, index, mut call } = asked;
        let id = self.connection.calls.fresh_id();
        let Some(repeat) = &call.repeat else { return };
        let name = MethodName::Known(method);
        let purpose = Purpose::Input { round, index };
        let outgoing = Outgoing { channel: call.channel, ..Outgoing::new(&name, purpose) };
        let passed = match self.connection.pass_call(id, name.as_str(), &repeat.params, None) {
            Ok(passed) => passed,
            Err(_) => {
                call.purpose = Purpose::InputTask { round, index };
                self.drop_task(call, "", now);
                return self.input_failed(round, index, "a middleware refused to ask for the task");
            }
        };
        let mut options = CallOptions::default();
        let params: &dyn WriteJson = match &passed {
            None => &repeat.params,
            Some(changed) => {
                options.meta = changed.meta.clone();
                &changed.params
            }
        };
        let request = self.rounds.get(round).map(Round::request_key);
        let cause = request.map(|request| self.connection.tag_of(request));
        let begun = self.connection.observed.begin_call(&outgoing, id, params, &options, cause);
        let Ok(begun) = begun else { return };
        let own = begun.meta(options.meta.as_ref());
        let parts = MetaParts { own, ..MetaParts::default() };
        let outbox = &mut self.connection.outbox;
        let written = write_call(outbox, call.channel, id, &name, params, parts);
        debug_assert!(written.is_ok(), "the parameters are JSON text");
        call.id = id;
        call.method = Some(method);
        call.purpose = purpose;
        call.timing = Timing { timeout, ..call.timing };
        let key = self.connection.calls.insert(call, now);
        self.connection.observed.called(key, begun);
        self.set_input_call(round, index, key);
    }

    fn set_input_call(&mut self, round: Key, index: u32, call: Key) {
        if let Some(round) = self.rounds.get_mut(round) {
            round.questions[index as usize].call = Some(call);
        }
    }

    /// Abandons a call of a round that asks for tasks.
    // MCP 2025-11-25 basic/utilities/cancellation#behavior-requirements [CANC-009]: a task is
    // cancelled by its id, as soon as it is known.
    fn drop_task(&mut self, mut call: Call, reason: &str, now: Instant) {
        let asks = call.task.is_some();
        let is_pending = !matches!(call.purpose, Purpose::InputTask { .. });
        if let Some(Repeat { params: Parameters::Shared(params), .. }) = &call.repeat {
            self.cancel_client_task(call.channel, params, now);
            if is_pending {
                self.connection.give_up(&call, reason, now);
            }
        } else if asks && !self.connection.outbox.withdraw(Tag::own(call.id)) {
            call.purpose = Purpose::UnneededTask(CancelTask(Self::cancel_task_in));
            call.timing = self.connection.timing(&CallOptions::default(), now);
            self.connection.calls.insert(call, now);
        } else if !asks {
            self.connection.give_up(&call, reason, now);
        }
    }
}

/// Returns the parameters that name a task.
fn task_params(task: &RawJson<'_>) -> Option<String> {
    let id = task.get("taskId")?.to_text()?.into_owned();
    let mut params = String::with_capacity(id.len() + 13);
    params.push_str(r#"{"taskId":"#);
    write_string(&mut params, &id);
    params.push('}');
    Some(params)
}

/// Returns a duration in milliseconds, if the member is a whole number.
fn millis(task: &RawJson<'_>, name: &str) -> Option<Duration> {
    task.get(name)?.to_number::<u64>().map(Duration::from_millis)
}

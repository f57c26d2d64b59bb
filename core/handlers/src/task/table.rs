//! The table of tasks.

#[cfg(feature = "http")]
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use core::time::Duration;

use mcp_sansio::jsonrpc::{ErrorObject, Json};
use mcp_sansio::peer::{Limits, Request, RequestHandle, ServerMachine};
use mcp_sansio::protocol::{
    CallToolResult, CreateTaskResult, InputRequiredResult, ProgressParams, SerializeAt, Task,
};
use mcp_sansio::{Era, ErrorCode, Instant};
use mcp_sansio_collections::{Deadlines, Key, Slab};

use super::client_requested::failure_of;
use super::entry::{Entry, State, relate_meta};
use super::requestors::{Requestor, Requestors};
use super::settings::{TaskEvent, TaskSettings};
#[cfg(feature = "http")]
use super::shared::SharedTasks;
use super::tasks::{ProgressReport, TaskHandler, TaskResponse, TaskStart, Tasks};
use crate::reply::{Outcome, ResultBody};
use crate::server_binding::ServerBinding;

/// The tasks of a server: of one connection on a byte stream, of all clients on HTTP.
///
/// Contains no handlers, only their requests and states: the endpoint runs the handlers.
#[derive(Debug)]
pub(crate) struct TaskTable {
    pub(super) settings: TaskSettings,
    limits: Limits,
    pub(super) entries: Slab<Entry>,
    names: BTreeMap<String, Key>,
    requests: BTreeMap<RequestHandle, Key>,
    pub(super) requestors: Requestors,
    /// The requests that wait for the result of a task, with the task.
    pub(super) waiting: BTreeMap<RequestHandle, Key>,
    /// Waiting requests whose task has expired.
    orphaned: VecDeque<RequestHandle>,
    deadlines: Deadlines<Instant>,
    bytes: usize,
    /// Tasks whose status has changed.
    changed: VecDeque<Key>,
    /// Requests whose handlers can be called again.
    resumed: VecDeque<RequestHandle>,
    /// Requests whose handlers have requested to become tasks.
    task_requests: BTreeSet<RequestHandle>,
    /// The state for other nodes, once a task or a request about tasks has needed it.
    #[cfg(feature = "http")]
    pub(super) shared: Option<Box<SharedTasks>>,
}

/// The longest status message that is kept, in bytes: one or two lines for people.
const MESSAGE_LENGTH_MAX: usize = 512;

/// The code of an error for an input request that the client cannot answer.
const LACKING: ErrorCode = ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY;

/// How many ids are drawn before a repeated collision is taken as broken entropy.
const DRAWS_MAX: usize = 4;

impl<M: ServerBinding> Tasks<M> for TaskTable {
    fn request_task(&mut self, request: RequestHandle) {
        self.task_requests.insert(request);
    }

    fn take_task_request(&mut self, request: RequestHandle) -> bool {
        self.task_requests.remove(&request)
    }

    fn forget(&mut self, request: RequestHandle, now: Instant) {
        self.task_requests.remove(&request);
        #[cfg(feature = "http")]
        if self.shared.is_some() {
            self.forget_lookup(request);
            self.cancel_created(request, now);
        }
        #[cfg(not(feature = "http"))]
        let _ = now;
        let Some(key) = self.waiting.remove(&request) else { return };
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.waiting.retain(|waiting| waiting.handle != request);
        if entry.asked == Some(request) {
            // The input requests become unsent again, for the next waiting request.
            entry.asked = None;
            self.note(key);
        }
    }

    fn begin(&mut self, machine: &mut M, request: &Request<'_>, now: Instant) -> TaskStart {
        self.begin_requested(machine, request, now)
    }

    // MCP 2026-07-28 ext-tasks:tasks#task-creation [TASK-029]: the task is created before the
    // answer is sent.
    fn create(&mut self, machine: &mut M, request: &Request<'_>, now: Instant) -> bool {
        if machine.sharing().is_some_and(|it| !it.admits()) {
            return false;
        }
        let requestor = Requestor::from_request(request);
        let ttl = self.settings.ttl;
        let kept = request.clone().into_owned();
        let Some(created) = self.add(kept, requestor, ttl, now) else { return false };
        // A client that has disconnected meanwhile is no reason to cancel its task.
        self.confirm(machine, request, created, now);
        true
    }

    fn complete(
        &mut self,
        request: RequestHandle,
        outcome: Outcome,
        now: Instant,
    ) -> Option<Outcome> {
        let Some(&key) = self.requests.get(&request) else { return Some(outcome) };
        let entry = self.entries.get(key)?;
        // MCP 2026-07-28 ext-tasks:tasks#task-cancellation [TASK-034]: the cancellation may arrive
        // too late.
        if entry.is_over() {
            return None;
        }
        let (revision, asked_for) = (entry.request.revision, entry.is_client_requested());
        let mut failure = None;
        let state = match outcome {
            // MCP 2026-07-28 ext-tasks:tasks#task-execution-errors [TASK-037]: completed even if
            // the result is a tool error.
            // MCP 2025-11-25 basic/utilities/tasks#task-execution-errors [TASK-020]: at this
            // revision it has failed.
            Outcome::Result(body) => {
                failure = if asked_for { failure_of(&body) } else { None };
                match body.to_json_at(revision) {
                    Ok(result) if failure.is_some() => Ok(State::ToolError(result)),
                    Ok(result) => Ok(State::Completed(result)),
                    Err(_) => Err(ErrorObject::internal("the result could not be serialized")),
                }
            }
            Outcome::Error(error) => Err(error),
            Outcome::Panicked(panicked) => Err(panicked.into()),
            Outcome::Refused(refusal) => Err(refusal.error),
            Outcome::InputRequired(required) => match self.ask(key, required.into()) {
                Ok(Some(state)) => Ok(state),
                Ok(None) => return None,
                // Like a tool call of this revision: a result that the model sees.
                // MCP 2025-11-25 schema.json#CallToolResult [TOOL-008]
                Err(error) if asked_for && error.code == LACKING => {
                    let failed = CallToolResult::error(&*error.message).to_json_at(revision);
                    failure = Some(shortened(&error.message));
                    failed.map(State::ToolError).map_err(|_| error)
                }
                Err(error) => Err(error),
            },
        };
        if let Some(failure) = failure {
            self.describe(key, &failure, now);
        }
        self.change(key, state, now);
        None
    }

    fn report(
        &mut self,
        machine: &mut M,
        request: RequestHandle,
        report: ProgressReport<'_>,
        now: Instant,
    ) -> bool {
        let Some(&key) = self.requests.get(&request) else { return false };
        let at_work = self.entries.get(key).is_some_and(|entry| !entry.is_over());
        // MCP 2025-11-25 basic/utilities/progress#behavior-requirements [PROG-010]: no progress
        // after the end.
        if at_work {
            if let Some((on, params)) = self.progress(key, report, now) {
                let sent = machine.task_progress(on, &params, now);
                debug_assert!(sent.is_ok(), "progress is an object");
            }
            if let Some(message) = report.message {
                self.describe(key, &shortened(message), now);
                self.note(key);
            }
        }
        true
    }

    fn place_of(&self, request: RequestHandle) -> Option<u32> {
        let key = self.requests.get(&request)?;
        self.entries.get(*key).filter(|entry| !entry.is_over()).map(|_| key.slot)
    }

    fn poll_resumed(&mut self) -> Option<Request<'static>> {
        while let Some(handle) = self.resumed.pop_front() {
            let key = self.requests.get(&handle);
            let Some(entry) = key.and_then(|key| self.entries.get(*key)) else { continue };
            if matches!(entry.state, State::Working) {
                return Some(entry.request.clone());
            }
        }
        None
    }

    fn notify_changes(&mut self, machine: &mut M, now: Instant) -> Option<TaskHandler> {
        if let Some(sharing) = machine.sharing()
            && let Some(dropped) = sharing.exchange(self, now)
        {
            return Some(dropped);
        }
        while let Some(key) = self.changed.pop_front() {
            #[cfg(feature = "http")]
            if self.defer(key) {
                continue;
            }
            match self.entries.get(key) {
                Some(entry) if entry.is_client_requested() => self.serve_waiting(key, machine, now),
                // MCP 2026-07-28 ext-tasks:tasks#task-status-notifications [TASK-038]
                Some(entry) => {
                    let principal = entry.requestor.principal.as_ref();
                    let status = &entry.detailed().into();
                    machine.task_changed(status, principal, now);
                }
                None => {}
            }
        }
        while let Some(request) = self.orphaned.pop_front() {
            machine.withdraw_input(request, now);
            let error = ErrorObject::invalid_params("the task has expired");
            answer(machine, request, Err(error), now);
        }
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let expiry = self.deadlines.first().map(|(deadline, _)| deadline);
        #[cfg(feature = "http")]
        if let Some(shared) = &self.shared {
            return expiry.into_iter().chain(shared.lookups.poll_timeout()).min();
        }
        expiry
    }

    fn expire(&mut self, now: Instant) -> Option<TaskHandler> {
        let (_, place) = self.deadlines.first().filter(|(deadline, _)| *deadline <= now)?;
        self.deadlines.clear(place);
        let key = self.entries.key_at(place)?;
        self.settings.tell(TaskEvent::Dropped, self.entries.get(key)?);
        let entry = self.remove(key)?;
        for waiting in entry.waiting {
            self.waiting.remove(&waiting.handle);
            self.orphaned.push_back(waiting.handle);
        }
        Some(TaskHandler { request: entry.request.handle, place })
    }

    fn assert_consistent(&self, is_pending: &dyn Fn(RequestHandle) -> bool) {
        // A method of a trait object is linked into every program.
        if cfg!(debug_assertions) {
            self.assert_tables_consistent(is_pending);
        }
    }

    #[cfg(feature = "http")]
    fn assert_shared_consistent(&self, is_pending: &dyn Fn(RequestHandle) -> bool) {
        if cfg!(debug_assertions) {
            self.assert_shared_tables_consistent(is_pending);
        }
    }

    fn serve(&mut self, machine: &mut M, request: &Request<'_>, now: Instant) -> TaskResponse {
        let mut dropped = None;
        let elsewhere = machine.sharing().and_then(|it| it.look_up(self, request, now));
        let answered = if let Some(answered) = elsewhere {
            answered
        } else if request.revision.era() == Era::Legacy {
            let answered = self.answer_requested(request, now, &mut dropped);
            match machine.sharing() {
                Some(sharing) => sharing.defer_cancelled(self, request, answered, now),
                None => answered,
            }
        } else {
            self.answer(request, now, &mut dropped).map(Some)
        };
        let outcome = match answered {
            Ok(result) => result.map(|result| Outcome::Result(ResultBody::Other(result))),
            Err(error) => Some(Outcome::Error(error)),
        };
        TaskResponse { outcome, dropped }
    }
}

impl TaskTable {
    pub(crate) fn new(settings: TaskSettings, limits: Limits) -> Self {
        Self {
            settings,
            limits,
            entries: Slab::new(),
            names: BTreeMap::new(),
            requests: BTreeMap::new(),
            requestors: Requestors::default(),
            waiting: BTreeMap::new(),
            orphaned: VecDeque::new(),
            deadlines: Deadlines::default(),
            bytes: 0,
            changed: VecDeque::new(),
            resumed: VecDeque::new(),
            task_requests: BTreeSet::new(),
            #[cfg(feature = "http")]
            shared: None,
        }
    }

    /// Creates a task for a request and returns its first answer; `None` if there are too many
    /// tasks. From here on `tasks/get` finds it.
    pub(super) fn add(
        &mut self,
        request: Request<'static>,
        requestor: Requestor,
        ttl: Duration,
        now: Instant,
    ) -> Option<Json> {
        if self.entries.len() >= self.settings.tasks_max
            || self.is_too_much(1)
            || !self.requestors.has_capacity(&requestor, self.settings.tasks_per_requestor_max)
        {
            return None;
        }
        // MCP 2026-07-28 ext-tasks:tasks#security-considerations [TASK-041]
        // MCP 2025-11-25 basic/utilities/tasks#task-id-requirements [TASK-008]
        let name = (0..DRAWS_MAX)
            .map(|_| self.settings.draw())
            .find(|name| !self.names.contains_key(name))?;
        let mut task = Task::new(&*name, self.settings.time(now));
        // In whole milliseconds, rounded down, so that the task is kept at least that long.
        task.ttl_ms = Some(millis(ttl));
        task.poll_interval_ms = Some(millis(self.settings.poll_interval).max(1));
        let created = CreateTaskResult::new(task.clone());
        let created = created.to_json_at(request.revision).ok()?;
        let (handle, expires) = (request.handle, now + ttl);
        let entry = Entry::new(task, requestor.clone(), request, expires);
        self.bytes += entry.bytes();
        let key = self.entries.insert(entry);
        let number = self.requestors.add(requestor, key);
        if let Some(entry) = self.entries.get_mut(key) {
            entry.number = number;
            self.settings.tell(TaskEvent::Created, entry);
        }
        self.names.insert(name, key);
        self.requests.insert(handle, key);
        self.deadlines.set(key.slot, expires);
        Some(created)
    }

    /// Answers a request with the task that it has created.
    pub(super) fn confirm<M: ServerBinding>(
        &mut self,
        machine: &mut M,
        request: &Request<'_>,
        created: Json,
        now: Instant,
    ) {
        if let Some(sharing) = machine.sharing() {
            return sharing.store_created(self, request, created);
        }
        answer(machine, request.handle, Ok(created), now);
    }

    /// Removes a task. The requests that wait for it are the caller's.
    pub(super) fn remove(&mut self, key: Key) -> Option<Entry> {
        let entry = self.entries.remove(key)?;
        self.deadlines.clear(key.slot);
        self.bytes -= entry.bytes();
        self.names.remove(&entry.task.task_id);
        self.requestors.remove(&entry.requestor, entry.number);
        self.requests.remove(&entry.request.handle);
        #[cfg(feature = "http")]
        self.forget_own(key);
        Some(entry)
    }

    /// Returns the task that a request has become.
    pub(super) fn key_of(&self, request: RequestHandle) -> Option<Key> {
        self.requests.get(&request).copied()
    }

    /// Returns the task with the id `name` of any owner.
    pub(super) fn key_of_name(&self, name: &str) -> Option<Key> {
        self.names.get(name).copied()
    }

    /// Returns the progress notification of a task, with the request whose session it is sent in.
    // MCP 2025-11-25 basic/utilities/progress#behavior-requirements [PROG-010]: with the token of
    // the call, to its caller.
    fn progress(
        &mut self,
        key: Key,
        report: ProgressReport<'_>,
        now: Instant,
    ) -> Option<(RequestHandle, Json)> {
        let entry = self.entries.get_mut(key)?;
        let asked = entry.progress.as_mut()?;
        if !asked.admit(report.progress, self.limits.progress_per_second_max, now) {
            return None;
        }
        let mut params = ProgressParams::new(asked.token.clone(), report.progress);
        params.total = report.total.filter(|total| total.is_finite());
        params.message = report.message.map(String::from);
        relate_meta(params.meta.get_or_insert_default(), &entry.task.task_id);
        let params = params.to_json_at(entry.request.revision).ok()?;
        let call = entry.request.handle;
        let mut waiting = entry.waiting.iter().map(|waiting| waiting.handle);
        let here = waiting.find(|waiting| waiting.is_on_connection_of(call));
        Some((here.unwrap_or(call), params))
    }

    /// Stores the status message of a task.
    fn describe(&mut self, key: Key, message: &str, now: Instant) {
        let time = self.settings.time(now);
        let Some(entry) = self.entries.get_mut(key) else { return };
        let held = self.bytes - entry.bytes();
        entry.task.status_message = Some(message.into());
        entry.task.last_updated_at = time;
        let bytes = held + entry.bytes();
        self.bytes = bytes;
        #[cfg(feature = "http")]
        self.note_unwritten(key, false);
    }

    fn ask(
        &mut self,
        key: Key,
        required: InputRequiredResult,
    ) -> Result<Option<State>, ErrorObject<'static>> {
        let Some(entry) = self.entries.get_mut(key) else { return Ok(None) };
        let before = entry.bytes();
        let asked = entry.ask(required, &self.limits);
        let bytes = self.bytes + entry.bytes() - before;
        if matches!(asked, Ok(None)) {
            self.resumed.push_back(entry.request.handle);
        }
        self.bytes = bytes;
        Ok(asked?.map(State::InputRequired))
    }

    /// Moves a task to another state, or fails it.
    pub(super) fn change(
        &mut self,
        key: Key,
        state: Result<State, ErrorObject<'static>>,
        now: Instant,
    ) {
        let time = self.settings.time(now);
        let all = self.bytes;
        let Some(entry) = self.entries.get_mut(key) else { return };
        let before = entry.bytes();
        let ended = match state {
            Ok(state) => {
                entry.transition(state, time.clone());
                let fits = all - before + entry.bytes() <= self.settings.bytes_max;
                if fits || matches!(entry.state, State::Working | State::Cancelled) {
                    None
                } else {
                    entry.state = State::Working;
                    Some(ErrorObject::internal("the tasks of the server exceed their memory limit"))
                }
            }
            Err(error) => Some(error),
        };
        if let Some(mut error) = ended {
            error.code = error.code.at_revision(entry.request.revision);
            // MCP 2026-07-28 ext-tasks:tasks#task-execution-errors [TASK-037]
            // MCP 2025-11-25 basic/utilities/tasks#task-execution-errors [TASK-020]
            entry.task.status_message = Some(shortened(&error.message));
            let error = Json::from_serialize(&error).expect("an error is JSON");
            entry.transition(State::Failed(error), time);
        }
        self.settings.tell(TaskEvent::Changed, entry);
        self.weigh(key, before);
        self.note(key);
        #[cfg(feature = "http")]
        self.note_unwritten(key, true);
    }

    pub(super) fn resume(&mut self, request: RequestHandle) {
        self.resumed.push_back(request);
    }

    /// Returns the task with the id `name` if it belongs to `requestor`.
    // MCP 2026-07-28 ext-tasks:tasks#security-considerations [TASK-041]
    // MCP 2025-11-25 basic/utilities/tasks#task-isolation-and-access-control [TASK-021]
    pub(super) fn find(&self, name: &str, requestor: &Requestor, now: Instant) -> Option<Key> {
        let key = *self.names.get(name)?;
        let entry = self.entries.get(key)?;
        (entry.requestor == *requestor && now < entry.expires).then_some(key)
    }

    /// Updates the total size after an entry had `before` bytes.
    pub(super) fn weigh(&mut self, key: Key, before: usize) {
        let after = self.entries.get(key).map_or(0, Entry::bytes);
        self.bytes = self.bytes + after - before;
    }

    /// Returns the bytes of this table.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Counts bytes that belong to no task of this table.
    pub(super) fn add_bytes(&mut self, bytes: usize) {
        self.bytes += bytes;
    }

    /// Stops counting them.
    pub(super) fn remove_bytes(&mut self, bytes: usize) {
        self.bytes -= bytes;
    }

    /// Whether `more` bytes would exceed the limit.
    pub(super) fn is_too_much(&self, more: usize) -> bool {
        self.bytes.saturating_add(more) > self.settings.bytes_max
    }

    pub(super) fn note(&mut self, key: Key) {
        if !self.changed.contains(&key) {
            self.changed.push_back(key);
        }
    }
}

/// Answers a request. The machine has already handled requests that were cancelled meanwhile.
pub(super) fn answer(
    machine: &mut impl ServerMachine,
    request: RequestHandle,
    answer: Result<Json, ErrorObject<'static>>,
    now: Instant,
) {
    let _answered = match answer {
        Ok(result) => machine.respond_with(request, &result, now),
        Err(error) => machine.reject(request, error, now),
    };
}

fn millis(duration: Duration) -> u64 {
    // The largest integer that JSON numbers represent exactly.
    const MOST: u64 = (1 << 53) - 1;
    u64::try_from(duration.as_millis()).map_or(MOST, |millis| millis.min(MOST))
}

/// Shortens a message for people.
pub(super) fn shortened(message: &str) -> String {
    let mut end = message.len().min(MESSAGE_LENGTH_MAX);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    message[..end].into()
}

// ------------------------------------------------------------------ consistency

impl TaskTable {
    /// Checks that the tables match each other. `is_pending` says whether a request waits for its
    /// response.
    fn assert_tables_consistent(&self, is_pending: &dyn Fn(RequestHandle) -> bool) {
        let count = self.entries.len();
        let indexes = [self.names.len(), self.requests.len(), self.deadlines.len()];
        assert_eq!(indexes, [count; 3], "names, requests and deadlines of tasks");
        assert_eq!(self.requestors.task_count(), count, "tasks of the requestors");
        let mut waiting = 0;
        for (key, entry) in self.entries.iter() {
            assert_eq!(self.names.get(&entry.task.task_id), Some(&key), "the name of a task");
            assert_eq!(self.requests.get(&entry.request.handle), Some(&key), "the call of a task");
            assert!(self.deadlines.get(key.slot).is_some(), "a task that never expires");
            for request in &entry.waiting {
                let known = self.waiting.get(&request.handle);
                assert_eq!(known, Some(&key), "a request that waits for a task");
            }
            let asked = entry.asked.is_none_or(|asked| self.waiting.contains_key(&asked));
            assert!(asked, "input requests of a request that does not wait");
            waiting += entry.waiting.len();
        }
        assert_eq!(self.waiting.len(), waiting, "requests that wait for tasks that are gone");
        for request in self.waiting.keys().chain(&self.task_requests) {
            assert!(is_pending(*request), "a request that has ended: {request:?}");
        }
        let bytes: usize = self.entries.iter().map(|(_, entry)| entry.bytes()).sum();
        assert!(self.bytes >= bytes, "bytes of the tasks");
    }
}

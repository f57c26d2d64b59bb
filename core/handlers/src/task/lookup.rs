//! Requests about tasks that other nodes run, or may have ended.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use mcp_sansio::http::{
    NodeId, StoreError, TaskCommand, TaskKey, TaskMessage, TaskPage, TaskRecord,
};
use mcp_sansio::jsonrpc::{ErrorObject, Json, RawJson};
use mcp_sansio::peer::{
    InputResponseParams, MethodName, Request, RequestHandle, ServerMachine as _,
};
use mcp_sansio::protocol::{
    CancelTaskResult, InputRequiredResult, ListTasksResult, SerializeAt, TaskStatus,
};
use mcp_sansio::{Era, Instant, Method};
use mcp_sansio_collections::Key;

use super::client_requested::{
    Answer, PAGE_LENGTH, WAITING_MAX, invalid_cursor, not_cancellable, unavailable, waiting_request,
};
use super::entry::Entry;
use super::requestors::Requestor;
use super::settings::TaskEvent;
use super::shared::{Details, detailed_of, failed, json_of};
use super::table::{TaskTable, answer};
use super::tasks::{check_declared, responses_of, written_task};
use crate::http_server::HttpServerMachine;
use crate::server_binding::ServerBinding;

/// The requests that wait for the store.
#[derive(Debug, Default)]
pub(super) struct Lookups {
    pub(super) entries: BTreeMap<RequestHandle, Lookup>,
    /// Those about each task, the oldest first.
    by_task: BTreeMap<TaskKey, Vec<RequestHandle>>,
    /// When to read a task again.
    due: BTreeSet<(Instant, RequestHandle)>,
}

/// A request about a task, without its parameters.
#[derive(Debug)]
pub(super) struct Lookup {
    pub(super) request: Request<'static>,
    pub(super) key: TaskKey,
    /// The responses of `tasks/update`.
    responses: Option<RawJson<'static>>,
    bytes: usize,
    /// Whether an action is pending.
    pub(super) pending: bool,
    /// Whether the task has changed since.
    changed: bool,
    /// When the request was passed on to the node of the task.
    relayed: Option<Instant>,
    /// When to read the task again.
    due: Option<Instant>,
    /// The round whose input requests were sent through this request, and the node of the task.
    pub(super) asked: Option<(u32, NodeId)>,
    /// The last round whose input requests the client has answered through it.
    pub(super) answered: u32,
}

/// How often a task is read again for a request that waits, without a message: see
/// [`SharedOptions::poll`](mcp_sansio::http::SharedOptions::poll).
fn pause(machine: &HttpServerMachine) -> Duration {
    machine.options().shared_ref().map_or(Duration::MAX, |sharing| sharing.poll)
}

/// How long the node of a task may take to cancel it before it is told again: see
/// [`SharedOptions::patience`](mcp_sansio::http::SharedOptions::patience).
fn patience(machine: &HttpServerMachine) -> Duration {
    machine.options().shared_ref().map_or(Duration::MAX, |sharing| sharing.patience)
}

impl Lookups {
    /// Returns when to read the next task again.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.due.first().map(|(due, _)| *due)
    }

    pub(super) fn set_due(&mut self, request: RequestHandle, due: Option<Instant>) {
        let Some(lookup) = self.entries.get_mut(&request) else { return };
        if let Some(before) = core::mem::replace(&mut lookup.due, due) {
            self.due.remove(&(before, request));
        }
        self.due.extend(due.map(|due| (due, request)));
    }

    /// Checks that each entry belongs to a request that waits. Returns the bytes of all.
    pub(super) fn assert_consistent(&self, is_pending: &dyn Fn(RequestHandle) -> bool) -> usize {
        for request in self.by_task.values().flatten() {
            assert!(self.entries.contains_key(request), "a request about a task that is gone");
        }
        for (request, lookup) in &self.entries {
            assert!(is_pending(*request), "a request that has ended: {request:?}");
            let is_set = lookup.due.is_none_or(|due| self.due.contains(&(due, *request)));
            assert!(is_set, "a time at which nothing is read");
        }
        let due = self.entries.values().filter(|lookup| lookup.due.is_some()).count();
        assert_eq!(self.due.len(), due, "times of requests that are gone");
        self.entries.values().map(|lookup| lookup.bytes).sum()
    }

    fn take(&mut self, request: RequestHandle) -> Option<Lookup> {
        self.set_due(request, None);
        let lookup = self.entries.remove(&request)?;
        if let Some(requests) = self.by_task.get_mut(&lookup.key) {
            requests.retain(|other| *other != request);
            if requests.is_empty() {
                self.by_task.remove(&lookup.key);
            }
        }
        Some(lookup)
    }

    /// Returns the requests about a task for which `wanted` holds, the oldest first.
    pub(super) fn about(
        &self,
        key: &TaskKey,
        wanted: impl Fn(&Lookup) -> bool,
    ) -> Vec<RequestHandle> {
        let requests = self.by_task.get(key).into_iter().flatten().copied();
        requests.filter(|request| self.entries.get(request).is_some_and(&wanted)).collect()
    }
}

impl TaskTable {
    /// Answers a request about a task that is not, or perhaps no longer, one of this node. Returns
    /// `None` if this node can answer it.
    pub(super) fn look_up(
        &mut self,
        machine: &mut HttpServerMachine,
        request: &Request<'_>,
        now: Instant,
    ) -> Option<Answer> {
        let shared = self.shared.as_ref();
        if shared.is_some_and(|shared| shared.lookups.entries.contains_key(&request.handle)) {
            self.relay_inputs(machine, request, now);
            return Some(Ok(None));
        }
        if self.waiting.contains_key(&request.handle) {
            return None;
        }
        let requestor = Requestor::from_request(request);
        let is_legacy = request.revision.era() == Era::Legacy;
        if request.method == Method::TasksList {
            let admitted = self.admit_visitor(&requestor, now);
            let listed = admitted.and_then(|()| self.begin_list(machine, request, now));
            return Some(listed.map(|()| None));
        }
        let name: String = request.subject()?.to_text()?.into();
        if let Some(task) = self.find(&name, &requestor, now)
            && !machine.may_be_deposed(now)
            && !self.is_unstored(task)
        {
            return None;
        }
        let prepared = if is_legacy {
            self.admit_visitor(&requestor, now).map(|()| None)
        } else if request.method == Method::TasksUpdate {
            responses_of(request).map(|responses| Some(responses.into_owned()))
        } else {
            Ok(None)
        };
        Some(prepared.and_then(|responses| {
            let bytes = responses.as_ref().map_or(0, |it| it.as_str().len());
            if bytes > 0 && self.is_too_much(bytes) {
                return Err(ErrorObject::internal(
                    "the tasks of the server exceed their memory limit",
                ));
            }
            let request = waiting_request(request, &name);
            self.insert_lookup(machine, request, &name, responses, now);
            Ok(None)
        }))
    }

    /// Reads a task for a request in the form that is stored. `responses` are those of
    /// `tasks/update`.
    pub(super) fn insert_lookup(
        &mut self,
        machine: &mut HttpServerMachine,
        request: Request<'static>,
        name: &str,
        responses: Option<RawJson<'static>>,
        now: Instant,
    ) {
        let handle = request.handle;
        self.enter_lookup(machine, request, name, responses, now);
        self.read_for(machine, handle, now);
    }

    /// Lets a request wait for the end that it has caused.
    pub(super) fn await_end(
        &mut self,
        machine: &mut HttpServerMachine,
        request: Request<'static>,
        name: &str,
        now: Instant,
    ) {
        let handle = request.handle;
        self.enter_lookup(machine, request, name, None, now);
        if let Some(lookup) = self.lookup_mut(handle) {
            lookup.relayed = Some(now);
        }
        self.wait(machine, handle, now);
    }

    fn enter_lookup(
        &mut self,
        machine: &mut HttpServerMachine,
        request: Request<'static>,
        name: &str,
        responses: Option<RawJson<'static>>,
        now: Instant,
    ) {
        let handle = request.handle;
        let key = TaskKey::new(machine.task_requestor(&request), name.into());
        let held = responses.as_ref().map_or(0, |it| it.as_str().len());
        let bytes = request.params.as_str().len() + held;
        self.add_bytes(bytes);
        let lookup = Lookup {
            request,
            key: key.clone(),
            responses,
            bytes,
            pending: false,
            changed: false,
            relayed: None,
            due: None,
            asked: None,
            answered: 0,
        };
        let lookups = &mut self.shared_mut().lookups;
        lookups.entries.insert(handle, lookup);
        lookups.by_task.entry(key.clone()).or_default().push(handle);
        // As for a task of this node: the client probably closed the stream of the oldest one.
        let waiting = lookups.about(&key, |it| it.request.method == Method::TasksResult);
        if let Some(oldest) = waiting.first().filter(|_| waiting.len() > WAITING_MAX) {
            let error = ErrorObject::internal("too many requests wait for this task");
            self.end_lookup(machine, *oldest, Err(error), now);
        }
    }

    fn begin_list(
        &mut self,
        machine: &mut HttpServerMachine,
        request: &Request<'_>,
        now: Instant,
    ) -> Result<(), ErrorObject<'static>> {
        let cursor = match request.params.get("cursor").filter(|it| it.as_str() != "null") {
            None => None,
            // MCP 2025-11-25 basic/utilities/tasks#protocol-errors [TASK-019]
            Some(cursor) => Some(cursor.to_text().ok_or_else(invalid_cursor)?.into()),
        };
        let requestor = machine.task_requestor(request);
        let handle = request.handle;
        let mut kept = request.clone();
        kept.clear_params();
        let lookup = Lookup {
            request: kept.into_owned(),
            key: TaskKey::new(requestor.clone(), String::new()),
            responses: None,
            bytes: 0,
            pending: true,
            changed: false,
            relayed: None,
            due: None,
            asked: None,
            answered: 0,
        };
        self.shared_mut().lookups.entries.insert(handle, lookup);
        let list = TaskCommand::List { request: handle, requestor, cursor, tasks_max: PAGE_LENGTH };
        machine.share_task(list, now);
        Ok(())
    }

    /// Removes a request that was cancelled.
    pub(super) fn forget_lookup(&mut self, request: RequestHandle) {
        self.take_lookup(request);
    }

    pub(super) fn take_lookup(&mut self, request: RequestHandle) -> Option<Lookup> {
        let lookup = self.shared.as_mut()?.lookups.take(request)?;
        self.remove_bytes(lookup.bytes);
        Some(lookup)
    }

    pub(super) fn lookup_mut(&mut self, request: RequestHandle) -> Option<&mut Lookup> {
        self.shared.as_mut()?.lookups.entries.get_mut(&request)
    }

    fn end_lookup(
        &mut self,
        machine: &mut HttpServerMachine,
        request: RequestHandle,
        result: Result<Json, ErrorObject<'static>>,
        now: Instant,
    ) {
        if let Some(lookup) = self.take_lookup(request) {
            if lookup.asked.is_some() {
                ServerBinding::withdraw(machine, request, now);
            }
            answer(machine, request, result, now);
        }
    }

    fn refuse_lookup(
        &mut self,
        machine: &mut HttpServerMachine,
        request: RequestHandle,
        now: Instant,
    ) {
        if let Some(lookup) = self.take_lookup(request) {
            if lookup.asked.is_some() {
                ServerBinding::withdraw(machine, request, now);
            }
            let _refused = ServerBinding::refuse(machine, request, unavailable(), now);
        }
    }

    /// Reads the task of a request.
    fn read_for(&mut self, machine: &mut HttpServerMachine, request: RequestHandle, now: Instant) {
        let Some(lookup) = self.lookup_mut(request) else { return };
        if core::mem::replace(&mut lookup.pending, true) {
            lookup.changed = true;
            return;
        }
        let key = lookup.key.clone();
        self.shared_mut().lookups.set_due(request, None);
        machine.share_task(TaskCommand::Read { request, key }, now);
    }

    /// Reads the tasks again whose time has come.
    pub(super) fn look_again(&mut self, machine: &mut HttpServerMachine, now: Instant) {
        while let Some(shared) = &self.shared
            && let Some((due, request)) = shared.lookups.due.first().copied()
            && due <= now
        {
            self.shared_mut().lookups.set_due(request, None);
            if machine.is_pending(request) {
                self.read_for(machine, request, now);
            } else {
                self.forget_lookup(request);
            }
        }
    }

    /// Handles a change of a task that another node has told.
    pub(super) fn handle_changed(
        &mut self,
        machine: &mut HttpServerMachine,
        key: &TaskKey,
        now: Instant,
    ) {
        let Some(shared) = &self.shared else { return };
        for request in shared.lookups.about(key, |lookup| lookup.due.is_some() || lookup.pending) {
            self.read_for(machine, request, now);
        }
    }

    // ------------------------------------------------------------------ results of the store

    /// Handles the record of a task.
    pub(super) fn handle_found(
        &mut self,
        machine: &mut HttpServerMachine,
        handle: RequestHandle,
        result: Result<TaskRecord, StoreError>,
        orphaned: bool,
        now: Instant,
    ) {
        let Some(lookup) = self.lookup_mut(handle) else { return };
        lookup.pending = false;
        let changed = core::mem::take(&mut lookup.changed);
        let is_own = |record: &TaskRecord| machine.node_id() == Some(record.node);
        let (requestor, name) = (Requestor::from_request(&lookup.request), lookup.key.task.clone());
        let here = self.find(&name, &requestor, now);
        let is_here = here.is_some();
        let record = match result {
            // It was read before the last write, whose result causes another read.
            Ok(_) if here.is_some_and(|task| self.is_unstored(task)) => {
                return self.wait(machine, handle, now);
            }
            Ok(record) if is_here && is_own(&record) && !record.ended => {
                return self.serve_here(machine, handle, now);
            }
            Ok(record) => record,
            // The store does not have it yet, or cannot contradict this node.
            Err(_) if is_here => return self.serve_here(machine, handle, now),
            // MCP 2026-07-28 ext-tasks:tasks#protocol-errors [TASK-035]
            // MCP 2025-11-25 basic/utilities/tasks#protocol-errors [TASK-019]
            Err(StoreError::Missing) => {
                let unknown = ErrorObject::invalid_params("unknown task");
                return self.end_lookup(machine, handle, Err(unknown), now);
            }
            Err(_) => return self.refuse_lookup(machine, handle, now),
        };
        let is_lost = !record.ended && (orphaned || is_own(&record));
        if is_lost && let Some(record) = self.failed_record(handle, &record, now) {
            let Some(lookup) = self.lookup_mut(handle) else { return };
            lookup.pending = true;
            let key = lookup.key.clone();
            return machine.share_task(TaskCommand::Fail { request: handle, key, record }, now);
        }
        self.continue_with(machine, handle, &record, now);
        // Unless it is answered.
        if changed {
            self.read_for(machine, handle, now);
        }
    }

    fn failed_record(
        &mut self,
        request: RequestHandle,
        record: &TaskRecord,
        now: Instant,
    ) -> Option<TaskRecord> {
        let time = self.settings.time(now);
        failed(record, self.lookup_mut(request)?.request.revision, time)
    }

    /// Answers a request with the state of a task on this node.
    fn serve_here(&mut self, machine: &mut HttpServerMachine, handle: RequestHandle, now: Instant) {
        let Some(Lookup { request, key, responses, asked, relayed, .. }) = self.take_lookup(handle)
        else {
            return;
        };
        if asked.is_some() {
            ServerBinding::withdraw(machine, handle, now);
        }
        if relayed.is_some()
            && let Some(result) = self.cancelled_here(&request, &key.task, now)
        {
            return answer(machine, handle, result, now);
        }
        let mut dropped = None;
        let answered = if request.revision.era() == Era::Legacy {
            let answered = self.answer_admitted(&request, &key.task, now, &mut dropped);
            self.defer_cancelled(machine, &request, answered, now)
        } else {
            let responses = responses.as_ref();
            self.answer_named(&request, &key.task, responses, now, &mut dropped).map(Some)
        };
        if let Some(handler) = dropped {
            self.shared_mut().drop_handler(handler);
        }
        if let Some(answered) = answered.transpose() {
            answer(machine, handle, answered, now);
        }
    }

    /// Answers a request with the record of a task, passes it on to the node of the task, or waits.
    fn continue_with(
        &mut self,
        machine: &mut HttpServerMachine,
        handle: RequestHandle,
        record: &TaskRecord,
        now: Instant,
    ) {
        let Some(lookup) = self.lookup_mut(handle) else { return };
        let legacy = lookup.request.revision.era() == Era::Legacy;
        let revision = lookup.request.revision;
        let broken = || ErrorObject::internal("the task in the store is malformed");
        let (Some(json), Some(detailed)) = (json_of(&record.task), detailed_of(&record.task))
        else {
            return self.end_lookup(machine, handle, Err(broken()), now);
        };
        let declared = check_declared(&detailed, &lookup.request);
        let task = detailed.task;
        let result = match lookup.request.method {
            // MCP 2026-07-28 ext-tasks:tasks#response [TASK-030]
            MethodName::Known(Method::TasksGet) => declared.map(|()| json),
            // MCP 2025-11-25 basic/utilities/tasks#result-retrieval [TASK-013]
            MethodName::Known(Method::TasksResult) if record.ended => {
                let principal = lookup.request.caller.principal().cloned();
                self.settings.tell_of(TaskEvent::Retrieved, &task, principal.as_ref());
                Details::from_record(record).final_answer(&task)
            }
            MethodName::Known(Method::TasksResult) => {
                self.ask_client(machine, handle, record, now);
                return self.wait(machine, handle, now);
            }
            // MCP 2025-11-25 basic/utilities/tasks#task-cancellation [TASK-018]
            _ if legacy && record.ended => {
                if lookup.relayed.is_some() && task.status == TaskStatus::Cancelled {
                    written_task(CancelTaskResult::new().task(task).to_json_at(revision))
                } else {
                    Err(not_cancellable(&task))
                }
            }
            // Otherwise the message may be lost.
            _ if lookup.relayed.is_some_and(|at| now < at + patience(machine)) => {
                return self.wait(machine, handle, now);
            }
            _ if !record.ended => {
                let inputs = InputResponseParams::new(lookup.responses.take(), None);
                let message = match lookup.request.method {
                    MethodName::Known(Method::TasksUpdate) => {
                        TaskMessage::Update { round: 0, inputs }
                    }
                    _ => TaskMessage::Cancel,
                };
                lookup.pending = true;
                let key = lookup.key.clone();
                let relay = TaskCommand::Relay { request: handle, to: record.node, key, message };
                return machine.share_task(relay, now);
            }
            // MCP 2026-07-28 ext-tasks:tasks#task-update-requests [TASK-033]
            _ => written_task(CancelTaskResult::new().to_json_at(revision)),
        };
        self.end_lookup(machine, handle, result, now);
    }

    fn wait(&mut self, machine: &HttpServerMachine, request: RequestHandle, now: Instant) {
        let due = now + pause(machine);
        self.shared_mut().lookups.set_due(request, Some(due));
    }

    /// Handles the result of a message to the node of a task.
    pub(super) fn handle_relayed(
        &mut self,
        machine: &mut HttpServerMachine,
        handle: RequestHandle,
        result: Result<(), StoreError>,
        now: Instant,
    ) {
        let Some(lookup) = self.lookup_mut(handle) else { return };
        match result {
            // A node that has gone is found out by the next read.
            Ok(()) | Err(StoreError::Missing) => {}
            Err(_) => return self.refuse_lookup(machine, handle, now),
        }
        (lookup.relayed, lookup.pending) = (Some(now), false);
        let revision = lookup.request.revision;
        if revision.era() == Era::Legacy {
            // MCP 2025-11-25 basic/utilities/tasks#task-cancellation [TASK-018]: answered when the
            // node has cancelled the task.
            if core::mem::take(&mut lookup.changed) {
                return self.read_for(machine, handle, now);
            }
            return self.wait(machine, handle, now);
        }
        // MCP 2026-07-28 ext-tasks:tasks#task-update-requests [TASK-033]
        // MCP 2026-07-28 ext-tasks:tasks#task-cancellation [TASK-034]
        let acknowledged = written_task(CancelTaskResult::new().to_json_at(revision));
        self.end_lookup(machine, handle, acknowledged, now);
    }

    /// Handles a page of tasks.
    // MCP 2025-11-25 basic/utilities/tasks#task-listing [TASK-017]
    pub(super) fn handle_listed(
        &mut self,
        machine: &mut HttpServerMachine,
        handle: RequestHandle,
        result: Result<TaskPage, StoreError>,
        now: Instant,
    ) {
        let Some(lookup) = self.lookup_mut(handle) else { return };
        let revision = lookup.request.revision;
        let result = match result {
            Ok(TaskPage { tasks, next, .. }) => {
                let tasks: Vec<_> =
                    tasks.iter().filter_map(|task| Some(detailed_of(task)?.task)).collect();
                let mut result = ListTasksResult::new(tasks);
                result.next_cursor = next;
                written_task(result.to_json_at(revision))
            }
            Err(StoreError::Missing) => Err(invalid_cursor()),
            Err(_) => return self.refuse_lookup(machine, handle, now),
        };
        self.end_lookup(machine, handle, result, now);
    }
}

// ------------------------------------------------------------------ answers to input requests

impl TaskTable {
    /// Sends the input requests of a task through a request that waits for its result.
    // MCP 2025-11-25 basic/utilities/tasks#input-required-status [TASK-015]
    pub(super) fn ask_client(
        &mut self,
        machine: &mut HttpServerMachine,
        handle: RequestHandle,
        record: &TaskRecord,
        now: Instant,
    ) {
        let Some(shared) = &mut self.shared else { return };
        let Some(lookup) = shared.lookups.entries.get(&handle) else { return };
        let (details, key) = (Details::from_record(record), lookup.key.clone());
        let (round, questions) = (details.round, details.questions());
        let asked = lookup.asked;
        if round <= lookup.answered {
            return;
        }
        if asked.is_some_and(|(asked, _)| asked != round || questions.is_none()) {
            // Answered by another request.
            ServerBinding::withdraw(machine, handle, now);
            if let Some(lookup) = self.lookup_mut(handle) {
                lookup.asked = None;
            }
        } else if asked.is_some() {
            return;
        }
        let Some(questions) = questions else { return };
        let Some(shared) = &self.shared else { return };
        let others = shared
            .lookups
            .about(&key, |other| other.asked.is_some_and(|(asked, _)| asked == round));
        if others.iter().any(|other| machine.has_open_stream(*other)) {
            return;
        }
        let Some(Lookup { request, .. }) = shared.lookups.entries.get(&handle) else { return };
        let mut required = InputRequiredResult::new();
        required.input_requests = Some(questions);
        // If the input request cannot be sent, the machine has answered the request.
        if machine.require_input(request, &required, now).is_err() {
            self.take_lookup(handle);
        } else if let Some(lookup) = self.lookup_mut(handle) {
            lookup.asked = Some((round, record.node));
        }
    }

    /// Passes the answers of a client on to the node of the task.
    pub(super) fn relay_inputs(
        &mut self,
        machine: &mut HttpServerMachine,
        request: &Request<'_>,
        now: Instant,
    ) {
        let Some(lookup) = self.lookup_mut(request.handle) else { return };
        let Some((round, to)) = lookup.asked.take() else { return };
        (lookup.answered, lookup.pending) = (round, true);
        let key = lookup.key.clone();
        let mut inputs = request.inputs.clone().into_owned();
        inputs.set_state(None);
        let message = TaskMessage::Update { round, inputs };
        let handle = request.handle;
        self.shared_mut().lookups.set_due(handle, None);
        machine.share_task(TaskCommand::Relay { request: handle, to, key, message }, now);
    }
}

// ------------------------------------------------------------------ ends of tasks in the store

impl TaskTable {
    /// Returns whether a task has ended, and the store does not have its end as far as this node
    /// knows. Clients then get to know the state in the store.
    pub(super) fn is_unstored(&self, task: Key) -> bool {
        let failed = self.shared.as_ref().is_some_and(|shared| shared.failed.contains(&task));
        self.is_being_stored(task) || (failed && self.entries.get(task).is_some_and(Entry::is_over))
    }

    /// Returns whether a task has ended, and the store has not taken or refused its end yet.
    pub(super) fn is_being_stored(&self, task: Key) -> bool {
        let Some(shared) = &self.shared else { return false };
        let pending = shared.own.get(&task).is_some_and(|own| own.writing.is_some());
        (pending || shared.unwritten.contains(&task))
            && self.entries.get(task).is_some_and(Entry::is_over)
    }

    /// Defers the announcement of a task that has just ended.
    // MCP 2025-11-25 basic/utilities/tasks#task-status-lifecycle [TASK-009]: clients see one end.
    pub(super) fn defer(&mut self, task: Key) -> bool {
        let defers = self.is_being_stored(task);
        let own = self.shared.as_mut().and_then(|shared| shared.own.get_mut(&task));
        own.is_some_and(|own| {
            own.deferred = defers;
            defers
        })
    }

    /// Defers the answer to a request that has cancelled a task of this node.
    // MCP 2025-11-25 basic/utilities/tasks#task-cancellation [TASK-018]
    pub(super) fn defer_cancelled(
        &mut self,
        machine: &mut HttpServerMachine,
        request: &Request<'_>,
        answered: Answer,
        now: Instant,
    ) -> Answer {
        let is_cancelled = request.method == Method::TasksCancel && answered.is_ok();
        if !is_cancelled {
            return answered;
        }
        let name = request.subject();
        let Some(name) = name.as_ref().and_then(RawJson::to_text) else { return answered };
        let task = self.find(&name, &Requestor::from_request(request), now);
        if !task.is_some_and(|task| self.is_being_stored(task)) {
            return answered;
        }
        let waiting = waiting_request(request, &name);
        self.await_end(machine, waiting, &name, now);
        Ok(None)
    }

    /// Returns the answer to such a request.
    pub(super) fn cancelled_here(
        &self,
        request: &Request<'_>,
        name: &str,
        now: Instant,
    ) -> Option<Result<Json, ErrorObject<'static>>> {
        let key = self.find(name, &Requestor::from_request(request), now)?;
        let task = &self.entries.get(key)?.task;
        if request.method != Method::TasksCancel || task.status != TaskStatus::Cancelled {
            return None;
        }
        let result = CancelTaskResult::new().task(task.clone());
        Some(written_task(result.to_json_at(request.revision)))
    }
}

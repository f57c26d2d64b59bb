//! The tasks of this node in a store that several nodes share.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use mcp_sansio::http::{StoreError, TaskCommand, TaskKey, TaskMessage, TaskRecord, TaskStoreEvent};
use mcp_sansio::jsonrpc::{ErrorObject, Json, JsonError, RawJson};
use mcp_sansio::peer::{Request, RequestHandle};
use mcp_sansio::protocol::{
    DetailedTask, GetTaskResult, InputRequests, SerializeAt, Task, TaskStatus,
};
use mcp_sansio::{Instant, Revision};
use mcp_sansio_collections::Key;

use super::client_requested::{Answer, too_often, unavailable};
use super::entry::{Entry, State, related};
use super::lookup::Lookups;
use super::requestors::{Requestor, Visitors};
use super::settings::TaskEvent;
use super::table::{TaskTable, answer};
use super::tasks::{TaskHandler, TaskSharing};
use crate::http_server::HttpServerMachine;
use crate::server_binding::ServerBinding;

/// The part of a task table that exists only if several nodes share their tasks.
#[derive(Debug, Default)]
pub(super) struct SharedTasks {
    /// The tasks of this node.
    pub(super) own: BTreeMap<Key, OwnTask>,
    /// Those whose last state was not written yet.
    pub(super) unwritten: BTreeSet<Key>,
    /// Those to be written again when the store is available.
    pub(super) failed: BTreeSet<Key>,
    pub(super) lookups: Lookups,
    pub(super) visitors: Visitors,
    /// The handlers of tasks that have ended at another node or were not created.
    dropped: VecDeque<TaskHandler>,
}

/// A task of this node.
#[derive(Debug)]
pub(super) struct OwnTask {
    key: TaskKey,
    /// Whether a write is pending, and changes the status.
    pub(super) writing: Option<bool>,
    /// Whether the status has changed since.
    changed: bool,
    /// The request that created the task and its answer, until the task is stored.
    created: Option<(RequestHandle, Json)>,
    /// Whether clients get to know its end when the store has taken it.
    pub(super) deferred: bool,
    check: Check,
}

/// Looks for a state that the store has taken and then lost, as a failover to a replica does. A
/// state is checked a third of the lease after it was stored, and from then on when it is twice as
/// old: a few reads find a loss of any age.
#[derive(Debug, Default)]
struct Check {
    /// When to read the record. `None`: its last state is not stored yet.
    due: Option<Instant>,
    /// When the state was stored.
    since: Instant,
    /// Whether a read is pending, and no write was sent since.
    pending: Option<bool>,
}

impl Check {
    /// The state was stored.
    fn restart(&mut self, lease: Duration, now: Instant) {
        self.since = now;
        self.due = Some(now + lease / 3);
    }

    fn is_due(&self, now: Instant) -> bool {
        self.pending.is_none() && self.due.is_some_and(|due| due <= now)
    }

    /// The record has the state.
    fn defer(&mut self, now: Instant) {
        self.due = Some(now + now.saturating_since(self.since));
    }

    /// Another state is being written.
    fn suspend(&mut self) {
        self.due = None;
        if let Some(valid) = &mut self.pending {
            *valid = false;
        }
    }
}

fn keeps_locally(machine: &HttpServerMachine) -> bool {
    let sharing = machine.options().shared_ref();
    sharing.is_some_and(|it| it.keep_locally)
}

impl TaskSharing for HttpServerMachine {
    fn admits(&self) -> bool {
        self.is_store_available() || keeps_locally(self)
    }

    fn exchange(&mut self, table: &mut TaskTable, now: Instant) -> Option<TaskHandler> {
        table.exchange_with_store(self, now)
    }

    fn look_up(
        &mut self,
        table: &mut TaskTable,
        request: &Request<'_>,
        now: Instant,
    ) -> Option<Answer> {
        table.look_up(self, request, now)
    }

    fn defer_cancelled(
        &mut self,
        table: &mut TaskTable,
        request: &Request<'_>,
        answered: Answer,
        now: Instant,
    ) -> Answer {
        table.defer_cancelled(self, request, answered, now)
    }

    fn store_created(&mut self, table: &mut TaskTable, request: &Request<'_>, created: Json) {
        table.store_created(self, request, created);
    }
}

impl SharedTasks {
    pub(super) fn drop_handler(&mut self, handler: TaskHandler) {
        self.dropped.push_back(handler);
    }
}

impl TaskTable {
    pub(super) fn shared_mut(&mut self) -> &mut SharedTasks {
        self.shared.get_or_insert_default()
    }

    /// Checks the tables that nodes share.
    pub(super) fn assert_shared_tables_consistent(
        &self,
        is_pending: &dyn Fn(RequestHandle) -> bool,
    ) {
        let mut bytes: usize = self.entries.iter().map(|(_, entry)| entry.bytes()).sum();
        if let Some(shared) = &self.shared {
            for task in shared.own.keys().chain(&shared.unwritten).chain(&shared.failed) {
                assert!(self.entries.get(*task).is_some(), "the state of a task that is gone");
            }
            bytes += shared.lookups.assert_consistent(is_pending);
        }
        assert_eq!(self.bytes(), bytes, "bytes of the tasks");
    }

    /// Returns whether a client may send another request about tasks of other nodes, of which it
    /// may have as many as one node allows.
    pub(super) fn admit_visitor(
        &mut self,
        requestor: &Requestor,
        now: Instant,
    ) -> Result<(), ErrorObject<'static>> {
        let tasks = self.settings.tasks_per_requestor_max;
        let allowed = self.requests_per_task().saturating_mul(tasks);
        if self.shared_mut().visitors.admit(requestor, allowed, now) {
            return Ok(());
        }
        Err(too_often())
    }

    /// Stores a new task, and then answers the request that created it.
    // MCP 2026-07-28 ext-tasks:tasks#task-creation [TASK-029]: every node finds it then.
    pub(super) fn store_created(
        &mut self,
        machine: &HttpServerMachine,
        request: &Request<'_>,
        created: Json,
    ) {
        let Some(task) = self.key_of(request.handle) else { return };
        let Some(entry) = self.entries.get(task) else { return };
        let key = TaskKey::new(machine.task_requestor(request), entry.task.task_id.clone());
        let created = Some((request.handle, created));
        let check = Check::default();
        let own = OwnTask { key, writing: None, changed: false, created, deferred: false, check };
        let shared = self.shared_mut();
        shared.own.insert(task, own);
        shared.unwritten.insert(task);
    }

    /// Ends a task whose creation its client has cancelled.
    pub(super) fn cancel_created(&mut self, request: RequestHandle, now: Instant) {
        let Some(key) = self.key_of(request) else { return };
        let own = self.shared.as_mut().and_then(|shared| shared.own.get_mut(&key));
        let is_over = self.entries.get(key).is_none_or(Entry::is_over);
        if own.and_then(|own| own.created.take()).is_some() && !is_over {
            self.change(key, Ok(State::Cancelled), now);
        }
    }

    /// Notes that a task has to be written, and whether its status has changed.
    pub(super) fn note_unwritten(&mut self, key: Key, changed: bool) {
        let Some(shared) = &mut self.shared else { return };
        if let Some(own) = shared.own.get_mut(&key) {
            own.changed |= changed;
            shared.unwritten.insert(key);
        }
    }

    /// Forgets a task that is no longer in the table.
    pub(super) fn forget_own(&mut self, key: Key) {
        if let Some(shared) = &mut self.shared {
            shared.own.remove(&key);
            shared.unwritten.remove(&key);
            shared.failed.remove(&key);
        }
    }

    /// Writes the tasks that have changed, each after its previous write.
    fn write_changes(&mut self, machine: &mut HttpServerMachine, now: Instant) {
        let Some(shared) = self.shared.as_mut().filter(|_| !machine.is_joining()) else { return };
        for key in core::mem::take(&mut shared.unwritten) {
            let Some(own) = shared.own.get_mut(&key) else { continue };
            if own.writing.is_some() {
                shared.unwritten.insert(key);
                continue;
            }
            let Some(entry) = self.entries.get(key).filter(|it| now < it.expires) else { continue };
            // Otherwise the previous state stays.
            let Ok(Snapshot { ended, task, details }) = Snapshot::from_entry(entry) else {
                continue;
            };
            own.writing = Some(core::mem::take(&mut own.changed));
            own.check.suspend();
            let put = TaskCommand::Put {
                key: own.key.clone(),
                ended,
                task,
                details,
                ttl: entry.expires.saturating_since(now),
                listed: entry.is_client_requested(),
            };
            machine.share_task(put, now);
        }
    }

    /// Handles the events of the store and writes changes. Returns a handler to drop.
    pub(super) fn exchange_with_store(
        &mut self,
        machine: &mut HttpServerMachine,
        now: Instant,
    ) -> Option<TaskHandler> {
        loop {
            self.write_changes(machine, now);
            self.look_again(machine, now);
            // A full queue of the store fails at once.
            let Some(event) = machine.poll_task() else { break };
            self.handle_store_event(machine, event, now);
        }
        self.shared.as_mut()?.dropped.pop_front()
    }

    fn handle_store_event(
        &mut self,
        machine: &mut HttpServerMachine,
        event: TaskStoreEvent,
        now: Instant,
    ) {
        match event {
            TaskStoreEvent::Stored { key, result } => {
                if let Some(task) = self.own_task(&key) {
                    self.handle_stored(machine, task, result, now);
                }
            }
            TaskStoreEvent::Checked { key, result } => {
                if let Some(task) = self.own_task(&key) {
                    self.handle_checked(machine, task, result, now);
                }
            }
            TaskStoreEvent::Found { request, result, orphaned } => {
                self.handle_found(machine, request, result, orphaned, now);
            }
            TaskStoreEvent::Listed { request, result } => {
                self.handle_listed(machine, request, result, now);
            }
            TaskStoreEvent::Relayed { request, result } => {
                self.handle_relayed(machine, request, result, now);
            }
            TaskStoreEvent::Message { key, message } => {
                if let Some(task) = self.own_task(&key) {
                    self.handle_message(machine, task, message, now);
                }
            }
            TaskStoreEvent::Changed { key } => self.handle_changed(machine, &key, now),
            TaskStoreEvent::Deposed => self.abandon_those(machine, |_| true, now),
            TaskStoreEvent::RequestorEnded { requestor } => {
                self.abandon_those(machine, |key| key.requestor == requestor, now);
            }
            TaskStoreEvent::Renewed { emptied } => {
                let Some(shared) = &mut self.shared else { return };
                let failed = core::mem::take(&mut shared.failed);
                shared.unwritten.extend(failed);
                if emptied {
                    shared.unwritten.extend(shared.own.keys());
                }
                self.check_records(machine, now);
            }
            _ => {}
        }
    }

    /// Reads the records whose time has come.
    fn check_records(&mut self, machine: &mut HttpServerMachine, now: Instant) {
        let Some(shared) = &mut self.shared else { return };
        for (task, own) in &mut shared.own {
            if own.check.is_due(now) && !shared.unwritten.contains(task) {
                own.check.pending = Some(true);
                machine.share_task(TaskCommand::Check { key: own.key.clone() }, now);
            }
        }
    }

    /// Compares the record of a task with its state, and writes a state again that the store has
    /// lost.
    fn handle_checked(
        &mut self,
        machine: &mut HttpServerMachine,
        task: Key,
        result: Result<TaskRecord, StoreError>,
        now: Instant,
    ) {
        let Some(own) = self.shared.as_mut().and_then(|shared| shared.own.get_mut(&task)) else {
            return;
        };
        if own.check.pending.take() != Some(true) {
            return;
        }
        let Some(entry) = self.entries.get(task) else { return };
        let Ok(Snapshot { task: text, details, .. }) = Snapshot::from_entry(entry) else {
            return;
        };
        let refused = own.writing.is_some();
        match result {
            Ok(record) if record.task == text && record.details == details => {
                if refused {
                    return self.handle_stored(machine, task, Ok(()), now);
                }
                own.check.defer(now);
            }
            Ok(record) if record.ended || machine.node_id() != Some(record.node) => {
                // Another node has ended it.
                self.abandon(machine, task, now);
            }
            // The next heartbeat tries again.
            _ if refused => self.handle_stored(machine, task, Err(StoreError::Unavailable), now),
            Ok(_) | Err(StoreError::Missing) => self.note_unwritten(task, true),
            Err(_) => {}
        }
    }

    /// Returns the task of this node that a key names.
    fn own_task(&self, key: &TaskKey) -> Option<Key> {
        let task = self.key_of_name(&key.task)?;
        let own = self.shared.as_ref()?.own.get(&task)?;
        (own.key == *key).then_some(task)
    }

    fn handle_stored(
        &mut self,
        machine: &mut HttpServerMachine,
        task: Key,
        result: Result<(), StoreError>,
        now: Instant,
    ) {
        let lease = machine.options().shared_ref().map_or(Duration::MAX, |sharing| sharing.lease);
        let Some(shared) = &mut self.shared else { return };
        let Some(own) = shared.own.get_mut(&task) else { return };
        let announces = own.writing.take().unwrap_or_default();
        let key = own.key.clone();
        match result {
            Ok(()) => {
                own.check.restart(lease, now);
                if announces {
                    machine.share_task(TaskCommand::Announce { key: key.clone() }, now);
                }
            }
            Err(StoreError::Unavailable) if own.created.is_none() || keeps_locally(machine) => {
                own.changed |= announces;
                shared.failed.insert(task);
            }
            Err(StoreError::Unavailable) => {
                // The store may have it all the same, so its end is written later.
                self.withdraw_created(machine, task, now);
                if self.entries.get(task).is_some_and(|entry| !entry.is_over()) {
                    self.change(task, Ok(State::Cancelled), now);
                }
                return self.note_unwritten(task, true);
            }
            // Another node has ended it, or it was written before without an answer.
            Err(_) if self.entries.get(task).is_some_and(Entry::is_over) => {
                (own.writing, own.check.pending) = (Some(announces), Some(true));
                return machine.share_task(TaskCommand::Check { key }, now);
            }
            Err(_) => return self.abandon(machine, task, now),
        }
        if let Some((request, created)) = own.created.take() {
            answer(machine, request, Ok(created), now);
        }
        if core::mem::take(&mut own.deferred) {
            self.note(task);
        }
        self.handle_changed(machine, &key, now);
    }

    /// Refuses the request that has created a task, and drops the handler.
    fn withdraw_created(&mut self, machine: &mut HttpServerMachine, task: Key, now: Instant) {
        let shared = self.shared_mut();
        let Some(own) = shared.own.get_mut(&task) else { return };
        if let Some((request, _)) = own.created.take() {
            shared.drop_handler(TaskHandler { request, place: task.slot });
            let _refused = ServerBinding::refuse(machine, request, unavailable(), now);
        }
    }

    /// Gives up the tasks of this node whose keys are meant.
    fn abandon_those(
        &mut self,
        machine: &mut HttpServerMachine,
        is_meant: impl Fn(&TaskKey) -> bool,
        now: Instant,
    ) {
        let own = self.shared.iter().flat_map(|shared| &shared.own);
        let meant = own.filter(|(_, own)| is_meant(&own.key)).map(|(task, _)| *task);
        for task in meant.collect::<Vec<_>>() {
            self.abandon(machine, task, now);
        }
    }

    /// Gives up a task, for which the store speaks from now on.
    fn abandon(&mut self, machine: &mut HttpServerMachine, task: Key, now: Instant) {
        self.withdraw_created(machine, task, now);
        let Some(entry) = self.entries.get_mut(task) else { return self.forget_own(task) };
        let (asked, waiting) = (entry.asked.take(), core::mem::take(&mut entry.waiting));
        if let Some(asked) = asked {
            ServerBinding::withdraw(machine, asked, now);
        }
        self.settings.tell(TaskEvent::Dropped, entry);
        let name = entry.task.task_id.clone();
        let handler = TaskHandler { request: entry.request.handle, place: task.slot };
        if self.remove(task).is_some() {
            self.shared_mut().drop_handler(handler);
        }
        for request in waiting {
            self.waiting.remove(&request.handle);
            self.insert_lookup(machine, request, &name, None, now);
        }
    }

    /// Handles a message of another node's client.
    fn handle_message(
        &mut self,
        machine: &mut HttpServerMachine,
        task: Key,
        message: TaskMessage,
        now: Instant,
    ) {
        let Some(entry) = self.entries.get_mut(task).filter(|entry| !entry.is_over()) else {
            return;
        };
        let request = entry.request.handle;
        match message {
            TaskMessage::Cancel => {
                self.forget_message(task);
                let handler = TaskHandler { request, place: task.slot };
                self.change(task, Ok(State::Cancelled), now);
                self.shared_mut().drop_handler(handler);
            }
            TaskMessage::Update { round, inputs } if entry.is_client_requested() => {
                if round != entry.rounds() || !matches!(entry.state, State::InputRequired(_)) {
                    return;
                }
                if let Some(asked) = entry.asked.take() {
                    ServerBinding::withdraw(machine, asked, now);
                }
                self.take_inputs(task, &inputs, now);
            }
            TaskMessage::Update { inputs, .. } => {
                let Some(responses) = inputs.responses() else { return };
                if self.is_too_much(responses.as_str().len()) {
                    return;
                }
                self.take_responses(task, responses, now);
            }
            _ => {}
        }
    }
}

// ------------------------------------------------------------------ tasks as records in a store that several nodes share

/// The error of a task whose node has failed.
const NODE_FAILED: &str = "the server that ran this task has failed; its outcome is unknown";

/// The part of a record that `tasks/get` does not return at 2025-11-25: the result or error of the
/// call, or the open input requests of a round.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Details {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    result: Option<Json>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<Json>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    inputs: Option<Json>,
    /// Counted from 1.
    #[serde(default)]
    pub(super) round: u32,
}

/// A task as other nodes see it.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) ended: bool,
    pub(super) task: String,
    pub(super) details: String,
}

impl Snapshot {
    pub(super) fn from_entry(entry: &Entry) -> Result<Self, JsonError> {
        let revision = entry.request.revision;
        let mut details = Details { round: entry.rounds(), ..Details::default() };
        // Later revisions have all of it in the task itself.
        if entry.is_client_requested() {
            match &entry.state {
                State::Completed(result) | State::ToolError(result) => {
                    details.result = Some(result.clone());
                }
                State::Failed(error) => details.error = Some(error.clone()),
                State::InputRequired(_) => {
                    let open = entry.questions().and_then(|required| required.input_requests);
                    details.inputs = open.map(|open| open.to_json_at(revision)).transpose()?;
                }
                State::Working | State::Cancelled => {}
            }
        }
        let task = GetTaskResult::from(entry.detailed()).to_json_at(revision)?;
        Ok(Self {
            ended: entry.is_over(),
            task: task.as_str().into(),
            details: Json::from_serialize(&details)?.as_str().into(),
        })
    }
}

impl Details {
    pub(super) fn from_record(record: &TaskRecord) -> Self {
        RawJson::parse(&record.details).ok().and_then(|it| it.decode().ok()).unwrap_or_default()
    }

    /// Returns the open input requests.
    pub(super) fn questions(&self) -> Option<InputRequests> {
        self.inputs.as_ref()?.decode().ok()
    }

    /// Returns the answer that the call of an ended task would have had.
    // MCP 2025-11-25 basic/utilities/tasks#result-retrieval [TASK-013] [TASK-014]
    pub(super) fn final_answer(self, task: &Task) -> Result<Json, ErrorObject<'static>> {
        if let Some(result) = &self.result {
            return Ok(related(result, &task.task_id));
        }
        let error = self
            .error
            .and_then(|error| error.decode::<ErrorObject<'_>>().map(ErrorObject::into_owned).ok());
        Err(error.unwrap_or_else(|| {
            ErrorObject::internal(match task.status {
                TaskStatus::Cancelled => "the task was cancelled",
                _ => "the task failed",
            })
        }))
    }
}

/// Returns the task of a record, with its result, error or input requests.
pub(super) fn detailed_of(text: &str) -> Option<DetailedTask> {
    Some(RawJson::parse(text).ok()?.decode::<GetTaskResult>().ok()?.detailed)
}

/// Returns the result of `tasks/get` in a record.
pub(super) fn json_of(text: &str) -> Option<Json> {
    Some(RawJson::parse(text).ok()?.into_owned().into())
}

/// Returns the record of a task whose node has failed at `time`, an ISO 8601 timestamp.
pub(super) fn failed(record: &TaskRecord, revision: Revision, time: String) -> Option<TaskRecord> {
    let mut error = ErrorObject::internal(NODE_FAILED);
    error.code = error.code.at_revision(revision);
    let error = Json::from_serialize(&error).ok()?;
    let task = detailed_of(&record.task)?.task.status_message(NODE_FAILED).last_updated_at(time);
    let details = Details { error: Some(error.clone()), ..Details::from_record(record) };
    let details = Details { result: None, inputs: None, ..details };
    let task = GetTaskResult::from(DetailedTask::failed(task, error)).to_json_at(revision).ok()?;
    let details = Json::from_serialize(&details).ok()?;
    Some(TaskRecord::new(record.node, true, task.as_str().into(), details.as_str().to_string()))
}

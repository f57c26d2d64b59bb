//! Tasks that nodes share. The layer above runs them; this module knows their records only.

use alloc::borrow::Cow;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use mcp_sansio_collections::Key;
use sha2::{Digest, Sha256};

use crate::http::SessionId;
use crate::jsonrpc::RawJson;
use crate::peer::{Request, RequestHandle, ServerMachine as _};
use crate::protocol::{GetTaskResult, TaskStatusParams};
use crate::{Era, Instant, Principal};

use super::super::store::StoreAction;
use super::super::{Connection, Server};
use super::relay::NodeMessage;
use super::waits::Purpose;
use super::{
    NodeId, Shared, StoreError, StoreReply, TaskCommand, TaskKey, TaskMessage, TaskRecord,
    TaskStoreEvent,
};

/// The state of shared tasks on a node.
#[derive(Debug, Default)]
pub(super) struct SharedTasks {
    /// Whether the layer above has used the store, and so takes events.
    used: bool,
    events: VecDeque<TaskStoreEvent>,
    /// Tasks that the store does not have, until a heartbeat confirms its contents.
    absent: Vec<RequestHandle>,
    /// Those for which the pending heartbeat does.
    asked: Vec<RequestHandle>,
    /// When the pending heartbeat was sent.
    beat: Instant,
    /// Before this time no other node can have deposed this one.
    lease_end: Instant,
    /// Whether the store has lost its contents since the lease was last extended.
    emptied: bool,
}

/// The reason for an action on a task.
#[derive(Debug)]
pub(super) enum TaskPurpose {
    Put(TaskKey),
    Check(TaskKey),
    Read(RequestHandle),
    Fail(RequestHandle, TaskKey),
    List(RequestHandle),
    Relay(RequestHandle),
    /// A node that does not extend its lease, and a task that it has not ended.
    Depose(RequestHandle, TaskRecord),
    /// A task to which clients listen.
    Tell(TaskKey),
}

impl SharedTasks {
    /// A heartbeat is sent.
    pub(super) fn begin_beat(&mut self, now: Instant) {
        self.beat = now;
        let absent = core::mem::take(&mut self.absent);
        self.asked.extend(absent);
    }

    /// The lease was extended or not.
    pub(super) fn end_beat(&mut self, lease: Option<Duration>, emptied: bool) {
        self.emptied |= emptied;
        let Some(lease) = lease else {
            self.lease_end = Instant::ZERO;
            return;
        };
        self.lease_end = self.beat + lease;
        let emptied = core::mem::take(&mut self.emptied);
        if self.used {
            self.events.push_back(TaskStoreEvent::Renewed { emptied });
        }
    }

    /// Reports that another node may have ended the tasks of this one.
    pub(super) fn depose(&mut self) {
        if self.used {
            self.events.push_back(TaskStoreEvent::Deposed);
        }
    }

    /// Answers the questions for tasks that the store does not have.
    pub(super) fn settle_absences(&mut self, error: StoreError) {
        for request in core::mem::take(&mut self.asked) {
            self.find(request, Err(error), false);
        }
    }

    /// Answers them if the store does not answer.
    pub(super) fn refuse_absences(&mut self) {
        let absent = core::mem::take(&mut self.absent);
        self.asked.extend(absent);
        self.settle_absences(StoreError::Unavailable);
    }

    fn find(
        &mut self,
        request: RequestHandle,
        result: Result<TaskRecord, StoreError>,
        orphaned: bool,
    ) {
        self.events.push_back(TaskStoreEvent::Found { request, result, orphaned });
    }
}

impl Server {
    /// Returns whether the store knows more about the tasks of this node than the node itself: its
    /// lease may have expired, so another node may have ended them.
    #[must_use]
    pub fn may_be_deposed(&self, now: Instant) -> bool {
        self.shared.as_ref().is_some_and(|shared| now >= shared.tasks.lease_end)
    }

    /// Returns a digest of a request's sender, as the owner of tasks: of the principal, if it
    /// is known; otherwise of the session. Empty for unknown clients since 2026-07-28.
    // MCP 2025-11-25 basic/utilities/tasks#task-isolation-and-access-control [TASK-021]
    // MCP 2026-07-28 ext-tasks:tasks#security-considerations [TASK-041]
    // MCP 2025-11-25 ext-tasks:SEP-2663#backward-compatibility [TASK-044]: tasks of one kind do not
    // exist for requests about the other.
    #[must_use]
    pub fn task_requestor(&self, request: &Request<'_>) -> String {
        let legacy = request.revision.era() == Era::Legacy;
        let connection = self.connections.get(request.handle.connection);
        let session = connection.and_then(Connection::session_id).filter(|_| legacy);
        match (request.caller.principal(), session) {
            (Some(principal), _) => principal_digest(legacy, principal),
            (None, Some(session)) => session_requestor(&session),
            (None, None) => String::new(),
        }
    }

    /// Executes a command about a shared task. It has no effect without a shared store.
    pub fn share_task(&mut self, command: TaskCommand, now: Instant) {
        let Some(shared) = self.shared_mut() else { return };
        shared.tasks.used = true;
        let (node, is_known) = (shared.node, shared.is_known());
        match command {
            TaskCommand::Put { key, .. } if !is_known => {
                let result = Err(StoreError::Unavailable);
                self.note_task(TaskStoreEvent::Stored { key, result });
            }
            TaskCommand::Put { key, ended, task, details, ttl, listed } => {
                let purpose = TaskPurpose::Put(key.clone());
                let record = TaskRecord { node, ended, task, details };
                let account = self.callers.account_of_name(&key.requestor);
                self.ask_store(account, Purpose::Task(purpose), now, |action| {
                    StoreAction::PutTask { action, key, record, ttl: Some(ttl), listed }
                });
            }
            TaskCommand::Read { request, key } => self.read_task(request, key, now),
            TaskCommand::Check { key } => {
                let purpose = Purpose::Task(TaskPurpose::Check(key.clone()));
                let account = self.callers.account_of_name(&key.requestor);
                self.ask_store(account, purpose, now, |action| StoreAction::ReadTask {
                    action,
                    key,
                });
            }
            TaskCommand::Fail { request, key, record } => {
                let purpose = TaskPurpose::Fail(request, key.clone());
                let account = self.callers.account_of_name(&key.requestor);
                self.ask_store(account, Purpose::Task(purpose), now, |action| {
                    StoreAction::PutTask { action, key, record, ttl: None, listed: false }
                });
            }
            TaskCommand::List { request, requestor, cursor, tasks_max } => {
                let purpose = Purpose::Task(TaskPurpose::List(request));
                let account = self.callers.account_of_name(&requestor);
                self.ask_store(account, purpose, now, |action| StoreAction::ListTasks {
                    action,
                    requestor,
                    cursor,
                    tasks_max,
                });
            }
            TaskCommand::Relay { request, to, key, message } => {
                let TaskKey { requestor, task } = &key;
                let origin = self.origin_of_requestor(requestor);
                let (requestor, task) = (Cow::from(requestor), Cow::from(task));
                let message = match &message {
                    TaskMessage::Cancel => NodeMessage::CancelTask { requestor, task },
                    TaskMessage::Update { round, inputs } => NodeMessage::UpdateTask {
                        requestor,
                        task,
                        round: *round,
                        responses: inputs.responses().map(|it| it.as_str().into()),
                        refused: inputs.refused.iter().flatten().cloned().collect(),
                    },
                };
                let purpose = Purpose::Task(TaskPurpose::Relay(request));
                self.send_confirmed(&origin, to, &message, purpose, now);
            }
            TaskCommand::Announce { key: TaskKey { requestor, task } } => {
                let origin = self.origin_of_requestor(&requestor);
                let (requestor, task) = (requestor.into(), task.into());
                self.broadcast(&origin, &NodeMessage::TaskChanged { requestor, task });
            }
        }
    }

    /// Returns the next event about shared tasks. Call it until it returns `None`, after each
    /// input, if [`share_task`](Self::share_task) was ever called.
    pub fn poll_task(&mut self) -> Option<TaskStoreEvent> {
        self.shared_mut()?.tasks.events.pop_front()
    }

    fn tasks_mut(&mut self) -> Option<&mut SharedTasks> {
        self.shared_mut().map(|shared| &mut shared.tasks)
    }

    fn read_task(&mut self, request: RequestHandle, key: TaskKey, now: Instant) {
        let account = self.callers.account_of_name(&key.requestor);
        let purpose = Purpose::Task(TaskPurpose::Read(request));
        self.ask_store(account, purpose, now, |action| StoreAction::ReadTask { action, key });
    }

    /// Handles the result of an action on a task.
    pub(super) fn settle_task(
        &mut self,
        purpose: TaskPurpose,
        result: Result<StoreReply, StoreError>,
        now: Instant,
    ) {
        match purpose {
            TaskPurpose::Put(key) => {
                self.note_task(TaskStoreEvent::Stored { key, result: result.map(drop) });
            }
            TaskPurpose::Check(key) => {
                let result = match result {
                    Ok(StoreReply::Task(record)) => Ok(record),
                    Err(StoreError::Missing) => Err(StoreError::Missing),
                    _ => Err(StoreError::Unavailable),
                };
                self.note_task(TaskStoreEvent::Checked { key, result });
            }
            TaskPurpose::Read(request) => match result {
                Ok(StoreReply::Task(record)) => self.handle_task(request, record, now),
                Err(StoreError::Missing) => self.handle_absent_task(request, now),
                _ => self.refuse_task(request),
            },
            TaskPurpose::Fail(request, key) => match result {
                Err(StoreError::Unavailable) => self.refuse_task(request),
                // If another node was faster, its record counts.
                _ => self.read_task(request, key, now),
            },
            TaskPurpose::List(request) => {
                let result = match result {
                    Ok(StoreReply::Tasks(page)) => Ok(page),
                    Err(StoreError::Missing) => Err(StoreError::Missing),
                    _ => Err(StoreError::Unavailable),
                };
                self.note_task(TaskStoreEvent::Listed { request, result });
            }
            TaskPurpose::Relay(request) => {
                self.note_task(TaskStoreEvent::Relayed { request, result: result.map(drop) });
            }
            TaskPurpose::Depose(request, record) => {
                let orphaned = matches!(result, Ok(StoreReply::Deposed(true)));
                if let Some(tasks) = self.tasks_mut() {
                    tasks.find(request, Ok(record), orphaned);
                }
            }
            TaskPurpose::Tell(key) => {
                let tell = self.shared_mut().map(|shared| shared.options.tell_listeners);
                if let (Some(tell), Ok(StoreReply::Task(record))) = (tell, result) {
                    tell(self, &key, &record, now);
                }
            }
        }
    }

    fn note_task(&mut self, event: TaskStoreEvent) {
        if let Some(tasks) = self.tasks_mut() {
            tasks.events.push_back(event);
        }
    }

    fn refuse_task(&mut self, request: RequestHandle) {
        if let Some(tasks) = self.tasks_mut() {
            tasks.find(request, Err(StoreError::Unavailable), false);
        }
    }

    /// Handles the record of a task. A node that does not extend its lease is deposed.
    fn handle_task(&mut self, request: RequestHandle, record: TaskRecord, now: Instant) {
        let Some(shared) = self.shared_mut() else { return };
        let node = record.node;
        if record.ended || !shared.doubts(node, now) {
            return shared.tasks.find(request, Ok(record), false);
        }
        self.depose(Purpose::Task(TaskPurpose::Depose(request, record)), node, now);
    }

    /// Handles a task that the store does not have. A heartbeat finds out whether the store has
    /// lost its contents, so that no client gives up a task that another node still runs.
    fn handle_absent_task(&mut self, request: RequestHandle, now: Instant) {
        match self.shared_mut() {
            Some(shared) if shared.next_heartbeat.is_some() => {
                shared.tasks.absent.push(request);
                self.beat(now);
            }
            // The node has left.
            _ => self.refuse_task(request),
        }
    }

    // ------------------------------------------------------------------ messages

    /// Ends a session that was removed from the store.
    pub(super) fn end_removed(&mut self, key: Key, now: Instant) {
        if let Some(session) = self.connections.get(key).and_then(Connection::session_id) {
            self.note_ended_tasks(&session);
        }
        self.end_session(key, now);
    }

    /// Reports that the tasks of a session have ended with it.
    pub(super) fn note_ended_tasks(&mut self, session: &SessionId) {
        if let Some(tasks) = self.tasks_mut().filter(|tasks| tasks.used) {
            let requestor = session_requestor(session);
            tasks.events.push_back(TaskStoreEvent::RequestorEnded { requestor });
        }
    }

    /// Handles a message of another node about a task.
    pub(super) fn handle_task_message(&mut self, key: TaskKey, message: TaskMessage) {
        if let Some(tasks) = self.tasks_mut().filter(|tasks| tasks.used) {
            tasks.events.push_back(TaskStoreEvent::Message { key, message });
        }
    }

    /// Handles a change of another node's task. Clients may listen to it here.
    pub(super) fn handle_task_change(&mut self, key: TaskKey, now: Instant) {
        if let Some(tasks) = self.tasks_mut().filter(|tasks| tasks.used) {
            tasks.events.push_back(TaskStoreEvent::Changed { key: key.clone() });
        }
        if self.connections.iter().any(|(_, connection)| listens(connection, &key)) {
            let purpose = Purpose::Task(TaskPurpose::Tell(key.clone()));
            let account = self.callers.account_of_name(&key.requestor);
            self.ask_store(account, purpose, now, |action| StoreAction::ReadTask { action, key });
        }
    }

    /// Notifies clients that another node's task has changed.
    // MCP 2026-07-28 ext-tasks:tasks#task-status-notifications [TASK-038]
    pub(super) fn tell_listeners(&mut self, key: &TaskKey, record: &TaskRecord, now: Instant) {
        let found = RawJson::parse(&record.task).ok();
        let Some(Ok(found)) = found.map(|found| found.decode::<GetTaskResult>()) else { return };
        let status = TaskStatusParams::from(found.detailed);
        let listening = self.connections.iter().filter(|(_, connection)| listens(connection, key));
        let keys: Vec<Key> = listening.map(|(connection, _)| connection).collect();
        for connection in keys {
            let Some(listener) = self.connections.get_mut(connection) else { continue };
            let principal = listener.machine.caller().principal().cloned();
            listener.machine.task_changed(&status, principal.as_ref(), now);
            self.pump(connection, now);
        }
    }
}

impl Shared {
    /// Returns whether a node may have failed. A store that was not available, or has lost its
    /// contents, does not know the nodes before their next heartbeat, and a node that has just
    /// started does not know when that was.
    fn doubts(&self, node: NodeId, now: Instant) -> bool {
        let is_known = node == self.node || self.nodes.contains(&node);
        self.joined && !is_known && now >= self.reached + self.options.lease
    }
}

/// Returns whether a client listens to a task that it may know.
fn listens(connection: &Connection, key: &TaskKey) -> bool {
    if !connection.machine.listens_to_task(&key.task) {
        return false;
    }
    let principal = connection.machine.caller().principal();
    principal.map_or_else(String::new, |it| principal_digest(false, it)) == key.requestor
}

/// Returns the task owner for a session without a principal.
pub(super) fn session_requestor(session: &SessionId) -> String {
    digest("task of session", session.as_str())
}

fn principal_digest(legacy: bool, principal: &Principal) -> String {
    digest(if legacy { "legacy task of" } else { "task of" }, principal.as_str())
}

/// Returns a digest of a name, which may be long, personal or secret.
fn digest(purpose: &str, name: &str) -> String {
    let hash = Sha256::new().chain_update(purpose).chain_update([0]).chain_update(name).finalize();
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

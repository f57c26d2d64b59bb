//! The types with which a server shares tasks with other nodes.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use crate::peer::{InputResponseParams, RequestHandle};

use super::{NodeId, StoreError};

/// Identifies a task in a shared store. A store must use both parts: a task does not exist for
/// another requestor.
// MCP 2026-07-28 ext-tasks:tasks#security-considerations [TASK-041]
// MCP 2025-11-25 basic/utilities/tasks#task-isolation-and-access-control [TASK-021]
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct TaskKey {
    /// A digest of the requestor: see
    /// [`Server::task_requestor`](super::super::Server::task_requestor). Empty if every client that
    /// knows the id may use the task.
    pub requestor: String,
    /// The id of the task.
    pub task: String,
}

impl TaskKey {
    /// Creates a key from its parts.
    #[must_use]
    pub const fn new(requestor: String, task: String) -> Self {
        Self { requestor, task }
    }
}

/// A task in a shared store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskRecord {
    /// The node that runs the task.
    pub node: NodeId,
    /// Whether its status is final.
    pub ended: bool,
    /// The result of `tasks/get` as JSON.
    pub task: String,
    /// Further text of the layer that runs the tasks, for the same layer on other nodes.
    pub details: String,
}

impl TaskRecord {
    /// Creates a record from its parts.
    #[must_use]
    pub const fn new(node: NodeId, ended: bool, task: String, details: String) -> Self {
        Self { node, ended, task, details }
    }
}

/// A page of a requestor's tasks in a shared store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskPage {
    /// The values of [`TaskRecord::task`].
    pub tasks: Vec<String>,
    /// The cursor of the next page, if there is one.
    pub next: Option<String>,
}

impl TaskPage {
    /// Creates a page from its parts.
    #[must_use]
    pub const fn new(tasks: Vec<String>, next: Option<String>) -> Self {
        Self { tasks, next }
    }
}

/// A command of the layer that runs the tasks of a server with a shared store.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum TaskCommand {
    /// Store the state of this node's task. Completed with [`TaskStoreEvent::Stored`]. It fails if
    /// the store does not know this node: see
    /// [`Server::is_joining`](super::super::Server::is_joining).
    Put {
        /// The task.
        key: TaskKey,
        /// Whether its status is final.
        ended: bool,
        /// The result of `tasks/get` as JSON.
        task: String,
        /// See [`TaskRecord::details`].
        details: String,
        /// How long it is kept from now on.
        ttl: Duration,
        /// Whether `tasks/list` returns it.
        listed: bool,
    },
    /// Read a task for a request. Completed with [`TaskStoreEvent::Found`].
    Read {
        /// The request.
        request: RequestHandle,
        /// The task.
        key: TaskKey,
    },
    /// Read this node's task, to find out whether the store has lost its last state. Completed with
    /// [`TaskStoreEvent::Checked`].
    Check {
        /// The task.
        key: TaskKey,
    },
    /// End a task whose node has failed, then read it. Completed with [`TaskStoreEvent::Found`]:
    /// the task may have ended otherwise.
    Fail {
        /// The request.
        request: RequestHandle,
        /// The task.
        key: TaskKey,
        /// The record that replaces the one of the same node.
        record: TaskRecord,
    },
    /// Read a page of a requestor's tasks. Completed with [`TaskStoreEvent::Listed`].
    List {
        /// The request.
        request: RequestHandle,
        /// The requestor.
        requestor: String,
        /// The cursor of the page; the first one without it.
        cursor: Option<String>,
        /// The maximum number of tasks.
        tasks_max: usize,
    },
    /// Pass a client's message about a task on to its node. Completed with
    /// [`TaskStoreEvent::Relayed`] when the store has taken it.
    Relay {
        /// The request.
        request: RequestHandle,
        /// The node.
        to: NodeId,
        /// The task.
        key: TaskKey,
        /// The message.
        message: TaskMessage,
    },
    /// Tell all other nodes that a task has changed in the store.
    Announce {
        /// The task.
        key: TaskKey,
    },
}

/// A message of a client for a task on another node.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum TaskMessage {
    /// Cancel the task.
    Cancel,
    /// Responses to its input requests.
    Update {
        /// The round of the input requests, counted from 1.
        round: u32,
        /// The responses, without a state.
        inputs: InputResponseParams<'static>,
    },
}

/// An event for the layer that runs the tasks of a server with a shared store.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum TaskStoreEvent {
    /// A task of this node was stored or not. [`StoreError::Refused`]: another node has ended it,
    /// because the lease of this one had expired.
    Stored {
        /// The task.
        key: TaskKey,
        /// The outcome.
        result: Result<(), StoreError>,
    },
    /// The state of this node's task in the store. [`StoreError::Missing`] if it is not stored.
    Checked {
        /// The task.
        key: TaskKey,
        /// The state.
        result: Result<TaskRecord, StoreError>,
    },
    /// The task that a request names. [`StoreError::Missing`] if it does not exist.
    Found {
        /// The request.
        request: RequestHandle,
        /// The task.
        result: Result<TaskRecord, StoreError>,
        /// Whether the task has not ended, and its node has failed.
        orphaned: bool,
    },
    /// Tasks of a request's sender. [`StoreError::Missing`] if the cursor is invalid.
    Listed {
        /// The request.
        request: RequestHandle,
        /// The page.
        result: Result<TaskPage, StoreError>,
    },
    /// A message was passed on or not.
    Relayed {
        /// The request.
        request: RequestHandle,
        /// The outcome.
        result: Result<(), StoreError>,
    },
    /// A message of another node's client for a task of this node.
    Message {
        /// The task.
        key: TaskKey,
        /// The message.
        message: TaskMessage,
    },
    /// A task of another node has changed in the store.
    Changed {
        /// The task.
        key: TaskKey,
    },
    /// A session has ended, and with it its tasks: those of this node must be dropped, and the
    /// store has removed all of them.
    RequestorEnded {
        /// The requestor of its tasks, if it has some.
        requestor: String,
    },
    /// This node has lost its lease: others may have ended its tasks.
    Deposed,
    /// The store is available.
    Renewed {
        /// Whether it has lost its contents.
        emptied: bool,
    },
}

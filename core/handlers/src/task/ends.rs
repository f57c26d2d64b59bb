//! The ends of this node's tasks, which count when the store has taken them: another node may have
//! ended a task before, or this one may die before its end is stored.

use mcp_sansio::Instant;
use mcp_sansio::jsonrpc::{ErrorObject, Json, RawJson};
use mcp_sansio::peer::Request;
use mcp_sansio::protocol::{CancelTaskResult, Method, SerializeAt, TaskStatus};
use mcp_sansio_collections::Key;

use crate::http_server::HttpServerMachine;

use super::client_requested::{Answer, waiting_request};
use super::entry::Entry;
use super::requestors::Requestor;
use super::requests::written_task;
use super::table::TaskTable;

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

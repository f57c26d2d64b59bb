//! Tasks on HTTP: those of all clients, each for whom it belongs to.

use crate::Instant;
use crate::peer::{Request, RequestHandle};

use super::http_server::HttpServer;
use super::kind::Kind;
use super::task::Handler;

impl<K: Kind> HttpServer<K> {
    /// Answers a request about a task.
    // MCP 2026-07-28 ext-tasks:tasks#security-considerations [TASK-041]
    pub(super) fn serve_task(&mut self, request: &Request<'_>, now: Instant) {
        let Some(table) = &mut self.table else { return };
        let served = table.serve(request, self.machine.principal(request.handle), now);
        if let Some(handler) = served.dropped {
            self.drop_handler(handler);
        }
        self.answer(request.clone(), served.outcome, now);
        self.tell_changes(now);
    }

    /// A handler wants to be a task: where it is known to go on it becomes one, else when it does.
    pub(super) fn run_as_task(&mut self, handle: RequestHandle, now: Instant) {
        // One that is answered, or a task already, stays what it is.
        if !self.machine.is_due(handle) {
            return;
        }
        let attended = self.running.get(&handle);
        match attended.and_then(|attended| attended.request.clone()) {
            // Where there is no room for one more, its client goes on waiting.
            Some(request) => {
                let _created = self.create_task(&request, now);
            }
            None => {
                if let Some(table) = &mut self.table {
                    table.wish(handle);
                }
            }
        }
    }

    /// Makes a task of a request and answers it so; whether there was room for one more.
    // MCP 2026-07-28 ext-tasks:tasks#task-creation [TASK-029]: first the task, then the answer.
    pub(super) fn create_task(&mut self, request: &Request<'static>, now: Instant) -> bool {
        let Some(table) = &mut self.table else { return false };
        let principal = self.machine.principal(request.handle).cloned();
        let Some(created) = table.create(request.clone(), principal, now) else { return false };
        // That a client is gone meanwhile is no reason to give up its task.
        let _answered = self.machine.respond(request.handle, &created, now);
        true
    }

    pub(super) fn drop_handler(&mut self, handler: Handler) {
        if let Some(attended) = self.running.remove(&handler.request) {
            attended.give_up();
        }
    }

    /// Tells clients that listen of tasks whose status has changed.
    pub(super) fn tell_changes(&mut self, now: Instant) {
        while let Some((status, principal)) =
            self.table.as_mut().and_then(|table| table.poll_change())
        {
            self.machine.task_changed(&status, principal.as_ref(), now);
        }
    }
}

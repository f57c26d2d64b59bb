//! Tasks on HTTP: those of all clients, each for whom it belongs to.

use mcp_sansio::Instant;
use mcp_sansio::peer::{Request, RequestHandle};

use super::http_server::HttpServer;
use super::kind::Kind;
use super::task::{Begun, Handler, Machine};

impl<K: Kind> HttpServer<K> {
    /// Answers a request about a task.
    // MCP 2026-07-28 ext-tasks:tasks#security-considerations [TASK-041]
    pub(super) fn serve_task(&mut self, request: &Request<'_>, now: Instant) {
        let Some(table) = &mut self.table else { return };
        let served = table.serve(request, self.machine.principal(request.handle), now);
        if let Some(handler) = served.dropped {
            self.drop_handler(handler);
        }
        if let Some(outcome) = served.outcome {
            self.answer(request.clone(), outcome, now);
        }
        self.tell_changes(now);
    }

    /// Makes a task of a call that asks to be one; what there is to be done with it then.
    pub(super) fn begin_task(&mut self, request: &Request<'_>, now: Instant) -> Begun {
        let Some(table) = &mut self.table else { return Begun::Call };
        table.begin(Machine::Http(&mut self.machine), request, now)
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
    pub(super) fn create_task(&mut self, request: &Request<'static>, now: Instant) -> bool {
        let Some(table) = &mut self.table else { return false };
        table.create(Machine::Http(&mut self.machine), request, now)
    }

    pub(super) fn drop_handler(&mut self, handler: Handler) {
        if let Some(attended) = self.end_running(handler.request) {
            attended.give_up();
        }
    }

    /// Tells clients that listen, or wait, of tasks whose status has changed.
    pub(super) fn tell_changes(&mut self, now: Instant) {
        if let Some(table) = &mut self.table {
            table.tell(Machine::Http(&mut self.machine), now);
        }
    }
}

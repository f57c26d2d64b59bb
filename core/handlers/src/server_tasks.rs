//! Tasks on a byte stream: those of one connection.

use mcp_sansio::Instant;
use mcp_sansio::peer::{Request, RequestHandle};

use super::executor::DETACHED;
use super::kind::Kind;
use super::server_endpoint::ServerEndpoint;
use super::task::{Begun, Handler, Machine};

impl<K: Kind> ServerEndpoint<K> {
    /// Answers a request about a task.
    pub(super) fn serve_task(&mut self, request: &Request<'_>, now: Instant) {
        let Some(table) = &mut self.table else { return };
        // One client: whoever has the connection has its tasks.
        let served = table.serve(request, None, now);
        if let Some(handler) = served.dropped {
            self.drop_handler(handler);
        }
        if let Some(outcome) = served.outcome {
            self.answer(request.clone(), outcome, now);
        }
    }

    /// Makes a task of a call that asks to be one; what there is to be done with it then.
    pub(super) fn begin_task(&mut self, request: &Request<'_>, now: Instant) -> Begun {
        let Some(table) = &mut self.table else { return Begun::Call };
        table.begin(Machine::Stream(&mut self.machine), request, now)
    }

    /// A handler wants to be a task: where it waits already it becomes one, else when it does.
    pub(super) fn run_as_task(&mut self, handle: RequestHandle, now: Instant) {
        // One that is answered, or a task already, stays what it is.
        if !self.machine.is_due(handle) {
            return;
        }
        let place = handle.slot();
        let running = self.tasks.get(place).filter(|kept| kept.handle == handle);
        let Some(request) = running.cloned() else {
            if let Some(table) = &mut self.table {
                table.wish(handle);
            }
            return;
        };
        if !self.create_task(&request, now) {
            return;
        }
        let table = self.table.as_ref();
        let Some(of_task) = table.and_then(|table| table.place_of(handle)) else { return };
        if let Some((task, kept)) = self.tasks.take(place)
            && let Some((kept, outcome)) = self.tasks.start(of_task | DETACHED, task, kept)
        {
            self.finish_task(kept, outcome, now);
        }
    }

    /// Makes a task of a request and answers it so; whether there was room for one more.
    pub(super) fn create_task(&mut self, request: &Request<'static>, now: Instant) -> bool {
        let machine = &mut self.machine;
        let table = self.table.as_mut();
        table.is_some_and(|table| table.create(Machine::Stream(machine), request, now))
    }

    pub(super) fn drop_handler(&mut self, handler: Handler) {
        self.tasks.cancel(handler.place | DETACHED);
    }

    /// Tells the client of tasks whose status has changed.
    pub(super) fn tell_changes(&mut self, now: Instant) {
        if let Some(table) = &mut self.table {
            table.tell(Machine::Stream(&mut self.machine), now);
        }
    }
}

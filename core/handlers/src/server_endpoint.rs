use alloc::boxed::Box;
use alloc::sync::Arc;
use core::task::Context;

use mcp_sansio::Instant;
use mcp_sansio::framing::FrameError;
use mcp_sansio::peer::{self, CloseReason, Event, Request, Subject};
use mcp_sansio::stream::Endpoint;

use super::catalog_edit::{CatalogEdit, ItemHandlers};
use super::context::{Command, Outlet, Received};
use super::dispatch::{check_output, keep};
use super::elicitation_ids::ElicitationIds;
use super::executor::{DETACHED, Executor};
use super::kind::{Kind, Shared, Step};
use super::machines::StreamServer;
use super::mailbox::Mailbox;
use super::panics::{PanicGuard, Panicked};
use super::remote::Remote;
use super::reply::Outcome;
use super::server::{Handlers, Server};
use super::task::{Begun, Machine, Report, Tasks, is_of_tasks};

/// The server's side of one connection with its handlers: what an adapter drives.
#[derive(Debug)]
pub struct ServerEndpoint<K: Kind = Shared> {
    pub(super) machine: StreamServer,
    handlers: Arc<Handlers<K>>,
    items: ItemHandlers<K>,
    pub(super) tasks: Executor<K::Task, Command, Request<'static>>,
    outlet: Outlet,
    pub(super) table: Option<Box<dyn Tasks>>,
    elicitations: ElicitationIds,
}

impl<K: Kind> ServerEndpoint<K> {
    // Out of line it is moved as a whole; inlined, it was field by field, some 2 KB of it.
    #[inline(never)]
    pub(super) fn new(server: Server<K>, seed: u64) -> Self {
        let outlet: Outlet = Arc::new(Mailbox::new(server.room()));
        Self {
            handlers: Arc::clone(&server.handlers),
            items: Arc::clone(&server.items),
            tasks: Executor::new(Arc::clone(&outlet)),
            outlet,
            table: server.open_tasks(),
            elicitations: ElicitationIds::from_seed(seed),
            machine: server.machine(seed),
        }
    }

    /// The machine, to look at.
    #[must_use]
    pub fn machine(&self) -> &peer::Server {
        &self.machine
    }

    /// A way into the connection from outside.
    #[must_use]
    pub fn remote(&self) -> Remote {
        Remote::new(Arc::clone(&self.outlet))
    }

    fn dispatch(&mut self, event: Event<'_>, now: Instant) {
        if !self.handlers.show(&event, self.tasks.guard)
            && let Event::Request(request) = event
        {
            return self.answer(request, Panicked.into(), now);
        }
        match event {
            Event::Request(request) if is_of_tasks(&request) && self.table.is_some() => {
                self.serve_task(&request, now);
            }
            Event::Request(mut request) => {
                match self.handlers.sealing.open(&mut request, None, now) {
                    Ok(()) if self.begin_task(&request, now) == Begun::Refused => {}
                    Ok(()) => self.call(request, now),
                    Err(error) => self.answer(request, Outcome::Error(error), now),
                }
            }
            Event::Cancelled(cancelled) => {
                if let Subject::Request(handle) = cancelled.subject {
                    if let Some(table) = &mut self.table {
                        table.forget(handle);
                    }
                    self.tasks.cancel(handle.slot());
                }
            }
            // After the end of input answers still leave: a client may close its output and read
            // on.
            Event::Closed(CloseReason::EndOfInput) => {}
            Event::Closed(_) => self.tasks.cancel_all(),
            _ => {}
        }
    }

    fn dispatch_queued(&mut self, now: Instant) {
        loop {
            // What tasks ask may come back at once, where it cannot be asked.
            self.tell_changes(now);
            let mut moved = false;
            while let Some(event) = self.machine.poll_event() {
                self.dispatch(event, now);
                moved = true;
            }
            while let Some((request, _)) =
                self.table.as_mut().and_then(|table| table.poll_resumed())
            {
                self.call(request, now);
                moved = true;
            }
            if !moved {
                return;
            }
        }
    }

    /// Hands a request to its handler.
    fn call(&mut self, request: Request<'_>, now: Instant) {
        let of_task = self.table.as_ref().and_then(|table| table.place_of(request.handle));
        let (outlet, tasks, guard) = (&self.outlet, self.table.is_some(), self.tasks.guard);
        let (catalog, asked) = (self.machine.catalog(), (&request, of_task.is_some()));
        let called = match self.handlers.prepare(&self.items, catalog, asked, guard) {
            Ok(function) => guard.run(|| {
                function(Received {
                    outlet: Some(outlet),
                    spawner: self.handlers.spawner.as_ref(),
                    tasks,
                    is_task: of_task.is_some(),
                    ..Received::new(&request)
                })
            }),
            Err(outcome) => Ok(Step::Done(*outcome)),
        };
        match called.unwrap_or_else(|panicked| Step::Done(panicked.into())) {
            Step::Done(outcome) => {
                // What the handler sent goes before its answer.
                self.take_commands(now);
                self.finish(request, outcome, now);
            }
            Step::Running(task) => {
                let place = of_task.map_or_else(|| request.handle.slot(), |place| place | DETACHED);
                let kept = keep(request, tasks, &self.handlers.sealing);
                if let Some((kept, outcome)) = self.tasks.start(place, task, kept) {
                    self.take_commands(now);
                    self.finish_task(kept, outcome, now);
                }
            }
        }
    }

    /// Takes what a handler that went on came to.
    pub(super) fn finish_task(
        &mut self,
        request: Request<'static>,
        outcome: Result<Outcome, Panicked>,
        now: Instant,
    ) {
        self.finish(request, outcome.unwrap_or_else(Outcome::from), now);
    }

    /// Takes what the handler of a request came to.
    pub(super) fn finish(&mut self, request: Request<'_>, mut outcome: Outcome, now: Instant) {
        let handle = request.handle;
        if let Outcome::InputRequired(questions) = &mut outcome {
            questions.name_elicitations(self.elicitations, &request);
        }
        let Some(table) = &mut self.table else { return self.answer(request, outcome, now) };
        if table.place_of(handle).is_some() {
            let check = || check_output(self.machine.catalog(), &request, outcome);
            outcome = self.tasks.guard.run(check).unwrap_or_else(Outcome::from);
        }
        let wished = table.take_wish(handle);
        match table.settle(handle, outcome, now) {
            None => {}
            // It waits for answers from here on: now there is a use for a task.
            Some(outcome @ Outcome::InputRequired(_)) if wished => {
                let request = request.into_owned();
                if !self.create_task(&request, now) {
                    return self.answer(request, outcome, now);
                }
                if let Some(table) = &mut self.table {
                    let _taken = table.settle(handle, outcome, now);
                }
            }
            Some(outcome) => self.answer(request, outcome, now),
        }
    }

    pub(super) fn answer(&mut self, request: Request<'_>, outcome: Outcome, now: Instant) {
        let handle = request.handle;
        let outcome = self.handlers.sealing.close(&request, None, outcome, now);
        // A request that was cancelled meanwhile, or an answer that could not be written, has been
        // dealt with by the machine.
        let _answered = match outcome {
            Outcome::Result(body) => self.machine.respond(handle, &body),
            Outcome::Error(error) => self.machine.reject(handle, error),
            Outcome::InputRequired(questions) => questions.put(&mut self.machine, request, now),
            #[cfg(feature = "http")]
            Outcome::Refused(refusal) => self.machine.reject(handle, refusal.error),
        };
    }

    fn take_commands(&mut self, now: Instant) {
        let guard = self.tasks.guard;
        // As many as there are now: a thread that goes on sending does not keep the driver.
        for _ in 0..self.outlet.commands() {
            let Some(command) = self.outlet.take_command() else { return };
            match command {
                Command::Progress { request, progress, total, message } => {
                    let message = message.as_deref();
                    let report = Report { progress, total, message };
                    let on = Machine::Stream(&mut self.machine);
                    let table = self.table.as_mut();
                    if !table.is_some_and(|table| table.report(on, request, report, now)) {
                        self.machine.progress(request, progress, total, message, now);
                    }
                }
                Command::Log { request, level, logger, data } => {
                    // The data is JSON already, so it can be written.
                    let _sent = self.machine.log(request, level, logger.as_deref(), &data);
                }
                Command::ResourceUpdated { uri, .. } => self.machine.resource_updated(&uri),
                Command::EditCatalog { edit, .. } => {
                    let items = &mut self.items;
                    self.machine.edit_catalog(|catalog| {
                        let edited = CatalogEdit::run(catalog, guard, edit);
                        edited.apply::<K>(items, catalog, K::of_shared);
                    });
                }
                // A byte stream carries on: there is no connection of the request's own.
                Command::ReleaseConnection { .. } => {}
                Command::RunAsTask(request) => self.run_as_task(request, now),
                Command::Close => self.machine.close(),
            }
        }
    }
}

impl<K: Kind> Drop for ServerEndpoint<K> {
    fn drop(&mut self) {
        self.outlet.close();
    }
}

impl<K: Kind> Endpoint for ServerEndpoint<K> {
    fn catch_panics(&mut self, guard: PanicGuard) {
        self.tasks.guard = guard;
        self.machine.catch_panics(guard);
    }

    fn handle_frame(&mut self, frame: Result<&[u8], FrameError>, now: Instant) {
        let event = match frame {
            Ok(frame) => self.machine.handle_message(frame, now),
            Err(error) => self.machine.handle_frame_error(error),
        };
        // A closed connection says so with an event of its own.
        if let Ok(Some(event)) = event {
            self.dispatch(event, now);
        }
        self.dispatch_queued(now);
    }

    fn handle_eof(&mut self, now: Instant) {
        self.machine.handle_eof();
        self.dispatch_queued(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.machine.handle_timeout(now);
        while let Some(handler) = self.table.as_mut().and_then(|table| table.expire(now)) {
            self.drop_handler(handler);
        }
        self.dispatch_queued(now);
    }

    fn poll_handlers(&mut self, cx: &mut Context<'_>, now: Instant) {
        self.take_commands(now);
        for _ in 0..self.tasks.ready() {
            if let Some((kept, outcome)) = self.tasks.poll_next() {
                self.take_commands(now);
                self.finish_task(kept, outcome, now);
            }
        }
        // What the others sent while they ran, and what these commands and answers led to.
        self.take_commands(now);
        self.dispatch_queued(now);
        self.outlet.register(cx.waker());
    }

    fn transmit(&mut self, write: &mut dyn FnMut(&[u8]) -> usize) {
        loop {
            let waiting = self.machine.peek_transmit();
            let length = waiting.len();
            if length == 0 {
                return;
            }
            let written = write(waiting);
            self.machine.consume_transmit(written);
            if written < length {
                return;
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let table = self.table.as_ref().and_then(|table| table.poll_timeout());
        [self.machine.poll_timeout(), table].into_iter().flatten().min()
    }

    fn is_congested(&self) -> bool {
        self.machine.is_congested()
    }

    fn is_drained(&self) -> bool {
        self.machine.is_drained()
    }

    fn is_closed(&self) -> bool {
        self.machine.is_closed()
    }
}

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::task::Context;

use crate::catalog::{Catalog, Invalid};
use crate::framing::FrameError;
use crate::jsonrpc::{ErrorObject, Json, RawJson};
use crate::peer::{self, CloseReason, Event, Inputs, MethodName, Request, Subject, UnknownMethods};
use crate::protocol::{CallToolResult, LoggingLevel, Method};
use crate::{Era, Instant};

use super::context::{Command, Outlet, Received};
use super::endpoint::Endpoint;
use super::kind::{Kind, Shared, Step};
use super::mailbox::Mailbox;
use super::reply::{Body, Outcome};
use super::server::{Handlers, Server};
use super::tasks::Tasks;

/// The server's side of one connection with its handlers: what an adapter drives.
#[derive(Debug)]
pub struct ServerEndpoint<K: Kind = Shared> {
    machine: peer::Server,
    handlers: Arc<Handlers<K>>,
    tasks: Tasks<K, Command, Kept>,
    outlet: Outlet,
}

/// What is needed of a request while its handler runs.
#[derive(Debug)]
struct Kept {
    request: Request<'static>,
    tool: Option<String>,
}

/// A handler, and the variables of the template that led to it.
type Found<'h, K> = (&'h <K as Kind>::Function, Vec<(String, String)>);

/// Reaches into a running connection from outside its handlers, from any thread.
#[derive(Clone, Debug)]
pub struct Remote(Outlet);

impl Remote {
    /// Tells whoever subscribed to it that a resource changed.
    pub fn resource_updated(&self, uri: impl Into<String>) {
        self.send(Command::ResourceUpdated(uri.into()));
    }

    /// Changes what the server offers on this connection; its client is told.
    pub fn edit_catalog(&self, edit: impl FnOnce(&mut Catalog) + Send + 'static) {
        self.send(Command::EditCatalog(Box::new(edit)));
    }

    /// Sends a log message that belongs to no request; a legacy client gets it if it wants its
    /// level.
    pub fn log(&self, level: LoggingLevel, logger: Option<&str>, data: Json) {
        let logger = logger.map(String::from);
        self.send(Command::Log { request: None, level, logger, data });
    }

    /// Ends the connection.
    pub fn close(&self) {
        self.send(Command::Close);
    }

    fn send(&self, command: Command) {
        // A connection that is over has nobody to tell.
        let _sent = self.0.send(command);
    }
}

impl<K: Kind> ServerEndpoint<K> {
    pub(super) fn new(server: &Server<K>, seed: u64) -> Self {
        let options = server
            .options
            .clone()
            .capabilities(server.capabilities.clone())
            .catalog(server.catalog.clone());
        let mut policy = server.policy.clone();
        if !server.handlers.others.is_empty() {
            policy.unknown_methods = UnknownMethods::Deliver;
        }
        let outlet: Outlet = Arc::new(Mailbox::new());
        Self {
            machine: peer::Server::new(options.policy(policy), seed),
            handlers: Arc::clone(&server.handlers),
            tasks: Tasks::new(Arc::clone(&outlet)),
            outlet,
        }
    }

    /// The machine, to look at.
    #[must_use]
    pub const fn machine(&self) -> &peer::Server {
        &self.machine
    }

    /// A way into the connection from outside.
    #[must_use]
    pub fn remote(&self) -> Remote {
        Remote(Arc::clone(&self.outlet))
    }

    fn dispatch(&mut self, event: Event<'_>, now: Instant) {
        for observer in &self.handlers.observers {
            observer(&event);
        }
        match event {
            Event::Request(request) => self.call(request, now),
            Event::Cancelled(cancelled) => {
                if let Subject::Request(handle) = cancelled.subject {
                    self.tasks.cancel(handle.key.slot);
                }
            }
            // After the end of input answers still leave: a client may close its output and read
            // on.
            Event::Closed(reason) if reason != CloseReason::EndOfInput => self.tasks.cancel_all(),
            _ => {}
        }
    }

    fn dispatch_queued(&mut self, now: Instant) {
        while let Some(event) = self.machine.poll_event() {
            self.dispatch(event, now);
        }
    }

    /// Hands a request to its handler.
    fn call(&mut self, request: Request<'_>, now: Instant) {
        let handlers = Arc::clone(&self.handlers);
        let (function, variables) = match self.find(&handlers, &request) {
            Ok(found) => found,
            Err(outcome) => return self.finish(request, None, *outcome, now),
        };
        let tool = self.described_tool(&request);
        let received = Received {
            outlet: Some(&self.outlet),
            variables,
            spawner: handlers.spawner.as_ref(),
            ..Received::new(&request)
        };
        match function(received) {
            Step::Done(outcome) => {
                // What the handler sent goes before its answer.
                self.take_commands(now);
                self.finish(request, tool, outcome, now);
            }
            Step::Running(task) => {
                let place = request.handle.key.slot;
                let kept = Kept { request: keep(request), tool };
                if let Some((kept, outcome)) = self.tasks.start(place, task, kept) {
                    self.take_commands(now);
                    self.finish(kept.request, kept.tool, outcome, now);
                }
            }
        }
    }

    /// The tool that a request calls, if its results have a schema.
    fn described_tool(&self, request: &Request<'_>) -> Option<String> {
        if request.method != Method::ToolsCall {
            return None;
        }
        let name = request.params.get("name")?;
        let tool = self.machine.catalog().tool(&name.to_text()?)?;
        tool.output_schema.is_some().then(|| tool.name.clone())
    }

    /// The handler of a request, with the variables of the template that led to it.
    fn find<'h>(
        &self,
        handlers: &'h Handlers<K>,
        request: &Request<'_>,
    ) -> Result<Found<'h, K>, Box<Outcome>> {
        let subject = |key| request.params.get(key).and_then(|text| text.to_text());
        let found = match &request.method {
            MethodName::Known(Method::ToolsCall) => {
                let name = subject("name").unwrap_or_default();
                self.check_arguments(&name, request)?;
                handlers.tools.get(&*name)
            }
            MethodName::Known(Method::PromptsGet) => {
                handlers.prompts.get(&*subject("name").unwrap_or_default())
            }
            MethodName::Known(Method::ResourcesRead) => {
                let uri = subject("uri").unwrap_or_default();
                if let Some(function) = handlers.resources.get(&*uri) {
                    Some(function)
                } else if let Some((template, variables)) =
                    self.machine.catalog().find_template(&uri)
                    && let Some(function) = handlers.templates.get(&template.uri_template)
                {
                    return Ok((function, variables));
                } else {
                    None
                }
            }
            MethodName::Known(Method::CompletionComplete) => handlers.completion.as_ref(),
            other => handlers.others.get(other.as_str()),
        };
        found.map(|function| (function, Vec::new())).ok_or_else(|| {
            Box::new(Outcome::Error(match &request.method {
                MethodName::Known(method) => {
                    let message = alloc::format!("the server has no handler for this `{method}`");
                    ErrorObject::internal(message)
                }
                // MCP 2026-07-28 basic/index#error-codes [RPC-018]
                MethodName::Other(name) => ErrorObject::method_not_found(name),
            }))
        })
    }

    // MCP 2025-11-25 server/tools#security-considerations [TOOL-030]
    fn check_arguments(&self, tool: &str, request: &Request<'_>) -> Result<(), Box<Outcome>> {
        let arguments = request.params.get("arguments").unwrap_or(RawJson::EMPTY_OBJECT);
        let catalog = self.machine.catalog();
        catalog.validate_arguments(tool, &arguments, request.revision).map_err(|invalid| {
            Box::new(match invalid {
                Invalid::Protocol(error) => Outcome::Error(error),
                Invalid::Tool(message) => {
                    Outcome::Result(Body::Tool(CallToolResult::error(message)))
                }
            })
        })
    }

    /// Answers a request with what its handler came to.
    fn finish(
        &mut self,
        request: Request<'_>,
        tool: Option<String>,
        outcome: Outcome,
        now: Instant,
    ) {
        let handle = request.handle;
        let outcome = match tool {
            Some(tool) => self.check_output(&tool, outcome),
            None => outcome,
        };
        // A request that was cancelled meanwhile, or an answer that could not be written, has been
        // dealt with by the machine.
        let _answered = match outcome {
            Outcome::Result(body) => self.machine.respond(handle, &body),
            Outcome::Error(error) => self.machine.reject(handle, error),
            Outcome::InputRequired(required) => self.machine.require_input(request, &required, now),
        };
    }

    // MCP 2025-06-18 server/tools#output-schema [TOOL-019]
    fn check_output(&self, tool: &str, outcome: Outcome) -> Outcome {
        let Outcome::Result(Body::Tool(result)) = &outcome else { return outcome };
        let Some(structured) = &result.structured_content else { return outcome };
        match self.machine.catalog().validate_output(tool, &structured.as_raw()) {
            Ok(()) => outcome,
            Err(reason) => Outcome::Error(ErrorObject::internal(reason)),
        }
    }

    fn take_commands(&mut self, now: Instant) {
        // As many as there are now: a thread that goes on sending does not keep the driver.
        for _ in 0..self.outlet.commands() {
            let Some(command) = self.outlet.take_command() else { return };
            match command {
                Command::Progress { request, progress, total, message } => {
                    self.machine.progress(request, progress, total, message.as_deref(), now);
                }
                Command::Log { request, level, logger, data } => {
                    // The data is JSON already, so it can be written.
                    let _sent = self.machine.log(request, level, logger.as_deref(), &data);
                }
                Command::ResourceUpdated(uri) => self.machine.resource_updated(&uri),
                Command::EditCatalog(edit) => self.machine.edit_catalog(edit),
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
        self.dispatch_queued(now);
    }

    fn poll_handlers(&mut self, cx: &mut Context<'_>, now: Instant) {
        self.take_commands(now);
        for _ in 0..self.tasks.ready() {
            if let Some((kept, outcome)) = self.tasks.poll_next() {
                self.take_commands(now);
                self.finish(kept.request, kept.tool, outcome, now);
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
        self.machine.poll_timeout()
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

/// Frees a request from its frame. Its text is kept only where a further round would hand it to the
/// handler again.
fn keep(mut request: Request<'_>) -> Request<'static> {
    let rounds = matches!(request.method, MethodName::Known(m) if m.allows_input_rounds());
    if !(rounds && request.revision.era() == Era::Legacy) {
        request.params = RawJson::EMPTY_OBJECT;
        request.inputs = Inputs::default();
    }
    request.into_owned()
}

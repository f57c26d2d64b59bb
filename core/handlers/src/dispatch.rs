use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;

use mcp_sansio::catalog::{Attachments, Catalog, Invalid, Target};
use mcp_sansio::jsonrpc::{ErrorObject, RawJson, RequestId};
use mcp_sansio::peer::{InputResponseParams, MethodName, Request};
use mcp_sansio::protocol::{CallToolResult, SerializeAt};
use mcp_sansio::{Capability, Era, Instant, Spawner};

use super::context::{CommandSender, Incoming, RequestParts};
use super::executor::PanicGuard;
use super::reply::{Outcome, ResultBody};
use super::server::{Handlers, UnixTime};
use super::server_item::ItemHandler;
use super::threading::{Step, Threading};

impl<K: Threading> Handlers<K> {
    /// Finds the handler of a request, or the outcome if the request cannot be handled. Checks the
    /// arguments of a call that is a task, because the machine does not.
    pub(super) fn prepare<'h>(
        &'h self,
        items: &'h Attachments<ItemHandler<K>>,
        catalog: &Catalog,
        (request, is_task): (&Request<'_>, bool),
        guard: PanicGuard,
    ) -> Result<&'h K::Function, Box<Outcome>> {
        if is_task {
            let checked = guard.run(|| check_arguments(catalog, request));
            checked.unwrap_or_else(|panicked| Err(Box::new(Outcome::Error(panicked.into()))))?;
        }
        self.find(items, request).map_err(|error| Box::new(Outcome::Error(error)))
    }

    /// Opens the state of a request, if states are sealed.
    #[inline]
    pub(super) fn open_state(
        &self,
        request: &mut Request<'_>,
        now: Instant,
    ) -> Result<(), ErrorObject<'static>> {
        self.sealing
            .as_ref()
            .map_or(Ok(()), |sealing| sealing.open(request, now, self.unix_time.as_ref()))
    }

    /// Seals the state of an answer, if states are sealed.
    #[inline]
    pub(super) fn seal_state(
        &self,
        request: &Request<'_>,
        outcome: Outcome,
        now: Instant,
    ) -> Outcome {
        match &self.sealing {
            Some(sealing) => sealing.close(request, outcome, now, self.unix_time.as_ref()),
            None => outcome,
        }
    }

    /// Finds the handler of a request.
    fn find<'h>(
        &'h self,
        items: &'h Attachments<ItemHandler<K>>,
        request: &Request<'_>,
    ) -> Result<&'h K::Function, ErrorObject<'static>> {
        let item = request.target.item();
        if let Some(argument) = request.target.argument() {
            let arguments = item.and_then(|item| items.get(item)?.arguments.as_ref());
            if let Some(found) = arguments.and_then(|it| it.find(argument)) {
                return Ok(found);
            }
        } else if let Some(item) = item {
            return items.get(item).map(|item| &item.function).ok_or_else(|| {
                // The item existed when the request came, and was removed between two rounds.
                let kind = item.kind();
                ErrorObject::invalid_params(alloc::format!("this {kind} is not offered any more"))
            });
        }
        self.method(request.method.as_str()).ok_or_else(|| match &request.method {
            MethodName::Known(method) => {
                let message = alloc::format!("the server has no handler for this `{method}`");
                ErrorObject::internal(message)
            }
            // MCP 2026-07-28 schema.json#MethodNotFoundError [RPC-018]
            MethodName::Other(name) => ErrorObject::method_not_found(name),
        })
    }
}

/// Seals the states that handlers give to clients between rounds.
///
/// A trait, so that the binary of a server that seals none contains no code for it: only
/// `Server::seal` and servers on HTTP refer to the implementation.
pub(super) trait StateSeal: fmt::Debug + Send + Sync {
    /// Whether the parameters of a request are needed when it is answered.
    fn binds_parameters(&self) -> bool;

    /// Whether states expire by the time of day.
    fn needs_unix_time(&self) -> bool;

    /// Opens the state of a request.
    fn open(
        &self,
        request: &mut Request<'_>,
        now: Instant,
        unix_time: Option<&UnixTime>,
    ) -> Result<(), ErrorObject<'static>>;

    /// Seals the state of an answer.
    fn close(
        &self,
        request: &Request<'_>,
        outcome: Outcome,
        now: Instant,
        unix_time: Option<&UnixTime>,
    ) -> Outcome;
}

/// A handler and all its inputs except the request.
pub(super) struct Invocation<'a, K: Threading> {
    pub(super) handlers: &'a Arc<Handlers<K>>,
    /// The handler, or the outcome if there is no handler.
    pub(super) function: Result<&'a K::Function, Box<Outcome>>,
    pub(super) commands: &'a CommandSender,
    /// Whether the request can become a task.
    pub(super) tasks: bool,
    /// Whether the request is a task.
    pub(super) is_task: bool,
    /// The JSON-RPC id, unless the request is answered.
    pub(super) id: Option<&'a RequestId>,
    pub(super) guard: PanicGuard,
    /// Where blocking handlers run; `None` runs them in place.
    pub(super) spawner: Option<&'a Spawner>,
    /// The observation of the request, if the server has an observer.
    pub(super) observation: Option<crate::executor::SharedObservation>,
    /// The details of the request, if the server keeps any.
    pub(super) details: Option<Arc<super::context::RequestDetails>>,
}

impl<K: Threading> Invocation<'_, K> {
    /// Calls the handler. A plain one does its work in this call.
    pub(super) fn call(self, request: &Request<'_>) -> Step<K> {
        let function = match self.function {
            Ok(function) => function,
            Err(outcome) => return Step::Ready(*outcome),
        };
        let called = self.guard.run(|| {
            function(RequestParts {
                params: &request.params,
                revision: request.revision,
                call: Some(&Incoming {
                    request,
                    commands: self.commands,
                    tasks: self.tasks,
                    is_task: self.is_task,
                    id: self.id,
                    lists: None,
                    observation: self.observation.as_ref(),
                    details: self.details.as_ref(),
                }),
                states: self.handlers.state_map(),
                spawner: self.spawner,
                guard: self.guard,
                cancelled: None,
                observation: self.observation.as_ref(),
                server: None,
            })
        });
        called.unwrap_or_else(|panicked| Step::Ready(panicked.into()))
    }
}

// MCP 2025-11-25 server/tools#security-considerations [TOOL-030]
fn check_arguments(catalog: &Catalog, request: &Request<'_>) -> Result<(), Box<Outcome>> {
    let Target::Tool(tool) = request.target else { return Ok(()) };
    let arguments = request.arguments().unwrap_or(RawJson::EMPTY_OBJECT);
    catalog.validate_arguments(tool, &arguments, request.revision).map_err(|invalid| {
        Box::new(match invalid {
            Invalid::Protocol(error) => Outcome::Error(error),
            Invalid::Tool(message) => {
                Outcome::Result(ResultBody::Tool(CallToolResult::error(message)))
            }
        })
    })
}

/// Checks the structured result of a call that is a task: the machine checks only the results of
/// other calls.
// MCP 2025-11-25 server/tools#output-schema [TOOL-019]
pub(super) fn check_output(catalog: &Catalog, request: &Request<'_>, outcome: Outcome) -> Outcome {
    let (Target::Tool(tool), Outcome::Result(body)) = (&request.target, &outcome) else {
        return outcome;
    };
    match catalog.validate_output(*tool, body.tool_output(), request.revision) {
        Ok(()) => outcome,
        Err(reason) => Outcome::Error(ErrorObject::internal(reason)),
    }
}

/// Makes a request independent of its frame. Keeps the parameters only where they are needed again:
/// for the next round of a legacy session, for one of the server's `tasks`, or to bind a state that
/// `sealing` seals.
pub(super) fn into_owned_request(
    mut request: Request<'_>,
    tasks: bool,
    sealing: Option<&dyn StateSeal>,
) -> Request<'static> {
    let rounds = matches!(request.method, MethodName::Known(m) if m.allows_input_rounds());
    let task = tasks && request.capabilities.contains(Capability::TasksExtension);
    if !(rounds && (task || request.revision.era() == Era::Legacy)) {
        request.inputs = InputResponseParams::default();
        if !(rounds && sealing.is_some_and(StateSeal::binds_parameters)) {
            request.clear_params();
        }
    }
    request.into_owned()
}

#[cfg(feature = "http")]
use crate::machines::HttpServerMachine;
use crate::machines::StreamServer;
use mcp_sansio::jsonrpc::{ErrorObject, Json};
use mcp_sansio::peer::{Applied, CommandError, Request, RequestHandle, ServerCommand};
use mcp_sansio::protocol::{Capability, InputRequiredResult, TaskStatusParams, Verbatim};
use mcp_sansio::{Instant, Principal};

/// The machine that requests came to, whatever it is bound to. Its verbs are named by the table of
/// tasks alone, so that they are in an image only where that is.
#[derive(Debug)]
pub(crate) enum Machine<'m> {
    Stream(&'m mut StreamServer),
    #[cfg(feature = "http")]
    Http(&'m mut HttpServerMachine),
}

#[cfg_attr(
    not(feature = "http"),
    expect(unused_variables, reason = "a byte stream has one client, and no streams to close")
)]
impl Machine<'_> {
    /// Whether the session of a request was told that tools run as tasks.
    // MCP 2025-11-25 basic/utilities/tasks#task-support-and-handling [TASK-006]
    pub(super) fn runs_tools_as_tasks(&self, request: RequestHandle) -> bool {
        let session = match self {
            Self::Stream(machine) => machine.session(),
            #[cfg(feature = "http")]
            Self::Http(machine) => machine.session_of_request(request),
        };
        session.is_some_and(|it| it.server_capabilities().contains(Capability::TasksToolsCall))
    }

    /// Who sent a request, where that is known.
    pub(super) fn principal(&self, request: RequestHandle) -> Option<Principal> {
        match self {
            Self::Stream(_) => None,
            #[cfg(feature = "http")]
            Self::Http(machine) => machine.principal(request).cloned(),
        }
    }

    /// Whether its client is there to hear what is said on the way of a request.
    pub(super) fn is_heard(&self, request: RequestHandle) -> bool {
        match self {
            Self::Stream(_) => true,
            #[cfg(feature = "http")]
            Self::Http(machine) => machine.is_heard(request),
        }
    }

    pub(super) fn respond(&mut self, request: RequestHandle, result: &Json, now: Instant) {
        let result = &Verbatim(result);
        let _answered = self.apply(ServerCommand::Respond { request, result }, now);
    }

    pub(super) fn reject(
        &mut self,
        request: RequestHandle,
        error: ErrorObject<'static>,
        now: Instant,
    ) {
        let _answered = self.apply(ServerCommand::Reject { request, error }, now);
    }

    /// Asks the client of a request; whether it was asked. If not, the request has its answer.
    pub(super) fn ask(
        &mut self,
        request: Request<'static>,
        required: &InputRequiredResult,
        now: Instant,
    ) -> bool {
        self.apply(ServerCommand::RequireInput { request: &request, required }, now).is_ok()
    }

    pub(super) fn withdraw_input(&mut self, request: RequestHandle, now: Instant) {
        let _withdrawn = self.apply(ServerCommand::WithdrawInput(request), now);
    }

    pub(super) fn progress(&mut self, request: RequestHandle, params: &Json, now: Instant) {
        let sent = self.apply(ServerCommand::TaskProgress { request, params }, now);
        debug_assert!(sent.is_ok(), "progress is an object");
    }

    /// Tells those who listen.
    pub(super) fn task_changed(
        &mut self,
        status: &TaskStatusParams,
        principal: Option<&Principal>,
        now: Instant,
    ) {
        let _told = self.apply(ServerCommand::TaskChanged { status, principal }, now);
    }

    /// A request that was cancelled meanwhile has been dealt with by the machine.
    #[inline(always)]
    fn apply(&mut self, command: ServerCommand<'_>, now: Instant) -> Result<Applied, CommandError> {
        match self {
            Self::Stream(machine) => machine.apply(command, now),
            #[cfg(feature = "http")]
            Self::Http(machine) => machine.apply(command, now),
        }
    }
}

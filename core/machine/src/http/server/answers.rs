//! Executes commands of the application, and translates the results to HTTP.

use alloc::boxed::Box;

use mcp_sansio_collections::Key;

use crate::catalog::Catalog;
use crate::http::{HttpRejection, Status};
use crate::jsonrpc::{ErrorCode, RequestId};
use crate::peer::machine::machine;
use crate::peer::outbox::Verdict;
use crate::peer::{Applied, CommandError, Request, RequestHandle, ServerCommand, ServerMachine};
use crate::protocol::Era;
use crate::{Instant, Revision};

use super::exchange::Exchange;
use super::{Connection, Server};

impl Server {
    /// Executes a command of the application.
    ///
    /// A command for a request is executed in its connection. Log messages without a request, and
    /// changes of resources, tasks and lists, are executed in every connection. Calls and
    /// notifications of the application itself need a permanent connection, which does not exist on
    /// HTTP.
    ///
    /// # Errors
    ///
    /// See [`CommandError`].
    pub fn apply(
        &mut self,
        command: ServerCommand<'_>,
        now: Instant,
    ) -> Result<Applied, CommandError> {
        if self.shared.is_some() {
            self.share_command(&command);
        }
        self.apply_here(command, now)
    }

    /// Executes a command on this node.
    pub(super) fn apply_here(
        &mut self,
        command: ServerCommand<'_>,
        now: Instant,
    ) -> Result<Applied, CommandError> {
        let addressee = match (&command, command.request()) {
            (_, Some(request)) => request.connection,
            (ServerCommand::Call { method, .. } | ServerCommand::Notify { method, .. }, _) => {
                return Err(CommandError::OutOfPlace(*method));
            }
            (ServerCommand::Cancel { call, .. }, _) => call.connection,
            (ServerCommand::TaskChanged { principal, .. }, _) => {
                // MCP 2026-07-28 ext-tasks:tasks#security-considerations [TASK-041]
                let is_theirs =
                    |it: &Connection| it.machine.caller().principal() == principal.as_deref();
                return self.apply_to_all(&command, &is_theirs, now);
            }
            (ServerCommand::Close, _) => {
                self.end(now);
                return Ok(Applied::Done);
            }
            _ => return self.apply_to_all(&command, &|_| true, now),
        };
        let is_answer = matches!(
            command,
            ServerCommand::Respond { .. }
                | ServerCommand::Reject { .. }
                | ServerCommand::RequireInput { .. }
        );
        let Some(connection) = self.connections.get_mut(addressee) else {
            return if is_answer { Err(CommandError::NotDue) } else { Ok(Applied::Done) };
        };
        let applied = connection.machine.apply(command, now);
        self.pump(addressee, now);
        applied
    }

    /// Executes a command in each connection that it concerns. Returns the first error, if any.
    fn apply_to_all(
        &mut self,
        command: &ServerCommand<'_>,
        concerns: &dyn Fn(&Connection) -> bool,
        now: Instant,
    ) -> Result<Applied, CommandError> {
        let mut outcome = Ok(Applied::Done);
        self.for_each_connection(now, |connection| {
            if concerns(connection) {
                let applied = connection.machine.apply(command.clone(), now);
                outcome = core::mem::replace(&mut outcome, Ok(Applied::Done)).and(applied);
            }
        });
        outcome
    }

    /// Answers a request with a refusal. If its response has not started and belongs only to the
    /// request, the HTTP status is set as well; otherwise the client gets only the error.
    ///
    /// # Errors
    ///
    /// See [`CommandError`].
    pub fn refuse(
        &mut self,
        request: RequestHandle,
        refusal: HttpRejection,
        now: Instant,
    ) -> Result<(), CommandError> {
        let connection = self.connection_of(request)?;
        let channel = connection.machine.channel_of(request).ok_or(CommandError::NotDue)?;
        let stream = connection.streams.get(channel.0).filter(|_| !connection.is_event_stream());
        let reader = stream.and_then(|stream| stream.reader);
        let head = Box::new(refusal.head());
        if let Some(exchange) = reader.and_then(|reader| self.exchanges.get_mut(reader)) {
            exchange.refusal = Some(head);
        }
        let outcome = self.reject(request, refusal.error, now);
        // If another response is sent for the request, it must not use the refusal.
        if outcome.is_err()
            && let Some(exchange) = reader.and_then(|reader| self.exchanges.get_mut(reader))
        {
            exchange.refusal = None;
        }
        outcome
    }

    /// Closes the connection that carries the messages of `request`, and asks the client to come
    /// back for the rest after `retry`. The request stays pending. It has no effect if the revision
    /// does not support this, or if the connection is already closed.
    // MCP 2025-11-25 basic/transports#sending-messages-to-the-server [SSE-006] [SSE-007]
    pub fn release_connection(&mut self, request: RequestHandle, retry: core::time::Duration) {
        let Ok(connection) = self.connection_of(request) else { return };
        if let Some(channel) = connection.machine.channel_of(request) {
            self.close_reader(request.connection, channel.0, retry);
        }
    }

    /// Returns whether a request is still pending.
    #[must_use]
    pub fn is_pending(&self, request: RequestHandle) -> bool {
        self.connections
            .get(request.connection)
            .is_some_and(|connection| connection.machine.channel_of(request).is_some())
    }

    /// Returns the current catalog, shared so that it can be read while it changes.
    #[must_use]
    pub fn shared_catalog(&self) -> mcp_sansio_sync::Arc<Catalog> {
        mcp_sansio_sync::Arc::clone(&self.server_config.catalog)
    }

    /// Returns whether an open exchange carries the messages of a request. Its client may have
    /// closed it.
    #[must_use]
    pub fn has_open_stream(&self, request: RequestHandle) -> bool {
        self.reader_of(request).is_some()
    }

    /// Returns the open exchange that carries the messages of a request and ends with it, which the
    /// event stream of HTTP+SSE does not.
    pub(super) fn exchange_of(&mut self, request: RequestHandle) -> Option<&mut Exchange> {
        if self.connections.get(request.connection)?.is_event_stream() {
            return None;
        }
        let key = self.reader_of(request)?;
        self.exchanges.get_mut(key)
    }

    fn reader_of(&self, request: RequestHandle) -> Option<Key> {
        let connection = self.connections.get(request.connection)?;
        let number = connection.number_of(connection.machine.channel_of(request)?);
        connection.streams.get(number)?.reader
    }

    /// Returns the legacy session of a request.
    #[must_use]
    pub fn session_of_request(
        &self,
        request: RequestHandle,
    ) -> Option<&crate::peer::ServerSession> {
        self.connections.get(request.connection)?.machine.session()
    }

    /// Returns the lists as the sender of a request sees them, as [`peer::Server::lists_of`] does;
    /// `None` if the request is answered.
    ///
    /// [`peer::Server::lists_of`]: crate::peer::Server::lists_of
    #[must_use]
    pub fn lists_of(&self, request: &Request<'_>) -> Option<crate::catalog::Lists> {
        Some(self.connections.get(request.handle.connection)?.machine.lists_of(request))
    }

    fn connection_of(&mut self, request: RequestHandle) -> Result<&mut Connection, CommandError> {
        self.connections.get_mut(request.connection).ok_or(CommandError::NotDue)
    }

    /// Visits all connections, and pumps those that have output. Most have no output.
    pub(super) fn for_each_connection(
        &mut self,
        now: Instant,
        mut visit: impl FnMut(&mut Connection),
    ) {
        let mut slot = 0;
        while let Some(key) = self.connections.find_from(slot, |_| true) {
            slot = key.slot + 1;
            let Some(connection) = self.connections.get_mut(key) else { continue };
            visit(connection);
            if !connection.machine.is_quiet() {
                self.pump(key, now);
            }
        }
    }
}

machine!(Server, ServerCommand);

impl ServerMachine for Server {
    fn revision_of(&self, request: RequestHandle) -> Option<Revision> {
        self.connections.get(request.connection)?.machine.revision_of(request).ok()
    }

    fn id_of(&self, request: RequestHandle) -> Option<&RequestId> {
        self.connections.get(request.connection)?.machine.id_of(request)
    }

    fn observation_of(
        &self,
        request: RequestHandle,
    ) -> Option<mcp_sansio_sync::Arc<dyn crate::peer::Observation>> {
        self.connections.get(request.connection)?.machine.observation_of(request)
    }
}

/// Returns the status of a response that contains only a JSON-RPC response.
// MCP 2026-07-28 basic/transports/streamable-http#protocol-version-header [HSRV-021] [HSRV-022]
pub(super) const fn status_of(verdict: Verdict, era: Era) -> Status {
    let (code, refused) = match verdict {
        Verdict::Result => return Status::OK,
        Verdict::Failed(code) => (code, false),
        Verdict::Refused(code) => (code, true),
    };
    match (code, era) {
        (ErrorCode::METHOD_NOT_FOUND, Era::Modern) => Status::NOT_FOUND,
        (
            ErrorCode::HEADER_MISMATCH
            | ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY
            | ErrorCode::UNSUPPORTED_PROTOCOL_VERSION,
            _,
        ) => Status::BAD_REQUEST,
        (ErrorCode::PARSE_ERROR | ErrorCode::INVALID_REQUEST, _) if refused => Status::BAD_REQUEST,
        (ErrorCode::INVALID_PARAMS, Era::Modern) if refused => Status::BAD_REQUEST,
        _ => Status::OK,
    }
}

//! What the application says, and how HTTP says it a second time.

use alloc::boxed::Box;

use serde::Serialize;

use crate::Instant;
use crate::catalog::{Catalog, Changes};
use crate::http::{Principal, Refusal, Status};
use crate::jsonrpc::{ErrorCode, ErrorObject, Typed, WriteError, WriteJson};
use crate::peer::outbox::Verdict;
use crate::peer::{AnswerError, Request, RequestHandle};
use crate::protocol::{At, Era, InputRequiredResult, LoggingLevel, TaskStatusParams, Wire};

#[cfg(feature = "recording")]
use crate::recording::Call;

use super::{Connection, Server, mirrors_of};

impl Server {
    /// Answers a request with a result: see [`peer::Server::respond`](crate::peer::Server::respond).
    ///
    /// # Errors
    ///
    /// See [`AnswerError`].
    pub fn respond<R: Wire + ?Sized>(
        &mut self,
        request: RequestHandle,
        result: &R,
        now: Instant,
    ) -> Result<(), AnswerError> {
        let revision = self.connection_of(request)?.machine.revision_of(request)?;
        self.respond_with(request, &Typed(&At(result, revision)), now)
    }

    /// Answers a request with a result of the caller's own: see
    /// [`peer::Server::respond_with`](crate::peer::Server::respond_with).
    ///
    /// # Errors
    ///
    /// See [`AnswerError`].
    pub fn respond_with(
        &mut self,
        request: RequestHandle,
        result: &impl WriteJson,
        now: Instant,
    ) -> Result<(), AnswerError> {
        note!(self, respond(request, result, Some(now)));
        let outcome = self.connection_of(request)?.machine.respond_with(request, result);
        self.settle(request.connection, now);
        outcome
    }

    /// Answers a request with an error: see [`peer::Server::reject`](crate::peer::Server::reject).
    ///
    /// # Errors
    ///
    /// See [`AnswerError`].
    pub fn reject(
        &mut self,
        request: RequestHandle,
        error: ErrorObject<'_>,
        now: Instant,
    ) -> Result<(), AnswerError> {
        note!(self, reject(request, &error, Some(now)));
        self.reject_unnoted(request, error, now)
    }

    fn reject_unnoted(
        &mut self,
        request: RequestHandle,
        error: ErrorObject<'_>,
        now: Instant,
    ) -> Result<(), AnswerError> {
        let outcome = self.connection_of(request)?.machine.reject(request, error);
        self.settle(request.connection, now);
        outcome
    }

    /// Answers a request with a refusal. Where its response has not begun and is to it alone, HTTP
    /// says so as well; otherwise its client gets the error.
    ///
    /// # Errors
    ///
    /// See [`AnswerError`].
    pub fn refuse(
        &mut self,
        request: RequestHandle,
        refusal: Refusal,
        now: Instant,
    ) -> Result<(), AnswerError> {
        note!(self, refuse(request, &refusal, now));
        let connection = self.connection_of(request)?;
        let channel = connection.machine.channel_of(request).ok_or(AnswerError::NotDue)?;
        let stream = connection.streams.get(channel.0).filter(|_| !connection.is_event_stream());
        let reader = stream.and_then(|stream| stream.reader);
        let head = Box::new(refusal.head());
        if let Some(exchange) = reader.and_then(|reader| self.exchanges.get_mut(reader)) {
            exchange.refusal = Some(head);
        }
        let outcome = self.reject_unnoted(request, refusal.error, now);
        // What answers a request that waits for something else is none of it.
        if outcome.is_err()
            && let Some(exchange) = reader.and_then(|reader| self.exchanges.get_mut(reader))
        {
            exchange.refusal = None;
        }
        outcome
    }

    /// Answers a request with questions: see
    /// [`peer::Server::require_input`](crate::peer::Server::require_input).
    ///
    /// # Errors
    ///
    /// See [`AnswerError`].
    pub fn require_input(
        &mut self,
        request: Request<'_>,
        required: &InputRequiredResult,
        now: Instant,
    ) -> Result<(), AnswerError> {
        note!(self, require_input(request.handle, &request.method, required, now));
        let key = request.handle.connection;
        let outcome =
            self.connection_of(request.handle)?.machine.require_input(request, required, now);
        self.settle(key, now);
        outcome
    }

    /// Gives up the questions that a request waits for: see
    /// [`peer::Server::withdraw_input`](crate::peer::Server::withdraw_input).
    pub fn withdraw_input(&mut self, request: RequestHandle, now: Instant) {
        note!(self, withdraw_input(request, now));
        if let Ok(connection) = self.connection_of(request) {
            connection.machine.withdraw_input(request, now);
            self.settle(request.connection, now);
        }
    }

    /// Sends progress of a task, in the session of `request`: see
    /// [`peer::Server::task_progress`](crate::peer::Server::task_progress).
    ///
    /// # Errors
    ///
    /// The caller's: `params` is not an object.
    pub fn task_progress(
        &mut self,
        request: RequestHandle,
        params: &impl WriteJson,
        now: Instant,
    ) -> Result<(), WriteError> {
        note!(self, task_progress(request, params, Some(now)));
        let Ok(connection) = self.connection_of(request) else { return Ok(()) };
        let outcome = connection.machine.task_progress(request, params);
        self.settle(request.connection, now);
        outcome
    }

    /// Sends progress of a request: see [`peer::Server::progress`](crate::peer::Server::progress).
    pub fn progress(
        &mut self,
        request: RequestHandle,
        progress: f64,
        total: Option<f64>,
        message: Option<&str>,
        now: Instant,
    ) {
        note!(self, progress(request, progress, total, message, now));
        if let Ok(connection) = self.connection_of(request) {
            connection.machine.progress(request, progress, total, message, now);
            self.settle(request.connection, now);
        }
    }

    /// Sends a log message on behalf of `request`; on behalf of none, to every legacy session that
    /// wants its level. See [`peer::Server::log`](crate::peer::Server::log).
    ///
    /// # Errors
    ///
    /// The caller's: `data` cannot be written.
    pub fn log<D: Serialize + ?Sized>(
        &mut self,
        request: Option<RequestHandle>,
        level: LoggingLevel,
        logger: Option<&str>,
        data: &D,
        now: Instant,
    ) -> Result<(), WriteError> {
        note!(self, log(request, level, logger, data, Some(now)));
        let Some(request) = request else {
            let mut outcome = Ok(());
            self.for_each_connection(now, |connection| {
                let logged = connection.machine.log(None, level, logger, data);
                outcome = core::mem::replace(&mut outcome, Ok(())).and(logged);
            });
            return outcome;
        };
        let Ok(connection) = self.connection_of(request) else { return Ok(()) };
        let outcome = connection.machine.log(Some(request), level, logger, data);
        self.settle(request.connection, now);
        outcome
    }

    /// Closes the connection that carries the messages of `request`, and lets the client come back
    /// for the rest after `retry`. The request goes on. Nothing happens where the revision has no
    /// such thing, or the connection has closed already.
    // MCP 2025-11-25 basic/transports#sending-messages-to-the-server [SSE-006] [SSE-007]
    pub fn release_connection(&mut self, request: RequestHandle, retry: core::time::Duration) {
        note!(self, release(request, retry));
        let Ok(connection) = self.connection_of(request) else { return };
        if let Some(channel) = connection.machine.channel_of(request) {
            self.close_reader(request.connection, channel.0, retry);
        }
    }

    /// Tells every client that subscribed to `uri` that the resource changed.
    pub fn resource_updated(&mut self, uri: &str, now: Instant) {
        note!(self, resource_updated(uri, Some(now)));
        self.for_each_connection(now, |connection| connection.machine.resource_updated(uri));
    }

    /// Tells whoever listens for it of the status of a task, as far as the task is theirs.
    // MCP 2026-07-28 ext-tasks:tasks#security-considerations [TASK-041]
    pub fn task_changed(
        &mut self,
        status: &TaskStatusParams,
        principal: Option<&Principal>,
        now: Instant,
    ) {
        #[cfg(feature = "recording")]
        if let Some(book) = &self.tape {
            book.note(Call::task_changed(status, book.principal(principal), Some(now)));
        }
        self.for_each_connection(now, |connection| {
            if connection.principal.as_ref() == principal {
                connection.machine.task_changed(status);
            }
        });
    }

    /// Tells clients that a list changed which the catalog does not hold.
    pub fn announce(&mut self, changes: Changes, now: Instant) {
        note!(self, announce(changes, Some(now)));
        self.for_each_connection(now, |connection| connection.machine.announce(changes));
    }

    /// Changes what the server offers, in every session. Clients that asked for it are told which
    /// lists changed.
    ///
    /// A tool with annotations that HTTP clients must refuse is served without the checks that
    /// these would bring; see [`UnservableTool`](super::UnservableTool).
    pub fn edit_catalog<T>(&mut self, edit: impl FnOnce(&mut Catalog) -> T, now: Instant) -> T {
        let (edited, changes) = self.blueprint.edit_catalog(edit);
        note!(self, catalog(&self.blueprint.catalog, Some(changes), Some(now)));
        (self.mirrors, _) = mirrors_of(&self.blueprint.catalog);
        let blueprint = self.blueprint.clone();
        self.for_each_connection(now, |connection| {
            connection.machine.adopt(&blueprint);
            connection.machine.announce(changes);
        });
        edited
    }

    /// Whether a request still waits for its answer.
    #[must_use]
    pub fn is_due(&self, request: RequestHandle) -> bool {
        self.connections
            .get(request.connection)
            .is_some_and(|connection| connection.machine.channel_of(request).is_some())
    }

    /// What the server offers now, to look at while it changes.
    #[must_use]
    pub fn shared_catalog(&self) -> mcp_sansio_sync::Arc<Catalog> {
        mcp_sansio_sync::Arc::clone(&self.blueprint.catalog)
    }

    /// Whether an exchange carries what is said on the way of a request, which its client may have
    /// closed.
    #[must_use]
    pub fn is_heard(&self, request: RequestHandle) -> bool {
        let Some(connection) = self.connections.get(request.connection) else { return false };
        let channel = connection.machine.channel_of(request);
        let number = channel.map(|channel| connection.number_of(channel));
        let stream = number.and_then(|number| connection.streams.get(number));
        stream.is_some_and(|stream| stream.reader.is_some())
    }

    /// The legacy session that a request came in.
    #[must_use]
    pub fn session_of_request(
        &self,
        request: RequestHandle,
    ) -> Option<&crate::peer::server::Session> {
        self.connections.get(request.connection)?.machine.session()
    }

    /// Who sent a request, as the adapter said.
    #[must_use]
    pub fn principal(&self, request: RequestHandle) -> Option<&Principal> {
        self.connections.get(request.connection)?.principal.as_ref()
    }

    fn connection_of(&mut self, request: RequestHandle) -> Result<&mut Connection, AnswerError> {
        self.connections.get_mut(request.connection).ok_or(AnswerError::NotDue)
    }

    /// Tells all connections of something, and deals with what they make of it: most of them
    /// nothing.
    fn for_each_connection(&mut self, now: Instant, mut visit: impl FnMut(&mut Connection)) {
        let mut slot = 0;
        while let Some(key) = self.connections.find_from(slot, |_| true) {
            slot = key.slot + 1;
            let Some(connection) = self.connections.get_mut(key) else { continue };
            visit(connection);
            if !connection.machine.is_quiet() {
                self.settle(key, now);
            }
        }
    }
}

/// The status of a response that carries an answer alone.
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

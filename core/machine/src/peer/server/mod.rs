//! The server's side of a connection.

mod answers;
mod batches;
#[cfg(feature = "http")]
mod channels;
mod consistency;
mod declared;
mod input_tasks;
mod lifecycle;
mod notifications;
mod options;
mod passing;
mod pending_notifications;
mod receive;
mod received_notifications;
mod result_body;
mod rounds;
mod server_config;
mod session_key;
#[cfg(feature = "http")]
mod session_state;
mod subscriptions;
mod tasks;

use alloc::boxed::Box;

use mcp_sansio_collections::Slab;
use mcp_sansio_sync::Arc;

use crate::binding::Binding;
use crate::catalog::Catalog;
use crate::envelope::Envelopes;
use crate::framing::FrameError;
use crate::gate::{GateError, MethodKind, metadata};
use crate::jsonrpc::{Json, RawJson, RequestId, WriteJson, to_shared_json};
use crate::protocol::{
    Capabilities, JsonAtRevision, LoggingLevel, Method, ServerCapabilities, Side,
};
use crate::{Caller, Instant, PanicGuard, Revision};

use super::calls::Purpose;
use super::command::{Body, ServerCommand, ServerMachine};
use super::connection::Connection;
use super::error::{CommandError, ConnectionClosed};
use super::event::{CloseReason, Event, Failure};
use super::handle::{CallHandle, RequestHandle};
use super::input_support::{UnsupportedInput, unsupported_input};
use super::machine::{Applied, machine, stream_machine};
use super::method_name::MethodName;
use super::outbox::Channel;
use super::outgoing::{CallOptions, Outgoing};
use super::queue::Tag;
use super::requests::ReplyTo;

pub(super) use batches::{Answered, Batch, Batches};
pub(super) use declared::DECLARED_LENGTH_MAX;
#[cfg(feature = "http")]
pub(crate) use declared::Declaration;
pub(crate) use declared::{Declared, Reading};
pub use options::{ServerOptions, ServerRole};
pub(super) use rounds::{PendingInput, Round};
pub(crate) use server_config::ServerConfig;
#[cfg(feature = "http")]
pub(crate) use session_state::SessionState;
use subscriptions::SubscribedUris;

/// The server's side of one connection over a byte stream, as a state machine.
///
/// It speaks all revisions that its options allow: a legacy session after `initialize`, and modern
/// requests, each with its own metadata, at the same time on the same stream.
///
/// # Driving it
///
/// * Push the input: [`handle_message`](Self::handle_message) for each frame,
///   [`handle_frame_error`](Self::handle_frame_error) for a framing error,
///   [`handle_eof`](Self::handle_eof) once at the end, [`handle_timeout`](Self::handle_timeout)
///   when the deadline has passed. Extra calls of the latter do nothing.
/// * Push the commands of the application: the methods of [`ServerMachine`].
/// * After each of these, poll until there is no more output: [`poll_event`](Self::poll_event)
///   before the next input, so that events keep the order of their causes;
///   [`poll_transmit`](Self::poll_transmit) as soon as the stream accepts bytes;
///   [`poll_timeout`](Self::poll_timeout) for the next deadline.
/// * `now` is the current time, not the deadline that fired.
///
/// No method blocks, panics because of the client's input, or does work that is not proportional to
/// its input.
///
/// ```
/// use mcp_sansio::Instant;
/// use mcp_sansio::peer::{Server, ServerOptions};
/// use mcp_sansio::protocol::Implementation;
///
/// let mut server = Server::new(ServerOptions::new(Implementation::new("clock", "1.0.0")), 42);
/// let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
/// // The machine answers on its own, so there is no event.
/// assert!(server.handle_message(ping, Instant::ZERO)?.is_none());
/// let line = server.poll_transmit().expect("the response");
/// assert_eq!(line, b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Server {
    connection: Connection,
    config: ServerConfig,
    /// The last declaration of a modern client.
    last_declared: Option<Arc<Declared>>,
    session: Option<ServerSession>,
    rounds: Slab<Round>,
    /// Created with the first batch.
    batches: Option<Box<Batches>>,
    /// Number of bytes that input rounds hold.
    input_bytes: usize,
    pending: pending_notifications::PendingNotifications,
    /// The sender of the message that is being handled, or of the last one.
    caller: Caller,
}

/// What `initialize` has negotiated.
#[derive(Debug)]
pub struct ServerSession {
    revision: Revision,
    initialized: bool,
    client: Capabilities,
    server: Capabilities,
    client_info: Json,
    /// The extensions that the client declared, if this server has any.
    client_extensions: Option<Json>,
    log_level: LoggingLevel,
    subscribed: SubscribedUris,
}

impl ServerSession {
    /// Returns the negotiated revision.
    #[must_use]
    pub const fn revision(&self) -> Revision {
        self.revision
    }

    /// Returns the capabilities that the client declared.
    #[must_use]
    pub const fn client_capabilities(&self) -> Capabilities {
        self.client
    }

    /// Returns the capabilities that this server declared to the client.
    #[must_use]
    pub const fn server_capabilities(&self) -> Capabilities {
        self.server
    }

    /// Returns the client's description of itself, for display and logs only. It is not verified.
    // MCP 2026-07-28 basic/index#_meta [SEC-013]
    #[must_use]
    pub const fn client_info(&self) -> &Json {
        &self.client_info
    }

    /// Returns the extensions that the client declared, with their settings as received, if this
    /// server declared any.
    #[must_use]
    pub const fn client_extensions(&self) -> Option<&Json> {
        self.client_extensions.as_ref()
    }

    /// Returns whether the client subscribed to updates of `uri`.
    #[must_use]
    pub fn is_subscribed(&self, uri: &str) -> bool {
        self.subscribed.contains(uri)
    }
}

impl Server {
    /// Creates a server for a new connection.
    ///
    /// `seed` keys the hash tables for names that the client chooses. Draw it at random, so that a
    /// client cannot cause collisions. It does not affect any output.
    #[must_use]
    pub fn new(options: ServerOptions, seed: u64) -> Self {
        Self::with_binding(&ServerConfig::new(options), Binding::ByteStream, seed)
    }

    pub(crate) fn with_binding(server_config: &ServerConfig, binding: Binding, seed: u64) -> Self {
        let config = server_config.clone();
        let mut connection = Connection::new(Side::Server, &config.config, binding, seed);
        connection.catch_panics(config.guard);
        Self {
            connection,
            config,
            last_declared: None,
            session: None,
            rounds: Slab::new(),
            batches: None,
            input_bytes: 0,
            pending: pending_notifications::PendingNotifications::default(),
            // Only the process at the other end can write to a byte stream.
            caller: Caller::OWNER,
        }
    }

    /// Runs the validator of the catalog in `guard`. If it panics on the arguments or the result of
    /// a call, the call is answered with an internal error.
    pub fn catch_panics(&mut self, guard: PanicGuard) {
        self.config.guard = guard;
        self.connection.catch_panics(guard);
    }

    // ------------------------------------------------------------------ from the client

    /// Handles one frame and returns the event it causes, if any.
    ///
    /// # Errors
    ///
    /// Fails if the connection is closed, before or because of this frame. Protocol violations are
    /// answered and reported as [`Event::Violation`], unless the policy closes the connection.
    pub fn handle_message<'f>(
        &mut self,
        frame: &'f [u8],
        now: Instant,
    ) -> Result<Option<Event<'f>>, ConnectionClosed> {
        self.connection.check_open()?;
        let channel = Channel::UNSOLICITED;
        let prefix = self.last_declared.as_deref().map(Declared::cached_prefix).unwrap_or_default();
        let (limits, mut read) = (self.connection.parse_limits(), None);
        let flow = match metadata::parse(frame, limits, prefix, &mut read) {
            Ok(Envelopes::Single(message)) => {
                self.receive(message.into(), (read.as_mut(), None), ReplyTo::on(channel), now)
            }
            Ok(Envelopes::Batch(batch)) => self.receive_batch(batch.into(), channel, now),
            Err(defect) => self.receive_malformed(&defect.into(), channel, now),
        };
        if flow.is_err() {
            self.finish_close();
        }
        flow
    }

    /// Reports a framing error of the decoder.
    ///
    /// # Errors
    ///
    /// Fails if the connection is closed.
    pub fn handle_frame_error(
        &mut self,
        error: FrameError,
    ) -> Result<Option<Event<'static>>, ConnectionClosed> {
        self.connection.check_open()?;
        let revision = self.session.as_ref().map(ServerSession::revision);
        let flow = self.connection.frame_error(error, revision);
        if flow.is_err() {
            self.finish_close();
        }
        flow
    }

    /// Handles the end of the input.
    ///
    /// Calls to the client end, because their responses cannot arrive any more. Pending requests
    /// can still be answered: a client may close its output and continue to read. See
    /// [`is_drained`](Self::is_drained).
    // MCP 2026-07-28 basic/transports/stdio#shutdown [STDIO-017]
    pub fn handle_eof(&mut self) {
        self.connection.close(CloseReason::EndOfInput);
        self.finish_close();
    }

    /// Ends the machine's pending work after the connection was closed other than by the
    /// application. The client may still read and is notified.
    fn finish_close(&mut self) {
        self.fail_rounds();
        self.end_listening();
    }

    /// Processes expired deadlines. Extra calls do nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some((key, call)) = self.connection.take_expired(now) {
            match call.purpose {
                Purpose::KeepAlive => self.connection.keep_alive_expired(&call, now),
                Purpose::Input { round, index } => self.input_timed_out(round, index, call, now),
                Purpose::InputTask { round, index } => self.input_task_due(round, index, call, now),
                Purpose::Chore | Purpose::UnneededTask(_) => {
                    self.connection.calls.bury(call.id, &self.connection.config.limits, now);
                }
                _ => {
                    // MCP 2025-11-25 basic/lifecycle#timeouts [TIME-002]
                    self.connection.give_up(&call, "timed out", now);
                    let hard = now >= call.timing.hard;
                    self.connection.end_call(key, Failure::TimedOut { hard });
                }
            }
        }
        self.connection.keep_alive(now);
        if self.connection.closed.is_some() {
            self.finish_close();
        }
    }

    // ------------------------------------------------------------------ from the application

    /// Applies a command of the application.
    ///
    /// # Errors
    ///
    /// Returns [`CommandError`] if the command could not be carried out.
    // Inlined, so that only the commands that a program uses are linked into it.
    #[inline(always)]
    pub fn apply(
        &mut self,
        command: ServerCommand<'_>,
        now: Instant,
    ) -> Result<Applied, CommandError> {
        match command {
            ServerCommand::Call { method, params, options } => {
                return self
                    .start_call(method, &newest(&params), &options, now)
                    .map(Applied::Started);
            }
            ServerCommand::Cancel { call, reason } => self.give_up(call, &reason, now),
            ServerCommand::Notify { method, params } => {
                self.send_notification(method, &newest(&params))?;
            }
            ServerCommand::NotifyOther { request, method, params } => {
                self.notify_other(request, &method, &self.at_revision(request, &params))?;
            }
            ServerCommand::Respond { request, result } => {
                self.send_result(request, result.value())?
            }
            ServerCommand::Reject { request, error } => self.send_error(request, error)?,
            ServerCommand::RequireInput { request, required } => {
                self.send_input_requests(&request, &required, now)?;
            }
            ServerCommand::WithdrawInput(request) => self.withdraw_questions(request, now),
            ServerCommand::Progress { request, progress, total, message } => {
                self.send_progress(request, progress, total, message.as_deref(), now);
            }
            ServerCommand::TaskProgress { request, params } => {
                self.send_task_progress(request, &self.at_revision(request, &params))?;
            }
            ServerCommand::Log { request, level, logger, data } => {
                let data = match request {
                    Some(request) => self.at_revision(request, &data),
                    None => newest(&data),
                };
                self.send_log(request, level, logger.as_deref(), &data)?;
            }
            ServerCommand::ResourceUpdated { uri } => self.tell_resource(&uri),
            ServerCommand::TaskChanged { status, .. } => self.tell_task(&status),
            ServerCommand::Announce(changes) => self.tell_lists(changes),
            ServerCommand::Close => self.end(),
        }
        Ok(Applied::Done)
    }

    /// Returns the body of a command about a request, to be written at its revision.
    fn at_revision<'b>(&self, request: RequestHandle, body: &'b Body<'_>) -> JsonAtRevision<'b> {
        let revision = self.revision_of(request).unwrap_or(Revision::LATEST);
        JsonAtRevision(body.value(), revision)
    }

    fn start_call(
        &mut self,
        method: Method,
        params: &dyn WriteJson,
        options: &CallOptions<'_>,
        now: Instant,
    ) -> Result<CallHandle, CommandError> {
        self.connection.check_open()?;
        Connection::check_kind(method, MethodKind::Request)?;
        let Some(session) = &self.session else { return Err(CommandError::NotOpen) };
        // MCP 2025-11-25 basic/lifecycle#initialization [LIFE-005]
        if !session.initialized && method != Method::Ping {
            return Err(CommandError::NotOpen);
        }
        method.row().check(Side::Server, session.revision, session.client, session.server)?;
        if let Some(task) = options.task {
            (task.check)(method, session.client, Side::Client)?;
        }
        if matches!(method, Method::SamplingCreateMessage | Method::ElicitationCreate) {
            let text = to_shared_json(params)?;
            // MCP 2025-11-25 client/elicitation#capabilities [ELIC-005],
            // MCP 2025-11-25 client/sampling#tools-in-sampling [SAMP-006]
            if let Some(UnsupportedInput::Capability(capability)) =
                unsupported_input(method, &text, session.client, session.revision)
            {
                let declared_by = Side::Client;
                return Err(GateError::NotDeclared { method, declared_by, capability }.into());
            }
        }
        let method = MethodName::Known(method);
        let outgoing = Outgoing::new(&method, Purpose::Application);
        if let Some(task) = options.task {
            let params = (task.write)(task.ttl, &to_shared_json(params)?)?;
            let call = self.connection.start_call(outgoing, &params, options, None, now)?;
            self.connection.calls.augment(call, task.lasts);
            return Ok(CallHandle::new(call));
        }
        self.connection.start_call(outgoing, params, options, None, now).map(CallHandle::new)
    }

    // MCP 2025-11-25 client/elicitation#completion-notifications-for-url-mode-elicitation [ELIC-017]
    fn send_notification(
        &mut self,
        method: Method,
        params: &dyn WriteJson,
    ) -> Result<(), CommandError> {
        self.connection.check_open()?;
        Connection::check_kind(method, MethodKind::Notification)?;
        // These depend on subscriptions and log levels of the client, which their own methods
        // check.
        if matches!(method, Method::Message | Method::ResourcesUpdated) {
            return Err(CommandError::OutOfPlace(method));
        }
        let session = self.session.as_ref().filter(|session| session.initialized);
        let Some(session) = session else { return Err(CommandError::NotOpen) };
        method.row().check(Side::Server, session.revision, session.client, session.server)?;
        self.write_notification(method, Channel::UNSOLICITED, Tag::NONE, params)?;
        Ok(())
    }

    fn give_up(&mut self, call: CallHandle, reason: &str, now: Instant) {
        if let Some(entry) = self.connection.calls.remove(call.key) {
            self.connection.give_up(&entry, reason, now);
            self.connection.end_call(call.key, Failure::Cancelled);
        }
    }

    fn end(&mut self) {
        self.end_listening();
        self.connection.close(CloseReason::Local);
        self.drop_requests();
    }

    /// Edits the catalog. Clients that asked for it are notified of the changed lists.
    pub fn edit_catalog<T>(&mut self, edit: impl FnOnce(&mut Catalog) -> T) -> T {
        let (edited, announcement) = self.config.edit_catalog(edit);
        self.tell_lists(announcement.seen_by(&self.caller));
        edited
    }

    // ------------------------------------------------------------------ outputs

    /// Returns the next bytes for the stream, complete lines, or `None` if the queue is empty. The
    /// caller must write all of them; they are discarded on the next call.
    #[must_use]
    pub fn poll_transmit(&mut self) -> Option<&[u8]> {
        self.flush_pending();
        self.connection.outbox.poll()
    }

    /// Returns the next bytes for the stream, for a driver that may write only some of them and
    /// reports the number with [`consume_transmit`](Self::consume_transmit). Empty if no output is
    /// queued. Returned bytes stay queued until consumed, even if their request is cancelled
    /// meanwhile.
    #[must_use]
    pub fn peek_transmit(&mut self) -> &[u8] {
        self.flush_pending();
        self.connection.outbox.peek()
    }

    /// Removes the first `length` bytes returned by [`peek_transmit`](Self::peek_transmit).
    pub fn consume_transmit(&mut self, length: usize) {
        self.connection.outbox.consume(length);
    }

    /// Returns the next event that was not caused by a frame.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<Event<'static>> {
        self.connection.events.pop_front()
    }

    /// Returns the time of the next [`handle_timeout`](Self::handle_timeout), if one is needed. Any
    /// other method may change it.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.connection.next_deadline()
    }

    /// Returns whether the queued output exceeds
    /// [`Limits::transmit_bytes_max`](super::Limits::transmit_bytes_max). Stop reading until the
    /// client has taken some of it.
    #[must_use]
    pub fn is_congested(&self) -> bool {
        self.connection.is_congested()
    }

    /// Returns whether the connection is closed, no request is pending and all output has been
    /// sent, so that the machine can be dropped without loss.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.connection.closed.is_some()
            && self.connection.requests.len() == 0
            && self.connection.outbox.len() == 0
    }

    /// Returns whether the connection is closed. Responses may still be pending.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        self.connection.closed.is_some()
    }

    /// Returns the legacy session, if there is one.
    #[must_use]
    pub const fn session(&self) -> Option<&ServerSession> {
        self.session.as_ref()
    }

    /// Returns the catalog of the server.
    #[must_use]
    pub fn catalog(&self) -> &Catalog {
        &self.config.catalog
    }

    // ------------------------------------------------------------------ shared by the parts

    /// Returns the capabilities that the server declares at `revision`, from its options and its
    /// catalog.
    fn declared(&self, revision: Revision) -> ServerCapabilities {
        let mut declared =
            self.config.catalog.complete(self.config.identity.capabilities.clone(), revision);
        // MCP 2025-11-25 extensions:SEP-2133#server-capabilities [EXT-010]
        // MCP 2026-07-28 extensions:overview#server-capabilities [EXT-008]
        crate::protocol::drop_tasks_extension(&mut declared.extensions, revision);
        declared
    }
}

/// The parameters of a message without parameters.
const NO_PARAMS: RawJson<'static> = RawJson::EMPTY_OBJECT;

/// Returns the body of a command that is about no request, to be written at the newest revision.
fn newest<'b>(body: &'b Body<'_>) -> JsonAtRevision<'b> {
    JsonAtRevision(body.value(), Revision::LATEST)
}

machine!(Server, ServerCommand);
stream_machine!([] Server);

impl ServerMachine for Server {
    fn revision_of(&self, request: RequestHandle) -> Option<Revision> {
        self.revision_of(request).ok()
    }

    fn id_of(&self, request: RequestHandle) -> Option<&RequestId> {
        self.connection.requests.get(request.key).map(|entry| &entry.id)
    }

    fn observation_of(&self, request: RequestHandle) -> Option<Arc<dyn super::Observation>> {
        self.connection.observation_of(request.key)
    }
}

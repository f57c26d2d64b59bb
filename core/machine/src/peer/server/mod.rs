//! The server's side of a connection.

mod answers;
mod batches;
#[cfg(feature = "http")]
mod channels;
mod declared;
mod lifecycle;
mod methods;
mod options;
mod pending_notifications;
mod receive;
mod rounds;
mod server_config;
mod subscriptions;
mod tasks;

use alloc::boxed::Box;
use alloc::string::String;

use hashbrown::HashSet;
use mcp_sansio_collections::KeyedHash;
use mcp_sansio_collections::Slab;
use mcp_sansio_sync::Arc;

use crate::binding::Binding;
use crate::catalog::Catalog;
use crate::framing::FrameError;
use crate::jsonrpc::{Frame, Json, RawJson, WriteError, WriteJson, to_shared_json};
use crate::protocol::{
    Capabilities, GateError, LoggingLevel, Method, MethodKind, ServerCapabilities, Side,
};
use crate::{Instant, PanicGuard, Revision, Revisions};

use super::calls::Purpose;
use super::command::ServerCommand;
use super::connection::{Connection, Flow};
use super::error::{CommandError, ConnectionClosed};
use super::event::{CloseReason, Event, Failure, Violation};
use super::handle::{CallHandle, RequestHandle};
use super::input_support::{UnsupportedInput, unsupported_input};
use super::machine::{Applied, ServerMachine, machine, stream_machine};
use super::metadata;
use super::method_name::MethodName;
use super::outbox::{Channel, Lane};
use super::outgoing::{CallOptions, Outgoing};
use super::queue::Tag;
use super::requests::ReplyTo;

pub(super) use batches::{Answered, Batch, Batches};
pub(super) use declared::DECLARED_LENGTH_MAX;
pub(crate) use declared::Declared;
pub(crate) use methods::{server_methods, stream_server_methods};
pub use options::{ServerOptions, ServerRole};
pub(super) use rounds::{PendingInput, Round};
pub(crate) use server_config::ServerConfig;
use server_config::ServerIdentity;

/// The server's side of one connection over a byte stream, as a state machine.
///
/// It speaks every revision that its options allow: a legacy session after `initialize` and modern
/// requests, each with its own metadata, at once on the same stream.
///
/// # Driving it
///
/// * Push what comes in: [`handle_message`](Self::handle_message) for each frame,
///   [`handle_frame_error`](Self::handle_frame_error) for one that is none,
///   [`handle_eof`](Self::handle_eof) once at the end, [`handle_timeout`](Self::handle_timeout)
///   when the deadline has come. Spurious calls of the latter do nothing.
/// * Push what the application wants: [`respond`](Self::respond), [`reject`](Self::reject),
///   [`require_input`](Self::require_input), [`progress`](Self::progress), [`log`](Self::log) and
///   the like.
/// * After any of these, pull until dry: [`poll_event`](Self::poll_event) before the next input,
///   so that events keep the order of their causes; [`poll_transmit`](Self::poll_transmit) as soon
///   as the stream takes bytes; [`poll_timeout`](Self::poll_timeout) to know when to come back.
/// * `now` is the time it is, not the deadline that fired.
///
/// Nothing here blocks, panics because of the client, or does work out of proportion to its input.
#[derive(Debug)]
pub struct Server {
    connection: Connection,
    identity: Arc<ServerIdentity>,
    catalog: Arc<Catalog>,
    /// What the server declares to modern clients.
    modern: Capabilities,
    revisions: Revisions,
    /// What a modern client declared last.
    last_declared: Option<Declared>,
    session: Option<Session>,
    rounds: Slab<Round>,
    /// Made with the first one.
    batches: Option<Box<Batches>>,
    /// Bytes that rounds of input keep.
    input_bytes: usize,
    pending: pending_notifications::PendingNotifications,
    guard: PanicGuard,
}

/// What a legacy client and this server agreed on.
#[derive(Debug)]
pub struct Session {
    revision: Revision,
    initialized: bool,
    client: Capabilities,
    server: Capabilities,
    client_info: Json,
    log_level: LoggingLevel,
    subscribed: HashSet<String, KeyedHash>,
}

impl Session {
    /// The negotiated revision.
    #[must_use]
    pub const fn revision(&self) -> Revision {
        self.revision
    }

    /// What the client declared.
    #[must_use]
    pub const fn client_capabilities(&self) -> Capabilities {
        self.client
    }

    /// What this server declared to it.
    #[must_use]
    pub const fn server_capabilities(&self) -> Capabilities {
        self.server
    }

    /// What the client says that it is: for display and logs, not to be relied on.
    // MCP 2026-07-28 basic/index#_meta [SEC-013]
    #[must_use]
    pub const fn client_info(&self) -> &Json {
        &self.client_info
    }

    /// Whether the client subscribed to updates of `uri`.
    #[must_use]
    pub fn is_subscribed(&self, uri: &str) -> bool {
        self.subscribed.contains(uri)
    }
}

impl Server {
    /// A server at the start of a connection.
    ///
    /// `seed` keys the hash tables of what the client names: draw it at random, so that a client
    /// cannot aim at collisions. It has no influence on any output.
    #[must_use]
    pub fn new(options: ServerOptions, seed: u64) -> Self {
        Self::with_binding(&ServerConfig::new(options), Binding::ByteStream, seed)
    }

    pub(crate) fn with_binding(server_config: &ServerConfig, binding: Binding, seed: u64) -> Self {
        let ServerConfig { identity, catalog, modern, config, revisions, guard } = server_config;
        Self {
            connection: Connection::new(Side::Server, config, binding, seed),
            identity: Arc::clone(identity),
            catalog: Arc::clone(catalog),
            modern: *modern,
            revisions: *revisions,
            last_declared: None,
            session: None,
            rounds: Slab::new(),
            batches: None,
            input_bytes: 0,
            pending: pending_notifications::PendingNotifications::default(),
            guard: *guard,
        }
    }

    /// Runs the validator of the catalog in `guard` from here on. A call whose arguments or result it
    /// panics at is answered with an internal error.
    pub const fn catch_panics(&mut self, guard: PanicGuard) {
        self.guard = guard;
    }

    // ------------------------------------------------------------------ from the client

    /// Takes one frame, and returns what the application must know of it.
    ///
    /// # Errors
    ///
    /// The connection is over, before or because of this frame. Rules that the client broke are
    /// answered and reported as [`Event::Violation`], unless the policy says to close.
    pub fn handle_message<'f>(
        &mut self,
        frame: &'f [u8],
        now: Instant,
    ) -> Result<Option<Event<'f>>, ConnectionClosed> {
        self.connection.check_open()?;
        let channel = Channel::UNSOLICITED;
        let prefix = self.last_declared.as_ref().map(Declared::cached_prefix).unwrap_or_default();
        let (limits, mut read) = (self.connection.parse_limits(), None);
        let flow = match metadata::parse(frame, limits, prefix, &mut read) {
            Ok(Frame::Single(message)) => {
                self.receive(message, read.as_mut(), ReplyTo::on(channel), now)
            }
            Ok(Frame::Batch(batch)) => self.receive_batch(batch, channel, now),
            Err(malformed) => self.receive_malformed(&malformed, channel, now),
        };
        if flow.is_err() {
            self.finish_close();
        }
        flow
    }

    /// Takes the news that the decoder found something that is no frame.
    ///
    /// # Errors
    ///
    /// The connection is over.
    pub fn handle_frame_error(
        &mut self,
        error: FrameError,
    ) -> Result<Option<Event<'static>>, ConnectionClosed> {
        self.connection.check_open()?;
        let revision = self.session.as_ref().map(Session::revision);
        let flow = self.connection.frame_error(error, revision);
        if flow.is_err() {
            self.finish_close();
        }
        flow
    }

    /// Takes the end of the input.
    ///
    /// Calls to the client end, as their answers cannot come any more. Requests that wait for an
    /// answer may still get it: a client may close its output and read on. See
    /// [`is_drained`](Self::is_drained).
    // MCP 2026-07-28 basic/transports/stdio#shutdown [STDIO-017]
    pub fn handle_eof(&mut self) {
        self.connection.close(CloseReason::EndOfInput);
        self.finish_close();
    }

    /// The connection is over, but not by the application: what the machine has under way ends,
    /// and the client, which may still read, is told so.
    fn finish_close(&mut self) {
        self.fail_rounds();
        self.end_listening();
    }

    /// Does what is due at `now`. Extra calls do nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some((key, call)) = self.connection.take_expired(now) {
            match call.purpose {
                Purpose::KeepAlive => self.connection.keep_alive_expired(&call, now),
                Purpose::Input { round, index } => {
                    self.connection.give_up(&call, "timed out", now);
                    self.input_failed(round, index, "the client did not answer in time");
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

    /// Carries out a command of the application.
    ///
    /// # Errors
    ///
    /// See [`CommandError`].
    // Inlined, so that an image has only the commands that its program uses.
    #[inline(always)]
    pub fn apply(
        &mut self,
        command: ServerCommand<'_>,
        now: Instant,
    ) -> Result<Applied, CommandError> {
        match command {
            ServerCommand::Call { method, params, options } => {
                return self.start_call(method, params, options, now).map(Applied::Started);
            }
            ServerCommand::Cancel { call, reason } => self.give_up(call, reason, now),
            ServerCommand::Notify { method, params } => self.send_notification(method, params)?,
            ServerCommand::Respond { request, result } => self.send_result(request, result)?,
            ServerCommand::Reject { request, error } => self.send_error(request, error)?,
            ServerCommand::RequireInput { request, required } => {
                self.send_input_requests(request, required, now)?;
            }
            ServerCommand::WithdrawInput(request) => self.withdraw_questions(request, now),
            ServerCommand::Progress { request, progress, total, message } => {
                self.send_progress(request, progress, total, message, now);
            }
            ServerCommand::TaskProgress { request, params } => {
                self.send_task_progress(request, params)?;
            }
            ServerCommand::Log { request, level, logger, data } => {
                self.send_log(request, level, logger, data)?;
            }
            ServerCommand::ResourceUpdated { uri } => self.tell_resource(uri),
            ServerCommand::TaskChanged { status, .. } => self.tell_task(status),
            ServerCommand::Announce(changes) => self.tell_lists(changes),
            ServerCommand::Close => self.end(),
        }
        Ok(Applied::Done)
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
            let call = self.connection.start_call(outgoing, &params, options, now)?;
            self.connection.calls.augment(call, task.lasts);
            return Ok(CallHandle::new(call));
        }
        self.connection.start_call(outgoing, params, options, now).map(CallHandle::new)
    }

    // MCP 2025-11-25 client/elicitation#completion-notifications-for-url-mode-elicitation [ELIC-017]
    fn send_notification(
        &mut self,
        method: Method,
        params: &dyn WriteJson,
    ) -> Result<(), CommandError> {
        self.connection.check_open()?;
        Connection::check_kind(method, MethodKind::Notification)?;
        // These depend on what the client asked for, which their own verbs know.
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

    /// Changes what the server offers. Clients that asked for it are told which lists changed.
    pub fn edit_catalog<T>(&mut self, edit: impl FnOnce(&mut Catalog) -> T) -> T {
        let catalog = Arc::make_mut(&mut self.catalog);
        let edited = edit(catalog);
        let changes = catalog.take_changes();
        self.tell_lists(changes);
        edited
    }

    // ------------------------------------------------------------------ outputs

    /// The next bytes for the stream, whole lines; `None` when there are none. Whoever takes them
    /// writes all of them; the next call considers them gone.
    #[must_use]
    pub fn poll_transmit(&mut self) -> Option<&[u8]> {
        self.flush_pending();
        self.connection.outbox.poll()
    }

    /// The next bytes for the stream, for a driver that may write only part of them and tells how
    /// many with [`consume_transmit`](Self::consume_transmit). Empty when there are none. What was
    /// shown stays until it is consumed, whatever is cancelled meanwhile.
    #[must_use]
    pub fn peek_transmit(&mut self) -> &[u8] {
        self.flush_pending();
        self.connection.outbox.peek()
    }

    /// Takes away the first `length` bytes that [`peek_transmit`](Self::peek_transmit) showed.
    pub fn consume_transmit(&mut self, length: usize) {
        self.connection.outbox.consume(length);
    }

    /// The next event that the machine made by itself.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<Event<'static>> {
        self.connection.events.pop_front()
    }

    /// When [`handle_timeout`](Self::handle_timeout) has something to do, if nothing comes before.
    /// May change with every call of another method.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.connection.next_deadline()
    }

    /// Whether more waits to be sent than
    /// [`Limits::transmit_bytes_max`](super::Limits::transmit_bytes_max): stop reading until the
    /// client has taken some of it.
    #[must_use]
    pub fn is_congested(&self) -> bool {
        self.connection.is_congested()
    }

    /// Whether the connection is closed, no request waits for its answer and no byte waits to be
    /// sent: nothing is lost by dropping the machine.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.connection.closed.is_some()
            && self.connection.requests.len() == 0
            && self.connection.outbox.len() == 0
    }

    /// Whether the connection is over, though answers may still be due.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        self.connection.closed.is_some()
    }

    /// The legacy session, once a client opened one.
    #[must_use]
    pub const fn session(&self) -> Option<&Session> {
        self.session.as_ref()
    }

    /// What the server offers.
    #[must_use]
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    // ------------------------------------------------------------------ shared by the parts

    /// What the server declares at `revision`: what its options say and what its catalog has.
    fn declared(&self, revision: Revision) -> ServerCapabilities {
        self.catalog.complete(self.identity.capabilities.clone(), revision)
    }

    /// Sends a notification in the legacy session, if the gate lets it through. Nothing that is said
    /// unasked is, once the connection is over.
    fn notify_session(
        &mut self,
        method: Method,
        channel: Channel,
        tag: Tag,
        params: &dyn WriteJson,
    ) -> Result<(), WriteError> {
        let Some(session) = &self.session else { return Ok(()) };
        let open =
            method.row().check(Side::Server, session.revision, session.client, session.server);
        if open.is_err() {
            return Ok(());
        }
        self.write_notification(method, channel, tag, params)
    }

    fn write_notification(
        &mut self,
        method: Method,
        channel: Channel,
        tag: Tag,
        params: &dyn WriteJson,
    ) -> Result<(), WriteError> {
        self.connection.outbox.try_push(Lane::Bulk, channel, method.into(), tag, |out| {
            crate::jsonrpc::write_notification(out, method.as_str(), Some(params))
        })
    }

    fn bad_parameters<'f>(&mut self, method: Method, what: &'static str) -> Flow<'f> {
        let violation = Violation::BadParameters { method, what };
        self.connection.violation(self.connection.config.policy.malformed, violation)
    }
}

/// Parameters of a message that has none.
const NO_PARAMS: RawJson<'static> = RawJson::EMPTY_OBJECT;

server_methods!(Server);
stream_server_methods!(Server);
machine!(Server, ServerCommand);
stream_machine!([] Server);

impl ServerMachine for Server {
    fn revision_of(&self, request: RequestHandle) -> Option<Revision> {
        self.revision_of(request).ok()
    }
}

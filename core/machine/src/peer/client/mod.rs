//! The client's side of a connection.

#[cfg(feature = "http")]
pub(crate) mod channels;
mod consistency;
mod inputs;
mod notifications;
mod opening;
mod options;
mod passing;
mod receive;
mod respawn;
mod subscriptions;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use mcp_sansio_collections::{Key, Slab};
use mcp_sansio_sync::Arc;

use crate::binding::Binding;
use crate::framing::FrameError;
use crate::gate::MethodKind;
use crate::jsonrpc::{
    ErrorObject, Json, MemberIndex, PREFIX_IS_CACHED, RawJson, WriteJson, parse,
    parse_noting_result, to_shared_json,
};
use crate::protocol::{Capabilities, JsonAtRevision, LoggingLevel, Method, Side, WriteJsonAt};
use crate::{Era, Instant, Revision, Revisions};

use self::receive::COMPLETE;
use super::calls::Purpose;
use super::command::{Body, ClientCommand, ClientMachine};
use super::connection::Connection;
use super::error::{CommandError, ConnectionClosed, OpeningFailure};
use super::event::{Cancelled, CloseReason, Event, Failure, Subject};
use super::handle::{CallHandle, InputHandle, InputSource};
use super::machine::{Applied, machine, stream_machine};
use super::method_name::MethodName;
use super::outgoing::{CallOptions, FixedMeta, MetaParts, Outgoing};

pub(super) use inputs::{INPUT_REQUEST_LENGTH_MIN, PendingInput, Round};
pub use options::{ClientOptions, ClientRole};
use subscriptions::{Legacy, UriState};

/// The client's side of one connection over a byte stream, as a state machine.
///
/// It opens the connection on its own: it detects the server's era, negotiates a revision and
/// reports [`Event::Opened`], or [`Event::Closed`] with the reason. Calls can be made once it is
/// open, and each ends with exactly one [`Event::Ended`].
///
/// # Driving it
///
/// * Push the input: [`handle_message`](Self::handle_message) for each frame,
///   [`handle_frame_error`](Self::handle_frame_error) for a framing error,
///   [`handle_eof`](Self::handle_eof) once at the end, [`handle_timeout`](Self::handle_timeout)
///   when the deadline has passed. Extra calls of the latter do nothing.
/// * Push the commands of the application: the methods of [`ClientMachine`].
/// * After each of these, poll until there is no more output: [`poll_event`](Self::poll_event)
///   before the next input, so that events keep the order of their causes;
///   [`poll_transmit`](Self::poll_transmit) as soon as the stream accepts bytes;
///   [`poll_timeout`](Self::poll_timeout) for the next deadline.
/// * `now` is the current time, not the deadline that fired.
///
/// No method blocks, panics because of the server's input, or does work that is not proportional to
/// its input.
///
/// ```
/// use mcp_sansio::{Instant, Method};
/// use mcp_sansio::jsonrpc::RawJson;
/// use mcp_sansio::peer::{CallOptions, Client, ClientMachine, ClientOptions, Event};
/// use mcp_sansio::protocol::{CallToolResult, Implementation};
///
/// let now = Instant::ZERO;
/// let mut client = Client::new(ClientOptions::new(Implementation::new("demo", "1.0.0")), 42, now);
/// # use mcp_sansio::peer::{Server, ServerMachine, ServerOptions};
/// # use mcp_sansio::protocol::{ServerCapabilities, ToolsCapability};
/// # let capabilities = ServerCapabilities::new().tools(ToolsCapability::new());
/// # let identity = Implementation::new("clock", "1.0.0");
/// # let mut server = Server::new(ServerOptions::new(identity).capabilities(capabilities), 7);
/// # let mut exchange = |client: &mut Client| {
/// #     while let Some(bytes) = client.poll_transmit() {
/// #         for line in bytes.split_inclusive(|byte| *byte == b'\n') {
/// #             if let Some(Event::Request(request)) = server.handle_message(line, now).unwrap() {
/// #                 let result = CallToolResult::text("about noon");
/// #                 server.respond(request.handle, &result, now).unwrap();
/// #             }
/// #         }
/// #     }
/// #     server.poll_transmit().expect("an answer").to_vec()
/// # };
/// // `exchange` writes what `poll_transmit` returns, and reads a line of the server.
/// let line = exchange(&mut client);
/// client.handle_message(&line, now)?;
/// # while client.poll_event().is_some() {}
///
/// let params = RawJson::parse(r#"{"name":"now","arguments":{}}"#)?;
/// let call = client.call(Method::ToolsCall, &params, &CallOptions::default(), now)?;
/// let line = exchange(&mut client);
/// let Some(Event::Ended(ended)) = client.handle_message(&line, now)? else { panic!() };
/// assert_eq!(ended.call, call);
/// let result: CallToolResult = ended.outcome.expect("a result").decode()?;
/// assert_eq!(result.first_text(), Some("about noon"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Client {
    connection: Connection,
    identity: Arc<options::ClientIdentity>,
    revisions: Revisions,
    state: opening::State,
    /// Whether the server refused a speculative handshake of this opening.
    is_not_legacy: bool,
    /// Its error, if it sent one.
    handshake_refused: Option<Box<ErrorObject<'static>>>,
    session: Option<ClientSession>,
    /// Whether the probe was repeated at a revision that the server refused although it listed it.
    insisted: bool,
    /// The era of the server, while the connection waits for a new process of it.
    suspended: Option<Era>,
    /// Whether the first request on this stream was a probe.
    probed: bool,
    /// The `_meta` members that all modern requests share.
    request_meta: Option<FixedMeta>,
    log_level: Option<LoggingLevel>,
    rounds: Slab<Round>,
    /// Number of bytes that the rounds hold.
    input_bytes: usize,
    subscriptions: Vec<(Key, Legacy)>,
    /// The request on whose own stream the present message arrives, where requests have streams.
    stream_of: Option<i64>,
}

/// The outcome of the negotiation with the server.
#[derive(Debug)]
pub struct ClientSession {
    revision: Revision,
    client: Capabilities,
    server: Capabilities,
    server_info: Option<Json>,
    server_capabilities: Json,
    instructions: Option<String>,
}

impl ClientSession {
    /// Returns the negotiated revision.
    #[must_use]
    pub const fn revision(&self) -> Revision {
        self.revision
    }

    /// Returns the capabilities that the server declared, as far as this crate knows them.
    #[must_use]
    pub const fn server_capabilities(&self) -> Capabilities {
        self.server
    }

    /// Returns the server's `ServerCapabilities` object as received.
    #[must_use]
    pub const fn server_capabilities_json(&self) -> &Json {
        &self.server_capabilities
    }

    /// Returns the server's `Implementation` object, for display and logs only.
    // MCP 2026-07-28 basic/index#_meta [SEC-013]
    #[must_use]
    pub const fn server_info(&self) -> Option<&Json> {
        self.server_info.as_ref()
    }

    /// Returns the server's usage instructions for the model.
    // MCP 2025-11-25 schema.json#InitializeResult [LIFE-019]
    #[must_use]
    pub fn instructions(&self) -> Option<&str> {
        self.instructions.as_deref()
    }
}

impl Client {
    /// Creates a client and queues the first message of the opening.
    ///
    /// `seed` keys the hash tables for names that the server chooses. Draw it at random, so that a
    /// server cannot cause collisions. It does not affect any output.
    #[must_use]
    pub fn new(options: ClientOptions, seed: u64, now: Instant) -> Self {
        Self::with_binding(options, Binding::ByteStream, seed, now)
    }

    pub(crate) fn with_binding(
        options: ClientOptions,
        binding: Binding,
        seed: u64,
        now: Instant,
    ) -> Self {
        let ClientOptions { role, config, revisions } = options;
        let ClientRole { identity, known_era, .. } = role;
        let mut client = Self {
            connection: Connection::new(Side::Client, &config, binding, seed),
            identity,
            revisions,
            state: opening::State::Over,
            is_not_legacy: false,
            handshake_refused: None,
            session: None,
            insisted: false,
            suspended: None,
            probed: false,
            request_meta: None,
            log_level: None,
            rounds: Slab::new(),
            input_bytes: 0,
            subscriptions: Vec::new(),
            stream_of: None,
        };
        if let Some(problem) = role.problem {
            client.fail_opening(OpeningFailure::Extension(problem));
            return client;
        }
        client.open(known_era, now);
        client
    }

    // ------------------------------------------------------------------ from the server

    /// Handles one frame and returns the event it causes, if any.
    ///
    /// # Errors
    ///
    /// Fails if the connection is closed, before or because of this frame. Protocol violations are
    /// reported as [`Event::Violation`], unless the policy closes the connection.
    pub fn handle_message<'f>(
        &mut self,
        frame: &'f [u8],
        now: Instant,
    ) -> Result<Option<Event<'f>>, ConnectionClosed> {
        self.connection.check_open()?;
        let limits = self.connection.parse_limits();
        let mut index = None;
        let parsed = if PREFIX_IS_CACHED && self.is_modern() {
            parse_noting_result(frame, limits, COMPLETE, index.insert(MemberIndex::default()))
        } else {
            parse(frame, limits)
        };
        if let Err(malformed) = &parsed
            && let Some(repaired) = malformed.repair(frame)
        {
            let event = self.handle_message(&repaired, now)?;
            return Ok(event.map(Event::into_owned));
        }
        let flow = self.receive_frame(parsed, frame, index.as_ref(), now);
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
        let flow = self.connection.frame_error(error, None);
        if flow.is_err() {
            self.finish_close();
        }
        flow
    }

    /// Reports that the server ended the stream and that a new process of the same server can be
    /// started. Call it in place of [`handle_eof`](Self::handle_eof), after passing in all frames
    /// received before.
    ///
    /// Returns `true` if the server exited on the probe for its era, as some legacy servers do. The
    /// connection is still being opened: later output, a handshake without a probe, is for the new
    /// stream, whose frames need a new decoder. This happens at most once per connection. Returns
    /// `false` if nothing changed; call `handle_eof` next.
    pub fn restart(&mut self, now: Instant) -> bool {
        self.open_as_legacy(now)
    }

    /// Handles the end of the input: every call ends with [`Failure::ConnectionLost`].
    pub fn handle_eof(&mut self) {
        self.end(CloseReason::EndOfInput);
    }

    /// Processes expired deadlines. Extra calls do nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some((key, call)) = self.connection.take_expired(now) {
            match call.purpose {
                Purpose::Opening => self.opening_timed_out(&call, now),
                Purpose::KeepAlive => self.connection.keep_alive_expired(&call, now),
                Purpose::SubscribeResource { subscription, index } => {
                    self.connection.give_up(&call, "timed out", now);
                    self.resource_subscribed(subscription, index, UriState::Unknown, now);
                }
                Purpose::Chore => self.connection.give_up(&call, "timed out", now),
                _ => {
                    // MCP 2025-11-25 basic/lifecycle#timeouts [TIME-002]
                    // MCP 2026-07-28 basic/patterns/cancellation#timeouts [TIME-003]
                    if !self.drop_round(&call) {
                        self.connection.give_up(&call, "timed out", now);
                    }
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
    // Inlined, so that a named method compiles to a single match arm.
    #[inline(always)]
    pub fn apply(
        &mut self,
        command: ClientCommand<'_>,
        now: Instant,
    ) -> Result<Applied, CommandError> {
        match command {
            ClientCommand::Call { method: MethodName::Known(method), params, options } => {
                return self
                    .start_known(method, params.value(), &options, now)
                    .map(Applied::Started);
            }
            ClientCommand::Call { method, params, options } => {
                self.connection.check_open()?;
                let revision = self.session.as_ref().ok_or(CommandError::NotOpen)?.revision;
                let params = JsonAtRevision(params.value(), revision);
                let purpose = Purpose::Application;
                return self.start(&method, purpose, &params, &options, now).map(Applied::Started);
            }
            ClientCommand::CallWithFields { .. } | ClientCommand::SubscribeWithFields { .. } => {
                return Err(CommandError::NoHeaderFields);
            }
            ClientCommand::Subscribe(filter) => {
                return self.start_subscription(&filter, now).map(Applied::Started);
            }
            ClientCommand::Cancel { call, reason } => self.give_up(call, &reason, now),
            ClientCommand::Notify { method, params } => {
                self.send_notification(method, &self.at_revision(&params))?;
            }
            ClientCommand::NotifyOther { method, params } => {
                self.notify_other(&method, &self.at_revision(&params))?;
            }
            ClientCommand::SetLogLevel(level) => self.ask_for_logs(level, now)?,
            ClientCommand::AnswerInput { input, result } => {
                self.take_answer(input, result.value(), now)?;
            }
            ClientCommand::RefuseInput { input, error } => self.take_refusal(input, error)?,
            ClientCommand::Respond { request, result } => {
                self.send_result(request, &self.at_revision(&result))?;
            }
            ClientCommand::Reject { request, error } => self.send_error(request, error)?,
            ClientCommand::Close => self.end(CloseReason::Local),
        }
        Ok(Applied::Done)
    }

    /// Returns the body of a command, to be written at the revision of the session. Nothing is
    /// written without one.
    fn at_revision<'b>(&self, body: &'b Body<'_>) -> JsonAtRevision<'b> {
        let revision = self.session.as_ref().map_or(Revision::LATEST, ClientSession::revision);
        JsonAtRevision(body.value(), revision)
    }

    fn start_known(
        &mut self,
        method: Method,
        params: &dyn WriteJsonAt,
        options: &CallOptions<'_>,
        now: Instant,
    ) -> Result<CallHandle, CommandError> {
        Connection::check_kind(method, MethodKind::Request)?;
        let params = &JsonAtRevision(params, self.check_gate(method)?);
        let name = MethodName::Known(method);
        if let (Some(task), Some(session)) = (options.task, &self.session) {
            (task.check)(method, session.server, Side::Server)?;
            let params = (task.write)(task.ttl, &to_shared_json(params)?)?;
            let call = self.start(&name, Purpose::Application, &params, options, now)?;
            self.connection.calls.augment(call.key, task.lasts);
            return Ok(call);
        }
        self.start(&name, Purpose::Application, params, options, now)
    }

    // MCP 2026-07-28 basic/patterns/cancellation#cancellation-flow [CANC-013]
    fn give_up(&mut self, call: CallHandle, reason: &str, now: Instant) {
        // MCP 2026-07-28 basic/patterns/cancellation#behavior-requirements [CANC-018]: only a call
        // that is in the table is cancelled.
        let Some(entry) = self.connection.calls.remove(call.key) else { return };
        if entry.purpose == Purpose::Task {
            // The request has already been answered.
            return;
        }
        if entry.purpose == Purpose::Waiting {
            self.unsubscribe_resources(call.key, now);
        } else if self.suspended.is_some() && entry.purpose == Purpose::Listen {
            // Its process has ended, and the next one does not know it.
        } else if !self.drop_round(&entry) {
            self.connection.give_up(&entry, reason, now);
        }
        self.connection.end_call(call.key, Failure::Cancelled);
    }

    // MCP 2025-11-25 server/utilities/logging#setting-log-level [LOG-003]
    fn ask_for_logs(&mut self, level: LoggingLevel, now: Instant) -> Result<(), CommandError> {
        self.connection.check_open()?;
        let era = self.session.as_ref().ok_or(CommandError::NotOpen)?.revision.era();
        if era == Era::Legacy {
            self.check_gate(Method::LoggingSetLevel)?;
            let params = alloc::format!(r#"{{"level":"{level}"}}"#);
            let params = RawJson::trusted(&params);
            let method = MethodName::Known(Method::LoggingSetLevel);
            self.start(&method, Purpose::Chore, &params, &CallOptions::default(), now)?;
        }
        self.log_level = Some(level);
        Ok(())
    }

    // ------------------------------------------------------------------ outputs

    /// Returns the next bytes for the stream, complete lines, or `None` if the queue is empty. The
    /// caller must write all of them; they are discarded on the next call.
    #[must_use]
    pub fn poll_transmit(&mut self) -> Option<&[u8]> {
        self.connection.outbox.poll()
    }

    /// Returns the next bytes for the stream, for a driver that may write only some of them and
    /// reports the number with [`consume_transmit`](Self::consume_transmit). Empty if no output is
    /// queued. Returned bytes stay queued until consumed, even if their call is cancelled
    /// meanwhile.
    #[must_use]
    pub fn peek_transmit(&mut self) -> &[u8] {
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
    /// server has taken some of it.
    #[must_use]
    pub fn is_congested(&self) -> bool {
        self.connection.is_congested()
    }

    /// Returns whether the connection is closed and all output has been sent.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.connection.closed.is_some() && self.connection.outbox.len() == 0
    }

    /// Returns whether the connection is closed.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        self.connection.closed.is_some()
    }

    /// Returns the outcome of the negotiation, once the connection is open.
    #[must_use]
    pub const fn session(&self) -> Option<&ClientSession> {
        self.session.as_ref()
    }

    /// Returns the detected era of the server. Store it for the next connection to the same server:
    /// see [`ClientOptions::known_era`].
    #[must_use]
    pub fn era(&self) -> Option<Era> {
        self.session.as_ref().map(|session| session.revision.era())
    }

    // ------------------------------------------------------------------ shared by the parts

    /// Checks that this side may send `method` now, and returns the revision.
    // MCP 2025-11-25 basic/lifecycle#operation [LIFE-004],
    // MCP 2025-11-25 client/roots#error-handling [CAP-027]
    pub(crate) fn check_gate(&self, method: Method) -> Result<Revision, CommandError> {
        self.connection.check_open()?;
        let session = self.session.as_ref().ok_or(CommandError::NotOpen)?;
        method.row().check(Side::Client, session.revision, session.client, session.server)?;
        Ok(session.revision)
    }

    fn start(
        &mut self,
        method: &MethodName<'_>,
        purpose: Purpose,
        params: &dyn WriteJson,
        options: &CallOptions<'_>,
        now: Instant,
    ) -> Result<CallHandle, CommandError> {
        let session = self.session.as_ref().ok_or(CommandError::NotOpen)?;
        let modern = session.revision.era() == Era::Modern;
        let parts = if modern {
            MetaParts {
                fixed: self.request_meta.as_ref(),
                log_level: options.log_level.or(self.log_level),
                ..MetaParts::default()
            }
        } else {
            MetaParts::default()
        };
        // MCP 2026-07-28 basic/patterns/mrtr#client-requirements-basic-workflow [MRTR-011]: a round
        // may ask for no input, so it needs no capability.
        let may_repeat = matches!(method, MethodName::Known(m) if m.allows_input_rounds());
        // A listen stream may have to move to another channel, or to a new process of the server.
        let may_move = purpose == Purpose::Listen;
        let repeatable = modern && (may_repeat || may_move);
        let outgoing = Outgoing { parts, repeatable, ..Outgoing::new(method, purpose) };
        self.connection.start_call(outgoing, params, options, None, now).map(CallHandle::new)
    }

    fn end(&mut self, reason: CloseReason) {
        self.connection.close(reason);
        self.finish_close();
    }

    /// Clears the state of a closed connection: no input is requested and no request is answered.
    fn finish_close(&mut self) {
        self.state = opening::State::Over;
        self.rounds = Slab::new();
        self.input_bytes = 0;
        self.subscriptions.clear();
        self.connection.observed.all_cancelled();
        self.connection.requests.clear();
    }

    fn fail_opening(&mut self, failure: OpeningFailure) {
        self.end(CloseReason::OpeningFailed(failure));
    }

    /// Withdraws an input request whose answer is no longer needed.
    fn withdraw_input(&mut self, source: InputSource) {
        let subject = Subject::Input(InputHandle(source));
        let event = Event::Cancelled(Cancelled { subject, reason: None });
        self.connection.events.push_back(event);
    }
}

machine!(Client, ClientCommand);
stream_machine!([] Client);

impl ClientMachine for Client {
    fn session(&self) -> Option<&ClientSession> {
        self.session()
    }

    fn has_call(&self, call: CallHandle) -> bool {
        self.connection.calls.get(call.key).is_some()
    }

    fn catch_panics(&mut self, guard: crate::PanicGuard) {
        self.catch_panics(guard);
    }

    fn observation_of_input(&self, input: InputHandle) -> Option<Arc<dyn super::Observation>> {
        match input.0 {
            InputSource::Request(key) => self.connection.observation_of(key),
            InputSource::Round { .. } => None,
        }
    }

    fn observation_of(
        &self,
        request: super::handle::RequestHandle,
    ) -> Option<Arc<dyn super::Observation>> {
        self.connection.observation_of(request.key)
    }
}

//! The client's side of a connection.

#[cfg(feature = "http")]
pub(crate) mod channels;
mod inputs;
mod methods;
mod opening;
mod options;
mod receive;
mod subscriptions;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use mcp_sansio_collections::{Key, Slab};
use mcp_sansio_sync::Arc;

use crate::binding::Binding;
use crate::framing::FrameError;
use crate::jsonrpc::{
    ErrorObject, Json, MemberIndex, RawJson, STANDING_IS_KEPT, WriteJson, parse,
    parse_noting_result, to_shared_json,
};
use crate::protocol::{
    Capabilities, JsonAtRevision, LoggingLevel, Method, MethodKind, Side, WriteJsonAt,
};
use crate::{Era, Instant, Revision, Revisions};

use self::receive::COMPLETE;
use super::calls::Purpose;
use super::command::ClientCommand;
use super::connection::Connection;
use super::error::{CommandError, ConnectionClosed};
use super::event::{Cancelled, CloseReason, Event, Failure, OpeningFailure, Subject};
use super::handle::{CallHandle, InputHandle, InputSource};
use super::machine::{Applied, ClientMachine, machine, stream_machine};
use super::method_name::MethodName;
use super::outbox::{Channel, Lane};
use super::outgoing::{CallOptions, FixedMeta, MetaParts, Outgoing};
use super::queue::Tag;

pub(super) use inputs::{INPUT_REQUEST_LENGTH_MIN, PendingInput, Round};
pub(crate) use methods::client_methods;
pub use options::{ClientOptions, ClientRole};
use subscriptions::{Legacy, Standing};

/// The client's side of one connection over a byte stream, as a state machine.
///
/// It opens the connection by itself: it finds out which era the server is of, negotiates a
/// revision and reports [`Event::Opened`], or [`Event::Closed`] with the reason. Calls can be made
/// from then on; every one ends with exactly one [`Event::Ended`].
///
/// # Driving it
///
/// * Push what comes in: [`handle_message`](Self::handle_message) for each frame,
///   [`handle_frame_error`](Self::handle_frame_error) for one that is none,
///   [`handle_eof`](Self::handle_eof) once at the end, [`handle_timeout`](Self::handle_timeout)
///   when the deadline has come. Spurious calls of the latter do nothing.
/// * Push what the application wants: [`call`](Self::call), [`cancel`](Self::cancel),
///   [`subscribe`](Self::subscribe), [`answer_input`](Self::answer_input) and the like.
/// * After any of these, pull until dry: [`poll_event`](Self::poll_event) before the next input,
///   so that events keep the order of their causes; [`poll_transmit`](Self::poll_transmit) as soon
///   as the stream takes bytes; [`poll_timeout`](Self::poll_timeout) to know when to come back.
/// * `now` is the time it is, not the deadline that fired.
///
/// Nothing here blocks, panics because of the server, or does work out of proportion to its input.
#[derive(Debug)]
pub struct Client {
    connection: Connection,
    identity: Arc<options::ClientIdentity>,
    revisions: Revisions,
    state: opening::State,
    /// What the server said to a handshake that was tried on a guess.
    handshake_refused: Option<Box<ErrorObject<'static>>>,
    session: Option<Session>,
    /// The probe was repeated at the revision that the server refused and listed.
    insisted: bool,
    /// The first request on this stream was a probe.
    probed: bool,
    /// What every modern request says in its `_meta`.
    request_meta: Option<FixedMeta>,
    log_level: Option<LoggingLevel>,
    rounds: Slab<Round>,
    /// Bytes that they keep.
    input_bytes: usize,
    subscriptions: Vec<(Key, Legacy)>,
}

/// What the server and this client agreed on.
#[derive(Debug)]
pub struct Session {
    revision: Revision,
    client: Capabilities,
    server: Capabilities,
    server_info: Option<Json>,
    server_capabilities: Json,
    instructions: Option<String>,
}

impl Session {
    /// The negotiated revision.
    #[must_use]
    pub const fn revision(&self) -> Revision {
        self.revision
    }

    /// What the server declared, as far as the gate knows it.
    #[must_use]
    pub const fn server_capabilities(&self) -> Capabilities {
        self.server
    }

    /// What the server declared, as it came: a `ServerCapabilities` object.
    #[must_use]
    pub const fn server_capabilities_json(&self) -> &Json {
        &self.server_capabilities
    }

    /// What the server says that it is, an `Implementation`: for display and logs only.
    // MCP 2026-07-28 basic/index#_meta [SEC-013]
    #[must_use]
    pub const fn server_info(&self) -> Option<&Json> {
        self.server_info.as_ref()
    }

    /// How to use the server, in its words, for the model.
    // MCP 2025-11-25 schema.json#InitializeResult [LIFE-019]
    #[must_use]
    pub fn instructions(&self) -> Option<&str> {
        self.instructions.as_deref()
    }
}

impl Client {
    /// A client that opens its connection: the first bytes wait to be sent.
    ///
    /// `seed` keys the hash tables of what the server names: draw it at random, so that a server
    /// cannot aim at collisions. It has no influence on any output.
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
        let ClientOptions { role: ClientRole { identity, known_era }, config, revisions } = options;
        let mut client = Self {
            connection: Connection::new(Side::Client, &config, binding, seed),
            identity,
            revisions,
            state: opening::State::Over,
            handshake_refused: None,
            session: None,
            insisted: false,
            probed: false,
            request_meta: None,
            log_level: None,
            rounds: Slab::new(),
            input_bytes: 0,
            subscriptions: Vec::new(),
        };
        client.open(known_era, now);
        client
    }

    // ------------------------------------------------------------------ from the server

    /// Takes one frame, and returns what the application must know of it.
    ///
    /// # Errors
    ///
    /// The connection is over, before or because of this frame. Rules that the server broke are
    /// reported as [`Event::Violation`], unless the policy says to close.
    pub fn handle_message<'f>(
        &mut self,
        frame: &'f [u8],
        now: Instant,
    ) -> Result<Option<Event<'f>>, ConnectionClosed> {
        self.connection.check_open()?;
        let limits = self.connection.parse_limits();
        let mut index = None;
        let parsed = if STANDING_IS_KEPT && self.is_modern() {
            parse_noting_result(frame, limits, COMPLETE, index.insert(MemberIndex::default()))
        } else {
            parse(frame, limits)
        };
        let flow = self.receive_frame(parsed, index.as_ref(), now);
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
        let flow = self.connection.frame_error(error, None);
        if flow.is_err() {
            self.finish_close();
        }
        flow
    }

    /// Takes the news that the server ended the stream and that another one can be had, to a new
    /// process of the same server. Call it in place of [`handle_eof`](Self::handle_eof), with all
    /// frames handed in that came before.
    ///
    /// `true`: the server ended on the probe for its era, as some legacy servers do. The connection is
    /// still being opened, and what is sent from here on, a handshake without a probe before it, is
    /// for the new stream, whose frames come from a decoder of its own. That is the case once for each
    /// connection. `false`: nothing has changed, and `handle_eof` comes next.
    pub fn restart(&mut self, now: Instant) -> bool {
        self.open_as_legacy(now)
    }

    /// Takes the end of the input: every call ends with [`Failure::ConnectionLost`].
    pub fn handle_eof(&mut self) {
        self.end(CloseReason::EndOfInput);
    }

    /// Does what is due at `now`. Extra calls do nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some((key, call)) = self.connection.take_expired(now) {
            match call.purpose {
                Purpose::Opening => self.opening_timed_out(&call, now),
                Purpose::KeepAlive => self.connection.keep_alive_expired(&call, now),
                Purpose::SubscribeResource { subscription, index } => {
                    self.connection.give_up(&call, "timed out", now);
                    self.resource_subscribed(subscription, index, Standing::Unknown, now);
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

    /// Carries out a command of the application.
    ///
    /// # Errors
    ///
    /// See [`CommandError`].
    // Inlined, so that a named method is no more than its arm.
    #[inline(always)]
    pub fn apply(
        &mut self,
        command: ClientCommand<'_>,
        now: Instant,
    ) -> Result<Applied, CommandError> {
        match command {
            ClientCommand::Call { method: MethodName::Known(method), params, options } => {
                return self.start_known(method, params, options, now).map(Applied::Started);
            }
            ClientCommand::Call { method, params, options } => {
                self.connection.check_open()?;
                let revision = self.session.as_ref().ok_or(CommandError::NotOpen)?.revision;
                let params = JsonAtRevision(params, revision);
                let purpose = Purpose::Application;
                return self.start(&method, purpose, &params, options, now).map(Applied::Started);
            }
            ClientCommand::Subscribe(filter) => {
                return self.start_subscription(filter, now).map(Applied::Started);
            }
            ClientCommand::Cancel { call, reason } => self.give_up(call, reason, now),
            ClientCommand::Notify { method, params } => self.send_notification(method, params)?,
            ClientCommand::SetLogLevel(level) => self.ask_for_logs(level, now)?,
            ClientCommand::AnswerInput { input, result } => self.take_answer(input, result, now)?,
            ClientCommand::RefuseInput { input, error } => self.take_refusal(input, error)?,
            ClientCommand::Respond { request, result } => self.send_result(request, result)?,
            ClientCommand::Reject { request, error } => self.send_error(request, error)?,
            ClientCommand::Close => self.end(CloseReason::Local),
        }
        Ok(Applied::Done)
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
        // MCP 2026-07-28 basic/patterns/cancellation#behavior-requirements [CANC-018]: only a call that
        // is in the table.
        let Some(entry) = self.connection.calls.remove(call.key) else { return };
        if entry.purpose == Purpose::Task {
            // It ended before.
            return;
        }
        if entry.purpose == Purpose::Waiting {
            self.unsubscribe_resources(call.key, now);
        } else if !self.drop_round(&entry) {
            self.connection.give_up(&entry, reason, now);
        }
        self.connection.end_call(call.key, Failure::Cancelled);
    }

    fn send_notification(
        &mut self,
        method: Method,
        params: &dyn WriteJson,
    ) -> Result<(), CommandError> {
        Connection::check_kind(method, MethodKind::Notification)?;
        self.check_gate(method)?;
        self.connection.outbox.try_push(
            Lane::Bulk,
            Channel::UNSOLICITED,
            method.into(),
            Tag::NONE,
            |out| crate::jsonrpc::write_notification(out, method.as_str(), Some(params)),
        )?;
        Ok(())
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

    /// The next bytes for the stream, whole lines; `None` when there are none. Whoever takes them
    /// writes all of them; the next call considers them gone.
    #[must_use]
    pub fn poll_transmit(&mut self) -> Option<&[u8]> {
        self.connection.outbox.poll()
    }

    /// The next bytes for the stream, for a driver that may write only part of them and tells how
    /// many with [`consume_transmit`](Self::consume_transmit). Empty when there are none. What was
    /// shown stays until it is consumed, whatever is cancelled meanwhile.
    #[must_use]
    pub fn peek_transmit(&mut self) -> &[u8] {
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
    /// server has taken some of it.
    #[must_use]
    pub fn is_congested(&self) -> bool {
        self.connection.is_congested()
    }

    /// Whether the connection is closed and no byte waits to be sent.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.connection.closed.is_some() && self.connection.outbox.len() == 0
    }

    /// Whether the connection is over.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        self.connection.closed.is_some()
    }

    /// What was agreed on, once the connection is open.
    #[must_use]
    pub const fn session(&self) -> Option<&Session> {
        self.session.as_ref()
    }

    /// The era that the server turned out to be of; worth remembering for the next connection to
    /// the same server: see [`ClientOptions::known_era`].
    #[must_use]
    pub fn era(&self) -> Option<Era> {
        self.session.as_ref().map(|session| session.revision.era())
    }

    // ------------------------------------------------------------------ shared by the parts

    /// Whether this side may send `method` now; if so, at which revision.
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
        // may ask for nothing, so it needs no capability.
        let may_repeat = matches!(method, MethodName::Known(m) if m.allows_input_rounds());
        // Where each request has a way of its own, a listen stream may have to take another one.
        let may_move = purpose == Purpose::Listen && self.connection.binding.requests_may_part();
        let repeatable = modern && (may_repeat || may_move);
        let outgoing = Outgoing { parts, repeatable, ..Outgoing::new(method, purpose) };
        self.connection.start_call(outgoing, params, options, now).map(CallHandle::new)
    }

    fn end(&mut self, reason: CloseReason) {
        self.connection.close(reason);
        self.finish_close();
    }

    /// The connection is over: nothing is asked and nothing is to be answered any more.
    fn finish_close(&mut self) {
        self.state = opening::State::Over;
        self.rounds = Slab::new();
        self.input_bytes = 0;
        self.subscriptions.clear();
        self.connection.requests.clear();
    }

    fn fail_opening(&mut self, failure: OpeningFailure) {
        self.end(CloseReason::OpeningFailed(failure));
    }

    /// A question that nobody waits for any more.
    fn withdraw_input(&mut self, source: InputSource) {
        let subject = Subject::Input(InputHandle(source));
        let event = Event::Cancelled(Cancelled { subject, reason: None });
        self.connection.events.push_back(event);
    }
}

client_methods!(Client);
machine!(Client, ClientCommand);
stream_machine!([] Client);

impl ClientMachine for Client {
    fn session(&self) -> Option<&Session> {
        self.session()
    }
}

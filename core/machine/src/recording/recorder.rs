//! The recorder of each machine.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::any::Any;

use mcp_sansio_collections::KeyedHash;
use mcp_sansio_sync::Mutex;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::call::{Call, Payload, describe, outcome};
use super::exchange::{
    Cause, Field, Read, RecordedTransmit, Refused, StandIns, StoreAction, Stored,
};
use super::handle::Handle;
use super::settings::{
    ClientSettings, HttpClientSettings, HttpServerSettings, Machine, Names, RestrictedChange,
    ServerSettings, Start, State,
};
use crate::catalog::{Announcement, Catalog};
use crate::http::client::{SESSION_ID, is_own_field};
use crate::http::{self, ClientTransmit, ExchangeId, IncomingResponse, RequestHead};
use crate::jsonrpc::{AsJson, ErrorObject, WriteJson};
use crate::peer::{
    self, Applied, ClientCommand, ClientMachine, CommandError, Event, ServerCommand, ServerMachine,
};
use crate::recorded::{
    HttpClientCall, HttpServerCall, OpenTape, Recordable, Recorder, StreamCall, Tape,
};
use crate::{Instant, Principal, Revision, SessionKey};

/// The seed of the hash tables in a replay. It affects no output.
pub(super) const SEED: u64 = 0;

impl Tape {
    /// Creates a tape that passes each line of the recording to `sink`, in full and with its
    /// newline, as soon as its call has returned. If the process dies, the lines kept so far are a
    /// valid recording that merely ends early.
    ///
    /// The sink decides how to handle a line that it cannot store. It runs on the thread of the
    /// machine, so it must be fast.
    #[must_use]
    pub fn new(sink: impl FnMut(&[u8]) + Send + 'static) -> Self {
        Self(Box::new(Lines { sink: Mutex::new(Box::new(sink)), is_replay: false }))
    }

    /// Creates the tape of a replay, which has nothing to hide.
    pub(super) fn of_replay(sink: impl FnMut(&[u8]) + Send + 'static) -> Self {
        Self(Box::new(Lines { sink: Mutex::new(Box::new(sink)), is_replay: true }))
    }
}

/// The callback that receives the lines.
type Sink = Box<dyn FnMut(&[u8]) + Send>;

/// The lines of a recording, on their way to the application.
struct Lines {
    /// In a mutex that is never locked, only so that a machine can be shared between threads.
    sink: Mutex<Sink>,
    is_replay: bool,
}

impl Lines {
    fn write(&mut self, line: &impl Serialize) {
        let mut text = String::new();
        let written = AsJson(line).write_json(&mut text);
        debug_assert!(written.is_ok(), "a line is made of text and whole numbers");
        let mut text = text.into_bytes();
        // A line break in JSON can only be between tokens.
        for byte in &mut text {
            if matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
        text.push(b'\n');
        self.sink.get_mut()(&text);
    }

    /// Writes the first line, and returns the recorder of the machine.
    fn begin<M: Describe>(
        mut self,
        machine: Machine<'_>,
        stand_ins: StandIns,
        session_id_length_max: usize,
    ) -> Box<dyn Any> {
        self.write(&Start::new(machine));
        let (is_peeked, edited) = (false, Announcement::default());
        let (session_id, begun) = (Vec::new(), BTreeMap::new());
        let lines = self;
        let notes =
            Notes { lines, is_peeked, stand_ins, session_id_length_max, session_id, begun, edited };
        let recorder: Box<dyn Recorder<M>> = Box::new(notes);
        Box::new(recorder)
    }

    /// Returns the stand-ins that `key` determines.
    const fn stand_ins(&self, key: [u8; 32]) -> StandIns {
        if self.is_replay { StandIns::NONE } else { StandIns::keyed(key) }
    }
}

type SettingsOf<M> = <M as Recordable>::Settings;

impl OpenTape for Lines {
    fn open(self: Box<Self>, settings: &dyn Any) -> Option<Box<dyn Any>> {
        if let Some(options) = settings.downcast_ref::<SettingsOf<peer::Server>>() {
            let options = Box::new(ServerSettings::from_options(options, UNCHANGED));
            let machine = Machine::Server(options);
            return Some(self.begin::<peer::Server>(machine, StandIns::NONE, 0));
        }
        if let Some((options, now)) = settings.downcast_ref::<SettingsOf<peer::Client>>() {
            let options = Box::new(ClientSettings::from_options(options));
            let machine = Machine::Client { at: now.as_nanos(), options };
            return Some(self.begin::<peer::Client>(machine, StandIns::NONE, 0));
        }
        if let Some((peer, http, secret)) = settings.downcast_ref::<SettingsOf<http::Server>>() {
            let stand_ins = self.stand_ins(*secret);
            let principal = |it: &Principal| stand_ins.principal(it);
            let names = Names { principal: &principal, session: &|it| it };
            let options = Box::new(ServerSettings::from_options(peer, names));
            let http = Box::new(HttpServerSettings::from_options(http));
            let machine = Machine::HttpServer { options, http };
            return Some(self.begin::<http::Server>(machine, stand_ins, 0));
        }
        let (peer, http, seed, now) = settings.downcast_ref::<SettingsOf<http::Client>>()?;
        // Session ids cannot be guessed, so a key derived from the seed is enough to hide them.
        let key = Sha256::new().chain_update(seed.to_le_bytes()).finalize().into();
        let stand_ins = self.stand_ins(key);
        let length_max = http.limits.session_id_length_max;
        let options = Box::new(ClientSettings::from_options(peer));
        let http = Box::new(HttpClientSettings::from_options(http, stand_ins));
        let machine = Machine::HttpClient { at: now.as_nanos(), seed: *seed, options, http };
        Some(self.begin::<http::Client>(machine, stand_ins, length_max))
    }
}

/// The names in recordings of byte streams, where no principal is a sender.
const UNCHANGED: Names<'static> =
    Names { principal: &|principal| principal.as_str().into(), session: &|it| it };

/// The recorder of a machine.
struct Notes {
    lines: Lines,
    /// The next bytes were read, and nothing was recorded since. They are usually removed at once,
    /// completely or in part, and the line of that call then implies that they were read.
    is_peeked: bool,
    stand_ins: StandIns,
    /// The longest session id that an HTTP client accepts, in bytes.
    session_id_length_max: usize,
    /// The session id that an HTTP client received last. Some servers make it the id of each event.
    session_id: Vec<u8>,
    /// The unfinished lines of its event streams that may contain the session id.
    begun: BTreeMap<ExchangeId, Vec<u8>>,
    /// The changes by the latest edit of the catalog.
    edited: Announcement,
}

crate::partial_debug! { impl Debug for Notes(..) }

/// How the calls of a machine are recorded.
trait Describe: Recordable + 'static {
    /// Applies a command and records it.
    fn apply_noted(
        &mut self,
        command: Self::Command<'_>,
        now: Instant,
        notes: &mut Notes,
    ) -> Result<Applied, CommandError>;

    fn describe(call: Self::Call<'_>, notes: &mut Notes);
}

impl<M: Describe> Recorder<M> for Notes {
    fn apply(
        &mut self,
        machine: &mut M,
        command: M::Command<'_>,
        now: Instant,
    ) -> Result<Applied, CommandError> {
        machine.apply_noted(command, now, self)
    }

    fn note_timeout(&mut self, now: Instant) {
        self.write(Call::Timeout { at: now.as_nanos() });
    }

    fn note_event(&mut self, event: &Event<'_>) {
        self.write(Call::Event { event: describe(event).into() });
    }

    fn note(&mut self, call: M::Call<'_>) {
        M::describe(call, self);
    }
}

impl Describe for peer::Server {
    fn apply_noted(
        &mut self,
        command: ServerCommand<'_>,
        now: Instant,
        notes: &mut Notes,
    ) -> Result<Applied, CommandError> {
        notes.apply_to_server(self, command, now)
    }

    fn describe(call: StreamCall<'_>, notes: &mut Notes) {
        notes.note_stream(call);
    }
}

impl Describe for peer::Client {
    fn apply_noted(
        &mut self,
        command: ClientCommand<'_>,
        now: Instant,
        notes: &mut Notes,
    ) -> Result<Applied, CommandError> {
        notes.apply_to_client(self, command, now)
    }

    fn describe(call: StreamCall<'_>, notes: &mut Notes) {
        notes.note_stream(call);
    }
}

impl Describe for http::Server {
    fn apply_noted(
        &mut self,
        command: ServerCommand<'_>,
        now: Instant,
        notes: &mut Notes,
    ) -> Result<Applied, CommandError> {
        notes.apply_to_server(self, command, now)
    }

    fn describe(call: HttpServerCall<'_>, notes: &mut Notes) {
        notes.note_http_server(call);
    }
}

impl Describe for http::Client {
    fn apply_noted(
        &mut self,
        command: ClientCommand<'_>,
        now: Instant,
        notes: &mut Notes,
    ) -> Result<Applied, CommandError> {
        notes.apply_to_client(self, command, now)
    }

    fn describe(call: HttpClientCall<'_>, notes: &mut Notes) {
        notes.note_http_client(call);
    }
}

impl Notes {
    fn write(&mut self, call: Call<'_>) {
        if core::mem::take(&mut self.is_peeked) && !matches!(call, Call::Sent { .. }) {
            self.lines.write(&Call::Peek {});
        }
        self.lines.write(&call);
    }

    fn apply_to_client<M: ClientMachine>(
        &mut self,
        machine: &mut M,
        command: ClientCommand<'_>,
        now: Instant,
    ) -> Result<Applied, CommandError> {
        // Nothing is written before a session exists, at any revision.
        let revision = machine.session().map_or(Revision::LATEST, |session| session.revision());
        // The fields may be secrets.
        let (mut noted, _) = command.clone().split_fields();
        if let Some(body) = noted.body_mut() {
            *body = body.clone().to_text(revision);
        }
        self.write(Call::ClientCommand { at: now.as_nanos(), command: noted });
        machine.apply(command, now)
    }

    fn apply_to_server<M: ServerMachine>(
        &mut self,
        machine: &mut M,
        command: ServerCommand<'_>,
        now: Instant,
    ) -> Result<Applied, CommandError> {
        let at = now.as_nanos();
        if let ServerCommand::RequireInput { request, .. } = &command {
            let (noted, request) = (command.clone(), request.handle);
            let applied = machine.apply(command, now);
            let command = match &applied {
                // The refusal may be due to the length of the request, which is not recorded. The
                // response is recorded instead.
                Err(CommandError::InputNotAllowed(what)) => {
                    ServerCommand::Reject { request, error: ErrorObject::internal(*what) }
                }
                _ => noted,
            };
            self.write(Call::ServerCommand { at, command });
            return applied;
        }
        let mut noted = command.clone();
        // Nothing is written for a request that is not pending, at any revision.
        let revision = command.request().and_then(|request| machine.revision_of(request));
        if let Some(body) = noted.body_mut() {
            *body = body.clone().to_text(revision.unwrap_or(Revision::LATEST));
        }
        if let ServerCommand::TaskChanged { principal: Some(principal), .. } = &mut noted {
            *principal = Cow::Owned(Principal::new(self.stand_ins.principal(principal)));
        }
        self.write(Call::ServerCommand { at, command: noted });
        machine.apply(command, now)
    }

    fn note_stream(&mut self, call: StreamCall<'_>) {
        let call = match call {
            StreamCall::Message { frame, now, outcome: taken } => Call::Message {
                at: now.as_nanos(),
                frame: Payload::from_bytes(frame),
                event: outcome(taken),
            },
            StreamCall::FrameError { error, outcome: taken } => {
                Call::FrameError { error: error.into(), event: outcome(taken) }
            }
            StreamCall::EndOfInput => Call::EndOfInput {},
            StreamCall::Transmit(bytes) => Call::Transmit { bytes: Payload::from_bytes(bytes) },
            StreamCall::Peek => {
                self.is_peeked = true;
                return;
            }
            StreamCall::Keep => {
                self.is_peeked = false;
                Call::Peek {}
            }
            StreamCall::Consume(bytes) => Call::Sent { bytes: Payload::from_bytes(bytes) },
            StreamCall::Restart(now) => Call::Restart { at: now.as_nanos() },
            StreamCall::Suspend => Call::Suspend {},
            StreamCall::Resume(now) => Call::Reopen { at: now.as_nanos() },
            StreamCall::Edited(catalog, caller) => {
                let changed = announcement_of(catalog).seen_by(caller);
                self.edited = Announcement::new(changed, Vec::new());
                return;
            }
            StreamCall::Catalog(catalog, own) => {
                // A replay has no seed.
                let in_replay = SessionKey::from_hasher(&KeyedHash::with_seed(SEED));
                let session = |it| if it == own { in_replay } else { it };
                Call::Catalog {
                    at: None,
                    catalog: State::from_catalog(catalog, Names { session: &session, ..UNCHANGED }),
                    changed: self.edited.to_everyone,
                    changed_for: Vec::new(),
                }
            }
        };
        self.write(call);
    }

    fn note_http_client(&mut self, call: HttpClientCall<'_>) {
        let handle = |exchange: ExchangeId| Handle::from_key(exchange.0);
        let call = match call {
            HttpClientCall::Response(exchange, head, now) => {
                return self.note_response(exchange, head, now);
            }
            HttpClientCall::Transmit(transmit) => return self.note_transmit(transmit),
            HttpClientCall::Body(exchange, bytes, now) => {
                return self.note_body(exchange, bytes, now);
            }
            HttpClientCall::BodyEnd(exchange, now) => {
                self.begun.remove(&exchange);
                Call::BodyEnd { at: now.as_nanos(), exchange: handle(exchange) }
            }
            HttpClientCall::Failed(exchange, failure, now) => {
                self.begun.remove(&exchange);
                let failure = Cause::from_failure(failure);
                Call::ExchangeFailed { at: now.as_nanos(), exchange: handle(exchange), failure }
            }
            HttpClientCall::Pause(exchange, now) => {
                Call::Pause { at: now.as_nanos(), exchange: handle(exchange) }
            }
            HttpClientCall::Resume(exchange, now) => {
                Call::Resume { at: now.as_nanos(), exchange: handle(exchange) }
            }
        };
        self.write(call);
    }

    fn note_body(&mut self, exchange: ExchangeId, bytes: &[u8], now: Instant) {
        let (id, length_max) = (&self.session_id, self.session_id_length_max);
        let mut begun = self.begun.remove(&exchange).unwrap_or_default();
        let bytes = self.stand_ins.within_events(bytes, &mut begun, id, length_max);
        if !begun.is_empty() {
            self.begun.insert(exchange, begun);
        }
        let (at, exchange) = (now.as_nanos(), Handle::from_key(exchange.0));
        self.write(Call::Body { at, exchange, bytes: Payload::from_bytes(&bytes) });
    }

    fn note_response(&mut self, exchange: ExchangeId, head: &IncomingResponse<'_>, now: Instant) {
        let length_max = self.session_id_length_max;
        if let Some((_, id)) = head.fields().find(|(name, _)| *name == SESSION_ID) {
            self.session_id = id.to_vec();
        }
        // Nonces are meant for the component that answers challenges, and this machine ignores
        // them.
        let fields = head.fields().filter(|(name, _)| *name != "dpop-nonce");
        let fields = fields.map(|(name, value)| match name {
            SESSION_ID => Field::new(name, self.stand_ins.foreign_session(value, length_max)),
            "location" => {
                let path = value.split(|byte| *byte == b'?').next().unwrap_or_default();
                Field::new(name, if self.stand_ins.is_on() { path } else { value })
            }
            _ => Field::new(name, value),
        });
        let (at, exchange) = (now.as_nanos(), Handle::from_key(exchange.0));
        let (status, fields) = (head.status.0, fields.collect());
        self.write(Call::Response { at, exchange, status, fields });
    }

    fn note_transmit(&mut self, transmit: &ClientTransmit) {
        let length_max = self.session_id_length_max;
        let call = match transmit {
            ClientTransmit::Abort(exchange) => {
                self.begun.remove(exchange);
                Call::Abort { exchange: Handle::from_key(exchange.0) }
            }
            ClientTransmit::Send(request) => {
                // Those of the application may be secrets.
                let fields = request.fields().filter(|(name, _)| is_own_field(name));
                let fields = fields.map(|(name, value)| match name {
                    SESSION_ID => {
                        let id = self.stand_ins.foreign_session(value.as_bytes(), length_max);
                        Field::new(name, id)
                    }
                    _ => Field::new(name, value.as_bytes()),
                });
                Call::Send {
                    exchange: Handle::from_key(request.exchange.0),
                    method: request.method.into(),
                    // A message URL that the server sent in a body may have a query.
                    url: request.url.as_str().split('?').next().unwrap_or_default().into(),
                    fields: fields.collect(),
                    body: Payload::from_bytes(&request.body),
                }
            }
        };
        self.write(call);
    }

    fn note_http_server(&mut self, call: HttpServerCall<'_>) {
        let handle = |exchange: ExchangeId| Handle::from_key(exchange.0);
        let stand_ins = self.stand_ins;
        match call {
            HttpServerCall::Request {
                catalog,
                head,
                body,
                caller,
                refusal,
                session,
                exchange,
                event,
                now,
            } => {
                let named = session_in_query(head).map(|id| stand_ins.named_session(id.as_bytes()));
                let named = named.as_ref().map(|id| String::from_utf8_lossy(id));
                self.write(Call::Request {
                    at: now.as_nanos(),
                    method: head.method.into(),
                    target: match named {
                        Some(id) => alloc::format!("{}?sessionId={id}", head.path).into(),
                        None => head.path.into(),
                    },
                    fields: fields_of(head, stand_ins),
                    contradictory: head.contradictory.map(Cow::Borrowed),
                    body: Payload::from_bytes(body),
                    principal: caller.principal().map(|it| stand_ins.principal(it).into()),
                    scopes: catalog.scopes_of(caller).into_iter().map(Cow::Owned).collect(),
                    address: head.remote.map(|it| stand_ins.address(it)),
                    refused: refusal.as_ref().map(Refused::from_rejection),
                    session: session.map(|id| stand_ins.session(&id).into()),
                    exchange: handle(exchange),
                    event: event.map(|event| describe(event).into()),
                });
            }
            HttpServerCall::Disconnect(exchange, now) => {
                self.write(Call::Disconnect { at: now.as_nanos(), exchange: handle(exchange) });
            }
            HttpServerCall::Refuse(request, refusal, now) => {
                let refusal = Refused::from_rejection(refusal);
                self.write(Call::Refuse { at: now.as_nanos(), request, refusal });
            }
            HttpServerCall::Expiry(exchange, deadline) => {
                self.write(Call::Expiry { exchange: handle(exchange), until: deadline.as_nanos() });
            }
            HttpServerCall::Release(request, retry) => self.write(Call::Release { request, retry }),
            HttpServerCall::Edited(catalog) => self.edited = announcement_of(catalog),
            HttpServerCall::Catalog(server, now) => {
                let names = Names {
                    principal: &|it| stand_ins.principal(it),
                    session: &|it| {
                        server.id_of_session(it).map_or(it, |id| stand_ins.key_of(id, it))
                    },
                };
                let announcement = &core::mem::take(&mut self.edited);
                self.write(Call::Catalog {
                    at: Some(now.as_nanos()),
                    catalog: State::from_catalog(server.catalog(), names),
                    changed: announcement.to_everyone,
                    changed_for: RestrictedChange::from_announcement(announcement, names),
                });
            }
            HttpServerCall::Stored(read, events, now) => {
                let of = |event| Stored::from_event(event, stand_ins);
                let events = events.map(|events| events.iter().map(of).collect());
                let read = Read::from_id(read);
                self.write(Call::Stored { at: now.as_nanos(), read, events });
            }
            HttpServerCall::FailRead(read, now) => {
                self.write(Call::ReadFailed { at: now.as_nanos(), read: Read::from_id(read) });
            }
            HttpServerCall::Store(action) => {
                let noted = |action| StoreAction::from_action(action, stand_ins);
                self.write(Call::Store { action: action.and_then(noted) });
            }
            HttpServerCall::Ready(exchange) => {
                self.write(Call::Ready { exchange: handle(exchange) });
            }
            HttpServerCall::Poll { exchange, session, transmit, now } => {
                let transmit = transmit
                    .map(|transmit| RecordedTransmit::from_transmit(transmit, stand_ins, session));
                self.write(Call::Poll {
                    at: now.as_nanos(),
                    exchange: handle(exchange),
                    transmit: transmit.as_ref().map(|transmit| transmit.noted(stand_ins)),
                });
            }
        }
    }
}

/// Returns the changes that the catalog has not announced yet.
fn announcement_of(catalog: &mut Catalog) -> Announcement {
    let announcement = catalog.take_announcement();
    catalog.set_announcement(announcement.clone());
    announcement
}

fn session_in_query<'a>(head: &RequestHead<'a>) -> Option<&'a str> {
    head.query.0.split('&').find_map(|pair| pair.strip_prefix("sessionId="))
}

/// Returns the fields that the machine reads. The fields that authorize a request are not among
/// them.
fn fields_of<'a>(head: &RequestHead<'a>, stand_ins: StandIns) -> Vec<Field<'a>> {
    let mut fields: Vec<Field<'a>> = Vec::new();
    let single = [
        ("host", head.host),
        ("origin", head.origin),
        ("content-type", head.content_type),
        ("content-encoding", head.content_encoding),
        ("content-length", head.content_length),
        ("mcp-protocol-version", head.protocol_version),
        ("mcp-method", head.mcp_method),
        ("mcp-name", head.mcp_name),
        ("last-event-id", head.last_event_id),
    ];
    fields.extend(single.into_iter().filter_map(|(name, it)| Some(Field::new(name, it?))));
    fields.extend(head.accept.iter().map(|value| Field::new("accept", value)));
    let session = head.session_id.map(|id| stand_ins.named_session(id));
    fields.extend(session.map(|id| Field::new("mcp-session-id", id)));
    fields.extend(head.params.iter().map(|(name, value)| Field::new(*name, *value)));
    fields
}

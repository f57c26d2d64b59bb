//! Recorded HTTP servers: their settings, inputs and outputs.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::catalog::{Names, RestrictedChange, State};
use crate::catalog::{Announcement, Catalog};
use crate::http::origin::HostTexts;
use crate::http::server::header_params_by_tool;
use crate::http::{
    ActionId, AllowedHosts, AnnouncedChange, CallerHandle, EventPosition, EventStore, ExchangeId,
    HttpRejection, HttpServerOptions, NotStored, ParsedBody, ProofId, ReadId, ReadRequest,
    RemoteAddress, RequestHead, ResponseMode, Server, ServerLimits, ServerTimeouts, ServerTransmit,
    StoreAction, StoreError, StoreReply, StoredEvent, TaskCommand, TaskStoreEvent, UnservableTool,
};
use crate::peer::{self, Applied, CommandError, Event, RequestHandle, ServerCommand};
use crate::{Caller, Instant, Principal, SessionKey};

use super::arguments::{MISPLACED, Unperformable};
use super::call::Call;
use super::event::describe;
use super::exchange::{
    Field, Read, RecordedTransmit, Refused, StandIns, StoreAction as Action, Stored, session_of,
};
use super::handle::Handle;
use super::payload::Payload;
use super::recorded::{Notes, Recordable, Recorded};
use super::server::{self, ServerSettings};
use super::start::{Machine, Start};
use super::tape::Tape;

/// The HTTP settings of a server, on the first line of a recording.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HttpServerSettings<'a> {
    path: Option<Cow<'a, str>>,
    event_path: Option<Cow<'a, str>>,
    message_path: Option<Cow<'a, str>>,
    hosts: HostTexts,
    answers: ResponseMode,
    event_store: EventStore,
    limits: ServerLimits,
    timeouts: ServerTimeouts,
}

impl<'a> HttpServerSettings<'a> {
    fn from_options(options: &'a HttpServerOptions) -> Self {
        Self {
            path: options.path.as_deref().map(Cow::Borrowed),
            event_path: options.event_path.as_deref().map(Cow::Borrowed),
            message_path: options.message_path.as_deref().map(Cow::Borrowed),
            hosts: options.hosts.texts(),
            answers: options.answers,
            event_store: options.event_store,
            limits: options.limits.clone(),
            timeouts: options.timeouts.clone(),
        }
    }

    pub(super) fn to_options(&self) -> Result<HttpServerOptions, Unperformable> {
        let owned = |path: &Option<Cow<'_, str>>| path.as_deref().map(String::from);
        let hosts = AllowedHosts::from_texts(&self.hosts);
        Ok(HttpServerOptions {
            path: owned(&self.path),
            event_path: owned(&self.event_path),
            message_path: owned(&self.message_path),
            hosts: hosts.map_err(|_| Unperformable("a host is malformed"))?,
            answers: self.answers,
            event_store: self.event_store,
            shared: None,
            // A recording has one of them.
            limits: self.limits.clone(),
            timeouts: self.timeouts.clone(),
        })
    }
}

impl Recorded<Server> {
    /// Creates a server that records its commands, inputs and outputs on `tape`, if there is one,
    /// from the first one on.
    ///
    /// # Errors
    ///
    /// See [`Server::new`]. Nothing is recorded in this case.
    pub fn new(
        peer: peer::ServerOptions,
        options: HttpServerOptions,
        secret: [u8; 32],
        seed: u64,
        tape: impl Into<Option<Tape>>,
    ) -> Result<Self, UnservableTool> {
        Self::keyed(peer, options, secret, seed, tape.into(), StandIns::keyed(secret))
    }

    /// Creates the server of a recording.
    pub(super) fn replayed(
        peer: peer::ServerOptions,
        options: HttpServerOptions,
        tape: Tape,
    ) -> Result<Self, UnservableTool> {
        Self::keyed(peer, options, [0; 32], 0, Some(tape), StandIns::NONE)
    }

    fn keyed(
        peer: peer::ServerOptions,
        options: HttpServerOptions,
        secret: [u8; 32],
        seed: u64,
        tape: Option<Tape>,
        stand_ins: StandIns,
    ) -> Result<Self, UnservableTool> {
        if let (_, Some(unservable)) = header_params_by_tool(peer.catalog_to_offer()) {
            return Err(unservable);
        }
        // The actions of a shared store are not part of a recording.
        let tape = tape.filter(|_| options.shared.is_none());
        let notes = tape.map(|mut tape| {
            let principal = |it: &Principal| stand_ins.principal(it);
            let names = Names { principal: &principal, session: &|it| it };
            let settings = Box::new(ServerSettings::from_options(&peer, names));
            let http = Box::new(HttpServerSettings::from_options(&options));
            tape.write(&Start::new(Machine::HttpServer { options: settings, http }));
            Notes { tape, stand_ins }
        });
        Ok(Self::with(Server::new(peer, options, secret, seed)?, notes))
    }

    /// See [`Server::handle_request`].
    pub fn handle_request<'f>(
        &mut self,
        head: &RequestHead<'_>,
        body: &'f [u8],
        caller: &Caller,
        now: Instant,
    ) -> (ExchangeId, Option<Event<'f>>) {
        let request = self.machine.reader().read(head, body);
        self.handle_read_request(head, request, caller, &|_| Ok(()), now)
    }

    /// See [`Server::handle_read_request`].
    pub fn handle_read_request<'f>(
        &mut self,
        head: &RequestHead<'_>,
        request: ReadRequest<'f>,
        caller: &Caller,
        permit: &dyn Fn(Option<&ParsedBody<'_>>) -> Result<(), HttpRejection>,
        now: Instant,
    ) -> (ExchangeId, Option<Event<'f>>) {
        let Some(notes) = &mut self.notes else {
            return self.machine.handle_read_request(head, request, caller, permit, now);
        };
        let body = request.text();
        let refusal = RefCell::new(None);
        let asked = |body: Option<&ParsedBody<'_>>| {
            permit(body).inspect_err(|refused| *refusal.borrow_mut() = Some(refused.clone()))
        };
        let scopes = self.machine.catalog().scopes_of(caller);
        let (exchange, event) =
            self.machine.handle_read_request(head, request, caller, &asked, now);
        let drawn = self.machine.take_drawn_session();
        let refusal = refusal.borrow();
        let stand_ins = notes.stand_ins;
        let session = session_in_query(head).map(|id| stand_ins.named_session(id.as_bytes()));
        let session = session.as_ref().map(|id| String::from_utf8_lossy(id));
        notes.tape.note(Call::Request {
            at: now.as_nanos(),
            method: head.method.into(),
            target: match session {
                Some(id) => alloc::format!("{}?sessionId={id}", head.path).into(),
                None => head.path.into(),
            },
            fields: fields_of(head, stand_ins),
            contradictory: head.contradictory.map(Cow::Borrowed),
            body: Payload::from_bytes(body),
            principal: caller.principal().map(|it| stand_ins.principal(it).into()),
            scopes: scopes.into_iter().map(Cow::Owned).collect(),
            address: head.remote.map(|it| stand_ins.address(it)),
            refused: refusal.as_ref().map(Refused::from_rejection),
            session: drawn.map(|id| stand_ins.session(&id).into()),
            exchange: Handle::from_key(exchange.0),
            event: event.as_ref().map(|event| describe(event).into()),
        });
        (exchange, event)
    }

    /// See [`Server::handle_disconnect`].
    pub fn handle_disconnect(&mut self, exchange: ExchangeId, now: Instant) {
        self.note(|| Call::Disconnect {
            at: now.as_nanos(),
            exchange: Handle::from_key(exchange.0),
        });
        self.machine.handle_disconnect(exchange, now);
    }

    /// See [`Server::set_expiry`].
    pub fn set_expiry(&mut self, exchange: ExchangeId, deadline: Instant) {
        if self.machine.ends_at_expiry(exchange.0) {
            let until = deadline.as_nanos();
            self.note(|| Call::Expiry { exchange: Handle::from_key(exchange.0), until });
        }
        self.machine.set_expiry(exchange, deadline);
    }

    /// See [`Server::refuse`].
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
        let (at, handle) = (now.as_nanos(), request);
        self.note(|| Call::Refuse {
            at,
            request: handle,
            refusal: Refused::from_rejection(&refusal),
        });
        self.machine.refuse(request, refusal, now)
    }

    /// See [`Server::release_connection`].
    pub fn release_connection(&mut self, request: RequestHandle, retry: Duration) {
        self.note(|| Call::Release { request, retry });
        self.machine.release_connection(request, retry);
    }

    /// See [`Server::catch_panics`].
    pub fn catch_panics(&mut self, guard: crate::PanicGuard) {
        self.machine.catch_panics(guard);
    }

    /// See [`Server::edit_catalog`].
    pub fn edit_catalog<T>(&mut self, edit: impl FnOnce(&mut Catalog) -> T, now: Instant) -> T {
        if self.notes.is_none() {
            return self.machine.edit_catalog(edit, now);
        }
        let mut announcement = Announcement::default();
        let edit = |catalog: &mut Catalog| {
            let edited = edit(catalog);
            announcement = catalog.take_announcement();
            catalog.set_announcement(announcement.clone());
            edited
        };
        let edited = self.machine.edit_catalog(edit, now);
        self.note_catalog(&announcement, now);
        edited
    }

    fn note_catalog(&mut self, announcement: &Announcement, now: Instant) {
        if let Some(notes) = &mut self.notes {
            let (machine, stand_ins) = (&self.machine, notes.stand_ins);
            let names = Names {
                principal: &|it| stand_ins.principal(it),
                session: &|it| machine.id_of_session(it).map_or(it, |id| stand_ins.key_of(id, it)),
            };
            let call = Call::Catalog {
                at: Some(now.as_nanos()),
                catalog: State::from_catalog(machine.catalog(), names),
                changed: announcement.to_everyone,
                changed_for: RestrictedChange::from_announcement(announcement, names),
            };
            notes.tape.note(call);
        }
    }

    /// See [`Server::poll_ended_session`]. Not recorded: the edit that follows is.
    #[must_use]
    pub fn poll_ended_session(&mut self) -> Option<SessionKey> {
        self.machine.poll_ended_session()
    }

    /// See [`Server::poll_ready`].
    #[must_use]
    pub fn poll_ready(&mut self) -> Option<ExchangeId> {
        let exchange = self.machine.poll_ready()?;
        self.note(|| Call::Ready { exchange: Handle::from_key(exchange.0) });
        Some(exchange)
    }

    /// See [`Server::poll_transmit`].
    pub fn poll_transmit(
        &mut self,
        exchange: ExchangeId,
        now: Instant,
    ) -> Option<ServerTransmit<'_>> {
        let session = match &self.notes {
            Some(_) => self.machine.session_to_hide(exchange)?,
            None => None,
        };
        let transmit = self.machine.poll_transmit(exchange, now);
        if let Some(notes) = &mut self.notes {
            let stand_ins = notes.stand_ins;
            let left = transmit
                .as_ref()
                .map(|it| RecordedTransmit::from_transmit(it, stand_ins, session.as_ref()));
            notes.tape.note(Call::Poll {
                at: now.as_nanos(),
                exchange: Handle::from_key(exchange.0),
                transmit: left.as_ref().map(|left| left.noted(stand_ins)),
            });
        }
        transmit
    }

    /// See [`Server::poll_store`].
    #[must_use]
    pub fn poll_store(&mut self) -> Option<StoreAction> {
        let action = self.machine.poll_store()?;
        if let Some(notes) = &mut self.notes
            && let Some(action) = Action::from_action(&action, notes.stand_ins)
        {
            notes.tape.note(Call::Store { action });
        }
        Some(action)
    }

    /// See [`Server::handle_stored`].
    pub fn handle_stored(
        &mut self,
        read: ReadId,
        events: Result<Vec<StoredEvent>, NotStored>,
        now: Instant,
    ) {
        if let Some(notes) = &mut self.notes {
            let of = |event| Stored::from_event(event, notes.stand_ins);
            let events = events.as_ref().ok().map(|it| it.iter().map(of).collect());
            let (at, read) = (now.as_nanos(), Read::from_id(read));
            notes.tape.note(Call::Stored { at, read, events });
        }
        self.machine.handle_stored(read, events, now);
    }

    /// See [`Server::fail_read`].
    pub fn fail_read(&mut self, read: ReadId, now: Instant) {
        self.machine.fail_read(read, now);
    }

    /// See [`Server::handle_store`].
    pub fn handle_store(
        &mut self,
        action: ActionId,
        result: Result<StoreReply, StoreError>,
        now: Instant,
    ) {
        self.machine.handle_store(action, result, now);
    }

    /// See [`Server::handle_appended`].
    pub fn handle_appended(&mut self, place: &EventPosition) {
        self.machine.handle_appended(place);
    }

    /// See [`Server::handle_append_refused`].
    pub fn handle_append_refused(&mut self, place: &EventPosition, now: Instant) {
        self.machine.handle_append_refused(place, now);
    }

    /// See [`Server::handle_node_message`].
    pub fn handle_node_message(&mut self, message: &[u8], now: Instant) -> Option<AnnouncedChange> {
        self.machine.handle_node_message(message, now)
    }

    /// See [`Server::record_proof`].
    pub fn record_proof(
        &mut self,
        proof: String,
        ttl: Duration,
        caller: &Caller,
        now: Instant,
    ) -> Option<ProofId> {
        self.machine.record_proof(proof, ttl, caller, now)
    }

    /// See [`Server::poll_proof`].
    pub fn poll_proof(&mut self) -> Option<(ProofId, Result<(), StoreError>)> {
        self.machine.poll_proof()
    }

    /// See [`Server::share_task`].
    pub fn share_task(&mut self, command: TaskCommand, now: Instant) {
        self.machine.share_task(command, now);
    }

    /// See [`Server::poll_task`].
    pub fn poll_task(&mut self) -> Option<TaskStoreEvent> {
        self.machine.poll_task()
    }

    /// See [`Server::leave`].
    pub fn leave(&mut self) {
        self.machine.leave();
    }

    /// See [`Server::begin_handler`].
    #[must_use]
    pub fn begin_handler(&mut self, request: RequestHandle) -> Option<CallerHandle> {
        self.machine.begin_handler(request)
    }

    /// See [`Server::end_handler`].
    pub fn end_handler(&mut self, caller: CallerHandle) {
        self.machine.end_handler(caller);
    }

    /// Executes the call on a line.
    pub(super) fn perform(&mut self, call: &Call<'_>) -> Result<(), Unperformable> {
        let at = Instant::from_nanos;
        // The outcome of a call is compared when it is recorded again.
        match call {
            Call::Request { .. } => self.perform_request(call)?,
            Call::Disconnect { at: now, exchange } => {
                self.handle_disconnect(ExchangeId(exchange.key()), at(*now));
            }
            Call::Timeout { at: now } => self.handle_timeout(at(*now)),
            Call::Refuse { at: now, request, refusal } => {
                drop(self.refuse(*request, refusal.to_rejection(), at(*now)));
            }
            Call::Expiry { exchange, until } => {
                self.set_expiry(ExchangeId(exchange.key()), at(*until));
            }
            Call::Release { request, retry } => {
                self.release_connection(*request, *retry);
            }
            Call::Catalog { at: Some(now), catalog, changed, changed_for } => {
                let (now, state) = (at(*now), catalog.to_catalog()?);
                let announcement = RestrictedChange::to_announcement(changed_for, *changed);
                let edit = |catalog: &mut Catalog| {
                    *catalog = state;
                    catalog.set_announcement(announcement);
                };
                self.edit_catalog(edit, now);
            }
            Call::Stored { at: now, read, events } => {
                let events = events.as_ref().map(|it| it.iter().map(Stored::to_event).collect());
                let events: Option<Vec<StoredEvent>> = events.transpose()?;
                self.handle_stored(read.to_id(), events.ok_or(NotStored), at(*now));
            }
            Call::Store { .. } => drop(self.poll_store()),
            Call::Ready { .. } => drop(self.poll_ready()),
            Call::Poll { at: now, exchange, .. } => {
                drop(self.poll_transmit(ExchangeId(exchange.key()), at(*now)));
            }
            Call::Event { .. } => drop(self.poll_event()),
            Call::ServerCommand { at: now, command } => {
                drop(self.apply(command.clone(), at(*now)));
            }
            _ => return Err(MISPLACED),
        }
        Ok(())
    }

    fn perform_request(&mut self, call: &Call<'_>) -> Result<(), Unperformable> {
        let Call::Request {
            at,
            method,
            target,
            fields,
            contradictory,
            body,
            principal,
            scopes,
            address,
            refused,
            session,
            ..
        } = call
        else {
            return Err(MISPLACED);
        };
        let session = session.as_deref().map(session_of).transpose()?;
        self.machine.draw_next_session(session);
        let values = fields.iter().map(Field::value).collect::<Result<Vec<_>, _>>()?;
        let mut head = RequestHead::new(method, target);
        for (Field(name, _), value) in fields.iter().zip(&values) {
            head.field(name, value);
        }
        head.remote = address.map(RemoteAddress::new);
        head.contradictory = contradictory.as_deref().map(singular).transpose()?;
        let caller = match principal.as_deref().map(Principal::new) {
            Some(principal) if !scopes.is_empty() => {
                let scopes: Vec<String> =
                    scopes.iter().map(|scope| scope.as_ref().into()).collect();
                Caller::from_credentials(principal, scopes)
            }
            principal => principal.into(),
        };
        let permit = |_: Option<&ParsedBody<'_>>| match refused {
            Some(refused) => Err(refused.to_rejection()),
            None => Ok(()),
        };
        let (body, now) = (body.bytes()?, Instant::from_nanos(*at));
        let request = self.reader().read(&head, &body);
        let _ = self.handle_read_request(&head, request, &caller, &permit, now);
        Ok(())
    }
}

impl Recordable for Server {
    fn apply_noted(
        &mut self,
        command: ServerCommand<'_>,
        now: Instant,
        notes: &mut Notes,
    ) -> Result<Applied, CommandError> {
        server::apply_noted(self, command, now, notes)
    }
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

/// Returns the name of a field that must not be repeated.
fn singular(name: &str) -> Result<&'static str, Unperformable> {
    let names = [
        "Host",
        "Origin",
        "Mcp-Name",
        "Mcp-Method",
        "Content-Type",
        "Last-Event-ID",
        "Content-Length",
        "Content-Encoding",
        "Mcp-Session-Id",
        "MCP-Protocol-Version",
    ];
    let found = names.into_iter().find(|known| *known == name);
    found.ok_or(Unperformable("the field may be repeated"))
}

//! A server on HTTP on tape: what it is made of, and what its calls are when they are read back.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::RefCell;

use serde::{Deserialize, Serialize};

use crate::catalog::Catalog;
use crate::http::origin::HostTexts;
use crate::http::{AllowedHosts, ExchangeId, Principal, Refusal, RemoteAddress, RequestHead};
use crate::peer::Event;
use crate::peer::server::recorded::bare_request;
use crate::recording::exchange::{
    Field, Left, Read, Refused, StandIns, StoreAction as Action, Stored, session_of,
};
use crate::recording::{
    Call, Handle, MISPLACED, Machine, Payload, SharedTape, Start, Tape, Unperformable, decoded,
    describe, level, number,
};
use crate::{Instant, peer};

use super::body::ParsedBody;
use super::exchange::State;
use super::session::Transport;
use super::store::{EventStore, NotStored, ReadId, StoreAction, StoredEvent};
use super::{Answers, Server, ServerLimits, ServerOptions, ServerTimeouts, Transmit};
use super::{UnservableTool, mirrors_of};

/// How a server appears on HTTP, on the first line of a recording.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings<'a> {
    path: Option<Cow<'a, str>>,
    event_path: Option<Cow<'a, str>>,
    message_path: Option<Cow<'a, str>>,
    hosts: HostTexts,
    answers: Answers,
    event_store: EventStore,
    limits: ServerLimits,
    timeouts: ServerTimeouts,
}

impl<'a> Settings<'a> {
    fn of(options: &'a ServerOptions) -> Self {
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

    pub(crate) fn to_options(&self) -> Result<ServerOptions, Unperformable> {
        let owned = |path: &Option<Cow<'_, str>>| path.as_deref().map(String::from);
        let hosts = AllowedHosts::of_texts(&self.hosts);
        Ok(ServerOptions {
            path: owned(&self.path),
            event_path: owned(&self.event_path),
            message_path: owned(&self.message_path),
            hosts: hosts.map_err(|_| Unperformable("there can be no such host"))?,
            answers: self.answers,
            event_store: self.event_store,
            limits: self.limits.clone(),
            timeouts: self.timeouts.clone(),
        })
    }
}

/// A tape, and what stands there for secrets.
#[derive(Clone, Debug)]
pub(super) struct NoteBook {
    tape: SharedTape,
    stand_ins: StandIns,
}

impl NoteBook {
    pub(super) fn note<'a>(&self, call: impl Into<Option<Call<'a>>>) {
        self.tape.note(call);
    }

    pub(super) fn principal(&self, principal: Option<&Principal>) -> Option<String> {
        principal.map(|principal| self.stand_ins.principal(principal))
    }

    pub(super) fn note_stored(
        &self,
        read: ReadId,
        events: &Result<Vec<StoredEvent>, NotStored>,
        now: Instant,
    ) {
        let events = events.as_ref().ok();
        let events =
            events.map(|it| it.iter().map(|event| Stored::of(event, self.stand_ins)).collect());
        self.note(Call::Stored { at: now.as_nanos(), read: Read::of(read), events });
    }

    pub(super) fn note_action(&self, action: &StoreAction) {
        self.note(Call::Store { action: Action::of(action, self.stand_ins) });
    }
}

impl Server {
    /// A server like that of [`new`](Self::new) whose calls are noted on `tape`, from the first one
    /// on.
    ///
    /// # Errors
    ///
    /// See [`new`](Self::new). Nothing is noted then.
    pub fn recorded(
        peer: peer::ServerOptions,
        options: ServerOptions,
        secret: [u8; 32],
        seed: u64,
        tape: Tape,
    ) -> Result<Self, UnservableTool> {
        Self::noted(peer, options, secret, seed, tape, StandIns::keyed(secret))
    }

    /// The server of a recording.
    pub(crate) fn replayed(
        peer: peer::ServerOptions,
        options: ServerOptions,
        tape: Tape,
    ) -> Result<Self, UnservableTool> {
        Self::noted(peer, options, [0; 32], 0, tape, StandIns::NONE)
    }

    fn noted(
        peer: peer::ServerOptions,
        options: ServerOptions,
        secret: [u8; 32],
        seed: u64,
        mut tape: Tape,
        stand_ins: StandIns,
    ) -> Result<Self, UnservableTool> {
        if let (_, Some(unservable)) = mirrors_of(peer.catalog_to_offer()) {
            return Err(unservable);
        }
        let settings = Box::new(peer::server::recorded::Settings::of(&peer));
        let http = Box::new(Settings::of(&options));
        tape.write(&Start::of(Machine::HttpServer { options: settings, http }));
        let mut server = Self::new(peer, options, secret, seed)?;
        server.tape = Some(NoteBook { tape: SharedTape::new(tape), stand_ins });
        Ok(server)
    }

    pub(crate) fn take_notes(&mut self) -> Vec<u8> {
        self.tape.as_ref().map(|book| book.tape.take()).unwrap_or_default()
    }

    /// A request is handled and noted.
    pub(super) fn handle_noted<'f>(
        &mut self,
        book: &NoteBook,
        head: &RequestHead<'_>,
        body: &'f [u8],
        principal: Option<&Principal>,
        permit: &dyn Fn(Option<&ParsedBody<'_>>) -> Result<(), Refusal>,
        now: Instant,
    ) -> (ExchangeId, Option<Event<'f>>) {
        let refusal = RefCell::new(None);
        let asked = |body: Option<&ParsedBody<'_>>| {
            permit(body).inspect_err(|refused| *refusal.borrow_mut() = Some(refused.clone()))
        };
        let handled = self.handle_route(head, body, principal, &asked, now);
        let (exchange, event) =
            handled.unwrap_or_else(|refused| (self.respond_whole(refused), None));
        let drawn = self.session_ids.take_drawn();
        let refusal = refusal.borrow();
        let stand_ins = book.stand_ins;
        let session = session_in_query(head).map(|id| stand_ins.named_session(id.as_bytes()));
        let session = session.as_ref().map(|id| String::from_utf8_lossy(id));
        book.note(Call::Request {
            at: now.as_nanos(),
            method: head.method.into(),
            target: match session {
                Some(id) => alloc::format!("{}?sessionId={id}", head.path).into(),
                None => head.path.into(),
            },
            fields: fields_of(head, stand_ins),
            contradictory: head.contradictory.map(Cow::Borrowed),
            body: Payload::of(body),
            principal: principal.map(|it| stand_ins.principal(it).into()),
            address: head.remote.map(|it| stand_ins.address(it)),
            refused: refusal.as_ref().map(Refused::of),
            session: drawn.map(|id| stand_ins.session(&id).into()),
            exchange: Handle::of(exchange.0),
            event: event.as_ref().map(|event| describe(event).into()),
        });
        (exchange, event)
    }

    /// What is next on an exchange is handed out and noted.
    pub(super) fn transmit_noted(
        &mut self,
        book: &NoteBook,
        exchange: ExchangeId,
        now: Instant,
    ) -> Option<Transmit<'_>> {
        let entry = self.exchanges.get(exchange.0)?;
        // Here nothing changes.
        if matches!(entry.state, State::Waiting | State::Reading) {
            return None;
        }
        let connection = entry.connection.and_then(|key| self.connections.get(key));
        let session = connection.and_then(|connection| connection.session.as_ref());
        let old = session.filter(|session| session.transport == Transport::EventStream);
        let id = old.map(|session| session.id);
        let transmit = self.next_transmit(exchange, now);
        let left = transmit.as_ref().map(|it| Left::of(it, book.stand_ins, id.as_ref()));
        book.note(Call::Poll {
            at: now.as_nanos(),
            exchange: Handle::of(exchange.0),
            transmit: left.as_ref().map(|left| left.noted(book.stand_ins)),
        });
        drop(left);
        transmit
    }

    /// Makes the call that a line tells of.
    pub(crate) fn perform(&mut self, call: &Call<'_>) -> Result<(), Unperformable> {
        let at = Instant::from_nanos;
        let when = |now: &Option<u64>| now.map(at).ok_or(Unperformable("the time is missing"));
        // What comes of a call is compared when it is noted again.
        match call {
            Call::Request { .. } => self.perform_request(call)?,
            Call::Disconnect { at: now, exchange } => {
                self.handle_disconnect(ExchangeId(exchange.key()), at(*now));
            }
            Call::Timeout { at: now } => self.handle_timeout(at(*now)),
            Call::Respond { at: now, request, result } => {
                let _ = self.respond_with(request.to_request(), result, when(now)?);
            }
            Call::Reject { at: now, request, error } => {
                let _ = self.reject(request.to_request(), error.clone(), when(now)?);
            }
            Call::Refuse { at: now, request, refusal } => {
                let _ = self.refuse(request.to_request(), refusal.to_refusal(), at(*now));
            }
            Call::RequireInput { at: now, request, method, required } => {
                let request = bare_request(request.to_request(), method);
                let _ = self.require_input(request, &decoded(required)?, at(*now));
            }
            Call::WithdrawInput { at: now, request } => {
                self.withdraw_input(request.to_request(), at(*now));
            }
            Call::TaskProgress { at: now, request, params } => {
                let _ = self.task_progress(request.to_request(), params, when(now)?);
            }
            Call::Progress { at: now, request, progress, total, message } => {
                let total = total.as_deref().map(number).transpose()?;
                let (request, message) = (request.to_request(), message.as_deref());
                self.progress(request, number(progress)?, total, message, at(*now));
            }
            Call::Log { at: now, request, level: name, logger, data } => {
                let (request, level) = (request.map(Handle::to_request), level(name)?);
                let _ = self.log(request, level, logger.as_deref(), data, when(now)?);
            }
            Call::Expiry { exchange, until } => {
                self.set_expiry(ExchangeId(exchange.key()), at(*until));
            }
            Call::Release { request, retry } => {
                self.release_connection(request.to_request(), *retry);
            }
            Call::ResourceUpdated { at: now, uri } => self.resource_updated(uri, when(now)?),
            Call::TaskChanged { at: now, status, principal } => {
                let principal = principal.as_deref().map(Principal::new);
                self.task_changed(&decoded(status)?, principal.as_ref(), when(now)?);
            }
            Call::Announce { at: now, changed } => self.announce(changed.to_changes(), when(now)?),
            Call::Catalog { at: now, catalog, changed: Some(changed) } => {
                let (now, state) = (when(now)?, catalog.to_catalog()?);
                let edit = |catalog: &mut Catalog| {
                    *catalog = state;
                    catalog.set_changes(changed.to_changes());
                };
                self.edit_catalog(edit, now);
            }
            Call::Close { at: now } => self.close(when(now)?),
            Call::Stored { at: now, read, events } => {
                let events = events.as_ref().map(|it| it.iter().map(Stored::to_event).collect());
                let events: Option<Vec<StoredEvent>> = events.transpose()?;
                self.handle_stored(read.to_id(), events.ok_or(NotStored), at(*now));
            }
            Call::Store { .. } => {
                let _ = self.poll_store();
            }
            Call::Ready { .. } => {
                let _ = self.poll_ready();
            }
            Call::Poll { at: now, exchange, .. } => {
                let _ = self.poll_transmit(ExchangeId(exchange.key()), at(*now));
            }
            Call::Event { .. } => {
                let _ = self.poll_event();
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
            address,
            refused,
            session,
            ..
        } = call
        else {
            return Err(MISPLACED);
        };
        let session = session.as_deref().map(session_of).transpose()?;
        self.session_ids.draw_next(session);
        let values = fields.iter().map(Field::value).collect::<Result<Vec<_>, _>>()?;
        let mut head = RequestHead::new(method, target);
        for (Field(name, _), value) in fields.iter().zip(&values) {
            head.field(name, value);
        }
        head.remote = address.map(RemoteAddress::new);
        head.contradictory = contradictory.as_deref().map(singular).transpose()?;
        let principal = principal.as_deref().map(Principal::new);
        let permit = |_: Option<&ParsedBody<'_>>| match refused {
            Some(refused) => Err(refused.to_refusal()),
            None => Ok(()),
        };
        let (body, now) = (body.bytes()?, Instant::from_nanos(*at));
        let _ = self.handle_request_if(&head, &body, principal.as_ref(), &permit, now);
        Ok(())
    }
}

fn session_in_query<'a>(head: &RequestHead<'a>) -> Option<&'a str> {
    head.query.0.split('&').find_map(|pair| pair.strip_prefix("sessionId="))
}

/// The fields that the machine looks at. What authorizes a request is not among them.
fn fields_of<'a>(head: &RequestHead<'a>, stand_ins: StandIns) -> Vec<Field<'a>> {
    let mut fields: Vec<Field<'a>> = Vec::new();
    let single = [
        ("host", head.host),
        ("origin", head.origin),
        ("content-type", head.content_type),
        ("content-length", head.content_length),
        ("mcp-protocol-version", head.protocol_version),
        ("mcp-method", head.mcp_method),
        ("mcp-name", head.mcp_name),
        ("last-event-id", head.last_event_id),
    ];
    fields.extend(single.into_iter().filter_map(|(name, it)| Some(Field::of(name, it?))));
    fields.extend(head.accept.iter().map(|value| Field::of("accept", *value)));
    let session = head.session_id.map(|id| stand_ins.named_session(id));
    fields.extend(session.map(|id| Field::of("mcp-session-id", id)));
    fields.extend(head.params.iter().map(|(name, value)| Field::of(*name, *value)));
    fields
}

/// The name of a field that must not be repeated.
fn singular(name: &str) -> Result<&'static str, Unperformable> {
    let names = [
        "Host",
        "Origin",
        "Mcp-Name",
        "Mcp-Method",
        "Content-Type",
        "Last-Event-ID",
        "Content-Length",
        "Mcp-Session-Id",
        "MCP-Protocol-Version",
    ];
    let found = names.into_iter().find(|known| *known == name);
    found.ok_or(Unperformable("that field may be repeated"))
}

use alloc::string::String;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::time::Duration;

use super::{Recordable, Recorded, Tape};
use crate::catalog::{Catalog, CatalogError};
use crate::http::server::header_params_by_tool;
use crate::http::{
    ActionId, CallerHandle, EventPosition, ExchangeId, HttpRejection, HttpServerOptions, NotStored,
    ParsedBody, ProofId, ReadId, ReadRequest, RequestHead, Server, ServerTransmit, SessionId,
    StoreAction, StoreError, StoreReply, StoredEvent, TaskCommand, TaskStoreEvent,
};
use crate::peer::{self, CommandError, Event, RequestHandle};
use crate::{Caller, Instant, PanicGuard, SessionKey};

/// A call of an HTTP server.
#[allow(unnameable_types, reason = "only the module `recording` reads it")]
#[derive(Debug)]
pub enum HttpServerCall<'a> {
    Request {
        catalog: &'a Catalog,
        head: &'a RequestHead<'a>,
        body: &'a [u8],
        caller: &'a Caller,
        /// The refusal by the application.
        refusal: Option<HttpRejection>,
        /// The session that the request opened.
        session: Option<SessionId>,
        exchange: ExchangeId,
        event: Option<&'a Event<'a>>,
        now: Instant,
    },
    Disconnect(ExchangeId, Instant),
    Refuse(RequestHandle, &'a HttpRejection, Instant),
    Expiry(ExchangeId, Instant),
    Release(RequestHandle, Duration),
    /// The application has just edited the catalog.
    Edited(&'a mut Catalog),
    /// The server has taken over that edit.
    Catalog(&'a Server, Instant),
    Stored(ReadId, Option<&'a [StoredEvent]>, Instant),
    /// `None` if those that waited were dropped.
    Store(Option<&'a StoreAction>),
    FailRead(ReadId, Instant),
    Ready(ExchangeId),
    Poll {
        exchange: ExchangeId,
        /// The HTTP+SSE session whose id may be in the output.
        session: Option<&'a SessionId>,
        transmit: Option<&'a ServerTransmit<'a>>,
        now: Instant,
    },
}

impl Recordable for Server {
    type Settings = (peer::ServerOptions, HttpServerOptions, [u8; 32]);
    type Call<'a> = HttpServerCall<'a>;
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
    ) -> Result<Self, CatalogError> {
        // The actions of a shared store are not part of a recording.
        let tape = tape.into().filter(|_| options.shared.is_none());
        if tape.is_some()
            && let (_, Some(unservable)) = header_params_by_tool(peer.catalog_to_offer())
        {
            return Err(unservable);
        }
        let settings = (peer, options, secret);
        let recorder = tape.and_then(|tape| tape.open::<Server>(&settings));
        let (peer, options, _) = settings;
        Ok(Self { machine: Server::new(peer, options, secret, seed)?, recorder })
    }

    /// See [`Server::handle_request`].
    pub fn handle_request<'f>(
        &mut self,
        head: &RequestHead<'_>,
        body: &'f [u8],
        caller: &Caller,
        now: Instant,
    ) -> (ExchangeId, Option<Event<'f>>) {
        let mut request = self.machine.reader().read(head, body, caller);
        self.handle_read_request(head, &mut request, &|_| Ok(()), now)
    }

    /// See [`Server::handle_read_request`].
    pub fn handle_read_request<'f>(
        &mut self,
        head: &RequestHead<'_>,
        request: &mut ReadRequest<'f>,
        permit: &dyn Fn(Option<&ParsedBody<'_>>) -> Result<(), HttpRejection>,
        now: Instant,
    ) -> (ExchangeId, Option<Event<'f>>) {
        let Self { machine, recorder: Some(recorder) } = self else {
            return self.machine.handle_read_request(head, request, permit, now);
        };
        let body = request.text();
        let refusal = RefCell::new(None);
        let permit = |body: Option<&ParsedBody<'_>>| {
            permit(body).inspect_err(|refused| *refusal.borrow_mut() = Some(refused.clone()))
        };
        let (exchange, event) = machine.handle_read_request(head, request, &permit, now);
        let session = machine.take_drawn_session();
        Self::tell(
            recorder,
            HttpServerCall::Request {
                catalog: machine.catalog(),
                head,
                body,
                caller: request.caller(),
                refusal: refusal.into_inner(),
                session,
                exchange,
                event: event.as_ref(),
                now,
            },
        );
        (exchange, event)
    }

    /// See [`Server::handle_disconnect`].
    pub fn handle_disconnect(&mut self, exchange: ExchangeId, now: Instant) {
        self.note(HttpServerCall::Disconnect(exchange, now));
        self.machine.handle_disconnect(exchange, now);
    }

    /// See [`Server::set_expiry`].
    pub fn set_expiry(&mut self, exchange: ExchangeId, deadline: Instant) {
        if self.machine.ends_at_expiry(exchange.0) {
            self.note(HttpServerCall::Expiry(exchange, deadline));
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
        self.note(HttpServerCall::Refuse(request, &refusal, now));
        self.machine.refuse(request, refusal, now)
    }

    /// See [`Server::release_connection`].
    pub fn release_connection(&mut self, request: RequestHandle, retry: Duration) {
        self.note(HttpServerCall::Release(request, retry));
        self.machine.release_connection(request, retry);
    }

    /// See [`Server::catch_panics`].
    pub fn catch_panics(&mut self, guard: PanicGuard) {
        self.machine.catch_panics(guard);
    }

    /// See [`Server::edit_catalog`].
    pub fn edit_catalog<T>(&mut self, edit: impl FnOnce(&mut Catalog) -> T, now: Instant) -> T {
        let Self { machine, recorder } = self;
        let edit = |catalog: &mut Catalog| {
            let edited = edit(catalog);
            if let Some(recorder) = recorder.as_mut() {
                Self::tell(recorder, HttpServerCall::Edited(catalog));
            }
            edited
        };
        let edited = machine.edit_catalog(edit, now);
        if let Some(recorder) = recorder {
            Self::tell(recorder, HttpServerCall::Catalog(machine, now));
        }
        edited
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
        self.note(HttpServerCall::Ready(exchange));
        Some(exchange)
    }

    /// See [`Server::poll_transmit`].
    pub fn poll_transmit(
        &mut self,
        exchange: ExchangeId,
        now: Instant,
    ) -> Option<ServerTransmit<'_>> {
        let Self { machine, recorder: Some(recorder) } = self else {
            return self.machine.poll_transmit(exchange, now);
        };
        let session = machine.session_to_hide(exchange)?;
        let transmit = machine.poll_transmit(exchange, now);
        Self::tell(
            recorder,
            HttpServerCall::Poll {
                exchange,
                session: session.as_ref(),
                transmit: transmit.as_ref(),
                now,
            },
        );
        transmit
    }

    /// See [`Server::poll_store`].
    #[must_use]
    pub fn poll_store(&mut self) -> Option<StoreAction> {
        // Without an action, it may still have dropped some, which changes the order of the next.
        let queued = self.recorder.is_some() && self.machine.has_store_actions();
        let action = self.machine.poll_store();
        if queued {
            self.note(HttpServerCall::Store(action.as_ref()));
        }
        action
    }

    /// See [`Server::handle_stored`].
    pub fn handle_stored(
        &mut self,
        read: ReadId,
        events: Result<Vec<StoredEvent>, NotStored>,
        now: Instant,
    ) {
        self.note(HttpServerCall::Stored(read, events.as_deref().ok(), now));
        self.machine.handle_stored(read, events, now);
    }

    /// See [`Server::fail_read`].
    pub fn fail_read(&mut self, read: ReadId, now: Instant) {
        self.note(HttpServerCall::FailRead(read, now));
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
    pub fn handle_appended(&mut self, position: &EventPosition) {
        self.machine.handle_appended(position);
    }

    /// See [`Server::handle_append_refused`].
    pub fn handle_append_refused(&mut self, position: &EventPosition, now: Instant) {
        self.machine.handle_append_refused(position, now);
    }

    /// See [`Server::handle_node_message`].
    pub fn handle_node_message(&mut self, message: &[u8], now: Instant) {
        self.machine.handle_node_message(message, now);
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

    /// See [`Server::admit_handler`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn admit_handler(&mut self, request: RequestHandle) -> Result<(), HttpRejection> {
        self.machine.admit_handler(request)
    }

    /// See [`Server::release_handler`].
    pub fn release_handler(&mut self, request: RequestHandle) {
        self.machine.release_handler(request);
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
}

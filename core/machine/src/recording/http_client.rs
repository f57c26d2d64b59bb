//! Recorded HTTP clients: their settings, inputs and outputs.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::binding::HeaderFields;
use crate::http::client::{SESSION_ID, is_own_field};
use crate::http::{
    Client, ClientLimits, ClientTransmit, ExchangeFailure, ExchangeId, HttpClientOptions,
    IncomingResponse, Location, LostSession, Status,
};
use crate::peer::{self, Applied, ClientCommand, CommandError, TransportFailure};
use crate::{Backoff, Instant};

use super::arguments::{MISPLACED, Unperformable};
use super::call::Call;
use super::client::{ClientSettings, command_line};
use super::exchange::{Cause, Field, StandIns};
use super::handle::Handle;
use super::payload::Payload;
use super::recorded::{Notes, Recordable, Recorded};
use super::start::{Machine, Start};
use super::tape::Tape;

/// The server URL and the HTTP settings of the client, on the first line of a recording.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HttpClientSettings<'a> {
    url: Cow<'a, str>,
    limits: ClientLimits,
    backoff: Backoff,
    lost_session: LostSession,
    listen: bool,
    old_transport: bool,
}

impl<'a> HttpClientSettings<'a> {
    fn from_options(options: &'a HttpClientOptions, stand_ins: StandIns) -> Self {
        Self {
            url: stand_ins.url(options.url.as_str()).into(),
            limits: options.limits.clone(),
            backoff: options.backoff,
            lost_session: options.lost_session,
            listen: options.listen,
            old_transport: options.old_transport,
        }
    }

    pub(super) fn to_options(&self) -> Result<HttpClientOptions, Unperformable> {
        let url = Location::parse(&self.url);
        Ok(HttpClientOptions {
            url: url.map_err(|_| Unperformable("the server URL is malformed"))?,
            // They may be secrets, so recordings do not contain them.
            headers: HeaderFields::new(),
            limits: self.limits.clone(),
            backoff: self.backoff,
            lost_session: self.lost_session,
            listen: self.listen,
            old_transport: self.old_transport,
        })
    }
}

impl Notes {
    fn note_response(
        &mut self,
        exchange: ExchangeId,
        head: &IncomingResponse<'_>,
        options: &HttpClientOptions,
        now: Instant,
    ) {
        let length_max = options.limits.session_id_length_max;
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
        self.tape.note(Call::Response { at, exchange, status, fields });
    }

    fn note_transmit(&mut self, transmit: &ClientTransmit, options: &HttpClientOptions) {
        let length_max = options.limits.session_id_length_max;
        let call = match transmit {
            ClientTransmit::Abort(exchange) => {
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
        self.tape.note(call);
    }
}

impl Recorded<Client> {
    /// Creates a client that records its commands, inputs and outputs on `tape`, if there is one,
    /// from the first one on. See [`Client::new`].
    #[must_use]
    pub fn new(
        peer: peer::ClientOptions,
        http: HttpClientOptions,
        seed: u64,
        now: Instant,
        tape: impl Into<Option<Tape>>,
    ) -> Self {
        // Session ids cannot be guessed, so a key derived from the seed is enough to hide them.
        let key = Sha256::new().chain_update(seed.to_le_bytes()).finalize().into();
        Self::keyed(peer, http, seed, now, tape.into(), StandIns::keyed(key))
    }

    /// Creates the client of a recording.
    pub(super) fn replayed(
        peer: peer::ClientOptions,
        http: HttpClientOptions,
        seed: u64,
        now: Instant,
        tape: Tape,
    ) -> Self {
        Self::keyed(peer, http, seed, now, Some(tape), StandIns::NONE)
    }

    fn keyed(
        peer: peer::ClientOptions,
        http: HttpClientOptions,
        seed: u64,
        now: Instant,
        tape: Option<Tape>,
        stand_ins: StandIns,
    ) -> Self {
        let notes = tape.map(|mut tape| {
            tape.write(&Start::new(Machine::HttpClient {
                at: now.as_nanos(),
                seed,
                options: Box::new(ClientSettings::from_options(&peer)),
                http: Box::new(HttpClientSettings::from_options(&http, stand_ins)),
            }));
            Notes { tape, stand_ins }
        });
        Self::with(Client::new(peer, http, seed, now), notes)
    }

    /// See [`Client::handle_response`].
    pub fn handle_response(
        &mut self,
        exchange: ExchangeId,
        head: &IncomingResponse<'_>,
        now: Instant,
    ) {
        if let Some(notes) = &mut self.notes {
            notes.note_response(exchange, head, self.machine.options(), now);
        }
        self.machine.handle_response(exchange, head, now);
    }

    /// See [`Client::handle_body`].
    pub fn handle_body(&mut self, exchange: ExchangeId, bytes: &[u8], now: Instant) {
        self.note(|| Call::Body {
            at: now.as_nanos(),
            exchange: Handle::from_key(exchange.0),
            bytes: Payload::from_bytes(bytes),
        });
        self.machine.handle_body(exchange, bytes, now);
    }

    /// See [`Client::handle_body_end`].
    pub fn handle_body_end(&mut self, exchange: ExchangeId, now: Instant) {
        self.note(|| Call::BodyEnd { at: now.as_nanos(), exchange: Handle::from_key(exchange.0) });
        self.machine.handle_body_end(exchange, now);
    }

    /// See [`Client::handle_exchange_failed`].
    pub fn handle_exchange_failed(
        &mut self,
        exchange: ExchangeId,
        failure: ExchangeFailure,
        now: Instant,
    ) {
        self.refuse(exchange, failure.into(), now);
    }

    /// See [`Client::refuse`].
    pub fn refuse(&mut self, exchange: ExchangeId, failure: TransportFailure, now: Instant) {
        self.note(|| Call::ExchangeFailed {
            at: now.as_nanos(),
            exchange: Handle::from_key(exchange.0),
            failure: Cause::from_failure(&failure),
        });
        self.machine.refuse(exchange, failure, now);
    }

    /// See [`Client::pause`].
    pub fn pause(&mut self, exchange: ExchangeId, now: Instant) {
        self.note(|| Call::Pause { at: now.as_nanos(), exchange: Handle::from_key(exchange.0) });
        self.machine.pause(exchange, now);
    }

    /// See [`Client::resume`].
    pub fn resume(&mut self, exchange: ExchangeId, now: Instant) {
        self.note(|| Call::Resume { at: now.as_nanos(), exchange: Handle::from_key(exchange.0) });
        self.machine.resume(exchange, now);
    }

    /// See [`Client::poll_transmit`].
    #[must_use]
    pub fn poll_transmit(&mut self) -> Option<ClientTransmit> {
        let transmit = self.machine.poll_transmit()?;
        if let Some(notes) = &mut self.notes {
            notes.note_transmit(&transmit, self.machine.options());
        }
        Some(transmit)
    }

    /// Executes the call on a line.
    pub(super) fn perform(&mut self, call: &Call<'_>) -> Result<(), Unperformable> {
        let at = Instant::from_nanos;
        let id = |exchange: &Handle| ExchangeId(exchange.key());
        // The outcome of a call is compared when it is recorded again.
        match call {
            Call::Response { at: now, exchange, status, fields } => {
                let values = fields.iter().map(Field::value).collect::<Result<Vec<_>, _>>()?;
                let mut head = IncomingResponse::new(Status(*status));
                for (Field(name, _), value) in fields.iter().zip(&values) {
                    head.field(name, value);
                }
                self.handle_response(id(exchange), &head, at(*now));
            }
            Call::Body { at: now, exchange, bytes } => {
                self.handle_body(id(exchange), &bytes.bytes()?, at(*now));
            }
            Call::BodyEnd { at: now, exchange } => self.handle_body_end(id(exchange), at(*now)),
            Call::ExchangeFailed { at: now, exchange, failure } => {
                self.refuse(id(exchange), failure.to_failure(), at(*now));
            }
            Call::Pause { at: now, exchange } => self.pause(id(exchange), at(*now)),
            Call::Resume { at: now, exchange } => self.resume(id(exchange), at(*now)),
            Call::Timeout { at: now } => self.handle_timeout(at(*now)),
            Call::Send { .. } | Call::Abort { .. } => drop(self.poll_transmit()),
            Call::Event { .. } => drop(self.poll_event()),
            Call::ClientCommand { at: now, command } => {
                drop(self.apply(command.clone(), at(*now)));
            }
            _ => return Err(MISPLACED),
        }
        Ok(())
    }
}

impl Recordable for Client {
    fn apply_noted(
        &mut self,
        command: ClientCommand<'_>,
        now: Instant,
        notes: &mut Notes,
    ) -> Result<Applied, CommandError> {
        notes.tape.note(command_line(self, command.clone(), now));
        self.apply(command, now)
    }
}

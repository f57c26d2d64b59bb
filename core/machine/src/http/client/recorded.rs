//! A client on HTTP on tape: what it is made of, and what its calls are when they are read back.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::http::{Backoff, ExchangeId, Location, Status};
use crate::recording::exchange::{Field, StandIns};
use crate::recording::{
    Call, Handle, MISPLACED, Machine, Payload, Start, Tape, Unperformable, decoded, level, method,
};
use crate::{Instant, peer};

use super::transmit::SESSION_ID;
use super::{Client, ClientLimits, ClientOptions, IncomingResponse, LostSession, Transmit};

/// Where the server is and how the client goes about HTTP, on the first line of a recording.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings<'a> {
    url: Cow<'a, str>,
    limits: ClientLimits,
    backoff: Backoff,
    lost_session: LostSession,
    listen: bool,
    old_transport: bool,
}

impl<'a> Settings<'a> {
    fn of(options: &'a ClientOptions, stand_ins: StandIns) -> Self {
        Self {
            url: stand_ins.url(options.url.as_str()).into(),
            limits: options.limits.clone(),
            backoff: options.backoff,
            lost_session: options.lost_session,
            listen: options.listen,
            old_transport: options.old_transport,
        }
    }

    pub(crate) fn to_options(&self) -> Result<ClientOptions, Unperformable> {
        let url = Location::parse(&self.url);
        Ok(ClientOptions {
            url: url.map_err(|_| Unperformable("that is not the URL of a server"))?,
            limits: self.limits.clone(),
            backoff: self.backoff,
            lost_session: self.lost_session,
            listen: self.listen,
            old_transport: self.old_transport,
        })
    }
}

/// A tape, and what stands there for secrets.
#[derive(Debug)]
pub(super) struct NoteBook {
    tape: Tape,
    stand_ins: StandIns,
}

impl NoteBook {
    pub(super) fn note<'a>(&mut self, call: impl Into<Option<Call<'a>>>) {
        self.tape.note(call);
    }

    pub(super) fn note_response(
        &mut self,
        exchange: ExchangeId,
        head: &IncomingResponse<'_>,
        options: &ClientOptions,
        now: Instant,
    ) {
        let length_max = options.limits.session_id_length_max;
        // Nonces are for who answers challenges, and that is not this machine.
        let fields = head.fields().filter(|(name, _)| *name != "dpop-nonce");
        let fields = fields.map(|(name, value)| match name {
            SESSION_ID => Field::of(name, self.stand_ins.foreign_session(value, length_max)),
            "location" => {
                let path = value.split(|byte| *byte == b'?').next().unwrap_or_default();
                Field::of(name, if self.stand_ins.is_on() { path } else { value })
            }
            _ => Field::of(name, value),
        });
        let (at, exchange) = (now.as_nanos(), Handle::of(exchange.0));
        let (status, fields) = (head.status.0, fields.collect());
        self.tape.note(Call::Response { at, exchange, status, fields });
    }

    pub(super) fn note_transmit(&mut self, transmit: &Transmit, options: &ClientOptions) {
        let length_max = options.limits.session_id_length_max;
        let call = match transmit {
            Transmit::Abort(exchange) => Call::Abort { exchange: Handle::of(exchange.0) },
            Transmit::Send(request) => {
                let fields = request.fields().map(|(name, value)| match name {
                    SESSION_ID => {
                        let id = self.stand_ins.foreign_session(value.as_bytes(), length_max);
                        Field::of(name, id)
                    }
                    _ => Field::of(name, value.as_bytes()),
                });
                Call::Send {
                    exchange: Handle::of(request.exchange.0),
                    method: request.method.into(),
                    // What the server names in a body, to send messages to, may have more to it.
                    url: request.url.as_str().split('?').next().unwrap_or_default().into(),
                    fields: fields.collect(),
                    body: Payload::of(&request.body),
                }
            }
        };
        self.tape.note(call);
    }
}

impl Client {
    /// A client like that of [`new`](Self::new) whose calls are noted on `tape`, from the first one
    /// on.
    #[must_use]
    pub fn recorded(
        peer: peer::ClientOptions,
        http: ClientOptions,
        seed: u64,
        now: Instant,
        tape: Tape,
    ) -> Self {
        // The names of sessions have entropy of their own, as nobody is to guess them.
        let key = Sha256::new().chain_update(seed.to_le_bytes()).finalize().into();
        Self::noted(peer, http, seed, now, tape, StandIns::keyed(key))
    }

    /// The client of a recording.
    pub(crate) fn replayed(
        peer: peer::ClientOptions,
        http: ClientOptions,
        seed: u64,
        now: Instant,
        tape: Tape,
    ) -> Self {
        Self::noted(peer, http, seed, now, tape, StandIns::NONE)
    }

    fn noted(
        peer: peer::ClientOptions,
        http: ClientOptions,
        seed: u64,
        now: Instant,
        mut tape: Tape,
        stand_ins: StandIns,
    ) -> Self {
        tape.write(&Start::of(Machine::HttpClient {
            at: now.as_nanos(),
            seed,
            options: Box::new(peer::client::recorded::Settings::of(&peer)),
            http: Box::new(Settings::of(&http, stand_ins)),
        }));
        let tape = Some(Box::new(NoteBook { tape, stand_ins }));
        Self { tape, ..Self::new(peer, http, seed, now) }
    }

    pub(crate) fn take_notes(&mut self) -> Vec<u8> {
        self.tape.as_mut().map(|book| book.tape.take()).unwrap_or_default()
    }

    /// Makes the call that a line tells of.
    pub(crate) fn perform(&mut self, call: &Call<'_>) -> Result<(), Unperformable> {
        let at = Instant::from_nanos;
        let when = |now: &Option<u64>| now.map(at).ok_or(Unperformable("the time is missing"));
        let id = |exchange: &Handle| ExchangeId(exchange.key());
        // What comes of a call is compared when it is noted again.
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
            Call::Started { at: now, method: name, params, options, other } => {
                let (options, now) = (options.to_options()?, at(*now));
                let _ = if *other {
                    self.call_other(name, params, &options, now)
                } else {
                    self.call(method(name)?, params, &options, now)
                };
            }
            Call::Cancel { at: now, call, reason } => {
                self.cancel(call.to_call(), reason, at(*now));
            }
            Call::Notify { at: now, method: name, params } => {
                let _ = self.notify(method(name)?, params, when(now)?);
            }
            Call::SetLogLevel { at: now, level: name } => {
                let _ = self.set_log_level(level(name)?, at(*now));
            }
            Call::Subscribe { at: now, filter } => {
                let _ = self.subscribe(&decoded(filter)?, at(*now));
            }
            Call::AnswerInput { at: now, input, result } => {
                let _ = self.answer_input_with(input.to_handle(), result, at(*now));
            }
            Call::RefuseInput { at: now, input, error } => {
                let _ = self.refuse_input(input.to_handle(), error.clone(), when(now)?);
            }
            Call::Respond { at: now, request, result } => {
                let _ = self.respond_with(request.to_request(), result, when(now)?);
            }
            Call::Reject { at: now, request, error } => {
                let _ = self.reject(request.to_request(), error.clone(), when(now)?);
            }
            Call::Close { at: now } => self.close(when(now)?),
            Call::Send { .. } | Call::Abort { .. } => {
                let _ = self.poll_transmit();
            }
            Call::Event { .. } => {
                let _ = self.poll_event();
            }
            _ => return Err(MISPLACED),
        }
        Ok(())
    }
}

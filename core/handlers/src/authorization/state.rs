use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::task::Context;
use core::time::Duration;

use mcp_sansio::Instant;
use mcp_sansio::http::{ClientTransmit, ExchangeFailure, ExchangeId, IncomingResponse, Location};
use mcp_sansio::peer::TransportFailure;
use mcp_sansio_oauth::client::{AuthorizationClient, AuthorizationEvent, Routing};

use crate::client::http::HttpClient;
use crate::executor::PanicGuard;
use crate::threading::Threading;

use super::tasks::Tasks;
use super::{Authorization, Observer};

/// How long the store may take at the end of a connection to finish its saves: losing a renewed
/// refresh token costs the user a sign-in. Equal to the timeout for the server.
const STORE_TIMEOUT: Duration = Duration::from_secs(5);

/// The authorization layer between the machine of a connection and the network.
pub(crate) enum AuthorizationState<K: Threading> {
    /// The connection has no authorization.
    Disabled,
    /// The clock or the source of entropy is missing; the adapter or the application must set it.
    MissingRuntime,
    /// The authorization is in use.
    Enabled(Box<EnabledAuthorization<K>>),
}

pub(crate) struct EnabledAuthorization<K: Threading> {
    client: AuthorizationClient,
    tasks: Tasks<K>,
    observers: Vec<Observer>,
    unix_time: Arc<dyn Fn() -> u64 + Send + Sync>,
    /// The deadline for saves to the store, once the connection is closed.
    closing: Option<Instant>,
}

impl<K: Threading> AuthorizationState<K> {
    pub(crate) const DISABLED: Self = Self::Disabled;

    pub(crate) fn new(
        authorization: Option<Authorization<K>>,
        server: &Location,
        now: Instant,
    ) -> Self {
        let Some(authorization) = authorization else { return Self::Disabled };
        let Authorization { options, functions, store, observers, unix_time, entropy } =
            authorization;
        let (Some(unix_time), Some(entropy)) = (unix_time, entropy) else {
            return Self::MissingRuntime;
        };
        let client = AuthorizationClient::new(options, server.clone(), entropy(), unix_time(), now);
        let tasks = Tasks::new(functions, store);
        Self::Enabled(Box::new(EnabledAuthorization {
            client,
            tasks,
            observers,
            unix_time,
            closing: None,
        }))
    }

    /// Whether requests carry tokens, which expire.
    pub(crate) const fn is_on(&self) -> bool {
        matches!(self, Self::Enabled(_))
    }

    /// Returns the number of the current token; zero without one.
    pub(crate) const fn token_number(&self) -> u64 {
        match self {
            Self::Enabled(it) => it.client.token_number(),
            Self::Disabled | Self::MissingRuntime => 0,
        }
    }

    // ------------------------------------------------------------------ from the network

    /// Takes the head of a response; returns the machine's id of the exchange if it belongs to the
    /// machine.
    pub(crate) fn handle_response(
        &mut self,
        exchange: ExchangeId,
        head: &IncomingResponse<'_>,
        now: Instant,
    ) -> Option<ExchangeId> {
        let Self::Enabled(it) = self else { return Some(exchange) };
        forwarded(it.client.handle_response(exchange, head, now))
    }

    pub(crate) fn handle_body(
        &mut self,
        exchange: ExchangeId,
        bytes: &[u8],
        now: Instant,
    ) -> Option<ExchangeId> {
        let Self::Enabled(it) = self else { return Some(exchange) };
        forwarded(it.client.handle_body(exchange, bytes, now))
    }

    pub(crate) fn handle_body_end(
        &mut self,
        exchange: ExchangeId,
        now: Instant,
    ) -> Option<ExchangeId> {
        let Self::Enabled(it) = self else { return Some(exchange) };
        forwarded(it.client.handle_body_end(exchange, now))
    }

    pub(crate) fn handle_exchange_failed(
        &mut self,
        exchange: ExchangeId,
        failure: ExchangeFailure,
        now: Instant,
    ) -> Option<ExchangeId> {
        let Self::Enabled(it) = self else { return Some(exchange) };
        forwarded(it.client.handle_exchange_failed(exchange, failure, now))
    }

    // ------------------------------------------------------------------ from the application

    pub(crate) fn authorize(&mut self, now: Instant) {
        if let Self::Enabled(it) = self {
            it.client.handle_unix_time((it.unix_time)(), now);
            it.client.authorize(now);
        }
    }

    pub(crate) fn forget(&mut self, now: Instant) {
        if let Self::Enabled(it) = self {
            it.client.forget(now);
        }
    }

    // ------------------------------------------------------------------ between the two

    /// Passes messages between the machine and the authorization; returns whether there were any.
    pub(crate) fn pump(&mut self, machine: &mut HttpClient, now: Instant) -> bool {
        match self {
            Self::Disabled => false,
            Self::MissingRuntime => refuse_all(machine, now),
            Self::Enabled(it) => it.pump(machine, now),
        }
    }

    /// Runs the application's functions in `guard` from now on.
    pub(crate) fn set_guard(&mut self, guard: PanicGuard) {
        if let Self::Enabled(it) = self {
            it.tasks.set_guard(guard);
        }
    }

    /// Polls the application's functions.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, now: Instant) {
        if let Self::Enabled(it) = self {
            it.tasks.poll(cx, &mut it.client, now);
        }
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if let Self::Enabled(it) = self {
            it.client.handle_timeout(now);
            if it.closing.is_some_and(|until| until <= now) {
                it.tasks.cancel_all();
            }
        }
    }

    // ------------------------------------------------------------------ to the network

    pub(crate) fn poll_transmit(&mut self, machine: &mut HttpClient) -> Option<ClientTransmit> {
        match self {
            Self::Disabled => machine.poll_transmit(),
            // All requests of the machine were refused; its remaining outputs abort exchanges that
            // never began.
            Self::MissingRuntime => None,
            Self::Enabled(it) => it.client.poll_transmit(),
        }
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let Self::Enabled(it) = self else { return None };
        let closing = it.closing.filter(|_| it.tasks.is_keeping());
        [it.client.poll_timeout(), closing].into_iter().flatten().min()
    }

    /// Whether no save to the store is outstanding.
    pub(crate) fn is_drained(&self) -> bool {
        match self {
            Self::Disabled | Self::MissingRuntime => true,
            Self::Enabled(it) => !it.tasks.is_keeping(),
        }
    }
}

impl<K: Threading> EnabledAuthorization<K> {
    fn pump(&mut self, machine: &mut HttpClient, now: Instant) -> bool {
        let mut moved = self.exchange(machine, now);
        if machine.is_closed() && self.closing.is_none() {
            self.closing = Some(now + STORE_TIMEOUT);
            self.client.close();
            moved |= self.exchange(machine, now);
        }
        moved
    }

    fn exchange(&mut self, machine: &mut HttpClient, now: Instant) -> bool {
        let mut moved = false;
        loop {
            let mut more = false;
            while let Some(transmit) = machine.poll_transmit() {
                if !more {
                    // After the computer slept, the clock is ahead of the time derived from `now`.
                    self.client.handle_unix_time((self.unix_time)(), now);
                }
                self.client.handle_transmit(transmit, now);
                more = true;
            }
            // A token is stored before it is used.
            while let Some(action) = self.client.poll_action() {
                self.tasks.act(action, &mut self.client, now);
                more = true;
            }
            while let Some(event) = self.client.poll_event() {
                self.tell(&event, machine, now);
                more = true;
            }
            if !more {
                return moved;
            }
            moved = true;
        }
    }

    fn tell(&self, event: &AuthorizationEvent, machine: &mut HttpClient, now: Instant) {
        for observer in &self.observers {
            // An observer cannot affect the client, not even by a panic.
            let _shown = self.tasks.guard().run(|| observer(event));
        }
        match event {
            AuthorizationEvent::Paused(exchange) => machine.pause(*exchange, now),
            AuthorizationEvent::Resumed(exchange) => machine.resume(*exchange, now),
            AuthorizationEvent::Refused(exchange, failure) => {
                let reason = failure.to_string();
                machine.refuse(*exchange, TransportFailure::AuthorizationFailed { reason }, now);
            }
            _ => {}
        }
    }
}

const fn forwarded(routing: Routing) -> Option<ExchangeId> {
    match routing {
        Routing::Forward(exchange) => Some(exchange),
        Routing::Consumed => None,
    }
}

/// Fails each request of the machine with the reason why it cannot be sent.
fn refuse_all(machine: &mut HttpClient, now: Instant) -> bool {
    let mut refused = false;
    while let Some(transmit) = machine.poll_transmit() {
        if let ClientTransmit::Send(request) = transmit {
            let reason = "`Authorization::entropy` or `Authorization::unix_time` is missing";
            let failure = TransportFailure::AuthorizationFailed { reason: reason.to_string() };
            machine.refuse(request.exchange, failure, now);
        }
        refused = true;
    }
    refused
}

impl<K: Threading> fmt::Debug for AuthorizationState<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disabled => f.write_str("Disabled"),
            Self::MissingRuntime => f.write_str("MissingRuntime"),
            Self::Enabled(it) => f.debug_tuple("Enabled").field(&it.client).finish(),
        }
    }
}

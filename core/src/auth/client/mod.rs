//! The client's side of authorization, as a machine between an HTTP client and the network.

mod action;
mod event;
mod failure;
mod options;

use crate::Instant;
use crate::http::client::Transmit;
use crate::http::{ExchangeFailure, ExchangeId, IncomingResponse, Location};

pub use action::{
    Action, ActionFailure, ActionId, AssertionRequest, AuthorizationRequest, Credential,
    CredentialKey, SigningKey, SigningRequest,
};
pub use event::Event;
pub use failure::{AuthorizationFailure, Awaited};
pub use options::{
    ApplicationType, ClientLimits, ClientMetadata, ClientOptions, ClientSecret, ClientTimeouts,
    DpopKey, Grant, IdentityProvider, InvalidOption, RegisteredClient,
};

/// Whose a response is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// The HTTP client's: hand it on as this exchange, its name for it.
    Through(ExchangeId),
    /// The authorization's: it has been dealt with.
    Kept,
}

/// The client's side of authorization for one MCP server, as a machine between its HTTP client and
/// the network: it adds tokens to what leaves, takes 401 and 403 out of what comes, gets tokens
/// and renews them.
#[derive(Debug)]
pub struct Client {}

impl Client {
    /// For the MCP server at `server`. `entropy` is 32 bytes of the operating system's: all secrets
    /// come from it. `unix_time`: seconds since 1970.
    #[must_use]
    pub fn new(
        options: ClientOptions,
        server: Location,
        entropy: [u8; 32],
        unix_time: u64,
        now: Instant,
    ) -> Self {
        todo!()
    }

    /// Says what time it is for the world; `new` does it for the first time. To be called now and
    /// then: a computer that sleeps stops the monotonic clock.
    pub fn handle_unix_time(&mut self, seconds: u64, now: Instant) {}

    /// Takes what the HTTP client wants done.
    pub fn handle_transmit(&mut self, transmit: Transmit, now: Instant) {}

    /// Takes the head of a response.
    #[must_use]
    pub fn handle_response(
        &mut self,
        exchange: ExchangeId,
        head: &IncomingResponse<'_>,
        now: Instant,
    ) -> Passage {
        todo!()
    }

    /// Takes a piece of a body.
    #[must_use]
    pub fn handle_body(&mut self, exchange: ExchangeId, bytes: &[u8], now: Instant) -> Passage {
        todo!()
    }

    /// Takes the end of a body.
    #[must_use]
    pub fn handle_body_end(&mut self, exchange: ExchangeId, now: Instant) -> Passage {
        todo!()
    }

    /// Takes the news that an exchange came to nothing.
    #[must_use]
    pub fn handle_exchange_failed(
        &mut self,
        exchange: ExchangeId,
        failure: ExchangeFailure,
        now: Instant,
    ) -> Passage {
        todo!()
    }

    /// Where the user came back to: a URL, or the target of that request. A redirect that answers
    /// another request is passed over (`false`): go on waiting.
    pub fn handle_redirect(
        &mut self,
        action: ActionId,
        redirect: Result<&str, ActionFailure>,
        now: Instant,
    ) -> bool {
        todo!()
    }

    /// The signature over the input, raw as a JSON Web Signature has it before base64.
    pub fn handle_signature(
        &mut self,
        action: ActionId,
        signature: Result<&[u8], ActionFailure>,
        now: Instant,
    ) {
    }

    /// The assertion.
    pub fn handle_assertion(
        &mut self,
        action: ActionId,
        assertion: Result<&str, ActionFailure>,
        now: Instant,
    ) {
    }

    /// What was kept.
    pub fn handle_loaded(
        &mut self,
        action: ActionId,
        credential: Result<Option<Credential>, ActionFailure>,
        now: Instant,
    ) {
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {}

    /// What to do on the network next: what the HTTP client wanted, with a token, or an exchange of
    /// the authorization's own.
    #[must_use]
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        todo!()
    }

    /// What to ask of the application next.
    #[must_use]
    pub fn poll_action(&mut self) -> Option<Action> {
        todo!()
    }

    /// What happened.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<Event> {
        todo!()
    }

    /// When [`handle_timeout`](Self::handle_timeout) has something to do.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        todo!()
    }

    /// Starts an authorization without waiting for the server to ask for one. It ends with
    /// [`Event::Authorized`] or [`Event::Failed`]. While one is under way this does nothing.
    pub fn authorize(&mut self, now: Instant) {}

    /// Forgets the token, and has what is kept of it removed. The next 401 starts over.
    pub fn forget(&mut self, now: Instant) {}

    /// Gives up what is under way: requests that wait are refused.
    pub fn close(&mut self) {}
}

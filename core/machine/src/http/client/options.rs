use crate::http::{Backoff, Location};

use super::ClientLimits;

/// Where the server is, and how the client goes about HTTP.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    pub(crate) url: Location,
    pub(crate) limits: ClientLimits,
    pub(crate) backoff: Backoff,
    pub(crate) lost_session: LostSession,
    pub(crate) listen: bool,
    pub(crate) old_transport: bool,
}

/// What becomes of calls that are under way when the server ends the session.
///
/// A call that the server refused because its session had ended did not run: it is sent again in
/// the new session either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "recording", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "recording", serde(rename_all = "snake_case"))]
pub enum LostSession {
    /// They end with [`TransportFailure::SessionLost`](crate::peer::TransportFailure::SessionLost):
    /// nobody knows whether they ran.
    #[default]
    FailCalls,
    /// They are sent again in the new session. For servers whose tools may run twice.
    RepeatCalls,
}

impl ClientOptions {
    /// A client of the server at `url`, its MCP endpoint or the SSE endpoint of an old server.
    #[must_use]
    pub const fn new(url: Location) -> Self {
        Self {
            url,
            limits: ClientLimits::DEFAULT,
            backoff: Backoff::DEFAULT,
            lost_session: LostSession::FailCalls,
            listen: true,
            old_transport: true,
        }
    }

    /// The server.
    #[must_use]
    pub const fn url(&self) -> &Location {
        &self.url
    }

    /// The bounds on what the server can cost.
    #[must_use]
    pub const fn limits(mut self, limits: ClientLimits) -> Self {
        self.limits = limits;
        self
    }

    /// How a lost stream is tried again.
    #[must_use]
    pub const fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// What becomes of calls under way when the server ends the session.
    #[must_use]
    pub const fn lost_session(mut self, lost_session: LostSession) -> Self {
        self.lost_session = lost_session;
        self
    }

    /// Whether to open a stream of its own for what a legacy server says unasked, as is the
    /// default. Without it such a server's questions and notifications come only on the streams of
    /// calls.
    // MCP 2025-11-25 basic/transports#listening-for-messages-from-the-server [HCLI-007]
    #[must_use]
    pub const fn listen(mut self, listen: bool) -> Self {
        self.listen = listen;
        self
    }

    /// Whether to try the HTTP+SSE transport of 2024-11-05 where a server refuses the handshake, as
    /// is the default.
    // MCP 2026-07-28 basic/transports/streamable-http#httpsse-transport-2024-11-05 [LSSE-009]
    #[must_use]
    pub const fn old_transport(mut self, old_transport: bool) -> Self {
        self.old_transport = old_transport;
        self
    }
}

use crate::peer::{Limits, Policy, Timeouts};
use crate::protocol::{ClientCapabilities, Implementation};
use crate::{Era, Revisions};

/// What a client is, can do for a server, and puts up with.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    pub(super) identity: Implementation,
    pub(super) revisions: Revisions,
    pub(super) known_era: Option<Era>,
    pub(super) capabilities: ClientCapabilities,
    pub(super) anonymous: bool,
    pub(super) limits: Limits,
    pub(super) timeouts: Timeouts,
    pub(super) policy: Policy,
}

impl ClientOptions {
    /// A client called `identity` that speaks all revisions and offers the server nothing.
    #[must_use]
    pub fn new(identity: Implementation) -> Self {
        Self {
            identity,
            revisions: Revisions::ALL,
            known_era: None,
            capabilities: ClientCapabilities::default(),
            anonymous: false,
            limits: Limits::default(),
            timeouts: Timeouts::default(),
            policy: Policy::default(),
        }
    }

    /// The revisions to speak; with both eras among them the client finds out which one the
    /// server is of.
    #[must_use]
    pub const fn revisions(mut self, revisions: Revisions) -> Self {
        self.revisions = revisions;
        self
    }

    /// The era that the same server was of before, from [`Client::era`](super::Client::era). A
    /// server remembered as legacy is not probed; should it refuse the handshake it is after all.
    // MCP 2026-07-28 basic/versioning#backward-compatibility-with-initialization-based-versions
    // [VER-018]
    #[must_use]
    pub const fn known_era(mut self, era: Era) -> Self {
        self.known_era = Some(era);
        self
    }

    /// What the client can do for the server.
    #[must_use]
    pub fn capabilities(mut self, capabilities: ClientCapabilities) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// Leaves the client's name out of requests at 2026-07-28; the handshake needs it.
    // MCP 2026-07-28 basic/index#_meta [META-010]
    #[must_use]
    pub const fn anonymous(mut self) -> Self {
        self.anonymous = true;
        self
    }

    /// The bounds on what the server can cost.
    #[must_use]
    pub const fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// How long things may take.
    #[must_use]
    pub const fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// What to do when the server breaks a rule.
    #[must_use]
    pub const fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }
}

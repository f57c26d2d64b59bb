use mcp_sansio_sync::Arc;

use crate::peer::terms::Terms;
use crate::peer::{Limits, Policy, Timeouts};
use crate::protocol::{ClientCapabilities, Implementation};
use crate::{Era, Revisions};

/// What a client is, can do for a server, and puts up with.
///
/// A clone shares all of it with the original, and so do clients made from clones: make the options
/// once and each connection from a clone, and a connection costs what is its own.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    pub(crate) profile: Arc<Profile>,
    pub(crate) terms: Arc<Terms>,
    pub(crate) revisions: Revisions,
    pub(crate) known_era: Option<Era>,
}

/// What a client is, and does not become.
#[derive(Clone, Debug)]
pub(crate) struct Profile {
    pub(crate) identity: Implementation,
    pub(crate) capabilities: ClientCapabilities,
    pub(crate) anonymous: bool,
}

impl ClientOptions {
    /// The bounds on what a server can cost.
    #[must_use]
    pub fn limits_ref(&self) -> &Limits {
        &self.terms.limits
    }

    /// A client called `identity` that speaks all revisions and offers the server nothing.
    #[must_use]
    pub fn new(identity: Implementation) -> Self {
        let capabilities = ClientCapabilities::default();
        Self {
            profile: Arc::new(Profile { identity, capabilities, anonymous: false }),
            terms: Arc::default(),
            revisions: Revisions::ALL,
            known_era: None,
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
        self.profile_mut().capabilities = capabilities;
        self
    }

    /// Leaves the client's name out of requests at 2026-07-28; the handshake needs it.
    // MCP 2026-07-28 basic/index#_meta [META-010]
    #[must_use]
    pub fn anonymous(mut self) -> Self {
        self.profile_mut().anonymous = true;
        self
    }

    /// The bounds on what the server can cost.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.terms_mut().limits = limits;
        self
    }

    /// How long things may take.
    #[must_use]
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.terms_mut().timeouts = timeouts;
        self
    }

    /// What to do when the server breaks a rule.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.terms_mut().policy = policy;
        self
    }

    /// What the client declares, to be changed.
    #[must_use]
    pub fn capabilities_mut(&mut self) -> &mut ClientCapabilities {
        &mut self.profile_mut().capabilities
    }

    fn profile_mut(&mut self) -> &mut Profile {
        Arc::make_mut(&mut self.profile)
    }

    fn terms_mut(&mut self) -> &mut Terms {
        Arc::make_mut(&mut self.terms)
    }
}

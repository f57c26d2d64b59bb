use alloc::string::String;

use crate::Revisions;
use crate::catalog::Catalog;
use crate::peer::{Limits, Policy, Timeouts};
use crate::protocol::{CacheHints, Implementation, ServerCapabilities};

/// What a server is, offers and puts up with.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    pub(super) identity: Implementation,
    pub(super) instructions: Option<String>,
    pub(super) revisions: Revisions,
    pub(super) capabilities: ServerCapabilities,
    pub(super) catalog: Catalog,
    pub(super) cache: CacheHints,
    pub(super) anonymous: bool,
    pub(crate) limits: Limits,
    pub(super) timeouts: Timeouts,
    pub(super) policy: Policy,
}

impl ServerOptions {
    /// A server called `identity` that speaks all revisions and offers nothing yet.
    #[must_use]
    pub fn new(identity: Implementation) -> Self {
        Self {
            identity,
            instructions: None,
            revisions: Revisions::ALL,
            capabilities: ServerCapabilities::default(),
            catalog: Catalog::default(),
            cache: CacheHints::default(),
            anonymous: false,
            limits: Limits::default(),
            timeouts: Timeouts::default(),
            policy: Policy::default(),
        }
    }

    /// Tells the model how to use the server.
    #[must_use]
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// The revisions to speak; both eras may be among them.
    // MCP 2026-07-28 basic/versioning#backward-compatibility-with-initialization-based-versions
    // [VER-008] [VER-015]
    #[must_use]
    pub const fn revisions(mut self, revisions: Revisions) -> Self {
        self.revisions = revisions;
        self
    }

    /// Capabilities beside those that follow from the catalog: logging, completions, tasks,
    /// extensions, experimental ones.
    #[must_use]
    pub fn capabilities(mut self, capabilities: ServerCapabilities) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// The tools, resources and prompts to offer.
    #[must_use]
    pub fn catalog(mut self, catalog: Catalog) -> Self {
        self.catalog = catalog;
        self
    }

    /// How long clients may keep what the machine answers by itself, at revisions with caching
    /// hints. By default not at all.
    #[must_use]
    pub fn cache(mut self, cache: CacheHints) -> Self {
        self.cache = cache;
        self
    }

    /// Leaves the server's name out of results at 2026-07-28.
    // MCP 2026-07-28 basic/index#_meta [META-011]
    #[must_use]
    pub const fn anonymous(mut self) -> Self {
        self.anonymous = true;
        self
    }

    /// The bounds on what the client can cost.
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

    /// The same without keep-alive pings: on HTTP a session is not one connection that could die.
    #[cfg(feature = "http")]
    pub(crate) const fn without_keep_alive(mut self) -> Self {
        self.timeouts.keep_alive = None;
        self
    }

    #[cfg(all(feature = "http", feature = "recording"))]
    pub(crate) const fn catalog_to_offer(&self) -> &Catalog {
        &self.catalog
    }

    /// What to do when the client breaks a rule.
    #[must_use]
    pub const fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }
}

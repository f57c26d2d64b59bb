use alloc::string::String;

use mcp_sansio_sync::Arc;

use crate::Revisions;
use crate::catalog::Catalog;
use crate::peer::terms::Terms;
use crate::peer::{Limits, Policy, Timeouts};
use crate::protocol::{CacheHints, Implementation, ServerCapabilities};

use super::blueprint::Profile;

/// What a server is, offers and puts up with.
///
/// A clone shares all of it with the original, and so do servers made from clones: make the options
/// once and each connection from a clone, and a connection costs what is its own.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    pub(crate) profile: Arc<Profile>,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) terms: Arc<Terms>,
    pub(crate) revisions: Revisions,
}

impl ServerOptions {
    /// A server called `identity` that speaks all revisions and offers nothing yet.
    #[must_use]
    pub fn new(identity: Implementation) -> Self {
        Self {
            profile: Arc::new(Profile::new(identity)),
            catalog: Arc::default(),
            terms: Arc::default(),
            revisions: Revisions::ALL,
        }
    }

    /// Tells the model how to use the server.
    #[must_use]
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.profile_mut().instructions = Some(instructions.into());
        self
    }

    /// The revisions to speak; both eras may be among them.
    // MCP 2026-07-28 learn-versioning#negotiation [VER-008],
    // MCP 2026-07-28 basic/versioning#backward-compatibility-with-initialization-based-versions
    // [VER-015]
    #[must_use]
    pub const fn revisions(mut self, revisions: Revisions) -> Self {
        self.revisions = revisions;
        self
    }

    /// Capabilities beside those that follow from the catalog: logging, completions, tasks,
    /// extensions, experimental ones.
    #[must_use]
    pub fn capabilities(mut self, capabilities: ServerCapabilities) -> Self {
        self.profile_mut().capabilities = capabilities;
        self
    }

    /// The tools, resources and prompts to offer.
    #[must_use]
    pub fn catalog(mut self, mut catalog: Catalog) -> Self {
        // What it was made with is no news.
        let _initial = catalog.take_changes();
        self.catalog = Arc::new(catalog);
        self
    }

    /// How long clients may keep what the machine answers by itself, at revisions with caching
    /// hints. By default not at all.
    #[must_use]
    pub fn cache(mut self, cache: CacheHints) -> Self {
        self.profile_mut().cache = cache;
        self
    }

    /// Leaves the server's name out of results at 2026-07-28.
    // MCP 2026-07-28 basic/index#_meta [META-011]
    #[must_use]
    pub fn anonymous(mut self) -> Self {
        self.profile_mut().identity_meta = String::new();
        self
    }

    /// The bounds on what the client can cost.
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

    /// The same without keep-alive pings: on HTTP a session is not one connection that could die.
    #[cfg(feature = "http")]
    pub(crate) fn without_keep_alive(mut self) -> Self {
        self.terms_mut().timeouts.keep_alive = None;
        self
    }

    #[cfg(all(feature = "http", feature = "recording"))]
    pub(crate) fn catalog_to_offer(&self) -> &Catalog {
        &self.catalog
    }

    /// What to do when the client breaks a rule.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.terms_mut().policy = policy;
        self
    }

    /// What to do when the client breaks a rule, to be changed.
    #[must_use]
    pub fn policy_mut(&mut self) -> &mut Policy {
        &mut self.terms_mut().policy
    }

    /// The bounds on what a client can cost.
    #[must_use]
    pub fn limits_ref(&self) -> &Limits {
        &self.terms.limits
    }

    /// Changes what is offered to connections that are opened from now on. Nobody is told.
    pub fn edit_catalog<T>(&mut self, edit: impl FnOnce(&mut Catalog) -> T) -> T {
        let catalog = self.catalog_mut();
        let edited = edit(catalog);
        let _initial = catalog.take_changes();
        edited
    }

    // Out of line: it has the code that copies a catalog.
    #[inline(never)]
    fn catalog_mut(&mut self) -> &mut Catalog {
        Arc::make_mut(&mut self.catalog)
    }

    /// What the server declares beyond its catalog, to be changed.
    #[must_use]
    pub fn capabilities_mut(&mut self) -> &mut ServerCapabilities {
        &mut self.profile_mut().capabilities
    }

    fn profile_mut(&mut self) -> &mut Profile {
        Arc::make_mut(&mut self.profile)
    }

    fn terms_mut(&mut self) -> &mut Terms {
        Arc::make_mut(&mut self.terms)
    }
}

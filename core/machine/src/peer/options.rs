use mcp_sansio_sync::Arc;

use crate::Revisions;

use super::limits::{Limits, Timeouts};
use super::policy::Policy;

/// What the machine of a connection is made from: the options of its role, `R`, and those that both
/// roles have. [`ServerOptions`](super::ServerOptions) and [`ClientOptions`](super::ClientOptions)
/// are the two.
///
/// ```
/// use mcp_sansio::peer::{ClientOptions, ConnectionOptions, Limits, ServerOptions};
/// use mcp_sansio::protocol::Implementation;
///
/// fn small<R>(options: ConnectionOptions<R>) -> ConnectionOptions<R> {
///     let mut limits = Limits::DEFAULT;
///     limits.calls_in_flight_max = 4;
///     options.limits(limits)
/// }
///
/// let server = small(ServerOptions::new(Implementation::new("weather", "1.0.0")));
/// let client = small(ClientOptions::new(Implementation::new("demo", "1.0.0")));
/// assert_eq!(server.limits_ref().calls_in_flight_max, client.limits_ref().calls_in_flight_max);
/// ```
///
/// A clone shares all of it with the original, and so do machines made from clones: make the options
/// once and each connection from a clone, and a connection costs what is its own.
#[derive(Clone, Debug)]
pub struct ConnectionOptions<R> {
    pub(crate) role: R,
    pub(crate) config: Arc<ConnectionConfig>,
    pub(crate) revisions: Revisions,
}

/// What a connection grants the other side, and for how long. It never changes, so all connections
/// that are made from the same options share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConnectionConfig {
    pub(crate) limits: Limits,
    pub(crate) timeouts: Timeouts,
    pub(crate) policy: Policy,
}

impl<R> ConnectionOptions<R> {
    /// Options of a role, with the defaults of what both have.
    pub(crate) fn with_role(role: R) -> Self {
        Self { role, config: Arc::default(), revisions: Revisions::ALL }
    }

    /// The revisions to speak: all by default. Both eras may be among them; a client then finds out
    /// which one the server is of.
    // MCP 2026-07-28 learn-versioning#negotiation [VER-008],
    // MCP 2026-07-28 basic/versioning#backward-compatibility-with-initialization-based-versions
    // [VER-015]
    #[must_use]
    pub const fn revisions(mut self, revisions: Revisions) -> Self {
        self.revisions = revisions;
        self
    }

    /// The bounds on what the other side can cost.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.config_mut().limits = limits;
        self
    }

    /// How long things may take.
    #[must_use]
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.config_mut().timeouts = timeouts;
        self
    }

    /// What to do when the other side breaks a rule.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.config_mut().policy = policy;
        self
    }

    /// What to do when the other side breaks a rule, to be changed.
    #[must_use]
    pub fn policy_mut(&mut self) -> &mut Policy {
        &mut self.config_mut().policy
    }

    /// The bounds on what the other side can cost.
    #[must_use]
    pub fn limits_ref(&self) -> &Limits {
        &self.config.limits
    }

    pub(crate) fn config_mut(&mut self) -> &mut ConnectionConfig {
        Arc::make_mut(&mut self.config)
    }
}

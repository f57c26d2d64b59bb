use alloc::boxed::Box;

use mcp_sansio_sync::Arc;

use crate::Revisions;
use crate::binding::OperationTransport;

use super::limits::{Limits, Timeouts};
use super::observed::Observer;
use super::passing::MiddlewareList;
use super::policy::Policy;

/// Options of a connection: those of its role, `R`, and those that both roles share. See
/// [`ServerOptions`](super::ServerOptions) and [`ClientOptions`](super::ClientOptions).
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
/// A clone shares its data with the original, and so do machines created from clones. Create the
/// options once and each connection from a clone, so that a connection allocates only its own
/// state.
#[derive(Clone, Debug)]
pub struct ConnectionOptions<R> {
    pub(crate) role: R,
    pub(crate) config: Arc<ConnectionConfig>,
    pub(crate) revisions: Revisions,
}

/// Limits, timeouts and policy of a connection. They never change, so all connections created from
/// the same options share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConnectionConfig {
    pub(crate) limits: Limits,
    pub(crate) timeouts: Timeouts,
    pub(crate) policy: Policy,
    /// The middleware around all messages.
    pub(crate) middleware: Option<MiddlewareList>,
    /// The observer of all requests and notifications.
    pub(crate) observer: Option<Observer>,
    /// The other side of a connection, as far as it is known before the first message. Only an
    /// observer needs it.
    pub(crate) transport: Option<Box<OperationTransport>>,
}

impl<R> ConnectionOptions<R> {
    /// Creates options for a role, with default values for the shared options.
    pub(crate) fn with_role(role: R) -> Self {
        Self { role, config: Arc::default(), revisions: Revisions::ALL }
    }

    /// Sets the revisions to speak, by default all. They may include both eras; a client then
    /// detects the server's era.
    // MCP 2026-07-28 learn-versioning#negotiation [VER-008],
    // MCP 2026-07-28 basic/versioning#backward-compatibility-with-initialization-based-versions
    // [VER-015]
    #[must_use]
    pub const fn revisions(mut self, revisions: Revisions) -> Self {
        self.revisions = revisions;
        self
    }

    /// Sets the limits on the resources that a peer can use.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.config_mut().limits = limits;
        self
    }

    /// Sets the timeouts.
    #[must_use]
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.config_mut().timeouts = timeouts;
        self
    }

    /// Sets the reactions to protocol violations of the peer.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.config_mut().policy = policy;
        self
    }

    /// Sets the observer of all requests and notifications of the connection, in both directions.
    /// It replaces an earlier one.
    #[must_use]
    pub fn operation_observer(mut self, observer: Arc<dyn super::OperationObserver>) -> Self {
        self.config_mut().observer = Some(Observer::new(observer));
        self
    }

    /// Adds middleware around all messages of the connection, inside of that of earlier calls: see
    /// [`MessageMiddleware`](super::MessageMiddleware).
    #[must_use]
    pub fn message_middleware(mut self, middleware: Arc<dyn super::MessageMiddleware>) -> Self {
        self.config_mut().middleware.get_or_insert_with(MiddlewareList::new).push(middleware);
        self
    }

    /// Returns the observer of all requests and notifications, if there is one.
    #[must_use]
    pub fn operation_observer_ref(&self) -> Option<&Arc<dyn super::OperationObserver>> {
        self.config.observer.as_ref().map(|it| &it.operations)
    }

    /// Returns the reactions to protocol violations for modification.
    #[must_use]
    pub fn policy_mut(&mut self) -> &mut Policy {
        &mut self.config_mut().policy
    }

    /// Returns the timeouts.
    #[must_use]
    pub fn timeouts_ref(&self) -> &Timeouts {
        &self.config.timeouts
    }

    /// Returns the limits on the resources that a peer can use.
    #[must_use]
    pub fn limits_ref(&self) -> &Limits {
        &self.config.limits
    }

    /// Sets the address of the server that a client reaches, for the observer.
    #[cfg(feature = "http")]
    pub(crate) fn reaching(mut self, address: &str, port: u16) -> Self {
        if self.config.observer.is_some() {
            let transport = self.config_mut().transport.get_or_insert_default();
            transport.peer_address = Some(address.into());
            transport.peer_port = Some(port);
        }
        self
    }

    pub(crate) fn config_mut(&mut self) -> &mut ConnectionConfig {
        Arc::make_mut(&mut self.config)
    }
}

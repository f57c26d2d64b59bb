use mcp_sansio_sync::Arc;

use crate::Era;
use crate::peer::ConnectionOptions;
use crate::protocol::{ClientCapabilities, Implementation};

/// Options of a client: identity, capabilities, limits, timeouts and policy.
///
/// ```
/// use core::time::Duration;
/// use mcp_sansio::peer::{ClientOptions, Timeouts};
/// use mcp_sansio::protocol::{ClientCapabilities, Implementation, RootsCapability};
///
/// let mut timeouts = Timeouts::default();
/// timeouts.call = Duration::from_secs(10);
/// let options = ClientOptions::new(Implementation::new("demo", "1.0.0"))
///     .capabilities(ClientCapabilities::new().roots(RootsCapability::new()))
///     .timeouts(timeouts);
/// # let _ = options;
/// ```
pub type ClientOptions = ConnectionOptions<ClientRole>;

/// The client-specific part of [`ClientOptions`].
#[derive(Clone, Debug)]
pub struct ClientRole {
    pub(crate) identity: Arc<ClientIdentity>,
    pub(crate) known_era: Option<Era>,
    pub(crate) problem: Option<alloc::boxed::Box<crate::protocol::ExtensionError>>,
}

/// The immutable identity of a client.
#[derive(Clone, Debug)]
pub(crate) struct ClientIdentity {
    pub(crate) implementation: Implementation,
    pub(crate) capabilities: ClientCapabilities,
    pub(crate) anonymous: bool,
}

impl ClientOptions {
    /// Creates options for a client called `identity` that speaks all revisions and declares no
    /// capabilities.
    #[must_use]
    pub fn new(identity: Implementation) -> Self {
        let capabilities = ClientCapabilities::default();
        let identity =
            Arc::new(ClientIdentity { implementation: identity, capabilities, anonymous: false });
        Self::with_role(ClientRole { identity, known_era: None, problem: None })
    }

    /// Keeps connections from opening because of a mistake in the registration of an extension:
    /// they close with [`OpeningFailure::Extension`](super::OpeningFailure::Extension) before a
    /// message is sent.
    // MCP 2026-07-28 extensions:SEP-3371-summary#general [EXT-019]
    #[must_use]
    pub fn unusable(mut self, problem: crate::protocol::ExtensionError) -> Self {
        self.role.problem = Some(alloc::boxed::Box::new(problem));
        self
    }

    /// Sets the server's known era, from [`Client::era`](super::Client::era) of an earlier
    /// connection. A server known as legacy is not probed, unless it refuses the handshake.
    // MCP 2026-07-28 basic/versioning#backward-compatibility-with-initialization-based-versions
    // [VER-018]
    #[must_use]
    pub const fn known_era(mut self, era: Era) -> Self {
        self.role.known_era = Some(era);
        self
    }

    /// Sets the client's capabilities.
    #[must_use]
    pub fn capabilities(mut self, capabilities: ClientCapabilities) -> Self {
        self.identity_mut().capabilities = capabilities;
        self
    }

    /// Omits the client's name from requests at 2026-07-28. The legacy handshake still contains it.
    // MCP 2026-07-28 basic/index#_meta [META-010]
    #[must_use]
    pub fn anonymous(mut self) -> Self {
        self.identity_mut().anonymous = true;
        self
    }

    /// Returns the declared capabilities for modification.
    #[must_use]
    pub fn capabilities_mut(&mut self) -> &mut ClientCapabilities {
        &mut self.identity_mut().capabilities
    }

    /// Returns the declared capabilities.
    #[must_use]
    pub fn declared_capabilities(&self) -> &ClientCapabilities {
        &self.role.identity.capabilities
    }

    fn identity_mut(&mut self) -> &mut ClientIdentity {
        Arc::make_mut(&mut self.role.identity)
    }
}

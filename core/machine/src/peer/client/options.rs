use mcp_sansio_sync::Arc;

use crate::Era;
use crate::peer::ConnectionOptions;
use crate::protocol::{ClientCapabilities, Implementation};

/// What a client is, can do for a server, and puts up with.
pub type ClientOptions = ConnectionOptions<ClientRole>;

/// What only the options of a client have.
#[derive(Clone, Debug)]
pub struct ClientRole {
    pub(crate) identity: Arc<ClientIdentity>,
    pub(crate) known_era: Option<Era>,
}

/// What a client is, and does not become.
#[derive(Clone, Debug)]
pub(crate) struct ClientIdentity {
    pub(crate) implementation: Implementation,
    pub(crate) capabilities: ClientCapabilities,
    pub(crate) anonymous: bool,
}

impl ClientOptions {
    /// A client called `identity` that speaks all revisions and offers the server nothing.
    #[must_use]
    pub fn new(identity: Implementation) -> Self {
        let capabilities = ClientCapabilities::default();
        let identity =
            Arc::new(ClientIdentity { implementation: identity, capabilities, anonymous: false });
        Self::with_role(ClientRole { identity, known_era: None })
    }

    /// The era that the same server was of before, from [`Client::era`](super::Client::era). A
    /// server remembered as legacy is not probed; should it refuse the handshake it is after all.
    // MCP 2026-07-28 basic/versioning#backward-compatibility-with-initialization-based-versions
    // [VER-018]
    #[must_use]
    pub const fn known_era(mut self, era: Era) -> Self {
        self.role.known_era = Some(era);
        self
    }

    /// What the client can do for the server.
    #[must_use]
    pub fn capabilities(mut self, capabilities: ClientCapabilities) -> Self {
        self.identity_mut().capabilities = capabilities;
        self
    }

    /// Leaves the client's name out of requests at 2026-07-28; the handshake needs it.
    // MCP 2026-07-28 basic/index#_meta [META-010]
    #[must_use]
    pub fn anonymous(mut self) -> Self {
        self.identity_mut().anonymous = true;
        self
    }

    /// What the client declares, to be changed.
    #[must_use]
    pub fn capabilities_mut(&mut self) -> &mut ClientCapabilities {
        &mut self.identity_mut().capabilities
    }

    fn identity_mut(&mut self) -> &mut ClientIdentity {
        Arc::make_mut(&mut self.role.identity)
    }
}

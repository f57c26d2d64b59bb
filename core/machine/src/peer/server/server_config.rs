use alloc::string::String;

use mcp_sansio_sync::Arc;

use crate::catalog::Catalog;
use crate::peer::options::ConnectionConfig;
use crate::protocol::{CacheHints, Capabilities, Implementation, ServerCapabilities};
use crate::{PanicGuard, Revision, Revisions};

use super::options::ServerRole;
use super::{ServerOptions, lifecycle};

/// The shared configuration of a server's connections, so that each connection allocates only its
/// own state.
#[derive(Clone, Debug)]
pub(crate) struct ServerConfig {
    pub(super) identity: Arc<ServerIdentity>,
    pub(crate) catalog: Arc<Catalog>,
    /// The capabilities that the server declares to modern clients.
    pub(super) modern: Capabilities,
    pub(super) config: Arc<ConnectionConfig>,
    pub(super) revisions: Revisions,
    pub(crate) guard: PanicGuard,
}

/// The immutable identity of a server.
#[derive(Clone, Debug)]
pub(crate) struct ServerIdentity {
    pub(crate) implementation: Implementation,
    pub(crate) instructions: Option<String>,
    pub(crate) capabilities: ServerCapabilities,
    pub(crate) cache: CacheHints,
    /// The `"_meta":{…serverInfo…}` of modern results as text; empty if anonymous.
    pub(crate) identity_meta: String,
}

impl ServerConfig {
    pub(crate) fn new(options: ServerOptions) -> Self {
        let ServerOptions { role: ServerRole { identity, catalog }, config, revisions } = options;
        let modern = identity.declared_set(&catalog, Revision::LATEST);
        Self { identity, catalog, modern, config, revisions, guard: PanicGuard::NONE }
    }

    /// Returns the configuration for connections that start with a handshake.
    #[cfg(feature = "http")]
    pub(crate) fn for_legacy_sessions(&self) -> Self {
        Self { revisions: self.revisions.intersection(Revisions::LEGACY), ..self.clone() }
    }

    /// Returns the revisions that the server speaks.
    #[cfg(feature = "http")]
    pub(crate) const fn revisions(&self) -> Revisions {
        self.revisions
    }

    /// Returns the observer of all requests and notifications, if there is one.
    #[cfg(feature = "http")]
    pub(crate) fn observer(&self) -> Option<Arc<dyn crate::peer::OperationObserver>> {
        self.config.observer.as_ref().map(|it| Arc::clone(&it.operations))
    }

    #[cfg(feature = "http")]
    pub(crate) fn parse_limits(&self) -> crate::jsonrpc::ParseLimits {
        self.config.limits.parse_limits()
    }

    /// Edits the catalog, and returns the changes of the lists.
    pub(crate) fn edit_catalog<T>(
        &mut self,
        edit: impl FnOnce(&mut Catalog) -> T,
    ) -> (T, crate::catalog::Announcement) {
        let catalog = Arc::make_mut(&mut self.catalog);
        let edited = edit(catalog);
        let announcement = catalog.take_announcement();
        self.modern = self.identity.declared_set(&self.catalog, Revision::LATEST);
        (edited, announcement)
    }
}

impl ServerIdentity {
    pub(super) fn new(identity: Implementation) -> Self {
        Self {
            identity_meta: lifecycle::identity_meta(&identity),
            implementation: identity,
            instructions: None,
            capabilities: ServerCapabilities::default(),
            cache: CacheHints::default(),
        }
    }

    /// Returns the capabilities that the server declares at `revision`, as far as this crate knows
    /// them.
    pub(super) fn declared_set(&self, catalog: &Catalog, revision: Revision) -> Capabilities {
        Capabilities::of_server(&catalog.complete(self.capabilities.clone(), revision), revision)
    }
}

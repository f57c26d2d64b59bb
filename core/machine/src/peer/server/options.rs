use alloc::string::String;

use mcp_sansio_sync::Arc;

use crate::Revision;
use crate::catalog::Catalog;
use crate::peer::ConnectionOptions;
use crate::protocol::{CacheHints, Implementation, ServerCapabilities};

use super::server_config::ServerIdentity;

/// Options of a server: identity, catalog, limits, timeouts and policy.
///
/// ```
/// use mcp_sansio::peer::{Limits, ServerOptions};
/// use mcp_sansio::protocol::{Implementation, ServerCapabilities, ToolsCapability};
/// use mcp_sansio::{Revision, Revisions};
///
/// let options = ServerOptions::new(Implementation::new("clock", "1.0.0"))
///     .capabilities(ServerCapabilities::new().tools(ToolsCapability::new()))
///     .revisions(Revisions::only(Revision::V2025_11_25))
///     .limits(Limits::SMALL);
/// # let _ = options;
/// ```
pub type ServerOptions = ConnectionOptions<ServerRole>;

/// The server-specific part of [`ServerOptions`].
#[derive(Clone, Debug)]
pub struct ServerRole {
    pub(crate) identity: Arc<ServerIdentity>,
    pub(crate) catalog: Arc<Catalog>,
}

impl ServerOptions {
    /// Creates options for a server called `identity` that speaks all revisions and has an empty
    /// catalog.
    #[must_use]
    pub fn new(identity: Implementation) -> Self {
        let identity = Arc::new(ServerIdentity::new(identity));
        Self::with_role(ServerRole { identity, catalog: Arc::default() })
    }

    /// Sets the instructions for the model on how to use the server.
    #[must_use]
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.identity_mut().instructions = Some(instructions.into());
        self
    }

    /// Sets capabilities in addition to those that follow from the catalog, such as logging, tasks,
    /// extensions and experimental ones.
    #[must_use]
    pub fn capabilities(mut self, capabilities: ServerCapabilities) -> Self {
        self.identity_mut().capabilities = capabilities;
        self
    }

    /// Sets the catalog of tools, resources and prompts.
    #[must_use]
    pub fn catalog(mut self, mut catalog: Catalog) -> Self {
        // The initial content is not a change to announce.
        let _initial = catalog.take_changes();
        *Arc::make_mut(&mut self.role.catalog) = catalog;
        self
    }

    /// Takes the catalog of `other`, which both then share until one of them edits it.
    #[must_use]
    pub fn share_catalog(mut self, other: &Self) -> Self {
        self.role.catalog = Arc::clone(&other.role.catalog);
        self
    }

    /// Sets how long clients may cache the results that the machine generates, at revisions with
    /// caching hints. By default not at all.
    #[must_use]
    pub fn cache(mut self, cache: CacheHints) -> Self {
        self.identity_mut().cache = cache;
        self
    }

    /// Omits the server's name from results at 2026-07-28.
    // MCP 2026-07-28 basic/index#_meta [META-011]
    #[must_use]
    pub fn anonymous(mut self) -> Self {
        self.identity_mut().identity_meta = String::new();
        self
    }

    /// Disables keep-alive pings: on HTTP a session is not a single connection that could be lost.
    #[cfg(feature = "http")]
    pub(crate) fn without_keep_alive(mut self) -> Self {
        self.config_mut().timeouts.keep_alive = None;
        self
    }

    #[cfg(feature = "http")]
    pub(crate) fn catalog_to_offer(&self) -> &Catalog {
        &self.role.catalog
    }

    /// Edits the catalog for connections opened from now on. No client is notified.
    pub fn edit_catalog<T>(&mut self, edit: impl FnOnce(&mut Catalog) -> T) -> T {
        let catalog = self.catalog_mut();
        let edited = edit(catalog);
        let _initial = catalog.take_changes();
        edited
    }

    // Not inlined, because it contains the code that copies a catalog.
    #[inline(never)]
    fn catalog_mut(&mut self) -> &mut Catalog {
        Arc::make_mut(&mut self.role.catalog)
    }

    /// Returns the capabilities in addition to the catalog's for modification.
    #[must_use]
    pub fn capabilities_mut(&mut self) -> &mut ServerCapabilities {
        &mut self.identity_mut().capabilities
    }

    /// Returns the capabilities that a server with these options declares at `revision`, those that
    /// follow from the catalog included.
    #[must_use]
    pub fn declared_capabilities(&self, revision: Revision) -> ServerCapabilities {
        self.role.catalog.complete(self.role.identity.capabilities.clone(), revision)
    }

    fn identity_mut(&mut self) -> &mut ServerIdentity {
        Arc::make_mut(&mut self.role.identity)
    }
}

use alloc::string::String;

use mcp_sansio_sync::Arc;

use crate::catalog::Catalog;
use crate::peer::ConnectionOptions;
use crate::protocol::{CacheHints, Implementation, ServerCapabilities};

use super::server_config::ServerIdentity;

/// What a server is, offers and puts up with.
pub type ServerOptions = ConnectionOptions<ServerRole>;

/// What only the options of a server have.
#[derive(Clone, Debug)]
pub struct ServerRole {
    pub(crate) identity: Arc<ServerIdentity>,
    pub(crate) catalog: Arc<Catalog>,
}

impl ServerOptions {
    /// A server called `identity` that speaks all revisions and offers nothing yet.
    #[must_use]
    pub fn new(identity: Implementation) -> Self {
        let identity = Arc::new(ServerIdentity::new(identity));
        Self::with_role(ServerRole { identity, catalog: Arc::default() })
    }

    /// Tells the model how to use the server.
    #[must_use]
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.identity_mut().instructions = Some(instructions.into());
        self
    }

    /// Capabilities beside those that follow from the catalog: logging, completions, tasks,
    /// extensions, experimental ones.
    #[must_use]
    pub fn capabilities(mut self, capabilities: ServerCapabilities) -> Self {
        self.identity_mut().capabilities = capabilities;
        self
    }

    /// The tools, resources and prompts to offer.
    #[must_use]
    pub fn catalog(mut self, mut catalog: Catalog) -> Self {
        // What it was made with is no news.
        let _initial = catalog.take_changes();
        self.role.catalog = Arc::new(catalog);
        self
    }

    /// How long clients may keep what the machine answers by itself, at revisions with caching
    /// hints. By default not at all.
    #[must_use]
    pub fn cache(mut self, cache: CacheHints) -> Self {
        self.identity_mut().cache = cache;
        self
    }

    /// Leaves the server's name out of results at 2026-07-28.
    // MCP 2026-07-28 basic/index#_meta [META-011]
    #[must_use]
    pub fn anonymous(mut self) -> Self {
        self.identity_mut().identity_meta = String::new();
        self
    }

    /// The same without keep-alive pings: on HTTP a session is not one connection that could die.
    #[cfg(feature = "http")]
    pub(crate) fn without_keep_alive(mut self) -> Self {
        self.config_mut().timeouts.keep_alive = None;
        self
    }

    #[cfg(all(feature = "http", feature = "recording"))]
    pub(crate) fn catalog_to_offer(&self) -> &Catalog {
        &self.role.catalog
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
        Arc::make_mut(&mut self.role.catalog)
    }

    /// What the server declares beyond its catalog, to be changed.
    #[must_use]
    pub fn capabilities_mut(&mut self) -> &mut ServerCapabilities {
        &mut self.identity_mut().capabilities
    }

    fn identity_mut(&mut self) -> &mut ServerIdentity {
        Arc::make_mut(&mut self.role.identity)
    }
}

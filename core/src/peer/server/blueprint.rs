use alloc::string::String;
use alloc::vec::Vec;

use crate::Revision;
use crate::catalog::Catalog;
use crate::peer::{Limits, Policy, Timeouts};
use crate::protocol::{CacheHints, Capabilities, Implementation, ServerCapabilities, Wire};
use crate::shared::Shared;

use super::{ServerOptions, lifecycle};

/// What the connections of one server are made from, and share: a connection more costs what is
/// its own.
#[derive(Clone, Debug)]
pub(crate) struct Blueprint {
    pub(super) profile: Shared<Profile>,
    pub(crate) catalog: Shared<Catalog>,
    /// What the server declares to modern clients.
    pub(super) modern: Capabilities,
    pub(crate) limits: Limits,
    pub(super) timeouts: Timeouts,
    pub(super) policy: Policy,
}

/// What a server is, and does not become.
#[derive(Clone, Debug)]
pub(super) struct Profile {
    pub(super) identity: Implementation,
    pub(super) instructions: Option<String>,
    pub(super) revisions: crate::Revisions,
    pub(super) capabilities: ServerCapabilities,
    pub(super) cache: CacheHints,
    /// `"_meta":{…serverInfo…}` of modern results, ready to be written; empty if anonymous.
    pub(super) identity_meta: Vec<u8>,
}

impl Blueprint {
    pub(crate) fn new(options: ServerOptions) -> Self {
        let ServerOptions {
            identity,
            instructions,
            revisions,
            capabilities,
            mut catalog,
            cache,
            anonymous,
            limits,
            timeouts,
            policy,
        } = options;
        let identity_meta =
            if anonymous { Vec::new() } else { lifecycle::identity_meta(&identity) };
        let profile =
            Profile { identity, instructions, revisions, capabilities, cache, identity_meta };
        // What the catalog was made with is no news.
        let _initial = catalog.take_changes();
        let modern = profile.declared_set(&catalog, Revision::LATEST);
        let (profile, catalog) = (Shared::new(profile), Shared::new(catalog));
        Self { profile, catalog, modern, limits, timeouts, policy }
    }

    /// The same for connections that begin with a handshake.
    #[cfg(feature = "http")]
    pub(crate) fn of_handshakes(&self) -> Self {
        let revisions = self.profile.revisions.intersection(crate::Revisions::LEGACY);
        let profile = Shared::new(Profile { revisions, ..Profile::clone(&self.profile) });
        Self { profile, ..self.clone() }
    }

    /// The revisions that the server speaks.
    #[cfg(feature = "http")]
    pub(crate) fn revisions(&self) -> crate::Revisions {
        self.profile.revisions
    }

    #[cfg(feature = "http")]
    pub(crate) const fn parse_limits(&self) -> crate::jsonrpc::ParseLimits {
        self.limits.of_parsing()
    }

    /// Changes what connections made from here on offer, and says which lists changed.
    #[cfg(feature = "http")]
    pub(crate) fn edit_catalog<T>(
        &mut self,
        edit: impl FnOnce(&mut Catalog) -> T,
    ) -> (T, crate::catalog::Changes) {
        let catalog = Shared::make_mut(&mut self.catalog);
        let edited = edit(catalog);
        let changes = catalog.take_changes();
        self.modern = self.profile.declared_set(&self.catalog, Revision::LATEST);
        (edited, changes)
    }
}

impl Profile {
    /// What the server declares at `revision`, as far as the gate knows it.
    pub(super) fn declared_set(&self, catalog: &Catalog, revision: Revision) -> Capabilities {
        let declared = catalog.complete(self.capabilities.clone(), revision).to_json_at(revision);
        declared
            .and_then(|text| Capabilities::of_checked_server(text.as_str(), revision))
            .unwrap_or_default()
    }
}

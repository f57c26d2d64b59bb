use mcp_sansio_sync::Arc;

use crate::Instant;
use crate::catalog::{Announcement, Catalog};
use crate::peer::ServerCommand;

use super::{Server, header_params_by_tool};

/// A catalog that one [shard](super::Shards) has edited, for the others: made by
/// [`Server::edit_catalog_for_shards`], taken by [`Server::adopt_catalog`].
#[derive(Clone, Debug)]
pub struct CatalogChange {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) announcement: Announcement,
}

impl CatalogChange {
    /// Adds a later change, for a shard that has not taken this one yet.
    pub fn merge(&mut self, later: &Self) {
        self.catalog = Arc::clone(&later.catalog);
        self.announcement.merge(&later.announcement);
    }
}

impl Server {
    /// Changes the catalog of the server in every session. Subscribed clients are notified of the
    /// changed lists.
    ///
    /// A tool whose annotations HTTP clients must refuse is served without the checks of these
    /// annotations; see [`UnservableTool`](super::UnservableTool).
    pub fn edit_catalog<T>(&mut self, edit: impl FnOnce(&mut Catalog) -> T, now: Instant) -> T {
        let (edited, announcement) = self.server_config.edit_catalog(edit);
        self.spread_catalog(&announcement, now);
        edited
    }

    /// Edits the catalog as [`edit_catalog`](Self::edit_catalog) does. Also returns the change, for
    /// the other [shards](Self::join_shards) to [adopt](Self::adopt_catalog). Edits of several
    /// shards must not overlap: a shard has to adopt the changes before its own.
    pub fn edit_catalog_for_shards<T>(
        &mut self,
        edit: impl FnOnce(&mut Catalog) -> T,
        now: Instant,
    ) -> (T, CatalogChange) {
        let (edited, announcement) = self.server_config.edit_catalog(edit);
        self.spread_catalog(&announcement, now);
        (edited, CatalogChange { catalog: self.shared_catalog(), announcement })
    }

    /// Replaces the catalog by one that another shard has edited. Clients that asked for it are
    /// notified of the changed lists.
    pub fn adopt_catalog(&mut self, change: &CatalogChange, now: Instant) {
        self.server_config.adopt_catalog(Arc::clone(&change.catalog));
        self.spread_catalog(&change.announcement, now);
    }

    /// Gives the catalog to all connections, and notifies their clients.
    fn spread_catalog(&mut self, announcement: &Announcement, now: Instant) {
        (self.header_params, _) = header_params_by_tool(&self.server_config.catalog);
        if self.shared.is_some() {
            self.share_command(&ServerCommand::Announce(announcement.to_everyone));
        }
        self.note_late_items(announcement);
        let server_config = self.server_config.clone();
        self.for_each_connection(now, |connection| {
            connection.machine.adopt(&server_config);
            let changes = announcement.seen_by(connection.machine.caller());
            let _told = connection.machine.apply(ServerCommand::Announce(changes), now);
        });
    }
}

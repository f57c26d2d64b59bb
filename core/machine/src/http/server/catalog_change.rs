use crate::Instant;
use crate::catalog::{Announcement, Catalog};
use crate::peer::ServerCommand;

use super::Server;

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

    /// Gives the catalog to all connections, and notifies their clients.
    fn spread_catalog(&mut self, announcement: &Announcement, now: Instant) {
        self.reader.set_served(&self.server_config);
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

//! News for a client that is too far behind to be sent more: kept once each, not once each time.

use alloc::string::String;
use alloc::vec::Vec;

use crate::catalog::Changes;
use crate::peer::requests::RequestOwner;

use super::Server;

/// What a client is to be told as soon as it has taken some of what waits for it.
///
/// Each item says only that something changed, so that one of a kind says all. There are no more
/// URIs here than the client subscribed to.
#[derive(Debug, Default)]
pub(super) struct PendingNotifications {
    lists: Changes,
    /// In order, each once.
    resources: Vec<String>,
}

impl Server {
    /// Whether more waits for the client than the limit, so that nothing is added which can be
    /// left out or said later.
    pub(super) fn is_behind(&self) -> bool {
        self.connection.binding.has_one_queue() && self.connection.is_congested()
    }

    pub(super) const fn defer_list_changes(&mut self, changes: Changes) {
        let pending = &mut self.pending.lists;
        pending.tools |= changes.tools;
        pending.prompts |= changes.prompts;
        pending.resources |= changes.resources;
    }

    pub(super) fn defer_resource_update(&mut self, uri: &str) {
        let of_session = self.session.as_ref().is_some_and(|session| session.is_subscribed(uri));
        let wanted = of_session
            || self.connection.requests.iter().any(|(_, entry)| match &entry.owner {
                RequestOwner::Listening(filter) => {
                    filter.resource_subscriptions.iter().flatten().any(|wanted| wanted == uri)
                }
                _ => false,
            });
        let resources = &mut self.pending.resources;
        if let (true, Err(place)) =
            (wanted, resources.binary_search_by(|known| known.as_str().cmp(uri)))
        {
            resources.insert(place, uri.into());
        }
    }

    /// Tells what is owed, if there is room again.
    pub(super) fn flush_pending(&mut self) {
        let PendingNotifications { lists, resources } = &self.pending;
        if (*lists == Changes::default() && resources.is_empty()) || self.is_behind() {
            return;
        }
        let PendingNotifications { lists, resources } = core::mem::take(&mut self.pending);
        self.tell_lists(lists);
        for uri in resources {
            // Should there be too much again, it is owed again.
            self.tell_resource(&uri);
        }
    }
}

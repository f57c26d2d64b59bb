//! Deferred notifications for a client that is too far behind: each is kept once.

use alloc::string::String;
use alloc::vec::Vec;

use crate::catalog::Changes;
use crate::peer::requests::RequestOwner;

use super::Server;

/// The change notifications to send once the client has read some of its queued output.
///
/// Each item only states that something changed, so notifications for the same item are merged.
/// There are no more URIs than the client subscribed to.
#[derive(Debug, Default)]
pub(super) struct PendingNotifications {
    lists: Changes,
    /// In order and without duplicates.
    resources: Vec<String>,
}

impl Server {
    /// Returns whether the queued output exceeds the limit, so that optional messages are dropped
    /// or deferred.
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

    /// Drops the deferred notifications of a session that has ended. Listen streams get theirs.
    pub(super) fn forget_pending(&mut self) {
        let PendingNotifications { lists, resources } = core::mem::take(&mut self.pending);
        if self.connection.requests.listening().streams > 0 {
            self.pending.lists = lists;
            resources.iter().for_each(|uri| self.defer_resource_update(uri));
        }
    }

    /// Sends the deferred notifications if the queue has space again.
    pub(super) fn flush_pending(&mut self) {
        let PendingNotifications { lists, resources } = &self.pending;
        if (*lists == Changes::default() && resources.is_empty()) || self.is_behind() {
            return;
        }
        let PendingNotifications { lists, resources } = core::mem::take(&mut self.pending);
        self.tell_lists(lists);
        for uri in resources {
            // If the queue fills up again, the notification is deferred again.
            self.tell_resource(&uri);
        }
    }
}

//! The notifications of a server.

use crate::jsonrpc::{WriteError, WriteJson};
use crate::peer::error::CommandError;
use crate::peer::handle::RequestHandle;
use crate::peer::outbox::{Channel, Lane, Part};
use crate::peer::queue::Tag;
use crate::protocol::{Method, Side};

use super::{Server, ServerSession};

impl Server {
    /// Sends a notification in the legacy session if the capability checks allow it. No
    /// notifications are sent after the connection was closed.
    pub(super) fn notify_session(
        &mut self,
        method: Method,
        channel: Channel,
        tag: Tag,
        params: &dyn WriteJson,
    ) -> Result<(), WriteError> {
        if !self.may_notify_session(method) {
            return Ok(());
        }
        self.write_notification(method, channel, tag, params)
    }

    /// Returns whether the capability checks allow a notification in the legacy session.
    #[inline(always)]
    pub(super) fn may_notify_session(&self, method: Method) -> bool {
        self.session.as_ref().is_some_and(|session| {
            let ServerSession { revision, client, server, .. } = session;
            method.row().check(Side::Server, *revision, *client, *server).is_ok()
        })
    }

    pub(super) fn write_notification(
        &mut self,
        method: Method,
        channel: Channel,
        tag: Tag,
        params: &dyn WriteJson,
    ) -> Result<(), WriteError> {
        let route = (Lane::Bulk, channel, tag);
        self.connection.send_notification(route, method.into(), method.as_str(), Some(params))
    }

    // MCP 2026-07-28 extensions:SEP-3371-summary#2-custom-methods [EXT-025]
    pub(super) fn notify_other(
        &mut self,
        request: RequestHandle,
        method: &str,
        params: &dyn WriteJson,
    ) -> Result<(), CommandError> {
        if Method::parse(method).is_some() {
            return Err(CommandError::NotANotification);
        }
        let entry = self.connection.requests.get(request.key);
        let Some(entry) = entry.filter(|_| !self.is_behind()) else { return Ok(()) };
        let route = (Lane::Bulk, entry.reply.channel, self.connection.tag(&entry.id));
        self.connection.send_notification(route, Part::OTHER_NOTIFICATION, method, Some(params))?;
        Ok(())
    }
}

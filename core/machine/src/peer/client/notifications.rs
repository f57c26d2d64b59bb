//! The notifications of a client.

use crate::Era;
use crate::gate::MethodKind;
use crate::jsonrpc::WriteJson;
use crate::peer::connection::Connection;
use crate::peer::error::CommandError;
use crate::peer::outbox::{Channel, Lane, Part};
use crate::peer::queue::Tag;
use crate::protocol::Method;

use super::Client;

const ROUTE: (Lane, Channel, Tag) = (Lane::Bulk, Channel::UNSOLICITED, Tag::NONE);

impl Client {
    pub(super) fn send_notification(
        &mut self,
        method: Method,
        params: &dyn WriteJson,
    ) -> Result<(), CommandError> {
        Connection::check_kind(method, MethodKind::Notification)?;
        self.check_gate(method)?;
        self.connection.send_notification(ROUTE, method.into(), method.as_str(), Some(params))?;
        Ok(())
    }

    // MCP 2026-07-28 extensions:SEP-3371-summary#2-custom-methods [EXT-025]
    pub(super) fn notify_other(
        &mut self,
        method: &str,
        params: &dyn WriteJson,
    ) -> Result<(), CommandError> {
        self.connection.check_open()?;
        let era = self.session.as_ref().ok_or(CommandError::NotOpen)?.revision.era();
        // MCP 2026-07-28 basic/transports/streamable-http#sending-messages [HCLI-006]
        if Method::parse(method).is_some() || era == Era::Modern {
            return Err(CommandError::NotANotification);
        }
        self.connection.send_notification(ROUTE, Part::OTHER_NOTIFICATION, method, Some(params))?;
        Ok(())
    }
}

//! The notifications of a client.

use crate::Era;
use crate::gate::MethodKind;
use crate::jsonrpc::{WriteJson, write_notification};
use crate::peer::Passed;
use crate::peer::connection::Connection;
use crate::peer::error::CommandError;
use crate::peer::outbox::{Channel, Lane, Part};
use crate::peer::queue::Tag;
use crate::protocol::Method;

use super::Client;

impl Client {
    pub(super) fn send_notification(
        &mut self,
        method: Method,
        params: &dyn WriteJson,
    ) -> Result<(), CommandError> {
        Connection::check_kind(method, MethodKind::Notification)?;
        self.check_gate(method)?;
        let passed = self.connection.pass_sent(method.as_str(), Some(params));
        let params: &dyn WriteJson = match &passed {
            Passed::Unchanged => params,
            Passed::Changed(changed) => changed,
            Passed::Dropped => return Ok(()),
        };
        let observed = self.connection.observed.notify(method.as_str(), Some(params), Tag::NONE);
        let params = observed.as_ref().map_or(params, |params| params);
        self.connection.outbox.try_push(
            Lane::Bulk,
            Channel::UNSOLICITED,
            method.into(),
            Tag::NONE,
            |out| write_notification(out, method.as_str(), Some(params)),
        )?;
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
        let (channel, part) = (Channel::UNSOLICITED, Part::OTHER_NOTIFICATION);
        let passed = self.connection.pass_sent(method, Some(params));
        let params: &dyn WriteJson = match &passed {
            Passed::Unchanged => params,
            Passed::Changed(changed) => changed,
            Passed::Dropped => return Ok(()),
        };
        let observed = self.connection.observed.notify(method, Some(params), Tag::NONE);
        let params = observed.as_ref().map_or(params, |params| params);
        self.connection.outbox.try_push(Lane::Bulk, channel, part, Tag::NONE, |out| {
            write_notification(out, method, Some(params))
        })?;
        Ok(())
    }
}

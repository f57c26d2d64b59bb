//! Support for tasks of 2025-11-25. The machine does not track tasks: the response to their call
//! was already sent, and further messages follow.

use crate::jsonrpc::WriteJson;
use crate::peer::handle::RequestHandle;
use crate::peer::outbox::Channel;
use crate::peer::requests::RequestOwner;
use crate::protocol::Method;
use crate::{Instant, Revision};

use super::Server;

impl Server {
    pub(super) fn withdraw_questions(&mut self, request: RequestHandle, now: Instant) {
        let Some(entry) = self.connection.requests.get_mut(request.key) else { return };
        if let RequestOwner::Input { round } = entry.owner {
            entry.owner = RequestOwner::Application;
            self.abandon_round(round, now);
        }
    }

    // MCP 2025-11-25 basic/utilities/progress#behavior-requirements [PROG-010]
    pub(super) fn send_task_progress(
        &mut self,
        request: RequestHandle,
        params: &dyn WriteJson,
    ) -> Result<(), crate::jsonrpc::WriteError> {
        let of_session = self.session.as_ref().is_some_and(|it| it.revision == TASKS_REVISION);
        if !of_session || self.is_behind() || self.connection.closed.is_some() {
            return Ok(());
        }
        let entry = self.connection.requests.get(request.key);
        let channel = entry.map_or(Channel::UNSOLICITED, |entry| entry.reply.channel);
        let tag = self.connection.tag_of(request.key);
        self.notify_session(Method::Progress, channel, tag, params)
    }
}

/// The revision whose clients ask for tasks.
const TASKS_REVISION: Revision = Revision::V2025_11_25;

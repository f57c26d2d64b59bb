//! What tasks of 2025-11-25 need of the machine, which does not know them: the answer to their call
//! has left, and what belongs to them goes on.

use crate::jsonrpc::WriteJson;
use crate::peer::handle::RequestHandle;
use crate::peer::outbox::Channel;
use crate::peer::requests::Work;
use crate::protocol::Method;
use crate::{Instant, Revision};

use super::Server;

impl Server {
    /// Gives up the questions that a request waits for in a legacy session: the client is told, and
    /// the request waits for an answer of the application again. Nothing happens to any other.
    ///
    /// For what need not be known any more, such as the questions of a task that was cancelled.
    pub fn withdraw_input(&mut self, request: RequestHandle, now: Instant) {
        note!(self, withdraw_input(request, now));
        let Some(entry) = self.connection.requests.get_mut(request.key) else { return };
        if let Work::Input { round } = entry.work {
            entry.work = Work::Application;
            self.abandon_round(round, now);
        }
    }

    /// Sends progress of a task of 2025-11-25, whose call is answered already: `params` are those of
    /// `notifications/progress`, with the call's token and the task in `_meta`. It goes on the way
    /// of `request`, one that waits for the task, or else like what belongs to no request.
    ///
    /// Dropped without an error where no session is of that revision, and while the machine is
    /// [congested](Self::is_congested). That progress increases, and comes not too often, is for
    /// whoever keeps the token to see to.
    ///
    /// # Errors
    ///
    /// The caller's: `params` is not an object.
    // MCP 2025-11-25 basic/utilities/progress#behavior-requirements [PROG-010]
    pub fn task_progress(
        &mut self,
        request: RequestHandle,
        params: &impl WriteJson,
    ) -> Result<(), crate::jsonrpc::WriteError> {
        note!(self, task_progress(request, params, None));
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

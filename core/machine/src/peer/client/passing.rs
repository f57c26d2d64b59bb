//! How received messages, and the answers of a client, pass its middleware.

use mcp_sansio_collections::Key;

use crate::Revision;
use crate::jsonrpc::{
    ErrorObject, NotificationMessage, RawJson, RequestId, RequestMessage, write_error, write_result,
};
use crate::peer::Exchanged;
use crate::peer::connection::Flow;
use crate::peer::middleware::PeerContext;
use crate::peer::outbox::{Channel, Lane, Part, Verdict};
use crate::peer::passing::owned;
use crate::protocol::Method;
use crate::{Instant, PanicGuard};

use super::Client;

impl Client {
    /// Runs the [middleware](crate::peer::MessageMiddleware) in `guard`.
    pub fn catch_panics(&mut self, guard: PanicGuard) {
        self.connection.catch_panics(guard);
    }

    // MCP 2026-07-28 extensions:SEP-3371-summary#3-middleware [EXT-028] [EXT-029]
    pub(super) fn receive_through_middleware<'f>(
        &mut self,
        message: RequestMessage<'f>,
        revision: Revision,
    ) -> Flow<'f> {
        let peer = PeerContext { revision: Some(revision), ..self.peer_context() };
        let (id, params) = (&message.id, message.params.as_ref());
        let passed = self.connection.pass_request(id, &message.method, params, peer);
        let RequestMessage { id, method, params } = message;
        let flow = match passed {
            Exchanged::Unchanged => self.receive_passed_request(id, method, params, revision),
            Exchanged::Changed(changed) => {
                // It is read like text of the frame.
                let params = Some(RawJson::trusted(changed.as_str()));
                owned(self.receive_passed_request(id, method, params, revision))
            }
            Exchanged::Refused(error) => {
                self.refuse_request(&id, &error);
                Ok(None)
            }
        };
        self.connection.end_passing();
        flow
    }

    pub(super) fn notice_through_middleware<'f>(
        &mut self,
        message: NotificationMessage<'f>,
        now: Instant,
    ) -> Flow<'f> {
        let peer = self.peer_context();
        let passed = self.connection.pass_received(&message.method, message.params.as_ref(), peer);
        passed.receive(message, |message| self.receive_passed_notification(message, now))
    }

    pub(super) fn answer_through_middleware<'f>(
        &mut self,
        key: Key,
        outcome: Result<RawJson<'f>, ErrorObject<'f>>,
        now: Instant,
    ) -> Flow<'f> {
        let Some(call) = self.connection.calls.get(key) else { return Ok(None) };
        let passed = self.connection.pass_answer(call.id, call.method, &outcome);
        passed.receive(outcome, |outcome| self.receive_passed_response(key, outcome, None, now))
    }

    /// Answers a request with a result that passes the middleware.
    pub(super) fn answer_passed(
        &mut self,
        lane: Lane,
        method: Option<Method>,
        id: &RequestId,
        result: RawJson<'static>,
    ) {
        let result = match self.connection.pass_result(id, method, &result) {
            Exchanged::Unchanged => result,
            Exchanged::Changed(changed) => changed,
            Exchanged::Refused(error) => return self.write_refusal(id, &error),
        };
        let (part, tag) = (Part::Answer(Verdict::Result), self.connection.tag(id));
        self.connection.observe_empty_answer(id);
        self.connection.outbox.push(lane, Channel::UNSOLICITED, part, tag, |out| {
            let written = write_result(out, id, &result);
            debug_assert!(written.is_ok(), "the result is an object");
        });
    }

    pub(super) fn refuse_request(&mut self, id: &RequestId, error: &ErrorObject<'_>) {
        let passed = self.connection.pass_error(id, error);
        self.write_refusal(id, passed.as_ref().unwrap_or(error));
    }

    /// Answers with an error that has passed the middleware.
    pub(super) fn write_refusal(&mut self, id: &RequestId, error: &ErrorObject<'_>) {
        let (part, tag) = (Part::Answer(Verdict::Failed(error.code)), self.connection.tag(id));
        self.connection.observed.refused(tag, error);
        self.connection.outbox.push(Lane::Bulk, Channel::UNSOLICITED, part, tag, |out| {
            write_error(out, Some(id), error);
        });
    }

    /// Returns the revision and the capabilities of the server.
    fn peer_context(&self) -> PeerContext<'static> {
        let session = self.session.as_ref();
        PeerContext {
            caller: None,
            revision: session.map(|session| session.revision),
            capabilities: session.map(|session| session.server),
        }
    }
}

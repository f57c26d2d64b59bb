//! The answers of a client to requests that it does not pass to the application.

use crate::jsonrpc::{ErrorObject, RawJson, RequestId, write_error, write_result};
use crate::peer::Exchanged;
use crate::peer::outbox::{Channel, Lane, Part, Verdict};
use crate::protocol::Method;

use super::Client;

impl Client {
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
}

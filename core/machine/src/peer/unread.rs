//! Answers to messages that could not be read.

use alloc::string::String;

use crate::Revision;
use crate::jsonrpc::{ErrorObject, RequestId, write_error, write_integer, write_string};

use super::connection::Connection;
use super::outbox::{Channel, Lane, Part, Verdict};
use super::queue::Tag;

impl Connection {
    /// Answers a message whose request is not in the table.
    pub(super) fn answer_unread(
        &mut self,
        id: Option<&RequestId>,
        error: &ErrorObject<'_>,
        revision: Option<Revision>,
        channel: Channel,
    ) {
        let part = Part::Answer(Verdict::Refused(error.code));
        let tag = id.map_or(Tag::NONE, |id| self.tag(id));
        self.outbox.push(Lane::Bulk, channel, part, tag, |out| {
            write_error_unread(out, id, error, revision);
        });
    }
}

/// Writes an error response to a message whose id may not have been readable.
// MCP 2025-11-25 basic/index#error-responses [RPC-009]: only newer revisions allow an error without
// an id; for the others the id is `null`, as in JSON-RPC.
pub(super) fn write_error_unread(
    out: &mut String,
    id: Option<&RequestId>,
    error: &ErrorObject<'_>,
    revision: Option<Revision>,
) {
    if id.is_none() && revision.is_some_and(|revision| revision < Revision::V2025_11_25) {
        out.push_str(r#"{"jsonrpc":"2.0","id":null,"error":"#);
        write_error_object(out, error);
        out.push('}');
    } else {
        write_error(out, id, error);
    }
}

fn write_error_object(out: &mut String, error: &ErrorObject<'_>) {
    out.push_str(r#"{"code":"#);
    write_integer(out, error.code.0);
    out.push_str(r#","message":"#);
    write_string(out, &error.message);
    out.push('}');
}

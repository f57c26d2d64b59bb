use alloc::string::String;

use mcp_sansio_sync::Arc;
use serde::Serialize;

use crate::catalog::{Lists, Target};
use crate::jsonrpc::{
    AsJson, ErrorObject, RawJson, RequestId, WriteError, WriteJson, write_empty_result, write_id,
    write_result, write_string,
};
use crate::peer::connection::Flow;
use crate::peer::error::CommandError;
use crate::peer::event::Request;
use crate::peer::handle::RequestHandle;
use crate::peer::outbox::{Channel, Lane, Part, Verdict};
use crate::peer::policy::ListRequests;
use crate::peer::queue::Tag;
use crate::peer::requests::{InFlight, ReplyTo, RequestOwner};
use crate::protocol::{
    AtRevision, CacheHints, CacheScope, Capabilities, Capability, JsonAtRevision, LoggingLevel,
    Method, ToolOutput, WriteJsonAt,
};
use crate::{Era, Instant, Revision};

use super::Server;
use super::receive::Incoming;

impl Server {
    pub(super) fn send_result(
        &mut self,
        request: RequestHandle,
        result: &dyn WriteJsonAt,
    ) -> Result<(), CommandError> {
        let output = result.output();
        self.check_output(request, output)?;
        let entry = self.take_request(request)?;
        self.connection.observed.tool_output(output);
        let InFlight { id, method, revision, reply, restricted, .. } = entry;
        let (written, plain) = (JsonAtRevision(result, revision), result.is_plain());
        let result = Body { result: &written, plain, restricted };
        Ok(self.finish_answer(&id, method, revision, reply, result)?)
    }

    /// Checks the result of a tool. A result that violates the output schema is not sent to the
    /// client.
    // MCP 2026-07-28 server/tools#output-schema [TOOL-019]
    fn check_output(
        &mut self,
        request: RequestHandle,
        output: ToolOutput<'_>,
    ) -> Result<(), CommandError> {
        let entry = self.connection.requests.get(request.key);
        let Some(tool) = entry.and_then(|entry| entry.tool.as_ref()) else { return Ok(()) };
        let error = match self.guard.run(|| tool.check(output)) {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(reason)) => ErrorObject::internal(reason),
            Err(panicked) => panicked.into(),
        };
        self.send_error(request, error.clone())?;
        Err(CommandError::InvalidOutput(error.message.into_owned()))
    }

    pub(super) fn send_error(
        &mut self,
        request: RequestHandle,
        mut error: ErrorObject<'_>,
    ) -> Result<(), CommandError> {
        let entry = self.take_request(request)?;
        error.code = error.code.at_revision(entry.revision);
        self.answer_error(&entry.id, &error, entry.reply);
        Ok(())
    }

    // MCP 2025-11-25 basic/utilities/progress#behavior-requirements [PROG-004] [PROG-006]
    // MCP 2026-07-28 basic/transports/streamable-http#receiving-messages [PROG-011]: on the channel
    // of its request.
    pub(super) fn send_progress(
        &mut self,
        request: RequestHandle,
        progress: f64,
        total: Option<f64>,
        message: Option<&str>,
        now: Instant,
    ) {
        if self.is_behind() {
            return;
        }
        let per_second = self.connection.config.limits.progress_per_second_max;
        let Some(entry) = self.connection.requests.get_mut(request.key) else { return };
        let (revision, channel) = (entry.revision, entry.reply.channel);
        let Some(asked) = &mut entry.progress else { return };
        if !asked.admit(progress, per_second, now) {
            return;
        }
        let token = asked.token.clone();
        let params = |out: &mut String| {
            out.push_str(r#"{"progressToken":"#);
            write_id(out, &token);
            out.push_str(r#","progress":"#);
            AsJson(&progress).write_json(out)?;
            if let Some(total) = total.filter(|total| total.is_finite()) {
                out.push_str(r#","total":"#);
                AsJson(&total).write_json(out)?;
            }
            // MCP 2025-03-26 basic/utilities/progress#progress-flow [PROG-009]
            if let Some(message) = message.filter(|_| revision >= Revision::V2025_03_26) {
                out.push_str(r#","message":"#);
                write_string(out, message);
            }
            out.push('}');
            Ok(())
        };
        let tag = self.connection.tag_of(request.key);
        let written = self.write_notification(Method::Progress, channel, tag, &params);
        debug_assert!(written.is_ok(), "finite numbers and strings are JSON");
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
        let (channel, tag) = (entry.reply.channel, self.connection.tag(&entry.id));
        let part = Part::OTHER_NOTIFICATION;
        let observed = self.connection.observed.notify(method, Some(params), tag);
        let params = observed.as_ref().map_or(params, |params| params);
        self.connection.outbox.try_push(Lane::Bulk, channel, part, tag, |out| {
            crate::jsonrpc::write_notification(out, method, Some(params))
        })?;
        Ok(())
    }

    // MCP 2025-11-25 server/utilities/logging#log-message-notifications [LOG-002]
    pub(super) fn send_log(
        &mut self,
        request: Option<RequestHandle>,
        level: LoggingLevel,
        logger: Option<&str>,
        data: &dyn WriteJson,
    ) -> Result<(), WriteError> {
        let entry = request.and_then(|request| self.connection.requests.get(request.key));
        // MCP 2026-07-28 server/utilities/logging#per-request-log-level [LOG-009]: a message for a
        // request is sent only on its stream.
        if request.is_some() && entry.is_none() || self.is_behind() {
            return Ok(());
        }
        let channel = entry.map_or(Channel::UNSOLICITED, |entry| entry.reply.channel);
        let tag = entry.map_or(Tag::NONE, |entry| self.connection.tag(&entry.id));
        let modern = entry.filter(|entry| entry.revision.era() == Era::Modern);
        let least = match (modern, &self.session) {
            // MCP 2026-07-28 server/utilities/logging#per-request-log-level [LOG-007] [LOG-008]
            (Some(entry), _) => entry.log_level,
            // MCP 2025-11-25 schema.json#SetLevelRequest [LOG-004]
            (None, Some(session)) => Some(session.log_level),
            (None, None) => None,
        };
        if least.is_none_or(|least| level < least) {
            return Ok(());
        }
        let params = |out: &mut String| {
            out.push_str(r#"{"level":"#);
            write_string(out, level.as_str());
            if let Some(logger) = logger {
                out.push_str(r#","logger":"#);
                write_string(out, logger);
            }
            out.push_str(r#","data":"#);
            data.write_json(out)?;
            out.push('}');
            Ok(())
        };
        if modern.is_some() {
            // MCP 2026-07-28 server/utilities/logging#capabilities [CAP-004]
            if !self.modern.contains(Capability::Logging) {
                return Ok(());
            }
            self.write_notification(Method::Message, channel, tag, &params)
        } else if request.is_none() && self.connection.closed.is_some() {
            Ok(())
        } else {
            // A message of a request precedes its response, which may follow after the end of the
            // input.
            self.notify_session(Method::Message, channel, tag, &params)
        }
    }

    /// Returns whether a request waits for a response from the application.
    #[must_use]
    pub fn is_pending(&self, request: RequestHandle) -> bool {
        self.revision_of(request).is_ok()
    }

    // ------------------------------------------------------------------ shared by the parts

    pub(crate) fn revision_of(&self, request: RequestHandle) -> Result<Revision, CommandError> {
        let entry = self.connection.requests.get(request.key).ok_or(CommandError::NotDue)?;
        match entry.owner {
            RequestOwner::Application => Ok(entry.revision),
            RequestOwner::Input { .. } | RequestOwner::Listening(_) => Err(CommandError::NotDue),
        }
    }

    pub(super) fn take_request(
        &mut self,
        request: RequestHandle,
    ) -> Result<InFlight, CommandError> {
        self.revision_of(request)?;
        self.connection.requests.remove(request.key).ok_or(CommandError::NotDue)
    }

    /// Writes the response to a request that was removed from the table. Not generic over the kind of result, which saves a tenth
    /// of a device image.
    pub(super) fn finish_answer(
        &mut self,
        id: &RequestId,
        method: Option<Method>,
        revision: Revision,
        reply: ReplyTo,
        Body { result, plain, restricted }: Body<'_>,
    ) -> Result<(), WriteError> {
        let cache = method.is_some_and(Method::is_cacheable).then_some(&self.identity.cache);
        let additions = (revision.era() == Era::Modern).then(|| Additions {
            identity: &self.identity.identity_meta,
            cache,
            restricted,
            revision,
            plain,
        });
        let tag = self.connection.tag(id);
        let kept = self.connection.observed.keeps_result(tag, method);
        let complete = |out: &mut String| {
            let start = out.len();
            result.write_json(out)?;
            if let Some(additions) = &additions {
                additions.complete(out, start)?;
            }
            kept.keep(&out[start..]);
            Ok(())
        };
        let written = match reply.batch {
            // The common case is written directly into the queue.
            None => {
                let part = Part::Answer(Verdict::Result);
                // MCP 2025-11-25 basic/utilities/cancellation#behavior-requirements [CANC-002]
                let initialize = method == Some(Method::Initialize);
                let tag = if initialize { Tag::NONE } else { tag };
                self.connection.outbox.try_push(Lane::Bulk, reply.channel, part, tag, |out| {
                    write_result(out, id, &complete)
                })
            }
            Some(_) => {
                let mut answer = String::new();
                let written = write_result(&mut answer, id, &complete);
                if written.is_ok() {
                    self.write_answer(Lane::Bulk, id, reply, Verdict::Result, |out| {
                        out.push_str(&answer);
                    });
                }
                written
            }
        };
        if written.is_ok() {
            self.connection.observed.answered(tag, method, kept);
        } else {
            // The client still needs a response.
            let error = ErrorObject::internal("the result could not be written");
            self.answer_error(id, &error, reply);
        }
        written
    }

    /// Answers a request that was never added to the table.
    pub(super) fn answer_by_machine(
        &mut self,
        incoming: &Incoming<'_, '_>,
        result: &dyn WriteJson,
    ) {
        self.answer_incoming(incoming, result, false);
    }

    /// Like [`answer_by_machine`](Self::answer_by_machine), for a [plain](WriteJsonAt::is_plain)
    /// result.
    pub(super) fn answer_plain(&mut self, incoming: &Incoming<'_, '_>, result: &dyn WriteJson) {
        self.answer_incoming(incoming, result, true);
    }

    fn answer_incoming(
        &mut self,
        incoming: &Incoming<'_, '_>,
        result: &dyn WriteJson,
        plain: bool,
    ) {
        let method = incoming.method.known();
        let (revision, reply) = (incoming.revision, incoming.reply);
        let result = Body { result, plain, restricted: false };
        // On failure an internal error was already sent.
        let _answered = self.finish_answer(&incoming.id, method, revision, reply, result);
    }

    /// Answers `initialize`.
    pub(super) fn answer_initialize<R: Serialize>(
        &mut self,
        id: &RequestId,
        result: &R,
        reply: ReplyTo,
    ) {
        let revision = Revision::LATEST_LEGACY;
        let method = Some(Method::Initialize);
        let _answered = self.finish_answer(id, method, revision, reply, Body::new(&AsJson(result)));
    }

    /// Sends the empty result of a legacy request.
    pub(super) fn answer_empty(&mut self, id: &RequestId, reply: ReplyTo) {
        self.connection.observed.answered_empty(self.connection.tag(id));
        self.write_answer(Lane::Bulk, id, reply, Verdict::Result, |out| {
            write_empty_result(out, id)
        });
    }

    // MCP 2025-11-25 basic/utilities/ping#behavior-requirements [PING-001]: promptly, so it
    // overtakes queued results.
    pub(super) fn answer_ping(&mut self, id: &RequestId, reply: ReplyTo) {
        self.connection.observed.answered_empty(self.connection.tag(id));
        self.write_answer(Lane::Control, id, reply, Verdict::Result, |out| {
            write_empty_result(out, id);
        });
    }

    /// Answers a request for a list, or delivers it.
    pub(super) fn list<'f>(&mut self, method: Method, incoming: Incoming<'_, 'f>) -> Flow<'f> {
        let answers = self.connection.config.policy.lists == ListRequests::Answer;
        if !(answers && self.catalog.manages(method)) {
            return self.deliver(incoming, Target::None);
        }
        self.answer_list(method, &incoming);
        Ok(None)
    }

    /// Returns the lists as the sender of a request sees them.
    #[must_use]
    pub fn lists_of(&self, request: &Request<'_>) -> Lists {
        let tasks = self.lists_tasks(request.revision, request.capabilities);
        Lists::new(Arc::clone(&self.catalog), self.identity.cache.clone(), tasks)
    }

    /// Returns whether the calls of a client can be tasks, so that its lists contain the tools that
    /// only run as tasks.
    fn lists_tasks(&self, revision: Revision, client: Capabilities) -> bool {
        match (revision.era(), &self.session) {
            (Era::Modern, _) => client.contains(Capability::TasksExtension),
            (Era::Legacy, Some(session)) => session.server.contains(Capability::TasksToolsCall),
            (Era::Legacy, None) => false,
        }
    }

    fn answer_list(&mut self, method: Method, incoming: &Incoming<'_, '_>) {
        // The catalog is shared for the duration of the call, so that a page is written directly
        // from its entries.
        let catalog = Arc::clone(&self.catalog);
        let caller = self.caller_at(incoming.revision).into_owned();
        let tasks = self.lists_tasks(incoming.revision, incoming.client);
        match catalog.list(
            method,
            &incoming.params,
            incoming.revision,
            &self.identity.cache,
            &caller,
        ) {
            Ok(page) if !tasks => self.answer_by_machine(incoming, &page.without_tasks()),
            Ok(page) => self.answer_by_machine(incoming, &page),
            // MCP 2025-11-25 server/utilities/pagination#error-handling [PAGE-007]
            Err(error) => self.answer_error(&incoming.id, &error, incoming.reply),
        }
    }
}

/// A result to be written.
pub(super) struct Body<'a> {
    result: &'a dyn WriteJson,
    /// See [`WriteJsonAt::is_plain`].
    plain: bool,
    /// Whether only some callers can see its item.
    restricted: bool,
}

impl<'a> Body<'a> {
    pub(super) const fn new(result: &'a dyn WriteJson) -> Self {
        Self { result, plain: false, restricted: false }
    }
}

/// The members that the modern era requires in every result.
struct Additions<'a> {
    identity: &'a str,
    cache: Option<&'a CacheHints>,
    /// Whether only some callers can see the item that the result is from.
    restricted: bool,
    revision: Revision,
    plain: bool,
}

impl Additions<'_> {
    /// Completes the result that starts at `start`.
    // MCP 2026-07-28 schema.json#Result [RPC-010], MCP 2026-07-28 basic/index#result-responses
    // [RPC-019] [META-011], MCP 2026-07-28 server/utilities/caching#cacheable-results [CACHE-001]
    fn complete(&self, out: &mut String, start: usize) -> Result<(), WriteError> {
        if self.plain && self.cache.is_none() {
            out.pop();
            if !self.identity.is_empty() {
                out.push_str(r#","_meta":{"#);
                out.push_str(self.identity);
                out.push('}');
            }
            out.push('}');
            return Ok(());
        }
        let text = out.get(start..).unwrap_or_default();
        if !text.starts_with('{') || !text.ends_with('}') {
            return Err(WriteError::NotAnObject);
        }
        let (mut result_type, mut interim, mut meta, mut cached) = (false, false, None, false);
        for member in RawJson::trusted(text).members() {
            match &*member.name() {
                "resultType" => {
                    result_type = true;
                    interim = member.value.as_str() != r#""complete""#;
                }
                "_meta" => {
                    meta = Some((
                        member.range,
                        member.value.get(crate::peer::metadata::SERVER_INFO).is_some(),
                    ))
                }
                "ttlMs" => cached = true,
                _ => {}
            }
        }
        let mut empty = text.bytes().filter(|b| !b.is_ascii_whitespace()).nth(1) == Some(b'}');
        // The identity is added to the existing `_meta`.
        if let Some((range, named)) = &meta
            && !named
            && !self.identity.is_empty()
        {
            let at = start + range.start + 1;
            let only = text.split_at(range.start + 1).1.trim_ascii_start().starts_with('}');
            if !only {
                out.insert(at, ',');
            }
            out.insert_str(at, self.identity);
        }
        out.pop();
        let mut add = |out: &mut String, part: &str| {
            if !core::mem::take(&mut empty) {
                out.push(',');
            }
            out.push_str(part);
        };
        if !result_type {
            add(out, r#""resultType":"complete""#);
        }
        if meta.is_none() && !self.identity.is_empty() {
            add(out, r#""_meta":{"#);
            out.push_str(self.identity);
            out.push('}');
        }
        if let Some(cache) = self.cache.filter(|_| !cached && !interim) {
            add(out, r#""ttlMs":"#);
            AsJson(&AtRevision(&cache.ttl, self.revision)).write_json(out)?;
            out.push_str(r#","cacheScope":"#);
            let scope = if self.restricted { &CacheScope::Private } else { &cache.scope };
            AsJson(&AtRevision(scope, self.revision)).write_json(out)?;
        }
        out.push('}');
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_result_gets_the_same_additions_as_a_scanned_one() {
        for identity in [r#""io.modelcontextprotocol/serverInfo":{}"#, ""] {
            let completed = |plain| {
                let revision = Revision::LATEST;
                let additions =
                    Additions { identity, cache: None, restricted: false, revision, plain };
                let mut out = r#"<{"resultType":"complete","content":[]}"#.into();
                additions.complete(&mut out, 1).map(|()| out)
            };
            assert_eq!(completed(true).unwrap(), completed(false).unwrap());
        }
    }
}

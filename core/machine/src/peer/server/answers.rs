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
use crate::peer::queue::Tag;
use crate::peer::requests::{InFlight, ReplyTo, RequestOwner};
use crate::peer::{Exchanged, Passed};
use crate::protocol::{
    Capabilities, Capability, JsonAtRevision, LoggingLevel, Method, SerializeAt, ToolOutput,
    WriteJsonAt,
};
use crate::{Era, Instant, Revision};

use super::Server;
use super::receive::Incoming;
use super::result_body::{Additions, Body, Contents, pass_completed};

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
        let result = Body { result: &written, contents: Contents::new(plain), restricted };
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
        let error = match self.config.guard.run(|| tool.check(output)) {
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
        let write = |token: &RequestId, revision, out: &mut String| {
            out.push_str(r#"{"progressToken":"#);
            write_id(out, token);
            out.push_str(r#","progress":"#);
            AsJson(&progress.at(revision)).write_json(out)?;
            if let Some(total) = total.filter(|total| total.is_finite()) {
                out.push_str(r#","total":"#);
                AsJson(&total.at(revision)).write_json(out)?;
            }
            // MCP 2025-03-26 basic/utilities/progress#progress-flow [PROG-009]
            if let Some(message) = message.filter(|_| revision >= Revision::V2025_03_26) {
                out.push_str(r#","message":"#);
                write_string(out, message);
            }
            out.push('}');
            Ok(())
        };
        let (mut passed, mut progress) = (Passed::Unchanged, progress);
        if self.connection.has_middleware() {
            let Some(entry) = self.connection.requests.get(request.key) else { return };
            let Some(asked) = &entry.progress else { return };
            let per_second = self.connection.config.limits.progress_per_second_max;
            // The middleware sees only notifications that may be sent.
            if !asked.clone().admit(progress, per_second, now) {
                return;
            }
            let params = |out: &mut String| write(&asked.token, entry.revision, out);
            passed = self.connection.pass_sent(Method::Progress.as_str(), Some(&params));
            match &passed {
                Passed::Unchanged => {}
                // The changed value must increase as well.
                Passed::Changed(params) => {
                    let passing = self.connection.passing.as_ref();
                    let changed = passing.and_then(|passing| passing.progress(params));
                    progress = changed.unwrap_or(progress);
                }
                Passed::Dropped => return,
            }
        }
        let per_second = self.connection.config.limits.progress_per_second_max;
        let Some(entry) = self.connection.requests.get_mut(request.key) else { return };
        let (revision, channel) = (entry.revision, entry.reply.channel);
        let Some(asked) = &mut entry.progress else { return };
        if !asked.admit(progress, per_second, now) {
            return;
        }
        let token = asked.token.clone();
        let params = |out: &mut String| write(&token, revision, out);
        let params: &dyn WriteJson = match &passed {
            Passed::Changed(changed) => changed,
            Passed::Unchanged | Passed::Dropped => &params,
        };
        let route = (Lane::Bulk, channel, self.connection.tag_of(request.key));
        let method = Method::Progress;
        let written = self.connection.write_passed_notification(
            route,
            method.into(),
            method.as_str(),
            Some(params),
        );
        debug_assert!(written.is_ok(), "finite numbers and strings are JSON");
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
        let is_modern = modern.is_some();
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
        let is_allowed = if is_modern {
            // MCP 2026-07-28 server/utilities/logging#capabilities [CAP-004]
            self.config.modern.contains(Capability::Logging)
        } else {
            // A message of a request precedes its response, which may follow after the end of the
            // input.
            let is_open = request.is_some() || self.connection.closed.is_none();
            is_open && self.may_notify_session(Method::Message)
        };
        if !is_allowed {
            return Ok(());
        }
        let passed = self.connection.pass_sent(Method::Message.as_str(), Some(&params));
        let params: &dyn WriteJson = match &passed {
            Passed::Unchanged => &params,
            Passed::Changed(changed) => {
                let changed_level = changed.get("level").and_then(|level| level.decode().ok());
                if least > changed_level {
                    return Ok(());
                }
                changed
            }
            Passed::Dropped => return Ok(()),
        };
        let (route, method) = ((Lane::Bulk, channel, tag), Method::Message);
        let part = method.into();
        self.connection.write_passed_notification(route, part, method.as_str(), Some(params))
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

    /// Writes the response to a request that was removed from the table. Not generic over the kind
    /// of result, which saves a tenth of a device image.
    pub(super) fn finish_answer(
        &mut self,
        id: &RequestId,
        method: Option<Method>,
        revision: Revision,
        reply: ReplyTo,
        Body { result, contents, restricted }: Body<'_>,
    ) -> Result<(), WriteError> {
        let cache = method.is_some_and(Method::is_cacheable).then_some(&self.config.identity.cache);
        let additions = (revision.era() == Era::Modern).then(|| Additions {
            identity: &self.config.identity.identity_meta,
            cache,
            restricted,
            revision,
            contents,
        });
        let tag = self.connection.tag(id);
        let kept = self.connection.observed.keeps_result(tag, method);
        let complete = |out: &mut String| {
            let start = out.len();
            result.write_json(out)?;
            if let Some(additions) = &additions {
                additions.complete(out, start)?;
            }
            Ok(())
        };
        let connection = &mut self.connection;
        let passed = match pass_completed(connection, id, method, additions.as_ref(), &complete) {
            Ok(passed) => passed,
            Err(error) => {
                self.write_error_answer(id, &error, reply, Verdict::Failed(error.code));
                return Ok(());
            }
        };
        let complete = |out: &mut String| {
            let start = out.len();
            match &passed {
                None => complete(out)?,
                Some(changed) => changed.write_json(out)?,
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
        contents: Contents,
    ) {
        let method = incoming.method.known();
        let (revision, reply) = (incoming.revision, incoming.reply);
        let result = Body { result, contents, restricted: false };
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

    // MCP 2025-11-25 basic/utilities/ping#behavior-requirements [PING-001]: promptly, so it
    // overtakes queued results.
    pub(super) fn answer_ping(&mut self, id: &RequestId, reply: ReplyTo) {
        self.answer_empty(Lane::Control, Method::Ping, id, reply);
    }

    /// Sends the empty result of a legacy request, or that of a middleware.
    pub(super) fn answer_empty(
        &mut self,
        lane: Lane,
        method: Method,
        id: &RequestId,
        reply: ReplyTo,
    ) {
        let result = if self.connection.has_middleware() {
            let early = self.connection.take_early_result().unwrap_or(RawJson::EMPTY_OBJECT);
            match self.connection.pass_result(id, Some(method), &early) {
                Exchanged::Unchanged => early,
                Exchanged::Changed(changed) => changed,
                Exchanged::Refused(error) => {
                    return self.write_error_answer(id, &error, reply, Verdict::Failed(error.code));
                }
            }
        } else {
            RawJson::EMPTY_OBJECT
        };
        self.connection.observe_empty_answer(id);
        self.write_answer(lane, id, reply, Verdict::Result, |out| {
            if result.as_str() == RawJson::EMPTY_OBJECT.as_str() {
                return write_empty_result(out, id);
            }
            let written = write_result(out, id, &result);
            debug_assert!(written.is_ok(), "the result is an object");
        });
    }

    /// Answers a request for a list, or delivers it.
    pub(super) fn list<'f>(&mut self, method: Method, incoming: Incoming<'_, 'f>) -> Flow<'f> {
        let delivers = self.connection.config.policy.deliver_lists;
        if delivers || !self.config.catalog.manages(method) {
            return self.deliver(incoming, Target::None);
        }
        self.answer_list(method, &incoming);
        Ok(None)
    }

    /// Returns the lists as the sender of a request sees them.
    #[must_use]
    pub fn lists_of(&self, request: &Request<'_>) -> Lists {
        let tasks = self.lists_tasks(request.revision, request.capabilities);
        Lists::new(Arc::clone(&self.config.catalog), self.config.identity.cache.clone(), tasks)
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
        let catalog = Arc::clone(&self.config.catalog);
        let caller = self.caller_at(incoming.revision).into_owned();
        let tasks = self.lists_tasks(incoming.revision, incoming.client);
        match catalog.list(
            method,
            &incoming.params,
            incoming.revision,
            &self.config.identity.cache,
            &caller,
        ) {
            Ok(page) if !tasks => {
                self.answer_by_machine(incoming, &page.without_tasks(), Contents::Page)
            }
            Ok(page) => self.answer_by_machine(incoming, &page, Contents::Page),
            // MCP 2025-11-25 server/utilities/pagination#error-handling [PAGE-007]
            Err(error) => self.answer_error(&incoming.id, &error, incoming.reply),
        }
    }
}

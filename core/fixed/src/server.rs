//! The server's side of a connection: one message in, at most one line out.

use mcp_sansio::envelope::{
    Defect, Envelope, EnvelopeBatch, Envelopes, IdRef, JsonText, ParseLimits, Reason, Sink,
    WriteId, Written, parse_envelope, write_error_head, write_escaped, write_head, write_string,
};
use mcp_sansio::framing::FrameError;
use mcp_sansio::gate::{Handshake, Metadata, MethodKind, Refusal, check_repeats, write_revisions};
use mcp_sansio::{Capabilities, Capability, Era, ErrorCode, Method, Revision, Revisions, Side};

use crate::output::{Output, Text, TooSmall};
use crate::service::{Call, Failure, Resource, Service, Tool};

/// The revision that supports batches.
const BATCHES: Revision = Revision::V2025_03_26;

/// A server for one connection at a time, over any transport of messages.
///
/// It speaks all revisions of its service: a legacy session after `initialize`, and modern requests,
/// each with its own metadata, at the same time. A second `initialize` opens another session.
#[derive(Debug)]
pub struct Server<'b, S> {
    service: S,
    output: Output<'b>,
    session: Option<Session>,
}

/// What `initialize` has negotiated.
#[derive(Clone, Copy, Debug)]
struct Session {
    revision: Revision,
    client: Capabilities,
}

/// What a message came to.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Handled<'s> {
    /// The line to send, with its line end.
    pub line: Option<&'s [u8]>,
    /// What went wrong, if anything. The client was told, if the protocol has an answer.
    pub fault: Option<Fault>,
}

/// What went wrong with a message. The connection continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The output is too small for an answer; the client got an error instead. The program should
    /// lend more, or offer less.
    OutputFull {
        /// The length of the output, in bytes.
        capacity: usize,
    },
    /// A message is malformed: the client's fault.
    Malformed(Reason),
    /// A line is too long, or was cut short: the client's fault, or the program lends too little.
    Frame(FrameError),
    /// A request was refused with this code: the client's fault.
    Refused(ErrorCode),
}

/// A request, taken apart.
#[derive(Clone, Copy)]
struct Request<'f> {
    id: IdRef<'f>,
    method: Option<Method>,
    name: Written<'f>,
    params: JsonText<'f>,
    is_in_batch: bool,
}

/// A request that is allowed.
struct Allowed<'m, 'f> {
    id: IdRef<'f>,
    method: Method,
    params: JsonText<'f>,
    metadata: &'m Metadata<'f>,
    revision: Revision,
}

/// What prevents an answer.
enum Unanswered<'f> {
    Refused(Refusal<'f>),
    /// The result does not fit into the output.
    Full,
}

impl<'f> From<Refusal<'f>> for Unanswered<'f> {
    fn from(refusal: Refusal<'f>) -> Self {
        Self::Refused(refusal)
    }
}

type Answered<'f> = Result<(), Unanswered<'f>>;

impl<'b, S: Service> Server<'b, S> {
    /// The longest error without a peer's text but its id, and the punctuation of a batch, in bytes.
    const ERROR_LENGTH_MAX: usize = 128 + S::ID_LENGTH_MAX;

    /// The capabilities that the server declares, at every revision.
    const DECLARED: Capabilities = Capabilities::NONE
        .with(Capability::Tools, !S::TOOLS.is_empty())
        .with(Capability::Resources, !S::RESOURCES.is_empty());

    /// Creates a server, whose lines are at most as long as `output`.
    ///
    /// # Errors
    ///
    /// The output cannot hold an error for every request.
    pub fn new(service: S, output: &'b mut [u8]) -> Result<Self, TooSmall> {
        let output = Output::new(output);
        if output.capacity() < Self::ERROR_LENGTH_MAX {
            return Err(TooSmall { least: Self::ERROR_LENGTH_MAX });
        }
        Ok(Self { service, output, session: None })
    }

    /// Returns the line that was written last.
    pub(crate) fn output(&self) -> &[u8] {
        self.output.bytes()
    }

    /// Access to the service, between messages.
    pub const fn service(&mut self) -> &mut S {
        &mut self.service
    }

    /// Handles one message or batch. Nothing depends on when the previous line is sent, but it is
    /// overwritten.
    pub fn handle_message(&mut self, frame: &[u8]) -> Handled<'_> {
        self.output.clear();
        let mut limits = ParseLimits::default();
        limits.depth = S::DEPTH_MAX;
        limits.id_length = S::ID_LENGTH_MAX;
        // Each request of a batch gets at least an error.
        limits.batch = self.output.capacity() / Self::ERROR_LENGTH_MAX;
        let fault = match parse_envelope(frame, limits) {
            Ok(Envelopes::Single(envelope)) => self.receive(envelope, false),
            Ok(Envelopes::Batch(batch)) => self.receive_batch(batch),
            Err(defect) => self.refuse_malformed(&defect, self.revision()),
        };
        self.end_line(fault)
    }

    /// Reports a framing error of the decoder.
    // MCP 2026-07-28 schema.json#InvalidRequestError [RPC-017]
    pub fn handle_frame_error(&mut self, error: FrameError) -> Handled<'_> {
        self.output.clear();
        let revision = self.revision();
        write_unread_head(&mut self.output, None, ErrorCode::PARSE_ERROR, revision);
        self.output.push('"');
        self.output.push_displayed(&error);
        self.output.push_str("\"}}");
        self.end_line(Some(Fault::Frame(error)))
    }

    fn end_line(&mut self, fault: Option<Fault>) -> Handled<'_> {
        self.output.reserve_end(0);
        if self.output.bytes().is_empty() {
            return Handled { line: None, fault };
        }
        self.output.push('\n');
        Handled { line: Some(self.output.bytes()), fault }
    }

    fn revision(&self) -> Option<Revision> {
        self.session.map(|session| session.revision)
    }

    // ------------------------------------------------------------------ messages

    /// Handles one message, and appends its answer.
    fn receive(&mut self, envelope: Envelope<'_>, is_in_batch: bool) -> Option<Fault> {
        let (id, name, params) = match envelope {
            Envelope::Request { id, method, params } => (id, method, params),
            // MCP 2025-11-25 basic/index#notifications [RPC-013]: never answered. There is nothing
            // to cancel, and a session serves its client at once.
            // MCP 2025-11-25 basic/index#responses [RPC-007]: this server sends no requests.
            Envelope::Notification { .. } | Envelope::Response { .. } => return None,
        };
        let params = params.unwrap_or(JsonText::EMPTY_OBJECT);
        let request = Request { id, method: Method::read(name), name, params, is_in_batch };
        let (start, metadata) = (self.output.mark(), Metadata::read(params));
        let fault = match self.answer(request, &metadata) {
            Ok(()) => None,
            Err(Unanswered::Full) => Some(Fault::OutputFull { capacity: self.output.capacity() }),
            Err(Unanswered::Refused(refusal)) => {
                self.output.cut(start);
                self.write_refusal(&id, &refusal);
                Some(Fault::Refused(refusal.code()))
            }
        };
        if self.output.is_complete() && !matches!(fault, Some(Fault::OutputFull { .. })) {
            return fault;
        }
        self.output.cut(start);
        self.write_refusal(&id, &Refusal::Internal("the answer is too long for this server"));
        Some(Fault::OutputFull { capacity: self.output.capacity() })
    }

    /// Handles a batch: its answers are one line.
    // MCP 2025-03-26 basic/index#batching [BATCH-001] [BATCH-003]
    // MCP 2025-06-18 basic/transports#stdio [BATCH-010] [STDIO-010]
    fn receive_batch(&mut self, batch: EnvelopeBatch<'_>) -> Option<Fault> {
        let revision = self.revision();
        if !S::REVISIONS.contains(BATCHES) || revision.is_some_and(|revision| revision != BATCHES) {
            return self.refuse_malformed(&Reason::BatchRefused.into(), revision);
        }
        let (mut fault, mut rest) = (None, batch.len());
        self.output.push('[');
        for message in batch {
            rest -= 1;
            self.output.reserve_end(rest * Self::ERROR_LENGTH_MAX + "]\n".len());
            let before = self.output.mark();
            if self.output.bytes() != b"[" {
                self.output.push(',');
            }
            let start = self.output.mark();
            let found = match message {
                Ok(envelope) => self.receive(envelope, true),
                Err(defect) => self.refuse_malformed(&defect, Some(BATCHES)),
            };
            if self.output.ends_at(start) {
                self.output.cut(before);
            }
            fault = fault.or(found);
        }
        self.output.reserve_end(0);
        if self.output.bytes() == b"[" {
            self.output.clear();
        } else {
            self.output.push(']');
        }
        fault
    }

    /// Answers a malformed message, if it is to be answered.
    fn refuse_malformed(
        &mut self,
        defect: &Defect<'_>,
        revision: Option<Revision>,
    ) -> Option<Fault> {
        let reason = defect.reason;
        if defect.shape.is_answered() {
            let start = self.output.mark();
            // An id over the limit may be as long as the frame.
            for id in [defect.id.as_ref(), None] {
                self.output.cut(start);
                write_unread_head(&mut self.output, id, reason.code(), revision);
                self.output.push('"');
                self.output.push_displayed(&reason);
                self.output.push_str("\"}}");
                if self.output.is_complete() {
                    break;
                }
            }
        }
        Some(Fault::Malformed(reason))
    }

    fn write_refusal(&mut self, id: &IdRef<'_>, refusal: &Refusal<'_>) {
        write_error_head(&mut self.output, Some(id), refusal.code());
        self.output.push('"');
        self.output.push_displayed(refusal);
        self.output.push('"');
        if refusal.has_data() {
            self.output.push_str(",\"data\":");
            refusal.write_data(&mut self.output);
        }
        self.output.push_str("}}");
    }

    // ------------------------------------------------------------------ requests

    /// Answers a request, or returns why not.
    fn answer<'f>(
        &mut self,
        request: Request<'f>,
        metadata: &Result<Metadata<'f>, &'static str>,
    ) -> Answered<'f> {
        let Request { id, method, name, params, is_in_batch } = request;
        // MCP 2025-11-25 basic/utilities/ping#behavior-requirements [PING-001]: even before
        // initialization is complete.
        let ping = method == Some(Method::Ping) && S::REVISIONS.speaks(Era::Legacy);
        let metadata = match metadata {
            Ok(metadata) => metadata,
            // Other defects of its parameters do not matter.
            Err(_) if ping && check_repeats(params).is_ok() => return self.answer_empty(id),
            Err(what) => return Err(Refusal::InvalidParams(what).into()),
        };
        let (revision, client) = if metadata.is_modern(S::REVISIONS) {
            // MCP 2026-07-28 basic/index#statelessness [LIFE-009]
            // MCP 2025-06-18 basic/transports#sending-messages-to-the-server [BATCH-010]
            if is_in_batch {
                let what = "a modern request is not part of a batch";
                return Err(Refusal::InvalidRequest(what).into());
            }
            if let Some(what) = metadata.fault() {
                return Err(Refusal::InvalidParams(what).into());
            }
            let (revision, declared) = metadata.declaration(S::REVISIONS)?;
            (revision, Metadata::declared_capabilities(declared, revision)?)
        } else {
            if ping {
                return self.answer_empty(id);
            }
            if method == Some(Method::Initialize) {
                return self.initialize(request);
            }
            let Some(Session { revision, client }) = self.session else {
                return Err(Refusal::before_initialize(method, name, S::REVISIONS).into());
            };
            (revision, client)
        };
        // MCP 2026-07-28 schema.json#MethodNotFoundError [RPC-018]
        let Some(method) = method else { return Err(Refusal::MethodNotFound(name).into()) };
        let row = method.row();
        if row.kind != MethodKind::Request {
            return Err(Refusal::MethodNotFound(name).into());
        }
        row.check(Side::Client, revision, client, Self::DECLARED)
            .map_err(|refusal| Refusal::by_gate(refusal, name, revision))?;
        if let Some(what) = metadata.fault_of_arguments(method) {
            return Err(Refusal::InvalidParams(what).into());
        }
        let allowed = Allowed { id, method, params, metadata, revision };
        match method {
            Method::Discover => self.discover(&allowed),
            Method::ToolsList => self.list(&allowed, "tools", S::TOOLS, write_tool),
            Method::ResourcesList => self.list(&allowed, "resources", S::RESOURCES, write_resource),
            Method::ResourcesTemplatesList => {
                self.list::<()>(&allowed, "resourceTemplates", &[], |(), _, _| {})
            }
            Method::ToolsCall => self.call(&allowed),
            Method::ResourcesRead => self.read(&allowed),
            Method::SubscriptionsListen => self.listen(&allowed),
            _ => {
                allowed.check_token(S::ID_LENGTH_MAX)?;
                Err(Refusal::MethodNotFound(name).into())
            }
        }
    }

    fn answer_empty<'f>(&mut self, id: IdRef<'f>) -> Answered<'f> {
        write_head(&mut self.output, Some(&id));
        self.output.push_str(",\"result\":{}}");
        Ok(())
    }

    // MCP 2025-11-25 basic/lifecycle#initialization [LIFE-001] [LIFE-002]
    fn initialize<'f>(&mut self, request: Request<'f>) -> Answered<'f> {
        let legacy = S::REVISIONS.intersection(Revisions::LEGACY);
        let Some(newest) = legacy.latest() else {
            return Err(Refusal::NoHandshake { supported: S::REVISIONS }.into());
        };
        if request.is_in_batch {
            // MCP 2025-03-26 basic/lifecycle#initialization [BATCH-004]
            let what = "`initialize` cannot be part of a batch";
            return Err(Refusal::InvalidRequest(what).into());
        }
        let given = Handshake::read(request.params);
        if let Some(what) = given.fault(true) {
            return Err(Refusal::InvalidParams(what).into());
        }
        let (revision, client) = given.negotiate(legacy, newest)?;
        self.session = Some(Session { revision, client });
        write_head(&mut self.output, Some(&request.id));
        self.output.push_str(",\"result\":{\"protocolVersion\":");
        write_string(&mut self.output, revision.as_str());
        self.output.push_str(",\"serverInfo\":");
        self.write_identity();
        self.write_offers();
        self.output.push_str("}}");
        Ok(())
    }

    // MCP 2026-07-28 server/discover#response [DISC-001], MCP 2026-07-28 schema.json#DiscoverResult
    // [DISC-002], MCP 2026-07-28 basic/versioning#protocol-version-negotiation [DISC-004]
    fn discover<'f>(&mut self, request: &Allowed<'_, 'f>) -> Answered<'f> {
        self.begin_result(request);
        self.output.push_str("\"supportedVersions\":");
        write_revisions(&mut self.output, S::REVISIONS);
        self.write_offers();
        self.end_result(request);
        Ok(())
    }

    /// Appends the capabilities and the instructions, after other members.
    fn write_offers(&mut self) {
        self.output.push_str(",\"capabilities\":{");
        if !S::TOOLS.is_empty() {
            self.output.push_str("\"tools\":{}");
        }
        if !S::RESOURCES.is_empty() {
            if !S::TOOLS.is_empty() {
                self.output.push(',');
            }
            self.output.push_str("\"resources\":{}");
        }
        self.output.push('}');
        write_optional(&mut self.output, ",\"instructions\":", S::INSTRUCTIONS);
    }

    fn write_identity(&mut self) {
        self.output.push_str("{\"name\":");
        write_string(&mut self.output, S::NAME);
        self.output.push_str(",\"version\":");
        write_string(&mut self.output, S::VERSION);
        self.output.push('}');
    }

    /// Answers with a page of a list: as many items as fit.
    // MCP 2026-07-28 server/tools#listing-tools [TOOL-003]
    // MCP 2026-07-28 server/resources#resource-templates [RSRC-002]
    // MCP 2026-07-28 server/utilities/pagination#operations-supporting-pagination [PAGE-001]
    fn list<'f, T>(
        &mut self,
        request: &Allowed<'_, 'f>,
        member: &'static str,
        items: &'static [T],
        write: fn(&T, Revision, &mut Output<'_>),
    ) -> Answered<'f> {
        let first = match request.params.get_present("cursor") {
            None => 0,
            Some(cursor) => read_cursor(cursor, member, items.len())?,
        };
        self.begin_result(request);
        write_string(&mut self.output, member);
        self.output.push_str(":[");
        let mut next = first;
        for item in items.get(first..).unwrap_or_default() {
            let before = self.output.mark();
            if next > first {
                self.output.push(',');
            }
            write(item, request.revision, &mut self.output);
            if !self.output.is_complete() || self.output.room() < Self::TAIL_LENGTH_MAX {
                if next == first {
                    return Err(Unanswered::Full);
                }
                self.output.cut(before);
                break;
            }
            next += 1;
        }
        self.output.push(']');
        if next < items.len() {
            self.output.push_str(",\"nextCursor\":\"");
            IdRef::Number(next as i64).write_id(&mut self.output);
            self.output.push('"');
        }
        self.end_result(request);
        Ok(())
    }

    /// The longest end of a result, with the cursor of a page: the identity of the server and some
    /// constants.
    const TAIL_LENGTH_MAX: usize = 160 + 6 * (S::NAME.len() + S::VERSION.len());

    // MCP 2026-07-28 server/tools#calling-tools [TOOL-004]
    fn call<'f>(&mut self, request: &Allowed<'_, 'f>) -> Answered<'f> {
        let name = request.subject("`name` must be a string")?;
        // MCP 2026-07-28 server/tools#error-handling [TOOL-007]
        let tool: &Tool<S> =
            S::TOOLS.iter().find(|tool| name.is(tool.name)).ok_or(Refusal::UnknownTool(name))?;
        request.check_token(S::ID_LENGTH_MAX)?;
        self.begin_result(request);
        self.output.push_str("\"content\":[{\"type\":\"text\",\"text\":\"");
        let start = self.output.mark();
        let call = Call::new(request.metadata.arguments(), request.revision);
        let called = (tool.call)(&mut self.service, &call, &mut Text(&mut self.output));
        // MCP 2025-11-25 server/tools#error-handling [TOOL-010]
        let is_error = match called {
            Ok(()) => false,
            Err(Failure::Tool) => true,
            Err(Failure::Arguments(what)) => {
                self.output.cut(start);
                write_escaped(&mut self.output, what);
                true
            }
            Err(Failure::Internal(what)) => return Err(Refusal::Internal(what).into()),
        };
        self.output.push_str("\"}]");
        if is_error {
            self.output.push_str(",\"isError\":true");
        }
        self.end_result(request);
        Ok(())
    }

    // MCP 2026-07-28 server/resources#reading-resources [RSRC-003]
    fn read<'f>(&mut self, request: &Allowed<'_, 'f>) -> Answered<'f> {
        let uri = request.subject("`uri` must be a string")?;
        let revision = request.revision;
        let resource: &Resource<S> = S::RESOURCES
            .iter()
            .find(|resource| uri.is(resource.uri))
            .ok_or(Refusal::UnknownResource { uri, revision })?;
        request.check_token(S::ID_LENGTH_MAX)?;
        self.begin_result(request);
        self.output.push_str("\"contents\":[{\"uri\":");
        write_string(&mut self.output, resource.uri);
        write_optional(&mut self.output, ",\"mimeType\":", resource.mime_type);
        self.output.push_str(",\"text\":\"");
        match (resource.read)(&mut self.service, &mut Text(&mut self.output)) {
            Ok(()) => {}
            Err(Failure::Tool) => {
                return Err(Refusal::Internal("the resource cannot be read").into());
            }
            Err(Failure::Arguments(what) | Failure::Internal(what)) => {
                return Err(Refusal::Internal(what).into());
            }
        }
        self.output.push_str("\"}]");
        self.end_result(request);
        Ok(())
    }

    /// Acknowledges a listen stream, on which nothing is ever sent: no capability that one could
    /// listen to is declared. The request stays open until the client cancels it.
    // MCP 2026-07-28 basic/patterns/subscriptions#opening-a-stream [SUBS-001] [SUBS-007]
    // MCP 2026-07-28 basic/patterns/subscriptions#acknowledgment [SUBS-003] [SUBS-004]
    fn listen<'f>(&mut self, request: &Allowed<'_, 'f>) -> Answered<'f> {
        let filter = request.params.get_present("notifications");
        if !filter.is_some_and(is_filter) {
            let what = "`notifications` must be a subscription filter, an object";
            return Err(Refusal::InvalidParams(what).into());
        }
        write_head(&mut self.output, None::<&IdRef<'_>>);
        self.output.push_str(",\"method\":");
        write_string(&mut self.output, Method::SubscriptionsAcknowledged.as_str());
        self.output.push_str(",\"params\":{\"_meta\":{");
        write_string(&mut self.output, Metadata::SUBSCRIPTION_ID);
        self.output.push(':');
        request.id.write_id(&mut self.output);
        self.output.push_str("},\"notifications\":{}}}");
        Ok(())
    }

    // ------------------------------------------------------------------ results

    fn begin_result(&mut self, request: &Allowed<'_, '_>) {
        // MCP 2026-07-28 basic/index#responses [RPC-006]: the `id` of the request.
        write_head(&mut self.output, Some(&request.id));
        self.output.push_str(",\"result\":{");
    }

    /// Ends a result that has members, with those that the modern era requires.
    // MCP 2026-07-28 schema.json#Result [RPC-010], MCP 2026-07-28 basic/index#result-responses
    // [RPC-019] [META-011], MCP 2026-07-28 server/utilities/caching#cacheable-results [CACHE-001]
    fn end_result(&mut self, request: &Allowed<'_, '_>) {
        if S::REVISIONS.speaks(Era::Modern) && request.revision.era() == Era::Modern {
            self.output.push_str(",\"resultType\":\"complete\",\"_meta\":{");
            write_string(&mut self.output, Metadata::SERVER_INFO);
            self.output.push(':');
            self.write_identity();
            self.output.push('}');
            if request.method.is_cacheable() {
                self.output.push_str(",\"ttlMs\":0,\"cacheScope\":\"private\"");
            }
        }
        self.output.push_str("}}");
    }
}

impl<'f> Allowed<'_, 'f> {
    /// Returns the name or URI of the item that the request is about.
    fn subject(&self, missing: &'static str) -> Result<Written<'f>, Refusal<'f>> {
        self.metadata.subject(self.method).ok_or(Refusal::InvalidParams(missing))
    }

    fn check_token(&self, length_max: usize) -> Result<(), Refusal<'f>> {
        match self.metadata.progress_token() {
            Some(IdRef::Text(token)) if token.length() > length_max => {
                Err(Refusal::InvalidParams("`progressToken` is too long"))
            }
            _ => Ok(()),
        }
    }
}

/// Writes the start of an error for a message whose id may not have been readable, up to its
/// message.
// MCP 2025-11-25 basic/index#error-responses [RPC-009]: only newer revisions allow an error without
// an id; for the others the id is `null`, as in JSON-RPC.
fn write_unread_head(
    out: &mut Output<'_>,
    id: Option<&IdRef<'_>>,
    code: ErrorCode,
    revision: Option<Revision>,
) {
    struct Null;

    impl WriteId for Null {
        fn write_id<O: Sink + ?Sized>(&self, out: &mut O) {
            out.push_str("null");
        }
    }

    if id.is_none() && revision.is_some_and(|revision| revision < Revision::V2025_11_25) {
        write_error_head(out, Some(&Null), code);
    } else {
        write_error_head(out, id, code);
    }
}

fn write_optional(out: &mut Output<'_>, key: &str, text: Option<&'static str>) {
    if let Some(text) = text {
        out.push_str(key);
        write_string(out, text);
    }
}

// MCP 2026-07-28 schema.json#Tool [TOOL-001]
fn write_tool<S>(tool: &Tool<S>, revision: Revision, out: &mut Output<'_>) {
    out.push_str("{\"name\":");
    write_string(out, tool.name);
    write_titles(out, revision, tool.title, tool.description);
    out.push_str(",\"inputSchema\":");
    out.push_json(tool.input_schema);
    // MCP 2025-03-26 schema.json#ToolAnnotations [TOOL-002]
    if let Some(annotations) = tool.annotations.filter(|_| revision >= Revision::V2025_03_26) {
        out.push_str(",\"annotations\":");
        out.push_json(annotations);
    }
    out.push('}');
}

fn write_resource<S>(resource: &Resource<S>, revision: Revision, out: &mut Output<'_>) {
    out.push_str("{\"uri\":");
    write_string(out, resource.uri);
    out.push_str(",\"name\":");
    write_string(out, resource.name);
    write_titles(out, revision, resource.title, resource.description);
    write_optional(out, ",\"mimeType\":", resource.mime_type);
    out.push('}');
}

// MCP 2025-06-18 schema.json#BaseMetadata [META-016]: titles since that revision.
fn write_titles(
    out: &mut Output<'_>,
    revision: Revision,
    title: Option<&'static str>,
    description: Option<&'static str>,
) {
    write_optional(out, ",\"title\":", title.filter(|_| revision >= Revision::V2025_06_18));
    write_optional(out, ",\"description\":", description);
}

// MCP 2026-07-28 server/utilities/pagination#error-handling [PAGE-007]
fn read_cursor(
    cursor: JsonText<'_>,
    member: &'static str,
    length: usize,
) -> Result<usize, Refusal<'static>> {
    let Some(cursor) = cursor.to_written() else {
        return Err(Refusal::InvalidParams("`cursor` must be a string"));
    };
    let number = cursor.chars().try_fold(0_usize, |number, digit| {
        number.checked_mul(10)?.checked_add(digit.to_digit(10)? as usize)
    });
    // A page starts after another.
    number.filter(|number| (1..length).contains(number)).ok_or(Refusal::InvalidParams(
        match member {
            "tools" => "invalid cursor for this list of tools: start again without a cursor",
            "resources" => {
                "invalid cursor for this list of resources: start again without a cursor"
            }
            _ => "invalid cursor for this list of resource templates: start again without a cursor",
        },
    ))
}

/// Returns whether a value is a filter of `subscriptions/listen`.
fn is_filter(value: JsonText<'_>) -> bool {
    value.is_object()
        && value.members().all(|member| {
            let text = member.value.as_str();
            let is_list = member.key.is("resourceSubscriptions") || member.key.is("taskIds");
            let is_flag = member.key.is("toolsListChanged")
                || member.key.is("promptsListChanged")
                || member.key.is("resourcesListChanged");
            text == "null"
                || !(is_list || is_flag)
                || (is_list && text.starts_with('['))
                || (is_flag && member.value.to_bool().is_some())
        })
}

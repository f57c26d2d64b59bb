//! Reads requests: all decisions that need neither a session nor another request.

use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use mcp_sansio_sync::{Arc, Mutex};

use crate::envelope::JsonText;
use crate::gate::members::check_repeats;
use crate::gate::metadata::{self, CachedPrefix, Metadata, Read};
use crate::http::field_value;
use crate::http::header_params::{HeaderParamMismatch, HeaderParams};
use crate::http::media::{Accepted, is_json};
use crate::http::{Content, RequestHead, Response, ResponseHead, Status};
use crate::jsonrpc::{
    ErrorCode, ErrorObject, Frame, Malformed, Message, NotificationMessage, ParseLimits, RawJson,
    RequestId, RequestMessage, excerpt, resolved, write_error,
};
use crate::peer::OperationObserver;
use crate::peer::outbox::Verdict;
use crate::peer::server::{Declaration, Declared, Reading, ServerConfig};
use crate::protocol::{Era, Method, Revision};
use crate::{Caller, Revisions};

use super::answers::status_of;
use super::{Exhausted, HttpServerOptions, SharedResource, header_params_by_tool};

/// The limits for reading the body of an admitted request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Admission {
    /// The maximum length of the body, in bytes. For a longer body, send
    /// [`RequestReader::body_too_long`] and stop reading.
    pub body_bytes_max: usize,
    /// The maximum time to read the body. After it, send [`RequestReader::body_too_slow`].
    pub body_time: core::time::Duration,
    /// What the request is for, so that its head is not checked again.
    route: Route,
}

/// Reads the requests to a [`Server`](super::Server), for a driver that shares the server behind a
/// lock: reading needs no access to it. Clones are cheap and read for the same server.
///
/// It makes all decisions that need neither a session nor another request: the path, the host and
/// the other header fields, the JSON of the body, and the header fields that repeat it.
#[derive(Clone, Debug)]
pub struct RequestReader(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    options: Arc<HttpServerOptions>,
    revisions: Revisions,
    limits: ParseLimits,
    observer: Option<Arc<dyn OperationObserver>>,
    /// The number of exchanges of the server.
    exchanges: AtomicUsize,
    /// Whether the server accepts no more requests.
    closing: AtomicBool,
    known: Mutex<Known>,
}

/// What the reader knows of the server and of earlier requests.
#[derive(Clone, Debug)]
struct Known {
    /// The last declaration of a modern client.
    declared: Option<Arc<Declared>>,
    served: Arc<Served>,
}

/// What a server offers, as of its last edit.
#[derive(Debug)]
pub(super) struct Served {
    pub(super) config: ServerConfig,
    /// The tool parameters that requests repeat in their header fields.
    pub(super) header_params: BTreeMap<String, HeaderParams>,
}

/// A request that was [read](RequestReader::read).
#[derive(Debug)]
pub struct ReadRequest<'f> {
    pub(super) text: &'f [u8],
    pub(super) route: Result<Route, Response>,
    /// The body, if the request posts one.
    pub(super) body: Option<Result<ParsedBody<'f>, Malformed>>,
    pub(super) posted: Posted,
    /// What the server offered when the request was read.
    pub(super) served: Option<Arc<Served>>,
    pub(super) caller: Caller,
}

impl<'f> ReadRequest<'f> {
    /// Returns the sender of the request.
    #[must_use]
    pub const fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Returns the body as it was received.
    #[must_use]
    pub const fn text(&self) -> &'f [u8] {
        self.text
    }

    /// Returns whether the request asks for a response that may take long. Others usually release
    /// resources.
    pub(super) const fn asks(&self) -> bool {
        match &self.body {
            Some(Ok(body)) => {
                matches!(body.frame, Frame::Single(Message::Request(_)) | Frame::Batch(_))
            }
            Some(Err(_)) => false,
            None => !matches!(self.route, Ok(Route::Delete)),
        }
    }
}

/// What a body posted to the endpoint is.
#[derive(Debug)]
pub(super) enum Posted {
    /// A modern request, if it is correct.
    Request(Result<Reading, Response>),
    /// A modern notification, if it is correct.
    Notification(Result<(), &'static str>),
    /// A message that is wrong in every session.
    Refused(Response),
    /// No message, and there is no session to report it to.
    Malformed(Response),
    /// A message that belongs to a session, or opens one.
    InSession,
}

/// The purpose of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// A message to the endpoint.
    Post,
    /// A stream of messages that belong to no request, or of missed events.
    Get,
    /// The deletion of a session.
    Delete,
    /// The event stream of 2024-11-05.
    EventStream,
    /// A message of 2024-11-05.
    Message,
}

/// Returns the frame of a body without a message, or whose message was handled.
// Not a constant, which would be copied with its unused bytes.
#[inline]
pub(super) fn empty_frame() -> Frame<'static> {
    let method = Cow::Borrowed("");
    Frame::Single(Message::Notification(NotificationMessage { method, params: None }))
}

/// The parsed body of a request, including the parameters of its message.
///
/// Access checks and the machine use the same value: the parameters of a single request are read
/// when it is parsed, each member once. Those of a batch are read when each of its messages is
/// handled, always by the same parser, which refuses JSON that another parser could read
/// differently.
#[derive(Debug)]
pub struct ParsedBody<'f> {
    pub(super) frame: Frame<'f>,
    /// The parameters of a single request.
    pub(super) read: Option<Read<'f>>,
}

impl<'f> ParsedBody<'f> {
    /// Returns a body without a message.
    #[inline]
    fn empty() -> Self {
        Self { frame: empty_frame(), read: None }
    }

    /// Parses a body. Linear in its length.
    ///
    /// # Errors
    ///
    /// The body contains no valid message. See [`parse`].
    ///
    /// [`parse`]: crate::jsonrpc::parse
    pub fn parse(body: &'f [u8], limits: ParseLimits) -> Result<Self, Malformed> {
        let mut parsed = Self::empty();
        parsed.fill(body, limits, CachedPrefix::default())?;
        Ok(parsed)
    }

    /// Parses a body when the metadata of the last modern client is known: see
    /// [`Metadata::read_after`]. In place, because the metadata is large.
    fn fill(
        &mut self,
        body: &'f [u8],
        limits: ParseLimits,
        prefix: CachedPrefix<'_>,
    ) -> Result<(), Malformed> {
        self.frame = metadata::parse(body, limits, prefix, &mut self.read)?.into();
        if let (Frame::Single(Message::Request(_)), None) = (&self.frame, &self.read) {
            self.read = Some(Metadata::read(&RawJson::EMPTY_OBJECT));
        }
        Ok(())
    }

    /// Returns the messages in the body.
    #[must_use]
    pub const fn frame(&self) -> &Frame<'f> {
        &self.frame
    }

    /// Calls `show` for each request, with its method and the item that it names. A request with
    /// invalid parameters is shown without an item. `subscriptions/listen` is shown without an
    /// item, and once more for each resource that it subscribes to.
    pub fn for_each_request(&self, mut show: impl FnMut(&str, Option<&str>)) {
        let mut one = |method: &str, read: &Read<'_>, params: Option<&RawJson<'_>>| {
            let known = Method::parse(method);
            let read = read.as_ref().ok();
            if known == Some(Method::SubscriptionsListen) {
                show(method, None);
                let filter =
                    params.filter(|_| read.is_some()).and_then(|it| it.get("notifications"));
                if let Some(uris) = filter.as_ref().and_then(|it| it.get("resourceSubscriptions")) {
                    uris.for_each_element(|uri| {
                        if let Some(uri) = uri.to_text() {
                            show(method, Some(&uri));
                        }
                    });
                }
                return;
            }
            let subject = known.and_then(|method| read?.subject(method));
            show(method, subject.map(resolved).as_deref());
        };
        match (&self.frame, &self.read) {
            (Frame::Single(Message::Request(request)), Some(read)) => {
                one(&request.method, read, request.params.as_ref());
            }
            (Frame::Batch(batch), _) => {
                for message in batch.clone() {
                    if let Ok(Message::Request(request)) = message {
                        let params = request.params.as_ref().unwrap_or(&RawJson::EMPTY_OBJECT);
                        one(&request.method, &Metadata::read(params), Some(params));
                    }
                }
            }
            _ => {}
        }
    }
}

/// A body that was posted to the endpoint. What it is is borrowed, like the metadata.
pub(super) struct Post<'m, 'f> {
    pub(super) body: Body<'m, 'f>,
    pub(super) posted: &'m mut Posted,
}

/// The parsed body that a machine consumes. The metadata is borrowed, because it is too large to be
/// moved.
pub(super) struct Body<'m, 'f> {
    pub(super) frame: Result<Frame<'f>, Malformed>,
    pub(super) read: Option<&'m mut Read<'f>>,
}

impl RequestReader {
    pub(super) fn new(
        options: &Arc<HttpServerOptions>,
        config: &ServerConfig,
        header_params: BTreeMap<String, HeaderParams>,
    ) -> Self {
        let served = Arc::new(Served { config: config.clone(), header_params });
        let known = Known { declared: None, served };
        Self(Arc::new(Inner {
            options: Arc::clone(options),
            revisions: config.revisions(),
            limits: config.parse_limits(),
            observer: config.observer(),
            exchanges: AtomicUsize::new(0),
            closing: AtomicBool::new(false),
            known: Mutex::new(known),
        }))
    }

    /// Notes the number of exchanges of the server.
    pub(super) fn set_exchanges(&self, count: usize) {
        self.0.exchanges.store(count, Ordering::Relaxed);
    }

    /// Refuses new streams from now on.
    pub(super) fn set_closing(&self) {
        self.0.closing.store(true, Ordering::Relaxed);
    }

    /// Replaces what the server offers.
    pub(super) fn set_served(&self, config: &ServerConfig) {
        let (header_params, _) = header_params_by_tool(&config.catalog);
        let served = Arc::new(Served { config: config.clone(), header_params });
        let old = self.0.known.lock(|known| core::mem::replace(&mut known.served, served));
        drop(old);
    }

    /// Notes the last declaration of a modern client.
    fn set_declared(&self, declared: Declared) {
        let declared = Some(Arc::new(declared));
        let old = self.0.known.lock(|known| core::mem::replace(&mut known.declared, declared));
        drop(old);
    }

    pub(super) fn observer(&self) -> Option<&Arc<dyn OperationObserver>> {
        self.0.observer.as_ref()
    }

    pub(super) fn limits(&self) -> ParseLimits {
        self.0.limits
    }

    /// Checks the head of a complete request, and reads the request. `caller` is the authenticated
    /// sender. Linear in the length of the request, but for the validator of the catalog.
    #[must_use]
    pub fn read<'f>(
        &self,
        head: &RequestHead<'_>,
        body: &'f [u8],
        caller: &Caller,
    ) -> ReadRequest<'f> {
        self.read_routed(self.route(head), head, body, caller)
    }

    /// Reads a complete request whose head was [admitted](Self::admit), and is not checked again:
    /// see [`read`](Self::read).
    #[must_use]
    pub fn read_admitted<'f>(
        &self,
        admission: Admission,
        head: &RequestHead<'_>,
        body: &'f [u8],
        caller: &Caller,
    ) -> ReadRequest<'f> {
        self.read_routed(Ok(admission.route), head, body, caller)
    }

    /// Reads a request whose head was checked.
    pub(super) fn read_routed<'f>(
        &self,
        route: Result<Route, Response>,
        head: &RequestHead<'_>,
        text: &'f [u8],
        caller: &Caller,
    ) -> ReadRequest<'f> {
        let is_too_long = text.len() > self.0.options.limits.body_bytes_max;
        let route =
            route.and_then(|it| if is_too_long { Err(self.body_too_long()) } else { Ok(it) });
        let (posted, caller) = (Posted::InSession, caller.clone());
        let mut request = ReadRequest { text, route, body: None, posted, served: None, caller };
        if let Ok(route @ (Route::Post | Route::Message)) = request.route {
            let known = self.0.known.lock(|known| known.clone());
            let prefix = known.declared.as_ref().map(|it| it.cached_prefix()).unwrap_or_default();
            let body = request.body.insert(Ok(ParsedBody::empty()));
            if let Ok(parsed) = body
                && let Err(malformed) = parsed.fill(text, self.0.limits, prefix)
            {
                *body = Err(malformed);
            }
            if route == Route::Post {
                request.posted = self.classify(&known, head, body, &request.caller);
            }
            request.served = Some(known.served);
        }
        request
    }

    /// Decides what a body posted to the endpoint is.
    fn classify(
        &self,
        known: &Known,
        head: &RequestHead<'_>,
        body: &Result<ParsedBody<'_>, Malformed>,
        caller: &Caller,
    ) -> Posted {
        if let Some(field) = head.contradictory {
            return Posted::Refused(self.refuse_contradiction(field, head, body));
        }
        let ParsedBody { frame, read } = match body {
            Ok(body) => body,
            Err(malformed) if head.session_id.is_none() || self.is_modern(head, false) => {
                return Posted::Malformed(refuse_malformed(malformed));
            }
            Err(_) => return Posted::InSession,
        };
        match (frame, read) {
            (Frame::Single(Message::Request(request)), Some(read)) => {
                if self.is_modern_request(head, &request.method, names_revision(read)) {
                    return Posted::Request(self.read_modern(known, head, (request, read), caller));
                }
                // The message has no sign of its era, and both eras would refuse it.
                if let Err(what) = read
                    && head.session_id.is_none()
                    && Method::parse(&request.method) != Some(Method::Initialize)
                {
                    let error = ErrorObject::invalid_params(*what);
                    return Posted::Refused(refuse_request(&request.id, &error));
                }
            }
            // MCP 2026-07-28 basic/transports/streamable-http#sending-messages [HSRV-009] [HCLI-006]
            (Frame::Single(Message::Notification(notification)), _) => {
                let params = notification.params.as_ref().unwrap_or(&RawJson::EMPTY_OBJECT);
                if self.is_modern(head, names_revision(&Metadata::read(params))) {
                    return Posted::Notification(check_repeats(params.view()));
                }
            }
            // MCP 2026-07-28 basic/transports/streamable-http#sending-messages [HSRV-010]
            (Frame::Single(Message::Response(_)), _) if self.is_modern(head, false) => {
                let message = "at this revision clients do not send responses";
                return Posted::Refused(refusal(Status::BAD_REQUEST, None, message));
            }
            // MCP 2025-06-18 basic/transports#sending-messages-to-the-server [BATCH-010]
            (Frame::Batch(_), _) if self.is_modern(head, false) => {
                let message = "at this revision a body must be a single message";
                return Posted::Refused(refusal(Status::BAD_REQUEST, None, message));
            }
            _ => {}
        }
        Posted::InSession
    }

    /// Returns the response to a message whose standard headers contradict each other.
    // MCP 2026-07-28 basic/transports/streamable-http#server-validation [HDR-025]: one of the values
    // differs from the body.
    fn refuse_contradiction(
        &self,
        field: &str,
        head: &RequestHead<'_>,
        body: &Result<ParsedBody<'_>, Malformed>,
    ) -> Response {
        match body {
            Ok(ParsedBody {
                frame: Frame::Single(Message::Request(request)),
                read: Some(read),
            }) if self.is_modern_request(head, &request.method, names_revision(read)) => {
                refuse_request(&request.id, &mismatch_error(repeated(field)))
            }
            _ => contradiction(field),
        }
    }

    /// Checks the head of a request, before its body is read.
    ///
    /// # Errors
    ///
    /// The request is refused: send this response, and do not read the body.
    pub fn admit(&self, head: &RequestHead<'_>) -> Result<Admission, Response> {
        let routed = self.route(head);
        if let Err(refused) = &routed
            && let Some(observed) = self.observe_refused_head(head)
        {
            observed.report(refused);
        }
        Ok(Admission {
            body_bytes_max: self.0.options.limits.body_bytes_max,
            body_time: self.0.options.timeouts.body,
            route: routed?,
        })
    }

    /// Checks only the path and the method of a request, before its sender is authenticated.
    /// [`admit`](Self::admit) repeats these checks and does all others.
    ///
    /// # Errors
    ///
    /// The request is refused: send this response, and do not read the body.
    pub fn locate(&self, head: &RequestHead<'_>) -> Result<(), Response> {
        self.route_of(head).map(drop)
    }

    /// Checks only the host and the origin of a request, for paths that the adapter answers itself,
    /// like those of health checks.
    ///
    /// # Errors
    ///
    /// The request is refused: send this response.
    // MCP 2025-11-25 basic/transports#security-warning [HSRV-003] [HSRV-004]
    // MCP 2024-11-05 basic/transports#security-warning [LSSE-005]
    pub fn check_host(&self, head: &RequestHead<'_>) -> Result<(), Response> {
        let checked = self.0.options.hosts.check(head.host, head.origin);
        checked.map_err(|fault| refusal(Status::FORBIDDEN, None, &alloc::format!("{fault}")))
    }

    /// Returns the sender of a request with the header fields that the server
    /// [keeps](HttpServerOptions::keep_headers). `values` returns the values of a field, whose name
    /// is in lower case. Call it before the token is checked.
    ///
    /// # Errors
    ///
    /// The fields are too long, or not UTF-8: send this response, and do not read the body.
    pub fn attach_headers<'v, V: IntoIterator<Item = &'v [u8]>>(
        &self,
        caller: Caller,
        values: impl Fn(&str) -> V,
    ) -> Result<Caller, Response> {
        let attached = self.0.options.attach_headers(caller, values);
        attached.map_err(|(status, message)| refusal(status, None, message))
    }

    /// Returns the response to a request whose body is too long.
    #[must_use]
    pub fn body_too_long(&self) -> Response {
        refusal(Status::CONTENT_TOO_LARGE, None, "the body is longer than this server accepts")
    }

    /// Returns the response to a request whose body does not arrive in time.
    #[must_use]
    pub fn body_too_slow(&self) -> Response {
        refusal(Status::REQUEST_TIMEOUT, None, "the body did not arrive in time")
    }

    /// Returns the purpose of a request, if there is room for it.
    fn route_of(&self, head: &RequestHead<'_>) -> Result<Route, Response> {
        self.check_host(head)?;
        let route = self.find_route(head);
        // Of a modern request, the answer to a contradictory standard header has its id.
        if let Some(field) = head.contradictory
            && !(matches!(route, Ok(Route::Post)) && STANDARD_HEADERS.contains(&field))
        {
            return Err(contradiction(field));
        }
        let route = route?;
        // Whether a posted message is a request is known once its body is read.
        let asks = matches!(route, Route::Get | Route::EventStream);
        let exchanges_max = self.0.options.limits.exchanges_max_if(asks);
        if self.0.exchanges.load(Ordering::Relaxed) >= exchanges_max {
            return Err(SharedResource::Exchanges.refusal(Exhausted::Total).to_response(None));
        }
        Ok(route)
    }

    /// Returns the purpose of a request, if its head is valid.
    pub(super) fn route(&self, head: &RequestHead<'_>) -> Result<Route, Response> {
        let route = self.route_of(head)?;
        let new_stream = matches!(route, Route::Get | Route::EventStream);
        if self.0.closing.load(Ordering::Relaxed) && new_stream && head.last_event_id.is_none() {
            return Err(closing(None));
        }
        match route {
            Route::Post | Route::Message => self.check_message(head, route)?,
            Route::Get | Route::EventStream => {
                // MCP 2025-11-25 basic/transports#listening-for-messages-from-the-server [HCLI-008]
                // A client of 2024-11-05 may not send `Accept`.
                let must_say = route == Route::Get && head.accept.is_empty();
                if must_say || !head.accepted().event_stream {
                    let message = "`Accept` must list text/event-stream";
                    return Err(refusal(Status::NOT_ACCEPTABLE, None, message));
                }
            }
            Route::Delete => {}
        }
        if head.content_length.is_some_and(|length| self.is_too_long(length)) {
            return Err(self.body_too_long());
        }
        Ok(route)
    }

    /// Returns whether `Content-Length` exceeds the limit. A malformed length is left to the reader
    /// of the body.
    fn is_too_long(&self, length: &[u8]) -> bool {
        let number = core::str::from_utf8(length)
            .ok()
            .filter(|digits| !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_digit()));
        // A number that does not fit is above the limit.
        number.is_some_and(|number| {
            !number.parse().is_ok_and(|n: u64| n <= self.0.options.limits.body_bytes_max as u64)
        })
    }

    // MCP 2025-11-25 basic/transports#streamable-http [HSRV-001]
    // MCP 2026-07-28 basic/transports/streamable-http#message-flow [HSRV-002]
    fn find_route(&self, head: &RequestHead<'_>) -> Result<Route, Response> {
        let options = &self.0.options;
        if options.event_path.as_deref() == Some(head.path) {
            return only("GET", head, Route::EventStream);
        }
        if options.takes_messages_at(head.path) {
            return only("POST", head, Route::Message);
        }
        if let Some(path) = options.path.as_deref()
            && without_slash(path) != without_slash(head.path)
        {
            let message = alloc::format!("nothing is served at this path, but at `{path}`");
            return Err(refusal(Status::NOT_FOUND, None, &message));
        }
        match head.method {
            "POST" => return Ok(Route::Post),
            // MCP 2026-07-28 basic/transports/streamable-http#sending-messages [HSRV-024]: GET
            // streams and the deletion of sessions exist only at the older revisions.
            "GET" if self.serves_sessions(head) => return Ok(Route::Get),
            "DELETE" if self.serves_sessions(head) => return Ok(Route::Delete),
            _ => {}
        }
        let allowed = if self.serves_sessions(head) { "GET, POST, DELETE" } else { "POST" };
        Err(not_allowed(allowed))
    }

    /// Returns whether a request without a body can refer to a session.
    fn serves_sessions(&self, head: &RequestHead<'_>) -> bool {
        if self.0.revisions.intersection(Revisions::LEGACY).is_empty() {
            return false;
        }
        let modern = named_revision(head).is_some_and(|revision| revision.era() == Era::Modern);
        !modern || self.0.revisions.intersection(Revisions::MODERN).is_empty()
    }

    fn check_message(&self, head: &RequestHead<'_>, route: Route) -> Result<(), Response> {
        // MCP 2025-11-25 basic/transports#sending-messages-to-the-server [HCLI-004]
        if !head.content_type.is_some_and(is_json) {
            let message = "`Content-Type` must be application/json";
            return Err(refusal(Status::UNSUPPORTED_MEDIA_TYPE, None, message));
        }
        let plain =
            |encoding: &[u8]| encoding.is_empty() || encoding.eq_ignore_ascii_case(b"identity");
        // RFC 9110, section 15.5.16
        if !head.content_encoding.is_none_or(plain) {
            let message = "`Content-Encoding` is not supported: send the body as it is";
            return Err(refusal(Status::UNSUPPORTED_MEDIA_TYPE, None, message));
        }
        // MCP 2025-11-25 basic/transports#sending-messages-to-the-server [HCLI-002]: some clients
        // list only the form that they read.
        if route == Route::Post && head.accepted() == Accepted::default() {
            let message = "`Accept` must list application/json and text/event-stream";
            return Err(refusal(Status::NOT_ACCEPTABLE, None, message));
        }
        Ok(())
    }

    /// Returns whether a message belongs to the modern era.
    // MCP 2026-07-28 basic/versioning#backward-compatibility-with-initialization-based-versions
    // [VER-016], MCP 2026-07-28 basic/transports/streamable-http#earlier-streamable-http-revisions
    // [HSRV-025] [HSRV-026], MCP 2026-07-28 changelog#major-changes [SESS-016]: regardless of its
    // session and event headers.
    pub(super) fn is_modern(&self, head: &RequestHead<'_>, named_in_body: bool) -> bool {
        if self.0.revisions.intersection(Revisions::MODERN).is_empty() {
            return false;
        }
        if self.0.revisions.intersection(Revisions::LEGACY).is_empty() {
            return true;
        }
        named_in_body || named_revision(head).is_some_and(|named| named.era() == Era::Modern)
    }

    /// Returns whether a request belongs to the modern era. Its header alone does not make an
    /// `initialize` modern: a client that falls back, or a gateway, may have kept it.
    // MCP 2026-07-28 basic/versioning#backward-compatibility-with-initialization-based-versions
    // [VER-016]: "An `initialize` request selects legacy semantics".
    pub(super) fn is_modern_request(
        &self,
        head: &RequestHead<'_>,
        method: &str,
        named_in_body: bool,
    ) -> bool {
        self.is_modern(head, named_in_body)
            && (named_in_body
                || self.0.revisions.intersection(Revisions::LEGACY).is_empty()
                || Method::parse(method) != Some(Method::Initialize))
    }

    /// Reads a modern request, as far as its message and its sender decide about it.
    // MCP 2026-07-28 basic/index#_meta [META-009],
    // MCP 2026-07-28 basic/transports/streamable-http#server-validation [HSRV-023]
    fn read_modern(
        &self,
        known: &Known,
        head: &RequestHead<'_>,
        (request, read): (&RequestMessage<'_>, &Read<'_>),
        caller: &Caller,
    ) -> Result<Reading, Response> {
        let refuse = |error: &ErrorObject<'_>| refuse_request(&request.id, error);
        let metadata = read.as_ref().map_err(|what| refuse(&ErrorObject::invalid_params(*what)))?;
        let lacking = if metadata.prefix_matched {
            metadata.modern_fault
        } else if metadata.protocol_version.is_none() {
            Some("`_meta` lacks `io.modelcontextprotocol/protocolVersion`")
        } else if metadata.client_capabilities.is_none() {
            Some("`_meta` lacks `io.modelcontextprotocol/clientCapabilities`")
        } else {
            metadata.modern_fault
        };
        if let Some(what) = lacking {
            // MCP 2026-07-28 basic/versioning#backward-compatibility-with-initialization-based-versions
            // [VER-017]: a legacy client is told the supported revisions.
            return Err(if Method::parse(&request.method) == Some(Method::Initialize) {
                refuse(&self.no_session_here(what))
            } else {
                refuse(&ErrorObject::invalid_params(what))
            });
        }
        let params = request.params.as_ref().unwrap_or(&RawJson::EMPTY_OBJECT);
        let config = &known.served.config;
        let (declared, other) = config.declared_in(metadata, known.declared.as_deref());
        if let Some(other) = other {
            self.set_declared(other);
        }
        self.check_headers(known, head, (&request.method, params), metadata, &declared)
            .map_err(|error| refuse(&error))?;
        let revision = declared.as_ref().ok().map(|(revision, _)| *revision);
        let found = revision.and_then(|it| config.find_early(request, metadata, it, caller));
        Ok(Reading { declared, found })
    }

    /// Returns the error for an `initialize` without metadata if sessions are not supported.
    fn no_session_here(&self, what: &str) -> ErrorObject<'static> {
        let mut supported = String::new();
        for revision in self.0.revisions.iter().rev() {
            let comma = if supported.is_empty() { "" } else { "," };
            supported.push_str(&format!("{comma}\"{revision}\""));
        }
        let message =
            format!("`initialize` is not supported, this server speaks [{supported}]; {what}");
        let data = format!(r#"{{"supported":[{supported}]}}"#);
        ErrorObject::invalid_params(message).with_data(RawJson::trusted_shared(data.into()))
    }

    /// Compares the header fields of a modern request with its body.
    ///
    /// The revision comes first: the fields of an unsupported revision follow unknown rules, so
    /// they are ignored and the request is refused for its revision.
    // MCP 2026-07-28 basic/transports/streamable-http#server-validation [HSRV-023] [HDR-025]
    fn check_headers(
        &self,
        known: &Known,
        head: &RequestHead<'_>,
        (method, params): (&str, &RawJson<'_>),
        metadata: &Metadata<'_>,
        declared: &Declaration,
    ) -> Result<(), ErrorObject<'static>> {
        let (version, served) = match declared {
            Ok((revision, _)) => (Cow::Borrowed(revision.as_str()), true),
            Err(_) => {
                let version = metadata.protocol_version.map(resolved).unwrap_or_default();
                let known = Revision::parse(&version);
                (version, known.is_some_and(|revision| self.0.revisions.contains(revision)))
            }
        };
        // MCP 2026-07-28 basic/transports/streamable-http#protocol-version-header [HDR-004] [HDR-026]
        compare("MCP-Protocol-Version", head.protocol_version, version.as_bytes())?;
        if !served {
            return Ok(());
        }
        // MCP 2026-07-28 basic/transports/streamable-http#standard-request-headers [HDR-026]
        compare("Mcp-Method", head.mcp_method, method.as_bytes())?;
        let Some(method) = Method::parse(method) else { return Ok(()) };
        let named =
            matches!(method, Method::ToolsCall | Method::PromptsGet | Method::ResourcesRead);
        // MCP 2026-07-28 ext-tasks:tasks#streamable-http-routing-headers [TASK-039]: the header
        // that routes a request to its task must name that task. Clients that omit it are served
        // too.
        if matches!(method, Method::TasksGet | Method::TasksUpdate | Method::TasksCancel)
            && let Some(name) = head.mcp_name
        {
            let task = metadata.spans(method).subject(params.view());
            let task = task.and_then(JsonText::to_written).map(resolved);
            let name = field_value::decode(name).map_err(|fault| unreadable("Mcp-Name", &fault))?;
            return match task {
                Some(task) if task != name => Err(differs("Mcp-Name", &name, &task)),
                _ => Ok(()),
            };
        }
        let Some(subject) = metadata.subject(method).filter(|_| named) else { return Ok(()) };
        let subject = resolved(subject);
        // MCP 2026-07-28 basic/transports/streamable-http#value-encoding [HDR-024]
        let Some(name) = head.mcp_name else { return Err(missing("Mcp-Name")) };
        let name = field_value::decode(name).map_err(|fault| unreadable("Mcp-Name", &fault))?;
        if name != subject {
            return Err(differs("Mcp-Name", &name, &subject));
        }
        if method != Method::ToolsCall {
            return Ok(());
        }
        // MCP 2026-07-28 basic/transports/streamable-http#server-behavior-for-custom-headers [HDR-027]
        // [HDR-028]
        // [HDR-009]
        let Some(header_params) = known.served.header_params.get(&*subject) else { return Ok(()) };
        let arguments = metadata.arguments.map_or(RawJson::EMPTY_OBJECT, RawJson::from);
        header_params.check(&arguments, &head.params).map_err(|mismatch| match mismatch {
            // It is undefined which of the values the header should repeat.
            HeaderParamMismatch::Repeated { .. } => {
                ErrorObject::invalid_params(format!("{mismatch}"))
            }
            _ => mismatch_error(format!("{mismatch}")),
        })
    }
}

/// Returns the revision in the header, if it is a known one.
pub(super) fn named_revision(head: &RequestHead<'_>) -> Option<Revision> {
    let named = head.protocol_version?;
    Revision::ALL.into_iter().find(|revision| revision.as_str().as_bytes() == named)
}

/// Returns a path without a slash at its end, which hosts and proxies add or leave out.
fn without_slash(path: &str) -> &str {
    path.strip_suffix('/').unwrap_or(path)
}

fn only(method: &'static str, head: &RequestHead<'_>, route: Route) -> Result<Route, Response> {
    if head.method == method { Ok(route) } else { Err(not_allowed(method)) }
}

fn not_allowed(allowed: &'static str) -> Response {
    let mut response = refusal(Status::METHOD_NOT_ALLOWED, None, "the method is not allowed here");
    response.head.allow = Some(allowed);
    response
}

/// Refuses a request because the server is closing.
pub(super) fn closing(request: Option<&RequestId>) -> Response {
    busy(request, "the server is shutting down")
}

/// Refuses a request because of a temporary condition, for one second: a balancer has found another
/// node by then, or this one has reached its store again. Clients double their pauses themselves.
pub(super) fn busy(request: Option<&RequestId>, message: &str) -> Response {
    let mut response = refusal(Status::SERVICE_UNAVAILABLE, request, message);
    response.head.retry_after = Some(1);
    response
}

/// Refuses a request of a caller that has reached a limit, for now.
pub(super) fn too_many(request: Option<&RequestId>, message: &str) -> Response {
    let mut response = refusal(Status::TOO_MANY_REQUESTS, request, message);
    response.head.retry_after = Some(10);
    response
}

/// Returns a response that refuses a request, with an error for the JSON-RPC request in it, if
/// there is one.
// MCP 2025-11-25 basic/transports#sending-messages-to-the-server [HSRV-005] [HSRV-011]
pub(super) fn refusal(status: Status, request: Option<&RequestId>, message: &str) -> Response {
    let mut body = String::new();
    let error = match status {
        // Nothing is wrong with the request, which was not executed.
        Status::SERVICE_UNAVAILABLE => ErrorObject::internal(message),
        _ => ErrorObject::invalid_request(message),
    };
    write_error(&mut body, request, &error);
    Response { head: ResponseHead::new(status, Some(Content::Json)), body: body.into_bytes() }
}

/// Takes the response that refuses a request, which is used up.
pub(super) fn take_refusal(refused: &mut Response) -> Response {
    let used_up = refusal(Status::BAD_REQUEST, None, "the request was refused before");
    core::mem::replace(refused, used_up)
}

/// Returns whether the body contains its revision.
pub(super) fn names_revision(read: &Read<'_>) -> bool {
    read.as_ref()
        .is_ok_and(|metadata| metadata.prefix_matched || metadata.protocol_version.is_some())
}

/// Returns the response to a malformed message.
// MCP 2025-11-25 basic/transports#sending-messages-to-the-server [HSRV-010] [HSRV-011]
pub(super) fn refuse_malformed(malformed: &Malformed) -> Response {
    let mut body = String::new();
    match malformed.answer() {
        Some(error) => write_error(&mut body, malformed.id.as_ref(), &error),
        None => {
            let error = ErrorObject::new(malformed.code(), format!("{malformed}"));
            write_error(&mut body, None, &error);
        }
    }
    Response {
        head: ResponseHead::new(Status::BAD_REQUEST, Some(Content::Json)),
        body: body.into_bytes(),
    }
}

/// Returns a response that refuses a modern request.
fn refuse_request(id: &RequestId, error: &ErrorObject<'_>) -> Response {
    let mut body = String::new();
    write_error(&mut body, Some(id), error);
    let status = status_of(Verdict::Refused(error.code), Era::Modern);
    Response { head: ResponseHead::new(status, Some(Content::Json)), body: body.into_bytes() }
}

fn compare(
    name: &str,
    received: Option<&[u8]>,
    expected: &[u8],
) -> Result<(), ErrorObject<'static>> {
    match received {
        None => Err(missing(name)),
        // MCP 2026-07-28 basic/transports/streamable-http#case-sensitivity [HDR-031]
        Some(received) if received == expected => Ok(()),
        Some(received) => Err(differs(
            name,
            &String::from_utf8_lossy(received),
            &String::from_utf8_lossy(expected),
        )),
    }
}

// MCP 2026-07-28 basic/transports/streamable-http#protocol-version-header [VER-031]
fn missing(name: &str) -> ErrorObject<'static> {
    mismatch_error(format!("the header field `{name}` is missing"))
}

fn differs(name: &str, received: &str, expected: &str) -> ErrorObject<'static> {
    const SHOWN_MAX: usize = 64;
    let (received, expected) = (excerpt(received, SHOWN_MAX), excerpt(expected, SHOWN_MAX));
    if received == expected {
        return mismatch_error(format!("the header field `{name}` differs from the body"));
    }
    mismatch_error(format!(
        "the header field `{name}` differs from the body: `{received}` instead of `{expected}`"
    ))
}

fn unreadable(name: &str, fault: &impl core::fmt::Display) -> ErrorObject<'static> {
    mismatch_error(format!("the header field `{name}` cannot be read: {fault}"))
}

/// The headers that repeat parts of a modern request.
const STANDARD_HEADERS: [&str; 3] = ["MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"];

fn repeated(field: &str) -> String {
    format!("the header field `{field}` is repeated with different values")
}

fn contradiction(field: &str) -> Response {
    refusal(Status::BAD_REQUEST, None, &repeated(field))
}

fn mismatch_error(message: String) -> ErrorObject<'static> {
    ErrorObject::new(ErrorCode::HEADER_MISMATCH, message)
}

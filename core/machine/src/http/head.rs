use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::num::NonZeroU32;

use crate::binding::{DpopNonce, HttpRejection, Status};
use crate::jsonrpc::{RequestId, write_error};

use super::media::Accepted;
use super::{RemoteAddress, SessionId};

/// The head of an incoming request, reduced to the fields that the protocol uses. Create it with
/// [`new`](Self::new), then call [`field`](Self::field) for every header field.
#[derive(Clone, Debug)]
pub struct RequestHead<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    /// Hidden, because some clients put their session id or their token into it.
    pub(crate) query: Hidden<&'a str>,
    pub(crate) host: Option<&'a [u8]>,
    pub(crate) origin: Option<&'a [u8]>,
    pub(crate) accept: FieldLines<'a>,
    /// For a layer above.
    pub(crate) if_none_match: FieldLines<'a>,
    pub(crate) content_type: Option<&'a [u8]>,
    pub(crate) content_length: Option<&'a [u8]>,
    pub(crate) content_encoding: Option<&'a [u8]>,
    pub(crate) session_id: Option<&'a [u8]>,
    pub(crate) protocol_version: Option<&'a [u8]>,
    pub(crate) mcp_method: Option<&'a [u8]>,
    pub(crate) mcp_name: Option<&'a [u8]>,
    pub(crate) last_event_id: Option<&'a [u8]>,
    /// For the observer of the server.
    pub(crate) traceparent: Option<&'a [u8]>,
    pub(crate) tracestate: Option<&'a [u8]>,
    pub(crate) http_version: Option<&'static str>,
    /// For a layer above.
    pub(crate) authorization: Hidden<AuthorizationField<'a>>,
    /// For a layer above.
    pub(crate) dpop: Hidden<AuthorizationField<'a>>,
    /// The remote address, if the adapter knows it.
    pub(crate) remote: Option<RemoteAddress>,
    /// Fields whose names start with `Mcp-Param-`, in the order received.
    pub(crate) params: Vec<(&'a str, &'a [u8])>,
    /// A field that must not be repeated and was received with different values.
    pub(crate) contradictory: Option<&'static str>,
}

/// The values of a field that may have several lines. The first value, usually the only one, is
/// stored without an allocation.
#[derive(Clone, Debug, Default)]
pub(crate) struct FieldLines<'a> {
    first: Option<&'a [u8]>,
    others: Vec<&'a [u8]>,
}

impl<'a> FieldLines<'a> {
    fn push(&mut self, value: &'a [u8]) {
        if self.first.is_none() {
            self.first = Some(value);
        } else {
            self.others.push(value);
        }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Returns the values in the order received.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &'a [u8]> {
        self.first.into_iter().chain(self.others.iter().copied())
    }
}

/// A value that is hidden in debug output.
#[derive(Clone, Copy)]
pub(crate) struct Hidden<T>(pub(crate) T);

impl<T> fmt::Debug for Hidden<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("..")
    }
}

/// A field with credentials of a request, `Authorization` or `DPoP`.
#[derive(Clone, Copy)]
pub enum AuthorizationField<'a> {
    /// The field is missing.
    None,
    /// The value of the field.
    One(&'a [u8]),
    /// The field is repeated, which is not allowed.
    Repeated,
}

impl<'a> AuthorizationField<'a> {
    /// Adds a line of the field.
    const fn push(&mut self, value: &'a [u8]) {
        *self = match self {
            Self::None => Self::One(value),
            _ => Self::Repeated,
        };
    }
}

impl fmt::Debug for AuthorizationField<'_> {
    /// Omits the value.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::One(_) => "One(..)",
            Self::Repeated => "Repeated",
        })
    }
}

const PARAM_PREFIX: &str = "mcp-param-";

impl<'a> RequestHead<'a> {
    /// Returns the method.
    #[must_use]
    pub const fn method(&self) -> &'a str {
        self.method
    }

    /// Returns the path of the target.
    #[must_use]
    pub const fn path(&self) -> &'a str {
        self.path
    }

    /// Returns the field with the client's credentials. It is hidden in debug output.
    #[must_use]
    pub const fn authorization(&self) -> AuthorizationField<'a> {
        self.authorization.0
    }

    /// Returns the field `DPoP`: the proof that the client holds the key of its token (RFC 9449).
    /// It is hidden in debug output.
    #[must_use]
    pub const fn dpop(&self) -> AuthorizationField<'a> {
        self.dpop.0
    }

    /// Returns the query of the target, without its question mark.
    #[must_use]
    pub const fn query(&self) -> &'a str {
        self.query.0
    }

    /// Returns whether the client has the document with this [tag](ResponseHead::etag), and needs no
    /// copy.
    // RFC 9110, section 13.1.2: weak comparison.
    #[must_use]
    pub fn has(&self, etag: NonZeroU32) -> bool {
        let tag = tag_text(etag);
        let known = self.if_none_match.iter().flat_map(|line| line.split(|byte| *byte == b','));
        known
            .map(<[u8]>::trim_ascii)
            .any(|it| it == b"*" || it.strip_prefix(b"W/").unwrap_or(it) == tag.as_bytes())
    }

    /// Creates the head of a request for `target`, in origin form (`/mcp?x=y`) or absolute form.
    #[must_use]
    pub fn new(method: &'a str, target: &'a str) -> Self {
        let (path, query) = split_target(target);
        Self {
            method,
            path,
            query: Hidden(query),
            host: None,
            origin: None,
            accept: FieldLines::default(),
            if_none_match: FieldLines::default(),
            content_type: None,
            content_length: None,
            content_encoding: None,
            session_id: None,
            protocol_version: None,
            mcp_method: None,
            mcp_name: None,
            last_event_id: None,
            traceparent: None,
            tracestate: None,
            http_version: None,
            authorization: Hidden(AuthorizationField::None),
            dpop: Hidden(AuthorizationField::None),
            remote: None,
            params: Vec::new(),
            contradictory: None,
        }
    }

    /// Sets the origin of the request: the remote end of its connection, or the client that a
    /// trusted proxy names. Limits per client apply to it if no principal is known. Without either,
    /// the request does not count towards a client's limits.
    pub fn remote_address(&mut self, address: impl Into<RemoteAddress>) {
        self.remote = Some(address.into());
    }

    /// Sets the version of HTTP, such as `1.1` or `2`, for the observer of the server.
    #[inline]
    pub const fn http_version(&mut self, version: &'static str) {
        self.http_version = Some(version);
    }

    /// Returns the media types that the client accepts: all, if it does not say.
    pub(super) fn accepted(&self) -> Accepted {
        // Fast path for the usual values.
        match self.accept.first {
            None => Accepted { json: true, event_stream: true },
            Some(b"application/json, text/event-stream") if self.accept.others.is_empty() => {
                Accepted { json: true, event_stream: true }
            }
            Some(b"text/event-stream") if self.accept.others.is_empty() => {
                Accepted { json: false, event_stream: true }
            }
            Some(_) => Accepted::from_values(self.accept.iter()),
        }
    }

    /// Adds a header field. Fields that the protocol does not use are ignored.
    ///
    /// Pass the `:authority` of HTTP/2 as `host`.
    // MCP 2026-07-28 basic/transports/streamable-http#server-validation [HDR-031]: names are
    // case-insensitive, and values exclude surrounding white space.
    pub fn field(&mut self, name: &'a str, value: &'a [u8]) {
        let value = value.trim_ascii();
        // HTTP libraries provide names in lower case.
        let is = |field: &str| name == field || name.eq_ignore_ascii_case(field);
        let (slot, spelled) = match name.len() {
            4 if is("host") => (&mut self.host, "Host"),
            4 if is("dpop") => return self.dpop.0.push(value),
            6 if is("origin") => (&mut self.origin, "Origin"),
            6 if is("accept") => return self.accept.push(value),
            8 if is("mcp-name") => (&mut self.mcp_name, "Mcp-Name"),
            10 if is("tracestate") => (&mut self.tracestate, "tracestate"),
            11 if is("traceparent") => (&mut self.traceparent, "traceparent"),
            10 if is("mcp-method") => (&mut self.mcp_method, "Mcp-Method"),
            12 if is("content-type") => (&mut self.content_type, "Content-Type"),
            13 if is("authorization") => return self.authorization.0.push(value),
            13 if is("if-none-match") => return self.if_none_match.push(value),
            // A reader without an event may send it empty.
            13 if is("last-event-id") && value.is_empty() => return,
            13 if is("last-event-id") => (&mut self.last_event_id, "Last-Event-ID"),
            14 if is("content-length") => (&mut self.content_length, "Content-Length"),
            16 if is("content-encoding") => (&mut self.content_encoding, "Content-Encoding"),
            // MCP 2025-11-25 basic/transports#session-management [SESS-015]
            14 if is("mcp-session-id") => (&mut self.session_id, "Mcp-Session-Id"),
            20 if is("mcp-protocol-version") => {
                (&mut self.protocol_version, "MCP-Protocol-Version")
            }
            length => {
                let prefix = name.get(..PARAM_PREFIX.len());
                if length > PARAM_PREFIX.len()
                    && prefix.is_some_and(|prefix| prefix.eq_ignore_ascii_case(PARAM_PREFIX))
                {
                    self.params.push((name, value));
                }
                return;
            }
        };
        match slot {
            // The values differ, and an intermediary may have used the other one.
            Some(known) if *known != value => self.contradictory = Some(spelled),
            _ => *slot = Some(value),
        }
    }
}

/// Splits a request target into path and query.
fn split_target(target: &str) -> (&str, &str) {
    // Targets in absolute form are rare, so most targets need no search for a scheme.
    let scheme = if target.starts_with('/') { None } else { target.find("://") };
    let local = match scheme {
        Some(scheme) => {
            let rest = &target[scheme + 3..];
            rest.find(['/', '?']).map_or("/", |start| &rest[start..])
        }
        None => target,
    };
    local.split_once('?').unwrap_or((local, ""))
}

/// The content of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Content {
    /// One JSON text.
    Json,
    /// A stream of Server-Sent Events.
    EventStream,
    /// The card of a server. Its format is a draft.
    ServerCard,
}

impl Content {
    /// Returns the media type.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::EventStream => "text/event-stream",
            Self::ServerCard => "application/mcp-server-card+json",
        }
    }
}

/// The head of a response from a server machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    /// The status code.
    pub status: Status,
    /// The content of the body; `None` if there is no body.
    pub content: Option<Content>,
    pub(crate) session: Option<SessionId>,
    /// The methods that the target supports.
    pub allow: Option<&'static str>,
    /// The number of seconds after which the client may retry.
    pub(crate) retry_after: Option<u32>,
    /// The value of `WWW-Authenticate`: the credentials that the client has to send.
    pub(crate) challenge: Option<Box<str>>,
    /// Boxed, because few responses have it.
    pub(crate) dpop_nonce: Option<Box<DpopNonce>>,
    /// Whether pages of all origins may read the response.
    pub public: bool,
    /// The tag of a document, the same for the same content. Caches may keep it for an hour.
    pub etag: Option<NonZeroU32>,
}

impl ResponseHead {
    /// Creates a head with this status, for a body of this kind, and without other fields.
    #[must_use]
    pub const fn new(status: Status, content: Option<Content>) -> Self {
        Self {
            status,
            content,
            session: None,
            allow: None,
            retry_after: None,
            challenge: None,
            dpop_nonce: None,
            public: false,
            etag: None,
        }
    }

    /// Returns the header fields, in lower case as HTTP/2 requires. The adapter adds the length of
    /// the body.
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, Cow<'_, str>)> {
        // Each field is built on demand, because most responses have only one.
        (0..FIELDS).filter_map(|index| self.field_at(index))
    }

    /// Returns one of the [`FIELDS`], if this response has it.
    fn field_at(&self, index: u8) -> Option<(&'static str, Cow<'_, str>)> {
        let stream = self.content == Some(Content::EventStream);
        match index {
            0 => self.content.map(|content| ("content-type", Cow::Borrowed(content.media_type()))),
            1 => match self.content {
                Some(Content::EventStream) => Some("no-cache, no-transform"),
                // MCP 2026-07-28 server-card:discovery#caching [CARD-036]
                _ if self.etag.is_some() => Some("public, max-age=3600"),
                // RFC 9110, section 15.1: a cache may keep some refusals, which depend on header
                // fields of the request.
                _ if !self.status.is_success() => Some("no-store"),
                _ => None,
            }
            .map(|value| ("cache-control", Cow::Borrowed(value))),
            // MCP 2026-07-28 basic/transports/streamable-http#receiving-messages [HSRV-027]
            2 => stream.then_some(("x-accel-buffering", Cow::Borrowed("no"))),
            // MCP 2025-11-25 basic/transports#session-management [SESS-001]
            3 => self.session.as_ref().map(|id| ("mcp-session-id", Cow::Borrowed(id.as_str()))),
            4 => self.allow.map(|methods| ("allow", Cow::Borrowed(methods))),
            5 => self
                .retry_after
                .map(|seconds| ("retry-after", Cow::Owned(alloc::format!("{seconds}")))),
            // RFC 9110, section 11.6.1
            6 => self.challenge.as_deref().map(|it| ("www-authenticate", Cow::Borrowed(it))),
            7 => self.public.then_some(("access-control-allow-origin", Cow::Borrowed("*"))),
            // MCP 2026-07-28 server-card:discovery#cors-requirements [CARD-035]
            8 => self.public.then_some(("access-control-allow-headers", Cow::Borrowed("*"))),
            10 => self.public.then_some(("access-control-allow-methods", Cow::Borrowed("GET"))),
            11 => self.public.then_some(("access-control-expose-headers", Cow::Borrowed("ETag"))),
            // MCP 2026-07-28 server-card:discovery#caching [CARD-037]
            12 => self.etag.map(|etag| ("etag", Cow::Owned(tag_text(etag)))),
            // RFC 9449, section 9
            9 => self.dpop_nonce.as_ref().map(|it| ("dpop-nonce", Cow::Borrowed(&*it.0))),
            _ => None,
        }
    }
}

/// The number of header fields that a response can have.
const FIELDS: u8 = 13;

/// Returns an entity tag (RFC 9110, section 8.8.3).
fn tag_text(etag: NonZeroU32) -> String {
    alloc::format!("\"{etag:08x}\"")
}

/// A complete response of a server machine.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Response {
    /// The head.
    pub head: ResponseHead,
    /// The complete body; empty if the head has no content.
    pub body: Vec<u8>,
}

impl Response {
    /// Creates a response from its head and its complete body.
    #[must_use]
    pub const fn new(head: ResponseHead, body: Vec<u8>) -> Self {
        Self { head, body }
    }
}

impl HttpRejection {
    /// Returns the response that refuses a complete exchange. It contains a JSON-RPC response if
    /// the request is known.
    #[must_use]
    pub fn to_response(&self, request: Option<&RequestId>) -> Response {
        let mut body = String::new();
        write_error(&mut body, request, &self.error);
        Response { head: self.head(), body: body.into_bytes() }
    }

    pub(super) fn head(&self) -> ResponseHead {
        let mut head = ResponseHead::new(self.status, Some(Content::Json));
        head.challenge = self.challenge.as_deref().map(Box::from);
        head.retry_after = self.retry_after;
        head.dpop_nonce.clone_from(&self.dpop_nonce);
        head
    }
}

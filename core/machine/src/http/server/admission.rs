//! Decisions that need only the head of a request.

use alloc::string::String;

use crate::Revisions;
use crate::http::media::{Accepted, is_json};
use crate::http::{Content, RequestHead, Response, ResponseHead, Status};
use crate::jsonrpc::{ErrorObject, Frame, Malformed, Message, RequestId, write_error};
use crate::protocol::{Era, Revision};

use super::posts::named_request;
use super::{Exhausted, Server, SharedResource};

/// The limits for reading the body of an admitted request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Admission {
    /// The maximum length of the body, in bytes. For a longer body, send [`Server::body_too_long`]
    /// and stop reading.
    pub body_bytes_max: usize,
    /// The maximum time to read the body. After it, send [`Server::body_too_slow`].
    pub body_time: core::time::Duration,
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

impl Server {
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
        routed?;
        Ok(Admission {
            body_bytes_max: self.options.limits.body_bytes_max,
            body_time: self.options.timeouts.body,
        })
    }

    /// Checks only the path and the method of a request, before its sender is authenticated.
    /// [`admit`](Self::admit) repeats these checks and does all others.
    ///
    /// # Errors
    ///
    /// The request is refused: send this response, and do not read the body.
    pub fn locate(&self, head: &RequestHead<'_>) -> Result<(), Response> {
        self.place_of(head).map(drop)
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
        let checked = self.options.hosts.check(head.host, head.origin);
        checked.map_err(|fault| refusal(Status::FORBIDDEN, None, &alloc::format!("{fault}")))
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
    fn place_of(&self, head: &RequestHead<'_>) -> Result<Route, Response> {
        self.check_host(head)?;
        if let Some(field) = head.contradictory {
            let message =
                alloc::format!("the header field `{field}` is repeated with different values");
            return Err(refusal(Status::BAD_REQUEST, None, &message));
        }
        let route = self.find_route(head)?;
        if self.exchanges.len() >= self.options.limits.exchanges_max {
            return Err(SharedResource::Exchanges.refusal(Exhausted::Total).to_response(None));
        }
        Ok(route)
    }

    /// Returns the purpose of a request, if its head is valid.
    pub(super) fn route(&self, head: &RequestHead<'_>) -> Result<Route, Response> {
        let route = self.place_of(head)?;
        let new_stream = matches!(route, Route::Get | Route::EventStream);
        if self.closing && new_stream && head.last_event_id.is_none() {
            return Err(busy(None, CLOSING));
        }
        match route {
            Route::Post | Route::Message => self.check_message(head, route)?,
            Route::Get | Route::EventStream => {
                // MCP 2025-11-25 basic/transports#listening-for-messages-from-the-server [HCLI-008]
                // A client of 2024-11-05 may not send `Accept`.
                let silent = route == Route::EventStream && head.accept.is_empty();
                if !silent && !Accepted::from_values(head.accept.iter()).event_stream {
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
            !number.parse().is_ok_and(|n: u64| n <= self.options.limits.body_bytes_max as u64)
        })
    }

    /// Refuses new requests once the server is closing. Messages for pending requests are still
    /// accepted.
    pub(super) fn check_not_closing(
        &self,
        frame: &Result<Frame<'_>, Malformed>,
    ) -> Result<(), Response> {
        let new = matches!(frame, Ok(Frame::Single(Message::Request(_)) | Frame::Batch(_)));
        if self.closing && new { Err(busy(named_request(frame), CLOSING)) } else { Ok(()) }
    }

    // MCP 2025-11-25 basic/transports#streamable-http [HSRV-001]
    // MCP 2026-07-28 basic/transports/streamable-http#message-flow [HSRV-002]
    fn find_route(&self, head: &RequestHead<'_>) -> Result<Route, Response> {
        let options = &self.options;
        if options.event_path.as_deref() == Some(head.path) {
            return only("GET", head, Route::EventStream);
        }
        if options.message_path.as_deref() == Some(head.path) {
            return only("POST", head, Route::Message);
        }
        if options.path.as_deref().is_some_and(|path| path != head.path) {
            return Err(refusal(Status::NOT_FOUND, None, "nothing is served at this path"));
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
        if self.revisions.intersection(Revisions::LEGACY).is_empty() {
            return false;
        }
        let modern = named_revision(head).is_some_and(|revision| revision.era() == Era::Modern);
        !modern || self.revisions.intersection(Revisions::MODERN).is_empty()
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
        // MCP 2025-11-25 basic/transports#sending-messages-to-the-server [HCLI-002]
        if route == Route::Post && !head.accept.is_empty() {
            let accepted = Accepted::from_values(head.accept.iter());
            if !(accepted.json && accepted.event_stream) {
                let message = "`Accept` must list application/json and text/event-stream";
                return Err(refusal(Status::NOT_ACCEPTABLE, None, message));
            }
        }
        Ok(())
    }
}

/// Returns the revision in the header, if it is a known one.
pub(super) fn named_revision(head: &RequestHead<'_>) -> Option<Revision> {
    let named = head.protocol_version?;
    Revision::ALL.into_iter().find(|revision| revision.as_str().as_bytes() == named)
}

fn only(method: &'static str, head: &RequestHead<'_>, route: Route) -> Result<Route, Response> {
    if head.method == method { Ok(route) } else { Err(not_allowed(method)) }
}

fn not_allowed(allowed: &'static str) -> Response {
    let mut response = refusal(Status::METHOD_NOT_ALLOWED, None, "the method is not allowed here");
    response.head.allow = Some(allowed);
    response
}

/// Refuses a request because of a temporary condition.
pub(super) fn busy(request: Option<&RequestId>, message: &str) -> Response {
    let mut response = refusal(Status::SERVICE_UNAVAILABLE, request, message);
    response.head.retry_after = Some(10);
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
    write_error(&mut body, request, &ErrorObject::invalid_request(message));
    Response { head: ResponseHead::new(status, Some(Content::Json)), body: body.into_bytes() }
}

const CLOSING: &str = "the server is shutting down";

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use http::{HeaderValue, Version, header};
use http_body::Body;
use mcp_sansio::http::{Admission, Exhausted, RemoteAddress, RequestHead, Response};
use mcp_sansio::{Caller, Principal};
use mcp_sansio_handlers::TokenRequirement;

use super::budget::{CallerName, Charge, ConnectionBudget};
use super::runtime::with_timeout;
use super::service::Sender;
use super::shared_server::SharedServer;

/// Converts the head of a request for the machine. The client address comes from the request's
/// extensions, or else from `remote`.
pub(super) fn request_head(
    parts: &http::request::Parts,
    remote: Option<RemoteAddress>,
) -> RequestHead<'_> {
    let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
    let mut head = RequestHead::new(parts.method.as_str(), target);
    let named: Option<RemoteAddress> = parts.extensions.get().copied();
    if let Some(address) = named.or(remote) {
        head.remote_address(address);
    }
    head.http_version(match parts.version {
        Version::HTTP_10 => "1.0",
        Version::HTTP_2 => "2",
        Version::HTTP_3 => "3",
        _ => "1.1",
    });
    // HTTP/2 has the host in the target.
    if let Some(authority) = parts.uri.authority() {
        head.field("host", authority.as_str().as_bytes());
    }
    for (name, value) in &parts.headers {
        head.field(name.as_str(), value.as_bytes());
    }
    head
}

/// Returns whether a request is malformed in a way that the library accepts. Software behind or in
/// front of this server could interpret it differently.
///
/// RFC 9112 section 3.2: one `Host`, even if the values are equal. RFC 9113 section 8.2.1: in
/// HTTP/2 the value of a field neither starts nor ends with a space or a tab.
pub(super) fn is_malformed(parts: &http::request::Parts) -> bool {
    let is_blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    let has_blank = |value: &[u8]| is_blank(value.first()) || is_blank(value.last());
    parts.headers.get_all(header::HOST).iter().nth(1).is_some()
        || has_binary_fields(parts.version)
            && parts.headers.values().any(|value| has_blank(value.as_bytes()))
}

/// Returns whether fields are transmitted as names and values, not as lines of text.
fn has_binary_fields(version: Version) -> bool {
    matches!(version, Version::HTTP_2 | Version::HTTP_3)
}

/// Why a body could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyError {
    /// It exceeds its length limit.
    TooLong,
    /// The bodies of its caller, or all bodies together, exceed their limit.
    TooMany(Exhausted),
    /// It ended early. The received part may happen to be a valid message, but not the client's.
    Incomplete,
}

/// A body and its share of the held bytes.
#[derive(Debug)]
pub(super) struct BudgetedBody {
    pub(super) bytes: Bytes,
    charge: Charge,
}

/// Reads a body, within its limits. It counts against the budget of its connection, and as soon as
/// the rest of it is awaited, against `caller`, if that is not the peer of the connection.
pub(super) async fn read_body<B: Body>(
    mut body: Pin<&mut B>,
    version: Version,
    admission: Admission,
    budget: &ConnectionBudget,
    caller: Option<&CallerName>,
) -> Result<BudgetedBody, BodyError> {
    let most = admission.body_bytes_max;
    if body.size_hint().lower() > most as u64 {
        return Err(BodyError::TooLong);
    }
    let mut whole = BudgetedBody { bytes: Bytes::new(), charge: budget.charge_always(0, None) };
    let mut rest = BytesMut::new();
    let (mut read, mut unassigned) = (0, caller);
    loop {
        let next = poll_fn(|cx| {
            let polled = body.as_mut().poll_frame(cx);
            if polled.is_pending()
                && let Some(caller) = unassigned.take()
                && let Err(exhausted) = whole.charge.assign(caller)
            {
                return Poll::Ready(Err(BodyError::TooMany(exhausted)));
            }
            polled.map(Ok)
        });
        let Some(frame) = next.await? else { break };
        let frame = frame.map_err(|_| BodyError::Incomplete)?;
        let Ok(mut data) = frame.into_data() else {
            // RFC 9113 section 8.1: trailers with pseudo-header fields are malformed. The library
            // drops those fields, so they cannot be detected; no client of this protocol sends
            // trailers.
            if has_binary_fields(version) {
                return Err(BodyError::Incomplete);
            }
            continue;
        };
        let length = data.remaining();
        read += length;
        if read > most {
            return Err(BodyError::TooLong);
        }
        whole.charge.grow(length).map_err(BodyError::TooMany)?;
        if whole.bytes.is_empty() && rest.is_empty() {
            // The common case, without a copy.
            whole.bytes = data.copy_to_bytes(length);
            continue;
        }
        if rest.is_empty() {
            rest.extend_from_slice(&std::mem::take(&mut whole.bytes));
        }
        rest.put(data);
    }
    if !rest.is_empty() {
        whole.bytes = rest.freeze();
    }
    Ok(whole)
}

// ------------------------------------------------------------------ caller

/// Identifies the sender of a request: by its token, as an earlier layer did in the request's
/// extensions, or as the `connection`. Attaches what surrounds the request. Otherwise returns the
/// response that refuses the request. The lock is not held while a token is checked.
pub(super) async fn identify(
    shared: &Arc<SharedServer>,
    head: &RequestHead<'_>,
    parts: &http::request::Parts,
    connection: Sender,
) -> Result<Caller, Response> {
    let sender = surrounded(shared, parts, connection)?;
    let authorization = shared.lock().server.authorize(head, &sender);
    let mut checking = match authorization {
        TokenRequirement::NotNeeded => return Ok(sender),
        TokenRequirement::Respond(response) => return Err(response),
        TokenRequirement::Check(checking) => checking,
    };
    let checked = with_timeout(checking.time(), &*shared.runtime, pin!(&mut checking)).await;
    let Some(granted) = checked else { return Err(checking.unchecked()) };
    let grant = granted?;
    // Other nodes must not accept the same proof.
    let recording = shared.change(|state| state.server.record_proof(&grant, shared.now()));
    if let Some(recording) = recording {
        recording.await?;
    }
    Ok(Caller::from(grant).in_place_of(&sender))
}

/// Returns the sender according to an earlier layer, or else to the connection, with what surrounds
/// the request.
fn surrounded(
    shared: &SharedServer,
    parts: &http::request::Parts,
    connection: Sender,
) -> Result<Caller, Response> {
    let (layers, address) = (&parts.extensions, connection.address);
    let named = || layers.get::<Principal>().cloned().map(Caller::from);
    let (mut sender, peer) = match layers.get().cloned().or_else(named) {
        Some(identified) => (identified, address),
        // The caller of a connection has its address.
        None => (connection.caller, None),
    };
    if let Some(address) = layers.get::<RemoteAddress>().copied().or(peer) {
        sender = sender.with_extension(address);
    }
    for attach in connection.extensions.iter().flat_map(|all| all.iter()) {
        sender = attach(layers, sender);
    }
    let values = |name: &str| parts.headers.get_all(name).iter().map(HeaderValue::as_bytes);
    shared.reader.attach_headers(sender, values)
}

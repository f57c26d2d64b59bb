use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::fmt;

use bytes::Bytes;
use bytestring::ByteString;
use mcp_sansio_sync::Arc;

use crate::http::{ExchangeId, Location};
use crate::peer::TransportFailure;

/// What the driver is to do.
#[derive(Debug)]
pub enum Transmit {
    /// Send a request. Its response goes to
    /// [`handle_response`](super::Client::handle_response), or its failure to
    /// [`handle_exchange_failed`](super::Client::handle_exchange_failed).
    Send(OutgoingRequest),
    /// Close the way of an exchange that is under way, whatever is still to come. Nothing of it is
    /// to be handed in any more; what is, is passed over.
    Abort(ExchangeId),
}

/// A request to send.
pub struct OutgoingRequest {
    /// What its response is to be handed in by.
    pub exchange: ExchangeId,
    /// `POST`, `GET` or `DELETE`.
    pub method: &'static str,
    /// The body; empty where there is none. Cheap to clone.
    pub body: Bytes,
    pub(crate) url: Arc<Location>,
    pub(super) fields: Vec<Field>,
}

/// A header field.
pub type Field = (Cow<'static, str>, ByteString);

/// The field that names the session.
// MCP 2025-11-25 basic/transports#session-management [SESS-015]
pub(crate) const SESSION_ID: &str = "mcp-session-id";

/// The fields whose values are nobody else's business.
const SECRET: [&str; 3] = [SESSION_ID, "authorization", "dpop"];

impl OutgoingRequest {
    /// A request of another layer's own.
    #[must_use]
    pub const fn new(
        exchange: ExchangeId,
        method: &'static str,
        url: Arc<Location>,
        fields: Vec<Field>,
        body: Bytes,
    ) -> Self {
        Self { exchange, method, body, url, fields }
    }

    /// The same request once more, as another exchange and with these fields besides.
    #[must_use]
    pub fn again(&self, exchange: ExchangeId, besides: impl IntoIterator<Item = Field>) -> Self {
        let fields = self.fields.iter().cloned().chain(besides).collect();
        let (url, body) = (Arc::clone(&self.url), self.body.clone());
        Self { exchange, method: self.method, body, url, fields }
    }

    /// Where to send it.
    #[must_use]
    pub fn url(&self) -> &Location {
        &self.url
    }

    /// The header fields, in lower case as HTTP/2 wants them. Host and length are the driver's to
    /// add, and so is whatever it needs for authorization, unless there is an `mcp_sansio_oauth::client::Client` for
    /// that: then it is there.
    ///
    /// No value has a control character, and all are ASCII but `last-event-id`, which says in UTF-8
    /// what the server called its event.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.fields.iter().map(|(name, value)| (&**name, &**value))
    }
}

impl fmt::Debug for OutgoingRequest {
    /// Leaves out the body, the name of the session and credentials: logs are read by many.
    // MCP 2025-11-25 basic/transports#session-management [SESS-005]
    // MCP 2026-07-28 basic/authorization/security-considerations#token-theft [AUTHC-046]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hidden = |(name, value)| (name, if SECRET.contains(&name) { ".." } else { value });
        f.debug_struct("OutgoingRequest")
            .field("exchange", &self.exchange)
            .field("method", &self.method)
            .field("url", &self.url)
            .field("fields", &self.fields().map(hidden).collect::<Vec<_>>())
            .field("body_length", &self.body.len())
            .finish()
    }
}

/// Why an exchange came to no response, or to no end of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExchangeFailure {
    /// The request never left: no name, no route, no connection, no TLS.
    NotSent,
    /// The connection broke when some of the request may have left.
    Broken,
}

impl From<ExchangeFailure> for TransportFailure {
    fn from(failure: ExchangeFailure) -> Self {
        match failure {
            ExchangeFailure::NotSent => Self::NotSent,
            ExchangeFailure::Broken => Self::Broken,
        }
    }
}

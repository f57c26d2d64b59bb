use alloc::vec::Vec;
use core::fmt;

use bytes::Bytes;
use mcp_sansio_sync::Arc;

use crate::binding::Field;
use crate::http::{ExchangeId, Location};
use crate::peer::TransportFailure;

/// An action for the driver.
#[derive(Debug)]
pub enum ClientTransmit {
    /// Sends a request. Pass its response to [`handle_response`](super::Client::handle_response),
    /// or its failure to [`handle_exchange_failed`](super::Client::handle_exchange_failed).
    Send(OutgoingRequest),
    /// Aborts an open exchange. Further inputs for it are ignored.
    Abort(ExchangeId),
}

/// A request to send.
pub struct OutgoingRequest {
    /// The exchange that its response belongs to.
    pub exchange: ExchangeId,
    /// `POST`, `GET` or `DELETE`.
    pub method: &'static str,
    /// The body; empty for a request without one. Cheap to clone.
    pub body: Bytes,
    pub(crate) url: Arc<Location>,
    pub(super) fields: Vec<Field>,
    pub(super) is_lookup: bool,
}

/// The field with the session id.
// MCP 2025-11-25 basic/transports#session-management [SESS-015]
pub(crate) const SESSION_ID: &str = "mcp-session-id";

/// Returns whether this client sets a field, and not the application or another layer: see
/// [`HeaderFields`](crate::binding::HeaderFields).
pub(crate) fn is_own_field(name: &str) -> bool {
    name.starts_with("mcp-")
        || matches!(name, "accept" | "accept-encoding" | "content-type" | "last-event-id")
}

/// Returns whether the value of a field may be logged. Values of the application may be secrets.
fn is_public(name: &str) -> bool {
    is_own_field(name) && name != SESSION_ID
}

impl OutgoingRequest {
    /// Creates a request for another layer.
    #[must_use]
    pub const fn new(
        exchange: ExchangeId,
        method: &'static str,
        url: Arc<Location>,
        fields: Vec<Field>,
        body: Bytes,
    ) -> Self {
        Self { exchange, method, body, url, fields, is_lookup: false }
    }

    /// Repeats the request as another exchange, with additional fields, which replace those of the
    /// same name.
    #[must_use]
    pub fn again(&self, exchange: ExchangeId, besides: impl IntoIterator<Item = Field>) -> Self {
        let mut fields = self.fields.clone();
        for field in besides {
            fields.retain(|(name, _)| *name != field.0);
            fields.push(field);
        }
        let (url, body) = (Arc::clone(&self.url), self.body.clone());
        let is_lookup = self.is_lookup;
        Self { exchange, method: self.method, body, url, fields, is_lookup }
    }

    /// Returns whether the machine reads a list of tools for a call, which is sent without it if
    /// this request is denied: do not ask a user for more scopes because of it.
    #[must_use]
    pub const fn is_lookup(&self) -> bool {
        self.is_lookup
    }

    /// Returns the URL to send it to.
    #[must_use]
    pub fn url(&self) -> &Location {
        &self.url
    }

    /// Returns the header fields, in lower case as HTTP/2 requires. The driver adds the host and
    /// the length, and also the authorization unless an
    /// `mcp_sansio_oauth::client::AuthorizationClient` has added it.
    ///
    /// No value contains control characters. All values are ASCII except `last-event-id`, which is
    /// the server's event id in UTF-8.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.fields.iter().map(|(name, value)| (&**name, &**value))
    }

    /// Returns the header fields for logs: `..` in place of session ids, credentials and the values
    /// of [fields of the application](crate::http::HttpClientOptions::header).
    pub fn redacted_fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.fields().map(|(name, value)| (name, if is_public(name) { value } else { ".." }))
    }
}

impl fmt::Debug for OutgoingRequest {
    /// Omits the body, the session id and credentials, because logs have many readers.
    // MCP 2025-11-25 basic/transports#session-management [SESS-005]
    // MCP 2026-07-28 basic/authorization/security-considerations#token-theft [AUTHC-046]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutgoingRequest")
            .field("exchange", &self.exchange)
            .field("method", &self.method)
            .field("url", &self.url)
            .field("fields", &self.redacted_fields().collect::<Vec<_>>())
            .field("body_length", &self.body.len())
            .finish()
    }
}

/// The reason why an exchange failed before the end of its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExchangeFailure {
    /// The request was not sent: name resolution, routing, connecting or TLS failed.
    NotSent,
    /// The connection failed when part of the request may have been sent.
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

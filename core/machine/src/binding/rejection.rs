//! The refusal of a request where the transport has more to say than the message.

use alloc::boxed::Box;
use alloc::string::String;

use crate::jsonrpc::ErrorObject;

/// The refusal of a request by a layer above: an error, and the HTTP response for it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpRejection {
    /// The status, if the response has not started yet.
    pub status: Status,
    /// The value of `WWW-Authenticate`: the credentials that the client has to send.
    pub challenge: Option<String>,
    pub(crate) dpop_nonce: Option<Box<DpopNonce>>,
    /// The number of seconds after which the client may retry.
    pub retry_after: Option<u32>,
    /// The error, sent in the body. It is the only part that is sent if the response is a stream
    /// that has already started.
    pub error: ErrorObject<'static>,
}

impl HttpRejection {
    /// Creates a refusal with this status and no other header fields.
    #[must_use]
    pub const fn new(status: Status, error: ErrorObject<'static>) -> Self {
        Self { status, challenge: None, dpop_nonce: None, retry_after: None, error }
    }

    /// Sets [`HttpRejection::challenge`].
    #[must_use]
    pub fn challenge(mut self, challenge: impl Into<String>) -> Self {
        self.challenge = Some(challenge.into());
        self
    }

    /// Sets the value of `DPoP-Nonce`: what the next proof of the client must contain (RFC 9449,
    /// section 9).
    #[must_use]
    pub fn dpop_nonce(mut self, nonce: impl Into<String>) -> Self {
        self.dpop_nonce = Some(Box::new(DpopNonce(nonce.into())));
        self
    }

    /// Returns the value of `DPoP-Nonce`, if it has one.
    #[must_use]
    pub fn nonce(&self) -> Option<&str> {
        self.dpop_nonce.as_ref().map(|nonce| &*nonce.0)
    }

    /// Sets [`HttpRejection::retry_after`].
    #[must_use]
    pub const fn retry_after(mut self, seconds: u32) -> Self {
        self.retry_after = Some(seconds);
        self
    }
}

/// The value of `DPoP-Nonce`: what the next proof of the client must contain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DpopNonce(pub(crate) String);

/// An HTTP status code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Status(pub u16);

#[allow(missing_docs, reason = "the names are those of the HTTP standard")]
impl Status {
    pub const OK: Self = Self(200);
    pub const ACCEPTED: Self = Self(202);
    pub const NO_CONTENT: Self = Self(204);
    pub const BAD_REQUEST: Self = Self(400);
    pub const UNAUTHORIZED: Self = Self(401);
    pub const FORBIDDEN: Self = Self(403);
    pub const NOT_FOUND: Self = Self(404);
    pub const METHOD_NOT_ALLOWED: Self = Self(405);
    pub const NOT_ACCEPTABLE: Self = Self(406);
    pub const REQUEST_TIMEOUT: Self = Self(408);
    pub const GONE: Self = Self(410);
    pub const CONTENT_TOO_LARGE: Self = Self(413);
    pub const UNSUPPORTED_MEDIA_TYPE: Self = Self(415);
    pub const TOO_MANY_REQUESTS: Self = Self(429);
    /// 431.
    pub const REQUEST_HEADER_FIELDS_TOO_LARGE: Self = Self(431);
    pub const INTERNAL_SERVER_ERROR: Self = Self(500);
    pub const SERVICE_UNAVAILABLE: Self = Self(503);

    /// Returns whether it is a success status.
    #[must_use]
    pub const fn is_success(self) -> bool {
        self.0 >= 200 && self.0 < 300
    }
}

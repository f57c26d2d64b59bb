use alloc::boxed::Box;
use alloc::string::String;

use crate::jsonrpc::{ErrorObject, RequestId, write_error};

use super::head::DpopNonce;
use super::{Content, Response, ResponseHead, Status};

/// The refusal of a request by a layer above: an error, and the HTTP response for it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpRejection {
    /// The status, if the response has not started yet.
    pub status: Status,
    /// The value of `WWW-Authenticate`: the credentials that the client has to send.
    pub challenge: Option<String>,
    dpop_nonce: Option<Box<DpopNonce>>,
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

    /// Sets the value of `DPoP-Nonce`: what the next proof of the client must contain (RFC 9449, section
    /// 9).
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
        (head.challenge, head.retry_after) = (self.challenge.clone(), self.retry_after);
        head.dpop_nonce.clone_from(&self.dpop_nonce);
        head
    }
}

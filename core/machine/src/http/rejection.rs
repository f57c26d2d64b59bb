use alloc::string::String;

use crate::jsonrpc::{ErrorObject, RequestId, write_error};

use super::{Content, Response, ResponseHead, Status};

/// What a layer above refuses a request with: an error, and how HTTP says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpRejection {
    /// The status, where the response has not begun yet.
    pub status: Status,
    /// The value of `WWW-Authenticate`: what the client has to bring along.
    pub challenge: Option<String>,
    /// Seconds after which to try again.
    pub retry_after: Option<u32>,
    /// The error, in the body; all that is left where the response is a stream on its way.
    pub error: ErrorObject<'static>,
}

impl HttpRejection {
    /// A refusal with this status and nothing else to say in the head.
    #[must_use]
    pub const fn new(status: Status, error: ErrorObject<'static>) -> Self {
        Self { status, challenge: None, retry_after: None, error }
    }

    /// The response that refuses a whole exchange; with an answer to the request in it, where that
    /// is known.
    #[must_use]
    pub fn to_response(&self, request: Option<&RequestId>) -> Response {
        let mut body = String::new();
        write_error(&mut body, request, &self.error);
        Response { head: self.head(), body: body.into_bytes() }
    }

    pub(super) fn head(&self) -> ResponseHead {
        let mut head = ResponseHead::new(self.status, Some(Content::Json));
        (head.challenge, head.retry_after) = (self.challenge.clone(), self.retry_after);
        head
    }
}

use alloc::string::String;

use crate::binding::HttpRejection;
use crate::jsonrpc::{RequestId, write_error};

use super::{Content, Response, ResponseHead};

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
        (head.challenge, head.retry_after) = (self.challenge.clone(), self.retry_after);
        head.dpop_nonce.clone_from(&self.dpop_nonce);
        head
    }
}

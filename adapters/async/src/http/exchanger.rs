use std::task::{Context, Poll};

use mcp_sansio::http::{ExchangeFailure, IncomingResponse, OutgoingRequest};

/// Performs HTTP exchanges: what a runtime brings, with the HTTP library of its choice.
pub trait Exchanger {
    /// An exchange under way.
    type Exchange: Exchange;

    /// Begins an exchange: sends the request as it is, with `Host` and `Content-Length` added. No
    /// redirect is followed, no cookie kept, nothing tried again that may have reached the server.
    ///
    /// Exchanges do not wait for one another, and each has a limit on how long its connection takes
    /// to be there. How long the response takes is none of the exchanger's business.
    fn send(&mut self, request: &OutgoingRequest) -> Self::Exchange;
}

/// One HTTP request and its response. Dropped, it is broken off at once.
///
/// As everywhere, a method that returns [`Poll::Pending`] has seen to it that the task is woken
/// when another call makes sense. After an end or a failure it is not polled again.
pub trait Exchange {
    /// Waits for the head of the response, whatever its status.
    ///
    /// # Errors
    ///
    /// There will be none.
    fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<IncomingResponse<'_>, ExchangeFailure>>;

    /// Waits for the next piece of the body, which is as long as it happens to come, and whose size
    /// the exchange bounds; `None` at the end. Polled only after the head is there.
    ///
    /// # Errors
    ///
    /// The rest will not come.
    fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<&[u8]>, ExchangeFailure>>;
}

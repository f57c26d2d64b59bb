use std::task::{Context, Poll};

use mcp_sansio::http::{ExchangeFailure, IncomingResponse, OutgoingRequest};

/// Performs HTTP exchanges. A runtime implements it with an HTTP library.
pub trait Exchanger {
    /// A running exchange.
    type Exchange: Exchange;

    /// Begins an exchange: sends the request unchanged, with `Host` and `Content-Length` added. It
    /// follows no redirects, stores no cookies, and retries nothing that may have reached the
    /// server.
    ///
    /// Exchanges do not wait for one another, and each has a timeout for establishing its
    /// connection. The endpoint limits the time for the response.
    fn send(&mut self, request: &OutgoingRequest) -> Self::Exchange;
}

/// One HTTP request and its response. Dropping it aborts the exchange at once.
///
/// As usual, a method that returns [`Poll::Pending`] has registered the task to be woken when it
/// should be polled again. Do not poll after the end or a failure.
pub trait Exchange {
    /// Waits for the head of the response, whatever its status.
    ///
    /// # Errors
    ///
    /// The response head will not arrive.
    fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<IncomingResponse<'_>, ExchangeFailure>>;

    /// Waits for the next chunk of the body, of any size up to a limit of the exchange; `None` at
    /// the end. Only polled after the head has arrived.
    ///
    /// # Errors
    ///
    /// The rest of the body will not arrive.
    fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<&[u8]>, ExchangeFailure>>;
}

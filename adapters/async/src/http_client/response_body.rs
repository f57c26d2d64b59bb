use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use super::ConnectorError;
use super::exchanger::poll_piece;

/// The streaming body of a response.
///
/// Dropping it before its end aborts the exchange at once: HTTP/1 closes the connection, HTTP/2
/// resets the stream. While it is not read, the server is subject to backpressure.
pub struct ResponseBody {
    incoming: Incoming,
}

impl ResponseBody {
    pub(super) const fn new(incoming: Incoming) -> Self {
        Self { incoming }
    }

    /// Returns the next chunk, never empty; `None` at the end. Trailers are skipped. Cancel-safe.
    ///
    /// # Errors
    ///
    /// The connection was lost before the end, or the data is not valid HTTP.
    pub async fn chunk(&mut self) -> Option<Result<Bytes, ConnectorError>> {
        std::future::poll_fn(|cx| self.poll_chunk(cx)).await
    }

    /// Polls for the next chunk: see [`chunk`](Self::chunk).
    ///
    /// # Errors
    ///
    /// As [`chunk`](Self::chunk).
    pub fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, ConnectorError>>> {
        poll_piece(self, cx)
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = ConnectorError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ConnectorError>>> {
        let frame = ready!(Pin::new(&mut self.incoming).poll_frame(cx));
        Poll::Ready(frame.map(|frame| frame.map_err(|error| ConnectorError::from_body(&error))))
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseBody").finish_non_exhaustive()
    }
}

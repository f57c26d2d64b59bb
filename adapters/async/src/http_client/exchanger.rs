use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Request, Response, response};
use http_body::Body;
use mcp_sansio::http::{ExchangeFailure, IncomingResponse, OutgoingRequest, Status};

use super::{ConnectorError, EraCache, Exchange, Exchanger};
use crate::Runtime;

/// Sends requests: the connector of a runtime.
pub trait Connect: Clone + Send + 'static {
    /// The runtime of its connections.
    type Runtime: Runtime;

    /// The streaming body of a response. Dropping it before its end aborts the exchange; while it
    /// is not read, the server is subject to backpressure.
    type Body: Body<Data = Bytes, Error = ConnectorError> + Send + Unpin + 'static;

    /// Returns the eras of the servers that it has connected to.
    fn era_cache(&self) -> &EraCache;

    /// Performs one exchange: resolves when the response head has arrived, whatever its status.
    /// Dropping the future aborts the exchange, like dropping the body.
    ///
    /// # Errors
    ///
    /// No response arrived; see [`was_sent`](ConnectorError::was_sent).
    fn send(
        &self,
        request: Request<Bytes>,
    ) -> impl Future<Output = Result<Response<Self::Body>, ConnectorError>> + Send + 'static;
}

/// Performs the exchanges of a client with a connector.
#[derive(Clone, Debug)]
pub struct ConnectorExchanger<C> {
    connector: C,
    last_failure: LastFailure,
}

/// The last error of an exchanger, with more detail than the protocol reports.
#[derive(Clone, Debug, Default)]
pub struct LastFailure(Arc<Mutex<Option<ConnectorError>>>);

impl LastFailure {
    /// Returns the error of the last failed exchange, or `None`.
    #[must_use]
    pub fn get(&self) -> Option<ConnectorError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn record(&self, error: ConnectorError) -> ExchangeFailure {
        let failure =
            if error.was_sent() { ExchangeFailure::Broken } else { ExchangeFailure::NotSent };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        failure
    }
}

impl<C> ConnectorExchanger<C> {
    /// Creates an exchanger that sends with `connector`.
    #[must_use]
    pub fn new(connector: C) -> Self {
        Self { connector, last_failure: LastFailure::default() }
    }

    /// Returns the error of the last failed exchange, or `None`.
    #[must_use]
    pub fn last_failure(&self) -> Option<ConnectorError> {
        self.last_failure.get()
    }

    /// Returns a handle to the last error, to be kept when the exchanger moves elsewhere.
    #[must_use]
    pub fn last_failure_handle(&self) -> LastFailure {
        self.last_failure.clone()
    }
}

impl<C: Connect> Exchanger for ConnectorExchanger<C> {
    type Exchange = ConnectorExchange<C::Body>;

    fn send(&mut self, request: &OutgoingRequest) -> ConnectorExchange<C::Body> {
        let sending: ResponseFuture<C::Body> = match to_request(request) {
            Ok(request) => Box::pin(self.connector.send(request)),
            Err(error) => {
                let reason = error.to_string();
                Box::pin(std::future::ready(Err(ConnectorError::Request { reason })))
            }
        };
        ConnectorExchange {
            state: State::Sending(sending),
            last_failure: self.last_failure.clone(),
        }
    }
}

fn to_request(request: &OutgoingRequest) -> Result<Request<Bytes>, http::Error> {
    let start = Request::builder().method(request.method).uri(request.url().as_str());
    let builder =
        request.fields().fold(start, |builder, (name, value)| builder.header(name, value));
    builder.body(request.body.clone())
}

type ResponseFuture<B> = Pin<Box<dyn Future<Output = Result<Response<B>, ConnectorError>> + Send>>;

/// An exchange of a [`ConnectorExchanger`].
pub struct ConnectorExchange<B> {
    state: State<B>,
    last_failure: LastFailure,
}

enum State<B> {
    Sending(ResponseFuture<B>),
    Receiving {
        head: Box<response::Parts>,
        body: B,
        /// The chunk last returned to the caller.
        piece: Bytes,
    },
}

impl<B> Exchange for ConnectorExchange<B>
where
    B: Body<Data = Bytes, Error = ConnectorError> + Unpin,
{
    fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<IncomingResponse<'_>, ExchangeFailure>> {
        if let State::Sending(sending) = &mut self.state {
            match ready!(sending.as_mut().poll(cx)) {
                Ok(response) => {
                    let (head, body) = response.into_parts();
                    let head = Box::new(head);
                    self.state = State::Receiving { head, body, piece: Bytes::new() };
                }
                Err(error) => return Poll::Ready(Err(self.last_failure.record(error))),
            }
        }
        match &self.state {
            State::Sending(_) => Poll::Pending,
            State::Receiving { head, .. } => Poll::Ready(Ok(to_head(head))),
        }
    }

    fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<&[u8]>, ExchangeFailure>> {
        let State::Receiving { body, piece, .. } = &mut self.state else { return Poll::Pending };
        match ready!(poll_piece(body, cx)) {
            None => Poll::Ready(Ok(None)),
            Some(Ok(next)) => {
                *piece = next;
                Poll::Ready(Ok(Some(piece)))
            }
            Some(Err(error)) => Poll::Ready(Err(self.last_failure.record(error))),
        }
    }
}

/// Polls for the next chunk of a body, never empty; `None` at the end. Trailers are skipped.
pub(super) fn poll_piece<B>(
    body: &mut B,
    cx: &mut Context<'_>,
) -> Poll<Option<Result<Bytes, ConnectorError>>>
where
    B: Body<Data = Bytes, Error = ConnectorError> + Unpin,
{
    loop {
        match ready!(Pin::new(&mut *body).poll_frame(cx)) {
            Some(Ok(frame)) => match frame.into_data() {
                Ok(bytes) if !bytes.is_empty() => return Poll::Ready(Some(Ok(bytes))),
                _ => {}
            },
            Some(Err(error)) => return Poll::Ready(Some(Err(error))),
            None => return Poll::Ready(None),
        }
    }
}

fn to_head(parts: &response::Parts) -> IncomingResponse<'_> {
    let mut head = IncomingResponse::new(Status(parts.status.as_u16()));
    for (name, value) in &parts.headers {
        head.field(name.as_str(), value.as_bytes());
    }
    head
}

impl<B> fmt::Debug for ConnectorExchange<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Omits the head, which may contain the session id.
        f.debug_struct("ConnectorExchange")
            .field("has_head", &matches!(self.state, State::Receiving { .. }))
            .finish_non_exhaustive()
    }
}

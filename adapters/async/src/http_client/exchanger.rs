use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Request, Response, response};
use http_body::Body;
use mcp_sansio::http::{ExchangeFailure, IncomingResponse, OutgoingRequest, Status};

use super::ConnectorError;
use crate::{EraCache, Exchange, Exchanger, Runtime};

/// Sends requests: the connector of a runtime.
pub trait Connect: Clone + Send + 'static {
    /// The runtime that its connections are of.
    type Runtime: Runtime;

    /// The body of a response, as it comes in. Dropped before its end, it breaks the exchange off; while
    /// nobody reads, the server is held back.
    type Body: Body<Data = Bytes, Error = ConnectorError> + Send + Unpin + 'static;

    /// The eras of the servers that it has connected to.
    fn era_cache(&self) -> &EraCache;

    /// One exchange: resolves when the head of the response is there, whatever its status. Dropped
    /// before, it breaks the exchange off, as the body does.
    ///
    /// # Errors
    ///
    /// There is no response; see [`was_sent`](ConnectorError::was_sent).
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

/// What last went wrong, for whoever wants to know more than the protocol does.
#[derive(Clone, Debug, Default)]
pub struct LastFailure(Arc<Mutex<Option<ConnectorError>>>);

impl LastFailure {
    /// What went wrong with the last exchange that failed; `None` if none has.
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
    /// One that sends by `connector`.
    #[must_use]
    pub fn new(connector: C) -> Self {
        Self { connector, last_failure: LastFailure::default() }
    }

    /// Why the last exchange that failed did; `None` if none has.
    #[must_use]
    pub fn last_failure(&self) -> Option<ConnectorError> {
        self.last_failure.get()
    }

    /// What will be known of failures, where somebody else has the exchanger.
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
        /// What was last shown of the body.
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

/// The next piece of a body, never empty; `None` at the end. Trailers are left out.
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
        // Not the head: it may name the session.
        f.debug_struct("ConnectorExchange")
            .field("has_head", &matches!(self.state, State::Receiving { .. }))
            .finish_non_exhaustive()
    }
}

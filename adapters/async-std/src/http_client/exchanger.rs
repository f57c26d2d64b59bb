use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Request, Response, response};
use mcp_sansio::http::{ExchangeFailure, IncomingResponse, OutgoingRequest, Status};
use mcp_sansio_async::{Exchange, Exchanger};

use crate::{Connector, ConnectorError, ResponseBody};

/// Performs the exchanges of a client with a [`Connector`].
#[derive(Clone, Debug)]
pub struct AsyncExchanger {
    connector: Connector,
    trouble: Trouble,
}

/// What last went wrong, for whoever wants to know more than the protocol does.
#[derive(Clone, Debug, Default)]
pub(super) struct Trouble(Arc<Mutex<Option<ConnectorError>>>);

impl Trouble {
    pub(super) fn last(&self) -> Option<ConnectorError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, error: ConnectorError) -> ExchangeFailure {
        let failure =
            if error.was_sent() { ExchangeFailure::Broken } else { ExchangeFailure::NotSent };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        failure
    }
}

impl AsyncExchanger {
    /// One that sends by `connector`.
    #[must_use]
    pub fn new(connector: Connector) -> Self {
        Self { connector, trouble: Trouble::default() }
    }

    /// Why the last exchange that failed did; `None` if none has.
    #[must_use]
    pub fn last_failure(&self) -> Option<ConnectorError> {
        self.trouble.last()
    }

    pub(super) fn trouble(&self) -> Trouble {
        self.trouble.clone()
    }
}

impl Exchanger for AsyncExchanger {
    type Exchange = AsyncExchange;

    fn send(&mut self, request: &OutgoingRequest) -> AsyncExchange {
        let sending: Sending = match to_request(request) {
            Ok(request) => Box::pin(self.connector.send(request)),
            Err(error) => {
                let reason = error.to_string();
                Box::pin(std::future::ready(Err(ConnectorError::Request { reason })))
            }
        };
        AsyncExchange { state: State::Sending(sending), trouble: self.trouble.clone() }
    }
}

fn to_request(request: &OutgoingRequest) -> Result<Request<Bytes>, http::Error> {
    let start = Request::builder().method(request.method).uri(request.url().as_str());
    let builder =
        request.fields().fold(start, |builder, (name, value)| builder.header(name, value));
    builder.body(request.body.clone())
}

type Sending = Pin<Box<dyn Future<Output = Result<Response<ResponseBody>, ConnectorError>> + Send>>;

/// An exchange of a [`AsyncExchanger`].
pub struct AsyncExchange {
    state: State,
    trouble: Trouble,
}

enum State {
    Sending(Sending),
    Receiving {
        head: Box<response::Parts>,
        body: ResponseBody,
        /// What was last shown of the body.
        piece: Bytes,
    },
}

impl Exchange for AsyncExchange {
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
                Err(error) => return Poll::Ready(Err(self.trouble.note(error))),
            }
        }
        match &self.state {
            State::Sending(_) => Poll::Pending,
            State::Receiving { head, .. } => Poll::Ready(Ok(to_head(head))),
        }
    }

    fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<&[u8]>, ExchangeFailure>> {
        let State::Receiving { body, piece, .. } = &mut self.state else { return Poll::Pending };
        match ready!(body.poll_chunk(cx)) {
            None => Poll::Ready(Ok(None)),
            Some(Ok(next)) => {
                *piece = next;
                Poll::Ready(Ok(Some(piece)))
            }
            Some(Err(error)) => Poll::Ready(Err(self.trouble.note(error))),
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

impl fmt::Debug for AsyncExchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the head: it may name the session.
        f.debug_struct("AsyncExchange")
            .field("has_head", &matches!(self.state, State::Receiving { .. }))
            .finish_non_exhaustive()
    }
}

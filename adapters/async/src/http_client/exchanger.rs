use std::collections::VecDeque;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::header::ACCEPT;
use http::{Request, Response, StatusCode, response};
use http_body::Body;
use mcp_sansio::Era;
use mcp_sansio::http::{
    Content, DOCUMENT_LENGTH_MAX, ExchangeFailure, IncomingResponse, Origin, OutgoingRequest,
};
use mcp_sansio::peer::Status;

use super::{ConnectorError, Exchange, Exchanger};
use crate::{Runtime, Timer};

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
pub(crate) struct LastFailure(Arc<Mutex<Option<ConnectorError>>>);

impl LastFailure {
    /// Returns the error of the last failed exchange, or `None`.
    #[must_use]
    pub(crate) fn get(&self) -> Option<ConnectorError> {
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
    pub(crate) fn last_failure_handle(&self) -> LastFailure {
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

// ------------------------------------------------------------------ era cache

/// Servers remembered. 256: more than one process connects to, and few enough for a linear search.
/// The least recently used server is evicted, which costs one round trip at its next connection.
const ORIGINS_MAX: usize = 256;

/// The eras of known servers, so that later connections skip the probe. Adapters keep it with their
/// connection pool. Holds at most 256 servers.
#[derive(Debug, Default)]
pub struct EraCache {
    /// Most recently used last.
    known: Mutex<VecDeque<(Origin, Era)>>,
}

impl EraCache {
    /// Returns the era of the server at `origin`, if known.
    #[must_use]
    pub fn get(&self, origin: &Origin) -> Option<Era> {
        let mut known = self.lock();
        let place = known.iter().position(|(other, _)| other == origin)?;
        let found = known.remove(place)?;
        let era = found.1;
        known.push_back(found);
        Some(era)
    }

    /// Stores the era of the server at `origin`.
    pub fn insert(&self, origin: &Origin, era: Era) {
        let mut known = self.lock();
        known.retain(|(other, _)| other != origin);
        if known.len() == ORIGINS_MAX {
            known.pop_front();
        }
        known.push_back((origin.clone(), era));
    }

    /// Forgets the era of the server at `origin`: if the server has changed, the next connection
    /// probes again.
    pub fn remove(&self, origin: &Origin) {
        self.lock().retain(|(other, _)| other != origin);
    }

    // A panic elsewhere leaves no inconsistent state.
    fn lock(&self) -> MutexGuard<'_, VecDeque<(Origin, Era)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// ------------------------------------------------------------------ fetch

/// Time limit for fetching a document, from the first lookup to the last byte. 20 s: twice the
/// connection timeout, so that a connection that times out reports that as its error.
pub const FETCH_TIME_MAX: Duration = Duration::from_secs(20);

/// Why a document could not be fetched.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// No response arrived, or an incomplete one.
    #[error(transparent)]
    Exchange(#[from] ConnectorError),
    /// The server answered with another status, including redirects.
    #[error("the server answers with HTTP status {status}")]
    Status {
        /// Any status other than 200.
        status: u16,
    },
    /// The document is longer than [`DOCUMENT_LENGTH_MAX`].
    #[error("the document is longer than {DOCUMENT_LENGTH_MAX} bytes")]
    TooLong,
    /// The document did not arrive within [`FETCH_TIME_MAX`].
    #[error("the document did not arrive within {FETCH_TIME_MAX:?}")]
    Timeout,
}

/// Fetches a document: the body of a response with status 200. Redirects are not followed.
///
/// # Errors
///
/// See [`FetchError`].
pub async fn fetch(
    connector: impl Connect,
    url: String,
    mut timer: impl Timer,
) -> Result<Vec<u8>, FetchError> {
    let deadline = timer.now() + FETCH_TIME_MAX;
    let mut document = pin!(document(connector, url));
    poll_fn(|cx| match document.as_mut().poll(cx) {
        Poll::Ready(document) => Poll::Ready(document),
        Poll::Pending => timer.poll_until(cx, deadline).map(|()| Err(FetchError::Timeout)),
    })
    .await
}

async fn document(connector: impl Connect, url: String) -> Result<Vec<u8>, FetchError> {
    // MCP 2026-07-28 server-card:discovery#hosted-server-card-location [CARD-027]:
    // catalogs tell where cards are, so each document may be one.
    let accept = format!("{}, */*;q=0.9", Content::ServerCard.media_type());
    let request = Request::get(url).header(ACCEPT, accept).body(Bytes::new());
    let request = request.map_err(|e| ConnectorError::Request { reason: e.to_string() })?;
    let response = connector.send(request).await?;
    if response.status() != StatusCode::OK {
        return Err(FetchError::Status { status: response.status().as_u16() });
    }
    let (mut body, mut document) = (response.into_body(), Vec::new());
    while let Some(piece) = poll_fn(|cx| poll_piece(&mut body, cx)).await {
        let piece = piece?;
        if piece.len() > DOCUMENT_LENGTH_MAX - document.len() {
            return Err(FetchError::TooLong);
        }
        document.extend_from_slice(&piece);
    }
    Ok(document)
}

#[cfg(test)]
mod era_cache_tests {
    use mcp_sansio::http::Location;

    use super::*;

    fn origin(port: usize) -> Origin {
        Location::parse(&format!("http://localhost:{port}/mcp")).unwrap().origin().clone()
    }

    #[test]
    fn an_origin_has_the_era_that_was_learned_last() {
        let era_cache = EraCache::default();
        assert_eq!(era_cache.get(&origin(1)), None);
        era_cache.insert(&origin(1), Era::Legacy);
        era_cache.insert(&origin(1), Era::Modern);
        era_cache.insert(&origin(2), Era::Legacy);
        assert_eq!(era_cache.get(&origin(1)), Some(Era::Modern));
        era_cache.remove(&origin(1));
        assert_eq!(era_cache.get(&origin(1)), None);
        assert_eq!(era_cache.get(&origin(2)), Some(Era::Legacy));
    }

    #[test]
    fn the_least_recently_used_origin_is_evicted() {
        let era_cache = EraCache::default();
        for port in 0..ORIGINS_MAX {
            era_cache.insert(&origin(port), Era::Legacy);
        }
        assert!(era_cache.get(&origin(0)).is_some());
        era_cache.insert(&origin(ORIGINS_MAX), Era::Modern);
        assert!(era_cache.get(&origin(0)).is_some());
        assert_eq!(era_cache.get(&origin(1)), None);
        assert_eq!(era_cache.lock().len(), ORIGINS_MAX);
    }
}

#[cfg(test)]
mod fetch_tests {
    use std::future::pending;
    use std::task::{Context, Waker};

    use http::Response;
    use mcp_sansio::Instant;

    use super::super::{EraCache, ResponseBody};
    use super::*;
    use crate::Runtime;

    /// Never responds.
    #[derive(Clone)]
    struct Silent;

    impl Connect for Silent {
        type Runtime = NoRuntime;
        type Body = ResponseBody;

        fn era_cache(&self) -> &EraCache {
            unreachable!("nothing is learned")
        }

        fn send(
            &self,
            _: Request<Bytes>,
        ) -> impl Future<Output = Result<Response<ResponseBody>, ConnectorError>> + Send + 'static
        {
            pending()
        }
    }

    #[derive(Clone, Debug)]
    struct NoRuntime;

    impl Runtime for NoRuntime {
        type Timer = &'static mut Alarm;

        fn current() -> Self {
            Self
        }

        fn timer(&self) -> &'static mut Alarm {
            unreachable!("nothing waits")
        }

        fn spawn<F: Future<Output = ()> + Send + 'static>(&self, _: F) {
            unreachable!("nothing is spawned")
        }
    }

    /// Records its deadline, and goes off at the second poll.
    #[derive(Default)]
    struct Alarm(Option<Instant>);

    impl Timer for &mut Alarm {
        fn now(&self) -> Instant {
            Instant::ZERO
        }

        fn poll_until(&mut self, _: &mut Context<'_>, deadline: Instant) -> Poll<()> {
            match self.0.replace(deadline) {
                None => Poll::Pending,
                Some(_) => Poll::Ready(()),
            }
        }
    }

    #[test]
    fn a_document_fetch_times_out() {
        let mut alarm = Alarm::default();
        let mut cx = Context::from_waker(Waker::noop());
        {
            let mut fetch = pin!(fetch(Silent, "http://localhost/".into(), &mut alarm));
            assert!(fetch.as_mut().poll(&mut cx).is_pending());
            let Poll::Ready(Err(FetchError::Timeout)) = fetch.poll(&mut cx) else {
                panic!("the fetch did not end")
            };
        }
        assert_eq!(alarm.0, Some(Instant::ZERO + FETCH_TIME_MAX));
    }

    #[test]
    fn an_invalid_url_is_reported() {
        let mut alarm = Alarm::default();
        let mut cx = Context::from_waker(Waker::noop());
        let fetch = pin!(fetch(Silent, "no url at all".into(), &mut alarm));
        let Poll::Ready(Err(FetchError::Exchange(ConnectorError::Request { reason }))) =
            fetch.poll(&mut cx)
        else {
            panic!("the request was sent")
        };
        assert_eq!(reason, "invalid uri character");
    }
}

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use http_body::Body;
use mcp_sansio::http::server::EventStore;
use mcp_sansio::http::{RemoteAddress, RequestHead, ServerOptions};
use mcp_sansio_handlers::{HttpServerError, Server, ServerHandle};

use super::caller::Caller;
use super::exchange::{ResponseStart, ServerExchange};
use super::request::{self, BodyError, BudgetedBody};
use super::shared_server::SharedServer;
use super::sleep::with_timeout;
use super::{ExternalEventStore, ServedBody, event_store, handler_task, response, timer_task};
use crate::{Error, Runtime, seed};

/// A server on HTTP, which answers one request after the other or all at once, wherever they come
/// from: a [`tower_service::Service`], for anything that takes such a service.
///
/// All clones are one server. Who sends a request, a [protected](Server::protect) server finds out
/// from its token; otherwise it is taken from a [`Principal`](mcp_sansio::Principal) among the
/// request's extensions, where a layer before this one has put it. Route the
/// [paths of its metadata](mcp_sansio_oauth::ProtectedResource::metadata_paths) to a protected server
/// as well.
#[derive(Clone, Debug)]
pub struct HttpService<R> {
    shared: Arc<SharedServer>,
    /// Where requests come from that do not say so themselves.
    remote: Option<RemoteAddress>,
    runtime: PhantomData<fn() -> R>,
}

impl<R: Runtime> HttpService<R> {
    /// Puts a server on HTTP. Its deadlines are kept by a task of the [current](Runtime::current)
    /// runtime, which ends with the last clone.
    ///
    /// # Errors
    ///
    /// The server offers something that it cannot; the operating system has no entropy.
    ///
    /// # Panics
    ///
    /// Where [`Runtime::current`] does.
    pub fn new(server: &Server, options: ServerOptions) -> Result<Self, Error> {
        Ok(Self::with_runtime(server, options, secret()?, seed(), R::current())?)
    }

    /// Puts a server on HTTP whose events are kept in an event store of the caller's as well, for clients
    /// that come back later than memory lasts. As for its deadlines there is a task for it.
    ///
    /// # Errors
    ///
    /// As for [`new`](Self::new).
    ///
    /// # Panics
    ///
    /// As [`new`](Self::new).
    pub fn with_event_store(
        server: &Server,
        options: ServerOptions,
        store: impl ExternalEventStore,
    ) -> Result<Self, Error> {
        let service = Self::new(server, options.event_store(EventStore::External))?;
        let store_task = event_store::run(Arc::downgrade(&service.shared), store);
        service.shared.runtime.spawn(Box::pin(store_task));
        Ok(service)
    }

    /// Puts a server on HTTP with a runtime of the caller's. `secret` and `seed` are as for
    /// [`Server::http`].
    ///
    /// # Errors
    ///
    /// The server offers something that it cannot: the caller's fault.
    pub fn with_runtime(
        server: &Server,
        options: ServerOptions,
        secret: [u8; 32],
        seed: u64,
        runtime: R,
    ) -> Result<Self, HttpServerError> {
        let server = server.http(options, secret, seed)?;
        let shared = Arc::new(SharedServer::new(server, Box::new(runtime)));
        let timer_task = timer_task::run(Arc::downgrade(&shared), shared.runtime.timer());
        shared.runtime.spawn(Box::pin(timer_task));
        Ok(Self { shared, remote: None, runtime: PhantomData })
    }

    /// The same server for the requests of one connection: they come from `address`, unless a
    /// [`RemoteAddress`] among their extensions names another client, whom a proxy before this
    /// server vouches for. Without either, a request without a
    /// [`Principal`](mcp_sansio::Principal) counts against nobody's share: see
    /// [`ServerLimits`](mcp_sansio::http::ServerLimits).
    #[must_use]
    pub fn with_remote_address(&self, address: impl Into<RemoteAddress>) -> Self {
        let remote = Some(address.into());
        Self { shared: Arc::clone(&self.shared), remote, runtime: PhantomData }
    }

    /// A way to all clients from outside of the handlers.
    #[must_use]
    pub fn handle(&self) -> ServerHandle {
        self.shared.lock().server.handle()
    }

    /// Takes no new request from here on, by whichever clone, and waits until the responses under
    /// way are complete. Streams that stand open end.
    pub async fn close(&self) {
        self.shared.change(|state| state.server.close(self.shared.now()));
        poll_fn(|cx| self.shared.lock().poll_drained(cx)).await;
    }

    /// Serves one request. Who sends it, a [protected](Server::protect) server finds out from its
    /// token; otherwise it is taken from a [`Principal`](mcp_sansio::Principal) among the request's
    /// extensions.
    ///
    /// To drop the future, or the body of the response before its end, is to tell that the client
    /// has gone.
    pub fn serve<B: Body>(
        &self,
        request: http::Request<B>,
    ) -> impl Future<Output = http::Response<ServedBody>> + use<R, B> {
        let (shared, remote) = (Arc::clone(&self.shared), self.remote);
        let (parts, body) = request.into_parts();
        async move { respond(&shared, &parts, remote, body).await }
    }
}

/// What nobody outside can guess: ids of sessions come from it.
fn secret() -> std::io::Result<[u8; 32]> {
    let mut secret = [0; 32];
    getrandom::fill(&mut secret)?;
    Ok(secret)
}

impl<R: Runtime, B> tower_service::Service<http::Request<B>> for HttpService<R>
where
    B: Body + Send + 'static,
    B::Data: Send,
{
    type Response = http::Response<ServedBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let served = self.serve(request);
        Box::pin(async move { Ok(served.await) })
    }
}

async fn respond<B: Body>(
    shared: &Arc<SharedServer>,
    parts: &http::request::Parts,
    remote: Option<RemoteAddress>,
    body: B,
) -> http::Response<ServedBody> {
    if request::is_malformed(parts) {
        return response::bare(http::StatusCode::BAD_REQUEST);
    }
    let head = request::request_head(parts, remote);
    let caller = match Caller::identify(shared, &head, parts.extensions.get()).await {
        Ok(caller) => caller,
        Err(response) => return response::whole(response),
    };
    let admission = match shared.lock().server.admit(&head) {
        Ok(admission) => admission,
        Err(refused) => return response::whole(refused),
    };
    let body = pin!(body);
    let read = pin!(request::read_body(body, parts.version, admission, &shared.body_budget));
    let refused = match with_timeout(admission.body_time, &*shared.runtime, read).await {
        Some(Ok(body)) => return answer(shared, &head, body, &caller).await,
        Some(Err(BodyError::TooMany)) => shared.lock().server.bodies_too_many(),
        Some(Err(BodyError::TooLong)) => shared.lock().server.body_too_long(),
        Some(Err(BodyError::Incomplete)) => return response::bare(http::StatusCode::BAD_REQUEST),
        None => shared.lock().server.body_too_slow(),
    };
    response::whole(refused)
}

async fn answer(
    shared: &Arc<SharedServer>,
    head: &RequestHead<'_>,
    body: BudgetedBody<'_>,
    caller: &Caller<'_>,
) -> http::Response<ServedBody> {
    // It is ready at once, and only wants a waker: what it works with is no part of the future.
    let begun = poll_fn(|cx| {
        let (mut exchange, work) = ServerExchange::begin(shared, head, &body.bytes, caller);
        let completed = work.and_then(|work| handler_task::start(shared, work, cx));
        let start = completed.and_then(|completed| exchange.complete(completed));
        Poll::Ready((exchange, start))
    });
    let (mut exchange, start) = begun.await;
    // A handler that goes on has what it needs of it.
    drop(body);
    let start = match start {
        Some(start) => start,
        None => poll_fn(|cx| exchange.poll_response_start(cx)).await,
    };
    match start {
        ResponseStart::Full(response) => response::whole(response),
        ResponseStart::Streaming(head) => response::with_head(&head, ServedBody::stream(exchange)),
        ResponseStart::Aborted => response::bare(http::StatusCode::SERVICE_UNAVAILABLE),
    }
}

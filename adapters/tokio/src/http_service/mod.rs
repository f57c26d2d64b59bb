use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use http::header::{HeaderName, HeaderValue};
use http_body::Body;
use mcp_sansio::Principal;
use mcp_sansio::handler::{Ran, Remote, Server, Work};
use mcp_sansio::http::{RequestHead, ResponseHead, ServerOptions, Transmit};

use crate::{Error, now, seed};

mod body;
mod listener;
mod site;

pub use body::{ServedBody, Unread};
pub use listener::{HttpListener, serve_http};

use site::{Place, Site};

/// A server on HTTP, as a [`tower_service::Service`]: for axum, for hyper, for anything that takes
/// such a service. For those who have no framework there is [`serve_http`].
///
/// All clones are one server. Who sends a request is taken from a [`Principal`] among the request's
/// extensions, where a layer before this one has put it.
///
/// ```no_run
/// # async fn run() -> Result<(), mcp_sansio_tokio::Error> {
/// use mcp_sansio_tokio::{Call, HttpService, NoArguments, Server};
///
/// let server = Server::new("clock", "1.0.0")
///     .tool("now", "The time", async |_: Call<NoArguments>| "about noon");
/// let service = HttpService::new(&server, mcp_sansio::http::ServerOptions::new().any_path())?;
/// // axum::Router::new().route_service("/mcp", service)
/// # let _ = service; Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct HttpService {
    site: Arc<Site>,
}

impl HttpService {
    /// Puts a server on HTTP. Its deadlines are kept by a task of the runtime that this is called
    /// in, which ends with the last clone.
    ///
    /// # Errors
    ///
    /// The server offers something that it cannot; the operating system has no entropy.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn new(server: &Server, options: ServerOptions) -> Result<Self, Error> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(std::io::Error::from)?;
        let site = Arc::new(Site::new(server.http(options, secret, seed())?));
        tokio::spawn(site::keep_time(Arc::downgrade(&site)));
        Ok(Self { site })
    }

    /// A way to all clients from outside of the handlers.
    #[must_use]
    pub fn remote(&self) -> Remote {
        self.site.lock().server.remote()
    }

    /// Takes no new request from here on, and waits until the responses under way are complete.
    /// Streams that stand open end.
    pub async fn close(&self) {
        self.site.lock().server.close(now());
        poll_fn(|cx| self.site.lock().poll_drained(cx)).await;
    }

    /// Serves one request.
    pub async fn serve<B>(&self, request: http::Request<B>) -> http::Response<ServedBody>
    where
        B: Body,
    {
        let (parts, body) = request.into_parts();
        let head = head_of(&parts);
        let admission = match self.site.lock().server.admit(&head) {
            Ok(admission) => admission,
            Err(refused) => return whole(&refused.head, refused.body),
        };
        let body = std::pin::pin!(body);
        let read = read_body(body, admission.body_bytes_max);
        let refused = match tokio::time::timeout(admission.body_time, read).await {
            Ok(Ok(body)) => {
                let principal = parts.extensions.get::<Principal>();
                return self.answer(&head, &body, principal).await;
            }
            Ok(Err(TooLong)) => self.site.lock().server.body_too_long(),
            Err(_) => self.site.lock().server.body_too_slow(),
        };
        whole(&refused.head, refused.body)
    }

    async fn answer(
        &self,
        head: &RequestHead<'_>,
        body: &Bytes,
        principal: Option<&Principal>,
    ) -> http::Response<ServedBody> {
        let (place, work) = {
            let mut locked = self.site.lock();
            let (exchange, work) = locked.server.handle_request(head, body, principal, now());
            locked.settle(&self.site);
            (Place::new(Arc::clone(&self.site), exchange), work)
        };
        if let Some(work) = work {
            self.work(work).await;
        }
        let mut place = Some(place);
        poll_fn(|cx| {
            let Some(waiting) = &mut place else { return Poll::Pending };
            let response = match std::task::ready!(waiting.poll_head(cx)) {
                Transmit::Respond(response) => whole(&response.head, response.body),
                Transmit::Open(head) => {
                    let body = place.take().map(ServedBody::stream).unwrap_or_default();
                    with_head(&head, body)
                }
                // A head comes first; anything else ends a response that never had one.
                _ => with_status(http::StatusCode::SERVICE_UNAVAILABLE),
            };
            Poll::Ready(response)
        })
        .await
    }

    /// Runs a handler: to its end where it needs no waiting, in a task of its own where it does. So
    /// a handler outlives the connection of its request, which legacy clients may come back for.
    async fn work(&self, work: Work<'_>) {
        match work.run() {
            Ran::Done(finished) => self.site.finish(finished),
            Ran::Running(mut running) => {
                let ready = poll_fn(|cx| Poll::Ready(Pin::new(&mut running).poll(cx))).await;
                match ready {
                    Poll::Ready(Some(finished)) => self.site.finish(finished),
                    Poll::Ready(None) => {}
                    Poll::Pending => {
                        self.site.attend(&running);
                        let site = Arc::clone(&self.site);
                        tokio::spawn(async move {
                            if let Some(finished) = running.await {
                                site.finish(finished);
                            }
                        });
                    }
                }
            }
        }
    }
}

impl<B> tower_service::Service<http::Request<B>> for HttpService
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
        let service = self.clone();
        Box::pin(async move { Ok(service.serve(request).await) })
    }
}

/// The head of a request as the machine takes it.
fn head_of(parts: &http::request::Parts) -> RequestHead<'_> {
    let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
    let mut head = RequestHead::new(parts.method.as_str(), target);
    // HTTP/2 has the host in the target.
    if let Some(authority) = parts.uri.authority() {
        head.field("host", authority.as_str().as_bytes());
    }
    for (name, value) in &parts.headers {
        head.field(name.as_str(), value.as_bytes());
    }
    head
}

struct TooLong;

/// Reads a body, as far as it may go. One that breaks off is what it is: no message.
async fn read_body<B: Body>(mut body: Pin<&mut B>, most: usize) -> Result<Bytes, TooLong> {
    if body.size_hint().lower() > most as u64 {
        return Err(TooLong);
    }
    let (mut first, mut rest) = (Bytes::new(), BytesMut::new());
    while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        let Ok(frame) = frame else { break };
        let Ok(mut data) = frame.into_data() else { continue };
        let length = data.remaining();
        if first.len() + rest.len() + length > most {
            return Err(TooLong);
        }
        if first.is_empty() && rest.is_empty() {
            // The common case, which copies nothing.
            first = data.copy_to_bytes(length);
            continue;
        }
        if rest.is_empty() {
            rest.extend_from_slice(&std::mem::take(&mut first));
        }
        rest.put(data);
    }
    Ok(if rest.is_empty() { first } else { rest.freeze() })
}

fn whole(head: &ResponseHead, body: Vec<u8>) -> http::Response<ServedBody> {
    with_head(head, ServedBody::whole(body))
}

fn with_head(head: &ResponseHead, body: ServedBody) -> http::Response<ServedBody> {
    let mut response = http::Response::new(body);
    *response.status_mut() = http::StatusCode::from_u16(head.status.0).unwrap_or_default();
    for (name, value) in head.fields() {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().insert(HeaderName::from_static(name), value);
        }
    }
    response
}

fn with_status(status: http::StatusCode) -> http::Response<ServedBody> {
    let mut response = http::Response::new(ServedBody::default());
    *response.status_mut() = status;
    response
}

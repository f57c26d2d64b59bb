use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::PROXY_AUTHORIZATION;
use http::{Method, Request, Response, Version};
use http_body_util::Full;
use hyper::rt::Executor;
use hyper_util::client::legacy;
use rustls::ClientConfig;
use rustls::pki_types::CertificateDer;

use super::dialer::Dialer;
use super::{Connect, ConnectorError, Dial, FetchError, Proxy, ResponseBody, fetch, tls};
use crate::{EraCache, Runtime};

/// A lookup, a connection and a TLS handshake take a second where things are well.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Below the 60 s after which common load balancers hang up: a request that is sent at that moment
/// may be lost.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// More than that many at rest are of no use to a client; the others are closed.
const IDLE_CONNECTIONS_MAX: usize = 32;
/// The longest head of a response. Common servers accept 8 to 64 KiB from a client.
const HEAD_BYTES_MAX: u32 = 64 * 1024;
/// What an HTTP/2 stream may send ahead while nobody reads it,
#[cfg(feature = "http2")]
const STREAM_WINDOW: u32 = 256 * 1024;
/// and all streams of a connection together: 64 unread ones do not stop the others.
#[cfg(feature = "http2")]
const CONNECTION_WINDOW: u32 = 64 * STREAM_WINDOW;

/// Performs HTTP exchanges: one pool of connections, TLS, proxies. Clones share the pool, and what
/// [`connect_with`](super::connect_with) has learned of the servers.
///
/// It speaks HTTP/1.1 and, where the runtime [has it](Dial::HTTP2), HTTP/2 if the server agrees to it in
/// the TLS handshake. Exchanges do not wait for one another: over HTTP/1.1 each has a connection to itself, over HTTP/2 each has a
/// stream, as many as the server allows. It follows no redirect, keeps no cookie, decodes nothing.
///
/// The head of a response has at most 64 KiB. Over HTTP/1.1 it has at most 100 fields, and is refused
/// at 128 KiB for certain, since it is read in pieces that large.
#[derive(Clone)]
pub struct Connector<R: Dial> {
    client: legacy::Client<Dialer<R>, Full<Bytes>>,
    proxy: Proxy,
    http2_only: bool,
    era_cache: Arc<EraCache>,
}

impl<R: Dial> Connector<R> {
    /// One that trusts whom the system trusts, and has the proxies of the environment: see
    /// [`Proxy::from_env`]. Reads the system's root certificates from its files, so that it takes
    /// some milliseconds: have one for all exchanges.
    ///
    /// # Errors
    ///
    /// There is no configuration of TLS: not on a supported system.
    pub fn new() -> Result<Self, ConnectorError> {
        Self::builder().build()
    }

    /// One that differs from [`new`](Self::new).
    pub fn builder() -> ConnectorBuilder<R> {
        ConnectorBuilder {
            roots: Vec::new(),
            tls: None,
            proxy: None,
            http2_only: false,
            connect_timeout: CONNECT_TIMEOUT,
            idle_timeout: IDLE_TIMEOUT,
            runtime: PhantomData,
        }
    }

    /// One exchange: resolves when the head of the response is there, whatever its status. Dropped
    /// before, it breaks the exchange off, as [`ResponseBody`] does.
    ///
    /// The URL is absolute. `Host` and `Content-Length` are added where they are missing. A request
    /// that finds its connection closed before any of it was sent goes out once more by itself;
    /// nothing else does.
    ///
    /// # Errors
    ///
    /// There is no response; see [`was_sent`](ConnectorError::was_sent).
    ///
    /// # Panics
    ///
    /// Polled where [`Runtime::current`] does.
    pub fn send(
        &self,
        request: Request<Bytes>,
    ) -> impl Future<Output = Result<Response<ResponseBody>, ConnectorError>> + Send + 'static + use<R>
    {
        let request = self.prepare(request);
        let client = self.client.clone();
        async move {
            let response = client.request(request?).await;
            let response = response.map_err(|error| ConnectorError::from_exchange(&error))?;
            Ok(response.map(ResponseBody::new))
        }
    }

    /// The document at a URL: the body of a response of status 200. It follows no redirect, and ends
    /// after 20 s or 256 KiB.
    ///
    /// # Errors
    ///
    /// See [`FetchError`].
    ///
    /// # Panics
    ///
    /// Polled where [`Runtime::current`] does.
    pub fn fetch(
        &self,
        url: String,
    ) -> impl Future<Output = Result<Vec<u8>, FetchError>> + Send + 'static + use<R> {
        let connector = self.clone();
        async move { fetch(connector, url, R::current().timer()).await }
    }

    fn prepare(&self, request: Request<Bytes>) -> Result<Request<Full<Bytes>>, ConnectorError> {
        let refused = |reason: &str| ConnectorError::Request { reason: reason.to_owned() };
        let uri = request.uri();
        if !matches!(uri.scheme_str(), Some("http" | "https")) {
            return Err(refused("its URL does not begin with http:// or https://"));
        }
        // RFC 9110 section 4.2.4: a user in a URL is not sent; to drop it silently would be to
        // send the request without the credentials that the caller believes in.
        if uri.authority().is_none_or(|authority| authority.as_str().contains('@')) {
            return Err(refused("its URL has a user in it"));
        }
        if request.method() == Method::CONNECT {
            return Err(refused("CONNECT is for the connector itself"));
        }
        let authorization = self.proxy.authorization(uri, self.http2_only);
        let mut request = request.map(Full::new);
        // Which version it is depends on the connection.
        *request.version_mut() = Version::HTTP_11;
        if let Some(authorization) = authorization {
            request.headers_mut().entry(PROXY_AUTHORIZATION).or_insert(authorization);
        }
        Ok(request)
    }
}

impl<R: Dial> Connect for Connector<R> {
    type Runtime = R;
    type Body = ResponseBody;

    fn era_cache(&self) -> &EraCache {
        &self.era_cache
    }

    fn send(
        &self,
        request: Request<Bytes>,
    ) -> impl Future<Output = Result<Response<ResponseBody>, ConnectorError>> + Send + 'static {
        self.send(request)
    }
}

impl<R: Dial> fmt::Debug for Connector<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector")
            .field("proxy", &self.proxy)
            .field("http2_only", &self.http2_only)
            .finish_non_exhaustive()
    }
}

/// Says how a [`Connector`] differs from the default.
#[derive(Clone)]
#[must_use]
pub struct ConnectorBuilder<R> {
    roots: Vec<CertificateDer<'static>>,
    tls: Option<ClientConfig>,
    proxy: Option<Proxy>,
    http2_only: bool,
    connect_timeout: Duration,
    idle_timeout: Duration,
    runtime: PhantomData<fn() -> R>,
}

impl<R: Dial> ConnectorBuilder<R> {
    /// Trusts a root certificate, in DER, besides those of the system. Of no effect with
    /// [`tls_config`](Self::tls_config).
    pub fn root_certificate(mut self, der: impl Into<Vec<u8>>) -> Self {
        self.roots.push(CertificateDer::from(der.into()));
        self
    }

    /// Takes this configuration of TLS instead of the default: for client certificates, roots of
    /// one's own alone, another provider of cryptography. Where HTTP/2 is offered, its ALPN
    /// protocols, if it has any, stay as they are: `http/1.1` alone keeps HTTP/2 out.
    pub fn tls_config(mut self, config: ClientConfig) -> Self {
        self.tls = Some(config);
        self
    }

    /// Takes these proxies instead of those of the environment.
    pub fn proxy(mut self, proxy: Proxy) -> Self {
        self.proxy = Some(proxy);
        self
    }

    #[cfg(feature = "http2")]
    /// Speaks HTTP/2 and nothing else, over plain connections too, where the server is trusted to
    /// know it. Proxies are then used by `CONNECT` alone.
    pub const fn http2_only(mut self, only: bool) -> Self {
        self.http2_only = only;
        self
    }

    /// How long a connection may take to be there, TLS and proxies included. 10 s by default. For
    /// the response there is no limit here: drop the exchange.
    pub const fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// How long a connection without an exchange is kept. 30 s by default.
    pub const fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = timeout;
        self
    }

    /// Builds it. Reads the environment and the system's root certificates unless it was told
    /// others.
    ///
    /// # Errors
    ///
    /// A root certificate is not one.
    pub fn build(self) -> Result<Connector<R>, ConnectorError> {
        let Self { roots, tls, proxy, http2_only, connect_timeout, idle_timeout, .. } = self;
        let tls = match tls {
            Some(config) => config,
            None => tls::system_config(roots)?,
        };
        let proxy = proxy.unwrap_or_else(Proxy::from_env);
        let dialer = Dialer::new(tls, proxy.clone(), http2_only, connect_timeout);
        let mut builder = legacy::Client::builder(CurrentRuntime::<R>(PhantomData));
        builder
            .timer(R::hyper_timer())
            .pool_timer(R::hyper_timer())
            .pool_idle_timeout(idle_timeout)
            .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
            .http1_max_buf_size(HEAD_BYTES_MAX as usize);
        #[cfg(feature = "http2")]
        builder
            .http2_only(http2_only)
            .http2_max_header_list_size(HEAD_BYTES_MAX)
            .http2_initial_stream_window_size(STREAM_WINDOW)
            .http2_initial_connection_window_size(CONNECTION_WINDOW);
        let client = builder.build(dialer);
        Ok(Connector { client, proxy, http2_only, era_cache: Arc::default() })
    }
}

/// Spawns the tasks of hyper on the runtime that they are spawned from.
#[derive(Clone, Debug)]
struct CurrentRuntime<R>(PhantomData<fn() -> R>);

impl<R: Runtime, F: Future<Output = ()> + Send + 'static> Executor<F> for CurrentRuntime<R> {
    fn execute(&self, future: F) {
        R::current().spawn(future);
    }
}

/// Without the configuration of TLS, which may hold a private key.
impl<R> fmt::Debug for ConnectorBuilder<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectorBuilder")
            .field("proxy", &self.proxy)
            .field("http2_only", &self.http2_only)
            .field("connect_timeout", &self.connect_timeout)
            .field("idle_timeout", &self.idle_timeout)
            .finish_non_exhaustive()
    }
}

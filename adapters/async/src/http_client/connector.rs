use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
#[cfg(unix)]
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::header::PROXY_AUTHORIZATION;
use http::{Method, Request, Response, Version};
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::rt::Executor;
use hyper_util::client::legacy;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, RootCertStore};

use super::dialer::{Dialer, Routes};
use super::exchanger::poll_piece;
use super::{Connect, ConnectorError, Dial, EraCache, FetchError, Proxy, fetch};
use crate::Runtime;

/// A lookup, a connection and a TLS handshake usually take less than a second.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Below the 60 s after which common load balancers close idle connections: a request sent at that
/// moment may be lost.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// A client cannot use more idle connections than that; the others are closed.
const IDLE_CONNECTIONS_MAX: usize = 32;
/// The longest response head. Common servers accept 8 to 64 KiB from a client.
const HEAD_BYTES_MAX: u32 = 64 * 1024;
/// Unread bytes that an HTTP/2 stream may send ahead,
#[cfg(feature = "http2")]
const STREAM_WINDOW: u32 = 256 * 1024;
/// and all streams of a connection together: 64 unread streams do not block the others.
#[cfg(feature = "http2")]
const CONNECTION_WINDOW: u32 = 64 * STREAM_WINDOW;

/// Performs HTTP exchanges: connection pool, TLS, proxies. Clones share the pool and the eras
/// learned by [`connect_with`](crate::names::connect_with).
///
/// It speaks HTTP/1.1 and, if the runtime [supports it](crate::network::HyperRuntime::HTTP2),
/// HTTP/2 with servers that negotiate it in the TLS handshake. Exchanges do not wait for one
/// another: over HTTP/1.1 each has its own connection, over HTTP/2 each has a stream, as many as
/// the server allows. It follows no redirects, stores no cookies and decodes no bodies.
///
/// A response head may have at most 64 KiB, and 100 fields over HTTP/1.1. Since HTTP/1.1 heads are
/// read in chunks of 64 KiB, a longer one is only certain to be refused at 128 KiB.
#[derive(Clone)]
pub struct Connector<R: Dial> {
    client: legacy::Client<Dialer<R>, Full<Bytes>>,
    routes: Routes,
    http2_only: bool,
    era_cache: Arc<EraCache>,
}

impl<R: Dial> Connector<R> {
    /// Creates a connector that trusts the system's root certificates and uses the proxies of the
    /// environment: see [`Proxy::from_env`]. Reading the root certificates from files takes some
    /// milliseconds: share one connector among all exchanges.
    ///
    /// # Errors
    ///
    /// TLS could not be configured; does not happen on a supported system.
    pub fn new() -> Result<Self, ConnectorError> {
        Self::builder().build()
    }

    /// Returns a builder whose defaults are those of [`new`](Self::new).
    pub fn builder() -> ConnectorBuilder<R> {
        ConnectorBuilder {
            certificates: Certificates::new(),
            tls: None,
            proxy: None,
            #[cfg(unix)]
            unix_socket: None,
            http2_only: false,
            connect_timeout: CONNECT_TIMEOUT,
            idle_timeout: IDLE_TIMEOUT,
            runtime: PhantomData,
        }
    }

    /// Performs one exchange: resolves when the response head has arrived, whatever its status.
    /// Dropping the future aborts the exchange, like dropping a [`ResponseBody`].
    ///
    /// The URL is absolute. `Host` and `Content-Length` are added if missing. A request that finds
    /// its connection closed before any of it was sent is retried once; nothing else is retried.
    ///
    /// # Errors
    ///
    /// No response arrived; see [`was_sent`](ConnectorError::was_sent).
    ///
    /// # Panics
    ///
    /// If polled where [`Runtime::current`] panics.
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

    /// Fetches a document: the body of a response with status 200. It follows no redirects, and
    /// fails after 20 s or 256 KiB.
    ///
    /// # Errors
    ///
    /// See [`FetchError`].
    ///
    /// # Panics
    ///
    /// If polled where [`Runtime::current`] panics.
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
        // RFC 9110 section 4.2.4: the user information of a URL is not sent. Dropping it silently
        // would send the request without the credentials that the caller expects.
        if uri.authority().is_none_or(|authority| authority.as_str().contains('@')) {
            return Err(refused("its URL contains user information"));
        }
        if request.method() == Method::CONNECT {
            return Err(refused("the method CONNECT is reserved for the connector"));
        }
        let authorization = self.routes.authorization(uri);
        let mut request = request.map(Full::new);
        // The version depends on the connection.
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

mcp_sansio::partial_debug! { impl<R: Dial> Debug for Connector<R> { routes, http2_only, .. } }

/// Configures a [`Connector`].
#[derive(Clone)]
#[must_use]
pub struct ConnectorBuilder<R> {
    certificates: Certificates,
    tls: Option<ClientConfig>,
    proxy: Option<Proxy>,
    #[cfg(unix)]
    unix_socket: Option<Arc<Path>>,
    http2_only: bool,
    connect_timeout: Duration,
    idle_timeout: Duration,
    runtime: PhantomData<fn() -> R>,
}

impl<R: Dial> ConnectorBuilder<R> {
    /// Trusts a root certificate, in DER, in addition to those of the system. Has no effect with
    /// [`tls_config`](Self::tls_config).
    pub fn root_certificate(mut self, der: impl Into<Vec<u8>>) -> Self {
        self.certificates.add_root(der.into());
        self
    }

    /// Whether the system's root certificates are trusted. `true` by default; with `false`, only
    /// [`root_certificate`](Self::root_certificate) counts. Has no effect with
    /// [`tls_config`](Self::tls_config).
    pub const fn system_roots(mut self, trusted: bool) -> Self {
        self.certificates.set_system_roots(trusted);
        self
    }

    /// Presents a client certificate to servers that ask for one: the certificate and its
    /// intermediates, in DER, and the private key, in the DER form of PKCS #8, PKCS #1 or SEC 1.
    /// Has no effect with [`tls_config`](Self::tls_config).
    ///
    /// # Errors
    ///
    /// [`ConnectorError::Configuration`]: the key is invalid, or of another certificate.
    pub fn client_certificate(
        mut self,
        chain: impl IntoIterator<Item = impl Into<Vec<u8>>>,
        key: impl Into<Vec<u8>>,
    ) -> Result<Self, ConnectorError> {
        self.certificates.set_client(chain, key.into())?;
        Ok(self)
    }

    /// Uses this TLS configuration instead of the default, for example with another cryptography
    /// provider. Where HTTP/2 is supported, its ALPN
    /// protocols are kept if set: `http/1.1` alone disables HTTP/2.
    pub fn tls_config(mut self, config: ClientConfig) -> Self {
        self.tls = Some(config);
        self
    }

    /// Uses these proxies instead of those of the environment.
    pub fn proxy(mut self, proxy: Proxy) -> Self {
        self.proxy = Some(proxy);
        self
    }

    /// Reaches the server at the host `localhost` through the Unix-domain socket at `path`, without
    /// a proxy; its URL is `http://localhost/mcp`, for example. Other hosts, such as that of an
    /// authorization server, are reached as before. `connect_unix` of an adapter needs no
    /// connector.
    #[cfg(unix)]
    pub fn unix_socket(mut self, path: impl Into<PathBuf>) -> Self {
        self.unix_socket = Some(path.into().into());
        self
    }

    #[cfg(feature = "http2")]
    /// Only speaks HTTP/2, also over plain connections, assuming that the server supports it.
    /// Proxies are then only used with `CONNECT`.
    pub const fn http2_only(mut self, only: bool) -> Self {
        self.http2_only = only;
        self
    }

    /// Limits the time to establish a connection, including TLS and proxies. 10 s by default. The
    /// response has no time limit here: drop the exchange to give up.
    pub const fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Sets how long an idle connection is kept. 30 s by default.
    pub const fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = timeout;
        self
    }

    /// Builds the connector. Reads the environment and the system's root certificates unless they
    /// are overridden.
    ///
    /// # Errors
    ///
    /// A root certificate is invalid.
    pub fn build(self) -> Result<Connector<R>, ConnectorError> {
        #[cfg(unix)]
        let unix_socket = self.unix_socket;
        let Self { certificates, tls, proxy, http2_only, connect_timeout, idle_timeout, .. } = self;
        let tls = match tls {
            Some(config) => config,
            None => certificates.config()?,
        };
        let proxy = proxy.unwrap_or_else(Proxy::from_env);
        let routes = Routes {
            proxy,
            tunnel_all: http2_only,
            #[cfg(unix)]
            unix_socket,
        };
        let dialer = Dialer::new(tls, routes.clone(), http2_only, connect_timeout);
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
        Ok(Connector { client, routes, http2_only, era_cache: Arc::default() })
    }
}

/// Spawns hyper's tasks on the runtime of the caller.
#[derive(Clone, Debug)]
struct CurrentRuntime<R>(PhantomData<fn() -> R>);

impl<R: Runtime, F: Future<Output = ()> + Send + 'static> Executor<F> for CurrentRuntime<R> {
    fn execute(&self, future: F) {
        R::current().spawn(future);
    }
}

mcp_sansio::partial_debug! {
    /// Omits the TLS configuration, which may contain a private key.
    impl<R> Debug for ConnectorBuilder<R> { proxy, http2_only, connect_timeout, idle_timeout, .. }
}

// ------------------------------------------------------------------ certificates

/// The certificates of a client over HTTP: those that it trusts, and its own.
#[derive(Clone)]
pub(crate) struct Certificates {
    system_roots: bool,
    roots: Vec<CertificateDer<'static>>,
    client: Option<Arc<CertifiedKey>>,
}

impl Certificates {
    /// Trusts the system's root certificates, and has no certificate of its own.
    #[must_use]
    pub(super) const fn new() -> Self {
        Self { system_roots: true, roots: Vec::new(), client: None }
    }

    /// Sets whether the system's root certificates are trusted.
    pub(super) const fn set_system_roots(&mut self, trusted: bool) {
        self.system_roots = trusted;
    }

    /// Trusts a root certificate, in DER.
    pub(super) fn add_root(&mut self, der: Vec<u8>) {
        self.roots.push(CertificateDer::from(der));
    }

    /// Sets the client certificate with its intermediates, in DER, and its private key, in the DER
    /// form of PKCS #8, PKCS #1 or SEC 1.
    ///
    /// # Errors
    ///
    /// [`ConnectorError::Configuration`]: the key is invalid, or of another certificate.
    pub(super) fn set_client(
        &mut self,
        chain: impl IntoIterator<Item = impl Into<Vec<u8>>>,
        key: Vec<u8>,
    ) -> Result<(), ConnectorError> {
        let invalid = |error: &dyn fmt::Display| ConnectorError::Configuration {
            reason: format!("not a client certificate and its private key: {error}"),
        };
        let chain: Vec<_> = chain.into_iter().map(|der| CertificateDer::from(der.into())).collect();
        if chain.is_empty() {
            return Err(invalid(&"the certificate is missing"));
        }
        let key = PrivateKeyDer::try_from(key).map_err(|error| invalid(&error))?;
        let provider = rustls::crypto::ring::default_provider();
        let client = CertifiedKey::from_der(chain, key, &provider);
        self.client = Some(Arc::new(client.map_err(|error| invalid(&error))?));
        Ok(())
    }

    /// Returns the TLS configuration. Reads the system's root certificates, if they are trusted.
    ///
    /// It uses the system's roots instead of a built-in list, so that it includes an organisation's
    /// own authority, such as that of a TLS-inspecting proxy, and excludes roots that were
    /// withdrawn.
    ///
    /// # Errors
    ///
    /// [`ConnectorError::Configuration`]: a root certificate is invalid.
    pub(super) fn config(self) -> Result<ClientConfig, ConnectorError> {
        let mut roots = RootCertStore::empty();
        if self.system_roots {
            // Some systems have unreadable roots. Without any root, each TLS connection fails as
            // untrusted, and plain HTTP still works.
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        for certificate in self.roots {
            roots.add(certificate).map_err(|error| ConnectorError::Configuration {
                reason: format!("not a root certificate: {error}"),
            })?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| ConnectorError::Configuration { reason: error.to_string() })?
            .with_root_certificates(roots);
        Ok(match self.client {
            Some(client) => {
                config.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(client)))
            }
            None => config.with_no_client_auth(),
        })
    }
}

impl Default for Certificates {
    fn default() -> Self {
        Self::new()
    }
}

/// Omits the private key.
impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificates")
            .field("system_roots", &self.system_roots)
            .field("roots", &self.roots.len())
            .field("client", &self.client.is_some())
            .finish()
    }
}

// ------------------------------------------------------------------ response body

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

mcp_sansio::partial_debug! { impl Debug for ResponseBody { .. } }

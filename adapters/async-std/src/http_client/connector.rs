use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, Version};
use http_body_util::Full;
use hyper_util::client::legacy;
use mcp_sansio_async::http_client::{Connect, FetchError, exchange, fetch};
use mcp_sansio_async::{Eras, Runtime as _};
use rustls::ClientConfig;
use rustls::pki_types::CertificateDer;
use smol_hyper::rt::SmolTimer;

use super::dialer::Dialer;
use super::tls;
use crate::runtime::AsyncRuntime;
use crate::{AsyncTimer, ConnectorError, ResponseBody};

/// A lookup, a connection and a TLS handshake take a second where things are well.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Below the 60 s after which common load balancers hang up: a request that is sent at that moment
/// may be lost.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// More than that many at rest are of no use to a client; the others are closed.
const IDLE_CONNECTIONS_MAX: usize = 32;
/// The longest head of a response. Common servers accept 8 to 64 KiB from a client.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Performs HTTP exchanges: one pool of connections, TLS. Clones share the pool, and what
/// [`connect_with`](crate::connect_with) has learned of the servers.
///
/// It speaks HTTP/1.1. Exchanges do not wait for one another: each has a connection to itself. It
/// follows no redirect, keeps no cookie, decodes nothing, and goes by way of no proxy.
///
/// The head of a response has at most 64 KiB and 100 fields, and is refused at 128 KiB for certain,
/// since it is read in pieces that large.
#[derive(Clone)]
pub struct Connector {
    client: legacy::Client<Dialer, Full<Bytes>>,
    eras: Arc<Eras>,
}

impl Connector {
    /// One that trusts whom the system trusts. Reads the system's root certificates from its files,
    /// so that it takes some milliseconds: have one for all exchanges.
    ///
    /// # Errors
    ///
    /// There is no configuration of TLS: not on a supported system.
    pub fn new() -> Result<Self, ConnectorError> {
        Self::builder().build()
    }

    /// One that differs from [`new`](Self::new).
    pub fn builder() -> ConnectorBuilder {
        ConnectorBuilder {
            roots: Vec::new(),
            tls: None,
            connect_timeout: CONNECT_TIMEOUT,
            idle_timeout: IDLE_TIMEOUT,
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
    pub fn send(
        &self,
        request: Request<Bytes>,
    ) -> impl Future<Output = Result<Response<ResponseBody>, ConnectorError>> + Send + 'static + use<>
    {
        let request = self.prepare(request);
        let client = self.client.clone();
        async move { exchange(client, request?).await }
    }

    /// The document at a URL: the body of a response of status 200. It follows no redirect, and ends
    /// after 20 s or 256 KiB. What a `JwtVerifier` gets the keys of an issuer with:
    ///
    /// ```
    /// # #[cfg(feature = "verify")]
    /// # fn verifier() -> Result<(), Box<dyn std::error::Error>> {
    /// use mcp_sansio_async_std::{Connector, JwtVerifier};
    ///
    /// let connector = Connector::new()?;
    /// let verifier = JwtVerifier::new(
    ///     "https://auth.example.com",
    ///     "https://mcp.example.com/mcp",
    ///     move |url| connector.fetch(url),
    /// )?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// See [`FetchError`].
    pub fn fetch(
        &self,
        url: String,
    ) -> impl Future<Output = Result<Vec<u8>, FetchError>> + Send + 'static + use<> {
        fetch(self.clone(), url, AsyncTimer::new())
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
            return Err(refused("there is no use of CONNECT here"));
        }
        let mut request = request.map(Full::new);
        *request.version_mut() = Version::HTTP_11;
        Ok(request)
    }
}

/// Spawns what hyper wants spawned.
#[derive(Clone, Copy, Debug)]
struct Executor;

impl<F: Future<Output = ()> + Send + 'static> hyper::rt::Executor<F> for Executor {
    fn execute(&self, future: F) {
        AsyncRuntime::current().spawn(future);
    }
}

impl Connect for Connector {
    type Runtime = AsyncRuntime;

    fn eras(&self) -> &Eras {
        &self.eras
    }

    fn send(
        &self,
        request: Request<Bytes>,
    ) -> impl Future<Output = Result<Response<ResponseBody>, ConnectorError>> + Send + 'static {
        self.send(request)
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").finish_non_exhaustive()
    }
}

/// Says how a [`Connector`] differs from the default.
#[derive(Clone)]
#[must_use]
pub struct ConnectorBuilder {
    roots: Vec<CertificateDer<'static>>,
    tls: Option<ClientConfig>,
    connect_timeout: Duration,
    idle_timeout: Duration,
}

impl ConnectorBuilder {
    /// Trusts a root certificate, in DER, besides those of the system. Of no effect with
    /// [`tls_config`](Self::tls_config).
    pub fn root_certificate(mut self, der: impl Into<Vec<u8>>) -> Self {
        self.roots.push(CertificateDer::from(der.into()));
        self
    }

    /// Takes this configuration of TLS instead of the default: for client certificates, roots of
    /// one's own alone, another provider of cryptography. Its ALPN protocols
    /// give way to `http/1.1`.
    pub fn tls_config(mut self, config: ClientConfig) -> Self {
        self.tls = Some(config);
        self
    }

    /// How long a connection may take to be there, TLS included. 10 s by default. For
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

    /// Builds it. Reads the system's root certificates unless it was told others.
    ///
    /// # Errors
    ///
    /// A root certificate is not one.
    pub fn build(self) -> Result<Connector, ConnectorError> {
        let Self { roots, tls, connect_timeout, idle_timeout } = self;
        let tls = match tls {
            Some(config) => config,
            None => tls::system_config(roots)?,
        };
        let dialer = Dialer::new(tls, connect_timeout);
        let client = legacy::Client::builder(Executor)
            .timer(SmolTimer::new())
            .pool_timer(SmolTimer::new())
            .pool_idle_timeout(idle_timeout)
            .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
            .http1_max_buf_size(HEAD_BYTES_MAX)
            .build(dialer);
        Ok(Connector { client, eras: Arc::default() })
    }
}

/// Without the configuration of TLS, which may hold a private key.
impl fmt::Debug for ConnectorBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectorBuilder")
            .field("connect_timeout", &self.connect_timeout)
            .field("idle_timeout", &self.idle_timeout)
            .finish_non_exhaustive()
    }
}

use std::future::{Future, Ready, ready};
use std::marker::PhantomData;
#[cfg(unix)]
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use std::{fmt, io};

use http::uri::Scheme;
use http::{HeaderValue, Uri};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::client::proxy::matcher::Intercept;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tower_service::Service;

use super::ConnectorError;
use super::cause::innermost;
use super::proxy::{Proxy, is_http, is_socks5};
use crate::network::HyperRuntime;
use crate::runtime::timeout;

/// Sockets of a runtime that are connected, and TLS, for clients over HTTP.
pub trait Dial: HyperRuntime {
    /// A connection, with or without TLS.
    type Stream: Read + Write + Send + Unpin + 'static;

    /// Connects to a server. The addresses of a name share `time`. On TCP, small writes are sent at
    /// once (`TCP_NODELAY`), and a peer that is silent for 30 s is probed three times, every 10 s.
    ///
    /// # Errors
    ///
    /// The connection failed, with [`io::ErrorKind::TimedOut`] if the time ran out.
    fn connect(
        to: DialAddress<'_>,
        time: Duration,
    ) -> impl Future<Output = io::Result<Self::Stream>> + Send;

    /// Establishes TLS on `stream` with the server called `name`. Also returns the protocol
    /// negotiated by ALPN.
    ///
    /// # Errors
    ///
    /// The handshake failed.
    fn secure(
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
        stream: Self::Stream,
    ) -> impl Future<Output = io::Result<(Self::Stream, Option<Vec<u8>>)>> + Send;
}

/// The address of a server.
#[derive(Clone, Copy, Debug)]
pub enum DialAddress<'a> {
    /// The host of this URL, to be resolved, and its port or the default [`port`] of the scheme.
    Tcp(&'a Uri),
    /// A Unix-domain socket.
    #[cfg(unix)]
    Unix(&'a Path),
}

impl fmt::Display for DialAddress<'_> {
    /// Formats host and port, without user information, or the path.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(uri) => f.write_str(&authority(uri)),
            #[cfg(unix)]
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}

/// Returns the port of a URL, explicit or implied by its scheme.
#[must_use]
pub fn port(uri: &Uri) -> u16 {
    uri.port_u16().unwrap_or_else(|| match uri.scheme_str() {
        Some("https") => 443,
        Some("socks5" | "socks5h") => 1080,
        _ => 80,
    })
}

/// Opens connections: resolves names, connects through proxies, establishes TLS.
#[derive(Clone)]
pub(super) struct Dialer<R> {
    tls: Arc<ClientConfig>,
    /// For TLS connections to the proxies themselves, without HTTP/2.
    proxy_tls: Arc<ClientConfig>,
    routes: Routes,
    http2_only: bool,
    timeout: Duration,
    runtime: PhantomData<fn() -> R>,
}

impl<R: Dial> Dialer<R> {
    pub(super) fn new(
        tls: ClientConfig,
        routes: Routes,
        http2_only: bool,
        timeout: Duration,
    ) -> Self {
        let mut proxy_tls = tls.clone();
        proxy_tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        let mut tls = tls;
        offer_protocols(&mut tls, R::HTTP2, http2_only);
        let (tls, proxy_tls) = (Arc::new(tls), Arc::new(proxy_tls));
        Self { tls, proxy_tls, routes, http2_only, timeout, runtime: PhantomData }
    }

    async fn dial(self, server: Uri) -> Result<ConnectorStream<R::Stream>, ConnectorError> {
        let after = self.timeout;
        let host = authority(&server);
        match timeout(&R::current(), after, self.open(&server)).await {
            Some(Err(ConnectorError::Connect { cause, .. }))
                if cause.kind() == io::ErrorKind::TimedOut =>
            {
                Err(ConnectorError::Timeout { host, after })
            }
            Some(outcome) => outcome,
            None => Err(ConnectorError::Timeout { host, after }),
        }
    }

    async fn open(self, server: &Uri) -> Result<ConnectorStream<R::Stream>, ConnectorError> {
        let (stream, forwarded) = match self.routes.route(server) {
            Route::Direct => (self.connect(DialAddress::Tcp(server)).await?, false),
            #[cfg(unix)]
            Route::Unix(path) => (self.connect(DialAddress::Unix(&path)).await?, false),
            Route::Forward(proxy) => (self.connect_proxy(&proxy).await?, true),
            Route::Tunnel(proxy) => {
                let stream = self.connect_proxy(&proxy).await?;
                (open_tunnel(stream, &proxy, server).await?, false)
            }
        };
        if !is_secure(server) {
            return Ok(ConnectorStream { stream, forwarded, http2: self.http2_only });
        }
        let (stream, http2) = secure::<R>(&self.tls, stream, server).await?;
        Ok(ConnectorStream { stream, forwarded, http2 })
    }

    async fn connect(&self, to: DialAddress<'_>) -> Result<R::Stream, ConnectorError> {
        R::connect(to, self.timeout).await.map_err(|cause| ConnectorError::Connect {
            host: to.to_string(),
            cause: Arc::new(cause),
        })
    }

    /// Connects to the proxy itself.
    async fn connect_proxy(&self, proxy: &Intercept) -> Result<R::Stream, ConnectorError> {
        let to = with_port(proxy.uri());
        let stream = match self.connect(DialAddress::Tcp(&to)).await {
            Ok(stream) if is_secure(&to) => {
                secure::<R>(&self.proxy_tls, stream, &to).await.map(|(stream, _)| stream)
            }
            other => other,
        };
        stream.map_err(|error| match error {
            ConnectorError::Connect { host, cause } | ConnectorError::Tls { host, cause } => {
                ConnectorError::Proxy { proxy: host, reason: cause.to_string() }
            }
            other => other,
        })
    }
}

mcp_sansio::partial_debug! { impl<R> Debug for Dialer<R> { routes, http2_only, timeout, .. } }

impl<R: Dial> Service<Uri> for Dialer<R> {
    type Response = ConnectorStream<R::Stream>;
    type Error = ConnectorError;
    type Future =
        Pin<Box<dyn Future<Output = Result<ConnectorStream<R::Stream>, ConnectorError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectorError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        Box::pin(self.clone().dial(server))
    }
}

/// Has `proxy`, the peer of `stream`, open a connection to `server`.
async fn open_tunnel<S: Read + Write + Send + Unpin + 'static>(
    stream: S,
    proxy: &Intercept,
    server: &Uri,
) -> Result<S, ConnectorError> {
    let failed = |reason| ConnectorError::Proxy { proxy: authority(proxy.uri()), reason };
    let (to, server) = (proxy.uri().clone(), with_port(server));
    if is_http(proxy) {
        let mut tunnel = Tunnel::new(to, ReadyStream(Some(stream)));
        if let Some(authorization) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(authorization.clone());
        }
        tunnel.call(server).await.map_err(|error| failed(innermost(&error)))
    } else if is_socks5(proxy) {
        let mut socks = SocksV5::new(to, ReadyStream(Some(stream)));
        if let Some((user, password)) = proxy.raw_auth() {
            socks = socks.with_auth(user.to_owned(), password.to_owned());
        }
        socks.call(server).await.map_err(|error| failed(innermost(&error)))
    } else {
        Err(failed("SOCKS 4 is not supported".to_owned()))
    }
}

/// Establishes TLS on `stream`; also returns whether HTTP/2 was negotiated.
async fn secure<R: Dial>(
    tls: &Arc<ClientConfig>,
    stream: R::Stream,
    server: &Uri,
) -> Result<(R::Stream, bool), ConnectorError> {
    let failed = |cause| ConnectorError::Tls { host: authority(server), cause: Arc::new(cause) };
    let host = server.host().unwrap_or_default();
    let name = ServerName::try_from(host.trim_start_matches('[').trim_end_matches(']').to_owned())
        .map_err(|error| failed(io::Error::new(io::ErrorKind::InvalidInput, error)))?;
    let (stream, protocol) = R::secure(Arc::clone(tls), name, stream).await.map_err(failed)?;
    Ok((stream, protocol.as_deref() == Some(b"h2")))
}

/// Returns host and port for messages, without user information.
fn authority(uri: &Uri) -> String {
    let host = uri.host().unwrap_or_default();
    format!("{host}:{}", port(uri))
}

/// Returns `uri` with an explicit port, as proxies require it.
fn with_port(uri: &Uri) -> Uri {
    let parts = Uri::builder().scheme(uri.scheme_str().unwrap_or("http"));
    let parts = parts.authority(authority(uri)).path_and_query("/");
    parts.build().unwrap_or_else(|_| uri.clone())
}

/// Passes an open connection to code that would otherwise open one.
struct ReadyStream<S>(Option<S>);

impl<S> Service<Uri> for ReadyStream<S> {
    type Response = S;
    type Error = io::Error;
    type Future = Ready<io::Result<S>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        ready(self.0.take().ok_or_else(|| io::ErrorKind::NotConnected.into()))
    }
}

/// A connection for HTTP.
pub(super) struct ConnectorStream<S> {
    stream: S,
    /// Whether it goes to a proxy that requires the absolute URL in each request.
    forwarded: bool,
    http2: bool,
}

impl<S> Connection for ConnectorStream<S> {
    fn connected(&self) -> Connected {
        let connected = Connected::new().proxy(self.forwarded);
        if self.http2 { connected.negotiated_h2() } else { connected }
    }
}

impl<S: Read + Unpin> Read for ConnectorStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: Write + Unpin> Write for ConnectorStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }
}

// ------------------------------------------------------------------ routes

/// How servers are reached.
#[derive(Clone, Debug)]
pub(super) struct Routes {
    pub(super) proxy: Proxy,
    /// Whether plain connections through a proxy are tunneled as well.
    pub(super) tunnel_all: bool,
    /// The socket of the server at the host `localhost`.
    #[cfg(unix)]
    pub(super) unix_socket: Option<Arc<Path>>,
}

/// How a request reaches its server.
#[derive(Debug)]
pub(super) enum Route {
    /// Directly.
    Direct,
    /// Through a Unix-domain socket.
    #[cfg(unix)]
    Unix(Arc<Path>),
    /// Through a proxy that reads the request and sends its own.
    Forward(Intercept),
    /// Through a proxy that opens a connection to the server and relays bytes.
    Tunnel(Intercept),
}

impl Routes {
    /// Returns the route to `server`.
    pub(super) fn route(&self, server: &Uri) -> Route {
        #[cfg(unix)]
        if let Some(path) = &self.unix_socket
            && server.host().is_some_and(|host| host.eq_ignore_ascii_case("localhost"))
        {
            return Route::Unix(Arc::clone(path));
        }
        match self.proxy.intercept(server) {
            None => Route::Direct,
            Some(proxy) if !self.tunnel_all && is_http(&proxy) && !is_secure(server) => {
                Route::Forward(proxy)
            }
            Some(proxy) => Route::Tunnel(proxy),
        }
    }

    /// Returns the `Proxy-Authorization` value for a request forwarded to `server`.
    pub(super) fn authorization(&self, server: &Uri) -> Option<HeaderValue> {
        match self.route(server) {
            Route::Forward(proxy) => proxy.basic_auth().cloned(),
            _ => None,
        }
    }
}

// ------------------------------------------------------------------ tls

/// The protocols offered in a TLS connection, preferred first.
const HTTP_2_OR_1: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Makes `config` offer the protocols that the connector speaks, unless it sets its own ALPN
/// protocols, which may include HTTP/2.
pub(super) fn offer_protocols(config: &mut ClientConfig, http2: bool, http2_only: bool) {
    if !(http2 && cfg!(feature = "http2")) {
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
    } else if http2_only {
        config.alpn_protocols = vec![b"h2".to_vec()];
    } else if config.alpn_protocols.is_empty() {
        config.alpn_protocols = HTTP_2_OR_1.map(<[u8]>::to_vec).to_vec();
    }
}

pub(super) fn is_secure(server: &Uri) -> bool {
    server.scheme() == Some(&Scheme::HTTPS)
}

use std::fmt;
use std::future::{Future, Ready, ready};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::client::proxy::matcher::Intercept;
use hyper_util::rt::TokioIo;
use mcp_sansio_async::http_client::cause::{innermost, system};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio_rustls::TlsConnector;
use tower_service::Service;

use super::proxy::{self, Proxy, Route};
use super::tls;
use crate::ConnectorError;

/// A peer that is gone without a word is looked for after this long a silence,
const KEEP_ALIVE_AFTER: Duration = Duration::from_secs(30);
/// then at this interval,
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(10);
/// this many times: a stream that has been silent for long is known to be dead after a minute.
const KEEP_ALIVE_RETRIES: u32 = 3;

/// Opens connections: looks names up, goes by way of proxies, secures.
#[derive(Clone)]
pub(super) struct Dialer {
    tcp: HttpConnector,
    tls: TlsConnector,
    /// For proxies that are themselves talked to over TLS: no HTTP/2 there.
    proxy_tls: TlsConnector,
    proxy: Proxy,
    http2_only: bool,
    timeout: Duration,
}

impl Dialer {
    pub(super) fn new(
        tls: ClientConfig,
        proxy: Proxy,
        http2_only: bool,
        timeout: Duration,
    ) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        // What is written here is a whole message, or the end of one.
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(KEEP_ALIVE_AFTER));
        tcp.set_keepalive_interval(Some(KEEP_ALIVE_INTERVAL));
        tcp.set_keepalive_retries(Some(KEEP_ALIVE_RETRIES));
        // Shared among a name's addresses: one that is silent leaves time for the others.
        tcp.set_connect_timeout(Some(timeout));
        let mut proxy_tls = tls.clone();
        proxy_tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        let mut tls = tls;
        tls::offer_protocols(&mut tls, http2_only);
        Self {
            tcp,
            tls: Arc::new(tls).into(),
            proxy_tls: Arc::new(proxy_tls).into(),
            proxy,
            http2_only,
            timeout,
        }
    }

    async fn dial(self, server: Uri) -> Result<Wire, ConnectorError> {
        let after = self.timeout;
        let host = authority(&server);
        match tokio::time::timeout(after, self.open(&server)).await {
            Ok(Err(ConnectorError::Connect { cause, .. }))
                if cause.kind() == io::ErrorKind::TimedOut =>
            {
                Err(ConnectorError::Timeout { host, after })
            }
            Ok(outcome) => outcome,
            Err(_) => Err(ConnectorError::Timeout { host, after }),
        }
    }

    async fn open(mut self, server: &Uri) -> Result<Wire, ConnectorError> {
        let (stream, forwarded) = match self.proxy.route(server, self.http2_only) {
            Route::Direct => (self.connect(server).await?, false),
            Route::Forward(proxy) => (self.reach(&proxy).await?, true),
            Route::Tunnel(proxy) => {
                let stream = self.reach(&proxy).await?;
                (through(stream, &proxy, server).await?, false)
            }
        };
        if !tls::is_secure(server) {
            return Ok(Wire { stream, forwarded, http2: self.http2_only });
        }
        let (stream, http2) = secure(&self.tls, stream, server).await?;
        Ok(Wire { stream, forwarded, http2 })
    }

    async fn connect(&mut self, to: &Uri) -> Result<Stream, ConnectorError> {
        let socket = self.tcp.call(to.clone()).await.map_err(|error| ConnectorError::Connect {
            host: authority(to),
            cause: Arc::new(system(&error)),
        })?;
        Ok(Box::new(socket))
    }

    /// Connects to the proxy itself.
    async fn reach(&mut self, proxy: &Intercept) -> Result<Stream, ConnectorError> {
        let to = with_port(proxy.uri());
        let stream = match self.connect(&to).await {
            Ok(stream) if tls::is_secure(&to) => {
                secure(&self.proxy_tls, stream, &to).await.map(|(stream, _)| stream)
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

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dialer")
            .field("proxy", &self.proxy)
            .field("http2_only", &self.http2_only)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

impl Service<Uri> for Dialer {
    type Response = Wire;
    type Error = ConnectorError;
    type Future = Pin<Box<dyn Future<Output = Result<Wire, ConnectorError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectorError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        Box::pin(self.clone().dial(server))
    }
}

/// Has `proxy`, on the other end of `stream`, open a connection to `server`.
async fn through(
    stream: Stream,
    proxy: &Intercept,
    server: &Uri,
) -> Result<Stream, ConnectorError> {
    let failed = |reason| ConnectorError::Proxy { proxy: authority(proxy.uri()), reason };
    let (to, server) = (proxy.uri().clone(), with_port(server));
    if proxy::is_http(proxy) {
        let mut tunnel = Tunnel::new(to, Opened(Some(stream)));
        if let Some(authorization) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(authorization.clone());
        }
        tunnel.call(server).await.map_err(|error| failed(innermost(&error)))
    } else if proxy::is_socks5(proxy) {
        let mut socks = SocksV5::new(to, Opened(Some(stream)));
        if let Some((user, password)) = proxy.raw_auth() {
            socks = socks.with_auth(user.to_owned(), password.to_owned());
        }
        socks.call(server).await.map_err(|error| failed(innermost(&error)))
    } else {
        Err(failed("SOCKS 4 is not supported".to_owned()))
    }
}

/// Puts TLS on `stream`; says whether HTTP/2 was agreed on.
async fn secure(
    tls: &TlsConnector,
    stream: Stream,
    server: &Uri,
) -> Result<(Stream, bool), ConnectorError> {
    let failed = |cause| ConnectorError::Tls { host: authority(server), cause: Arc::new(cause) };
    let host = server.host().unwrap_or_default();
    let name = ServerName::try_from(host.trim_start_matches('[').trim_end_matches(']').to_owned())
        .map_err(|error| failed(io::Error::new(io::ErrorKind::InvalidInput, error)))?;
    let stream = tls.connect(name, TokioIo::new(stream)).await.map_err(failed)?;
    let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    Ok((Box::new(TokioIo::new(stream)), http2))
}

/// Host and port, for messages: never with a user in it.
fn authority(uri: &Uri) -> String {
    let host = uri.host().unwrap_or_default();
    format!("{host}:{}", port(uri))
}

/// `uri` with its port written out, as proxies want it.
fn with_port(uri: &Uri) -> Uri {
    let parts = Uri::builder().scheme(uri.scheme_str().unwrap_or("http"));
    let parts = parts.authority(authority(uri)).path_and_query("/");
    parts.build().unwrap_or_else(|_| uri.clone())
}

fn port(uri: &Uri) -> u16 {
    uri.port_u16().unwrap_or_else(|| match uri.scheme_str() {
        Some("https") => 443,
        Some("socks5" | "socks5h") => 1080,
        _ => 80,
    })
}

trait ReadWrite: Read + Write + Send + Unpin {}

impl<T: Read + Write + Send + Unpin> ReadWrite for T {}

/// A connection, with or without TLS, over nothing or over a proxy.
type Stream = Box<dyn ReadWrite>;

/// Hands a connection that is open already to those that would open it themselves.
struct Opened(Option<Stream>);

impl Service<Uri> for Opened {
    type Response = Stream;
    type Error = io::Error;
    type Future = Ready<io::Result<Stream>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        ready(self.0.take().ok_or_else(|| io::ErrorKind::NotConnected.into()))
    }
}

/// A connection that HTTP can be spoken on.
pub(super) struct Wire {
    stream: Stream,
    /// By a proxy that wants to see the whole URL in each request.
    forwarded: bool,
    http2: bool,
}

impl Connection for Wire {
    fn connected(&self) -> Connected {
        let connected = Connected::new().proxy(self.forwarded);
        if self.http2 { connected.negotiated_h2() } else { connected }
    }
}

impl Read for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl Write for Wire {
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

//! The client over HTTP: transports the bytes of exchanges, independent of the protocol.

use std::io;
use std::net::{TcpStream, ToSocketAddrs};
#[cfg(unix)]
use std::os::unix::net::UnixStream;
#[cfg(unix)]
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_io::Async;
use futures_lite::{AsyncRead, AsyncWrite};
use futures_rustls::TlsConnector;
use mcp_sansio_async::http_client::{
    self, ConnectorError, Dial, DialAddress, HttpConnection, ResponseBody, port,
};
use mcp_sansio_async::{HttpDriver, Runtime as _, timeout};
use mcp_sansio_handlers::Host;
use mcp_sansio_handlers::endpoint::HttpEndpoint;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use smol_hyper::rt::{FuturesIo, SmolTimer};

use crate::runtime::AsyncRuntime;
use crate::{AsyncTimer, Error};

/// Performs HTTP exchanges: connection pool, TLS, proxies; HTTP/1.1.
///
/// A `JwtVerifier` fetches the keys of an issuer with it:
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
pub type Connector = http_client::Connector<AsyncRuntime>;

/// Configures a [`Connector`].
pub type ConnectorBuilder = http_client::ConnectorBuilder<AsyncRuntime>;

/// Why a connection to a server over HTTP could not be opened.
pub type ConnectError = mcp_sansio_async::ConnectError<ConnectorError>;

/// Performs the exchanges of a client with a [`Connector`].
pub type AsyncExchanger = http_client::ConnectorExchanger<Connector>;

/// An exchange of an [`AsyncExchanger`].
pub type AsyncExchange = http_client::ConnectorExchange<ResponseBody>;

/// Creates a driver of `endpoint` over the exchanges of `connector`, to await or to spawn.
#[must_use]
pub fn drive_http<E: HttpEndpoint>(
    mut endpoint: E,
    connector: Connector,
) -> HttpDriver<E, AsyncExchanger, AsyncTimer> {
    endpoint.set_spawner(AsyncRuntime::spawn_blocking);
    HttpDriver::new(endpoint, AsyncExchanger::new(connector), AsyncTimer::new())
}

/// Connects to the server at `url` with a new [`Connector`] with default settings. A spawned task
/// drives the connection. For more than one connection, share a connector and use
/// [`connect_with`](crate::connect_with).
///
/// ```no_run
/// use mcp_sansio_async_std::{self as mcp, Host};
///
/// # async fn run() -> Result<(), mcp::Error> {
/// let client = mcp::connect("https://example.com/mcp", &Host::new("demo", "1.0.0")).await?;
/// let report = client.call_tool("forecast", &[("location", "Oslo")]).await?;
/// client.close().await;
/// # let _ = report;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`Error::Connect`]: the URL is invalid, or the connection could not be opened within the limits
/// of the connector and [`Timeouts`](mcp_sansio::peer::Timeouts).
pub async fn connect(url: &str, host: &Host) -> Result<HttpConnection, Error> {
    http_client::connect(url, Connector::new, host).await
}

/// Connects to the server on the Unix-domain socket at `path`, at the URL `http://localhost/mcp`. A
/// spawned task drives the connection. For another URL, use [`ConnectorBuilder::unix_socket`] and
/// [`connect_with`](crate::connect_with).
///
/// # Errors
///
/// [`Error::Connect`], as [`connect`].
#[cfg(unix)]
pub async fn connect_unix(path: impl Into<PathBuf>, host: &Host) -> Result<HttpConnection, Error> {
    let connector = || Connector::builder().unix_socket(path).build();
    http_client::connect("http://localhost/mcp", connector, host).await
}

/// A connection, with or without TLS.
pub type Stream = FuturesIo<Box<dyn ReadWrite>>;

/// A stream that can carry HTTP.
pub trait ReadWrite: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> ReadWrite for T {}

impl Dial for AsyncRuntime {
    type Stream = Stream;

    const HTTP2: bool = false;

    async fn connect(to: DialAddress<'_>, time: Duration) -> io::Result<Stream> {
        let to = match to {
            DialAddress::Tcp(uri) => uri,
            #[cfg(unix)]
            DialAddress::Unix(path) => {
                let socket = Async::<UnixStream>::connect(path).await?;
                return Ok(FuturesIo::new(Box::new(socket)));
            }
        };
        // An IPv6 address is resolved without its brackets.
        let host = to.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
        let socket = connect_socket(host.to_owned(), port(to), time).await?;
        Ok(FuturesIo::new(Box::new(socket)))
    }

    async fn secure(
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
        stream: Stream,
    ) -> io::Result<(Stream, Option<Vec<u8>>)> {
        let stream = TlsConnector::from(config).connect(name, stream.into_inner()).await?;
        let protocol = stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec);
        Ok((FuturesIo::new(Box::new(stream)), protocol))
    }

    fn hyper_timer() -> impl hyper::rt::Timer + Clone + Send + Sync + 'static {
        SmolTimer::new()
    }
}

/// Connects to the first of a name's addresses that answers. They share the time limit, so that a
/// silent address leaves time for the others.
async fn connect_socket(host: String, port: u16, time: Duration) -> io::Result<Async<TcpStream>> {
    let addresses = blocking::unblock(move || (host.as_str(), port).to_socket_addrs()).await?;
    let share = time / u32::try_from(addresses.len()).unwrap_or(u32::MAX).max(1);
    let mut failure = io::Error::from(io::ErrorKind::NotFound);
    for address in addresses {
        match timeout(&AsyncRuntime::current(), share, Async::<TcpStream>::connect(address)).await {
            Some(Ok(socket)) => {
                prepare(socket.get_ref());
                return Ok(socket);
            }
            Some(Err(error)) => failure = error,
            None => failure = io::ErrorKind::TimedOut.into(),
        }
    }
    Err(failure)
}

/// Sets the socket options. Errors are ignored: they mean that the socket is broken, which the next
/// read reports.
fn prepare(socket: &TcpStream) {
    // Each write is a complete message, or the end of one.
    let _ = socket.set_nodelay(true);
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    {
        use rustix::net::sockopt::{
            set_socket_keepalive, set_tcp_keepcnt, set_tcp_keepidle, set_tcp_keepintvl,
        };

        // A peer that disappeared is probed after 30 s of silence, three times every 10 s: a dead
        // connection is detected after a minute.
        let _ = set_socket_keepalive(socket, true)
            .and_then(|()| set_tcp_keepidle(socket, Duration::from_secs(30)))
            .and_then(|()| set_tcp_keepintvl(socket, Duration::from_secs(10)))
            .and_then(|()| set_tcp_keepcnt(socket, 3));
    }
}

//! Sockets that are connected, and TLS.

use std::io;
use std::net::{TcpStream, ToSocketAddrs};
#[cfg(unix)]
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use async_io::Async;
use futures_io::{AsyncRead, AsyncWrite};
use futures_rustls::TlsConnector;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use smol_hyper::rt::FuturesIo;

use super::AsyncIo;
use crate::http_client::{Dial, DialAddress, port};
use crate::timeout;

/// A connection, with or without TLS.
pub type Stream = FuturesIo<Box<dyn ReadWrite>>;

/// A stream that can carry HTTP.
pub trait ReadWrite: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> ReadWrite for T {}

impl<R: AsyncIo> Dial for R {
    type Stream = Stream;

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
        let socket = connect_socket::<R>(host.to_owned(), port(to), time).await?;
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
}

/// Connects to the first of a name's addresses that answers. They share the time limit, so that a
/// silent address leaves time for the others.
async fn connect_socket<R: AsyncIo>(
    host: String,
    port: u16,
    time: Duration,
) -> io::Result<Async<TcpStream>> {
    let addresses = blocking::unblock(move || (host.as_str(), port).to_socket_addrs()).await?;
    let share = time / u32::try_from(addresses.len()).unwrap_or(u32::MAX).max(1);
    let mut failure = io::Error::from(io::ErrorKind::NotFound);
    for address in addresses {
        match timeout(&R::current(), share, Async::<TcpStream>::connect(address)).await {
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

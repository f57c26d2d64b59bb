use std::fmt;
use std::future::Future;
use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use async_io::Async;
use futures_rustls::TlsConnector;
use http::Uri;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tower_service::Service;

use super::tls;
use super::wire::Wire;
use crate::ConnectorError;
use crate::timer::timeout;

/// Opens connections: looks names up, secures.
#[derive(Clone)]
pub(super) struct Dialer {
    tls: TlsConnector,
    timeout: Duration,
}

impl Dialer {
    pub(super) fn new(mut tls: ClientConfig, timeout: Duration) -> Self {
        tls::offer_protocol(&mut tls);
        Self { tls: Arc::new(tls).into(), timeout }
    }

    async fn dial(self, server: Uri) -> Result<Wire, ConnectorError> {
        let after = self.timeout;
        let late = || ConnectorError::Timeout { host: authority(&server), after };
        match timeout(after, self.open(&server)).await {
            Some(Err(ConnectorError::Connect { cause, .. }))
                if cause.kind() == io::ErrorKind::TimedOut =>
            {
                Err(late())
            }
            Some(outcome) => outcome,
            None => Err(late()),
        }
    }

    async fn open(self, server: &Uri) -> Result<Wire, ConnectorError> {
        let socket = connect(host(server).to_owned(), port(server), self.timeout).await;
        let socket = socket.map_err(|cause| ConnectorError::Connect {
            host: authority(server),
            cause: Arc::new(cause),
        })?;
        if !tls::is_secure(server) {
            return Ok(Wire::new(socket));
        }
        let failed =
            |cause| ConnectorError::Tls { host: authority(server), cause: Arc::new(cause) };
        let name = ServerName::try_from(host(server).to_owned())
            .map_err(|error| failed(io::Error::new(io::ErrorKind::InvalidInput, error)))?;
        Ok(Wire::new(self.tls.connect(name, socket).await.map_err(failed)?))
    }
}

/// Connects to the first of a name's addresses where somebody answers. They share the time: one that
/// is silent leaves some for the others.
async fn connect(host: String, port: u16, time: Duration) -> io::Result<Async<TcpStream>> {
    let addresses = blocking::unblock(move || (host.as_str(), port).to_socket_addrs()).await?;
    let share = time / u32::try_from(addresses.len()).unwrap_or(u32::MAX).max(1);
    let mut failure = io::Error::from(io::ErrorKind::NotFound);
    for address in addresses {
        match timeout(share, Async::<TcpStream>::connect(address)).await {
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

/// Sets what is of use; a socket that refuses is broken already, and then reading says so.
fn prepare(socket: &TcpStream) {
    // What is written here is a whole message, or the end of one.
    let _ = socket.set_nodelay(true);
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    {
        use rustix::net::sockopt::{
            set_socket_keepalive, set_tcp_keepcnt, set_tcp_keepidle, set_tcp_keepintvl,
        };

        // A peer that is gone without a word is looked for after 30 s of silence, then three times
        // at 10 s: a stream that has been silent for long is known to be dead after a minute.
        let _ = set_socket_keepalive(socket, true)
            .and_then(|()| set_tcp_keepidle(socket, Duration::from_secs(30)))
            .and_then(|()| set_tcp_keepintvl(socket, Duration::from_secs(10)))
            .and_then(|()| set_tcp_keepcnt(socket, 3));
    }
}

/// Host and port, for messages: never with a user in it.
fn authority(uri: &Uri) -> String {
    format!("{}:{}", uri.host().unwrap_or_default(), port(uri))
}

/// The host as it is looked up: an address of IPv6 has no brackets there.
fn host(uri: &Uri) -> &str {
    uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']')
}

fn port(uri: &Uri) -> u16 {
    uri.port_u16().unwrap_or_else(|| if tls::is_secure(uri) { 443 } else { 80 })
}

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dialer").field("timeout", &self.timeout).finish_non_exhaustive()
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

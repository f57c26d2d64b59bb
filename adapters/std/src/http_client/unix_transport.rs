//! Connections of `ureq` through a Unix-domain socket.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use http::Uri;
use ureq::Error;
use ureq::config::Config;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, ShutdownHandle, Transport,
};

/// Connects to a Unix-domain socket, whatever the URL.
#[derive(Debug)]
pub(super) struct UnixConnector(pub(super) Arc<Path>);

impl Connector<()> for UnixConnector {
    type Out = UnixTransport;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        _: Option<()>,
    ) -> Result<Option<UnixTransport>, Error> {
        let config = details.config;
        let socket = UnixStream::connect(&self.0).map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", self.0.display()))
        })?;
        let socket = Arc::new(Socket(socket));
        let handle: Weak<dyn ShutdownHandle> = Arc::downgrade(&socket) as _;
        (details.register_shutdown)(handle)?;
        let buffers = LazyBuffers::new(config.input_buffer_size(), config.output_buffer_size());
        Ok(Some(UnixTransport { socket, buffers }))
    }
}

/// Resolves nothing, since the path is the address.
#[derive(Debug)]
pub(super) struct NoResolver;

impl Resolver for NoResolver {
    fn resolve(&self, _: &Uri, _: &Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, Error> {
        // `ureq` requires an address; the connector ignores it.
        let mut addresses = self.empty();
        addresses.push(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        Ok(addresses)
    }
}

#[derive(Debug)]
struct Socket(UnixStream);

impl ShutdownHandle for Socket {
    fn shutdown(&self) {
        // Fails only if the socket is already closed.
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

/// A connection through a Unix-domain socket.
pub(super) struct UnixTransport {
    /// Shared with the handle that shuts it down.
    socket: Arc<Socket>,
    buffers: LazyBuffers,
}

impl UnixTransport {
    /// Converts a time limit for a socket, which does not accept zero.
    fn limit(timeout: NextTimeout) -> Result<Option<Duration>, Error> {
        if timeout.after.is_zero() {
            return Err(Error::Timeout(timeout.reason));
        }
        Ok(timeout.not_zero().map(|it| *it))
    }
}

impl Transport for UnixTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        let timeout = timeout.for_write();
        self.socket.0.set_write_timeout(Self::limit(timeout)?)?;
        let output = &self.buffers.output()[..amount];
        (&self.socket.0).write_all(output).map_err(|error| or_timeout(error, timeout))
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        let timeout = timeout.for_read();
        self.socket.0.set_read_timeout(Self::limit(timeout)?)?;
        let space = self.buffers.input_append_buf();
        let count = loop {
            match (&self.socket.0).read(space) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read.map_err(|error| or_timeout(error, timeout))?,
            }
        };
        self.buffers.input_appended(count);
        Ok(count > 0)
    }

    /// An idle connection is open if reading from it would block.
    fn is_open(&mut self) -> bool {
        let socket = &self.socket.0;
        let would_block = |error: io::Error| error.kind() == io::ErrorKind::WouldBlock;
        socket.set_nonblocking(true).is_ok()
            && (&mut &*socket).read(&mut [0]).is_err_and(would_block)
            && socket.set_nonblocking(false).is_ok()
    }
}

fn or_timeout(error: io::Error, timeout: NextTimeout) -> Error {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Error::Timeout(timeout.reason),
        _ => error.into(),
    }
}

impl std::fmt::Debug for UnixTransport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UnixTransport").field("socket", &self.socket).finish_non_exhaustive()
    }
}

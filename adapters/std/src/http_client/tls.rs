//! TLS of `ureq`, with a configuration that its own connector cannot take.

use std::io::{self, Read, Write};
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use ureq::Error;
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, Either, LazyBuffers, NextTimeout, Transport,
    TransportAdapter,
};

/// Establishes TLS on a connection, if the URL requires it.
#[derive(Debug)]
pub(super) struct TlsConnector(pub(super) Arc<ClientConfig>);

impl<T: Transport> Connector<T> for TlsConnector {
    type Out = Either<T, TlsTransport>;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        chained: Option<T>,
    ) -> Result<Option<Self::Out>, Error> {
        let Some(transport) = chained else { return Ok(None) };
        if !details.needs_tls() || transport.is_tls() {
            return Ok(Some(Either::A(transport)));
        }
        let host = details.uri.host().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name =
            ServerName::try_from(host).map_err(|error| tls_error(io::Error::other(error)))?;
        let session = ClientConnection::new(Arc::clone(&self.0), name)?;
        let socket = TransportAdapter::new(transport.boxed(), Arc::clone(&details.current_time));
        let mut stream = StreamOwned::new(session, socket);
        stream.sock.set_timeout(details.timeout);
        stream.conn.complete_io(&mut stream.sock).map_err(tls_error)?;
        let config = details.config;
        let buffers = LazyBuffers::new(config.input_buffer_size(), config.output_buffer_size());
        Ok(Some(Either::B(TlsTransport { buffers, stream })))
    }
}

/// Converts an error of the handshake: that of TLS, if there is one behind it.
fn tls_error(error: io::Error) -> Error {
    match error.downcast::<rustls::Error>() {
        Ok(error) => Error::Rustls(error),
        Err(error) => error.into(),
    }
}

/// A connection with TLS.
pub(super) struct TlsTransport {
    buffers: LazyBuffers,
    stream: StreamOwned<ClientConnection, TransportAdapter>,
}

impl Transport for TlsTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        self.stream.sock.set_timeout(timeout);
        Ok(self.stream.write_all(&self.buffers.output()[..amount])?)
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        self.stream.sock.set_timeout(timeout);
        let count = self.stream.read(self.buffers.input_append_buf())?;
        self.buffers.input_appended(count);
        Ok(count > 0)
    }

    fn is_open(&mut self) -> bool {
        self.stream.sock.get_mut().is_open()
    }

    fn is_tls(&self) -> bool {
        true
    }
}

impl std::fmt::Debug for TlsTransport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TlsTransport").finish_non_exhaustive()
    }
}

//! A TCP socket of the network stack as a socket of `embedded-io`.

use embedded_io::{ErrorKind, ErrorType, Read, ReadReady, Write, WriteReady};
use smoltcp::socket::tcp;

/// A connected socket.
pub(crate) struct Socket<'s, 'b>(pub(crate) &'s mut tcp::Socket<'b>);

impl ErrorType for Socket<'_, '_> {
    type Error = ErrorKind;
}

impl ReadReady for Socket<'_, '_> {
    fn read_ready(&mut self) -> Result<bool, ErrorKind> {
        // The end of the input is ready, too.
        Ok(self.0.can_recv() || !self.0.may_recv())
    }
}

impl Read for Socket<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, ErrorKind> {
        match self.0.recv_slice(buffer) {
            Ok(length) => Ok(length),
            Err(tcp::RecvError::Finished) => Ok(0),
            Err(tcp::RecvError::InvalidState) => Err(ErrorKind::ConnectionReset),
        }
    }
}

impl WriteReady for Socket<'_, '_> {
    fn write_ready(&mut self) -> Result<bool, ErrorKind> {
        Ok(self.0.can_send() || !self.0.may_send())
    }
}

impl Write for Socket<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize, ErrorKind> {
        self.0.send_slice(bytes).map_err(|_| ErrorKind::ConnectionReset)
    }

    fn flush(&mut self) -> Result<(), ErrorKind> {
        Ok(())
    }
}

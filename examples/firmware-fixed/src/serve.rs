//! The loop: bytes in, one message at a time, bytes out.

use heapless::Vec;
use mcp_sansio_fixed::{Connection, Service};

/// A serial port.
pub trait Port {
    /// Returns a received byte, if there is one.
    fn receive(&mut self) -> Option<u8>;

    /// Sends a byte. Blocks while the port is busy.
    fn send(&mut self, byte: u8);

    /// Sleeps until a byte arrives. May return earlier.
    fn sleep(&mut self);
}

/// Serves clients on `port` for ever, one after the other: each `initialize` opens a session. `line`
/// and `output` are the memory for messages, as long as they are.
///
/// A message is answered before the next one is read, so the host uses the flow control of the port,
/// or waits for each answer.
///
/// # Panics
///
/// If the output is too small for an error.
pub fn serve<S: Service, const LINE: usize, const OUTPUT: usize>(
    service: S,
    port: &mut impl Port,
    line: &mut Vec<u8, LINE>,
    output: &mut Vec<u8, OUTPUT>,
) -> ! {
    // In place: a full vector is a slice of its capacity.
    let _ = line.resize_default(LINE);
    let _ = output.resize_default(OUTPUT);
    let Ok(mut connection) = Connection::new(service, line, output) else {
        panic!("the output is too small")
    };
    loop {
        while let Some(bytes) = connection.poll_transmit() {
            let length = bytes.len();
            for byte in bytes {
                port.send(*byte);
            }
            connection.advance(length);
        }
        match (connection.space().first_mut(), port.receive()) {
            (Some(space), Some(byte)) => {
                *space = byte;
                connection.commit(1);
            }
            (_, None) => port.sleep(),
            // There is space whenever nothing is left to transmit.
            (None, Some(_)) => {}
        }
    }
}

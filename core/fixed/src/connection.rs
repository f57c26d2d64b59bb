//! A server on a byte stream.

use mcp_sansio::framing::{FrameError, Lines};

use crate::{Fault, Handled, Server, Service, TooSmall};

type TakeRest<'b> = for<'l> fn(&'l mut Lines<&'b mut [u8]>) -> Option<Result<&'l [u8], FrameError>>;

/// A server with its lines in and out, for a UART, a pipe or a socket.
///
/// Read into [`space`](Self::space) and [`commit`](Self::commit) what was read, then write what
/// [`poll_transmit`](Self::poll_transmit) returns, until it returns `None`. Each call handles at most
/// one message, and only when everything before was written, so a client that does not read is not
/// read from.
#[derive(Debug)]
pub struct Connection<'b, S> {
    lines: Lines<&'b mut [u8]>,
    server: Server<'b, S>,
    /// The number of bytes of the output that were taken, if it has any.
    taken: usize,
    /// Takes what is left after the last complete line. A pointer, so that the code for the end of
    /// input is linked only into programs that call [`handle_eof`](Self::handle_eof).
    rest: TakeRest<'b>,
    fault: Option<Fault>,
}

impl<'b, S: Service> Connection<'b, S> {
    /// Creates a connection. The length of `line` is that of the longest message that is accepted,
    /// with its line end, and the length of `output` is that of the longest that is sent.
    ///
    /// # Errors
    ///
    /// The output is too small.
    pub fn new(service: S, line: &'b mut [u8], output: &'b mut [u8]) -> Result<Self, TooSmall> {
        let server = Server::new(service, output)?;
        Ok(Self { lines: Lines::in_storage(line), server, taken: 0, rest: |_| None, fault: None })
    }

    /// Returns free space to read into. It is empty only while there are complete messages that
    /// [`poll_transmit`](Self::poll_transmit) has not handled.
    pub fn space(&mut self) -> &mut [u8] {
        self.lines.space()
    }

    /// Marks the first `count` bytes of [`space`](Self::space) as read.
    pub fn commit(&mut self, count: usize) {
        self.lines.commit(count);
    }

    /// Copies the start of `bytes` into the space and returns how many bytes were copied.
    #[must_use]
    pub fn feed(&mut self, bytes: &[u8]) -> usize {
        self.lines.feed(bytes)
    }

    /// Returns bytes to write, which [`advance`](Self::advance) removes. If there are none, handles
    /// messages until one is answered. `None` means that more input is needed.
    pub fn poll_transmit(&mut self) -> Option<&[u8]> {
        while self.taken >= self.server.output().len() {
            let frame = match self.lines.next_frame() {
                Some(frame) => frame,
                None => (self.rest)(&mut self.lines)?,
            };
            let Handled { fault, .. } = match frame {
                Ok(frame) => self.server.handle_message(frame),
                Err(error) => self.server.handle_frame_error(error),
            };
            self.fault = fault.or(self.fault);
            self.taken = 0;
        }
        self.server.output().get(self.taken..)
    }

    /// Marks the first `count` bytes of the output as written.
    pub fn advance(&mut self, count: usize) {
        self.taken = self.taken.saturating_add(count);
    }

    /// Records the end of input: [`poll_transmit`](Self::poll_transmit) handles what is left, of which
    /// the last message may have no line end.
    pub const fn handle_eof(&mut self) {
        self.rest = Lines::handle_eof;
    }

    /// Takes the last fault since the previous call.
    pub const fn take_fault(&mut self) -> Option<Fault> {
        self.fault.take()
    }

    /// Access to the service, between messages.
    pub const fn service(&mut self) -> &mut S {
        self.server.service()
    }
}

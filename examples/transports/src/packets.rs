//! COBS and SLIP: messages as packets on a serial line, with the codec of `mcp_sansio::framing`.
//!
//! A damaged packet is a lost message, which a transport of MCP must not skip: [`PacketStream`]
//! ends the connection. To retransmit it, use a link layer like that of the example `serial-line`.

use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::io;

use mcp_sansio::framing::{PacketDecoder, PacketEncoder, PacketFraming};
use mcp_sansio_tokio::adapter::ByteStream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A serial line as a [`ByteStream`], for `mcp_sansio_tokio::drive`: each message is a packet. A
/// packet that is damaged or too long breaks the connection.
///
/// On a device, `mcp_sansio_embedded::packets` does the same for the drivers there.
#[derive(Debug)]
pub struct PacketStream<S> {
    line: S,
    decoder: PacketDecoder,
    encoder: PacketEncoder,
    message_length_max: usize,
    /// How much of the current message was received.
    message_length: usize,
    /// Received messages, as lines of text, and how much of them has been read.
    lines: Vec<u8>,
    read: usize,
}

impl<S: AsyncRead + AsyncWrite + Unpin> PacketStream<S> {
    /// Creates a stream over `line`, with messages of up to `message_length_max` bytes.
    #[must_use]
    pub const fn new(framing: PacketFraming, line: S, message_length_max: usize) -> Self {
        Self {
            line,
            decoder: PacketDecoder::new(framing),
            encoder: PacketEncoder::new(framing),
            message_length_max,
            message_length: 0,
            lines: Vec::new(),
            read: 0,
        }
    }

    fn receive(&mut self, packets: &[u8]) -> io::Result<()> {
        for byte in packets {
            for byte in self.decoder.decode(*byte) {
                self.lines.push(*byte);
                self.message_length = if *byte == b'\n' { 0 } else { self.message_length + 1 };
            }
            if self.decoder.damaged() > 0 {
                return Err(io::Error::other("a packet is damaged"));
            }
            if self.message_length > self.message_length_max {
                return Err(io::Error::other("a packet is longer than the limit of its receiver"));
            }
        }
        Ok(())
    }

    /// Writes what is pending.
    fn poll_write_out(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.encoder.pending().is_empty() {
            match ready!(Pin::new(&mut self.line).poll_write(cx, self.encoder.pending()))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                length => self.encoder.consume(length),
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> ByteStream for PacketStream<S> {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        while self.read == self.lines.len() {
            let mut bytes = [0; 1024];
            let mut into = ReadBuf::new(&mut bytes);
            ready!(Pin::new(&mut self.line).poll_read(cx, &mut into))?;
            if into.filled().is_empty() {
                return Poll::Ready(Ok(0));
            }
            self.lines.clear();
            self.read = 0;
            self.receive(into.filled())?;
        }
        let rest = &self.lines[self.read..];
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        self.read += length;
        Poll::Ready(Ok(length))
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_write_out(cx))?;
        Poll::Ready(Ok(self.encoder.feed(bytes)))
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_write_out(cx))?;
        Pin::new(&mut self.line).poll_flush(cx)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_write_out(cx))?;
        Pin::new(&mut self.line).poll_shutdown(cx)
    }
}

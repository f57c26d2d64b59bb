//! COBS and SLIP: messages as packets on a serial line. The codec does no I/O, and allocates nothing.
//!
//! A packet is a message and its CRC-32 (IEEE, least significant byte first), encoded so that one
//! byte value appears only between packets: 0x00 with COBS, 0xC0 with SLIP (RFC 1055). After noise
//! the decoder is in step again at the next such byte. It reports a damaged packet and never delivers
//! one, up to one in 2^32.
//!
//! A damaged packet is a lost message, which a transport of MCP must not skip: end the connection, as
//! [`PacketStream`] does, or retransmit, as the link layer of the example `serial-line` does.

use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::io;

use crc::{CRC_32_ISO_HDLC, Crc};
use mcp_sansio_tokio::adapter::ByteStream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

const CHECKSUM: Crc<u32> = Crc::<u32>::new(&CRC_32_ISO_HDLC);

/// The length of the checksum.
const CHECKSUM_LENGTH: usize = 4;

/// How packets are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// One byte more for each 254 bytes, and one delimiter: the length is known beforehand.
    Cobs,
    /// Two bytes for each 0xC0 and 0xDB, which text in ASCII never contains, and two delimiters.
    Slip,
}

const SLIP_END: u8 = 0xc0;
const SLIP_ESCAPE: u8 = 0xdb;
const SLIP_ESCAPED_END: u8 = 0xdc;
const SLIP_ESCAPED_ESCAPE: u8 = 0xdd;

/// Why a packet was not delivered. The decoder continues with the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketError {
    /// It does not fit into the memory of the decoder.
    TooLong,
    /// Its encoding or its checksum is wrong.
    Damaged,
}

impl fmt::Display for PacketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLong => "a packet is longer than the memory of its receiver",
            Self::Damaged => "a packet is damaged",
        })
    }
}

impl core::error::Error for PacketError {}

impl Framing {
    const fn delimiter(self) -> u8 {
        match self {
            Self::Cobs => 0,
            Self::Slip => SLIP_END,
        }
    }

    /// Encodes a message as a packet, and passes the bytes to `write` in pieces.
    pub fn encode(self, message: &[u8], write: &mut dyn FnMut(&[u8])) {
        let checksum = CHECKSUM.checksum(message).to_le_bytes();
        match self {
            Self::Cobs => {
                // Blocks of up to 254 bytes that are not zero, each after its length plus one. One
                // that is shorter stands for a zero after it.
                let mut block = [0; 255];
                let mut length = 1;
                for byte in message.iter().chain(&checksum) {
                    if *byte != 0 {
                        block[length] = *byte;
                        length += 1;
                    }
                    if *byte == 0 || length == block.len() {
                        block[0] = length as u8;
                        write(&block[..length]);
                        length = 1;
                    }
                }
                block[0] = length as u8;
                write(&block[..length]);
                write(&[0]);
            }
            Self::Slip => {
                // The delimiter in front ends what noise began.
                write(&[SLIP_END]);
                for part in [message, &checksum] {
                    let special = |byte: &u8| matches!(*byte, SLIP_END | SLIP_ESCAPE);
                    for run in part.split_inclusive(special) {
                        let (last, rest) = run.split_last().unwrap_or((&0, &[]));
                        match *last {
                            SLIP_END => {
                                write(rest);
                                write(&[SLIP_ESCAPE, SLIP_ESCAPED_END]);
                            }
                            SLIP_ESCAPE => {
                                write(rest);
                                write(&[SLIP_ESCAPE, SLIP_ESCAPED_ESCAPE]);
                            }
                            _ => write(run),
                        }
                    }
                }
                write(&[SLIP_END]);
            }
        }
    }
}

/// Takes packets out of a stream of bytes, in the memory that it is given, such as a `&mut [u8]`: a
/// message may have as many bytes, less the four of its checksum.
///
/// Each byte is handled once, as it arrives, so that packets and errors do not depend on how the
/// bytes are split.
#[derive(Debug)]
pub struct PacketDecoder<B> {
    framing: Framing,
    storage: B,
    length: usize,
    state: State,
    error: Option<PacketError>,
    /// With COBS: the bytes until the next code, and whether a zero stands before that.
    run: u8,
    zero: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Between two packets.
    Between,
    Within,
    /// After an escape of SLIP.
    Escaped,
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> PacketDecoder<B> {
    /// Creates a decoder over this memory.
    #[must_use]
    pub const fn new(framing: Framing, storage: B) -> Self {
        let state = State::Between;
        Self { framing, storage, length: 0, state, error: None, run: 0, zero: false }
    }

    /// Takes bytes from the front of `bytes` up to the end of a packet, and returns its message or
    /// what is wrong with it. Returns `None` once all bytes are taken.
    pub fn next_packet(&mut self, bytes: &mut &[u8]) -> Option<Result<&[u8], PacketError>> {
        while let Some((byte, rest)) = bytes.split_first() {
            *bytes = rest;
            if *byte == self.framing.delimiter() {
                // A packet of no bytes at all is the space between two.
                if self.state != State::Between {
                    return Some(self.end());
                }
            } else {
                self.take(*byte);
            }
        }
        None
    }

    /// Returns whether a packet has begun and not ended: at the end of the input it is lost.
    #[must_use]
    pub fn is_within(&self) -> bool {
        self.state != State::Between
    }

    fn take(&mut self, byte: u8) {
        let is_first = self.state == State::Between;
        match self.framing {
            Framing::Cobs if is_first || self.run == 0 => {
                if !is_first && self.zero {
                    self.push(0);
                }
                (self.run, self.zero) = (byte - 1, byte != u8::MAX);
                self.state = State::Within;
            }
            Framing::Cobs => {
                self.run -= 1;
                self.push(byte);
            }
            Framing::Slip if self.state == State::Escaped => {
                self.state = State::Within;
                match byte {
                    SLIP_ESCAPED_END => self.push(SLIP_END),
                    SLIP_ESCAPED_ESCAPE => self.push(SLIP_ESCAPE),
                    _ => self.fail(PacketError::Damaged),
                }
            }
            Framing::Slip if byte == SLIP_ESCAPE => self.state = State::Escaped,
            Framing::Slip => {
                self.state = State::Within;
                self.push(byte);
            }
        }
    }

    fn push(&mut self, byte: u8) {
        match self.storage.as_mut().get_mut(self.length) {
            Some(place) => {
                *place = byte;
                self.length += 1;
            }
            None => self.fail(PacketError::TooLong),
        }
    }

    fn fail(&mut self, error: PacketError) {
        self.error.get_or_insert(error);
    }

    fn end(&mut self) -> Result<&[u8], PacketError> {
        let cut = self.run > 0 || self.state == State::Escaped;
        let length = core::mem::take(&mut self.length);
        (self.run, self.zero, self.state) = (0, false, State::Between);
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let message = length.checked_sub(CHECKSUM_LENGTH).filter(|_| !cut);
        let message = message.ok_or(PacketError::Damaged)?;
        let (message, checksum) = self.storage.as_ref()[..length].split_at(message);
        if checksum == CHECKSUM.checksum(message).to_le_bytes() {
            Ok(message)
        } else {
            Err(PacketError::Damaged)
        }
    }
}

/// A serial line as a [`ByteStream`], for `mcp_sansio_tokio::drive`: each message is a packet. A packet
/// that is damaged or too long breaks the connection.
///
/// On a device the same codec stands between the driver of the line and an `Endpoint`.
#[derive(Debug)]
pub struct PacketStream<S> {
    framing: Framing,
    line: S,
    /// The bytes of a read, and which of them are not decoded yet.
    input: Vec<u8>,
    decoded: usize,
    decoder: PacketDecoder<Vec<u8>>,
    /// The message that is being handed on, as a line of text.
    message: Vec<u8>,
    read: usize,
    /// Packets to write, and how much of them is written.
    output: Vec<u8>,
    written: usize,
}

impl<S: AsyncRead + AsyncWrite + Unpin> PacketStream<S> {
    /// Creates a stream over `line`, with messages of up to `message_length_max` bytes.
    #[must_use]
    pub fn new(framing: Framing, line: S, message_length_max: usize) -> Self {
        let decoder = PacketDecoder::new(framing, vec![0; message_length_max + CHECKSUM_LENGTH]);
        let (input, message, output) = Default::default();
        Self { framing, line, input, decoded: 0, decoder, message, read: 0, output, written: 0 }
    }

    /// Writes the packets that are waiting.
    fn poll_write_out(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.written < self.output.len() {
            let rest = &self.output[self.written..];
            match ready!(Pin::new(&mut self.line).poll_write(cx, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                length => self.written += length,
            }
        }
        self.output.clear();
        self.written = 0;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> ByteStream for PacketStream<S> {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        while self.read == self.message.len() {
            let mut rest = &self.input[self.decoded..];
            let packet = self.decoder.next_packet(&mut rest);
            self.decoded = self.input.len() - rest.len();
            if let Some(packet) = packet {
                let message = packet.map_err(io::Error::other)?;
                self.message.clear();
                self.message.extend_from_slice(message);
                self.message.push(b'\n');
                self.read = 0;
                continue;
            }
            self.input.resize(4096, 0);
            self.decoded = 0;
            let mut into = ReadBuf::new(&mut self.input);
            let read = Pin::new(&mut self.line).poll_read(cx, &mut into);
            let length = if read.is_ready() { into.filled().len() } else { 0 };
            self.input.truncate(length);
            ready!(read)?;
            if length == 0 {
                return Poll::Ready(Ok(0));
            }
        }
        let rest = &self.message[self.read..];
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        self.read += length;
        Poll::Ready(Ok(length))
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_write_out(cx))?;
        // Endpoints lend complete lines.
        let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
            return Poll::Ready(Err(io::ErrorKind::InvalidInput.into()));
        };
        let output = &mut self.output;
        self.framing.encode(&bytes[..end], &mut |bytes| output.extend_from_slice(bytes));
        Poll::Ready(Ok(end + 1))
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

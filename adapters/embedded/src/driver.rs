use core::cell::{Cell, RefCell};
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::Poll;
use core::{fmt, mem};

use embedded_io_async::{Error, ErrorKind, ErrorType, Read, ReadReady, Write};
use mcp_sansio::Instant;
use mcp_sansio::framing::{LineDecoder, PacketDecoder, PacketEncoder, PacketFraming};
use mcp_sansio::stream::{Action, Endpoint, Fault, StreamConnection, StreamSettings};

/// Why a connection broke: a fault of the stream or the peer, never of the endpoint. `R` and `W`
/// are the errors of the two halves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum DriveError<R: Error, W: Error> {
    /// Reading failed more often in a row than [allowed](crate::StreamSettings::read_errors_max).
    /// The endpoint treats the input as ended. `Interrupted` and `TimedOut` do not count: the operation
    /// is tried again, so a transport must report the loss of its peer as another kind.
    #[error("reading from the other side failed: {0}")]
    Read(#[source] R),
    /// Writing failed, other than by a disconnect. Unsent output is lost.
    #[error("writing to the other side failed: {0}")]
    Write(#[source] W),
    /// The writer accepted no bytes, which violates the contract of `embedded-io`.
    #[error("writing to the other side failed: it accepts no bytes")]
    WriteZero,
}

/// Classifies an error for the connection. `None`: nothing was transferred and nothing is lost. The
/// operation is tried again, after other tasks could run.
pub(crate) fn fault<T: Error, X>(error: T, broken: fn(T) -> X) -> Option<Fault<X>> {
    use ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected};
    match error.kind() {
        ErrorKind::Interrupted | ErrorKind::TimedOut => None,
        BrokenPipe | ConnectionAborted | ConnectionReset | NotConnected => Some(Fault::Gone),
        _ => Some(Fault::Broken(broken(error))),
    }
}

/// Classifies the outcome of an operation, like [`fault`].
pub(crate) fn classify<T, E: Error, X>(
    outcome: Result<T, E>,
    broken: fn(E) -> X,
) -> Option<Result<T, Fault<X>>> {
    match outcome {
        Ok(value) => Some(Ok(value)),
        Err(error) => fault(error, broken).map(Err),
    }
}

/// A monotonic clock with a timer.
#[allow(async_fn_in_trait, reason = "a device's executor does not require futures to be `Send`")]
pub trait Clock {
    /// Returns the current time.
    fn now(&self) -> Instant;

    /// Waits until [`now`](Self::now) has reached `deadline`; returns at once if it already has.
    /// Returning slightly early is harmless. The future is dropped when another deadline replaces
    /// it.
    async fn wait_until(&self, deadline: Instant);
}

impl<C: Clock + ?Sized> Clock for &C {
    fn now(&self) -> Instant {
        (**self).now()
    }

    async fn wait_until(&self, deadline: Instant) {
        (**self).wait_until(deadline).await;
    }
}

/// Drives one endpoint over the two halves of an asynchronous stream, on an executor.
///
/// It moves the bytes of a [`StreamConnection`], which says when to read, to write and to stop. A
/// pending read or write is never dropped before the connection is over, so the halves need not be
/// cancel-safe.
///
/// To keep the halves, pass references: `&mut uart` implements the traits, too.
pub struct Driver<'b, E, R: Read, W: Write, C> {
    connection: StreamConnection<'b, E, DriveError<R::Error, W::Error>>,
    reader: R,
    writer: W,
    clock: C,
    output: &'b mut [u8],
}

impl<'b, E: Endpoint, R: Read, W: Write, C: Clock> Driver<'b, E, R, W, C> {
    /// Creates a driver with [`StreamSettings::DEVICE`].
    ///
    /// The length of `line` limits the lines that are accepted, line ending included: 2,048 bytes
    /// are enough for calls with short arguments. `output` buffers writes: 256 bytes keep their
    /// number low. An empty `line` ends the input at once; with an empty `output` nothing is sent.
    pub fn new(
        endpoint: E,
        reader: R,
        writer: W,
        clock: C,
        line: &'b mut [u8],
        output: &'b mut [u8],
    ) -> Self {
        let connection = StreamConnection::lent(endpoint, line, StreamSettings::DEVICE);
        Self { connection, reader, writer, clock, output }
    }

    /// Replaces the settings.
    #[must_use]
    pub fn settings(mut self, settings: StreamSettings) -> Self {
        self.connection = self.connection.settings(settings);
        self
    }

    /// Returns the endpoint.
    #[must_use]
    pub const fn endpoint(&self) -> &E {
        self.connection.endpoint()
    }

    /// Drives until the connection is over. Dropping the future drops the connection.
    ///
    /// # Errors
    ///
    /// The stream broke: see [`DriveError`]. A disconnect of the peer is not an error.
    pub async fn run(self) -> Result<(), DriveError<R::Error, W::Error>> {
        let Self { connection, mut reader, mut writer, clock, output } = self;
        let connection = RefCell::new(connection);
        // Whether a wait completed in this round of a poll. The three parts wait for each other by
        // being polled again in the next round; none of them completes, and no borrow is held
        // across an `await`.
        let moved = Cell::new(false);
        let reading = async {
            loop {
                until(|| connection.borrow().wants_read()).await;
                let lent = LineDecoder::lent(&mut []);
                let mut decoder = mem::replace(connection.borrow_mut().decoder_mut(), lent);
                let read = reader.read(decoder.space()).await;
                *connection.borrow_mut().decoder_mut() = decoder;
                let Some(read) = classify(read, DriveError::Read) else {
                    yield_now().await;
                    continue;
                };
                connection.borrow_mut().handle_read(read, clock.now());
                moved.set(true);
                pause().await;
            }
        };
        let writing = async {
            loop {
                let length = connection.borrow_mut().fill(output);
                let needs_flush = connection.borrow().needs_flush();
                let written = if length > 0 {
                    let took = || connection.borrow_mut().handle_written(clock.now());
                    write(&mut writer, &output[..length], took).await
                } else if needs_flush && !output.is_empty() {
                    flush(&mut writer).await.map(|()| connection.borrow_mut().handle_flushed())
                } else {
                    pause().await;
                    Ok(())
                };
                if let Err(fault) = written {
                    connection.borrow_mut().handle_write_error(fault, clock.now());
                }
            }
        };
        let waiting = async {
            loop {
                let deadline = connection.borrow().poll_timeout();
                let changed = until(|| connection.borrow().poll_timeout() != deadline);
                match deadline {
                    Some(deadline) if deadline > clock.now() => {
                        first(clock.wait_until(deadline), changed).await;
                    }
                    Some(_) => {
                        moved.set(true);
                        pause().await;
                    }
                    None => changed.await,
                }
            }
        };
        let mut reading = pin!(reading);
        let mut writing = pin!(writing);
        let mut waiting = pin!(waiting);
        poll_fn(|cx| {
            connection.borrow_mut().reset_budget();
            loop {
                moved.set(false);
                let action = connection.borrow_mut().advance(cx, clock.now());
                match action {
                    Action::Write => {
                        let _: Poll<()> = writing.as_mut().poll(cx);
                    }
                    Action::Wait => {
                        let _: Poll<()> = reading.as_mut().poll(cx);
                        let _: Poll<()> = waiting.as_mut().poll(cx);
                        if !moved.get() {
                            return Poll::Pending;
                        }
                    }
                    Action::Yield => {
                        cx.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                    Action::Close | Action::Restart | Action::Done => {
                        return Poll::Ready(connection.borrow_mut().finish());
                    }
                }
            }
        })
        .await
    }
}

pub(crate) async fn write<R: Error, W: Write>(
    writer: &mut W,
    mut bytes: &[u8],
    took: impl Fn(),
) -> Result<(), Fault<DriveError<R, W::Error>>> {
    while !bytes.is_empty() {
        match classify(writer.write(bytes).await, DriveError::Write) {
            Some(Ok(0)) => return Err(Fault::Broken(DriveError::WriteZero)),
            Some(Ok(length)) => {
                bytes = bytes.get(length..).unwrap_or_default();
                took();
            }
            Some(Err(fault)) => return Err(fault),
            None => yield_now().await,
        }
    }
    Ok(())
}

pub(crate) async fn flush<R: Error, W: Write>(
    writer: &mut W,
) -> Result<(), Fault<DriveError<R, W::Error>>> {
    loop {
        match classify(writer.flush().await, DriveError::Write) {
            Some(flushed) => return flushed,
            None => yield_now().await,
        }
    }
}

/// Waits until `condition` holds. It is checked whenever the driver is polled.
pub(crate) async fn until(condition: impl Fn() -> bool) {
    poll_fn(|_| if condition() { Poll::Ready(()) } else { Poll::Pending }).await;
}

/// Yields to other tasks: the executor polls the driver again.
pub(crate) async fn yield_now() {
    let first = Cell::new(true);
    poll_fn(|cx| {
        if !first.replace(false) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Yields to the other parts.
pub(crate) async fn pause() {
    let first = Cell::new(true);
    until(|| !first.replace(false)).await;
}

/// Waits for the first of two futures.
pub(crate) async fn first(one: impl Future<Output = ()>, other: impl Future<Output = ()>) {
    let (mut one, mut other) = (pin!(one), pin!(other));
    poll_fn(|cx| {
        if one.as_mut().poll(cx).is_ready() { Poll::Ready(()) } else { other.as_mut().poll(cx) }
    })
    .await;
}

mcp_sansio::partial_debug! {
    impl<E: fmt::Debug, R: Read, W: Write, C> Debug for Driver<'_, E, R, W, C> { connection, .. }
}

/// Puts the messages on a line into packets with a checksum, for either driver. Both sides of the
/// line must do so.
///
/// A damaged packet is refused like a damaged line of text, with an error that names no request,
/// and the connection continues. A call whose request or response it was ends at its deadline.
///
/// ```
/// use embedded_io::{Read, ReadReady, Write};
/// use mcp_sansio_embedded::{PacketFraming, PolledDriver, Server, packets};
///
/// # fn start<R: Read + ReadReady, W: Write>(uart_rx: R, uart_tx: W, server: Server)
/// # -> Result<(), Box<dyn core::error::Error>> {
/// let (reader, writer) = packets(PacketFraming::Cobs, uart_rx, uart_tx);
/// let mut line = [0; 1024];
/// let mut driver = PolledDriver::new(server.endpoint(42)?, reader, writer, &mut line);
/// # Ok(())
/// # }
/// ```
pub const fn packets<R, W>(
    framing: PacketFraming,
    reader: R,
    writer: W,
) -> (PacketReader<R>, PacketWriter<W>) {
    let input = [0; INPUT_LENGTH + 1];
    let decoder = PacketDecoder::new(framing);
    let reader = PacketReader { reader, decoder, input, start: 0, end: 0, has_ended: false };
    (reader, PacketWriter { writer, encoder: PacketEncoder::new(framing) })
}

/// How many bytes a [`PacketReader`] reads at once: more than the queue of most UARTs has.
const INPUT_LENGTH: usize = 64;

/// The half of a line that receives [`packets`], and reads as lines of text.
#[derive(Debug)]
pub struct PacketReader<R> {
    reader: R,
    decoder: PacketDecoder,
    /// Bytes of lines are `start..end`. Bytes of packets are read behind the first byte, because
    /// they may be one byte longer when decoded.
    input: [u8; INPUT_LENGTH + 1],
    start: usize,
    end: usize,
    has_ended: bool,
}

impl<R> PacketReader<R> {
    /// Returns the number of damaged packets until now, up to the maximum of its type.
    #[must_use]
    pub const fn damaged(&self) -> u32 {
        self.decoder.damaged()
    }

    /// Returns whether bytes must be read before there are lines.
    const fn is_empty(&self) -> bool {
        self.start == self.end && !self.has_ended
    }

    /// Decodes `length` bytes, or the end of the input.
    fn decode(&mut self, length: usize) {
        self.has_ended = length == 0;
        (self.start, self.end) = (0, 0);
        for index in 0..length {
            let decoded = self.decoder.decode(self.input[1 + index]);
            self.input[self.end..][..decoded.len()].copy_from_slice(decoded);
            self.end += decoded.len();
        }
    }

    /// Moves decoded bytes to `buffer`. Returns their number: zero at the end of the input, after
    /// which the next read continues.
    fn take(&mut self, buffer: &mut [u8]) -> usize {
        let length = buffer.len().min(self.end - self.start);
        buffer[..length].copy_from_slice(&self.input[self.start..][..length]);
        self.start += length;
        self.has_ended &= length > 0;
        length
    }
}

impl<R: ErrorType> ErrorType for PacketReader<R> {
    type Error = R::Error;
}

impl<R: Read> Read for PacketReader<R> {
    async fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Self::Error> {
        while self.is_empty() && !buffer.is_empty() {
            let length = self.reader.read(&mut self.input[1..]).await?;
            self.decode(length);
        }
        Ok(self.take(buffer))
    }
}

impl<R: embedded_io::Read> embedded_io::Read for PacketReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Self::Error> {
        while self.is_empty() && !buffer.is_empty() {
            let length = self.reader.read(&mut self.input[1..])?;
            self.decode(length);
        }
        Ok(self.take(buffer))
    }
}

impl<R: embedded_io::Read + ReadReady> ReadReady for PacketReader<R> {
    /// Reads what is ready until a byte is decoded, which takes ten bytes at the most.
    fn read_ready(&mut self) -> Result<bool, Self::Error> {
        while self.is_empty() && self.reader.read_ready()? {
            let length = self.reader.read(&mut self.input[1..])?;
            self.decode(length);
        }
        Ok(!self.is_empty())
    }
}

/// The half of a line that sends [`packets`]. It takes lines of text, and holds up to 266 bytes of
/// a packet until it is flushed.
#[derive(Debug)]
pub struct PacketWriter<W> {
    writer: W,
    encoder: PacketEncoder,
}

impl<W: ErrorType> ErrorType for PacketWriter<W> {
    type Error = W::Error;
}

impl<W: Write> Write for PacketWriter<W> {
    /// Returns 0 if the writer accepts no bytes.
    async fn write(&mut self, lines: &[u8]) -> Result<usize, Self::Error> {
        while !self.encoder.pending().is_empty() {
            match self.writer.write(self.encoder.pending()).await? {
                0 => return Ok(0),
                length => self.encoder.consume(length),
            }
        }
        Ok(self.encoder.feed(lines))
    }

    async fn flush(&mut self) -> Result<(), Self::Error> {
        // Writes what is pending.
        self.write(&[]).await?;
        self.writer.flush().await
    }
}

impl<W: embedded_io::Write> embedded_io::Write for PacketWriter<W> {
    /// Returns 0 if the writer accepts no bytes.
    fn write(&mut self, lines: &[u8]) -> Result<usize, Self::Error> {
        while !self.encoder.pending().is_empty() {
            match self.writer.write(self.encoder.pending())? {
                0 => return Ok(0),
                length => self.encoder.consume(length),
            }
        }
        Ok(self.encoder.feed(lines))
    }

    fn flush(&mut self) -> Result<(), Self::Error> {
        // Writes what is pending.
        embedded_io::Write::write(self, &[])?;
        self.writer.flush()
    }
}

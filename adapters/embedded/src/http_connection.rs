use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::fmt::{self, Write as _};
use core::future::poll_fn;
use core::mem;
use core::net::IpAddr;
use core::pin::pin;
use core::task::{Context, Poll};
use core::time::Duration;

use embedded_io::{Read, ReadReady, Write, WriteReady};
use mcp_sansio::http::{
    Admission, ExchangeId, RemoteAddress, RequestHead, Response, ResponseHead, ServerTransmit,
};
use mcp_sansio::peer::Status;
use mcp_sansio::stream::Fault;
use mcp_sansio::{Caller, Instant};
use mcp_sansio_handlers::handler::Threading;

use crate::driver::{classify, fault, first, flush, pause, until, write, yield_now};
use crate::{Clock, DriveError, HttpBuffers, HttpService, HttpServiceError, NextPoll};

type SocketFault<E> = Fault<DriveError<E, E>>;

/// The part of the input buffer behind a head that the body passes through.
const ROOM: usize = 64;

/// Header fields of a request. Browsers send about twenty.
const FIELDS_MAX: usize = 40;

/// How long the rest of a refused request is read, so that the client receives the refusal.
const DRAIN_TIME: Duration = Duration::from_secs(1);

/// Rounds of reading and writing in one poll.
const ROUNDS_MAX: usize = 16;

/// The server's side of one HTTP/1.1 connection, in lent memory: heads, bodies with a length or in
/// chunks, responses, event streams, and one request after the other.
///
/// It moves bytes between a socket and an [`HttpService`], which all connections share. A program
/// has as many as it lends memory for; a client needs two, because its event stream stays open.
///
/// * In a bare loop, [`poll`](Self::poll) it over a non-blocking socket. After
///   [`NextPoll::Closed`] it is ready for the next socket.
/// * On an executor, [`run`](Self::run) it over the halves of a socket.
///
/// A client that closes its write side before the response is complete counts as disconnected.
pub struct HttpConnection<'b> {
    buffers: HttpBuffers<'b>,
    remote: Option<RemoteAddress>,
    /// The bytes in the input buffer, and how many of them were used.
    filled: usize,
    used: usize,
    /// The bytes in the output buffer, and how many of them were sent.
    queued: usize,
    sent: usize,
    /// When the output must have been sent.
    stalled: Option<Instant>,
    /// Whether the client has ended its input.
    ended: bool,
    state: State,
}

enum State {
    /// A head is being received. `scanned` bytes do not contain its end.
    Head {
        scanned: usize,
        deadline: Option<Instant>,
    },
    /// A body is being received.
    Body(Incoming),
    /// The response has not started.
    Waiting {
        exchange: ExchangeId,
        request: Framing,
    },
    /// A head is being sent, with the body, if it is complete.
    Answering(Answer),
    /// Events are being sent.
    Streaming {
        exchange: ExchangeId,
        request: Framing,
    },
    /// The end of a response is being sent.
    Finishing {
        keeps: bool,
    },
    /// The rest of a refused request is discarded.
    Draining {
        deadline: Instant,
    },
    Closed,
}

struct Incoming {
    /// The length of the head in the input buffer.
    head: usize,
    admission: Admission,
    caller: Caller,
    request: Framing,
    encoding: BodyEncoding,
    /// The length of the body in its buffer.
    length: usize,
    deadline: Instant,
}

struct Answer {
    response: Response,
    request: Framing,
    /// The exchange whose events follow the head.
    exchange: Option<ExchangeId>,
    /// How many bytes of the text were queued.
    position: usize,
    /// Whether a part of the request is not going to be read.
    drains: bool,
}

/// How a response has to be framed for its request.
#[derive(Clone, Copy)]
struct Framing {
    /// The response has no body, whatever it says.
    is_head: bool,
    /// HTTP/1.0, which has no chunks.
    is_old: bool,
    /// Whether another request may follow.
    keeps: bool,
}

/// The framing of a body, with the state of its decoder.
#[derive(Clone, Copy)]
enum BodyEncoding {
    /// The remaining length.
    Length(usize),
    Chunked(Chunk),
}

/// A chunked body between two bytes. Lines must end with CR LF, because intermediaries disagree
/// about others.
// RFC 9112, section 7.1
#[derive(Clone, Copy)]
enum Chunk {
    Size { size: usize, digits: u8 },
    Extension { size: usize, length: u8 },
    SizeEnd { size: usize },
    Data { left: usize },
    DataEnd,
    DataLineEnd,
    Trailer { total: u8, is_empty: bool },
    TrailerEnd { total: u8, is_empty: bool },
    Done,
}

impl Chunk {
    const START: Self = Self::Size { size: 0, digits: 0 };

    /// Takes a byte of the framing. `None` if it is invalid, or longer than a client needs.
    fn next(self, byte: u8) -> Option<Self> {
        Some(match (self, byte) {
            (Self::Size { size, digits: 1.. }, b'\r') => Self::SizeEnd { size },
            (Self::Size { size, digits: 1.. }, b';' | b' ' | b'\t') => {
                Self::Extension { size, length: 0 }
            }
            (Self::Size { size, digits: digits @ 0..=6 }, _) => {
                let digit = char::from(byte).to_digit(16)? as usize;
                Self::Size { size: size << 4 | digit, digits: digits + 1 }
            }
            (Self::Extension { size, .. }, b'\r') => Self::SizeEnd { size },
            (Self::Extension { size, length }, _) if byte != b'\n' => {
                Self::Extension { size, length: length.checked_add(1)? }
            }
            (Self::SizeEnd { size: 0 }, b'\n') => Self::Trailer { total: 0, is_empty: true },
            (Self::SizeEnd { size }, b'\n') => Self::Data { left: size },
            (Self::DataEnd, b'\r') => Self::DataLineEnd,
            (Self::DataLineEnd, b'\n') => Self::START,
            (Self::Trailer { total, is_empty }, b'\r') => Self::TrailerEnd { total, is_empty },
            (Self::Trailer { total, .. }, _) if byte != b'\n' => {
                Self::Trailer { total: total.checked_add(1)?, is_empty: false }
            }
            (Self::TrailerEnd { is_empty: true, .. }, b'\n') => Self::Done,
            (Self::TrailerEnd { total, .. }, b'\n') => Self::Trailer { total, is_empty: true },
            _ => return None,
        })
    }
}

/// A parsed head.
struct Head<'h> {
    method: &'h str,
    target: &'h str,
    is_old: bool,
    fields: [httparse::Header<'h>; FIELDS_MAX],
    count: usize,
}

impl<'h> Head<'h> {
    /// Parses a complete head.
    fn parse(bytes: &'h [u8]) -> Result<Self, Status> {
        let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
        let mut request = httparse::Request::new(&mut fields);
        match request.parse(bytes) {
            Ok(httparse::Status::Complete(_)) => {}
            Err(httparse::Error::TooManyHeaders) => {
                return Err(Status::REQUEST_HEADER_FIELDS_TOO_LARGE);
            }
            _ => return Err(Status::BAD_REQUEST),
        }
        let parsed = (request.method, request.path, request.version);
        let (Some(method), Some(target), Some(version)) = parsed else {
            return Err(Status::BAD_REQUEST);
        };
        let count = request.headers.len();
        Ok(Self { method, target, is_old: version == 0, fields, count })
    }

    fn fields(&self) -> &[httparse::Header<'h>] {
        &self.fields[..self.count]
    }

    fn values(&self, name: &str) -> impl Iterator<Item = &'h [u8]> {
        let is_named = move |field: &&httparse::Header<'h>| field.name.eq_ignore_ascii_case(name);
        self.fields().iter().filter(is_named).map(|field| field.value)
    }

    /// Whether a field that is a list has this element.
    fn lists(&self, name: &str, element: &str) -> bool {
        self.values(name)
            .flat_map(|value| value.split(|byte| *byte == b','))
            .any(|listed| listed.trim_ascii().eq_ignore_ascii_case(element.as_bytes()))
    }

    fn to_request(&self, remote: Option<RemoteAddress>) -> RequestHead<'h> {
        let mut head = RequestHead::new(self.method, self.target);
        if let Some(remote) = remote {
            head.remote_address(remote);
        }
        head.http_version(if self.is_old { "1.0" } else { "1.1" });
        // RFC 9112, section 3.2.2: a target in absolute form has the host, which must not
        // contradict the field.
        if let Some((_, rest)) = self.target.split_once("://")
            && !self.target.starts_with('/')
        {
            let host = rest.split(['/', '?']).next().unwrap_or_default();
            head.field("host", host.as_bytes());
        }
        for field in self.fields() {
            head.field(field.name, field.value);
        }
        head
    }

    fn framing(&self) -> Framing {
        let keeps = if self.is_old {
            self.lists("connection", "keep-alive")
        } else {
            !self.lists("connection", "close")
        };
        Framing { is_head: self.method == "HEAD", is_old: self.is_old, keeps }
    }

    /// Returns how the body is framed. Refuses what software in front of the device could read
    /// differently.
    // RFC 9112, sections 3.2 and 6.3
    fn body(&self) -> Result<BodyEncoding, Status> {
        if self.values("host").nth(1).is_some() {
            return Err(Status::BAD_REQUEST);
        }
        let mut lengths = self.values("content-length").map(<[u8]>::trim_ascii);
        let length = lengths.next();
        let mut codings = self.values("transfer-encoding");
        if let Some(coding) = codings.next() {
            let is_chunked = coding.trim_ascii().eq_ignore_ascii_case(b"chunked");
            return if is_chunked && codings.next().is_none() && length.is_none() && !self.is_old {
                Ok(BodyEncoding::Chunked(Chunk::START))
            } else {
                Err(Status::BAD_REQUEST)
            };
        }
        let Some(length) = length else { return Ok(BodyEncoding::Length(0)) };
        let digits = core::str::from_utf8(length).unwrap_or_default();
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number || lengths.any(|other| other != length) {
            return Err(Status::BAD_REQUEST);
        }
        // A number that does not fit is longer than any buffer.
        Ok(BodyEncoding::Length(digits.parse().unwrap_or(usize::MAX)))
    }
}

/// A part of a text, which begins after some bytes and ends where the memory does.
struct Part<'o> {
    memory: &'o mut [u8],
    /// The bytes that are still to be left out.
    skipped: usize,
    length: usize,
    /// The length of the whole text.
    total: usize,
}

impl<'o> Part<'o> {
    fn new(memory: &'o mut [u8], skipped: usize) -> Self {
        Self { memory, skipped, length: 0, total: 0 }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len();
        let left_out = self.skipped.min(bytes.len());
        self.skipped -= left_out;
        let room = &mut self.memory[self.length..];
        let count = room.len().min(bytes.len() - left_out);
        room[..count].copy_from_slice(&bytes[left_out..left_out + count]);
        self.length += count;
    }
}

impl fmt::Write for Part<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text.as_bytes());
        Ok(())
    }
}

impl Answer {
    /// Writes the whole text into `part`.
    fn write(&self, part: &mut Part<'_>) -> fmt::Result {
        let Self { response, request, exchange, .. } = self;
        let head = &response.head;
        write!(part, "HTTP/1.1 {} {}\r\n", head.status.0, reason(head.status))?;
        for (name, value) in head.fields() {
            if !value.bytes().any(|byte| byte.is_ascii_control()) {
                write!(part, "{name}: {value}\r\n")?;
            }
        }
        if exchange.is_none() {
            // RFC 9110, section 8.6
            if !matches!(head.status.0, 204 | 304) {
                write!(part, "content-length: {}\r\n", response.body.len())?;
            }
        } else if !request.is_old {
            part.write_str("transfer-encoding: chunked\r\n")?;
        }
        match (request.keeps, request.is_old) {
            (false, _) => part.write_str("connection: close\r\n")?,
            (true, true) => part.write_str("connection: keep-alive\r\n")?,
            (true, false) => {}
        }
        part.write_str("\r\n")?;
        if !request.is_head {
            part.push(&response.body);
        }
        Ok(())
    }
}

/// Returns the reason phrase of the statuses that servers of this protocol send.
const fn reason(status: Status) -> &'static str {
    match status {
        Status::OK => "OK",
        Status::ACCEPTED => "Accepted",
        Status::NO_CONTENT => "No Content",
        Status::BAD_REQUEST => "Bad Request",
        Status::UNAUTHORIZED => "Unauthorized",
        Status::FORBIDDEN => "Forbidden",
        Status::NOT_FOUND => "Not Found",
        Status::METHOD_NOT_ALLOWED => "Method Not Allowed",
        Status::NOT_ACCEPTABLE => "Not Acceptable",
        Status::REQUEST_TIMEOUT => "Request Timeout",
        Status::CONTENT_TOO_LARGE => "Content Too Large",
        Status::UNSUPPORTED_MEDIA_TYPE => "Unsupported Media Type",
        Status::TOO_MANY_REQUESTS => "Too Many Requests",
        Status::REQUEST_HEADER_FIELDS_TOO_LARGE => "Request Header Fields Too Large",
        // Clients must ignore it: RFC 9112, section 4.
        _ => "",
    }
}

/// A response without a body.
fn bare(status: Status) -> Response {
    Response::new(ResponseHead::new(status, None), Vec::new())
}

impl<K: Threading> HttpService<K> {
    /// Creates a connection of this service.
    ///
    /// # Errors
    ///
    /// A buffer is too short.
    pub fn connection<'b>(
        &self,
        buffers: HttpBuffers<'b>,
    ) -> Result<HttpConnection<'b>, HttpServiceError> {
        let chunk = self.server().machine().options().limits_ref().chunk_bytes_max;
        buffers.check(chunk)?;
        Ok(HttpConnection {
            buffers,
            remote: None,
            filled: 0,
            used: 0,
            queued: 0,
            sent: 0,
            stalled: None,
            ended: false,
            state: State::Head { scanned: 0, deadline: None },
        })
    }
}

impl HttpConnection<'_> {
    /// Sets the address of the client, which its share of the server's limits is for, until the end
    /// of the connection.
    pub fn set_remote_address(&mut self, address: IpAddr) {
        self.remote = Some(address.into());
    }

    /// Does all the work that is possible at `now`, over a socket that does not block: it reads
    /// when [`ReadReady`] says so, and writes when [`WriteReady`] does.
    ///
    /// [`NextPoll::Wait`] means: until the socket is ready, the service [was
    /// woken](HttpService::is_woken), or the time, whichever comes first. After
    /// [`NextPoll::Closed`], close the socket. The connection is then ready for another one, whose
    /// address must be [set](Self::set_remote_address) again.
    ///
    /// # Errors
    ///
    /// The socket broke, other than by a disconnect, which ends the connection like
    /// [`NextPoll::Closed`]. Other connections are not affected.
    pub fn poll<K: Threading, S: Read + ReadReady + Write + WriteReady>(
        &mut self,
        service: &mut HttpService<K>,
        socket: &mut S,
        now: Instant,
    ) -> Result<NextPoll, DriveError<S::Error, S::Error>> {
        let waker = service.waker();
        let cx = Context::from_waker(&waker);
        for _ in 0..ROUNDS_MAX {
            let moved = self.transfer(socket);
            self.advance(service, &cx, now);
            let ended = match moved {
                Ok(_) if self.is_closed() => Some(Ok(NextPoll::Closed)),
                // A flush that must be tried again comes first.
                Err(None) if self.is_closed() && self.stalled.is_none() => {
                    Some(Ok(NextPoll::Closed))
                }
                Ok(false) if !self.has_output() => Some(Ok(NextPoll::Wait(self.poll_timeout()))),
                Ok(false) => match socket.write_ready() {
                    Ok(false) => Some(Ok(NextPoll::Wait(self.poll_timeout()))),
                    _ => None,
                },
                Ok(true) => None,
                Err(None) => Some(Ok(NextPoll::Now)),
                Err(Some(Fault::Broken(error))) => Some(Err(error)),
                Err(Some(_)) => Some(Ok(NextPoll::Closed)),
            };
            if let Some(ended) = ended {
                if matches!(ended, Ok(NextPoll::Closed) | Err(_)) {
                    self.reset(service, now);
                }
                return ended;
            }
        }
        Ok(NextPoll::Now)
    }

    /// Reads and writes what the socket has and takes. Returns whether there was any. The error is
    /// `None` if it must be tried again.
    fn transfer<S: Read + ReadReady + Write + WriteReady>(
        &mut self,
        socket: &mut S,
    ) -> Result<bool, Option<SocketFault<S::Error>>> {
        let mut moved = Ok(false);
        let broken = |error| fault(error, DriveError::Read);
        if self.wants_read() && socket.read_ready().map_err(broken)? {
            let read = socket.read(&mut self.buffers.input[self.filled..]);
            // Output does not wait for a read that must be tried again.
            moved = classify(read, DriveError::Read).transpose()?.map_or(Err(None), |length| {
                self.handle_read(length);
                Ok(true)
            });
        }
        let broken = |error| fault(error, DriveError::Write);
        while self.has_output() && socket.write_ready().map_err(broken)? {
            match socket.write(&self.buffers.output[self.sent..self.queued]).map_err(broken)? {
                0 => return Err(Some(Fault::Broken(DriveError::WriteZero))),
                length => self.sent = (self.sent + length).min(self.queued),
            }
            moved = moved.and(Ok(true));
        }
        if !self.has_output() && self.stalled.is_some() {
            socket.flush().map_err(broken)?;
            self.stalled = None;
        }
        moved
    }

    /// Runs the connection over the halves of a socket, on an executor, until it is over. Dropping
    /// the future disconnects the client.
    ///
    /// Run the [service](HttpService::run) concurrently.
    ///
    /// # Errors
    ///
    /// The socket broke, other than by a disconnect.
    pub async fn run<K, R, W>(
        self,
        service: &RefCell<HttpService<K>>,
        mut reader: R,
        mut writer: W,
        clock: &impl Clock,
    ) -> Result<(), DriveError<R::Error, W::Error>>
    where
        K: Threading,
        R: embedded_io_async::Read,
        W: embedded_io_async::Write,
    {
        let guard = Guard { connection: RefCell::new(self), service, clock };
        let connection = &guard.connection;
        // As in `Driver`: the parts wait for each other by being polled again, and none holds a
        // borrow across an `await`.
        let moved = Cell::new(false);
        let broken = Cell::new(None);
        let reading = async {
            let mut bytes = [0; 128];
            loop {
                until(|| connection.borrow().wants_read()).await;
                let most = bytes.len().min(connection.borrow().room());
                match classify(reader.read(&mut bytes[..most]).await, DriveError::Read) {
                    Some(Ok(length)) => connection.borrow_mut().take(&bytes[..length.min(most)]),
                    Some(Err(fault)) => broken.set(Some(fault)),
                    None => {
                        yield_now().await;
                        continue;
                    }
                }
                moved.set(true);
                pause().await;
            }
        };
        let writing = async {
            loop {
                until(|| connection.borrow().has_output()).await;
                let (output, from, to) = {
                    let connection = &mut *connection.borrow_mut();
                    (mem::take(&mut connection.buffers.output), connection.sent, connection.queued)
                };
                let mut result = write(&mut writer, &output[from..to], || ()).await;
                if result.is_ok() {
                    result = flush(&mut writer).await;
                }
                if let Err(error) = result {
                    broken.set(Some(error));
                }
                {
                    let connection = &mut *connection.borrow_mut();
                    connection.buffers.output = output;
                    connection.sent = connection.queued;
                    connection.stalled = None;
                }
                moved.set(true);
                pause().await;
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
                    // The next round handles it.
                    Some(_) => {}
                    None => changed.await,
                }
                moved.set(true);
                pause().await;
            }
        };
        let (mut reading, mut writing) = (pin!(reading), pin!(writing));
        let mut waiting = pin!(waiting);
        poll_fn(|cx| {
            for _ in 0..ROUNDS_MAX {
                moved.set(false);
                {
                    let connection = &mut *connection.borrow_mut();
                    connection.advance(&mut service.borrow_mut(), cx, clock.now());
                    if connection.is_closed() {
                        return Poll::Ready(Ok(()));
                    }
                }
                let _: Poll<()> = writing.as_mut().poll(cx);
                let _: Poll<()> = reading.as_mut().poll(cx);
                match broken.take() {
                    None => {}
                    Some(Fault::Broken(error)) => return Poll::Ready(Err(error)),
                    Some(_) => return Poll::Ready(Ok(())),
                }
                let _: Poll<()> = waiting.as_mut().poll(cx);
                if !moved.get() {
                    return Poll::Pending;
                }
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await
    }

    /// Abandons the client: the connection is then ready for another socket. Needed only if the
    /// socket is given up before [`poll`](Self::poll) reports its end.
    pub fn reset<K: Threading>(&mut self, service: &mut HttpService<K>, now: Instant) {
        if let Some(exchange) = self.exchange() {
            service.disconnect(exchange, now);
        }
        (self.filled, self.used, self.queued, self.sent) = (0, 0, 0, 0);
        (self.remote, self.stalled, self.ended) = (None, None, false);
        self.state = State::Head { scanned: 0, deadline: None };
    }

    // ------------------------------------------------------------------ for the drivers

    /// Whether the client's next bytes can be taken.
    fn wants_read(&self) -> bool {
        !self.ended && self.room() > 0
    }

    const fn room(&self) -> usize {
        self.buffers.input.len() - self.filled
    }

    /// Takes as many bytes as were read into the input buffer; none is the end of the input.
    const fn handle_read(&mut self, length: usize) {
        self.ended = length == 0;
        // A reader that claims more than it was lent breaks its contract.
        let length = if length > self.room() { self.room() } else { length };
        self.filled += length;
    }

    fn take(&mut self, bytes: &[u8]) {
        let room = &mut self.buffers.input[self.filled..];
        room[..bytes.len()].copy_from_slice(bytes);
        self.handle_read(bytes.len());
    }

    const fn has_output(&self) -> bool {
        self.sent < self.queued
    }

    const fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match &self.state {
            _ if self.has_output() => self.stalled,
            State::Head { deadline, .. } => *deadline,
            State::Body(incoming) => Some(incoming.deadline),
            State::Draining { deadline } => Some(*deadline),
            _ => None,
        }
    }

    /// The exchange whose response is not complete.
    const fn exchange(&self) -> Option<ExchangeId> {
        match &self.state {
            State::Waiting { exchange, .. } | State::Streaming { exchange, .. } => Some(*exchange),
            State::Answering(answer) => answer.exchange,
            _ => None,
        }
    }

    /// Handles what was received, and fills the output.
    fn advance<K: Threading>(
        &mut self,
        service: &mut HttpService<K>,
        cx: &Context<'_>,
        now: Instant,
    ) {
        if let Some(exchange) = self.exchange()
            && (self.ended || self.has_output() && service.server().is_aborted(exchange))
        {
            return self.close(service, now);
        }
        if self.stalled.is_some_and(|stalled| stalled <= now) {
            return self.close(service, now);
        }
        while !self.has_output() && self.step(service, cx, now) {}
        if self.has_output() && self.stalled.is_none() {
            self.stalled = Some(now + service.stall_timeout);
        }
        service.update_timer();
    }

    fn close<K: Threading>(&mut self, service: &mut HttpService<K>, now: Instant) {
        self.reset(service, now);
        self.state = State::Closed;
    }

    /// Does one step without output. Returns whether there may be another.
    fn step<K: Threading>(
        &mut self,
        service: &mut HttpService<K>,
        cx: &Context<'_>,
        now: Instant,
    ) -> bool {
        match &mut self.state {
            State::Head { .. } => self.receive_head(service, now),
            State::Body(_) => self.receive_body(service, now),
            State::Waiting { exchange, request } => {
                let (exchange, request) = (*exchange, *request);
                let answer = match service.poll_transmit(exchange, cx, now) {
                    None => return false,
                    Some(ServerTransmit::Respond(response)) => (response, None),
                    Some(ServerTransmit::Open(head)) => {
                        (Response::new(head, Vec::new()), Some(exchange))
                    }
                    Some(_) => {
                        self.close(service, now);
                        return false;
                    }
                };
                self.answer(answer.0, request, answer.1, false);
                true
            }
            State::Answering(answer) => {
                let mut part = Part::new(self.buffers.output, answer.position);
                // Writing to memory does not fail.
                let _written = answer.write(&mut part);
                let (length, total) = (part.length, part.total);
                answer.position += length;
                (self.queued, self.sent) = (length, 0);
                if answer.position == total {
                    let request = answer.request;
                    self.state = match answer.exchange {
                        Some(exchange) => State::Streaming { exchange, request },
                        None if answer.drains => State::Draining { deadline: now + DRAIN_TIME },
                        None => State::Finishing { keeps: request.keeps },
                    };
                }
                true
            }
            State::Streaming { exchange, request } => {
                let request = *request;
                let mut part = Part::new(self.buffers.output, 0);
                match service.poll_transmit(*exchange, cx, now) {
                    None => return false,
                    // An empty chunk would end the body.
                    Some(ServerTransmit::Chunk([])) => {}
                    Some(ServerTransmit::Chunk(bytes)) if request.is_old => part.push(bytes),
                    Some(ServerTransmit::Chunk(bytes)) => {
                        // Writing to memory does not fail, and a chunk fits.
                        let _written = write!(part, "{:x}\r\n", bytes.len());
                        part.push(bytes);
                        part.push(b"\r\n");
                    }
                    Some(ServerTransmit::Finish) => {
                        part.push(if request.is_old { b"" } else { b"0\r\n\r\n" });
                        self.state = State::Finishing { keeps: request.keeps };
                    }
                    Some(_) => {
                        self.close(service, now);
                        return false;
                    }
                }
                (self.queued, self.sent) = (part.length, 0);
                true
            }
            State::Finishing { keeps } => {
                if !*keeps {
                    self.state = State::Closed;
                    return false;
                }
                self.buffers.input.copy_within(self.used..self.filled, 0);
                (self.filled, self.used) = (self.filled - self.used, 0);
                let deadline = Some(now + service.head_timeout);
                self.state = State::Head { scanned: 0, deadline };
                true
            }
            State::Draining { deadline } => {
                (self.filled, self.used) = (0, 0);
                if self.ended || *deadline <= now {
                    self.state = State::Closed;
                }
                false
            }
            State::Closed => false,
        }
    }

    /// Starts a response.
    fn answer(
        &mut self,
        response: Response,
        mut request: Framing,
        exchange: Option<ExchangeId>,
        drains: bool,
    ) {
        // RFC 9112, section 9.3: chunks end an event stream; at HTTP/1.0 the connection's end does.
        request.keeps &= exchange.is_none() || !request.is_old;
        let answer = Answer { response, request, exchange, position: 0, drains };
        self.state = State::Answering(answer);
    }

    /// Refuses a request whose end is unknown or not going to be read.
    fn refuse(&mut self, response: Response, is_head: bool) {
        let request = Framing { is_head, is_old: false, keeps: false };
        self.answer(response, request, None, true);
    }

    fn receive_head<K: Threading>(&mut self, service: &mut HttpService<K>, now: Instant) -> bool {
        let State::Head { scanned, deadline } = &mut self.state else { return false };
        let deadline = *deadline.get_or_insert(now + service.head_timeout);
        // RFC 9112, section 2.2: empty lines before a request are ignored.
        let blank = |byte: &u8| matches!(byte, b'\r' | b'\n');
        let received = &self.buffers.input[..self.filled];
        let empty = received.iter().take_while(|byte| blank(byte)).count();
        if empty > 0 {
            self.buffers.input.copy_within(empty..self.filled, 0);
            (self.filled, *scanned) = (self.filled - empty, 0);
        }
        let received = &self.buffers.input[..self.filled];
        let end = head_end(received, *scanned);
        // The last bytes may be the first of the end.
        *scanned = self.filled.saturating_sub(3);
        let most = self.buffers.input.len() - ROOM;
        match end {
            Some(end) if end <= most => return self.admit(service, end, now),
            None if self.filled <= most => {}
            _ => {
                self.refuse(bare(Status::REQUEST_HEADER_FIELDS_TOO_LARGE), false);
                return true;
            }
        }
        if self.ended || deadline <= now && self.filled == 0 {
            self.state = State::Closed;
        } else if deadline <= now {
            self.refuse(bare(Status::REQUEST_TIMEOUT), false);
            return true;
        }
        false
    }

    /// Decides about a request whose head ends at `end`.
    // Not inlined, so that the stack for the head is free while a request is handled.
    #[inline(never)]
    fn admit<K: Threading>(&mut self, service: &HttpService<K>, end: usize, now: Instant) -> bool {
        self.used = end;
        let head = match Head::parse(&self.buffers.input[..end]) {
            Ok(head) => head,
            Err(status) => {
                self.refuse(bare(status), false);
                return true;
            }
        };
        let request = head.framing();
        let encoding = match head.body() {
            Ok(encoding) => encoding,
            Err(status) => {
                self.refuse(bare(status), request.is_head);
                return true;
            }
        };
        let caller = match self.remote {
            Some(remote) => Caller::ANONYMOUS.with_extension(remote),
            None => Caller::ANONYMOUS,
        };
        let message = head.to_request(self.remote);
        let admitted =
            service.admit(&message, caller, |name| head.values(name).collect::<Vec<_>>());
        let most = self.buffers.body.len();
        let admitted = match (admitted, encoding) {
            (Ok(_), BodyEncoding::Length(length)) if length > most => {
                Err(service.reader().body_too_long())
            }
            (admitted, _) => admitted,
        };
        let expects = head.values("expect").any(|it| it.eq_ignore_ascii_case(b"100-continue"));
        match admitted {
            Ok((admission, caller)) => {
                if expects && !request.is_old && self.used == self.filled {
                    let mut part = Part::new(self.buffers.output, 0);
                    part.push(b"HTTP/1.1 100 Continue\r\n\r\n");
                    (self.queued, self.sent) = (part.length, 0);
                }
                let deadline = now + admission.body_time;
                self.state = State::Body(Incoming {
                    head: end,
                    admission,
                    caller,
                    request,
                    encoding,
                    length: 0,
                    deadline,
                });
            }
            Err(response) if matches!(encoding, BodyEncoding::Length(0)) => {
                self.answer(response, request, None, false);
            }
            Err(response) => self.refuse(response, request.is_head),
        }
        true
    }

    // See `admit`.
    #[inline(never)]
    fn receive_body<K: Threading>(&mut self, service: &mut HttpService<K>, now: Instant) -> bool {
        let State::Body(incoming) = &mut self.state else { return false };
        let HttpBuffers { input, body, .. } = &mut self.buffers;
        let most = body.len().min(incoming.admission.body_bytes_max);
        let refused = loop {
            let received = &input[self.used..self.filled];
            let left = match &mut incoming.encoding {
                BodyEncoding::Length(0) | BodyEncoding::Chunked(Chunk::Done) => break None,
                BodyEncoding::Length(left) => left,
                BodyEncoding::Chunked(Chunk::Data { left }) => left,
                BodyEncoding::Chunked(chunk) => {
                    let Some(byte) = received.first() else { return self.await_body(service, now) };
                    let Some(next) = chunk.next(*byte) else {
                        break Some(bare(Status::BAD_REQUEST));
                    };
                    *chunk = next;
                    self.used += 1;
                    continue;
                }
            };
            if *left > most - incoming.length {
                break Some(service.reader().body_too_long());
            }
            let count = received.len().min(*left);
            if count == 0 {
                return self.await_body(service, now);
            }
            body[incoming.length..incoming.length + count].copy_from_slice(&received[..count]);
            incoming.length += count;
            self.used += count;
            *left -= count;
            if let BodyEncoding::Chunked(chunk @ Chunk::Data { left: 0 }) = &mut incoming.encoding {
                *chunk = Chunk::DataEnd;
            }
        };
        let request = incoming.request;
        if let Some(response) = refused {
            self.refuse(response, request.is_head);
            return true;
        }
        // Parsed again, because it borrows from the buffer that the body arrived through.
        match Head::parse(&input[..incoming.head]) {
            Ok(head) => {
                let (message, body) = (head.to_request(self.remote), &body[..incoming.length]);
                let Incoming { admission, caller, .. } = incoming;
                let exchange = service.handle_request(*admission, &message, body, caller, now);
                self.state = State::Waiting { exchange, request };
            }
            Err(status) => self.refuse(bare(status), request.is_head),
        }
        true
    }

    /// Waits for more of a body, of which all received bytes were used.
    fn await_body<K: Threading>(&mut self, service: &HttpService<K>, now: Instant) -> bool {
        let State::Body(incoming) = &self.state else { return false };
        // The head stays.
        (self.filled, self.used) = (incoming.head, incoming.head);
        if self.ended {
            self.state = State::Closed;
        } else if incoming.deadline <= now {
            let is_head = incoming.request.is_head;
            self.refuse(service.reader().body_too_slow(), is_head);
            return true;
        }
        false
    }
}

/// Returns the length of a head in `received`, of which the first `scanned` bytes were searched.
fn head_end(received: &[u8], scanned: usize) -> Option<usize> {
    let rest = received.get(scanned..)?;
    let lines = rest.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    lines.map(|(index, _)| scanned + index + 1).find_map(|start| match received.get(start..)? {
        [b'\n', ..] => Some(start + 1),
        [b'\r', b'\n', ..] => Some(start + 2),
        _ => None,
    })
}

/// Disconnects the client when a future is done or dropped.
struct Guard<'c, 'b, K: Threading, C: Clock> {
    connection: RefCell<HttpConnection<'b>>,
    service: &'c RefCell<HttpService<K>>,
    clock: &'c C,
}

impl<K: Threading, C: Clock> Drop for Guard<'_, '_, K, C> {
    fn drop(&mut self) {
        let service = &mut *self.service.borrow_mut();
        self.connection.borrow_mut().reset(service, self.clock.now());
    }
}

mcp_sansio::partial_debug! { impl Debug for HttpConnection<'_> { ended, .. } }

//! Connections over HTTP, on scripted sockets and a manual clock, under both drivers.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::net::{IpAddr, Ipv4Addr};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use embedded_io_async::{ErrorKind, ErrorType, Read, ReadReady, Write};
use mcp_sansio_embedded as mcp;

use mcp::http::{AllowedHosts, HttpServerOptions, ServerLimits};
use mcp::jsonrpc::RawJson;
use mcp::peer::Limits;
use mcp::protocol::Tool;
use mcp::{
    Call, Clock, HttpAccess, HttpBuffers, HttpConnection, HttpService, HttpServiceError, Instant,
    Local, NextPoll, NoArguments, Server,
};

use crate::drivers::WakeCounter;

const TOKEN: &str = "0123456789abcdef";

// ------------------------------------------------------------------ a socket and a device

/// A socket whose other end is the test. Clones are its halves.
#[derive(Clone, Debug, Default)]
struct Socket(Rc<RefCell<Pipe>>);

#[derive(Debug, Default)]
struct Pipe {
    input: VecDeque<u8>,
    /// The most bytes that a read returns; 0: any number.
    most: usize,
    ended: bool,
    /// Fails every read, in this way.
    broken: Option<ErrorKind>,
    /// Fails every other operation, in these ways.
    fails: VecDeque<ErrorKind>,
    is_tried_again: bool,
    /// The number of flushes that time out.
    slow_flushes: usize,
    output: Vec<u8>,
    /// The bytes that the client still reads; `None`: all.
    reads: Option<usize>,
}

impl Pipe {
    fn interrupt(&mut self) -> Result<(), ErrorKind> {
        self.is_tried_again = !self.is_tried_again && !self.fails.is_empty();
        if self.is_tried_again {
            self.fails.rotate_left(1);
            return Err(self.fails[0]);
        }
        Ok(())
    }
}

impl Socket {
    fn send(&self, bytes: impl AsRef<[u8]>) {
        self.0.borrow_mut().input.extend(bytes.as_ref());
    }

    fn end(&self) {
        self.0.borrow_mut().ended = true;
    }

    /// Takes what the device has sent.
    fn received(&self) -> String {
        String::from_utf8(std::mem::take(&mut self.0.borrow_mut().output)).unwrap()
    }
}

impl ErrorType for Socket {
    type Error = ErrorKind;
}

impl ReadReady for Socket {
    fn read_ready(&mut self) -> Result<bool, ErrorKind> {
        let pipe = self.0.borrow();
        Ok(!pipe.input.is_empty() || pipe.ended || pipe.broken.is_some())
    }
}

impl embedded_io::WriteReady for Socket {
    fn write_ready(&mut self) -> Result<bool, ErrorKind> {
        Ok(self.0.borrow().reads != Some(0))
    }
}

impl embedded_io::Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, ErrorKind> {
        let pipe = &mut *self.0.borrow_mut();
        if let Some(kind) = pipe.broken {
            return Err(kind);
        }
        pipe.interrupt()?;
        let most = if pipe.most == 0 { usize::MAX } else { pipe.most };
        let length = pipe.input.len().min(buffer.len()).min(most);
        for (to, from) in buffer.iter_mut().zip(pipe.input.drain(..length)) {
            *to = from;
        }
        Ok(length)
    }
}

impl embedded_io::Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> Result<usize, ErrorKind> {
        let pipe = &mut *self.0.borrow_mut();
        pipe.interrupt()?;
        let length = pipe.reads.unwrap_or(usize::MAX).min(bytes.len());
        if let Some(reads) = &mut pipe.reads {
            *reads -= length;
        }
        pipe.output.extend_from_slice(&bytes[..length]);
        Ok(length)
    }

    fn flush(&mut self) -> Result<(), ErrorKind> {
        let pipe = &mut *self.0.borrow_mut();
        if pipe.slow_flushes > 0 {
            pipe.slow_flushes -= 1;
            return Err(ErrorKind::TimedOut);
        }
        pipe.interrupt()
    }
}

impl Read for Socket {
    async fn read(&mut self, buffer: &mut [u8]) -> Result<usize, ErrorKind> {
        poll_fn(|_| match self.read_ready() {
            Ok(true) => Poll::Ready(embedded_io::Read::read(self, buffer)),
            _ => Poll::Pending,
        })
        .await
    }
}

impl Write for Socket {
    async fn write(&mut self, bytes: &[u8]) -> Result<usize, ErrorKind> {
        poll_fn(|_| match self.0.borrow().reads {
            Some(0) => Poll::Pending,
            _ => Poll::Ready(()),
        })
        .await;
        embedded_io::Write::write(self, bytes)
    }

    async fn flush(&mut self) -> Result<(), ErrorKind> {
        self.0.borrow_mut().interrupt()
    }
}

#[derive(Clone, Default)]
struct ManualClock(Rc<Cell<u64>>, Rc<RefCell<Vec<(Instant, Waker)>>>);

impl ManualClock {
    /// Sets the time, and wakes the tasks whose timers are due.
    fn set(&self, millis: u64) {
        self.0.set(millis);
        for (_, waker) in self.1.borrow_mut().extract_if(.., |(at, _)| *at <= self.now()) {
            waker.wake();
        }
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Instant {
        Instant::from_millis(self.0.get())
    }

    async fn wait_until(&self, deadline: Instant) {
        poll_fn(|cx| {
            if deadline <= self.now() {
                return Poll::Ready(());
            }
            self.1.borrow_mut().push((deadline, cx.waker().clone()));
            Poll::Pending
        })
        .await;
    }
}

/// Lets the tool `wait` continue.
#[derive(Clone, Default)]
struct Gate {
    steps: Rc<Cell<u32>>,
    waker: Rc<RefCell<Option<Waker>>>,
    /// How many calls of it were given up.
    dropped: Rc<Cell<u32>>,
}

impl Gate {
    fn open(&self) {
        self.steps.set(self.steps.get() + 1);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    async fn pass(&self) {
        poll_fn(|cx| match self.steps.get() {
            0 => {
                self.waker.replace(Some(cx.waker().clone()));
                Poll::Pending
            }
            steps => {
                self.steps.set(steps - 1);
                Poll::Ready(())
            }
        })
        .await;
    }
}

struct CountDrop(Rc<Cell<u32>>);

impl Drop for CountDrop {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

fn server(gate: &Gate) -> Server<Local> {
    let schema = || RawJson::parse(r#"{"type":"object"}"#).unwrap();
    let gate = gate.clone();
    Server::local("thermometer", "1.0.0")
        .limits(Limits::SMALL)
        .tool_with(Tool::new("read", schema()), |_: Call<NoArguments>| "21.5 °C")
        .tool_with(Tool::new("wait", schema()), move |call: Call<NoArguments>| {
            let gate = gate.clone();
            async move {
                let dropped = CountDrop(Rc::clone(&gate.dropped));
                for step in [1.0, 2.0] {
                    gate.pass().await;
                    call.progress(step, Some(2.0), "waiting");
                }
                gate.pass().await;
                std::mem::forget(dropped);
                "done"
            }
        })
}

fn options() -> HttpServerOptions {
    HttpServerOptions::new().limits(ServerLimits::SMALL)
}

fn service(gate: &Gate, access: HttpAccess) -> HttpService {
    HttpService::new(&server(gate), options(), access, [7; 32], 42).unwrap()
}

fn anyone() -> HttpService {
    service(&Gate::default(), HttpAccess::Anyone)
}

/// The memory of a connection.
struct Memory {
    input: [u8; 1024],
    body: [u8; 768],
    output: [u8; 528],
}

impl Memory {
    const fn new() -> Self {
        Self { input: [0; 1024], body: [0; 768], output: [0; 528] }
    }

    fn connection(&mut self, service: &HttpService) -> HttpConnection<'_> {
        let Self { input, body, output } = self;
        service.connection(HttpBuffers { input, body, output }).unwrap()
    }
}

/// Polls a service and a connection until they wait. Returns the last result of the connection.
fn settle(
    service: &mut HttpService,
    connection: &mut HttpConnection<'_>,
    socket: &Socket,
    millis: u64,
) -> NextPoll {
    let now = Instant::from_millis(millis);
    for _ in 0..1000 {
        let _ = service.poll(now);
        let next = connection.poll(service, &mut socket.clone(), now).unwrap();
        match next {
            NextPoll::Closed => return next,
            NextPoll::Wait(_) if !service.is_woken() => return next,
            _ => {}
        }
    }
    panic!("it never waits");
}

/// Sends `bytes` on a new connection of a service. Returns what came back, and whether the
/// connection is still open.
fn exchange(service: &mut HttpService, bytes: impl AsRef<[u8]>, most: usize) -> (String, bool) {
    let (mut memory, socket) = (Memory::new(), Socket::default());
    let mut connection = memory.connection(service);
    socket.0.borrow_mut().most = most;
    socket.send(bytes);
    let open = settle(service, &mut connection, &socket, 0) != NextPoll::Closed;
    connection.reset(service, Instant::ZERO);
    (socket.received(), open)
}

/// Polls a future over a clock until it is done or nothing moves.
fn run<T>(mut future: std::pin::Pin<&mut impl Future<Output = T>>) -> Poll<T> {
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..200 {
        if let Poll::Ready(value) = future.as_mut().poll(&mut cx) {
            return Poll::Ready(value);
        }
    }
    Poll::Pending
}

// ------------------------------------------------------------------ messages

fn post(body: &str) -> String {
    post_with("", body)
}

fn post_with(fields: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost:80\r\nContent-Type: application/json\r\nAccept: \
         application/json, text/event-stream\r\nContent-Length: {length}\r\n{fields}\r\n{body}"
    )
}

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

fn initialize(revision: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{revision}","capabilities":{{}},"clientInfo":{{"name":"test","version":"1"}}}}}}"#
    )
}

/// A call at 2026-07-28, with its header fields.
fn modern(tool: &str) -> String {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{{"name":"{tool}","arguments":{{}},"_meta":{{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{{"name":"test","version":"1"}},"io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
    );
    let fields = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n";
    post_with(&format!("{fields}Mcp-Name: {tool}\r\n"), &body)
}

/// Returns the bodies in the chunks behind the first head.
fn unchunked(response: &str) -> String {
    let (_, mut rest) = response.split_once("\r\n\r\n").unwrap();
    let mut whole = String::new();
    while let Some((size, chunk)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        whole.push_str(&chunk[..size]);
        rest = chunk[size..].strip_prefix("\r\n").unwrap();
    }
    whole
}

fn field<'r>(response: &'r str, name: &str) -> Option<&'r str> {
    let head = response.split_once("\r\n\r\n").unwrap().0;
    let line = head.lines().find(|line| line.split(':').next() == Some(name))?;
    Some(line.split_once(": ").unwrap().1)
}

fn status(response: &str) -> &str {
    response.get(9..12).unwrap_or("none")
}

// ------------------------------------------------------------------ requests

#[test]
fn a_request_may_arrive_in_parts_of_any_length() {
    let whole = exchange(&mut anyone(), modern("read"), 0);
    assert!(whole.0.contains("21.5 °C") && whole.1, "{}", whole.0);
    for most in [1, 2, 3, 7, 64, 500] {
        assert_eq!(exchange(&mut anyone(), modern("read"), most), whole, "{most}");
    }
}

#[test]
fn a_request_may_be_cut_at_every_byte() {
    let request = modern("read");
    let whole = exchange(&mut anyone(), &request, 0).0;
    let (mut service, mut memory) = (anyone(), Memory::new());
    let mut connection = memory.connection(&service);
    for cut in 1..request.len() {
        let socket = Socket::default();
        socket.send(&request[..cut]);
        let _ = settle(&mut service, &mut connection, &socket, 0);
        assert_eq!(socket.received(), "", "{cut}");
        socket.send(&request[cut..]);
        let _ = settle(&mut service, &mut connection, &socket, 0);
        assert_eq!(socket.received(), whole, "{cut}");
    }
}

#[test]
fn requests_that_arrive_together_are_answered_in_order() {
    let first = post(&initialize("2025-11-25"));
    let both = format!("{first}\r\n{}{}", modern("read"), post(PING));
    let (answers, open) = exchange(&mut anyone(), both, 0);
    let starts = answers.match_indices("HTTP/1.1 ");
    let statuses: Vec<_> = starts.map(|(at, _)| &answers[at + 9..][..3]).collect();
    // The last one belongs to no session.
    assert_eq!(statuses, ["200", "200", "400"], "{answers}");
    assert!(answers.find("protocolVersion") < answers.find("21.5") && open);
}

#[test]
fn a_body_may_be_chunked() {
    let request = modern("read");
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let length = format!("Content-Length: {}", body.len());
    let head = head.replace(&length, "Transfer-Encoding: Chunked");
    let (a, b) = body.split_at(20);
    let framed = format!(
        "{head}\r\n\r\n14;name=\"value\"\r\n{a}\r\n{:X} \r\n{b}\r\n0\r\nField: 1\r\nOther: 2\r\n\r\n",
        b.len()
    );
    let (twice, most) = (format!("{framed}{framed}"), [0, 1, 3]);
    for most in most {
        let (answers, open) = exchange(&mut anyone(), &twice, most);
        assert!(answers.matches("21.5 °C").count() == 2 && open, "{most}: {answers}");
    }
}

#[test]
fn invalid_requests_are_refused_and_end_the_connection() {
    let chunked = |body: &str| {
        let head = post("").replace("Content-Length: 0", "Transfer-Encoding: chunked");
        format!("{head}{body}")
    };
    let long = "x".repeat(2000);
    let line = |line: &str| post_with(line, PING);
    for (request, expected) in [
        ("\x16\x03\x01\x02 \r\n\r\n".into(), "400"),
        ("GET /mcp\r\n\r\n".into(), "400"),
        ("GET / mcp HTTP/1.1\r\n\r\n".into(), "400"),
        (line("Field : 1\r\n"), "400"),
        (line("Host: localhost:80\r\n"), "400"),
        (line("Content-Length: 5\r\n"), "400"),
        (line("Transfer-Encoding: chunked\r\n"), "400"),
        (post("").replace("Length: 0", "Length: +0"), "400"),
        (post("").replace("Length: 0", "Length: 99999999999999999999"), "413"),
        (post("").replace("Content-Length: 0", "Transfer-Encoding: gzip, chunked"), "400"),
        (chunked("").replace("HTTP/1.1", "HTTP/1.0"), "400"),
        (chunked("5\nhello\r\n"), "400"),
        (chunked("5\r\nhelloo\r\n"), "400"),
        (chunked("\r\n"), "400"),
        (chunked("fffffffff\r\n"), "400"),
        (chunked("fffffff\r\n"), "413"),
        (chunked(&format!("0\r\n{long}")), "400"),
        (chunked(&format!("1;{long}")), "400"),
        (post(&long), "413"),
        (line(&format!("Field: {long}\r\n")), "431"),
        (line(&"a: b\r\n".repeat(50)), "431"),
    ] {
        for most in [0, 1] {
            let (answer, _) = exchange(&mut anyone(), &request, most);
            assert_eq!(status(&answer), expected, "{request:.300}: {answer}");
            assert_eq!(field(&answer, "connection"), Some("close"), "{request:.300}");
        }
    }
}

#[test]
fn a_refused_request_is_read_for_a_moment_and_then_closed() {
    let (mut service, mut memory, socket) = (anyone(), Memory::new(), Socket::default());
    let mut connection = memory.connection(&service);
    socket.send(post(&"x".repeat(5000)));
    assert!(matches!(settle(&mut service, &mut connection, &socket, 0), NextPoll::Wait(_)));
    assert_eq!(status(&socket.received()), "413");
    assert_eq!(settle(&mut service, &mut connection, &socket, 1000), NextPoll::Closed);
    // The connection serves the next socket.
    let socket = Socket::default();
    socket.send(modern("read"));
    let _ = settle(&mut service, &mut connection, &socket, 1000);
    assert_eq!(status(&socket.received()), "200");
}

#[test]
fn a_client_may_ask_before_it_sends_its_body() {
    let (mut service, mut memory, socket) = (anyone(), Memory::new(), Socket::default());
    let mut connection = memory.connection(&service);
    let request = modern("read").replace("\r\nAccept:", "\r\nExpect: 100-continue\r\nAccept:");
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    socket.send(format!("{head}\r\n\r\n"));
    let _ = settle(&mut service, &mut connection, &socket, 0);
    assert_eq!(socket.received(), "HTTP/1.1 100 Continue\r\n\r\n");
    socket.send(body);
    let _ = settle(&mut service, &mut connection, &socket, 0);
    assert_eq!(status(&socket.received()), "200");
}

#[test]
fn a_response_to_head_has_no_body() {
    let (answer, open) =
        exchange(&mut anyone(), "HEAD /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n", 0);
    assert_eq!(status(&answer), "405");
    assert!(answer.ends_with("\r\n\r\n") && open, "{answer}");
    assert_ne!(field(&answer, "content-length"), Some("0"));
}

#[test]
fn a_client_of_http_1_0_gets_a_response_that_ends_with_the_connection() {
    let gate = Gate::default();
    let mut service = service(&gate, HttpAccess::Anyone);
    for _ in 0..3 {
        gate.open();
    }
    let old = |tool: &str| {
        let request = modern(tool).replace("HTTP/1.1", "HTTP/1.0");
        request.replace("\r\nAccept:", "\r\nConnection: keep-alive\r\nAccept:")
    };
    let (answer, open) = exchange(&mut service, old("read"), 0);
    assert!(field(&answer, "connection") == Some("keep-alive") && open, "{answer}");
    let (answer, open) = exchange(&mut service, old("wait"), 0);
    assert_eq!(field(&answer, "content-type"), Some("text/event-stream"));
    assert_eq!(field(&answer, "transfer-encoding"), None);
    assert_eq!(field(&answer, "connection"), Some("close"));
    assert!(answer.ends_with("}\n\n") && !open, "{answer}");
}

// ------------------------------------------------------------------ time and ends

#[test]
fn slow_clients_lose_their_connections() {
    let head = &modern("read")[..150];
    for (sent, expected) in [("", "none"), ("GET", "408"), (head, "408")] {
        let (mut service, mut memory, socket) = (anyone(), Memory::new(), Socket::default());
        let mut connection = memory.connection(&service);
        socket.send(sent);
        let deadline = settle(&mut service, &mut connection, &socket, 5);
        assert_eq!(deadline, NextPoll::Wait(Some(Instant::from_millis(10_005))));
        let _ = settle(&mut service, &mut connection, &socket, 10_004);
        assert_eq!(socket.received(), "");
        let _ = settle(&mut service, &mut connection, &socket, 10_005);
        assert_eq!(status(&socket.received()), expected, "{sent}");
        socket.end();
        let _ = settle(&mut service, &mut connection, &socket, 10_005);
    }
    // Each byte of a head counts towards the same time.
    let (mut service, mut memory, socket) = (anyone(), Memory::new(), Socket::default());
    let mut connection = memory.connection(&service);
    for (second, byte) in modern("read").bytes().enumerate().take(11) {
        socket.send([byte]);
        let _ = settle(&mut service, &mut connection, &socket, second as u64 * 1000);
    }
    assert_eq!(status(&socket.received()), "408");
}

#[test]
fn a_slow_body_is_refused() {
    let (mut service, mut memory, socket) = (anyone(), Memory::new(), Socket::default());
    let mut connection = memory.connection(&service);
    let request = modern("read");
    socket.send(&request[..request.len() - 1]);
    let _ = settle(&mut service, &mut connection, &socket, 29_999);
    assert_eq!(socket.received(), "");
    let _ = settle(&mut service, &mut connection, &socket, 59_999);
    assert_eq!(status(&socket.received()), "408");
}

#[test]
fn a_client_that_does_not_read_loses_its_connection() {
    for request in [modern("read"), post(&"x".repeat(5000))] {
        let (mut service, mut memory, socket) = (anyone(), Memory::new(), Socket::default());
        let mut connection = memory.connection(&service);
        socket.0.borrow_mut().reads = Some(20);
        socket.send(request);
        for millis in [0, 9_999] {
            let next = settle(&mut service, &mut connection, &socket, millis);
            assert_eq!(next, NextPoll::Wait(Some(Instant::from_millis(10_000))));
        }
        assert_eq!(settle(&mut service, &mut connection, &socket, 10_000), NextPoll::Closed);
        assert_eq!(service.server().machine().exchange_count(), 0);
    }
}

#[test]
fn a_disconnect_cancels_a_modern_request() {
    for broken in [false, true] {
        let gate = Gate::default();
        let mut service = service(&gate, HttpAccess::Anyone);
        let (mut memory, socket) = (Memory::new(), Socket::default());
        let mut connection = memory.connection(&service);
        socket.send(modern("wait"));
        gate.open();
        let _ = settle(&mut service, &mut connection, &socket, 0);
        assert!(socket.received().contains("notifications/progress"));
        assert_eq!(service.server().machine().exchange_count(), 1);
        if broken {
            socket.0.borrow_mut().broken = Some(ErrorKind::Other);
            assert!(connection.poll(&mut service, &mut socket.clone(), Instant::ZERO).is_err());
        } else {
            socket.end();
            assert_eq!(settle(&mut service, &mut connection, &socket, 0), NextPoll::Closed);
        }
        let _ = service.poll(Instant::ZERO);
        assert_eq!(service.server().machine().exchange_count(), 0);
        assert_eq!(gate.dropped.get(), 1);
        service.server().assert_consistent();
    }
}

#[test]
fn an_operation_that_is_interrupted_or_out_of_time_is_tried_again() {
    let unsteady = || {
        let socket = Socket::default();
        socket.0.borrow_mut().fails = [ErrorKind::TimedOut, ErrorKind::Interrupted].into();
        socket.send(format!("{}{}", modern("read"), modern("read")));
        socket
    };
    let (mut service, mut memory, socket) = (anyone(), Memory::new(), unsteady());
    let mut connection = memory.connection(&service);
    let next = settle(&mut service, &mut connection, &socket, 0);
    assert_eq!(next, NextPoll::Wait(Some(Instant::from_millis(10_000))));
    assert_eq!(socket.received().matches("21.5 °C").count(), 2);

    let (clock, socket) = (ManualClock::default(), unsteady());
    let service = RefCell::new(service);
    let mut memory = Memory::new();
    let connection = memory.connection(&service.borrow());
    let mut connection = pin!(connection.run(&service, socket.clone(), socket.clone(), &clock));
    assert!(run(connection.as_mut()).is_pending());
    assert_eq!(socket.received().matches("21.5 °C").count(), 2);
}

#[test]
fn the_last_response_is_flushed_before_the_connection_ends() {
    let (mut service, mut memory, socket) = (anyone(), Memory::new(), Socket::default());
    let mut connection = memory.connection(&service);
    socket.0.borrow_mut().slow_flushes = 2;
    socket.send("GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let end = settle(&mut service, &mut connection, &socket, 0);
    assert_eq!((end, socket.0.borrow().slow_flushes), (NextPoll::Closed, 0));
}

#[test]
fn a_connection_whose_reads_all_time_out_is_answered_and_ends_in_time() {
    let (mut service, mut memory, socket) = (anyone(), Memory::new(), Socket::default());
    let mut connection = memory.connection(&service);
    socket.send("GET");
    let _ = settle(&mut service, &mut connection, &socket, 0);
    socket.0.borrow_mut().broken = Some(ErrorKind::TimedOut);
    for (now, status, last) in [(1, "", false), (10_000, "408", false), (20_000, "", true)] {
        let now = Instant::from_millis(now);
        let mut poll = || connection.poll(&mut service, &mut socket.clone(), now).unwrap();
        assert_eq!([poll(), poll()].contains(&NextPoll::Closed), last, "{now:?}");
        assert_eq!(socket.received().split(' ').nth(1).unwrap_or_default(), status, "{now:?}");
    }
}

#[test]
fn a_stream_that_was_cut_is_resumed_on_another_connection() {
    let gate = Gate::default();
    let mut service = service(&gate, HttpAccess::Anyone);
    let (mut memory, mut other) = (Memory::new(), Memory::new());
    let mut connection = memory.connection(&service);
    let socket = Socket::default();
    socket.send(post(&initialize("2025-11-25")));
    let _ = settle(&mut service, &mut connection, &socket, 0);
    let session = field(&socket.received(), "mcp-session-id").unwrap().to_owned();
    let fields = format!("Mcp-Session-Id: {session}\r\nMCP-Protocol-Version: 2025-11-25\r\n");
    socket.send(post_with(&fields, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#));
    let _ = settle(&mut service, &mut connection, &socket, 0);
    assert_eq!(status(&socket.received()), "202");
    let call = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"wait","arguments":{},"_meta":{"progressToken":"p"}}}"#;
    socket.send(post_with(&fields, call));
    gate.open();
    let _ = settle(&mut service, &mut connection, &socket, 0);
    let answer = socket.received();
    assert_eq!(field(&answer, "transfer-encoding"), Some("chunked"));
    let events = unchunked(&answer);
    assert!(events.contains(r#""progress":1"#), "{events}");
    let last = events.lines().rfind(|line| line.starts_with("id: ")).unwrap()[4..].to_owned();
    // The connection breaks, the call does not.
    socket.end();
    assert_eq!(settle(&mut service, &mut connection, &socket, 0), NextPoll::Closed);
    gate.open();
    gate.open();
    let _ = service.poll(Instant::ZERO);
    let mut connection = other.connection(&service);
    let socket = Socket::default();
    socket.send(format!(
        "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n{fields}Last-Event-ID: {last}\r\n\r\n"
    ));
    let _ = settle(&mut service, &mut connection, &socket, 0);
    let events = unchunked(&socket.received());
    assert!(!events.contains(r#""progress":1"#), "{events}");
    assert!(events.contains(r#""progress":2"#) && events.contains("done"), "{events}");
    assert_eq!(gate.dropped.get(), 0);
    // The same connection takes another request afterwards.
    socket.send(post_with(&fields, PING));
    let _ = settle(&mut service, &mut connection, &socket, 0);
    assert_eq!(status(&socket.received()), "200");
}

// ------------------------------------------------------------------ access

#[test]
fn other_hosts_and_origins_are_refused() {
    let mut service = anyone();
    let with = |host: &str, origin: &str| {
        modern("read")
            .replace("localhost:80", host)
            .replace("\r\nAccept:", &format!("{origin}\r\nAccept:"))
    };
    for (host, origin, expected) in [
        ("127.0.0.1", "", "200"),
        ("evil.example", "", "403"),
        ("localhost", "\r\nOrigin: http://evil.example", "403"),
        ("localhost", "\r\nOrigin: null", "403"),
        ("localhost", "\r\nOrigin: http://localhost:3000", "200"),
    ] {
        let (answer, _) = exchange(&mut service, with(host, origin), 0);
        assert_eq!(status(&answer), expected, "{host} {origin}");
    }
    // A target in absolute form names the host, too.
    let rebound = modern("read").replace(" /mcp", " http://evil.example/mcp");
    assert_eq!(status(&exchange(&mut service, rebound, 0).0), "403");
    let contradictory = modern("read").replace(" /mcp", " http://127.0.0.1/mcp");
    assert_eq!(status(&exchange(&mut service, contradictory, 0).0), "400");
}

#[test]
fn a_token_is_required() {
    let mut service = service(&Gate::default(), HttpAccess::Token(TOKEN.into()));
    let with = |value: &str| {
        modern("read").replace("\r\nAccept:", &format!("\r\nAuthorization: {value}\r\nAccept:"))
    };
    for (request, expected, challenge) in [
        (modern("read"), "401", Some("Bearer")),
        (with("Bearer"), "401", Some("Bearer error=\"invalid_token\"")),
        (with(&format!("Bearer {TOKEN}0")), "401", Some("Bearer error=\"invalid_token\"")),
        (with("Bearer 0123456789abcdeF"), "401", Some("Bearer error=\"invalid_token\"")),
        (with(&format!("Basic {TOKEN}")), "401", Some("Bearer error=\"invalid_token\"")),
        (with(&format!("bearer  {TOKEN}")), "200", None),
    ] {
        let (answer, _) = exchange(&mut service, &request, 0);
        assert_eq!((status(&answer), field(&answer, "www-authenticate")), (expected, challenge));
    }
    assert!(!format!("{service:?}").contains(TOKEN));
}

#[test]
fn without_a_token_only_programs_on_the_device_are_served() {
    let mut service = service(&Gate::default(), HttpAccess::Loopback);
    let lan = IpAddr::from([192, 168, 1, 9]);
    for (address, expected) in
        [(None, "403"), (Some(lan), "403"), (Some(Ipv4Addr::LOCALHOST.into()), "200")]
    {
        let (mut memory, socket) = (Memory::new(), Socket::default());
        let mut connection = memory.connection(&service);
        if let Some(address) = address {
            connection.set_remote_address(address);
        }
        socket.send(modern("read"));
        let _ = settle(&mut service, &mut connection, &socket, 0);
        assert_eq!(status(&socket.received()), expected, "{address:?}");
    }
}

#[test]
fn a_service_without_access_control_must_be_asked_for() {
    let create = |options, access| {
        HttpService::new(&server(&Gate::default()), options, access, [7; 32], 42).err()
    };
    let lan = || options().allow_host("192.168.1.7").unwrap();
    let any = || options().hosts(AllowedHosts::new().allow_any_host());
    assert_eq!(create(options(), HttpAccess::Loopback), None);
    assert_eq!(create(lan(), HttpAccess::Loopback), Some(HttpServiceError::NeedsToken));
    assert_eq!(create(any(), HttpAccess::Loopback), Some(HttpServiceError::NeedsToken));
    assert_eq!(create(lan(), HttpAccess::Anyone), None);
    assert_eq!(create(lan(), HttpAccess::Token(TOKEN.into())), None);
    for token in ["", "0123456789abcde", "0123456789abcde f", "0123456789abcdé0"] {
        let refused = create(lan(), HttpAccess::Token(token.into()));
        assert_eq!(refused, Some(HttpServiceError::InvalidToken), "{token}");
    }
}

#[test]
fn buffers_have_a_minimum() {
    let service = anyone();
    let connection = |input: &mut [u8], output: &mut [u8]| {
        service.connection(HttpBuffers { input, body: &mut [], output }).err()
    };
    assert_eq!(connection(&mut [0; 256], &mut [0; 528]), None);
    assert_eq!(connection(&mut [0; 255], &mut [0; 528]), Some(HttpServiceError::ShortInput));
    assert_eq!(connection(&mut [0; 256], &mut [0; 527]), Some(HttpServiceError::ShortOutput));
}

// ------------------------------------------------------------------ on an executor

#[test]
fn connections_run_beside_their_service_on_an_executor() {
    let (gate, clock) = (Gate::default(), ManualClock::default());
    let service = RefCell::new(service(&gate, HttpAccess::Anyone));
    let (mut memory, mut other) = (Memory::new(), Memory::new());
    let (first, second) = (Socket::default(), Socket::default());
    first.0.borrow_mut().most = 5;
    first.send(modern("wait"));
    let waits = memory.connection(&service.borrow());
    let reads = other.connection(&service.borrow());
    let mut driver = pin!(HttpService::run(&service, &clock));
    let mut waits = pin!(waits.run(&service, first.clone(), first.clone(), &clock));
    {
        let mut reads = pin!(reads.run(&service, second.clone(), second.clone(), &clock));
        assert!(run(waits.as_mut()).is_pending() && run(driver.as_mut()).is_pending());
        second.send(format!("{}{}", modern("read"), modern("read")));
        assert!(run(reads.as_mut()).is_pending());
        assert_eq!(second.received().matches("21.5 °C").count(), 2);
        for _ in 0..3 {
            gate.open();
            assert!(run(driver.as_mut()).is_pending());
        }
        assert!(run(waits.as_mut()).is_pending());
        assert!(unchunked(&first.received()).contains("done"));
        // The time for another head passes.
        clock.0.set(10_000);
        assert!(matches!(run(reads.as_mut()), Poll::Ready(Ok(()))));
    }
    assert!(matches!(run(waits.as_mut()), Poll::Ready(Ok(()))));
}

#[test]
fn a_stream_that_opens_late_gets_its_comments_on_an_executor() {
    let (service, clock) = (RefCell::new(anyone()), ManualClock::default());
    let (mut memory, socket) = (Memory::new(), Socket::default());
    let connection = memory.connection(&service.borrow());
    let mut driver = pin!(HttpService::run(&service, &clock));
    let mut running = pin!(connection.run(&service, socket.clone(), socket.clone(), &clock));
    let woken = [(); 2].map(|()| Arc::new(WakeCounter(AtomicUsize::new(1))));
    let wakers = woken.clone().map(Waker::from);
    socket.send(modern("wait"));
    let mut comments = Vec::new();
    for second in 0..40 {
        clock.set(second * 1000);
        while woken.iter().any(|task| task.count() > 0) {
            if woken[0].0.swap(0, Ordering::Relaxed) > 0 {
                assert!(driver.as_mut().poll(&mut Context::from_waker(&wakers[0])).is_pending());
            }
            if woken[1].0.swap(0, Ordering::Relaxed) > 0 {
                assert!(running.as_mut().poll(&mut Context::from_waker(&wakers[1])).is_pending());
            }
        }
        if socket.received().contains("\r\n:\n\n\r\n") {
            comments.push(second);
        }
    }
    // The stream opens after 5 s.
    assert_eq!(comments, [20, 35]);
}

/// A clock that steps whenever it is read, and whose timer fires early.
struct EarlyClock(Cell<u64>);

impl Clock for EarlyClock {
    fn now(&self) -> Instant {
        Instant::from_millis(self.0.replace(self.0.get() + 1))
    }

    async fn wait_until(&self, deadline: Instant) {
        let is_near = || deadline <= Instant::from_millis(self.0.get() + 8);
        poll_fn(|_| if is_near() { Poll::Ready(()) } else { Poll::Pending }).await;
    }
}

#[test]
fn a_timer_that_fires_early_does_not_lose_a_deadline() {
    for start in 10_000..10_016 {
        let (service, clock) = (RefCell::new(anyone()), EarlyClock(Cell::new(8)));
        let (mut memory, socket) = (Memory::new(), Socket::default());
        let connection = memory.connection(&service.borrow());
        let mut running = pin!(connection.run(&service, socket.clone(), socket.clone(), &clock));
        let mut cx = Context::from_waker(Waker::noop());
        socket.send("GET");
        assert!(running.as_mut().poll(&mut cx).is_pending());
        // Once, when the timer fires.
        clock.0.set(start);
        assert!(running.as_mut().poll(&mut cx).is_pending());
        assert_eq!(status(&socket.received()), "408", "{start}");
    }
}

#[test]
fn dropping_a_connection_disconnects_its_client() {
    let (gate, clock) = (Gate::default(), ManualClock::default());
    let service = RefCell::new(service(&gate, HttpAccess::Anyone));
    let (mut memory, socket) = (Memory::new(), Socket::default());
    socket.send(modern("wait"));
    let connection = memory.connection(&service.borrow());
    {
        let mut running = pin!(connection.run(&service, socket.clone(), socket.clone(), &clock));
        assert!(run(running.as_mut()).is_pending());
        assert_eq!(service.borrow().server().machine().exchange_count(), 1);
    }
    assert_eq!(service.borrow().server().machine().exchange_count(), 0);
    let _ = service.borrow_mut().poll(clock.now() + Duration::from_secs(1));
    assert_eq!(gate.dropped.get(), 1);
}

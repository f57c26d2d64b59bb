use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use http::header::{self, HeaderValue};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::rt::{Read, ReadBuf, ReadBufCursor, Write};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use mcp_sansio::Instant;

use super::http2::ConnectionAction;
use super::listener::Permit;
use super::{Budget, HttpService, ResponseNotRead, SendBody, Socket};
use crate::network::Network;
use crate::{Runtime, StopHandle, Timer};

/// Timeouts and limits of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) head_timeout: Duration,
    pub(super) stall_timeout: Duration,
    pub(super) idle_timeout: Duration,
    pub(super) connection_bytes_max: usize,
    pub(super) concurrent_streams_max: u32,
}

/// Bytes that a connection buffers of a head, and of a response that its client does not read.
pub(super) const BUFFER: usize = 64 * 1024;
/// Serves a connection until its client disconnects or, once told to `stop`, until its requests are
/// answered. Then it drops the permit.
pub(super) async fn serve_connection<N: Network>(
    mut socket: N::Socket,
    service: HttpService<N>,
    runtime: N,
    stop: StopHandle,
    settings: Settings,
    budget: Budget,
    _permit: Permit,
) {
    let first_head = runtime.now() + settings.head_timeout;
    let mut timer = runtime.timer();
    let read = {
        let mut read = pin!(read_version(&mut socket));
        poll_fn(|cx| {
            if let Poll::Ready(read) = read.as_mut().poll(cx) {
                return Poll::Ready(read.ok());
            }
            if stop.poll(cx.waker()) {
                return Poll::Ready(None);
            }
            timer.poll_until(cx, first_head).map(|()| None)
        })
        .await
    };
    // A failed connection does not affect the others.
    let Some((version, begun)) = read else { return };
    // The HTTP/1 server refuses the HTTP/2 preface.
    let version = if N::HTTP2 { version } else { Version::Http1 };
    let socket = Socket::new(socket, runtime.clone(), settings.stall_timeout).with_prefix(begun);
    match version {
        Version::Http1 => {
            let head_timer = Arc::new(HeadTimer::new(first_head, settings, runtime));
            let budget = budget.connection(&service, usize::MAX);
            let (budget, stopping) = (&budget, &stop);
            let serve = service_fn(|request: http::Request<Incoming>| {
                let guard = HeadTimer::head_received(&head_timer);
                let (head_timer, has_body) = (&head_timer, !request.body().is_end_stream());
                let mut served = Box::pin(service.serve(request));
                let mut guard = Some(guard);
                // Dropped once the response is ready, which an idle connection would otherwise keep
                // allocated.
                poll_fn(move |cx| {
                    let response = ready!(served.as_mut().poll(cx));
                    if has_body && !response.status().is_success() {
                        head_timer.client_sends.store(true, Ordering::Relaxed);
                    }
                    let guard = guard.take();
                    let mut response = SendBody::http1(response, budget);
                    // The response may be ready before the connection is told to close, so announce
                    // it here.
                    if stopping.is_stopped() {
                        let close = HeaderValue::from_static("close");
                        response.headers_mut().insert(header::CONNECTION, close);
                    }
                    Poll::Ready(Ok::<_, Infallible>(
                        response.map(|body| GuardedBody { body, _guard: guard }),
                    ))
                })
            });
            let mut builder = http1::Builder::new();
            // The head timer limits the time for a head: hyper would set a timer for each one.
            builder.header_read_timeout(None).max_buf_size(BUFFER);
            // MCP 2026-07-28 basic/transports/streamable-http#cancellation [CANC-015]: a client
            // cancels by closing its connection. Of that, a server sees only the end of its input,
            // until it writes, which it may not do for minutes. So `half_close` stays off.
            let socket = TimedSocket { socket, head_timer: Arc::clone(&head_timer) };
            let connection = pin!(builder.serve_connection(socket, serve));
            let shutdown = http1::Connection::graceful_shutdown;
            drive(connection, shutdown, || head_timer.check(), stop.clone(), timer).await;
        }
        #[cfg(feature = "http2")]
        Version::Http2 => {
            super::http2_connection::serve(socket, service, runtime, stop, settings, budget, timer)
                .await;
        }
        // Without the feature `Network::HTTP2` is false.
        #[cfg(not(feature = "http2"))]
        Version::Http2 => {}
    }
}

/// Drives a connection until it ends, or until `check` says to close it; `shutdown` lets it end
/// after the pending requests.
pub(super) async fn drive<C: Future>(
    mut connection: Pin<&mut C>,
    shutdown: impl Fn(Pin<&mut C>),
    check: impl Fn() -> ConnectionAction,
    stop: StopHandle,
    mut timer: impl Timer,
) {
    let mut deadline = timer.now();
    let mut stops = false;
    // The waker registered with both. The task is polled for each request, but the stop handle and
    // the timer fire at most once, so they are polled only when they may have fired.
    let mut known: Option<Waker> = None;
    poll_fn(|cx| {
        let is_known = known.as_ref().is_some_and(|known| known.will_wake(cx.waker()));
        // The timer comes first: a client that never stops sending uses up the task's cooperative
        // budget, which would leave none for the timer.
        if !is_known || timer.may_be_due() {
            while timer.poll_until(cx, deadline).is_ready() {
                match check() {
                    ConnectionAction::WaitUntil(next) => deadline = next,
                    ConnectionAction::Shutdown => shutdown(connection.as_mut()),
                    ConnectionAction::Close => return Poll::Ready(()),
                }
            }
        }
        loop {
            if connection.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            let may_stop = !stops && (!is_known || stop.is_stopped());
            if !(may_stop && stop.poll(cx.waker())) {
                break;
            }
            stops = true;
            shutdown(connection.as_mut());
        }
        if !is_known {
            known = Some(cx.waker().clone());
        }
        Poll::Pending
    })
    .await;
}

// ------------------------------------------------------------------ preface

/// A version of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    Http1,
    Http2,
}

/// The HTTP/2 connection preface, which no HTTP/1 client sends.
// RFC 9113, section 3.4
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The first bytes of a connection.
#[derive(Debug, Default)]
struct First {
    bytes: [u8; PREFACE.len()],
    length: usize,
}

/// Reads as many bytes as needed to determine the HTTP version. Returns the version and the bytes
/// read.
pub(super) async fn read_version(
    stream: &mut (impl Read + Unpin),
) -> io::Result<(Version, Vec<u8>)> {
    let mut first = First::default();
    let version = poll_fn(|cx| first.poll_version(stream, cx)).await?;
    Ok((version, first.bytes[..first.length].to_vec()))
}

impl First {
    fn poll_version(
        &mut self,
        stream: &mut (impl Read + Unpin),
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<Version>> {
        loop {
            let known = self.length;
            if self.bytes[..known] != PREFACE[..known] {
                return Poll::Ready(Ok(Version::Http1));
            }
            if known == PREFACE.len() {
                return Poll::Ready(Ok(Version::Http2));
            }
            let mut space = ReadBuf::new(&mut self.bytes[known..]);
            ready!(Pin::new(&mut *stream).poll_read(cx, space.unfilled()))?;
            self.length += space.filled().len();
            if self.length == known {
                // End of input, which the HTTP/1 server handles.
                return Poll::Ready(Ok(Version::Http1));
            }
        }
    }
}

// ------------------------------------------------------------------ head timer

/// Tracks the deadline for the next request head of a connection. It runs while the server waits
/// for the client.
#[derive(Debug)]
pub(super) struct HeadTimer<R> {
    runtime: R,
    state: Mutex<HeadState>,
    /// Time limit for a head.
    head_timeout: Duration,
    /// Time limit for the first byte of a head, after the first head.
    idle_timeout: Duration,
    /// Whether a request was refused whose body may not have been read.
    client_sends: AtomicBool,
}

#[derive(Clone, Copy, Debug)]
enum HeadState {
    /// The server waits for the rest of a head, until the deadline.
    AwaitingHead(Instant),
    /// The client may begin its next head, until the deadline.
    Idle(Instant),
    /// The client has yet to read the response.
    Flushing,
    /// A request is in progress.
    Responding,
}

impl<R: Runtime> HeadTimer<R> {
    /// Creates a timer whose first head is due at `deadline`.
    pub(super) const fn new(deadline: Instant, settings: Settings, runtime: R) -> Self {
        let Settings { head_timeout, idle_timeout, .. } = settings;
        let state = Mutex::new(HeadState::AwaitingHead(deadline));
        Self { runtime, state, head_timeout, idle_timeout, client_sends: AtomicBool::new(false) }
    }

    /// Starts the deadline of a head if its first byte may have arrived.
    fn head_begun(&self) {
        if matches!(self.state(), HeadState::Idle(_)) {
            self.set(HeadState::AwaitingHead(self.runtime.now() + self.head_timeout));
        }
    }

    /// Disables the deadline until the response is complete: a head has arrived.
    pub(super) fn head_received(head_timer: &Arc<Self>) -> ResponseGuard<R> {
        head_timer.set(HeadState::Responding);
        ResponseGuard(Arc::clone(head_timer))
    }

    /// Disables the deadline permanently.
    pub(super) fn disable(&self) {
        self.set(HeadState::Responding);
    }

    /// Returns the action that is due.
    pub(super) fn check(&self) -> ConnectionAction {
        let deadline = self.deadline();
        if deadline <= self.runtime.now() {
            ConnectionAction::Close
        } else {
            ConnectionAction::WaitUntil(deadline)
        }
    }

    /// Returns the next time at which the timer needs a check.
    fn deadline(&self) -> Instant {
        // A head that begins now.
        let head = || self.runtime.now() + self.head_timeout;
        match self.state() {
            HeadState::AwaitingHead(deadline) => deadline,
            HeadState::Idle(deadline) => deadline.min(head()),
            HeadState::Flushing | HeadState::Responding => head(),
        }
    }

    /// Starts the deadline for the next head if the client has taken the whole response.
    fn flushed(&self) {
        if matches!(self.state(), HeadState::Flushing) {
            self.set(HeadState::Idle(self.runtime.now() + self.idle_timeout));
        }
    }

    fn state(&self) -> HeadState {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, state: HeadState) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }
}

/// Marks a request as in progress until it is dropped.
#[derive(Debug)]
pub(super) struct ResponseGuard<R: Runtime>(Arc<HeadTimer<R>>);

impl<R: Runtime> Drop for ResponseGuard<R> {
    fn drop(&mut self) {
        self.0.set(HeadState::Flushing);
    }
}

/// A response body that holds its guard until it is completely handed to the connection.
#[derive(Debug)]
pub(super) struct GuardedBody<R: Runtime> {
    pub(super) body: SendBody,
    pub(super) _guard: Option<ResponseGuard<R>>,
}

impl<R: Runtime> Body for GuardedBody<R> {
    type Data = <SendBody as Body>::Data;
    type Error = ResponseNotRead;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, ResponseNotRead>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A socket that reports reads and flushes to the head timer.
#[derive(Debug)]
pub(super) struct TimedSocket<S, R> {
    pub(super) socket: S,
    pub(super) head_timer: Arc<HeadTimer<R>>,
}

impl<S: Read + Unpin, R: Runtime> Read for TimedSocket<S, R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        space: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.socket).poll_read(cx, space);
        if read.is_ready() {
            self.head_timer.head_begun();
        }
        read
    }
}

impl<S: Read + Write + Unpin, R: Runtime + Unpin> Write for TimedSocket<Socket<S, R>, R> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    // hyper flushes whenever it has written everything, even if that was nothing.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.socket).poll_flush(cx);
        if flushed.is_ready() {
            self.head_timer.flushed();
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // No more heads are awaited, and the socket limits the time of its shutdown.
        self.head_timer.disable();
        let client_sends = self.head_timer.client_sends.load(Ordering::Relaxed);
        Pin::new(&mut self.socket).poll_close(cx, client_sends)
    }
}

#[cfg(test)]
mod preface_tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::Waker;

    use hyper::rt::ReadBufCursor;

    use super::*;

    /// Yields one chunk per read, then the end.
    struct Pieces<'a>(&'a [&'a [u8]]);

    /// Chunks, the version that they announce, and the bytes read to determine it.
    type Case<'a> = (&'a [&'a [u8]], Version, &'a [u8]);

    impl Read for Pieces<'_> {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            mut space: ReadBufCursor<'_>,
        ) -> Poll<io::Result<()>> {
            if let Some((piece, rest)) = self.0.split_first() {
                space.put_slice(piece);
                self.0 = rest;
            }
            Poll::Ready(Ok(()))
        }
    }

    #[test]
    fn the_version_is_known_from_the_first_distinguishing_byte() {
        let cases: [Case<'_>; 6] = [
            (&[b"POST /mcp", b" HTTP/1.1"], Version::Http1, b"POST /mcp"),
            (&[b"P", b"RI * HTTP/1.1\r\n"], Version::Http1, b"PRI * HTTP/1.1\r\n"),
            (&[PREFACE, b"more"], Version::Http2, PREFACE),
            (&[&PREFACE[..1], &PREFACE[1..9], &PREFACE[9..]], Version::Http2, PREFACE),
            (&[&PREFACE[..23]], Version::Http1, &PREFACE[..23]),
            (&[], Version::Http1, b""),
        ];
        for (pieces, version, first) in cases {
            let mut stream = Pieces(pieces);
            let read = pin!(read_version(&mut stream));
            let Poll::Ready(read) = read.poll(&mut Context::from_waker(Waker::noop())) else {
                panic!("the read is pending")
            };
            assert_eq!(read.unwrap(), (version, first.to_vec()), "{pieces:?}");
        }
    }
}

#[cfg(test)]
mod head_timer_tests {
    use super::*;
    use crate::runtime::ManualClock;

    const HEAD_TIME: Duration = Duration::from_secs(30);
    const IDLE_TIME: Duration = Duration::from_secs(300);

    fn head_timer(first: Instant, clock: &ManualClock) -> Arc<HeadTimer<ManualClock>> {
        let settings = Settings {
            head_timeout: HEAD_TIME,
            stall_timeout: Duration::ZERO,
            idle_timeout: IDLE_TIME,
            connection_bytes_max: 0,
            concurrent_streams_max: 0,
        };
        Arc::new(HeadTimer::new(first, settings, clock.clone()))
    }

    fn is_closed(head_timer: &HeadTimer<ManualClock>) -> bool {
        matches!(head_timer.check(), ConnectionAction::Close)
    }

    #[test]
    fn a_connection_is_idle_from_the_end_of_a_response_to_the_next_head() {
        let clock = ManualClock::default();
        let first = Runtime::now(&clock) + Duration::from_secs(7);
        let head_timer = head_timer(first, &clock);
        assert_eq!(head_timer.deadline(), first);
        let guard = HeadTimer::head_received(&head_timer);
        clock.advance(Duration::from_secs(3600));
        // A handler may take any time for a response, parts of which may be flushed before,
        head_timer.flushed();
        assert_eq!(head_timer.deadline(), Runtime::now(&clock) + HEAD_TIME);
        clock.advance(Duration::from_secs(3600));
        drop(guard);
        // and so may its client.
        clock.advance(Duration::from_secs(3600));
        assert_eq!(head_timer.deadline(), Runtime::now(&clock) + HEAD_TIME);
        head_timer.flushed();
        clock.advance(Duration::from_secs(1));
        head_timer.flushed();
        // A head may begin at any time, and is then due, so the timer needs a check that early.
        assert_eq!(head_timer.deadline(), Runtime::now(&clock) + HEAD_TIME);
        clock.advance(IDLE_TIME - Duration::from_secs(2));
        assert!(!is_closed(&head_timer));
        clock.advance(Duration::from_secs(1));
        assert!(is_closed(&head_timer));
    }

    #[test]
    fn a_later_head_is_due_from_its_first_byte_on() {
        let clock = ManualClock::default();
        let head_timer = head_timer(Runtime::now(&clock) + HEAD_TIME, &clock);
        drop(HeadTimer::head_received(&head_timer));
        head_timer.flushed();
        clock.advance(IDLE_TIME - Duration::from_secs(1));
        head_timer.head_begun();
        let begun = Runtime::now(&clock);
        clock.advance(HEAD_TIME - Duration::from_secs(1));
        head_timer.head_begun();
        assert!(!is_closed(&head_timer));
        assert_eq!(head_timer.deadline(), begun + HEAD_TIME);
        clock.advance(Duration::from_secs(1));
        assert!(is_closed(&head_timer));
    }

    #[test]
    fn a_closing_connection_has_no_head_deadline() {
        let clock = ManualClock::default();
        let head_timer = head_timer(Runtime::now(&clock), &clock);
        head_timer.disable();
        head_timer.flushed();
        clock.advance(Duration::from_secs(3600));
        assert_eq!(head_timer.deadline(), Runtime::now(&clock) + HEAD_TIME);
    }
}

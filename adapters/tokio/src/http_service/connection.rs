use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Poll, Waker, ready};
use std::time::Duration;

use hyper::rt::Executor;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use mcp_sansio_async::Runtime as _;
use mcp_sansio_async::http_server::{Budget, Due, Http2Streams, Http2Times, SendBody, Socket};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::Instant;

use super::preface::{Version, read_version};
use super::turn::{Answer, Turn, Watched};
use crate::HttpService;
use crate::clock::to_moment;
use crate::runtime::TokioRuntime;

/// How long a connection waits for its client, and what it may cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) head_time: Duration,
    pub(super) stall_time: Duration,
    pub(super) idle_time: Duration,
    pub(super) connection_bytes_max: usize,
    pub(super) concurrent_streams_max: u32,
}

/// What a connection holds of a head, and of a response that its client does not take, in bytes.
const BUFFER: usize = 64 * 1024;
/// What a client of HTTP/2 may send before it is read, in bytes, on one stream or on all of them. The
/// default of the protocol, which lets a body of 4 MiB come within 30 s at 450 ms round trip.
const WINDOW: u32 = 65_535;
/// The longest head of a request of HTTP/2, in bytes as RFC 9113 section 6.5.2 counts them.
const HEAD: u32 = 16 * 1024;

/// Serves a connection until its client goes, or until its requests are answered once `stopped` has
/// changed. Its permit is given back then.
pub(super) async fn serve_connection(
    socket: TcpStream,
    service: HttpService,
    mut stopped: watch::Receiver<()>,
    settings: Settings,
    budget: Budget,
    _permit: OwnedSemaphorePermit,
) {
    // Events are small and must not wait for one another; without it streams stall for 40 ms.
    let _set = socket.set_nodelay(true);
    let first_head = Instant::now() + settings.head_time;
    let mut stream = TokioIo::new(socket);
    let read = tokio::select! {
        biased;
        read = tokio::time::timeout_at(first_head, read_version(&mut stream)) => read,
        _ = stopped.changed() => return,
    };
    // A connection that fails concerns nobody else.
    let Ok(Ok((version, begun))) = read else { return };
    let socket = Socket::new(stream, TokioRuntime::current(), settings.stall_time).begun(begun);
    let turn = Arc::new(Turn::new(first_head, settings.head_time));
    match version {
        Version::Http1 => {
            let budget = &budget;
            let serve = service_fn(|request| {
                let answering = Turn::begin(&turn);
                let mut served = Box::pin(service.serve(request));
                let mut answering = Some(answering);
                // It goes when the response is there, which an idle connection would hold it for.
                poll_fn(move |cx| {
                    let response = ready!(served.as_mut().poll(cx));
                    let answering = answering.take();
                    let response = SendBody::http1(response, budget);
                    Poll::Ready(Ok::<_, Infallible>(
                        response.map(|body| Answer { body, _answering: answering }),
                    ))
                })
            });
            let mut builder = http1::Builder::new();
            // How long a head may take is seen to here: hyper would set a timer for each.
            builder.header_read_timeout(None).max_buf_size(BUFFER);
            let socket = Watched { socket, turn: Arc::clone(&turn) };
            let connection = pin!(builder.serve_connection(socket, serve));
            drive(connection, http1::Connection::graceful_shutdown, || turn.due(), stopped).await;
        }
        Version::Http2 => {
            let times = Http2Times {
                head: settings.head_time,
                stall: settings.stall_time,
                idle: settings.idle_time,
            };
            let budget = budget.part(settings.connection_bytes_max);
            let streams = Http2Streams::new(times, budget, TokioRuntime::current());
            let serve = service_fn(|request| {
                let mut served = Box::pin(service.serve_stream(&streams, request));
                poll_fn(move |cx| served.as_mut().poll(cx).map(Ok::<_, Infallible>))
            });
            let mut builder = http2::Builder::new(Streams(streams.clone()));
            builder.timer(TokioTimer::new()).keep_alive_interval(Duration::from_secs(30));
            builder.max_send_buf_size(BUFFER).max_header_list_size(HEAD);
            builder.initial_connection_window_size(WINDOW).initial_stream_window_size(WINDOW);
            builder.max_concurrent_streams(settings.concurrent_streams_max);
            // It is larger, and a task has room for the largest that it may hold.
            let mut connection = Box::pin(builder.serve_connection(socket, serve));
            let stop = http2::Connection::graceful_shutdown;
            drive(connection.as_mut(), stop, || streams.check(), stopped).await;
        }
    }
}

/// Drives a connection until it ends, or `check` says so; `stop` lets it end with the requests that
/// are under way.
async fn drive<C: Future>(
    mut connection: Pin<&mut C>,
    stop: impl Fn(Pin<&mut C>),
    check: impl Fn() -> Due,
    mut stopped: watch::Receiver<()>,
) {
    let sign = stopped.clone();
    let mut stopped = pin!(stopped.changed());
    let mut alarm = pin!(tokio::time::sleep_until(Instant::now()));
    let mut stops = false;
    // Whom the two wake. A task is polled for each request, and they are done once at most, so they
    // are polled themselves only where there is something to learn.
    let mut known: Option<Waker> = None;
    poll_fn(|cx| {
        let is_known = known.as_ref().is_some_and(|known| known.will_wake(cx.waker()));
        // First, as a client that sends without end uses up what tokio lets a task do at once: there
        // would be nothing left for an alarm.
        if !is_known || alarm.is_elapsed() {
            while alarm.as_mut().poll(cx).is_ready() {
                match check() {
                    Due::At(deadline) => alarm.as_mut().reset(to_moment(deadline)),
                    Due::Shutdown => stop(connection.as_mut()),
                    Due::Close => return Poll::Ready(()),
                }
            }
        }
        loop {
            if connection.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            let may_stop = !stops && (!is_known || sign.has_changed().unwrap_or(true));
            if !(may_stop && stopped.as_mut().poll(cx).is_ready()) {
                break;
            }
            stops = true;
            stop(connection.as_mut());
        }
        if !is_known {
            known = Some(cx.waker().clone());
        }
        Poll::Pending
    })
    .await;
}

/// Spawns what serves one stream of HTTP/2, so that it can be reset without the others of its
/// connection.
#[derive(Clone, Debug)]
struct Streams(Http2Streams);

impl<F: Future + Send + 'static> Executor<F> for Streams {
    fn execute(&self, stream: F) {
        tokio::spawn(self.0.run(stream));
    }
}

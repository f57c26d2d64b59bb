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
use mcp_sansio_async::http_server::{Cut, Socket};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::Instant;

use super::preface::{Version, read_version};
use super::runtime::TokioRuntime;
use super::turn::{Answer, Turn, Watched};
use crate::HttpService;

/// How long a connection waits for its client.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) head: Duration,
    pub(super) stall: Duration,
}

/// What a connection holds of a head, and of a response that its client does not take, in bytes.
const BUFFER: usize = 64 * 1024;

/// Serves a connection until its client goes, or until its requests are answered once `stopped` has
/// changed. Its permit is given back then.
pub(super) async fn serve_connection(
    socket: TcpStream,
    service: HttpService,
    mut stopped: watch::Receiver<()>,
    times: Times,
    _permit: OwnedSemaphorePermit,
) {
    // Events are small and must not wait for one another; without it streams stall for 40 ms.
    let _set = socket.set_nodelay(true);
    let first_head = Instant::now() + times.head;
    let mut stream = TokioIo::new(socket);
    let read = tokio::select! {
        biased;
        read = tokio::time::timeout_at(first_head, read_version(&mut stream)) => read,
        _ = stopped.changed() => return,
    };
    // A connection that fails concerns nobody else.
    let Ok(Ok((version, begun))) = read else { return };
    let socket = Socket::new(stream, TokioRuntime::current(), times.stall).begun(begun);
    let turn = Arc::new(Turn::new(first_head, times.head));
    match version {
        Version::Http1 => {
            let serve = service_fn(|request| {
                let answering = Turn::begin(&turn);
                let mut served = Box::pin(service.serve(request));
                let mut answering = Some(answering);
                // It goes when the response is there, which an idle connection would hold it for.
                poll_fn(move |cx| {
                    let response = ready!(served.as_mut().poll(cx));
                    let answering = answering.take();
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
            drive(connection, http1::Connection::graceful_shutdown, &turn, stopped).await;
        }
        Version::Http2 => {
            let serve = service_fn(|request| {
                // hyper waits for the first head without end, and the others are for it to judge.
                turn.never_ends();
                let mut served = Box::pin(service.serve(request));
                poll_fn(move |cx| served.as_mut().poll(cx).map(Ok::<_, Infallible>))
            });
            let mut builder = http2::Builder::new(Streams);
            builder.timer(TokioTimer::new()).keep_alive_interval(Duration::from_secs(30));
            builder.max_send_buf_size(BUFFER);
            // It is larger, and a task has room for the largest that it may hold.
            let mut connection = Box::pin(builder.serve_connection(socket, serve));
            let stop = http2::Connection::graceful_shutdown;
            drive(connection.as_mut(), stop, &turn, stopped).await;
        }
    }
}

/// Drives a connection until it ends, or the head of a request is late; `stop` lets it end with the
/// requests that are under way.
async fn drive<C: Future>(
    mut connection: Pin<&mut C>,
    stop: impl Fn(Pin<&mut C>),
    turn: &Turn,
    mut stopped: watch::Receiver<()>,
) {
    let sign = stopped.clone();
    let mut stopped = pin!(stopped.changed());
    let mut alarm = pin!(tokio::time::sleep_until(turn.deadline()));
    let mut stops = false;
    // Whom the two wake. A task is polled for each request, and they are done once at most, so they
    // are polled themselves only where there is something to learn.
    let mut known: Option<Waker> = None;
    poll_fn(|cx| {
        let is_known = known.as_ref().is_some_and(|known| known.will_wake(cx.waker()));
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
        if !is_known || alarm.is_elapsed() {
            while alarm.as_mut().poll(cx).is_ready() {
                let deadline = turn.deadline();
                if deadline <= Instant::now() {
                    return Poll::Ready(());
                }
                alarm.as_mut().reset(deadline);
            }
        }
        if !is_known {
            known = Some(cx.waker().clone());
        }
        Poll::Pending
    })
    .await;
}

/// Spawns what serves one stream of HTTP/2, so that it can be cut off without the others of its
/// connection: to drop it resets the stream.
#[derive(Clone, Copy, Debug)]
struct Streams;

impl<F: Future + Send + 'static> Executor<F> for Streams {
    fn execute(&self, stream: F) {
        tokio::spawn(Cut::default().run(stream));
    }
}

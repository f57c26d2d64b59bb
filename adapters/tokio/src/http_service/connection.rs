use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
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
    let has_head = AtomicBool::new(false);
    let serve = service_fn(|request| {
        has_head.store(true, Ordering::Relaxed);
        let mut served = Box::pin(service.serve(request));
        // It goes when the response is there, which an idle connection would hold it for.
        poll_fn(move |cx| served.as_mut().poll(cx).map(Ok::<_, Infallible>))
    });
    let first_head = FirstHead { deadline: first_head, has_come: &has_head };
    match version {
        Version::Http1 => {
            let mut builder = http1::Builder::new();
            builder.timer(TokioTimer::new()).header_read_timeout(times.head).max_buf_size(BUFFER);
            let connection = pin!(builder.serve_connection(socket, serve));
            drive(connection, http1::Connection::graceful_shutdown, first_head, stopped).await;
        }
        Version::Http2 => {
            let mut builder = http2::Builder::new(Streams);
            builder.timer(TokioTimer::new()).keep_alive_interval(Duration::from_secs(30));
            builder.max_send_buf_size(BUFFER);
            // It is larger, and a task has room for the largest that it may hold.
            let mut connection = Box::pin(builder.serve_connection(socket, serve));
            let stop = http2::Connection::graceful_shutdown;
            drive(connection.as_mut(), stop, first_head, stopped).await;
        }
    }
}

/// Until when a connection has to bring the first head of a request.
struct FirstHead<'a> {
    deadline: Instant,
    has_come: &'a AtomicBool,
}

/// Drives a connection until it ends; `stop` lets it end with the requests that are under way.
async fn drive<C: Future>(
    mut connection: Pin<&mut C>,
    stop: impl Fn(Pin<&mut C>),
    first_head: FirstHead<'_>,
    mut stopped: watch::Receiver<()>,
) {
    let mut head_is_late = pin!(tokio::time::sleep_until(first_head.deadline));
    let (mut expects_head, mut stops) = (true, false);
    loop {
        tokio::select! {
            biased;
            _ended = connection.as_mut() => return,
            _ = stopped.changed(), if !stops => {
                stops = true;
                stop(connection.as_mut());
            }
            // hyper waits for the first head of HTTP/2 without end.
            () = &mut head_is_late, if expects_head => {
                if !first_head.has_come.load(Ordering::Relaxed) {
                    return;
                }
                expects_head = false;
            }
        }
    }
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

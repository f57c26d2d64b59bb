use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Poll, Waker, ready};
use std::time::Duration;

use http::header::{self, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;

use super::connections::Permit;
use super::head_timer::{GuardedBody, HeadTimer, TimedSocket};
use super::http2::ConnectionAction;
use super::preface::{Version, read_version};
use super::{Budget, HttpService, SendBody, Socket};
use crate::network::Network;
use crate::{StopHandle, Timer};

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
            let head_timer = Arc::new(HeadTimer::new(first_head, settings.head_timeout, runtime));
            let budget = budget.connection(&service, usize::MAX);
            let (budget, stopping) = (&budget, &stop);
            let serve = service_fn(|request| {
                let guard = HeadTimer::head_received(&head_timer);
                let mut served = Box::pin(service.serve(request));
                let mut guard = Some(guard);
                // Dropped once the response is ready, which an idle connection would otherwise keep
                // allocated.
                poll_fn(move |cx| {
                    let response = ready!(served.as_mut().poll(cx));
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

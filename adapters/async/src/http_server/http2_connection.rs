use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::time::Duration;

use hyper::rt::{Executor, Read, Write};
use hyper::server::conn::http2;
use hyper::service::service_fn;

use super::connection::{BUFFER, Settings, drive};
use super::http2::{Http2Streams, Http2Timeouts};
use super::{Budget, HttpService};
use crate::network::Network;
use crate::{StopHandle, Timer};

/// Flow-control window in bytes: the data that an HTTP/2 client may send unread, on one stream or
/// on all of them. This default of the protocol lets a body of 4 MiB arrive within 30 s at 450 ms
/// round-trip time.
const WINDOW: u32 = 65_535;
/// The longest HTTP/2 request head, in bytes as counted by RFC 9113 section 6.5.2.
const HEAD: u32 = 16 * 1024;

/// Serves an HTTP/2 connection.
pub(super) async fn serve<N: Network>(
    socket: impl Read + Write + Unpin,
    service: HttpService<N>,
    runtime: N,
    stop: StopHandle,
    settings: Settings,
    budget: Budget,
    timer: impl Timer,
) {
    let timeouts = Http2Timeouts {
        head: settings.head_timeout,
        stall: settings.stall_timeout,
        idle: settings.idle_timeout,
    };
    let budget = budget.connection(&service, settings.connection_bytes_max);
    let streams = Http2Streams::new(timeouts, budget, runtime.clone());
    let serve = service_fn(|request| {
        let mut served = Box::pin(streams.serve(&service, request));
        poll_fn(move |cx| served.as_mut().poll(cx).map(Ok::<_, Infallible>))
    });
    let executor = StreamExecutor { runtime, streams: streams.clone() };
    let mut builder = http2::Builder::new(executor);
    builder.timer(N::hyper_timer()).keep_alive_interval(Duration::from_secs(30));
    builder.max_send_buf_size(BUFFER).max_header_list_size(HEAD);
    builder.initial_connection_window_size(WINDOW).initial_stream_window_size(WINDOW);
    builder.max_concurrent_streams(settings.concurrent_streams_max);
    // Boxed since it is larger: a task reserves space for the largest future that it may hold.
    let mut connection = Box::pin(builder.serve_connection(socket, serve));
    let shutdown = http2::Connection::graceful_shutdown;
    drive(connection.as_mut(), shutdown, || streams.check(), stop, timer).await;
}

/// Spawns the task of one HTTP/2 stream, so that it can be reset independently of other streams.
#[derive(Clone, Debug)]
struct StreamExecutor<N> {
    runtime: N,
    streams: Http2Streams,
}

impl<N: Network, F: Future + Send + 'static> Executor<F> for StreamExecutor<N> {
    fn execute(&self, stream: F) {
        self.runtime.spawn(self.streams.run(stream));
    }
}

use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::task::{Context, Poll, ready};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use mcp_sansio::http::ServerOptions;
use mcp_sansio_async::Timer;
use mcp_sansio_async::http_server::Connections;
use mcp_sansio_handlers::Server;

use super::socket::Socket;
use super::{HttpService, Times, connection};
use crate::deadline::before;
use crate::stop::Stop;
use crate::threads::Threads;
use crate::{Clock, Error, block_on, now};

/// Serves HTTP on a listener, at `/mcp`, for clients on this computer, until the process ends.
///
/// For more say in it, see [`HttpListener`].
///
/// ```no_run
/// use mcp_sansio_std::{Server, serve_http};
///
/// # fn main() -> Result<(), mcp_sansio_std::Error> {
/// let listener = std::net::TcpListener::bind("127.0.0.1:8000")?;
/// serve_http(Server::new("weather", "1.0.0"), listener)
/// # }
/// ```
///
/// # Errors
///
/// The server offers something that it cannot; the operating system has no entropy, no thread or no
/// descriptors.
#[allow(clippy::needless_pass_by_value, reason = "as the other functions that serve")]
pub fn serve_http(server: Server, listener: TcpListener) -> Result<(), Error> {
    let service = HttpService::new(&server, ServerOptions::new())?;
    Ok(HttpListener::new(listener).serve(service)?)
}

/// Accepts connections and serves HTTP/1.1 on them, each on a thread of its own.
///
/// A client that closes its side of a connection before the response is complete has gone: otherwise
/// there would be no telling. A plain handler that is at work is not told.
///
/// The head of a request has at most 64 KiB and 100 fields. What can be understood in two ways, by
/// this server and by one before it, is refused: lengths that contradict each other, folded lines,
/// line ends that are none.
#[derive(Debug)]
pub struct HttpListener {
    listener: TcpListener,
    connections_max: usize,
    times: Times,
    linger: Duration,
}

impl HttpListener {
    /// Serves on `listener`.
    #[must_use]
    pub const fn new(listener: TcpListener) -> Self {
        Self {
            listener,
            connections_max: 512,
            times: Times { head: Duration::from_secs(30), stall: Duration::from_secs(30) },
            linger: Duration::from_secs(10),
        }
    }

    /// Connections at once, each with a thread and three descriptors; others wait to be accepted.
    /// 512 by default: with handlers that wait, as many threads and descriptors as systems give a
    /// process without asking.
    #[must_use]
    pub const fn connections_max(mut self, connections: usize) -> Self {
        self.connections_max = connections;
        self
    }

    /// How long the head of a request may take to come in whole, from the connection's beginning or
    /// the last response on. 30 s by default.
    #[must_use]
    pub const fn head_time(mut self, time: Duration) -> Self {
        self.times.head = time;
        self
    }

    /// How long a client may take for 16 KiB of what is sent to it, or for all of it where that is
    /// less. Its connection is broken off after that. 30 s by default, which is 546 bytes a second.
    #[must_use]
    pub const fn stall_time(mut self, time: Duration) -> Self {
        self.times.stall = time;
        self
    }

    /// How long responses under way may take after [`HttpServing::stop`]. 10 s by default.
    #[must_use]
    pub const fn linger(mut self, time: Duration) -> Self {
        self.linger = time;
        self
    }

    /// Serves on this thread, until the process ends.
    ///
    /// # Errors
    ///
    /// The system has no descriptors to wait with.
    pub fn serve(self, service: HttpService) -> io::Result<()> {
        self.run(&service, &Stop::default())
    }

    /// Serves on a thread of its own.
    ///
    /// # Errors
    ///
    /// The system is out of threads.
    pub fn spawn(self, service: HttpService) -> io::Result<HttpServing> {
        let (stop, address) = (Stop::default(), self.listener.local_addr()?);
        let stopped = stop.clone();
        let run = move || self.run(&service, &stopped);
        let thread = thread::Builder::new().name("mcp-listener".into()).spawn(run)?;
        Ok(HttpServing { stop, address, thread: Some(thread) })
    }

    fn run(self, service: &HttpService, stop: &Stop) -> io::Result<()> {
        let Self { listener, connections_max, times, linger } = self;
        // The bound is the one on connections: a thread is still on its way out when its connection has
        // gone.
        let (connections, threads) = (Connections::default(), Threads::new("mcp-http", usize::MAX));
        block_on(async {
            let mut door = Door::new(listener)?;
            let accept = async {
                loop {
                    poll_fn(|cx| connections.poll_fewer(connections_max, cx)).await;
                    let (socket, address) = poll_fn(|cx| door.poll_accept(cx)).await;
                    let (connection, permit) = connections.open();
                    let service = service.0.with_remote_address(address);
                    let serve = move || {
                        let _permit = permit;
                        // A connection that fails concerns nobody else.
                        let Ok(socket) = Socket::new(socket, times.stall) else { return };
                        let served = connection::serve(socket, service, connection.stop, times);
                        let _ended = block_on(connection.cut.run(served));
                    };
                    // Without a thread the client sees the connection close, and may come again.
                    let _served = threads.run(serve);
                }
            };
            // Accepting does not end by itself.
            let _stopped: Option<()> = stop.guard(accept).await;
            drop(door);
            // Connections without a request close now, the others after their response. Those that take
            // longer are broken off when the set of connections is dropped.
            connections.stop();
            let all = async {
                service.0.close().await;
                poll_fn(|cx| connections.poll_fewer(1, cx)).await;
            };
            let _in_time = before(now() + linger, all).await;
            Ok(())
        })?
    }
}

/// A listener that is served on a thread of its own.
///
/// Dropped, it ends as [`stop`](Self::stop) does.
#[derive(Debug)]
pub struct HttpServing {
    stop: Stop,
    address: SocketAddr,
    /// `None` once it is joined.
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl HttpServing {
    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Accepts nothing from here on, closes the service, for all its clones, and waits until the
    /// responses under way are complete or [their time](HttpListener::linger) is over; then they are
    /// broken off. A plain handler that is at work is not waited for any longer than that.
    ///
    /// # Errors
    ///
    /// The system had no descriptors to wait with, and it ended before.
    pub fn stop(mut self) -> io::Result<()> {
        self.finish()
    }

    fn finish(&mut self) -> io::Result<()> {
        self.stop.stop();
        let Some(thread) = self.thread.take() else { return Ok(()) };
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for HttpServing {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            // Whoever wants to know how it ended asks with `stop`.
            let _ = thread.join();
        }
    }
}

/// How long to wait where the system is out of descriptors or the like, or where listeners cannot be
/// waited for: it passes, but not at once.
const PAUSE: Duration = Duration::from_millis(if cfg!(unix) { 50 } else { 10 });

/// Where connections come in.
struct Door {
    listener: TcpListener,
    #[cfg(unix)]
    descriptor: std::sync::Arc<crate::descriptor::Descriptor>,
    clock: Clock,
    pause_until: Option<mcp_sansio::Instant>,
}

impl Door {
    fn new(listener: TcpListener) -> io::Result<Self> {
        #[cfg(not(unix))]
        listener.set_nonblocking(true)?;
        Ok(Self {
            #[cfg(unix)]
            descriptor: std::sync::Arc::new(crate::descriptor::Descriptor::new(
                listener.try_clone()?.into(),
            )?),
            listener,
            clock: Clock::new(),
            pause_until: None,
        })
    }

    fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<(TcpStream, SocketAddr)> {
        loop {
            if let Some(until) = self.pause_until {
                ready!(self.clock.poll_until(cx, until));
                self.pause_until = None;
            }
            match self.listener.accept() {
                Ok((socket, address)) => {
                    // Some systems have it inherit what the listener was set to.
                    if socket.set_nonblocking(false).is_ok() {
                        return Poll::Ready((socket, address));
                    }
                }
                #[cfg(unix)]
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    use crate::executor::reactor::{Way, watch};

                    if !watch(&self.descriptor, Way::Read, cx.waker()) {
                        cx.waker().wake_by_ref();
                    }
                    return Poll::Pending;
                }
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::ConnectionAborted | ErrorKind::Interrupted
                    ) => {}
                Err(_) => self.pause_until = Some(now() + PAUSE),
            }
        }
    }
}

#[cfg(unix)]
impl Drop for Door {
    fn drop(&mut self) {
        // Whoever watches it keeps it open.
        crate::executor::reactor::forget(&self.descriptor, crate::executor::reactor::Way::Read);
    }
}

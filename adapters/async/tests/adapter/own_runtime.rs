//! A runtime of about sixty lines with one thread per task, running a server and a client. Shown in
//! `docs/guide/runtimes.md`.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use mcp_sansio::Instant;
use mcp_sansio::http::HttpServerOptions;
use mcp_sansio_async::http_server::HttpService;
use mcp_sansio_async::{ByteStream, CatchPanic, Driver, Runtime, Timer, clock, seed};
use mcp_sansio_handlers::{Call, Host, NoArguments, Server};

/// A runtime that runs each task on its own thread.
#[derive(Clone, Copy, Debug)]
struct Threads;

impl Runtime for Threads {
    type Timer = Alarm;

    fn current() -> Self {
        Self
    }

    fn timer(&self) -> Alarm {
        Alarm
    }

    fn spawn<F: Future<Output = ()> + Send + 'static>(&self, future: F) {
        thread::spawn(|| block_on(CatchPanic::new(future)));
    }
}

thread_local! {
    /// The time at which this thread's task must be polled again, even without a wake.
    static WAKES_AT: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// A timer that limits how long `block_on` parks the thread.
struct Alarm;

impl Timer for Alarm {
    fn now(&self) -> Instant {
        clock::now()
    }

    fn poll_until(&mut self, _: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        if clock::now() >= deadline {
            return Poll::Ready(());
        }
        WAKES_AT.set(Some(WAKES_AT.get().map_or(deadline, |other| other.min(deadline))));
        Poll::Pending
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future to completion on the current thread.
fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        WAKES_AT.set(None);
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        match WAKES_AT.get() {
            Some(deadline) => thread::park_timeout(deadline.saturating_since(clock::now())),
            None => thread::park(),
        }
    }
}

/// A socket that is polled every millisecond, because this runtime has no I/O reactor.
struct Socket(TcpStream);

impl Socket {
    fn poll<T>(&self, outcome: io::Result<T>) -> Poll<io::Result<T>> {
        if outcome.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
            let soon = clock::now() + Duration::from_millis(1);
            WAKES_AT.set(Some(WAKES_AT.get().map_or(soon, |other| other.min(soon))));
            return Poll::Pending;
        }
        Poll::Ready(outcome)
    }
}

impl ByteStream for Socket {
    fn poll_read(&mut self, _: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let outcome = io::Read::read(&mut &self.0, buffer);
        self.poll(outcome)
    }

    fn poll_write(&mut self, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let outcome = io::Write::write(&mut &self.0, bytes);
        self.poll(outcome)
    }

    fn poll_flush(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.0.shutdown(Shutdown::Write))
    }
}

fn server() -> Server {
    Server::new("clock", "1.0.0").tool("now", "The time", async |_: Call<NoArguments>| {
        // Yields once, so that the handler needs the runtime.
        let mut polled = false;
        std::future::poll_fn(|cx| {
            if std::mem::replace(&mut polled, true) {
                return Poll::Ready(());
            }
            let waker = cx.waker().clone();
            thread::spawn(move || waker.wake());
            Poll::Pending
        })
        .await;
        "about noon"
    })
}

#[test]
fn a_client_and_a_server_talk_over_sockets() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let theirs = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (ours, _) = listener.accept().unwrap();
    for socket in [&theirs, &ours] {
        socket.set_nonblocking(true).unwrap();
    }
    let serving = Driver::new(server().endpoint(seed()).unwrap(), Socket(ours), Threads.timer());
    Threads.spawn(async { serving.await.unwrap() });
    let (client, endpoint) = Host::new("demo", "1.0.0").connect(seed(), Threads.now());
    Threads.spawn(async { Driver::new(endpoint, Socket(theirs), Alarm).await.unwrap() });
    let no_arguments = BTreeMap::<&str, &str>::new();
    let report = block_on(async {
        client.opened().await.unwrap();
        client.call_tool("now", &no_arguments).await.unwrap()
    });
    assert!(format!("{report:?}").contains("about noon"), "{report:?}");
}

#[test]
fn a_server_answers_over_http() {
    let service = HttpService::<Threads>::new(&server(), HttpServerOptions::new()).unwrap();
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"now","_meta":{
        "io.modelcontextprotocol/protocolVersion":"2026-07-28",
        "io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let request = http::Request::post("/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "now")
        .body(body.to_owned())
        .unwrap();
    let response = block_on(service.serve(request));
    assert_eq!(response.status(), http::StatusCode::OK);
}

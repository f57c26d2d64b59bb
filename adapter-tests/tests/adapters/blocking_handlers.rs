//! Blocking handlers run at the same time on every runtime, without a spawner of the application.
#![cfg(unix)]

use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use adapter_tests::{block_on_async_std, block_on_smol};
use mcp_sansio::Era;
use mcp_sansio::protocol::{ListRootsParams, Root};
use mcp_sansio_async_std::SocketStream;
use mcp_sansio_handlers::endpoint::Endpoint;
use mcp_sansio_handlers::{Call, Client, Host, HostRequest, NoArguments, Server, blocking};
use mcp_sansio_std::{Wait as _, connect, now, seed};
use mcp_sansio_tokio::TokioStream;

const PARTIES: usize = 3;

/// Handlers that wait for each other. A handler that stays alone for 50 seconds gives up, so that the
/// test fails instead of hanging.
#[derive(Clone, Default)]
struct Meeting(Arc<(Mutex<usize>, Condvar)>);

impl Meeting {
    fn attend(&self) -> &'static str {
        let (arrived, changed) = &*self.0;
        let mut arrived = arrived.lock().unwrap();
        *arrived += 1;
        changed.notify_all();
        let patience = Duration::from_secs(50);
        let waited = changed.wait_timeout_while(arrived, patience, |arrived| *arrived < PARTIES);
        if waited.unwrap().1.timed_out() { "alone" } else { "met" }
    }
}

/// The adapters, asynchronous ones with a single thread for tasks.
#[derive(Clone, Copy, Debug)]
enum Adapter {
    Tokio,
    Smol,
    AsyncStd,
    Std,
}

const ADAPTERS: [Adapter; 4] = [Adapter::Tokio, Adapter::Smol, Adapter::AsyncStd, Adapter::Std];

fn on_tokio(future: impl Future) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(future);
    // A handler that waits for the others must not keep a failed test.
    runtime.shutdown_background();
}

/// Drives an endpoint on a thread, until the connection ends.
fn drive(adapter: Adapter, endpoint: impl Endpoint + Send + 'static, stream: UnixStream) {
    thread::spawn(move || match adapter {
        Adapter::Tokio => on_tokio(async {
            stream.set_nonblocking(true).unwrap();
            let stream = TokioStream::from(tokio::net::UnixStream::from_std(stream).unwrap());
            mcp_sansio_tokio::drive(endpoint, stream).await.unwrap();
        }),
        Adapter::Smol | Adapter::AsyncStd => {
            let stream = SocketStream::from(smol::Async::new(stream).unwrap());
            let driver = mcp_sansio_async_std::drive(endpoint, stream);
            match adapter {
                Adapter::Smol => block_on_smol(driver).unwrap(),
                _ => block_on_async_std(driver).unwrap(),
            }
        }
        Adapter::Std => mcp_sansio_std::serve_stream(endpoint, stream).unwrap(),
    });
}

/// Serves HTTP on a thread, and returns the URL.
fn serve_http(adapter: Adapter, server: Server) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    thread::spawn(move || match adapter {
        Adapter::Tokio => on_tokio(async {
            listener.set_nonblocking(true).unwrap();
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            mcp_sansio_tokio::serve_http(server, listener).await.unwrap();
        }),
        Adapter::Smol => {
            block_on_smol(mcp_sansio_async_std::serve_http(server, listener)).unwrap();
        }
        Adapter::AsyncStd => {
            let serving = mcp_sansio_async_std::serve_http(server, listener);
            block_on_async_std(serving).unwrap();
        }
        Adapter::Std => mcp_sansio_std::serve_http(server, listener).unwrap(),
    });
    url
}

fn server() -> Server {
    let meeting = Meeting::default();
    Server::new("meeting", "1")
        .tool("meet", "", blocking(move |_: Call<NoArguments>| meeting.attend()))
        .tool("ask", "", |call: Call<NoArguments>| match call.roots("roots")? {
            None => call.require_input("roots", ListRootsParams::default()).into_result(),
            Some(roots) => Ok(roots.roots[0].name.clone().unwrap_or_default()),
        })
}

/// Returns hosts for both eras.
fn hosts() -> [Host; 2] {
    [Era::Legacy, Era::Modern].map(|era| {
        let meeting = Meeting::default();
        Host::new("test", "1").known_era(era).on_roots(blocking(move |_: HostRequest<()>| {
            let mut root = Root::new("file:///");
            root.name = Some(meeting.attend().into());
            vec![root]
        }))
    })
}

/// Makes as many concurrent calls as a meeting has parties.
fn meet(client: &Client, tool: &str) {
    client.opened().wait().unwrap();

    thread::scope(|threads| {
        let call = || client.call_tool(tool, &NoArguments {}).wait().unwrap();
        let calls: Vec<_> = (0..PARTIES).map(|_| threads.spawn(call)).collect();
        for call in calls {
            assert_eq!(call.join().unwrap().content[0].as_text(), Some("met"));
        }
    });
}

#[test]
fn blocking_handlers_of_a_connection_run_at_the_same_time() {
    for adapter in ADAPTERS {
        for host in hosts() {
            let (here, there) = UnixStream::pair().unwrap();
            let (client, endpoint) = host.connect(seed(), now());
            drive(adapter, server().endpoint(seed()).unwrap(), there);
            drive(Adapter::Std, endpoint, here);
            meet(&client, "meet");
        }
    }
}

#[test]
fn blocking_handlers_of_an_http_server_run_at_the_same_time() {
    for adapter in ADAPTERS {
        for host in hosts() {
            let client = connect(&serve_http(adapter, server()), &host).unwrap();
            meet(&client, "meet");
            client.close();
        }
    }
}

#[test]
fn blocking_handlers_of_a_host_run_at_the_same_time() {
    for adapter in ADAPTERS {
        for host in hosts() {
            let (here, there) = UnixStream::pair().unwrap();
            let (client, endpoint) = host.connect(seed(), now());
            drive(Adapter::Std, server().endpoint(seed()).unwrap(), there);
            drive(adapter, endpoint, here);
            meet(&client, "ask");
        }
    }
}

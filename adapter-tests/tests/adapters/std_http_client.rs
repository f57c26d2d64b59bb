//! The blocking HTTP client on real sockets.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use mcp_sansio_std::http::Location;
use mcp_sansio_std::{
    Call, CancelHandle, ConnectError, Connector, Error, Host, HttpClientOptions, HttpConnection,
    NoArguments, Proxy, Revision, Revisions, Server, Wait, connect_with,
};
use mcp_sansio_tokio::{HttpListener, HttpService};

/// Far longer than any test takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// Serves on separate threads until the process ends.
fn serve(server: Server) -> SocketAddr {
    let (told, tell) = channel();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            told.send(listener.local_addr().unwrap()).unwrap();
            let service = HttpService::new(&server, mcp_sansio::http::HttpServerOptions::new());
            HttpListener::new(listener).serve(service.unwrap(), std::future::pending()).await;
        });
    });
    tell.recv().unwrap()
}

fn options(address: SocketAddr) -> HttpClientOptions {
    HttpClientOptions::new(Location::parse(&format!("http://{address}/mcp")).unwrap())
}

fn host(revision: Revision) -> Host {
    Host::new("test", "1").revisions(Revisions::only(revision))
}

fn open(address: SocketAddr, revision: Revision) -> HttpConnection {
    connect_with(
        options(address),
        &Connector::builder().proxy(Proxy::none()).build().unwrap(),
        &host(revision),
    )
    .unwrap()
}

const ERAS: [Revision; 2] = [Revision::V2025_11_25, Revision::V2026_07_28];

/// Sends a signal when dropped.
struct Departure(Sender<()>);

impl Drop for Departure {
    fn drop(&mut self) {
        let _nobody_listens = self.0.send(());
    }
}

#[test]
fn both_eras_are_called_and_closed() {
    let address = serve(Server::new("test", "1").tool("hi", "Hi", |_: Call<NoArguments>| "hello"));
    for revision in ERAS {
        let client = open(address, revision);
        for _ in 0..3 {
            let result = client.call_tool("hi", &serde_json::json!({})).wait().unwrap();
            assert_eq!(result.content[0].as_text(), Some("hello"));
        }
        assert!(client.last_failure().is_none());
        client.close();
    }
}

#[test]
fn messages_before_the_result_arrive_while_the_handler_runs() {
    for revision in ERAS {
        let (release, released) = tokio::sync::oneshot::channel::<()>();
        let released = Arc::new(Mutex::new(Some(released)));
        let tool = move |call: Call<NoArguments>| {
            let released = released.lock().unwrap().take();
            async move {
                call.progress(1.0, None, "begun");
                released.unwrap().await.unwrap();
                "done"
            }
        };
        let client = open(serve(Server::new("test", "1").tool("work", "Works", tool)), revision);
        let release = Mutex::new(Some(release));
        let call = client.call_tool("work", &serde_json::json!({})).on_progress(move |_| {
            // The handler only finishes after this signal.
            release.lock().unwrap().take().unwrap().send(()).unwrap();
        });
        assert_eq!(call.wait().unwrap().content[0].as_text(), Some("done"));
    }
}

#[test]
fn calls_do_not_wait_for_one_another() {
    const CALLS: usize = 40;
    let meeting = Arc::new(tokio::sync::Barrier::new(CALLS));
    let tool = move |_: Call<NoArguments>| {
        let meeting = Arc::clone(&meeting);
        async move {
            meeting.wait().await;
            "met"
        }
    };
    let client = open(serve(Server::new("test", "1").tool("meet", "Meets", tool)), ERAS[1]);
    thread::scope(|scope| {
        for _ in 0..CALLS {
            scope.spawn(|| client.call_tool("meet", &serde_json::json!({})).wait().unwrap());
        }
    });
}

#[test]
fn an_aborted_exchange_is_disconnected_at_the_server() {
    let (told, tell) = channel();
    let (here, arrived) = channel();
    let tool = move |_: Call<NoArguments>| {
        let departure = Departure(told.clone());
        here.send(()).unwrap();
        async move {
            let _departure = departure;
            std::future::pending::<()>().await;
            "never"
        }
    };
    let client = open(serve(Server::new("test", "1").tool("wait", "Waits", tool)), ERAS[1]);
    let call = client.call_tool("wait", &serde_json::json!({}));
    let calling = thread::spawn(move || call.wait());
    arrived.recv_timeout(PATIENCE).unwrap();
    assert!(tell.try_recv().is_err());
    drop(client);
    tell.recv_timeout(PATIENCE).unwrap();
    assert!(calling.join().unwrap().is_err());
}

#[test]
fn a_wait_that_another_thread_cancels_is_cancelled_at_the_server() {
    for revision in ERAS {
        let (told, tell) = channel();
        let (here, arrived) = channel();
        let tool = move |_: Call<NoArguments>| {
            let departure = Departure(told.clone());
            here.send(()).unwrap();
            async move {
                let _departure = departure;
                std::future::pending::<()>().await;
                "never"
            }
        };
        let server = Server::new("test", "1").tool("wait", "Waits", tool);
        let client = open(serve(server.tool("hi", "Hi", |_: Call<NoArguments>| "hello")), revision);
        let (cancel, call) = (CancelHandle::new(), client.call_tool("wait", &NoArguments {}));
        let handle = cancel.clone();
        let calling = thread::spawn(move || call.wait_or_cancel(&handle).is_none());
        arrived.recv_timeout(PATIENCE).unwrap();
        assert!(tell.try_recv().is_err());
        cancel.cancel();
        assert!(calling.join().unwrap());
        tell.recv_timeout(PATIENCE).unwrap();
        // The connection stays open, and a cancelled handle sends nothing.
        assert!(client.call_tool("wait", &NoArguments {}).wait_or_cancel(&cancel).is_none());
        let result = client.call_tool("hi", &NoArguments {}).wait().unwrap();
        assert_eq!(result.content[0].as_text(), Some("hello"));
        assert!(arrived.try_recv().is_err());
    }
}

#[test]
fn an_unreachable_server_is_reported_by_address() {
    let (_held, address) = crate::http_client::closed_port();
    let connector = Connector::builder().proxy(Proxy::none()).build().unwrap();
    let error = connect_with(options(address), &connector, &Host::new("test", "1")).unwrap_err();
    let Error::Connect(error) = error else { panic!("{error}") };
    assert!(matches!(*error, ConnectError::Unreachable { .. }), "{error}");
}

#[test]
fn a_redirect_to_another_host_is_not_followed() {
    let [listener, other] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let (address, target) = (listener.local_addr().unwrap(), other.local_addr().unwrap());
    other.set_nonblocking(true).unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut space = [0; 4096];
            while !matches!(stream.read(&mut space), Ok(0) | Err(_)) {
                let head = format!(
                    "HTTP/1.1 302 Found\r\nLocation: http://localhost:{}/mcp\r\n\
                     Content-Length: 0\r\nConnection: close\r\n\r\n",
                    target.port()
                );
                let _gone = stream.write_all(head.as_bytes());
            }
        }
    });
    let connector = Connector::builder().proxy(Proxy::none()).build().unwrap();
    let host = Host::new("test", "1");
    assert!(connect_with(options(address), &connector, &host).is_err());
    assert!(other.accept().is_err());
}

//! HTTP on Unix-domain sockets, on each runtime.
#![cfg(unix)]
#![allow(clippy::disallowed_methods, reason = "tests of the blocking adapter")]

mod served;

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Barrier;

use adapter_tests::{block_on_async_std, block_on_smol};
use mcp_sansio_handlers::NoArguments;
use mcp_sansio_tokio::HttpClientOptions;
use mcp_sansio_tokio::adapter::http_server::{UnixSocket, UnixSocketError};
use mcp_sansio_tokio::http::Location;

use served::{Adapter, Folder, Served, host, server, text, tokio_runtime};

/// The principal of this process.
fn own_principal(folder: &Folder) -> String {
    let uid = fs::metadata(folder.socket()).unwrap().uid();
    if cfg!(any(target_os = "android", target_os = "linux")) {
        format!("uid:{uid}")
    } else {
        "anonymous".to_owned()
    }
}

#[test]
fn a_client_calls_a_server_that_knows_its_user() {
    for adapter in Adapter::ALL {
        let folder = Folder::new();
        let served = Served::new(adapter, UnixSocket::bind(folder.socket()).unwrap());
        for client in Adapter::ALL {
            let who = client.who(&folder.socket());
            assert_eq!(who, Ok(own_principal(&folder)), "{client:?} to {adapter:?}");
        }
        served.stop();
    }
}

#[test]
fn the_user_is_not_the_caller_if_the_server_says_so() {
    for adapter in Adapter::ALL {
        let folder = Folder::new();
        let _served = Served::with(adapter, UnixSocket::bind(folder.socket()).unwrap(), false);
        assert_eq!(adapter.who(&folder.socket()), Ok("anonymous".to_owned()), "{adapter:?}");
    }
}

#[test]
fn a_server_that_stops_removes_its_socket() {
    for adapter in Adapter::ALL {
        let folder = Folder::new();
        let served = Served::new(adapter, UnixSocket::bind(folder.socket()).unwrap());
        adapter.who(&folder.socket()).unwrap();
        assert!(folder.socket().exists());
        served.stop();
        assert!(!folder.socket().exists(), "{adapter:?}");
        let error = adapter.who(&folder.socket()).unwrap_err();
        let cause = format!("cannot connect to {}: ", folder.socket().display());
        assert!(error.contains("localhost") && error.contains("No such file"), "{error}");
        assert!(adapter == Adapter::Std || error.contains(&cause), "{error}");
    }
}

#[test]
fn a_dropped_server_removes_its_socket() {
    let folder = Folder::new();
    tokio_runtime().block_on(async {
        use mcp_sansio_tokio::{HttpListener, HttpServerOptions, HttpService};

        let service = HttpService::new(&server(), HttpServerOptions::new()).unwrap();
        let listener = HttpListener::try_from(UnixSocket::bind(folder.socket()).unwrap()).unwrap();
        let serving = tokio::spawn(listener.serve(service, std::future::pending()));
        tokio::task::yield_now().await;
        serving.abort();
        assert!(serving.await.unwrap_err().is_cancelled());
    });
    assert!(!folder.socket().exists());
    drop(UnixSocket::bind(folder.socket()).unwrap());
    assert!(!folder.socket().exists());
}

#[test]
fn a_stale_socket_is_replaced() {
    for adapter in Adapter::ALL {
        let folder = Folder::new();
        let path = folder.stale();
        let _served = Served::new(adapter, UnixSocket::bind(&path).unwrap());
        assert_eq!(adapter.who(&path), Ok(own_principal(&folder)), "{adapter:?}");
    }
}

#[test]
fn a_socket_in_use_is_kept() {
    let folder = Folder::new();
    let served = Served::new(Adapter::Tokio, UnixSocket::bind(folder.socket()).unwrap());
    let refused = UnixSocket::bind(folder.socket()).unwrap_err();
    let UnixSocketError::InUse { path } = &refused else { panic!("{refused}") };
    assert_eq!(*path, folder.socket());
    Adapter::Tokio.who(&folder.socket()).unwrap();
    served.stop();
    // Also if it is not an MCP server, and accepts nothing.
    let _other = UnixListener::bind(folder.socket()).unwrap();
    let refused = UnixSocket::bind(folder.socket()).unwrap_err();
    assert!(matches!(refused, UnixSocketError::InUse { .. }), "{refused}");
}

#[test]
fn only_one_of_many_concurrent_servers_replaces_a_stale_socket() {
    for _ in 0..50 {
        let (folder, start) = (Folder::new(), Barrier::new(8));
        folder.stale();
        let outcomes: Vec<_> = std::thread::scope(|scope| {
            let bind = || {
                start.wait();
                UnixSocket::bind(folder.socket())
            };
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(bind)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let bound = outcomes.iter().filter(|it| it.is_ok()).count();
        assert_eq!(bound, 1);
        UnixStream::connect(folder.socket()).unwrap();
        for refused in outcomes.iter().filter_map(|it| it.as_ref().err()) {
            assert!(matches!(refused, UnixSocketError::InUse { .. }), "{refused}");
        }
    }
}

#[test]
fn a_socket_is_bound_only_while_its_directory_is_locked() {
    use rustix::fs::{FlockOperation, flock};

    let folder = Folder::new();
    folder.stale();
    let directory = fs::File::open(folder.socket().parent().unwrap()).unwrap();
    flock(&directory, FlockOperation::LockExclusive).unwrap();
    let refused = UnixSocket::bind(folder.socket()).unwrap_err();
    assert!(refused.to_string().contains("lock"), "{refused}");
    flock(&directory, FlockOperation::Unlock).unwrap();
    UnixSocket::bind(folder.socket()).unwrap();
}

#[test]
fn a_file_that_is_no_socket_is_kept() {
    let folder = Folder::new();
    fs::write(folder.socket(), "precious").unwrap();
    let refused = UnixSocket::bind(folder.socket()).unwrap_err();
    assert!(matches!(refused, UnixSocketError::NotASocket { .. }), "{refused}");
    assert_eq!(fs::read(folder.socket()).unwrap(), b"precious");
}

#[test]
fn a_path_that_cannot_be_bound_is_reported() {
    let folder = Folder::new();
    let missing = folder.socket().join("below").join("mcp.sock");
    for path in [missing, folder.socket().with_file_name("x".repeat(200))] {
        let refused = UnixSocket::bind(&path).unwrap_err();
        assert!(matches!(refused, UnixSocketError::System { .. }), "{refused}");
        assert!(refused.to_string().contains(path.to_str().unwrap()), "{refused}");
    }
}

#[test]
fn a_socket_that_was_replaced_is_not_removed() {
    let folder = Folder::new();
    let bound = UnixSocket::bind(folder.socket()).unwrap();
    fs::remove_file(folder.socket()).unwrap();
    let _another = UnixListener::bind(folder.socket()).unwrap();
    drop(bound);
    assert!(folder.socket().exists());
}

#[test]
fn only_the_own_user_may_connect_by_default() {
    let folder = Folder::new();
    let mode = || fs::metadata(folder.socket()).unwrap().permissions().mode() & 0o777;
    let bound = UnixSocket::bind(folder.socket()).unwrap();
    assert_eq!((mode(), bound.path()), (0o600, &*folder.socket()));
    assert!(fs::metadata(bound.path()).unwrap().file_type().is_socket());
    drop(bound);
    let _bound = UnixSocket::bind_with_mode(folder.socket(), 0o660).unwrap();
    assert_eq!(mode(), 0o660);
}

#[test]
fn requests_of_other_hosts_and_origins_are_refused() {
    // Rule: [HSRV-003] [HSRV-004].
    let cases = [
        ("Host: localhost", 200),
        ("Host: localhost:8000", 200),
        ("Host: evil.example", 403),
        ("Host: localhost\r\nOrigin: http://localhost", 200),
        ("Host: localhost\r\nOrigin: http://evil.example", 403),
    ];
    for adapter in Adapter::ALL {
        let folder = Folder::new();
        let _served = Served::new(adapter, UnixSocket::bind(folder.socket()).unwrap());
        for (fields, status) in cases {
            let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{
                "protocolVersion":"2025-11-25","capabilities":{},
                "clientInfo":{"name":"raw","version":"1"}}}"#;
            let mut socket = UnixStream::connect(folder.socket()).unwrap();
            write!(
                socket,
                "POST /mcp HTTP/1.1\r\n{fields}\r\nConnection: close\r\n\
                 Content-Type: application/json\r\nContent-Length: {}\r\n\
                 Accept: application/json, text/event-stream\r\n\r\n{body}",
                body.len()
            )
            .unwrap();
            let mut response = String::new();
            socket.read_to_string(&mut response).unwrap();
            let expected = format!("HTTP/1.1 {status} ");
            assert!(response.starts_with(&expected), "{adapter:?}, {fields}: {response}");
        }
    }
}

/// Serves the same server on TCP until the process ends, and returns its URL.
fn serve_on_tcp() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    std::thread::spawn(|| mcp_sansio_std::serve_http(server(), listener).unwrap());
    url
}

#[test]
fn a_connector_reaches_other_hosts_without_the_socket() {
    let folder = Folder::new();
    let _served = Served::new(Adapter::Tokio, UnixSocket::bind(folder.socket()).unwrap());
    let tcp = serve_on_tcp();
    let own = own_principal(&folder);
    for (url, who) in
        [("http://localhost/mcp", &*own), ("http://localhost:81/mcp", &own), (&tcp, "anonymous")]
    {
        let options = || HttpClientOptions::new(Location::parse(url).unwrap());
        tokio_runtime().block_on(async {
            use mcp_sansio_tokio::{Connector, Proxy, connect_with};
            // The proxy is not reachable.
            let proxy = Proxy::all("http://127.0.0.1:1").unwrap().except("127.0.0.1");
            let connector = Connector::builder().unix_socket(folder.socket()).proxy(proxy);
            let client =
                connect_with(options(), &connector.build().unwrap(), &host()).await.unwrap();
            let result = client.call_tool("who", &NoArguments {}).await;
            assert_eq!(text(result).as_deref(), Ok(who), "{url}");
        });
        use mcp_sansio_std::{Connector, Wait, connect_with};
        let connector = Connector::builder().unix_socket(folder.socket()).build().unwrap();
        let client = connect_with(options(), &connector, &host()).unwrap();
        for _ in 0..3 {
            let result = client.call_tool("who", &NoArguments {}).wait();
            assert_eq!(text(result).as_deref(), Ok(who), "{url}");
        }
    }
}

#[test]
fn the_functions_that_serve_until_the_process_ends_serve() {
    for adapter in Adapter::ALL {
        let folder = Folder::new();
        let path = folder.socket();
        let serve = move || match adapter {
            Adapter::Tokio => tokio_runtime()
                .block_on(async { mcp_sansio_tokio::serve_http_unix(server(), path).await }),
            Adapter::Smol => block_on_smol(mcp_sansio_async_std::serve_http_unix(server(), path)),
            Adapter::AsyncStd => block_on_async_std(async {
                mcp_sansio_async_std::serve_http_unix(server(), path).await
            }),
            Adapter::Std => mcp_sansio_std::serve_http_unix(server(), path),
        };
        std::thread::spawn(move || serve().unwrap());
        while UnixStream::connect(folder.socket()).is_err() {
            std::thread::yield_now();
        }
        assert_eq!(adapter.who(&folder.socket()), Ok(own_principal(&folder)), "{adapter:?}");
    }
}

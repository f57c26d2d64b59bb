//! Servers of several transports behind one list: a child process and a server on HTTP.
#![cfg(unix)]

use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpListener};
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use adapter_tests::block_on_smol;
use mcp_sansio::peer::Event;
use mcp_sansio_handlers::{
    Call, Host, NoArguments, Server, ServerConnection, ServerState, Servers, ServersConfig,
};

/// How long a machine with other work may take.
const LOADED_MACHINE: Duration = Duration::from_secs(60);

/// Returns a server with the tool `id`.
fn child() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_adapter-tests"));
    command.args(["tokio", "fragile"]);
    command
}

fn remote() -> Server {
    Server::new("remote", "1").tool("hello", "Greets", |_: Call<NoArguments>| "Hello!")
}

const TOOLS: [&str; 5] = ["child_crash", "child_id", "child_print", "child_touch", "remote_hello"];

#[tokio::test]
async fn children_and_servers_on_http_are_in_one_list_on_tokio() {
    use mcp_sansio_tokio::AnyConnection;

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let serving = tokio::spawn(mcp_sansio_tokio::serve_http(remote(), listener));
    let (host, other) = (Host::new("host", "1"), Host::new("host", "1"));
    let servers = Servers::<AnyConnection>::new();
    let spawn =
        async move || mcp_sansio_tokio::spawn(child(), &host).await.map(AnyConnection::from);
    let connect =
        async move || mcp_sansio_tokio::connect(&url, &other).await.map(AnyConnection::from);
    let first = tokio::spawn(servers.connect("child", spawn, tokio::time::sleep).unwrap());
    let second = tokio::spawn(servers.connect("remote", connect, tokio::time::sleep).unwrap());
    let errors = servers.ready(tokio::time::sleep(LOADED_MACHINE)).await;
    assert!(errors.is_empty(), "{errors:?}");
    let tools = servers.all_tools().await;
    let mut names: Vec<_> = tools.items.iter().map(|tool| &*tool.item.name).collect();
    names.sort_unstable();
    assert_eq!((names.as_slice(), tools.errors.len()), (&TOOLS[..], 0));
    let result = servers.call_tool("remote_hello", &NoArguments {}).unwrap().await.unwrap();
    assert_eq!(result.first_text(), Some("Hello!"));
    let (stop, serving) = (serving.abort_handle(), serving);
    stop.abort();
    assert!(serving.await.unwrap_err().is_cancelled());
    let lost = servers.call_tool("remote_hello", &NoArguments {}).unwrap().await;
    assert!(lost.is_err(), "{lost:?}");
    for (name, connection) in servers.close() {
        assert_eq!(connection.last_failure().is_some(), *name == *"remote");
        let (client, ended) = check(&name, connection).await;
        assert_eq!(ended.unwrap().is_some(), *name == *"child");
        assert!(client.close_reason().is_some());
    }
    first.await.unwrap();
    second.await.unwrap();
}

/// Shuts a connection down, after a check that it is what its name says.
async fn check(
    name: &str,
    connection: mcp_sansio_tokio::AnyConnection,
) -> (
    mcp_sansio_tokio::Client,
    Result<Option<mcp_sansio_tokio::adapter::child::ExitReport>, mcp_sansio_tokio::Error>,
) {
    let is_child = name == "child";
    assert_eq!(
        (connection.id().is_some(), connection.stderr_tail().is_some()),
        (is_child, is_child)
    );
    let client = connection.clone();
    (client, connection.shutdown().await)
}

#[tokio::test]
async fn any_connection_to_a_child_process_kills_it_and_reports_its_end() {
    use mcp_sansio_tokio::AnyConnection;

    let host = Host::new("host", "1");
    let connection = AnyConnection::from(mcp_sansio_tokio::spawn(child(), &host).await.unwrap());
    connection.kill();
    connection.closed().await;
    let report = connection.shutdown().await.unwrap().expect("how it has ended");
    assert!(!report.status.success(), "{report}");
}

#[test]
fn children_and_servers_on_http_are_in_one_list_with_threads() {
    use mcp_sansio_std::{AnyConnection, Wait, block_on, serve_http, sleep};

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    std::thread::spawn(|| serve_http(remote(), listener).unwrap());
    let (host, other) = (Host::new("host", "1"), Host::new("host", "1"));
    let servers = Servers::<AnyConnection>::new();
    let spawn = async move || mcp_sansio_std::spawn(child(), &host).map(AnyConnection::from);
    let connect = async move || mcp_sansio_std::connect(&url, &other).map(AnyConnection::from);
    let first = servers.connect("child", spawn, sleep).unwrap();
    let second = servers.connect("remote", connect, sleep).unwrap();
    let first = std::thread::spawn(|| block_on(first));
    let second = std::thread::spawn(|| block_on(second));
    let errors = block_on(servers.ready(sleep(LOADED_MACHINE)));
    assert!(errors.is_empty(), "{errors:?}");
    let tools = block_on(servers.all_tools());
    let mut names: Vec<_> = tools.items.iter().map(|tool| &*tool.item.name).collect();
    names.sort_unstable();
    assert_eq!((names.as_slice(), tools.errors.len()), (&TOOLS[..], 0));
    let result = servers.call_tool("remote_hello", &NoArguments {}).unwrap().wait().unwrap();
    assert_eq!(result.first_text(), Some("Hello!"));
    for (name, connection) in servers.close() {
        let (client, ended) = block_on(check(&name, connection));
        assert_eq!(ended.unwrap().is_some(), *name == *"child");
        assert!(client.close_reason().is_some());
    }
    first.join().unwrap();
    second.join().unwrap();
}

// ------------------------------------------------------------------ configuration

/// The servers of a configuration: two that work, and four that fail in different ways.
struct Configured {
    config: ServersConfig,
    /// The requests to the server that refuses them.
    requests: Receiver<String>,
    /// It never answers.
    _silent: TcpListener,
}

impl Configured {
    fn new(url: &str) -> Self {
        let bind = || TcpListener::bind("127.0.0.1:0").unwrap();
        let (silent, refusing) = (bind(), bind());
        let address = |listener: &TcpListener| listener.local_addr().unwrap();
        let text = format!(
            r#"{{ "mcpServers": {{
                "child": {{ "command": "{program}", "args": ["tokio", "${{ROLE:-fragile}}"] }},
                "remote": {{ "type": "http", "url": "{url}" }},
                "broken": {{ "command": "${{NO_SUCH_VARIABLE}}" }},
                "missing": {{ "command": "/no/such/program" }},
                "refused": {{ "url": "http://{}", "headers": {{ "X-Key": "${{KEY}}" }} }},
                "silent": {{ "url": "http://{}" }}
            }} }}"#,
            address(&refusing),
            address(&silent),
            program = env!("CARGO_BIN_EXE_adapter-tests"),
        );
        let variable = |name: &str| (name == "KEY").then(|| "secret".to_owned());
        let config = ServersConfig::parse(&text, variable).unwrap();
        let (sender, requests) = channel();
        std::thread::spawn(move || {
            for stream in refusing.incoming() {
                let mut stream = BufReader::new(stream.unwrap());
                let mut request = String::new();
                while !request.ends_with("\r\n\r\n") {
                    assert!(stream.read_line(&mut request).unwrap() > 0, "{request}");
                }
                // The client asks again, with the handshake of older revisions, and would do so on
                // this connection if it did not hear that it ends.
                let fields = "connection: close\r\ncontent-length: 0";
                write!(stream.get_mut(), "HTTP/1.1 401 No\r\n{fields}\r\n\r\n").unwrap();
                stream.get_mut().shutdown(Shutdown::Write).unwrap();
                // A connection that is closed before its body is read is reset, which may overtake
                // the answer.
                let _ = std::io::copy(&mut stream, &mut std::io::sink());
                if sender.send(request).is_err() {
                    return;
                }
            }
        });
        Self { config, requests, _silent: silent }
    }

    /// Checks that the two work, that the errors name the others, and that what cannot change is
    /// not tried again.
    async fn check<C: ServerConnection>(
        &self,
        servers: &Servers<C>,
        pause: impl AsyncFn(Duration),
    ) {
        let limit = async {
            let is_pending = |(name, state): (std::sync::Arc<str>, ServerState)| {
                matches!(state, ServerState::Connecting) && *name != *"silent"
            };
            while servers.states().into_iter().any(is_pending) {
                pause(Duration::from_millis(10)).await;
            }
        };
        let errors = servers.ready(limit).await;
        let errors: Vec<_> = errors.into_iter().map(|error| error.to_string()).collect();
        let expected = [
            ["broken", "`mcpServers.broken.command`: the variable `NO_SUCH_VARIABLE` is not set"],
            ["missing", "cannot start the server `/no/such/program`: there is no such file"],
            ["refused", "requires authorization (HTTP status 401)"],
            ["silent", "not connected yet: http://127.0.0.1:"],
        ];
        assert_eq!(errors.len(), expected.len(), "{errors:?}");
        for (error, parts) in errors.iter().zip(expected) {
            assert!(parts.iter().all(|part| error.contains(part)), "{error}");
        }
        for (name, state) in servers.states() {
            let is_over = matches!(state, ServerState::Ended { .. });
            assert_eq!(is_over, ["broken", "missing", "refused"].contains(&&*name), "{state}");
        }
        let request = self.requests.recv().unwrap().to_ascii_lowercase();
        assert!(request.contains("x-key: secret"), "{request}");
        let tools = servers.all_tools().await;
        let mut names: Vec<_> = tools.items.iter().map(|tool| &*tool.item.name).collect();
        names.sort_unstable();
        assert_eq!(names, TOOLS);
    }
}

#[tokio::test]
async fn the_servers_of_a_configuration_are_started_and_the_others_named_on_tokio() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let configured = Configured::new(&format!("http://{}/mcp", listener.local_addr().unwrap()));
    tokio::spawn(mcp_sansio_tokio::serve_http(remote(), listener));
    let (sender, opened) = channel();
    let host = Host::new("h", "1").observe_servers(move |server, event| {
        if let Event::Opened(_) = event {
            sender.send(server.unwrap().to_owned()).unwrap();
        }
    });
    let servers = Servers::<mcp_sansio_tokio::AnyConnection>::new();
    mcp_sansio_tokio::connect_servers(&servers, configured.config.clone(), &host).unwrap();
    configured.check(&servers, tokio::time::sleep).await;
    let mut opened: Vec<_> = opened.try_iter().collect();
    opened.sort_unstable();
    assert_eq!(opened, ["child", "remote"]);
    assert!(servers.with_connection("child", |it| it.id()).unwrap().is_some());
    for (_, connection) in servers.close() {
        connection.shutdown().await.unwrap();
    }
}

#[test]
fn the_servers_of_a_configuration_are_started_and_the_others_named_on_smol() {
    use mcp_sansio_async_std::{AnyConnection, connect_servers};

    block_on_smol(async {
        let listener = smol::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let configured = Configured::new(&format!("http://{}/mcp", listener.local_addr().unwrap()));
        smol::spawn(mcp_sansio_async_std::serve_http(remote(), listener)).detach();
        let (servers, host) = (Servers::<AnyConnection>::new(), Host::new("h", "1"));
        connect_servers(&servers, configured.config.clone(), &host).unwrap();
        let pause = async |time| {
            smol::Timer::after(time).await;
        };
        configured.check(&servers, pause).await;
        for (_, connection) in servers.close() {
            connection.shutdown().await.unwrap();
        }
    });
}

#[test]
fn the_servers_of_a_configuration_are_started_and_the_others_named_with_threads() {
    use mcp_sansio_std::{AnyConnection, Wait, block_on, connect_servers, serve_http, sleep};

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let configured = Configured::new(&format!("http://{}/mcp", listener.local_addr().unwrap()));
    std::thread::spawn(|| serve_http(remote(), listener).unwrap());
    let (servers, host) = (Servers::<AnyConnection>::new(), Host::new("h", "1"));
    connect_servers(&servers, configured.config.clone(), &host).unwrap();
    block_on(configured.check(&servers, sleep));
    for (_, connection) in servers.close() {
        connection.shutdown().wait().unwrap();
    }
}

#[tokio::test]
async fn the_error_of_a_silent_server_has_its_program_its_time_and_its_last_words() {
    let text = r#"{"mcpServers":{"quiet":{"command":"/bin/sh",
        "args":["-c","echo 'no \u001b[31mdatabase' >&2; exec sleep 60"]}}}"#;
    let config = ServersConfig::parse(text, |_| None).unwrap();
    let servers = Servers::<mcp_sansio_tokio::AnyConnection>::new()
        .startup_limit(Duration::from_millis(1500));
    mcp_sansio_tokio::connect_servers(&servers, config, &Host::new("h", "1")).unwrap();
    let early = servers.client("quiet").unwrap_err().to_string();
    assert!(early.contains("not connected yet: `/bin/sh` has not answered for "), "{early}");
    // A limit of the server ends the wait.
    let errors = servers.ready(std::future::pending::<()>()).await;
    let error = errors[0].to_string();
    // How long it has not answered depends on the load of the machine.
    let parts =
        ["\"quiet\"", "within 1.5s: `/bin/sh`", "not answered for ", "no \\u{1b}[31mdatabase"];
    for part in parts {
        assert!(error.contains(part), "{error}");
    }
    assert!(!error.contains('\u{1b}') && errors.len() == 1, "{error}");
    servers.close().clear();
}

#[tokio::test]
async fn an_ambiguous_name_of_a_configuration_ends_its_server_alone() {
    let text = r#"{"servers":{"a":{"command":"no-such-program"},"a_b":{"command":"other"}}}"#;
    let servers = Servers::<mcp_sansio_tokio::AnyConnection>::new();
    let config = ServersConfig::parse(text, |_| None).unwrap();
    let host = Host::new("h", "1");
    mcp_sansio_tokio::connect_servers(&servers, config.clone(), &host).unwrap();
    let states = servers.states();
    let [(_, ServerState::Connecting), (_, ServerState::Ended { error })] = &*states else {
        panic!("{states:?}")
    };
    assert!(error.to_string().contains("rename one of the servers"), "{error}");
    let again = mcp_sansio_tokio::connect_servers(&servers, config, &host).unwrap_err();
    assert_eq!(again.to_string(), r#"there is a server "a" already"#);
}

// ------------------------------------------------------------------ any reader and writer

fn greeting(
    result: Result<mcp_sansio::protocol::CallToolResult, mcp_sansio_handlers::ClientError>,
) {
    assert_eq!(result.unwrap().first_text(), Some("Hello!"));
}

#[tokio::test]
async fn a_client_connects_over_a_reader_and_a_writer_and_its_drop_ends_the_server_on_tokio() {
    use mcp_sansio_tokio::{connect_over, serve};

    let (here, there) = tokio::io::duplex(64);
    let (reader, writer) = tokio::io::split(there);
    let server = tokio::spawn(serve(remote(), reader, writer));
    let (reader, writer) = tokio::io::split(here);
    let client = connect_over(reader, writer, &Host::new("h", "1")).await.unwrap();
    greeting(client.call_tool("hello", &NoArguments {}).await);
    drop(client);
    server.await.unwrap().unwrap();

    let (here, there) = tokio::io::duplex(64);
    drop(there);
    let (reader, writer) = tokio::io::split(here);
    let refused = connect_over(reader, writer, &Host::new("h", "1")).await;
    assert!(matches!(refused, Err(mcp_sansio_tokio::Error::Closed { .. })), "{refused:?}");
}

#[test]
fn a_client_connects_over_a_reader_and_a_writer_and_its_drop_ends_the_server_on_smol() {
    use mcp_sansio_async_std::runtime::FuturesStream;
    use mcp_sansio_async_std::{connect_over, connect_stream, serve, serve_stream};
    use smol::net::unix::UnixStream;

    block_on_smol(async {
        let (here, there) = UnixStream::pair().unwrap();
        let server = smol::spawn(serve(remote(), there.clone(), there));
        let client = connect_over(here.clone(), here, &Host::new("h", "1")).await.unwrap();
        greeting(client.call_tool("hello", &NoArguments {}).await);
        drop(client);
        server.await.unwrap();

        let (here, there) = UnixStream::pair().unwrap();
        let (server, there) = (remote(), FuturesStream::new(there.clone(), there));
        let server = smol::spawn(async move { serve_stream(&server, there).await });
        let here = FuturesStream::new(here.clone(), here);
        let client = connect_stream(here, &Host::new("h", "1")).await.unwrap();
        greeting(client.call_tool("hello", &NoArguments {}).await);
        drop(client);
        server.await.unwrap();
    });
}

#[test]
fn a_client_connects_over_a_socket_or_a_reader_and_a_writer_with_threads() {
    use std::net::{Shutdown, TcpStream};
    use std::os::unix::net::UnixStream;

    use mcp_sansio_std::{Wait, connect_over, connect_stream, serve_stream};

    let (here, there) = UnixStream::pair().unwrap();
    let server = std::thread::spawn(|| serve_stream(remote(), there).unwrap());
    let client = connect_stream(here, &Host::new("h", "1")).unwrap();
    greeting(client.call_tool("hello", &NoArguments {}).wait());
    drop(client);
    server.join().unwrap();

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let here = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let there = listener.accept().unwrap().0;
    let server = std::thread::spawn(|| serve_stream(remote(), there).unwrap());
    let (reader, socket) = (here.try_clone().unwrap(), here.try_clone().unwrap());
    let client = connect_over(reader, here, &Host::new("h", "1")).unwrap();
    greeting(client.call_tool("hello", &NoArguments {}).wait());
    client.close();
    // The thread that reads has a duplicate of the socket.
    socket.shutdown(Shutdown::Both).unwrap();
    server.join().unwrap();
}

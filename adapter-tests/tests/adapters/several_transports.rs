//! Servers of several transports behind one list: a child process and a server on HTTP.
#![cfg(unix)]

use std::process::Command;

use mcp_sansio_handlers::{Call, Host, NoArguments, Server, Servers};

/// Returns a server with the tool `id`.
fn child() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_adapter-tests"));
    command.args(["tokio", "fragile"]);
    command
}

fn remote() -> Server {
    Server::new("remote", "1").tool("hello", "Greets", |_: Call<NoArguments>| "Hello!")
}

const TOOLS: [&str; 4] = ["child_crash", "child_id", "child_touch", "remote_hello"];

#[tokio::test]
async fn children_and_servers_on_http_are_in_one_list_on_tokio() {
    use mcp_sansio_tokio::AnyConnection;

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(mcp_sansio_tokio::serve_http(remote(), listener));
    let (host, other) = (Host::new("host", "1"), Host::new("host", "1"));
    let servers = Servers::<AnyConnection>::new(7);
    let spawn =
        async move || mcp_sansio_tokio::spawn(child(), &host).await.map(AnyConnection::from);
    let connect =
        async move || mcp_sansio_tokio::connect(&url, &other).await.map(AnyConnection::from);
    let first = tokio::spawn(servers.connect("child", spawn, tokio::time::sleep).unwrap());
    let second = tokio::spawn(servers.connect("remote", connect, tokio::time::sleep).unwrap());
    servers.ready().await;
    let tools = servers.all_tools().await;
    let mut names: Vec<_> = tools.items.iter().map(|tool| &*tool.item.name).collect();
    names.sort_unstable();
    assert_eq!((names.as_slice(), tools.errors.len()), (&TOOLS[..], 0));
    let result = servers.call_tool("remote_hello", &NoArguments {}).unwrap().await.unwrap();
    assert_eq!(result.first_text(), Some("Hello!"));
    for (_, connection) in servers.close() {
        let client = connection.clone();
        connection.shutdown().await.unwrap();
        assert!(client.close_reason().is_some());
    }
    first.await.unwrap();
    second.await.unwrap();
}

#[test]
fn children_and_servers_on_http_are_in_one_list_with_threads() {
    use mcp_sansio_std::{AnyConnection, HttpListener, HttpService, Wait, block_on, sleep};

    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let service = HttpService::new(&remote(), Default::default()).unwrap();
    std::thread::spawn(|| HttpListener::new(listener).serve(service).unwrap());
    let (host, other) = (Host::new("host", "1"), Host::new("host", "1"));
    let servers = Servers::<AnyConnection>::new(7);
    let spawn = async move || mcp_sansio_std::spawn(child(), &host).map(AnyConnection::from);
    let connect = async move || mcp_sansio_std::connect(&url, &other).map(AnyConnection::from);
    let first = servers.connect("child", spawn, sleep).unwrap();
    let second = servers.connect("remote", connect, sleep).unwrap();
    let first = std::thread::spawn(|| block_on(first));
    let second = std::thread::spawn(|| block_on(second));
    block_on(servers.ready());
    let tools = block_on(servers.all_tools());
    let mut names: Vec<_> = tools.items.iter().map(|tool| &*tool.item.name).collect();
    names.sort_unstable();
    assert_eq!((names.as_slice(), tools.errors.len()), (&TOOLS[..], 0));
    let result = servers.call_tool("remote_hello", &NoArguments {}).unwrap().wait().unwrap();
    assert_eq!(result.first_text(), Some("Hello!"));
    for (_, connection) in servers.close() {
        let client = connection.clone();
        connection.shutdown().unwrap();
        assert!(client.close_reason().is_some());
    }
    first.join().unwrap();
    second.join().unwrap();
}

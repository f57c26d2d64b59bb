//! A client against a server on tokio.

use std::collections::BTreeMap;
use std::thread;

use adapter_tests::{block_on_async_std, block_on_smol};
use mcp_sansio_async_std::ClientError;
use mcp_sansio_async_std::http::Location;
use mcp_sansio_async_std::protocol::CallToolResult;
use mcp_sansio_async_std::{
    ConnectError, Connector, Error, Host, HttpClientOptions, Revision, Revisions, connect,
    connect_with,
};
use mcp_sansio_tokio::{Call, NoArguments, Server, serve_http};

/// Starts a server with one tool, which runs until the process ends, and returns its URL.
pub(crate) fn serve() -> String {
    let (sender, receiver) = std::sync::mpsc::channel();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            sender.send(listener.local_addr().unwrap()).unwrap();
            let server = Server::new("served", "1").tool(
                "forecast",
                "Says so",
                async |call: Call<NoArguments>| {
                    call.progress(1.0, None, "");
                    tokio::task::yield_now().await;
                    "sunny"
                },
            );
            serve_http(server, listener).await.unwrap();
        });
    });
    format!("http://{}/mcp", receiver.recv().unwrap())
}

fn text(result: &Result<CallToolResult, ClientError>) -> &str {
    let result = result.as_ref().unwrap_or_else(|error| panic!("{error}"));
    result.content.iter().find_map(|block| block.as_text()).unwrap_or_default()
}

async fn calls_in_both_eras(url: &str) {
    let nothing = BTreeMap::<&str, &str>::new();
    let connector = Connector::new().unwrap();
    for revision in [Revision::V2025_06_18, Revision::V2025_11_25, Revision::V2026_07_28] {
        let host = Host::new("host", "1").revisions(Revisions::only(revision));
        let options = HttpClientOptions::new(Location::parse(url).unwrap());
        let client = connect_with(options, &connector, &host).await.unwrap();
        assert_eq!(client.opened().await.unwrap().revision, revision);
        for _ in 0..3 {
            assert_eq!(text(&client.call_tool("forecast", &nothing).await), "sunny");
        }
        assert!(client.last_failure().is_none());
        client.close().await;
    }
}

#[test]
fn a_client_on_smol_calls_in_both_eras() {
    let url = serve();
    block_on_smol(calls_in_both_eras(&url));
}

#[test]
fn a_client_on_async_std_calls_in_both_eras() {
    let url = serve();
    block_on_async_std(calls_in_both_eras(&url));
}

#[test]
fn an_unreachable_server_is_reported() {
    block_on_smol(async {
        let url = {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            format!("http://{}/mcp", listener.local_addr().unwrap())
        };
        let error = connect(&url, &Host::new("host", "1")).await.unwrap_err();
        let Error::Connect(error) = error else { panic!("{error}") };
        assert!(matches!(*error, ConnectError::Unreachable { .. }), "{error}");

        let error = connect("nowhere", &Host::new("host", "1")).await.unwrap_err();
        let Error::Connect(error) = error else { panic!("{error}") };
        assert!(matches!(*error, ConnectError::Url(_)), "{error}");
    });
}

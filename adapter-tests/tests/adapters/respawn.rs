//! Servers that are started again, on each adapter with child processes.
#![cfg(unix)]
#![allow(clippy::disallowed_methods, reason = "real processes take real time")]

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use adapter_tests::block_on_smol;
use mcp_sansio::peer::Failure;
use mcp_sansio::protocol::{CallToolResult, SubscriptionFilter};
use mcp_sansio::{Backoff, Revision, Revisions};
use mcp_sansio_handlers::{Client, ClientCall, ClientError, Host, NoArguments};
use mcp_sansio_std::Wait;
use mcp_sansio_tokio::SpawnOptions;

/// Returns a server with tools that end its process.
fn fragile() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_adapter-tests"));
    command.args(["tokio", "fragile"]);
    command
}

fn host(revision: Revision) -> Host {
    Host::new("host", "1").revisions(Revisions::only(revision))
}

fn options(attempts: u32) -> SpawnOptions {
    let mut backoff = Backoff::DEFAULT;
    (backoff.initial, backoff.attempts_max) = (Duration::from_millis(1), attempts);
    SpawnOptions::new().respawn(backoff)
}

fn call(client: &Client, tool: &str) -> ClientCall<CallToolResult> {
    client.call_tool(tool, &NoArguments {})
}

/// Lets the server end its process, and returns the ids of the processes before and after.
async fn crash(client: &Client) -> [u32; 2] {
    let id = async || {
        let result = call(client, "id").await.unwrap();
        result.first_text().unwrap().parse().unwrap()
    };
    let before = id().await;
    let lost = call(client, "crash").await;
    assert!(matches!(lost, Err(ClientError::Failed(Failure::ConnectionLost))), "{lost:?}");
    [before, id().await]
}

/// Checks that a subscription and the connection outlive two processes.
async fn outlive(client: &Client) {
    let filter = SubscriptionFilter::new().resource_subscriptions(["note:a".to_owned()]);
    let mut subscription = client.subscribe(filter.clone());
    assert_eq!(subscription.honoured().await.unwrap(), filter);
    for _ in 0..2 {
        let [before, after] = crash(client).await;
        assert_ne!(before, after);
        call(client, "touch").await.unwrap();
        let update = subscription.next().await.unwrap().unwrap();
        assert_eq!(update.method.as_str(), "notifications/resources/updated");
    }
}

#[tokio::test]
async fn a_connection_outlives_its_server_on_tokio() {
    // Rule: [STDIO-019] [STDIO-020].
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let host = host(revision);
        let client = mcp_sansio_tokio::spawn_with(fragile(), &host, options(8)).await.unwrap();
        outlive(&client).await;
        let report = client.shutdown().await.unwrap();
        assert!(report.status.success(), "{report}");
    }
}

#[test]
fn a_connection_outlives_its_server_on_smol() {
    // Rule: [STDIO-019] [STDIO-020].
    block_on_smol(async {
        let host = host(Revision::V2026_07_28);
        let client = mcp_sansio_async_std::spawn_with(fragile(), &host, options(8)).await.unwrap();
        outlive(&client).await;
        assert!(client.shutdown().await.unwrap().status.success());
    });
}

#[test]
fn a_connection_outlives_its_server_with_threads() {
    // Rule: [STDIO-019] [STDIO-020].
    let host = host(Revision::V2025_11_25);
    let client = mcp_sansio_std::spawn_with(fragile(), &host, options(8)).unwrap();
    mcp_sansio_std::block_on(outlive(&client));
    let id = client.id().unwrap();
    client.kill();
    // A call that is in flight when the process ends is lost.
    while call(&client, "id").wait().is_err() {}
    assert_ne!(client.id().unwrap(), id);
    assert!(client.shutdown().wait().unwrap().status.success());
}

#[tokio::test]
async fn a_killed_server_ends_the_connection_unless_it_is_started_again() {
    let host = host(Revision::V2026_07_28);
    let client = mcp_sansio_tokio::spawn(fragile(), &host).await.unwrap();
    let [id, shown] =
        [client.id(), call(&client, "id").await.unwrap().first_text().unwrap().parse().ok()];
    assert_eq!(id, shown);
    client.kill();
    client.closed().await;
    let closed = call(&client, "id").await;
    assert!(matches!(closed, Err(ClientError::Closed(_))), "{closed:?}");
    assert!(!client.shutdown().await.unwrap().status.success());
}

#[tokio::test]
async fn a_connection_closes_after_the_last_attempt() {
    // Rule: [STDIO-019].
    let script = std::env::temp_dir().join(format!("mcp-respawn-{}", std::process::id()));
    std::fs::write(&script, "").unwrap();
    // It runs once, as long as the file exists.
    let mut command = Command::new("sh");
    let server = format!(
        "test -e {0:?} || exit 1; exec {1:?} tokio fragile",
        script.display(),
        env!("CARGO_BIN_EXE_adapter-tests")
    );
    command.args(["-c", &server]);
    let host = host(Revision::V2026_07_28);
    let client = mcp_sansio_tokio::spawn_with(command, &host, options(3)).await.unwrap();
    std::fs::remove_file(&script).unwrap();
    let lost = call(&client, "crash").await;
    assert!(matches!(lost, Err(ClientError::Failed(Failure::ConnectionLost))), "{lost:?}");
    let waiting = call(&client, "id").await;
    assert!(matches!(waiting, Err(ClientError::Closed(_))), "{waiting:?}");
    let report = client.shutdown().await.unwrap();
    assert_eq!(report.status.code(), Some(1));
}

#[tokio::test]
async fn dropping_or_shutting_down_a_connection_starts_no_server() {
    let host = host(Revision::V2026_07_28);
    let mut slow = Backoff::DEFAULT;
    slow.initial = Duration::from_secs(3600);
    slow.ceiling = slow.initial;
    let options = SpawnOptions::new().respawn(slow);
    let client = mcp_sansio_tokio::spawn_with(fragile(), &host, options.clone()).await.unwrap();
    call(&client, "crash").await.unwrap_err();
    // It waits for an hour.
    let report = client.shutdown().await.unwrap();
    assert_eq!(report.status.code(), Some(3));

    let connection = mcp_sansio_tokio::spawn_with(fragile(), &host, options).await.unwrap();
    let client = Client::clone(&connection);
    drop(connection);
    let lost = call(&client, "id").await;
    assert!(lost.is_err(), "{lost:?}");
}

#[tokio::test]
async fn a_killed_server_of_several_comes_back_by_its_policy_with_its_subscriptions() {
    // Rule: [STDIO-019].
    let servers = mcp_sansio_tokio::Servers::new();
    let mut quick = servers.backoff_policy();
    quick.initial = Duration::from_millis(1);
    let opened = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&opened);
    let connect = async move || {
        count.fetch_add(1, Ordering::SeqCst);
        let options = SpawnOptions::new().respawn(quick);
        mcp_sansio_tokio::spawn_with(fragile(), &host(Revision::V2026_07_28), options).await
    };
    tokio::spawn(servers.connect("fragile", connect, tokio::time::sleep).unwrap());
    let client = loop {
        match servers.client("fragile") {
            Ok(client) => break client,
            Err(_) => tokio::task::yield_now().await,
        }
    };
    outlive(&client).await;
    for (_, connection) in servers.close() {
        let before = connection.id();
        connection.kill();
        // A call that is in flight when the process ends is lost.
        while call(&connection, "id").await.is_err() {}
        assert_ne!(connection.id(), before);
        assert!(connection.shutdown().await.unwrap().status.success());
    }
    assert_eq!(opened.load(Ordering::SeqCst), 1);
}

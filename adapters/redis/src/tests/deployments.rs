use std::time::Duration;

use super::{IDLE, LEASE, RedisServer, event, first, node, position, session};
use crate::{RedisOptions, RedisStore, RedisStoreError};

/// Uses each kind of key.
async fn use_all(store: &RedisStore) {
    let inner = &store.inner;
    // The deployment may not be ready when a node starts.
    let mut attempts = 0;
    while let Err(failure) = inner.extend_lease(node(1), LEASE, true, 1).await {
        attempts += 1;
        assert!(attempts < 100, "{failure:?}");
        crate::link::sleep(Duration::from_millis(100)).await;
    }
    assert!(inner.extend_lease(node(1), LEASE, true, 1).await.unwrap().held);
    for sequence in 0..50 {
        assert!(inner.append(&event(sequence)).await.unwrap());
    }
    assert_eq!(inner.read(position(0), 99, 9999).await.unwrap().unwrap().len(), 50);
    for number in 0..50 {
        inner.put_session(&session(number), first(1), node(1), &[], IDLE).await.unwrap().unwrap();
        assert_eq!(
            inner.open_session(&session(number), node(1), IDLE).await.unwrap().unwrap().replica,
            2
        );
    }
    inner.send(node(2), None, b"hello", &super::share()).await.unwrap();
    inner.join(node(1)).await;
    use mcp_sansio_async::http_server::SharedStore as _;
    assert_eq!(store.receive().await, b"hello");
}

#[tokio::test]
async fn users_with_passwords_and_few_permissions_are_served() {
    let Some(server) = RedisServer::start(&[]) else { return };
    server.cli(&[
        "ACL",
        "SETUSER",
        "mcp",
        "on",
        ">secret",
        "~mcp:*",
        "-@all",
        "+@read",
        "+@write",
        "+@scripting",
        "+time",
        "-@dangerous",
    ]);
    server.cli(&["ACL", "SETUSER", "default", "off"]);
    let url = |password: &str| format!("redis://mcp:{password}@127.0.0.1:{}", server.port);
    let store = RedisStore::connect(&url("secret"), RedisOptions::new().node("a")).await.unwrap();
    use_all(&store).await;
    let refused = RedisStore::connect(&url("wrong"), RedisOptions::new()).await.unwrap_err();
    assert!(matches!(refused, RedisStoreError::Unavailable(_)), "{refused:?}");
    // Keys of others are out of reach.
    let other = RedisOptions::new().prefix("other");
    assert!(RedisStore::connect(&url("secret"), other).await.is_err());
}

#[test]
#[cfg(feature = "smol")]
fn a_store_runs_without_tokio() {
    futures_lite::future::block_on(async {
        let Some(server) = RedisServer::start(&[]) else { return };
        let store = RedisStore::connect(&server.url(), RedisOptions::new()).await.unwrap();
        use_all(&store).await;
    });
}

#[tokio::test]
async fn a_cluster_of_two_serves_all_keys() {
    let arguments = ["--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf"];
    let Some(first) = RedisServer::start(&arguments) else { return };
    let Some(second) = RedisServer::start(&arguments) else { return };
    first.cli(&["CLUSTER", "ADDSLOTSRANGE", "0", "8000"]);
    second.cli(&["CLUSTER", "ADDSLOTSRANGE", "8001", "16383"]);
    first.cli(&["CLUSTER", "MEET", "127.0.0.1", &second.port.to_string()]);
    for server in [&first, &second] {
        let is_ready = || server.cli(&["CLUSTER", "INFO"]).contains("cluster_state:ok");
        for _ in 0..200 {
            if is_ready() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert!(is_ready());
    }
    let client = redis::cluster::ClusterClient::new([first.url()]).unwrap();
    let store = RedisStore::with_cluster(client, RedisOptions::new()).await.unwrap();
    use_all(&store).await;
    for server in [&first, &second] {
        assert!(server.cli(&["DBSIZE"]).parse::<u32>().unwrap() > 10);
    }
}

#[tokio::test]
async fn sentinel_names_the_master() {
    let Some(master) = RedisServer::start(&[]) else { return };
    let port = test_programs::free_port();
    let folder = master.folder().join("sentinel.conf");
    let text =
        format!("port {port}\nbind 127.0.0.1\nsentinel monitor mcp 127.0.0.1 {} 1\n", master.port);
    std::fs::write(&folder, text).unwrap();
    let mut sentinel = std::process::Command::new("redis-server")
        .arg(&folder)
        .arg("--sentinel")
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let connect = async || {
        let url = format!("redis://127.0.0.1:{port}");
        let kind = redis::sentinel::SentinelServerType::Master;
        let client = redis::sentinel::SentinelClient::build(vec![url], "mcp", None, kind).unwrap();
        RedisStore::with_sentinel(client, RedisOptions::new()).await
    };
    let mut connected = connect().await;
    for _ in 0..100 {
        if connected.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        connected = connect().await;
    }
    if let Ok(store) = &connected {
        use_all(store).await;
    }
    sentinel.kill().unwrap();
    sentinel.wait().unwrap();
    connected.unwrap();
}

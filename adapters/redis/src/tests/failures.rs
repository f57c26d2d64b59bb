use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use mcp_sansio_async::http_server::SharedStore as _;

use super::{LEASE, RedisServer, event, node, position, with_redis};
use crate::{RedisOptions, RedisStore, RedisStoreError};

/// Waits until an action succeeds again.
async fn recovered(store: &RedisStore) -> mcp_sansio::http::Lease {
    for _ in 0..200 {
        if let Ok(lease) = store.inner.extend_lease(node(1), LEASE, false, 2).await {
            return lease;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the store has not recovered");
}

fn elapsed(start: Instant) -> Duration {
    start.elapsed()
}

#[allow(clippy::disallowed_methods, reason = "tests may read the clock")]
fn now() -> Instant {
    Instant::now()
}

#[tokio::test]
async fn actions_fail_at_once_without_redis_and_work_again_with_it() {
    with_redis(async |mut server, store| {
        store.inner.join(node(1)).await;
        assert_eq!(store.inner.extend_lease(node(1), LEASE, true, 1).await.unwrap().contents, 1);
        server.kill();
        let start = now();
        for sequence in 0..1000 {
            store.inner.append(&event(sequence)).await.unwrap_err();
        }
        assert!(elapsed(start) < Duration::from_secs(2), "{:?}", elapsed(start));
        server.restart();
        let lease = recovered(&store).await;
        // It was restarted without its contents, so the node is unknown.
        assert!(!lease.held);
        assert_eq!(lease.contents, 2);
        assert!(store.inner.append(&event(0)).await.unwrap());
        // The connection for messages recovers as well.
        assert!(store.inner.extend_lease(node(1), LEASE, true, 1).await.unwrap().held);
        store.inner.send(node(2), Some(node(1)), b"again", &super::share()).await.unwrap();
        assert_eq!(store.receive().await, b"again");
        assert!(store.monitor().counters().connections > 1);
    })
    .await;
}

#[tokio::test]
async fn a_node_ends_no_connection_of_others_after_a_restart_of_redis() {
    with_redis(async |mut server, store| {
        store.inner.append(&event(0)).await.unwrap();
        server.kill();
        store.inner.append(&event(1)).await.unwrap_err();
        server.restart();
        // Ids begin anew, so some of these have the ids that the node's connections had.
        let connect = |_| TcpStream::connect(("127.0.0.1", server.port)).unwrap();
        let mut others: Vec<TcpStream> = (0..20).map(connect).collect();
        let mut is_served = |stream: &mut TcpStream| {
            let mut reply = [0; 7];
            stream.write_all(b"PING\r\n").unwrap();
            stream.read_exact(&mut reply).is_ok_and(|()| reply == *b"+PONG\r\n")
        };
        assert!(others.iter_mut().all(&mut is_served));
        recovered(&store).await;
        assert!(others.iter_mut().all(&mut is_served));
    })
    .await;
}

#[tokio::test]
async fn messages_are_received_once_although_the_reply_with_them_was_lost() {
    with_redis(async |server, store| {
        store.inner.join(node(1)).await;
        let send = async |message| {
            let sent = store.inner.send(node(2), Some(node(1)), message, &super::share()).await;
            assert!(sent.unwrap());
        };
        let receive =
            async || tokio::time::timeout(Duration::from_millis(500), store.receive()).await.ok();
        send(b"a").await;
        send(b"b").await;
        assert_eq!(receive().await.as_deref(), Some(&b"a"[..]));
        // Redis takes the command of a receiver that waits for no reply any more.
        server.signal("-STOP");
        assert_eq!(receive().await, None);
        server.signal("-CONT");
        send(b"c").await;
        for message in [b"b", b"c"] {
            assert_eq!(receive().await.as_deref(), Some(&message[..]));
        }
        assert_eq!(receive().await, None);
        let mailbox = store.inner.keys.mailbox(node(1));
        assert_eq!(server.cli(&["EXISTS", &mailbox]), "0", "they were removed");
    })
    .await;
}

#[tokio::test]
async fn actions_end_while_redis_is_paused_and_leave_nothing_behind() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let mut options = RedisOptions::new();
    options.response_timeout = Duration::from_millis(300);
    options.connect_timeout = Duration::from_millis(300);
    let store = RedisStore::connect(&server.url(), options).await.unwrap();
    assert!(store.inner.append(&event(0)).await.unwrap());
    server.signal("-STOP");
    let start = now();
    store.inner.append(&event(1)).await.unwrap_err();
    assert!(elapsed(start) < Duration::from_secs(2), "{:?}", elapsed(start));
    server.signal("-CONT");
    recovered(&store).await;
    // Whether the event was stored or not, later ones are.
    assert!(store.inner.append(&event(2)).await.unwrap());
    let found = store.inner.read(position(2), 10, usize::MAX).await.unwrap().unwrap();
    assert_eq!(found, [event(2)]);
}

#[tokio::test]
async fn scripts_that_redis_has_forgotten_are_loaded_again() {
    with_redis(async |server, store| {
        assert!(store.inner.append(&event(0)).await.unwrap());
        assert!(store.inner.append(&event(1)).await.unwrap());
        server.cli(&["SCRIPT", "FLUSH", "SYNC"]);
        store.inner.append(&event(2)).await.unwrap_err();
        assert!(store.inner.append(&event(3)).await.unwrap());
        assert!(store.inner.append(&event(4)).await.unwrap());
    })
    .await;
}

#[tokio::test]
async fn out_of_memory_is_a_failure_and_not_a_refusal() {
    with_redis(async |server, store| {
        assert!(store.inner.append(&event(0)).await.unwrap());
        server.cli(&["CONFIG", "SET", "maxmemory", "1"]);
        store.inner.append(&event(1)).await.unwrap_err();
        assert_eq!(store.inner.read(position(0), 9, 9).await.unwrap().unwrap(), [event(0)]);
        server.cli(&["CONFIG", "SET", "maxmemory", "0"]);
        assert!(store.inner.append(&event(2)).await.unwrap());
    })
    .await;
}

#[tokio::test]
async fn a_store_that_cannot_be_used_is_an_error() {
    let unreachable = format!("redis://127.0.0.1:{}", test_programs::free_port());
    let Some(server) = RedisServer::start(&["--requirepass", "secret"]) else { return };
    let error = RedisStore::connect(&server.url(), RedisOptions::new()).await.unwrap_err();
    assert!(matches!(error, RedisStoreError::Unavailable(_)), "{error:?}");
    let error = RedisStore::connect("http://a", RedisOptions::new()).await.unwrap_err();
    assert!(matches!(error, RedisStoreError::Options(_)), "{error:?}");
    for options in [RedisOptions::new().prefix("{a}"), RedisOptions::new().node("a b")] {
        let error = RedisStore::connect(&unreachable, options).await.unwrap_err();
        assert!(matches!(error, RedisStoreError::Options(_)), "{error:?}");
    }
}

#[tokio::test]
async fn a_node_starts_before_redis_and_joins_when_it_answers() {
    let Some(mut server) = RedisServer::start(&[]) else { return };
    server.kill();
    let store = RedisStore::connect(&server.url(), RedisOptions::new()).await.unwrap();
    let lease = async || store.inner.extend_lease(node(1), LEASE, true, 1).await;
    lease().await.unwrap_err();
    server.restart();
    let mut joined = false;
    for _ in 0..100 {
        joined = lease().await.is_ok_and(|lease| lease.held);
        if joined {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(joined);
    assert_eq!(server.cli(&["GET", &store.inner.keys.schema()]), crate::SCHEMA);
    // One that finds other keys does not join.
    server.kill();
    let late = RedisStore::connect(&server.url(), RedisOptions::new()).await.unwrap();
    server.restart();
    server.cli(&["SET", &late.inner.keys.schema(), "9.0"]);
    tokio::time::sleep(Duration::from_millis(200)).await;
    late.inner.extend_lease(node(2), LEASE, true, 1).await.unwrap_err();
}

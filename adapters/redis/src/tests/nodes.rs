use std::collections::BTreeSet;
use std::time::Duration;

use mcp_sansio::http::MailboxShare;
use mcp_sansio_async::http_server::SharedStore as _;

use super::{IDLE, LEASE, RedisServer, event, first, node, session, share, with_redis};
use crate::{RedisOptions, RedisStore, RedisStoreError};

#[tokio::test]
async fn a_lease_is_extended_unless_the_node_was_deposed() {
    with_redis(async |_server, store| {
        let store = &store.inner;
        let short = Duration::from_millis(80);
        let unknown = store.extend_lease(node(1), LEASE, false, 11).await.unwrap();
        assert!(!unknown.held && unknown.nodes.is_empty());
        assert_eq!(unknown.contents, 11);
        let joined = store.extend_lease(node(1), LEASE, true, u64::MAX).await.unwrap();
        assert!(joined.held);
        assert_eq!((joined.contents, joined.nodes), (11, vec![node(1)]));
        assert!(store.extend_lease(node(2), LEASE, true, 0).await.unwrap().held);
        assert!(!store.depose(node(2), 11).await.unwrap(), "its lease lasts");
        assert!(store.extend_lease(node(2), short, false, 0).await.unwrap().held);
        tokio::time::sleep(short * 2).await;
        let others = store.extend_lease(node(1), LEASE, false, 0).await.unwrap();
        assert_eq!(others.nodes, [node(1)]);
        // It was only slow.
        assert!(store.extend_lease(node(2), short, false, 0).await.unwrap().held);
        tokio::time::sleep(short * 2).await;
        assert!(!store.depose(node(2), 12).await.unwrap(), "the contents are others");
        assert!(store.depose(node(2), 11).await.unwrap());
        assert!(store.depose(node(2), 11).await.unwrap(), "it is not known any more");
        assert!(!store.extend_lease(node(2), short, false, 0).await.unwrap().held);
        store.leave(node(1)).await.unwrap();
        assert!(!store.extend_lease(node(1), LEASE, false, 0).await.unwrap().held);
    })
    .await;
}

#[tokio::test]
async fn messages_arrive_in_order_at_their_nodes() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let mut stores = Vec::new();
    for number in 1..=3 {
        let store = RedisStore::connect(&server.url(), RedisOptions::new()).await.unwrap();
        store.inner.join(node(number)).await;
        stores.push(store);
    }
    for number in 0..300_u32 {
        let to = (number % 3 == 0).then(|| node(2));
        let message = number.to_be_bytes();
        stores[0].inner.send(node(1), to, &message, &share()).await.unwrap();
    }
    for number in 0..300_u32 {
        assert_eq!(stores[1].receive().await, number.to_be_bytes());
        if number % 3 != 0 {
            assert_eq!(stores[2].receive().await, number.to_be_bytes());
        }
    }
    // Nothing else is there, also not for the sender.
    let nothing = Duration::from_millis(300);
    assert!(tokio::time::timeout(nothing, stores[0].receive()).await.is_err());
    assert!(tokio::time::timeout(nothing, stores[2].receive()).await.is_err());
    assert_eq!(stores[1].monitor().counters().received, 300);
    // A node with a new id reads its new mailbox only.
    stores[1].inner.join(node(9)).await;
    stores[0].inner.send(node(1), Some(node(2)), b"old", &share()).await.unwrap();
    stores[0].inner.send(node(1), Some(node(9)), b"new", &share()).await.unwrap();
    assert_eq!(stores[1].receive().await, b"new");
}

#[tokio::test]
async fn messages_have_shares_of_a_mailbox_and_are_gone_when_they_are_read() {
    with_redis(async |server, store| {
        let inner = &store.inner;
        inner.join(node(1)).await;
        let keys = || {
            let keys = server.cli(&["KEYS", "*"]);
            keys.lines().map(str::to_owned).collect::<BTreeSet<String>>()
        };
        let permanent = keys();
        let (long, room) = (vec![b'x'; 1_000_000], 10_000_000);
        let mut sent = Vec::new();
        for caller in ["ann", "bob", ""] {
            let (bytes_max, own) =
                if caller.is_empty() { (room, room) } else { (7_000_000, 4_000_000) };
            let share = MailboxShare::new(caller.into(), bytes_max, own);
            let mut taken = 0;
            for _ in 0..20 {
                taken +=
                    usize::from(inner.send(node(2), Some(node(1)), &long, &share).await.unwrap());
                // A message to all never fails.
                assert!(inner.send(node(2), None, b"{}", &share).await.unwrap());
            }
            sent.push(taken);
        }
        assert_eq!(sent, [3, 3, 3], "a caller has a share, all callers leave some room");
        let used = server.cli(&["MEMORY", "USAGE", &inner.keys.mailbox(node(1)), "SAMPLES", "0"]);
        assert!(used.parse::<usize>().unwrap() < 2 * room, "{used}");
        let mut received = [0; 2];
        while received != [9, 60] {
            let message = tokio::time::timeout(Duration::from_secs(5), store.receive()).await;
            received[usize::from(message.unwrap().len() == 2)] += 1;
        }
        let nothing = Duration::from_millis(300);
        assert!(tokio::time::timeout(nothing, store.receive()).await.is_err());
        assert_eq!(keys(), permanent);
    })
    .await;
}

#[tokio::test]
async fn mailboxes_are_bounded_and_only_small_keys_last() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let mut options = RedisOptions::new();
    options.mailbox_max = 200;
    let store = RedisStore::connect(&server.url(), options).await.unwrap();
    let inner = &store.inner;
    inner.join(node(1)).await;
    for number in 0..1000_u32 {
        inner.send(node(2), None, &number.to_be_bytes(), &share()).await.unwrap();
        inner.send(node(2), Some(node(3)), b"nobody is there", &share()).await.unwrap();
    }
    let length: usize = server.cli(&["XLEN", &inner.keys.mailbox(node(1))]).parse().unwrap();
    assert_eq!(length, 200);
    assert_eq!(server.cli(&["EXISTS", &inner.keys.mailbox(node(3))]), "0");
    inner.append(&event(0).last()).await.unwrap();
    inner.put_session(&session(1), first(1), node(1), &[], IDLE).await.unwrap().unwrap();
    let keys = server.cli(&["KEYS", "*"]);
    let lasting: Vec<&str> =
        keys.lines().filter(|key| server.cli(&["PTTL", key]) == "-1").collect();
    assert_eq!(lasting.len(), 3, "{lasting:?}");
    assert_eq!(keys.lines().count(), 8, "{keys}");
}

#[tokio::test]
async fn an_incompatible_schema_is_refused() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let store = RedisStore::connect(&server.url(), RedisOptions::new()).await.unwrap();
    let key = store.inner.keys.schema();
    assert_eq!(server.cli(&["GET", &key]), "1.2");
    // Nodes of the same major version share their keys.
    server.cli(&["SET", &key, "1.7"]);
    RedisStore::connect(&server.url(), RedisOptions::new()).await.unwrap();
    assert!(store.inner.extend_lease(node(1), LEASE, true, 1).await.unwrap().held);
    assert_eq!(server.cli(&["GET", &key]), "1.7");
    server.cli(&["SET", &key, "2.0"]);
    let refused = RedisStore::connect(&server.url(), RedisOptions::new()).await.unwrap_err();
    assert!(matches!(&refused, RedisStoreError::Schema { found, used: "1.2" } if found == "2.0"));
    store.inner.extend_lease(node(1), LEASE, false, 1).await.unwrap_err();
    // Another prefix is another deployment.
    RedisStore::connect(&server.url(), RedisOptions::new().prefix("other")).await.unwrap();
}

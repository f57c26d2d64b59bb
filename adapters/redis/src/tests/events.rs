use std::time::Duration;

use futures_util::future::join_all;
use mcp_sansio::Principal;
use mcp_sansio::http::{EventPosition, NotStored, StoredEvent};

use super::{event, position, with_redis};

#[tokio::test]
async fn events_are_returned_in_order_from_any_position() {
    with_redis(async |_server, store| {
        let store = &store.inner;
        for sequence in 0..100 {
            assert!(store.append(&event(sequence)).await.unwrap());
        }
        let all = store.read(position(0), 1000, usize::MAX).await.unwrap().unwrap();
        assert_eq!(all, (0..100).map(event).collect::<Vec<_>>());
        let some = store.read(position(40), 50, usize::MAX).await.unwrap().unwrap();
        assert_eq!(some, (40..90).map(event).collect::<Vec<_>>());
        // The first one is returned regardless of its length.
        assert_eq!(store.read(position(40), 50, 1).await.unwrap().unwrap(), [event(40)]);
        assert_eq!(store.read(position(40), 50, 16).await.unwrap().unwrap().len(), 2);
        assert_eq!(store.read(position(100), 50, 16).await.unwrap(), Ok(Vec::new()));
    })
    .await;
}

#[tokio::test]
async fn a_number_that_a_stream_has_passed_is_refused() {
    with_redis(async |_server, store| {
        let store = &store.inner;
        assert!(store.append(&event(3)).await.unwrap());
        assert!(!store.append(&event(3)).await.unwrap());
        assert!(!store.append(&event(2)).await.unwrap());
        assert!(store.append(&event(5)).await.unwrap());
        // The gap stays.
        let all = store.read(position(0), 10, usize::MAX).await.unwrap().unwrap();
        assert_eq!(all, [event(3), event(5)]);
    })
    .await;
}

#[tokio::test]
async fn nothing_follows_the_last_event() {
    with_redis(async |_server, store| {
        let store = &store.inner;
        assert!(store.append(&event(0)).await.unwrap());
        assert!(store.append(&event(1).last()).await.unwrap());
        assert!(!store.append(&event(2)).await.unwrap());
        assert!(!store.append(&event(9).last()).await.unwrap());
        let all = store.read(position(0), 10, usize::MAX).await.unwrap().unwrap();
        assert_eq!(all, [event(0), event(1).last()]);
        assert_eq!(store.read(position(0), 2, usize::MAX).await.unwrap().unwrap(), all);
        assert_eq!(store.read(position(0), 1, usize::MAX).await.unwrap().unwrap(), [event(0)]);
        assert_eq!(store.read(position(2), 10, usize::MAX).await.unwrap(), Err(NotStored));
    })
    .await;
}

#[tokio::test]
async fn streams_are_separate_and_can_be_forgotten() {
    with_redis(async |_server, store| {
        let store = &store.inner;
        let of =
            |name: &str| EventPosition { principal: Some(Principal::new(name)), ..position(0) };
        let alices = StoredEvent::new(of("alice"), b"secret".to_vec());
        assert!(store.append(&alices).await.unwrap());
        assert_eq!(store.read(of("mallory"), 10, usize::MAX).await.unwrap(), Err(NotStored));
        assert_eq!(store.read(position(0), 10, usize::MAX).await.unwrap(), Err(NotStored));
        assert_eq!(store.read(of("alice"), 10, usize::MAX).await.unwrap(), Ok(vec![alices]));
        let position = of("alice");
        store
            .forget(&position.session, position.stream, position.principal.as_ref())
            .await
            .unwrap();
        assert_eq!(store.read(of("alice"), 10, usize::MAX).await.unwrap(), Err(NotStored));
    })
    .await;
}

#[tokio::test]
async fn many_pending_events_are_stored_in_order() {
    with_redis(async |server, store| {
        let store = &store.inner;
        let events: Vec<_> = (0..2000).map(event).collect();
        let appended = join_all(events.iter().map(|event| store.append(event))).await;
        // An event that overtakes another one would cause its refusal.
        assert!(appended.into_iter().all(Result::unwrap));
        let all = store.read(position(0), 5000, usize::MAX).await.unwrap().unwrap();
        assert_eq!(all, events);
        // The script was sent once.
        let scripts = server.cli(&["INFO", "commandstats"]);
        let count = |name: &str| {
            let line = scripts.lines().find(|line| line.starts_with(&format!("cmdstat_{name}:")));
            line.and_then(|line| line.split(['=', ',']).nth(1)?.parse::<u32>().ok())
        };
        assert_eq!(count("evalsha"), Some(1999), "{scripts}");
        assert_eq!(count("eval"), Some(2), "the schema and the first event: {scripts}");
    })
    .await;
}

#[tokio::test]
async fn streams_are_bounded_and_expire() {
    let Some(server) = super::RedisServer::start(&[]) else { return };
    let mut options = crate::RedisOptions::new().prefix("a");
    options.stream_events_max = 500;
    options.retention = Duration::from_secs(100);
    let store = crate::RedisStore::connect(&server.url(), options).await.unwrap();
    for sequence in 0..1500 {
        assert!(store.inner.append(&event(sequence)).await.unwrap());
    }
    let key = store.inner.keys.events(&position(0));
    assert!(key.starts_with("a:{"), "{key}");
    assert!(!key.contains(position(0).session.as_str()), "the id of a session is a secret");
    let length: usize = server.cli(&["XLEN", &key]).parse().unwrap();
    // Whole nodes of 100 entries are removed.
    assert!((500..=600).contains(&length), "{length}");
    let left: u64 = server.cli(&["PTTL", &key]).parse().unwrap();
    assert!((90_000..=100_000).contains(&left), "{left}");
    // A reader sees the gap.
    let found = store.inner.read(position(0), 1, usize::MAX).await.unwrap().unwrap();
    assert!(found[0].position.sequence > 0);
}

use std::collections::BTreeSet;
use std::time::Duration;

use mcp_sansio::http::{EventPosition, StoreError, StoredEvent, TaskKey, TaskRecord};

use super::{IDLE, first, node, session, with_redis};
use crate::sessions::Numbers;

fn field(name: &str, value: &str) -> (String, String) {
    (name.into(), value.into())
}

#[tokio::test]
async fn a_session_is_opened_by_any_node() {
    with_redis(async |server, store| {
        let store = &store.inner;
        let id = session(1);
        let missing = store.open_session(&id, node(2), IDLE).await.unwrap();
        assert_eq!(missing, Err(StoreError::Missing));
        let fields = [field("opening", "{}"), field("sub:mem://a b", "1")];
        store.put_session(&id, first(1), node(1), &fields, IDLE).await.unwrap().unwrap();
        let mut opened = store.open_session(&id, node(2), IDLE).await.unwrap().unwrap();
        opened.fields.sort();
        opened.owners.sort();
        assert_eq!(opened.replica, 2);
        assert_eq!(opened.owners, [(1, node(1)), (2, node(2))]);
        assert_eq!(opened.fields, fields);
        assert_eq!(store.open_session(&id, node(3), IDLE).await.unwrap().unwrap().replica, 3);
        // Stored again after a loss: numbers are not reused.
        store.put_session(&id, first(9), node(3), &fields, IDLE).await.unwrap().unwrap();
        store.put_session(&id, first(2), node(2), &fields, IDLE).await.unwrap().unwrap();
        assert_eq!(store.open_session(&id, node(4), IDLE).await.unwrap().unwrap().replica, 10);
        // In an empty store, each node skips numbers, because others may not have stored the
        // session again yet.
        server.cli(&["DEL", &store.keys.session(&id)]);
        for taken in [4, 7] {
            let numbers = Numbers { replica: 3, taken, skipped: 20 };
            store.put_session(&id, numbers, node(3), &fields, IDLE).await.unwrap().unwrap();
        }
        assert_eq!(store.open_session(&id, node(4), IDLE).await.unwrap().unwrap().replica, 25);
        let numbers = Numbers { replica: 30, taken: 30, skipped: 5 };
        store.put_session(&id, numbers, node(5), &fields, IDLE).await.unwrap().unwrap();
        assert_eq!(store.open_session(&id, node(4), IDLE).await.unwrap().unwrap().replica, 36);
        let key = store.keys.session(&id);
        assert!(!key.contains(id.as_str()), "the id of a session is a secret");
        let left: u64 = server.cli(&["PTTL", &key]).parse().unwrap();
        assert!((50_000..=60_000).contains(&left), "{left}");
    })
    .await;
}

#[tokio::test]
async fn fields_are_changed_and_those_of_later_versions_survive() {
    with_redis(async |server, store| {
        let store = &store.inner;
        let id = session(1);
        let changes = [("level".into(), Some("debug".into())), ("opening".into(), None)];
        let missing = store.set_fields(&id, &changes, IDLE).await.unwrap();
        assert_eq!(missing, Err(StoreError::Missing));
        store
            .put_session(&id, first(1), node(1), &[field("opening", "{}")], IDLE)
            .await
            .unwrap()
            .unwrap();
        let key = store.keys.session(&id);
        server.cli(&["HSET", &key, "of a later version", "1", "f:later", "2"]);
        store.set_fields(&id, &changes, IDLE).await.unwrap().unwrap();
        let mut opened = store.open_session(&id, node(2), IDLE).await.unwrap().unwrap();
        opened.fields.sort();
        assert_eq!(opened.fields, [field("later", "2"), field("level", "debug")]);
        assert_eq!(server.cli(&["HGET", &key, "of a later version"]), "1");
        store.remove_session(&id, None, IDLE).await.unwrap();
        let missing = store.open_session(&id, node(2), IDLE).await.unwrap();
        assert_eq!(missing, Err(StoreError::Missing));
    })
    .await;
}

#[tokio::test]
async fn an_idle_session_takes_less_than_a_kibibyte() {
    with_redis(async |server, store| {
        let store = &store.inner;
        let id = session(1);
        let fields = [
            field("revision", "2025-11-25"),
            field("capabilities", "elicitation roots sampling"),
            // A hash is compact as long as its values have at most 64 bytes.
            field("client", r#"{"name":"a-client-for-code","title":"Code","version":"2.0.14"}"#),
            field("principal", &"a".repeat(64)),
            field("level", "warning"),
            field("initialized", "1"),
            field("sub:file:///a/resource/of/usual/length.txt", "1"),
        ];
        store.put_session(&id, first(1), node(1), &fields, IDLE).await.unwrap().unwrap();
        store.open_session(&id, node(2), IDLE).await.unwrap().unwrap();
        store.open_session(&id, node(3), IDLE).await.unwrap().unwrap();
        let key = store.keys.session(&id);
        let bytes: usize = server.cli(&["MEMORY", "USAGE", &key, "SAMPLES", "0"]).parse().unwrap();
        assert!(bytes <= 1024, "{bytes} bytes");
    })
    .await;
}

#[tokio::test]
async fn a_session_that_has_ended_leaves_only_the_permanent_keys() {
    with_redis(async |server, store| {
        let store = &store.inner;
        store.join(node(1)).await;
        let keys = || {
            let keys = server.cli(&["KEYS", "*"]);
            keys.lines().map(str::to_owned).collect::<BTreeSet<String>>()
        };
        let permanent = keys();
        let (id, requestor, hour) = (session(1), "b".repeat(64), Duration::from_secs(3600));
        let principal = Some(mcp_sansio::Principal::new("ann"));
        let event_of = |stream, sequence, principal| {
            let position = EventPosition { session: id, stream, sequence, principal };
            StoredEvent::new(position, b"{}".to_vec())
        };
        let task = |number: u32| TaskKey::new(requestor.clone(), format!("task {number}"));
        let record = || TaskRecord::new(node(1), false, "{}".into(), "{}".into());
        store.put_session(&id, first(1), node(1), &[], IDLE).await.unwrap().unwrap();
        for stream in 0..20 {
            assert!(store.append(&event_of(stream, 0, None)).await.unwrap());
            assert!(store.append(&event_of(stream, 1, None)).await.unwrap());
            assert!(store.append(&event_of(stream, 0, principal.clone())).await.unwrap());
            store.put_task(&task(stream), &record(), Some(hour), true).await.unwrap().unwrap();
        }
        store.forget(&id, 3, None).await.unwrap();
        let refused_for = Duration::from_millis(700);
        store.remove_session(&id, Some(&requestor), refused_for).await.unwrap();
        // Changes by other nodes that have not seen the removal yet.
        assert!(!store.append(&event_of(1, 2, None)).await.unwrap());
        assert!(!store.append(&event_of(40, 0, None)).await.unwrap());
        let put = store.put_session(&id, first(2), node(2), &[], IDLE).await.unwrap();
        assert_eq!(put, Err(StoreError::Missing));
        assert_eq!(store.set_fields(&id, &[], IDLE).await.unwrap(), Err(StoreError::Missing));
        for number in [1, 40] {
            let put = store.put_task(&task(number), &record(), Some(hour), true).await.unwrap();
            assert_eq!(put, Err(StoreError::Refused));
        }
        store.forget(&id, 1, None).await.unwrap();
        tokio::time::sleep(refused_for + Duration::from_millis(100)).await;
        assert_eq!(keys(), permanent);
    })
    .await;
}

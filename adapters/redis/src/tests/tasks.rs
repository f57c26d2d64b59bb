use std::time::Duration;

use mcp_sansio::http::{StoreError, TaskKey, TaskRecord};

use super::{IDLE, node, with_redis};

fn key(task: &str) -> TaskKey {
    TaskKey::new("requestor".into(), task.into())
}

fn record(number: u32, ended: bool, task: &str) -> TaskRecord {
    TaskRecord::new(node(number), ended, task.into(), "{}".into())
}

#[tokio::test]
async fn a_task_is_changed_by_its_node_until_it_ends() {
    with_redis(async |server, store| {
        let store = &store.inner;
        assert_eq!(store.read_task(&key("a")).await.unwrap(), Err(StoreError::Missing));
        let ended = record(1, true, "ended");
        // Another node cannot end a task that the store does not have.
        let missing = store.put_task(&key("a"), &ended, None, false).await.unwrap();
        assert_eq!(missing, Err(StoreError::Missing));
        let working = record(1, false, "working");
        store.put_task(&key("a"), &working, Some(IDLE), false).await.unwrap().unwrap();
        assert_eq!(store.read_task(&key("a")).await.unwrap(), Ok(working.clone()));
        let foreign = store.put_task(&key("a"), &record(2, false, ""), Some(IDLE), false).await;
        assert_eq!(foreign.unwrap(), Err(StoreError::Refused));
        store.put_task(&key("a"), &ended, None, false).await.unwrap().unwrap();
        let late = store.put_task(&key("a"), &working, Some(IDLE), false).await.unwrap();
        assert_eq!(late, Err(StoreError::Refused));
        assert_eq!(store.read_task(&key("a")).await.unwrap(), Ok(ended));
        let name = store.keys.task(&key("a"));
        let left: u64 = server.cli(&["PTTL", &name]).parse().unwrap();
        assert!((50_000..=60_000).contains(&left), "{left}");
    })
    .await;
}

#[tokio::test]
async fn a_task_does_not_exist_for_another_requestor() {
    with_redis(async |_, store| {
        let store = &store.inner;
        let working = record(1, false, "working");
        store.put_task(&key("a"), &working, Some(IDLE), true).await.unwrap().unwrap();
        for other in [String::new(), "other".into()] {
            let found = store.read_task(&TaskKey::new(other.clone(), "a".into())).await.unwrap();
            assert_eq!(found, Err(StoreError::Missing));
            assert!(store.list_tasks(&other, None, 10).await.unwrap().unwrap().tasks.is_empty());
        }
        let anonymous = TaskKey::new(String::new(), "secret".into());
        store.put_task(&anonymous, &working, Some(IDLE), false).await.unwrap().unwrap();
        assert_eq!(store.read_task(&anonymous).await.unwrap(), Ok(working));
        assert!(!store.keys.task(&anonymous).contains("secret"), "the id of a task is a secret");
    })
    .await;
}

#[tokio::test]
async fn tasks_are_listed_in_pages() {
    with_redis(async |server, store| {
        let store = &store.inner;
        let mut expected = Vec::new();
        for number in 0..5_u32 {
            let (task, ttl) = (number.to_string(), IDLE + Duration::from_secs(number.into()));
            let working = record(1, false, &task);
            store.put_task(&key(&task), &working, Some(ttl), true).await.unwrap().unwrap();
            expected.push(task);
        }
        let unlisted = record(1, false, "unlisted");
        store.put_task(&key("unlisted"), &unlisted, Some(IDLE), false).await.unwrap().unwrap();
        // A change does not move a task.
        store.put_task(&key("0"), &record(1, true, "0"), Some(IDLE), true).await.unwrap().unwrap();
        let (mut found, mut cursor) = (Vec::new(), None);
        loop {
            let page = store.list_tasks("requestor", cursor.as_deref(), 2).await.unwrap().unwrap();
            assert!(page.tasks.len() <= 2);
            found.extend(page.tasks);
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(found, expected);
        for invalid in ["", "x", "0000000000000000:", "(0"] {
            let refused = store.list_tasks("requestor", Some(invalid), 2).await.unwrap();
            assert_eq!(refused, Err(StoreError::Missing), "{invalid}");
        }
        // A task that Redis has dropped leaves the list.
        server.cli(&["DEL", &store.keys.task(&key("3"))]);
        let page = store.list_tasks("requestor", None, 10).await.unwrap().unwrap();
        assert_eq!(page.tasks, ["0", "1", "2", "4"]);
        assert_eq!(server.cli(&["ZCARD", &store.keys.tasks("requestor")]), "4");
        let left: u64 = server.cli(&["PTTL", &store.keys.tasks("requestor")]).parse().unwrap();
        assert!((60_000..=64_000).contains(&left), "{left}");
    })
    .await;
}

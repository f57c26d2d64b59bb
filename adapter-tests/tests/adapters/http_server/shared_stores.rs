//! Two nodes that share their sessions through a store.

use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use mcp_sansio::http::{
    HttpServerOptions, Lease, NodeId, NotStored, SessionRecord, SharedOptions, StoreAction,
    StoreError, StoreReply, StoredEvent,
};
use mcp_sansio_async::http_server::{SharedStore, StoreOutcome};

use super::adapter::HttpService;
use super::served::{HandlerGate, Served, gated, in_runtime};
use super::wire::{Post, Wire, get, id_of, in_time, open_session, text_of};

/// A store in memory, which all nodes share.
#[derive(Clone, Default)]
struct Contents(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    nodes: Vec<NodeId>,
    sessions: BTreeMap<String, Session>,
    events: Vec<StoredEvent>,
    mailboxes: BTreeMap<NodeId, VecDeque<Vec<u8>>>,
    wakers: Vec<Waker>,
    left: Vec<NodeId>,
    /// Whether it does not run.
    down: bool,
}

#[derive(Default)]
struct Session {
    replicas: u32,
    owners: Vec<(u32, NodeId)>,
    fields: BTreeMap<String, String>,
}

/// The store of one node.
struct Node {
    contents: Contents,
    id: Mutex<Option<NodeId>>,
}

impl SharedStore for Node {
    async fn execute(&self, action: StoreAction) -> StoreOutcome {
        // In the order of the actions, and with an outcome that comes later.
        let outcome = self.apply(action);
        tokio::task::yield_now().await;
        outcome
    }

    async fn receive(&self) -> Vec<u8> {
        poll_fn(|cx| {
            let mut state = self.contents.0.lock().unwrap();
            let id = *self.id.lock().unwrap();
            let message = id.and_then(|id| state.mailboxes.get_mut(&id)?.pop_front());
            message.map_or_else(
                || {
                    state.wakers.push(cx.waker().clone());
                    Poll::Pending
                },
                Poll::Ready,
            )
        })
        .await
    }
}

impl Node {
    fn new(contents: &Contents) -> Self {
        Self { contents: contents.clone(), id: Mutex::default() }
    }

    fn apply(&self, action: StoreAction) -> StoreOutcome {
        let mut state = self.contents.0.lock().unwrap();
        let done = StoreOutcome::Reply(Ok(StoreReply::Done));
        if state.down {
            return StoreOutcome::Failed;
        }
        match action {
            StoreAction::Heartbeat { node, contents: _, .. } => {
                *self.id.lock().unwrap() = Some(node);
                if !state.nodes.contains(&node) {
                    state.nodes.push(node);
                }
                let lease = Lease::new(true, 1, state.nodes.clone());
                StoreOutcome::Reply(Ok(StoreReply::Lease(lease)))
            }
            StoreAction::PutSession { session, replica, node, fields, .. } => {
                let entry = state.sessions.entry(session.as_str().to_owned()).or_default();
                entry.replicas = entry.replicas.max(replica);
                entry.owners.push((replica, node));
                entry.fields.extend(fields);
                done
            }
            StoreAction::ReadSession { session, .. } => {
                let found = state.sessions.get(session.as_str()).map(|entry| {
                    let fields = entry.fields.clone().into_iter().collect();
                    StoreReply::Opened(SessionRecord::new(0, entry.owners.clone(), fields))
                });
                StoreOutcome::Reply(found.ok_or(StoreError::Missing))
            }
            StoreAction::OpenSession { session, node, .. } => {
                let opened = state.sessions.get_mut(session.as_str()).map(|entry| {
                    entry.replicas += 1;
                    entry.owners.push((entry.replicas, node));
                    let fields = entry.fields.clone().into_iter().collect();
                    let owners = entry.owners.clone();
                    StoreReply::Opened(SessionRecord::new(entry.replicas, owners, fields))
                });
                StoreOutcome::Reply(opened.ok_or(StoreError::Missing))
            }
            StoreAction::SetFields { session, fields, .. } => {
                let Some(entry) = state.sessions.get_mut(session.as_str()) else {
                    return StoreOutcome::Reply(Err(StoreError::Missing));
                };
                for (name, value) in fields {
                    match value {
                        Some(value) => drop(entry.fields.insert(name, value)),
                        None => drop(entry.fields.remove(&name)),
                    }
                }
                done
            }
            StoreAction::Append { event } => {
                state.events.push(event);
                StoreOutcome::Taken
            }
            StoreAction::Read { from, events_max, .. } => {
                let same = |event: &&StoredEvent| {
                    (event.position.session, event.position.stream) == (from.session, from.stream)
                };
                if !state.events.iter().any(|event| same(&event)) {
                    return StoreOutcome::Events(Err(NotStored));
                }
                let found = state.events.iter().filter(same);
                let found = found.filter(|event| event.position.sequence >= from.sequence);
                StoreOutcome::Events(Ok(found.take(events_max).cloned().collect()))
            }
            StoreAction::Send { from, to, message, .. } => {
                let nodes = state.nodes.clone();
                for node in nodes {
                    if node != from && to.is_none_or(|to| to == node) {
                        state.mailboxes.entry(node).or_default().push_back(message.clone());
                    }
                }
                state.wakers.drain(..).for_each(Waker::wake);
                done
            }
            StoreAction::Leave { node } => {
                state.left.push(node);
                state.nodes.retain(|known| *known != node);
                StoreOutcome::Taken
            }
            _ => done,
        }
    }
}

async fn node(gate: &Arc<HandlerGate>, contents: &Contents) -> Served {
    let service = in_runtime(|| {
        let (options, sharing) = (HttpServerOptions::new(), SharedOptions::new());
        HttpService::with_shared_store(&gated(gate), options, sharing, Node::new(contents)).unwrap()
    });
    Served::from_service(service.health("/health"), |listener| listener).await
}

#[tokio::test]
async fn a_session_of_one_node_is_served_by_another_and_its_stream_resumes_there() {
    let (gate, contents) = (HandlerGate::new(), Contents::default());
    let (first, second) = (node(&gate, &contents).await, node(&gate, &contents).await);
    in_time(async {
        let mut wire = Wire::connect(first.address).await;
        let session = open_session(&mut wire).await;
        wire.send(Post::legacy_call(&session, "progress").bytes()).await;
        assert_eq!(wire.head().await.status, 200);
        let primer = id_of(&wire.event().await.unwrap()).unwrap();
        gate.arrival().await;
        // The handler runs on the first node, and the client comes back to the second one.
        drop(wire);
        let mut again = Wire::connect(second.address).await;
        again.send(get(&session, Some(&primer))).await;
        assert_eq!(again.head().await.status, 200);
        let mut said = Vec::new();
        let before = again.message().await;
        said.push(before["params"]["message"].as_str().unwrap_or_default().to_owned());
        gate.open.add_permits(1);
        let after = again.message().await;
        said.push(after["params"]["message"].as_str().unwrap_or_default().to_owned());
        said.push(text_of(&again.message().await));
        assert_eq!(said, ["before", "after", "reported"]);
    })
    .await;
}

#[tokio::test]
async fn a_node_that_closes_has_stored_everything_and_leaves() {
    let (gate, contents) = (HandlerGate::new(), Contents::default());
    let mut first = node(&gate, &contents).await;
    let second = node(&gate, &contents).await;
    in_time(async {
        let mut wire = Wire::connect(first.address).await;
        let session = open_session(&mut wire).await;
        drop(wire);
        first.stop();
        first.ended().await;
        {
            let state = contents.0.lock().unwrap();
            assert_eq!((state.left.len(), state.nodes.len()), (1, 1));
        }
        gate.open.add_permits(1);
        let mut wire = Wire::connect(second.address).await;
        wire.send(Post::legacy_call(&session, "progress").bytes()).await;
        assert_eq!(wire.head().await.status, 200);
    })
    .await;
}

#[tokio::test]
async fn a_node_that_starts_before_its_store_is_not_ready_and_recovers() {
    let (gate, contents) = (HandlerGate::new(), Contents::default());
    contents.0.lock().unwrap().down = true;
    let served = node(&gate, &contents).await;
    in_time(async {
        let status = async |request: Vec<u8>| {
            let mut wire = Wire::connect(served.address).await;
            wire.send(request).await;
            wire.head().await.status
        };
        let health = || b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n".to_vec();
        assert_eq!(status(health()).await, 503);
        assert_eq!(status(Post::initialize().bytes().into()).await, 503);
        // The server retries once a second.
        contents.0.lock().unwrap().down = false;
        while status(health()).await != 200 {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        assert_eq!(status(Post::initialize().bytes().into()).await, 200);
        // Later it stays ready, since all nodes have the same store.
        contents.0.lock().unwrap().down = true;
        assert_eq!(status(Post::initialize().bytes().into()).await, 503);
        assert_eq!(status(health()).await, 200);
    })
    .await;
}

#[tokio::test]
async fn health_checks_tell_whether_a_node_is_ready() {
    let (gate, contents) = (HandlerGate::new(), Contents::default());
    let served = node(&gate, &contents).await;
    in_time(async {
        let check = async || {
            let mut wire = Wire::connect(served.address).await;
            wire.send(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n".to_vec()).await;
            wire.head().await.status
        };
        // The node has not reached its store when it starts to listen.
        while check().await != 200 {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        served.service.set_ready(false);
        assert_eq!(check().await, 503);
        served.service.set_ready(true);
        assert_eq!(check().await, 200);
    })
    .await;
}

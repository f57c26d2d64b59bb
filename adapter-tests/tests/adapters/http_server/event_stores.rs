//! Events that are kept in an external store after memory has dropped them.

use std::sync::{Arc, Mutex};

use mcp_sansio::Principal;
use mcp_sansio::http::{
    EventPosition, HttpServerOptions, NotStored, ServerLimits, SessionId, StoredEvent,
};

use super::adapter::HttpService;
use super::adapter::adapter::http_server::ExternalEventStore;
use super::served::{HandlerGate, Served, gated, in_runtime};
use super::wire::{Post, Wire, get, id_of, in_time, open_session, text_of};

/// An in-memory event store that yields before each operation, like a store across a network.
#[derive(Clone, Default)]
struct MemoryStore(Arc<Mutex<Vec<StoredEvent>>>);

impl ExternalEventStore for MemoryStore {
    async fn append(&self, event: StoredEvent) {
        tokio::task::yield_now().await;
        self.0.lock().unwrap().push(event);
    }

    async fn read(
        &self,
        from: EventPosition,
        events_max: usize,
        _bytes_max: usize,
    ) -> Result<Vec<StoredEvent>, NotStored> {
        tokio::task::yield_now().await;
        let wanted = |place: &EventPosition| {
            let same = (place.session, place.stream) == (from.session, from.stream);
            same && place.principal == from.principal && place.sequence >= from.sequence
        };
        let store = self.0.lock().unwrap();
        let found = store.iter().filter(|event| wanted(&event.position)).take(events_max);
        Ok(found.cloned().collect())
    }

    async fn forget(&self, session: SessionId, stream: Option<u32>, _: Option<Principal>) {
        let kept = |place: &EventPosition| {
            place.session != session || stream.is_some_and(|stream| stream != place.stream)
        };
        self.0.lock().unwrap().retain(|event| kept(&event.position));
    }
}

/// Returns options that keep one event per stream in memory.
fn forgetful() -> HttpServerOptions {
    let mut limits = ServerLimits::DEFAULT;
    limits.replay_events_max = 1;
    HttpServerOptions::new().limits(limits)
}

/// Reconnects for all events of a call except the first, as if the others had been lost in transit.
/// Memory has already dropped the events that were sent. Returns the status and the received
/// messages.
async fn come_back(service: HttpService, gate: &Arc<HandlerGate>) -> (u16, Vec<String>) {
    let served = Served::from_service(service, |listener| listener).await;
    let address = served.address;
    let mut wire = Wire::connect(address).await;
    let session = open_session(&mut wire).await;
    wire.send(Post::legacy_call(&session, "progress").bytes()).await;
    assert_eq!(wire.head().await.status, 200);
    let first = wire.event().await.unwrap();
    let first = id_of(&first).unwrap();
    gate.arrival().await;
    gate.open.add_permits(1);
    while wire.event().await.is_some() {}
    let mut again = Wire::connect(address).await;
    again.send(get(&session, Some(&first))).await;
    let status = again.head().await.status;
    let mut said = Vec::new();
    while status == 200 && said.len() < 3 {
        let message = again.message().await;
        let params = message["params"]["message"].as_str().map(str::to_owned);
        said.push(params.unwrap_or_else(|| text_of(&message)));
    }
    (status, said)
}

#[tokio::test]
async fn events_evicted_from_memory_come_from_the_external_store() {
    let gate = HandlerGate::new();
    let store = MemoryStore::default();
    let external = store.clone();
    let service =
        in_runtime(|| HttpService::with_event_store(&gated(&gate), forgetful(), external).unwrap());
    let came_back = in_time(come_back(service, &gate)).await;
    assert_eq!(came_back, (200, vec!["before".into(), "after".into(), "reported".into()]));
    assert!(store.0.lock().unwrap().len() >= 4);
}

#[tokio::test]
async fn without_an_external_store_lost_events_are_reported() {
    let gate = HandlerGate::new();
    let service = in_runtime(|| HttpService::new(&gated(&gate), forgetful()).unwrap());
    let (status, _) = in_time(come_back(service, &gate)).await;
    assert_eq!(status, 410);
}

//! Tests against real servers, which each test starts for itself. Without `redis-server`, they are
//! skipped.

mod deployments;
mod events;
mod failures;
mod nodes;
mod server;
mod sessions;
mod tasks;

use std::time::Duration;

use mcp_sansio::http::{EventPosition, MailboxShare, NodeId, SessionId, StoredEvent};

use crate::sessions::Numbers;
use crate::{RedisOptions, RedisStore};
use server::RedisServer;

const IDLE: Duration = Duration::from_secs(60);
const LEASE: Duration = Duration::from_secs(10);

fn session(number: u32) -> SessionId {
    SessionId::parse(format!("{number:032}").as_bytes()).unwrap()
}

fn node(number: u32) -> NodeId {
    NodeId::parse(&format!("{number:016x}")).unwrap()
}

fn position(sequence: u64) -> EventPosition {
    EventPosition { session: session(1), stream: 7, sequence, principal: None }
}

fn event(sequence: u64) -> StoredEvent {
    StoredEvent::new(position(sequence), format!("event {sequence}").into_bytes())
}

/// Runs a test with an empty Redis, unless such tests are skipped.
async fn with_redis(test: impl AsyncFnOnce(RedisServer, RedisStore)) {
    let Some(server) = RedisServer::start(&[]) else { return };
    let store = RedisStore::connect(&server.url(), RedisOptions::new()).await.unwrap();
    test(server, store).await;
}

/// Much room in mailboxes.
fn share() -> MailboxShare {
    MailboxShare::new("someone".into(), 1 << 30, 1 << 30)
}

/// Returns the numbers for storing a session whose replicas up to this one are known.
fn first(replica: u32) -> Numbers {
    Numbers { replica, taken: replica, skipped: 0 }
}

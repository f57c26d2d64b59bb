use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use mcp_sansio::Caller;
use mcp_sansio::http::{self, RequestHead, SharedLimit, SharedResource};
use mcp_sansio_handlers::endpoint::HttpServer;

use super::budget::Budget;
use super::health::Health;
use super::runtime::AnyRuntime;
use super::shared_server::SharedServer;

/// The shards of a server on HTTP, usually one, and their common state.
#[derive(Debug)]
pub(super) struct Shards {
    /// Each behind a lock, with a timer task.
    servers: Box<[Arc<SharedServer>]>,
    /// Says which requests a shard must handle, if there are several.
    placement: Option<http::Shards>,
    /// Counts the requests that any shard may handle.
    placed: AtomicUsize,
    /// The bytes of request bodies that are held.
    pub(super) bodies: Budget,
    /// The answers to health checks, if they are enabled.
    pub(super) health: OnceLock<Health>,
}

impl Shards {
    /// Creates the shards of a server, at least one.
    pub(super) fn new(servers: Vec<HttpServer>, runtime: &Arc<dyn AnyRuntime>) -> Self {
        let placement = servers.first().and_then(|first| first.machine().shards().cloned());
        let limits = servers[0].machine().options().limits_ref();
        let (total, per_caller) = (limits.bodies_bytes_max, limits.bodies_bytes_per_caller_max);
        let bodies = SharedLimit::new(SharedResource::BodyBytes, total, per_caller);
        let share = |server| Arc::new(SharedServer::new(server, Arc::clone(runtime)));
        Self {
            servers: servers.into_iter().map(share).collect(),
            placement,
            placed: AtomicUsize::new(0),
            bodies: Budget::new(bodies),
            health: OnceLock::new(),
        }
    }

    /// Returns the shard that stands for all: its handle reaches the clients of the others.
    pub(super) fn first(&self) -> &Arc<SharedServer> {
        &self.servers[0]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<SharedServer>> {
        self.servers.iter()
    }

    /// Returns the shard for a request, as far as its head says.
    pub(super) fn place(&self, head: &RequestHead<'_>) -> &Arc<SharedServer> {
        let Some(placement) = &self.placement else { return self.first() };
        match placement.place(head, &Caller::ANONYMOUS) {
            Some(shard) => &self.servers[shard],
            None => self.next_free(),
        }
    }

    /// Returns the shard for a request of `caller`, which `shard` has identified.
    pub(super) fn place_for<'s>(
        &'s self,
        shard: &'s Arc<SharedServer>,
        head: &RequestHead<'_>,
        caller: &Caller,
    ) -> &'s Arc<SharedServer> {
        let placed = self.placement.as_ref().and_then(|placement| placement.place(head, caller));
        placed.map_or(shard, |place| &self.servers[place])
    }

    /// Returns the next shard in turn whose lock is free, or the next one if none is.
    fn next_free(&self) -> &Arc<SharedServer> {
        let next = self.placed.fetch_add(1, Ordering::Relaxed);
        let mut order = (0..self.servers.len())
            .map(|step| &self.servers[next.wrapping_add(step) % self.servers.len()]);
        let is_free = |shard: &&Arc<SharedServer>| shard.is_free();
        order.clone().find(is_free).or_else(|| order.next()).unwrap_or_else(|| self.first())
    }
}

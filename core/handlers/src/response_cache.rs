//! The cache of a connection, if its host has one.

use alloc::boxed::Box;
use core::fmt;

use mcp_sansio::Instant;
use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::{CacheOptions, CallHandle, Event, ResponseCache};
use mcp_sansio::protocol::Method;

/// A cache as an endpoint uses it. Endpoints name this trait only, so that programs without
/// [`Host::cache`](super::Host::cache) do not contain the code of the cache.
pub(super) trait Cache: fmt::Debug + Send {
    fn get(
        &mut self,
        method: Method,
        params: &RawJson<'_>,
        now: Instant,
    ) -> Option<&RawJson<'static>>;

    fn handle_call(&mut self, call: CallHandle, method: Method, params: &RawJson<'_>);

    fn handle_event(&mut self, event: &Event<'_>, now: Instant);

    /// Sets the number of the current token; zero without one. Call it before the other
    /// methods.
    fn set_token(&mut self, number: u64);
}

/// A cache, and the number of the token that its private results belong to.
#[derive(Debug)]
struct ConnectionCache {
    cache: ResponseCache,
    token: u64,
}

impl Cache for ConnectionCache {
    fn get(
        &mut self,
        method: Method,
        params: &RawJson<'_>,
        now: Instant,
    ) -> Option<&RawJson<'static>> {
        self.cache.get(method, params, now)
    }

    fn handle_call(&mut self, call: CallHandle, method: Method, params: &RawJson<'_>) {
        self.cache.handle_call(call, method, params);
    }

    fn handle_event(&mut self, event: &Event<'_>, now: Instant) {
        self.cache.handle_event(event, now);
    }

    // MCP 2026-07-28 server/utilities/caching#cache-scope-field [CACHE-005]
    fn set_token(&mut self, number: u64) {
        if self.token != number {
            self.token = number;
            self.cache.credentials_changed();
        }
    }
}

/// Creates a cache for each connection of a host.
#[derive(Clone, Debug)]
pub(super) struct CacheFactory {
    options: CacheOptions,
    create: fn(CacheOptions) -> Box<dyn Cache>,
}

impl CacheFactory {
    pub(super) fn new(options: CacheOptions) -> Self {
        let create = |options| -> Box<dyn Cache> {
            Box::new(ConnectionCache { cache: ResponseCache::new(options), token: 0 })
        };
        Self { options, create }
    }

    pub(super) fn create(&self) -> Box<dyn Cache> {
        (self.create)(self.options.clone())
    }
}

/// How a call uses the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum CacheMode {
    /// Sends the call unless the cache has its result.
    #[default]
    Default,
    /// Sends the call.
    Reload,
    /// Fails the call unless the cache has its result.
    OnlyIfCached,
}

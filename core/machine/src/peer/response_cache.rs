use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use core::time::Duration;

use serde::Deserialize;

use crate::jsonrpc::RawJson;
use crate::protocol::{CacheScope, Method, Ttl};
use crate::{Era, Instant};

use super::event::{Ended, Event, Failure, Notification};
use super::handle::CallHandle;

/// Options of a [`ResponseCache`]: its bounds, and the lifetime of results without a hint.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheOptions {
    /// Cached results; above it, the oldest goes first. 256: all pages of a large server's lists,
    /// and some two hundred resources. A lookup and a notification compare with each entry,
    /// in some microseconds. It is also the number of requests in flight that are remembered; the
    /// results of further ones are not cached.
    pub entries_max: usize,
    /// Bytes of the cached results and their parameters, plus 256 for each; above it, the oldest
    /// goes first. 4 MiB: one body of the greatest length on HTTP, or a thousand of the usual
    /// length. A longer result is not cached.
    /// The memory of the cache stays below this, apart from parameters of requests in flight.
    pub bytes_max: usize,
    /// How long a result without `ttlMs` stays fresh. Zero: such a result is not cached. All
    /// results of servers until 2025-11-25 are without, and so this is the only way to cache them.
    // MCP 2026-07-28 server/utilities/caching#time-to-live-ttl-field [CACHE-006]: "rely on their own
    // caching heuristics".
    pub default_ttl: Duration,
    /// The longest time that a result stays fresh, whatever `ttlMs` says. One day: a list costs
    /// little to read again, and a mistake of a server does not last as long as the connection.
    pub ttl_max: Duration,
}

impl CacheOptions {
    /// The defaults.
    pub const DEFAULT: Self = Self {
        entries_max: 256,
        bytes_max: 4 * 1024 * 1024,
        default_ttl: Duration::ZERO,
        ttl_max: Duration::from_secs(24 * 60 * 60),
    };

    /// Sets `entries_max`.
    #[must_use]
    pub const fn entries_max(mut self, entries: usize) -> Self {
        self.entries_max = entries;
        self
    }

    /// Sets `bytes_max`.
    #[must_use]
    pub const fn bytes_max(mut self, bytes: usize) -> Self {
        self.bytes_max = bytes;
        self
    }

    /// Sets `default_ttl`.
    #[must_use]
    pub const fn default_ttl(mut self, ttl: Duration) -> Self {
        self.default_ttl = ttl;
        self
    }

    /// Sets `ttl_max`.
    #[must_use]
    pub const fn ttl_max(mut self, ttl: Duration) -> Self {
        self.ttl_max = ttl;
        self
    }
}

impl Default for CacheOptions {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The cost of an entry in addition to its texts, in bytes: the entry itself, twice because the
/// table doubles, and the headers of its allocations.
const ENTRY_COST: usize = 256;

/// A client's cache of results, for as long as the server's hints allow: lists, resources and the
/// result of `server/discover`.
///
/// It belongs to one connection and knows nothing of it but what the caller passes on:
///
/// * Before a call, ask [`get`](Self::get). If it has the result, send nothing.
/// * Otherwise send the call and report it with [`handle_call`](Self::handle_call).
/// * Pass every event of the machine to [`handle_event`](Self::handle_event): results are stored,
///   and notifications of changes remove stale ones.
/// * When the credentials of the connection change, call
///   [`credentials_changed`](Self::credentials_changed).
///
/// A result whose request was in flight when such a notification arrived, or the credentials
/// changed, may be older than the change and is not stored. Nothing happens when a result becomes
/// stale; the next lookup finds nothing.
///
/// ```
/// use mcp_sansio::{Instant, Method};
/// use mcp_sansio::jsonrpc::RawJson;
/// use mcp_sansio::peer::{
///     CacheOptions, CallOptions, Client, ClientMachine, ClientOptions, ResponseCache,
/// };
/// use mcp_sansio::protocol::Implementation;
///
/// let now = Instant::ZERO;
/// let options = ClientOptions::new(Implementation::new("demo", "1.0.0"));
/// let mut client = Client::new(options, 42, now);
/// let mut cache = ResponseCache::new(CacheOptions::DEFAULT);
///
/// # let discover = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}}"#;
/// # client.handle_message(discover.as_bytes(), now)?;
/// let list = RawJson::EMPTY_OBJECT;
/// assert!(cache.get(Method::ToolsList, &list, now).is_none());
/// let call = client.call(Method::ToolsList, &list, &CallOptions::default(), now)?;
/// cache.handle_call(call, Method::ToolsList, &list);
///
/// let frame = r#"{"jsonrpc":"2.0","id":2,"result":{"tools":[],"resultType":"complete","ttlMs":60000,"cacheScope":"private"}}"#;
/// if let Some(event) = client.handle_message(frame.as_bytes(), now)? {
///     cache.handle_event(&event, now);
/// }
/// assert!(cache.get(Method::ToolsList, &list, Instant::from_millis(59_999)).is_some());
/// assert!(cache.get(Method::ToolsList, &list, Instant::from_millis(60_000)).is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ResponseCache {
    options: CacheOptions,
    /// In the order of their receipt.
    entries: VecDeque<Entry>,
    /// The cost of all entries, in bytes.
    bytes: usize,
    in_flight: BTreeMap<CallHandle, CachedRequest>,
    /// Whether results have hints; those of legacy servers do not.
    has_hints: bool,
}

/// A cached result.
#[derive(Debug)]
struct Entry {
    request: CachedRequest,
    result: RawJson<'static>,
    stale_at: Instant,
    scope: CacheScope,
}

/// A request whose result is or will be cached.
#[derive(Debug)]
struct CachedRequest {
    method: Method,
    /// As JSON text.
    params: String,
    /// Whether the result was not overtaken by a change.
    is_current: bool,
}

/// The caching hints of a result.
#[derive(Deserialize)]
struct Hints {
    #[serde(default, rename = "ttlMs")]
    ttl: Option<Ttl>,
    #[serde(default, rename = "cacheScope")]
    scope: Option<CacheScope>,
}

impl ResponseCache {
    /// Creates an empty cache, which allocates nothing yet.
    #[must_use]
    pub const fn new(options: CacheOptions) -> Self {
        Self {
            options,
            entries: VecDeque::new(),
            bytes: 0,
            in_flight: BTreeMap::new(),
            has_hints: true,
        }
    }

    /// Returns the number of results, with those that became stale since the last lookup.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether there are no results.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the fresh result of the same request, if there is one. Parameters are the same if
    /// their text is, without `_meta`: a request whose `_meta` affects the result must not use the
    /// cache.
    // MCP 2026-07-28 server/utilities/caching#cache-key [CACHE-003]
    #[must_use]
    pub fn get(
        &mut self,
        method: Method,
        params: &RawJson<'_>,
        now: Instant,
    ) -> Option<&RawJson<'static>> {
        let at = self.entries.iter().position(|entry| entry.request.is(method, params.as_str()))?;
        // MCP 2026-07-28 server/utilities/caching#freshness-calculation [CACHE-006] [CACHE-007]:
        // only a lookup checks whether the result is fresh; no timer fetches it again.
        if now >= self.entries.get(at)?.stale_at {
            self.remove_at(at);
            return None;
        }
        self.entries.get(at).map(|entry| &entry.result)
    }

    /// Records that a request was sent, so that its result is stored. Does nothing for other
    /// methods than those with cacheable results.
    pub fn handle_call(&mut self, call: CallHandle, method: Method, params: &RawJson<'_>) {
        // MCP 2026-07-28 server/utilities/caching#cacheable-results
        let is_cacheable = matches!(
            method,
            Method::Discover
                | Method::ToolsList
                | Method::PromptsList
                | Method::ResourcesList
                | Method::ResourcesTemplatesList
                | Method::ResourcesRead
        );
        // MCP 2026-07-28 server/utilities/caching#cache-key [CACHE-004]: this request is a later
        // round, sent by the application itself.
        let is_retry = ["inputResponses", "requestState"].iter().any(|it| params.get(it).is_some());
        if is_cacheable && !is_retry && self.in_flight.len() < self.options.entries_max {
            let params = String::from(params.as_str());
            self.in_flight.insert(call, CachedRequest { method, params, is_current: true });
        }
    }

    /// Handles an event of the machine.
    pub fn handle_event(&mut self, event: &Event<'_>, now: Instant) {
        match event {
            // The first connection to a server, or the session of a server that was restarted.
            Event::Opened(opened) => {
                self.clear();
                self.has_hints = opened.era() == Era::Modern;
            }
            Event::Ended(ended) => {
                if let Some(request) = self.in_flight.remove(&ended.call) {
                    self.ended(request, ended, now);
                }
            }
            Event::Notification(notification) => self.notified(notification),
            // A legacy server does not say which request its question belongs to, so it may be any:
            // the answer would be part of the result.
            Event::InputRequested(input) if input.call.is_none() => self.doubt(|_| true),
            Event::Closed(_) => self.clear(),
            _ => {}
        }
    }

    /// Removes the results that only the previous credentials may see. Call it before the first
    /// lookup and the first event with other credentials.
    // MCP 2026-07-28 server/utilities/caching#cache-scope-field [CACHE-005]
    pub fn credentials_changed(&mut self) {
        self.retain(|entry| entry.scope == CacheScope::Public);
        self.doubt(|_| true);
    }

    /// Removes all results. Those of requests in flight are not stored.
    pub fn clear(&mut self) {
        self.entries = VecDeque::new();
        self.bytes = 0;
        self.doubt(|_| true);
    }

    fn ended(&mut self, request: CachedRequest, ended: &Ended<'_>, now: Instant) {
        let CachedRequest { method, ref params, is_current } = request;
        let result = match &ended.outcome {
            Ok(result) => result,
            // MCP 2026-07-28 server/utilities/caching#interaction-with-pagination [CACHE-010]: the
            // cursor is not valid any more, and so neither is the page that it is from.
            Err(Failure::Refused(_)) if method != Method::ResourcesRead && has_cursor(params) => {
                return self.invalidate(|it| it.method == method);
            }
            Err(_) => return,
        };
        self.retain(|entry| !entry.request.is(method, params));
        // MCP 2026-07-28 server/utilities/caching#cache-key [CACHE-004]: the machine sent the
        // request again with input or with a state.
        if !is_current || ended.input_rounds > 0 {
            return;
        }
        let Some((ttl, scope)) = self.hints(result) else { return };
        let cost = ENTRY_COST + params.len() + result.as_str().len();
        if ttl.min(self.options.ttl_max).is_zero()
            || cost > self.options.bytes_max
            || self.options.entries_max == 0
        {
            return;
        }
        while self.entries.len() >= self.options.entries_max
            || cost > self.options.bytes_max - self.bytes
        {
            self.remove_at(0);
        }
        self.bytes += cost;
        let result = result.clone().into_owned();
        // MCP 2026-07-28 server/utilities/caching#freshness-calculation [CACHE-006]
        let stale_at = now + ttl.min(self.options.ttl_max);
        self.entries.push_back(Entry { request, result, stale_at, scope });
    }

    fn hints(&self, result: &RawJson<'_>) -> Option<(Duration, CacheScope)> {
        if !self.has_hints {
            return Some((self.options.default_ttl, CacheScope::Private));
        }
        let Hints { ttl, scope } = result.decode().ok()?;
        let ttl = ttl.map_or(self.options.default_ttl, Duration::from);
        Some((ttl, scope.unwrap_or_default()))
    }

    // MCP 2026-07-28 server/utilities/caching#interaction-with-notifications [CACHE-009]
    fn notified(&mut self, notification: &Notification<'_>) {
        let Some(method) = notification.method.known() else { return };
        match method {
            Method::ToolsListChanged => self.invalidate(|it| it.method == Method::ToolsList),
            Method::PromptsListChanged => self.invalidate(|it| it.method == Method::PromptsList),
            // Templates have no notification of their own.
            Method::ResourcesListChanged => self.invalidate(|it| {
                matches!(it.method, Method::ResourcesList | Method::ResourcesTemplatesList)
            }),
            Method::ResourcesUpdated => {
                let updated = notification.params.get("uri").and_then(|uri| uri.to_text());
                let updated = updated.as_deref();
                self.invalidate(|it| it.method == Method::ResourcesRead && it.shows(updated));
            }
            _ => {}
        }
    }

    /// Removes the results of some requests; those in flight are not stored.
    fn invalidate(&mut self, stale: impl Fn(&CachedRequest) -> bool) {
        self.retain(|entry| !stale(&entry.request));
        self.doubt(stale);
    }

    /// Does not store the results of some requests in flight.
    fn doubt(&mut self, stale: impl Fn(&CachedRequest) -> bool) {
        for request in self.in_flight.values_mut() {
            request.is_current &= !stale(request);
        }
    }

    fn retain(&mut self, keep: impl Fn(&Entry) -> bool) {
        self.entries.retain(keep);
        self.bytes = self.entries.iter().map(Entry::cost).sum();
    }

    fn remove_at(&mut self, at: usize) {
        if let Some(entry) = self.entries.remove(at) {
            self.bytes -= entry.cost();
        }
    }
}

impl Entry {
    fn cost(&self) -> usize {
        ENTRY_COST + self.request.params.len() + self.result.as_str().len()
    }
}

impl CachedRequest {
    fn is(&self, method: Method, params: &str) -> bool {
        self.method == method && self.params == params
    }

    /// Whether a read resource may show the content of the updated one: it is the same, or may
    /// contain it. An update may name a sub-resource.
    // MCP 2026-07-28 schema.json#ResourceUpdatedNotificationParams
    fn shows(&self, updated: Option<&str>) -> bool {
        let Some(updated) = updated else { return true };
        let params = RawJson::trusted(&self.params);
        let uri = params.get("uri").and_then(|uri| uri.to_text());
        uri.is_none_or(|uri| updated.starts_with(&*uri))
    }
}

fn has_cursor(params: &str) -> bool {
    RawJson::trusted(params).get_present("cursor").is_some()
}

#[cfg(test)]
mod tests;

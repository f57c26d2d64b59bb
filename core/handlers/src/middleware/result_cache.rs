use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use mcp_sansio::catalog::ItemId;
use mcp_sansio::jsonrpc::Json;
use mcp_sansio::peer::{Event, MethodName};
use mcp_sansio::protocol::{CallToolResult, Capability, Method};
use mcp_sansio::{Instant, Revision};
use mcp_sansio_sync::Mutex;

#[cfg(feature = "client")]
use crate::client_middleware::{
    CallResult, ClientRequest, ConnectionLayers, EventObserver, NextCall,
};
use crate::reply::{ResultBody, Written};
use crate::threading::Threading;

use super::caller_key::CallerKey;
use super::layers::{ResourceObserver, layer};
use super::next::{MiddlewareResult, Next};
use super::server_request::ServerRequest;

/// Middleware that answers a request with the result of an equal earlier one.
///
/// Only `resources/read`, `prompts/get`, `completion/complete` and calls of tools that are declared
/// [read-only](mcp_sansio::protocol::ToolAnnotations::read_only_hint) are cached, and only results:
/// no errors, no tool errors, no input requests, no answers to them, no tasks.
///
/// Requests are equal if they have the same method, target, arguments (as text), revision and client
/// capabilities, and the same caller with the same scopes. Two callers never share a result, unless
/// [`for_everyone`](Self::for_everyone) says so. A handler that decides by anything else, such as
/// other claims of a token, must not be cached: see [`when`](super::when()).
///
/// A change of the underlying data is seen after the time to live, or after [`clear`](Self::clear).
/// A [notification](crate::ServerHandle::resource_updated) that a resource has changed drops the
/// results for its URI, before the subscribers are notified; in a cluster, on the node that sends it.
///
/// # Around the calls of a client
///
/// With [`Host::call_middleware`](crate::Host::call_middleware) it caches lists, resources, prompts
/// and completions, and calls of the tools that [`tools`](Self::tools) names. Each connection has its
/// own results, and a call that [reloads](crate::ClientCall::reload), has header fields, or took input
/// rounds of 2026-07-28 is not answered from it. A notification of the server that a list or a
/// resource has changed drops the results that it concerns, and so does another token.
/// [`Host::cache`] follows the hints of the server instead, and should be preferred for servers
/// that give them.
///
/// [`Host::cache`]: crate::Host::cache
#[derive(Clone)]
pub struct ResultCache {
    entries: Arc<Mutex<Entries>>,
    ttl: Duration,
    is_shared: bool,
    bytes_max: usize,
    /// The tools whose calls by a client are cached.
    tools: Arc<[String]>,
}

impl ResultCache {
    /// Creates a cache that keeps results for `ttl`. Clones share the results.
    #[must_use]
    pub fn new(ttl: Duration) -> Self {
        let entries = Arc::new(Mutex::new(Entries::default()));
        let bytes_max = 4 * 1024 * 1024;
        Self { entries, ttl, is_shared: false, bytes_max, tools: Arc::default() }
    }

    /// Declares that results are the same for every caller who may send the request. The
    /// [audience](crate::ServerItem::audience) of an item is still checked; checks in the handler,
    /// such as `require_scopes`, are not.
    #[must_use]
    pub const fn for_everyone(mut self) -> Self {
        self.is_shared = true;
        self
    }

    /// Sets the most bytes of requests and results that are kept. 4 MiB by default: some thousand of
    /// the usual size. Beyond that the oldest are dropped; a result larger than a quarter of it is
    /// not kept.
    #[must_use]
    pub const fn bytes_max(mut self, bytes: usize) -> Self {
        self.bytes_max = bytes;
        self
    }

    /// Sets the tools whose calls by a client are cached, because they only read. On a server the
    /// definition of a tool says so.
    #[must_use]
    pub fn tools<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.tools = names.into_iter().map(Into::into).collect();
        self
    }

    /// Drops all results, also those of requests that are running.
    #[inline]
    pub fn clear(&self) {
        let dropped = self.entries.lock(|entries| {
            let generation = entries.generation + 1;
            core::mem::replace(entries, Entries { generation, ..Entries::default() })
        });
        drop(dropped);
    }

    async fn around<K: Threading>(
        &self,
        request: &ServerRequest,
        next: Next<K>,
    ) -> MiddlewareResult {
        let Some(key) = self.key(request) else { return next.run().await };
        let (found, generation) = self.find(&key, request.now());
        if let Some(found) = found {
            return Ok(found.to_body());
        }
        let result = next.run().await;
        if let Ok(body) = &result
            && let Some(kept) = Kept::new(body, request.revision())
        {
            self.keep(key, kept, request.now(), generation);
        }
        result
    }

    #[cfg(feature = "client")]
    pub(crate) async fn around_call(&self, request: ClientRequest, next: NextCall) -> CallResult {
        let Some(key) = self.call_key(&request) else { return next.run(request).await };
        let (found, generation) = self.find(&key, request.now());
        if let Some(found) = found.filter(|_| !request.is_reload())
            && let Kept::Json(result) = &*found
        {
            return Ok(result.clone());
        }
        let client = request.client().clone();
        let result = next.run(request).await;
        // MCP 2026-07-28 server/utilities/caching#cache-key [CACHE-004]
        if let Ok(json) = &result
            && !next.took_input()
            && json.as_raw().get("isError").is_none_or(|it| it.as_str() != "true")
            && let Some(layers) = client.layers()
        {
            let kept = (Kept::Json(json.clone()), json.as_str().len());
            self.keep(key, kept, layers.now(), generation);
        }
        result
    }

    /// Returns the result for a request, and the current generation.
    #[inline]
    fn find(&self, key: &RequestKey, now: Instant) -> (Option<Arc<Kept>>, u64) {
        self.entries.lock(|entries| (entries.get(key, now), entries.generation))
    }

    /// Keeps a result, unless results were dropped since its request began.
    #[inline]
    fn keep(&self, key: RequestKey, kept: (Kept, usize), now: Instant, generation: u64) {
        let (expires, bytes_max) = (now + self.ttl, self.bytes_max);
        let dropped = self.entries.lock(|entries| {
            (entries.generation == generation)
                .then(|| entries.insert(Arc::new(key), kept, expires, bytes_max))
        });
        drop(dropped);
    }

    /// Returns a function that drops the results for a resource.
    #[inline]
    fn forget_resources(&self) -> ResourceObserver {
        let entries = Arc::clone(&self.entries);
        Arc::new(move |uri| {
            let first = RequestKey::first(Side::Server, Method::ResourcesRead, Some(uri));
            let dropped = entries.lock(|entries| entries.forget(&first, |_| true));
            drop(dropped);
        })
    }

    /// Returns a function that drops the results of a connection that an event of it concerns.
    // MCP 2026-07-28 server/utilities/caching#interaction-with-notifications [CACHE-009]
    #[cfg(feature = "client")]
    #[inline]
    pub(crate) fn event_observer(&self) -> EventObserver {
        let entries = Arc::clone(&self.entries);
        Arc::new(move |connection, event| {
            let forget = |method, target: Option<&str>| {
                let first = RequestKey::first(Side::Client, method, target);
                let is_meant = |key: &RequestKey| key.endpoint == connection;
                let dropped = entries.lock(|entries| entries.forget(&first, is_meant));
                drop(dropped);
            };
            match event {
                Event::Notification(notification) => match notification.method {
                    MethodName::Known(Method::ResourcesUpdated) => {
                        let uri = notification.params.get("uri").and_then(|uri| uri.to_text());
                        forget(Method::ResourcesRead, uri.as_deref());
                    }
                    MethodName::Known(Method::ToolsListChanged) => forget(Method::ToolsList, None),
                    MethodName::Known(Method::PromptsListChanged) => {
                        forget(Method::PromptsList, None);
                    }
                    MethodName::Known(Method::ResourcesListChanged) => {
                        forget(Method::ResourcesList, None);
                        forget(Method::ResourcesTemplatesList, None);
                    }
                    _ => {}
                },
                // Another session, or none.
                Event::Opened(_) | Event::Closed(_) => {
                    let dropped = entries.lock(|entries| entries.forget_connection(connection));
                    drop(dropped);
                }
                _ => {}
            }
        })
    }

    /// Returns the key of a call; `None` if it is not cached.
    #[cfg(feature = "client")]
    fn call_key(&self, request: &ClientRequest) -> Option<RequestKey> {
        let MethodName::Known(method) = *request.method() else { return None };
        let target = request.target();
        let is_cached = match method {
            Method::ToolsCall => {
                target.as_ref().is_some_and(|it| self.tools.iter().any(|t| t == it))
            }
            Method::Ping | Method::Discover => false,
            _ => request.is_read(),
        };
        if !is_cached || request.has_fields() || request.options.wants_task() {
            return None;
        }
        let meta = request.meta().as_str();
        Some(RequestKey {
            revision: request.revision(),
            endpoint: request.connection(),
            // MCP 2026-07-28 server/utilities/caching#cache-scope-field [CACHE-005]
            token: request.client().layers().map_or(0, ConnectionLayers::token),
            params: [Some(request.params().as_str().into()), Some(meta.into()), None],
            ..RequestKey::first(Side::Client, method, target.as_deref())
        })
    }

    /// Returns the key of a request; `None` if it is not cached.
    fn key(&self, request: &ServerRequest) -> Option<RequestKey> {
        // The server has the lists at hand.
        if request.is_list() {
            return None;
        }
        if !request.is_read_only() || !request.inputs().is_empty() || request.is_task() {
            return None;
        }
        let MethodName::Known(method) = *request.method() else { return None };
        let member = |name| request.params().get(name).map(|it| it.as_str().into());
        let (target, params) = match method {
            Method::CompletionComplete => (None, ["ref", "argument", "context"].map(member)),
            _ => {
                let arguments = request.arguments().map(|arguments| arguments.as_str().into());
                (request.target(), [arguments, None, None])
            }
        };
        let scopes = || request.caller().scopes().to_vec();
        Some(RequestKey {
            // Connections may have different items under the same name.
            endpoint: request.clock().endpoint(),
            item: request.item(),
            revision: request.revision(),
            capabilities: request.capabilities().iter().collect(),
            caller: (!self.is_shared).then(|| (CallerKey::new(request), scopes())),
            params,
            ..RequestKey::first(Side::Server, method, target.as_deref())
        })
    }
}

layer!(ResultCache, forget_resources);

impl fmt::Debug for ResultCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResultCache").field("ttl", &self.ttl).finish_non_exhaustive()
    }
}

/// The inputs that determine a result. Those of one target are next to each other in their order.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct RequestKey {
    side: Side,
    method: Method,
    target: Option<Box<str>>,
    /// The number of the endpoint among those of its server, or of the connection among those of its
    /// host.
    endpoint: usize,
    /// The number of a client's token.
    token: u64,
    item: Option<ItemId>,
    revision: Revision,
    capabilities: Vec<Capability>,
    /// The caller and its scopes, unless results are shared.
    caller: Option<(CallerKey, Vec<String>)>,
    params: [Option<Box<str>>; 3],
}

/// The side that the cache is used on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    Server,
    Client,
}

impl RequestKey {
    /// Returns the key before all others of a target.
    fn first(side: Side, method: Method, target: Option<&str>) -> Self {
        Self {
            side,
            method,
            target: target.map(Into::into),
            endpoint: 0,
            token: 0,
            item: None,
            revision: Revision::V2024_11_05,
            capabilities: Vec::new(),
            caller: None,
            params: [None, None, None],
        }
    }

    fn bytes(&self) -> usize {
        let texts = self.params.iter().chain([&self.target]).flatten();
        let params: usize = texts.map(|text| text.len()).sum();
        let scopes = self.caller.iter().flat_map(|(_, scopes)| scopes);
        size_of::<Self>() + params + scopes.map(String::len).sum::<usize>()
    }
}

/// A result that is kept. Results of tools keep their type: the machine validates them.
enum Kept {
    Tool(CallToolResult),
    Text(String),
    Json(Json),
}

impl Kept {
    /// Returns the result and its size in bytes, unless it must not be kept.
    fn new(body: &ResultBody, revision: Revision) -> Option<(Self, usize)> {
        if let ResultBody::Text(text) = body {
            return Some((Self::Text(text.clone()), text.len()));
        }
        if matches!(body, ResultBody::Tool(result) if result.is_error == Some(true)) {
            return None;
        }
        // A result that cannot be written is an error later.
        let json = body.to_json(revision).ok()?;
        let bytes = json.as_str().len();
        Some(match body {
            ResultBody::Tool(result) => (Self::Tool(result.clone()), bytes),
            _ => (Self::Json(json), bytes),
        })
    }

    fn to_body(&self) -> ResultBody {
        match self {
            Self::Tool(result) => ResultBody::Tool(result.clone()),
            Self::Text(text) => ResultBody::Text(text.clone()),
            Self::Json(json) => ResultBody::boxed(Written(json.clone())),
        }
    }
}

/// The results, with the order of their age.
#[derive(Default)]
struct Entries {
    by_key: BTreeMap<Arc<RequestKey>, Entry>,
    by_age: BTreeMap<u64, Arc<RequestKey>>,
    /// The number of the last entry.
    last: u64,
    bytes: usize,
    /// Counts how often the cache was cleared.
    generation: u64,
}

struct Entry {
    number: u64,
    result: Arc<Kept>,
    bytes: usize,
    expires: Instant,
}

impl Entries {
    #[inline]
    fn get(&self, key: &RequestKey, now: Instant) -> Option<Arc<Kept>> {
        let entry = self.by_key.get(key)?;
        (now < entry.expires).then(|| Arc::clone(&entry.result))
    }

    /// Adds a result. Returns the results that it replaces.
    #[inline]
    fn insert(
        &mut self,
        key: Arc<RequestKey>,
        (result, bytes): (Kept, usize),
        expires: Instant,
        bytes_max: usize,
    ) -> Vec<Entry> {
        let bytes = bytes + key.bytes() + size_of::<Entry>();
        if bytes > bytes_max / 4 {
            return Vec::new();
        }
        let mut removed: Vec<_> = self.remove(&key).into_iter().collect();
        // The oldest expire first, so that no others need to be searched for.
        while self.bytes + bytes > bytes_max
            && let Some((_, oldest)) = self.by_age.first_key_value()
        {
            let oldest = Arc::clone(oldest);
            removed.extend(self.remove(&oldest));
        }
        self.last += 1;
        self.bytes += bytes;
        self.by_age.insert(self.last, Arc::clone(&key));
        let result = Arc::new(result);
        self.by_key.insert(key, Entry { number: self.last, result, bytes, expires });
        removed
    }

    /// Drops the results for the target of `first` whose keys are meant, also those of requests that
    /// are running. Returns them.
    #[inline]
    fn forget(&mut self, first: &RequestKey, is_meant: impl Fn(&RequestKey) -> bool) -> Vec<Entry> {
        self.generation += 1;
        let is_of_target = |key: &RequestKey| {
            (key.side, key.method, &key.target) == (first.side, first.method, &first.target)
        };
        let following = self.by_key.range::<RequestKey, _>(first..).map(|(key, _)| key);
        let of_target = following.take_while(|key| is_of_target(key));
        let keys: Vec<_> = of_target.filter(|key| is_meant(key)).map(Arc::clone).collect();
        keys.iter().filter_map(|key| self.remove(key)).collect()
    }

    /// Drops the results of a client's connection, which ends. Returns them.
    #[inline]
    fn forget_connection(&mut self, connection: usize) -> Vec<Entry> {
        self.generation += 1;
        let is_meant = |key: &RequestKey| key.side == Side::Client && key.endpoint == connection;
        let keys: Vec<_> = self.by_key.keys().filter(|key| is_meant(key)).map(Arc::clone).collect();
        keys.iter().filter_map(|key| self.remove(key)).collect()
    }

    #[inline]
    fn remove(&mut self, key: &RequestKey) -> Option<Entry> {
        let entry = self.by_key.remove(key)?;
        self.by_age.remove(&entry.number);
        self.bytes -= entry.bytes;
        Some(entry)
    }
}

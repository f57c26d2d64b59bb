use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use mcp_sansio::catalog::ItemId;
use mcp_sansio::jsonrpc::Json;
use mcp_sansio::peer::MethodName;
use mcp_sansio::protocol::{CallToolResult, Capability, Method};
use mcp_sansio::{Instant, Revision};
use mcp_sansio_sync::Mutex;

use crate::reply::{ResultBody, Written};
use crate::threading::Threading;

use super::caller_key::CallerKey;
use super::layers::layer;
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
/// A change of the underlying data is seen after the time to live, or after [`clear`](Self::clear):
/// clear before you notify subscribers of a changed resource.
#[derive(Clone)]
pub struct ResultCache {
    entries: Arc<Mutex<Entries>>,
    ttl: Duration,
    is_shared: bool,
    bytes_max: usize,
}

impl ResultCache {
    /// Creates a cache that keeps results for `ttl`. Clones share the results.
    #[must_use]
    pub fn new(ttl: Duration) -> Self {
        let entries = Arc::new(Mutex::new(Entries::default()));
        Self { entries, ttl, is_shared: false, bytes_max: 4 * 1024 * 1024 }
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

    /// Drops all results, also those of requests that are running.
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
        let now = request.now();
        let (found, generation) =
            self.entries.lock(|entries| (entries.get(&key, now), entries.generation));
        if let Some(found) = found {
            return Ok(found.to_body());
        }
        let result = next.run().await;
        if let Ok(body) = &result
            && let Some(kept) = Kept::new(body, request.revision())
        {
            let (expires, bytes_max) = (request.now() + self.ttl, self.bytes_max);
            let dropped = self.entries.lock(|entries| {
                (entries.generation == generation)
                    .then(|| entries.insert(Arc::new(key), kept, expires, bytes_max))
            });
            drop(dropped);
        }
        result
    }

    /// Returns the key of a request; `None` if it is not cached.
    fn key(&self, request: &ServerRequest) -> Option<RequestKey> {
        if !request.is_read_only() || !request.inputs().is_empty() || request.is_task() {
            return None;
        }
        let MethodName::Known(method) = *request.method() else { return None };
        let member = |name| request.params().get(name).map(|it| it.as_str().into());
        let params = match method {
            Method::CompletionComplete => ["ref", "argument", "context"].map(member),
            _ => {
                let arguments = request.arguments().map(|arguments| arguments.as_str().into());
                [request.target().map(|target| target.into()), arguments, None]
            }
        };
        let scopes = || request.caller().scopes().to_vec();
        Some(RequestKey {
            method,
            // Connections may have different items under the same name.
            endpoint: request.clock().endpoint(),
            item: request.item(),
            revision: request.revision(),
            capabilities: request.capabilities().iter().collect(),
            caller: (!self.is_shared).then(|| (CallerKey::new(request), scopes())),
            params,
        })
    }
}

layer!(ResultCache);

impl fmt::Debug for ResultCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResultCache").field("ttl", &self.ttl).finish_non_exhaustive()
    }
}

/// The inputs that determine a result.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct RequestKey {
    method: Method,
    endpoint: usize,
    item: Option<ItemId>,
    revision: Revision,
    capabilities: Vec<Capability>,
    /// The caller and its scopes, unless results are shared.
    caller: Option<(CallerKey, Vec<String>)>,
    params: [Option<Box<str>>; 3],
}

impl RequestKey {
    fn bytes(&self) -> usize {
        let params: usize = self.params.iter().flatten().map(|text| text.len()).sum();
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
    fn get(&self, key: &RequestKey, now: Instant) -> Option<Arc<Kept>> {
        let entry = self.by_key.get(key)?;
        (now < entry.expires).then(|| Arc::clone(&entry.result))
    }

    /// Adds a result. Returns the results that it replaces.
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

    fn remove(&mut self, key: &RequestKey) -> Option<Entry> {
        let entry = self.by_key.remove(key)?;
        self.by_age.remove(&entry.number);
        self.bytes -= entry.bytes;
        Some(entry)
    }
}

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use crate::http::media::Accepted;
use crate::http::{AllowedHosts, RemoteAddress, Status};
use crate::{Caller, InvalidValue};

use super::shared::SharedOptions;
use super::store::EventStore;

/// The HTTP options of a server: its paths, access control and resource limits.
#[derive(Clone, Debug)]
pub struct HttpServerOptions {
    pub(crate) path: Option<String>,
    pub(crate) event_path: Option<String>,
    pub(crate) message_path: Option<String>,
    pub(crate) hosts: AllowedHosts,
    /// In lower case.
    pub(crate) kept_headers: Vec<String>,
    pub(crate) answers: ResponseMode,
    pub(crate) event_store: EventStore,
    pub(crate) shared: Option<Box<SharedOptions>>,
    pub(crate) limits: ServerLimits,
    pub(crate) timeouts: ServerTimeouts,
}

/// The form of a response when the revision allows several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ResponseMode {
    /// JSON, unless other messages precede the response or it takes long: then an event stream.
    #[default]
    JsonWhenAlone,
    /// In sessions an event stream that is opened immediately, so that a client can resume it after
    /// its connection failed. `tasks/get` is excluded, because its client repeats the request.
    /// Without a session, where streams cannot be resumed, the same as `JsonWhenAlone`.
    Stream,
}

impl ResponseMode {
    /// Returns the mode for a client that may accept only one of the two forms.
    pub(super) const fn for_client(self, accepted: Accepted) -> Self {
        match accepted {
            Accepted { json: false, .. } => Self::Stream,
            Accepted { event_stream: false, .. } => Self::JsonWhenAlone,
            _ => self,
        }
    }
}

impl Default for HttpServerOptions {
    fn default() -> Self {
        Self {
            path: Some("/mcp".into()),
            event_path: None,
            message_path: None,
            hosts: AllowedHosts::default(),
            kept_headers: Vec::new(),
            answers: ResponseMode::default(),
            event_store: EventStore::default(),
            shared: None,
            limits: ServerLimits::default(),
            timeouts: ServerTimeouts::default(),
        }
    }
}

impl HttpServerOptions {
    /// Returns the options of a server at `/mcp` for clients on this computer.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the path of the endpoint, `/mcp` by default.
    #[must_use]
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Accepts any path: the application that mounts the server chooses the paths that reach it.
    #[must_use]
    pub fn any_path(mut self) -> Self {
        self.path = None;
        self
    }

    /// Also serves clients of 2024-11-05, which open an event stream at `events` and post their
    /// messages to `messages`. A path without `/` at its start, such as `messages`, is relative to
    /// that of the stream: clients find it behind a proxy that removes the start of paths, too.
    ///
    /// Deprecated by the specification in 2025-03-26, and removed when its policy for deprecated
    /// features has been final for three months: use Streamable HTTP.
    // MCP 2025-11-25 basic/transports#backwards-compatibility [LSSE-006]
    #[must_use]
    pub fn legacy_sse(mut self, events: impl Into<String>, messages: impl Into<String>) -> Self {
        self.event_path = Some(events.into());
        self.message_path = Some(messages.into());
        self
    }

    /// Returns whether clients of 2024-11-05 post their messages to this path.
    // RFC 3986, section 5.2.3: a relative path replaces the last segment of the other.
    pub(crate) fn takes_messages_at(&self, path: &str) -> bool {
        match (&self.event_path, &self.message_path) {
            (Some(events), Some(messages)) if !messages.starts_with('/') => {
                let (directory, _) = events.rsplit_once('/').unwrap_or_default();
                let below = path.strip_prefix(directory).and_then(|rest| rest.strip_prefix('/'));
                below == Some(messages)
            }
            (_, messages) => messages.as_deref() == Some(path),
        }
    }

    /// Sets the hosts and origins that may access the server; only those of this computer by
    /// default.
    #[must_use]
    pub fn hosts(mut self, hosts: AllowedHosts) -> Self {
        self.hosts = hosts;
        self
    }

    /// Returns the hosts and origins that may access the server.
    #[must_use]
    pub const fn hosts_ref(&self) -> &AllowedHosts {
        &self.hosts
    }

    /// Also accepts requests to `host` and from its pages: see [`AllowedHosts::allow_host`].
    ///
    /// # Errors
    ///
    /// It is not a host.
    pub fn allow_host(mut self, host: &str) -> Result<Self, InvalidValue> {
        self.hosts = self.hosts.allow_host(host)?;
        Ok(self)
    }

    /// Keeps these header fields of each request, for all that decides about it: `call.header(name)`
    /// in handlers, and [`Caller::header`] in token checks, middleware and conditions of the catalog.
    /// Other fields are not kept, and cost nothing.
    ///
    /// Results of such a server may depend on the fields, so its [hints] for caches are private. A
    /// request is refused with 431 if the kept fields exceed their
    /// [limit](ServerLimits::kept_headers_bytes_max), and with 400 if one of them is not UTF-8.
    ///
    /// A proxy that sets a field must remove the field that a client sends under the same name. Do
    /// not keep `Authorization` on a server that requires tokens: they are not for handlers.
    ///
    /// [hints]: crate::peer::ServerOptions::cache
    #[must_use]
    pub fn keep_headers(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.kept_headers.extend(names.into_iter().map(|name| name.into().to_ascii_lowercase()));
        self
    }

    /// Attaches the kept headers of a request to its sender. `values` returns the values of a field.
    pub(super) fn attach_headers<'v, V: IntoIterator<Item = &'v [u8]>>(
        &self,
        caller: Caller,
        values: impl Fn(&str) -> V,
    ) -> Result<Caller, (Status, &'static str)> {
        if self.kept_headers.is_empty() {
            return Ok(caller);
        }
        let mut left = self.limits.kept_headers_bytes_max;
        let mut kept = KeptHeaders::default();
        for name in &self.kept_headers {
            for value in values(name) {
                left = left.checked_sub(name.len() + value.len()).ok_or((
                    Status::REQUEST_HEADER_FIELDS_TOO_LARGE,
                    "the header fields are longer than this server accepts",
                ))?;
                let value = core::str::from_utf8(value.trim_ascii());
                let value =
                    value.map_err(|_| (Status::BAD_REQUEST, "a header field is not UTF-8"))?;
                kept.push(name, value.to_string());
            }
        }
        Ok(if kept.is_empty() { caller } else { caller.with_extension(kept) })
    }

    /// Sets the form of responses.
    #[must_use]
    pub const fn answers(mut self, answers: ResponseMode) -> Self {
        self.answers = answers;
        self
    }

    /// Sets where events are kept for clients that resume a stream; in the machine by default.
    #[must_use]
    pub fn event_store(mut self, store: EventStore) -> Self {
        self.event_store = store;
        self.shared = (store == EventStore::Shared).then(Box::default);
        self
    }

    /// Shares sessions, streams and tasks with the other nodes of a deployment through a store, so
    /// that any node can handle any request: see [`StoreAction`](super::StoreAction). Selects
    /// [`EventStore::Shared`].
    ///
    /// Clients of HTTP+SSE, whose session is a single response, stay with their node. A recording
    /// of such a server stays empty.
    #[must_use]
    pub fn shared(mut self, options: SharedOptions) -> Self {
        self.event_store = EventStore::Shared;
        self.shared = Some(Box::new(options));
        self
    }

    /// Returns how state is shared with other nodes, if it is.
    #[must_use]
    pub fn shared_ref(&self) -> Option<&SharedOptions> {
        self.shared.as_deref()
    }

    /// Returns the resource limits.
    #[must_use]
    pub const fn limits_ref(&self) -> &ServerLimits {
        &self.limits
    }

    /// Sets the resource limits. A share of a caller that is above three quarters of the total is
    /// lowered to that: see [`ServerLimits::shared`].
    #[must_use]
    pub const fn limits(mut self, limits: ServerLimits) -> Self {
        self.limits = limits.with_shares_below_totals();
        self
    }

    /// Sets the timeouts.
    #[must_use]
    pub const fn timeouts(mut self, timeouts: ServerTimeouts) -> Self {
        self.timeouts = timeouts;
        self
    }
}

/// The header fields of a request that its server keeps.
#[derive(Default)]
struct KeptHeaders(Vec<(String, String)>);

impl KeptHeaders {
    const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a line of a field. RFC 9110, section 5.3: several lines are one value.
    fn push(&mut self, name: &str, value: String) {
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => {
                known.push_str(", ");
                known.push_str(&value);
            }
            None => self.0.push((name.into(), value)),
        }
    }
}

impl Caller {
    /// Returns a header field of the request, if the server [keeps] it and the client sent it. The
    /// values of a repeated field are joined by `, `, so that no line hides another.
    ///
    /// [keeps]: HttpServerOptions::keep_headers
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let KeptHeaders(kept) = self.extension()?;
        let found = kept.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// Returns the address that the request came from, if the adapter has attached it: that of the
    /// other end of the connection, or of the client that a trusted proxy names.
    #[must_use]
    pub fn remote_address(&self) -> Option<RemoteAddress> {
        self.extension().copied()
    }
}

/// Limits on the resources that the clients of an HTTP server can use. Each default has its reason.
///
/// The limits of a single connection are in [`peer::Limits`](crate::peer::Limits).
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ServerLimits {
    /// The body of a request, in bytes. 4 MiB: the usual limit of other servers.
    pub body_bytes_max: usize,
    /// The [kept headers](HttpServerOptions::keep_headers) of a request, names and values, in bytes.
    /// 4 KiB, a quarter of the heads that the adapters accept. They are kept for as long as the
    /// request, its task or its stream, and in a session until the next request: their number is
    /// bounded by those of exchanges, tasks and sessions.
    pub kept_headers_bytes_max: usize,
    /// The total number of bytes of all bodies that are being read or handed over. 256 MiB:
    /// sixty-four bodies of the maximum length. Enforced by the adapter, which reads them.
    pub bodies_bytes_max: usize,
    /// The same bytes of one caller. 64 MiB: a quarter of all, as for sessions.
    pub bodies_bytes_per_caller_max: usize,
    /// Concurrent sessions. 10,000: about 17 MB while they are idle. To make room for one more, the
    /// least recently used session of the caller with the most sessions is ended. If none can be
    /// ended, because all of them are busy or belong to unknown callers, the new session is
    /// refused.
    pub sessions_max: usize,
    /// Concurrent sessions of one caller: of a [`Principal`](crate::Principal), or of a [remote
    /// address](crate::http::RemoteAddress) if no principal is known. 2,500: a quarter of all,
    /// because many users may share one address. A caller with neither has no limit of its own,
    /// here and below.
    pub sessions_per_caller_max: usize,
    /// Concurrent exchanges. 65,536: the usual number of file descriptors of a process. An eighth is
    /// reserved for messages that are not requests, such as answers and cancellations, and for the
    /// deletion of sessions: they usually end other exchanges.
    pub exchanges_max: usize,
    /// Concurrent exchanges of one caller. 16,384: a quarter of all, as for sessions.
    pub exchanges_per_caller_max: usize,
    /// Concurrently running handlers. 65,536: one for each exchange. `mcp-sansio-std`, where each
    /// has a thread, runs at most 1,000. Enforced by the layer that runs the handlers, such as
    /// `mcp-sansio-handlers`, which calls
    /// [`admit_handler`](super::Server::admit_handler).
    pub handlers_max: usize,
    /// Concurrently running handlers for the requests of one caller. 512: half of the threads that
    /// `mcp-sansio-std` has for handlers, and far more than a user waits for.
    pub handlers_per_caller_max: usize,
    /// Bytes of one stream that its reader has not taken when another message is added. 16 MiB: a
    /// slower reader loses its connection, and may resume the stream if the revision allows it.
    pub unread_bytes_max: usize,
    /// The same bytes of all streams together. 256 MiB: sixteen readers that are as slow as
    /// `unread_bytes_max` allows. Beyond it, a reader that has more than its part of them to take
    /// loses its connection when another message is added.
    pub unread_bytes_total_max: usize,
    /// The same bytes of all streams of one caller. 64 MiB: a quarter of all, as for sessions.
    pub unread_bytes_per_caller_max: usize,
    /// Bytes of one [`ServerTransmit::Chunk`](super::ServerTransmit), at least one. 64 KiB: the size
    /// of one write.
    pub chunk_bytes_max: usize,
    /// Events of one stream that are kept for a reader that resumes it. 4,000: `replay_bytes_max`
    /// is reached first, because an encoded message takes at least 65 bytes. Each event takes 16
    /// bytes in addition to its text, so a stream of the shortest events takes 64 KiB more.
    pub replay_events_max: usize,
    /// Bytes of one stream that are kept for a reader that resumes it. 256 KiB: about 2,000
    /// progress notifications, and the last event regardless of its length. Each stream of a
    /// session may take as much, and twice as much while it grows; all streams together take at
    /// most `replay_bytes_total_max`.
    pub replay_bytes_max: usize,
    /// Bytes of all streams together. 64 MiB: beyond it, finished streams are dropped, oldest
    /// first, and then events kept for resumption in other streams, except those that no reader has
    /// taken yet.
    pub replay_bytes_total_max: usize,
    /// Bytes of all streams of one caller. 16 MiB: a quarter of all, as for sessions. Beyond it,
    /// the session whose stream has grown loses its finished streams, oldest first, and then the
    /// events of that stream, even the last one if it has no reader.
    pub replay_bytes_per_caller_max: usize,
    /// Finished streams of one session that are kept for a reader that resumes them. 64.
    pub finished_streams_max: usize,
    /// Actions that wait for the external event store. 65,536: a few seconds of a busy server.
    /// Beyond it, and beyond as many again for removals, actions are dropped and counted in
    /// [`Server::dropped_store_actions`](super::Server::dropped_store_actions).
    pub store_actions_max: usize,
    /// Bytes of the messages and other texts in those actions. 64 MiB.
    pub store_bytes_max: usize,
    /// Actions of one caller among those that wait for the store. 16,384: a quarter of all, as for
    /// sessions. Callers have their turns, so one with many actions does not delay those of others,
    /// and all callers together leave an eighth of the total for what keeps a node alive. Callers
    /// of whom neither a principal nor an address is known have one share together.
    pub store_actions_per_caller_max: usize,
    /// Bytes in those actions of one caller. 16 MiB: four messages of the maximum length.
    pub store_bytes_per_caller_max: usize,
    /// Events that one read of the external store returns, at least one. 256.
    pub store_page_events_max: usize,
    /// Bytes of messages that one read of the external store returns, not counting the first event.
    /// 64 KiB: the size of one write.
    pub store_page_bytes_max: usize,
    /// Concurrent readers that get stored events; each may hold a page. 1,024. Further readers are
    /// asked to retry later.
    pub store_replays_max: usize,
    /// The same readers of one caller. 256: a quarter of all, as for sessions.
    pub store_replays_per_caller_max: usize,
}

impl ServerLimits {
    /// The defaults for a computer.
    pub const DEFAULT: Self = Self {
        body_bytes_max: 4 * 1024 * 1024,
        kept_headers_bytes_max: 4 * 1024,
        bodies_bytes_max: 256 * 1024 * 1024,
        bodies_bytes_per_caller_max: 64 * 1024 * 1024,
        sessions_max: 10_000,
        sessions_per_caller_max: 2_500,
        exchanges_max: 65_536,
        exchanges_per_caller_max: 16_384,
        handlers_max: 65_536,
        handlers_per_caller_max: 512,
        unread_bytes_max: 16 * 1024 * 1024,
        unread_bytes_total_max: 256 * 1024 * 1024,
        unread_bytes_per_caller_max: 64 * 1024 * 1024,
        chunk_bytes_max: 64 * 1024,
        replay_events_max: 4000,
        replay_bytes_max: 256 * 1024,
        replay_bytes_total_max: 64 * 1024 * 1024,
        replay_bytes_per_caller_max: 16 * 1024 * 1024,
        finished_streams_max: 64,
        store_actions_max: 65_536,
        store_bytes_max: 64 * 1024 * 1024,
        store_actions_per_caller_max: 16_384,
        store_bytes_per_caller_max: 16 * 1024 * 1024,
        store_page_events_max: 256,
        store_page_bytes_max: 64 * 1024,
        store_replays_max: 1024,
        store_replays_per_caller_max: 256,
    };
}

impl ServerLimits {
    /// For devices: four clients, whose sessions, bodies and event streams take at most 40 KiB in
    /// addition to what [`Limits::SMALL`](crate::peer::Limits::SMALL) allows to each session.
    pub const SMALL: Self = Self {
        // Calls with short arguments, and the metadata of 2026-07-28.
        body_bytes_max: 2 * 1024,
        kept_headers_bytes_max: 256,
        bodies_bytes_max: 8 * 1024,
        bodies_bytes_per_caller_max: 6 * 1024,
        sessions_max: 4,
        sessions_per_caller_max: 3,
        // An event stream and a request for each session, and one for messages without a response.
        exchanges_max: 9,
        exchanges_per_caller_max: 6,
        handlers_max: 8,
        handlers_per_caller_max: 6,
        unread_bytes_max: 4 * 1024,
        unread_bytes_total_max: 12 * 1024,
        unread_bytes_per_caller_max: 8 * 1024,
        // A segment of a small network buffer.
        chunk_bytes_max: 512,
        // The progress of one call, and its result.
        replay_events_max: 32,
        replay_bytes_max: 2 * 1024,
        replay_bytes_total_max: 8 * 1024,
        replay_bytes_per_caller_max: 6 * 1024,
        finished_streams_max: 4,
        // Without a store there are none.
        store_actions_max: 8,
        store_bytes_max: 2 * 1024,
        store_actions_per_caller_max: 6,
        store_bytes_per_caller_max: 1024,
        store_page_events_max: 8,
        store_page_bytes_max: 1024,
        store_replays_max: 2,
        store_replays_per_caller_max: 1,
    };
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The timeouts of an HTTP server.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ServerTimeouts {
    /// Reading the body of a request, counted from its head. 30 s. Enforced by the adapter, which
    /// reads it.
    pub body: Duration,
    /// A session without a request, an open stream or running work. 30 minutes.
    pub session_idle: Duration,
    /// A session whose client never confirmed the initialization. 1 minute.
    pub session_unconfirmed: Duration,
    /// How long a request may be pending before its response is opened as a stream, so that
    /// intermediaries see activity. 5 s; `None`: not before there is something to send.
    pub open_stream: Option<Duration>,
    /// The interval after which an idle stream gets a comment. 15 s; `None`: never.
    // MCP 2026-07-28 basic/transports/streamable-http#receiving-messages [SSE-014]
    pub keep_alive: Option<Duration>,
    /// How long a finished stream is kept for a reader that resumes it. 5 minutes.
    pub replay: Duration,
    /// How long a connection of a stream may last before the server closes it and the client polls,
    /// at 2025-11-25. `None`, the default: no limit.
    // MCP 2025-11-25 basic/transports#sending-messages-to-the-server [SSE-006]
    pub poll_after: Option<Duration>,
    /// The reconnection delay that a client is told when the server closes a connection on its own.
    /// 1 s.
    pub retry: Duration,
    /// How long a read of the external event store may take. 10 s; after that, its client is told
    /// that the events are gone.
    pub store_read: Duration,
}

impl Default for ServerTimeouts {
    fn default() -> Self {
        Self {
            body: Duration::from_secs(30),
            session_idle: Duration::from_secs(30 * 60),
            session_unconfirmed: Duration::from_secs(60),
            open_stream: Some(Duration::from_secs(5)),
            keep_alive: Some(Duration::from_secs(15)),
            replay: Duration::from_secs(5 * 60),
            poll_after: None,
            retry: Duration::from_secs(1),
            store_read: Duration::from_secs(10),
        }
    }
}

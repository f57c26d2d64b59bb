use alloc::string::String;
use core::time::Duration;

use crate::http::AllowedHosts;

use super::store::EventStore;

/// How a server appears on HTTP: where it is found, who may ask, and what it puts up with.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    pub(crate) path: Option<String>,
    pub(crate) event_path: Option<String>,
    pub(crate) message_path: Option<String>,
    pub(crate) hosts: AllowedHosts,
    pub(crate) answers: ResponseMode,
    pub(crate) event_store: EventStore,
    pub(crate) limits: ServerLimits,
    pub(crate) timeouts: ServerTimeouts,
}

/// In which form a request is answered when the revision leaves it open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "recording", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "recording", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum ResponseMode {
    /// As JSON, unless something precedes the answer or it takes long: then as a stream of events.
    #[default]
    JsonWhenAlone,
    /// In sessions as a stream of events, opened at once, so that a client can come back for its
    /// answer after its connection broke; but `tasks/get`, which its client asks again. Without a session, where there is no coming back, as
    /// above.
    Stream,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            path: Some("/mcp".into()),
            event_path: None,
            message_path: None,
            hosts: AllowedHosts::default(),
            answers: ResponseMode::default(),
            event_store: EventStore::default(),
            limits: ServerLimits::default(),
            timeouts: ServerTimeouts::default(),
        }
    }
}

impl ServerOptions {
    /// A server at `/mcp` for clients on this computer.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The path of the endpoint, `/mcp` by default.
    #[must_use]
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Leaves it to whoever mounts the server which paths reach it.
    #[must_use]
    pub fn any_path(mut self) -> Self {
        self.path = None;
        self
    }

    /// Serves clients of 2024-11-05 as well, which open a stream of events at `events` and post
    /// their messages to `messages`.
    // MCP 2025-11-25 basic/transports#backwards-compatibility [LSSE-006]
    #[must_use]
    pub fn legacy_sse(mut self, events: impl Into<String>, messages: impl Into<String>) -> Self {
        self.event_path = Some(events.into());
        self.message_path = Some(messages.into());
        self
    }

    /// The hosts and origins that may ask. By default those of this computer.
    #[must_use]
    pub fn hosts(mut self, hosts: AllowedHosts) -> Self {
        self.hosts = hosts;
        self
    }

    /// The form of answers.
    #[must_use]
    pub const fn answers(mut self, answers: ResponseMode) -> Self {
        self.answers = answers;
        self
    }

    /// Where events are kept for clients that come back for them. By default in the machine.
    #[must_use]
    pub const fn event_store(mut self, store: EventStore) -> Self {
        self.event_store = store;
        self
    }

    /// The bounds on what clients can cost.
    #[must_use]
    pub const fn limits_ref(&self) -> &ServerLimits {
        &self.limits
    }

    /// The bounds on what clients can cost.
    #[must_use]
    pub const fn limits(mut self, limits: ServerLimits) -> Self {
        self.limits = limits;
        self
    }

    /// How long things may take.
    #[must_use]
    pub const fn timeouts(mut self, timeouts: ServerTimeouts) -> Self {
        self.timeouts = timeouts;
        self
    }
}

/// Every bound on what the clients of an HTTP server can make it hold. Each default has its reason.
///
/// Those of a single connection are in [`peer::Limits`](crate::peer::Limits).
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "recording", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "recording", serde(default))]
#[non_exhaustive]
pub struct ServerLimits {
    /// The body of a request, in bytes. 4 MiB: what other servers take.
    pub body_bytes_max: usize,
    /// Bytes of all bodies that are being read or handed over, together. 256 MiB: sixty-four of the
    /// longest. For the adapter, which reads them.
    pub bodies_bytes_max: usize,
    /// Sessions at once. 10,000: some 17 MB while they stand idle. For one more, the caller that has
    /// the most gives up the one that it has not used for longest; where none can go, because all of
    /// them are at work or belong to callers that are not known, it is refused.
    pub sessions_max: usize,
    /// Sessions at once of one caller: of a [`Principal`](crate::Principal), or of a
    /// [remote address](crate::http::RemoteAddress) where no principal is known. 2,500: a quarter of
    /// all, as many users may stand behind one address. A caller that is known by neither has no
    /// bound of its own, here and below.
    pub sessions_per_caller_max: usize,
    /// Exchanges at once. 65,536: as many as a process has descriptors, commonly.
    pub exchanges_max: usize,
    /// Exchanges at once of one caller. 16,384: a quarter of all, as for sessions.
    pub exchanges_per_caller_max: usize,
    /// Handlers at once that go on and whose requests are of one caller. 512: half of the threads
    /// that `mcp-sansio-std` has for them, and far more than a user waits for. For
    /// a layer above that runs them, such as `mcp-sansio-handlers`: it asks
    /// [`has_handler_capacity`](super::Server::has_handler_capacity).
    pub handlers_per_caller_max: usize,
    /// Bytes of one stream that its reader has not taken when one more message comes. 16 MiB: a
    /// reader further behind loses its connection, and may come back where the revision lets it.
    pub unread_bytes_max: usize,
    /// Events of one stream that are kept for a reader that comes back. 4,000: `replay_bytes_max` is
    /// reached first, as a message takes 65 bytes or more as an event. Each costs 16 bytes beside its
    /// text, so a stream of the shortest events costs 64 KiB more.
    pub replay_events_max: usize,
    /// Bytes of one stream that are kept for a reader that comes back. 256 KiB, some 2,000 progress
    /// notifications, and the last event whatever its length. Each stream of a session may cost as
    /// much, and twice as much while it grows; all streams together `replay_bytes_total_max`.
    pub replay_bytes_max: usize,
    /// Bytes of all streams together. 64 MiB: beyond it finished streams go, the oldest first, and
    /// then what others keep for readers that come back, but for what no reader has taken yet.
    pub replay_bytes_total_max: usize,
    /// Finished streams of one session that are kept for a reader that comes back. 64.
    pub finished_streams_max: usize,
    /// Actions that wait for the external store of events. 65,536: seconds of a busy server. Beyond
    /// it, and beyond as many again for what is to be forgotten, actions are dropped and counted in
    /// [`Server::dropped_store_actions`](super::Server::dropped_store_actions).
    pub store_actions_max: usize,
    /// Bytes of the messages among them. 64 MiB.
    pub store_bytes_max: usize,
    /// Events that one read of the external store gets, at least one. 256.
    pub store_page_events_max: usize,
    /// Bytes of messages that one read of the external store gets, but for its first. 64 KiB: one
    /// write's worth.
    pub store_page_bytes_max: usize,
    /// Readers at once that get stored events; each may hold a page. 1,024. One more is asked to
    /// come again.
    pub store_replays_max: usize,
}

impl ServerLimits {
    /// The defaults for a computer.
    pub const DEFAULT: Self = Self {
        body_bytes_max: 4 * 1024 * 1024,
        bodies_bytes_max: 256 * 1024 * 1024,
        sessions_max: 10_000,
        sessions_per_caller_max: 2_500,
        exchanges_max: 65_536,
        exchanges_per_caller_max: 16_384,
        handlers_per_caller_max: 512,
        unread_bytes_max: 16 * 1024 * 1024,
        replay_events_max: 4000,
        replay_bytes_max: 256 * 1024,
        replay_bytes_total_max: 64 * 1024 * 1024,
        finished_streams_max: 64,
        store_actions_max: 65_536,
        store_bytes_max: 64 * 1024 * 1024,
        store_page_events_max: 256,
        store_page_bytes_max: 64 * 1024,
        store_replays_max: 1024,
    };
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// How long things may take on HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "recording", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "recording", serde(default))]
#[non_exhaustive]
pub struct ServerTimeouts {
    /// The body of a request, from its head on. 30 s. For the adapter, which reads it.
    pub body: Duration,
    /// A session without a request, an open stream or work under way. 30 minutes.
    pub session_idle: Duration,
    /// A session whose client never confirmed that it is initialized. 1 minute.
    pub session_unconfirmed: Duration,
    /// How long a request may go without an answer before its response is opened as a stream, so
    /// that those between see life. 5 s; `None`: not before there is something to send.
    pub open_stream: Option<Duration>,
    /// The pause after which a silent stream gets a comment. 15 s; `None`: never.
    // MCP 2026-07-28 basic/transports/streamable-http#receiving-messages [SSE-014]
    pub keep_alive: Option<Duration>,
    /// How long a finished stream is kept for a reader that comes back. 5 minutes.
    pub replay: Duration,
    /// How long a connection of a stream may last before the server closes it and the client polls,
    /// at 2025-11-25. `None`, the default: as long as it takes.
    // MCP 2025-11-25 basic/transports#sending-messages-to-the-server [SSE-006]
    pub poll_after: Option<Duration>,
    /// What a client is told to wait before it comes back, where the server closes a connection by
    /// itself. 1 s.
    pub retry: Duration,
    /// How long a read of the external store of events may take. 10 s; after that its client is told
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

//! The server side of HTTP.

mod answers;
mod assignment;
mod callers;
mod consistency;
mod displacement;
mod exchange;
mod expiry;
mod log;
mod operations;
mod options;
mod posts;
mod reader;
mod replay;
mod requests;
mod retention;
mod session_ids;
mod sessions;
mod shared;
mod shared_limits;
mod store;
mod store_queue;
mod stream;
mod streams;
mod timing;
mod transmit;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;

use hashbrown::HashMap;
use mcp_sansio_collections::KeyedHash;
use mcp_sansio_collections::{Deadlines, Index, Key, Slab};
use mcp_sansio_sync::Arc;

use crate::catalog::{Announcement, Catalog, CatalogError};
use crate::http::header_params::HeaderParams;
use crate::peer::queue::Tag;
use crate::peer::server::ServerConfig;
use crate::peer::{self, CloseReason, Event, ServerCommand, Subject};
use crate::protocol::CacheScope;
use crate::{Instant, PanicGuard, Revisions, SessionKey};

use super::{ExchangeId, RequestHead, Response};

pub use callers::CallerHandle;
pub use exchange::ServerTransmit;
pub use operations::RefusedHead;
pub use options::{HttpServerOptions, ResponseMode, ServerLimits, ServerTimeouts};
pub use reader::{Admission, ParsedBody, ReadRequest, RequestReader};
pub use shared::{
    ActionId, Lease, MailboxShare, NodeId, ProofId, SessionRecord, SharedOptions, StoreError,
    StoreReply, TaskCommand, TaskKey, TaskMessage, TaskPage, TaskRecord, TaskStoreEvent,
};
pub use shared_limits::{Exhausted, SharedLimit, SharedResource};
pub use store::{EventPosition, EventStore, NotStored, ReadId, StoreAction, StoredEvent};

use callers::Callers;
use exchange::Exchange;
use retention::Finished;
use session_ids::SessionIds;
use sessions::Session;
use shared::Shared;
use store::Store;
use streams::Streams;

/// An HTTP server with all its sessions and exchanges, as a state machine.
///
/// It serves every revision that its options allow at one endpoint: legacy clients in sessions,
/// modern clients request by request, and, if enabled, clients of the older HTTP+SSE. For the
/// application it is the same as [`peer::Server`], with the same events and methods.
///
/// # Driving it
///
/// * When a request arrives: [`admit`](Self::admit) its head, read its body up to the returned
///   limit, then call [`handle_request`](Self::handle_request).
/// * When a client disconnects before its response is complete, call
///   [`handle_disconnect`](Self::handle_disconnect) immediately.
/// * When the deadline is reached: [`handle_timeout`](Self::handle_timeout). Extra calls have no
///   effect.
/// * After any of these, and after any command of the application: call
///   [`poll_event`](Self::poll_event) until it returns `None`; for each exchange that
///   [`poll_ready`](Self::poll_ready) returns, call [`poll_transmit`](Self::poll_transmit) as long
///   as its client accepts data; call [`poll_timeout`](Self::poll_timeout) for the next deadline.
/// * With an external event store: also call [`poll_store`](Self::poll_store) until it returns
///   `None`, and [`handle_stored`](Self::handle_stored) for each read.
/// * If a client does not accept data, do not poll its exchange: other exchanges are not affected.
/// * `now` is the current time, not the deadline that fired.
///
/// The machine does not block, does not panic on input from clients, and does work in proportion to
/// its input.
///
/// ```
/// use mcp_sansio::http::{HttpServerOptions, RequestHead, Server, ServerTransmit};
/// use mcp_sansio::peer::ServerOptions;
/// use mcp_sansio::protocol::Implementation;
/// use mcp_sansio::{Caller, Instant};
///
/// let now = Instant::ZERO;
/// let options = ServerOptions::new(Implementation::new("clock", "1.0.0"));
/// // The path is `/mcp`. The 32 random bytes are for the ids of sessions.
/// let mut server = Server::new(options, HttpServerOptions::new(), [7; 32], 42)?;
///
/// let mut head = RequestHead::new("POST", "/mcp");
/// head.field("host", b"localhost");
/// head.field("content-type", b"application/json");
/// head.field("accept", b"application/json, text/event-stream");
/// let admission = server.admit(&head).expect("a valid head");
/// let body = br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"demo","version":"1"}}}"#;
/// assert!(body.len() <= admission.body_bytes_max);
/// let (exchange, event) = server.handle_request(&head, body, &Caller::from(None), now);
/// assert!(event.is_none(), "the machine answers on its own");
/// assert_eq!(server.poll_ready(), Some(exchange));
/// let Some(ServerTransmit::Respond(response)) = server.poll_transmit(exchange, now) else { panic!() };
/// assert!(response.head.status.is_success());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Server {
    options: Arc<HttpServerOptions>,
    reader: RequestReader,
    server_config: ServerConfig,
    revisions: Revisions,
    seed: u64,
    session_ids: SessionIds,
    connections: Slab<Connection>,
    /// The keys of the connections that are sessions, by the keys that stand for their ids.
    sessions: Index,
    /// Sessions that have ended, and that items of the catalog are for.
    ended_sessions: Vec<SessionKey>,
    /// The sessions, exchanges and handlers of each caller.
    callers: Callers,
    exchanges: Slab<Exchange>,
    /// The number of those that had their whole response from the start.
    exchanges_over: usize,
    /// Machines of modern requests that have ended, for reuse.
    #[expect(clippy::vec_box, reason = "boxes are moved between connections and the pool")]
    machine_pool: Vec<Box<peer::Server>>,
    ready: VecDeque<ExchangeId>,
    events: VecDeque<Event<'static>>,
    connection_deadlines: Deadlines<Instant>,
    exchange_deadlines: Deadlines<Instant>,
    /// Finished streams that are kept, in the order of their expiry.
    finished: VecDeque<Finished>,
    /// The number of entries in `finished` whose stream still exists.
    finished_count: usize,
    /// The streams that end with a response, by the number of their connection and the request.
    answered: HashMap<(u64, Tag), u32, KeyedHash>,
    /// The number of bytes in the logs of all streams.
    logged_bytes: usize,
    store: Store,
    /// The state that is only needed if nodes share sessions and streams.
    shared: Option<Box<Shared>>,
    /// The number of readers that get stored events.
    replays: usize,
    /// The number of running handlers.
    handlers: usize,
    closing: bool,
    /// The description of the request that is being handled, for the observer.
    arriving: peer::OperationTransport,
}

/// The protocol state of a legacy session or of one modern request, with its streams.
#[derive(Debug)]
struct Connection {
    machine: Box<peer::Server>,
    /// The caller that it counts against: the caller that opened the session.
    caller: Option<Key>,
    session: Option<Session>,
    streams: Streams,
}

/// The maximum number of machines kept for modern requests. Enough for those that overlap in
/// practice; each takes about a kilobyte.
const POOLED_MACHINES_MAX: usize = 64;

impl Server {
    /// Creates a server without clients.
    ///
    /// `secret` is entropy from which session ids are derived, and the handler layer derives the
    /// key of request states: 32 bytes from a secure source, never used for anything else. `seed`
    /// keys the hash tables for names chosen by clients: draw it at random, so that a client cannot
    /// cause collisions. It does not affect any output.
    ///
    /// # Errors
    ///
    /// [`CatalogError::InvalidSchema`]: the annotations of a tool in the catalog are invalid, so
    /// clients would have to refuse the tool.
    pub fn new(
        peer: peer::ServerOptions,
        options: HttpServerOptions,
        secret: [u8; 32],
        seed: u64,
    ) -> Result<Self, CatalogError> {
        let mut peer = peer.without_keep_alive();
        // Results may depend on these fields, which caches that clients share do not know.
        if !options.kept_headers.is_empty() {
            Arc::make_mut(&mut peer.role.identity).cache.scope = CacheScope::Private;
        }
        let server_config = ServerConfig::new(peer);
        let (header_params, unservable) = header_params_by_tool(&server_config.catalog);
        if let Some(unservable) = unservable {
            return Err(unservable);
        }
        let revisions = server_config.revisions();
        let store = Store::new(options.event_store, options.shared_ref(), &options.limits);
        let mut session_ids = SessionIds::new(secret);
        let shared =
            options.shared.as_deref().map(|it| Box::new(Shared::new(it, &mut session_ids)));
        let options = Arc::new(options);
        Ok(Self {
            reader: RequestReader::new(&options, &server_config, header_params),
            options,
            server_config,
            revisions,
            seed,
            session_ids,
            connections: Slab::new(),
            sessions: Index::default(),
            ended_sessions: Vec::new(),
            callers: Callers::new(seed),
            exchanges: Slab::new(),
            exchanges_over: 0,
            machine_pool: Vec::new(),
            ready: VecDeque::new(),
            events: VecDeque::new(),
            connection_deadlines: Deadlines::default(),
            exchange_deadlines: Deadlines::default(),
            finished: VecDeque::new(),
            finished_count: 0,
            answered: HashMap::with_hasher(KeyedHash::with_seed(seed)),
            logged_bytes: 0,
            store,
            shared,
            replays: 0,
            handlers: 0,
            closing: false,
            arriving: peer::OperationTransport::default(),
        })
    }

    /// Runs the validator of the catalog in `guard` for all later requests: see
    /// [`peer::Server::catch_panics`](crate::peer::Server::catch_panics). Call it before the first
    /// request.
    pub fn catch_panics(&mut self, guard: PanicGuard) {
        self.server_config.guard = guard;
        self.reader.set_served(&self.server_config);
    }

    /// Returns the reader of the server's requests.
    #[must_use]
    pub fn reader(&self) -> RequestReader {
        self.reader.clone()
    }

    /// Checks the head of a request: see [`RequestReader::admit`].
    ///
    /// # Errors
    ///
    /// The request is refused: send this response, and do not read the body.
    pub fn admit(&self, head: &RequestHead<'_>) -> Result<Admission, Response> {
        self.reader.admit(head)
    }

    /// Returns the HTTP options of the server.
    #[must_use]
    pub fn options(&self) -> &HttpServerOptions {
        &self.options
    }

    /// Returns the catalog of the server.
    #[must_use]
    pub fn catalog(&self) -> &Catalog {
        &self.server_config.catalog
    }

    /// Returns the number of open legacy sessions.
    #[must_use]
    pub fn session_count(&self) -> usize {
        self.sessions.len()
    }

    /// Returns the number of exchanges whose response is not complete.
    #[must_use]
    pub fn exchange_count(&self) -> usize {
        self.exchanges.len()
    }

    /// Returns the number of callers that hold a session, an exchange or a handler. Callers without
    /// a known principal or address are not counted.
    #[must_use]
    pub fn caller_count(&self) -> usize {
        self.callers.len()
    }

    fn end(&mut self, now: Instant) {
        self.closing = true;
        self.reader.set_closing();
        let keys: Vec<Key> = self.connections.iter().map(|(key, _)| key).collect();
        for key in keys {
            let busy = self.connections.get(key).is_some_and(|connection| {
                connection.is_event_stream() && connection.machine.requests_in_flight() > 0
            });
            // The responses to a client of HTTP+SSE arrive on its open event stream.
            if !busy {
                self.close_open_streams(key);
            }
            self.pump(key, now);
        }
    }

    /// Returns whether [`close`](peer::ServerMachine::close) was called.
    #[must_use]
    pub const fn is_closing(&self) -> bool {
        self.closing
    }

    /// Returns whether the server is closing and all responses are complete.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.closing && self.exchanges.is_empty()
    }

    /// Returns the next event that the machine generated without an input.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<Event<'static>> {
        self.events.pop_front()
    }

    /// Changes the catalog of the server in every session. Subscribed clients are notified of the
    /// changed lists.
    ///
    /// A tool whose annotations HTTP clients must refuse is served without the checks of these
    /// annotations.
    pub fn edit_catalog<T>(&mut self, edit: impl FnOnce(&mut Catalog) -> T, now: Instant) -> T {
        let (edited, announcement) = self.server_config.edit_catalog(edit);
        self.spread_catalog(&announcement, now);
        edited
    }

    /// Gives the catalog to all connections, and notifies their clients.
    fn spread_catalog(&mut self, announcement: &Announcement, now: Instant) {
        self.reader.set_served(&self.server_config);
        if self.shared.is_some() {
            self.share_command(&ServerCommand::Announce(announcement.to_everyone));
        }
        self.note_late_items(announcement);
        let server_config = self.server_config.clone();
        self.for_each_connection(now, |connection| {
            connection.machine.adopt(&server_config);
            let changes = announcement.seen_by(connection.machine.caller());
            let _told = connection.machine.apply(ServerCommand::Announce(changes), now);
        });
    }

    // ------------------------------------------------------------------ shared by the modules

    /// Processes the output of a connection's machine: messages, events and its next deadline.
    fn pump(&mut self, key: Key, now: Instant) {
        self.assign_messages(key, now);
        let closed = self.collect_events(key);
        let Some(connection) = self.connections.get(key) else { return };
        if connection.session.is_none() {
            // A modern request has no idle timeout: it lasts until its response or its
            // cancellation.
            return;
        }
        if closed {
            return match self.shared {
                Some(_) => self.end_shared_session(key, now),
                None => self.end_session(key, now),
            };
        }
        if self.closing
            && connection.is_event_stream()
            && connection.machine.requests_in_flight() == 0
        {
            self.close_open_streams(key);
        }
        self.arm_connection(key, now);
    }

    /// Takes the events of a connection's machine. Returns whether the machine has closed.
    fn collect_events(&mut self, key: Key) -> bool {
        let Some(connection) = self.connections.get_mut(key) else { return false };
        while let Some(event) = connection.machine.poll_event() {
            // Connections are internal to this machine, so their end is not reported.
            let mut event = match event {
                Event::Closed(CloseReason::Violation(violation)) => Event::Violation(violation),
                Event::Closed(_) => continue,
                event => event,
            };
            stamp(&mut event, key);
            self.events.push_back(event);
        }
        connection.machine.shrink();
        connection.machine.is_closed()
    }
}

/// Sets the connection in the handles of an event.
fn stamp(event: &mut Event<'_>, connection: Key) {
    match event {
        Event::Request(request) => request.handle.connection = connection,
        Event::Progress(progress) => progress.call.connection = connection,
        Event::Ended(ended) => ended.call.connection = connection,
        Event::Cancelled(cancelled) => {
            if let Subject::Request(handle) = &mut cancelled.subject {
                handle.connection = connection;
            }
        }
        _ => {}
    }
}

/// Returns the mirrored parameters of each tool that has some, and the first tool that cannot be
/// served.
// MCP 2026-07-28 basic/transports/streamable-http#schema-extension [HDR-010] [HDR-011] [HDR-012]
pub(crate) fn header_params_by_tool(
    catalog: &Catalog,
) -> (BTreeMap<String, HeaderParams>, Option<CatalogError>) {
    let (mut found, mut unservable) = (BTreeMap::new(), None);
    for tool in catalog.tools() {
        match HeaderParams::from_schema(&tool.input_schema.as_raw()) {
            Ok(header_params) if header_params.is_empty() => {}
            Ok(header_params) => {
                found.insert(tool.name.clone(), header_params);
            }
            Err(fault) => {
                unservable.get_or_insert_with(|| CatalogError::InvalidSchema {
                    tool: tool.name.clone(),
                    member: "inputSchema",
                    reason: alloc::format!("cannot be offered over HTTP: {fault}"),
                });
            }
        }
    }
    (found, unservable)
}

//! The server's side of HTTP.

mod admission;
mod answers;
mod body;
mod callers;
mod consistency;
mod displacement;
mod exchange;
mod expiry;
mod headers;
mod log;
mod options;
mod placing;
mod posts;
mod replay;
mod requests;
mod retention;
mod session;
mod session_ids;
mod sessions;
mod store;
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

use crate::PanicGuard;
use crate::catalog::Catalog;
use crate::http::header_params::HeaderParams;
use crate::peer::queue::Tag;
use crate::peer::server::{Declared, ServerConfig};
use crate::peer::{self, CloseReason, Event, Subject};
use crate::{Instant, Revisions};

use super::{ExchangeId, Principal};

pub use admission::Admission;
pub use body::ParsedBody;
pub use callers::CallerHandle;
pub use exchange::Transmit;
pub use options::{ResponseMode, ServerLimits, ServerOptions, ServerTimeouts};
pub use store::{EventPosition, EventStore, NotStored, ReadId, StoreAction, StoredEvent};

use callers::Callers;
use exchange::Exchange;
use retention::Finished;
use session::Session;
use session_ids::SessionIds;
use store::Store;
use streams::Streams;

/// A server on HTTP: all its sessions and exchanges, as a state machine.
///
/// It serves every revision that its options allow at one endpoint: legacy clients in sessions,
/// modern ones request by request, and, where it is told to, clients of the older HTTP+SSE. To the
/// application it is the same as [`peer::Server`]: the same events, the same verbs.
///
/// # Driving it
///
/// * A request comes in: [`admit`](Self::admit) its head, read its body up to the bound that this
///   returns, then [`handle_request`](Self::handle_request).
/// * A client goes away before its response is complete:
///   [`handle_disconnect`](Self::handle_disconnect), at once.
/// * The deadline has come: [`handle_timeout`](Self::handle_timeout). Spurious calls do nothing.
/// * After any of these, and after any verb of the application: [`poll_event`](Self::poll_event)
///   until dry; for each exchange that [`poll_ready`](Self::poll_ready) names,
///   [`poll_transmit`](Self::poll_transmit) as long as its client takes what comes;
///   [`poll_timeout`](Self::poll_timeout) to know when to come back.
/// * With an external store of events: [`poll_store`](Self::poll_store) until dry as well, and
///   [`handle_stored`](Self::handle_stored) for each read.
/// * An exchange whose client takes nothing is simply not polled: it holds up no other.
/// * `now` is the time it is, not the deadline that fired.
///
/// Nothing here blocks, panics because of a client, or does work out of proportion to its input.
#[derive(Debug)]
pub struct Server {
    options: ServerOptions,
    server_config: ServerConfig,
    revisions: Revisions,
    /// What a modern client declared last.
    declared: Option<Declared>,
    /// The parameters of tools that requests repeat in their header fields.
    header_params: BTreeMap<String, HeaderParams>,
    seed: u64,
    session_ids: SessionIds,
    connections: Slab<Connection>,
    /// The keys of the connections that are sessions, by the hashes of their ids.
    sessions: Index,
    hasher: KeyedHash,
    /// What each caller holds of sessions, exchanges and handlers.
    callers: Callers,
    exchanges: Slab<Exchange>,
    /// Connections of modern requests that are over: the next ones take them.
    #[expect(clippy::vec_box, reason = "they come from connections and go to them as they are")]
    machine_pool: Vec<Box<peer::Server>>,
    ready: VecDeque<ExchangeId>,
    events: VecDeque<Event<'static>>,
    connection_deadlines: Deadlines<Instant>,
    exchange_deadlines: Deadlines<Instant>,
    /// Finished streams that are kept, in the order in which they are given up.
    finished: VecDeque<Finished>,
    /// How many of them still are.
    finished_count: usize,
    /// The streams that end with an answer, by the number of their connection and the request.
    answered: HashMap<(u64, Tag), u32, KeyedHash>,
    /// Bytes in the logs of all streams.
    logged_bytes: usize,
    store: Store,
    /// Readers that get stored events.
    replays: usize,
    closing: bool,
}

/// The protocol state of a legacy session, or of one modern request, with its streams.
#[derive(Debug)]
struct Connection {
    machine: Box<peer::Server>,
    principal: Option<Principal>,
    /// Whose share it takes from: of a session, the caller that opened it.
    caller: Option<Key>,
    session: Option<Session>,
    streams: Streams,
}

/// Connections that wait for the next modern request. Enough for those that overlap in practice;
/// each costs about a kilobyte.
const POOLED_MACHINES_MAX: usize = 64;

/// A tool cannot be offered over HTTP as it is. The caller's fault.
// MCP 2026-07-28 basic/transports/streamable-http#schema-extension [HDR-010] [HDR-011] [HDR-012]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the tool `{tool}` cannot be offered over HTTP: {reason}")]
pub struct UnservableTool {
    /// The tool's name.
    pub tool: String,
    /// What is wrong with its input schema.
    pub reason: String,
}

impl Server {
    /// A server without clients.
    ///
    /// `secret` is entropy from which session ids are drawn, and by the handlers' layer the key of
    /// states: 32 bytes from a secure source, never used for anything else. `seed` keys the hash tables of what clients name: draw it at random,
    /// so that a client cannot aim at collisions. It has no influence on any output.
    ///
    /// # Errors
    ///
    /// A tool of the catalog has annotations that clients would have to refuse.
    pub fn new(
        peer: peer::ServerOptions,
        options: ServerOptions,
        secret: [u8; 32],
        seed: u64,
    ) -> Result<Self, UnservableTool> {
        let server_config = ServerConfig::new(peer.without_keep_alive());
        let (header_params, unservable) = header_params_by_tool(&server_config.catalog);
        if let Some(unservable) = unservable {
            return Err(unservable);
        }
        let revisions = server_config.revisions();
        let store = Store::new(options.event_store, &options.limits);
        Ok(Self {
            options,
            server_config,
            revisions,
            declared: None,
            header_params,
            seed,
            session_ids: SessionIds::new(secret),
            connections: Slab::new(),
            sessions: Index::default(),
            hasher: KeyedHash::with_seed(seed),
            callers: Callers::new(seed),
            exchanges: Slab::new(),
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
            replays: 0,
            closing: false,
        })
    }

    /// Runs the validator of the catalog in `guard` for all requests from here on: see
    /// [`peer::Server::catch_panics`](crate::peer::Server::catch_panics). Called before the first.
    pub const fn catch_panics(&mut self, guard: PanicGuard) {
        self.server_config.guard = guard;
    }

    /// How the server appears on HTTP.
    #[must_use]
    pub const fn options(&self) -> &ServerOptions {
        &self.options
    }

    /// What the server offers.
    #[must_use]
    pub fn catalog(&self) -> &Catalog {
        &self.server_config.catalog
    }

    /// Legacy sessions that are open.
    #[must_use]
    pub fn session_count(&self) -> usize {
        self.sessions.len()
    }

    /// Exchanges whose response is not complete.
    #[must_use]
    pub fn exchange_count(&self) -> usize {
        self.exchanges.len()
    }

    /// Callers that hold something: a session, an exchange or a handler. Those that are known by no
    /// principal and no address are not among them.
    #[must_use]
    pub fn caller_count(&self) -> usize {
        self.callers.len()
    }

    fn end(&mut self, now: Instant) {
        self.closing = true;
        let keys: Vec<Key> = self.connections.iter().map(|(key, _)| key).collect();
        for key in keys {
            let busy = self.connections.get(key).is_some_and(|connection| {
                connection.is_event_stream() && connection.machine.requests_in_flight() > 0
            });
            // What answers a client of HTTP+SSE comes on the stream that stands open.
            if !busy {
                self.close_open_streams(key);
            }
            self.pump(key, now);
        }
    }

    /// Whether [`close`](Self::close) was called.
    #[must_use]
    pub const fn is_closing(&self) -> bool {
        self.closing
    }

    /// Whether the server is closing and no response is under way.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.closing && self.exchanges.is_empty()
    }

    /// The next event that the machine made by itself.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<Event<'static>> {
        self.events.pop_front()
    }

    /// The events that wait for [`poll_event`](Self::poll_event), the oldest first: for a layer above
    /// that [attaches](crate::peer::Attachment) something to the requests among them.
    pub fn pending_events(&mut self) -> impl Iterator<Item = &mut Event<'static>> {
        self.events.iter_mut()
    }

    // ------------------------------------------------------------------ shared by the parts

    /// Deals with whatever a connection's machine has made: messages, events, its next deadline.
    fn pump(&mut self, key: Key, now: Instant) {
        self.place(key, now);
        let closed = self.collect_events(key);
        let Some(connection) = self.connections.get(key) else { return };
        if connection.session.is_none() {
            // A modern request has no time of its own: it goes on until its answer or its end.
            return;
        }
        if closed {
            return self.end_session(key, now);
        }
        if self.closing
            && connection.is_event_stream()
            && connection.machine.requests_in_flight() == 0
        {
            self.close_open_streams(key);
        }
        self.arm_connection(key, now);
    }

    /// Takes over the events of a connection's machine; whether it has closed.
    fn collect_events(&mut self, key: Key) -> bool {
        let Some(connection) = self.connections.get_mut(key) else { return false };
        while let Some(event) = connection.machine.poll_event() {
            // What is a connection here is none to the application: its end is no news.
            let event = match event {
                Event::Closed(CloseReason::Violation(violation)) => Event::Violation(violation),
                Event::Closed(_) => continue,
                event => event,
            };
            self.events.push_back(stamped(event, key));
        }
        connection.machine.shrink();
        connection.machine.is_closed()
    }
}

/// The event with the connection that it belongs to in its handles.
fn stamped(mut event: Event<'_>, connection: Key) -> Event<'_> {
    match &mut event {
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
    event
}

/// The mirrored parameters of each tool that has some, and the first tool that cannot be served.
pub(crate) fn header_params_by_tool(
    catalog: &Catalog,
) -> (BTreeMap<String, HeaderParams>, Option<UnservableTool>) {
    let (mut found, mut unservable) = (BTreeMap::new(), None);
    for tool in catalog.tools() {
        match HeaderParams::from_schema(&tool.input_schema.as_raw()) {
            Ok(header_params) if header_params.is_empty() => {}
            Ok(header_params) => {
                found.insert(tool.name.clone(), header_params);
            }
            Err(fault) => {
                let tool = tool.name.clone();
                unservable.get_or_insert_with(|| UnservableTool {
                    tool,
                    reason: alloc::string::ToString::to_string(&fault),
                });
            }
        }
    }
    (found, unservable)
}

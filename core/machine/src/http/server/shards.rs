//! Several servers that are one for their clients, and count their limits together.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::hash::BuildHasher;

use hashbrown::HashMap;
use mcp_sansio_collections::KeyedHash;
use mcp_sansio_sync::{Arc, Mutex};

use crate::http::{RequestHead, SessionId};
use crate::protocol::Era;
use crate::{Caller, SessionKey};

use super::Server;
use super::admission::named_revision;
use super::callers::Identity;
use super::options::HttpServerOptions;
use super::store::EventStore;

/// The shards of an HTTP server: several [`Server`]s, each behind a lock of its own, so that cores
/// do not wait for each other. Clones share them.
///
/// A session belongs to the shard that its id names; any shard can handle other requests. The limits
/// of [`ServerLimits`](super::ServerLimits) apply to all shards together: a session and an exchange
/// are counted before they are allowed, so that two shards do not both use the last place.
///
/// Two rules differ from those of a single server. A shard makes room only by removing its
/// own items:
///
/// * If there are too many sessions, a new one displaces a session of its own shard, which
///   [`place`](Self::place) therefore chooses: the one in which a single caller has the most sessions.
/// * If the streams take too many bytes, a shard drops its own finished streams, and then events of
///   the stream that has grown. A shard that takes less than its part makes those that take more
///   shrink to theirs when they are used next.
///
/// ```
/// use core::num::NonZeroUsize;
/// use mcp_sansio::http::{HttpServerOptions, RequestHead, Server, Shards};
/// use mcp_sansio::peer::ServerOptions;
/// use mcp_sansio::protocol::Implementation;
/// use mcp_sansio::{Caller, Instant};
///
/// let options = HttpServerOptions::new().shards(NonZeroUsize::new(2).unwrap());
/// let shards = Shards::new(&options, 42)?;
/// let mut servers = Vec::new();
/// for index in 0..shards.count() {
///     let peer = ServerOptions::new(Implementation::new("clock", "1.0.0"));
///     let mut server = Server::new(peer, options.clone(), [7; 32], 42)?;
///     server.join_shards(&shards, index);
///     servers.push(server);
/// }
///
/// // Any of them may open a session.
/// let mut head = RequestHead::new("POST", "/mcp");
/// assert_eq!(shards.place(&head, &Caller::ANONYMOUS), None);
/// // The others belong where the session is.
/// head.field("mcp-session-id", b"0123456789abcdef0123456789abcdef");
/// assert_eq!(shards.place(&head, &Caller::ANONYMOUS), Some(0xef % 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Shards(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    count: usize,
    sessions_max: usize,
    /// The path of messages that name their session in the query.
    message_path: Option<String>,
    by_principal: bool,
    hasher: KeyedHash,
    counts: Mutex<Counts>,
    /// The callers, in groups by their hash, each with a lock.
    callers: Box<[Mutex<HashMap<Identity, CallerCounts, KeyedHash>>]>,
}

/// Several [shards](Shards) cannot have an [event store](HttpServerOptions::event_store) outside of
/// the machine, or [share](HttpServerOptions::shared) sessions with other nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a server with several shards keeps its events in memory and cannot have a store: remove the \
     shards, and run as many processes as cores, each a node"
)]
pub struct ShardsWithStore;

/// The sums over all shards.
#[derive(Debug)]
struct Counts {
    sessions: usize,
    exchanges: usize,
    handlers: usize,
    logged_bytes: usize,
    /// Whether a shard with less than its part of the bytes had to drop events.
    is_short: bool,
    /// The most sessions of a single caller in each shard.
    greediest: Vec<usize>,
}

/// A caller's counts in all shards.
#[derive(Clone, Debug)]
pub(super) struct CallerCounts(Arc<Mutex<CallerCount>>);

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CallerCount {
    pub(super) exchanges: u32,
    pub(super) handlers: u32,
    pub(super) sessions: u32,
    pub(super) logged: usize,
}

/// The groups of callers. 16: so that cores rarely need the same one.
const CALLER_GROUPS: usize = 16;

/// The place of a server among its shards.
#[derive(Debug)]
pub(super) struct Shard {
    pub(super) shards: Shards,
    pub(super) index: usize,
    /// The exchanges of all shards before the one that is being handled.
    exchanges_before: Option<usize>,
}

impl Shards {
    /// The most shards: as many as the last byte of a session id can name.
    pub const COUNT_MAX: usize = 256;

    /// Creates the shared state of as many servers as the options
    /// [say](HttpServerOptions::shards); more than [`COUNT_MAX`](Self::COUNT_MAX) means that many.
    /// `seed` keys the hash tables for names chosen by clients, as in [`Server::new`].
    ///
    /// # Errors
    ///
    /// The options have an event store outside of the machine: a mistake of the application.
    pub fn new(options: &HttpServerOptions, seed: u64) -> Result<Self, ShardsWithStore> {
        if options.event_store != EventStore::Memory {
            return Err(ShardsWithStore);
        }
        let count = options.shards.get().min(Self::COUNT_MAX);
        let counts = Counts {
            sessions: 0,
            exchanges: 0,
            handlers: 0,
            logged_bytes: 0,
            is_short: false,
            greediest: alloc::vec![0; count],
        };
        let hasher = KeyedHash::with_seed(seed);
        let group = |_| Mutex::new(HashMap::with_hasher(hasher.clone()));
        Ok(Self(Arc::new(Inner {
            count,
            sessions_max: options.limits.sessions_max,
            message_path: options.message_path.clone(),
            by_principal: false,
            counts: Mutex::new(counts),
            callers: (0..CALLER_GROUPS).map(group).collect(),
            hasher,
        })))
    }

    /// Places the requests of a [`Principal`](crate::Principal), other than those in sessions of
    /// another, into one shard, and modern requests without a principal into the first. For servers
    /// that keep state for a caller beyond a request and a session, such as tasks. Call it before
    /// the shards are shared.
    #[must_use]
    pub fn by_principal(mut self) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            inner.by_principal = true;
        }
        self
    }

    /// Returns the number of shards.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.count
    }

    /// Returns the shard of a session: the last byte of its id modulo the number of shards.
    #[must_use]
    pub fn of_session(&self, id: &SessionId) -> usize {
        id.last_byte() % self.0.count
    }

    /// Returns the shard of the session with this key.
    fn of_session_key(&self, session: SessionKey) -> usize {
        SessionId::last_byte_of_key(session) % self.0.count
    }

    /// Returns the shard that has to handle a request, or `None` if any may.
    // MCP 2026-07-28 changelog#major-changes [SESS-016]: a modern request is in no session.
    #[must_use]
    pub fn place(&self, head: &RequestHead<'_>, caller: &Caller) -> Option<usize> {
        let is_modern = named_revision(head).is_some_and(|named| named.era() == Era::Modern);
        if !is_modern && let Some(id) = self.session_in(head) {
            return Some(self.of_session(&id));
        }
        if self.0.by_principal {
            match caller.principal() {
                Some(principal) => {
                    let hash = self.0.hasher.hash_one(principal.as_str());
                    return Some(place_of_hash(hash, self.0.count));
                }
                None if is_modern => return Some(0),
                None => {}
            }
        }
        if is_modern { None } else { self.greediest_if_full() }
    }

    fn session_in(&self, head: &RequestHead<'_>) -> Option<SessionId> {
        if self.0.message_path.as_deref() == Some(head.path) {
            let id = head.query.0.split('&').find_map(|pair| pair.strip_prefix("sessionId="))?;
            return SessionId::parse(id.as_bytes());
        }
        SessionId::parse(head.session_id?)
    }

    /// Returns the shard in which a single caller has the most sessions, if no more are allowed.
    fn greediest_if_full(&self) -> Option<usize> {
        self.0.counts.lock(|counts| {
            let places = counts.greediest.iter().enumerate();
            // The first among equals.
            let most = places.rev().max_by_key(|(_, sessions)| **sessions).map(|(place, _)| place);
            most.filter(|_| counts.sessions >= self.0.sessions_max)
        })
    }

    /// Returns the counts of a caller.
    pub(super) fn caller(&self, identity: &Identity) -> CallerCounts {
        self.group(identity).lock(|callers| match callers.get(identity) {
            Some(counts) => counts.clone(),
            None => {
                let counts = CallerCounts(Arc::default());
                callers.insert(identity.clone(), counts.clone());
                counts
            }
        })
    }

    /// Returns the counts of a caller without anything in this shard.
    pub(super) fn forget_caller(&self, identity: &Identity, counts: CallerCounts) {
        let removed = self.group(identity).lock(|callers| {
            drop(counts);
            // No other request gets it meanwhile.
            let is_last = callers.get(identity).is_some_and(|it| Arc::strong_count(&it.0) == 1);
            if is_last { callers.remove_entry(identity) } else { None }
        });
        drop(removed);
    }

    fn group(&self, identity: &Identity) -> &Mutex<HashMap<Identity, CallerCounts, KeyedHash>> {
        // The tables use the lower bits.
        let group = place_of_hash(self.0.hasher.hash_one(identity) >> 32, self.0.callers.len());
        &self.0.callers[group]
    }

    // Out of line, because servers of one shard never call these.
    #[inline(never)]
    fn logged_bytes(&self) -> usize {
        self.0.counts.lock(|counts| counts.logged_bytes)
    }

    #[inline(never)]
    fn change_bytes(&self, added: usize, removed: usize) {
        if added != removed {
            self.0.counts.lock(|counts| {
                counts.logged_bytes = counts.logged_bytes + added - removed;
            });
        }
    }

    /// Whether a shard with `own` bytes has to drop events.
    #[inline(never)]
    fn has_too_many_bytes(&self, own: usize, most: usize) -> bool {
        let is_more_than_its_part = own > most / self.0.count;
        self.0.counts.lock(|counts| {
            let exceeds = counts.logged_bytes > most;
            if exceeds && !is_more_than_its_part {
                counts.is_short = true;
            }
            exceeds || (counts.is_short && is_more_than_its_part)
        })
    }

    /// Returns the number of sessions of all shards.
    #[must_use]
    pub fn session_count(&self) -> usize {
        self.0.counts.lock(|counts| counts.sessions)
    }

    /// Returns the number of exchanges of all shards.
    #[must_use]
    pub fn exchange_count(&self) -> usize {
        self.0.counts.lock(|counts| counts.exchanges)
    }

    /// Returns the number of bytes in the streams of all shards.
    #[must_use]
    pub fn stream_bytes(&self) -> usize {
        self.0.counts.lock(|counts| counts.logged_bytes)
    }

    /// Returns the number of callers that have sessions or exchanges.
    #[must_use]
    pub fn caller_count(&self) -> usize {
        self.0.callers.iter().map(|group| group.lock(|callers| callers.len())).sum()
    }
}

/// Returns one of `count` places.
fn place_of_hash(hash: u64, count: usize) -> usize {
    usize::try_from(hash % count as u64).unwrap_or_default()
}

impl CallerCounts {
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut CallerCount) -> T) -> T {
        self.0.lock(change)
    }
}

impl Shard {
    /// Returns whether a session with this key belongs to this shard.
    pub(super) fn has_session(&self, session: SessionKey) -> bool {
        self.shards.of_session_key(session) == self.index
    }

    /// Returns the number of exchanges of all shards. While one is handled, those before it.
    pub(super) fn exchanges(&self) -> usize {
        self.exchanges_before.unwrap_or_else(|| self.lock(|counts| counts.exchanges))
    }

    /// Counts the exchange that is about to be handled.
    pub(super) fn begin_exchange(&mut self) {
        let before = self.lock(|counts| {
            counts.exchanges += 1;
            counts.exchanges - 1
        });
        self.exchanges_before = Some(before);
    }

    /// The exchange that was counted exists.
    pub(super) const fn exchange_began(&mut self) {
        self.exchanges_before = None;
    }

    pub(super) fn end_exchange(&self) {
        self.lock(|counts| counts.exchanges -= 1);
    }

    /// Returns the number of running handlers of all shards.
    pub(super) fn handlers(&self) -> usize {
        self.lock(|counts| counts.handlers)
    }

    pub(super) fn begin_handler(&self) {
        self.lock(|counts| counts.handlers += 1);
    }

    pub(super) fn end_handler(&self) {
        self.lock(|counts| counts.handlers -= 1);
    }

    /// Counts another session. Returns whether there was room for it.
    pub(super) fn begin_session(&self) -> bool {
        self.lock(|counts| {
            counts.sessions += 1;
            counts.sessions <= self.shards.0.sessions_max
        })
    }

    pub(super) fn end_session(&self) {
        self.lock(|counts| counts.sessions -= 1);
    }

    pub(super) fn set_greediest(&self, sessions: usize) {
        self.lock(|counts| {
            if let Some(greediest) = counts.greediest.get_mut(self.index) {
                *greediest = sessions;
            }
        });
    }

    fn lock<T>(&self, change: impl FnOnce(&mut Counts) -> T) -> T {
        self.shards.0.counts.lock(change)
    }
}

/// The bytes in the logs of all streams of a server, counted with those of its other shards.
#[derive(Debug, Default)]
pub(super) struct LoggedBytes {
    own: usize,
    shards: Option<Shards>,
}

impl LoggedBytes {
    pub(super) const fn own(&self) -> usize {
        self.own
    }

    /// Whether all shards together have more than `most`.
    #[inline]
    pub(super) fn exceeds(&self, most: usize) -> bool {
        match &self.shards {
            None => self.own > most,
            Some(shards) => shards.logged_bytes() > most,
        }
    }

    /// Whether this server has to drop events: all shards together have more than `most`, or this
    /// one has more than its part while another has to drop some of less than its part.
    #[inline]
    pub(super) fn is_excessive(&self, most: usize) -> bool {
        match &self.shards {
            None => self.own > most,
            Some(shards) => shards.has_too_many_bytes(self.own, most),
        }
    }

    /// This server has dropped as much as it could.
    pub(super) fn has_shrunk(&self, before: usize, most: usize) {
        let Some(shards) = &self.shards else { return };
        if before > most / shards.0.count {
            shards.0.counts.lock(|counts| counts.is_short = false);
        }
    }
}

impl core::ops::AddAssign<usize> for LoggedBytes {
    #[inline]
    fn add_assign(&mut self, bytes: usize) {
        self.own += bytes;
        if let Some(shards) = &self.shards {
            shards.change_bytes(bytes, 0);
        }
    }
}

impl core::ops::SubAssign<usize> for LoggedBytes {
    #[inline]
    fn sub_assign(&mut self, bytes: usize) {
        self.own -= bytes;
        if let Some(shards) = &self.shards {
            shards.change_bytes(0, bytes);
        }
    }
}

impl Server {
    /// Makes this server the shard with this index. It must be new, have the options of the other
    /// shards, and their secret and seed; no other may have the index.
    ///
    /// # Panics
    ///
    /// There is no such shard, or the server has had requests.
    pub fn join_shards(&mut self, shards: &Shards, index: usize) {
        assert!(index < shards.count(), "shard {index} of {}", shards.count());
        assert!(self.exchanges.is_empty() && self.connections.is_empty(), "it is in use");
        self.session_ids.join_shards(index, shards.count());
        self.callers.join_shards(shards);
        self.logged_bytes.shards = Some(shards.clone());
        let shard = Shard { shards: shards.clone(), index, exchanges_before: None };
        self.shard = Some(Box::new(shard));
    }

    /// Returns the shards of which this server is one.
    #[must_use]
    pub fn shards(&self) -> Option<&Shards> {
        self.shard.as_ref().map(|shard| &shard.shards)
    }
}

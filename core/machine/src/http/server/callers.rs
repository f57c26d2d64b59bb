//! Counts the resources of each caller, so that no caller can use up all of them.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::string::{String, ToString as _};
use core::cmp::Reverse;
use core::hash::BuildHasher;

use mcp_sansio_collections::KeyedHash;
use mcp_sansio_collections::{Index, Key, Slab};
use sha2::{Digest as _, Sha256};

use crate::http::RemoteAddress;
use crate::http::media::Accepted;
use crate::{Caller, Principal};

use super::store_queue::Account;

/// Identifies the caller that a running handler counts against: see
/// [`begin_handler`](super::Server::begin_handler).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallerHandle(pub(super) Option<Key>);

/// The sender of a request, and the caller that it counts against.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sender<'a> {
    pub(super) identity: &'a Caller,
    /// `None` if neither a principal nor an address is known.
    pub(super) caller: Option<Key>,
    /// The media types of responses that it accepts.
    pub(super) accepted: Accepted,
}

/// The callers that hold a resource. A caller without resources is removed.
#[derive(Debug)]
pub(super) struct Callers {
    hasher: KeyedHash,
    /// Created with the first caller.
    table: Option<Box<Table>>,
}

#[derive(Debug, Default)]
struct Table {
    entries: Slab<Entry>,
    index: Index,
    /// The slots of the callers with sessions. The caller with the most sessions comes last; among
    /// equals, the one that has had sessions for the longest time.
    by_sessions: BTreeSet<(u32, Reverse<u64>, u32)>,
    /// The number of times that a caller opened its first session.
    openings: u64,
}

/// A caller and its resources.
#[derive(Debug)]
struct Entry {
    identity: Identity,
    hash: u64,
    exchanges: u32,
    handlers: u32,
    sessions: u32,
    /// Readers of stored events.
    replays: u32,
    /// Bytes in the logs of its streams.
    logged: usize,
    /// The value of [`Table::openings`] when its first session was opened.
    since: u64,
    /// The slots of its least and most recently used sessions, which link to the others.
    ends: Ends,
}

/// The first and the last slot in a list of sessions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends {
    pub(super) oldest: u32,
    pub(super) newest: u32,
}

/// The end of a list.
pub(super) const NO_SLOT: u32 = u32::MAX;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Identity {
    Principal(Principal),
    Address(RemoteAddress),
}

impl Callers {
    pub(super) fn new(seed: u64) -> Self {
        Self { hasher: KeyedHash::with_seed(seed), table: None }
    }

    fn get(&self, caller: Key) -> Option<&Entry> {
        self.table.as_ref()?.entries.get(caller)
    }

    fn get_mut(&mut self, caller: Option<Key>) -> Option<&mut Entry> {
        self.table.as_mut()?.entries.get_mut(caller?)
    }

    /// Returns the account to which a caller's store actions are charged.
    pub(super) fn account(&self, caller: Option<Key>) -> Account {
        caller.and_then(|it| self.get(it)).map_or(Account::Unknown, |it| Account::Caller(it.hash))
    }

    /// Returns the account of a sender that may hold no resource yet.
    pub(super) fn account_of(
        &self,
        principal: Option<&Principal>,
        address: Option<RemoteAddress>,
    ) -> Account {
        self.hash_of(principal, address).map_or(Account::Unknown, Account::Caller)
    }

    /// Returns the account of a named owner, such as the requestor of tasks. Empty if it is
    /// unknown.
    pub(super) fn account_of_name(&self, name: &str) -> Account {
        if name.is_empty() {
            return Account::Unknown;
        }
        Account::Caller(self.hasher.hash_one((2_u8, name)))
    }

    /// Returns a text that stands for a caller at all nodes: a part of a hash, because names are
    /// personal. Not empty.
    pub(super) fn label(&self, caller: Option<Key>) -> String {
        match caller.and_then(|caller| self.get(caller)).map(|entry| &entry.identity) {
            Some(Identity::Principal(principal)) => label_of(principal.as_str()),
            Some(Identity::Address(address)) => label_of(&address.ip().to_string()),
            None => label_of(""),
        }
    }

    fn hash_of(
        &self,
        principal: Option<&Principal>,
        address: Option<RemoteAddress>,
    ) -> Option<u64> {
        Some(match (principal, address) {
            (Some(principal), _) => self.hasher.hash_one((0_u8, principal.as_str())),
            (None, Some(address)) => self.hasher.hash_one((1_u8, address)),
            (None, None) => return None,
        })
    }

    /// Returns the caller of a request, and counts an exchange for it until
    /// [`close_exchange`](Self::close_exchange). Returns `None` if the caller is unknown.
    pub(super) fn enter(
        &mut self,
        principal: Option<&Principal>,
        address: Option<RemoteAddress>,
    ) -> Option<Key> {
        let hash = self.hash_of(principal, address)?;
        let table = self.table.get_or_insert_default();
        let is_it = |number| {
            let entry = table.entries.get(Key::from_number(number));
            entry.is_some_and(|it| match &it.identity {
                Identity::Principal(known) => principal == Some(known),
                Identity::Address(known) => principal.is_none() && address == Some(*known),
            })
        };
        let key = match table.index.find_hashed(hash, &is_it) {
            Some(number) => Key::from_number(number),
            None => {
                let identity = match (principal, address) {
                    (Some(principal), _) => Identity::Principal(principal.clone()),
                    (None, address) => Identity::Address(address?),
                };
                let ends = Ends { oldest: NO_SLOT, newest: NO_SLOT };
                let (exchanges, handlers, sessions, replays, since) = (0, 0, 0, 0, 0);
                let key = table.entries.insert(Entry {
                    identity,
                    hash,
                    exchanges,
                    handlers,
                    sessions,
                    replays,
                    logged: 0,
                    since,
                    ends,
                });
                table.index.insert_hashed(hash, key.to_number());
                key
            }
        };
        self.open_exchange(Some(key));
        Some(key)
    }

    pub(super) fn open_exchange(&mut self, caller: Option<Key>) {
        if let Some(caller) = self.get_mut(caller) {
            caller.exchanges += 1;
        }
    }

    pub(super) fn close_exchange(&mut self, caller: Option<Key>) {
        if let Some(entry) = self.get_mut(caller) {
            entry.exchanges -= 1;
            if entry.exchanges == 0 {
                self.forget_if_empty(caller);
            }
        }
    }

    /// Counts a running handler. Its caller is kept until the handler ends.
    pub(super) fn begin_handler(&mut self, caller: Option<Key>) {
        if let Some(entry) = self.get_mut(caller) {
            entry.handlers += 1;
        }
    }

    pub(super) fn end_handler(&mut self, caller: Option<Key>) {
        if let Some(entry) = self.get_mut(caller) {
            entry.handlers -= 1;
            if entry.exchanges == 0 {
                self.forget_if_empty(caller);
            }
        }
    }

    /// Counts a reader of stored events.
    pub(super) fn begin_replay(&mut self, caller: Option<Key>) {
        if let Some(entry) = self.get_mut(caller) {
            entry.replays += 1;
        }
    }

    pub(super) fn end_replays(&mut self, caller: Option<Key>, count: u32) {
        if let Some(entry) = self.get_mut(caller) {
            entry.replays -= count;
            self.forget_if_empty(caller);
        }
    }

    /// Returns the number of a caller's readers of stored events.
    pub(super) fn replays(&self, caller: Option<Key>) -> usize {
        caller.and_then(|caller| self.get(caller)).map_or(0, |entry| entry.replays as usize)
    }

    /// Counts the growth of a log.
    pub(super) fn change_logged(&mut self, caller: Option<Key>, before: usize, after: usize) {
        if before == after {
            return;
        }
        if let Some(entry) = self.get_mut(caller) {
            entry.logged = entry.logged + after - before;
            if after < before {
                self.forget_if_empty(caller);
            }
        }
    }

    /// Returns the bytes in the logs of a caller's streams.
    pub(super) fn logged(&self, caller: Option<Key>) -> usize {
        caller.and_then(|caller| self.get(caller)).map_or(0, |entry| entry.logged)
    }

    /// Counts a session.
    pub(super) fn open_session(&mut self, caller: Option<Key>) {
        self.count_session(caller, |sessions| sessions + 1);
    }

    pub(super) fn close_session(&mut self, caller: Option<Key>) {
        self.count_session(caller, |sessions| sessions - 1);
    }

    fn count_session(&mut self, caller: Option<Key>, count: impl FnOnce(u32) -> u32) {
        let (Some(key), Some(table)) = (caller, &mut self.table) else { return };
        let Some(entry) = table.entries.get_mut(key) else { return };
        if entry.sessions == 0 {
            table.openings += 1;
            entry.since = table.openings;
        } else {
            table.by_sessions.remove(&(entry.sessions, Reverse(entry.since), key.slot));
        }
        entry.sessions = count(entry.sessions);
        if entry.sessions > 0 {
            table.by_sessions.insert((entry.sessions, Reverse(entry.since), key.slot));
        }
        self.forget_if_empty(caller);
    }

    /// Returns the caller with the most sessions.
    pub(super) fn greediest(&self) -> Option<Key> {
        let table = self.table.as_ref()?;
        table.by_sessions.last().and_then(|(_, _, slot)| table.entries.key_at(*slot))
    }

    /// Returns the list of a caller's sessions.
    pub(super) fn ends_mut(&mut self, caller: Option<Key>) -> Option<&mut Ends> {
        self.get_mut(caller).map(|caller| &mut caller.ends)
    }

    /// Returns the number of a caller's sessions.
    pub(super) fn sessions(&self, caller: Key) -> usize {
        self.get(caller).map_or(0, |caller| caller.sessions as usize)
    }

    /// Returns the number of a caller's exchanges.
    pub(super) fn exchanges(&self, caller: Key) -> usize {
        self.get(caller).map_or(0, |caller| caller.exchanges as usize)
    }

    /// Returns the number of a caller's running handlers.
    pub(super) fn handlers(&self, caller: Key) -> usize {
        self.get(caller).map_or(0, |caller| caller.handlers as usize)
    }

    pub(super) fn len(&self) -> usize {
        self.table.as_ref().map_or(0, |table| table.entries.len())
    }

    fn forget_if_empty(&mut self, caller: Option<Key>) {
        let (Some(key), Some(table)) = (caller, &mut self.table) else { return };
        let Some(entry) = table.entries.get(key) else { return };
        let held = entry.exchanges + entry.handlers + entry.sessions + entry.replays;
        if held == 0 && entry.logged == 0 {
            table.index.remove_hashed(entry.hash, &|number| number == key.to_number());
            table.entries.remove(key);
        }
    }

    /// Returns the callers with the numbers of their sessions, exchanges and readers of stored
    /// events, and the bytes in their logs.
    pub(super) fn held(&self) -> impl Iterator<Item = (Key, [usize; 4])> {
        let entries = self.table.iter().flat_map(|table| table.entries.iter());
        entries.map(|(key, it)| {
            let [sessions, exchanges, replays] =
                [it.sessions, it.exchanges, it.replays].map(|count| count as usize);
            (key, [sessions, exchanges, replays, it.logged])
        })
    }
}

/// Returns a short hash of a name, which may be long or personal, as hexadecimal digits.
pub(super) fn label_of(name: &str) -> String {
    let hash = Sha256::new().chain_update(b"caller").chain_update(name).finalize();
    hash.iter().take(8).map(|byte| alloc::format!("{byte:02x}")).collect()
}

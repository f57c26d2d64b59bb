//! What each caller holds: so that none takes all that there is for everybody.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use core::cmp::Reverse;
use core::hash::BuildHasher;

use mcp_sansio_collections::KeyedHash;
use mcp_sansio_collections::{Index, Key, Slab};

use crate::http::{Principal, RemoteAddress};

/// Whom a handler at work counts against: see [`begin_handler`](super::Server::begin_handler).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallerHandle(pub(super) Key);

/// Who sends a request: as whom it acts, and whose share it takes from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sender<'a> {
    pub(super) principal: Option<&'a Principal>,
    /// `None`: neither a principal nor an address is known.
    pub(super) caller: Option<Key>,
}

/// Callers with something live, each once. Whoever holds nothing is forgotten.
#[derive(Debug)]
pub(super) struct Callers {
    hasher: KeyedHash,
    /// Made with the first of them.
    table: Option<Box<Table>>,
}

#[derive(Debug, Default)]
struct Table {
    entries: Slab<Caller>,
    index: Index,
    /// The slots of callers with sessions, the one with the most at the end; of those with as many,
    /// the one that has had some for longest.
    by_sessions: BTreeSet<(u32, Reverse<u64>, u32)>,
    /// How often a caller came to its first session.
    openings: u64,
}

/// One caller, and what it holds.
#[derive(Debug)]
struct Caller {
    identity: Identity,
    hash: u64,
    exchanges: u32,
    handlers: u32,
    sessions: u32,
    /// Which of [`Table::openings`] its first session was.
    since: u64,
    /// The slots of its sessions that were used first and last, which lead to the others.
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

#[derive(Debug, PartialEq, Eq)]
enum Identity {
    Principal(Principal),
    Address(RemoteAddress),
}

impl Callers {
    pub(super) fn new(seed: u64) -> Self {
        Self { hasher: KeyedHash::with_seed(seed), table: None }
    }

    fn get(&self, caller: Key) -> Option<&Caller> {
        self.table.as_ref()?.entries.get(caller)
    }

    fn get_mut(&mut self, caller: Option<Key>) -> Option<&mut Caller> {
        self.table.as_mut()?.entries.get_mut(caller?)
    }

    /// The caller of a request, which holds one exchange more from here on, until
    /// [`close_exchange`](Self::close_exchange). `None`: it is not known.
    pub(super) fn enter(
        &mut self,
        principal: Option<&Principal>,
        address: Option<RemoteAddress>,
    ) -> Option<Key> {
        let hash = match (principal, address) {
            (Some(principal), _) => self.hasher.hash_one((0_u8, principal.as_str())),
            (None, Some(address)) => self.hasher.hash_one((1_u8, address)),
            (None, None) => return None,
        };
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
                let (exchanges, handlers, sessions, since) = (0, 0, 0, 0);
                let key = table.entries.insert(Caller {
                    identity,
                    hash,
                    exchanges,
                    handlers,
                    sessions,
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
            self.forget_if_empty(caller);
        }
    }

    /// A handler goes on. Its caller is known until it ends.
    pub(super) fn begin_handler(&mut self, caller: Key) -> bool {
        let entry = self.get_mut(Some(caller));
        entry.map(|caller| caller.handlers += 1).is_some()
    }

    pub(super) fn end_handler(&mut self, caller: Key) {
        if let Some(entry) = self.get_mut(Some(caller)) {
            entry.handlers -= 1;
            self.forget_if_empty(Some(caller));
        }
    }

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

    /// The caller with the most sessions.
    pub(super) fn greediest(&self) -> Option<Key> {
        let table = self.table.as_ref()?;
        table.by_sessions.last().and_then(|(_, _, slot)| table.entries.key_at(*slot))
    }

    /// The list of a caller's sessions.
    pub(super) fn ends_mut(&mut self, caller: Option<Key>) -> Option<&mut Ends> {
        self.get_mut(caller).map(|caller| &mut caller.ends)
    }

    pub(super) fn sessions(&self, caller: Key) -> usize {
        self.get(caller).map_or(0, |caller| caller.sessions as usize)
    }

    pub(super) fn exchanges(&self, caller: Key) -> usize {
        self.get(caller).map_or(0, |caller| caller.exchanges as usize)
    }

    pub(super) fn handlers(&self, caller: Key) -> usize {
        self.get(caller).map_or(0, |caller| caller.handlers as usize)
    }

    pub(super) fn len(&self) -> usize {
        self.table.as_ref().map_or(0, |table| table.entries.len())
    }

    fn forget_if_empty(&mut self, caller: Option<Key>) {
        let (Some(key), Some(table)) = (caller, &mut self.table) else { return };
        let Some(entry) = table.entries.get(key) else { return };
        if entry.exchanges + entry.handlers + entry.sessions == 0 {
            table.index.remove_hashed(entry.hash, &|number| number == key.to_number());
            table.entries.remove(key);
        }
    }

    /// The callers and what each holds: sessions and exchanges.
    pub(super) fn held(&self) -> impl Iterator<Item = (Key, usize, usize)> {
        let entries = self.table.iter().flat_map(|table| table.entries.iter());
        entries.map(|(key, caller)| (key, caller.sessions as usize, caller.exchanges as usize))
    }
}

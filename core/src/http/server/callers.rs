//! What each caller holds: so that none takes all that there is for everybody.

use alloc::collections::BTreeSet;
use core::cmp::Reverse;
use core::hash::BuildHasher;

use foldhash::fast::FixedState;

use crate::http::{Principal, RemoteAddress};
use crate::index::Index;
use crate::peer::slab::{Key, Slab};

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
    entries: Slab<Caller>,
    index: Index,
    hasher: FixedState,
    /// Callers with sessions, the one with the most at the end; of those with as many, the one that
    /// has had some for longest.
    by_sessions: BTreeSet<(usize, Reverse<u64>, Key)>,
    /// How often a caller came to its first session.
    openings: u64,
}

/// One caller, and what it holds.
#[derive(Debug)]
struct Caller {
    identity: Identity,
    hash: u64,
    exchanges: usize,
    handlers: usize,
    sessions: usize,
    /// Which of [`Callers::openings`] its first session was.
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
        Self {
            entries: Slab::new(),
            index: Index::default(),
            hasher: FixedState::with_seed(seed),
            by_sessions: BTreeSet::new(),
            openings: 0,
        }
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
        let is_it = |number| {
            let entry = self.entries.get(Key::of_number(number));
            entry.is_some_and(|it| match &it.identity {
                Identity::Principal(known) => principal == Some(known),
                Identity::Address(known) => principal.is_none() && address == Some(*known),
            })
        };
        let key = match self.index.find_hashed(hash, &is_it) {
            Some(number) => Key::of_number(number),
            None => {
                let identity = match (principal, address) {
                    (Some(principal), _) => Identity::Principal(principal.clone()),
                    (None, address) => Identity::Address(address?),
                };
                let ends = Ends { oldest: NO_SLOT, newest: NO_SLOT };
                let (exchanges, handlers, sessions, since) = (0, 0, 0, 0);
                let key = self.entries.insert(Caller {
                    identity,
                    hash,
                    exchanges,
                    handlers,
                    sessions,
                    since,
                    ends,
                });
                self.index.insert_hashed(hash, key.to_number());
                key
            }
        };
        self.open_exchange(Some(key));
        Some(key)
    }

    pub(super) fn open_exchange(&mut self, caller: Option<Key>) {
        if let Some(caller) = caller.and_then(|key| self.entries.get_mut(key)) {
            caller.exchanges += 1;
        }
    }

    pub(super) fn close_exchange(&mut self, caller: Option<Key>) {
        let Some(key) = caller else { return };
        let Some(caller) = self.entries.get_mut(key) else { return };
        caller.exchanges -= 1;
        self.forget_if_empty(key);
    }

    /// A handler goes on. Its caller is known until it ends.
    #[cfg(target_has_atomic = "ptr")]
    pub(super) fn begin_handler(&mut self, caller: Key) -> bool {
        let entry = self.entries.get_mut(caller);
        entry.map(|caller| caller.handlers += 1).is_some()
    }

    #[cfg(target_has_atomic = "ptr")]
    pub(super) fn end_handler(&mut self, caller: Key) {
        let Some(entry) = self.entries.get_mut(caller) else { return };
        entry.handlers -= 1;
        self.forget_if_empty(caller);
    }

    pub(super) fn open_session(&mut self, caller: Option<Key>) {
        self.count_session(caller, |sessions| sessions + 1);
    }

    pub(super) fn close_session(&mut self, caller: Option<Key>) {
        self.count_session(caller, |sessions| sessions - 1);
    }

    fn count_session(&mut self, caller: Option<Key>, count: impl FnOnce(usize) -> usize) {
        let Some(key) = caller else { return };
        let Some(caller) = self.entries.get_mut(key) else { return };
        if caller.sessions == 0 {
            self.openings += 1;
            caller.since = self.openings;
        } else {
            self.by_sessions.remove(&(caller.sessions, Reverse(caller.since), key));
        }
        caller.sessions = count(caller.sessions);
        if caller.sessions > 0 {
            self.by_sessions.insert((caller.sessions, Reverse(caller.since), key));
        }
        self.forget_if_empty(key);
    }

    /// The caller with the most sessions.
    pub(super) fn greediest(&self) -> Option<Key> {
        self.by_sessions.last().map(|(_, _, key)| *key)
    }

    /// The list of a caller's sessions.
    pub(super) fn ends_mut(&mut self, caller: Option<Key>) -> Option<&mut Ends> {
        self.entries.get_mut(caller?).map(|caller| &mut caller.ends)
    }

    pub(super) fn sessions(&self, caller: Key) -> usize {
        self.entries.get(caller).map_or(0, |caller| caller.sessions)
    }

    pub(super) fn exchanges(&self, caller: Key) -> usize {
        self.entries.get(caller).map_or(0, |caller| caller.exchanges)
    }

    #[cfg(target_has_atomic = "ptr")]
    pub(super) fn handlers(&self, caller: Key) -> usize {
        self.entries.get(caller).map_or(0, |caller| caller.handlers)
    }

    pub(super) const fn len(&self) -> usize {
        self.entries.len()
    }

    fn forget_if_empty(&mut self, key: Key) {
        let Some(caller) = self.entries.get(key) else { return };
        if caller.exchanges + caller.handlers + caller.sessions > 0 {
            return;
        }
        self.index.remove_hashed(caller.hash, &|number| number == key.to_number());
        self.entries.remove(key);
    }

    /// The callers and what each holds: sessions and exchanges.
    #[cfg(feature = "_fuzz")]
    pub(super) fn held(&self) -> impl Iterator<Item = (Key, usize, usize)> {
        self.entries.iter().map(|(key, caller)| (key, caller.sessions, caller.exchanges))
    }
}

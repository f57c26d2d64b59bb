//! Chooses the session to end when a new one needs its place.
//!
//! The sessions of a caller form a list in the order of their last use. Each session links to its
//! neighbours by slot, so it can be moved in constant time.

use mcp_sansio_collections::Key;

use crate::Instant;

use super::callers::NO_SLOT;
use super::sessions::Session;
use super::{Connection, Server};

/// How many sessions are examined to find one that can be ended. Sessions with a pending request
/// cannot, and move to the end of the list.
const LOOKS_MAX: usize = 64;

impl Server {
    /// Ends one session of the caller with the most sessions, to make room for another. Returns
    /// whether a session could be ended. It chooses the least recently used session without a
    /// request or an open stream, or else one that only listens. The client of that session gets
    /// 404 and opens a new one.
    pub(super) fn displace_session(&mut self, now: Instant) -> bool {
        let Some(greediest) = self.callers.greediest() else { return false };
        self.displace_session_of(greediest, true, now)
    }

    /// Ends the least recently used session of a caller that has no request and no open stream, or
    /// else, if `listening` is set, one that only listens.
    // MCP 2025-11-25 basic/transports#session-management [SESS-007] [SESS-008]
    pub(super) fn displace_session_of(
        &mut self,
        caller: Key,
        listening: bool,
        now: Instant,
    ) -> bool {
        let Some(ends) = self.callers.ends_mut(Some(caller)) else { return false };
        let mut slot = ends.oldest;
        let mut listener = None;
        for _ in 0..LOOKS_MAX.min(self.callers.sessions(caller)) {
            let Some(key) = self.connections.key_at(slot) else { break };
            let Some(Connection { machine, session: Some(session), .. }) =
                self.connections.get(key)
            else {
                break;
            };
            slot = session.newer;
            if machine.requests_in_flight() > 0 {
                self.touch_session(key);
            } else if session.open == 0 {
                self.end_session(key, now);
                return true;
            } else {
                listener = listener.or(Some(key));
            }
        }
        let Some(key) = listener.filter(|_| listening) else { return false };
        self.end_session(key, now);
        true
    }

    /// Marks a session as the most recently used one of its caller.
    pub(super) fn touch_session(&mut self, key: Key) {
        if self.session_at(key.slot).is_some_and(|session| session.newer != NO_SLOT) {
            self.unlink_session(key);
            self.link_session(key);
        }
    }

    /// Appends a session to its caller's list.
    pub(super) fn link_session(&mut self, key: Key) {
        let caller = self.connections.get(key).and_then(|connection| connection.caller);
        let Some(ends) = self.callers.ends_mut(caller) else { return };
        let before = core::mem::replace(&mut ends.newest, key.slot);
        if before == NO_SLOT {
            ends.oldest = key.slot;
        } else if let Some(session) = self.session_at(before) {
            session.newer = key.slot;
        }
        if let Some(session) = self.session_at(key.slot) {
            (session.older, session.newer) = (before, NO_SLOT);
        }
    }

    /// Removes a session from its caller's list.
    pub(super) fn unlink_session(&mut self, key: Key) {
        let caller = self.connections.get(key).and_then(|connection| connection.caller);
        let Some(session) = self.session_at(key.slot) else { return };
        let (older, newer) = (session.older, session.newer);
        let Some(ends) = self.callers.ends_mut(caller) else { return };
        if older == NO_SLOT {
            ends.oldest = newer;
        }
        if newer == NO_SLOT {
            ends.newest = older;
        }
        if let Some(session) = self.session_at(older) {
            session.newer = newer;
        }
        if let Some(session) = self.session_at(newer) {
            session.older = older;
        }
    }

    fn session_at(&mut self, slot: u32) -> Option<&mut Session> {
        let key = self.connections.key_at(slot)?;
        self.connections.get_mut(key)?.session.as_mut()
    }
}

//! The session that requests belong to.

use alloc::borrow::Cow;

use mcp_sansio_sync::Arc;

use crate::binding::Binding;
use crate::{Caller, Era, Revision, SessionKey};

use super::Server;

impl Server {
    /// Returns the key of the legacy session on this connection, also before the session is opened:
    /// see [`Caller::session`].
    #[must_use]
    pub fn session_key(&self) -> SessionKey {
        let known = self.caller.session();
        known.unwrap_or_else(|| SessionKey::from_hasher(self.connection.requests.hasher_ref()))
    }

    /// Returns the sender of the last frame.
    pub(crate) const fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Sets the key of the session that the machine serves. Without one, its requests are in none.
    pub(crate) fn set_session_key(&mut self, session: SessionKey) {
        self.caller = self.caller.clone().with_session(Some(session));
    }

    /// Replaces the key, because the client opens another session. Items of the old one are
    /// removed; on other bindings, where connections share a catalog, by the binding.
    pub(super) fn replace_session_key(&mut self) {
        let old = self.session_key();
        if self.connection.binding == Binding::ByteStream
            && self.config.catalog.sessions().any(|session| session == old)
        {
            Arc::make_mut(&mut self.config.catalog).remove_session(old);
        }
        self.set_session_key(old.next());
    }

    /// Returns the sender of a request. A modern one is in no session, even if its connection has
    /// one.
    // MCP 2026-07-28 changelog#major-changes [SESS-016]
    pub(super) fn caller_at(&self, revision: Revision) -> Cow<'_, Caller> {
        match revision.era() {
            Era::Modern => outside_sessions(&self.caller),
            Era::Legacy => Cow::Borrowed(&self.caller),
        }
    }
}

/// Returns the sender of a modern request.
pub(super) fn outside_sessions(caller: &Caller) -> Cow<'_, Caller> {
    match caller.session() {
        Some(_) => Cow::Owned(caller.clone().with_session(None)),
        None => Cow::Borrowed(caller),
    }
}

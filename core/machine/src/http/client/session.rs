//! The session of a legacy server: its id, its end and its renewal.

use alloc::vec::Vec;

use bytestring::ByteString;

use crate::binding::Field;
use crate::http::ExchangeId;
use crate::jsonrpc::ErrorObject;
use crate::peer::{CloseReason, Failure, TransportFailure};
use crate::{Era, Instant, Revision};

use super::exchanges::{Pause, Purpose, Receiving};
use super::listening::Listening;
use super::message::{Message, RequestKind, VERSION};
use super::options::LostSession;
use super::transmit::SESSION_ID;
use super::{Client, SendState, Transport};

/// The state of the current session, and counters over all sessions.
#[derive(Debug, Default)]
pub(super) struct LegacySession {
    pub(super) key: Option<SessionKey>,
    /// The number of the current session, counted from the first one.
    pub(super) number: u32,
    /// Sessions opened since the last one that could be used: the server accepted a message, sent
    /// one on the listening stream, or kept that stream open for long.
    pub(super) renewals: u32,
}

/// A session id that the server assigned.
///
/// The id is enough to act in the session, so it is hidden in debug output.
#[derive(Clone)]
pub(super) struct SessionKey(ByteString);

impl SessionKey {
    /// # Errors
    ///
    /// Returns what is wrong with the id.
    // MCP 2025-11-25 basic/transports#session-management [SESS-003]
    pub(super) fn parse(text: &[u8], length_max: usize) -> Result<Self, &'static str> {
        if text.len() > length_max {
            return Err("the session id is longer than the limit `session_id_length_max`");
        }
        let visible = !text.is_empty() && text.iter().all(|byte| (0x21..=0x7E).contains(byte));
        let id = core::str::from_utf8(text).ok().filter(|_| visible);
        id.map(|id| Self(id.into())).ok_or("the session id is not visible ASCII")
    }
}

impl SessionKey {
    pub(super) fn text(&self) -> &str {
        &self.0
    }
}

crate::partial_debug! {
    // MCP 2025-11-25 basic/transports#session-management [SESS-005]
    impl Debug for SessionKey(..)
}

impl Client {
    /// Adds the session fields of a request. Returns the number of the session, if the fields name
    /// one.
    pub(super) fn place_in_session(
        &self,
        message: Option<&Message>,
        posts: bool,
        fields: &mut Vec<Field>,
    ) -> Option<u32> {
        let revision = self.peer.session_revision();
        let modern = message.is_some_and(|message| message.revision.is_some())
            || revision.is_some_and(|revision| revision.era() == Era::Modern);
        // The stream of the handshake is resumed in the session that its response head named.
        let shakes_hands = posts
            && message
                .and_then(Message::request)
                .is_some_and(|(_, asks)| asks == RequestKind::Initialize);
        // MCP 2026-07-28 changelog#major-changes [SESS-016]
        // MCP 2024-11-05 basic/transports#http-with-sse [LSSE-003]: the session is identified by
        // the URL alone.
        if modern || shakes_hands || !matches!(self.transport, Transport::Streamable) {
            return None;
        }
        // MCP 2025-11-25 basic/transports#protocol-version-header [HDR-001] [HDR-002]
        if let Some(revision) = revision.filter(|revision| *revision >= Revision::V2025_06_18) {
            fields.push((VERSION.into(), ByteString::from_static(revision.as_str())));
        }
        // MCP 2025-11-25 basic/transports#session-management [SESS-004]
        let key = self.legacy.key.as_ref()?;
        fields.push((SESSION_ID.into(), key.0.clone()));
        Some(self.legacy.number)
    }

    /// Handles a request that the server refused because it no longer knows the session.
    // MCP 2025-11-25 basic/transports#session-management [SESS-009]
    pub(super) fn session_ended(&mut self, id: ExchangeId, now: Instant) {
        let Some(exchange) = self.detach(id, now) else { return };
        let request = exchange.message.as_ref().and_then(Message::request);
        if request.is_some_and(|(_, asks)| asks == RequestKind::Initialize) {
            // The stream of the handshake was lost with its session: the same handshake is
            // repeated, without a second one.
            self.legacy.key = None;
            self.peer.observe_session_end();
            self.legacy.number += 1;
            if let Some(message) = exchange.message {
                self.lose(message, now);
            }
            return;
        }
        let failure = TransportFailure::from_status(404, None);
        if self.leave_session(exchange.session, failure, now)
            && let Some(message) = exchange.message
        {
            self.lose(message, now);
        }
    }

    /// Handles a message that the server refused because it no longer knows the session. `answer`
    /// is the error in the refusal, if it has the id of the request.
    // MCP 2025-11-25 basic/transports#session-management [SESS-009]
    pub(super) fn session_refused(
        &mut self,
        message: Message,
        session: Option<u32>,
        answer: Option<ErrorObject<'static>>,
        failure: TransportFailure,
        now: Instant,
    ) {
        // Refused in a new session too: the error concerns the request.
        let again = message.resends >= self.options.limits.resends_max;
        if let (Some(error), Some((id, _)), true) = (answer, message.request(), again)
            && self.peer.is_pending(id)
        {
            self.answer_with(id, error, now);
        }
        if self.leave_session(session, failure, now) {
            self.move_to_new_session(message, now);
        }
    }

    /// Renews a session that the server no longer knows, if it is the current one. Returns `false`
    /// if the limit of attempts is reached.
    fn leave_session(
        &mut self,
        session: Option<u32>,
        failure: TransportFailure,
        now: Instant,
    ) -> bool {
        let current = session == Some(self.legacy.number) && self.legacy.key.is_some();
        !current || self.renew_session(failure, now)
    }

    /// Abandons the session and starts the handshake for another one. Returns `false` if the limit
    /// of attempts is reached.
    fn renew_session(&mut self, failure: TransportFailure, now: Instant) -> bool {
        self.legacy.key = None;
        self.peer.observe_session_end();
        if self.legacy.renewals >= self.options.limits.renewals_max {
            let what = alloc::format!(
                "it does not know the sessions that it opens ({failure}); several nodes must share \
                 their sessions, or have affinity"
            );
            let failure = TransportFailure::InvalidResponse(what.into());
            self.peer.close_because(CloseReason::Transport(failure));
            return false;
        }
        self.legacy.renewals += 1;
        self.legacy.number += 1;
        self.send_state = SendState::Opening;
        self.forget_listening();
        // Responses and cancellations belong to the session that has ended.
        self.drop_answers();
        let pauses = core::mem::take(&mut self.exchanges.pauses).into_iter();
        let (again, lost): (Vec<_>, Vec<_>) = pauses.partition(|pause| pause.again);
        self.exchanges.pauses = again;
        for pause in lost {
            if let Some(message) = pause.message {
                self.lose(message, now);
            }
        }
        // Exchanges without a response head are kept: if they are refused too, they did not run. A
        // handshake that named the lost session is repeated.
        let streams = self.exchanges.all(|exchange| {
            matches!(exchange.receiving, Receiving::Events(_))
                || (exchange.purpose == Purpose::Resume && exchange.message.is_some())
                || (matches!(exchange.receiving, Receiving::Json(_)) && exchange.opens_session())
        });
        for id in streams {
            if let Some(message) = self.abort(id).and_then(|exchange| exchange.message) {
                self.lose(message, now);
            }
        }
        self.peer.reopen(now);
        true
    }

    /// Drops the unsent messages that have a meaning only in a session that has ended.
    pub(super) fn drop_answers(&mut self) {
        self.queue.drop_answers();
        let belongs = |pause: &Pause| pause.message.as_ref().is_some_and(Message::is_of_session);
        self.exchanges.pauses.retain(|pause| !belongs(pause));
    }

    /// Returns whether a number is that of a session that has ended.
    pub(super) fn is_over(&self, session: Option<u32>) -> bool {
        session.is_some_and(|number| number != self.legacy.number)
    }

    /// Sends the message of a refused exchange in the next session, because it never ran.
    pub(super) fn move_to_new_session(&mut self, mut message: Message, now: Instant) {
        match message.request() {
            Some((id, _)) if self.peer.is_pending(id) => {
                if message.resends >= self.options.limits.resends_max {
                    let failure = Failure::Transport(TransportFailure::SessionLost);
                    return self.peer.fail_call(id, failure, now);
                }
                message.resends += 1;
                self.queue.push_first(message);
            }
            Some(_) => {}
            None => self.delivery_failed(&message, TransportFailure::SessionLost),
        }
    }

    /// Handles a request that was in flight in a session that has ended; it is unknown whether it
    /// ran.
    pub(super) fn lose(&mut self, mut message: Message, now: Instant) {
        let Some((id, _)) = message.request().filter(|(id, _)| self.peer.is_pending(*id)) else {
            return;
        };
        // Requests of the machine itself may run twice.
        let repeats = self.options.lost_session == LostSession::RepeatCalls
            || !self.peer.is_from_application(id);
        if repeats && message.resends < self.options.limits.resends_max {
            message.resends += 1;
            self.queue.push_back(message);
        } else {
            let failure = Failure::Transport(TransportFailure::SessionLost);
            self.peer.fail_call(id, failure, now);
        }
    }

    /// Handles the opening of the connection at `revision`, in the first or in a new session.
    pub(super) fn session_opened(&mut self, revision: Revision) {
        self.send_state = match revision.era() {
            Era::Modern => SendState::Open,
            // MCP 2025-11-25 basic/lifecycle#initialization [LIFE-003]: exchanges can overtake each
            // other, so later messages wait until the server has accepted the notification.
            Era::Legacy => SendState::Acknowledging,
        };
    }

    /// The server has accepted `notifications/initialized`, or its delivery has failed.
    pub(super) fn acknowledged(&mut self, now: Instant) {
        if self.send_state != SendState::Acknowledging {
            return;
        }
        self.send_state = SendState::Open;
        let revision = self.peer.session_revision();
        let listens = revision.is_some_and(|revision| revision >= Revision::V2025_03_26)
            && matches!(self.transport, Transport::Streamable)
            && self.options.listen
            && self.listening != Listening::NotOffered;
        if listens {
            self.listen(now);
            self.send_state = SendState::Listening(now + self.options.limits.listening_wait);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn a_session_key_is_visible_ascii_and_hidden_in_debug_output() {
        // Rule: [SESS-003] [SESS-005].
        let key = SessionKey::parse(b"!secret~", 8).unwrap();
        assert_eq!(&*key.0, "!secret~");
        assert!(!format!("{key:?}").contains("secret"));
        for text in [&b""[..], b"a b", b"a\tb", b"a\x7f", b"\xc3\xa9", b"a\r\nb", b"too long!"] {
            assert!(SessionKey::parse(text, 8).is_err(), "{}", text.escape_ascii());
        }
    }
}

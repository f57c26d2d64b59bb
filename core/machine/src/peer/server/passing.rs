//! How received messages pass the middleware of a server.

use mcp_sansio_collections::Key;

use crate::Instant;
use crate::jsonrpc::{ErrorObject, NotificationMessage, RawJson, RequestMessage};
use crate::peer::connection::Flow;
use crate::peer::event::Event;
use crate::peer::metadata::{CLIENT_CAPABILITIES, PROTOCOL_VERSION};
use crate::peer::middleware::PeerContext;
use crate::peer::requests::ReplyTo;
use crate::peer::{Exchanged, Passed};
use crate::protocol::Capabilities;
use crate::{Era, Revision};

use super::Server;

impl Server {
    // MCP 2026-07-28 extensions:SEP-3371-summary#3-middleware [EXT-028] [EXT-029]
    pub(super) fn receive_through_middleware<'f>(
        &mut self,
        message: RequestMessage<'f>,
        reply: ReplyTo,
    ) -> Flow<'f> {
        let caller = self.caller.clone();
        let mut peer = self.peer_context(message.params.as_ref());
        peer.caller = Some(&caller);
        let (id, params) = (&message.id, message.params.as_ref());
        let passed = self.connection.pass_request(id, &message.method, params, peer);
        let RequestMessage { id, method, params } = message;
        let flow = match passed {
            Exchanged::Unchanged => self.receive_passed_request(id, method, params, None, reply),
            Exchanged::Changed(changed) => {
                // It is read like text of the frame.
                let params = Some(RawJson::trusted(changed.as_str()));
                owned(self.receive_passed_request(id, method, params, None, reply))
            }
            Exchanged::Refused(error) => {
                self.answer_refusal(&id, &error, reply);
                Ok(None)
            }
        };
        self.connection.end_passing();
        flow
    }

    pub(super) fn notice_through_middleware<'f>(
        &mut self,
        message: NotificationMessage<'f>,
        now: Instant,
    ) -> Flow<'f> {
        let mut peer = self.peer_context(message.params.as_ref());
        peer.caller = Some(&self.caller);
        match self.connection.pass_received(&message.method, message.params.as_ref(), peer) {
            Passed::Unchanged => self.receive_passed_notification(message, now),
            Passed::Changed(changed) => {
                let params = Some(RawJson::trusted(changed.json().as_str()));
                let message = NotificationMessage { method: message.method, params };
                owned(self.receive_passed_notification(message, now))
            }
            Passed::Dropped => Ok(None),
        }
    }

    pub(super) fn answer_through_middleware<'f>(
        &mut self,
        key: Key,
        outcome: Result<RawJson<'f>, ErrorObject<'f>>,
        now: Instant,
    ) -> Flow<'f> {
        let Some(call) = self.connection.calls.get(key) else { return Ok(None) };
        match self.connection.pass_answer(call.id, call.method, &outcome) {
            Exchanged::Unchanged => self.receive_passed_response(key, outcome, now),
            Exchanged::Changed(changed) => {
                let result = RawJson::trusted(changed.as_str());
                owned(self.receive_passed_response(key, Ok(result), now))
            }
            Exchanged::Refused(error) => self.receive_passed_response(key, Err(error), now),
        }
    }

    /// Returns the revision and the capabilities of the client that has sent a message.
    fn peer_context(&self, params: Option<&RawJson<'_>>) -> PeerContext<'static> {
        let meta = params.and_then(|params| params.get("_meta"));
        let named = |meta: &RawJson<'_>| Revision::parse(&meta.get(PROTOCOL_VERSION)?.to_text()?);
        if let Some(meta) = &meta
            && let Some(revision) = named(meta).filter(|it| it.era() == Era::Modern)
        {
            let declared = meta.get(CLIENT_CAPABILITIES);
            let capabilities = declared.and_then(|declared| {
                Capabilities::from_checked_client_json(declared.as_str(), revision).ok()
            });
            return PeerContext { caller: None, revision: Some(revision), capabilities };
        }
        let session = self.session.as_ref();
        PeerContext {
            caller: None,
            revision: session.map(|session| session.revision),
            capabilities: session.map(|session| session.client),
        }
    }
}

/// Makes an event independent of the changed message.
fn owned<'f>(flow: Flow<'_>) -> Flow<'f> {
    flow.map(|event| event.map(Event::into_owned))
}

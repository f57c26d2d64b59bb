//! How received messages pass the middleware of a server.

use mcp_sansio_collections::Key;

use crate::Instant;
use crate::gate::metadata::{Metadata, Read};
use crate::jsonrpc::resolved;
use crate::jsonrpc::{ErrorObject, NotificationMessage, RawJson, RequestMessage};
use crate::peer::Exchanged;
use crate::peer::connection::Flow;
use crate::peer::middleware::PeerContext;
use crate::peer::passing::owned;
use crate::peer::requests::ReplyTo;
use crate::protocol::Capabilities;
use crate::{Era, Revision};

use super::{Reading, Server};

impl Server {
    // MCP 2026-07-28 extensions:SEP-3371-summary#3-middleware [EXT-028] [EXT-029]
    pub(super) fn receive_through_middleware<'f>(
        &mut self,
        message: RequestMessage<'f>,
        (read, reading): (Option<&mut Read<'f>>, Option<&mut Reading>),
        reply: ReplyTo,
    ) -> Flow<'f> {
        let caller = self.caller.clone();
        let metadata = read.as_ref().and_then(|read| read.as_ref().ok());
        let mut peer = match &reading {
            Some(Reading { declared: Ok((revision, capabilities)), .. }) => PeerContext {
                caller: None,
                revision: Some(*revision),
                capabilities: Some(*capabilities),
            },
            _ => self.peer_context(metadata),
        };
        peer.caller = Some(&caller);
        let (id, params) = (&message.id, message.params.as_ref());
        let passed = self.connection.pass_request(id, &message.method, params, peer);
        let RequestMessage { id, method, params } = message;
        let flow = match passed {
            Exchanged::Unchanged => {
                self.receive_passed_request(id, method, params, (read, reading), reply)
            }
            Exchanged::Changed(changed) => {
                // It is read like text of the frame.
                let params = Some(RawJson::trusted(changed.as_str()));
                owned(self.receive_passed_request(id, method, params, (None, None), reply))
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
        let metadata = message.params.as_ref().and_then(|params| Metadata::read(params).ok());
        let mut peer = self.peer_context(metadata.as_ref());
        peer.caller = Some(&self.caller);
        let passed = self.connection.pass_received(&message.method, message.params.as_ref(), peer);
        passed.receive(message, |message| self.receive_passed_notification(message, now))
    }

    pub(super) fn answer_through_middleware<'f>(
        &mut self,
        key: Key,
        outcome: Result<RawJson<'f>, ErrorObject<'f>>,
        now: Instant,
    ) -> Flow<'f> {
        let Some(call) = self.connection.calls.get(key) else { return Ok(None) };
        let passed = self.connection.pass_answer(call.id, call.method, &outcome);
        passed.receive(outcome, |outcome| self.receive_passed_response(key, outcome, now))
    }

    /// Returns the revision and the capabilities of the client that has sent a message.
    fn peer_context(&self, metadata: Option<&Metadata<'_>>) -> PeerContext<'static> {
        // A prefix that was compared and not parsed is that of the last declaration.
        if let Some(last) = &self.last_declared
            && metadata.is_some_and(|metadata| metadata.prefix_matched)
        {
            let (revision, capabilities) = (Some(last.revision), Some(last.capabilities));
            return PeerContext { caller: None, revision, capabilities };
        }
        let named = |it: &Metadata<'_>| Revision::parse(&resolved(it.protocol_version?));
        if let Some(metadata) = metadata
            && let Some(revision) = named(metadata).filter(|it| it.era() == Era::Modern)
        {
            let declared = metadata.client_capabilities;
            let capabilities =
                declared.and_then(|declared| Capabilities::from_client(declared, revision).ok());
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

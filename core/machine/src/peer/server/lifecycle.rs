use alloc::string::String;
use alloc::vec::Vec;

use crate::binding::Binding;
use crate::envelope::JsonText;
use crate::gate::metadata::SERVER_INFO;
use crate::gate::{Handshake, Refusal};
use crate::jsonrpc::{AsJson, ErrorObject, Json, RawJson};
use crate::peer::calls::Purpose;
use crate::peer::connection::Flow;
use crate::peer::event::{Event, Failure, Opened};
use crate::peer::requests::InFlight;
use crate::protocol::{
    AtRevision, Capabilities, DiscoverResult, Implementation, InitializeResult, LoggingLevel,
    WriteJsonAt,
};
use crate::{Era, Instant, Revision, Revisions};

use super::declared::fault_of;
use super::receive::Incoming;
use super::result_body::Contents;
use super::subscriptions::SubscribedUris;
use super::{Server, ServerSession};

/// Minimum level of log messages for a client that has not set one. The server may choose it.
// MCP 2025-11-25 schema.json#SetLevelRequest [LOG-004]
const LOG_LEVEL_UNASKED: LoggingLevel = LoggingLevel::Info;

impl Server {
    // MCP 2025-11-25 basic/lifecycle#initialization [LIFE-001] [LIFE-002]
    pub(super) fn initialize<'f>(&mut self, incoming: &Incoming<'_, 'f>) -> Flow<'f> {
        let legacy = self.config.revisions.intersection(Revisions::LEGACY);
        let Some(newest) = legacy.latest() else {
            let refusal = Refusal::NoHandshake { supported: self.config.revisions };
            self.answer_refusal(&incoming.id, &refusal.into(), incoming.reply);
            return Ok(None);
        };
        if incoming.reply.batch.is_some() {
            // MCP 2025-03-26 basic/lifecycle#initialization [BATCH-004]
            let what = "`initialize` cannot be part of a batch";
            let error = ErrorObject::invalid_request(what);
            self.answer_refusal(&incoming.id, &error, incoming.reply);
            return self.connection.out_of_place(what);
        }
        let given = Handshake::read(incoming.params.view());
        let complete = !self.connection.config.policy.accept_incomplete_initialize;
        if let Some(what) = given.fault(complete) {
            return self.refuse_initialize(incoming, Refusal::InvalidParams(what));
        }
        let (revision, client) = match given.negotiate(legacy, newest) {
            Ok(negotiated) => negotiated,
            Err(refusal) => return self.refuse_initialize(incoming, refusal),
        };
        self.end_session();
        let declared = self.declared(revision);
        let server = Capabilities::of_server(&declared, revision);
        let mut result = InitializeResult::new(
            revision.as_str(),
            declared,
            self.config.identity.implementation.clone(),
        );
        result.instructions = self.config.identity.instructions.clone();
        self.session = Some(ServerSession {
            revision,
            initialized: false,
            client,
            server,
            client_info: RawJson::from(given.client_info.unwrap_or(JsonText::NULL)).into(),
            // MCP 2025-11-25 extensions:SEP-2133#negotiation [EXT-011]: as sent.
            client_extensions: (self.config.identity.capabilities.extensions.is_some())
                .then(|| RawJson::from(given.capabilities?).get("extensions").map(Json::from))
                .flatten(),
            log_level: LOG_LEVEL_UNASKED,
            subscribed: SubscribedUris::with_hasher(self.connection.requests.hasher()),
        });
        if self.connection.binding == Binding::ByteStream {
            self.set_session_key(self.session_key());
        }
        self.connection.observed.opened(revision);
        self.answer_initialize(&incoming.id, &AtRevision(&result, revision), incoming.reply);
        Ok(None)
    }

    /// Ends the session with its calls and requests, if there is one: the client opens another. A
    /// proxy that serves several clients one after the other does so for each of them.
    fn end_session(&mut self) {
        if self.session.take().is_none() {
            return;
        }
        // Its client cannot answer any more.
        let mut slot = 0;
        while let Some(key) = self.connection.calls.first_from(slot) {
            slot = key.slot + 1;
            let Some(call) = self.connection.calls.remove(key) else { break };
            if call.purpose == Purpose::Application {
                self.connection.end_call(key, Failure::ConnectionLost);
            } else {
                self.connection.observed.call_ended(key, &Failure::ConnectionLost);
            }
        }
        // Responses that were collected for it.
        self.batches = None;
        let is_of_session = |entry: &InFlight| entry.revision.era() == Era::Legacy;
        let mut slot = 0;
        while let Some(key) = self.connection.requests.find_from(slot, is_of_session) {
            slot = key.slot + 1;
            // No call is left whose response could be late, so the time does not matter.
            let event = self.give_up_request(key, None, Instant::ZERO);
            self.connection.events.extend(event);
        }
        self.forget_pending();
        self.connection.stop_keep_alive();
        self.connection.observed.session_ended();
        self.replace_session_key();
    }

    fn refuse_initialize<'f>(
        &mut self,
        incoming: &Incoming<'_, 'f>,
        refusal: Refusal<'static>,
    ) -> Flow<'f> {
        self.answer_refusal(&incoming.id, &refusal.into(), incoming.reply);
        self.connection.bad_parameters(crate::protocol::Method::Initialize, fault_of(&refusal))
    }

    // MCP 2026-07-28 server/discover#response [DISC-001], MCP 2026-07-28 schema.json#DiscoverResult
    // [DISC-002], MCP 2026-07-28 basic/versioning#protocol-version-negotiation [DISC-004]
    pub(super) fn answer_discover(&mut self, incoming: &Incoming<'_, '_>) {
        let versions: Vec<String> =
            self.config.revisions.iter().rev().map(|revision| revision.as_str().into()).collect();
        let mut result = DiscoverResult::new(versions, self.declared(incoming.revision));
        result.instructions = self.config.identity.instructions.clone();
        let result = result.cached(self.config.identity.cache.clone());
        let result = AsJson(&AtRevision(&result, incoming.revision));
        self.answer_by_machine(incoming, &result, Contents::Any);
    }

    /// Returns whether the client has confirmed the session.
    pub(crate) fn is_initialized(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.initialized)
    }

    /// Returns whether any enabled revision belongs to `era`.
    pub(super) fn speaks(&self, era: Era) -> bool {
        self.config.revisions.speaks(era)
    }

    // MCP 2025-11-25 basic/lifecycle#initialization [LIFE-003]
    pub(super) fn initialized<'f>(&mut self, now: Instant) -> Flow<'f> {
        match &mut self.session {
            Some(session) if !session.initialized => {
                session.initialized = true;
                let revision = session.revision;
                self.connection.start_keep_alive(revision, now);
                Ok(Some(Event::Opened(Opened { revision })))
            }
            // MCP 2025-11-25 basic/lifecycle#initialization [LIFE-003]: already confirmed. A client
            // may repeat the notification, for example because it received no response to its POST.
            Some(_) => Ok(None),
            None => {
                self.connection.out_of_place("`notifications/initialized` without `initialize`")
            }
        }
    }
}

// MCP 2026-07-28 basic/index#_meta [META-011]
pub(super) fn identity_meta(identity: &Implementation) -> String {
    // Enough if it has nothing but its name and version.
    let Implementation { name, version, .. } = identity;
    let length = SERVER_INFO.len() + name.len() + version.len() + 27;
    let mut member = String::with_capacity(length);
    for text in ["\"", SERVER_INFO, "\":"] {
        member.push_str(text);
    }
    identity.write_json_at(Revision::LATEST, &mut member).expect("an identity is JSON");
    member
}

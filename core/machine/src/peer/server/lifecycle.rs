use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use hashbrown::HashSet;

use crate::binding::Binding;
use crate::jsonrpc::{AsJson, ErrorCode, ErrorObject, Json, RawJson};
use crate::peer::calls::Purpose;
use crate::peer::connection::Flow;
use crate::peer::event::{Event, Failure, Opened, Violation};
use crate::peer::metadata::{SERVER_INFO, text};
use crate::peer::policy::IncompleteInitialize;
use crate::peer::requests::InFlight;
use crate::protocol::{
    AtRevision, Capabilities, DiscoverResult, Implementation, InitializeResult, LoggingLevel,
    WriteJsonAt,
};
use crate::{Era, Instant, Revision, Revisions};

use super::receive::Incoming;
use super::result_body::Contents;
use super::{Server, ServerConfig, ServerSession};

/// Minimum level of log messages for a client that has not set one. The server may choose it.
// MCP 2025-11-25 schema.json#SetLevelRequest [LOG-004]
const LOG_LEVEL_UNASKED: LoggingLevel = LoggingLevel::Info;

impl Server {
    // MCP 2025-11-25 basic/lifecycle#initialization [LIFE-001] [LIFE-002]
    pub(super) fn initialize<'f>(&mut self, incoming: &Incoming<'_, 'f>) -> Flow<'f> {
        let legacy = self.config.revisions.intersection(Revisions::LEGACY);
        let Some(newest) = legacy.latest() else {
            self.answer_refusal(&incoming.id, &self.no_handshake(), incoming.reply);
            return Ok(None);
        };
        if incoming.reply.batch.is_some() {
            // MCP 2025-03-26 basic/lifecycle#initialization [BATCH-004]
            let what = "`initialize` cannot be part of a batch";
            let error = ErrorObject::invalid_request(what);
            self.answer_refusal(&incoming.id, &error, incoming.reply);
            let violation = Violation::OutOfPlace(what);
            return self.connection.violation(self.connection.config.policy.forbidden, violation);
        }
        let (mut version, mut capabilities, mut client_info) = (None, None, None);
        for member in incoming.params.walk() {
            if member.value == RawJson::NULL {
                continue;
            }
            match &*member.name() {
                "protocolVersion" => version = Some(member.value),
                "capabilities" => capabilities = Some(member.value),
                "clientInfo" => client_info = Some(member.value),
                _ => {}
            }
        }
        let given = InitializeMembers { version, capabilities, client_info };
        if let Some(what) = given.fault(self.connection.config.policy.incomplete_initialize) {
            return self.refuse_initialize(incoming, what);
        }
        let InitializeMembers { version, capabilities, client_info } = given;
        let version = version.as_ref().and_then(text).unwrap_or_default();
        // MCP 2025-11-25 basic/lifecycle#version-negotiation [VER-003] [VER-004] [VER-005],
        // MCP 2025-11-25 learn-versioning#negotiation [VER-007]
        let revision = Revision::parse(&version).filter(|r| legacy.contains(*r)).unwrap_or(newest);
        let declared = capabilities.as_ref().map_or("{}", RawJson::as_str);
        let Ok(client) = Capabilities::from_checked_client_json(declared, revision) else {
            return self.refuse_initialize(incoming, "`capabilities` is not valid");
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
            client_info: client_info.unwrap_or(RawJson::NULL).into(),
            // MCP 2025-11-25 extensions:SEP-2133#negotiation [EXT-011]: as sent.
            client_extensions: (self.config.identity.capabilities.extensions.is_some())
                .then(|| capabilities.as_ref()?.get("extensions"))
                .flatten()
                .map(Json::from),
            log_level: LOG_LEVEL_UNASKED,
            subscribed: HashSet::with_hasher(self.connection.requests.hasher()),
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
        what: &'static str,
    ) -> Flow<'f> {
        let error = ErrorObject::invalid_params(what);
        self.answer_refusal(&incoming.id, &error, incoming.reply);
        self.bad_parameters(crate::protocol::Method::Initialize, what)
    }

    /// Returns the error of a server without the handshake for a client that needs it. The client
    /// cannot continue, so the message is for people.
    // MCP 2026-07-28 basic/versioning#backward-compatibility-with-initialization-based-versions
    // [VER-017] [LIFE-020]
    fn no_handshake(&self) -> ErrorObject<'static> {
        let supported = spelled(self.config.revisions);
        ErrorObject::new(
            ErrorCode::METHOD_NOT_FOUND,
            format!("this server does not support `initialize`; supported revisions: {supported}"),
        )
        .with_data(RawJson::trusted_shared(format!(r#"{{"supported":{supported}}}"#).into()))
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
        let of_era = match era {
            Era::Legacy => Revisions::LEGACY,
            Era::Modern => Revisions::MODERN,
        };
        !self.config.revisions.intersection(of_era).is_empty()
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
                let violation =
                    Violation::OutOfPlace("`notifications/initialized` without `initialize`");
                self.connection.violation(self.connection.config.policy.forbidden, violation)
            }
        }
    }
}

impl ServerConfig {
    pub(super) fn unsupported_version(&self, requested: &str) -> ErrorObject<'static> {
        let requested = Json::from_serialize(requested).expect("a string is JSON");
        let supported = spelled(self.revisions);
        let data = format!(r#"{{"supported":{supported},"requested":{}}}"#, requested.as_str());
        ErrorObject::new(ErrorCode::UNSUPPORTED_PROTOCOL_VERSION, "unsupported protocol version")
            .with_data(RawJson::trusted_shared(data.into()))
    }
}

/// The members of an `initialize` that all legacy revisions require.
struct InitializeMembers<'f> {
    version: Option<RawJson<'f>>,
    capabilities: Option<RawJson<'f>>,
    client_info: Option<RawJson<'f>>,
}

impl InitializeMembers<'_> {
    /// Returns the missing or wrongly typed member, if any.
    // MCP 2025-11-25 basic/lifecycle#initialization [LIFE-001]
    fn fault(&self, incomplete: IncompleteInitialize) -> Option<&'static str> {
        let (mut name, mut client_version) = (None, None);
        for member in self.client_info.iter().flat_map(RawJson::walk) {
            if member.value == RawJson::NULL {
                continue;
            }
            match &*member.name() {
                "name" => name = Some(member.value),
                "version" => client_version = Some(member.value),
                _ => {}
            }
        }
        let begins_otherwise = |value: &Option<RawJson<'_>>, first: char| {
            value.as_ref().is_some_and(|value| !value.as_str().starts_with(first))
        };
        let no_string = |value| begins_otherwise(value, '"');
        let no_object = |value| begins_otherwise(value, '{');
        // An empty array is an empty object, as everywhere in capabilities.
        let empty = self.capabilities.as_ref().is_some_and(RawJson::is_empty_array);
        let faults = [
            (no_string(&self.version), "`protocolVersion` is not a string"),
            (no_object(&self.capabilities) && !empty, "`capabilities` is not an object"),
            (no_object(&self.client_info), "`clientInfo` is not an object"),
            (no_string(&name), "`clientInfo.name` is not a string"),
            (no_string(&client_version), "`clientInfo.version` is not a string"),
        ];
        let absent = [
            (self.version.is_none(), "`protocolVersion` is missing"),
            (self.capabilities.is_none(), "`capabilities` is missing"),
            (self.client_info.is_none(), "`clientInfo` is missing"),
            (name.is_none(), "`clientInfo.name` is missing"),
            (client_version.is_none(), "`clientInfo.version` is missing"),
        ];
        let first = |faults: &[(bool, &'static str)]| {
            faults.iter().find_map(|(is_so, what)| is_so.then_some(*what))
        };
        let refused = incomplete == IncompleteInitialize::Refuse;
        first(&faults).or_else(|| first(&absent).filter(|_| refused))
    }
}

/// Returns the set as a JSON array, newest first.
fn spelled(revisions: Revisions) -> String {
    let mut text = String::from("[");
    for revision in revisions.iter().rev() {
        if text.len() > 1 {
            text.push(',');
        }
        text.push('"');
        text.push_str(revision.as_str());
        text.push('"');
    }
    text.push(']');
    text
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

//! How a client opens its connection: detecting the server's era and negotiating a revision.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use crate::gate::metadata::{CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION, SERVER_INFO};
use crate::jsonrpc::{AsJson, ErrorCode, ErrorObject, Json, RawJson, WriteJson, write_string};
use crate::peer::calls::{Call, Purpose};
use crate::peer::connection::Flow;
use crate::peer::error::OpeningFailure;
use crate::peer::event::{CloseReason, Event, Opened};
use crate::peer::method_name::MethodName;
use crate::peer::outbox::{Channel, Lane};
use crate::peer::outgoing::{CallOptions, FixedMeta, MetaParts, Outgoing};
use crate::peer::queue::Tag;
use crate::protocol::{
    AtRevision, Capabilities, ClientCapabilities, InitializeParams, Method, SerializeAt,
};
use crate::{Era, Instant, Revision, Revisions};

use super::{Client, ClientSession};

/// State of the opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// `server/discover` is pending.
    Probing(Revision),
    /// `initialize` is pending.
    Initializing(Initializing),
    /// The connection is open, or closed.
    Over,
}

/// State of a pending `initialize`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Initializing {
    pub(super) revision: Revision,
    /// Whether the legacy era is only a guess, because the server did not answer or was legacy
    /// before. If it refuses the handshake, it is probed.
    pub(super) guessed: bool,
    /// Whether the revision was taken from the server's own list, so there is no other one to try.
    pub(super) told: bool,
}

impl Client {
    pub(super) fn open(&mut self, known_era: Option<Era>, now: Instant) {
        self.is_not_legacy = false;
        let modern = self.revisions.intersection(Revisions::MODERN).latest();
        let legacy = self.newest_legacy();
        match (modern, legacy) {
            (_, Some(revision)) if known_era == Some(Era::Legacy) || modern.is_none() => {
                let guessed = modern.is_some();
                self.send_initialize(Initializing { revision, guessed, told: false }, now);
            }
            // MCP 2026-07-28 basic/transports/stdio#backward-compatibility [VER-019] [VER-024]
            (Some(revision), _) => self.send_discover(revision, now),
            (None, _) => self.fail_opening(OpeningFailure::NoCommonRevision(empty_list())),
        }
    }

    /// Returns the revisions that this attempt to open the connection may still use.
    const fn possible_revisions(&self) -> Revisions {
        if self.is_not_legacy {
            self.revisions.intersection(Revisions::MODERN)
        } else {
            self.revisions
        }
    }

    /// Returns the revisions in an error of the server that this client may use.
    pub(crate) fn revisions_in_common(&self, error: &ErrorObject<'_>) -> Revisions {
        let listed = supported(error).as_ref().and_then(revisions_in);
        listed.unwrap_or(Revisions::NONE).intersection(self.possible_revisions())
    }

    pub(super) fn newest_legacy(&self) -> Option<Revision> {
        self.possible_revisions().intersection(Revisions::LEGACY).latest()
    }

    /// Opens with the handshake on a new stream, after the probe may have ended the previous one.
    /// The server is probed again only if it refuses the handshake.
    // MCP 2026-07-28 basic/transports/stdio#backward-compatibility [VER-022]: an exit is not the
    // answer of a modern server.
    pub(super) fn open_as_legacy(&mut self, now: Instant) -> bool {
        let initializing = match (self.state, self.newest_legacy()) {
            (State::Probing(_), Some(revision)) => {
                Initializing { revision, guessed: true, told: false }
            }
            // The server answered the probe or kept silent, and still ended the stream.
            (State::Initializing(initializing), _) => initializing,
            _ => return false,
        };
        if !self.connection.binding.can_reopen() || !core::mem::take(&mut self.probed) {
            return false;
        }
        // Only requests of the opening are pending, and subscriptions of a resumed connection.
        self.lose_calls();
        self.connection.requests.clear();
        self.connection.outbox.clear();
        self.send_initialize(initializing, now);
        true
    }

    fn send_discover(&mut self, revision: Revision, now: Instant) {
        self.state = State::Probing(revision);
        self.probed = true;
        self.request_meta = Some(self.modern_meta(revision));
        let binding = self.connection.binding;
        self.connection.cancels_by_closing = binding.cancels_by_closing();
        let timeout = if self.newest_legacy().is_some() && binding.silence_means_legacy() {
            self.connection.config.timeouts.probe
        } else {
            self.connection.config.timeouts.opening
        };
        self.send_opening(Method::Discover, &RawJson::EMPTY_OBJECT, timeout, now);
    }

    // MCP 2025-11-25 basic/lifecycle#initialization [LIFE-001] [VER-001] [VER-002]
    pub(super) fn send_initialize(&mut self, initializing: Initializing, now: Instant) {
        self.state = State::Initializing(initializing);
        self.connection.cancels_by_closing = false;
        self.request_meta = None;
        let revision = initializing.revision;
        let params = InitializeParams::new(
            revision.as_str(),
            self.capabilities_at(revision),
            self.identity.implementation.clone(),
        );
        let timeout = self.connection.config.timeouts.opening;
        self.send_opening(
            Method::Initialize,
            &AsJson(&AtRevision(&params, revision)),
            timeout,
            now,
        );
    }

    fn send_opening(
        &mut self,
        method: Method,
        params: &dyn WriteJson,
        timeout: core::time::Duration,
        now: Instant,
    ) {
        let options = CallOptions::default().timeout(timeout).timeout_hard(timeout);
        let parts = MetaParts { fixed: self.request_meta.as_ref(), ..MetaParts::default() };
        let method = MethodName::Known(method);
        let outgoing = Outgoing { parts, ..Outgoing::new(&method, Purpose::Opening) };
        let started = self.connection.start_call(outgoing, params, &options, None, now);
        if started.is_err() {
            self.fail_opening(OpeningFailure::InvalidAnswer("the opening cannot be written"));
        }
    }

    /// Writes the members of `_meta` that mark a request as modern.
    // MCP 2026-07-28 basic/versioning#protocol-version-negotiation [VER-011],
    // MCP 2026-07-28 basic/index#_meta [META-008] [META-010],
    // MCP 2026-07-28 client/roots#capabilities [CAP-008],
    // MCP 2026-07-28 client/sampling#capabilities [CAP-010],
    // MCP 2026-07-28 client/elicitation#capabilities [CAP-012]
    // MCP 2026-07-28 basic/transports/stdio#request-metadata [STDIO-014]
    fn modern_meta(&self, revision: Revision) -> FixedMeta {
        let mut out = String::new();
        write_string(&mut out, PROTOCOL_VERSION);
        out.push(':');
        write_string(&mut out, revision.as_str());
        let identity =
            (!self.identity.anonymous).then(|| self.identity.implementation.to_json_at(revision));
        let parts = [
            (CLIENT_INFO, identity),
            (CLIENT_CAPABILITIES, Some(self.identity.capabilities.to_json_at(revision))),
        ];
        for (key, value) in parts {
            if let Some(Ok(value)) = value {
                out.push(',');
                write_string(&mut out, key);
                out.push(':');
                out.push_str(value.as_str());
            }
        }
        // The text is kept as long as the connection and does not grow further.
        out.shrink_to_fit();
        FixedMeta { revision, text: out }
    }

    // ------------------------------------------------------------------ answers

    pub(super) fn opening_answered<'f>(
        &mut self,
        outcome: Result<RawJson<'f>, ErrorObject<'f>>,
        now: Instant,
    ) -> Flow<'f> {
        match (self.state, outcome) {
            (State::Probing(_), Ok(result)) => self.discovered(&result, now),
            (State::Probing(asked), Err(error)) => {
                self.probe_refused(asked, &error, now);
                Ok(None)
            }
            (State::Initializing(initializing), Ok(result)) => {
                self.initialized(initializing, &result, now)
            }
            (State::Initializing(initializing), Err(error)) => {
                self.initialize_refused(initializing, error, now);
                Ok(None)
            }
            (State::Over, _) => Ok(None),
        }
    }

    pub(super) fn opening_timed_out(&mut self, call: &Call, now: Instant) {
        // Not cancelled: a legacy server must not receive a cancellation before the handshake, and
        // `initialize` is never cancelled.
        self.connection.calls.bury(call.id, &self.connection.config.limits, now);
        let silence_means_legacy = self.connection.binding.silence_means_legacy();
        match (self.state, self.newest_legacy()) {
            // MCP 2026-07-28 basic/transports/stdio#backward-compatibility [VER-022]
            (State::Probing(_), Some(revision)) if silence_means_legacy => {
                let initializing = Initializing { revision, guessed: true, told: false };
                self.send_initialize(initializing, now);
            }
            _ => self.fail_opening(OpeningFailure::TimedOut),
        }
    }

    // MCP 2026-07-28 basic/transports/stdio#backward-compatibility [VER-020],
    // MCP 2026-07-28 server/discover#discoverresult [DISC-003]
    fn discovered<'f>(&mut self, result: &RawJson<'f>, now: Instant) -> Flow<'f> {
        let (mut versions, mut capabilities, mut info, mut instructions) = (None, None, None, None);
        for member in result.walk() {
            match &*member.name() {
                "supportedVersions" => versions = Some(member.value),
                "capabilities" => capabilities = Some(member.value),
                "instructions" => instructions = member.value.to_text().map(String::from),
                "_meta" => info = member.value.get(SERVER_INFO).map(Json::from),
                _ => {}
            }
        }
        let listed = versions.as_ref().and_then(revisions_in);
        let (Some(listed), Some(versions)) = (listed, versions) else {
            if self.newest_legacy().is_none() && self.handshake_refused.is_none() {
                let what = "`supportedVersions` is not a list of strings";
                self.fail_opening(OpeningFailure::InvalidAnswer(what));
            } else {
                // The peer is not a modern server.
                self.fall_back(now);
            }
            return Ok(None);
        };
        let common = listed.intersection(self.possible_revisions());
        let Some(revision) = common.intersection(Revisions::MODERN).latest() else {
            self.choose_legacy(common, &versions, now);
            return Ok(None);
        };
        let declared = capabilities.unwrap_or(RawJson::EMPTY_OBJECT);
        let server = match Capabilities::from_server(declared.view(), revision) {
            Ok(server) => server,
            Err(invalid) => {
                self.fail_opening(OpeningFailure::InvalidCapabilities(invalid));
                return Ok(None);
            }
        };
        if self.state != State::Probing(revision) {
            self.request_meta = Some(self.modern_meta(revision));
        }
        let session = ClientSession {
            revision,
            client: self.own_capabilities(revision),
            server,
            server_info: info,
            server_capabilities: declared.into(),
            instructions,
        };
        Ok(Some(self.opened(session, now)))
    }

    // MCP 2026-07-28 basic/versioning#protocol-version-negotiation [VER-013],
    // MCP 2026-07-28 basic/transports/stdio#backward-compatibility [VER-021] [VER-023]
    fn probe_refused(&mut self, asked: Revision, error: &ErrorObject<'_>, now: Instant) {
        if !error.code.is_modern_error() {
            self.fall_back(now);
            return;
        }
        let (Some(listed), ErrorCode::UNSUPPORTED_PROTOCOL_VERSION) =
            (supported(error), error.code)
        else {
            self.fail_opening(OpeningFailure::Refused(error.clone().into_owned()));
            return;
        };
        let common = self.revisions_in_common(error);
        match common.intersection(Revisions::MODERN).latest() {
            Some(revision) if revision != asked => self.send_discover(revision, now),
            // Refused without a reason: the next request may reach another server.
            Some(revision) if self.connection.binding.requests_may_diverge() && !self.insisted => {
                self.insisted = true;
                self.send_discover(revision, now);
            }
            Some(_) => {
                self.fail_opening(OpeningFailure::Refused(error.clone().into_owned()));
            }
            None => self.choose_legacy(common, &listed, now),
        }
    }

    /// The server is modern, but shares only legacy revisions with this client, or no revision.
    fn choose_legacy(&mut self, common: Revisions, listed: &RawJson<'_>, now: Instant) {
        match common.latest() {
            Some(revision) => {
                let initializing = Initializing { revision, guessed: false, told: true };
                self.send_initialize(initializing, now);
            }
            None => self.fail_opening(OpeningFailure::NoCommonRevision(listed.clone().into())),
        }
    }

    /// Continues with the legacy handshake.
    pub(super) fn fall_back(&mut self, now: Instant) {
        match self.newest_legacy() {
            Some(revision) => {
                let initializing = Initializing { revision, guessed: false, told: false };
                self.send_initialize(initializing, now);
            }
            // MCP 2026-07-28 basic/versioning#compatibility-matrix [VER-029]
            None => {
                let failure = match self.handshake_refused.take() {
                    // The handshake was already tried: the server accepts neither era.
                    Some(error) => OpeningFailure::Refused(*error),
                    None => OpeningFailure::LegacyServer,
                };
                self.fail_opening(failure);
            }
        }
    }

    // MCP 2025-11-25 schema.json#InitializeResult [VER-006],
    // MCP 2025-11-25 learn-versioning#negotiation [VER-007]
    fn initialized<'f>(
        &mut self,
        initializing: Initializing,
        result: &RawJson<'f>,
        now: Instant,
    ) -> Flow<'f> {
        let (mut version, mut capabilities, mut info, mut instructions) = (None, None, None, None);
        for member in result.walk() {
            match &*member.name() {
                "protocolVersion" => version = Some(member.value),
                "capabilities" => capabilities = Some(member.value),
                "serverInfo" => info = Some(Json::from(member.value)),
                "instructions" => instructions = member.value.to_text().map(String::from),
                _ => {}
            }
        }
        let Some(version) = version else {
            self.fail_opening(OpeningFailure::InvalidAnswer("`protocolVersion` is missing"));
            return Ok(None);
        };
        let revision = version
            .to_text()
            .and_then(|text| Revision::parse(&text))
            .filter(|revision| revision.era() == Era::Legacy && self.revisions.contains(*revision));
        let Some(revision) = revision else {
            self.fail_opening(OpeningFailure::UnknownRevision(version.into()));
            return Ok(None);
        };
        debug_assert_eq!(initializing.revision.era(), Era::Legacy, "asked by the handshake");
        let declared = capabilities.unwrap_or(RawJson::EMPTY_OBJECT);
        let server = match Capabilities::from_server(declared.view(), revision) {
            Ok(server) => server,
            Err(invalid) => {
                self.fail_opening(OpeningFailure::InvalidCapabilities(invalid));
                return Ok(None);
            }
        };
        // MCP 2025-11-25 basic/lifecycle#initialization [LIFE-003]
        let method = Method::Initialized;
        self.connection.observed.opened(revision);
        let route = (Lane::Bulk, Channel::UNSOLICITED, Tag::NONE);
        let written =
            self.connection.send_notification(route, method.into(), method.as_str(), None);
        debug_assert!(written.is_ok(), "a notification without parameters");
        let session = ClientSession {
            revision,
            client: self.own_capabilities(revision),
            server,
            server_info: info,
            server_capabilities: declared.into(),
            instructions,
        };
        Ok(Some(self.opened(session, now)))
    }

    fn initialize_refused(
        &mut self,
        initializing: Initializing,
        error: ErrorObject<'_>,
        now: Instant,
    ) {
        let listed = supported(&error);
        let common = self.revisions_in_common(&error);
        let legacy = common.intersection(Revisions::LEGACY).latest();
        let modern = self.revisions.intersection(Revisions::MODERN).latest();
        match (legacy, modern) {
            // MCP 2025-11-25 basic/lifecycle#error-handling [VER-009]
            (Some(revision), _) if !initializing.told && revision != initializing.revision => {
                let again = Initializing { revision, told: true, ..initializing };
                self.send_initialize(again, now);
            }
            // MCP 2026-07-28 basic/versioning#backward-compatibility-with-initialization-based-versions
            // [VER-018]: the assumption was wrong.
            (_, Some(revision)) if initializing.guessed => {
                self.is_not_legacy = true;
                self.handshake_refused = Some(Box::new(error.into_owned()));
                self.send_discover(revision, now);
            }
            _ => match listed {
                Some(listed) if common.is_empty() => {
                    self.fail_opening(OpeningFailure::NoCommonRevision(listed.into()));
                }
                _ => self.fail_opening(OpeningFailure::Refused(error.into_owned())),
            },
        }
    }

    /// Returns the capabilities to declare in the handshake.
    // MCP 2025-11-25 extensions:SEP-2133#client-capabilities [EXT-009]
    fn capabilities_at(&self, revision: Revision) -> ClientCapabilities {
        let mut declared = self.identity.capabilities.clone();
        crate::protocol::drop_tasks_extension(&mut declared.extensions, revision);
        declared
    }

    fn own_capabilities(&self, revision: Revision) -> Capabilities {
        let declared = self.identity.capabilities.to_json_at(revision);
        declared
            .and_then(|text| Capabilities::from_client_json(text.as_str(), revision))
            .unwrap_or_default()
    }

    /// Repeats the handshake for a session that replaces the lost one.
    #[cfg(feature = "http")]
    pub(super) fn initialize_again(&mut self, now: Instant) {
        let Some(revision) = self.newest_legacy() else { return };
        let initializing = Initializing { revision, guessed: false, told: false };
        self.send_initialize(initializing, now);
    }

    /// Handles a failed handshake. If the legacy era was only a guess, the server is probed.
    // MCP 2026-07-28 basic/versioning#backward-compatibility-with-initialization-based-versions
    // [VER-018]
    #[cfg(feature = "http")]
    pub(super) fn handshake_failed(&mut self, failure: OpeningFailure, now: Instant) {
        let modern = self.revisions.intersection(Revisions::MODERN);
        match (self.state, modern.latest()) {
            (State::Initializing(Initializing { guessed: true, .. }), Some(revision)) => {
                self.is_not_legacy = true;
                self.send_discover(revision, now);
            }
            _ => self.fail_opening(failure),
        }
    }

    /// Opens the connection at the revision of the probe, without information about the server
    /// beyond its assumed capabilities.
    #[cfg(feature = "http")]
    pub(super) fn open_without_discovery(
        &mut self,
        server: Capabilities,
        now: Instant,
    ) -> Option<Event<'static>> {
        let State::Probing(revision) = self.state else { return None };
        let session = ClientSession {
            revision,
            client: self.own_capabilities(revision),
            server,
            server_info: None,
            server_capabilities: RawJson::EMPTY_OBJECT.into(),
            instructions: None,
        };
        Some(self.opened(session, now))
    }

    /// Restores the state of the lost session in the new one: its log level and its subscriptions
    /// to resources.
    fn restore(&mut self, now: Instant) {
        if let Some(level) = self.log_level {
            // A server that no longer supports logging needs no level.
            let _sent = self.ask_for_logs(level, now);
        }
        self.subscribe_again(now);
    }

    fn opened<'f>(&mut self, session: ClientSession, now: Instant) -> Event<'f> {
        let revision = session.revision;
        self.connection.observed.opened(revision);
        self.state = State::Over;
        let renewed = self.session.replace(session).is_some();
        self.connection.start_keep_alive(revision, now);
        let suspended = self.suspended.take();
        if let Some(before) = suspended {
            self.restore_subscriptions(before, now);
        }
        if renewed || suspended.is_some() {
            self.restore(now);
        }
        Event::Opened(Opened { revision })
    }
}

/// Returns the revisions in an error of a server that does not support the one of the request.
fn supported<'e>(error: &'e ErrorObject<'_>) -> Option<RawJson<'e>> {
    error.data.as_ref()?.get("supported")
}

/// Returns the known revisions in a JSON array of strings, or `None` if the value is not such an
/// array.
fn revisions_in(list: &RawJson<'_>) -> Option<Revisions> {
    let listed: Vec<alloc::borrow::Cow<'_, str>> = list.decode().ok()?;
    Some(
        listed
            .iter()
            .filter_map(|text| Revision::parse(text))
            .fold(Revisions::NONE, |set, revision| set.union(Revisions::only(revision))),
    )
}

fn empty_list() -> Json {
    RawJson::trusted("[]").into()
}

impl CloseReason {
    /// Returns the opening failure, if that is the reason.
    #[must_use]
    pub const fn opening_failure(&self) -> Option<&OpeningFailure> {
        match self {
            Self::OpeningFailed(failure) => Some(failure),
            _ => None,
        }
    }
}

//! What the messages of a client declare: `initialize`, and the metadata of a modern request.

use crate::envelope::JsonText;

use super::capability::Capabilities;
use super::metadata::Metadata;
use super::refusal::Refusal;
use super::revision::{Era, Revision, Revisions};

/// The members of an `initialize` that all legacy revisions require.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Handshake<'a> {
    /// The revision that the client requests.
    pub version: Option<JsonText<'a>>,
    /// The capabilities of the client.
    pub capabilities: Option<JsonText<'a>>,
    /// The identity of the client.
    pub client_info: Option<JsonText<'a>>,
}

impl<'a> Handshake<'a> {
    /// Reads the parameters of an `initialize`.
    #[must_use]
    pub fn read(params: JsonText<'a>) -> Self {
        let mut found = Self::default();
        for member in params.members().filter(|member| member.value != JsonText::NULL) {
            let slot = if member.key.is("protocolVersion") {
                &mut found.version
            } else if member.key.is("capabilities") {
                &mut found.capabilities
            } else if member.key.is("clientInfo") {
                &mut found.client_info
            } else {
                continue;
            };
            *slot = Some(member.value);
        }
        found
    }

    /// Returns the wrongly typed or, if it is to be complete, missing member, if any.
    // MCP 2025-11-25 basic/lifecycle#initialization [LIFE-001]
    #[must_use]
    pub fn fault(&self, complete: bool) -> Option<&'static str> {
        let (mut name, mut client_version) = (None, None);
        for member in self.client_info.iter().flat_map(|info| info.members()) {
            if member.value == JsonText::NULL {
                continue;
            }
            if member.key.is("name") {
                name = Some(member.value);
            } else if member.key.is("version") {
                client_version = Some(member.value);
            }
        }
        let begins_otherwise = |value: Option<JsonText<'_>>, first: char| {
            value.is_some_and(|value| !value.as_str().starts_with(first))
        };
        let no_string = |value| begins_otherwise(value, '"');
        let no_object = |value| begins_otherwise(value, '{');
        // An empty array is an empty object, as everywhere in capabilities.
        let empty = self.capabilities.is_some_and(JsonText::is_empty_array);
        let faults = [
            (no_string(self.version), "`protocolVersion` is not a string"),
            (no_object(self.capabilities) && !empty, "`capabilities` is not an object"),
            (no_object(self.client_info), "`clientInfo` is not an object"),
            (no_string(name), "`clientInfo.name` is not a string"),
            (no_string(client_version), "`clientInfo.version` is not a string"),
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
        first(&faults).or_else(|| first(&absent).filter(|_| complete))
    }

    /// Returns the revision of the session that a server opens, and the capabilities of the client
    /// at that revision. `legacy` are the revisions with a handshake that the server speaks, and
    /// `newest` is the newest of them.
    ///
    /// # Errors
    ///
    /// The capabilities are invalid.
    // MCP 2025-11-25 basic/lifecycle#version-negotiation [VER-003] [VER-004] [VER-005],
    // MCP 2025-11-25 learn-versioning#negotiation [VER-007]
    pub fn negotiate(
        &self,
        legacy: Revisions,
        newest: Revision,
    ) -> Result<(Revision, Capabilities), Refusal<'static>> {
        let requested = self.version.and_then(JsonText::to_written);
        let spoken = |revision: &Revision| requested.is_some_and(|it| it.is(revision.as_str()));
        let revision = legacy.iter().find(spoken).unwrap_or(newest);
        let declared = self.capabilities.unwrap_or(JsonText::EMPTY_OBJECT);
        match Capabilities::from_client(declared, revision) {
            Ok(client) => Ok((revision, client)),
            Err(reason) => Err(Refusal::InvalidCapabilities { member: "`capabilities`", reason }),
        }
    }
}

impl<'a> Metadata<'a> {
    /// Returns whether the request is a modern one for a server that speaks `spoken`: a server of
    /// legacy revisions alone ignores modern members.
    // MCP 2026-07-28 basic/versioning#backward-compatibility-with-initialization-based-versions
    // [VER-016]: the request identifies its era.
    #[must_use]
    pub fn is_modern(&self, spoken: Revisions) -> bool {
        (self.prefix_matched || self.protocol_version.is_some()) && spoken.speaks(Era::Modern)
    }

    /// Returns the revision of a modern request, and the capabilities that it declares.
    ///
    /// # Errors
    ///
    /// The server does not speak the revision, or no capabilities are declared.
    // MCP 2026-07-28 basic/index#_meta [META-008] [META-009],
    // MCP 2026-07-28 schema.json#RequestMetaObject [CAP-019]
    pub fn declaration(&self, spoken: Revisions) -> Result<(Revision, JsonText<'a>), Refusal<'a>> {
        let requested = self.protocol_version.unwrap_or_default();
        let modern = spoken.intersection(Revisions::MODERN);
        let Some(revision) = modern.iter().find(|revision| requested.is(revision.as_str())) else {
            // MCP 2026-07-28 basic/versioning#protocol-version-negotiation [VER-012]
            return Err(Refusal::UnsupportedRevision { requested, supported: spoken });
        };
        match self.client_capabilities {
            Some(declared) => Ok((revision, declared)),
            None => Err(Refusal::InvalidParams(
                "`_meta` lacks `io.modelcontextprotocol/clientCapabilities`",
            )),
        }
    }

    /// Returns the capabilities in the [declaration](Self::declaration) of a modern request.
    ///
    /// # Errors
    ///
    /// They are invalid.
    pub fn declared_capabilities(
        declared: JsonText<'_>,
        revision: Revision,
    ) -> Result<Capabilities, Refusal<'static>> {
        let member = "`io.modelcontextprotocol/clientCapabilities`";
        Capabilities::from_client(declared, revision)
            .map_err(|reason| Refusal::InvalidCapabilities { member, reason })
    }
}

/// The reaction to a protocol violation of the peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reaction {
    /// Sends an error response if the protocol defines one, reports a
    /// [`Violation`](crate::peer::Event::Violation), and continues.
    #[default]
    Survive,
    /// Answers, reports and closes the connection. Further input returns an error.
    Close,
}

/// The reaction to each class of violation. By default the connection survives all of them, because
/// users complain about peers that close on a stray line or a wrong first message.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Policy {
    /// A frame that is not JSON, not a message, too long or truncated.
    pub malformed: Reaction,
    /// A request whose id is in use.
    pub duplicate_id: Reaction,
    /// A response to a request that was never sent or was already answered.
    pub unknown_response: Reaction,
    /// A message that the revision, the phase or a missing capability forbids.
    pub forbidden: Reaction,
    /// Delivers requests and notifications whose method the protocol does not define to the
    /// application. By default requests are answered with "method not found", and notifications
    /// ignored.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub deliver_unknown_methods: bool,
    /// Accepts an `initialize` that lacks `protocolVersion`, `capabilities`, or `clientInfo` with
    /// its `name` and `version`: a missing version counts as unsupported, and missing capabilities
    /// as empty. By default it is answered with "invalid params" and the name of the member, as a
    /// member of the wrong type always is.
    // MCP 2025-11-25 basic/lifecycle#initialization [LIFE-001]
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub accept_incomplete_initialize: bool,
    /// Delivers requests for lists of the [catalog](crate::catalog::Catalog) to the application,
    /// which answers with a page of the [lists](crate::peer::Server::lists_of), changed if it
    /// likes. By default the server answers them.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub deliver_lists: bool,
}

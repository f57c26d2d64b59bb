/// The reaction to a protocol violation of the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reaction {
    /// Sends an error response if the protocol defines one, reports a
    /// [`Violation`](crate::peer::Event::Violation), and continues.
    Survive,
    /// Answers, reports and closes the connection. Further input returns an error.
    Close,
}

/// The reaction to each class of violation. By default the connection survives all of them, because
/// users complain about peers that close on a stray line or a wrong first message.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
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
    /// A request or notification whose method the protocol does not define. Refused by default.
    pub unknown_methods: UnknownMethods,
    /// An `initialize` without a member that every legacy revision requires.
    pub incomplete_initialize: IncompleteInitialize,
    /// A request for a list of the catalog. Answered by default.
    #[serde(skip_serializing_if = "ListRequests::are_answered")]
    pub lists: ListRequests,
}

/// How a server handles requests for the lists of its [catalog](crate::catalog::Catalog).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ListRequests {
    /// Answers them.
    Answer,
    /// Delivers them to the application, which answers with a page of the
    /// [lists](crate::peer::Server::lists_of), changed if it likes.
    Deliver,
}

impl ListRequests {
    /// Whether recordings omit it.
    // serde passes a reference.
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature is that of serde")]
    fn are_answered(&self) -> bool {
        *self == Self::Answer
    }
}

/// How to handle an `initialize` that lacks `protocolVersion`, `capabilities`, or `clientInfo` with
/// its `name` and `version`. A member of the wrong type is always refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum IncompleteInitialize {
    /// Answers with "invalid params" and the name of the member.
    // MCP 2025-11-25 basic/lifecycle#initialization [LIFE-001]
    Refuse,
    /// Accepts the request: a missing version counts as unsupported, and missing capabilities as
    /// empty.
    Accept,
}

/// How to handle requests and notifications whose method the protocol does not define.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum UnknownMethods {
    /// Answers requests with "method not found" and ignores notifications.
    Refuse,
    /// Delivers both to the application.
    Deliver,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            malformed: Reaction::Survive,
            duplicate_id: Reaction::Survive,
            unknown_response: Reaction::Survive,
            forbidden: Reaction::Survive,
            unknown_methods: UnknownMethods::Refuse,
            incomplete_initialize: IncompleteInitialize::Refuse,
            lists: ListRequests::Answer,
        }
    }
}

/// What is done when the other side breaks a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "recording", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "recording", serde(rename_all = "snake_case"))]
pub enum Reaction {
    /// Answer where the protocol has an answer, report a
    /// [`Violation`](crate::peer::Event::Violation), go on.
    Survive,
    /// Answer, report, and close: whoever drives the machine gets an error from then on.
    Close,
}

/// What is done about each class of violation. By default all are survived: the peers that close
/// on a stray line or a wrong first message are the ones that people complain of.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "recording", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "recording", serde(default))]
#[non_exhaustive]
pub struct Policy {
    /// A frame that is not JSON, not a message, too long or cut short.
    pub malformed: Reaction,
    /// A request whose id is in use.
    pub duplicate_id: Reaction,
    /// A response to a request that was never sent, or was answered before.
    pub unknown_response: Reaction,
    /// A message that the revision, the phase or a missing capability forbids.
    pub forbidden: Reaction,
    /// Methods that the protocol does not know: refused unless the application wants them.
    pub unknown_methods: UnknownMethods,
    /// An `initialize` without a member that every legacy revision requires.
    pub incomplete_initialize: IncompleteInitialize,
}

/// What is done with an `initialize` that lacks `protocolVersion`, `capabilities`, or `clientInfo`
/// with its `name` and `version`. One of the wrong type is always refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "recording", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "recording", serde(rename_all = "snake_case"))]
pub enum IncompleteInitialize {
    /// It is answered "invalid params", with the name of the member.
    // MCP 2025-11-25 basic/lifecycle#initialization [LIFE-001]
    Refuse,
    /// It is served: an absent version as one that this server does not speak, absent capabilities
    /// as none.
    Accept,
}

/// What is done with requests and notifications whose method the protocol does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "recording", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "recording", serde(rename_all = "snake_case"))]
pub enum UnknownMethods {
    /// Requests are answered "method not found", notifications are ignored.
    Refuse,
    /// Both are handed to the application.
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
        }
    }
}

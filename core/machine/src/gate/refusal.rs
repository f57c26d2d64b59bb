//! Why a request is not handled, and the error that answers it.

use core::fmt;

use crate::envelope::{ErrorCode, Sink, Written, write_written};

use super::capability::{Capability, Side};
use super::declaration::InvalidDeclaration;
use super::method::{GateError, Method};
use super::revision::{Era, Revision, Revisions};

/// The reason why a request is refused. Its display is the message of the error.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Refusal<'a> {
    /// The message is JSON, but not a valid request here.
    InvalidRequest(&'static str),
    /// A parameter is missing or invalid.
    InvalidParams(&'static str),
    /// The declared capabilities are invalid.
    InvalidCapabilities {
        /// The member that declares them.
        member: &'static str,
        /// What is wrong with them.
        reason: InvalidDeclaration,
    },
    /// The receiver failed, or lacks room.
    Internal(&'static str),
    /// The method is not implemented at this revision, or lacks a capability.
    MethodNotFound(Written<'a>),
    /// The client did not declare a capability that the request needs.
    MissingCapability(Capability),
    /// The server does not speak the revision of a modern request.
    UnsupportedRevision {
        /// The revision, as the client spells it.
        requested: Written<'a>,
        /// The revisions that the server speaks.
        supported: Revisions,
    },
    /// The server speaks no revision with a handshake.
    NoHandshake {
        /// The revisions that the server speaks.
        supported: Revisions,
    },
    /// There is no tool of this name.
    UnknownTool(Written<'a>),
    /// There is no resource of this URI.
    UnknownResource {
        /// The URI.
        uri: Written<'a>,
        /// The revision of the request.
        revision: Revision,
    },
}

impl<'a> Refusal<'a> {
    /// Refuses a request without metadata and without a session, on a server that speaks `spoken`.
    #[must_use]
    pub fn before_initialize(method: Option<Method>, name: Written<'a>, spoken: Revisions) -> Self {
        let served = |method: Method| {
            let asked = method.row().client.revisions;
            !spoken.intersection(asked).is_empty()
        };
        if !method.is_some_and(served) {
            return Self::MethodNotFound(name);
        }
        // MCP 2026-07-28 basic/index#_meta [META-009]: a request without the metadata is
        // malformed. The same response tells a legacy client to send `initialize`.
        Self::InvalidParams(if spoken.speaks(Era::Modern) {
            "send `initialize` first, or the protocol version and client capabilities in `_meta`"
        } else {
            "send `initialize` first"
        })
    }

    /// Refuses a request that the table of methods does not allow.
    #[must_use]
    pub const fn by_gate(refusal: GateError, name: Written<'a>, revision: Revision) -> Self {
        match refusal {
            // MCP 2026-07-28 basic/index#_meta [CAP-022]
            GateError::NotDeclared { declared_by: Side::Client, capability, .. }
                if matches!(revision.era(), Era::Modern) =>
            {
                Self::MissingCapability(capability)
            }
            // MCP 2025-11-25 client/roots#error-handling [CAP-027],
            // MCP 2026-07-28 schema.json#MethodNotFoundError [RPC-018]
            _ => Self::MethodNotFound(name),
        }
    }

    /// Returns the code of the error.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::InvalidRequest(_) => ErrorCode::INVALID_REQUEST,
            Self::InvalidParams(_) | Self::InvalidCapabilities { .. } | Self::UnknownTool(_) => {
                ErrorCode::INVALID_PARAMS
            }
            Self::Internal(_) => ErrorCode::INTERNAL_ERROR,
            // MCP 2026-07-28 basic/versioning#backward-compatibility-with-initialization-based-versions
            // [VER-017] [LIFE-020]: the client cannot continue, so the message is for people.
            Self::MethodNotFound(_) | Self::NoHandshake { .. } => ErrorCode::METHOD_NOT_FOUND,
            Self::MissingCapability(_) => ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY,
            Self::UnsupportedRevision { .. } => ErrorCode::UNSUPPORTED_PROTOCOL_VERSION,
            // MCP 2025-11-25 server/resources#error-handling [RSRC-009]
            // MCP 2026-07-28 server/resources#error-handling [RSRC-010] [RSRC-012]
            Self::UnknownResource { revision, .. } => match revision.era() {
                Era::Legacy => ErrorCode::RESOURCE_NOT_FOUND,
                Era::Modern => ErrorCode::INVALID_PARAMS,
            },
        }
    }

    /// Returns whether the error has `data`.
    #[must_use]
    pub const fn has_data(&self) -> bool {
        matches!(
            self,
            Self::MissingCapability(_)
                | Self::UnsupportedRevision { .. }
                | Self::NoHandshake { .. }
                | Self::UnknownResource { .. }
        )
    }

    /// Appends the `data` of the error, an object, if it has any.
    pub fn write_data<S: Sink + ?Sized>(&self, out: &mut S) {
        match self {
            // MCP 2026-07-28 basic/index#_meta [CAP-022]
            Self::MissingCapability(capability) => {
                out.push_str(r#"{"requiredCapabilities":"#);
                out.push_str(capability.as_required());
            }
            // MCP 2026-07-28 basic/versioning#protocol-version-negotiation [VER-012]
            Self::UnsupportedRevision { requested, supported } => {
                out.push_str(r#"{"supported":"#);
                write_revisions(out, *supported);
                out.push_str(r#","requested":"#);
                write_written(out, *requested);
            }
            Self::NoHandshake { supported } => {
                out.push_str(r#"{"supported":"#);
                write_revisions(out, *supported);
            }
            Self::UnknownResource { uri, .. } => {
                out.push_str(r#"{"uri":"#);
                write_written(out, *uri);
            }
            _ => return,
        }
        out.push('}');
    }
}

impl fmt::Display for Refusal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// The number of characters of a peer's text that are repeated.
        const SHOWN_MAX: usize = 64;
        let (before, shown) = match self {
            Self::InvalidRequest(what) | Self::InvalidParams(what) | Self::Internal(what) => {
                return f.write_str(what);
            }
            Self::InvalidCapabilities { member, reason } => {
                f.write_str(member)?;
                f.write_str(": ")?;
                return reason.fmt(f);
            }
            Self::MissingCapability(capability) => {
                f.write_str("the request needs the client capability `")?;
                f.write_str(capability.path())?;
                return f.write_str("`, which the client did not declare");
            }
            Self::UnsupportedRevision { .. } => return f.write_str("unsupported protocol version"),
            Self::NoHandshake { supported } => {
                f.write_str("this server does not support `initialize`; supported revisions: ")?;
                write_revisions(&mut Formatted(f), *supported);
                return Ok(());
            }
            Self::MethodNotFound(name) => ("method not found: ", name),
            Self::UnknownTool(name) => ("unknown tool: ", name),
            Self::UnknownResource { uri, .. } => ("resource not found: ", uri),
        };
        f.write_str(before)?;
        shown.chars().take(SHOWN_MAX).try_for_each(|it| fmt::Write::write_char(f, it))
    }
}

/// Text that is displayed. An error of the formatter ends the display anyway.
struct Formatted<'f, 'w>(&'f mut fmt::Formatter<'w>);

impl Sink for Formatted<'_, '_> {
    fn push_str(&mut self, text: &str) {
        let _ = self.0.write_str(text);
    }
}

/// Appends the set as a JSON array, newest first.
pub fn write_revisions<S: Sink + ?Sized>(out: &mut S, revisions: Revisions) {
    out.push('[');
    for (index, revision) in revisions.iter().rev().enumerate() {
        out.push_str(if index == 0 { "\"" } else { ",\"" });
        out.push_str(revision.as_str());
        out.push('"');
    }
    out.push(']');
}

impl ErrorCode {
    /// The resource does not exist; until 2025-11-25. 2026-07-28 uses [`Self::INVALID_PARAMS`].
    pub const RESOURCE_NOT_FOUND: Self = Self(-32002);
    /// The user must first visit a URL; 2025-11-25 only.
    pub const URL_ELICITATION_REQUIRED: Self = Self(-32042);

    // MCP 2026-07-28 basic/index#error-codes [RPC-026]
    /// An HTTP header differs from the body; since 2026-07-28.
    pub const HEADER_MISMATCH: Self = Self(-32020);
    /// The request requires a capability that the client did not declare; since 2026-07-28.
    pub const MISSING_REQUIRED_CLIENT_CAPABILITY: Self = Self(-32021);
    /// The server does not support the requested revision; since 2026-07-28.
    pub const UNSUPPORTED_PROTOCOL_VERSION: Self = Self(-32022);

    /// The user declined: an application code that the specification's sampling examples use.
    pub const USER_REJECTED: Self = Self(-1);

    /// Returns the equivalent code at `revision`.
    // MCP 2026-07-28 basic/index#error-codes [RPC-023] [RPC-025] [RPC-027],
    // MCP 2026-07-28 server/resources#error-handling [RSRC-010]
    #[must_use]
    pub fn at_revision(self, revision: Revision) -> Self {
        if self == Self::RESOURCE_NOT_FOUND && revision.era() == Era::Modern {
            Self::INVALID_PARAMS
        } else if self.is_emittable_at(revision) {
            self
        } else {
            Self::INTERNAL_ERROR
        }
    }

    /// Returns whether this side may send the code at `revision`.
    #[must_use]
    pub const fn is_emittable_at(self, revision: Revision) -> bool {
        match self {
            Self::PARSE_ERROR
            | Self::INVALID_REQUEST
            | Self::METHOD_NOT_FOUND
            | Self::INVALID_PARAMS
            | Self::INTERNAL_ERROR => true,
            // MCP 2026-07-28 basic/index#error-codes [RPC-027]: -32002 and -32042 are never emitted.
            Self::RESOURCE_NOT_FOUND => matches!(revision.era(), Era::Legacy),
            Self::URL_ELICITATION_REQUIRED => matches!(revision, Revision::V2025_11_25),
            // Clients detect a modern server by these codes, so a legacy response must not contain
            // them.
            code if code.is_modern_error() => matches!(revision.era(), Era::Modern),
            // MCP 2026-07-28 basic/index#error-codes [RPC-023] [RPC-024] [RPC-025]: no code of
            // -32000..-32019, and of -32020..-32099 only those that the specification defines.
            // Older revisions leave the complete range to implementations.
            Self(-32099..=-32000) => matches!(revision.era(), Era::Legacy),
            // MCP 2026-07-28 basic/index#error-codes [RPC-028]: JSON-RPC reserves the rest of its
            // range.
            Self(-32768..=-32100) => false,
            _ => true,
        }
    }

    /// Returns whether only servers of 2026-07-28 or newer send this code. Clients use it to detect
    /// the era of the server that they probe.
    #[must_use]
    pub const fn is_modern_error(self) -> bool {
        matches!(
            self,
            Self::HEADER_MISMATCH
                | Self::MISSING_REQUIRED_CLIENT_CAPABILITY
                | Self::UNSUPPORTED_PROTOCOL_VERSION
        )
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::{String, ToString};

    use super::*;

    #[test]
    fn a_peers_text_is_cut_and_its_data_is_whole() {
        // Rule: [RPC-018] [RSRC-009] [RSRC-010].
        let long = "é".repeat(100_000);
        let name = Written::plain(&long);
        assert!(Refusal::MethodNotFound(name).to_string().len() < 200);
        for (revision, code) in [
            (Revision::V2025_11_25, ErrorCode::RESOURCE_NOT_FOUND),
            (Revision::V2026_07_28, ErrorCode::INVALID_PARAMS),
        ] {
            let refusal = Refusal::UnknownResource { uri: Written::plain("a:\"b"), revision };
            let mut data = String::new();
            refusal.write_data(&mut data);
            assert!(refusal.has_data());
            assert_eq!((refusal.code(), data.as_str()), (code, r#"{"uri":"a:\"b"}"#));
        }
    }

    #[test]
    fn the_revisions_of_a_server_are_listed_newest_first() {
        // Rule: [VER-012] [VER-017].
        let supported = Revisions::since(Revision::V2025_11_25);
        let refusal = Refusal::NoHandshake { supported };
        assert!(refusal.to_string().ends_with(r#": ["2026-07-28","2025-11-25"]"#));
        let mut data = String::new();
        let requested = Written::plain("1");
        Refusal::UnsupportedRevision { requested, supported }.write_data(&mut data);
        assert_eq!(data, r#"{"supported":["2026-07-28","2025-11-25"],"requested":"1"}"#);
        assert!(!Refusal::InvalidParams("").has_data());
    }

    #[test]
    fn standard_and_application_codes_are_emittable_everywhere() {
        // Rule: [RPC-016] [RPC-028].
        for revision in Revision::ALL {
            for code in [-32700, -32600, -32601, -32602, -32603, -1, 0, 404, -31999, -32769] {
                assert!(ErrorCode(code).is_emittable_at(revision), "{code} at {revision}");
            }
            for code in [-32768, -32500, -32100, -32604] {
                assert!(!ErrorCode(code).is_emittable_at(revision), "{code} at {revision}");
            }
        }
    }

    #[test]
    fn modern_answers_use_only_the_defined_server_codes() {
        // Rule: [RPC-023] [RPC-024] [RPC-025] [RPC-026] [RPC-027].
        for code in -32099..=-32000 {
            let defined = (-32022..=-32020).contains(&code);
            assert_eq!(ErrorCode(code).is_emittable_at(Revision::V2026_07_28), defined, "{code}");
            assert_eq!(ErrorCode(code).is_modern_error(), defined, "{code}");
        }
    }

    #[test]
    fn legacy_responses_never_use_modern_codes() {
        // Rule: [RPC-026].
        for revision in Revision::ALL.into_iter().filter(|r| r.era() == Era::Legacy) {
            assert!(!ErrorCode::UNSUPPORTED_PROTOCOL_VERSION.is_emittable_at(revision));
            assert!(ErrorCode::RESOURCE_NOT_FOUND.is_emittable_at(revision));
            assert!(ErrorCode(-32000).is_emittable_at(revision));
        }
        assert!(ErrorCode::URL_ELICITATION_REQUIRED.is_emittable_at(Revision::V2025_11_25));
        assert!(!ErrorCode::URL_ELICITATION_REQUIRED.is_emittable_at(Revision::V2025_06_18));
    }
}

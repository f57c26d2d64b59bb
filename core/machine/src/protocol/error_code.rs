//! The error codes of the protocol, and the revisions that use them.

use crate::jsonrpc::ErrorCode;

use super::revision::{Era, Revision};

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
    use super::*;

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

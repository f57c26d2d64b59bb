use alloc::string::String;
use core::fmt;

use mcp_sansio_sync::Arc;

/// Who sends a request, as the adapter or a layer above it has verified: a user of this server.
///
/// Sessions belong to the principal that opened them. Two principals are the same if their texts
/// are; what is in it (`issuer|subject`, an account number) is the application's choice. It is
/// never sent to anybody.
// MCP 2025-11-25 security-best-practices#session-hijacking [SESS-014]
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Principal(Arc<str>);

impl Principal {
    /// A principal by this name.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into().into())
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Principal {
    /// Leaves the name out: logs are read by many.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Principal(..)")
    }
}

use alloc::string::String;
use core::fmt;

use mcp_sansio_sync::Arc;

/// The sender of a request, as verified by the adapter or a higher layer: a user of this server.
///
/// Sessions belong to the principal that opened them. Two principals are equal if their texts are
/// equal. The application chooses the text (`issuer|subject`, an account number); it is never sent
/// to a peer.
// MCP 2025-11-25 security-best-practices#session-hijacking [SESS-014]
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Principal(Arc<str>);

impl Principal {
    /// Creates a principal with this name.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into().into())
    }

    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Principal {
    /// Omits the name, because logs have many readers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Principal(..)")
    }
}

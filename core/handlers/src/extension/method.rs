use core::fmt;
use core::marker::PhantomData;

use mcp_sansio::protocol::Side;
use mcp_sansio::{Revision, Revisions};

/// A request of an extension: its row in the table of methods, and the types of its parameters and
/// its result. Clients send it at every revision, unless [`sent_by`](Self::sent_by) and
/// [`revisions`](Self::revisions) say otherwise.
///
/// The parameters of a modern request have a member `_meta`, which their type has to ignore.
pub struct ExtensionMethod<P, R> {
    pub(crate) row: MethodRow,
    types: PhantomData<fn(P) -> R>,
}

/// The rules for sending a method of an extension.
// MCP 2026-07-28 extensions:SEP-3371-summary#2-custom-methods [EXT-025]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MethodRow {
    pub(crate) extension: &'static str,
    pub(crate) name: &'static str,
    sender: Side,
    revisions: Revisions,
    /// Whether clients that did not declare the extension may send it.
    undeclared: bool,
}

impl MethodRow {
    pub(crate) const fn new(
        extension: &'static str,
        name: &'static str,
        sender: Side,
        revisions: Revisions,
    ) -> Self {
        Self { extension, name, sender, revisions, undeclared: false }
    }
}

impl<P, R> ExtensionMethod<P, R> {
    /// Creates the method `name` of the extension with this identifier.
    #[must_use]
    pub const fn new(extension: &'static str, name: &'static str) -> Self {
        let (sender, revisions) = (Side::Client, Revisions::since(Revision::V2025_06_18));
        let row = MethodRow::new(extension, name, sender, revisions);
        Self { row, types: PhantomData }
    }

    /// Sets the side that sends the method. Servers send requests until 2025-11-25 only.
    // MCP 2026-07-28 basic/transports/index#messages [LIFE-017]
    #[must_use]
    pub const fn sent_by(mut self, sender: Side) -> Self {
        self.row.sender = sender;
        if let Side::Server = sender {
            self.row.revisions = self.row.revisions.intersection(Revisions::LEGACY);
        }
        self
    }

    /// Sets the revisions at which the method exists; by default those since 2025-06-18, the first
    /// at which clients and servers can declare extensions.
    #[must_use]
    pub const fn revisions(mut self, revisions: Revisions) -> Self {
        self.row.revisions = revisions;
        self
    }

    /// Lets a server accept the method from clients that did not declare the extension. The client
    /// still sends it only to servers that did.
    #[must_use]
    pub const fn from_any_client(mut self) -> Self {
        self.row.undeclared = true;
        self
    }

    /// Returns the name of the method.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.row.name
    }

    /// Returns the identifier of the extension.
    #[must_use]
    pub const fn extension(&self) -> &'static str {
        self.row.extension
    }
}

impl<P, R> Clone for ExtensionMethod<P, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P, R> Copy for ExtensionMethod<P, R> {}

impl<P, R> fmt::Debug for ExtensionMethod<P, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExtensionMethod").field("row", &self.row).finish()
    }
}

/// Why a method of an extension must not be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExtensionGateError {
    /// The other side sends the method.
    #[error("a {sender} must not send `{method}`")]
    WrongDirection {
        /// The method.
        method: &'static str,
        /// The side that tried to send it.
        sender: Side,
    },
    /// The method does not exist at the revision.
    #[error("`{method}` does not exist at revision {revision}")]
    NotAtRevision {
        /// The method.
        method: &'static str,
        /// The revision of the connection.
        revision: Revision,
    },
    /// A side did not declare the extension. This side declares it by registering it.
    #[error("`{method}` requires the extension {extension:?}, which the {side} did not declare")]
    NotDeclared {
        /// The method.
        method: &'static str,
        /// The extension.
        extension: &'static str,
        /// The side that would have to declare it.
        side: Side,
    },
}

impl MethodRow {
    pub(crate) const fn sender(&self) -> Side {
        self.sender
    }

    /// Checks whether `sender` may send the method at `revision`, where `client` and `server` say
    /// which sides declared the extension.
    // MCP 2026-07-28 extensions:SEP-2133#negotiation [EXT-006]
    // MCP 2026-07-28 extensions:SEP-2133#graceful-degradation [EXT-013]
    pub(crate) fn check(
        &self,
        sender: Side,
        revision: Revision,
        client: bool,
        server: bool,
    ) -> Result<(), ExtensionGateError> {
        let Self { name: method, extension, .. } = *self;
        if sender != self.sender {
            return Err(ExtensionGateError::WrongDirection { method, sender });
        }
        if !self.revisions.contains(revision) {
            return Err(ExtensionGateError::NotAtRevision { method, revision });
        }
        let not_declared = |side| Err(ExtensionGateError::NotDeclared { method, extension, side });
        if !server {
            return not_declared(Side::Server);
        }
        if !client && !self.undeclared {
            return not_declared(Side::Client);
        }
        Ok(())
    }
}

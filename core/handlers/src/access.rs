//! What the client of a request may do.

use alloc::boxed::Box;
use alloc::string::String;

use mcp_sansio_oauth::Grant;

use super::context::{Context, Incoming};
use super::reply::Error;

/// What is known of the rights of a client.
#[derive(Debug)]
pub(super) enum Access {
    /// It is at the other end of a byte stream, which whoever started this process chose.
    Owner,
    /// It came over HTTP to a server that asks nobody for a token.
    Unknown,
    /// It has a token that was checked.
    Granted(Grant),
}

impl Access {
    pub(super) fn from_request(call: &Incoming<'_, '_>) -> Self {
        match call.request.attachment.get::<Grant>() {
            Some(grant) => Self::Granted(grant.clone()),
            None if call.on_http => Self::Unknown,
            None => Self::Owner,
        }
    }
}

impl Context {
    /// The scopes of the client's token. None on byte streams, and on servers that are not
    /// [protected](super::Server::protect).
    ///
    /// To decide by them, use [`require_scopes`](Self::require_scopes), which knows which scopes
    /// imply which.
    #[must_use]
    pub fn scopes(&self) -> &[String] {
        match &self.access {
            Access::Granted(grant) => grant.scopes(),
            Access::Owner | Access::Unknown => &[],
        }
    }

    /// Goes on only if the client's token has all of these scopes, or others that imply them. For
    /// what a request turns out to need: ask for all of it at once, and before anything is sent, for
    /// then the client is told by HTTP and can come back with another token.
    ///
    /// On a byte stream everything is allowed, as there are no tokens. Over HTTP a server that is
    /// not [protected](super::Server::protect) allows nothing.
    ///
    /// # Errors
    ///
    /// The client's: it has not. Return it, to tell the client.
    // MCP 2026-07-28 basic/authorization/index#runtime-insufficient-scope-errors [AUTHS-015] [AUTHS-018]
    pub fn require_scopes(&self, scopes: &[&str]) -> Result<(), Error> {
        match &self.access {
            Access::Granted(grant) => {
                grant.require(scopes).map_err(|refusal| Error::Refused(Box::new(refusal)))
            }
            // MCP 2026-07-28 basic/authorization/index#protocol-requirements [AUTHC-003]
            Access::Owner => Ok(()),
            Access::Unknown => Err(Error::failed("this server checks no tokens")),
        }
    }
}

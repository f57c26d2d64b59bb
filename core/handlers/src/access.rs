//! Permissions of the client that sent a request.

use alloc::boxed::Box;
use alloc::string::String;

use mcp_sansio_oauth::protected_resource::Grant;

use super::context::Context;
use super::reply::HandlerError;

impl Context {
    /// Returns the scopes of the client's token: an empty slice on byte streams, and on servers
    /// that are not [protected](super::Server::protect).
    ///
    /// To make an access decision, use [`require_scopes`](Self::require_scopes), which knows which
    /// scopes imply which.
    #[must_use]
    pub fn scopes(&self) -> &[String] {
        self.caller.scopes()
    }

    /// Requires that the client's token has all of these scopes, or others that imply them. Use it
    /// when a request turns out to need more scopes: ask for all of them in one call, and before
    /// anything is sent, because only then HTTP can tell the client to return with another token.
    ///
    /// On a byte stream everything is allowed, as there are no tokens. Over HTTP a server that is
    /// not [protected](super::Server::protect) allows nothing.
    ///
    /// # Errors
    ///
    /// The token lacks a scope. Return the error from the handler to tell the client.
    // MCP 2026-07-28 basic/authorization/index#runtime-insufficient-scope-errors [AUTHS-015] [AUTHS-018]
    pub fn require_scopes(&self, scopes: &[&str]) -> Result<(), HandlerError> {
        match self.caller.credentials::<Grant>() {
            Some(grant) => {
                grant.require(scopes).map_err(|refusal| HandlerError::Refused(Box::new(refusal)))
            }
            // MCP 2026-07-28 basic/authorization/index#protocol-requirements [AUTHC-003]
            None if self.caller.is_owner() => Ok(()),
            None => Err(HandlerError::failed("this server checks no tokens")),
        }
    }
}

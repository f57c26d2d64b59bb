//! The check of a token: what the application is asked, and what it answers.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use mcp_sansio::Principal;

/// What the application is asked about a request: whether its token is one, and whose.
///
/// Whoever checks it verifies the signature, or asks the authorization server, and reports what the
/// token says. Audience, expiry and scopes are then judged here: see [`VerifiedToken`].
// MCP 2026-07-28 basic/authorization/security-considerations#access-token-privilege-restriction [AUTHS-014]:
// the token ends here. Handlers are given the principal and the scopes.
pub struct TokenCheck {
    pub(super) token: String,
    pub(super) resource: String,
    pub(super) unix_time: u64,
}

/// What a token says that its check found to be genuine.
///
/// The one who checks vouches for the signature or for the authorization server's word, and for the
/// issuer: that it is one of this resource's. Whether the token is for this resource and has not
/// expired is decided by the core, from what stands here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedToken {
    pub(super) principal: Principal,
    pub(super) audiences: Vec<String>,
    pub(super) scopes: Vec<String>,
    pub(super) expires_at: Option<u64>,
}

/// Why a token is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum TokenRefusal {
    /// It is malformed, revoked, of another issuer, or not signed by whom it says. The client's
    /// fault: it is told to get another one.
    #[error("the access token is not valid")]
    Invalid,
    /// Its time is over. The client is told to get another one.
    #[error("the access token has expired")]
    Expired,
    /// It cannot be checked now: the authorization server does not answer, say. Nobody's fault
    /// here; the client is told to come again.
    #[error("the access token cannot be checked at the moment")]
    Unavailable,
}

impl TokenCheck {
    /// The token, as the client sent it: not empty, and of the characters that RFC 6750 allows.
    /// A secret: it must not be logged, and must not be passed on to any other service, but for the
    /// authorization server that issued it.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.token
    }

    /// The URI of the resource that the token must have among its audiences.
    #[must_use]
    pub fn resource(&self) -> &str {
        &self.resource
    }

    /// The time at which the request came, in seconds since 1970.
    #[must_use]
    pub const fn unix_time(&self) -> u64 {
        self.unix_time
    }
}

impl fmt::Debug for TokenCheck {
    /// Leaves the secret out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenCheck").field("resource", &self.resource).finish_non_exhaustive()
    }
}

impl VerifiedToken {
    /// A token of `principal`, as yet for no audience, with no scope and without an end.
    ///
    /// Name the principal by issuer and subject together: subjects are unique within an issuer
    /// only.
    #[must_use]
    pub const fn new(principal: Principal) -> Self {
        Self { principal, audiences: Vec::new(), scopes: Vec::new(), expires_at: None }
    }

    /// Whom the token is for: every value of its `aud`. A token that names nobody is refused.
    #[must_use]
    pub fn audiences(mut self, audiences: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.audiences.extend(audiences.into_iter().map(Into::into));
        self
    }

    /// What the token is good for: scopes, each by itself.
    #[must_use]
    pub fn scopes(mut self, scopes: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.scopes.extend(scopes.into_iter().map(Into::into));
        self
    }

    /// The same, as the claim `scope` has them: separated by spaces.
    #[must_use]
    pub fn scope(self, scope: &str) -> Self {
        self.scopes(scope.split(' ').filter(|it| !it.is_empty()).map(ToString::to_string))
    }

    /// The second since 1970 from which on the token is not valid any more: its `exp`. A token
    /// without one is taken as often as its check says yes.
    #[must_use]
    pub const fn expires_at(mut self, unix_time: u64) -> Self {
        self.expires_at = Some(unix_time);
        self
    }

    /// Whose token it is.
    #[must_use]
    pub const fn principal(&self) -> &Principal {
        &self.principal
    }
}

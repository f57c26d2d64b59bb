//! Token checks by the application, and their results.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use mcp_sansio::Principal;

use super::DpopProof;

/// A token to be checked by the application.
///
/// The check verifies the signature, or asks the authorization server, and reports the claims of
/// the token. Audience, expiry and scopes are evaluated afterwards: see [`VerifiedToken`].
// MCP 2026-07-28 basic/authorization/security-considerations#access-token-privilege-restriction
// [AUTHS-014]: the token is not passed on. Handlers get the principal and the scopes.
pub struct TokenCheck {
    pub(super) token: String,
    pub(super) resource: String,
    pub(super) unix_time: u64,
    /// The proof of the client, if the token was sent with one.
    pub(super) proof: Option<DpopProof>,
}

/// The claims of a verified token.
///
/// The check guarantees the signature or the answer of the authorization server, and that the
/// issuer is one of this resource's. The core evaluates the claims: whether the token is for this
/// resource and has not expired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedToken {
    pub(super) principal: Principal,
    pub(super) audiences: Vec<String>,
    pub(super) scopes: Vec<String>,
    pub(super) expires_at: Option<u64>,
    /// The thumbprint of the client's key.
    pub(super) bound_to: Option<String>,
}

/// Why a token is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum TokenRefusal {
    /// The token is malformed, revoked, of an unknown issuer, or its signature is invalid. The
    /// client's error: it is told to get another token.
    #[error("the access token is not valid")]
    Invalid,
    /// The token has expired. The client is told to get another one.
    #[error("the access token has expired")]
    Expired,
    /// The token cannot be checked now, for example because the authorization server does not
    /// answer. The client is told to retry.
    #[error("the access token cannot be checked at the moment")]
    Unavailable,
}

impl TokenCheck {
    /// Returns the token as the client sent it: not empty, and in the characters that RFC 6750
    /// allows. It is a secret: do not log it, and do not pass it on to any service except the
    /// authorization server that issued it.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Returns the URI of the resource, which must be among the audiences of the token.
    #[must_use]
    pub fn resource(&self) -> &str {
        &self.resource
    }

    /// Returns the time at which the request was received, in seconds since 1970.
    #[must_use]
    pub const fn unix_time(&self) -> u64 {
        self.unix_time
    }

    /// Returns the client's proof that it has a key (RFC 9449), if the token was sent with one. Its
    /// signature is not verified yet.
    #[must_use]
    pub const fn proof(&self) -> Option<&DpopProof> {
        self.proof.as_ref()
    }
}

impl fmt::Debug for TokenCheck {
    /// Omits the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenCheck").field("resource", &self.resource).finish_non_exhaustive()
    }
}

impl VerifiedToken {
    /// Creates a token of `principal`, without audiences, scopes or expiry.
    ///
    /// Name the principal by issuer and subject together: subjects are unique only within an
    /// issuer.
    #[must_use]
    pub const fn new(principal: Principal) -> Self {
        Self {
            principal,
            audiences: Vec::new(),
            scopes: Vec::new(),
            expires_at: None,
            bound_to: None,
        }
    }

    /// Sets the audiences: every value of the token's `aud`. A token without audiences is refused.
    #[must_use]
    pub fn audiences(mut self, audiences: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.audiences.extend(audiences.into_iter().map(Into::into));
        self
    }

    /// Adds scopes, one per item.
    #[must_use]
    pub fn scopes(mut self, scopes: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.scopes.extend(scopes.into_iter().map(Into::into));
        self
    }

    /// Adds scopes from the claim `scope`, separated by spaces.
    #[must_use]
    pub fn scope(self, scope: &str) -> Self {
        self.scopes(scope.split(' ').filter(|it| !it.is_empty()).map(ToString::to_string))
    }

    /// Sets the expiry in seconds since 1970: the token's `exp`. A token without one is accepted as
    /// long as its check succeeds.
    #[must_use]
    pub const fn expires_at(mut self, unix_time: u64) -> Self {
        self.expires_at = Some(unix_time);
        self
    }

    /// Sets the thumbprint of the key that the token is bound to: `jkt` in its `cnf` (RFC 9449, section
    /// 6). Such a token is refused unless the resource [accepts](super::ProtectedResource::dpop)
    /// proofs and the client sent one with this key.
    ///
    /// If `cnf` has another member, such as that of a certificate, the check must refuse the token.
    #[must_use]
    pub fn bound_to(mut self, thumbprint: impl Into<String>) -> Self {
        self.bound_to = Some(thumbprint.into());
        self
    }

    /// Returns the principal of the token.
    #[must_use]
    pub const fn principal(&self) -> &Principal {
        &self.principal
    }
}

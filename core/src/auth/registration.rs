//! How a client registers itself: Dynamic Client Registration (RFC 7591).

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use super::client::{ApplicationType, ClientMetadata};
use super::client_authentication::{AuthenticationMethod, NoAuthenticationMethod};
use super::redirect_uri::{InvalidRedirectUri, check_redirect_uri};
use super::scopes::Scopes;
use super::token::{GrantType, printable};

/// What is said of a client when it registers.
#[derive(Clone, Copy, Debug)]
pub(super) struct RegistrationRequest<'a> {
    /// Its metadata.
    pub(super) metadata: &'a ClientMetadata,
    /// What it asks for tokens with.
    pub(super) grant: GrantType,
    /// Where the user comes back to; none but for [`GrantType::AuthorizationCode`].
    pub(super) redirect_uris: &'a [String],
    /// Whether it wants refresh tokens.
    pub(super) refresh: bool,
    /// How it will authenticate: see [`method_to_register`].
    pub(super) method: AuthenticationMethod,
    /// What it will ask for, where that is known.
    pub(super) scopes: &'a Scopes,
}

/// A client as an authorization server knows it from now on.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Registration {
    /// What it is known as.
    pub(super) client_id: String,
    /// Its password.
    pub(super) client_secret: Option<String>,
    /// When the password expires, in seconds since 1970; `None`: never.
    pub(super) secret_expires_at: Option<u64>,
    /// How it authenticates, if that is said: otherwise as it asked for.
    pub(super) method: Option<String>,
    /// The redirect URIs that it has, if they are said: otherwise those that it asked for.
    pub(super) redirect_uris: Option<Vec<String>>,
}

/// What a registration endpoint says in place of a client. Text of the authorization server: to
/// show, not to trust. Only what can be printed is kept of it, at most 1,024 characters each.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RegistrationError {
    /// Its code: `invalid_redirect_uri`, `invalid_client_metadata`, …
    pub error: String,
    /// The same in words, for a developer.
    pub description: Option<String>,
}

/// Why a client is not registered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegistrationFault {
    /// The answer is longer than 256 KiB.
    #[error("the answer to the registration is longer than 256 KiB")]
    TooLong,
    /// The answer is no JSON object, lacks a required member, has one twice, or has one of another
    /// type than it should. The authorization server's fault.
    #[error("the answer to the registration is malformed")]
    Malformed,
    /// The authorization server does not take the redirect URIs, or not for this type of
    /// application: see [`ApplicationType`].
    #[error("the authorization server takes no such redirect URI: {0}")]
    RedirectUri(RegistrationError),
    /// The authorization server refuses.
    #[error("the authorization server does not register the client: {0}")]
    Refused(RegistrationError),
}

/// The method to register with, at an authorization server whose metadata says that it supports
/// these. `secret`: whether the client needs one, as it has nothing else to show.
///
/// # Errors
///
/// [`NoAuthenticationMethod::Unsupported`].
// MCP 2025-06-18 basic/authorization#standards-compliance [AUTHC-066]
pub(super) fn method_to_register(
    supported: Option<&[String]>,
    secret: bool,
) -> Result<AuthenticationMethod, NoAuthenticationMethod> {
    todo!()
}

impl RegistrationRequest<'_> {
    /// The body of the request, in JSON.
    ///
    /// # Errors
    ///
    /// The application's fault: a redirect URI that it must not have.
    pub(super) fn to_json(&self) -> Result<String, InvalidRedirectUri> {
        todo!()
    }
}

impl Registration {
    /// Reads the body of an answer, whatever its status. Linear in its length.
    ///
    /// # Errors
    ///
    /// See [`RegistrationFault`].
    pub(super) fn parse(body: &[u8]) -> Result<Self, RegistrationFault> {
        todo!()
    }
}

impl fmt::Debug for Registration {
    /// Leaves the password out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration").field("client_id", &self.client_id).finish_non_exhaustive()
    }
}

impl fmt::Display for RegistrationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.error)?;
        match &self.description {
            Some(description) => write!(f, " ({description})"),
            None => Ok(()),
        }
    }
}

//! How a client authenticates at a token endpoint.

use alloc::string::String;
use core::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use super::client::ClientSecret;
use super::form::{self, Form};
use super::jwt::SigningInput;

/// How long an assertion is good for, in seconds: it is used at once, but clocks differ.
const ASSERTION_SECONDS: u64 = 300;
const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// A method of `token_endpoint_auth_method` (RFC 7591, section 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum AuthenticationMethod {
    /// None: a public client says who it is.
    None,
    /// A password in `Authorization`.
    ClientSecretBasic,
    /// A password in the body.
    ClientSecretPost,
    /// An assertion signed with a private key (RFC 7523).
    PrivateKeyJwt,
}

/// Why a client cannot authenticate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoAuthenticationMethod {
    /// The authorization server takes nothing that goes with what the client has. The fault of
    /// whoever configured the client.
    #[error("the authorization server takes no authentication that the client is capable of")]
    Unsupported,
    /// The client is registered for a method that it lacks the secret for, or that is not known
    /// here.
    #[error("the client is registered for an authentication that it is not capable of")]
    Registered,
}

/// What a client shows at a token endpoint.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ClientProof<'a> {
    /// Nothing but its id.
    None,
    /// A password in `Authorization`.
    Basic(&'a str),
    /// A password in the body.
    Post(&'a str),
    /// A signed assertion: see [`assertion`].
    Assertion(&'a str),
}

impl AuthenticationMethod {
    /// The name of the method.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::ClientSecretBasic => "client_secret_basic",
            Self::ClientSecretPost => "client_secret_post",
            Self::PrivateKeyJwt => "private_key_jwt",
        }
    }

    /// The method of this name.
    pub(super) fn parse(name: &str) -> Option<Self> {
        let all =
            [Self::None, Self::ClientSecretBasic, Self::ClientSecretPost, Self::PrivateKeyJwt];
        all.into_iter().find(|it| it.as_str() == name)
    }

    /// The method for a client with this secret at an authorization server whose metadata says that
    /// it supports these. `registered`: the one that the registration of the client is for.
    ///
    /// # Errors
    ///
    /// No method fits: see [`NoAuthenticationMethod`].
    // MCP 2025-06-18 basic/authorization#standards-compliance [AUTHC-066]
    pub(super) fn choose(
        supported: Option<&[String]>,
        registered: Option<&str>,
        secret: &ClientSecret,
    ) -> Result<Self, NoAuthenticationMethod> {
        if let Some(name) = registered {
            let method = Self::parse(name).filter(|it| it.goes_with(secret));
            return method.ok_or(NoAuthenticationMethod::Registered);
        }
        let lists = |method: Self| {
            supported.is_some_and(|names| names.iter().any(|it| it == method.as_str()))
        };
        let candidates: &[Self] = match (secret, supported) {
            // Whether it takes public clients, an authorization server can say by refusing them:
            // many list the methods of the others only.
            (ClientSecret::None, _) => return Ok(Self::None),
            // RFC 8414, section 2.
            (ClientSecret::Password(_), None) => return Ok(Self::ClientSecretBasic),
            (ClientSecret::Password(_), Some(_)) => {
                &[Self::ClientSecretBasic, Self::ClientSecretPost, Self::None]
            }
            // The key is known there: it was registered beforehand.
            (ClientSecret::PrivateKey { .. }, None) => return Ok(Self::PrivateKeyJwt),
            (ClientSecret::PrivateKey { .. }, Some(_)) => &[Self::PrivateKeyJwt],
        };
        let fitting = candidates.iter().copied().find(|it| lists(*it));
        fitting.ok_or(NoAuthenticationMethod::Unsupported)
    }

    /// Whether a client with this secret is capable of it. Whoever has a password can leave it out.
    const fn goes_with(self, secret: &ClientSecret) -> bool {
        match self {
            Self::None => true,
            Self::ClientSecretBasic | Self::ClientSecretPost => {
                matches!(secret, ClientSecret::Password(_))
            }
            Self::PrivateKeyJwt => matches!(secret, ClientSecret::PrivateKey { .. }),
        }
    }
}

impl<'a> ClientProof<'a> {
    /// What to show for a method; `None` where the secret is not that of the method, or the
    /// assertion is missing that [`AuthenticationMethod::PrivateKeyJwt`] needs.
    pub(super) fn new(
        method: AuthenticationMethod,
        secret: &'a ClientSecret,
        assertion: Option<&'a str>,
    ) -> Option<Self> {
        Some(match (method, secret) {
            (AuthenticationMethod::None, _) => Self::None,
            (AuthenticationMethod::ClientSecretBasic, ClientSecret::Password(password)) => {
                Self::Basic(password)
            }
            (AuthenticationMethod::ClientSecretPost, ClientSecret::Password(password)) => {
                Self::Post(password)
            }
            (AuthenticationMethod::PrivateKeyJwt, _) => Self::Assertion(assertion?),
            _ => return None,
        })
    }

    /// Adds who the client is to a token request, and returns the value of its `Authorization`,
    /// where it has one. Exactly one method is used (RFC 6749, section 2.3).
    pub(super) fn add_to(self, form: &mut Form, client_id: &str) -> Option<String> {
        if let Self::Basic(password) = self {
            let mut credentials = String::new();
            form::encode(client_id, &mut credentials);
            credentials.push(':');
            form::encode(password, &mut credentials);
            let mut value = String::from("Basic ");
            STANDARD.encode_string(credentials, &mut value);
            return Some(value);
        }
        form.push("client_id", client_id);
        match self {
            Self::None | Self::Basic(_) => {}
            Self::Post(password) => form.push("client_secret", password),
            Self::Assertion(assertion) => {
                form.push("client_assertion_type", ASSERTION_TYPE);
                form.push("client_assertion", assertion);
            }
        }
        None
    }
}

impl fmt::Debug for ClientProof<'_> {
    /// Leaves the secret out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Basic(_) => "Basic(..)",
            Self::Post(_) => "Post(..)",
            Self::Assertion(_) => "Assertion(..)",
        })
    }
}

#[derive(Serialize)]
struct Header<'a> {
    alg: &'a str,
    typ: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    kid: Option<&'a str>,
}

#[derive(Serialize)]
struct Claims<'a> {
    iss: &'a str,
    sub: &'a str,
    aud: &'a str,
    jti: &'a str,
    iat: u64,
    exp: u64,
}

/// The assertion by which a client authenticates (RFC 7523, section 3), to be signed with
/// `algorithm`. `issuer`: of the authorization server that it is for, and for no other. `jti`: used
/// for nothing else. `now`: seconds since 1970.
pub(super) fn assertion(
    client_id: &str,
    issuer: &str,
    (algorithm, key_id): (&str, Option<&str>),
    jti: &str,
    now: u64,
) -> SigningInput {
    let header = Header { alg: algorithm, typ: "JWT", kid: key_id };
    let exp = now.saturating_add(ASSERTION_SECONDS);
    // MCP 2026-07-28 basic/authorization/client-registration#implementation-requirements [AUTHC-030]:
    // the issuer alone is the audience, so that no endpoint can use it elsewhere.
    let claims = Claims { iss: client_id, sub: client_id, aud: issuer, jti, iat: now, exp };
    SigningInput::new(&header, &claims)
}

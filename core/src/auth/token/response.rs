use alloc::string::{String, ToString};
use core::fmt;

use serde::{Deserialize, Deserializer};

use crate::auth::dpop::USE_DPOP_NONCE;

/// The longest answer of a token endpoint that is read, in bytes.
const RESPONSE_LENGTH_MAX: usize = 256 * 1024;
/// The longest token that is used, in bytes: what fits into a request.
const TOKEN_LENGTH_MAX: usize = 32 * 1024;
/// The most characters of what a server says of an error.
const TEXT_LENGTH_MAX: usize = 1024;
/// A token is never taken to be good for longer, in seconds: a year.
const LIFETIME_MAX: u64 = 365 * 24 * 60 * 60;

/// What an answer of a token endpoint is to be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::auth) enum TokenPurpose {
    /// As a bearer token.
    Bearer,
    /// With proofs, as was asked for by one. An authorization server without DPoP answers with a
    /// bearer token all the same.
    Dpop,
    /// As an assertion elsewhere.
    Assertion,
}

/// How a token is presented.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, Deserialize)]
pub(in crate::auth) enum TokenType {
    /// As it is (RFC 6750).
    Bearer,
    /// With a proof that the client holds a key (RFC 9449).
    #[serde(rename = "DPoP")]
    Dpop,
    /// Not at all: it is no access token (RFC 8693, section 2.2.1).
    NotApplicable,
}

/// A token, and what the authorization server says of it.
#[derive(Clone, PartialEq, Eq)]
pub(in crate::auth) struct TokenResponse {
    /// The token: visible ASCII that can go into a field of a request.
    pub(in crate::auth) access_token: String,
    /// How it is presented.
    pub(in crate::auth) token_type: TokenType,
    /// For how many seconds it is good, at most a year; `None` where that is not said.
    pub(in crate::auth) expires_in: Option<u64>,
    /// What the next one is asked for with.
    // MCP 2026-07-28 basic/authorization/index#refresh-tokens [AUTHC-065]
    pub(in crate::auth) refresh_token: Option<String>,
    /// The scopes, separated by spaces; `None` where they are those that were asked for.
    pub(in crate::auth) scope: Option<String>,
    /// What kind of token it is, after an exchange.
    pub(in crate::auth) issued_token_type: Option<String>,
}

/// What a token endpoint says in place of a token. Text of the authorization server: to show, not
/// to trust. Only what can be printed is kept of it, at most 1,024 characters each.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TokenError {
    /// Its code: `invalid_grant`, `invalid_client`, …
    pub error: String,
    /// The same in words, for a developer.
    pub description: Option<String>,
    /// A page about it.
    pub uri: Option<String>,
}

/// Why there is no token in the answer of a token endpoint. The authorization server's fault,
/// unless it refuses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenFault {
    /// The answer is longer than 256 KiB.
    #[error("the answer of the token endpoint is longer than {RESPONSE_LENGTH_MAX} bytes")]
    TooLong,
    /// The answer is no JSON object, lacks a required member, has one twice, or has one of another
    /// type than it should.
    #[error("the answer of the token endpoint is malformed")]
    Malformed,
    /// The token is of a type that the client did not ask for.
    #[error("the token is of another type than was asked for")]
    TokenType,
    /// The token is empty, longer than 32 KiB, or has what cannot be in the field of a request.
    #[error("the token cannot be used in a request")]
    Token,
    /// The authorization server refuses.
    #[error("the token endpoint answers `{}`", .0.error)]
    Refused(TokenError),
}

#[derive(Deserialize)]
struct Answer {
    access_token: Option<String>,
    token_type: Option<String>,
    #[serde(default, deserialize_with = "seconds")]
    expires_in: Option<u64>,
    refresh_token: Option<String>,
    scope: Option<String>,
    issued_token_type: Option<String>,
    error: Option<String>,
    error_description: Option<String>,
    error_uri: Option<String>,
}

impl TokenResponse {
    /// Reads the body of an answer, whatever its status: some say with 200 that they refuse. Linear
    /// in its length.
    ///
    /// # Errors
    ///
    /// See [`TokenFault`].
    pub(in crate::auth) fn parse(body: &[u8], purpose: TokenPurpose) -> Result<Self, TokenFault> {
        if body.len() > RESPONSE_LENGTH_MAX {
            return Err(TokenFault::TooLong);
        }
        if body.trim_ascii_start().first() != Some(&b'{') {
            return Err(TokenFault::Malformed);
        }
        // What is wrong is not told: the text around it may be secret.
        let answer: Answer = serde_json::from_slice(body).map_err(|_| TokenFault::Malformed)?;
        if let Some(error) = &answer.error {
            return Err(TokenFault::Refused(TokenError {
                error: printable(error),
                description: answer.error_description.as_deref().map(printable),
                uri: answer.error_uri.as_deref().map(printable),
            }));
        }
        let access_token = answer.access_token.ok_or(TokenFault::Malformed)?;
        let token_type = answer.token_type.ok_or(TokenFault::Malformed)?;
        let token_type = purpose.accept(&token_type).ok_or(TokenFault::TokenType)?;
        if !is_token(&access_token) {
            return Err(TokenFault::Token);
        }
        Ok(Self {
            access_token,
            token_type,
            expires_in: answer.expires_in,
            refresh_token: answer.refresh_token.filter(|it| is_token(it)),
            scope: answer.scope,
            issued_token_type: answer.issued_token_type,
        })
    }
}

impl TokenPurpose {
    /// The type of this name, if it serves the purpose. Names are in any case (RFC 6749, section
    /// 7.1).
    fn accept(self, name: &str) -> Option<TokenType> {
        let known = [
            ("bearer", TokenType::Bearer, self != Self::Assertion),
            ("dpop", TokenType::Dpop, self == Self::Dpop),
            ("n_a", TokenType::NotApplicable, self == Self::Assertion),
        ];
        let mut known = known.into_iter();
        known.find(|(it, _, wanted)| *wanted && it.eq_ignore_ascii_case(name)).map(|it| it.1)
    }
}

impl TokenError {
    /// Whether the same request with another nonce in its proof may succeed (RFC 9449, section 8).
    pub(in crate::auth) fn asks_for_nonce(&self) -> bool {
        self.error == USE_DPOP_NONCE
    }
}

impl fmt::Debug for TokenResponse {
    /// Leaves the tokens out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenResponse")
            .field("token_type", &self.token_type)
            .field("expires_in", &self.expires_in)
            .field("scope", &self.scope)
            .finish_non_exhaustive()
    }
}

/// Whether a token can be sent as it is: visible ASCII, which includes all that RFC 6750 allows.
fn is_token(text: &str) -> bool {
    let length = 1..=TOKEN_LENGTH_MAX;
    length.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// What can be shown of a text that somebody else wrote. Linear.
pub(in crate::auth) fn printable(text: &str) -> String {
    text.chars().filter(|it| matches!(it, ' '..='~')).take(TEXT_LENGTH_MAX).collect()
}

/// Reads `expires_in`, which some write as a text or with a fraction. What is no time counts as
/// nothing said, less than nothing as nothing left.
fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Seconds {
        Whole(u64),
        Fraction(f64),
        Text(String),
        Other(serde::de::IgnoredAny),
    }
    todo!()
}

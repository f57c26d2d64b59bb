use alloc::string::String;
use core::fmt;

use serde::Deserialize;

use super::ID_JAG;
use crate::auth::answer::{AnswerFault, printable, read_object, seconds};
use crate::auth::dpop::USE_DPOP_NONCE;

/// The longest token that is used, in bytes: what fits into a request.
const TOKEN_LENGTH_MAX: usize = 32 * 1024;
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
    /// The answer cannot be read.
    #[error("of the token endpoint, {0}")]
    Answer(#[from] AnswerFault),
    /// The answer has no token.
    #[error("the token endpoint answers neither with a token nor with an error")]
    NoToken,
    /// The token is of no type, or of one that the client did not ask for.
    #[error("the token is of another type than was asked for")]
    TokenType,
    /// The token is empty, longer than 32 KiB, or has what cannot be in the field of a request.
    #[error("the token cannot be used in a request")]
    Token,
    /// The authorization server refuses.
    #[error("the token endpoint refuses: {0}")]
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
        let answer: Answer = read_object(body)?;
        if let Some(error) = &answer.error {
            return Err(TokenFault::Refused(TokenError {
                error: printable(error),
                description: answer.error_description.as_deref().map(printable),
                uri: answer.error_uri.as_deref().map(printable),
            }));
        }
        let access_token = answer.access_token.ok_or(TokenFault::NoToken)?;
        let token_type = answer.token_type.ok_or(TokenFault::TokenType)?;
        let token_type = purpose.accept(&token_type).ok_or(TokenFault::TokenType)?;
        // What the identity provider gives must be the grant, not another token of the user's.
        let issued = answer.issued_token_type.as_deref();
        if purpose == TokenPurpose::Assertion && issued.is_some_and(|it| it != ID_JAG) {
            return Err(TokenFault::TokenType);
        }
        if !is_token(&access_token) {
            return Err(TokenFault::Token);
        }
        Ok(Self {
            access_token,
            token_type,
            expires_in: answer.expires_in.map(|it| it.min(LIFETIME_MAX)),
            refresh_token: answer
                .refresh_token
                .filter(|it| (1..=TOKEN_LENGTH_MAX).contains(&it.len())),
            scope: answer.scope,
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

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.error)?;
        match &self.description {
            Some(description) => write!(f, " ({description})"),
            None => Ok(()),
        }
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
pub(in crate::auth) fn is_token(text: &str) -> bool {
    let length = 1..=TOKEN_LENGTH_MAX;
    length.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

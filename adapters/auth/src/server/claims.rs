use mcp_sansio::Principal;
use mcp_sansio_oauth::is_same_resource;
use mcp_sansio_oauth::protected_resource::VerifiedToken;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::JwtError;

/// The claims that are used (RFC 9068, section 2.2).
#[derive(Deserialize)]
pub(super) struct Claims {
    iss: String,
    sub: String,
    aud: OneOrMore,
    exp: f64,
    nbf: Option<f64>,
    /// Separated by spaces; some issuers write a list.
    scope: Option<OneOrMore>,
    /// Used by some issuers instead of `scope`.
    scp: Option<OneOrMore>,
    /// The key or the certificate that the token is bound to (RFC 7800).
    cnf: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

/// The values that claims are checked against.
#[derive(Debug)]
pub(super) struct Expected<'a> {
    pub(super) issuer: &'a str,
    pub(super) audiences: &'a [String],
    /// Seconds since 1970.
    pub(super) now: u64,
    /// Tolerated clock difference between issuer and server, in seconds.
    pub(super) leeway: u64,
}

impl Claims {
    /// Checks everything but the signature.
    // MCP 2026-07-28 basic/authorization/index#token-handling [AUTHS-012]
    pub(super) fn check(&self, expected: &Expected<'_>) -> Result<(), JwtError> {
        if self.iss != expected.issuer {
            return Err(JwtError::Issuer);
        }
        if self.sub.is_empty() {
            return Err(JwtError::Malformed("the subject is empty"));
        }
        // MCP 2026-07-28 basic/authorization/security-considerations#access-token-privilege-restriction [AUTHS-013]
        let audiences = self.aud.as_slice();
        if !audiences
            .iter()
            .any(|it| expected.audiences.iter().any(|ours| is_same_resource(it, ours)))
        {
            return Err(JwtError::Audience);
        }
        // Negated, since NaN would pass the opposite comparison.
        #[expect(clippy::neg_cmp_op_on_partial_ord, reason = "NaN must not pass")]
        {
            if !(self.exp + seconds(expected.leeway) > seconds(expected.now)) {
                return Err(JwtError::Expired);
            }
            if !self.nbf.is_none_or(|it| it <= seconds(expected.now + expected.leeway)) {
                return Err(JwtError::Early);
            }
        }
        // The core checks the binding to a key of the client (RFC 9449, section 6), and nothing checks
        // others. A bound token that is presented as a bearer token may be stolen.
        if self.cnf.is_some() && self.thumbprint().is_none() {
            return Err(JwtError::Bound);
        }
        Ok(())
    }

    /// Returns the thumbprint of the key that the token is bound to, if it is bound to nothing else.
    fn thumbprint(&self) -> Option<&str> {
        let confirmation = self.cnf.as_ref()?;
        confirmation.get("jkt")?.as_str().filter(|_| confirmation.len() == 1)
    }

    /// Converts the checked claims for the core.
    pub(super) fn into_verified(self, leeway: u64) -> VerifiedToken {
        // An issuer is a URL, which contains no `|`.
        let principal = Principal::new(format!("{}|{}", self.iss, self.sub));
        let mut token = VerifiedToken::new(principal)
            .audiences(self.aud.as_slice())
            .expires_at(whole(self.exp).saturating_add(leeway));
        if let Some(thumbprint) = self.thumbprint() {
            token = token.bound_to(thumbprint);
        }
        for scopes in [&self.scope, &self.scp].into_iter().flatten() {
            for scope in scopes.as_slice() {
                token = token.scope(scope);
            }
        }
        token
    }
}

impl OneOrMore {
    fn as_slice(&self) -> &[String] {
        match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::More(texts) => texts,
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "seconds since 1970 are far below 2^53")]
const fn seconds(count: u64) -> f64 {
    count as f64
}

/// Truncates a date to whole seconds.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "dates out of range saturate"
)]
const fn whole(date: f64) -> u64 {
    date as u64
}

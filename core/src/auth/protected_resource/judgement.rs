//! What the head of a request says of its token.

use alloc::string::{String, ToString};

use super::{ProtectedResource, TokenCheck};
use crate::http::head::Authorization;
use crate::http::{Refusal, RequestHead};

/// The longest token that is looked at, in bytes: twice what other servers take for a whole field.
pub const ACCESS_TOKEN_LENGTH_MAX: usize = 16 * 1024;

impl ProtectedResource {
    /// The token of a request that came at `unix_time`, in seconds since 1970, to be checked before
    /// anything of the request is acted on.
    ///
    /// # Errors
    ///
    /// There is none, or not as it must be: the request is refused with this.
    // MCP 2026-07-28 basic/authorization/index#token-handling [AUTHS-012] [SEC-011]
    pub fn judge(&self, head: &RequestHead<'_>, unix_time: u64) -> Result<TokenCheck, Refusal> {
        // MCP 2026-07-28 basic/authorization/index#error-handling [AUTHS-002]: never in the URL, where
        // logs and histories have it.
        if head.query.0.split('&').any(|pair| pair.split('=').next() == Some("access_token")) {
            return Err(self.malformed("an access token must not be in the URL"));
        }
        let value = match head.authorization.0 {
            Authorization::None => return Err(self.no_token()),
            Authorization::One(value) => value,
            Authorization::Repeated => {
                return Err(self.malformed("`Authorization` must not be repeated"));
            }
        };
        let end = value.iter().position(|byte| *byte == b' ').unwrap_or(value.len());
        let (scheme, rest) = value.split_at(end);
        // RFC 6750, section 3.1: another scheme is as good as none.
        if !scheme.eq_ignore_ascii_case(b"bearer") {
            return Err(self.no_token());
        }
        match token68(rest.trim_ascii_start()) {
            Some(token) => {
                Ok(TokenCheck { token, resource: self.uri.as_str().to_string(), unix_time })
            }
            None => Err(self.malformed("`Authorization` has no well-formed access token")),
        }
    }
}

/// A token as RFC 6750 (section 2.1) has it: `b64token`.
fn token68(text: &[u8]) -> Option<String> {
    let padding = text.iter().rev().take_while(|byte| **byte == b'=').count();
    let token = &text[..text.len() - padding];
    let allowed = |byte: &u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'+' | b'/')
    };
    let formed =
        !token.is_empty() && text.len() <= ACCESS_TOKEN_LENGTH_MAX && token.iter().all(allowed);
    formed.then(|| String::from_utf8_lossy(text).into_owned())
}

//! Extraction of the token from the head of a request.

use alloc::string::{String, ToString};

use mcp_sansio::http::{AuthorizationField, HttpRejection, RequestHead};

use super::{ProtectedResource, TokenCheck};

/// The longest accepted token, in bytes: twice the limit of other servers for a whole field.
pub const ACCESS_TOKEN_LENGTH_MAX: usize = 16 * 1024;

impl ProtectedResource {
    /// Extracts the token of a request received at `unix_time`, in seconds since 1970. Check it
    /// before acting on the request.
    ///
    /// # Errors
    ///
    /// The token is missing or malformed; the error is the response that refuses the request.
    // MCP 2026-07-28 basic/authorization/index#token-handling [AUTHS-012],
    // MCP 2025-11-25 security-best-practices#session-hijacking [SEC-011]
    pub fn extract_token(
        &self,
        head: &RequestHead<'_>,
        unix_time: u64,
    ) -> Result<TokenCheck, HttpRejection> {
        // MCP 2026-07-28 basic/authorization/index#error-handling [AUTHS-002]: never in the URL,
        // which is stored in logs and histories.
        if head.query().split('&').any(|pair| pair.split('=').next() == Some("access_token")) {
            return Err(self.malformed("an access token must not be in the URL"));
        }
        let value = match head.authorization() {
            AuthorizationField::None => return Err(self.no_token()),
            AuthorizationField::One(value) => value,
            AuthorizationField::Repeated => {
                return Err(self.malformed("`Authorization` must not be repeated"));
            }
        };
        let end = value.iter().position(|byte| *byte == b' ').unwrap_or(value.len());
        let (scheme, rest) = value.split_at(end);
        let is_bound = self.dpop.is_some() && scheme.eq_ignore_ascii_case(b"dpop");
        // RFC 6750, section 3.1: another scheme counts as a missing token.
        if !is_bound && !scheme.eq_ignore_ascii_case(b"bearer") {
            return Err(self.no_token());
        }
        let token = token68(rest.trim_ascii_start())
            .ok_or_else(|| self.malformed("`Authorization` has no well-formed access token"))?;
        // With `Bearer`, a proof has no meaning: the token would be accepted without it too.
        let proof = if is_bound {
            let proof = self.extract_proof(head, &token, unix_time);
            Some(proof.map_err(|refusal| self.refused_proof(refusal))?)
        } else {
            None
        };
        Ok(TokenCheck { token, resource: self.uri.as_str().to_string(), unix_time, proof })
    }
}

/// Parses a token in the syntax of RFC 6750 (section 2.1): `b64token`.
pub(super) fn token68(text: &[u8]) -> Option<String> {
    let padding = text.iter().rev().take_while(|byte| **byte == b'=').count();
    let token = &text[..text.len() - padding];
    let allowed = |byte: &u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'+' | b'/')
    };
    let formed =
        !token.is_empty() && text.len() <= ACCESS_TOKEN_LENGTH_MAX && token.iter().all(allowed);
    formed.then(|| String::from_utf8_lossy(text).into_owned())
}

// The output of the server is parsed with the client's code.
#[cfg(all(test, feature = "client"))]
mod tests {
    use alloc::format;

    use mcp_sansio::http::Status;

    use super::super::tests::{read, resource};
    use super::*;

    fn extract(target: &str, values: &[&str]) -> Result<TokenCheck, HttpRejection> {
        let mut head = RequestHead::new("POST", target);
        for value in values {
            head.field("authorization", value.as_bytes());
        }
        resource().extract_token(&head, 5)
    }

    #[test]
    fn the_token_follows_the_bearer_scheme() {
        // Rule: [AUTHS-012] [SEC-011].
        for (value, token) in [
            ("Bearer abc.DEF-123_~+/==", "abc.DEF-123_~+/=="),
            ("bearer x", "x"),
            ("BEARER  x ", "x"),
        ] {
            let check = extract("/mcp", &[value]).expect(value);
            assert_eq!((check.token(), check.unix_time()), (token, 5));
            assert_eq!(check.resource(), "https://mcp.example.com/mcp");
        }
    }

    #[test]
    fn a_missing_token_is_challenged_without_an_error_code() {
        // Rule: [AUTHS-001] [AUTHS-009] [AUTHS-010] [AUTHS-011].
        for values in [&[][..], &["Basic YTpi"], &["DPoP x"], &[""], &["Bearerx"]] {
            let refusal = extract("/mcp", values).expect_err("no token");
            assert_eq!(refusal.status, Status::UNAUTHORIZED);
            assert_eq!(
                refusal.challenge.as_deref(),
                Some(concat!(
                    "Bearer resource_metadata=\"https://mcp.example.com",
                    "/.well-known/oauth-protected-resource/mcp\", scope=\"use\""
                )),
                "{values:?}"
            );
        }
    }

    #[test]
    fn a_malformed_token_is_a_bad_request() {
        // Rule: [AUTHS-002].
        let long = format!("Bearer {}", "x".repeat(ACCESS_TOKEN_LENGTH_MAX + 1));
        for (target, values) in [
            ("/mcp", &["Bearer"][..]),
            ("/mcp", &["Bearer "]),
            ("/mcp", &["Bearer a b"]),
            ("/mcp", &["Bearer a,b"]),
            ("/mcp", &["Bearer ="]),
            ("/mcp", &["Bearer a=b"]),
            ("/mcp", &["Bearer \u{fc}"]),
            ("/mcp", &["Bearer a", "Bearer a"]),
            ("/mcp", &["Bearer a", "Basic b"]),
            ("/mcp", &[&long]),
            ("/mcp?access_token=a", &[]),
            ("/mcp?x&access_token=a", &["Bearer a"]),
        ] {
            let refusal = extract(target, values).expect_err("malformed");
            assert_eq!(refusal.status, Status::BAD_REQUEST, "{target} {values:?}");
            assert_eq!(read(&refusal).error.as_deref(), Some("invalid_request"));
        }
        assert!(extract("/mcp", &[&long[..long.len() - 1]]).is_ok());
    }

    #[test]
    fn a_token_is_never_shown() {
        let mut head = RequestHead::new("POST", "/mcp?access_token=secret-1");
        head.field("authorization", b"Bearer secret-2");
        let check = extract("/mcp", &["Bearer secret-2"]).expect("a token");
        let refusal = resource().extract_token(&head, 0).expect_err("in the URL");
        for shown in [format!("{head:?}"), format!("{check:?}"), format!("{refusal:?}")] {
            assert!(!shown.contains("secret"), "{shown}");
            // The bytes of a slice in debug format.
            assert!(!shown.contains("115, 101, 99"), "{shown}");
        }
    }
}

//! Token checks by the application, and their results.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::{fmt, hint};

use mcp_sansio::http::{AuthorizationField, RequestHead};
use mcp_sansio::peer::HttpRejection;
use mcp_sansio::{Caller, Principal};
use sha2::{Digest, Sha256};

use super::{DpopProof, InvalidResource, ProtectedResource};

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
    pub(super) sender: Caller,
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
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
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
    /// Another refusal with its cause: see [`because`](Self::because).
    #[error("{refusal}: {cause}")]
    Because {
        /// The refusal.
        refusal: Box<Self>,
        /// The cause.
        cause: String,
    },
}

impl TokenRefusal {
    /// Adds the cause, for the observer of the server (`Server::observe_refused_tokens`). Clients are
    /// not told. It must not contain the token.
    #[must_use]
    pub fn because(self, cause: impl fmt::Display) -> Self {
        Self::Because { refusal: Box::new(self), cause: cause.to_string() }
    }

    /// Returns the refusal without its cause.
    #[must_use]
    pub fn without_cause(&self) -> &Self {
        match self {
            Self::Because { refusal, .. } => refusal.without_cause(),
            refusal => refusal,
        }
    }
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

    /// Returns the sender of the request as the connection or a layer in front of the server has
    /// identified it, with what surrounds the request: its [headers](Caller::header), its
    /// [address](Caller::remote_address) and the [values](Caller::extension) of layers. Handlers
    /// see the principal of the token in its place, and reach it as an extension.
    #[must_use]
    pub const fn sender(&self) -> &Caller {
        &self.sender
    }

    /// Sets the [sender](Self::sender), which is anonymous otherwise.
    #[must_use]
    pub fn with_sender(self, sender: Caller) -> Self {
        Self { sender, ..self }
    }
}

mcp_sansio::partial_debug! {
    /// Omits the secret.
    impl Debug for TokenCheck { resource, .. }
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

    /// Sets the thumbprint of the key that the token is bound to: `jkt` in its `cnf` (RFC 9449,
    /// section 6). Such a token is refused unless the resource
    /// [accepts](super::ProtectedResource::dpop) proofs and the client sent one with this key.
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

// ------------------------------------------------------------------ the token in the head of a request

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
        let (resource, sender) = (self.uri.as_str().to_string(), Caller::ANONYMOUS);
        Ok(TokenCheck { token, resource, unix_time, proof, sender })
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

// ------------------------------------------------------------------ tokens of the configuration

/// A table of tokens, each with the principal and the scopes of its holder, for a
/// [resource without an authorization server](super::ProtectedResource::without_issuer).
///
/// The tokens are not kept, only their SHA-256 digests, which are compared in constant time. A
/// check takes time in proportion to the number of tokens: the table is for dozens, not thousands.
///
/// ```
/// use mcp_sansio::Principal;
/// use mcp_sansio_oauth::protected_resource::{StaticTokens, VerifiedToken};
///
/// # fn secret(_: &str) -> String { "kX9vQmZ0b1xw0D7pF3sR5A".to_owned() }
/// let ann = VerifiedToken::new(Principal::new("ann")).scopes(["files:read"]);
/// let tokens = StaticTokens::new([(secret("ANN_TOKEN"), ann)])?;
/// // The check of a server: `move |check| tokens.check(&check)`
/// # Ok::<(), mcp_sansio_oauth::protected_resource::InvalidResource>(())
/// ```
#[derive(Clone)]
pub struct StaticTokens(Vec<([u8; 32], VerifiedToken)>);

impl StaticTokens {
    /// Creates a table from tokens and what their holders may do. An expiry is obeyed; audiences
    /// are not needed.
    ///
    /// A token must be impossible to guess: 128 random bits or more, for example from `openssl rand
    /// -base64 24`. There is no limit on guesses.
    ///
    /// # Errors
    ///
    /// [`InvalidResource::Token`] or [`InvalidResource::RepeatedToken`], which do not contain the token.
    pub fn new<T: AsRef<str>>(
        tokens: impl IntoIterator<Item = (T, VerifiedToken)>,
    ) -> Result<Self, InvalidResource> {
        let mut table = Vec::<([u8; 32], VerifiedToken)>::new();
        for (index, (token, holder)) in tokens.into_iter().enumerate() {
            let token = token68(token.as_ref().as_bytes());
            let digest = digest(&token.ok_or(InvalidResource::Token { index })?);
            if table.iter().any(|(other, _)| *other == digest) {
                return Err(InvalidResource::RepeatedToken { index });
            }
            table.push((digest, holder));
        }
        Ok(Self(table))
    }

    /// Checks a token: returns what its holder may do at the resource of the check.
    ///
    /// # Errors
    ///
    /// [`TokenRefusal::Invalid`]: the table does not contain the token.
    // MCP 2026-07-28 basic/authorization/index#token-handling [AUTHS-012]: the table is that of this
    // server, so its tokens are for this resource.
    pub fn check(&self, check: &TokenCheck) -> Result<VerifiedToken, TokenRefusal> {
        let digest = digest(check.token());
        let mut found = None;
        // Compares with every entry, so that the time does not tell which one it was.
        for (other, holder) in &self.0 {
            if are_same(other, &digest) {
                found = Some(holder);
            }
        }
        let holder = found.ok_or(TokenRefusal::Invalid)?;
        Ok(holder.clone().audiences([check.resource()]))
    }
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token).into()
}

/// Whether two digests are equal, in a time that does not depend on the position of a difference.
fn are_same(ours: &[u8; 32], theirs: &[u8; 32]) -> bool {
    let pairs = ours.iter().zip(theirs);
    pairs.fold(0, |difference, (ours, theirs)| hint::black_box(difference | (ours ^ theirs))) == 0
}

impl fmt::Debug for StaticTokens {
    /// Omits the digests: those of weak tokens could be reversed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StaticTokens").field("len", &self.0.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use mcp_sansio::peer::Status;

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

#[cfg(test)]
mod static_tokens_tests {
    use alloc::format;
    use alloc::string::ToString;

    use mcp_sansio::Principal;

    use super::*;

    fn holder(name: &str) -> VerifiedToken {
        VerifiedToken::new(Principal::new(name)).scopes(["use"])
    }

    fn check(tokens: &StaticTokens, token: &str) -> Result<VerifiedToken, TokenRefusal> {
        let resource = "http://localhost/mcp".to_string();
        let (token, sender) = (token.to_string(), Caller::ANONYMOUS);
        tokens.check(&TokenCheck { token, resource, unix_time: 0, proof: None, sender })
    }

    #[test]
    fn each_token_has_its_own_holder() {
        let tokens = [("ann-1", holder("ann")), ("ann-2", holder("ann")), ("bob==", holder("bob"))];
        let tokens = StaticTokens::new(tokens).expect("a table");
        for (token, name) in [("ann-1", "ann"), ("ann-2", "ann"), ("bob==", "bob")] {
            let token = check(&tokens, token).expect(name);
            assert_eq!(token, holder(name).audiences(["http://localhost/mcp"]));
        }
        for wrong in ["ann", "ann-", "ann-11", "Ann-1", "bob", "x"] {
            assert_eq!(check(&tokens, wrong), Err(TokenRefusal::Invalid), "{wrong}");
        }
    }

    #[test]
    fn an_empty_table_refuses_everything() {
        let tokens = StaticTokens::new::<&str>([]).expect("a table");
        assert_eq!(check(&tokens, "x"), Err(TokenRefusal::Invalid));
    }

    #[test]
    fn tokens_that_cannot_be_sent_or_that_repeat_are_refused() {
        for bad in ["", "two words", "a,b", "a=b", "ü", &"x".repeat(16 * 1024 + 1)] {
            let refused = StaticTokens::new([("good", holder("ann")), (bad, holder("bob"))]);
            let refused = refused.expect_err(bad);
            assert_eq!(refused, InvalidResource::Token { index: 1 });
        }
        let refused = StaticTokens::new([("same", holder("ann")), ("same", holder("bob"))]);
        assert_eq!(refused.expect_err("repeated"), InvalidResource::RepeatedToken { index: 1 });
    }

    #[test]
    fn a_table_never_shows_its_tokens() {
        let tokens = StaticTokens::new([("secret", holder("ann"))]).expect("a table");
        assert_eq!(format!("{tokens:?}"), "StaticTokens { len: 1, .. }");
    }

    #[test]
    fn digests_differ_if_any_byte_does() {
        assert!(are_same(&[7; 32], &[7; 32]));
        for place in 0..32 {
            let mut other = [7; 32];
            other[place] ^= 0x80;
            assert!(!are_same(&[7; 32], &other), "{place}");
        }
    }
}

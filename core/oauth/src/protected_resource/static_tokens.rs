//! Tokens that the server itself hands out, from its configuration.

use alloc::vec::Vec;
use core::{fmt, hint};

use sha2::{Digest, Sha256};

use super::token::token68;
use super::{TokenCheck, TokenRefusal, VerifiedToken};

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
/// # Ok::<(), mcp_sansio_oauth::protected_resource::InvalidStaticToken>(())
/// ```
#[derive(Clone)]
pub struct StaticTokens(Vec<([u8; 32], VerifiedToken)>);

/// Why a table of tokens is invalid. The caller's error. It does not contain the token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidStaticToken {
    /// A token is empty, too long, or has characters that clients cannot send (RFC 6750, section
    /// 2.1): use letters, digits and `-._~+/`, such as those of Base64.
    #[error("the token at position {index} cannot be sent in `Authorization`")]
    Syntax {
        /// The position, from 0.
        index: usize,
    },
    /// A token occurs twice.
    #[error("the token at position {index} is the same as an earlier one")]
    Repeated {
        /// The position of the second one, from 0.
        index: usize,
    },
}

impl StaticTokens {
    /// Creates a table from tokens and what their holders may do. An expiry is obeyed; audiences
    /// are not needed.
    ///
    /// A token must be impossible to guess: 128 random bits or more, for example from `openssl rand
    /// -base64 24`. There is no limit on guesses.
    ///
    /// # Errors
    ///
    /// See [`InvalidStaticToken`].
    pub fn new<T: AsRef<str>>(
        tokens: impl IntoIterator<Item = (T, VerifiedToken)>,
    ) -> Result<Self, InvalidStaticToken> {
        let mut table = Vec::<([u8; 32], VerifiedToken)>::new();
        for (index, (token, holder)) in tokens.into_iter().enumerate() {
            let token = token68(token.as_ref().as_bytes());
            let digest = digest(&token.ok_or(InvalidStaticToken::Syntax { index })?);
            if table.iter().any(|(other, _)| *other == digest) {
                return Err(InvalidStaticToken::Repeated { index });
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
    use alloc::string::ToString;

    use mcp_sansio::Principal;

    use super::*;

    fn holder(name: &str) -> VerifiedToken {
        VerifiedToken::new(Principal::new(name)).scopes(["use"])
    }

    fn check(tokens: &StaticTokens, token: &str) -> Result<VerifiedToken, TokenRefusal> {
        let resource = "http://localhost/mcp".to_string();
        tokens.check(&TokenCheck { token: token.to_string(), resource, unix_time: 0, proof: None })
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
            assert_eq!(refused, InvalidStaticToken::Syntax { index: 1 });
        }
        let refused = StaticTokens::new([("same", holder("ann")), ("same", holder("bob"))]);
        assert_eq!(refused.expect_err("repeated"), InvalidStaticToken::Repeated { index: 1 });
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

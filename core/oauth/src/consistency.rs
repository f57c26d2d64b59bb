//! What holds of every answer that is taken, for tests.

use alloc::format;

use super::registration::Registration;
use super::token::{TokenPurpose, TokenResponse, TokenType};

/// Reads the answer of an endpoint as each of the answers that there are. Panics if one is taken
/// that cannot be used, or shows what is secret.
pub(crate) fn check_answers(body: &[u8]) {
    for purpose in
        [TokenPurpose::Bearer, TokenPurpose::Dpop, TokenPurpose::BoundOnly, TokenPurpose::Assertion]
    {
        let Ok(answer) = TokenResponse::parse(body, purpose) else { continue };
        assert!(is_visible(&answer.access_token), "a token that no field can carry");
        let fits = match purpose {
            TokenPurpose::Bearer => answer.token_type == TokenType::Bearer,
            TokenPurpose::Dpop => answer.token_type != TokenType::NotApplicable,
            TokenPurpose::BoundOnly => answer.token_type == TokenType::Dpop,
            TokenPurpose::Assertion => true,
        };
        assert!(fits, "{:?} for {purpose:?}", answer.token_type);
        assert!(answer.expires_in.is_none_or(|it| it <= 31_536_000), "{:?}", answer.expires_in);
        let shown = format!("{answer:?}");
        for secret in [Some(&answer.access_token), answer.refresh_token.as_ref()] {
            assert!(!secret.is_some_and(|it| it.len() > 32 && shown.contains(&**it)), "{shown}");
        }
    }
    if let Ok(answer) = Registration::parse(body) {
        assert!(is_visible(&answer.client_id.replace(' ', "-")), "an id that cannot be sent");
        let secret = answer.client_secret.as_deref().unwrap_or_default();
        assert!(secret.is_empty() || is_visible(&secret.replace(' ', "-")));
        assert!(answer.secret_expires_at != Some(0));
        let shown = format!("{answer:?}").replace(&*answer.client_id, "");
        assert!(secret.len() <= 32 || !shown.contains(secret), "{shown}");
    }
}

fn is_visible(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

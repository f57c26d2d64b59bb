//! The user's consent, and the codes and refresh tokens issued for it.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};

use super::bounded_map::BoundedMap;
use super::failure::Failure;
use super::keys::secret;
use super::options::Limits;

/// The lifetime of a code in seconds. Clients exchange it at once.
const CODE_LIFETIME: u64 = 60;

/// The permission of a client to act for a user at a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Permission {
    pub(super) client_id: String,
    pub(super) subject: String,
    pub(super) resource: String,
    pub(super) scopes: Vec<String>,
}

/// Identifies all tokens that were issued for the same consent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Family(u64);

/// The consent for which a code was issued.
#[derive(Clone)]
pub(super) struct Consent {
    pub(super) permission: Permission,
    pub(super) redirect_uri: String,
    pub(super) challenge: String,
}

/// The parameters with which a client redeems a code.
pub(super) struct Redemption<'a> {
    pub(super) code: &'a str,
    pub(super) client_id: &'a str,
    pub(super) redirect_uri: Option<&'a str>,
    pub(super) verifier: &'a str,
}

pub(super) struct Grants {
    codes: BoundedMap<Code>,
    refresh_tokens: BoundedMap<RefreshToken>,
    families: u64,
}

struct Code {
    consent: Consent,
    family: Family,
    expires: u64,
    spent: bool,
}

struct RefreshToken {
    permission: Permission,
    family: Family,
    spent: bool,
}

impl Grants {
    pub(super) const fn new(limits: &Limits) -> Self {
        Self {
            codes: BoundedMap::new(limits.codes_max),
            refresh_tokens: BoundedMap::new(limits.refresh_tokens_max),
            families: 0,
        }
    }

    /// Issues a code for a consent.
    pub(super) fn issue_code(&mut self, consent: Consent, now: u64) -> Result<String, Failure> {
        let code = secret()?;
        self.families += 1;
        let family = Family(self.families);
        let expires = now + CODE_LIFETIME;
        self.codes.insert(code.clone(), Code { consent, family, expires, spent: false });
        Ok(code)
    }

    /// Redeems a code. Each code can be redeemed once.
    // MCP 2026-07-28 basic/authorization/index#overview [AUTHS-022]: OAuth 2.1, section 4.1.3.
    pub(super) fn redeem_code(
        &mut self,
        redemption: &Redemption<'_>,
        now: u64,
    ) -> Result<(Permission, Family), Failure> {
        let code = self.codes.get_mut(redemption.code);
        let code = code.ok_or(Failure::grant("unknown code"))?;
        let consent = &code.consent;
        // A code of another client stays valid, so that a client that obtained it cannot invalidate
        // it.
        if consent.permission.client_id != redemption.client_id {
            return Err(Failure::grant("the code was issued to another client"));
        }
        if code.spent {
            // The code was used twice, so one of the users is an attacker. Revoke all tokens issued
            // for it.
            let family = code.family;
            self.refresh_tokens.retain(|token| token.family != family);
            return Err(Failure::grant("the code has already been used"));
        }
        code.spent = true;
        if code.expires <= now {
            return Err(Failure::grant("the code has expired"));
        }
        if redemption.redirect_uri.is_some_and(|uri| uri != consent.redirect_uri) {
            return Err(Failure::grant("the code was issued for another redirect URI"));
        }
        if challenge_of(redemption.verifier).as_ref() != Some(&consent.challenge) {
            return Err(Failure::grant("`code_verifier` does not match the request"));
        }
        Ok((consent.permission.clone(), code.family))
    }

    /// Issues a refresh token of this family.
    pub(super) fn issue_refresh_token(
        &mut self,
        permission: Permission,
        family: Family,
    ) -> Result<String, Failure> {
        let token = secret()?;
        self.refresh_tokens
            .insert(token.clone(), RefreshToken { permission, family, spent: false });
        Ok(token)
    }

    /// Redeems a refresh token, which can be used once. The caller issues its successor.
    // MCP 2026-07-28 basic/authorization/security-considerations#open-redirection [AUTHS-025]:
    // refresh tokens of all clients rotate.
    pub(super) fn redeem_refresh_token(
        &mut self,
        token: &str,
        client_id: &str,
    ) -> Result<(Permission, Family), Failure> {
        let token = self.refresh_tokens.get_mut(token);
        let token = token.filter(|token| token.permission.client_id == client_id);
        let token = token.ok_or(Failure::grant("unknown refresh token"))?;
        if token.spent {
            // As with codes, either of the two users may be the attacker.
            let family = token.family;
            self.refresh_tokens.retain(|token| token.family != family);
            return Err(Failure::grant("the refresh token has already been used"));
        }
        token.spent = true;
        Ok((token.permission.clone(), token.family))
    }

    /// Revokes all refresh tokens.
    pub(super) fn revoke_all(&mut self) {
        self.refresh_tokens.retain(|_| false);
    }
}

/// Returns the challenge for a verifier (RFC 7636), or `None` if the verifier is malformed.
fn challenge_of(verifier: &str) -> Option<String> {
    let unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let is_verifier = (43..=128).contains(&verifier.len()) && verifier.bytes().all(unreserved);
    is_verifier.then(|| URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
    const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

    fn permission() -> Permission {
        Permission {
            client_id: "c".into(),
            subject: "user".into(),
            resource: "https://r.example".into(),
            scopes: vec!["s".into()],
        }
    }

    /// Returns grants with one code that was issued at time 100.
    fn with_code() -> (Grants, String) {
        let mut grants = Grants::new(&Limits::DEFAULT);
        let consent = Consent {
            permission: permission(),
            redirect_uri: "https://a.example/".into(),
            challenge: CHALLENGE.into(),
        };
        let code = grants.issue_code(consent, 100).unwrap();
        (grants, code)
    }

    fn redemption(code: &str) -> Redemption<'_> {
        let redirect_uri = Some("https://a.example/");
        Redemption { code, client_id: "c", redirect_uri, verifier: VERIFIER }
    }

    #[test]
    fn a_code_is_valid_once_and_its_reuse_revokes_the_tokens_issued_for_it() {
        // Rule: [AUTHS-022].
        let (mut grants, code) = with_code();
        let (granted, family) = grants.redeem_code(&redemption(&code), 159).unwrap();
        assert_eq!(granted, permission());
        let token = grants.issue_refresh_token(granted, family).unwrap();
        assert!(grants.redeem_code(&redemption(&code), 159).is_err());
        assert!(grants.redeem_refresh_token(&token, "c").is_err());
    }

    #[test]
    fn a_code_is_bound_to_its_client_redirect_and_verifier_and_expires() {
        // Rule: [AUTHS-022].
        let refused = |change: fn(&mut Redemption<'_>), now| {
            let (mut grants, code) = with_code();
            let mut redemption = redemption(&code);
            change(&mut redemption);
            grants.redeem_code(&redemption, now).unwrap_err().error == "invalid_grant"
        };
        assert!(refused(|it| it.client_id = "other", 101));
        assert!(refused(|it| it.redirect_uri = Some("https://b.example/"), 101));
        assert!(refused(|it| it.verifier = CHALLENGE, 101));
        assert!(refused(|it| it.verifier = "short", 101));
        assert!(refused(|it| it.code = "other", 101));
        assert!(refused(|_| (), 160));
    }

    #[test]
    fn refresh_tokens_rotate_and_reuse_revokes_their_family() {
        // Rule: [AUTHS-025].
        let (mut grants, code) = with_code();
        let (granted, family) = grants.redeem_code(&redemption(&code), 101).unwrap();
        let first = grants.issue_refresh_token(granted, family).unwrap();
        assert!(grants.redeem_refresh_token(&first, "other").is_err());
        let (granted, family) = grants.redeem_refresh_token(&first, "c").unwrap();
        let second = grants.issue_refresh_token(granted, family).unwrap();
        assert_ne!(first, second);
        assert!(grants.redeem_refresh_token(&first, "c").is_err());
        assert!(grants.redeem_refresh_token(&second, "c").is_err());
    }
}

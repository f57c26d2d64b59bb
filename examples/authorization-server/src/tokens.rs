//! The token endpoint.

use http::HeaderMap;
use serde_json::{Value, json};

use super::authorization::{resource, scopes};
use super::clients::{Client, Clients, GrantType};
use super::failure::Failure;
use super::grants::{Family, Grants, Permission, Redemption};
use super::keys::{self, SigningKeys, secret};
use super::options::Options;
use super::parameters::Parameters;

/// The state for answering a token request.
pub(super) struct TokenEndpoint<'a> {
    pub(super) issuer: &'a str,
    pub(super) options: &'a Options,
    pub(super) clients: &'a Clients,
    pub(super) grants: &'a mut Grants,
    pub(super) keys: &'a SigningKeys,
}

impl TokenEndpoint<'_> {
    /// Answers a token request. Returns the grant type and the response.
    pub(super) fn answer(
        &mut self,
        headers: &HeaderMap,
        body: &[u8],
        now: u64,
    ) -> Result<(GrantType, Value), Failure> {
        let form = Parameters::parse(body)?;
        let client = self.clients.authenticate(headers, &form, self.issuer, now)?;
        let grant_type = form.require("grant_type", "`grant_type` is missing")?;
        let description = "unknown grant type";
        let grant_type = GrantType::parse(grant_type)
            .ok_or_else(|| Failure::new("unsupported_grant_type", description))?;
        if !client.may_use(grant_type) {
            let description = "the client may not use this grant type";
            return Err(Failure::new("unauthorized_client", description));
        }
        let resource = resource(&form)?;
        let response = match grant_type {
            GrantType::AuthorizationCode => self.for_code(&form, client, resource, now),
            GrantType::RefreshToken => self.for_refresh_token(&form, client, resource, now),
            GrantType::ClientCredentials => {
                let scopes = scopes(&form, self.options)?;
                self.grant(&permission(client, &client.id, resource, scopes), None, now)
            }
            GrantType::JwtBearer => self.for_assertion(&form, client, resource, now),
        };
        Ok((grant_type, response?))
    }

    fn for_code(
        &mut self,
        form: &Parameters,
        client: &Client,
        resource: &str,
        now: u64,
    ) -> Result<Value, Failure> {
        let redemption = Redemption {
            code: form.require("code", "`code` is missing")?,
            client_id: &client.id,
            redirect_uri: form.get("redirect_uri"),
            verifier: form.require("code_verifier", "`code_verifier` is missing")?,
        };
        let (permission, family) = self.grants.redeem_code(&redemption, now)?;
        check_resource(&permission, resource)?;
        self.grant(&permission, renewable(client, family), now)
    }

    fn for_refresh_token(
        &mut self,
        form: &Parameters,
        client: &Client,
        resource: &str,
        now: u64,
    ) -> Result<Value, Failure> {
        let token = form.require("refresh_token", "`refresh_token` is missing")?;
        let (permission, family) = self.grants.redeem_refresh_token(token, &client.id)?;
        check_resource(&permission, resource)?;
        let mut narrowed = permission.clone();
        if form.get("scope").is_some() {
            narrowed.scopes = scopes(form, self.options)?;
            if !narrowed.scopes.iter().all(|scope| permission.scopes.contains(scope)) {
                return Err(Failure::new("invalid_scope", "the user has not granted this scope"));
            }
        }
        let mut response = self.grant(&narrowed, None, now)?;
        // The next refresh token has the scopes of this one, even if fewer were requested (RFC
        // 6749, section 6).
        response["refresh_token"] = json!(self.grants.issue_refresh_token(permission, family)?);
        Ok(response)
    }

    /// Issues a token for an assertion of a trusted issuer (RFC 7523, section 3). An assertion may
    /// be used repeatedly until it expires.
    fn for_assertion(
        &mut self,
        form: &Parameters,
        client: &Client,
        resource: &str,
        now: u64,
    ) -> Result<Value, Failure> {
        let assertion = form.require("assertion", "`assertion` is missing")?;
        let issuer = keys::unverified_issuer(assertion);
        let trusted = self.options.trusted.iter().find(|it| Some(&it.issuer) == issuer.as_ref());
        let claims = trusted.and_then(|it| keys::verify(assertion, &it.keys));
        let claims = claims.ok_or(Failure::grant("the issuer of the assertion is not trusted"))?;
        if !keys::is_for(&claims, self.issuer) {
            return Err(Failure::grant("the assertion is for another server"));
        }
        if !keys::is_current(&claims, now) {
            return Err(Failure::grant("the assertion has expired or is not yet valid"));
        }
        // An enterprise assertion (ID-JAG) names its client and its resource.
        let is_other = |name: &str, ours: &str| claims.get(name).is_some_and(|it| *it != *ours);
        if is_other("client_id", &client.id) || is_other("resource", resource) {
            return Err(Failure::grant("the assertion is for another client or resource"));
        }
        let subject = claims["sub"].as_str().ok_or(Failure::grant("the assertion has no `sub`"))?;
        let scopes = scopes(form, self.options)?;
        self.grant(&permission(client, subject, resource, scopes), None, now)
    }

    /// Issues an access token, and a refresh token if there is a family.
    // MCP 2025-03-26 basic/authorization#security-considerations [AUTHS-006]
    // MCP 2026-07-28 basic/authorization/security-considerations#token-theft [AUTHS-029]: access
    // tokens are short-lived.
    fn grant(
        &mut self,
        permission: &Permission,
        renewable: Option<Family>,
        now: u64,
    ) -> Result<Value, Failure> {
        let lifetime = self.options.access_token_lifetime.as_secs();
        let scope = permission.scopes.join(" ");
        let claims = json!({
            "iss": self.issuer,
            "sub": permission.subject,
            "aud": permission.resource,
            "client_id": permission.client_id,
            "scope": scope,
            "iat": now,
            "exp": now + lifetime,
            "jti": secret()?,
        });
        let mut response = json!({
            "access_token": self.keys.sign("at+jwt", &claims).map_err(|_| Failure::entropy())?,
            "token_type": "Bearer",
            "expires_in": lifetime,
            "scope": scope,
        });
        if let Some(family) = renewable {
            let token = self.grants.issue_refresh_token(permission.clone(), family)?;
            response["refresh_token"] = json!(token);
        }
        Ok(response)
    }
}

fn permission(client: &Client, subject: &str, resource: &str, scopes: Vec<String>) -> Permission {
    let (client_id, subject) = (client.id.clone(), subject.into());
    Permission { client_id, subject, resource: resource.into(), scopes }
}

fn renewable(client: &Client, family: Family) -> Option<Family> {
    client.may_use(GrantType::RefreshToken).then_some(family)
}

/// Checks that the token is for the resource that the user has granted.
fn check_resource(permission: &Permission, resource: &str) -> Result<(), Failure> {
    if permission.resource == resource {
        Ok(())
    } else {
        Err(Failure::new("invalid_target", "the grant is for another `resource`"))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use form_urlencoded::Serializer;

    use super::*;
    use crate::grants::Consent;
    use crate::{ClientAuthentication, TrustedIssuer};

    const ISSUER: &str = "http://127.0.0.1:1";
    const RESOURCE: &str = "http://127.0.0.1:2/mcp";
    const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
    const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

    /// A complete setup for issuing tokens, at time 100.
    struct TestSetup {
        options: Options,
        clients: Clients,
        grants: Grants,
        keys: SigningKeys,
        identity: SigningKeys,
    }

    impl TestSetup {
        fn new() -> Self {
            let identity = SigningKeys::generate().unwrap();
            let options = Options::new()
                .scopes(["mcp:basic", "mcp:write"])
                .access_token_lifetime(Duration::from_secs(2))
                .trust(TrustedIssuer { issuer: "http://idp".into(), keys: identity.to_jwks() });
            let app = Client::new("app", ClientAuthentication::None)
                .grant_type(GrantType::AuthorizationCode)
                .grant_type(GrantType::RefreshToken)
                .grant_type(GrantType::JwtBearer);
            let machine = Client::new("machine", ClientAuthentication::Post("secret".into()))
                .grant_type(GrantType::ClientCredentials);
            Self {
                clients: Clients::new(vec![app, machine], 1),
                grants: Grants::new(&options.limits),
                keys: SigningKeys::generate().unwrap(),
                options,
                identity,
            }
        }

        fn ask(&mut self, form: &[(&str, &str)]) -> Result<Value, &'static str> {
            let mut body = Serializer::new(String::new());
            body.extend_pairs(form);
            if form.iter().all(|(name, _)| *name != "resource") {
                body.append_pair("resource", RESOURCE);
            }
            let Self { options, clients, grants, keys, .. } = self;
            let mut endpoint = TokenEndpoint { issuer: ISSUER, options, clients, grants, keys };
            let answer = endpoint.answer(&HeaderMap::new(), body.finish().as_bytes(), 100);
            answer.map(|(_, response)| response).map_err(|failure| failure.error)
        }

        fn code(&mut self) -> String {
            let scopes = self.options.scopes.clone();
            let consent = Consent {
                permission: Permission {
                    client_id: "app".into(),
                    subject: "user".into(),
                    resource: RESOURCE.into(),
                    scopes,
                },
                redirect_uri: "http://127.0.0.1/".into(),
                challenge: CHALLENGE.into(),
            };
            self.grants.issue_code(consent, 100).unwrap()
        }

        fn claims(&self, response: &Value) -> Value {
            keys::verify(response["access_token"].as_str().unwrap(), &self.keys.to_jwks()).unwrap()
        }
    }

    fn with_code<'a>(code: &'a str, resource: &'a str) -> [(&'a str, &'a str); 5] {
        [
            ("grant_type", "authorization_code"),
            ("client_id", "app"),
            ("code", code),
            ("code_verifier", VERIFIER),
            ("resource", resource),
        ]
    }

    fn renew<'a>(token: &'a Value, scope: &'a str) -> [(&'a str, &'a str); 4] {
        [
            ("grant_type", "refresh_token"),
            ("client_id", "app"),
            ("refresh_token", token.as_str().unwrap()),
            ("scope", scope),
        ]
    }

    #[test]
    fn a_token_is_for_one_resource_and_short_lived() {
        // Rule: [AUTHS-006] [AUTHS-022] [AUTHS-029].
        let mut setup = TestSetup::new();
        let code = setup.code();
        let response = setup.ask(&with_code(&code, RESOURCE)).unwrap();
        assert_eq!(response["token_type"], "Bearer");
        assert_eq!(response["expires_in"], 2);
        let claims = setup.claims(&response);
        assert_eq!(claims["aud"], RESOURCE);
        assert_eq!(claims["iss"], ISSUER);
        assert_eq!(claims["sub"], "user");
        assert_eq!(claims["client_id"], "app");
        assert_eq!(claims["scope"], "mcp:basic mcp:write");
        assert_eq!(claims["exp"], 102);

        let code = setup.code();
        assert_eq!(setup.ask(&with_code(&code, "http://127.0.0.1:3/")), Err("invalid_target"));
        let code = setup.code();
        assert_eq!(setup.ask(&with_code(&code, "")), Err("invalid_target"));
    }

    #[test]
    fn each_refresh_returns_a_new_refresh_token() {
        // Rule: [AUTHS-025].
        let mut setup = TestSetup::new();
        let code = setup.code();
        let first = setup.ask(&with_code(&code, RESOURCE)).unwrap()["refresh_token"].take();
        let mut response = setup.ask(&renew(&first, "mcp:basic")).unwrap();
        assert_eq!(response["scope"], "mcp:basic");
        let second = response["refresh_token"].take();
        // A scope that was omitted once can be requested again.
        let mut response = setup.ask(&renew(&second, "")).unwrap();
        assert_eq!(response["scope"], "mcp:basic mcp:write");
        let third = response["refresh_token"].take();
        assert_eq!(setup.ask(&renew(&second, "")), Err("invalid_grant"));
        assert_eq!(setup.ask(&renew(&third, "")), Err("invalid_grant"));
    }

    #[test]
    fn a_client_can_use_client_credentials() {
        let mut setup = TestSetup::new();
        let form = [
            ("grant_type", "client_credentials"),
            ("client_id", "machine"),
            ("client_secret", "secret"),
        ];
        let response = setup.ask(&form).unwrap();
        assert_eq!(response["refresh_token"], Value::Null);
        let claims = setup.claims(&response);
        assert_eq!((&claims["sub"], &claims["scope"]), (&json!("machine"), &json!("mcp:basic")));
        let other = [("grant_type", "client_credentials"), ("client_id", "app")];
        assert_eq!(setup.ask(&other), Err("unauthorized_client"));
        assert_eq!(setup.ask(&form[..2]), Err("invalid_client"));
        let unknown = [("grant_type", "password"), ("client_id", "app")];
        assert_eq!(setup.ask(&unknown), Err("unsupported_grant_type"));
    }

    #[test]
    fn an_assertion_needs_a_trusted_issuer_and_this_audience() {
        let mut setup = TestSetup::new();
        let good = json!({
            "iss": "http://idp", "sub": "somebody", "aud": ISSUER, "exp": 160,
            "client_id": "app", "resource": RESOURCE,
        });
        let mut tries = |name: &str, value: Value| {
            let mut claims = good.clone();
            claims[name] = value;
            let assertion = setup.identity.sign("oauth-id-jag+jwt", &claims).unwrap();
            let form = [
                ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"),
                ("client_id", "app"),
                ("assertion", &*assertion),
            ];
            setup.ask(&form).map(|response| setup.claims(&response)["sub"].take())
        };
        assert_eq!(tries("aud", json!([ISSUER])), Ok(json!("somebody")));
        for (name, value) in [
            ("iss", json!("http://other")),
            ("aud", json!("http://other")),
            ("exp", json!(100)),
            ("client_id", json!("other")),
            ("resource", json!("http://other")),
            ("sub", json!(null)),
        ] {
            assert_eq!(tries(name, value), Err("invalid_grant"), "{name}");
        }
    }
}

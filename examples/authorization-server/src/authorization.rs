//! The authorization endpoint: the request, the consent page, and the redirect.

use form_urlencoded::Serializer;

use super::bounded_map::BoundedMap;
use super::clients::{Client, Clients, GrantType};
use super::failure::Failure;
use super::grants::{Consent, Grants, Permission};
use super::keys::secret;
use super::options::{Approval, Options};
use super::page;
use super::parameters::Parameters;

/// The response to the user's browser.
pub(super) enum AuthorizationResponse {
    /// A redirect to the client.
    Redirect(String),
    /// A consent page.
    Consent(String),
    /// An error page, if the request has no trusted redirect URI.
    Error(Failure),
}

/// Requests that wait for the user's consent.
pub(super) struct Authorizations {
    issuer: String,
    waiting: BoundedMap<PendingConsent>,
}

/// A valid request that waits for consent.
#[derive(Clone)]
struct PendingConsent {
    consent: Consent,
    state: Option<String>,
}

impl Authorizations {
    pub(super) fn new(issuer: &str, options: &Options) -> Self {
        Self { issuer: issuer.into(), waiting: BoundedMap::new(options.limits.codes_max) }
    }

    /// Handles an authorization request.
    pub(super) fn begin(
        &mut self,
        query: &[u8],
        options: &Options,
        clients: &Clients,
        grants: &mut Grants,
        now: u64,
    ) -> AuthorizationResponse {
        let (request, client, redirect_uri) = match trusted(query, clients) {
            Ok(trusted) => trusted,
            Err(failure) => return AuthorizationResponse::Error(failure),
        };
        let state = request.get("state").map(Into::into);
        let waiting = match consent(&request, client, options) {
            Ok((permission, challenge)) => {
                let redirect_uri = redirect_uri.clone();
                PendingConsent { consent: Consent { permission, redirect_uri, challenge }, state }
            }
            Err(failure) => {
                return self.send_back(&redirect_uri, state.as_deref(), Err(failure));
            }
        };
        match options.approval {
            Approval::Automatic => self.end(&waiting, true, grants, now),
            Approval::Denied => self.end(&waiting, false, grants, now),
            Approval::Page => match secret() {
                Ok(id) => {
                    let name = client.name.as_deref().unwrap_or(&client.id);
                    let question = page::question(name, &waiting.consent, &id);
                    self.waiting.insert(id, waiting);
                    AuthorizationResponse::Consent(question)
                }
                Err(failure) => AuthorizationResponse::Error(failure),
            },
        }
    }

    /// Handles the user's answer on the consent page.
    pub(super) fn answer(
        &mut self,
        form: &[u8],
        grants: &mut Grants,
        now: u64,
    ) -> AuthorizationResponse {
        let answer = Parameters::parse(form).and_then(|form| {
            let id = form.require("request", "`request` is missing")?;
            let waiting = self.waiting.remove(id);
            let waiting = waiting
                .ok_or(Failure::request("no authorization request is pending for this answer"))?;
            Ok((waiting, form.get("answer") == Some("approve")))
        });
        match answer {
            Ok((waiting, approved)) => self.end(&waiting, approved, grants, now),
            Err(failure) => AuthorizationResponse::Error(failure),
        }
    }

    fn end(
        &self,
        waiting: &PendingConsent,
        approved: bool,
        grants: &mut Grants,
        now: u64,
    ) -> AuthorizationResponse {
        let outcome = if approved {
            grants.issue_code(waiting.consent.clone(), now)
        } else {
            Err(Failure::new("access_denied", "the user declined"))
        };
        self.send_back(&waiting.consent.redirect_uri, waiting.state.as_deref(), outcome)
    }

    fn send_back(
        &self,
        redirect_uri: &str,
        state: Option<&str>,
        outcome: Result<String, Failure>,
    ) -> AuthorizationResponse {
        let mut query = Serializer::new(String::new());
        match outcome {
            Ok(code) => query.append_pair("code", &code),
            Err(failure) => query
                .append_pair("error", failure.error)
                .append_pair("error_description", failure.description),
        };
        if let Some(state) = state {
            query.append_pair("state", state);
        }
        // MCP 2026-07-28 basic/authorization/index#authorization-response-validation [AUTHS-026]:
        // error responses include `iss` as well.
        query.append_pair("iss", &self.issuer);
        let separator = if redirect_uri.contains('?') { '&' } else { '?' };
        AuthorizationResponse::Redirect(format!("{redirect_uri}{separator}{}", query.finish()))
    }
}

/// Returns the request, its client, and the redirect URI. Nothing is redirected until all three
/// have been validated.
// MCP 2026-07-28 basic/authorization/security-considerations#token-theft [AUTHS-029]
fn trusted<'a>(
    query: &[u8],
    clients: &'a Clients,
) -> Result<(Parameters, &'a Client, String), Failure> {
    let request = Parameters::parse(query)?;
    let client = clients.find(request.require("client_id", "`client_id` is missing")?);
    let client = client.ok_or(Failure::request("unknown client"))?;
    let redirect_uri = request.require("redirect_uri", "`redirect_uri` is missing")?.to_owned();
    // MCP 2026-07-28 basic/authorization/security-considerations#open-redirection [AUTHS-025]
    if !client.may_redirect_to(&redirect_uri) {
        return Err(Failure::request("the client has not registered this `redirect_uri`"));
    }
    Ok((request, client, redirect_uri))
}

/// Returns the requested permission and the code challenge.
fn consent(
    request: &Parameters,
    client: &Client,
    options: &Options,
) -> Result<(Permission, String), Failure> {
    if request.require("response_type", "`response_type` is missing")? != "code" {
        let description = "the only supported `response_type` is `code`";
        return Err(Failure::new("unsupported_response_type", description));
    }
    if !client.may_use(GrantType::AuthorizationCode) {
        return Err(Failure::new(
            "unauthorized_client",
            "the client may not use the authorization code grant",
        ));
    }
    // MCP 2026-07-28 basic/authorization/index#overview [AUTHS-022]: OAuth 2.1 requires PKCE from
    // every client.
    let challenge = request.require("code_challenge", "`code_challenge` is missing")?;
    if request.get("code_challenge_method") != Some("S256") || challenge.len() != 43 {
        return Err(Failure::request("the only supported `code_challenge_method` is `S256`"));
    }
    let permission = Permission {
        client_id: client.id.clone(),
        subject: subject(request, options)?.into(),
        resource: resource(request)?.into(),
        scopes: scopes(request, options)?,
    };
    Ok((permission, challenge.into()))
}

/// The maximum length of a user name, in bytes.
const LOGIN_HINT_LENGTH_MAX: usize = 64;

/// Returns the user who signs in: the one named by the client, without proof (`login_hint` of
/// OpenID Connect Core 1.0, section 3.1.2.1), or the default user.
fn subject<'a>(request: &'a Parameters, options: &'a Options) -> Result<&'a str, Failure> {
    match request.get("login_hint") {
        None => Ok(&options.subject),
        Some(hint) if hint.len() <= LOGIN_HINT_LENGTH_MAX => Ok(hint),
        Some(_) => Err(Failure::request("the `login_hint` is too long")),
    }
}

/// Returns the resource of the token (RFC 8707).
pub(super) fn resource(request: &Parameters) -> Result<&str, Failure> {
    let target = |description| Failure::new("invalid_target", description);
    let resource = request.get("resource").ok_or_else(|| target("`resource` is missing"))?;
    let absolute = resource.split_once("://").is_some_and(|(scheme, rest)| {
        matches!(scheme, "http" | "https") && !rest.is_empty() && !rest.contains('#')
    });
    if absolute { Ok(resource) } else { Err(target("`resource` must be the URL of a server")) }
}

/// Returns the requested scopes, if all of them are known.
pub(super) fn scopes(request: &Parameters, options: &Options) -> Result<Vec<String>, Failure> {
    let Some(scope) = request.get("scope") else {
        return Ok(options.scopes.iter().take(1).cloned().collect());
    };
    let scopes: Vec<String> = scope.split(' ').map(Into::into).collect();
    if scopes.iter().all(|scope| options.scopes.contains(scope)) {
        Ok(scopes)
    } else {
        Err(Failure::new("invalid_scope", "unknown scope"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ClientAuthentication;

    const ISSUER: &str = "http://127.0.0.1:1";
    const REQUEST: &str = "response_type=code&client_id=c&redirect_uri=https://a.example/?x=1\
        &state=s%26t&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM\
        &code_challenge_method=S256&resource=http://127.0.0.1:2/mcp&scope=mcp:basic";

    struct TestServer {
        options: Options,
        clients: Clients,
        authorizations: Authorizations,
        grants: Grants,
    }

    impl TestServer {
        fn new(approval: Approval) -> Self {
            let client = Client::new("c", ClientAuthentication::None)
                .grant_type(GrantType::AuthorizationCode)
                .redirect_uri("https://a.example/?x=1");
            let options = Options::new().approval(approval);
            Self {
                clients: Clients::new(vec![client], 1),
                authorizations: Authorizations::new(ISSUER, &options),
                grants: Grants::new(&options.limits),
                options,
            }
        }

        fn begin(&mut self, query: &str) -> AuthorizationResponse {
            let Self { options, clients, authorizations, grants } = self;
            authorizations.begin(query.as_bytes(), options, clients, grants, 100)
        }
    }

    /// Returns the parameters of the redirect to the client.
    fn redirect_parameters(shown: AuthorizationResponse) -> Parameters {
        let AuthorizationResponse::Redirect(url) = shown else {
            panic!("the response is not a redirect")
        };
        let query = url.strip_prefix("https://a.example/?x=1&").unwrap();
        Parameters::parse(query.as_bytes()).unwrap()
    }

    #[test]
    fn a_response_has_a_code_the_state_and_the_issuer() {
        // Rule: [AUTHS-026].
        let response = redirect_parameters(TestServer::new(Approval::Automatic).begin(REQUEST));
        assert!(response.get("code").is_some());
        assert_eq!(response.get("state"), Some("s&t"));
        assert_eq!(response.get("iss"), Some(ISSUER));
    }

    #[test]
    fn errors_are_redirected_to_the_client_with_the_issuer() {
        // Rule: [AUTHS-022] [AUTHS-026].
        for (from, to, error) in [
            ("response_type=code", "response_type=token", "unsupported_response_type"),
            ("code_challenge_method=S256", "code_challenge_method=plain", "invalid_request"),
            ("code_challenge=E9", "other=E9", "invalid_request"),
            ("&resource=", "&other=", "invalid_target"),
            ("&resource=http:", "&resource=mcp:", "invalid_target"),
            ("mcp:basic", "mcp:other", "invalid_scope"),
        ] {
            let request = REQUEST.replace(from, to);
            let response =
                redirect_parameters(TestServer::new(Approval::Automatic).begin(&request));
            assert_eq!(response.get("error"), Some(error), "{to}");
            assert_eq!(response.get("iss"), Some(ISSUER), "{to}");
            assert_eq!(response.get("code"), None, "{to}");
        }
        let response = redirect_parameters(TestServer::new(Approval::Denied).begin(REQUEST));
        assert_eq!(response.get("error"), Some("access_denied"));
    }

    #[test]
    fn the_user_named_by_the_client_signs_in() {
        for (hint, user) in
            [("", "user"), ("&login_hint=ann%7Cb", "ann|b"), ("&login_hint=", "user")]
        {
            let mut server = TestServer::new(Approval::Page);
            let shown = server.begin(&format!("{REQUEST}{hint}"));
            assert!(matches!(shown, AuthorizationResponse::Consent(_)));
            let request = Parameters::parse(format!("{REQUEST}{hint}").as_bytes()).unwrap();
            let client = server.clients.find("c").unwrap();
            let options = Options::new().subject("user");
            let (permission, _) = consent(&request, client, &options).ok().unwrap();
            assert_eq!(permission.subject, user);
        }
        let long = format!("{REQUEST}&login_hint={}", "x".repeat(LOGIN_HINT_LENGTH_MAX + 1));
        let response = redirect_parameters(TestServer::new(Approval::Automatic).begin(&long));
        assert_eq!(response.get("error"), Some("invalid_request"));
    }

    #[test]
    fn unregistered_redirect_uris_are_refused() {
        // Rule: [AUTHS-025] [AUTHS-029].
        for (from, to) in [
            ("client_id=c", "client_id=other"),
            ("a.example/?x=1", "a.example/?x=2"),
            ("a.example/?x=1", "evil.example/"),
            ("&redirect_uri=", "&other="),
            ("&state=", "&client_id="),
        ] {
            let shown = TestServer::new(Approval::Automatic).begin(&REQUEST.replace(from, to));
            assert!(matches!(shown, AuthorizationResponse::Error(_)), "{to}");
        }
    }

    #[test]
    fn a_page_asks_the_user_once() {
        for (answer, parameter) in [("approve", "code"), ("deny", "error"), ("", "error")] {
            let mut server = TestServer::new(Approval::Page);
            let AuthorizationResponse::Consent(page) = server.begin(REQUEST) else {
                panic!("no question")
            };
            let (_, id) = page.split_once(r#"name="request" value=""#).unwrap();
            let (id, _) = id.split_once('"').unwrap();
            let form = format!("request={id}&answer={answer}");
            let TestServer { authorizations, grants, .. } = &mut server;
            let response = redirect_parameters(authorizations.answer(form.as_bytes(), grants, 100));
            assert!(response.get(parameter).is_some(), "{answer}");
            let again = authorizations.answer(form.as_bytes(), grants, 100);
            assert!(matches!(again, AuthorizationResponse::Error(_)));
        }
    }
}

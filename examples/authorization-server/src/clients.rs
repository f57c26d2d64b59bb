//! Clients and their authentication at the token endpoint.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use serde_json::Value;

use super::bounded_map::BoundedMap;
use super::failure::Failure;
use super::keys;
use super::parameters::Parameters;
use super::redirect_uri;

/// The `client_assertion_type` of a client that authenticates with a key (RFC 7523).
const JWT_BEARER_ASSERTION: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// A client known to the server.
#[derive(Clone)]
pub struct Client {
    pub(super) id: String,
    pub(super) name: Option<String>,
    pub(super) authentication: ClientAuthentication,
    pub(super) redirect_uris: Vec<String>,
    pub(super) grant_types: Vec<GrantType>,
}

/// How a client authenticates at the token endpoint.
#[derive(Clone)]
#[non_exhaustive]
pub enum ClientAuthentication {
    /// No authentication: a public client.
    None,
    /// A password in HTTP Basic authentication.
    Basic(String),
    /// A password in the form.
    Post(String),
    /// A signature with a key in this JWK set.
    PrivateKey(Value),
}

/// The type of a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GrantType {
    /// An authorization code from the redirect of the user.
    AuthorizationCode,
    /// A refresh token.
    RefreshToken,
    /// The client's own authentication.
    ClientCredentials,
    /// An assertion of a trusted issuer (RFC 7523).
    JwtBearer,
}

/// All clients: those of the options and those that registered.
pub(super) struct Clients {
    known: Vec<Client>,
    registered: BoundedMap<Client>,
}

impl GrantType {
    pub(super) const ALL: [Self; 4] =
        [Self::AuthorizationCode, Self::RefreshToken, Self::ClientCredentials, Self::JwtBearer];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::AuthorizationCode => "authorization_code",
            Self::RefreshToken => "refresh_token",
            Self::ClientCredentials => "client_credentials",
            Self::JwtBearer => "urn:ietf:params:oauth:grant-type:jwt-bearer",
        }
    }

    pub(super) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }
}

impl Client {
    /// Creates a client that may not use any grant yet.
    #[must_use]
    pub fn new(id: impl Into<String>, authentication: ClientAuthentication) -> Self {
        Self {
            id: id.into(),
            name: None,
            authentication,
            redirect_uris: Vec::new(),
            grant_types: Vec::new(),
        }
    }

    /// Allows the client to use this grant type.
    #[must_use]
    pub fn grant_type(mut self, grant_type: GrantType) -> Self {
        self.grant_types.push(grant_type);
        self
    }

    /// Allows the client to use this redirect URI. On a loopback host, the port is ignored.
    #[must_use]
    pub fn redirect_uri(mut self, uri: impl Into<String>) -> Self {
        self.redirect_uris.push(uri.into());
        self
    }

    pub(super) fn may_redirect_to(&self, uri: &str) -> bool {
        self.redirect_uris.iter().any(|registered| redirect_uri::matches(registered, uri))
    }

    pub(super) fn may_use(&self, grant_type: GrantType) -> bool {
        // A public client cannot use the client credentials grant (OAuth 2.1, section 4.2).
        let public = matches!(self.authentication, ClientAuthentication::None);
        self.grant_types.contains(&grant_type)
            && !(public && grant_type == GrantType::ClientCredentials)
    }
}

impl ClientAuthentication {
    /// Returns the name of the method in registrations.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Basic(_) => "client_secret_basic",
            Self::Post(_) => "client_secret_post",
            Self::PrivateKey(_) => "private_key_jwt",
        }
    }
}

impl Clients {
    pub(super) const fn new(known: Vec<Client>, registered_max: usize) -> Self {
        Self { known, registered: BoundedMap::new(registered_max) }
    }

    pub(super) fn register(&mut self, client: Client) {
        self.registered.insert(client.id.clone(), client);
    }

    pub(super) fn find(&self, id: &str) -> Option<&Client> {
        self.known.iter().find(|client| client.id == id).or_else(|| self.registered.get(id))
    }

    /// Returns the client that sends a token request.
    // MCP 2026-07-28 basic/authorization/index#overview [AUTHS-022]: the client must use its
    // registered authentication method.
    pub(super) fn authenticate(
        &self,
        headers: &HeaderMap,
        form: &Parameters,
        issuer: &str,
        now: u64,
    ) -> Result<&Client, Failure> {
        let basic = headers.get(AUTHORIZATION).map(|it| it.to_str().ok().and_then(basic));
        let assertion = form.get("client_assertion");
        let offered = [basic.is_some(), form.get("client_secret").is_some(), assertion.is_some()];
        if offered.into_iter().filter(|it| *it).count() > 1 {
            return Err(Failure::request("use only one authentication method"));
        }
        let basic = basic.map(|it| it.ok_or(Failure::client())).transpose()?;
        let id = match (&basic, form.get("client_id"), assertion) {
            (Some((id, _)), None, _) => id.clone(),
            (Some((id, _)), Some(other), _) if id == other => id.clone(),
            (None, Some(id), _) => id.to_owned(),
            (None, None, Some(assertion)) => keys::unverified_issuer(assertion).unwrap_or_default(),
            _ => return Err(Failure::client()),
        };
        let client = self.find(&id).ok_or(Failure::client())?;
        let proven = match &client.authentication {
            ClientAuthentication::None => offered == [false; 3],
            ClientAuthentication::Basic(secret) => {
                basic.is_some_and(|(_, it)| is_same(&it, secret))
            }
            ClientAuthentication::Post(secret) => {
                form.get("client_secret").is_some_and(|it| is_same(it, secret))
            }
            ClientAuthentication::PrivateKey(jwks) => {
                form.get("client_assertion_type") == Some(JWT_BEARER_ASSERTION)
                    && assertion.and_then(|assertion| keys::verify(assertion, jwks)).is_some_and(
                        |it| {
                            it["iss"] == *id
                                && it["sub"] == *id
                                && keys::is_for(&it, issuer)
                                && keys::is_current(&it, now)
                        },
                    )
            }
        };
        if proven { Ok(client) } else { Err(Failure::client()) }
    }
}

/// Decodes id and password, each of which is form-encoded (RFC 6749, section 2.3.1).
fn basic(header: &str) -> Option<(String, String)> {
    let (scheme, credentials) = header.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let credentials = String::from_utf8(STANDARD.decode(credentials.trim()).ok()?).ok()?;
    let (id, secret) = credentials.split_once(':')?;
    let decode = |text: &str| {
        let mut pairs = form_urlencoded::parse(text.as_bytes());
        pairs.next().map(|(name, _)| name.into_owned()).unwrap_or_default()
    };
    Some((decode(id), decode(secret)))
}

/// Compares both texts in constant time.
fn is_same(ours: &str, theirs: &str) -> bool {
    let (ours, theirs) = (ours.as_bytes(), theirs.as_bytes());
    ours.len() == theirs.len()
        && ours.iter().zip(theirs).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

impl std::fmt::Debug for Client {
    /// Omits the secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("id", &self.id)
            .field("authentication", &self.authentication)
            .field("redirect_uris", &self.redirect_uris)
            .field("grant_types", &self.grant_types)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for ClientAuthentication {
    /// Omits the secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use serde_json::json;

    use super::*;
    use crate::SigningKeys;

    const ISSUER: &str = "http://127.0.0.1:1";

    fn clients(authentication: ClientAuthentication) -> Clients {
        Clients::new(vec![Client::new("a b", authentication)], 1)
    }

    fn is_authenticated(clients: &Clients, header: Option<&str>, form: &str) -> bool {
        let mut headers = HeaderMap::new();
        if let Some(header) = header {
            let value = format!("Basic {}", STANDARD.encode(header));
            headers.insert(AUTHORIZATION, HeaderValue::from_str(&value).unwrap());
        }
        let form = Parameters::parse(form.as_bytes()).unwrap();
        clients.authenticate(&headers, &form, ISSUER, 100).is_ok()
    }

    #[test]
    fn a_client_authenticates_with_its_registered_method() {
        // Rule: [AUTHS-022].
        let ways: [(Option<&str>, &str); 4] = [
            (None, "client_id=a+b"),
            (Some("a+b:x%2By"), ""),
            (None, "client_id=a+b&client_secret=x%2By"),
            (Some("a+b:wrong"), ""),
        ];
        for (authentication, expected) in [
            (ClientAuthentication::None, [true, false, false, false]),
            (ClientAuthentication::Basic("x+y".into()), [false, true, false, false]),
            (ClientAuthentication::Post("x+y".into()), [false, false, true, false]),
        ] {
            let clients = clients(authentication);
            assert_eq!(
                ways.map(|(header, form)| is_authenticated(&clients, header, form)),
                expected
            );
            assert!(!is_authenticated(&clients, Some("a+b:x%2By"), "client_secret=x%2By"));
            assert!(!is_authenticated(&clients, None, "client_id=other"));
            assert!(!is_authenticated(&clients, None, ""));
        }
    }

    #[test]
    fn a_key_signs_for_its_client_this_server_and_now() {
        // Rule: [AUTHS-022].
        let keys = SigningKeys::generate().unwrap();
        let clients = clients(ClientAuthentication::PrivateKey(keys.to_jwks()));
        let claims = json!({ "iss": "a b", "sub": "a b", "aud": ISSUER, "exp": 101 });
        let tries = |name: &str, value: Value| {
            let mut claims = claims.clone();
            claims[name] = value;
            let assertion = keys.sign("JWT", &claims).unwrap();
            let kind = JWT_BEARER_ASSERTION;
            let form = format!("client_assertion_type={kind}&client_assertion={assertion}");
            is_authenticated(&clients, None, &form)
        };
        assert!(tries("aud", json!([ISSUER])));
        assert!(!tries("aud", json!("http://127.0.0.1:2")));
        assert!(!tries("exp", json!(100)));
        assert!(!tries("exp", json!(null)));
        assert!(!tries("sub", json!("other")));
        assert!(!tries("iss", json!("other")));
    }

    #[test]
    fn a_public_client_cannot_use_client_credentials() {
        // Rule: [AUTHS-022].
        let client = Client::new("a", ClientAuthentication::None);
        let client = client.grant_type(GrantType::ClientCredentials);
        assert!(!client.may_use(GrantType::ClientCredentials));
    }

    #[test]
    fn secrets_are_not_shown() {
        let client = Client::new("a", ClientAuthentication::Basic("secret".into()));
        assert!(!format!("{client:?}").contains("secret\""), "{client:?}");
    }
}

//! Who may ask for tokens, and how it proves that it is it.

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

/// How a client that proves itself with a key says so (RFC 7523).
const JWT_BEARER_ASSERTION: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// A client that the server knows.
#[derive(Clone)]
pub struct Client {
    pub(super) id: String,
    pub(super) name: Option<String>,
    pub(super) authentication: ClientAuthentication,
    pub(super) redirect_uris: Vec<String>,
    pub(super) grant_types: Vec<GrantType>,
}

/// How a client proves at the token endpoint that it is it.
#[derive(Clone)]
#[non_exhaustive]
pub enum ClientAuthentication {
    /// It cannot: a public client.
    None,
    /// With a password, by HTTP's basic authentication.
    Basic(String),
    /// With a password, in the form.
    Post(String),
    /// With a signature by one of the keys of this JWK set.
    PrivateKey(Value),
}

/// What a token is asked for with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GrantType {
    /// A code that the user came back with.
    AuthorizationCode,
    /// What was given with an earlier token.
    RefreshToken,
    /// Nothing but the client itself.
    ClientCredentials,
    /// What an issuer says that the server trusts (RFC 7523).
    JwtBearer,
}

/// The clients that there are: those of the options, and those that registered.
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
    /// One that may do nothing yet.
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

    /// Lets it ask for tokens with this.
    #[must_use]
    pub fn grant_type(mut self, grant_type: GrantType) -> Self {
        self.grant_types.push(grant_type);
        self
    }

    /// Lets it have users sent back to `uri`. On a loopback host the port does not matter.
    #[must_use]
    pub fn redirect_uri(mut self, uri: impl Into<String>) -> Self {
        self.redirect_uris.push(uri.into());
        self
    }

    pub(super) fn may_redirect_to(&self, uri: &str) -> bool {
        self.redirect_uris.iter().any(|registered| redirect_uri::matches(registered, uri))
    }

    pub(super) fn may_use(&self, grant_type: GrantType) -> bool {
        // Whoever cannot prove who it is has nothing of its own to get (OAuth 2.1, section 4.2).
        let public = matches!(self.authentication, ClientAuthentication::None);
        self.grant_types.contains(&grant_type)
            && !(public && grant_type == GrantType::ClientCredentials)
    }
}

impl ClientAuthentication {
    /// Its name at registration.
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

    /// The client that asks for a token.
    // MCP 2026-07-28 basic/authorization/index#overview [AUTHS-022]: in the way that it is known to,
    // and in no other.
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
            return Err(Failure::request("a client proves itself in one way"));
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

/// Id and password, each of which was encoded as in a form (RFC 6749, section 2.3.1).
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

/// Whether both texts are the same, in a time that does not tell where they differ.
fn is_same(ours: &str, theirs: &str) -> bool {
    let (ours, theirs) = (ours.as_bytes(), theirs.as_bytes());
    ours.len() == theirs.len()
        && ours.iter().zip(theirs).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

impl std::fmt::Debug for Client {
    /// Leaves the secret out.
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
    /// Leaves the secret out.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use serde_json::json;

    use super::*;
    use crate::authorization_server::SigningKeys;

    const ISSUER: &str = "http://127.0.0.1:1";

    fn clients(authentication: ClientAuthentication) -> Clients {
        Clients::new(vec![Client::new("a b", authentication)], 1)
    }

    fn is_let_in(clients: &Clients, header: Option<&str>, form: &str) -> bool {
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
            assert_eq!(ways.map(|(header, form)| is_let_in(&clients, header, form)), expected);
            assert!(!is_let_in(&clients, Some("a+b:x%2By"), "client_secret=x%2By"));
            assert!(!is_let_in(&clients, None, "client_id=other"));
            assert!(!is_let_in(&clients, None, ""));
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
            is_let_in(&clients, None, &form)
        };
        assert!(tries("aud", json!([ISSUER])));
        assert!(!tries("aud", json!("http://127.0.0.1:2")));
        assert!(!tries("exp", json!(100)));
        assert!(!tries("exp", json!(null)));
        assert!(!tries("sub", json!("other")));
        assert!(!tries("iss", json!("other")));
    }

    #[test]
    fn a_public_client_gets_nothing_on_its_own() {
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

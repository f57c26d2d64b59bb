//! Checks every request before it is sent, and every text that is logged or shown: a secret is sent
//! to its owner only, in the right place.
//!
//! Secrets are learned from the responses of servers and from the credentials that the client
//! sends. The configured passwords of the tests belong to `AS`. A secret shorter than eight bytes
//! must match a whole value; a longer one is searched for in the whole text.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use mcp_sansio::http::Location;
use serde_json::Value;

use crate::answers::{Answer, Reply};
use crate::network::AS;
use crate::sent::{Sent, parameters};

/// From this length on, a match is not a coincidence.
const LONG: usize = 8;
/// Form parameters whose values are secrets shared by the client and one issuer.
const CREDENTIALS: [&str; 7] = [
    "code",
    "code_verifier",
    "refresh_token",
    "client_secret",
    "client_assertion",
    "assertion",
    "subject_token",
];

/// The secrets of a test.
#[derive(Clone, Debug, Default)]
pub(crate) struct Secrets {
    /// Tokens for the MCP server.
    tokens: BTreeSet<String>,
    /// Secrets shared with an issuer, by the URL of the issuer.
    credentials: BTreeSet<(String, String)>,
    /// Values of `state`, which only the browser of the user receives.
    states: BTreeSet<String>,
    /// The endpoints that issuers named, as pairs of issuer and URL.
    endpoints: BTreeSet<(String, String)>,
    /// The origin of the MCP server.
    server: String,
}

impl Secrets {
    pub(crate) fn new(server: &Location) -> Self {
        let server = server.origin().to_string();
        // Endpoints of 2025-03-26 have no metadata.
        let endpoints =
            ["/token", "/register"].map(|path| (server.clone(), [&server, path].concat()));
        Self { endpoints: endpoints.into(), server, ..Self::default() }
    }

    // ------------------------------------------------------------------ learning

    /// Adds a secret that is shared with this issuer.
    pub(crate) fn credential(&mut self, issuer: &str, secret: &str) {
        self.credentials.insert((issuer.into(), secret.into()));
    }

    pub(crate) fn state(&mut self, state: &str) {
        self.states.insert(state.into());
    }

    /// Returns how many users were asked to sign in.
    pub(crate) fn states(&self) -> usize {
        self.states.len()
    }

    /// Learns the secrets in the answer to a request.
    pub(crate) fn learn(&mut self, request: &Sent, answer: &Answer) {
        if let Answer::Reply(reply @ Reply { status: 307 | 308, .. }) = answer {
            self.learn_redirect(request, reply);
        }
        let Answer::Reply(Reply { status: 200..300, body, .. }) = answer else { return };
        let body = body.trim_start_matches('\u{feff}');
        let Ok(Value::Object(body)) = serde_json::from_str(body) else { return };
        let text = |name: &str| body.get(name).and_then(Value::as_str);
        if request.method == "GET"
            && let Some(issuer) = text("issuer")
            && Location::parse(issuer)
                .is_ok_and(|it| self.is_at(&request.url, &it.origin().to_string()))
        {
            // It is the same with and without its final slash.
            let issuer = issuer.strip_suffix('/').unwrap_or(issuer);
            for endpoint in ["token_endpoint", "registration_endpoint"].into_iter().filter_map(text)
            {
                self.endpoints
                    .insert((issuer.into(), endpoint.split('?').next().expect("a part").into()));
            }
        }
        let exchange = request.form("requested_token_type").is_some();
        let issuers = self.issuers_at(&request.place());
        if request.form("grant_type").is_some() {
            match text("access_token") {
                Some(token) if exchange => {
                    let audience = request.form("audience").expect("an audience");
                    self.credential(&audience, token);
                }
                Some(token) => drop(self.tokens.insert(token.into())),
                None => {}
            }
        }
        for secret in ["refresh_token", "client_secret"].into_iter().filter_map(text) {
            for issuer in &issuers {
                self.credential(issuer, secret);
            }
        }
    }

    /// Learns the place within its origin that an endpoint redirects to.
    fn learn_redirect(&mut self, request: &Sent, reply: &Reply) {
        let target = reply.fields.iter().find(|(name, _)| name == "location");
        let here = Location::parse(&request.url).expect("a URL");
        let Some(target) = target.and_then(|(_, target)| here.resolve(target).ok()) else { return };
        if target.same_origin(&here) {
            let place = target.as_str().split('?').next().expect("a part");
            for issuer in self.issuers_at(&request.place()) {
                self.endpoints.insert((issuer, place.into()));
            }
        }
    }

    fn issuers_at(&self, place: &str) -> BTreeSet<String> {
        self.endpoints.iter().filter(|it| it.1 == place).map(|it| it.0.clone()).collect()
    }

    fn is_at(&self, url: &str, origin: &str) -> bool {
        url.strip_prefix(origin).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']))
    }

    // ------------------------------------------------------------------ requests

    /// Checks a request before it is sent.
    pub(crate) fn check(&mut self, request: &Sent) {
        let place = request.place();
        let server = self.is_at(&request.url, &self.server);
        let location = Location::parse(&request.url).expect("a URL");
        let origin = location.origin();
        assert!(
            request.url.starts_with("https:") || origin.is_loopback() || server,
            "the request is not encrypted: {request:?}"
        );
        if request.form("grant_type").is_some() {
            self.check_token_request(request, &place);
        }
        for (name, value) in &request.fields {
            self.check_field(request, server, name, value);
        }
        if let Some(proof) = request.field("dpop") {
            let claims = claims(proof);
            assert_eq!(claims["htu"], *place, "{request:?}");
            assert_eq!(claims["htm"], request.method, "{request:?}");
        }
        self.check_rest(request, &place);
    }

    /// Checks that a token request goes to an issuer that named its endpoint, with secrets of that
    /// issuer only.
    fn check_token_request(&mut self, request: &Sent, place: &str) {
        assert_eq!(request.method, "POST", "{request:?}");
        if request.form("subject_token").is_some() {
            self.endpoints.insert(("the identity provider".into(), place.into()));
        }
        let issuers = self.issuers_at(place);
        assert!(!issuers.is_empty(), "no issuer named this token endpoint: {request:?}");
        let mut shown: Vec<_> = CREDENTIALS.into_iter().filter_map(|it| request.form(it)).collect();
        let mut passwords: Vec<_> = request.form("client_secret").into_iter().collect();
        passwords.extend(request.field("authorization").map(|value| basic(value).1));
        // The identity provider has its own password.
        if request.form("subject_token").is_some() {
            passwords.clear();
        }
        shown.extend(request.field("authorization").map(|value| basic(value).1));
        for secret in shown {
            let owners: BTreeSet<_> = self
                .credentials
                .iter()
                .filter(|it| it.1 == secret)
                .map(|it| it.0.clone())
                .collect();
            assert!(
                owners.is_empty() || !owners.is_disjoint(&issuers),
                "a secret of {owners:?} is sent to {issuers:?}: {request:?}"
            );
            assert!(
                !owners.is_empty() || !passwords.contains(&secret) || issuers.contains(AS),
                "a password that is configured for {AS} is sent to {issuers:?}: {request:?}"
            );
            for issuer in &issuers {
                self.credential(issuer, &secret);
            }
        }
        if let Some(assertion) = request.form("client_assertion") {
            let audience = claims(&assertion)["aud"].as_str().expect("an audience").to_string();
            assert!(
                issuers.contains(&audience),
                "an assertion for {audience} is sent to {issuers:?}: {request:?}"
            );
        }
    }

    // [AUTHC-043] [AUTHC-044] [AUTHC-045].
    fn check_field(&self, request: &Sent, server: bool, name: &str, value: &str) {
        assert!(value.bytes().all(|it| matches!(it, b' '..=b'~')), "{name} in {request:?}");
        if name != "authorization" {
            assert!(!self.tokens.contains(value), "a token in {name}: {request:?}");
            return;
        }
        match value.split_once(' ') {
            Some(("Bearer" | "DPoP", token)) => {
                assert!(server, "a token is sent to another server: {request:?}");
                let metadata = request.url.contains("/.well-known/");
                assert!(!metadata, "a document is requested with a token: {request:?}");
                let ours = !self.credentials.iter().any(|it| it.1 == token && it.1.len() >= LONG);
                assert!(ours, "the token is not one of the server: {request:?}");
            }
            Some(("Basic", _)) => assert!(request.form("grant_type").is_some(), "{request:?}"),
            _ => panic!("an unknown scheme: {request:?}"),
        }
    }

    /// Checks that the other parts of a request have no secrets.
    fn check_rest(&self, request: &Sent, place: &str) {
        let form = request.form("grant_type").is_some();
        let query = request.url.split_once('?').map_or("", |it| it.1);
        let mut values: Vec<String> = parameters(query).map(|it| it.1).collect();
        values.push(place.into());
        let fields = request.fields.iter().filter(|it| it.0 != "authorization");
        values.extend(fields.map(|it| it.1.clone()));
        if form {
            let others = parameters(&request.body).filter(|it| !CREDENTIALS.contains(&&*it.0));
            values.extend(others.map(|it| it.1));
        } else {
            values.push(request.body.clone());
        }
        for secret in self.all() {
            let found = |it: &String| it == secret || secret.len() >= LONG && it.contains(secret);
            assert!(!values.iter().any(found), "`{secret}` does not belong here: {request:?}");
        }
    }

    fn all(&self) -> impl Iterator<Item = &str> {
        let credentials = self.credentials.iter().map(|it| &it.1);
        self.tokens.iter().chain(credentials).chain(&self.states).map(|it| &**it)
    }

    // ------------------------------------------------------------------ output

    /// Checks a text that is shown to people: in logs and in error messages.
    // [AUTHC-046] [AUTHC-062].
    pub(crate) fn check_shown(&self, text: &str) {
        for secret in self.all().filter(|it| it.len() >= LONG) {
            assert!(!text.contains(secret), "`{secret}` is shown: {text}");
            // Bytes as `Debug` writes them.
            let bytes = format!("{:?}", secret.as_bytes());
            let bytes = bytes.trim_matches(['[', ']']);
            assert!(!text.contains(bytes), "the bytes of `{secret}` are shown: {text}");
        }
        assert!(!text.contains(|it: char| it.is_control()), "control characters: {text:?}");
    }
}

/// Returns the claims of a JSON Web Token.
pub(crate) fn claims(token: &str) -> Value {
    let claims = token.split('.').nth(1).expect("claims");
    let claims = URL_SAFE_NO_PAD.decode(claims).expect("base64url");
    serde_json::from_slice(&claims).expect("JSON")
}

/// Returns the name and the password of `Basic`.
fn basic(value: &str) -> (String, String) {
    let value = value.strip_prefix("Basic ").expect("a password");
    let value = String::from_utf8(STANDARD.decode(value).expect("base64")).expect("text");
    let (name, password) = value.split_once(':').expect("a password");
    let decoded = |text: &str| parameters(&format!("x={text}")).next().expect("a value").1;
    (decoded(name), decoded(password))
}

//! The authorization server over its socket.

use authorization_server::{AuthorizationServer, Options, verify};
use bytes::Bytes;
use form_urlencoded::Serializer;
use http::header::{CONTENT_TYPE, LOCATION};
use http::{Method, Request, Response, StatusCode};
use mcp_sansio_tokio::Connector;
use serde_json::{Value, json};
use tokio::net::TcpListener;

const REDIRECT_URI: &str = "http://127.0.0.1:4711/callback";
const RESOURCE: &str = "http://127.0.0.1:1/mcp";
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

/// A hand-written client.
struct Visitor {
    server: AuthorizationServer,
    connector: Connector,
}

impl Visitor {
    async fn new(options: Options) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = AuthorizationServer::start(listener, options).unwrap();
        Self { server, connector: Connector::new().unwrap() }
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.server.issuer())
    }

    async fn send(&self, request: Request<Bytes>) -> Response<Bytes> {
        let (head, mut body) = self.connector.send(request).await.unwrap().into_parts();
        let mut bytes = Vec::new();
        while let Some(chunk) = body.chunk().await {
            bytes.extend_from_slice(&chunk.unwrap());
        }
        Response::from_parts(head, bytes.into())
    }

    async fn get(&self, url: &str) -> Response<Bytes> {
        self.send(Request::get(url).body(Bytes::new()).unwrap()).await
    }

    async fn post(&self, url: &str, kind: &str, body: String) -> (StatusCode, Value) {
        let request = Request::post(url).header(CONTENT_TYPE, kind).body(body.into()).unwrap();
        let response = self.send(request).await;
        (response.status(), json_of(&response))
    }

    async fn ask(&self, form: &[(&str, &str)]) -> (StatusCode, Value) {
        let form = Serializer::new(String::new()).extend_pairs(form).finish();
        self.post(&self.url("/token"), "application/x-www-form-urlencoded", form).await
    }

    async fn register(&self) -> String {
        let metadata = json!({
            "client_name": "visitor",
            "application_type": "native",
            "redirect_uris": ["http://127.0.0.1/callback"],
            "grant_types": ["authorization_code", "refresh_token"],
            "token_endpoint_auth_method": "none",
        });
        let url = self.url("/register");
        let (status, client) = self.post(&url, "application/json", metadata.to_string()).await;
        assert_eq!(status, StatusCode::CREATED, "{client}");
        client["client_id"].as_str().unwrap().to_owned()
    }

    /// Returns the parameters of the redirect.
    async fn sign_in(&self, client_id: &str) -> Vec<(String, String)> {
        let query = Serializer::new(String::new())
            .extend_pairs([
                ("response_type", "code"),
                ("client_id", client_id),
                ("redirect_uri", REDIRECT_URI),
                ("state", "7"),
                ("code_challenge", CHALLENGE),
                ("code_challenge_method", "S256"),
                ("resource", RESOURCE),
                ("scope", "mcp:write"),
            ])
            .finish();
        let response = self.get(&self.url(&format!("/authorize?{query}"))).await;
        assert_eq!(response.status(), StatusCode::SEE_OTHER);
        let location = response.headers()[LOCATION].to_str().unwrap();
        let query = location.strip_prefix(REDIRECT_URI).and_then(|rest| rest.strip_prefix('?'));
        form_urlencoded::parse(query.unwrap().as_bytes()).into_owned().collect()
    }
}

fn json_of(response: &Response<Bytes>) -> Value {
    serde_json::from_slice(response.body()).unwrap()
}

fn named<'a>(parameters: &'a [(String, String)], name: &str) -> &'a str {
    &parameters.iter().find(|(it, _)| it == name).unwrap().1
}

#[tokio::test]
async fn a_client_discovers_registers_signs_in_and_refreshes() {
    // Rule: [AUTHS-022] [AUTHS-023] [AUTHS-025] [AUTHS-026].
    let visitor = Visitor::new(Options::new().scopes(["mcp:basic", "mcp:write"])).await;
    let issuer = visitor.server.issuer();
    let metadata = visitor.get(&visitor.url("/.well-known/oauth-authorization-server")).await;
    assert_eq!(json_of(&metadata)["issuer"], issuer);
    assert_eq!(json_of(&metadata)["registration_endpoint"], visitor.url("/register"));

    let client_id = visitor.register().await;
    let response = visitor.sign_in(&client_id).await;
    assert_eq!(named(&response, "state"), "7");
    assert_eq!(named(&response, "iss"), issuer);

    let code = [
        ("grant_type", "authorization_code"),
        ("client_id", &client_id),
        ("code", named(&response, "code")),
        ("redirect_uri", REDIRECT_URI),
        ("code_verifier", VERIFIER),
        ("resource", RESOURCE),
    ];
    let (status, tokens) = visitor.ask(&code).await;
    assert_eq!(status, StatusCode::OK, "{tokens}");
    assert_eq!(tokens["scope"], "mcp:write");
    let jwks = json_of(&visitor.get(&visitor.url("/jwks")).await);
    let claims = verify(tokens["access_token"].as_str().unwrap(), &jwks).unwrap();
    assert_eq!((&claims["aud"], &claims["iss"]), (&json!(RESOURCE), &json!(issuer)));

    visitor.server.rotate_keys().unwrap();
    let renewal = [
        ("grant_type", "refresh_token"),
        ("client_id", &client_id),
        ("refresh_token", tokens["refresh_token"].as_str().unwrap()),
        ("resource", RESOURCE),
    ];
    let (status, renewed) = visitor.ask(&renewal).await;
    assert_eq!(status, StatusCode::OK, "{renewed}");
    let newer = renewed["access_token"].as_str().unwrap();
    assert_eq!(verify(newer, &jwks), None);
    assert!(verify(newer, &visitor.server.jwks()).is_some());

    let (status, refusal) = visitor.ask(&renewal).await;
    assert_eq!((status, &refusal["error"]), (StatusCode::BAD_REQUEST, &json!("invalid_grant")));
    let tally = visitor.server.tally();
    assert_eq!((tally.registrations, tally.authorizations), (1, 1));
    assert_eq!((tally.codes_redeemed, tally.refreshes, tally.refusals), (1, 1, 1));
}

#[tokio::test]
async fn a_revoked_token_is_not_refreshed() {
    let visitor = Visitor::new(Options::new().scopes(["mcp:basic", "mcp:write"])).await;
    let client_id = visitor.register().await;
    let response = visitor.sign_in(&client_id).await;
    let code = [
        ("grant_type", "authorization_code"),
        ("client_id", &client_id),
        ("code", named(&response, "code")),
        ("code_verifier", VERIFIER),
        ("resource", RESOURCE),
    ];
    let (_, tokens) = visitor.ask(&code).await;
    visitor.server.revoke_refresh_tokens();
    let renewal = [
        ("grant_type", "refresh_token"),
        ("client_id", &client_id),
        ("refresh_token", tokens["refresh_token"].as_str().unwrap()),
        ("resource", RESOURCE),
    ];
    assert_eq!(visitor.ask(&renewal).await.1["error"], "invalid_grant");
}

#[tokio::test]
async fn an_invalid_request_is_refused() {
    let visitor = Visitor::new(Options::new()).await;
    assert_eq!(visitor.get(&visitor.url("/token")).await.status(), StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(visitor.get(&visitor.url("/other")).await.status(), StatusCode::NOT_FOUND);
    assert_eq!(visitor.get(&visitor.url("/authorize")).await.status(), StatusCode::BAD_REQUEST);

    let (status, refusal) = visitor.ask(&[("grant_type", "client_credentials")]).await;
    assert_eq!((status, &refusal["error"]), (StatusCode::UNAUTHORIZED, &json!("invalid_client")));
    let (status, refusal) = visitor.post(&visitor.url("/token"), "text/plain", "x".into()).await;
    assert_eq!((status, &refusal["error"]), (StatusCode::BAD_REQUEST, &json!("invalid_request")));

    let long = Bytes::from(vec![b'x'; 64 * 1024 + 1]);
    let request = Request::builder().method(Method::POST).uri(visitor.url("/register"));
    let response = visitor.send(request.body(long).unwrap()).await;
    assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn the_server_only_listens_on_loopback_addresses() {
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    assert!(AuthorizationServer::start(listener, Options::new()).is_err());
}
